"""The workers of a run: workspace, task, since when, how far; and the accounts that wait for their quota."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from ganger.core.events.wording import tier_words
from ganger.core.model.run_state import RunState
from ganger.core.model.task_state import TaskState
from ganger.core.model.workers import TierMark, WorkerNow
from ganger.core.names import file_stem, repo_place
from ganger.core.scheduling.quota import account_of, paused_until, question_about
from ganger.core.times import seconds_between, stamp
from ganger.core.vocabulary import AttemptStep, BlockReason, Mode, TaskStatus
from ganger.views.run.board import shown_duration

_STEPS = {
    AttemptStep.PARSE: "answer is read",
    AttemptStep.VERIFY: "verification",
    AttemptStep.VERIFIED: "verified",
    AttemptStep.MERGE: "waits to be merged",
}


@dataclass(frozen=True, slots=True)
class WorkerRow:
    """One worker of one attempt. `step` is what the worker says it does, `stage` is how far Ganger is with it."""

    worker: str
    pulled: bool
    task: str
    attempt: int
    role: str
    agent: str
    state: str
    since: str
    stage: AttemptStep
    step: str
    percent: float | None
    milestone: str
    tiers: tuple[TierMark, ...]
    note: str
    doing: str
    last_sign: str
    context_pct: float | None
    suspicious: str
    warned: str
    ending: str
    checkpoint: str
    session: str
    workspace: str
    task_status: str
    tasks_done: int
    tasks_total: int

    def as_json(self) -> dict[str, object]:
        """Empty strings become null."""
        values = asdict(self)
        return {key: None if value == "" else value for key, value in values.items()}

    def line(self, now: str) -> str:
        """One line that is readable without colour."""
        parts = [f"{self.state} since {shown_duration(seconds_between(self.since, now))}", *self._how_far()]
        if self.last_sign:
            parts.append(f"seen {shown_duration(seconds_between(self.last_sign, now))} ago")
        if self.context_pct is not None:
            parts.append(f"context {self.context_pct:.0f} %")
        over = self.task_status != TaskStatus.RUNNING
        notes = (("SUSPICIOUS:", self.suspicious), ("ENDED:" if over else "ENDING:", self.ending))
        parts += [f"{word} {text}" for word, text in notes if text]
        if over:
            parts.append(f"task {self.task_status}")
        who = f"{self.worker} (pull)" if self.pulled else self.worker
        return f"{self.task} #{self.attempt} {who}: {', '.join(parts)}"

    def _how_far(self) -> list[str]:
        found = [_STEPS[self.stage]] if self.stage in _STEPS else [self.step or self.doing]
        if self.percent is not None and self.stage == AttemptStep.AGENT:
            found.append(f"{self.percent:g} %")
        if self.milestone:
            found.append(f"milestone {self.milestone}")
        return [*filter(None, found), *(tier_words(mark) for mark in self.tiers)]


def registry(state: RunState, folder: Path, root: Path, *, past: bool = False) -> list[WorkerRow]:
    """Every running worker, in plan order; with `past` also the last workers of tasks that are not DONE.

    `folder` is the run's, `root` the project's.
    """
    done, given = _shares(state)
    # A change in delivery has no worker any more.
    at_work = state.index.running - state.index.delivering
    named = at_work if not past else {n for n, t in state.tasks.items() if t.status is not TaskStatus.DONE}
    rows: list[WorkerRow] = []
    for name in sorted(named, key=lambda n: (n not in state.index.running, state.index.rank[n])):
        task = state.tasks[name]
        if task.worker is not None:
            who = _owner(task, task.worker)
            rows.append(_row(state, name, task, task.worker, _place(state, name, folder, root), done[who], given[who]))
    return rows


def _shares(state: RunState) -> tuple[Counter[str], Counter[str]]:
    """Per worker: the number of tasks it was the last to hold, and how many of them are DONE."""
    done: Counter[str] = Counter()
    given: Counter[str] = Counter()
    for task in state.tasks.values():
        if task.worker is not None:
            who = _owner(task, task.worker)
            given[who] += 1
            done[who] += task.status is TaskStatus.DONE
    return done, given


def _owner(task: TaskState, worker: WorkerNow) -> str:
    """The key to count tasks by: the name of a session that asks for work, or the agent of a spawned worker, which is
    new for each attempt."""
    return f"pull {worker.name}" if worker.pulled else f"agent {_agent(task)}"


def _agent(task: TaskState) -> str:
    return task.agent.used.rpartition("/")[0] or task.agent.used


def _place(state: RunState, name: str, folder: Path, root: Path) -> str:
    if state.mode is Mode.DIRECT:
        return str(root)
    place = folder / repo_place(state.specs[name].repo) / "work"
    return str(place / f"{file_stem(name)}.{state.tasks[name].work.workspace_of}")


def _row(
    state: RunState, name: str, task: TaskState, worker: WorkerNow, workspace: str, done: int, given: int
) -> WorkerRow:
    kept = task.checkpoint
    return WorkerRow(
        worker=worker.name,
        pulled=worker.pulled,
        task=name,
        attempt=task.attempts,
        role=state.specs[name].role,
        agent=_agent(task),
        state=worker.state.value,
        since=worker.since,
        stage=task.attempt.step,
        step=worker.step,
        percent=worker.percent,
        milestone=worker.milestone,
        tiers=worker.tiers,
        note=worker.note,
        doing=task.agent.activity,
        last_sign=worker.beat_at,
        context_pct=worker.context_pct,
        suspicious=worker.suspicious,
        warned=worker.warned,
        ending=f"{worker.verdict}: {worker.why}" if worker.verdict else "",
        checkpoint=kept.at if kept is not None else "",
        session=worker.session or task.agent.session,
        workspace=workspace,
        task_status=task.status.value,
        tasks_done=done,
        tasks_total=given,
    )


@dataclass(frozen=True, slots=True)
class AccountRow:
    """An account whose workers wait. `tasks` is how many of the run's tasks wait for it. `shut`: its key, login or
    credit was refused, and `question` asks how to continue."""

    account: str
    until: str
    wait_sec: float
    tasks: int
    at_once: int | None
    question: str = ""
    shut: bool = False

    def as_json(self) -> dict[str, object]:
        return asdict(self)

    @property
    def line(self) -> str:
        name = f"account {self.account}" if self.account else "the account"
        waits = "1 task waits" if self.tasks == 1 else f"{self.tasks} tasks wait"
        if self.shut:
            asked = f"; ganger inbox: {self.question}" if self.question else ""
            tried = f", tried again at {self.until[:19]}Z" if self.until else ""
            return f"{name} was refused (key, login or credit){tried}; {waits} for it{asked}"
        return f"{name} is out of quota until {self.until[:19]}Z ({shown_duration(self.wait_sec)}); {waits} for it"


def waiting_accounts(state: RunState, now: float) -> list[AccountRow]:
    found = {account: until for account in state.quota.paused if (until := paused_until(state, account, now))}
    found = {account: until for account, until in found.items() if account not in state.quota.shut}
    waiting = _waiting_by_account(state, [*found, *state.quota.shut]) if found or state.quota.shut else {}
    return [*_shut_accounts(state, now, waiting), *_resting_accounts(state, now, found, waiting)]


def _shut_accounts(state: RunState, now: float, waiting: Mapping[str, int]) -> list[AccountRow]:
    rows = []
    for name, until in sorted(state.quota.shut.items()):
        asked, when = question_about(state, name), until if until > now else 0.0
        told, wait_sec = (stamp(when), round(when - now, 1)) if when else ("", 0.0)
        at_once = state.quota.limited.get(name)
        rows.append(
            AccountRow(name, told, wait_sec, waiting.get(name, 0), at_once, asked.id if asked else "", shut=True)
        )
    return rows


def _resting_accounts(
    state: RunState, now: float, found: Mapping[str, float], waiting: Mapping[str, int]
) -> list[AccountRow]:
    return [
        AccountRow(name, stamp(until), round(until - now, 1), waiting.get(name, 0), state.quota.limited.get(name))
        for name, until in sorted(found.items(), key=lambda item: item[1])
    ]


_WAITING = frozenset({BlockReason.QUOTA_WAIT, BlockReason.EXTERNAL})


def _waiting_by_account(state: RunState, accounts: Iterable[str]) -> Counter[str]:
    wanted, waiting = frozenset(accounts), Counter[str]()
    for name, task in state.tasks.items():
        ready = task.status is TaskStatus.PENDING and not state.index.unmet[name]
        if (ready or (task.block_reason in _WAITING and not task.final)) and (
            account := account_of(state, name)
        ) in wanted:
            waiting[account] += 1
    return waiting
