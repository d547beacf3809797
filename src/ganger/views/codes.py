"""Every code and failure class with its meaning and the next step: for `ganger explain` and docs/codes.md."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches

from ganger.contracts.codes import CODES as CONTRACT_CODES
from ganger.core.census import CENSUS_CODES
from ganger.core.commands import COMMAND_CODES
from ganger.core.failures import CLASSES
from ganger.core.vocabulary import BlockReason, RunStatus, TaskStatus
from ganger.core.write_codes import WRITE_CODES
from ganger.errors import NotFoundError
from ganger.views.violations import VIOLATIONS


@dataclass(frozen=True, slots=True)
class Entry:
    code: str
    title: str
    meaning: str
    next_step: str

    def as_json(self) -> dict[str, str]:
        return {"code": self.code, "title": self.title, "meaning": self.meaning, "next_step": self.next_step}


_OWN: dict[str, tuple[str, str, str]] = {
    "DUPLICATE_ID": ("two tasks have one id", "Ids name logs and dependencies, so each may be used once.", "Rename one of the tasks."),
    "UNKNOWN_DEPENDENCY": ("a dependency names no task", "depends_on holds an id that no task has.", "Correct the spelling, or add the task."),
    "SELF_DEPENDENCY": ("a task depends on itself", "It could never start.", "Remove the entry."),
    "CYCLE": ("tasks wait for each other in a circle", "None of them could ever start; the circle is printed.", "Remove one of its dependencies."),
    "UNKNOWN_REPO": ("there is no such repository", "metadata.repo and depends_on of [repos.NAME] name sections [repos.NAME].", "Correct the spelling, or add the section."),
    "REPO_CYCLE": ("repositories build on each other in a circle", "None of them could be first; the circle is printed.", "Remove one of its depends_on."),
    "DELIVERY_UNFIT": ("settings of delivery that can never work", "The message says which, such as a completion that asks for CI where nothing runs it.", "Correct the setting; ganger config show tells where it comes from."),
    "REPOS_NEED_GIT": ("several repositories, and no workspaces", "In direct mode agents work in the project's own folder, and there is only one.", 'Set workspace.mode = "local-git" or "forge".'),
    "PROMPT_MISSING": ("a prompt or context file is not there", "prompt_ref and context_refs are files of the project.", "Create the file, or correct the path."),
    "PROMPT_OUTSIDE_PROJECT": ("a prompt lies outside the project", "Absolute paths, .. and symbolic links are not followed.", "Move the file into the project."),
    "UNKNOWN_PROFILE": ("a task names a verification profile that is not there", "verify_profile must be a name in the profiles file.", "Add the profile, or correct the name."),
    "UNKNOWN_STEP": ("a tier or a pattern is given to a step that is not there", 'Keys of [verify.tiers] and [verify.expect] are "profile/step".', "Correct the key."),
    "SETTING_WITHOUT_EFFECT": ("a setting does nothing in this mode, or beside the other settings", "What would drop a safeguard you asked for (a review, levels, landing, CI jobs, a closed network) keeps a run from beginning; anything else is told, and so is all of it once the run has begun. docs/settings-by-mode.md has the whole table.", "Take it out, or set what the message says it needs."),
    "METADATA_WITHOUT_EFFECT": ("a key of a task's metadata, or a value of it, does nothing here", "Ganger reads these keys, and here nothing would follow from them: a review in direct mode, another mode than the run's, a kind or stage that nothing knows.", "Take it out, or set what the message says it needs; docs/settings-by-mode.md has the whole table."),
    "METADATA_NEAR_MISS": ("a key of a task's metadata looks like one Ganger reads", "Metadata is free for other tools, so the key is left alone and does nothing.", "Correct the spelling if Ganger's key is meant."),
    "UNKNOWN_ROLE": ("no agent plays this role", "Each role a task names needs a section [roles.NAME].", "Add [roles.NAME] with agent = … to ganger.toml."),
    "UNKNOWN_AGENT": ("a role names an agent that is not configured", "Roles point to sections [agents.NAME].", "Add the section, or correct the name."),
    "UNKNOWN_AGENT_KIND": ("there is no such agent kind", "kind chooses the adapter.", "ganger agents lists the kinds."),
    "UNKNOWN_EVENT": ("a hook waits for an event that does not exist", "It would never be called, and nobody would notice.", "ganger schema events lists the types; question, finish and failure are groups."),
    "NOTIFY_NOT_READY": ("notices could never be delivered", "What [notify] names is missing: a variable, or the library apprise.", "Set the variable, pip install 'ganger[notify]', or take the entry out; ganger hooks test tries them all."),
    "SETTINGS_REFUSED": ("another program's settings file was left alone", "It is a link, damaged, or of a form nobody expects; writing into it could lose what is there.", "Mend the file by hand, then run the command again."),
    "UNKNOWN_SETTING": ("a GANGER_ variable names no setting", "A typing mistake would otherwise be silently ignored.", "ganger config show lists every setting."),
    "ADAPTER_FAILED": ("an agent's adapter broke", "The program that knows how to call this kind of agent raised an error.", "Mend the adapter, or use another kind; ganger agents --check shows it."),
    "AGENT_NOT_READY": ("an agent cannot be started", "It is checked before the run so that nothing fails half-way.", "ganger agents --check says what is missing."),
    "MANIFEST_CHANGED": ("the manifest or a prompt is not the one the run began with", "Continuing would mix two plans.", "ganger run --reconcile takes the change over; with --dry-run it only shows what would happen."),
    "RUN_LOCKED": ("another process leads this run", "One lead per run; the message names its process.", "Watch it with ganger status, or end it first."),
    "NOT_BUILT_YET": ("announced, not there yet", "The command, flag or setting belongs to a later version.", "ganger --help shows what is there."),
    "SAID_ENOUGH": ("a worker has said too much", "An attempt may keep 2,000 things and ask 20 questions at a time; its report is always taken.", "Report, or wait for the answers."),
    "NOT_STARTED": ("nobody is started for this task", "Its role is played by sessions that ask for work.", "Take it with ganger worker next."),
    "NOT_FOUND": ("what was asked for is not there", "A run, task, log or file by that name does not exist.", "The message names what does."),
    "NOT_WRITABLE": ("a folder cannot be written", "Ganger keeps its events and logs in state_dir.", "Mend the permissions, or choose another state_dir."),
    "DISK_FULL": ("the disk is full", "The run stopped; nothing recorded is lost.", "Free space, then run the same command again."),
    "OUTPUT_REFUSED": ("what a command says cannot be written", "Its standard output goes to a full disk, or to something that takes no writes. What the command was asked for may be done; only its words are lost.", "Send the output elsewhere, or make room; then run the same command again."),
    "MACHINE_REFUSED": ("the machine refused a call nobody can do without", "A disk error, a limit, or a lack of memory or open files: whatever came next would meet it as well. The run stopped; nothing recorded is lost.", "See to the place that is named and to limits, then run the same command again."),
    "STORE_ERROR": ("the event store cannot be used", "Ganger never works without it.", "The message names file and cause."),
    "STORE_FORGED": ("somebody else than Ganger changed the event store", "Before each write the lead looks whether tables, triggers or events are as it left them; others only leave commands there. A store that lies where agents write, and that no lead is known to have made, is not believed either.", "Find out who can write there (ganger doctor). Go on from a backup, or begin anew with another run_id."),
    "NO_STATE_FOLDER": ("there is no safe place to keep the run in", "In direct mode the event store and every key lie in your state folder ($XDG_STATE_HOME/ganger, else ~/.local/state/ganger), because agents write the project. It is not known, cannot be written, or lies where agents write.", "Set XDG_STATE_HOME to a folder of your own outside the project, or use a git mode."),
    "PROJECT_MOVED": ("the runs of this project are kept for another folder", "The folder the project was in is gone, and this one cannot be told to be the same.", "The message has the command that takes the runs over; or remove the links in the state folder to begin anew."),
    "FORGE_ERROR": ("a forge could not do what it was asked", "It answered with a refusal that neither time nor another token cures.", "The message has the forge's own words."),
    "FORGE_UNREACHABLE": ("a forge or a remote does not answer", "Or it answers with trouble of its own. It is asked again, less and less often; nothing is pushed twice.", "See whether it is up and delivery.url is right."),
    "TOKEN_SEEN": ("agents can read the forge's token", "Its file is in the repository's history, so it is in every workspace.", "Take the file out of the repository (git rm --cached), have git ignore it, and replace the token."),
    "FORGE_DENIED": ("a forge refuses the token", "It knows nobody by it, or the token lacks a right.", "Renew what delivery.token_env or delivery.token_file names, then answer the question or retry the task."),
    "TAKEN_OUT": ("somebody removed from the remote's branch what a run had pushed", "That is a decision, so it is not pushed again, and nothing on top of it either.", "Put it back on the branch and answer the question, or begin a new run for what is left."),
    "PUSH_REFUSED": ("a remote does not take a push", "Its branch is protected, a hook of it refuses, or others push faster than Ganger can join what they pushed.", "The message has the remote's own words; mend that, then answer the question or retry the task: nobody works on it again."),
    "BRANCH_RULES": ("a branch's rules on the forge refuse what the settings ask for", "Whether this token may push or merge there, and what a merge needs, is read from the forge before any agent starts.", "Change the rule, or the setting that the hint names; ganger doctor shows what the branch asks for."),
    "FORGE_NOT_FOUND": ("a forge has no such project for this token", "A private one without the right looks the same as one that is not there.", "Check delivery.project, the token's rights, and that CI is switched on there."),
    "FORGE_LIMITED": ("a forge wants to be asked later", "It named the moment; nothing is lost until then.", "Wait, or raise delivery.poll_sec."),
    "ROLLBACK_FAILED": ("files could not be put back", "The backup is kept; the message names it.", "Restore the named file by hand, then continue."),
    "PROMPT_TOO_LONG": ("a prompt does not fit into an argument", "The system limits one argument to 128 KiB.", 'Use prompt = "stdin" or "file".'),
    "INVALID_INPUT": ("a file was refused", "Each fault is listed with its place.", "Mend the faults, then try again."),
    "USAGE": ("the command line makes no sense", "An option or argument is wrong or missing.", "Add --help to see what the command takes."),
    "INTERRUPTED": ("a signal ended the run", "Everything recorded is kept.", "Run the same command again to continue."),
    "UNEXPECTED": ("a fault in Ganger itself", "The details are in the file that was named.", "Please report them."),
    "MORE_FAULTS": ("the list was cut", "Only the first faults are shown.", "Mend these, then validate again."),
    "ERROR": ("something went wrong", "The message says what.", "Do what the message says, then try again."),
    "IO_ERROR": ("the disk reports errors", "What could not be written safely was put back; the run stopped.", "Check the disk, then run the same command again."),
    "FILE_EXISTS": ("a file or folder is there already", "Nothing is overwritten.", "Choose another place."),
    "GIT_MISSING": ("git was not found", "The demo makes a throw-away repository.", "Install git, then try again."),
    "BAD_PATTERN": ("a protected pattern cannot be read", "It would silently protect nothing.", "Use plain names, * and **."),
    "BACKUP_MISSING": ("the backup of a change is gone", "What was written cannot be put back; the task ends FAILED.", "Look at its files by hand; ganger events names them."),
    "BACKUP_EXISTS": ("a backup of another change is in the way", "It is never overwritten.", "Run again; what is left over is cleared first."),
    "OP_UNKNOWN": ("a write has an unknown operation", "Known are create, replace and append.", "Nothing was written. The task is tried again."),
    "UNKNOWN_TIER": ("there is no such tier", "Known are syntax, correctness, smoke and quality.", "Correct the value in [verify.tiers]."),
    "BAD_DIRECTORY": ("a step's directory leaves the project", "cwd is a relative path inside the project.", "Correct cwd in the profiles file."),
    "PROMPT_NOT_TEXT": ("a prompt is not text", "Prompts are UTF-8 text of at most 4 MB.", "Save the file as UTF-8."),
    "APP_ERROR": ("something went wrong", "AgentThreader's word for ERROR.", "Do what the message says."),
    "NOT_FOUND_ERROR": ("what was asked for is not there", "AgentThreader's word for NOT_FOUND.", "The message names what does exist."),
    "COMMAND_ERROR": ("the command line makes no sense", "AgentThreader's word for USAGE.", "Add --help to see what the command takes."),
    "CONFIG_ERROR": ("a setting is wrong", "AgentThreader's word for a refused configuration.", "ganger config show lists every setting with its origin."),
    "LEAD_LOST": ("another process leads the run now", "This one was stopped or slow for longer than its lease; nothing of it counts any more.", "ganger status shows who leads."),
    "STALE_TOKEN": ("a report on an attempt that is over", "Another attempt, or another lead, has taken the task.", "Nothing was changed; ganger why tells how the task stands."),
    "KEEPER_ERROR": ("the process that keeps agents cannot be reached", "It could not be started, or could not record what happened.", "Read keeper/keeper.err in the run's folder, mend the cause, run the same command again."),
    "COMMAND_REFUSED": ("a command makes no sense for this run", "Nothing was changed or kept.", "Do what the message says."),
    "NOT_A_REPOSITORY": ("the project is not the top folder of a git repository", "Workspaces are made from its last commit.", 'Run git init and commit, or set workspace.mode = "direct".'),
    "NO_COMMIT": ("the repository has no commit yet", "Agents start from the last commit.", "Commit what they shall start from."),
    "PARTIAL_CLONE": ("files of the last commit were never fetched", "Workspaces need all of them.", "git fetch --refetch --no-filter, or use a full clone."),
    "GIT_TOO_OLD": ("this git cannot merge without a folder", "Ganger needs git 2.38 or newer for workspaces.", 'Upgrade git, or set workspace.mode = "direct".'),
    "REPO_DAMAGED": ("a git repository is damaged", "Objects are broken or a recorded commit is gone; nothing built on it can be trusted, so its chain halts.", "Check the disk, run git fsck in the folder that is named, fetch what is missing from the remote or another clone, then ganger unlock."),
    "REMOTE_UNKNOWN": ("there is no such remote", "delivery.remote is the name of a remote of the repository, or an address.", "Add the remote with git remote add, or correct the setting."),
    "REMOTE_ADDRESS": ("an address or branch that cannot be pushed to", "Paths, https, http and ssh are taken, and branch names that git takes.", "Correct delivery.remote or delivery.branch."),
    "GIT_FAILED": ("a git command failed", "The message has what git said.", "Do what it says, then run the same command again."),
    "BAD_LINK": ("a linked or copied folder cannot be brought into workspaces", "workspace.linked and workspace.copied name folders of the project.", "Correct the setting."),
    "INSTALLED_COPY": ("a check would meet a copy of the project instead of the change", "An environment or linked folder holds the project itself: installed, editable, as a link or as a build. Whatever a task breaks, such a check stays green.", 'Take the copy out (pip uninstall NAME, uv sync --no-install-project), let the check find the code first (python -m pytest, pytest\'s pythonpath = ["src"], env PYTHONPATH=src), name node_modules or vendor under workspace.copied; or set workspace.installed_copies = "allow" where the checks import the checkout all the same.'),
    "BRANCH_MOVED": ("somebody moved the run's branch", "Merged work must stay in it.", "Put it back with git update-ref, or begin a new run."),
    "NO_BRANCH": ("the run has no branch to land", "Only runs in a git mode merge anything.", 'Set workspace.mode = "local-git" for the next run.'),
    "LAND_CONFLICT": ("your branch conflicts with what the run merged", "Nothing was moved.", "ganger land --branch NAME makes a branch of it that you can merge by hand."),
    "LAND_RED": ("the merge with your branch does not pass its checks", "Nothing was moved.", "Read the named log; ganger land --branch NAME makes a branch of the run alone."),
    "LAND_UNPROVED": ("nothing of what was pushed is proved yet", "Your branch moves only to commits CI was green for.", "ganger ledger shows how far it is; ganger land --branch NAME makes a branch of it as it is."),
    "LAND_REFUSED": ("git does not move your branch", "Most often uncommitted work is in the way; nothing was changed.", "Commit or stash it, then ganger land again."),
    "FILE_CLASH": ("two tasks of one level write one file", "A level is merged as a whole.", "Let one depend on the other, or give them different files."),
    "LEVEL_ORDER": ("a task is not in a later level than its dependency", "Levels run one after the other.", "Move it to a later level."),
    "MISSING_TASK": ("a task is in no level", "The levels file names every task once.", "Add it to a level."),
    "UNKNOWN_TASK": ("a level names a task that is not there", "Ids come from the manifest.", "Correct the spelling."),
    "EXPECTED_MISSING": ("expected files did not come", "metadata.expected_files names them.", "The task is tried again; correct the list if it is wrong."),
    "SANDBOX_UNAVAILABLE": ("a sandbox is required and none stands", "The machine lacks bubblewrap, or forbids what it needs.", "ganger doctor says what to install."),
    "ENDPOINT_ERROR": ("workers cannot reach this run", "Its socket or its loopback port cannot be opened, or another process has it.", "Do what the message says, then run the same command again."),
    "BAD_REQUEST": ("a worker's request makes no sense", "It is no HTTP/1.1, or not of the form that ganger schema worker shows; nothing was changed.", "Mend it, or let ganger worker send it."),
    "NO_TOKEN": ("a request came without a token", "Every worker has a token of its own; nothing was changed.", "Send the token in GANGER_TOKEN, or let ganger worker send it."),
    "WORKER_UNKNOWN": ("nobody has this token", "It is misspelt, or belongs to another run; nothing was changed.", "Use GANGER_TOKEN as it was given."),
    "WRONG_DOOR": ("a request came from a web page, or was meant for another host", "Only programs that use the address in GANGER_REPORT are heard; nothing was changed.", "Use that address, and no browser."),
    "NO_VERB": ("a worker said something unknown", "The message names what can be said.", "Correct the spelling; ganger worker --help lists everything."),
    "WRONG_METHOD": ("a request was no POST", "Workers only POST; nothing can be looked at from outside.", "Use POST."),
    "WRONG_TYPE": ("a request was not JSON", "Its Content-Type must be application/json, without an encoding.", "Mend the header, or let ganger worker send it."),
    "TOO_SLOW": ("a request took too long to arrive", "It must come whole within seconds of its beginning; nothing was changed.", "Send it again."),
    "REQUEST_TOO_LARGE": ("a request is too large", "The message names the limit; nothing was changed.", "Send less; a report may be larger than everything else."),
    "TOO_OFTEN": ("a worker asks too often", "Each token may ask some fifty times a second, and keep a bounded number of things.", "Wait as long as the answer says."),
    "LEAD_BUSY": ("nobody can take a worker's request now", "Nothing was recorded of it.", "Send it again with the same id; ganger worker keeps it and does so itself."),
    "WRONG_TASK": ("the token belongs to another task", "A worker speaks for its own task alone.", "Name your own task, or none."),
    "ATTEMPT_OVER": ("the attempt is over", "It was ended or settled, or another worker has the task; nothing was changed.", "Stop working on it; ganger why tells how the task stands."),
    "ALREADY_REPORTED": ("the attempt has reported already", "One attempt gives one answer; the first counts.", "Set the done mark and end, or ask for the next task."),
    "NOT_ALLOWED": ("the token does not allow this", "A token with which one may only ask for work can do nothing else.", "Use the token that came with the task."),
    "NO_SECTION": ("there is no such part of the brief", "Which parts there are depends on the task.", "Ask for the list: ganger worker brief."),
    "LEAD_AWAY": ("nobody leads the run at the moment", "What must not be lost was kept in the worker's desk and is delivered later; the rest was not said.", "Try again later; ganger run continues the run."),
    "NO_CLAIM": ("this session holds no task, or several do and none was named", "A worker is known by GANGER_TOKEN, or by the task it asked for.", "Ask for a task with ganger worker next, or say who you are with --worker NAME."),
    "NO_ANSWER": ("nobody has answered yet", "The question stays open in ganger inbox.", "Look again with ganger worker messages --wait."),
    "ARGV_FILE_MISSING": ("an agent's argv names a file that is not there", "The interpreter would end at once, and every task would be started for nothing. Relative paths are looked for in the project.", "Create the file, or correct agents.NAME.argv in ganger.toml."),
    "VARIABLE_NOT_SET": ("the settings name a variable that is not set", "Agents and checks get a short list of variables and those that env, key_env and verify.env name; this one is not in the environment, so nothing is passed on.", "Set it, or take its name out of ganger.toml."),
    "PROGRAM_MISSING": ("a program that verification runs is not on PATH", "Every check that needs it would fail, unless a task brings it or a recovery names another.", "Install it, or correct the command in the verify profile."),
    "NO_PROJECT": ("there is no ganger.toml", "Without it only the manifest itself is checked.", "ganger init writes one."),
}  # fmt: skip

_REASONS: dict[BlockReason, tuple[str, str]] = {
    BlockReason.AWAITING_REVIEW: (
        "A judge must approve the change.",
        "ganger approve delivers it; ganger rework sends it back with a remark.",
    ),
    BlockReason.QUOTA_WAIT: ("The account's quota is used up.", "It comes back by itself; or raise the quota."),
    BlockReason.NEEDS_REWORK: (
        'Nothing is left to try by itself: it conflicts with what was merged again and again, a check is ended by a signal each time, or (with policy.exhausted = "rework") checks or rules refused every attempt.',
        "Look at it with ganger why; then ganger retry TASK --hint TEXT, or change the task or the rule.",
    ),
    BlockReason.PERMISSION_DENIED: ("The agent was refused a permission it needs.", "Grant it, or change the task."),
    BlockReason.DEPENDENCY_FAILED: (
        "A task it depends on did not end DONE.",
        "Mend that one; this one comes back by itself.",
    ),
    BlockReason.EXTERNAL: ("Something outside must happen first.", "Make it happen, then run again."),
    BlockReason.PAUSED: (
        "It crashed again after being run once more, or a person skipped it or ended its worker.",
        "ganger inbox shows the question; ganger retry runs it again.",
    ),
}


_TASKS: dict[TaskStatus, tuple[str, str]] = {
    TaskStatus.PENDING: (
        "It waits for its turn, for what it depends on, or for a free worker.",
        "ganger why TASK says what for.",
    ),
    TaskStatus.RUNNING: (
        "A worker is at it, or its change is verified, merged or delivered.",
        "ganger why TASK says which.",
    ),
    TaskStatus.DONE: (
        "Its change passed its checks and everything else its completion asks for.",
        "Nothing; ganger land moves your branch.",
    ),
    TaskStatus.BLOCKED: (
        "It cannot go on until something else happens; the reason stands beside it.",
        "ganger why TASK; ganger explain REASON tells what each reason means.",
    ),
    TaskStatus.FAILED: (
        "Its attempts, and with a healer its heal rounds, are used up without a change that counts.",
        'Read ganger why TASK, then ganger retry TASK --hint TEXT. With policy.exhausted = "rework" what checks or '
        "rules refused ends BLOCKED (needs_rework) instead.",
    ),
    TaskStatus.ESCALATED: (
        "Only a person can decide: a worker asks, CI or a reviewer refused it too often, the same failure came back after "
        "healing, or no prompt can mend it. It is never tried again by itself.",
        "ganger inbox shows the question; ganger answer, or ganger retry TASK --hint TEXT, starts it again.",
    ),
}
_RUNS: dict[RunStatus, tuple[str, str]] = {
    RunStatus.COMPLETED: ("Every task is DONE.", "Nothing; ganger land moves your branch."),
    RunStatus.ABORTED: (
        "Nothing more can run, and not every task is DONE.",
        "ganger status lists what is open; ganger run goes on once something has changed.",
    ),
}


def entries() -> list[Entry]:
    """All of them, codes first, then classes, block reasons, statuses, and the habits that break deliveries."""
    table = {code: Entry(code, e.title, e.meaning, e.next_step) for code, e in CONTRACT_CODES.items()}
    table |= {code: Entry(code, *row) for code, row in {**COMMAND_CODES, **WRITE_CODES, **CENSUS_CODES, **_OWN}.items()}
    rows = [table[code] for code in sorted(table)]
    for cls, row in CLASSES.items():
        flags = (
            f"{row.kind}; {'' if row.healable else 'not '}healable; {'' if row.retryable else 'not '}retried by default"
        )
        rows.append(Entry(cls.value, f"failure class ({flags})", _sentence(row.meaning), _sentence(row.then)))
    for reason, (meaning, then) in _REASONS.items():
        if reason.value not in CLASSES:
            rows.append(Entry(reason.value, "block reason", meaning, then))
    rows += [Entry(status.value, "task status", *words) for status, words in _TASKS.items()]
    rows += [Entry(status.value, "run status", *words) for status, words in _RUNS.items()]
    for habit in VIOLATIONS:
        how = "refused and recorded" if habit.refused else "impossible"
        rows.append(Entry(habit.name, f"bad habit, {how} here", habit.what, habit.instead))
    return rows


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + "."


def find(code: str) -> Entry:
    table = {row.code.lower(): row for row in entries()}
    word = code.strip().lower()
    if word in table:
        return table[word]
    close = get_close_matches(word, table, n=1)
    hint = f"did you mean {table[close[0]].code}?" if close else "ganger explain lists them all"
    raise NotFoundError(f"there is no code {code!r}", hint=hint)


def render() -> str:
    """docs/codes.md."""
    lines = ["# Codes", "", "What Ganger says when something is wrong. `ganger explain CODE` prints the same.", ""]
    lines += ["| code | what | meaning | what to do |", "| --- | --- | --- | --- |"]
    for row in entries():
        cells = (f"`{row.code}`", row.title, row.meaning, row.next_step)
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines) + "\n"
