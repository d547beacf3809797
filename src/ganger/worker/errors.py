"""Errors of `ganger worker`, with the next step and the exit code."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

REFUSED, BLOCKED, USAGE, INTERRUPTED = 1, 3, 64, 130


class WorkerError(Exception):
    """What happened, in one sentence; `hint` is the next step; `code` can be given to `ganger explain`.

    `earlier` are older requests that were refused meanwhile: verb and refusal.
    """

    def __init__(self, message: str, *, hint: str = "", code: str = "ERROR", exit_code: int = REFUSED) -> None:
        super().__init__(message)
        self.message, self.hint, self.code, self.exit_code = message, hint, code, exit_code
        self.earlier: list[tuple[str, WorkerError]] = []


class Misuse(WorkerError):
    """The command line is wrong."""

    def __init__(self, message: str, hint: str = "ganger worker --help") -> None:
        super().__init__(message, hint=hint, code="USAGE", exit_code=USAGE)


class Away(WorkerError):
    """No lead took the request. It may be sent again: if it arrives twice, it counts once."""

    def __init__(self, why: str, retry_sec: float = 0.0) -> None:
        super().__init__(
            f"no process leads the run at the moment ({why})",
            hint="try again later; ganger status shows where the run stands, ganger run continues it",
            code="LEAD_AWAY",
            exit_code=BLOCKED,
        )
        self.why, self.retry_sec = why, retry_sec
        self.later = f"when the lead is back ({why})"


class Busy(Away):
    """The lead cannot take the request now."""

    def __init__(self, why: str, retry_sec: float = 0.0) -> None:
        super().__init__(why, retry_sec)
        self.message, self.hint = f"the lead cannot take it now ({why})", "try again in a moment"
        self.code, self.later = "LEAD_BUSY", f"as soon as the lead can take it ({why})"


class NoRun(Away):
    """The named run does not exist; it may still be started."""

    def __init__(self, run: str, state: str) -> None:
        super().__init__(f"there is no run {run!r}")
        self.message, self.hint = f"no run {run!r} in {state}", "ganger status shows the newest"
        self.code, self.exit_code = "NOT_FOUND", REFUSED


def refusal(body: Mapping[str, Any], status: int) -> WorkerError:
    """The lead's refusal of a request."""
    return WorkerError(
        str(body.get("message") or f"the lead refused it with status {status}"),
        hint=str(body.get("hint") or ""),
        code=str(body.get("code") or "BAD_REQUEST"),
    )
