"""The core alone, fed events in any order, legal or not: indexes stay true, a refused event changes nothing."""

from __future__ import annotations

import copy
import json
from dataclasses import fields, replace

from hypothesis import settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from ganger.contracts.faults import faults_of
from ganger.contracts.state import State
from ganger.core import events as ev
from ganger.core.model.records import Budget, Policy, TaskSpec
from ganger.core.model.run_state import RunState
from ganger.core.model.task_state import TaskState
from ganger.core.model.workers import Checkpoint
from ganger.core.state.apply import apply
from ganger.core.state.projection import state_text
from ganger.core.vocabulary import BlockReason, HealSchedule, RunStatus, TaskStatus, WorkerVerdict

P, R, D = TaskStatus.PENDING, TaskStatus.RUNNING, TaskStatus.DONE
NAMES = ("a", "b", "c", "d")
SPECS = (TaskSpec("a"), TaskSpec("b", ("a",), writes=("x",)), TaskSpec("c", ("a",)), TaskSpec("d", ("b", "c")))
TASKS = st.sampled_from((*NAMES, *NAMES, "ghost"))
SOME = st.lists(TASKS, max_size=3, unique=True).map(tuple)
OFF = st.sampled_from((0, 0, 0, 0, 1, -1))
WORD = st.sampled_from(("one", "two"))
COUNTERS = ("worker_attempts", "format_retries", "respawns", "transient_retries", "stalls")


def kept(state: RunState) -> dict[str, object]:
    """Everything but the journal's own marks; heaps as what they offer."""
    values = {one.name: getattr(state, one.name) for one in fields(state) if one.name != "log"}
    bare = {"index": replace(state.index, ready=[]), "windows": replace(state.windows, ready=[])}
    offers = {"ready": offered(state, state.index.ready), "window_ready": offered(state, state.windows.ready)}
    return values | bare | offers


def offered(state: RunState, heap: list[int]) -> set[str]:
    names = {state.index.by_rank[rank] for rank in heap}
    return {name for name in names if state.tasks[name].status is P and not state.index.unmet[name]}


class CoreMachine(RuleBasedStateMachine):
    """One run; `happens` is the only way anything changes."""

    def __init__(self) -> None:
        super().__init__()
        self.state = RunState()
        self.seq = 0

    def happens(self, event: ev.Event) -> None:
        self.seq += 1
        before, refused = copy.deepcopy(kept(self.state)), len(self.state.log.refused)
        apply(self.state, ev.Recorded(self.seq, f"2026-01-01T00:{self.seq // 60 % 60:02}:{self.seq % 60:02}Z", event))
        assert self.state.log.last_seq == self.seq
        if len(self.state.log.refused) > refused:
            assert kept(self.state) == before, f"{event} was refused and changed something"

    def now(self, task: str) -> TaskState:
        return self.state.tasks.get(task, TaskState())

    @initialize(schedule=st.sampled_from(HealSchedule))
    def begin(self, schedule: HealSchedule) -> None:
        policy = Policy(heal_schedule=schedule, concurrency=2)
        self.happens(ev.RunStarted("run", "digest", policy, SPECS))
        self.happens(ev.LeadStarted(1, policy=policy, fence=1, healer="healer"))

    # --- the run --------------------------------------------------------------------------------------------------

    @rule(schedule=st.sampled_from(HealSchedule), again=st.booleans())
    def lead(self, schedule: HealSchedule, again: bool) -> None:
        policy = Policy(heal_schedule=schedule)
        self.happens(ev.RunStarted("run", "digest", policy, SPECS) if again else ev.LeadStarted(2, policy=policy))

    @rule(tasks=SOME, off=OFF, closes=st.booleans())
    def window(self, tasks: tuple[str, ...], off: int, closes: bool) -> None:
        index = self.state.windows.opened + off
        if closes:
            self.happens(ev.WindowClosed(index, 0, 0, 0, 0.0, 2))
        else:
            self.happens(ev.WindowOpened(index + 1, len(tasks), tasks))

    @rule(word=WORD, status=st.sampled_from(RunStatus), kind=st.integers(0, 8), task=TASKS)
    def says(self, word: str, status: RunStatus, kind: int, task: str) -> None:
        said: tuple[ev.Event, ...] = (
            ev.RunPaused(word),
            ev.RunResumed(word),
            ev.DrainRequested(word),
            ev.StopRequested(word),
            ev.QuestionAsked(word, task, "crash", "what now?"),
            ev.QuestionAnswered(word, "go on"),
            ev.CommandTaken(self.state.lead.commands_taken + 1, "pause", "paused"),
            ev.AccountPaused(word, 1e9, "quota"),
            ev.RunFinished(status, "reason" if status is RunStatus.ABORTED else None, {}),
        )
        self.happens(said[kind])

    @rule(concurrency=st.integers(1, 5), usd=st.sampled_from((None, 1.0)))
    def settings(self, concurrency: int, usd: float | None) -> None:
        self.happens(ev.SettingsChanged(replace(self.state.policy, concurrency=concurrency), Budget(usd=usd)))

    # --- one task -------------------------------------------------------------------------------------------------

    @rule(task=TASKS, off=OFF, worker=st.sampled_from(("", "", "one", "two")))
    def start(self, task: str, off: int, worker: str) -> None:
        number = self.now(task).attempts + 1 + off
        claim = ev.AttemptStarted(task, number, f"{task}.{number}", "agent", "", "log", reserved_usd=0.5, worker=worker)
        self.happens(claim)

    @rule(task=TASKS, off=OFF, kind=st.integers(0, 8))
    def goes_on(self, task: str, off: int, kind: int) -> None:
        number = self.now(task).attempts + off
        steps: tuple[ev.Event, ...] = (
            ev.AttemptLaunched(task, number, 7, 8),
            ev.AttemptExited(task, number, 0, None, False, 1.0),
            ev.CostSettled(task, number, 0.25, 10, 1),
            ev.ResultAccepted(task, number, "DONE", "did it"),
            ev.ResultRefused(task, number, "NO_SENTINEL", "none"),
            ev.WritesIntended(task, number, "backups/x", ("x",)),
            ev.WritesApplied(task, number),
            ev.WritesRolledBack(task, number, "why", "log"),
            ev.VerifyStarted(task, number, "log"),
        )
        self.happens(steps[kind])

    @rule(task=TASKS, off=OFF, kind=st.integers(0, 11), word=WORD)
    def worker(self, task: str, off: int, kind: int, word: str) -> None:
        number = self.now(task).attempts + off
        said: tuple[ev.Event, ...] = (
            ev.WorkerBeat(task, number, word, word, 10.0),
            ev.WorkerMilestone(task, number, word, word),
            ev.CheckpointTaken(task, number, word, Checkpoint(number, "", by=word)),
            ev.WorkerReported(task, number, word, "DONE", word, "file", "digest"),
            ev.WorkerDone(task, number, word),
            ev.WorkerSuspected(task, number, word, word),
            ev.WorkerCleared(task, number, word),
            ev.LimitWarned(task, number, word, word),
            ev.LimitExtended(task, number, word, 1e9, word),
            ev.WorkerEnding(task, number, WorkerVerdict.STALLED, word),
            ev.MessageLeft(task, number, "answer", word),
            ev.AttemptCheckpointed(task, number, word),
        )
        self.happens(said[kind])

    @rule(task=TASKS, off=OFF, passed=st.booleans())
    def verify(self, task: str, off: int, passed: bool) -> None:
        self.happens(ev.VerifyFinished(task, self.now(task).attempts + off, passed, "log", 1.0, ()))

    @rule(task=TASKS, off=OFF, counter=st.sampled_from((*COUNTERS, "nothing")), signature=WORD)
    def fails(self, task: str, off: int, counter: str, signature: str) -> None:
        number = self.now(task).attempts + off
        self.happens(ev.AttemptFailed(task, number, "test_error", signature, "detail", counter))

    @rule(task=TASKS, off=OFF)
    def interrupted(self, task: str, off: int) -> None:
        self.happens(ev.AttemptInterrupted(task, self.now(task).attempts + off, "stopped"))

    @rule(
        task=TASKS,
        status=st.sampled_from(TaskStatus),
        reason=st.sampled_from((None, *BlockReason)),
        final=st.booleans(),
    )
    def settles(self, task: str, status: TaskStatus, reason: BlockReason | None, final: bool) -> None:
        self.happens(ev.TaskSettled(task, status, "detail", reason, final=final))

    @rule(task=TASKS, granted=st.integers(0, 1), wait=st.sampled_from((0.0, 5.0)), hint=st.sampled_from(("", "hint")))
    def requeued(self, task: str, granted: int, wait: float, hint: str) -> None:
        self.happens(ev.TaskRequeued(task, "again", granted, wait, hint))

    @rule(task=TASKS, canary=TASKS)
    def held(self, task: str, canary: str) -> None:
        self.happens(ev.TaskHeld(task, canary))

    # --- healing --------------------------------------------------------------------------------------------------

    @rule(off=OFF, failed=SOME)
    def heal(self, off: int, failed: tuple[str, ...]) -> None:
        number = len(self.state.healing.rounds) + 1 + off
        self.happens(ev.HealStarted(number, 1, failed, failed, "healer", "log", f"h{number}"))

    @rule(off=OFF, kind=st.integers(0, 4), tasks=SOME, name=WORD)
    def healer_says(self, off: int, kind: int, tasks: tuple[str, ...], name: str) -> None:
        number = len(self.state.healing.rounds) + off
        steps: tuple[ev.Event, ...] = (
            ev.HealRefused(number, "NO_SENTINEL", "none"),
            ev.PatchApplied(name, number, "contract_hint", "append", tasks, timeout_sec=60.0),
            ev.PatchRefused(number, 0, "contract_hint", "why"),
            ev.HealFinished(number, "RETRY", "prompt_gap", "a gap", 0, 1.0),
            ev.CostSettled("", number, 0.1),
        )
        self.happens(steps[kind])

    @rule(name=WORD)
    def undo(self, name: str) -> None:
        self.happens(ev.PatchUndone(name, "a person"))

    # --- what always holds ----------------------------------------------------------------------------------------

    @invariant()
    def indexes_are_true(self) -> None:
        state = self.state
        if not state.specs:
            return
        status = {name: task.status for name, task in state.tasks.items()}
        assert state.index.counts == {s: sum(1 for v in status.values() if v is s) for s in TaskStatus}
        assert state.index.running == {name for name, v in status.items() if v is R}
        assert state.index.pulled == {
            n for n in state.index.running if (w := state.tasks[n].worker) is not None and w.pulled
        }
        assert state.index.busy_files == {f: name for name in state.index.running for f in state.specs[name].writes}
        for name, spec in state.specs.items():
            assert state.index.unmet[name] == sum(1 for need in set(spec.depends_on) if status[need] is not D)
        startable = {name for name, v in status.items() if v is P and not state.index.unmet[name]}
        assert offered(state, state.index.ready) == startable
        assert offered(state, state.windows.ready) >= startable & state.windows.open
        held = {(by, name) for by, names in state.index.held.items() for name in names}
        assert held == {(task.waits_for_canary, name) for name, task in state.tasks.items() if task.waits_for_canary}

    @invariant()
    def counters_count(self) -> None:
        for task in self.state.tasks.values():
            assert all(getattr(task.counters, name) >= 0 for name in (*COUNTERS, "granted", "healer_attempts"))
            assert task.attempts >= 0
            assert task.counters.worker_attempts <= task.attempts
            assert task.status is not D or task.verification.passed_attempt == task.attempts
        assert self.state.money.spent.reserved_usd >= -1e-9

    @invariant()
    def projection_is_valid(self) -> None:
        if self.state.specs:
            assert not faults_of(State, json.loads(state_text(self.state)))


class TestCoreMachine(CoreMachine.TestCase):  # type: ignore[misc,valid-type]
    """T05 T19 T21 G12: whatever is fed to the core, its state stays whole and its picture valid."""

    settings = settings(stateful_step_count=40)
