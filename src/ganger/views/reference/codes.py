"""Every code and failure class with its meaning and the next step: for `ganger explain` and docs/codes.md."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches

from ganger.contracts.codes import CODES as CONTRACT_CODES
from ganger.core.failures.classes import CLASSES
from ganger.core.failures.write_codes import WRITE_CODES
from ganger.core.verify.census import CENSUS_CODES
from ganger.core.verify.commands import COMMAND_CODES
from ganger.core.vocabulary import BlockReason, RunStatus, TaskStatus
from ganger.errors import NotFoundError
from ganger.views.reference.violations import VIOLATIONS


@dataclass(frozen=True, slots=True)
class CodeEntry:
    code: str
    title: str
    meaning: str
    next_step: str

    def as_json(self) -> dict[str, str]:
        return {"code": self.code, "title": self.title, "meaning": self.meaning, "next_step": self.next_step}


_OWN: dict[str, tuple[str, str, str]] = {
    "DUPLICATE_ID": ("two tasks have the same id", "Ids name logs and dependencies, so each must be unique.", "Rename one of the tasks."),
    "UNKNOWN_DEPENDENCY": ("a dependency names no task", "depends_on has an id that no task has.", "Correct the spelling, or add the task."),
    "SELF_DEPENDENCY": ("a task depends on itself", "It could never start.", "Remove the entry."),
    "CYCLE": ("tasks depend on each other in a cycle", "None of them could ever start; the cycle is printed.", "Remove one of its dependencies."),
    "UNKNOWN_REPO": ("there is no such repository", "metadata.repo, and depends_on in [repos.NAME], must name a section [repos.NAME].", "Correct the spelling, or add the section."),
    "REPO_CYCLE": ("repositories depend on each other in a cycle", "None of them could be first; the cycle is printed.", "Remove one of its depends_on entries."),
    "DELIVERY_UNFIT": ("delivery settings that can never work", "The message says which, for example a completion that asks for CI where nothing runs CI.", "Correct the setting; ganger config show says where it comes from."),
    "REPOS_NEED_GIT": ("several repositories without workspaces", "In direct mode agents work in the project's own folder, and there is only one.", 'Set workspace.mode = "local-git" or "forge".'),
    "PROMPT_MISSING": ("a prompt or context file does not exist", "prompt_ref and context_refs are files of the project.", "Create the file, or correct the path."),
    "PROMPT_OUTSIDE_PROJECT": ("a prompt lies outside the project", "Absolute paths, .. and symbolic links are not followed.", "Move the file into the project."),
    "UNKNOWN_PROFILE": ("a task names a verification profile that does not exist", "verify_profile must be a name in the profiles file.", "Add the profile, or correct the name."),
    "UNKNOWN_STEP": ("a tier or a pattern is given for a step that does not exist", 'Keys of [verify.tiers] and [verify.expect] are "profile/step".', "Correct the key."),
    "SETTING_WITHOUT_EFFECT": ("a setting has no effect in this mode, or with the other settings", "If it would drop a safeguard you asked for (a review, levels, landing, CI jobs, a closed network), the run does not start. Everything else is a warning, and so is all of it once the run has begun. docs/settings-by-mode.md has the whole table.", "Remove it, or set what the message says it needs."),
    "METADATA_WITHOUT_EFFECT": ("a key of a task's metadata, or its value, has no effect here", "Ganger reads these keys, but here they change nothing: a review in direct mode, a mode other than the run's, any kind or stage.", "Remove it, or set what the message says it needs; docs/settings-by-mode.md has the whole table."),
    "METADATA_NEAR_MISS": ("a key of a task's metadata looks like one Ganger reads", "Other tools may use metadata too, so the key is ignored.", "Correct the spelling if you mean Ganger's key."),
    "UNKNOWN_ROLE": ("no agent has this role", "Each role that a task names needs a section [roles.NAME].", "Add [roles.NAME] with agent = … to ganger.toml."),
    "UNKNOWN_AGENT": ("a role names an agent that is not configured", "agent in [roles.NAME] must name a section [agents.NAME].", "Add the section, or correct the name."),
    "UNKNOWN_AGENT_KIND": ("there is no such agent kind", "kind selects the adapter.", "ganger agents lists the kinds."),
    "UNKNOWN_EVENT": ("a hook is set for an event that does not exist", "It would never be called, and nothing would show it.", "ganger schema events lists the types; question, finish and failure are groups."),
    "NOTIFY_NOT_READY": ("notices could never be delivered", "Something that [notify] needs is missing: a variable, or the library apprise.", "Set the variable, pip install 'ganger[notify]', or remove the entry; ganger hooks test tries them all."),
    "SETTINGS_REFUSED": ("another program's settings file was not changed", "It is a link, damaged, or in an unexpected form; writing to it could lose its content.", "Fix the file by hand, then run the command again."),
    "UNKNOWN_SETTING": ("a GANGER_ variable names no setting", "Otherwise a typing mistake would be ignored without notice.", "ganger config show lists every setting."),
    "ADAPTER_FAILED": ("an agent's adapter failed", "The adapter for this kind of agent raised an error.", "Fix the adapter, or use another kind; ganger agents --check shows it."),
    "AGENT_NOT_READY": ("an agent cannot be started", "This is checked before the run starts, so that nothing fails halfway.", "ganger agents --check says what is missing."),
    "MANIFEST_CHANGED": ("the manifest or a prompt has changed since the run began", "Continuing would mix two plans.", "ganger run --reconcile applies the change; with --dry-run it only shows what would happen."),
    "RUN_LOCKED": ("another process leads this run", "A run has one lead; the message names its process.", "Watch it with ganger status, or stop it first with ganger stop."),
    "NOT_BUILT_YET": ("not implemented yet", "The command, flag or setting belongs to a later version.", "ganger --help lists what exists."),
    "SAID_ENOUGH": ("a worker has sent too much", "An attempt may store 2,000 messages and have 20 open questions; its report is always accepted.", "Report, or wait for the answers."),
    "NOT_STARTED": ("no worker is started for this task", "Its role belongs to sessions that ask for work.", "Take it with ganger worker next."),
    "NOT_FOUND": ("not found", "No run, task, log or file has that name.", "The message names those that exist."),
    "NOT_WRITABLE": ("a folder cannot be written", "Ganger keeps its events and logs in state_dir.", "Fix its permissions, or choose another state_dir."),
    "DISK_FULL": ("the disk is full", "The run stopped; everything recorded is kept.", "Free space, then run the same command again."),
    "OUTPUT_REFUSED": ("a command's output cannot be written", "Its standard output goes to a full disk, or to something that takes no writes. The command itself may have been carried out; only its output is lost.", "Send the output elsewhere, or free space; then run the same command again."),
    "MACHINE_REFUSED": ("the operating system refused a necessary call", "A disk error, a limit, or a lack of memory or open files: every further step would fail as well. The run stopped; everything recorded is kept.", "Check the named place and the limits, then run the same command again."),
    "STORE_ERROR": ("the event store cannot be used", "Ganger never works without it.", "The message names the file and the cause."),
    "STORE_FORGED": ("something other than Ganger changed the event store", "Before each write the lead checks that tables, triggers and events are as it left them; other processes may only add commands. A store in a place where agents can write, and that no lead is known to have created, is not trusted either.", "Find out who can write there (ganger doctor). Continue from a backup, or start a new run with another run_id."),
    "NO_STATE_FOLDER": ("there is no safe place for the run's data", "In direct mode the event store and every key are in your state folder ($XDG_STATE_HOME/ganger, else ~/.local/state/ganger), because agents write to the project. That folder is unknown, cannot be written, or is in a place where agents write.", "Set XDG_STATE_HOME to a folder of your own outside the project, or use a git mode."),
    "PROJECT_MOVED": ("the runs of this project belong to another folder", "The folder the project was in is gone, and it is not certain that this folder is the same project.", "The message has the command that moves the runs here; or remove the links in the state folder to start again."),
    "FORGE_ERROR": ("a forge refused a request", "Neither waiting nor another token would help.", "The message has the forge's answer."),
    "FORGE_UNREACHABLE": ("a forge or a remote does not answer", "Or it answers with a server error. The request is repeated at growing intervals; nothing is pushed twice.", "Check that it is up and that delivery.url is right."),
    "TOKEN_SEEN": ("agents can read the forge's token", "Its file is in the repository's history, so it is in every workspace.", "Remove the file from the repository (git rm --cached), add it to .gitignore, and replace the token."),
    "FORGE_DENIED": ("a forge refuses the token", "The token is unknown to it, or lacks a permission.", "Renew what delivery.token_env or delivery.token_file names, then answer the question or retry the task."),
    "TAKEN_OUT": ("commits that a run pushed were removed from the remote's branch", "Someone decided that, so they are not pushed again unless you say so, and nothing is pushed to the branch meanwhile.", "Answer the question: leave the commits out, or put them back."),
    "PUSH_REFUSED": ("a remote does not take a push", "Its branch is protected, one of its hooks refuses, or others push faster than Ganger can rebase.", "The message has the remote's answer; fix that, then answer the question or retry the task. No worker runs again."),
    "BASE_RED": ("CI of the target branch was red before the run", "Every change would be judged together with what is wrong already, so the run does not begin.", "Fix the branch, then ganger run; or choose another value of delivery.base_red."),
    "BRANCH_RULES": ("the forge's rules for a branch conflict with the settings", "Ganger asks the forge before any agent starts whether this token may push or merge there, and what a merge requires.", "Change the rule, or the setting that the hint names; ganger doctor shows what the branch requires."),
    "FORGE_NOT_FOUND": ("a forge has no such project for this token", "A private project that the token may not read looks the same as a missing one.", "Check delivery.project, the token's rights, and that CI is switched on there."),
    "FORGE_LIMITED": ("a forge limits the rate of requests", "It said when to ask again; nothing is lost until then.", "Wait, or raise delivery.poll_sec."),
    "ROLLBACK_FAILED": ("files could not be restored", "The backup is kept; the message names it.", "Restore the named file by hand, then continue."),
    "PROMPT_TOO_LONG": ("a prompt does not fit into an argument", "The operating system limits one argument to 128 KiB.", 'Use prompt = "stdin" or "file".'),
    "INVALID_INPUT": ("a file was refused", "Each fault is listed with its place.", "Fix the faults, then try again."),
    "USAGE": ("the command line is wrong", "An option or argument is wrong or missing.", "Add --help to see what the command takes."),
    "INTERRUPTED": ("a signal ended the run", "Everything recorded is kept.", "Run the same command again to continue."),
    "UNEXPECTED": ("a fault in Ganger itself", "The details are in the named file.", "Please report them."),
    "MORE_FAULTS": ("the list was cut", "Only the first faults are shown.", "Fix these, then validate again."),
    "ERROR": ("something went wrong", "The message says what.", "Do what the message says, then try again."),
    "IO_ERROR": ("the disk reports errors", "Changes that could not be written safely were rolled back; the run stopped.", "Check the disk, then run the same command again."),
    "FILE_EXISTS": ("a file or folder already exists", "Nothing is overwritten.", "Choose another path."),
    "GIT_MISSING": ("git was not found", "The demo creates a throw-away repository.", "Install git, then try again."),
    "BAD_PATTERN": ("a protected pattern cannot be read", "It would silently protect nothing.", "Use plain names, * and **."),
    "BACKUP_MISSING": ("the backup of a change is gone", "The change cannot be rolled back; the task ends FAILED.", "Check its files by hand; ganger events names them."),
    "BACKUP_EXISTS": ("a backup of another change is in the way", "It is never overwritten.", "Run again; leftovers are removed first."),
    "OP_UNKNOWN": ("a write has an unknown operation", "Known are create, replace and append.", "Nothing was written. The task is retried."),
    "UNKNOWN_TIER": ("there is no such tier", "Known are syntax, correctness, smoke and quality.", "Correct the value in [verify.tiers]."),
    "BAD_DIRECTORY": ("a step's directory leaves the project", "cwd is a relative path inside the project.", "Correct cwd in the profiles file."),
    "PROMPT_NOT_TEXT": ("a prompt is not text", "Prompts are UTF-8 text of at most 4 MB.", "Save the file as UTF-8."),
    "APP_ERROR": ("something went wrong", "AgentThreader's name for ERROR.", "Do what the message says."),
    "NOT_FOUND_ERROR": ("not found", "AgentThreader's name for NOT_FOUND.", "The message names those that exist."),
    "COMMAND_ERROR": ("the command line is wrong", "AgentThreader's name for USAGE.", "Add --help to see what the command takes."),
    "CONFIG_ERROR": ("a setting is wrong", "AgentThreader's name for a refused configuration.", "ganger config show lists every setting with its origin."),
    "LEAD_LOST": ("another process leads the run now", "This process was stopped or slow for longer than its lease; nothing it does counts any more.", "ganger status shows who leads."),
    "STALE_TOKEN": ("a report on an attempt that is over", "Another attempt, or another lead, has taken the task.", "Nothing was changed; ganger why shows how the task stands."),
    "KEEPER_ERROR": ("the keeper, the process that runs agents, cannot be reached", "It could not be started, or could not record what happened.", "Read keeper/keeper.err in the run's folder, fix the cause, then run the same command again."),
    "COMMAND_REFUSED": ("a command does not apply to this run", "Nothing was changed or stored.", "Do what the message says."),
    "NOT_A_REPOSITORY": ("the project is not the top folder of a git repository", "Workspaces are made from its last commit.", 'Run git init and commit, or set workspace.mode = "direct".'),
    "NO_COMMIT": ("the repository has no commit yet", "Agents start from the last commit.", "Commit the files they should start from."),
    "PARTIAL_CLONE": ("files of the last commit were never fetched", "Workspaces need all of them.", "git fetch --refetch --no-filter, or use a full clone."),
    "GIT_TOO_OLD": ("this git cannot merge without a checkout", "Ganger needs git 2.38 or newer for workspaces.", 'Upgrade git, or set workspace.mode = "direct".'),
    "REPO_DAMAGED": ("a git repository is damaged", "Objects are broken or a recorded commit is gone. Nothing built on it can be trusted, so its chain halts.", "Check the disk, run git fsck in the named folder, fetch what is missing from the remote or another clone, then ganger unlock."),
    "REMOTE_UNKNOWN": ("there is no such remote", "delivery.remote is the name of one of the repository's remotes, or an address.", "Add the remote with git remote add, or correct the setting."),
    "REMOTE_ADDRESS": ("an address or branch that cannot be pushed to", "Paths, https, http and ssh are accepted, and branch names that git accepts.", "Correct delivery.remote or delivery.branch."),
    "GIT_FAILED": ("a git command failed", "The message has git's output.", "Do what it says, then run the same command again."),
    "BAD_LINK": ("a linked or copied folder cannot be brought into workspaces", "workspace.linked and workspace.copied name folders of the project.", "Correct the setting."),
    "INSTALLED_COPY": ("a check would test a copy of the project instead of the change", "An environment or linked folder holds the project itself: installed, editable, as a link or as a build. Such a check stays green whatever a task breaks.", 'Remove the copy (pip uninstall NAME, uv sync --no-install-project), let the check find the code first (python -m pytest, pytest\'s pythonpath = ["src"], env PYTHONPATH=src), name node_modules or vendor under workspace.copied; or set workspace.installed_copies = "allow" if the checks import the checkout anyway.'),
    "BRANCH_MOVED": ("the run's branch was moved", "Merged work must stay on it.", "Move it back with git update-ref, or start a new run."),
    "NO_BRANCH": ("the run has no branch to land", "Only runs in a git mode merge anything.", 'Set workspace.mode = "local-git" for the next run.'),
    "LAND_CONFLICT": ("your branch conflicts with what the run merged", "Nothing was moved.", "ganger land --branch NAME creates a branch that you can merge by hand."),
    "LAND_RED": ("the merge with your branch does not pass its checks", "Nothing was moved.", "Read the named log; ganger land --branch NAME creates a branch of the run's work alone."),
    "LAND_UNPROVED": ("nothing that was pushed is proved yet", "Your branch moves only to commits for which CI was green.", "ganger ledger shows the progress; ganger land --branch NAME creates a branch of it as it is."),
    "LAND_REFUSED": ("git does not move your branch", "Usually uncommitted work is in the way; nothing was changed.", "Commit or stash it, then ganger land again."),
    "FILE_CLASH": ("two tasks of one level write the same file", "A level is merged as a whole.", "Let one depend on the other, or give them different files."),
    "LEVEL_ORDER": ("a task is not in a later level than its dependency", "Levels run one after another.", "Move it to a later level."),
    "MISSING_TASK": ("a task is in no level", "The levels file names every task once.", "Add it to a level."),
    "UNKNOWN_TASK": ("a level names a task that does not exist", "Ids come from the manifest.", "Correct the spelling."),
    "EXPECTED_MISSING": ("expected files are missing", "metadata.expected_files names them.", "The task is retried; correct the list if it is wrong."),
    "SANDBOX_UNAVAILABLE": ("a sandbox is required and none works", "The machine lacks bubblewrap, or forbids what it needs.", "ganger doctor says what to install."),
    "ENDPOINT_ERROR": ("workers cannot reach this run", "Its socket or loopback port cannot be opened, or another process uses it.", "Do what the message says, then run the same command again."),
    "BAD_REQUEST": ("a worker's request is invalid", "It is not HTTP/1.1, or not in the form that ganger schema worker shows; nothing was changed.", "Fix it, or let ganger worker send it."),
    "NO_TOKEN": ("a request came without a token", "Every worker has a token of its own; nothing was changed.", "Send the token in GANGER_TOKEN, or let ganger worker send it."),
    "WORKER_UNKNOWN": ("unknown token", "It is misspelt, or belongs to another run; nothing was changed.", "Use the value of GANGER_TOKEN unchanged."),
    "WRONG_DOOR": ("a request came from a web page, or was meant for another host", "Only programs that use the address in GANGER_REPORT are accepted; nothing was changed.", "Use that address, and not a browser."),
    "NO_VERB": ("a worker sent an unknown verb", "The message names the known ones.", "Correct the spelling; ganger worker --help lists everything."),
    "WRONG_METHOD": ("a request was not a POST", "Workers only POST; nothing can be read from outside.", "Use POST."),
    "WRONG_TYPE": ("a request was not JSON", "Its Content-Type must be application/json, without an encoding.", "Fix the header, or let ganger worker send it."),
    "TOO_SLOW": ("a request took too long to arrive", "It must arrive completely within seconds of its start; nothing was changed.", "Send it again."),
    "REQUEST_TOO_LARGE": ("a request is too large", "The message names the limit; nothing was changed.", "Send less; reports may be larger than other requests."),
    "TOO_OFTEN": ("a worker asks too often", "Each token may send about fifty requests a second, and store a limited number of messages.", "Wait as long as the answer says."),
    "LEAD_BUSY": ("the lead cannot take a worker's request now", "Nothing of it was recorded.", "Send it again with the same id; ganger worker does that itself."),
    "WRONG_TASK": ("the token belongs to another task", "A token is valid only for its own task.", "Name your own task, or none."),
    "ATTEMPT_OVER": ("the attempt is over", "It was stopped or settled, or another worker has the task; nothing was changed.", "Stop working on it; ganger why shows how the task stands."),
    "ALREADY_REPORTED": ("the attempt has already reported", "An attempt gives one answer; the first counts.", "Run ganger worker done and exit, or ask for the next task."),
    "NOT_ALLOWED": ("the token does not allow this", "A token for asking for work can do nothing else.", "Use the token that came with the task."),
    "NO_SECTION": ("there is no such part of the brief", "The parts depend on the task.", "Ask for the list: ganger worker brief."),
    "LEAD_AWAY": ("no process leads the run at the moment", "Messages that must not be lost were kept and are sent later; others were not sent.", "Try again later; ganger run continues the run."),
    "NO_CLAIM": ("this session holds no task, or holds several and none was named", "A worker is known by GANGER_TOKEN, or by the task it asked for.", "Ask for a task with ganger worker next, or identify yourself with --worker NAME."),
    "NO_ANSWER": ("there is no answer yet", "The question stays open in ganger inbox.", "Look again with ganger worker messages --wait."),
    "ARGV_FILE_MISSING": ("an agent's argv names a file that does not exist", "The interpreter would exit at once, and every task would fail. Relative paths are resolved in the project.", "Create the file, or correct agents.NAME.argv in ganger.toml."),
    "VARIABLE_NOT_SET": ("the settings name a variable that is not set", "Agents and checks get a short list of variables and those named by env, key_env and verify.env; this one is not set, so nothing is passed on.", "Set it, or remove its name from ganger.toml."),
    "PROGRAM_MISSING": ("a program that verification runs is not on PATH", "Every check that needs it would fail, unless a task provides it or a recovery uses another.", "Install it, or correct the command in the verify profile."),
    "NO_PROJECT": ("there is no ganger.toml", "Without it only the manifest itself is checked.", "ganger init writes one."),
}  # fmt: skip

_REASONS: dict[BlockReason, tuple[str, str]] = {
    BlockReason.AWAITING_REVIEW: (
        "The change awaits approval.",
        "ganger approve delivers it; ganger rework sends it back with a remark.",
    ),
    BlockReason.QUOTA_WAIT: (
        "The account's quota is used up.",
        "It continues by itself when the quota is renewed; or raise the quota.",
    ),
    BlockReason.NEEDS_REWORK: (
        'Ganger has nothing left to try: the change conflicts with merged work each time, a check is killed by a signal each time, or (with policy.exhausted = "rework") checks or rules refused every attempt.',
        "Look at it with ganger why; then ganger retry TASK --hint TEXT, or change the task or the rule.",
    ),
    BlockReason.PERMISSION_DENIED: ("The agent was refused a permission it needs.", "Grant it, or change the task."),
    BlockReason.DEPENDENCY_FAILED: (
        "A task it depends on did not end DONE.",
        "Fix that task; this one then continues by itself.",
    ),
    BlockReason.EXTERNAL: ("Something outside Ganger must happen first.", "Resolve it, then use ganger retry TASK."),
    BlockReason.PAUSED: (
        "It crashed twice, you skipped it or ended its attempt, its change was reverted, or its repositories are halted.",
        "ganger why TASK says which; ganger inbox shows a question, if there is one. ganger retry TASK runs it again.",
    ),
}


_TASKS: dict[TaskStatus, tuple[str, str]] = {
    TaskStatus.PENDING: (
        "It waits for its turn, for its dependencies, or for a free worker.",
        "ganger why TASK says which.",
    ),
    TaskStatus.RUNNING: (
        "A worker works on it, or its change is being verified, merged or delivered.",
        "ganger why TASK says which.",
    ),
    TaskStatus.DONE: (
        "Its change passed its checks and everything else its completion requires.",
        "Nothing; ganger land moves your branch.",
    ),
    TaskStatus.BLOCKED: (
        "It cannot continue until something else happens; the reason is shown with it.",
        "ganger why TASK; ganger explain REASON says what each reason means.",
    ),
    TaskStatus.FAILED: (
        "Its attempts, and with a healer its heal rounds, are used up without an accepted change.",
        'Read ganger why TASK, then ganger retry TASK --hint TEXT. With policy.exhausted = "rework" what checks or '
        "rules refused ends BLOCKED (needs_rework) instead.",
    ),
    TaskStatus.ESCALATED: (
        "You have to decide: a worker asks, CI or a reviewer refused it too often, the same failure came back after "
        "healing, or no prompt can fix it. It is never retried by itself.",
        "ganger inbox shows the question; ganger answer, or ganger retry TASK --hint TEXT, starts it again.",
    ),
}
_RUNS: dict[RunStatus, tuple[str, str]] = {
    RunStatus.COMPLETED: ("Every task is DONE.", "Nothing; ganger land moves your branch."),
    RunStatus.ABORTED: (
        "Nothing more can run, and some tasks are not DONE.",
        "ganger status lists what is open; ganger run continues once something has changed.",
    ),
}


def entries() -> list[CodeEntry]:
    """All entries: codes first, then failure classes, block reasons, statuses, and the habits that break deliveries."""
    table = {code: CodeEntry(code, e.title, e.meaning, e.next_step) for code, e in CONTRACT_CODES.items()}
    table |= {
        code: CodeEntry(code, *row) for code, row in {**COMMAND_CODES, **WRITE_CODES, **CENSUS_CODES, **_OWN}.items()
    }
    rows = [table[code] for code in sorted(table)]
    for cls, row in CLASSES.items():
        flags = (
            f"{row.kind}; {'' if row.healable else 'not '}healable; {'' if row.retryable else 'not '}retried by default"
        )
        rows.append(CodeEntry(cls.value, f"failure class ({flags})", _sentence(row.meaning), _sentence(row.then)))
    for reason, (meaning, then) in _REASONS.items():
        if reason.value not in CLASSES:
            rows.append(CodeEntry(reason.value, "block reason", meaning, then))
    rows += [CodeEntry(status.value, "task status", *words) for status, words in _TASKS.items()]
    rows += [CodeEntry(status.value, "run status", *words) for status, words in _RUNS.items()]
    for habit in VIOLATIONS:
        how = "refused and recorded" if habit.refused else "impossible"
        rows.append(CodeEntry(habit.name, f"bad habit, {how} here", habit.what, habit.instead))
    return rows


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + "."


def find(code: str) -> CodeEntry:
    table = {row.code.lower(): row for row in entries()}
    word = code.strip().lower()
    if word in table:
        return table[word]
    close = get_close_matches(word, table, n=1)
    hint = f"did you mean {table[close[0]].code}?" if close else "ganger explain lists them all"
    raise NotFoundError(f"there is no code {code!r}", hint=hint)


def render() -> str:
    """docs/codes.md."""
    lines = [
        "# Codes",
        "",
        "The codes Ganger prints when something is wrong. `ganger explain CODE` prints the same.",
        "",
    ]
    lines += ["| code | what | meaning | what to do |", "| --- | --- | --- | --- |"]
    for row in entries():
        cells = (f"`{row.code}`", row.title, row.meaning, row.next_step)
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines) + "\n"
