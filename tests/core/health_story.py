"""A worker's life as a list of moments, looked at every half second or only when a look is due."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from ganger.core.scheduling.health import Act, HealthPolicy, HealthWatch, Signs, What, look

POLICY = HealthPolicy(
    heartbeat_sec=4,
    stale_sec=20,
    stall_sec=60,
    busy_sec=180,
    lease_sec=100,
    working_sec=200,
    working_warn_sec=150,
    active_sec=30,
    no_change_sec=150,
    linger_sec=6,
    shutdown_sec=4,
    api_errors=3,
)
ENDS = frozenset({What.SETTLE, What.STALLED, What.LINGERING, What.CONTEXT})
TICK = 0.5


@dataclass(frozen=True)
class Story:
    """Moments in whole seconds since its start; spans are (from, to), without their end."""

    output: tuple[int, ...] = ()
    cpu: tuple[int, ...] = ()
    files: tuple[int, ...] = ()
    beats: tuple[int, ...] = ()
    events: tuple[int, ...] = ()
    tools: tuple[tuple[int, int], ...] = ()
    stops: tuple[tuple[int, int], ...] = ()
    full: tuple[tuple[int, int], ...] = ()
    said_all: int | None = None
    marked: int | None = None
    reported: int | None = None
    pulled: bool = False
    errors: tuple[tuple[int, int], ...] = ()
    time_limit: float | None = None

    def at(self, now: float) -> Signs:
        return Signs(
            now=now,
            began_at=0.0,
            output_at=_last(self.output, now),
            cpu_at=_last(self.cpu, now),
            files_at=_last(self.files, now),
            beat_at=_last(self.beats, now),
            event_at=_last(self.events, now),
            beats=sum(1 for moment in self.beats if moment <= now),
            pulled=self.pulled,
            tool="bash make" if _within(self.tools, now) else "",
            stopped=_within(self.stops, now),
            said_all=self.said_all is not None and now >= self.said_all,
            marked=self.marked is not None and now >= self.marked,
            reported=self.reported is not None and now >= self.reported,
            errors_in_a_row=4 if _within(self.errors, now) else 0,
            time_limit_sec=self.time_limit,
            context_pct=80.0 if _within(self.full, now) else 10.0,
        )

    def moments(self) -> list[float]:
        """Whenever something can be seen that was not there before."""
        spans = (*self.tools, *self.stops, *self.full, *self.errors)
        single = (*self.output, *self.cpu, *self.files, *self.beats, *self.events)
        marks = [moment for moment in (self.said_all, self.marked, self.reported) if moment is not None]
        return sorted({0.0, *map(float, (*single, *marks, *(edge for span in spans for edge in span)))})


def _last(moments: tuple[int, ...], now: float) -> float:
    return float(max((moment for moment in moments if moment <= now), default=0))


def _within(spans: tuple[tuple[int, int], ...], now: float) -> bool:
    return any(start <= now < end for start, end in spans)


@dataclass(frozen=True)
class Done:
    """An act and its moment."""

    at: float
    act: Act

    @property
    def what(self) -> What:
        return self.act.what


def watched(
    story: Story, until: float, policy: HealthPolicy = POLICY, *, adaptive: bool = False, first: float = 0.0
) -> list[Done]:
    """Everything done until the worker is ended or the time is up."""
    watch, done = HealthWatch(), []
    looks = _Looks(story, first, adaptive=adaptive)
    for now in looks:
        if now > until:
            break
        found = look(policy, story.at(now), watch)
        watch, looks.due = found.watch, found.again_at
        done += [Done(now, act) for act in found.acts]
        if any(act.what in ENDS for act in found.acts):
            break
        assert found.again_at > now, "a look that is due already is never over"
    return done


class _Looks:
    """The moments of the looks."""

    def __init__(self, story: Story, first: float, *, adaptive: bool) -> None:
        self.due, self._adaptive, self._first = 0.0, adaptive, first
        self._moments = [moment for moment in story.moments() if moment > first]

    def __iter__(self) -> Iterator[float]:
        now, count = self._first, 0
        while now < float("inf"):
            yield now
            count += 1
            if not self._adaptive:
                now = self._first + count * TICK
                continue
            new = next((moment for moment in self._moments if moment > now), float("inf"))
            now = min(self.due, new)


def only(done: list[Done], *whats: What) -> list[tuple[float, What]]:
    return [(one.at, one.what) for one in done if one.what in whats]


def ended(done: list[Done]) -> tuple[float, What, str] | None:
    return next(((one.at, one.what, one.act.limit) for one in done if one.what in ENDS), None)


def beating(upto: int, every: int = 4) -> Story:
    return Story(beats=tuple(range(every, upto + 1, every)))


def with_sign(story: Story, kind: str, at: int) -> Story:
    """The story with one more sign of this kind."""
    if kind == "tool":
        return replace(story, tools=(*story.tools, (at, at + 3)))
    more: dict[str, Any] = {kind: (*getattr(story, kind), at)}
    return replace(story, **more)
