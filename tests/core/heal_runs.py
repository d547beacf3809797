"""A run with a healer but without processes: the real core, a world that says what fails until which words arrive."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from ganger.contracts.heal_decision import HealDecision
from ganger.core import events as ev
from ganger.core.failures.classes import Failure, failure
from ganger.core.failures.retries import NextStep, Then, after_failure
from ganger.core.healing.patches import Ground, Judged, judge
from ganger.core.healing.policy import Cure, after_nothing, after_round, healing_on, questions_for, shrunk_size
from ganger.core.model.records import Budget, HealRound, Policy, TaskSpec
from ganger.core.model.run_state import RunState
from ganger.core.money.budgets import reservation
from ganger.core.planning.dependents import blocked_behind
from ganger.core.scheduling.quota import account_of, after_quota, after_success
from ganger.core.scheduling.resume import taken_up
from ganger.core.scheduling.windows import (
    CloseWindow,
    Decision,
    Finish,
    OpenWindow,
    Start,
    Wait,
    Wake,
    closing_events,
    decide,
)
from ganger.core.state.allowed import open_round
from ganger.core.state.apply import apply
from ganger.core.vocabulary import BlockReason, FailureClass, HealSchedule, TaskStatus
from tests.core.run_model import check_indexes

CONTEXT = "rules.md"
GAP = FailureClass.PROMPT_GAP
Heal = HealDecision | None
Healer = Callable[[HealRound], Heal]


@dataclass(frozen=True)
class Ailment:
    """A task fails so until what it reads holds `cure`, or until it has failed so `times` times."""

    cure: str = ""
    signal: str = "the header is missing"
    cls: FailureClass = GAP
    times: int | None = None
    undecided: bool = False


def tasks(count: int, **more: Any) -> tuple[TaskSpec, ...]:
    made = TaskSpec("", context_refs=(CONTEXT,), prompt_ref="prompt.md")
    return tuple(replace(made, id=f"t{n:02}", **more) for n in range(1, count + 1))


def names(first: int, last: int) -> tuple[str, ...]:
    return tuple(f"t{n:02}" for n in range(first, last + 1))


Proposed = dict[str, Any]


def context(text: str) -> Proposed:
    return {"target": "shared_context", "operation": "append", "path": CONTEXT, "content": text}


def prompt(task: str, text: str) -> Proposed:
    return {"target": "task_prompt", "operation": "append", "task_id": task, "content": text}


def answer(*patches: Proposed, decision: str = "RETRY", **more: object) -> HealDecision:
    base = {"contract_version": "2.0", "scope": "batch", "decision": decision, "failure_class": "prompt_gap"}
    root = {"root_cause": "the header rule is not written down", "patches": patches}
    return HealDecision.model_validate({**base, **root, **more})


def in_turn(*answers: Heal) -> Healer:
    """One answer per round; the last is repeated."""
    return lambda round_: answers[min(round_.number, len(answers)) - 1]


WRONG = answer(context("something else"))
RIGHT = answer(context("cure"))


@dataclass
class HealRun:
    """One run to its end. Attempts end in plan order, so everything here is repeatable."""

    specs: tuple[TaskSpec, ...]
    world: Mapping[str, Sequence[Ailment]] = field(default_factory=dict)
    healer: Healer | None = None
    policy: Policy = field(default_factory=lambda: Policy(concurrency=99))
    budget: Budget = field(default_factory=Budget)
    accounts: dict[str, str] = field(default_factory=dict)
    usd: float | None = 0.0
    tokens: int = 0
    takes_sec: float = 1.0
    state: RunState = field(default_factory=RunState)
    now: float = 1_000_000.0
    events: list[ev.Recorded] = field(default_factory=list)
    texts: dict[str, str] = field(default_factory=dict)
    suffered: dict[tuple[str, Ailment], int] = field(default_factory=dict)

    # --- what happened --------------------------------------------------------------------------------------------

    def of(self, kind: type) -> list[ev.Event]:
        return [entry.event for entry in self.events if isinstance(entry.event, kind)]

    @property
    def windows(self) -> list[tuple[str, ...]]:
        return [e.tasks for e in self.of(ev.WindowOpened) if isinstance(e, ev.WindowOpened)]

    @property
    def sizes(self) -> list[int]:
        return [len(window) for window in self.windows]

    @property
    def started(self) -> list[str]:
        return [e.task for e in self.of(ev.AttemptStarted) if isinstance(e, ev.AttemptStarted)]

    def status(self, *chosen: str) -> list[str]:
        return [self.state.tasks[name].status.value for name in chosen or self.state.tasks]

    # --- driving --------------------------------------------------------------------------------------------------

    def begin(self) -> HealRun:
        if not self.events:
            self.record(ev.RunStarted("run", "digest", self.policy, self.specs))
        healer = "healer" if self.healer else ""
        self.record(ev.LeadStarted(1, policy=self.policy, budget=self.budget, healer=healer, accounts=self.accounts))
        self.record(*taken_up(self.state))
        return self

    def record(self, *events: ev.Event) -> None:
        at = datetime.fromtimestamp(self.now, UTC).isoformat()
        for event in events:
            if isinstance(event, ev.QuestionAsked):
                event = replace(event, question=f"q-{len(self.state.inbox.questions) + 1}")
            entry = ev.Recorded(len(self.events) + 1, at, event)
            self.events.append(entry)
            apply(self.state, entry)
            check_indexes(self.state)
        assert self.state.log.refused == []

    def run(self, most_steps: int = 3000) -> HealRun:
        for _ in range(most_steps):
            if self.state.finished:
                return self
            self.step()
        raise AssertionError(f"no end after {most_steps} steps: {self.state.index.counts}")

    def step(self) -> None:
        """A decision, else an answer of the healer, else the end of the attempt that is first in the plan."""
        decisions = decide(self.state, self.now)
        if self.state.index.running and decisions and isinstance(decisions[0], Wait):
            # Whatever comes first: that moment, or the end of an attempt.
            decisions = decisions if decisions[0].until <= self.now + self.takes_sec else []
        if decisions:
            for decision in decisions:
                self.carry_out(decision)
        elif open_round(self.state) is not None:
            self.heal()
        else:
            self.end(min(self.state.index.running, key=self.state.index.rank.__getitem__))

    def carry_out(self, decision: Decision) -> None:
        match decision:
            case Start(task):
                self.start(task)
            case OpenWindow(size, chosen, retry_of):
                self.record(ev.WindowOpened(self.state.windows.opened + 1, size, chosen, retry_of))
            case CloseWindow():
                self.close(decision)
            case Wake(chosen):
                self.record(*(ev.TaskRequeued(name, "its account's quota is back") for name in chosen))
            case Wait(until):
                assert until > self.now
                self.now = until
            case Finish(status, reason, why, question):
                asked = [ev.QuestionAsked("", "", "budget", question)] if question else []
                self.record(*asked, ev.RunFinished(status, reason, {}, why))

    def close(self, decision: CloseWindow) -> None:
        window, verdict = self.state.windows.current, decision.verdict
        assert window is not None
        after = closing_events(self.state, decision)
        if verdict.heal and not verdict.abandon:
            number = len(self.state.healing.rounds) + 1
            after.append(
                self.heal_started(number, window.index, window.tasks, verdict.heal, window.lineage, verdict.isolate)
            )
        self.record(*after)

    def heal_started(
        self, number: int, window: int, chosen: tuple[str, ...], failed: tuple[str, ...], lineage: int, isolate: bool
    ) -> ev.HealStarted:
        wanted = reservation(self.state)
        return ev.HealStarted(
            *(number, window, chosen, failed, "healer", f"healer.{number}.log", f"heal.{number}", lineage, isolate),
            reserved_usd=wanted.usd,
            reserved_tokens=wanted.tokens,
        )

    # --- the worker -------------------------------------------------------------------------------------------------

    def start(self, task: str) -> None:
        number, wanted = self.state.tasks[task].attempts + 1, reservation(self.state)
        account = account_of(self.state, task)
        claim = ev.AttemptStarted(
            task, number, f"{task}.{number}", "agent", "", "log", account, wanted.usd, wanted.tokens
        )
        self.record(claim)

    def end(self, task: str) -> None:
        self.now += self.takes_sec
        number = self.state.tasks[task].attempts
        self.record(ev.AttemptExited(task, number, 0, None, False, self.takes_sec), self.cost(task, number))
        ailment = self.ailment(task)
        if ailment is None:
            self.record(
                ev.ResultAccepted(task, number, "DONE", "did it"),
                ev.VerifyStarted(task, number, "log"),
                ev.VerifyFinished(task, number, True, "log", 0.0, ()),
                ev.TaskSettled(task, TaskStatus.DONE, "verified"),
                *after_success(self.state, self.state.tasks[task].attempt.account),
            )
        else:
            met = failure(ailment.cls, ailment.signal, f"{task}: {ailment.signal}", own_id=task)
            self.fail(task, replace(met, undecided=ailment.undecided))

    def cost(self, task: str, number: int) -> ev.CostSettled:
        held = self.state.tasks[task].spent if task else self.state.healing.rounds[number - 1]
        if self.usd is None:
            return ev.CostSettled(task, number, held.reserved_usd, held.reserved_tokens, known=False)
        return ev.CostSettled(task, number, self.usd, self.tokens)

    def ailment(self, task: str) -> Ailment | None:
        """The first that is neither cured by what the task reads nor over."""
        read = " ".join(self.texts[patch] for patch in self.state.tasks[task].healing.patches)
        for one in self.world.get(task, ()):
            before = self.suffered.get((task, one), 0)
            if (one.cure and one.cure in read.split()) or (one.times is not None and before >= one.times):
                continue
            self.suffered[task, one] = before + 1
            return one
        return None

    def fail(self, task: str, problem: Failure) -> None:
        now = self.state.tasks[task]
        chosen = after_failure(self.specs_of(task), now, self.state.policy, problem, healing=healing_on(self.state))
        mark = ev.AttemptFailed(
            task, now.attempts, problem.failure_class.value, problem.signature, problem.detail, chosen.counter
        )
        self.record(mark, *self.after(task, chosen, problem))

    def specs_of(self, task: str) -> TaskSpec:
        return self.state.specs[task]

    def after(self, task: str, chosen: NextStep, problem: Failure) -> list[ev.Event]:
        if chosen.then in (Then.AGAIN_NOW, Then.AGAIN_AFTER):
            due = self.now + chosen.delay_sec if chosen.delay_sec else 0.0
            return [ev.TaskRequeued(task, chosen.why, not_before=due)]
        if chosen.then is Then.AGAIN_LATER:
            settled: list[ev.Event] = [ev.TaskSettled(task, TaskStatus.FAILED, problem.detail, final=False)]
            off = self.state.policy.heal_schedule is HealSchedule.OFF
            return [*settled, ev.TaskRequeued(task, chosen.why)] if off else settled
        if chosen.block_reason is BlockReason.QUOTA_WAIT:
            account = self.state.tasks[task].attempt.account
            paused = after_quota(self.state, account, self.now, None)
            until = [p.until for p in paused if isinstance(p, ev.AccountPaused)]
            due = until[0] if until else self.state.quota.paused[account]
            waits = ev.TaskSettled(
                task, chosen.status, problem.detail, chosen.block_reason, final=False, not_before=due
            )
            return [*paused, waits]
        ended: list[ev.Event] = [ev.TaskSettled(task, chosen.status, problem.detail, chosen.block_reason)]
        return [*ended, *questions_for(ended), *blocked_behind(self.state, [task])]

    # --- the healer -------------------------------------------------------------------------------------------------

    def heal(self) -> None:
        """As the engine concludes a round: patches, then what runs again, in one commit."""
        round_ = open_round(self.state)
        assert round_ is not None and self.healer is not None
        said = self.healer(round_)
        ground = Ground(self.state.policy.heal_schedule, round_.failed, self.state.specs, self.state.healing.limits)
        judged = judge(said, ground) if said is not None else Judged()
        applied = self.applied(judged, round_)
        touched = frozenset(name for one in applied for name in one.tasks)
        window = judged.retry_window
        later, shrink = window == "next_epoch", window == "shrink_window"
        cure = Cure(judged.reset, judged.escalate, touched, next_epoch=later, shrink=shrink)
        again: tuple[str, ...] = ()
        if applied:
            retry, after = after_round(self.state, round_, cure)
        else:
            again, retry, after = after_nothing(self.state, round_, dict(judged.escalate))
        ended = [e.task for e in after if isinstance(e, ev.TaskSettled)]
        after += [*questions_for(after), *blocked_behind(self.state, ended)]
        if again:
            number = round_.number + 1
            after.append(self.heal_started(number, round_.window, round_.tasks, again, round_.lineage, round_.isolate))
        decision = said.decision if said is not None else "NOT_FIXABLE"
        size = shrunk_size(self.state, round_, cure) if applied else 0
        finished = ev.HealFinished(round_.number, decision, "prompt_gap", "", retry=retry, next_size=size)
        self.record(self.cost("", round_.number), *applied, finished, *after)

    def applied(self, judged: Judged, round_: HealRound) -> list[ev.PatchApplied]:
        made = []
        for plan in judged.planned:
            patch = f"patch-{len(self.texts) + 1:03}"
            self.texts[patch] = plan.text
            made.append(
                ev.PatchApplied(
                    *(patch, round_.number, plan.target, plan.operation, plan.tasks, plan.path, plan.task_id, ""),
                    *(plan.timeout_sec, plan.concurrency, plan.current_batch_size),
                )
            )
        return made


# --- short ways to a finished run ----------------------------------------------------------------------------------

SICK = Ailment("cure")


def policy(schedule: HealSchedule = HealSchedule.AUTO, **more: Any) -> Policy:
    return replace(Policy(heal_schedule=schedule, concurrency=99), **more)


def heal_run(
    count: int, sick: tuple[str, ...], healer: Healer | None, given: Policy | None = None, **more: Any
) -> HealRun:
    """`count` alike tasks of which `sick` lack the word `cure`, run to the end."""
    world = {name: [SICK] for name in sick}
    made = HealRun(tasks(count, **more), world, healer, given or policy())
    return made.begin().run()


def rounds(run: HealRun) -> list[tuple[str, ...]]:
    return [round_.failed for round_ in run.state.healing.rounds]
