"""A run in which everything is as it must be, told by its events: what planted violations are made from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from ganger.core import events as ev
from ganger.core.model.records import Budget, Policy, TaskSpec
from ganger.core.model.run_state import RunState
from ganger.core.state.apply import apply
from ganger.core.state.projection import state_text
from ganger.core.vocabulary import HealSchedule, RunStatus, TaskStatus

POLICY = Policy(heal_schedule=HealSchedule.BATCH, batch_size=2, concurrency=2)
BUDGET = Budget(usd=10.0, tokens=1000, attempts=8, task_usd=4.0, attempt_usd=1.0, attempt_tokens=100)
SPECS = (TaskSpec("a"), TaskSpec("b"), TaskSpec("c", depends_on=("a",)))
AT = "2026-01-01T00:00:00.000000Z"
DONE, FAILED = TaskStatus.DONE, TaskStatus.FAILED


def start(task: str, number: int = 1) -> ev.AttemptStarted:
    token = f"{task}.{number}"
    return ev.AttemptStarted(task, number, token, "agent", "", "log", reserved_usd=1.0, reserved_tokens=100)


def worked(task: str, number: int = 1) -> list[ev.Event]:
    """An agent that ran, cost something, and gave a result with one file."""
    return [
        ev.AttemptLaunched(task, number, 7, 7),
        ev.AttemptExited(task, number, 0, None, False, 1.0),
        ev.CostSettled(task, number, 0.5, 50, 10),
        ev.ResultAccepted(task, number, "DONE", "did it", writes=1),
    ]


def wrote(task: str, number: int = 1) -> list[ev.Event]:
    intent = ev.WritesIntended(task, number, f"backups/{task}.{number}", (f"{task}.txt",))
    return [intent, ev.WritesApplied(task, number)]


def verdict(task: str, number: int = 1, *, passed: bool = True) -> list[ev.Event]:
    return [ev.VerifyStarted(task, number, "log"), ev.VerifyFinished(task, number, passed, "log", 0.1, ())]


def done(task: str, number: int = 1) -> list[ev.Event]:
    return [*worked(task, number), *wrote(task, number), *verdict(task, number), ev.TaskSettled(task, DONE, "")]


def failed(task: str, number: int, counter: str = "worker_attempts") -> ev.AttemptFailed:
    return ev.AttemptFailed(task, number, "test_error", "test_error:x", "boom", counter)


def heal(number: int, window: int) -> list[ev.Event]:
    return [
        ev.HealStarted(number, window, ("a", "b"), ("b",), "healer", "log", f"h{number}", reserved_usd=1.0),
        ev.CostSettled("", number, 0.5),
        ev.PatchApplied(f"p{number}", number, "task_prompt", "append", ("b",), file="patches/p1.md"),
        ev.HealFinished(number, "RETRY", "prompt_gap", "unclear"),
    ]


def good() -> list[ev.Event]:
    """Two windows: b fails its check, is rolled back, healed and run again; then c."""
    return [
        ev.RunStarted("run", "digest", POLICY, SPECS),
        ev.LeadStarted(1, policy=POLICY, fence=1, budget=BUDGET, healer="healer"),
        ev.WindowOpened(1, 2, ("a", "b")),
        start("a"),
        start("b"),
        *done("a"),
        *worked("b"),
        *wrote("b"),
        *verdict("b", passed=False),
        ev.WritesRolledBack("b", 1, "failed", "log"),
        failed("b", 1),
        ev.TaskSettled("b", FAILED, "boom", final=False),
        ev.WindowClosed(1, 1, 1, 0, 0.5, 2),
        *heal(1, 1),
        ev.TaskRequeued("b", "healed", granted=1),
        ev.WindowOpened(2, 1, ("b",), retry_of=1),
        start("b", 2),
        *done("b", 2),
        ev.WindowClosed(2, 1, 0, 0, 0.0, 2),
        ev.WindowOpened(3, 1, ("c",)),
        start("c"),
        *done("c"),
        ev.WindowClosed(3, 1, 0, 0, 0.0, 2),
        ev.QuestionAsked("q1", "c", "review", "fine?"),
        ev.RunFinished(RunStatus.COMPLETED, None, {"DONE": 3}),
    ]


@dataclass(frozen=True, slots=True)
class Tale:
    """The good run, to be told wrongly."""

    events: tuple[ev.Event, ...]

    def without(self, kind: type[ev.Event], task: str | None = None) -> Tale:
        gone = next(e for e in self.events if isinstance(e, kind) and task in (None, getattr(e, "task", "")))
        return Tale(tuple(e for e in self.events if e is not gone))

    def with_after(self, kind: type[ev.Event], *more: ev.Event) -> Tale:
        place = next(n for n, e in enumerate(self.events) if isinstance(e, kind)) + 1
        return Tale((*self.events[:place], *more, *self.events[place:]))

    def at_end(self, *more: ev.Event) -> Tale:
        return Tale((*self.events[:-1], *more, self.events[-1]))

    def with_lead(self, **changes: object) -> Tale:
        lead = replace(self.events[1], **changes)  # type: ignore[type-var]
        return Tale((self.events[0], lead, *self.events[2:]))

    def recorded(self) -> list[ev.Recorded]:
        return list(numbered(self.events))

    def state_text(self) -> str:
        state = RunState()
        for entry in self.recorded():
            apply(state, entry)
        return state_text(state)


def numbered(events: tuple[ev.Event, ...]) -> Iterator[ev.Recorded]:
    return (ev.Recorded(number, AT, event) for number, event in enumerate(events, 1))


GOOD = Tale(tuple(good()))
