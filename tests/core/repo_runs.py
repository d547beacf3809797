"""Runs over repositories that build on each other: the real core driven by chance, and a judge with its own account."""

from __future__ import annotations

import hashlib
import random
from dataclasses import dataclass, field
from typing import Any

from ganger.core import events as ev
from ganger.core.control.commands import act
from ganger.core.model.ledger import RepoRules
from ganger.core.model.records import Policy, TaskSpec
from ganger.core.scheduling.resume import taken_up
from ganger.core.vocabulary import HealSchedule, Mode, TaskStatus
from tests.core.run_model import FAILURES, Model

D = TaskStatus.DONE
_BAD = frozenset({TaskStatus.FAILED, TaskStatus.BLOCKED, TaskStatus.ESCALATED})
DELIVERED = ("verified", "committed", "pushed", "ci")


@dataclass(frozen=True)
class Asked:
    number: int
    kind: str
    data: dict[str, object]


def random_repos(chance: random.Random, size: int, *, delivers: bool) -> tuple[RepoRules, ...]:
    names = [f"r{n}" for n in range(size)]
    return tuple(
        RepoRules(
            name,
            tuple(chance.sample(names[:place], k=min(place, chance.choice((0, 1, 1, 2))))),
            chance.choice(("exclusive", "exclusive", "shared")),
            DELIVERED if delivers else ("verified",),
        )
        for place, name in enumerate(names)
    )


def random_tasks(chance: random.Random, size: int, repos: tuple[RepoRules, ...]) -> tuple[TaskSpec, ...]:
    names = [f"t{n}" for n in range(size)]
    where = [*(rules.name for rules in repos), ""]
    return tuple(
        TaskSpec(
            name, tuple(chance.sample(names[:n], k=min(n, chance.choice((0, 0, 0, 1, 2))))), repo=chance.choice(where)
        )
        for n, name in enumerate(names)
    )


def chains(repos: tuple[RepoRules, ...]) -> set[tuple[str, str]]:
    """Every pair of which one builds on the other, by whatever way; counted anew, step by step."""
    pairs = {(rules.name, need) for rules in repos for need in rules.depends_on}
    while more := {(a, d) for a, b in pairs for c, d in pairs if b == c} - pairs:
        pairs |= more
    return pairs | {(b, a) for a, b in pairs}


@dataclass
class RepoRun(Model):
    """`held` is who took which repository and has neither proved its work nor lost it to a person."""

    repos: tuple[RepoRules, ...] = ()
    red_rate: float = 0.2
    delivers: bool = False
    held: dict[str, str] = field(default_factory=dict)
    meddled: set[str] = field(default_factory=set)
    together: int = 0
    starts: int = 0
    wrong: list[str] = field(default_factory=list)

    def begin(self, only: tuple[str, ...] | None = None, max_tasks: int | None = None) -> RepoRun:
        self._pairs = chains(self.repos)
        self._shared = {rules.name for rules in self.repos if rules.locks == "shared"} | {""}
        if not self.events:
            self.record(ev.RunStarted("run", "digest", self.policy, self.specs))
        self.record(
            ev.LeadStarted(1, policy=self.policy, only=only, max_tasks=max_tasks, mode=Mode.LOCAL_GIT, repos=self.repos)
        )
        self.record(*taken_up(self.state))
        return self

    # --- the judge ------------------------------------------------------------------------------------------------

    def may_meet(self, one: str, other: str) -> bool:
        return one != other and not self._apart(one, other)

    def _apart(self, one: str, other: str) -> bool:
        return (one, other) in self._pairs or (one == other and one not in self._shared)

    def record(self, *events: ev.Event) -> None:
        for event in events:
            self._look_at(event)
            super().record(event)

    def _check_before(self, event: ev.Event) -> None:
        """What holds here is looked at for every event, also where the indexes are not counted again."""

    def _look_at(self, event: ev.Event) -> None:
        if isinstance(event, ev.AttemptStarted):
            self._judge(event.task)
        if isinstance(event, ev.TaskSettled) and event.status is D:
            self.held.pop(event.task, None)
        if isinstance(event, ev.RepoUnlocked):
            for name in event.tasks:
                self.held.pop(name, None)
                self.meddled.add(self.state.specs[name].repo)

    def _judge(self, task: str) -> None:
        """Nobody else may be active in its chain; whoever a person freed or took up again is not held against it."""
        repo = self.state.specs[task].repo
        others = {name: where for name, where in self.held.items() if name != task and self._apart(repo, where)}
        at_work = [name for name in others if name in self.state.index.running]
        if at_work or (others and not self.meddled):
            self.wrong.append(f"{task} on {repo} starts although {others} are held")
        self.starts += 1
        if repo:
            self.held[task] = repo
            self.together += sum(self.state.specs[name].repo not in ("", repo) for name in self.state.index.running) > 0

    # --- what happens -----------------------------------------------------------------------------------------------

    def start(self, task: str) -> None:
        now = self.state.tasks[task]
        going_on = now.delivery is not None and now.delivery.pending
        number = now.attempts + 1
        self.record(ev.AttemptStarted(task, number, f"{task}.{number}", "agent", "", "log", delivers=going_on))

    def end_one(self, task: str) -> None:
        if task in self.state.index.delivering:
            self.judge_ci(task)
        elif self.chance.random() < self.fail_rate:
            self.fail(task, self.chance.choice(FAILURES))
        else:
            self.finish(task)

    def finish(self, task: str) -> None:
        number = self.state.tasks[task].attempts
        sha = hashlib.sha1(f"{task}{number}".encode()).hexdigest()
        self.record(
            ev.VerifyFinished(task, number, True, "log", 0.0, ()),
            ev.MergeQueued(task, number, sha),
            ev.HeadIntended("", sha, (task,), (sha,)),
            ev.Merged(task, number, sha, sha),
        )
        repo = self.state.specs[task].repo
        if not repo or not self.delivers:
            self.record(ev.TaskSettled(task, D, "merged"))
            return
        self.record(ev.PushIntended(task, number, repo, "main", sha, sha), ev.Pushed(task, number, sha, "main"))

    def judge_ci(self, task: str) -> None:
        now = self.state.tasks[task]
        assert now.delivery is not None
        number, sha = now.attempts, now.delivery.commit
        if self.chance.random() >= self.red_rate:
            self.record(
                ev.CiSeen(task, number, sha, (), "green", "all"), ev.CiJudged(task, number, sha, "green", "all")
            )
            self.record(ev.TaskSettled(task, D, "proved"))
            return
        self.record(ev.CiJudged(task, number, sha, "red", "a job failed", signature="x"))
        self.record(ev.AttemptFailed(task, number, "test_error", "x", "red", "ci_fixes"))
        if now.counters.ci_fixes < 3:
            self.record(ev.TaskRequeued(task, "CI is red"))
        else:
            self.record(ev.TaskSettled(task, TaskStatus.FAILED, "CI stays red"), *self.blocked_by(task))

    def tell(self, kind: str, **data: object) -> str:
        events = act(self.state, Asked(self.state.lead.commands_taken + 1, kind, data), 0.0)
        self.record(*events)
        last = events[-1]
        assert isinstance(last, ev.CommandTaken)
        return last.outcome

    def bring_back(self) -> None:
        """Each task that ended badly gets another attempt, whatever it takes."""
        bad = [name for name, task in self.state.tasks.items() if task.status in _BAD]
        for name in bad:
            self.tell("retry", task=name)

    def meddle(self) -> None:
        """Whatever a person may do at any moment."""
        name = self.chance.choice(self.state.index.by_rank)
        match self.chance.choice(("unlock", "skip", "retry", "force", "stop")):
            case "unlock":
                self.tell("unlock", repo=self.chance.choice(self.repos).name, why="I looked at it")
            case "skip":
                self.tell("skip", task=name)
            case "retry":
                self.tell("retry", task=name)
            case "force":
                self.meddled.add(self.state.specs[name].repo)
                self.tell("retry", task=name, force=True)
            case "stop":
                self.restart()

    def restart(self) -> None:
        self.record(ev.StopRequested("signal"))
        self.interrupt_all()
        self.run()
        self.begin()

    def run(self, most_steps: int = 100_000) -> RepoRun:
        super().run(most_steps)
        return self


def repo_run(seed: int, size: int, **changes: Any) -> RepoRun:
    chance = random.Random(seed)
    delivers = chance.random() < 0.5
    repos = random_repos(chance, chance.randint(2, 10), delivers=delivers)
    policy = Policy(
        heal_schedule=chance.choice(list(HealSchedule)),
        concurrency=chance.choice((1, 2, 4, 8)),
        batch_size=chance.randint(1, 8),
    )
    made = RepoRun(
        random_tasks(chance, size, repos), policy, chance, fail_rate=chance.choice((0.0, 0.1, 0.3)), repos=repos
    )
    made.delivers, made.red_rate = delivers, chance.choice((0.0, 0.3))
    for name, value in changes.items():
        setattr(made, name, value)
    return made.begin()
