"""Bugs put into the lead on purpose: the table counts only because it finds each of them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pytest

from ganger.core import events as ev
from ganger.core.scheduling.health import Signs
from ganger.engine.resources.live_attempts import LiveAttempt
from ganger.engine.workers.gateway import WorkerGateway
from ganger.engine.workers.monitor import WorkerMonitor
from ganger.engine.workers.protocol import WorkerProtocol

Change = Callable[[Signs], Signs]
_LATE_SEC = 1.0


@dataclass(frozen=True)
class Blindness:
    """Something of an behaviour that nobody sees, and what the judge must say then."""

    change: Change
    says: str = "was ended as ('stalled'"


BLIND: Mapping[str, Blindness] = {
    "long": Blindness(lambda s: replace(s, tool="")),
    "computes": Blindness(lambda s: replace(s, cpu_at=0.0)),
    "beats_by_file": Blindness(lambda s: replace(s, beat_at=0.0, beats=0)),
    "answers_when_asked": Blindness(lambda s: s),
    "talks_slowly": Blindness(lambda s: replace(s, output_at=0.0)),
    "writes_slowly": Blindness(lambda s: replace(s, files_at=0.0)),
    "is_stopped": Blindness(lambda s: replace(s, stopped=False), "nobody says 'stopped by a signal'"),
    "waits_for_a_person": Blindness(lambda s: replace(s, asks=""), "nobody says 'Overwrite"),
    "marks_after_a_checkpoint": Blindness(lambda s: replace(s, marked=False)),
    "answers_and_stays": Blindness(lambda s: replace(s, said_all=False)),
    # Its limit is looked at too late.
    "will_not_end": Blindness(
        lambda s: replace(s, output_at=s.now if s.now - s.began_at < 4 else s.output_at), "was noticed after"
    ),
}


def blind(patch: pytest.MonkeyPatch) -> None:
    """Each behaviour is seen without what is to be overlooked of it; one is never asked."""
    seen, tell = WorkerMonitor._signs, WorkerMonitor._tell

    def mute(self: WorkerMonitor, post: LiveAttempt, kind: str, text: str) -> None:
        if post.task != "answers_when_asked":
            tell(self, post, kind, text)

    async def signs(self: WorkerMonitor, post: LiveAttempt) -> Signs:
        found = await seen(self, post)
        return BLIND[post.task].change(found) if post.task in BLIND else found

    patch.setattr(WorkerMonitor, "_signs", signs)
    patch.setattr(WorkerMonitor, "_tell", mute)


async def _nothing(*_given: Any) -> None:
    """What was to be done is not done."""


def acknowledged_early(patch: pytest.MonkeyPatch) -> None:
    """It is acknowledged, and recorded only then."""
    record = WorkerProtocol._record

    async def later(self: WorkerProtocol, name: str, fence: str, *events: ev.Event) -> None:
        await asyncio.sleep(_LATE_SEC)
        await record(self, name, fence, *events)

    def at_once(self: WorkerProtocol, name: str, fence: str, *events: ev.Event) -> Awaitable[None]:
        task = asyncio.ensure_future(later(self, name, fence, *events))
        task.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
        return _nothing()

    patch.setattr(WorkerProtocol, "_record", at_once)


def forgetful(patch: pytest.MonkeyPatch) -> None:
    """A request counts as often as it comes."""
    once = WorkerProtocol._once

    async def nameless(self: WorkerProtocol, verb: str, fence: str, said: Any) -> Any:
        return await once(self, verb, fence, said.model_copy(update={"id": ""}))

    patch.setattr(WorkerProtocol, "_once", nameless)


def hasty(patch: pytest.MonkeyPatch) -> None:
    """What it left at its end is not looked at."""
    patch.setattr(WorkerGateway, "_take_rest", _nothing)


def any_fence(patch: pytest.MonkeyPatch) -> None:
    """Any token of a task opens it."""
    once = WorkerProtocol._once

    async def heard(self: WorkerProtocol, verb: str, fence: str, said: Any) -> Any:
        return await once(self, verb, self._state.tasks[self._by_fence[fence]].attempt.token, said)

    patch.setattr(WorkerProtocol, "_once", heard)
