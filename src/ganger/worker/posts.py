"""Where a worker stands: its token, where the lead is reached, its desk; from the environment or from its claim."""

from __future__ import annotations

import os

from .trouble import Trouble

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


class Post:
    """One worker's place. `claim` is the file that says so, where there is one."""

    __slots__ = ("claim", "desk", "report", "task_id", "token")

    def __init__(self, token: str, report: str, desk: str, task_id: str, claim: str = "") -> None:
        self.token, self.report, self.desk, self.task_id, self.claim = token, report, desk, task_id, claim


def worker_name(asked: str, environ: Mapping[str, str]) -> str:
    """The given one, else GANGER_WORKER, else who this is and where, and in which session, terminal or program."""
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
    # Only who asks for a task without a name pays for this look.
    from .lineage import caller

    return caller()


def find_post(worker: str, run: str, project: str, environ: Mapping[str, str]) -> Post:
    """What the command line names counts first, then the environment, then the only open claim there is."""
    if not (worker or run) and environ.get("GANGER_TOKEN") and environ.get("GANGER_REPORT"):
        desk = environ.get("GANGER_DESK", "")
        return Post(environ["GANGER_TOKEN"], environ["GANGER_REPORT"], desk, environ.get("GANGER_TASK_ID", ""))
    # Most workers were started by Ganger and have all they need in their environment.
    from .claims import claims
    from .places import runs

    try:
        found = [claim for folder in runs(project, run, environ) for claim in claims(folder)]
    except Trouble as problem:
        message = f"this is no worker: there is no GANGER_TOKEN, and {problem.message}"
        raise Trouble(message, hint=problem.hint, code="NO_CLAIM") from problem
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
        raise Trouble(
            f"{len(names)} workers hold tasks here: {', '.join(names[:10])}",
            hint=f"say which one you are: --worker {names[0]}, or GANGER_WORKER in the environment",
            code="NO_CLAIM",
        )
    if not held:
        raise Trouble(
            f"{asked or 'this session'} holds no task here, and there is no GANGER_TOKEN",
            hint="ask for one: ganger worker next",
            code="NO_CLAIM",
        )
    return _post(held[0])


def _of(session: str, claim: dict[str, Any]) -> bool:
    return not session or claim.get("session", "") in ("", session)


def _post(claim: dict[str, Any]) -> Post:
    address = claim.get("report") or claim.get("url") or ""
    return Post(claim["token"], address, claim.get("desk") or "", claim.get("task_id") or "", claim["file"])
