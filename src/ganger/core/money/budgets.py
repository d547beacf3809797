"""Budgets: what may be reserved for another attempt, what was spent, and what is released."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ganger.core import events as ev
from ganger.core.model.fast_replace import replace
from ganger.core.model.records import Budget, Spending, Totals
from ganger.core.model.run_state import RunState
from ganger.core.model.task_state import TaskState
from ganger.core.times import seconds_between


@dataclass(frozen=True, slots=True)
class Reservation:
    """Reserved before a launch, settled after it."""

    usd: float = 0.0
    tokens: int = 0


@dataclass(slots=True)
class Purse:
    """What the attempts of one decision have already reserved, in addition to the state."""

    usd: float = 0.0
    tokens: int = 0
    attempts: int = 0

    def add(self, reservation: Reservation) -> None:
        self.usd += reservation.usd
        self.tokens += reservation.tokens
        self.attempts += 1


def reservation(state: RunState) -> Reservation:
    """The operator's estimate, or the attempts' mean so far if that is higher."""
    budget, spent = state.money.budget, state.money.spent
    settled = max(1, spent.attempts - len(state.index.running))
    usd = max(budget.attempt_usd, spent.usd / settled) if budget.usd is not None or budget.task_usd is not None else 0.0
    tokens = 0
    if budget.tokens is not None or budget.task_tokens is not None:
        tokens = max(budget.attempt_tokens, spent.tokens // settled)
    return Reservation(round(usd, 6), tokens)


def run_refusal(state: RunState, now: str, purse: Purse | None = None) -> str:
    """Why the run's budget allows no further attempt; empty if it does."""
    budget, spent, taken = state.money.budget, state.money.spent, purse or Purse()
    wanted = reservation(state)
    if budget.attempts is not None and spent.attempts + taken.attempts >= budget.attempts:
        return f"budget.attempts: {spent.attempts} of {budget.attempts} attempts are used"
    if (budget.usd is not None or budget.task_usd is not None) and spent.unpriced and not budget.attempt_usd:
        return (
            "budget: the limit is in dollars, but the cost of an attempt is unknown; "
            "set prices.MODEL.input and output, or budget.attempt_usd"
        )
    if budget.usd is not None and _total(spent) + taken.usd + wanted.usd > budget.usd:
        return f"budget.usd: ${_total(spent):.2f} of ${budget.usd:.2f} are spent or reserved"
    if budget.usd is not None and spent.usd >= budget.usd:
        return f"budget.usd: ${spent.usd:.2f} of ${budget.usd:.2f} are spent"
    if budget.tokens is not None:
        used = spent.tokens + spent.reserved_tokens
        if used + taken.tokens + wanted.tokens > budget.tokens or spent.tokens >= budget.tokens:
            return f"budget.tokens: {used} of {budget.tokens} tokens are used or reserved"
    if budget.wall_sec is not None and (used_sec := active_seconds(state, now)) >= budget.wall_sec:
        return f"budget.wall_sec: the run has worked for {used_sec:.0f} of {budget.wall_sec:.0f} s"
    return _unknown_price(state, wanted, taken)


def spent_out(state: RunState, now: str) -> str:
    """Why no agent may be called any more, not even one without an attempt, such as a reviewer; empty if one may."""
    budget, spent = state.money.budget, state.money.spent
    if budget.usd is not None and spent.usd >= budget.usd:
        return f"budget.usd: ${spent.usd:.2f} of ${budget.usd:.2f} are spent"
    if budget.tokens is not None and spent.tokens >= budget.tokens:
        return f"budget.tokens: {spent.tokens} of {budget.tokens} tokens are used"
    if budget.wall_sec is not None and (used_sec := active_seconds(state, now)) >= budget.wall_sec:
        return f"budget.wall_sec: the run has worked for {used_sec:.0f} of {budget.wall_sec:.0f} s"
    return ""


def budget_named(text: str) -> str:
    """The limit that a sentence about a budget names; without one, an estimate is missing."""
    found = re.search(r"\bbudget\.\w+(?=:)", text)
    return found[0] if found else "budget.attempt_usd"


def _unknown_price(state: RunState, wanted: Reservation, taken: Purse) -> str:
    """Without an estimate, one attempt runs alone: several at once could spend many times the budget."""
    budget = state.money.budget
    unknown = (budget.usd is not None and not wanted.usd) or (budget.tokens is not None and not wanted.tokens)
    under_way = len(state.index.running) + taken.attempts
    if not unknown or not under_way or state.money.spent.attempts > len(state.index.running):
        return ""
    return "the first attempt shows the cost; budget.attempt_usd and attempt_tokens let more start at once"


def task_refusal(budget: Budget, task: TaskState, wanted: Reservation) -> str:
    """Why this task's own budget allows no further attempt; empty if it does."""
    spent = task.spent
    if budget.task_usd is not None and (spent.usd + wanted.usd > budget.task_usd or spent.usd >= budget.task_usd):
        return f"budget.task_usd: ${spent.usd:.2f} of ${budget.task_usd:.2f} are spent"
    if budget.task_tokens is not None and (
        spent.tokens + wanted.tokens > budget.task_tokens or spent.tokens >= budget.task_tokens
    ):
        return f"budget.task_tokens: {spent.tokens} of {budget.task_tokens} tokens are used"
    if budget.task_wall_sec is not None and spent.wall_sec >= budget.task_wall_sec:
        return f"budget.task_wall_sec: {spent.wall_sec:.0f} of {budget.task_wall_sec:.0f} s are used"
    return ""


def time_limit(state: RunState, task: str, now: str) -> float:
    """How long an attempt may take: its own limit, and what is left of the run's and the task's wall time."""
    own = state.tasks[task].next_start.timeout_sec or state.specs[task].timeout_sec
    limits = [own]
    if state.money.budget.wall_sec is not None:
        limits.append(state.money.budget.wall_sec - active_seconds(state, now))
    if state.money.budget.task_wall_sec is not None:
        limits.append(state.money.budget.task_wall_sec - state.tasks[task].spent.wall_sec)
    return max(0.1, min(limits))


def active_seconds(state: RunState, now: str) -> float:
    """How long the run has been led, over all leads; `now` is a time in the format of events."""
    return state.lead.active_sec + seconds_between(state.lead.since, now)


def _total(spent: Spending) -> float:
    return spent.usd + spent.reserved_usd


def reserve(spent: Spending, usd: float, tokens: int) -> Spending:
    return replace(spent, reserved_usd=spent.reserved_usd + usd, reserved_tokens=spent.reserved_tokens + tokens)


def settle_cost(spent: Spending, event: ev.CostSettled, usd: float, tokens: int) -> Spending:
    return replace(
        spent,
        usd=spent.usd + event.usd,
        tokens=spent.tokens + event.input_tokens + event.output_tokens,
        priced=spent.priced + (event.known and bool(event.task)),
        unpriced=spent.unpriced + (not event.known and event.counted),
        counted=spent.counted + event.counted,
        input_tokens=spent.input_tokens + event.input_tokens * event.counted,
        output_tokens=spent.output_tokens + event.output_tokens * event.counted,
        cache_read_tokens=spent.cache_read_tokens + event.cache_read_tokens,
        cache_write_tokens=spent.cache_write_tokens + event.cache_write_tokens,
        reserved_usd=max(0.0, spent.reserved_usd - usd),
        reserved_tokens=max(0, spent.reserved_tokens - tokens),
    )


def cost_settled(task: str, attempt: int, used: Totals, reserved_usd: float, reserved_tokens: int) -> ev.CostSettled:
    """An unknown amount counts as what was reserved for it."""
    counted = used.input_tokens is not None and used.output_tokens is not None
    return ev.CostSettled(
        task,
        attempt,
        used.usd if used.usd is not None else reserved_usd,
        (used.input_tokens or 0) if counted else reserved_tokens,
        (used.output_tokens or 0) if counted else 0,
        known=used.usd is not None,
        counted=counted,
        cache_read_tokens=used.cache_read_tokens if counted else 0,
        cache_write_tokens=used.cache_write_tokens if counted else 0,
    )


def released(state: RunState, task: TaskState) -> Spending:
    """What was reserved for an attempt that never cost anything is released."""
    spent = task.spent
    if not spent.reserved_usd and not spent.reserved_tokens:
        return spent
    state.money.spent = replace(
        state.money.spent,
        reserved_usd=max(0.0, state.money.spent.reserved_usd - spent.reserved_usd),
        reserved_tokens=max(0, state.money.spent.reserved_tokens - spent.reserved_tokens),
    )
    return replace(spent, reserved_usd=0.0, reserved_tokens=0)
