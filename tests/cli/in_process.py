"""A command called in this process: its text, its code and its errors, without the start of an interpreter."""

from __future__ import annotations

import contextlib
import gc
import io
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from unittest import mock

from ganger.__main__ import _answered
from ganger.local.streams import SaidOutput

# They read a run or a project and say something. What leads a run, or waits for one, is a process of its own here too.
TEXT = frozenset({
    "agents", "approve", "config", "events", "explain", "inbox", "land", "ledger", "logs", "parse", "patches",
    "plan", "rework", "retry", "schema", "skip", "state", "status", "tasks", "validate", "why", "workers",
})  # fmt: skip
# These change how a process ends or what it waits for.
_NEEDS_A_PROCESS = frozenset({"--follow", "-f", "--debug", "--live", "--wait"})


def can_be_called(words: Sequence[str]) -> bool:
    return bool(words) and words[0] in TEXT and _NEEDS_A_PROCESS.isdisjoint(words)


def call(words: Sequence[str], cwd: Path, env: Mapping[str, str] | None = None) -> tuple[int, bytes, bytes]:
    """Exit code, standard output, standard error; as `python -m ganger` answers them."""
    out, err = io.BytesIO(), io.BytesIO()
    with (
        contextlib.chdir(cwd),
        mock.patch.dict(os.environ, {"COLUMNS": "80", "LINES": "24", **(env or {})}),
        _streams(out, err),
        _garbage_as_before(),
    ):
        try:
            code = _answered(list(words))
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 1
        sys.stdout.flush()
        sys.stderr.flush()
        return code, out.getvalue(), err.getvalue()


@contextlib.contextmanager
def _streams(out: io.BytesIO, err: io.BytesIO) -> Iterator[None]:
    with (
        open(os.devnull, encoding="utf-8") as nothing,
        mock.patch.object(sys, "stdin", nothing),
        mock.patch.object(sys, "stdout", SaidOutput(io.TextIOWrapper(out, "utf-8", errors="surrogateescape"))),
        mock.patch.object(sys, "stderr", io.TextIOWrapper(err, "utf-8", errors="backslashreplace")),
    ):
        yield


@contextlib.contextmanager
def _garbage_as_before() -> Iterator[None]:
    """A command line sets its own pace of collection, for it ends soon; the process of the tests does not."""
    pace = gc.get_threshold()
    try:
        yield
    finally:
        gc.set_threshold(*pace)
