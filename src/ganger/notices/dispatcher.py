"""The notices of one run: each channel has its own queue and thread, so that none waits for another.

An event is sent at most once: the next lead does not send what a dead lead recorded and had not sent.
"""

from __future__ import annotations

import asyncio
import contextlib
import queue
import threading
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from ganger.core.events import Recorded
from ganger.core.events.notable import is_wanted
from ganger.notices.notice import NotDelivered, Notice, Way, notice_of

LOG = "notices.log"
DRAIN_SEC = 5.0
_MOST_WAITING = 200
_LOG_BYTES = 1024 * 1024
_END_SEC = 1.0


@dataclass(frozen=True, slots=True)
class Route:
    """Which events go to which channel."""

    way: Way
    on: frozenset[str]


class NoticeLog:
    """A log of failures for people; the older half is removed when it has grown large."""

    def __init__(self, path: Path) -> None:
        self._path, self._lock = path, threading.Lock()

    def note(self, way: str, about: str, problem: str) -> None:
        at = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        line = " ".join(f"{at} {way}: {about}: {problem}".split())
        with self._lock:
            try:
                if self._path.exists() and self._path.stat().st_size > _LOG_BYTES:
                    self._path.replace(self._path.with_name(f"{LOG}.1"))
                with open(self._path, "a", encoding="utf-8", errors="replace") as file:
                    file.write(f"{line}\n")
            except OSError:
                return


class _Line:
    """One channel, its queue and its thread, which starts with the first notice."""

    def __init__(self, route: Route, log: NoticeLog) -> None:
        self.route, self._log = route, log
        self._waiting: queue.Queue[Notice | None] = queue.Queue(_MOST_WAITING)
        self._thread: threading.Thread | None = None

    def send(self, notice: Notice) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name=f"notices {self.route.way.name}", daemon=True)
            self._thread.start()
        try:
            self._waiting.put_nowait(notice)
        except queue.Full:
            self._log.note(self.route.way.name, f"event {notice.seq}", f"left out, {_MOST_WAITING} are waiting")

    def finish(self, until: float) -> None:
        if self._thread is None:
            return
        with contextlib.suppress(queue.Full):
            self._waiting.put(None, timeout=max(0.0, until - time.monotonic()))
        self._thread.join(max(0.0, until - time.monotonic()))
        if self._thread.is_alive():
            self._give_up()

    def _give_up(self) -> None:
        assert self._thread is not None
        left = self._emptied()
        self._waiting.put_nowait(None)
        self.route.way.hurry()
        if left:
            self._log.note(self.route.way.name, f"{left} notices", "left out, the run was over")
        self._thread.join(_END_SEC)

    def _emptied(self) -> int:
        count = 0
        while True:
            try:
                count += self._waiting.get_nowait() is not None
            except queue.Empty:
                return count

    def _work(self) -> None:
        while (notice := self._waiting.get()) is not None:
            try:
                self.route.way.deliver(notice)
            except NotDelivered as problem:
                self._log.note(self.route.way.name, f"event {notice.seq} {notice.event}", str(problem))
            except Exception as problem:  # noqa: BLE001 - a background thread that must go on
                self._log.note(self.route.way.name, f"event {notice.seq} {notice.event}", repr(problem))


class Notices:
    """Give `on_event` to the journal as a listener, and await `close` when the run is over."""

    def __init__(self, routes: Sequence[Route], run_id: str, folder: Path, *, after_seq: int) -> None:
        self._run_id, self._after_seq = run_id, after_seq
        self._log = NoticeLog(folder / LOG)
        self._lines = [_Line(route, self._log) for route in routes]

    def on_event(self, recorded: Recorded) -> None:
        """Never raises, never waits. Events up to `after_seq` are not sent again."""
        try:
            lines = [line for line in self._lines if is_wanted(recorded.event, line.route.on)]
            if lines and recorded.seq > self._after_seq:
                self._after_seq = recorded.seq
                notice = notice_of(self._run_id, recorded)
                for line in lines:
                    line.send(notice)
        except Exception as problem:  # noqa: BLE001 - a failed notice must not stop the lead
            self._log.note("notices", f"event {recorded.seq}", repr(problem))

    async def close(self, seconds: float = DRAIN_SEC) -> None:
        """Sends the waiting notices within this time; then ends a send in progress."""
        until = time.monotonic() + seconds
        await asyncio.gather(*(asyncio.to_thread(line.finish, until) for line in self._lines))


def deliver_now(ways: Collection[Way], notice: Notice) -> list[tuple[str, str]]:
    """Each channel's name, and why it did not deliver; empty: it did."""
    outcomes = []
    for way in ways:
        try:
            way.deliver(notice)
        except NotDelivered as problem:
            outcomes.append((way.name, str(problem)))
        else:
            outcomes.append((way.name, ""))
    return outcomes
