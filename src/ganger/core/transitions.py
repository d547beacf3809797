"""The only place where state changes: `apply` takes one recorded event and moves the run.

An event that does not fit (see `misfits`) changes nothing and is kept in `RunState.refused`.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import Any

from ganger.core import events as ev
from ganger.core.misfits import SETTLED, run_misfit, task_misfit
from ganger.core.names import verify_log, worker_log
from ganger.core.plan import make_plan
from ganger.core.records import (
    Ended,
    HealRound,
    HistoryItem,
    PatchRecord,
    Question,
    RunState,
    Scope,
    Spending,
    TaskSpec,
    TaskState,
    Window,
)
from ganger.core.vocabulary import BlockReason, HealSchedule, Phase, RunStatus, TaskStatus

P, R, D, B = TaskStatus.PENDING, TaskStatus.RUNNING, TaskStatus.DONE, TaskStatus.BLOCKED


def apply(state: RunState, recorded: ev.Recorded) -> None:
    """Moves `state` by one event. Deterministic; never raises on an event that does not fit."""
    event = recorded.event
    state.last_seq = recorded.seq
    run_change = _RUN_CHANGES.get(type(event))
    if isinstance(event, ev.CostSettled) and not event.task:
        run_change = _cost_of_healer
    if run_change is not None:
        problem = run_misfit(state, event)
        if problem:
            _refuse(state, recorded, problem)
        else:
            run_change(state, event, recorded.at)
        state.last_at = recorded.at
        return
    state.last_at = recorded.at
    name = getattr(event, "task", "")
    task = state.tasks.get(name)
    problem = "no such task" if task is None else task_misfit(state, task, event)
    if problem or task is None:
        _refuse(state, recorded, problem)
        return
    after = _TASK_CHANGES[type(event)](state, name, task, event, recorded.at)
    _put(state, name, task, after)


def _refuse(state: RunState, recorded: ev.Recorded, problem: str) -> None:
    name = getattr(recorded.event, "task", "")
    state.refused.append(f"{recorded.seq} {ev.type_name(recorded.event)} {name}: {problem}")


def _put(state: RunState, name: str, before: TaskState, after: TaskState) -> None:
    """Stores a task's new state and keeps the indexes true."""
    state.tasks[name] = after
    if before.held_by != after.held_by:
        _hold_change(state, name, before.held_by, after.held_by)
    if _waits(after):
        state.waiting.add(name)
    elif before.not_before:
        state.waiting.discard(name)
    if before.status is after.status:
        return
    state.counts[before.status] -= 1
    state.counts[after.status] += 1
    if after.status is R:
        state.running.add(name)
        state.busy_files.update(dict.fromkeys(state.specs[name].writes, name))
    elif before.status is R:
        state.running.discard(name)
        for file in state.specs[name].writes:
            state.busy_files.pop(file, None)
    if after.status is D or before.status is D:
        _dependents_change(state, name, -1 if after.status is D else 1)
    if after.status is P:
        _offer(state, name)
    if name in state.window_open and after.status in SETTLED:
        state.window_open.discard(name)


def _hold_change(state: RunState, name: str, before: str, after: str) -> None:
    if before:
        left = [held for held in state.held[before] if held != name]
        if left:
            state.held[before] = left
        else:
            del state.held[before]
    if after:
        state.held.setdefault(after, []).append(name)


def _dependents_change(state: RunState, name: str, step: int) -> None:
    for dependent in state.dependents.get(name, ()):
        state.unmet[dependent] += step
        if state.tasks[dependent].status is P:
            _offer(state, dependent)


def _offer(state: RunState, name: str) -> None:
    """Puts a pending task where scheduling finds it, once nothing is unmet."""
    if not state.unmet[name]:
        heapq.heappush(state.ready, state.rank[name])
        if name in state.window_open:
            heapq.heappush(state.window_ready, state.rank[name])


# --- the run -----------------------------------------------------------------------------------------------------


def _run_started(state: RunState, event: ev.RunStarted, at: str) -> None:
    state.run_id, state.manifest_digest, state.started_at = event.run_id, event.manifest_digest, at
    state.policy = event.policy
    state.specs = {spec.id: spec for spec in event.tasks}
    state.tasks = {spec.id: TaskState() for spec in event.tasks}
    state.contents = contents_by_task(event.tasks, event.contents)
    index_tasks(state)
    state.current_batch_size = _first_size(state)


def contents_by_task(tasks: tuple[TaskSpec, ...], contents: tuple[str, ...]) -> dict[str, str]:
    return {spec.id: text for spec, text in zip(tasks, contents, strict=False)}


def index_tasks(state: RunState) -> None:
    """Makes every index anew from `specs` and `tasks`."""
    specs, tasks = state.specs, state.tasks
    state.by_rank = list(make_plan(tuple(specs.values())).order)
    state.rank = {task: rank for rank, task in enumerate(state.by_rank)}
    state.counts = dict.fromkeys(TaskStatus, 0)
    for task in tasks.values():
        state.counts[task.status] += 1
    done = {name for name, task in tasks.items() if task.status is D}
    state.unmet = {name: len(set(spec.depends_on) - done) for name, spec in specs.items()}
    state.dependents = {}
    for spec in specs.values():
        for need in dict.fromkeys(spec.depends_on):
            state.dependents.setdefault(need, []).append(spec.id)
    state.ready = [r for r, name in enumerate(state.by_rank) if tasks[name].status is P and not state.unmet[name]]
    state.running = {name for name, task in tasks.items() if task.status is R}
    state.waiting = {name for name, task in tasks.items() if _waits(task)}
    state.busy_files = {file: name for name in state.running for file in specs[name].writes}
    state.held = {}
    for name, task in tasks.items():
        if task.held_by:
            state.held.setdefault(task.held_by, []).append(name)


def _waits(task: TaskState) -> bool:
    """Whether only time must pass until the task may run."""
    return bool(task.not_before) and (task.status is P or task.block_reason is BlockReason.QUOTA_WAIT)


def _reconciled(state: RunState, event: ev.Reconciled, _at: str) -> None:
    """Changed tasks begin anew; their attempts go on counting, because logs are named after them."""
    before, anew = state.tasks, frozenset(event.changed)
    state.manifest_digest = event.manifest_digest
    state.specs = {spec.id: spec for spec in event.tasks}
    state.contents = contents_by_task(event.tasks, event.contents)
    state.tasks = {}
    state.retired.update({name: before[name].attempts for name in event.removed if name in before})
    for name in state.specs:
        old = before.get(name, TaskState(attempts=state.retired.get(name, 0)))
        state.tasks[name] = (
            TaskState(attempts=old.attempts, history=old.history, spent=old.spent) if name in anew else old
        )
    index_tasks(state)
    _forget_window(state)
    state.retry_now = tuple(name for name in state.retry_now if name in state.tasks)


def _contents_seen(state: RunState, event: ev.ContentsSeen, _at: str) -> None:
    state.contents.update(event.contents)


def _first_size(state: RunState) -> int:
    schedule = state.policy.heal_schedule
    if schedule is HealSchedule.BATCH:
        return state.policy.batch_size
    return max(1, len(state.specs)) if schedule in (HealSchedule.EPOCH, HealSchedule.OFF) else 1


def _lead_started(state: RunState, event: ev.LeadStarted, at: str) -> None:
    changed = state.policy.heal_schedule is not event.policy.heal_schedule
    state.policy = event.policy
    if changed:
        _forget_window(state)
        state.retry_now, state.retry_of = (), 0
    if changed or event.policy.heal_schedule is not HealSchedule.AUTO:
        state.current_batch_size = _first_size(state)
    state.budget, state.limits, state.healer = event.budget, event.limits, event.healer
    state.accounts = dict(event.accounts)
    state.active_sec += seconds_between(state.lead_since, state.last_at)
    state.lead_since = at
    state.leads += 1
    state.scope = Scope(None if event.only is None else frozenset(event.only), event.max_tasks)
    state.touched = set()
    state.status, state.abort_reason = RunStatus.RUNNING, None
    state.stopping = state.finished = state.draining = False
    state.heal_abandoned = state.finished_at = ""


def seconds_between(earlier: str, later: str) -> float:
    if not earlier or not later:
        return 0.0
    return max(0.0, (datetime.fromisoformat(later) - datetime.fromisoformat(earlier)).total_seconds())


def _window_opened(state: RunState, event: ev.WindowOpened, _at: str) -> None:
    state.window = Window(event.index, event.size, event.tasks, event.retry_of)
    state.retry_now, state.retry_of = (), 0
    state.window_open = {t for t in event.tasks if state.tasks[t].status not in SETTLED}
    state.window_ready = sorted(state.rank[t] for t in state.window_open if not state.unmet[t])
    state.windows_opened = event.index


def _window_closed(state: RunState, event: ev.WindowClosed, _at: str) -> None:
    _forget_window(state)
    state.current_batch_size = event.next_size


def _forget_window(state: RunState) -> None:
    state.window, state.window_open, state.window_ready = None, set(), []


def _heal_started(state: RunState, event: ev.HealStarted, at: str) -> None:
    lineage = event.lineage or event.window
    signatures = tuple(state.tasks[name].last_failure_signature or "" for name in event.failed)
    state.heal_rounds.append(
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
    state.spent = _reserve(state.spent, event.reserved_usd, event.reserved_tokens)
    for name in event.failed:
        task = state.tasks[name]
        state.tasks[name] = replace(task, healer_attempts=task.healer_attempts + 1)


def _round_change(state: RunState, number: int, **changes: Any) -> HealRound:
    after = replace(state.heal_rounds[number - 1], **changes)
    state.heal_rounds[number - 1] = after
    return after


def _heal_refused(state: RunState, event: ev.HealRefused, _at: str) -> None:
    now = state.heal_rounds[event.round - 1]
    refused = 0 if event.code == "LOST" else 1
    words = f"{event.code}: {event.message}" if refused else now.refusal
    _round_change(state, event.round, tries=now.tries + 1, refusals=now.refusals + refused, refusal=words)


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
                max(1, task.healer_attempts),
                round_.log,
                at,
                exit_code=event.exit_code,
                failure_class=task.last_failure_class,
                failure_signature=task.last_failure_signature,
                duration_sec=event.duration_sec,
                patches=round_.patches,
            )
            state.tasks[name] = replace(task, history=(*task.history, line))
    state.retry_now, state.retry_of = event.retry, round_.lineage


def _heal_abandoned(state: RunState, event: ev.HealAbandoned, _at: str) -> None:
    state.heal_abandoned = event.reason
    state.retry_now, state.retry_of = (), 0


def _patch_applied(state: RunState, event: ev.PatchApplied, _at: str) -> None:
    state.patches[event.patch] = PatchRecord(
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
        before=(state.policy.concurrency, state.current_batch_size),
    )
    if event.in_place:
        state.written.add(event.path)
    _round_change(state, event.round, patches=(*state.heal_rounds[event.round - 1].patches, event.patch))
    for name in event.tasks:
        task = state.tasks.get(name)
        if task is not None and task.status is not D:
            timeout = task.timeout_sec if event.timeout_sec is None else event.timeout_sec
            state.tasks[name] = replace(
                task,
                patches=(*task.patches, event.patch),
                healed=True,
                heal_signature=task.last_failure_signature or "",
                timeout_sec=timeout,
            )
    if event.concurrency is not None:
        state.policy = replace(state.policy, concurrency=event.concurrency)
    if event.current_batch_size is not None and state.policy.heal_schedule is HealSchedule.AUTO:
        state.current_batch_size = event.current_batch_size


def _patch_undone(state: RunState, event: ev.PatchUndone, _at: str) -> None:
    """A setting goes back to what it was, unless somebody has changed it since."""
    patch = state.patches[event.patch]
    state.patches[event.patch] = replace(patch, undone=True)
    concurrency, batch_size = patch.before
    if patch.concurrency is not None and state.policy.concurrency == patch.concurrency:
        state.policy = replace(state.policy, concurrency=concurrency)
    if patch.current_batch_size is not None and state.current_batch_size == patch.current_batch_size:
        state.current_batch_size = batch_size
    for name in patch.tasks:
        task = state.tasks.get(name)
        if task is None or task.status is D:
            continue
        left = tuple(p for p in task.patches if p != event.patch)
        limits = [state.patches[p].timeout_sec for p in left if state.patches[p].timeout_sec is not None]
        timeout = task.timeout_sec if patch.timeout_sec is None else limits[-1] if limits else None
        state.tasks[name] = replace(task, patches=left, timeout_sec=timeout)


def _cost_of_healer(state: RunState, event: ev.CostSettled, _at: str) -> None:
    round_ = state.heal_rounds[event.attempt - 1]
    state.spent = _settle_cost(state.spent, event, round_.reserved_usd, round_.reserved_tokens)
    _round_change(state, event.attempt, reserved_usd=0.0, reserved_tokens=0)


def _reserve(spent: Spending, usd: float, tokens: int) -> Spending:
    return replace(spent, reserved_usd=spent.reserved_usd + usd, reserved_tokens=spent.reserved_tokens + tokens)


def _settle_cost(spent: Spending, event: ev.CostSettled, usd: float, tokens: int) -> Spending:
    return replace(
        spent,
        usd=spent.usd + event.usd,
        tokens=spent.tokens + event.input_tokens + event.output_tokens,
        reserved_usd=max(0.0, spent.reserved_usd - usd),
        reserved_tokens=max(0, spent.reserved_tokens - tokens),
    )


def _question_asked(state: RunState, event: ev.QuestionAsked, at: str) -> None:
    state.questions[event.question] = Question(event.question, event.task, event.kind, event.text, at)
    state.asked += 1


def _question_answered(state: RunState, event: ev.QuestionAnswered, _at: str) -> None:
    state.questions[event.question] = replace(state.questions[event.question], answer=event.text)


def _account_paused(state: RunState, event: ev.AccountPaused, _at: str) -> None:
    state.accounts_paused[event.account] = max(event.until, state.accounts_paused.get(event.account, 0.0))


def _account_limited(state: RunState, event: ev.AccountLimited, _at: str) -> None:
    if event.at_once:
        state.accounts_limited[event.account] = event.at_once
    else:
        state.accounts_limited.pop(event.account, None)


def _command_taken(state: RunState, event: ev.CommandTaken, _at: str) -> None:
    state.commands_taken = max(state.commands_taken, event.number)


def _run_paused(state: RunState, _event: ev.RunPaused, _at: str) -> None:
    state.paused = True


def _run_resumed(state: RunState, _event: ev.RunResumed, _at: str) -> None:
    state.paused = False


def _settings_changed(state: RunState, event: ev.SettingsChanged, _at: str) -> None:
    state.policy, state.budget = event.policy, event.budget


def _drain_requested(state: RunState, _event: ev.DrainRequested, _at: str) -> None:
    state.draining = True


def _stop_requested(state: RunState, _event: ev.StopRequested, _at: str) -> None:
    state.stopping = True


def _nothing(_state: RunState, _event: object, _at: str) -> None:
    """Recorded for people; changes nothing."""


def _run_finished(state: RunState, event: ev.RunFinished, at: str) -> None:
    state.status, state.abort_reason = event.run_status, event.abort_reason
    state.finished, state.finished_at = True, at


# --- one task ----------------------------------------------------------------------------------------------------


def _attempt_started(state: RunState, name: str, task: TaskState, event: ev.AttemptStarted, at: str) -> TaskState:
    state.touched.add(name)
    state.spent = _reserve(
        replace(state.spent, attempts=state.spent.attempts + 1), event.reserved_usd, event.reserved_tokens
    )
    return replace(
        task,
        status=R,
        block_reason=None,
        detail="",
        final=False,
        attempts=event.attempt,
        worker_attempts=task.worker_attempts + 1,
        token=event.token,
        started_at=at,
        step="agent",
        summary="",
        verified_attempt=None,
        verify_steps=(),
        backup="",
        launched=None,
        ended=None,
        held_by="",
        not_before=0.0,
        account=event.account,
        spent=_reserve(
            replace(task.spent, attempts=task.spent.attempts + 1), event.reserved_usd, event.reserved_tokens
        ),
        pending_history=HistoryItem(Phase.WORKER, event.attempt, event.log, at, patches=task.patches),
    )


def _attempt_launched(_s: RunState, _n: str, task: TaskState, event: ev.AttemptLaunched, _at: str) -> TaskState:
    return replace(task, launched=(event.pid, event.start_ticks))


def _attempt_exited(_s: RunState, _n: str, task: TaskState, event: ev.AttemptExited, at: str) -> TaskState:
    item = task.pending_history
    code = event.exit_code if event.signal is None else -event.signal
    line = None if item is None else replace(item, exit_code=code, duration_sec=event.duration_sec, at=at)
    spent = replace(task.spent, wall_sec=task.spent.wall_sec + event.duration_sec)
    ended = Ended(event.exit_code, event.signal, event.timed_out, event.over_output, event.error)
    return replace(task, step="parse", launched=None, ended=ended, pending_history=line, spent=spent)


def _cost_settled(state: RunState, _n: str, task: TaskState, event: ev.CostSettled, _at: str) -> TaskState:
    usd, tokens = task.spent.reserved_usd, task.spent.reserved_tokens
    state.spent = _settle_cost(state.spent, event, usd, tokens)
    return replace(task, spent=_settle_cost(task.spent, event, usd, tokens))


def _released(state: RunState, task: TaskState) -> Spending:
    """What was set aside for an attempt that never cost anything goes back."""
    spent = task.spent
    if not spent.reserved_usd and not spent.reserved_tokens:
        return spent
    state.spent = replace(
        state.spent,
        reserved_usd=max(0.0, state.spent.reserved_usd - spent.reserved_usd),
        reserved_tokens=max(0, state.spent.reserved_tokens - spent.reserved_tokens),
    )
    return replace(spent, reserved_usd=0.0, reserved_tokens=0)


def _result_accepted(_s: RunState, _n: str, task: TaskState, event: ev.ResultAccepted, _at: str) -> TaskState:
    return replace(task, summary=event.summary)


def _result_refused(_s: RunState, _n: str, task: TaskState, event: ev.ResultRefused, _at: str) -> TaskState:
    return replace(task, detail=f"{event.code}: {event.message}")


def _writes_intended(state: RunState, _n: str, task: TaskState, event: ev.WritesIntended, _at: str) -> TaskState:
    state.written.update(event.files)
    return replace(task, step="write", backup=event.backup)


def _writes_applied(_s: RunState, _n: str, task: TaskState, _event: ev.WritesApplied, _at: str) -> TaskState:
    return replace(task, step="written")


def _rolled_back(_s: RunState, _n: str, task: TaskState, event: ev.WritesRolledBack, at: str) -> TaskState:
    line = HistoryItem(Phase.ROLLBACK, event.attempt, event.log, at, patches=task.patches)
    return replace(task, backup="", history=(*task.history, line))


def _verify_started(_s: RunState, _n: str, task: TaskState, event: ev.VerifyStarted, _at: str) -> TaskState:
    item = task.pending_history
    return replace(
        task, step="verify", pending_history=None if item is None else replace(item, verify_log_path=event.log)
    )


def _verify_finished(_s: RunState, name: str, task: TaskState, event: ev.VerifyFinished, at: str) -> TaskState:
    failed = next((s for s in event.steps if s.outcome not in ("passed", "skipped") and s.tier != "quality"), None)
    line = HistoryItem(
        Phase.VERIFY,
        event.attempt,
        event.log or verify_log(name, event.attempt),
        at,
        verify_log_path=event.log or None,
        exit_code=0 if failed is None else failed.exit_code,
        duration_sec=event.duration_sec,
        patches=task.patches,
    )
    return replace(
        task,
        step="verified",
        verified_attempt=event.attempt if event.passed else None,
        verify_steps=event.steps,
        history=(*_with_worker_line(task, name, at), line),
        pending_history=None,
    )


def _with_worker_line(task: TaskState, name: str, at: str, **changes: Any) -> tuple[HistoryItem, ...]:
    """The history with the attempt's worker line, which is held back until the attempt's end is known."""
    item = task.pending_history
    if item is not None:
        return (*task.history, replace(item, **changes))
    if not changes:
        return task.history
    marked = list(task.history)
    for index in range(len(marked) - 1, -1, -1):
        if marked[index].phase in (Phase.WORKER, Phase.VERIFY) and marked[index].attempt == task.attempts:
            marked[index] = replace(marked[index], **changes)
    return tuple(marked) or (
        HistoryItem(Phase.WORKER, max(1, task.attempts), worker_log(name, task.attempts), at, **changes),
    )


def _attempt_failed(_s: RunState, name: str, task: TaskState, event: ev.AttemptFailed, at: str) -> TaskState:
    marks = {"failure_class": event.failure_class, "failure_signature": event.signature}
    if event.counter == "worker_attempts" and task.healed:
        repeats = task.repeats + 1 if event.signature == task.heal_signature else 0
        task = replace(task, repeats=repeats, healed=False)
    if event.counter != "worker_attempts":
        task = replace(task, worker_attempts=task.worker_attempts - 1)
    match event.counter:
        case "format_retries":
            task = replace(task, format_retries=task.format_retries + 1)
        case "respawns":
            task = replace(task, respawns=task.respawns + 1)
        case "transient_retries":
            task = replace(task, transient_retries=task.transient_retries + 1)
    return replace(
        task,
        last_failure_class=event.failure_class,
        last_failure_signature=event.signature,
        detail=event.detail,
        reminder=event.reminder,
        step="failed",
        history=_with_worker_line(task, name, at, **marks),
        pending_history=None,
    )


def _interrupted(state: RunState, name: str, task: TaskState, event: ev.AttemptInterrupted, at: str) -> TaskState:
    return replace(
        task,
        status=P,
        worker_attempts=task.worker_attempts - 1,
        spent=_released(state, task),
        detail=event.why,
        step="",
        backup="",
        launched=None,
        verified_attempt=None,
        history=_with_worker_line(task, name, at),
        pending_history=None,
    )


def _settled(state: RunState, name: str, task: TaskState, event: ev.TaskSettled, at: str) -> TaskState:
    return replace(
        task,
        status=event.status,
        block_reason=event.block_reason if event.status is B else None,
        detail=event.detail,
        step="",
        final=event.final,
        held_by="",
        not_before=event.not_before,
        spent=_released(state, task),
        backup="",
        launched=None,
        history=_with_worker_line(task, name, at),
        pending_history=None,
    )


def _requeued(state: RunState, _n: str, task: TaskState, event: ev.TaskRequeued, _at: str) -> TaskState:
    """A granted attempt begins a new life: its crash and repeat counters start again when a person granted it."""
    if event.by_person:
        extra = task.granted_by_person + event.granted
        task = replace(task, respawns=0, repeats=0, transient_retries=0, granted_by_person=extra)
    return replace(
        task,
        status=P,
        block_reason=None,
        detail=event.why,
        step="",
        final=False,
        launched=None,
        verified_attempt=None,
        held_by="",
        granted=task.granted + (0 if event.by_person else event.granted),
        not_before=event.not_before,
        hints=(*task.hints, event.hint) if event.hint else task.hints,
        spent=_released(state, task),
    )


def _held(_s: RunState, _n: str, task: TaskState, event: ev.TaskHeld, _at: str) -> TaskState:
    return replace(task, held_by=event.canary)


_RUN_CHANGES: dict[type, Callable[[RunState, Any, str], None]] = {
    ev.RunStarted: _run_started,
    ev.LeadStarted: _lead_started,
    ev.WindowOpened: _window_opened,
    ev.WindowClosed: _window_closed,
    ev.Reconciled: _reconciled,
    ev.ContentsSeen: _contents_seen,
    ev.HealStarted: _heal_started,
    ev.HealRefused: _heal_refused,
    ev.PatchApplied: _patch_applied,
    ev.PatchRefused: _nothing,
    ev.PatchUndone: _patch_undone,
    ev.HealFinished: _heal_finished,
    ev.HealAbandoned: _heal_abandoned,
    ev.QuestionAsked: _question_asked,
    ev.QuestionAnswered: _question_answered,
    ev.AccountPaused: _account_paused,
    ev.AccountLimited: _account_limited,
    ev.CommandTaken: _command_taken,
    ev.RunPaused: _run_paused,
    ev.RunResumed: _run_resumed,
    ev.SettingsChanged: _settings_changed,
    ev.DrainRequested: _drain_requested,
    ev.StopRequested: _stop_requested,
    ev.RunFinished: _run_finished,
}

_TASK_CHANGES: dict[type, Callable[[RunState, str, TaskState, Any, str], TaskState]] = {
    ev.AttemptStarted: _attempt_started,
    ev.AttemptLaunched: _attempt_launched,
    ev.AttemptExited: _attempt_exited,
    ev.CostSettled: _cost_settled,
    ev.ResultAccepted: _result_accepted,
    ev.ResultRefused: _result_refused,
    ev.WritesIntended: _writes_intended,
    ev.WritesApplied: _writes_applied,
    ev.WritesRolledBack: _rolled_back,
    ev.VerifyStarted: _verify_started,
    ev.VerifyFinished: _verify_finished,
    ev.AttemptFailed: _attempt_failed,
    ev.AttemptInterrupted: _interrupted,
    ev.TaskSettled: _settled,
    ev.TaskRequeued: _requeued,
    ev.TaskHeld: _held,
}
