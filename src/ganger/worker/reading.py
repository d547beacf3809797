"""What a worker reads: messages, the answer to its question, the parts of its brief."""

from __future__ import annotations

import os
import time

from . import output
from .errors import BLOCKED, Away, WorkerError, refusal
from .sending import ANSWER_SEC, Outcome, ask

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from .arguments import Given
    from .identity import WorkerIdentity

_LONGEST_WAIT_SEC = 15.0
_AWAY_SEC = 2.0
_URGENT = frozenset({"shutdown", "checkpoint"})
# In the desk: the number of the last message that was read.
_SEEN = "messages.seen"


def messages(given: Given, post: WorkerIdentity) -> int:
    since = int(given.values["since"]) if "since" in given.values else last_seen(post)
    until = _until(given)
    reply = next(_polled(post, since, until)) if until is None else _first(post, since, until)
    new = list(reply.get("messages") or ())
    if given.flag("json"):
        output.document("worker_messages", **reply)
    for message in new if not given.flag("json") else ():
        output.out(f"[{message.get('number')}] {message.get('kind')}: {message.get('text')}")
    if not new and not given.flag("json"):
        output.talk("no new messages")
    note_seen(post, max((int(message.get("number", 0)) for message in new), default=0))
    return BLOCKED if not new and until is not None else 0


def _until(given: Given) -> float | None:
    """The end of the wait on the monotonic clock; None without a wait."""
    if not given.flag("wait"):
        return None
    seconds = given.values["wait"]
    return time.monotonic() + (seconds if seconds is not None else 10 * 365 * 86_400.0)


def _first(post: WorkerIdentity, since: int, until: float) -> dict[str, Any]:
    reply: dict[str, Any] = {}
    for reply in _polled(post, since, until):
        if reply.get("messages"):
            break
    return reply


def _polled(post: WorkerIdentity, since: int, until: float | None) -> Iterator[dict[str, Any]]:
    """The lead's answers, one after another, until the time is over; waits for a lead that is away."""
    told = False
    while True:
        left = 0.0 if until is None else max(0.0, until - time.monotonic())
        wait_sec = min(left, _LONGEST_WAIT_SEC)
        try:
            outcome = ask(post, "messages", {"since": since, "wait_sec": round(wait_sec, 3)}, wait_sec + ANSWER_SEC)
        except Away as away:
            if left <= 0:
                raise
            if not told:
                output.talk(f"{away.message}; waiting")
                told = True
            time.sleep(min(_AWAY_SEC, left))
            continue
        reply = _reply(outcome)
        since = max([since, *(int(message.get("number", 0)) for message in reply.get("messages") or ())])
        yield reply
        if until is None or time.monotonic() >= until:
            return


def _reply(outcome: Outcome) -> dict[str, Any]:
    output.refusals(outcome.earlier)
    answer = outcome.answer
    if answer is None or not answer.taken:
        raise refusal(answer.body if answer else {}, answer.status if answer else 0)
    return answer.body


def answer_to(given: Given, post: WorkerIdentity, outcome: Outcome) -> int:
    """Waits for the operator's answer, or until the lead says to stop waiting."""
    reply = outcome.answer.body if outcome.answer is not None else {}
    question, since = str(reply.get("question") or ""), int(reply.get("latest") or last_seen(post))
    until = _until(given)
    assert until is not None
    if outcome.kept:
        output.talk(f"kept: it will be sent {outcome.later}")
    output.talk(f"asked{' as ' + question if question else ''}; waiting for the answer")
    for polled in _polled(post, since, until):
        for message in polled.get("messages") or ():
            kind, text = message.get("kind"), str(message.get("text"))
            if kind == "answer":
                return _answered(given, question, text)
            if kind in _URGENT:
                raise WorkerError(text, hint="ganger worker messages", code="NO_ANSWER", exit_code=BLOCKED)
        try:
            ask(post, "heartbeat", {"step": "waits for an answer"})
        except Away:
            continue
    raise WorkerError(
        "there is no answer yet", hint="ganger worker messages --wait", code="NO_ANSWER", exit_code=BLOCKED
    )


def _answered(given: Given, question: str, text: str) -> int:
    if given.flag("json"):
        output.document("worker_answer", ok=True, question=question, answer=text)
    else:
        output.out(text)
    return 0


def brief(given: Given, post: WorkerIdentity) -> int:
    reply = _reply(ask(post, "brief", {"section": given.place(0)}))
    if given.flag("json"):
        output.document("worker_brief", **reply)
    elif given.place(0):
        output.out(str(reply.get("text", "")))
    else:
        for name in reply.get("sections") or ():
            output.out(str(name))
    return 0


def last_seen(post: WorkerIdentity) -> int:
    if not post.desk:
        return 0
    try:
        file = os.open(f"{post.desk}/{_SEEN}", os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return 0
    try:
        text = os.read(file, 20)
    except OSError:
        text = b""
    finally:
        os.close(file)
    return int(text) if text.isdigit() else 0


def note_seen(post: WorkerIdentity, number: int) -> None:
    """Notes the number; if that fails, the messages are read again."""
    if not post.desk or number <= last_seen(post):
        return
    try:
        unfinished = f"{post.desk}/.{_SEEN}.{os.getpid()}.tmp"
        file = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            os.write(file, str(number).encode("ascii"))
        finally:
            os.close(file)
        os.rename(unfinished, f"{post.desk}/{_SEEN}")
    except OSError:
        return


def unread(post: WorkerIdentity, reply: Mapping[str, object]) -> int:
    """The number of unread messages, from a reply."""
    latest, count = reply.get("latest"), reply.get("messages")
    if not isinstance(latest, int) or not isinstance(count, int):
        return 0
    return min(count, max(0, latest - last_seen(post))) if post.desk else count
