"""How each event changes the run as a whole."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from ganger.core import events as ev
from ganger.core.model.records import Intent, Question, Scope, TaskSpec, Window
from ganger.core.model.run_state import RunState
from ganger.core.model.task_state import TaskState
from ganger.core.planning.repos import phase_of
from ganger.core.state.allowed import SETTLED
from ganger.core.state.apply_worker import escalated_by
from ganger.core.state.hosts import try_all
from ganger.core.state.indexes import index_levels, index_locks, index_order, index_tasks
from ganger.core.state.reducers import applies
from ganger.core.times import seconds_between
from ganger.core.vocabulary import HealSchedule, MergeMode, RunStatus


@applies(ev.RunStarted)
def _run_started(state: RunState, event: ev.RunStarted, at: str) -> None:
    state.run_id, state.manifest.digest, state.started_at = event.run_id, event.manifest_digest, at
    state.policy = event.policy
    state.specs = {spec.id: spec for spec in event.tasks}
    state.tasks = {spec.id: TaskState() for spec in event.tasks}
    state.manifest.contents = contents_by_task(event.tasks, event.contents)
    index_tasks(state)
    state.windows.batch_size = _first_size(state)


def contents_by_task(tasks: tuple[TaskSpec, ...], contents: tuple[str, ...]) -> dict[str, str]:
    return {spec.id: text for spec, text in zip(tasks, contents, strict=False)}


@applies(ev.Reconciled)
def _reconciled(state: RunState, event: ev.Reconciled, _at: str) -> None:
    """Changed tasks start over; their attempts keep counting, because logs are named after them."""
    before, anew = state.tasks, frozenset(event.changed)
    state.manifest.digest = event.manifest_digest
    state.specs = {spec.id: spec for spec in event.tasks}
    state.manifest.contents = contents_by_task(event.tasks, event.contents)
    state.tasks = {}
    state.manifest.retired.update({name: before[name].attempts for name in event.removed if name in before})
    for name in state.specs:
        old = before.get(name, TaskState(attempts=state.manifest.retired.get(name, 0)))
        state.tasks[name] = (
            TaskState(attempts=old.attempts, history=old.history, spent=old.spent) if name in anew else old
        )
    index_tasks(state)
    forget_window(state)
    state.windows.retry_now = tuple(name for name in state.windows.retry_now if name in state.tasks)


@applies(ev.ContentsSeen)
def _contents_seen(state: RunState, event: ev.ContentsSeen, _at: str) -> None:
    state.manifest.contents.update(event.contents)


def _first_size(state: RunState) -> int:
    schedule = state.policy.heal_schedule
    if schedule is HealSchedule.BATCH:
        return state.policy.batch_size
    return max(1, len(state.specs)) if schedule in (HealSchedule.EPOCH, HealSchedule.OFF) else 1


@applies(ev.LeadStarted)
def _lead_started(state: RunState, event: ev.LeadStarted, at: str) -> None:
    changed = state.policy.heal_schedule is not event.policy.heal_schedule
    state.policy = event.policy
    if changed:
        forget_window(state)
        state.windows.retry_now, state.windows.retry_of = (), 0
    if changed or event.policy.heal_schedule is not HealSchedule.AUTO:
        state.windows.batch_size = _first_size(state)
    for patch in state.healing.patches.values():
        if patch.concurrency is not None and not patch.undone and state.policy.concurrency == patch.before[0]:
            state.policy = replace(state.policy, concurrency=patch.concurrency)
    state.money.budget, state.healing.limits, state.healing.healer = event.budget, event.limits, event.healer
    # Prices may have been set since the run was interrupted.
    state.money.spent = replace(state.money.spent, unpriced=0)
    state.quota.accounts = dict(event.accounts)
    state.mode, state.merging = event.mode, event.merging
    state.files.in_place_roles.update(event.in_place)
    state.lead.pull_roles = set(event.pull_roles)
    known, state.chains.rules = phase_of(state.chains.rules), {rules.name: rules for rules in event.repos}
    if phase_of(state.chains.rules) != known:
        index_order(state)
    index_locks(state)
    state.lead.rebooted = bool(state.lead.boot_id) and event.boot_id != state.lead.boot_id
    state.lead.boot_id = event.boot_id
    if event.merging is MergeMode.LEVEL:
        index_levels(state, event.levels)
    state.lead.active_sec += seconds_between(state.lead.since, state.log.last_at)
    state.lead.since = at
    state.lead.count += 1
    state.lead.scope = Scope(None if event.only is None else frozenset(event.only), event.max_tasks)
    state.lead.touched = set()
    state.status, state.abort_reason = RunStatus.RUNNING, None
    try_all(state)
    if state.finished:
        # A person continued the run, perhaps with another key: one worker tries whether it works.
        for account in list(state.quota.shut):
            _let_try(state, account)
    state.lead.stopping = state.finished = state.lead.draining = False
    state.healing.abandoned = state.finished_at = ""


@applies(ev.WindowOpened)
def _window_opened(state: RunState, event: ev.WindowOpened, _at: str) -> None:
    state.windows.current = Window(event.index, event.size, event.tasks, event.retry_of)
    state.windows.retry_now, state.windows.retry_of = (), 0
    state.windows.open = {
        t for t in event.tasks if state.tasks[t].status not in SETTLED and t not in state.index.in_merge_queue
    }
    state.windows.ready = sorted(state.index.rank[t] for t in state.windows.open if not state.index.unmet[t])
    state.windows.opened = event.index


@applies(ev.GatesChecked)
def _gates_checked(state: RunState, event: ev.GatesChecked, _at: str) -> None:
    state.checks.on_merges += 1
    if event.passed and event.evidence:
        state.checks.evidence.setdefault(event.evidence, event.log)


@applies(ev.HeadIntended)
def _head_intended(state: RunState, event: ev.HeadIntended, _at: str) -> None:
    repo = state.specs[event.tasks[0]].repo
    state.branches.intents[repo] = Intent(event.head, event.tip, event.tasks, event.commits)


@applies(ev.HeadKept)
def _head_kept(state: RunState, event: ev.HeadKept, _at: str) -> None:
    state.branches.intents.pop(event.repo, None)


@applies(ev.UnclaimedEdits)
def _unclaimed_edits(state: RunState, event: ev.UnclaimedEdits, _at: str) -> None:
    state.files.in_place_roles.add(event.role)
    state.files.written.update(event.files)


@applies(ev.Landed)
def _landed(state: RunState, event: ev.Landed, _at: str) -> None:
    state.branches.landed[event.repo] = event.commit


@applies(ev.WindowClosed)
def _window_closed(state: RunState, event: ev.WindowClosed, _at: str) -> None:
    forget_window(state)
    state.windows.batch_size = event.next_size


def forget_window(state: RunState) -> None:
    state.windows.current, state.windows.open, state.windows.ready = None, set(), []


@applies(ev.QuestionAsked)
def _question_asked(state: RunState, event: ev.QuestionAsked, at: str) -> None:
    state.inbox.questions[event.question] = Question(
        event.question,
        event.task,
        event.kind,
        event.text,
        at,
        attempt=event.attempt,
        context=event.context,
        options=event.options,
        default=event.default,
        deadline=event.deadline,
        account=event.account,
        host=event.host,
        by_worker=bool(event.report),
    )
    state.inbox.asked += 1
    task = state.tasks.get(event.task)
    if task is not None and event.report and task.attempts == event.attempt:
        state.tasks[event.task] = escalated_by(task, event.question, event.report)


@applies(ev.QuestionAnswered)
def _question_answered(state: RunState, event: ev.QuestionAnswered, _at: str) -> None:
    state.inbox.questions[event.question] = replace(state.inbox.questions[event.question], answer=event.text)


@applies(ev.QuestionRaised)
def _question_raised(state: RunState, event: ev.QuestionRaised, at: str) -> None:
    state.inbox.questions[event.question] = replace(
        state.inbox.questions[event.question], raised=event.times, raised_at=at
    )


@applies(ev.AccountPaused)
def _account_paused(state: RunState, event: ev.AccountPaused, at: str) -> None:
    since = datetime.fromisoformat(at).timestamp() if at else 0.0
    state.quota.rested[event.account] = max(0.0, event.until - since)
    state.quota.paused[event.account] = max(event.until, state.quota.paused.get(event.account, 0.0))


@applies(ev.AccountLimited)
def _account_limited(state: RunState, event: ev.AccountLimited, _at: str) -> None:
    if event.at_once:
        state.quota.limited[event.account] = event.at_once
    else:
        state.quota.limited.pop(event.account, None)


@applies(ev.AccountShut)
def _account_shut(state: RunState, event: ev.AccountShut, _at: str) -> None:
    state.quota.shut[event.account] = event.until


@applies(ev.AccountTried)
def _account_tried(state: RunState, event: ev.AccountTried, _at: str) -> None:
    _let_try(state, event.account)
    state.quota.paused.pop(event.account, None)


def _let_try(state: RunState, account: str) -> None:
    """Any time in the past lets a worker try the account."""
    state.quota.shut[account] = 1.0


@applies(ev.AccountWorks)
def _account_works(state: RunState, event: ev.AccountWorks, _at: str) -> None:
    state.quota.shut.pop(event.account, None)


@applies(ev.CommandTaken)
def _command_taken(state: RunState, event: ev.CommandTaken, _at: str) -> None:
    state.lead.commands_taken = max(state.lead.commands_taken, event.number)


@applies(ev.RunPaused)
def _run_paused(state: RunState, _event: ev.RunPaused, _at: str) -> None:
    state.lead.paused = True


@applies(ev.RunResumed)
def _run_resumed(state: RunState, _event: ev.RunResumed, _at: str) -> None:
    state.lead.paused = False


@applies(ev.SettingsChanged)
def _settings_changed(state: RunState, event: ev.SettingsChanged, _at: str) -> None:
    state.policy, state.money.budget = event.policy, event.budget


@applies(ev.DrainRequested)
def _drain_requested(state: RunState, _event: ev.DrainRequested, _at: str) -> None:
    state.lead.draining = True


@applies(ev.StopRequested)
def _stop_requested(state: RunState, _event: ev.StopRequested, _at: str) -> None:
    state.lead.stopping = True


@applies(ev.PatchRefused, ev.FixedRestored, ev.RefsMoved)
def _nothing(_state: RunState, _event: object, _at: str) -> None:
    """Recorded for people; changes nothing."""


@applies(ev.RunFinished)
def _run_finished(state: RunState, event: ev.RunFinished, at: str) -> None:
    state.status, state.abort_reason = event.run_status, event.abort_reason
    state.finished, state.finished_at = True, at
