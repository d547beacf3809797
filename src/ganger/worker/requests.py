"""The body of each verb's request, made from the command line."""

from __future__ import annotations

import json
import sys

from .errors import Misuse, WorkerError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .arguments import Given
    from .identity import WorkerIdentity

    Body = dict[str, Any]

_LONGEST = 8 * 1024 * 1024
_STATUSES = ("DONE", "BLOCKED", "FAILED")


def _some(**fields: Any) -> Body:
    """Only the given fields."""
    return {name: value for name, value in fields.items() if value not in (None, "", [], ())}


def heartbeat(given: Given, _post: WorkerIdentity) -> Body:
    values = given.values
    return _some(
        step=given.text("step"),
        percent=values.get("percent"),
        note=given.text("note"),
        context_pct=values.get("context"),
    )


def progress(given: Given, post: WorkerIdentity) -> Body:
    parts = {name: given.values.get(name) for name in ("completed", "total")}
    return {
        **heartbeat(given, post),
        **_some(
            tiers=[_tier(text) for text in given.many("tier")],
            **{f"tasks_{name}": int(value) for name, value in parts.items() if value is not None},
        ),
    }


def _tier(text: str) -> Body:
    number, _, rest = text.partition(":")
    parts = rest.split(":")
    retry = parts.pop() if len(parts) > 2 and parts[-1].isdigit() else "0"
    outcome = parts.pop() if len(parts) > 1 else ""
    if number not in tuple("123456789") or outcome not in ("pass", "fail"):
        raise Misuse(
            f"progress: --tier is NUMBER:NAME:pass or NUMBER:NAME:fail, not {text!r}",
            hint="ganger worker progress --tier 1:syntax:pass",
        )
    return {"tier": int(number), "name": ":".join(parts), "success": outcome == "pass", "retry": int(retry)}


def milestone(given: Given, _post: WorkerIdentity) -> Body:
    return _some(name=given.place(0), note=given.text("note"))


def escalate(given: Given, _post: WorkerIdentity) -> Body:
    category = given.place(0).strip().lower().replace("-", "_").replace(" ", "_")
    if bool(given.text("default")) != ("deadline" in given.values):
        raise Misuse("escalate: --default and --deadline go together", hint="ganger worker escalate --help")
    return _some(
        category=category,
        message=given.place(1),
        context=given.text("context"),
        options=given.many("option"),
        default=given.text("default"),
        deadline_sec=given.values.get("deadline"),
    )


def checkpoint(given: Given, _post: WorkerIdentity) -> Body:
    if given.place(0) not in ("", "-"):
        raise Misuse("checkpoint: the only file is -, which is stdin", hint="ganger worker checkpoint - < FILE")
    read = _object(_content("-"), "the checkpoint") if given.place(0) else {}
    if not read and not any(name in given.values for name in _STANDING):
        raise Misuse("checkpoint: say at least how far the work is", hint="ganger worker checkpoint --summary TEXT")
    said = {name: given.text(option) for name, option in _TEXTS.items()}
    said_many = {name: given.many(option) for name, option in _LISTS.items()}
    values = given.values
    more = _some(percent=values.get("percent"), context_pct=values.get("context"), leave=values.get("leave"))
    return {**read, **_some(**said, **said_many), **more}


_TEXTS = {"summary": "summary", "last_action": "last-action", "next_action": "next-action"}
_LISTS = {
    "done": "done",
    "remaining": "remaining",
    "files": "file",
    "blockers": "blocker",
    "decisions": "decision",
    "commits": "commit",
}
_STANDING = (*_TEXTS.values(), *_LISTS.values(), "percent", "context")


def report(given: Given, post: WorkerIdentity) -> Body:
    made = _made(given)
    if bool(made) == bool(given.place(0)):
        raise Misuse(
            "report: give either a file or --status and --summary",
            hint="ganger worker report --status DONE --summary TEXT",
        )
    result = made or _object(_content(given.place(0)), "the result")
    if post.task_id:
        result = {"task_id": post.task_id, **result}
    return {"result": result}


def _made(given: Given) -> Body:
    status, summary = given.text("status").upper(), given.text("summary")
    if not status and not summary:
        return {}
    if status not in _STATUSES or not summary:
        raise Misuse(f"report: --status is one of {', '.join(_STATUSES)}, and --summary must not be empty")
    return {
        "contract_version": "2.0",
        "status": status,
        "summary": summary,
        **_some(failure_class=given.text("failure-class"), changed_files=given.many("changed")),
    }


def done(_given: Given, _post: WorkerIdentity) -> Body:
    return {}


def _content(file: str) -> bytes:
    try:
        if file == "-":
            data = sys.stdin.buffer.read(_LONGEST + 1)
        else:
            with open(file, "rb") as stream:
                data = stream.read(_LONGEST + 1)
    except OSError as error:
        raise WorkerError(f"{file}: cannot be read ({error.strerror})", hint="name a file", code="NOT_FOUND") from error
    if len(data) > _LONGEST:
        raise WorkerError(
            f"{file}: more than {_LONGEST} bytes",
            hint="leave large files in the workspace instead of in writes",
            code="REQUEST_TOO_LARGE",
        )
    return data


def _object(data: bytes, what: str) -> Body:
    try:
        found = json.loads(data, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise WorkerError(
            f"{what} is not JSON: {error}", hint="fix it and send it again", code="BAD_REQUEST"
        ) from error
    if not isinstance(found, dict):
        raise WorkerError(f"{what} is not a JSON object", hint="fix it and send it again", code="BAD_REQUEST")
    return found


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is not a number")


BODIES: dict[str, Callable[[Given, WorkerIdentity], Body]] = {
    "heartbeat": heartbeat,
    "progress": progress,
    "milestone": milestone,
    "escalate": escalate,
    "checkpoint": checkpoint,
    "report": report,
    "done": done,
}
