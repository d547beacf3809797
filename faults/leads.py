"""Leads to be disturbed: `ganger run` in a forked process, watched or struck by strace from its first own call on.

Forking after the imports leaves out thousands of calls that touch nothing; what runs is the command line's `main`.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from faults import moments
from faults.scenario import Place
from faults.strace import Point, Strike, points_in, wait_to_be_watched, watched
from ganger.errors import EXIT_BLOCKED, EXIT_ESCALATED
from ganger.stores.on_thread import OnThread

LIMIT_SEC = 120.0
_MOST_ANSWERS = 3
RUN = ("run", "--json")


@dataclass(frozen=True, slots=True)
class Ended:
    """How a lead ended (a negative code is a signal), what it had shown, and what it said to people."""

    code: int
    shown: tuple[tuple[int, str], ...]
    said: str
    error: str = ""

    @property
    def killed(self) -> bool:
        return self.code == -signal.SIGKILL


class Lead:
    """One forked lead."""

    def __init__(
        self,
        place: Place,
        *,
        words: Sequence[str] = RUN,
        before: Callable[[], None] | None = None,
        held: bool = False,
    ) -> None:
        number = len(list(place.base.glob("shown.*")))
        self._out, self._err = place.base / f"shown.{number}", place.base / f"said.{number}"
        for path in (self._out, self._err):
            path.touch()
        sys.stdout.flush()
        sys.stderr.flush()
        self.pid = os.fork()
        if self.pid == 0:
            os.environ["XDG_STATE_HOME"] = str(place.state_home)
            self._become(place.root, words, before, held=held)
        self._code: int | None = None

    def poll(self) -> int | None:
        if self._code is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self._code = os.waitstatus_to_exitcode(status)
        return self._code

    def kill(self) -> None:
        if self.poll() is None:
            os.kill(self.pid, signal.SIGKILL)

    def wait(self, limit_sec: float = LIMIT_SEC) -> Ended:
        end = time.monotonic() + limit_sec
        pause = 0.001
        while self.poll() is None and time.monotonic() < end:
            time.sleep(pause)
            pause = min(pause * 1.5, 0.02)
        late = self.poll() is None
        if late:
            self.kill()
            _, status = os.waitpid(self.pid, 0)
            self._code = os.waitstatus_to_exitcode(status)
        said = self._err.read_text(errors="replace") + (f"\nno end within {limit_sec:g} s" if late else "")
        assert self._code is not None
        lines = list(_whole_lines(self._out))
        shown = tuple((int(line["seq"]), str(line["type"])) for line in lines if "seq" in line)
        errors = [json.dumps(line["error"]) for line in lines if "error" in line and "seq" not in line]
        return Ended(1 if late else self._code, shown, said, "".join(errors))

    def _become(self, root: Path, words: Sequence[str], before: Callable[[], None] | None, *, held: bool) -> None:
        """Never returns: from here on the process is `ganger` in the project's folder."""
        code = 70
        try:
            for number, path in ((1, self._out), (2, self._err)):
                fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
                os.dup2(fd, number)
                os.close(fd)
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            os.setsid()
            os.chdir(root)
            sys.argv = ["ganger", *words]
            if before is not None:
                before()
            if held:
                # strace counts the calls of one thread: those of the store are to be among them.
                setattr(OnThread, "_in_turn", _at_once)  # noqa: B010
                wait_to_be_watched()
            from ganger.__main__ import main

            code = main()
        except BaseException:  # noqa: BLE001 - a forked copy must never run on as its parent
            traceback.print_exc()
        finally:
            with contextlib.suppress(OSError):
                sys.stdout.flush()
                sys.stderr.flush()
            os._exit(code)


def _at_once(_store: OnThread, work: Callable[[], Any]) -> asyncio.Future[Any]:
    """A store's work done by the event loop itself."""
    answer = asyncio.get_running_loop().create_future()
    try:
        answer.set_result(work())
    except BaseException as problem:  # noqa: BLE001 - whatever it is, the caller meets it
        answer.set_exception(problem)
    return answer


def run(place: Place, *, strike: Strike | None = None, before: Callable[[], None] | None = None) -> Ended:
    """A lead from its start to its end, struck on the way if asked to."""
    if strike is None:
        return Lead(place, before=before).wait()
    if moments.is_moment(strike.point):
        return Lead(place, before=moments.arrange(strike, before)).wait()
    lead = Lead(place, before=before, held=True)
    with watched(lead.pid, [*strike.options(), "-o", "/dev/null"]):
        return lead.wait()


def run_on(place: Place, *, before: Callable[[], None] | None = None, answer: str = "do as you like") -> Ended:
    """Undisturbed to the very end: a question is answered, then the run goes on."""
    ended = run(place, before=before)
    while ended.code == EXIT_ESCALATED and (told := answered(place, answer, before=before)) is not None:
        after = run(place, before=before)
        ended = Ended(after.code, ended.shown + after.shown, told.said + after.said, after.error)
    return ended


def answered(place: Place, answer: str, *, before: Callable[[], None] | None = None) -> Ended | None:
    """A person answers the next question, three at the most; None when nothing more is answered."""
    note = place.base / "answered"
    number = len(note.read_text().split()) + 1 if note.exists() else 1
    if number > _MOST_ANSWERS:
        return None
    told = Lead(place, words=("answer", f"q-{number}", answer), before=before).wait()
    with note.open("a") as file:
        file.write(f"q-{number}\n")
    return told


def has_answered(place: Place) -> bool:
    return (place.base / "answered").exists()


def trace(place: Place, *, before: Callable[[], None] | None = None) -> list[Point]:
    """An undisturbed lead's calls from its first touch of the store on, in order."""
    record = place.base / "trace"
    lead = Lead(place, before=before, held=True)
    with watched(lead.pid, ["-y", "-s", "200", "-o", str(record)]):
        ended = lead.wait()
    _require_whole(ended)
    return points_in(record, "ganger.db")


def trace_moments(place: Place, *, before: Callable[[], None] | None = None) -> tuple[list[Point], list[Point]]:
    """What an undisturbed lead's threads do, and what its git processes do."""
    into = place.base / "moments"
    _require_whole(Lead(place, before=moments.record(into, before)).wait())
    return moments.recorded_in(into), moments.children_in(into)


def _require_whole(ended: Ended) -> None:
    if ended.code not in (0, EXIT_BLOCKED, EXIT_ESCALATED):
        raise RuntimeError(f"the undisturbed run ended with {ended.code}: {ended.error} {ended.said}")


def _whole_lines(path: Path) -> Iterator[dict[str, Any]]:
    """What a reader of the lead's output can have read: lines that came out whole."""
    for line in path.read_bytes().split(b"\n")[:-1]:
        with contextlib.suppress(ValueError):
            data = json.loads(line)
            if isinstance(data, dict):
                yield data


def import_everything() -> None:
    """What a lead imports on its way, so that its forks need not."""

    with contextlib.suppress(ImportError):
        import importlib.resources._itertools  # type: ignore[import-not-found]  # noqa: F401
