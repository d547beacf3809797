"""A run without processes: the real core driven by chance, with every index checked against a naive count."""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace

from ganger.core import events as ev
from ganger.core.failures.classes import failure
from ganger.core.failures.retries import Then, after_failure
from ganger.core.model.records import Policy, TaskSpec
from ganger.core.model.run_state import RunState
from ganger.core.planning.dependents import blocked_behind
from ganger.core.scheduling.resume import taken_up
from ganger.core.scheduling.windows import CloseWindow, Decision, Finish, OpenWindow, Start, closing_events, decide
from ganger.core.state.apply import apply
from ganger.core.state.indexes import files_of
from ganger.core.vocabulary import FailureClass, HealSchedule, TaskStatus

P, R, D = TaskStatus.PENDING, TaskStatus.RUNNING, TaskStatus.DONE
FAILURES = (
    FailureClass.TEST_ERROR,
    FailureClass.CONTRACT_ERROR,
    FailureClass.CRASH,
    FailureClass.BLOCKED_EXTERNAL,
    FailureClass.REAL_BUG,
)


def random_specs(chance: random.Random, size: int) -> tuple[TaskSpec, ...]:
    """An acyclic graph with some declared files, in random manifest order."""
    names = [f"t{n}" for n in range(size)]
    specs = []
    for place, name in enumerate(names):
        needs = chance.sample(names[:place], k=min(place, chance.choice((0, 0, 1, 1, 2, 3))))
        files = tuple(chance.sample(("x", "y", "z"), k=chance.choice((0, 0, 0, 1, 2))))
        specs.append(TaskSpec(name, tuple(needs), chance.choice((None, None, 1, -1, 0.5)), writes=files))
    chance.shuffle(specs)
    return tuple(specs)


@dataclass
class Model:
    """One run and everything that happened in it."""

    specs: tuple[TaskSpec, ...]
    policy: Policy
    chance: random.Random = field(default_factory=lambda: random.Random(0))
    fail_rate: float = 0.3
    state: RunState = field(default_factory=RunState)
    events: list[ev.Recorded] = field(default_factory=list)
    most_running: int = 0
    checked: bool = True

    def begin(self, only: tuple[str, ...] | None = None, max_tasks: int | None = None) -> Model:
        if not self.events:
            self.record(ev.RunStarted("run", "digest", self.policy, self.specs))
        self.record(ev.LeadStarted(1, policy=self.policy, only=only, max_tasks=max_tasks))
        self.record(*taken_up(self.state))
        return self

    def record(self, *events: ev.Event) -> None:
        for event in events:
            entry = ev.Recorded(len(self.events) + 1, "2026-01-01T00:00:00.000000Z", event)
            if self.checked:
                self._check_before(event)
            self.events.append(entry)
            apply(self.state, entry)
            if self.checked:
                check_indexes(self.state)
        self.most_running = max(self.most_running, len(self.state.index.running))

    def _check_before(self, event: ev.Event) -> None:
        """What must never be decided, whoever decides it."""
        if isinstance(event, ev.AttemptStarted):
            spec = self.state.specs[event.task]
            assert event.task not in self.state.index.running
            assert all(self.state.tasks[need].status is D for need in spec.depends_on)
            assert not set(spec.writes) & {f for t in self.state.index.running for f in self.state.specs[t].writes}
            assert self.state.windows.current is None or event.task in self.state.windows.current.tasks
        if isinstance(event, ev.WindowOpened):
            assert self.state.windows.current is None and not self.state.index.running

    def run(self, most_steps: int = 2000) -> Model:
        """Until nothing more is decided and nothing runs; every run must get there."""
        for _ in range(most_steps):
            if not self.step():
                return self
        raise AssertionError(f"no end after {most_steps} steps: {self.state.index.counts}")

    def step(self) -> bool:
        """Whatever is decided, or else the end of one attempt; False when there is neither."""
        decisions = decide(self.state, 0.0)
        if decisions:
            self.carry_out(decisions)
        elif self.state.index.running:
            self.end_one(self.chance.choice(sorted(self.state.index.running)))
        return bool(decisions or self.state.index.running or not self.state.finished)

    def carry_out(self, decisions: list[Decision]) -> None:
        for decision in decisions:
            match decision:
                case Start(task):
                    self.start(task)
                case OpenWindow(size, tasks, retry_of):
                    self.record(ev.WindowOpened(self.state.windows.opened + 1, size, tasks, retry_of))
                case CloseWindow():
                    self.record(*closing_events(self.state, decision))
                case Finish(status, reason, why):
                    counts = {status.value: count for status, count in self.state.index.counts.items()}
                    self.record(ev.RunFinished(status, reason, counts, why))

    def start(self, task: str) -> None:
        number = self.state.tasks[task].attempts + 1
        self.record(ev.AttemptStarted(task, number, f"{task}.{number}", "agent", "", "log"))

    def end_one(self, task: str) -> None:
        if self.chance.random() < self.fail_rate:
            self.fail(task, self.chance.choice(FAILURES))
        else:
            self.finish(task)

    def finish(self, task: str) -> None:
        number = self.state.tasks[task].attempts
        self.record(ev.VerifyFinished(task, number, True, "log", 0.0, ()), ev.TaskSettled(task, D, "verified"))

    def fail(self, task: str, cls: FailureClass) -> None:
        now = self.state.tasks[task]
        problem = failure(cls, "boom", "boom", own_id=task)
        chosen = after_failure(self.state.specs[task], now, self.state.policy, problem)
        self.record(ev.AttemptFailed(task, now.attempts, cls.value, problem.signature, "boom", chosen.counter))
        if chosen.then is Then.AGAIN_NOW:
            self.record(ev.TaskRequeued(task, chosen.why))
            return
        final = chosen.then is Then.SETTLE
        self.record(ev.TaskSettled(task, chosen.status, chosen.why, chosen.block_reason, final=final))
        if final:
            self.record(*self.blocked_by(task))
        elif self.policy.heal_schedule is HealSchedule.OFF:
            self.record(ev.TaskRequeued(task, chosen.why))

    def blocked_by(self, task: str) -> list[ev.TaskSettled]:
        return blocked_behind(self.state, [task])

    def interrupt_all(self) -> None:
        """A stop, or a lead that died: what ran counts for nothing."""
        for task in sorted(self.state.index.running):
            self.record(ev.AttemptInterrupted(task, self.state.tasks[task].attempts, "stopped"))


def check_indexes(state: RunState) -> None:
    """Everything the state keeps for speed, counted again from the statuses."""
    status = {name: task.status for name, task in state.tasks.items()}
    assert state.index.counts == {s: sum(1 for v in status.values() if v is s) for s in TaskStatus}
    assert state.index.running == {name for name, v in status.items() if v is R}
    at_work = state.index.running - state.index.delivering
    # A conflict is known while its attempt still ends: those files are busy from the next attempt on.
    known = {file for name in at_work if state.tasks[name].attempt.step != "failed" for file in files_of(state, name)}
    assert known <= set(state.index.busy_files) <= {file for name in at_work for file in files_of(state, name)}
    assert set(state.index.busy_files.values()) <= at_work
    for name, spec in state.specs.items():
        assert state.index.unmet[name] == sum(1 for need in set(spec.depends_on) if status[need] is not D)
    startable = {name for name, v in status.items() if v is P and not state.index.unmet[name]}
    assert offered(state, state.index.ready) == startable
    assert offered(state, state.windows.ready) >= startable & state.windows.open
    assert state.windows.open <= set(state.windows.current.tasks if state.windows.current else ())


def offered(state: RunState, heap: list[int]) -> set[str]:
    names = {state.index.by_rank[rank] for rank in heap}
    return {name for name in names if state.tasks[name].status is P and not state.index.unmet[name]}


def picture(state: RunState) -> RunState:
    """The state for comparing: heaps without what is stale."""
    ready, window_ready = offered(state, state.index.ready), offered(state, state.windows.ready)
    return replace(
        state,
        index=replace(state.index, ready=sorted(state.index.rank[n] for n in ready)),
        windows=replace(state.windows, ready=sorted(state.index.rank[n] for n in window_ready & state.windows.open)),
    )


def replayed(events: list[ev.Recorded]) -> RunState:
    state = RunState()
    for entry in events:
        apply(state, entry)
    return state
