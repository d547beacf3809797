"""Reads an agent's output while it works: what it is doing, and whether it must be ended early."""

from __future__ import annotations

import asyncio
import contextlib
import os
import stat
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

from ganger.contracts.reading.terminal import safe_cut
from ganger.core import events as ev
from ganger.core.agent_output.waiting_prompt import asking, last_line
from ganger.core.agent_output.whole_lines import Lines
from ganger.core.failures.agent_errors import LONGEST_RETRYING_SEC, LONGEST_WAIT_SEC, MOST_DENIALS
from ganger.core.signs import Heard, Limited, Retrying, Sign
from ganger.engine.resources.run_resources import one_line
from ganger.errors import GangerError
from ganger.ports.agents import Reader
from ganger.ports.clock import Clock
from ganger.ports.processes import Exit, Running

_PACE_SEC = 0.25
_TOLD_EVERY_SEC = 30.0
_MOST_AT_ONCE = 4 * 1024 * 1024
_LAST_BYTES = 8 * 1024
_LOG = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC


class Tail:
    """New whole lines of a growing file. `last` is its current last line, even if unfinished."""

    def __init__(self, log: Path) -> None:
        self._log, self._at, self._lines = log, 0, Lines()
        self.last = b""

    @property
    def size(self) -> int:
        return self._at

    def lines(self) -> Iterator[bytes]:
        """An agent can replace its own log; then there is nothing more to read."""
        try:
            handle = os.open(self._log, _LOG)
            try:
                found = os.fstat(handle)
                if not stat.S_ISREG(found.st_mode) or found.st_size <= self._at:
                    return
                data = os.pread(handle, _MOST_AT_ONCE, self._at)
            finally:
                os.close(handle)
        except OSError:
            return
        self._at += len(data)
        self.last += data
        if len(self.last) > _LAST_BYTES:
            kept = self.last[-_LAST_BYTES:]
            self.last = kept[safe_cut(kept, _LAST_BYTES // 2) :]
        yield from self._lines.feed(data)


class LogFollower:
    """Follows one log from its beginning; what it decides can be derived again by reading that log.

    `grew_at`: when the log last grew. `event_at`: when it last reported anything other than a retry after trouble. Both
    are times of the monotonic clock, 0 if there were none. Without a reader only the log's growth and end are seen.
    `worked` is called once, when the model has answered.
    """

    def __init__(
        self,
        log: Path,
        reader: Reader | None,
        clock: Clock,
        tell: Callable[[Heard], None],
        end: Callable[[str], None],
        worked: Callable[[Heard], None] | None = None,
    ) -> None:
        self.heard = Heard()
        self.grew_at = self.event_at = 0.0
        self._tail, self._reader, self._clock = Tail(log), reader, clock
        self._tell, self._end, self._worked = tell, end, worked
        self._told: tuple[str, str] | None = None
        self._told_at = 0.0
        self._trying_since: float | None = None

    async def run(self) -> None:
        """Runs until it is cancelled, or has asked for the agent's end."""
        over = False
        while not over:
            try:
                over = self.look()
            except GangerError:
                # An agent whose output cannot be read works on; its growing log is still a sign of life.
                self._reader = None
            await asyncio.sleep(_PACE_SEC)

    def look(self) -> bool:
        """Looks once at what is new; returns whether the agent must be ended."""
        size, now = self._tail.size, self._clock.monotonic()
        try:
            for line in self._tail.lines():
                self._take(line, now)
        finally:
            self.grew_at = now if self._tail.size > size else self.grew_at
        if self._worked is not None and self.heard.has_worked:
            self._worked(self.heard)
            self._worked = None
        names = (self.heard.session, self.heard.model)
        if (any(names) and names != self._told) or (self._told and now - self._told_at >= _TOLD_EVERY_SEC):
            self._told, self._told_at = names, now
            self._tell(self.heard)
        why = self._why_end(now)
        if why:
            self._end(why)
        return bool(why)

    def last_line(self) -> str:
        """The last line with visible text, as a person sees it."""
        return one_line(last_line(self._tail.last))

    def asks(self) -> str:
        """The line with which it seems to wait for a person; empty if there is none."""
        return one_line(asking(self._tail.last), 200)

    def _take(self, line: bytes, now: float) -> None:
        if self._reader is None:
            return
        try:
            signs = list(self._reader.line(line))
            self.heard.add(signs)
            self.event_at = now if any(_is_event(sign) for sign in signs) else self.event_at
        except Exception as error:
            # An adapter may come from a plugin.
            raise GangerError(f"the agent's output cannot be read: {type(error).__name__}: {error}") from error

    def _why_end(self, now: float) -> str:
        heard = self.heard
        if len(heard.denied) >= MOST_DENIALS:
            return f"it was refused {len(heard.denied)} times"
        if heard.over is not None:
            return ""
        waiting = heard.retrying is not None or (heard.limited is not None and not heard.limited.final)
        self._trying_since = (self._trying_since or now) if waiting else None
        if self._trying_since is not None and now - self._trying_since > LONGEST_RETRYING_SEC:
            return "it only retried without progress"
        if heard.retrying is not None and (heard.retrying.wait_sec or 0.0) > LONGEST_WAIT_SEC:
            return f"it wants to wait {heard.retrying.wait_sec:.0f} s"
        reset = heard.limited.reset_at if heard.limited is not None else None
        if reset is not None and reset - self._clock.now() > LONGEST_WAIT_SEC:
            return "its account stays at its limit for too long"
        return ""


def _is_event(sign: Sign) -> bool:
    return not isinstance(sign, Retrying) and not (isinstance(sign, Limited) and not sign.final)


async def followed(
    running: Running, listening: Callable[[Callable[[str], None]], LogFollower], end: Callable[[], Awaitable[None]]
) -> Exit:
    """Waits for a process while its output is read; `end` is called when the agent makes no progress."""
    ending: list[asyncio.Future[None]] = []
    task = asyncio.ensure_future(listening(lambda _why: ending.append(asyncio.ensure_future(end()))).run())
    try:
        return await running.wait()
    finally:
        for other in (task, *ending):
            other.cancel()
            with contextlib.suppress(asyncio.CancelledError, GangerError):
                await other


def heard_event(task: str, attempt: int, heard: Heard) -> ev.AgentHeard:
    doing = next(iter(reversed(heard.running.values())), None)
    context = heard.context
    return ev.AgentHeard(
        task,
        attempt,
        one_line(heard.session, 200),
        one_line(heard.model, 200),
        one_line(f"{doing.name} {doing.about}", 300) if doing is not None else "",
        heard.tools,
        len(heard.denied),
        context.used if context is not None else 0,
        context.window if context is not None else 0,
    )
