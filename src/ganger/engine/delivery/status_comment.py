"""Ganger's status comment on a change request: one comment, rewritten when something changes, that names the task."""

from __future__ import annotations

import hashlib

from ganger.core import events as ev
from ganger.core.control.reviews import WANTED
from ganger.core.delivery.expected_ci import NOT_EXPECTED
from ganger.core.delivery.public_text import quoted, unmarked
from ganger.core.model.run_state import RunState
from ganger.engine.delivery.context import DeliveryContext
from ganger.engine.resources.run_resources import one_line
from ganger.ports.forge import Request

_SHORT = 12
_MOST_SAID = 500
_MARK_DIGITS = 16


class StatusComment:
    """A death between writing it and recording that still leaves one comment: it is found again by its mark."""

    def __init__(self, at: DeliveryContext) -> None:
        self.at = at

    async def show(self) -> None:
        """Writes the task's current state. Sends no request where that is already written, or the forge takes no
        comments."""
        case, now, forge = self.at.case, self.at.now, self.at.outlet.forge
        request = now.request
        if (
            self.at.needs_no_request
            or not self.at.outlet.remarks
            or forge is None
            or request is None
            or not request.number
        ):
            return
        mark = _mark(case.state.run_id, case.task)
        words = f"{self.at.outlet.mask(remark_text(case.state, case.task))[0]}\n\n{mark}"
        digest = hashlib.sha256(words.encode()).hexdigest()[:_MARK_DIGITS]
        if request.mark == digest or (request.mark and not request.remark):
            return
        there = Request(request.number, request.url, request.branch, request.into, head=now.commit)
        url = await self.at.sending.patiently(
            case.task, lambda: self.at.unless_stopped(forge.remark(there, mark, words)), self.at.rules.ci_sec
        )
        await case.record(ev.Remarked(case.task, case.number, request.number, url, digest))


def _mark(run: str, task: str) -> str:
    digest = hashlib.sha256(f"{run}\0{task}".encode()).hexdigest()[:_MARK_DIGITS]
    return f"<!-- ganger: {digest} -->"


def remark_text(state: RunState, name: str) -> str:
    task, spec = state.tasks[name], state.specs[name]
    now = task.delivery
    assert now is not None
    task_name, run = quoted(one_line(name, 200)), quoted(one_line(state.run_id, 200))
    merged = now.request is not None and now.request.merged
    # What the target made of it is told in its own line.
    commit = now.request.tested if now.request is not None and merged and now.request.tested else now.commit
    lines = [
        f"Task {task_name} of run {run}, commit {commit[:_SHORT]}:",
        "",
        f"- verified by {quoted(one_line(spec.verify_profile, 200))} before the push: "
        + (", ".join(f"{unmarked(step.name)} {step.outcome}" for step in task.verification.steps) or "passed"),
    ]
    if now.waived == now.commit and now.waived_cause == NOT_EXPECTED:
        lines.append(f"- CI: not expected by setting ({unmarked(one_line(now.waived_why, _MOST_SAID))})")
    elif now.finding:
        jobs = f", {now.passed} of {now.total} required jobs passed" if now.total else ""
        runs = [run.url for run in now.runs if run.url and run.sha == now.commit]
        lines.append(f"- CI: {now.finding}{jobs}" + (f" ({runs[-1]})" if runs else ""))
    lines += _review(state, name)
    if now.heeded:
        times = "once" if len(now.heeded) == 1 else f"{len(now.heeded)} times"
        lines.append(f"- sent back here {times} and done again")
    if merged:
        lines.append(f"- merged as {merged[:_SHORT]}")
    return "\n".join(lines)


def _review(state: RunState, name: str) -> list[str]:
    now = state.tasks[name].delivery
    assert now is not None
    request = now.request
    tested = request.tested if request is not None and request.merged else now.commit
    if now.reviewed not in (now.commit, tested) or not now.review:
        return []
    if now.review == WANTED:
        return ["- review: awaited. Approve this request, or ask for changes: your words go to the next worker."]
    same = {now.reviewed, *(request.alike if request is not None else ())}
    said = [fact.what for fact in now.facts if fact.commit in same and fact.what.startswith(now.review)]
    # It was given where this comment stands.
    here = f" on the forge ({now.review_url})"
    return [f"- review: {unmarked(one_line(said[-1].replace(here, ''), _MOST_SAID))}"] if said else []
