"""`ganger worker VERB`: finds the worker's place, sends its request, prints the outcome; never a traceback."""

from __future__ import annotations

import os

from . import output
from .arguments import Given, help_page, read
from .errors import INTERRUPTED, REFUSED, Away, Misuse, WorkerError, refusal
from .identity import WorkerIdentity, in_environment
from .sending import KEPT, Outcome, ask, tell
from .table import VERBS, overview

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def main(argv: Sequence[str]) -> int:
    """The exit code; `argv` is the command line after `worker`."""
    as_json = "--json" in argv
    output.open_closed_streams()
    try:
        code = _run([word for word in argv if word != "--debug"], dict(os.environ))
        output.finish()
        return code
    except WorkerError as problem:
        output.refusals(problem.earlier)
        output.trouble(problem, as_json=as_json)
        return problem.exit_code
    except KeyboardInterrupt:
        output.talk("interrupted")
        return INTERRUPTED
    except BrokenPipeError:
        # The reader is gone, so nothing can be printed.
        _nowhere()
        return REFUSED
    except output.Unsaid as error:
        _nowhere()
        hint = "send the output elsewhere, or free space; the request itself was carried out"
        unsaid = WorkerError(f"the output cannot be written: {error}", hint=hint, code="OUTPUT_REFUSED")
        output.trouble(unsaid, as_json=False)
        return REFUSED
    except Exception as error:
        if "--debug" in argv:
            raise
        unexpected = WorkerError(
            f"something unexpected happened: {type(error).__name__}: {error}",
            hint="--debug shows where; please report it",
            code="UNEXPECTED",
        )
        output.trouble(unexpected, as_json=as_json)
        return unexpected.exit_code


def _nowhere() -> None:
    """Also discards buffered output: the interpreter would complain about it at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def _run(words: list[str], environ: Mapping[str, str]) -> int:
    if words[:1] == ["worker"]:
        # Plain files and the shim are called with the full command line.
        words = words[1:]
    if not words or words[0] in ("--help", "-h", "help"):
        output.out(overview())
        return 0
    verb = VERBS.get(words[0])
    if verb is None:
        raise Misuse(f"there is no verb {words[0]!r}; verbs are: {', '.join(VERBS)}")
    if any(word in ("--help", "-h") for word in words[1 : (*words, "--").index("--")]):
        output.out(help_page(verb))
        return 0
    given = read(verb, words[1:])
    if verb.name == "next":
        from .next import next_task

        return next_task(given, environ)
    if verb.name == "mcp":
        from .mcp import serve

        return serve(given, environ)
    post = in_environment(given.text("worker"), given.text("run"), environ)
    if post is None:
        # Most workers are started by Ganger and have everything in their environment.
        from .find_run import find_claim

        post = find_claim(given.text("worker"), given.text("run"), given.text("project"), environ)
    if verb.name in ("messages", "brief"):
        from . import reading

        return reading.messages(given, post) if verb.name == "messages" else reading.brief(given, post)
    return _said(verb.name, given, post)


def _said(verb: str, given: Given, post: WorkerIdentity) -> int:
    from .requests import BODIES

    body = BODIES[verb](given, post)
    try:
        outcome = tell(post, verb, body) if verb in KEPT else ask(post, verb, body)
    except Away:
        # The last report may end the run, so desk and lead may be gone before the mark is set.
        if verb != "done" or not _finished(post):
            raise
        outcome = Outcome(None)
    output.refusals(outcome.earlier)
    _noted(verb, post, outcome)
    answer = outcome.answer
    if answer is not None and not answer.taken:
        if not (verb == "done" and answer.body.get("code") == "ATTEMPT_OVER" and _finished(post)):
            raise refusal(answer.body, answer.status)
        answer = outcome.answer = None
    if verb == "escalate" and given.flag("wait"):
        from .reading import answer_to

        return answer_to(given, post, outcome)
    _show(verb, given, post, outcome)
    return 0


def _noted(verb: str, post: WorkerIdentity, outcome: Outcome) -> None:
    """A report that was only kept counts as sent; the mark is set only once it is acknowledged."""
    taken = outcome.answer.taken if outcome.answer is not None else True
    if verb == "report" and taken:
        from .claims import mark

        mark(post, reported=True)
    if verb == "done" and taken and not outcome.kept:
        from .claims import mark

        mark(post, done=True)


def _finished(post: WorkerIdentity) -> bool:
    """Whether the report was accepted and the attempt is over, so that no mark is needed."""
    from .claims import is_marked, mark

    if not is_marked(post, "reported"):
        return False
    mark(post, done=True)
    return True


def _show(verb: str, given: Given, post: WorkerIdentity, outcome: Outcome) -> None:
    reply = outcome.answer.body if outcome.answer is not None else {"ok": True}
    if given.flag("json"):
        output.document("worker_reply", verb=verb, kept=outcome.kept, **reply)
        return
    if outcome.kept:
        output.out(f"kept: {verb} will be sent {outcome.later}")
        return
    question = f" as {reply['question']}" if reply.get("question") else ""
    follow = {
        "report": "; next: ganger worker done",
        "checkpoint": "; exit with code 2" if given.flag("leave") else "",
    }
    output.out(f"taken{question}{follow.get(verb, '')}")
    from .reading import unread

    new = unread(post, reply)
    if new:
        output.out(f"there are unread messages ({new}): ganger worker messages")
