"""Whatever a forge answers: no crash, and no verdict about a commit it did not name."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from ganger.core.model.ci import UNSETTLED, Ci, CiRules, JobFact, RunFact, Word, judge
from ganger.errors import ForgeError
from ganger.forges.ci.run_list import RunList
from ganger.forges.untrusted import Row
from ganger.ports.forge import Forge, NewRequest, Request
from tests.forges.answering import Asked, Reply, opened

pytestmark = pytest.mark.whole

MINE, OTHER = "a" * 40, "b" * 40
KINDS = ["forgejo 16.0.0", "forgejo 13.0.0", "forgejo 11.0.0", "forgejo 7.0.0", "gitea 1.27.2", "gitea 1.24.0"]
KINDS += ["github", "gitlab"]
RULES = (CiRules(), CiRules(("test",), "mirror"))

names = ["workflow_runs", "jobs", "statuses", "sha", "head_sha", "commit_sha", "id", "run_id", "run_number", "status"]
names += ["conclusion", "name", "event", "trigger_event", "context", "target_url", "total_count", "index_in_repo"]
names += ["need_approval", "description", "source", "iid", "path", "commit", "head", "number", "state", "title", "ref"]
words = ["completed", "success", "failure", "skipped", "running", "push", "test", "CI / test (push)", MINE[:8], "", "7"]
words += ["/dev/app/actions/runs/7/jobs/0", "failed", "open"]
leaves = st.none() | st.booleans() | st.integers(-5, 10**25) | st.floats() | st.sampled_from([*words, MINE, OTHER])
leaves |= st.text(max_size=5)
trees = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(names), inner, max_size=8),
    max_leaves=30,
)


def likely(sha: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Rows as forges have them, some fields wrong or gone."""
    over = st.sampled_from(["success", "completed", "failure"])
    row = st.fixed_dictionaries(
        {},
        optional={
            "id": st.just(7) | leaves,
            "index_in_repo": st.just(7) | leaves,
            "run_number": st.just(7) | leaves,
            "commit_sha": sha,
            "head_sha": sha,
            "sha": sha,
            "status": over | leaves,
            "conclusion": st.just("success") | leaves,
            "event": st.just("push") | leaves,
            "trigger_event": st.just("push") | leaves,
            "source": st.just("push") | leaves,
            "name": st.just("test") | leaves,
            "context": st.just("CI / test (push)") | leaves,
            "target_url": st.just("/dev/app/actions/runs/7/jobs/0") | leaves,
            "commit": st.fixed_dictionaries({"id": sha}) | leaves,
            "run_id": st.just(7) | leaves,
        },
    )
    rows = st.lists(row, max_size=3)
    under = {"workflow_runs": rows, "jobs": rows, "statuses": rows, "sha": sha, "total_count": leaves}
    return rows | st.fixed_dictionaries({}, optional=under)


@asynccontextmanager
async def speaking(kind: str, answers: Callable[[Asked], Reply]) -> AsyncIterator[Forge]:
    name, _, version = kind.partition(" ")

    def all_answers(asked: Asked) -> Reply:
        return Reply(200, {"version": version}) if asked.path.endswith("/version") else answers(asked)

    async with opened(name, all_answers) as (forge, _host):
        yield forge


async def look(forge: Forge, shas: Sequence[str]) -> list[RunFact]:
    found: list[RunFact] = []
    for _ in range(3):
        try:
            found += [await forge.jobs(run) for run in await forge.runs(shas)]
        except ForgeError:
            continue
    return found


async def everything(forge: Forge) -> None:
    """Every other call of the port."""
    job = JobFact("test", Word.FAILURE, id="7")
    run, request = RunFact("7", MINE, Word.FAILURE, jobs=(job,)), Request("7", "", "topic", "main")
    calls: list[Callable[[], Awaitable[object]]] = [
        forge.greet,
        lambda: forge.log(run, job),
        lambda: forge.rerun(run),
        lambda: forge.find_request("topic", "main"),
        lambda: forge.open_request(NewRequest("topic", "main", "t", "b", draft=True, labels=("x",))),
        lambda: forge.ready(request),
        lambda: forge.update_request(request, NewRequest("topic", "main", "t", "b", labels=("x",), milestone="m")),
        lambda: forge.reviews(request),
        lambda: forge.remark(request, "<!-- 7 -->", "hello <!-- 7 -->"),
        lambda: forge.branch_rules("main"),
        lambda: forge.merge(request, MINE),
    ]
    for call in calls:
        try:
            await call()
        except ForgeError:
            continue


@pytest.mark.parametrize("kind", KINDS)
@given(trees | likely(leaves), st.sampled_from([200, 200, 200, 201, 404, 409, 422]))
@settings(max_examples=12)
def test_no_answer_crashes_anything(kind: str, answer: object, status: int) -> None:
    """D05: what is not understood is an error of the forge or nothing at all."""

    async def go() -> None:
        async with speaking(kind, lambda _: Reply(status, answer)) as forge:
            await look(forge, [MINE])
            await look(forge, [MINE, OTHER])
            await everything(forge)

    asyncio.run(go())


def verdicts(kind: str, answer: object) -> set[Ci]:
    """What is said of one commit by a forge that answers everything like this."""

    async def go() -> set[Ci]:
        async with speaking(kind, lambda _: Reply(200, answer)) as forge:
            runs = await look(forge, [MINE]) + await look(forge, [MINE, OTHER])
            return {judge(MINE, runs, rules).ci for rules in RULES}

    return asyncio.run(go())


@pytest.mark.parametrize("kind", KINDS)
@given(likely(st.sampled_from([OTHER, MINE[:12], "", None, 7, MINE.upper()])))
@settings(max_examples=25)
def test_no_answer_about_another_commit_is_a_verdict(kind: str, answer: object) -> None:
    """D02, D17: green or red comes only with this very SHA."""
    assert verdicts(kind, answer) <= UNSETTLED


def row_of(sha: str) -> dict[str, object]:
    return {
        "id": 7,
        "run_id": 7,
        "index_in_repo": 7,
        "commit_sha": sha,
        "head_sha": sha,
        "sha": sha,
        "status": "completed",
        "conclusion": "success",
        "event": "push",
        "name": "test",
    }


def rows_of(sha: str) -> dict[str, object]:
    return {"total_count": 1, "workflow_runs": [row_of(sha)], "jobs": [row_of(sha) | {"head_sha": MINE}]}


def test_the_search_for_foreign_verdicts_finds_a_planted_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """D02: a list that takes the newest run for the one that was asked for."""
    assert verdicts("github", rows_of(MINE)) & {Ci.GREEN} and verdicts("github", rows_of(OTHER)) <= UNSETTLED

    def newest(self: RunList, listed: Sequence[Row], wanted: set[str]) -> list[RunFact]:
        read = [self._call.read(row) for row in listed[:1]]
        return [replace(run, sha=sha) for run in read if run is not None for sha in wanted]

    monkeypatch.setattr(RunList, "_matched", newest)
    assert Ci.GREEN in verdicts("github", rows_of(OTHER))
