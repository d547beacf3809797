"""Every verb of `ganger worker`: its options, its help text, its examples."""

from __future__ import annotations

from .arguments import FLAG, MANY, NUMBER, PERCENT, SECONDS, TEXT, Option, Verb

_WHO = (
    Option(
        "worker", TEXT, "NAME", "Which worker this is (default: GANGER_WORKER, else the only one that holds a task)."
    ),
    Option("run", TEXT, "ID", "The run (default: the newest)."),
    Option("project", TEXT, "DIR", "Project folder (default: upwards from here)."),
    Option("json", FLAG, "", "One JSON document on stdout."),
)
_STEP = (
    Option("step", TEXT, "TEXT", "What you are doing."),
    Option("percent", PERCENT, "N", "Progress, from 0 to 100."),
    Option("note", TEXT, "TEXT", "A remark in one sentence."),
    Option("context", PERCENT, "N", "How full the context window is, in percent."),
)
_STANDING = (
    Option("summary", TEXT, "TEXT", "How far the work has come."),
    Option("done", MANY, "TEXT", "Something that is done; may be repeated."),
    Option("remaining", MANY, "TEXT", "Something that is left to do; may be repeated."),
    Option("last-action", TEXT, "TEXT", "What you did last."),
    Option("next-action", TEXT, "TEXT", "What should be done next."),
    Option("file", MANY, "PATH", "A file you work on; may be repeated."),
    Option("blocker", MANY, "TEXT", "What is in the way; may be repeated."),
    Option("decision", MANY, "TEXT", "A decision you made; may be repeated."),
    Option("commit", MANY, "ID", "A commit you made; may be repeated."),
    Option("percent", PERCENT, "N", "Progress, from 0 to 100."),
    Option("context", PERCENT, "N", "How full the context window is, in percent."),
    Option("leave", FLAG, "", "Let a new worker continue; then exit with code 2 yourself."),
)

VERBS = {
    verb.name: verb
    for verb in (
        Verb(
            "next",
            (),
            "Ask for a task, for a session that you opened yourself.\n\n"
            "Prints the prompt and how to continue. The task is remembered, so that later calls need no\n"
            "settings. A worker that holds a task gets the same one again. Exit code 3: no task now, or the run\n"
            "is over.",
            (
                Option(
                    "wait",
                    SECONDS,
                    "SEC",
                    "Keep asking until there is a task, for SEC seconds (default: without limit).",
                ),
                Option("role", MANY, "ROLE", "Only tasks of this role; may be repeated."),
                Option("shell", FLAG, "", "Print lines for eval: export GANGER_TOKEN=… and so on."),
                *_WHO,
            ),
            (
                "ganger worker next",
                "ganger worker next --wait --worker night-1",
                'eval "$(ganger worker next --shell --role worker)"',
            ),
        ),
        Verb(
            "heartbeat",
            (),
            "Say that you are alive; do so every 15 seconds.\n\n"
            "A lost heartbeat does not matter. The output says when there are unread messages.",
            (*_STEP, *_WHO),
            ("ganger worker heartbeat", "ganger worker heartbeat --step 'runs the tests' --percent 60"),
        ),
        Verb(
            "progress",
            (),
            "Report progress; this is stored.\n\n"
            "A tier is NUMBER:NAME:pass or NUMBER:NAME:fail, optionally followed by :RETRIES.",
            (
                *_STEP,
                Option("tier", MANY, "N:NAME:pass", "The result of one tier of your own checks; may be repeated."),
                Option("completed", NUMBER, "N", "How many parts are done."),
                Option("total", NUMBER, "N", "How many parts there are in total."),
                *_WHO,
            ),
            (
                "ganger worker progress --step 'writes tests' --percent 40",
                "ganger worker progress --tier 1:syntax:pass --tier 2:tests:fail:1",
            ),
        ),
        Verb(
            "milestone",
            ("NAME",),
            "Report that you have reached a milestone.",
            (Option("note", TEXT, "TEXT", "A remark in one sentence."), *_WHO),
            ("ganger worker milestone 'first test green'", "ganger worker milestone migrated --note '12 tables'"),
        ),
        Verb(
            "escalate",
            ("CATEGORY", "MESSAGE"),
            "Ask the operator what only the operator can decide.\n\n"
            "The category is one word, such as ambiguous_spec, dependency_missing or verification_unclear. Without\n"
            "--wait, continue with something else and check your messages, or exit with code 4.",
            (
                Option("context", TEXT, "TEXT", "What the operator needs to know to decide."),
                Option("option", MANY, "TEXT", "An answer to choose from; may be repeated."),
                Option("default", TEXT, "TEXT", "The answer that counts if no one has answered by the deadline."),
                Option("deadline", NUMBER, "SEC", "After SEC seconds the default counts."),
                Option(
                    "wait",
                    SECONDS,
                    "SEC",
                    "Wait for the answer and print it, for SEC seconds (default: without limit).",
                ),
                *_WHO,
            ),
            (
                "ganger worker escalate ambiguous_spec 'Is the id a text or a number?' --option text --option number",
                "ganger worker escalate dependency_missing 'redis is not installed' --wait 600",
            ),
        ),
        Verb(
            "checkpoint",
            ("[-]",),
            "Save how far the work has come, so that a new worker can continue without you.\n\n"
            "With - the whole checkpoint is read as JSON from stdin; options override it.",
            (*_STANDING, *_WHO),
            (
                "ganger worker checkpoint --done parser --remaining tests --next-action 'write test_parse.py'",
                "ganger worker checkpoint --summary 'context is full' --leave",
                "ganger worker checkpoint - < checkpoint.json",
            ),
        ),
        Verb(
            "messages",
            (),
            "Read your messages: answers, and requests to save your state or to exit.\n\n"
            "Shows the unread ones. Exit code 3: --wait was given and none came.",
            (
                Option("since", NUMBER, "N", "Messages after this number (default: after the last one read)."),
                Option("wait", SECONDS, "SEC", "Wait for a message, for SEC seconds (default: without limit)."),
                *_WHO,
            ),
            ("ganger worker messages", "ganger worker messages --wait 30"),
        ),
        Verb(
            "report",
            ("[FILE]",),
            "Report the result: a task result 2.0, from a file, from stdin with -, or from the options.\n\n"
            "It is stored on disk before it is sent, and acknowledged once it is recorded. A result that does not\n"
            "match its contract is refused at once: fix it and report again. Then: ganger worker done.",
            (
                Option("status", TEXT, "STATUS", "DONE, BLOCKED or FAILED."),
                Option("summary", TEXT, "TEXT", "What was done, in a sentence."),
                Option("failure-class", TEXT, "CLASS", "Why it failed or is blocked."),
                Option("changed", MANY, "PATH", "A file you changed; may be repeated."),
                *_WHO,
            ),
            (
                "ganger worker report --status DONE --summary 'the parser reads dates'",
                "ganger worker report --status BLOCKED --summary 'no database here' --failure-class external",
                "ganger worker report result.json",
            ),
        ),
        Verb(
            "done",
            (),
            "Say that you have finished, once the report is acknowledged.",
            _WHO,
            ("ganger worker report result.json && ganger worker done",),
        ),
        Verb(
            "brief",
            ("[SECTION]",),
            "Read one part of your brief; without a name, list the parts.",
            _WHO,
            ("ganger worker brief", "ganger worker brief contract"),
        ),
        Verb(
            "mcp",
            (),
            "Serve these commands to an MCP client over stdin and stdout.\n\n"
            "Give it to your agent as an MCP server; each verb is a tool. Without a lead, reports are kept and\n"
            "sent later.",
            _WHO[:3],
            ("claude mcp add ganger -- ganger worker mcp",),
        ),
    )
}

_HEAD = """Usage: ganger worker VERB [OPTIONS]

Messages and requests from a worker to the lead of its run. A worker that Ganger started finds everything in its
environment; a session you opened yourself begins with `ganger worker next`.
"""
_TAIL = """
Examples:
  ganger worker next --wait
  ganger worker heartbeat --step 'runs the tests' --percent 60
  ganger worker report result.json && ganger worker done

ganger worker VERB --help has details. While no lead is running, reports are kept and sent when it is back.
Exit codes: 0 accepted or kept, 1 refused, 3 no lead or nothing available, 64 usage, 130 interrupted."""


def overview() -> str:
    """The text of `ganger worker --help`."""
    lines = [f"  {verb.name:<11} {verb.line}" for verb in VERBS.values()]
    return "\n".join([_HEAD, "Verbs:", *lines, _TAIL])
