"""Gitea, release by release."""

from __future__ import annotations

from functools import partial

import pytest

from ganger.core.model.ci import Ci, CiRules, JobFact, RunFact, Word, judge
from ganger.forges.version import parse_version
from ganger.ports.forge import Forge
from tests.forges.answering import Asked, Host, Reply, Table, fixture, talk_to

SHA, OTHER = "c0b35edb2144f7879edf96d33dd4d312f167f4ec", "b" * 40
RUN = {"id": 70, "run_number": 7, "run_attempt": 0, "head_sha": SHA, "event": "push", "path": "ci.yml@refs/heads/main"}
DONE = {"status": "completed", "conclusion": "success"}
talk = partial(talk_to, "gitea")


def job(name: str, number: int, **more: object) -> dict[str, object]:
    return {"id": number, "run_id": 70, "head_sha": SHA, "name": name, "run_attempt": 1, **DONE, **more}


def server(version: str, *jobs: dict[str, object], **run: object) -> Table:
    def page(asked: Asked) -> Reply:
        start = (int(asked.query["page"]) - 1) * 50
        return Reply(200, {"total_count": len(jobs), "jobs": jobs[start : start + 50]})

    return {
        "GET /version": Reply(200, {"version": version}),
        "GET R/actions/runs": Reply(200, {"total_count": 1, "workflow_runs": [RUN | DONE | run]}),
        "GET R/actions/runs/70/jobs": page,
    }


@pytest.mark.parametrize("version", ["1.25.5", "1.26.4", "1.27.2"])
def test_runs_and_jobs_are_read_as_status_and_conclusion(version: str) -> None:
    """D03: head_sha here, a run's file is its workflow."""
    table = server(version, job("test", 1), job("lint", 2, status="waiting", conclusion=None), status="waiting")

    async def speak(forge: Forge, _: Host) -> None:
        run = await forge.jobs((await forge.runs([SHA]))[0])
        assert (run.id, run.number, run.attempt, run.workflow, run.event) == ("70", 7, 1, "ci.yml", "push")
        assert {found.name: (found.word, found.reason) for found in run.jobs} == {
            "test": (Word.SUCCESS, ""),
            "lint": (Word.WAITING, ""),
        }

    talk(table, speak)


def test_every_page_of_jobs_is_read_and_foreign_ones_are_dropped() -> None:
    """D02, D03: each leg of a matrix is a name of its own."""
    legs = [job(f"test ({number})", number) for number in range(1, 120)]
    strange = [job("other", 500, head_sha=OTHER, conclusion="failure"), job("else", 501, run_id=71)]

    async def speak(forge: Forge, _: Host) -> None:
        run = await forge.jobs((await forge.runs([SHA]))[0])
        assert {found.name for found in run.jobs} == {str(leg["name"]) for leg in legs}
        assert judge(SHA, [run], CiRules()).ci is Ci.GREEN

    talk(server("1.27.2", *strange, *legs), speak)


@pytest.mark.parametrize(
    ("version", "word", "call"),
    [
        ("1.26.4", Word.FAILURE, "rerun-failed-jobs"),
        ("1.27.2", Word.SKIPPED, "rerun"),
        ("1.25.5", Word.FAILURE, ""),
    ],
)
def test_a_run_is_run_again_where_the_release_can(version: str, word: Word, call: str) -> None:
    """D04: what failed alone, or all of it where nothing did."""
    table = server(version) | {f"POST R/actions/runs/70/{call}": Reply(201)}
    run = RunFact("70", SHA, Word.FAILURE, jobs=(JobFact("a", Word.SUCCESS), JobFact("b", word)))

    async def speak(forge: Forge, _: Host) -> None:
        assert await forge.rerun(run) is bool(call)

    talk(table, speak)


@pytest.mark.parametrize("status", [400, 403, 404, 409, 422])
def test_a_rerun_that_is_refused_is_none(status: int) -> None:
    """D04: an empty commit is the other way."""
    table = server("1.27.2") | {"POST R/actions/runs/70/rerun": Reply(status, {"message": "no"})}

    async def speak(forge: Forge, _: Host) -> None:
        assert await forge.rerun(RunFact("70", SHA, Word.SUCCESS)) is False

    talk(table, speak)


@pytest.mark.parametrize("version", ["1.24.7", "1.23.0", "1.22.6"])
def test_older_releases_are_read_by_statuses_and_tasks(version: str) -> None:
    """D05: no call for runs, the same verdict."""
    table: Table = {
        "GET /version": Reply(200, {"version": version}),
        f"GET R/commits/{SHA}/status": Reply(200, fixture("2-green-status.json")),
    }
    if version != "1.22.6":
        table["GET R/actions/tasks"] = Reply(200, fixture("2-green-tasks.json"))

    async def speak(forge: Forge, _: Host) -> None:
        runs = [await forge.jobs(run) for run in await forge.runs([SHA])]
        assert judge(SHA, runs, CiRules(("check", "test"), "radicle-push")).ci is Ci.GREEN

    talk(table, speak)


def test_a_page_given_as_a_path_is_told_with_its_host() -> None:
    """D05: a commit status of an older release names no host."""
    table: Table = {
        "GET /version": Reply(200, {"version": "1.22.6"}),
        f"GET R/commits/{SHA}/status": Reply(200, fixture("2-green-status.json")),
    }

    async def speak(forge: Forge, host: Host) -> None:
        run = await forge.jobs((await forge.runs([SHA]))[0])
        assert run.url == f"{host.url}/dev/app/actions/runs/2"
        assert {job.url.startswith(f"{run.url}/jobs/") for job in run.jobs} == {True}

    talk(table, speak)


VERSIONS = [
    ("1.25.5", (1, 25), True),
    ("1.27.0+dev-12-gabc", (1, 27), True),
    ("16.0.1+gitea-1.22.0", (16, 0), False),
    ("v11.0.0-dev+gitea-1.22.0", (11, 0), False),
    ("", (10_000, 0), False),
    ("new", (10_000, 0), False),
]


@pytest.mark.parametrize(("said", "pair", "gitea"), VERSIONS)
def test_a_version_is_read(said: str, pair: tuple[int, int], gitea: bool) -> None:
    """D05: one that is not understood is taken for the newest."""
    assert (parse_version(said).pair, parse_version(said).gitea) == (pair, gitea)
