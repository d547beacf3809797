"""Habits that break deliveries: each row of the table is driven, and is impossible or refused by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from ganger.core import events as ev
from ganger.core.failures.agent_errors import MOST_DENIALS
from ganger.core.failures.classes import failure
from ganger.core.failures.retries import Then, after_failure
from ganger.core.model.ci import Ci, CiRules, JobFact, RunFact, Word, judge
from ganger.core.model.ledger import CI, MIRRORED, PUSHED, VERIFIED, Milestone, RepoRules
from ganger.core.model.records import Policy, TaskSpec
from ganger.core.model.run_state import RunState
from ganger.core.prompts.parts import SPAWN_BOUND, Part, joined
from ganger.core.prompts.tokens import estimate
from ganger.core.state.apply import apply
from ganger.core.vocabulary import BlockReason, FailureClass, HealSchedule, Mode, TaskStatus
from ganger.engine.prompts.assemble import Advice, Handoff, assemble, pieces
from ganger.engine.workers.handoff import ci_note
from ganger.views.reference.codes import find
from ganger.views.reference.violations import VIOLATIONS, named, violated

OFF = Policy(heal_schedule=HealSchedule.OFF)
OLD, SHA, OTHER = "a" * 40, "b" * 40, "c" * 40
FULL = (VERIFIED, PUSHED, CI, MIRRORED)
LIB = RepoRules("lib", locks="exclusive", completion=FULL, branch="main", mirror_job="mirror")
APP = RepoRules("app", depends_on=("lib",), locks="exclusive", completion=FULL, branch="main", mirror_job="mirror")


class Chain:
    """`lib` and `app`, which builds on it, with a task each and one more in `lib`."""

    def __init__(self, *started: str) -> None:
        self.state = RunState()
        specs = (TaskSpec("lib-1", repo="lib"), TaskSpec("lib-2", repo="lib"), TaskSpec("app-1", repo="app"))
        self.tell(
            ev.RunStarted("r1", "digest", OFF, specs),
            ev.LeadStarted(1, policy=OFF, mode=Mode.LOCAL_GIT, repos=(LIB, APP)),
        )
        for name in started:
            self.tell(self.start(name))

    @staticmethod
    def start(name: str) -> ev.AttemptStarted:
        return ev.AttemptStarted(name, 1, "t1", "coder", "first", "logs/x", "work")

    def tell(self, *events: ev.Event) -> None:
        for event in events:
            apply(self.state, ev.Recorded(self.state.log.last_seq + 1, "2026-01-01T00:00:00Z", event))

    def refuses(self, *events: ev.Event) -> str:
        """By which name, where it does."""
        before = len(self.state.log.refused)
        self.tell(*events)
        told = self.state.log.refused[before:]
        assert len(told) <= 1
        return named(told[0].partition(": ")[2]) if told else "nothing"

    def pushed(self, sha: str = SHA, task: str = "lib-1") -> Chain:
        repo = self.state.specs[task].repo
        verified = ev.VerifyFinished(task, 1, True, "log", 0.1, ())
        self.tell(verified, ev.PushIntended(task, 1, repo, "main", sha, OTHER), ev.Pushed(task, 1, sha, "main"))
        return self

    def merged(self, task: str = "lib-1") -> Chain:
        self.tell(ev.VerifyFinished(task, 1, True, "log", 0.1, ()), ev.Merged(task, 1, "", SHA))
        return self

    def seen(self, sha: str = SHA, ci: Ci = Ci.GREEN, task: str = "lib-1") -> Chain:
        run = RunFact("7", sha, Word.SUCCESS, url="http://forge/7", jobs=(JobFact("test", Word.SUCCESS),))
        self.tell(ev.CiSeen(task, 1, sha, (run,), ci.value, "said so", 1, 1, source="forge"))
        return self


DONE = ev.TaskSettled("lib-1", TaskStatus.DONE, "done")


def worker_exits() -> str:
    return Chain("lib-1").merged().refuses(DONE)


def awaiting_list() -> str:
    chain = Chain("lib-1").pushed()
    now = chain.state.tasks["lib-1"]
    assert now.status is TaskStatus.RUNNING and now.delivery is not None
    assert now.delivery.milestone is Milestone.PUSHED_TO_CI and chain.state.index.delivering == {"lib-1"} and now.locked
    return ""


def without_url() -> str:
    chain = Chain("lib-1").merged().pushed()
    return chain.refuses(ev.CiJudged("lib-1", 1, SHA, "green", "I think so"))


def unmirrored() -> str:
    rules = CiRules(("test",), "mirror")
    jobs = (JobFact("test", Word.SUCCESS), JobFact("mirror", Word.SKIPPED))
    run = RunFact("7", SHA, Word.SUCCESS, jobs=jobs)
    assert judge(SHA, [replace(run, asked=run.state)], rules).ci is Ci.MIRROR
    chain = Chain("lib-1").merged().pushed().seen()
    chain.tell(ev.CiJudged("lib-1", 1, SHA, "green", "all jobs"))
    return chain.refuses(DONE)


def other_runs() -> str:
    run = RunFact("9", OTHER, Word.SUCCESS, jobs=(JobFact("test", Word.SUCCESS),))
    assert judge(SHA, [run], CiRules()).ci is Ci.ABSENT
    return Chain("lib-1").pushed().refuses(ev.CiSeen("lib-1", 1, SHA, (run,), "green", "newest", source="forge"))


def old_runs() -> str:
    chain = Chain("lib-1").pushed(OLD).seen(OLD).pushed(SHA)
    now = chain.state.tasks["lib-1"].delivery
    assert now is not None and now.runs == () and now.finding == ""
    run = RunFact("7", OLD, Word.SUCCESS, jobs=(JobFact("test", Word.SUCCESS),))
    return chain.refuses(ev.CiSeen("lib-1", 1, OLD, (run,), "green", "it was green"))


def all_at_once() -> str:
    chain = Chain("lib-1").pushed()
    assert "app-1" not in chain.state.index.running
    chain.refuses(chain.start("app-1"))
    chain.tell(ev.ChainHalted("app", "lib-1", "a key is out"))
    return chain.refuses(chain.start("app-1"))


def before_green() -> str:
    chain = Chain()
    chain.tell(ev.ChainPaused("lib", "lib-1", SHA, "test failed", ("app",)))
    return chain.refuses(chain.start("app-1"))


def denials() -> str:
    assert MOST_DENIALS == 2
    failed = failure(FailureClass.PERMISSION_DENIED, "Bash", "refused")
    then = after_failure(TaskSpec("a"), Chain("lib-1").state.tasks["lib-1"], OFF, failed, healing=True)
    assert (then.then, then.block_reason) == (Then.SETTLE, BlockReason.PERMISSION_DENIED)
    return ""


class Texts:
    def read_text(self, ref: str) -> str:
        return "Do it."


FRESH = Advice(workspace=True, protocol=True, handoff=Handoff("lib", "main"))


def ci_at_spawn() -> str:
    state = Chain("lib-1").state
    assert ci_note(state, "lib-1") is None
    said = assemble(state.specs["lib-1"], Texts(), "", FRESH)
    assert "CI" not in said.partition("## How to answer")[0].split()
    return ""


def verbose() -> str:
    own = joined(p for p in pieces(TaskSpec("lib-1", repo="lib"), Texts(), "", FRESH) if p.part is Part.SPAWN)
    assert estimate(own) <= SPAWN_BOUND == 110
    return ""


DRIVEN: dict[str, Callable[[], str]] = {
    "worker_exits_after_push_before_ci": worker_exits,
    "orchestrator_tracks_awaiting_ci": awaiting_list,
    "done_without_ci_url": without_url,
    "assuming_radicle_synced": unmirrored,
    "parallel_dependent_workers": lambda: Chain("lib-1").refuses(Chain.start("lib-2")),
    "upstream_worker_while_downstream_active": lambda: Chain("app-1").refuses(Chain.start("lib-1")),
    "downstream_worker_while_upstream_active": lambda: Chain("lib-1").refuses(Chain.start("app-1")),
    "querying_all_ci_runs": other_runs,
    "caching_old_run_ids": old_runs,
    "push_all_repos_at_once": all_at_once,
    "triggering_dependent_ci_before_dependency_green": before_green,
    "infinite_permission_retry_loop": denials,
    "embedding_ci_context_at_spawn": ci_at_spawn,
    "verbose_worker_prompt": verbose,
}


@pytest.mark.parametrize("row", VIOLATIONS, ids=lambda row: row.name)
def test_each_bad_habit_is_impossible_or_refused_by_its_name(row: object) -> None:
    """D17: where it can be tried, the refusal is kept under that name; where not, the mechanism is shown."""
    name, refused = getattr(row, "name", ""), getattr(row, "refused", "")
    assert DRIVEN[name]() == (name if refused else "")


def test_explain_knows_every_one_of_them() -> None:
    """D17: by name, with what happens instead."""
    assert set(DRIVEN) == {row.name for row in VIOLATIONS} and len(VIOLATIONS) == 14
    for row in VIOLATIONS:
        assert find(row.name).next_step == row.instead


def test_a_run_tells_what_was_tried_in_it() -> None:
    """D17: counted by name; what else was refused is none of them."""
    chain = Chain("lib-1")
    chain.tell(chain.start("app-1"), chain.start("app-1"), ev.TaskHeld("lib-1", "x"))
    assert violated(chain.state) == {"downstream_worker_while_upstream_active": 2}


def test_with_proof_the_next_in_the_chain_may_start() -> None:
    """D09 D17: the refusals above are about what is not proved, not about everything."""
    chain = Chain("lib-1").merged().pushed().seen()
    chain.tell(ev.CiJudged("lib-1", 1, SHA, "green", "all jobs"), ev.MirrorProved("lib-1", 1, SHA, "mirror"), DONE)
    chain.tell(chain.start("app-1"))
    assert chain.state.log.refused == [] and "app-1" in chain.state.index.running
