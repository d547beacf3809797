"""Which tasks can start now, and how a run ends when none can."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from ganger.core.delivery.awaited import awaited_line, waits_for_people_alone
from ganger.core.model.run_state import RunState
from ganger.core.money.budgets import Purse, reservation, run_refusal, task_refusal
from ganger.core.planning.repos import RepoLocks, held_up, is_guarded
from ganger.core.scheduling.decisions import Finish
from ganger.core.scheduling.quota import (
    NEVER as NEVER,
    account_of,
    has_room,
    next_place,
    paused_until,
    question_about,
    running_by_account,
    shut_until,
)
from ganger.core.state.hosts import told, waiting
from ganger.core.state.indexes import needed_files
from ganger.core.times import stamp
from ganger.core.vocabulary import BlockReason, MergeMode, Mode, RunStatus, TaskStatus
from ganger.errors import EXIT_BLOCKED, EXIT_ERROR, EXIT_ESCALATED, EXIT_INTERRUPTED, EXIT_OK


class For(StrEnum):
    """For which request tasks are chosen: an agent that starts now, a window, or a session that asks for a task."""

    START = "start"
    WINDOW = "window"
    PULL = "pull"


def in_scope(state: RunState, task: str) -> bool:
    return within(state, task, 0)


def within(state: RunState, task: str, about_to_start: int) -> bool:
    only, most = state.lead.scope.only, state.lead.scope.max_tasks
    if only is not None and task not in only:
        return False
    return most is None or task in state.lead.touched or len(state.lead.touched) + about_to_start < most


def due_at(state: RunState, name: str, now: float, whom: For) -> float:
    """The moment from which time no longer keeps it from starting; 0 if that is now, NEVER if time does not help.

    A session that asks for its tasks has its own account, and a window takes tasks as soon as their account is back:
    their starts are spread inside it.
    """
    until, role = state.tasks[name].not_before, state.specs[name].role
    if whom is not For.PULL and role not in state.lead.pull_roles:
        account = account_of(state, name)
        until = max(until, paused_until(state, account, now, name if whom is For.START else ""))
        until = max(until, shut_until(state, account, now))
    return until if until > now else 0.0


def _level_now(state: RunState) -> int | None:
    """The current level; None without levels."""
    if state.merging is not MergeMode.LEVEL:
        return None
    return min((level for level, left in state.index.level_open.items() if left > 0), default=0)


class Choice:
    """Takes tasks one by one as long as limits, budgets and accounts allow and no running task writes their files.

    `later` is the first moment at which a task may be taken that was left aside only for time.
    """

    def __init__(self, state: RunState, now: float, whom: For, roles: frozenset[str] | None = None) -> None:
        self.state, self.now, self._whom, self._roles = state, now, whom, roles
        self.later = NEVER
        self.gate = RepoLocks(state) if is_guarded(state) else None
        self.queueing = False
        self._new: set[str] = set()
        self._taken: set[str] = set()
        self._running = running_by_account(state)
        self._purse, self._wanted, self._at = Purse(), reservation(state), stamp(now)
        self._level = _level_now(state)
        self._direct = state.mode is Mode.DIRECT
        self._occupied = self._direct and bool(state.index.running)
        self._alone = self._direct and any(
            self._works_in_place(name, name in state.index.pulled) for name in state.index.running
        )

    def __call__(self, task: str) -> bool:
        if self.gate is not None and not self.queueing and self.gate.shuts(task):
            return False
        if not self._is_meant(task) or not self._has_place(task):
            return False
        due, account = due_at(self.state, task, self.now, self._whom), self._account(task)
        if due:
            self.later = min(self.later, due)
            return False
        if account is not None and not self._has_room(account):
            return False
        budget = self.state.money.budget
        if task_refusal(budget, self.state.tasks[task], self._wanted) or run_refusal(self.state, self._at, self._purse):
            return False
        # Last, because a task that only waits for a repository gets a place reserved in its chain.
        if self.gate is not None and not self.gate.admits(task, queueing=self.queueing):
            return False
        self._take(task, account)
        return True

    def _is_meant(self, task: str) -> bool:
        state, role = self.state, self.state.specs[task].role
        if task in state.index.answered:
            # No worker is needed: its answer is there, and is judged.
            return self._whom is not For.PULL and self._is_in_window(task)
        if self._whom is For.START and role in state.lead.pull_roles:
            return False
        return self._is_in_window(task) and (self._roles is None or role in self._roles)

    def _is_in_window(self, task: str) -> bool:
        return self._whom is For.WINDOW or self.state.windows.current is None or task in self.state.windows.open

    def _has_place(self, task: str) -> bool:
        """In the scope, at its level, with its files free, and with the project's folder free if it needs that."""
        state = self.state
        if not within(state, task, len(self._new)):
            return False
        if any(file in self._taken or file in state.index.busy_files for file in needed_files(state, task)):
            return False
        if self._occupied and (self._alone or self._works_in_place(task, self._whom is For.PULL)):
            return False
        return self._level is None or state.index.level_of[task] == self._level

    def _works_in_place(self, task: str, pulled: bool) -> bool:
        """Whether it edits the project's own folder, and so needs it for itself. Sessions do, unless their role only
        submits writes."""
        role = self.state.specs[task].role
        return role in self.state.files.in_place_roles or (pulled and role not in self.state.lead.pull_roles)

    def _account(self, task: str) -> str | None:
        """None for a session that someone else opened: it pays for itself."""
        pulled = self._whom is For.PULL or self.state.specs[task].role in self.state.lead.pull_roles
        return None if pulled else account_of(self.state, task)

    def _has_room(self, account: str) -> bool:
        if self._whom is For.START and (due := next_place(self.state, account, self._running[account], self.now)):
            self.later = min(self.later, due)
            return False
        return has_room(self.state, account, self._running)

    def account_free_at(self, account: str) -> float:
        """When it may be used; 0 if now, NEVER if one of its attempts must end first."""
        due = max(paused_until(self.state, account, self.now), shut_until(self.state, account, self.now))
        due = due or next_place(self.state, account, self._running[account], self.now)
        return due or (0.0 if has_room(self.state, account, self._running) else NEVER)

    def _take(self, task: str, account: str | None) -> None:
        if task not in self.state.lead.touched:
            self._new.add(task)
        self._taken.update(needed_files(self.state, task))
        if self.gate is not None:
            self.gate.take(task)
        if self._direct:
            self._occupied = True
            self._alone = self._alone or self._works_in_place(task, self._whom is For.PULL)
        if account is not None:
            self._running[account] += 1
        self._purse.add(self._wanted)


_MOST_BARS = 4


def finish(state: RunState, spent_out: str = "") -> Finish:
    open_tasks = [t for t in state.specs if state.tasks[t].status is not TaskStatus.DONE]
    if not open_tasks:
        return Finish(RunStatus.COMPLETED, None, "every task is DONE")
    if state.lead.stopping or state.lead.draining:
        return Finish(RunStatus.RUNNING, None, "stopped on request; the run can be continued")
    if state.healing.abandoned:
        reason = f"{state.healing.abandoned}; {abort_reason(state, open_tasks)}"
        return Finish(RunStatus.ABORTED, reason, "healing no longer helps")
    pending = [t for t in open_tasks if state.tasks[t].status is TaskStatus.PENDING]
    if spent_out:
        reason = f"the budget is used up ({spent_out}); {abort_reason(state, open_tasks)}"
        return Finish(RunStatus.ABORTED, reason, "the budget is used up", question=spent_out)
    barred = _barred(state, pending)
    if pending and state.lead.scope.limited:
        more = f"; {barred}" if barred else ""
        return Finish(RunStatus.RUNNING, None, f"limit reached; {len(pending)} tasks are still to be run{more}")
    reason = "; ".join([*_shut_accounts(state), *_hosts(state), abort_reason(state, open_tasks)])
    if waits_for_people_alone(state):
        return Finish(RunStatus.ABORTED, f"{awaited_line(state)}; {reason}", "only reviews are awaited")
    if barred:
        reason = f"{barred}; {reason}"
    last = state.healing.rounds[-1] if state.healing.rounds else None
    if last is not None and any(state.tasks[t].counters.healer_attempts for t in open_tasks):
        brought = last.problem or f"the last said {last.decision}: {last.root_cause}"
        reason = f"healing did not help in {len(state.healing.rounds)} rounds ({brought}); {reason}"
    return Finish(RunStatus.ABORTED, reason, "nothing more can run")


def _shut_accounts(state: RunState) -> list[str]:
    """Accounts that were refused and wait for an answer."""
    shut = {name: question_about(state, name) for name, until in state.quota.shut.items() if not until}
    return [f"account {name} was refused, {q.id} asks how to continue" for name, q in shut.items() if q is not None]


def _hosts(state: RunState) -> list[str]:
    """Hosts that are away or refuse the token, if tasks wait for them."""
    return [told(host, trouble) for host, trouble in state.hosts.items() if waiting(state, host)]


def _barred(state: RunState, pending: list[str]) -> str:
    """Which repositories admit no task any more, who holds them and what releases them."""
    told = held_up(state, pending)
    more = [f"and {len(told) - _MOST_BARS} more such waits"] if len(told) > _MOST_BARS else []
    return "; ".join([*told[:_MOST_BARS], *more])


def abort_reason(state: RunState, open_tasks: list[str]) -> str:
    """What is not done and why, in a few words."""
    shown = [f"{t} {_shown_status(state, t)}" for t in open_tasks[:12]]
    more = [f"and {len(open_tasks) - 12} more"] if len(open_tasks) > 12 else []
    return f"{len(open_tasks)} of {len(state.specs)} tasks are not done: {', '.join(shown + more)}"


def _shown_status(state: RunState, task: str) -> str:
    now = state.tasks[task]
    if now.block_reason is BlockReason.DEPENDENCY_FAILED:
        return "BLOCKED (dependency_failed)"
    word = now.block_reason.value if now.block_reason else now.failure.signature
    return f"{now.status.value} ({word})" if word else now.status.value


def exit_code(state: RunState) -> int:
    """0 all requested tasks are DONE · 1 not all · 3 something is blocked · 4 a person must decide · 130 stopped."""
    if state.status is RunStatus.COMPLETED:
        return EXIT_OK
    if state.lead.stopping or state.lead.draining:
        return EXIT_INTERRUPTED
    left = {state.tasks[name].status for name in _asked_for(state)} - {TaskStatus.DONE}
    if not left:
        return EXIT_OK
    if TaskStatus.ESCALATED in left or any(q.answer is None for q in state.inbox.questions.values()):
        return EXIT_ESCALATED
    return EXIT_BLOCKED if TaskStatus.BLOCKED in left else EXIT_ERROR


def _asked_for(state: RunState) -> Iterable[str]:
    if state.lead.scope.only is not None:
        return state.lead.scope.only
    return state.lead.touched if state.lead.scope.max_tasks is not None and state.lead.touched else state.tasks
