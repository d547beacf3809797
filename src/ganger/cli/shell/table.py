"""Every command with one line of help, in sections; listed without importing any command."""

from __future__ import annotations

from typing import NamedTuple


class Row(NamedTuple):
    section: str
    help: str
    built: bool = True


COMMANDS: dict[str, Row] = {
    "demo": Row("Start", "See the whole system work in about fifteen seconds: no key, no network"),
    "init": Row("Start", "Look at this repository and write a first configuration"),
    "doctor": Row("Start", "Check this machine and project; show what to install"),
    "validate": Row("Plan", "Check a manifest and everything its run needs; list every fault"),
    "plan": Row("Plan", "Show order, levels and file conflicts"),
    "run": Row("Run", "Start the run, or continue it"),
    "status": Row("Look", "Where the run stands and what needs attention"),
    "workers": Row("Look", "Running workers: task, since when, which step"),
    "tasks": Row("Look", "Every task with its status"),
    "why": Row("Look", "Why a task is not running, not done, or was retried"),
    "ledger": Row("Look", "What was delivered: commit, push, CI run, jobs, mirror, verdict"),
    "logs": Row("Look", "What an agent or a verification printed"),
    "events": Row("Look", "Everything that happened, in order"),
    "replay": Row("Look", "Compute a run's decisions again; show where this version decides differently"),
    "patches": Row("Look", "What healing changed in prompts, context and limits; undo it"),
    "inbox": Row("Decide", "What needs your decision"),
    "answer": Row("Decide", "Answer a question"),
    "approve": Row("Decide", "Approve a change that awaits review"),
    "rework": Row("Decide", "Send back a change that awaits review, with a remark"),
    "land": Row("Decide", "Move your branch to the commits a run merged"),
    "pause": Row("Control", "Start nothing new"),
    "resume": Row("Control", "Continue after a pause"),
    "stop": Row("Control", "Stop a run, at once or when its attempts have finished"),
    "retry": Row("Control", "Run a task again, with an optional hint"),
    "skip": Row("Control", "Leave a task out"),
    "unlock": Row("Control", "Release a repository's locks and its halt, with a reason"),
    "extend": Row("Control", "Give a running worker more time"),
    "reassign": Row("Control", "Stop a running worker and start over with a new one"),
    "end": Row("Control", "Stop a running worker; its task waits for you"),
    "set": Row("Control", "Change a numeric setting while the run continues"),
    "worker": Row("Work", "Commands for workers: next, heartbeat, report and more"),
    "parse": Row("Files", "Read a result, a heal decision or an agent's events from a log"),
    "schema": Row("Files", "Print a JSON Schema"),
    "explain": Row("Files", "Explain a code or failure class and what to do"),
    "state": Row("Files", "Write a new state.json, or export the current one"),
    "agents": Row("Files", "List agents, what they can do and whether they are ready"),
    "config": Row("Files", "Show every setting and where its value comes from"),
    "clean": Row("Files", "Remove folders of runs that are merged or saved; show how much space that frees"),
    "hooks": Row("Files", "Keep sessions going until they report; test your own hooks"),
    "dev": Row("Files", "Tools for agent authors: a model played from a script"),
    "export": Row("Later", "Export a run as a static folder", built=False),
}

_EXAMPLES = """Examples:
  ganger demo                        the whole system on a throw-away repository
  ganger init && ganger run          a first run in your own repository
  ganger run --concurrency 8         eight agents side by side
  ganger why build-api               one sentence, with evidence
  ganger status --json               for programs"""


def overview() -> str:
    """The text of `ganger --help`."""
    lines = [
        "Usage: ganger COMMAND [OPTIONS]",
        "",
        "Run many coding agents over many tasks, unattended, and trust the result.",
        "",
    ]
    lines += [_EXAMPLES]
    section = ""
    for name, row in COMMANDS.items():
        if row.section != section:
            section = row.section
            lines += ["", f"{section}:" if section != "Later" else "Not implemented yet:"]
        note = "" if row.built or section == "Later" else "  (not implemented yet)"
        lines.append(f"  {name:<10} {row.help}{note}")
    lines += ["", "ganger COMMAND --help has details. Exit codes: 0 success, 1 error, 2 checkpoint, 3 blocked,"]
    lines += ["4 needs a person, 64 usage, 130 interrupted."]
    return "\n".join(lines)
