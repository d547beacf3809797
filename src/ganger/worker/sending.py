"""Sends a request: at once, or through the spool until the lead has acknowledged it."""

from __future__ import annotations

import os
import time

from .errors import Away, refusal
from .http import LeadAnswer, call

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .errors import WorkerError
    from .identity import WorkerIdentity
    from .spool import Spool, SpooledRequest

    Refusals = list[tuple[str, WorkerError]]

# Verbs that the lead stores before it acknowledges them, so they may be sent until it does.
KEPT = frozenset({"progress", "milestone", "escalate", "checkpoint", "report", "done"})
ANSWER_SEC = 10.0
_TURN_SEC = 30.0
_AGAIN_SEC = (0.3, 1.0)
_LONGEST_PAUSE_SEC = 2.0
_REFUSED = {
    "ok": False,
    "code": "BAD_REQUEST",
    "message": "it was refused",
    "hint": "it is in the folder refused of the desk",
}


class Outcome:
    """`answer` is None for a request that was only kept, or sent by another call of this worker (`kept` is then false).

    `later` says when a kept request will be sent.
    `earlier` are older requests that were refused for good meanwhile: verb and refusal.
    """

    __slots__ = ("answer", "earlier", "kept", "later")

    def __init__(self, answer: LeadAnswer | None, *, kept: bool = False, later: str = "") -> None:
        self.answer, self.kept, self.later = answer, kept, later
        self.earlier: Refusals = []


def named(body: dict[str, Any]) -> dict[str, Any]:
    """The body with an id, so that it counts once however often it arrives."""
    return {"id": os.urandom(12).hex(), **body}


def ask(post: WorkerIdentity, verb: str, body: dict[str, Any], timeout_sec: float = ANSWER_SEC) -> Outcome:
    """Sends a request that is useless later; raises Away. The spool is sent first, if possible."""
    try:
        earlier = deliver(post) if waits(post) else []
    except Away as away:
        earlier = away.earlier
    outcome = Outcome(call(post.report, post.token, f"/v1/{verb}", body, timeout_sec))
    outcome.earlier = earlier
    return outcome


def tell(post: WorkerIdentity, verb: str, body: dict[str, Any]) -> Outcome:
    """Sends or keeps a request that must not be lost; raises Away only if it cannot be kept."""
    body = named(body)
    spool = _spool(post)
    if spool is None:
        return Outcome(_insisted(post, verb, body))
    try:
        try:
            name = spool.put(verb, post.token, body)
        except OSError:
            # A full disk keeps nothing, but the lead may still take it.
            return Outcome(_insisted(post, verb, body))
        return _delivered(post, spool, name, (verb, body))
    finally:
        spool.close()


def deliver(post: WorkerIdentity) -> Refusals:
    """Sends what the spool holds and returns the refused requests. Raises Away if something is left."""
    spool = _spool(post)
    if spool is None:
        return []
    try:
        done = spool.deliver(lambda *each: _send(post, *each), time.monotonic() + _TURN_SEC)
    finally:
        spool.close()
    refused = _settled(post, done)
    if done.away is not None:
        done.away.earlier = refused
        raise done.away
    return refused


def waits(post: WorkerIdentity) -> bool:
    """Whether the spool holds anything."""
    try:
        return bool(post.desk) and any(name.endswith(".json") for name in os.listdir(f"{post.desk}/spool"))
    except OSError:
        return False


def _spool(post: WorkerIdentity) -> Spool | None:
    if not post.desk:
        return None
    from .spool import Spool

    try:
        return Spool(post.desk)
    except OSError:
        return None


def _send(post: WorkerIdentity, verb: str, token: str, body: dict[str, Any]) -> LeadAnswer:
    return call(post.report, token, f"/v1/{verb}", body, ANSWER_SEC)


def _insisted(post: WorkerIdentity, verb: str, body: dict[str, Any]) -> LeadAnswer:
    for pause_sec in _AGAIN_SEC:
        try:
            return _send(post, verb, post.token, body)
        except Away as away:
            time.sleep(min(max(pause_sec, away.retry_sec), _LONGEST_PAUSE_SEC))
    return _send(post, verb, post.token, body)


def _delivered(post: WorkerIdentity, spool: Spool, name: str, request: tuple[str, dict[str, Any]]) -> Outcome:
    verb, body = request
    done = spool.deliver(lambda *each: _send(post, *each), time.monotonic() + _TURN_SEC, last=name)
    outcome = Outcome(done.answers.get(name))
    outcome.earlier = _settled(post, done, name)
    if outcome.answer is not None:
        return outcome
    outcome.kept = spool.has(name)
    outcome.later = done.away.later if done.away else "by another call of this worker, which is still sending"
    refused = spool.was_refused(name)
    if not outcome.kept and (verb == "escalate" or refused):
        outcome.answer = _heard_again(post, verb, body) or (LeadAnswer(400, dict(_REFUSED)) if refused else None)
    return outcome


def _heard_again(post: WorkerIdentity, verb: str, body: dict[str, Any]) -> LeadAnswer | None:
    """Another process sent it; asked with the same id, the lead repeats its answer."""
    try:
        return _send(post, verb, post.token, body)
    except Away:
        return None


def _settled(post: WorkerIdentity, done: SpooledRequest, own: str = "") -> Refusals:
    """Marks the claim after an acknowledged or refused report or done mark; returns the refused requests but `own`."""
    for name, verb in done.verbs.items():
        if verb in ("report", "done"):
            from .claims import mark

            mark(post, **{"reported" if verb == "report" else "done": done.answers[name].taken})
    refused = {name: answer for name, answer in done.answers.items() if not answer.taken and name != own}
    return [(done.verbs[name], refusal(answer.body, answer.status)) for name, answer in refused.items()]
