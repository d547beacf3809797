"""Every command with one line of help, in sections; read without importing any command."""

from __future__ import annotations

from typing import NamedTuple


class Row(NamedTuple):
    section: str
    help: str
    built: bool = True


COMMANDS: dict[str, Row] = {
    "demo": Row("Start", "See the whole system work in about fifteen seconds: no key, no network"),
    "init": Row("Start", "Look at this repository and write a first configuration"),
    "doctor": Row("Start", "Check this machine and project; say what to install"),
    "validate": Row("Plan", "Check a manifest and everything it names; list every fault"),
    "plan": Row("Plan", "Show order, levels and file clashes"),
    "run": Row("Run", "Start the run, or continue it"),
    "status": Row("Look", "Where the run stands"),
    "workers": Row("Look", "Who works on what, since when, in which step"),
    "tasks": Row("Look", "Every task with its status"),
    "why": Row("Look", "Why a task is not running, not done, or was retried"),
    "ledger": Row("Look", "What was delivered: commit, push, CI run, jobs, mirror, verdict"),
    "logs": Row("Look", "What an agent or a verification printed"),
    "events": Row("Look", "Everything that happened, in order"),
    "replay": Row("Look", "Feed a run's events to today's core; show where it would decide otherwise"),
    "patches": Row("Look", "What healing changed in prompts and settings, and the way back"),
    "inbox": Row("Decide", "What needs a person"),
    "answer": Row("Decide", "Answer a question"),
    "approve": Row("Decide", "Approve a change that awaits review"),
    "rework": Row("Decide", "Send a change that awaits review back, with a remark"),
    "land": Row("Decide", "Move your branch to what a run merged"),
    "pause": Row("Control", "Start nothing new"),
    "resume": Row("Control", "Go on after a pause"),
    "stop": Row("Control", "End a run, at once or when its attempts are through"),
    "retry": Row("Control", "Run a task again, with a hint if you like"),
    "skip": Row("Control", "Leave a task out"),
    "unlock": Row("Control", "Take the locks of a repository's tasks away, and its halt, with a reason"),
    "extend": Row("Control", "Give a worker at work more time"),
    "reassign": Row("Control", "End a worker at work; a fresh one begins anew"),
    "end": Row("Control", "End a worker at work; its task waits for you"),
    "set": Row("Control", "Change a setting while running"),
    "worker": Row("Work", "What a worker says and asks: next, heartbeat, report and more"),
    "parse": Row("Files", "Read a result, a heal decision or an agent's events out of a log"),
    "schema": Row("Files", "Print a JSON Schema"),
    "explain": Row("Files", "Say what a code or failure class means and what to do"),
    "state": Row("Files", "Write a fresh state.json, or export the current one"),
    "agents": Row("Files", "List agents, their capabilities and health"),
    "config": Row("Files", "Show every setting with its origin"),
    "clean": Row("Files", "Free what is merged or saved; say how much"),
    "hooks": Row("Files", "Keep sessions going until they report; try out your own hooks"),
    "dev": Row("Files", "Tools for people who write agents: a model played from a script"),
    "export": Row("Later", "Export a run as a static folder", built=False),
}

_EXAMPLES = """Examples:
  ganger demo                        the whole system on a throw-away repository
  ganger init && ganger run          a first run in your own repository
  ganger run --concurrency 8         eight agents side by side
  ganger why build-api               one sentence, with evidence
  ganger status --json               for programs"""


def overview() -> str:
    """What `ganger --help` prints."""
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
            lines += ["", f"{section}:" if section != "Later" else "Not there yet:"]
        note = "" if row.built or section == "Later" else "  (not there yet)"
        lines.append(f"  {name:<10} {row.help}{note}")
    lines += ["", "ganger COMMAND --help tells more. Exit codes: 0 success, 1 error, 2 checkpoint, 3 blocked,"]
    lines += ["4 needs a person, 64 usage, 130 interrupted."]
    return "\n".join(lines)
