"""A worker's identity: its token, the lead's address, its desk."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


class WorkerIdentity:
    """One worker's place. `claim` is its claim's file, if there is one."""

    __slots__ = ("claim", "desk", "report", "task_id", "token")

    def __init__(self, token: str, report: str, desk: str, task_id: str, claim: str = "") -> None:
        self.token, self.report, self.desk, self.task_id, self.claim = token, report, desk, task_id, claim


def in_environment(worker: str, run: str, environ: Mapping[str, str]) -> WorkerIdentity | None:
    """The identity that Ganger put into the environment; None if there is none, or a worker or run is named."""
    token, report = environ.get("GANGER_TOKEN"), environ.get("GANGER_REPORT")
    if worker or run or not token or not report:
        return None
    return WorkerIdentity(token, report, environ.get("GANGER_DESK", ""), environ.get("GANGER_TASK_ID", ""))
