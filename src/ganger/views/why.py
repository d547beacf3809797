"""`ganger why`: one sentence on a task, with the evidence it rests on."""

from __future__ import annotations

from dataclasses import dataclass, field

from ganger.core.records import RunState, TaskState
from ganger.core.retries import allowed_attempts
from ganger.core.vocabulary import BlockReason, TaskStatus


@dataclass(frozen=True, slots=True)
class Why:
    task: str
    status: str
    sentence: str
    evidence: tuple[str, ...] = ()
    counters: dict[str, str] = field(default_factory=dict)
    next_step: str = ""

    def as_json(self) -> dict[str, object]:
        return {
            "task": self.task,
            "status": self.status,
            "sentence": self.sentence,
            "evidence": list(self.evidence),
            "counters": self.counters,
            "next_step": self.next_step,
        }


def why(state: RunState, name: str, *, led: bool = True) -> Why:
    """`led` says whether a living process leads the run; without one nothing that was running still is."""
    task = state.tasks[name]
    if task.status is TaskStatus.RUNNING and not led:
        sentence = (
            f"{name} was in attempt {task.attempts} when its lead ended without a word; it will be taken up again."
        )
        step = "ganger run"
    else:
        sentence, step = _REASONS[task.status](state, name, task)
    return Why(name, task.status.value, sentence, _evidence(state, name, task), _counters(state, name, task), step)


def _pending(state: RunState, name: str, task: TaskState) -> tuple[str, str]:
    waits = [f"{need} ({state.tasks[need].status.value})" for need in state.specs[name].depends_on
             if state.tasks[need].status is not TaskStatus.DONE]  # fmt: skip
    if waits:
        return f"{name} waits for {', '.join(waits[:5])}{_more(waits)}.", ""
    again = f" It will run again: {task.detail}." if task.attempts and task.detail else ""
    if state.finished and task.attempts:
        return f"{name} is to run again; attempt {task.attempts} did not settle it: {task.detail}.", "ganger run"
    if state.finished:
        return f"{name} was not reached before the run stopped.", "ganger run"
    if state.scope.only is not None and name not in state.scope.only:
        return f"{name} is left out by --only.{again}", ""
    clash = next((state.busy_files[f] for f in state.specs[name].writes if f in state.busy_files), None)
    if clash:
        return f"{name} waits because {clash} is writing a file it also writes.{again}", ""
    if state.window is not None and name not in state.window_open:
        window = f"window {state.window.index} ({len(state.window_open)} tasks open)"
        return f"{name} is ready and waits for {window} to close.{again}", ""
    ahead = sum(
        1
        for t in state.by_rank[: state.rank[name]]
        if state.tasks[t].status is TaskStatus.PENDING and not state.unmet[t]
    )
    place = f"{ahead} ready tasks are ahead of it" if ahead else "it is next"
    return (
        f"{name} is ready; {len(state.running)} of {state.policy.concurrency} places are taken and {place}.{again}",
        "",
    )


def _more(items: list[str]) -> str:
    return f" and {len(items) - 5} more" if len(items) > 5 else ""


def _running(_state: RunState, name: str, task: TaskState) -> tuple[str, str]:
    doing = {
        "agent": "its agent is working",
        "parse": "its answer is being read",
        "verify": "its change is being verified",
    }
    what = doing.get(task.step, "its change is being written")
    return f"{name} is in attempt {task.attempts} since {task.started_at}: {what}.", f"ganger logs {name} --follow"


def _done(_state: RunState, name: str, task: TaskState) -> tuple[str, str]:
    tries = "" if task.attempts == 1 else f" after {task.attempts} attempts"
    return f"{name} is DONE{tries}: {task.detail}.", ""


def _blocked(state: RunState, name: str, task: TaskState) -> tuple[str, str]:
    if task.block_reason is BlockReason.DEPENDENCY_FAILED:
        bad = [need for need in state.specs[name].depends_on if state.tasks[need].status is not TaskStatus.DONE]
        shown = ", ".join(f"{need} ({state.tasks[need].status.value})" for need in bad[:5])
        return (
            f"{name} is BLOCKED because its dependency {shown} did not end DONE.",
            f"ganger why {bad[0]}" if bad else "",
        )
    reason = task.block_reason.value if task.block_reason else "unknown"
    return f"{name} is BLOCKED ({reason}): {task.detail}.", f"ganger explain {reason}"


def _failed(_state: RunState, name: str, task: TaskState) -> tuple[str, str]:
    return f"{name} FAILED: {task.detail}.", f"ganger logs {name}" + (" --verify" if task.verify_steps else "")


def _escalated(_state: RunState, name: str, task: TaskState) -> tuple[str, str]:
    return f"{name} is ESCALATED and waits for a person: {task.detail}.", ""


_REASONS = {
    TaskStatus.PENDING: _pending,
    TaskStatus.RUNNING: _running,
    TaskStatus.DONE: _done,
    TaskStatus.BLOCKED: _blocked,
    TaskStatus.FAILED: _failed,
    TaskStatus.ESCALATED: _escalated,
}


def _evidence(_state: RunState, _name: str, task: TaskState) -> tuple[str, ...]:
    lines = []
    for item in task.history:
        code = "" if item.exit_code is None else f", exit {item.exit_code}"
        cause = f", {item.failure_signature}" if item.failure_signature else ""
        lines.append(f"{item.at} {item.phase.value} {item.attempt}{code}{cause}: {item.log_path}")
    for step in task.verify_steps:
        said = f": {step.first_error}" if step.first_error else ""
        lines.append(f"verify {step.name} ({step.tier}) {step.outcome}{said}")
    return tuple(lines[-12:])


def _counters(state: RunState, name: str, task: TaskState) -> dict[str, str]:
    policy = state.policy
    return {
        "worker_attempts": f"{task.worker_attempts} of {allowed_attempts(state.specs[name], policy)}",
        "format_retries": f"{task.format_retries} of {policy.format_retries}",
        "respawns": f"{task.respawns} of {policy.respawns}",
        "attempts_started": str(task.attempts),
    }
