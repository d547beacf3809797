"""How the events of healing change the run."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ganger.core import events as ev
from ganger.core.model.records import HealRound, HistoryItem, PatchRecord
from ganger.core.model.run_state import RunState
from ganger.core.money.budgets import reserve, settle_cost
from ganger.core.state.reducers import applies
from ganger.core.vocabulary import HealSchedule, Phase, TaskStatus

D = TaskStatus.DONE


@applies(ev.HealStarted)
def _heal_started(state: RunState, event: ev.HealStarted, at: str) -> None:
    lineage = event.lineage or event.window
    signatures = tuple(state.tasks[name].failure.signature or "" for name in event.failed)
    state.healing.rounds.append(
        HealRound(
            event.round,
            event.window,
            lineage,
            event.tasks,
            event.failed,
            signatures,
            event.log,
            event.token,
            at,
            agent=event.agent,
            isolate=event.isolate,
            reserved_usd=event.reserved_usd,
            reserved_tokens=event.reserved_tokens,
        )
    )
    state.money.spent = reserve(state.money.spent, event.reserved_usd, event.reserved_tokens)
    for name in event.failed:
        task = state.tasks[name]
        state.tasks[name] = replace(
            task, counters=replace(task.counters, healer_attempts=task.counters.healer_attempts + 1)
        )


def _round_change(state: RunState, number: int, **changes: Any) -> HealRound:
    after = replace(state.healing.rounds[number - 1], **changes)
    state.healing.rounds[number - 1] = after
    return after


# Why a healer is asked again without a refused answer: there was none.
LOST, QUOTA, TRANSIENT, REFUSED = "LOST", "QUOTA", "TRANSIENT", "REFUSED"
NO_ANSWER = frozenset({LOST, QUOTA, TRANSIENT, REFUSED})


@applies(ev.HealRefused)
def _heal_refused(state: RunState, event: ev.HealRefused, _at: str) -> None:
    now = state.healing.rounds[event.round - 1]
    refused = 0 if event.code in NO_ANSWER else 1
    words = f"{event.code}: {event.message}" if refused else now.refusal
    _round_change(state, event.round, tries=now.tries + 1, refusals=now.refusals + refused, refusal=words)


@applies(ev.HealFinished)
def _heal_finished(state: RunState, event: ev.HealFinished, at: str) -> None:
    round_ = _round_change(
        state,
        event.round,
        decision=event.decision,
        failure_class=event.failure_class,
        root_cause=event.root_cause,
        learned_rule=event.learned_rule,
        problem=event.problem,
        exit_code=event.exit_code,
        duration_sec=event.duration_sec,
    )
    for name in round_.failed:
        task = state.tasks.get(name)
        if task is not None:
            line = HistoryItem(
                Phase.HEALER,
                max(1, task.counters.healer_attempts),
                round_.log,
                at,
                exit_code=event.exit_code,
                failure_class=task.failure.failure_class,
                failure_signature=task.failure.signature,
                duration_sec=event.duration_sec,
                patches=round_.patches,
            )
            state.tasks[name] = replace(task, history=(*task.history, line))
    state.windows.retry_now, state.windows.retry_of = event.retry, round_.lineage
    if event.next_size and state.policy.heal_schedule is HealSchedule.AUTO:
        state.windows.batch_size = event.next_size


@applies(ev.HealAbandoned)
def _heal_abandoned(state: RunState, event: ev.HealAbandoned, _at: str) -> None:
    state.healing.abandoned = event.reason
    state.windows.retry_now, state.windows.retry_of = (), 0


@applies(ev.PatchApplied)
def _patch_applied(state: RunState, event: ev.PatchApplied, _at: str) -> None:
    state.healing.patches[event.patch] = PatchRecord(
        event.patch,
        event.round,
        event.target,
        event.operation,
        event.tasks,
        event.path,
        event.task_id,
        event.file,
        event.timeout_sec,
        event.concurrency,
        event.current_batch_size,
        before=(state.policy.concurrency, state.windows.batch_size),
    )
    if event.in_place:
        state.files.written.add(event.path)
    _round_change(state, event.round, patches=(*state.healing.rounds[event.round - 1].patches, event.patch))
    for name in event.tasks:
        task = state.tasks.get(name)
        if task is not None and task.status is not D:
            timeout = task.next_start.timeout_sec if event.timeout_sec is None else event.timeout_sec
            state.tasks[name] = replace(
                task,
                healing=replace(
                    task.healing,
                    patches=(*task.healing.patches, event.patch),
                    pending=True,
                    signature=task.failure.signature or "",
                ),
                next_start=replace(
                    task.next_start,
                    timeout_sec=timeout,
                    resume_session="" if event.path else task.next_start.resume_session,
                ),
            )
    if event.concurrency is not None:
        state.policy = replace(state.policy, concurrency=event.concurrency)
    if event.current_batch_size is not None and state.policy.heal_schedule is HealSchedule.AUTO:
        state.windows.batch_size = event.current_batch_size


@applies(ev.PatchUndone)
def _patch_undone(state: RunState, event: ev.PatchUndone, _at: str) -> None:
    """A setting returns to its earlier value, unless it was changed since."""
    patch = state.healing.patches[event.patch]
    state.healing.patches[event.patch] = replace(patch, undone=True)
    concurrency, batch_size = patch.before
    if patch.concurrency is not None and state.policy.concurrency == patch.concurrency:
        state.policy = replace(state.policy, concurrency=concurrency)
    if patch.current_batch_size is not None and state.windows.batch_size == patch.current_batch_size:
        state.windows.batch_size = batch_size
    for name in patch.tasks:
        task = state.tasks.get(name)
        if task is None or task.status is D:
            continue
        left = tuple(p for p in task.healing.patches if p != event.patch)
        limits = [
            state.healing.patches[p].timeout_sec for p in left if state.healing.patches[p].timeout_sec is not None
        ]
        timeout = task.next_start.timeout_sec if patch.timeout_sec is None else limits[-1] if limits else None
        session = "" if patch.path else task.next_start.resume_session
        state.tasks[name] = replace(
            task,
            healing=replace(task.healing, patches=left),
            next_start=replace(task.next_start, timeout_sec=timeout, resume_session=session),
        )


def cost_of_healer(state: RunState, event: ev.CostSettled, _at: str) -> None:
    round_ = state.healing.rounds[event.attempt - 1]
    state.money.spent = settle_cost(state.money.spent, event, round_.reserved_usd, round_.reserved_tokens)
    _round_change(state, event.attempt, reserved_usd=0.0, reserved_tokens=0)
