"""Every kind of forge through its real adapter: what its CI says of one commit comes to one and the same finding."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest
from _pytest.mark import ParameterSet

from ganger.core.model.ci import Ci, CiRules, RunFact, Word
from ganger.errors import ForgeDenied
from ganger.ports.forge import Forge, MergeAnswer, NewRequest, Request
from tests.forges.forge_projects import followed, ground_in, no_secret, with_forge
from tests.forges.loopback.ground import Ground
from tests.forges.loopback.script import GREEN, MIRROR, RED, Fault, Run, ci
from tests.forges.loopback.server import FLAVOURS, TOKEN, serving
from tests.forges.loopback.world import World

ALL = tuple(FLAVOURS)
FIRST = ("forgejo-16", "github")
WITH_CONCLUSIONS = ("gitea-1.25", "gitea-1.27", "github")
WITH_LOGS = tuple(name for name in ALL if name not in ("forgejo-13", "forgejo-11"))
RULES = CiRules(("check", "test"), MIRROR)
LATE_RUN = ci(after=3)
MATRIX = Run({"test (3.11)": "run ok", "test (3.12)": "run fail", MIRROR: "block skip"})
TWO = (GREEN, ci({"check": "run ok", "test": "run run run run fail", MIRROR: None}, workflow="lint.yml"))
UNREQUIRED = ci({"lint": "run fail", "check": "wait run run run ok", "test": "wait wait run run run ok"})
DISPATCH = (RED, ci({"check": "ok", "test": "ok", MIRROR: "ok"}, event="workflow_dispatch"))
TABLE: list[tuple[str, tuple[str, ...], tuple[Run, ...], Ci]] = [
    ("green", ALL, (GREEN,), Ci.GREEN),
    ("red", ALL, (RED,), Ci.RED),
    ("two workflows, one red", ALL, TWO, Ci.RED),
    ("the run comes late", ALL, (LATE_RUN,), Ci.GREEN),
    ("no run ever", ALL, (), Ci.ABSENT),
    ("mirror skipped", ALL, (ci({MIRROR: "block block skip"}),), Ci.MIRROR),
    ("mirror left out", ALL, (ci({MIRROR: None}),), Ci.MIRROR),
    ("a required job left out", ALL, (ci({"test": None}),), Ci.RED),
    ("cancelled", ALL, (ci({"test": "run cancel", MIRROR: "block skip"}),), Ci.CANCELLED),
    ("skipped", ALL, (ci({"test": "wait skip", MIRROR: "block skip"}),), Ci.SKIPPED),
    ("an unrequired job fails first", ALL, (UNREQUIRED,), Ci.GREEN),
    ("dispatched by hand, green", ALL, DISPATCH, Ci.RED),
    ("unknown word", ("forgejo-16", "gitlab"), (ci({"test": "run odd"}),), Ci.WAITING),
    ("timed out", (*WITH_CONCLUSIONS, "gitlab"), (ci({"test": "run timeout"}),), Ci.TIMED_OUT),
    ("neutral", ("github",), (ci({"test": "run neutral"}),), Ci.SKIPPED),
    ("needs approval", ("forgejo-16", "forgejo-13", "github", "gitlab"), (ci({"test": "approve"}),), Ci.NEEDS_APPROVAL),
    *[(f"the field of the commit: {how}", ("forgejo-16", "gitea-1.27", "github", "gitlab"), (ci(sha=how),), Ci.ABSENT)
      for how in ("empty", "short", "parent", "other")],
    ("the field of the commit: missing", ("forgejo-16", "gitea-1.27", "gitlab"), (ci(sha="missing"),), Ci.ABSENT),
]  # fmt: skip


def on(flavours: tuple[str, ...], *values: object, name: str = "") -> list[ParameterSet]:
    """The newest Forgejo and GitHub are in the default slice."""
    return [
        pytest.param(
            flavour,
            *values,
            id=f"{name}-{flavour}" if name else flavour,
            marks=() if flavour in FIRST else pytest.mark.slow,
        )
        for flavour in flavours
    ]


CASES = [case for name, flavours, runs, found in TABLE for case in on(flavours, runs, found, name=name)]


@pytest.fixture
def ground(tmp_path: Path) -> Ground:
    return ground_in(tmp_path)


@pytest.mark.parametrize(("flavour", "runs", "found"), CASES)
def test_each_forge_s_words_come_to_the_same_finding(
    ground: Ground, flavour: str, runs: tuple[Run, ...], found: Ci
) -> None:
    """D02 D03 D05: required jobs of exactly this commit, whatever the forge calls them."""
    with serving(flavour, World(ground, [runs])) as server:
        sha = ground.commit("main", "a.txt", "a")
        finding = with_forge(flavour, server, lambda forge: followed(forge, sha, RULES))
    assert finding.ci is found, finding


@pytest.mark.parametrize("flavour", on(ALL))
def test_matrix_legs_are_jobs_of_their_own(ground: Ground, flavour: str) -> None:
    """D03: one red leg is red, by its name."""
    with serving(flavour, World(ground, [[MATRIX]])) as server:
        sha = ground.commit("main", "a.txt", "a")
        rules = CiRules(("test (3.11)", "test (3.12)"))
        finding = with_forge(flavour, server, lambda forge: followed(forge, sha, rules))
    assert finding.ci is Ci.RED and [job.name for job in finding.jobs] == ["test (3.12)"]


@pytest.mark.parametrize("flavour", on(ALL))
@pytest.mark.parametrize(
    "kind",
    [
        "502",
        "reset",
        "cut",
        *(pytest.param(k, marks=pytest.mark.slow) for k in ("garbage", "silence", "limited", "secondary")),
    ],
)
def test_trouble_costs_time_and_never_a_verdict(ground: Ground, flavour: str, kind: str) -> None:
    """D05: each kind of it, once at each kind of call, and CI is still read as it is."""
    faults = [Fault(what, kind, 2, 1) for what in ("runs", "jobs", "tasks", "status")]
    with serving(flavour, World(ground, [[RED]]), faults=faults, limited_sec=0.2) as server:
        sha = ground.commit("main", "a.txt", "a")

        async def persist(forge: Forge) -> Ci:
            end = time.monotonic() + 20
            while time.monotonic() < end:
                try:
                    return (await followed(forge, sha, RULES)).ci
                except Exception as trouble:  # noqa: BLE001
                    assert "Forge" in type(trouble).__name__ and TOKEN not in str(trouble)
                    await asyncio.sleep(0.05)
            return Ci.ABSENT

        assert with_forge(flavour, server, persist) is Ci.RED and no_secret(server.log.lines)


@pytest.mark.parametrize("flavour", on(ALL))
def test_a_revoked_token_is_refused_by_name(ground: Ground, flavour: str) -> None:
    """D05 D19: it says so, and shows none of it."""
    with serving(flavour, World(ground, [[GREEN]]), public=False) as server:
        sha = ground.commit("main", "a.txt", "a")

        async def revoked(forge: Forge) -> None:
            assert (await forge.greet()).user == "robot"
            server.revoke()
            with pytest.raises(ForgeDenied) as refused:
                await forge.runs([sha])
            assert TOKEN not in f"{refused.value} {refused.value.hint} {refused.value!r} {forge!r}"

        with_forge(flavour, server, revoked)


@pytest.mark.parametrize("flavour", on(WITH_LOGS))
def test_the_log_of_a_failed_job_or_nothing(ground: Ground, flavour: str) -> None:
    """D06: a log that is gone is empty, not an error; GitHub's lies on another host, which is told no token."""
    script = ci({"test": "fail", "check": "fail"}, logs={"check": None, "test": "E   assert 1 == 2\n"})
    with serving(flavour, World(ground, [[script]])) as server:
        sha = ground.commit("main", "a.txt", "a")

        async def logs(forge: Forge) -> dict[str, str]:
            run = await forge.jobs((await forge.runs([sha]))[0])
            return {job.name: await forge.log(run, job) for job in run.jobs if job.word is Word.FAILURE}

        assert with_forge(flavour, server, logs) == {"check": "", "test": "E   assert 1 == 2\n"}


@pytest.mark.parametrize("flavour", on(ALL))
def test_running_again_is_done_or_said_to_be_impossible(ground: Ground, flavour: str) -> None:
    """D04: where a forge can, the same commit turns green; GitLab runs only failed jobs again, others none."""
    script = ci({"check": "ok", "test": "ok", MIRROR: "skip"}, again=({MIRROR: "run ok"},))
    can = flavour in ("gitea-1.27", "github")
    with serving(flavour, World(ground, [[script]])) as server:
        sha = ground.commit("main", "a.txt", "a")

        async def again(forge: Forge) -> tuple[bool, Ci]:
            await followed(forge, sha, RULES)
            run = await forge.jobs((await forge.runs([sha]))[0])
            done = await forge.rerun(run)
            await forge.runs([sha])
            return done, (await followed(forge, sha, RULES)).ci

        assert with_forge(flavour, server, again) == (can, Ci.GREEN if can else Ci.MIRROR)


@pytest.mark.parametrize("flavour", on(ALL))
def test_a_change_request_is_opened_once_made_ready_talked_about_and_merged(ground: Ground, flavour: str) -> None:
    """W02 W08: the second one asked for is the first; a moved head is not merged."""
    world = World(ground, [[GREEN]])
    with serving(flavour, world) as server:
        ground.git("branch", "ganger/r1/a", ground.tip("main"))
        head = ground.commit("ganger/r1/a", "a.txt", "a")
        new = NewRequest("ganger/r1/a", "main", "a: did it", "Verified.", draft=True, labels=("ganger", "fresh"))

        async def whole(forge: Forge) -> tuple[Request | None, Request, MergeAnswer, MergeAnswer]:
            assert await forge.find_request(new.branch, new.into) is None
            first, second = await forge.open_request(new), await forge.open_request(new)
            assert first.number == second.number and first.draft and world.asked[0].labels
            await forge.ready(first)
            for words in ("CI runs <!-- 1 -->", "CI is green <!-- 1 -->", "CI is green <!-- 1 -->"):
                assert await forge.remark(first, "<!-- 1 -->", words)
            wrong = await forge.merge(first, "0" * 40)
            done = await forge.merge(first, head)
            return await forge.find_request(new.branch, new.into), first, wrong, done

        found, _, wrong, merged = with_forge(flavour, server, whole)
    assert (
        len(world.asked) == 1
        and [one.body for one in world.asked[0].said] == ["CI is green <!-- 1 -->"]
        and wrong.why
        and not wrong.commit
    )
    done = merged.commit
    assert done == world.asked[0].merged == ground.tip("main") and found is not None and found.merged == done


def test_an_adapter_that_takes_the_newest_run_is_caught_here(ground: Ground) -> None:
    """D02: planted: matched by time instead of by commit, a red commit looks green."""
    with serving("forgejo-16", World(ground, [[RED]], others=[GREEN])) as server:
        sha = ground.commit("main", "a.txt", "a")
        server.world.somebody_pushes("main")

        async def newest(forge: Forge) -> Ci:
            class Newest:
                async def runs(self, shas: list[str]) -> list[RunFact]:
                    theirs = await forge.runs([ground.tip("main")])
                    return [RunFact(run.id, sha, run.word, run.raw, workflow=run.workflow) for run in theirs]

                async def jobs(self, run: RunFact) -> RunFact:
                    return await forge.jobs(run)

            return (await followed(Newest(), sha, RULES)).ci  # type: ignore[arg-type]

        assert with_forge("forgejo-16", server, newest) is Ci.GREEN
        assert with_forge("forgejo-16", server, lambda forge: followed(forge, sha, RULES)).ci is Ci.RED
