"""A worker's place: its token, the lead's address, its desk; from the environment or from its claim."""

from __future__ import annotations

import os

from .errors import WorkerError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


class WorkerIdentity:
    """One worker's place. `claim` is its claim's file, if there is one."""

    __slots__ = ("claim", "desk", "report", "task_id", "token")

    def __init__(self, token: str, report: str, desk: str, task_id: str, claim: str = "") -> None:
        self.token, self.report, self.desk, self.task_id, self.claim = token, report, desk, task_id, claim


def worker_name(asked: str, environ: Mapping[str, str]) -> str:
    """The given name, else GANGER_WORKER, else one made of user, host, and session, terminal or program."""
    if asked or environ.get("GANGER_WORKER"):
        return asked or environ["GANGER_WORKER"]
    session = environ.get("GANGER_SESSION", "")[:8] or _terminal() or _caller()
    who = f"{environ.get('USER') or environ.get('LOGNAME') or os.getuid()}@{os.uname().nodename}"
    return f"{who}/{session}" if session else who


def _terminal() -> str:
    for stream in (0, 1, 2):
        try:
            return os.ttyname(stream).removeprefix("/dev/").replace("/", "-")
        except OSError:
            continue
    return ""


def _caller() -> str:
    # Looked up only for a worker without a name that asks for a task.
    from .lineage import caller

    return caller()


def find_post(worker: str, run: str, project: str, environ: Mapping[str, str]) -> WorkerIdentity:
    """The worker named on the command line, else in the environment, else the only open claim."""
    if not (worker or run) and environ.get("GANGER_TOKEN") and environ.get("GANGER_REPORT"):
        desk = environ.get("GANGER_DESK", "")
        return WorkerIdentity(
            environ["GANGER_TOKEN"], environ["GANGER_REPORT"], desk, environ.get("GANGER_TASK_ID", "")
        )
    # Most workers are started by Ganger and have everything in their environment.
    from .claims import claims
    from .find_run import runs

    try:
        found = [claim for folder in runs(project, run, environ) for claim in claims(folder)]
    except WorkerError as problem:
        message = f"this is not a worker: GANGER_TOKEN is not set, and {problem.message}"
        raise WorkerError(message, hint=problem.hint, code="NO_CLAIM") from problem
    asked = worker or environ.get("GANGER_WORKER", "")
    session = environ.get("GANGER_SESSION", "")
    mine = [claim for claim in found if claim["worker"] == asked or (not asked and _of(session, claim))]
    held = [claim for claim in mine if not claim["done"]] or mine[:1]
    names = sorted({str(claim["worker"]) for claim in held})
    if len(names) > 1 and not asked:
        own = worker_name("", environ)
        held = [claim for claim in held if claim["worker"] == own] or held
        names = [own] if own in names else names
    if len(names) > 1:
        raise WorkerError(
            f"{len(names)} workers hold tasks here: {', '.join(names[:10])}",
            hint=f"name one: --worker {names[0]}, or GANGER_WORKER in the environment",
            code="NO_CLAIM",
        )
    if not held:
        raise WorkerError(
            f"{asked or 'this session'} holds no task here, and GANGER_TOKEN is not set",
            hint="ask for one: ganger worker next",
            code="NO_CLAIM",
        )
    return _post(held[0])


def _of(session: str, claim: dict[str, Any]) -> bool:
    return not session or claim.get("session", "") in ("", session)


def _post(claim: dict[str, Any]) -> WorkerIdentity:
    address = claim.get("report") or claim.get("url") or ""
    return WorkerIdentity(claim["token"], address, claim.get("desk") or "", claim.get("task_id") or "", claim["file"])
