"""One quota clock per account: which tasks wait until when, and how many may run at once after a rate limit."""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Mapping

from ganger.core import events as ev
from ganger.core.model.records import Question
from ganger.core.model.run_state import RunState

NEVER = float("inf")
ACCOUNT = "account"
# No plan's limit lasts longer; a later end is an error in what the agent reported.
_LONGEST_PAUSE_SEC = 40 * 86400.0
_SPREAD_SHARE = 0.25


def account_of(state: RunState, task: str) -> str:
    """The account that pays for this task's agent."""
    return state.quota.accounts.get(state.specs[task].role, "")


def paused_until(state: RunState, account: str, now: float, task: str = "") -> float:
    """When the account may be used again, by this task if one is named; 0 if now."""
    until = state.quota.paused.get(account, 0.0)
    if task and until:
        until = spread_after(state, until, task)
    return until if until > now else 0.0


def spread_sec(state: RunState, account: str) -> float:
    """The time over which its workers start again: a short rest does not cause a long spread."""
    return min(state.policy.quota_spread_sec, state.quota.rested.get(account, 0.0) * _SPREAD_SHARE)


def spread_after(state: RunState, until: float, task: str) -> float:
    """When this task may start after its account's rest: the tasks that waited for one limit do not start together.

    Always the same for the same task and rest, in any process.
    """
    spread = spread_sec(state, account_of(state, task))
    return until + spread * zlib.crc32(f"{task}:{until:.3f}".encode()) / 2**32 if spread else until


def next_place(state: RunState, account: str, running: int, now: float) -> float:
    """When one more than `running` may start after the account's rest; 0 if now.

    However many tasks wait, the places fill one by one over the spread.
    """
    until, spread = state.quota.paused.get(account, 0.0), spread_sec(state, account)
    if not until or not spread or until + spread <= now:
        return 0.0
    places = min(state.policy.concurrency, state.quota.limited.get(account, state.policy.concurrency))
    moment = until + spread * min(running / places, 1.0)
    return moment if moment > now else 0.0


def running_by_account(state: RunState) -> Counter[str]:
    """Without sessions that asked for their task, as they use their own accounts, and without tasks nobody works on."""
    at_work = state.index.running - state.index.in_merge_queue - state.index.pulled - state.index.delivering
    return Counter(state.tasks[name].attempt.account for name in at_work)


def shut_until(state: RunState, account: str, now: float) -> float:
    """When one worker may try an account whose key or credit was refused; 0 if now, or if it was not refused."""
    until = state.quota.shut.get(account)
    if until is None or 0 < until <= now:
        return 0.0
    return until or NEVER


def has_room(state: RunState, account: str, running: Mapping[str, int]) -> bool:
    if account in state.quota.shut and running.get(account, 0):
        return False
    limit = state.quota.limited.get(account)
    return limit is None or running.get(account, 0) < limit


def after_quota(state: RunState, account: str, now: float, reset_at: float | None) -> list[ev.Event]:
    """A rate limit was hit: every worker of the account waits, and fewer run at once afterwards."""
    known = paused_until(state, account, now)
    known_end = reset_at is not None and now < reset_at < now + _LONGEST_PAUSE_SEC
    until = reset_at if reset_at is not None and known_end else now + state.policy.quota_wait_sec
    events: list[ev.Event] = []
    if until > known:
        events.append(ev.AccountPaused(account, until, "quota or rate limit"))
    if not known:
        at_once = max(1, running_by_account(state)[account] // 2)
        if at_once < min(state.policy.concurrency, state.quota.limited.get(account, state.policy.concurrency)):
            events.append(ev.AccountLimited(account, at_once, "cut in half by a rate limit"))
    return events


def question_about(state: RunState, account: str) -> Question | None:
    """The open question about the account, if there is one."""
    asked = (
        q for q in state.inbox.questions.values() if q.kind == ACCOUNT and q.account == account and q.answer is None
    )
    return next(asked, None)


def works_again(state: RunState, account: str) -> list[ev.Event]:
    """A worker of a shut account succeeded. Before a retry is allowed, this can only be the end of earlier work."""
    if not state.quota.shut.get(account):
        return []
    why = "the account works again"
    asked = question_about(state, account)
    return [ev.AccountWorks(account, why), *([ev.QuestionAnswered(asked.id, why)] if asked is not None else [])]


def after_success(state: RunState, account: str) -> list[ev.Event]:
    """After each success one more may run at once, until the cut is undone."""
    answered = works_again(state, account)
    limit = state.quota.limited.get(account)
    if limit is None:
        return answered
    grown = limit + 1
    return [
        *answered,
        ev.AccountLimited(account, 0 if grown >= state.policy.concurrency else grown, "a success since the cut"),
    ]
