"""`ganger worker next`: a session opened by the operator asks for a task and remembers what it got."""

from __future__ import annotations

import json
import os
import time

from . import output
from .claims import claim_file, claim_of, worker_name, write_private
from .errors import BLOCKED, Away, Busy, NoRun, WorkerError, refusal
from .find_run import RunAddress, is_led, is_over, runs
from .http import call
from .identity import WorkerIdentity
from .sending import deliver, named, waits

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from .arguments import Given

_LONGEST_WAIT_SEC = 30.0
# The lead answers once the task's workspace is made.
_MADE_WITHIN_SEC = 75.0
_AWAY_SEC = 2.0
# A lead that continues many tasks checks all of them before it accepts workers.
_OPENS_WITHIN_SEC, _OPENS_SEC = 30.0, 0.05
_FOR_EVER_SEC = 10 * 365 * 86_400.0


class Asker:
    """A worker that asks a run for a task."""

    def __init__(self, given: Given, environ: Mapping[str, str]) -> None:
        if environ.get("GANGER_TOKEN") and not environ.get("GANGER_WORKER") and not given.text("worker"):
            raise WorkerError(
                f"this worker was started for {environ.get('GANGER_TASK_ID') or 'a task'} and works only on that",
                hint="report it, then exit; in a session of your own give it a name: --worker NAME",
                code="NOT_ALLOWED",
            )
        self.worker = worker_name(given.text("worker"), environ)
        self.session = environ.get("GANGER_SESSION", "")
        self.roles = given.many("role")
        self._which = (given.text("project"), given.text("run"), environ)

    def door(self) -> RunAddress:
        """Looked up on each call: a run, or a newer one, may begin during the wait."""
        found = runs(*self._which)
        if not found and self._which[2].get("GANGER_TOKEN"):
            raise WorkerError(
                "no run is visible from here: a worker that Ganger started works only on its own task",
                hint="report it, then exit; ask for tasks outside its sandbox",
                code="NOT_ALLOWED",
            )
        if not found:
            raise Away("there is no run yet")
        return RunAddress(found[0])

    def over(self) -> str:
        """The name of a run that has ended, so that no lead can say so; empty if it may go on."""
        try:
            found = runs(*self._which)
        except NoRun:
            return ""
        return os.path.basename(found[0]) if found and is_over(found[0]) else ""

    def begins(self) -> bool:
        """Whether a lead has started but does not accept workers yet, which takes only moments."""
        try:
            found = runs(*self._which)
        except NoRun:
            return False
        return bool(found) and is_led(found[0])

    def ask(self, door: RunAddress, request_id: str, wait_sec: float) -> dict[str, Any]:
        """The lead's reply. Raises Away, or Trouble for a refusal."""
        self._hand_over(door)
        body: dict[str, Any] = {"id": request_id, "worker": self.worker, "wait_sec": round(wait_sec, 3)}
        if self.roles:
            body["roles"] = self.roles
        if self.session:
            body["session"] = self.session
        answer = call(door.address, door.token, "/v1/next", body, wait_sec + _MADE_WITHIN_SEC)
        if not answer.taken:
            raise refusal(answer.body, answer.status)
        return answer.body

    def _hand_over(self, door: RunAddress) -> None:
        """Sends unsent messages on the last task first; otherwise the lead hands out the same task again."""
        held = claim_of(door.folder, self.worker)
        if held is None:
            return
        post = WorkerIdentity(
            held["token"], door.address, str(held.get("desk") or ""), str(held.get("task_id") or ""), held["file"]
        )
        if waits(post):
            output.refusals(deliver(post))

    def remember(self, door: RunAddress, reply: dict[str, Any]) -> dict[str, Any]:
        """Stores the claim for later calls of this worker."""
        task = reply["task"]
        claim = {
            "worker": reply.get("worker") or self.worker,
            "session": self.session,
            "run_id": reply.get("run_id") or os.path.basename(door.folder),
            "task_id": task.get("id", ""),
            "attempt": task.get("attempt", 0),
            "role": task.get("role", ""),
            "workspace": task.get("workspace", ""),
            "token": reply.get("token", ""),
            "report": reply.get("report", ""),
            "url": reply.get("url", ""),
            "desk": reply.get("desk", ""),
            "heartbeat_sec": reply.get("heartbeat_sec", 15),
            "reported": False,
            "done": False,
        }
        file = claim_file(door.folder, self.worker)
        prompt_file = file[: -len(".json")] + ".prompt.md"
        try:
            write_private(prompt_file, str(task.get("prompt", "")))
            write_private(file, json.dumps(claim, indent=1))
        except OSError as error:
            raise WorkerError(
                f"{file} cannot be written ({error.strerror}), so later calls would not know which task they hold",
                hint="fix that and ask again: you get the same task",
                code="NOT_WRITABLE",
            ) from error
        return {**claim, "prompt_file": prompt_file}


def next_task(given: Given, environ: Mapping[str, str]) -> int:
    asker = Asker(given, environ)
    door, reply = _got(asker, given)
    if door is None or not reply.get("task"):
        if given.flag("json"):
            output.document("worker_next", **{"task": None, **reply})
        else:
            output.talk(f"no task: {reply.get('why') or ('the run is over' if reply.get('over') else 'none is ready')}")
        return BLOCKED
    claim = asker.remember(door, reply)
    if reply.get("again"):
        since = f"{claim['worker']} holds this task since {reply.get('since')}"
        output.talk(f"{since}; another session needs a name of its own: --worker NAME")
    if given.flag("json"):
        output.document("worker_next", **{**reply, "prompt_file": claim["prompt_file"]})
    elif given.flag("shell"):
        output.out(exports(claim))
    else:
        output.out(page(claim, reply))
    return 0


def _got(asker: Asker, given: Given) -> tuple[RunAddress | None, dict[str, Any]]:
    """Asks once, or until there is a task. A request whose answer was lost is sent again with the same id."""
    seconds = given.values.get("wait")
    waiting = given.flag("wait")
    until = time.monotonic() + ((_FOR_EVER_SEC if seconds is None else seconds) if waiting else 0.0)
    request_id, told = named({})["id"], False
    opens_by = time.monotonic() + _OPENS_WITHIN_SEC
    while True:
        left = max(0.0, until - time.monotonic())
        try:
            door = asker.door()
            reply = asker.ask(door, request_id, min(left, _LONGEST_WAIT_SEC))
        except Away as away:
            if not isinstance(away, Busy) and asker.begins():
                if time.monotonic() < opens_by:
                    time.sleep(_OPENS_SEC)
                    continue
                away = Busy("it does not accept workers yet", away.retry_sec)
            ended = "" if isinstance(away, Busy) else asker.over()
            if ended:
                why = f"run {ended} is over; to wait for another run, name it: --run ID"
                return None, {"ok": True, "task": None, "over": True, "why": why}
            if time.monotonic() >= until:
                raise away from None
            if not told:
                output.talk(f"{away.message}; waiting")
            told = True
            _pause(away.retry_sec or _AWAY_SEC, until)
            continue
        if reply.get("task") or reply.get("over") or time.monotonic() >= until:
            return door, reply
        # The id belongs to this answer; the next request gets a new one.
        request_id, told = named({})["id"], False
        _pause(_retry_sec(reply), until)


def _retry_sec(reply: dict[str, Any]) -> float:
    said = reply.get("retry_sec")
    return float(said) if isinstance(said, (int, float)) else 1.0


def _pause(seconds: float, until: float) -> None:
    time.sleep(max(0.05, min(seconds, _LONGEST_WAIT_SEC, until - time.monotonic())))


def exports(claim: dict[str, Any]) -> str:
    """Lines for eval: the environment of a worker that Ganger starts, and the path of its prompt."""
    names = {
        "GANGER_RUN_ID": "run_id",
        "GANGER_TASK_ID": "task_id",
        "GANGER_ATTEMPT": "attempt",
        "GANGER_ROLE": "role",
        "GANGER_WORKSPACE": "workspace",
        "GANGER_REPORT": "report",
        "GANGER_TOKEN": "token",
        "GANGER_DESK": "desk",
        "GANGER_WORKER": "worker",
        "GANGER_PROMPT_FILE": "prompt_file",
    }
    values = {name: claim[key] or (claim["url"] if key == "report" else "") for name, key in names.items()}
    return "\n".join(f"export {name}={_quoted(str(value))}" for name, value in values.items())


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\"'\"'") + "'"


def page(claim: dict[str, Any], reply: dict[str, Any]) -> str:
    """The prompt, and how to continue."""
    task = reply["task"]
    limit = f", within {task['timeout_sec']:.0f} seconds" if task.get("timeout_sec") else ""
    sections = ", ".join(str(name) for name in task.get("sections") or ())
    lines = [
        f"Task {task.get('id')}, attempt {task.get('attempt')}, role {task.get('role')}{limit}.",
        f"Work in {task.get('workspace')} and nowhere else.",
        "",
        str(task.get("prompt", "")).rstrip(),
        "",
        "As this worker, continue with:",
        f"  cd {_quoted(str(task.get('workspace') or '.'))}",
        f"  ganger worker heartbeat --step TEXT     about every {claim['heartbeat_sec']:.0f} seconds, to keep the task",
        "  ganger worker messages                  messages for you",
        "  ganger worker escalate CATEGORY TEXT    when only the operator can decide",
        "  ganger worker report result.json        the task result; or --status DONE --summary TEXT",
        "  ganger worker done                      once the report is accepted",
    ]
    if sections:
        lines.append(f"  ganger worker brief SECTION             one of: {sections}")
    return "\n".join(lines)
