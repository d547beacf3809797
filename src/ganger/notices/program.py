"""Notices to a program: its arguments filled in, the event on its standard input, no shell, a time limit."""

from __future__ import annotations

import contextlib
import os
import re
import select
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from ganger.core.verify.environment import operator_environment
from ganger.notices.notice import NotDelivered, Notice

_PLACEHOLDER = re.compile(r"\{(run|task|event|kind|text)\}")
_KEPT_BYTES = 2000
_LOOK_SEC = 0.05


class ProgramWay:
    def __init__(self, argv: Sequence[str], timeout_sec: float, root: Path, environ: Mapping[str, str]) -> None:
        self._argv, self._timeout_sec, self._root, self._environ = tuple(argv), timeout_sec, root, environ
        self._over = threading.Event()

    @property
    def name(self) -> str:
        return f"hook {self._argv[0]}"

    def hurry(self) -> None:
        self._over.set()

    def deliver(self, notice: Notice) -> None:
        argv = [filled(word, notice) for word in self._argv]
        with tempfile.TemporaryFile() as stdin:
            stdin.write(notice.json)
            stdin.seek(0)
            try:
                process = subprocess.Popen(
                    argv,
                    cwd=self._root,
                    env=self._environment(notice),
                    stdin=stdin,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.PIPE,
                    start_new_session=True,
                )
            except (OSError, ValueError) as error:
                raise NotDelivered(f"cannot be started: {getattr(error, 'strerror', None) or error}") from error
        self._wait(process)

    def _environment(self, notice: Notice) -> dict[str, str]:
        own = {"GANGER_RUN_ID": notice.run_id, "GANGER_TASK_ID": notice.task, "GANGER_EVENT": notice.event}
        given = operator_environment(self._environ, extra=own)
        # No program is searched in a folder that agents can write, such as the current one.
        places = [place for place in given.get("PATH", "").split(os.pathsep) if place.startswith("/")]
        return given | {"PATH": os.pathsep.join(places)}

    def _wait(self, process: subprocess.Popen[bytes]) -> None:
        """Reads stderr only while the program itself lives: a child of it may hold the stream open forever."""
        assert process.stderr is not None
        said, until, open_ = b"", time.monotonic() + self._timeout_sec, True
        with process.stderr as stream:
            os.set_blocking(stream.fileno(), False)
            while process.poll() is None and time.monotonic() < until and not self._over.is_set():
                open_, said = _heard(stream.fileno(), said) if open_ else (self._over.wait(_LOOK_SEC), said)
            if process.poll() is None:
                _end(process)
                raise NotDelivered("ended with the run" if self._over.is_set() else f"took {self._timeout_sec:g} s")
            _, said = _heard(stream.fileno(), said)
        if process.returncode:
            words = said.decode("utf-8", "replace").strip()
            raise NotDelivered(f"exit code {process.returncode}" + (f": {words}" if words else ""))


def filled(word: str, notice: Notice) -> str:
    """Fills in a placeholder. An agent's text never becomes an option of the program, nor another placeholder."""
    values = {
        "run": notice.run_id, "task": notice.task, "event": notice.event, "kind": notice.kind, "text": notice.text,
    }  # fmt: skip
    full = _PLACEHOLDER.sub(lambda found: values[found[1]], word)
    return f" {full}" if full.startswith("-") and not word.startswith("-") else full


def _heard(stream: int, before: bytes) -> tuple[bool, bytes]:
    if not select.select([stream], [], [], _LOOK_SEC)[0]:
        return True, before
    try:
        data = os.read(stream, 65536)
    except BlockingIOError:
        return True, before
    return bool(data), (before + data)[-_KEPT_BYTES:]


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kills the program and everything it started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
