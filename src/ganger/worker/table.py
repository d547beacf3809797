"""Every verb of `ganger worker`: what it takes, what it says of itself, how it is called."""

from __future__ import annotations

from .words import FLAG, MANY, NUMBER, PERCENT, SECONDS, TEXT, Option, Verb

_WHO = (
    Option(
        "worker", TEXT, "NAME", "Which worker this is (default: GANGER_WORKER, else the only one that holds a task)."
    ),
    Option("run", TEXT, "ID", "The run (default: the newest)."),
    Option("project", TEXT, "DIR", "Project folder (default: upwards from here)."),
    Option("json", FLAG, "", "One JSON document on stdout."),
)
_STEP = (
    Option("step", TEXT, "TEXT", "What it is doing."),
    Option("percent", PERCENT, "N", "How far it is, from 0 to 100."),
    Option("note", TEXT, "TEXT", "Anything worth a sentence."),
    Option("context", PERCENT, "N", "How full its context window is, in percent."),
)
_STANDING = (
    Option("summary", TEXT, "TEXT", "Where the work stands."),
    Option("done", MANY, "TEXT", "Something that is done; may be repeated."),
    Option("remaining", MANY, "TEXT", "Something that is left to do; may be repeated."),
    Option("last-action", TEXT, "TEXT", "What it did last."),
    Option("next-action", TEXT, "TEXT", "What should be done next."),
    Option("file", MANY, "PATH", "A file it works on; may be repeated."),
    Option("blocker", MANY, "TEXT", "What is in the way; may be repeated."),
    Option("decision", MANY, "TEXT", "What it decided; may be repeated."),
    Option("commit", MANY, "ID", "A commit it made; may be repeated."),
    Option("percent", PERCENT, "N", "How far it is, from 0 to 100."),
    Option("context", PERCENT, "N", "How full its context window is, in percent."),
    Option("leave", FLAG, "", "It ends now and a fresh worker goes on; end with exit code 2."),
)

VERBS = {
    verb.name: verb
    for verb in (
        Verb(
            "next",
            (),
            "Ask for a task, for a session that you opened yourself.\n\n"
            "Prints the prompt and how to go on. What it was given is remembered, so that later calls need no\n"
            "settings. Whoever holds a task is given the same one again. Exit code 3: there is none now, or the run\n"
            "is over.",
            (
                Option("wait", SECONDS, "SEC", "Go on asking until there is one, for so long (default: for ever)."),
                Option("role", MANY, "ROLE", "Only tasks of this role; may be repeated."),
                Option("shell", FLAG, "", "Lines for eval: export GANGER_TOKEN=… and so on."),
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
            "Say that it is alive, every 15 seconds.\n\n"
            "One that gets lost is replaced by the next. Tells when there are unread messages.",
            (*_STEP, *_WHO),
            ("ganger worker heartbeat", "ganger worker heartbeat --step 'runs the tests' --percent 60"),
        ),
        Verb(
            "progress",
            (),
            "Say how far it is; this is kept for good.\n\n"
            "A tier is NUMBER:NAME:pass or NUMBER:NAME:fail, with :RETRIES behind it if you like.",
            (
                *_STEP,
                Option("tier", MANY, "N:NAME:pass", "How one tier of its own checks went; may be repeated."),
                Option("completed", NUMBER, "N", "How many parts are done."),
                Option("total", NUMBER, "N", "Of how many."),
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
            "Say that something worth naming is reached.",
            (Option("note", TEXT, "TEXT", "Anything worth a sentence."), *_WHO),
            ("ganger worker milestone 'first test green'", "ganger worker milestone migrated --note '12 tables'"),
        ),
        Verb(
            "escalate",
            ("CATEGORY", "MESSAGE"),
            "Ask a person what only a person can decide.\n\n"
            "The category is one word, such as ambiguous_spec, dependency_missing or verification_unclear. Without\n"
            "--wait go on with something else and look at your messages, or end with exit code 4.",
            (
                Option("context", TEXT, "TEXT", "What a person needs to know to decide."),
                Option("option", MANY, "TEXT", "An answer to choose from; may be repeated."),
                Option("default", TEXT, "TEXT", "What counts when nobody has answered by the deadline."),
                Option("deadline", NUMBER, "SEC", "After so long the default counts."),
                Option("wait", SECONDS, "SEC", "Wait for the answer and print it, for so long (default: for ever)."),
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
            "Save where the work stands, for a fresh worker that must go on without you.\n\n"
            "With - the whole checkpoint is read as JSON from stdin; options count over it.",
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
            "Read what it was told: answers, and requests to save its state or to end.\n\n"
            "Shows those it has not seen yet. Exit code 3: waited, and there was none.",
            (
                Option("since", NUMBER, "N", "Those after this number (default: after the last one seen)."),
                Option("wait", SECONDS, "SEC", "Wait until there is one, for so long (default: for ever)."),
                *_WHO,
            ),
            ("ganger worker messages", "ganger worker messages --wait 30"),
        ),
        Verb(
            "report",
            ("[FILE]",),
            "Give the answer: a task result 2.0, from a file, from stdin with -, or made of the options.\n\n"
            "It is on the disk before it is sent and acknowledged only when it is recorded. A result that breaks its\n"
            "contract is refused at once: mend it and report again. Then: ganger worker done.",
            (
                Option("status", TEXT, "STATUS", "DONE, BLOCKED or FAILED."),
                Option("summary", TEXT, "TEXT", "What was done, in a sentence."),
                Option("failure-class", TEXT, "CLASS", "Why it failed or is blocked."),
                Option("changed", MANY, "PATH", "A file it changed; may be repeated."),
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
            "Set the mark that all is said, once the report is acknowledged.",
            _WHO,
            ("ganger worker report result.json && ganger worker done",),
        ),
        Verb(
            "brief",
            ("[SECTION]",),
            "Read one part of what it should know; without a name, the list of parts.",
            _WHO,
            ("ganger worker brief", "ganger worker brief contract"),
        ),
        Verb(
            "mcp",
            (),
            "Serve all of this to an MCP client over stdin and stdout.\n\n"
            "Give it to your agent as an MCP server; its tools are these verbs. What must not be lost is kept while\n"
            "the lead is away.",
            _WHO[:3],
            ("claude mcp add ganger -- ganger worker mcp",),
        ),
    )
}

_HEAD = """Usage: ganger worker VERB [OPTIONS]

What a worker says to whoever leads the run, and asks of it. A worker that Ganger started finds everything in its
environment; a session you opened yourself begins with `ganger worker next`.
"""
_TAIL = """
Examples:
  ganger worker next --wait
  ganger worker heartbeat --step 'runs the tests' --percent 60
  ganger worker report result.json && ganger worker done

ganger worker VERB --help tells more. While the lead is away, what must not be lost is kept and delivered when it is
back. Exit codes: 0 taken or kept, 1 refused, 3 nobody there or nothing there, 64 usage, 130 interrupted."""


def overview() -> str:
    """What `ganger worker --help` prints."""
    lines = [f"  {verb.name:<11} {verb.line}" for verb in VERBS.values()]
    return "\n".join([_HEAD, "Verbs:", *lines, _TAIL])
