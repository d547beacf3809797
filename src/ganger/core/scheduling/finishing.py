"""How a run ends when nothing more can be done: completed, aborted with a reason, or to be continued."""

from __future__ import annotations

from collections.abc import Iterable

from ganger.core.delivery.awaited import awaited_line, waits_for_people_alone
from ganger.core.model.records import RunState
from ganger.core.planning.repos import held_up
from ganger.core.scheduling.decisions import Finish
from ganger.core.scheduling.quota import question_about
from ganger.core.state.hosts import told, waiting
from ganger.core.vocabulary import BlockReason, RunStatus, TaskStatus
from ganger.errors import EXIT_BLOCKED, EXIT_ERROR, EXIT_ESCALATED, EXIT_INTERRUPTED, EXIT_OK

_MOST_BARS = 4


def finish(state: RunState, spent_out: str = "") -> Finish:
    open_tasks = [t for t in state.specs if state.tasks[t].status is not TaskStatus.DONE]
    if not open_tasks:
        return Finish(RunStatus.COMPLETED, None, "every task is DONE")
    if state.stopping or state.draining:
        return Finish(RunStatus.RUNNING, None, "stopped on request; the run can be continued")
    if state.heal_abandoned:
        reason = f"{state.heal_abandoned}; {abort_reason(state, open_tasks)}"
        return Finish(RunStatus.ABORTED, reason, "healing no longer helps")
    pending = [t for t in open_tasks if state.tasks[t].status is TaskStatus.PENDING]
    if spent_out:
        reason = f"the budget is used up ({spent_out}); {abort_reason(state, open_tasks)}"
        return Finish(RunStatus.ABORTED, reason, "the budget is used up", question=spent_out)
    barred = _barred(state, pending)
    if pending and state.scope.limited:
        more = f"; {barred}" if barred else ""
        return Finish(RunStatus.RUNNING, None, f"limit reached; {len(pending)} tasks are still to be run{more}")
    reason = "; ".join([*_shut_accounts(state), *_hosts(state), abort_reason(state, open_tasks)])
    if waits_for_people_alone(state):
        return Finish(RunStatus.ABORTED, f"{awaited_line(state)}; {reason}", "only reviews are awaited")
    if barred:
        reason = f"{barred}; {reason}"
    last = state.heal_rounds[-1] if state.heal_rounds else None
    if last is not None and any(state.tasks[t].healer_attempts for t in open_tasks):
        brought = last.problem or f"the last said {last.decision}: {last.root_cause}"
        reason = f"healing did not help in {len(state.heal_rounds)} rounds ({brought}); {reason}"
    return Finish(RunStatus.ABORTED, reason, "nothing more can run")


def _shut_accounts(state: RunState) -> list[str]:
    """Accounts that were refused, for which somebody is asked."""
    shut = {name: question_about(state, name) for name, until in state.accounts_shut.items() if not until}
    return [f"account {name} was refused, {q.id} asks how to go on" for name, q in shut.items() if q is not None]


def _hosts(state: RunState) -> list[str]:
    """Hosts that are away or refuse the token, and that is what is waited for."""
    return [told(host, trouble) for host, trouble in state.hosts.items() if waiting(state, host)]


def _barred(state: RunState, pending: list[str]) -> str:
    """Which repositories let nobody start any more, who holds them and what frees them."""
    told = held_up(state, pending)
    more = [f"and {len(told) - _MOST_BARS} more such waits"] if len(told) > _MOST_BARS else []
    return "; ".join([*told[:_MOST_BARS], *more])


def abort_reason(state: RunState, open_tasks: list[str]) -> str:
    """What is not done and why, short enough to read."""
    shown = [f"{t} {_shown_status(state, t)}" for t in open_tasks[:12]]
    more = [f"and {len(open_tasks) - 12} more"] if len(open_tasks) > 12 else []
    return f"{len(open_tasks)} of {len(state.specs)} tasks are not done: {', '.join(shown + more)}"


def _shown_status(state: RunState, task: str) -> str:
    now = state.tasks[task]
    if now.block_reason is BlockReason.DEPENDENCY_FAILED:
        return "BLOCKED (dependency_failed)"
    word = now.block_reason.value if now.block_reason else now.last_failure_signature
    return f"{now.status.value} ({word})" if word else now.status.value


def exit_code(state: RunState) -> int:
    """0 all that was asked for is DONE · 1 not all · 3 something is blocked · 4 a person must decide · 130 stopped ."""
    if state.status is RunStatus.COMPLETED:
        return EXIT_OK
    if state.stopping or state.draining:
        return EXIT_INTERRUPTED
    left = {state.tasks[name].status for name in _asked_for(state)} - {TaskStatus.DONE}
    if not left:
        return EXIT_OK
    if TaskStatus.ESCALATED in left or any(q.answer is None for q in state.questions.values()):
        return EXIT_ESCALATED
    return EXIT_BLOCKED if TaskStatus.BLOCKED in left else EXIT_ERROR


def _asked_for(state: RunState) -> Iterable[str]:
    if state.scope.only is not None:
        return state.scope.only
    return state.touched if state.scope.max_tasks is not None and state.touched else state.tasks
