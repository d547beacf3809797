"""progress.md: what every worker did, line by line, for people.

Each line ends with the number of its event. The store is the truth, and this file shows it: lines that a crash left out
or cut off are found by that number and written again, so no line is missing and none appears twice.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import re
from collections.abc import Iterator, Mapping, Sequence

from ganger.contracts.verify_profile import Profile
from ganger.core import events as ev
from ganger.core.model.task_state import TaskState
from ganger.core.state.apply_worker import worker_after
from ganger.core.vocabulary import WorkerVerdict
from ganger.engine.journal import Journal
from ganger.engine.resources.run_resources import one_line
from ganger.errors import EXIT_BLOCKED, EXIT_CHECKPOINT, EXIT_ESCALATED, GangerError
from ganger.local.run_folder import RunFolder

_MARK = re.compile(rb" <!-- (\d{1,18}) -->\n")
_TAIL_BYTES = 64 * 1024
_LONGEST = 600
_WITHIN_SEC = 0.1
_UNKNOWN = -1
# A person's decision, and a worker that saves its state, are not errors.
_NO_ERROR = frozenset({WorkerVerdict.ENDED, WorkerVerdict.REASSIGNED, WorkerVerdict.CONTEXT})
# What a worker says by its exit code; whether it is true is judged next.
_MEANT: Mapping[int | None, str] = {
    EXIT_CHECKPOINT: "it saved its state",
    EXIT_BLOCKED: "it is blocked",
    EXIT_ESCALATED: "it waits for a person",
}


class ProgressLog:
    """Only a lead writes it. `profiles` are the operator's checks, to name the command that failed."""

    def __init__(self, folder: RunFolder, journal: Journal, profiles: Mapping[str, Profile] | None = None) -> None:
        self.path = folder.path / "progress.md"
        self._journal, self._profiles = journal, profiles or {}
        self._lines: dict[int, str] = {}
        self._unnamed: list[ev.Recorded] = []
        self._flushing = asyncio.Lock()
        self._flush: asyncio.Task[None] | None = None
        self._size = _UNKNOWN
        self._written = 0
        self._names: dict[tuple[str, int], str] = {}
        self._looked = False
        self._later: asyncio.TimerHandle | None = None

    def on_event(self, recorded: ev.Recorded) -> None:
        """Lines of several commits are written together, a moment after them."""
        if not self._is_named(recorded.event):
            self._unnamed.append(recorded)
            self._flush_soon()
        elif line := self._line(recorded):
            self._lines[recorded.seq] = line
            self._flush_soon()

    async def catch_up(self) -> None:
        """Brings the file up to the store's end."""
        self._size = _UNKNOWN
        await self.flush()

    async def flush(self) -> None:
        """A full disk stops no work: missing lines come with a later line, or a later lead."""
        async with self._flushing:
            if self._later is not None:
                self._later.cancel()
                self._later = None
            try:
                with self._locked() as fd:
                    missing = await self._missing(fd) if os.fstat(fd).st_size != self._size else []
                    await self._learn_names([*missing, *self._unnamed])
                    lines = {r.seq: self._line(r) for r in [*missing, *self._unnamed]} | self._lines
                    self._append(fd, [line for seq, line in sorted(lines.items()) if seq > self._written])
                    self._written = max([self._written, *lines])
                    self._size = os.fstat(fd).st_size
            except (OSError, GangerError):
                self._size = _UNKNOWN
            self._lines, self._unnamed = {}, []

    def _flush_soon(self) -> None:
        if self._later is None:
            self._later = asyncio.get_running_loop().call_later(_WITHIN_SEC, self._begin_flush)

    def _begin_flush(self) -> None:
        self._later = None
        self._flush = asyncio.get_running_loop().create_task(self.flush())

    @contextlib.contextmanager
    def _locked(self) -> Iterator[int]:
        """A lead that was thought dead and returns must not write between another lead's check and its line.

        Nothing waits for this lock: a lead that is suspended in here would block the other.
        """
        fd = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield fd
        finally:
            os.close(fd)

    async def _missing(self, fd: int) -> list[ev.Recorded]:
        """The file is not as this lead left it: torn lines are removed, the events of missing ones are returned."""
        size = os.fstat(fd).st_size
        start = max(0, size - _TAIL_BYTES)
        data = os.pread(fd, size - start, start)
        last = self._last_mark(data)
        if last is None and start:
            start, data = 0, os.pread(fd, size, 0)
            last = self._last_mark(data)
        self._written = int(last[1]) if last is not None else 0
        # What people wrote below stays, as far as its lines are complete.
        whole = data[: data.find(b"\0")] if b"\0" in data else data
        keep = max(whole.rfind(b"\n") + 1, last.end() if last is not None else 0)
        if start + keep < size:
            os.ftruncate(fd, start + keep)
        return [recorded async for recorded in self._journal.store.read(self._written)]

    def _last_mark(self, data: bytes) -> re.Match[bytes] | None:
        """Numbers that no event has yet were not written by Ganger."""
        marks = [mark for mark in _MARK.finditer(data) if int(mark[1]) <= self._journal.state.log.last_seq]
        return marks[-1] if marks else None

    def _append(self, fd: int, lines: list[str]) -> None:
        data = "".join(lines).encode("utf-8", "replace")
        if not os.fstat(fd).st_size and data:
            data = b"# Progress\n\n" + data
        while data:
            data = data[os.write(fd, data) :]

    # --- lines ------------------------------------------------------------------------------------------------------

    def _line(self, recorded: ev.Recorded) -> str:
        event = recorded.event
        said, failed = self._words(event)
        if not said:
            return ""
        who = f"Worker {_safe(name, 120)}" if (name := self._worker(event)) else "Ganger"
        return f"[{recorded.at[:19]}Z] {who}{' ERROR' if failed else ''}: {_safe(said)} <!-- {recorded.seq} -->\n"

    def _words(self, event: ev.Event) -> tuple[str, bool]:
        """The sentence for an event, and whether it is an error."""
        match event:
            case ev.AttemptStarted(task=task, attempt=attempt, why=why):
                self._note_name(event)
                return f"started task {task}, attempt {attempt}: {why}", False
            case ev.AttemptExited(task=task, exit_code=code, signal=None, timed_out=False, error="") if code in _MEANT:
                return f"{task}: its agent ended; exit code: {code} ({_MEANT[code]})", False
            case ev.AttemptExited(task=task, exit_code=code, signal=signal, error=error) if code != 0 or signal:
                how = f"signal: {signal}" if signal else f"exit code: {code}"
                return f"{task}: its agent ended; {how}{f'; output: {error}' if error else ''}", True
            case ev.VerifyFinished(task=task, passed=passed):
                return (f"verification passed for {task}", False) if passed else (self._failed_step(event), True)
            case ev.ChangeTaken(task=task, commit=commit, base=base) if commit != base:
                return f"committed {task} as {commit[:12]}: {event.sentence().partition(': ')[2]}", False
            case ev.MessageLeft() | ev.CommandTaken() | ev.ContentsSeen():
                return "", False
            case ev.WorkerEnding(verdict=verdict):
                return event.sentence(), verdict not in _NO_ERROR
        return event.sentence(), isinstance(event, ev.AttemptFailed | ev.ResultRefused)

    def _failed_step(self, event: ev.VerifyFinished) -> str:
        bad = next((s for s in event.steps if s.outcome not in ("passed", "skipped") and s.tier != "quality"), None)
        if bad is None:
            return f"verification failed for {event.task}"
        command = self._command(event.task, bad.name)
        output = f"; output: {bad.first_error}" if bad.first_error else ""
        return f"verification failed for {event.task}; command: {command}; exit code: {bad.exit_code}{output}"

    def _command(self, task: str, step: str) -> str:
        spec = self._journal.state.specs.get(task)
        profile = self._profiles.get(spec.verify_profile) if spec is not None else None
        return next((s.cmd for s in (profile.steps if profile is not None else ()) if s.name == step), step)

    def _worker(self, event: ev.Event) -> str:
        """The name of the worker an event is about; empty if it is about none."""
        task, attempt = getattr(event, "task", ""), getattr(event, "attempt", 0)
        if not task or not attempt:
            return ""
        return self._names.get((task, attempt), f"attempt-{attempt}")

    def _is_named(self, event: ev.Event) -> bool:
        """Whether the name of the event's worker is known, if there is one; else it has to be looked for."""
        task, attempt = getattr(event, "task", ""), getattr(event, "attempt", 0)
        if isinstance(event, ev.AttemptStarted):
            self._note_name(event)
        if not task or not attempt or (task, attempt) in self._names:
            return True
        now = self._journal.state.tasks.get(task)
        if now is not None and now.attempts == attempt and now.worker is not None:
            self._names[task, attempt] = now.worker.name
        return self._looked or (task, attempt) in self._names

    async def _learn_names(self, events: Sequence[ev.Recorded]) -> None:
        """From the store, once, if one of these events is about a worker that an earlier lead started."""
        if all(self._is_named(recorded.event) for recorded in events):
            return
        self._looked = True
        async for recorded in self._journal.store.read(0):
            if isinstance(recorded.event, ev.AttemptStarted):
                self._note_name(recorded.event)

    def _note_name(self, event: ev.AttemptStarted) -> None:
        """A delivery that continues has no worker."""
        begun = worker_after(TaskState(), event, "").worker
        if begun is not None:
            self._names[event.task, event.attempt] = begun.name


def _safe(text: str, longest: int = _LONGEST) -> str:
    """Words of agents as plain text that can forge neither a line nor its end."""
    return one_line(text, longest).replace("<", "&lt;")
