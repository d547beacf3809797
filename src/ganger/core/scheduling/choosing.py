"""Which tasks can be taken now: limits, budgets, accounts, files, levels, repositories, asked of one after another."""

from __future__ import annotations

from enum import StrEnum

from ganger.core.model.records import RunState
from ganger.core.money.budgets import Purse, reservation, run_refusal, task_refusal
from ganger.core.planning.repos import Gate, is_guarded
from ganger.core.scheduling.quota import (
    NEVER as NEVER,
    account_of,
    has_room,
    next_place,
    paused_until,
    running_by_account,
    shut_until,
)
from ganger.core.state.indexes import files_of
from ganger.core.times import stamp


class For(StrEnum):
    """For whom tasks are chosen: an agent that is started now, a window, or a session that asks for one."""

    START = "start"
    WINDOW = "window"
    PULL = "pull"


def in_scope(state: RunState, task: str) -> bool:
    return within(state, task, 0)


def within(state: RunState, task: str, about_to_start: int) -> bool:
    only, most = state.scope.only, state.scope.max_tasks
    if only is not None and task not in only:
        return False
    return most is None or task in state.touched or len(state.touched) + about_to_start < most


def due_at(state: RunState, name: str, now: float, whom: For) -> float:
    """When nothing but other things than time holds it; 0 when that is now, NEVER where time alone does not help.

    A session that asks for its tasks has an account of its own, and a window takes tasks as soon as their account is
    back: their starts are spread inside it.
    """
    until, role = state.tasks[name].not_before, state.specs[name].role
    if whom is not For.PULL and role not in state.pull_roles:
        account = account_of(state, name)
        until = max(until, paused_until(state, account, now, name if whom is For.START else ""))
        until = max(until, shut_until(state, account, now))
    return until if until > now else 0.0


def _level_now(state: RunState) -> int | None:
    """The level that is being worked on; None where there are no levels."""
    if state.merging != "level":
        return None
    return min((level for level, left in state.level_open.items() if left > 0), default=0)


class Choice:
    """Takes tasks one by one as long as limits, budgets and accounts allow and their files are not being written.

    `later` is the first moment at which one may be taken that was left aside for time alone.
    """

    def __init__(self, state: RunState, now: float, whom: For, roles: frozenset[str] | None = None) -> None:
        self.state, self.now, self._whom, self._roles = state, now, whom, roles
        self.later = NEVER
        self.gate = Gate(state) if is_guarded(state) else None
        self.queueing = False
        self._new: set[str] = set()
        self._taken: set[str] = set()
        self._running = running_by_account(state)
        self._purse, self._wanted, self._at = Purse(), reservation(state), stamp(now)
        self._level = _level_now(state)
        self._direct = state.mode == "direct"
        self._occupied = self._direct and bool(state.running)
        self._alone = self._direct and any(self._works_in_place(name, name in state.pulled) for name in state.running)

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
        budget = self.state.budget
        if task_refusal(budget, self.state.tasks[task], self._wanted) or run_refusal(self.state, self._at, self._purse):
            return False
        # Last, because whoever only waits for a repository has a place reserved in its chain.
        if self.gate is not None and not self.gate.admits(task, queueing=self.queueing):
            return False
        self._take(task, account)
        return True

    def _is_meant(self, task: str) -> bool:
        state, role = self.state, self.state.specs[task].role
        if task in state.answered:
            # Nobody needs to work on it: its answer is there, and is judged.
            return self._whom is not For.PULL and self._is_in_window(task)
        if self._whom is For.START and role in state.pull_roles:
            return False
        return self._is_in_window(task) and (self._roles is None or role in self._roles)

    def _is_in_window(self, task: str) -> bool:
        return self._whom is For.WINDOW or self.state.window is None or task in self.state.window_open

    def _has_place(self, task: str) -> bool:
        """In the scope, at its level, with its files free, and with nobody in the folder that it needs for itself."""
        state = self.state
        if not within(state, task, len(self._new)):
            return False
        if any(file in self._taken or file in state.busy_files for file in files_of(state, task)):
            return False
        if self._occupied and (self._alone or self._works_in_place(task, self._whom is For.PULL)):
            return False
        return self._level is None or state.level_of[task] == self._level

    def _works_in_place(self, task: str, pulled: bool) -> bool:
        """Whether it edits the project's own folder, and so needs it for itself. Sessions do, unless it was said of
        their role that they only hand in what is to be written."""
        role = self.state.specs[task].role
        return role in self.state.in_place_roles or (pulled and role not in self.state.pull_roles)

    def _account(self, task: str) -> str | None:
        """None for what a session of somebody else's does: it pays for itself."""
        pulled = self._whom is For.PULL or self.state.specs[task].role in self.state.pull_roles
        return None if pulled else account_of(self.state, task)

    def _has_room(self, account: str) -> bool:
        if self._whom is For.START and (due := next_place(self.state, account, self._running[account], self.now)):
            self.later = min(self.later, due)
            return False
        return has_room(self.state, account, self._running)

    def account_free_at(self, account: str) -> float:
        """When it may be used; 0 when that is now, never when one of its attempts must end first."""
        due = max(paused_until(self.state, account, self.now), shut_until(self.state, account, self.now))
        due = due or next_place(self.state, account, self._running[account], self.now)
        return due or (0.0 if has_room(self.state, account, self._running) else NEVER)

    def _take(self, task: str, account: str | None) -> None:
        if task not in self.state.touched:
            self._new.add(task)
        self._taken.update(files_of(self.state, task))
        if self.gate is not None:
            self.gate.take(task)
        if self._direct:
            self._occupied = True
            self._alone = self._alone or self._works_in_place(task, self._whom is For.PULL)
        if account is not None:
            self._running[account] += 1
        self._purse.add(self._wanted)
