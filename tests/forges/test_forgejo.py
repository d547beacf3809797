"""Forgejo, release by release, on answers recorded from a running one."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import partial

import pytest

from ganger.core.model.ci import MISSING_JOB, Ci, CiRules, JobFact, RunFact, Word, judge
from ganger.errors import ForgeDenied, ForgeUnreachable
from ganger.ports.forge import Forge
from tests.forges.answering import TOKEN, Asked, Host, Reply, Table, Time, fixture, talk_to

BROKEN, GREEN = "01674e4cf45cb6d093b2237b66b3157328abb474", "c0b35edb2144f7879edf96d33dd4d312f167f4ec"
EMPTY, CANCELLED = "c4f86a627bdaab0e386b6cfcb58e45ea4d1fa5ed", "5abb96b22dde5ce08e8478f68d25834a6b387f15"
MOMENTS = {"1-broken": (BROKEN, 1), "2-green": (GREEN, 2), "3-dispatch": (GREEN, 2), "4-empty": (EMPTY, 4)}
MOMENTS["5-cancel"] = (CANCELLED, 6)
SIX = ("check", "format", "audit", "build", "test", "coverage")
FULL = CiRules(required=SIX, mirror_job="radicle-push")


def server(version: str, moment: str) -> Table:
    """What such a release has of what was recorded at that moment."""
    sha, run = MOMENTS[moment]
    major = int(version.partition(".")[0])
    table: Table = {
        "GET /version": Reply(200, {"version": f"{version}+gitea-1.22.0"}),
        "GET /user": Reply(200, {"login": "dev"}),
        f"GET R/commits/{sha}/status": Reply(200, fixture(f"{moment}-status.json")),
    }
    if major >= 8:
        table["GET R/actions/tasks"] = Reply(200, fixture(f"{moment}-tasks.json"))
    if major >= 12:
        table["GET R/actions/runs"] = Reply(200, fixture(f"{moment}-runs.json"))
    if major >= 16:
        of = "2-green" if moment == "3-dispatch" else moment
        table[f"GET R/actions/runs/{run}/jobs"] = Reply(200, fixture(f"{of}-jobs.json"))
        table["GET R/actions/runs/3/jobs"] = Reply(200, fixture("3-dispatch-jobs.json"))
    return table


talk = partial(talk_to, "forgejo")


async def look(forge: Forge, sha: str) -> list[RunFact]:
    return [await forge.jobs(run) for run in await forge.runs([sha])]


RESULTS = [("1-broken", Ci.RED), ("2-green", Ci.GREEN), ("3-dispatch", Ci.GREEN), ("4-empty", Ci.GREEN)]


@pytest.mark.parametrize("version", ["16.0.1", "15.0.3", "13.0.0", "11.0.0", "7.0.5"])
@pytest.mark.parametrize(("moment", "ci"), [*RESULTS, ("5-cancel", Ci.CANCELLED)])
def test_every_release_comes_to_the_same_verdict(version: str, moment: str, ci: Ci) -> None:
    """D03, D05: runs and jobs, or tasks and statuses: the same facts."""
    sha = MOMENTS[moment][0]

    async def speak(forge: Forge, _: Host) -> None:
        found = judge(sha, await look(forge, sha), FULL)
        assert (found.ci, found.total) == (ci, 6), found

    talk(server(version, moment), speak)


def test_runs_are_asked_for_by_sha_and_read_by_another_name() -> None:
    """D02, D05: the filter is head_sha, the field commit_sha; one call."""

    async def speak(forge: Forge, host: Host) -> None:
        await forge.greet()
        before = forge.calls
        (run,) = await forge.runs([BROKEN])
        assert (run.sha, run.id, run.word, run.event, run.workflow) == (BROKEN, "1", Word.FAILURE, "push", "ci.yml")
        assert forge.calls == before + 1 and host.asked[-1].query["head_sha"] == BROKEN
        assert run.url.endswith("/dev/app/actions/runs/1") and (run.jobs, run.asked, run.digest) == ((), "", "")

    talk(server("16.0.1", "1-broken"), speak)


@pytest.mark.parametrize("sha", ["", BROKEN[:7], "HEAD", BROKEN.upper(), BROKEN + "00"])
def test_what_is_no_full_sha_is_never_asked_for(sha: str) -> None:
    """D02: an empty filter would list everything."""

    async def speak(forge: Forge, host: Host) -> None:
        assert list(await forge.runs([sha])) == []
        assert not [asked for asked in host.asked if "runs" in asked.path]

    talk(server("16.0.1", "1-broken"), speak)


@pytest.mark.parametrize("field", [None, "", BROKEN[:10], GREEN, 7, ["x"], "absent"])
def test_a_row_without_this_very_sha_is_dropped(field: object) -> None:
    """D02, D05: never matched by time, by place or by being the only one."""
    body = json.loads(fixture("1-broken-runs.json"))
    (row,) = body["workflow_runs"]
    row.pop("commit_sha") if field == "absent" else row.update(commit_sha=field)
    table = server("16.0.1", "1-broken") | {"GET R/actions/runs": Reply(200, body)}

    async def speak(forge: Forge, _: Host) -> None:
        assert list(await forge.runs([BROKEN])) == []

    talk(table, speak)


def test_the_run_of_a_dispatch_is_told_from_that_of_the_push() -> None:
    """D02: two runs of one commit; the trigger is under trigger_event."""

    async def speak(forge: Forge, _: Host) -> None:
        runs = await look(forge, GREEN)
        assert {run.id: run.event for run in runs} == {"3": "workflow_dispatch", "2": "push"}
        mirror = {run.id: next(job.word for job in run.jobs if job.name == "radicle-push") for run in runs}
        assert mirror == {"3": Word.SKIPPED, "2": Word.SUCCESS}

    talk(server("16.0.1", "3-dispatch"), speak)


def test_a_run_that_ends_before_its_jobs_is_asked_again() -> None:
    """D03: the run said failure three seconds before its last job was through."""
    jobs = json.loads(fixture("1-broken-jobs.json"))
    next(job for job in jobs if job["name"] == "coverage").update(status="running")
    replies = iter([Reply(200, jobs), Reply(200, fixture("1-broken-jobs.json"))])
    table = server("16.0.1", "1-broken") | {"GET R/actions/runs/1/jobs": lambda _: next(replies)}

    async def speak(forge: Forge, _: Host) -> None:
        (run,) = await forge.runs([BROKEN])
        early, late = await forge.jobs(run), await forge.jobs(run)
        assert early.asked == "" and late.asked == run.state and len(late.digest) == 64
        assert judge(BROKEN, [early], CiRules(("absent-job",))).ci is Ci.WAITING
        assert judge(BROKEN, [late], CiRules(("absent-job",))).jobs[0].reason == MISSING_JOB

    talk(table, speak)


def test_a_run_that_is_over_without_any_job_is_no_verdict() -> None:
    """D05: an empty list is not settled."""
    table = server("16.0.1", "2-green") | {"GET R/actions/runs/2/jobs": Reply(200, b"null")}

    async def speak(forge: Forge, _: Host) -> None:
        assert judge(GREEN, await look(forge, GREEN), FULL).ci is Ci.WAITING

    talk(table, speak)


def test_a_run_that_was_deleted_is_waited_for_not_judged() -> None:
    """D05: its jobs are 404."""
    table = server("16.0.1", "2-green")
    del table["GET R/actions/runs/2/jobs"]

    async def speak(forge: Forge, _: Host) -> None:
        (run,) = await look(forge, GREEN)
        assert (run.word, run.raw, run.asked) == (Word.WAITING, "deleted", run.state)
        assert judge(GREEN, [run], FULL).ci is Ci.WAITING

    talk(table, speak)


def test_a_run_that_needs_approval_says_so_of_its_jobs() -> None:
    """D03: time does not cure it."""
    body = json.loads(fixture("1-broken-runs.json"))
    body["workflow_runs"][0].update(need_approval=True, status="blocked")
    jobs = [job | {"status": "blocked"} for job in json.loads(fixture("1-broken-jobs.json"))]
    table = server("16.0.1", "1-broken")
    table |= {"GET R/actions/runs": Reply(200, body), "GET R/actions/runs/1/jobs": Reply(200, jobs)}

    async def speak(forge: Forge, _: Host) -> None:
        assert judge(BROKEN, await look(forge, BROKEN), FULL).ci is Ci.NEEDS_APPROVAL

    talk(table, speak)


def test_numbers_and_ids_are_not_taken_for_each_other() -> None:
    """D02: where a run's id is not its number, statuses and tasks go by the number, calls by the id."""
    body = json.loads(fixture("2-green-runs.json"))
    body["workflow_runs"][0]["id"] = 9002
    table = server("13.0.0", "2-green") | {"GET R/actions/runs": Reply(200, body)}

    async def speak(forge: Forge, _: Host) -> None:
        (run,) = await look(forge, GREEN)
        assert (run.id, run.number, len(run.jobs)) == ("9002", 2, 8)
        assert judge(GREEN, [run], FULL).ci is Ci.GREEN

    talk(table, speak)


@pytest.mark.parametrize("version", ["13.0.0", "11.0.0", "7.0.5"])
@pytest.mark.parametrize("words", ["Has been skipped", "Skipped"])
def test_a_skip_posted_as_success_is_no_success(version: str, words: str) -> None:
    """D03, D17: older releases post a skipped mirror as success; only the words tell."""
    body = json.loads(fixture("2-green-status.json"))
    mirror = next(row for row in body["statuses"] if "radicle-push" in row["context"])
    mirror.update(status="success", description=words)
    table = server(version, "2-green") | {f"GET R/commits/{GREEN}/status": Reply(200, body)}
    tasks = json.loads(fixture("2-green-tasks.json"))
    tasks["workflow_runs"] = [row for row in tasks["workflow_runs"] if row["name"] != "radicle-push"]
    table["GET R/actions/tasks"] = Reply(200, tasks)

    async def speak(forge: Forge, _: Host) -> None:
        found = judge(GREEN, await look(forge, GREEN), FULL)
        assert (found.ci, found.cause) == (Ci.MIRROR, "mirror_skipped")

    talk(table, speak)


@pytest.mark.parametrize("version", ["13.0.0", "11.0.0"])
def test_a_task_that_says_worse_than_a_status_is_believed(version: str) -> None:
    """D03: the task knows of the skip even where the status' words are new ones."""
    body = json.loads(fixture("2-green-tasks.json"))
    next(row for row in body["workflow_runs"] if row["name"] == "test" and row["run_number"] == 2)["status"] = "skipped"
    table = server(version, "2-green") | {"GET R/actions/tasks": Reply(200, body)}

    async def speak(forge: Forge, _: Host) -> None:
        assert judge(GREEN, await look(forge, GREEN), FULL).ci is Ci.SKIPPED

    talk(table, speak)


@pytest.mark.parametrize("version", ["13.0.0", "11.0.0", "7.0.5"])
def test_statuses_just_after_a_push_are_no_verdict(version: str) -> None:
    """D05: state and SHA are empty then, with 200."""
    early = {"state": "", "sha": "", "total_count": 0, "statuses": None}
    table = server(version, "2-green") | {f"GET R/commits/{GREEN}/status": Reply(200, early)}
    table |= {"GET R/actions/tasks": Reply(200, {"total_count": 0, "workflow_runs": None})}

    async def speak(forge: Forge, _: Host) -> None:
        assert judge(GREEN, await look(forge, GREEN), FULL).ci in (Ci.ABSENT, Ci.WAITING)

    talk(table, speak)


def many(count: int, *, size: int = 50, newest_first: bool = True) -> tuple[list[str], Callable[[Asked], Reply]]:
    """A list of runs, each of another commit, of which a server gives pages."""
    shas = [f"{number:040x}" for number in range(1, count + 1)]
    rows = [
        {"id": n, "index_in_repo": n, "commit_sha": sha, "status": "success", "trigger_event": "push"}
        for n, sha in enumerate(shas, 1)
    ]

    def answer(asked: Asked) -> Reply:
        wanted = [row for row in rows if asked.query.get("head_sha", row["commit_sha"]) == row["commit_sha"]]
        ordered = wanted[::-1] if newest_first else wanted
        start = (int(asked.query["page"]) - 1) * size
        return Reply(200, {"total_count": len(ordered), "workflow_runs": ordered[start : start + size]})

    return shas, answer


@pytest.mark.parametrize(
    ("version", "newest_first", "size"), [("16.0.1", True, 50), ("13.0.0", False, 50), ("16", True, 30)]
)
def test_many_commits_cost_one_call_at_a_time(version: str, newest_first: bool, size: int) -> None:
    """D05: a hundred commits: one page per call, the newest at least every second time, all seen soon."""
    shas, answer = many(180, size=size, newest_first=newest_first)
    table: Table = {"GET /version": Reply(200, {"version": version}), "GET R/actions/runs": answer}

    async def speak(forge: Forge, host: Host) -> None:
        seen: set[str] = set()
        for turn in range(16):
            before = len(host.asked)
            seen |= {run.sha for run in await forge.runs(shas[20:120])}
            assert len(host.asked) - before == (1 if turn else 2)
        assert seen == set(shas[20:120])
        pages = [asked.query["page"] for asked in host.asked if "page" in asked.query]
        newest = pages[2]
        assert all(newest in pair for pair in zip(pages[2::2], pages[3::2], strict=False))

    talk(table, speak)


def test_commits_on_the_newest_page_are_followed_there_alone() -> None:
    """D05: old pages are not read for nothing."""
    shas, answer = many(500)
    table: Table = {"GET /version": Reply(200, {"version": "16.0.0"}), "GET R/actions/runs": answer}

    async def speak(forge: Forge, host: Host) -> None:
        for _ in range(6):
            assert len(await forge.runs(shas[-30:])) == 30
        assert {asked.query["page"] for asked in host.asked if asked.query} == {"1"}

    talk(table, speak)


def test_a_commit_deep_in_a_long_list_is_asked_for_by_name() -> None:
    """D18: after a long rest a run may lie below every page that is read."""
    shas, answer = many(5000)
    table: Table = {"GET /version": Reply(200, {"version": "16.0.0"}), "GET R/actions/runs": answer}

    async def speak(forge: Forge, host: Host) -> None:
        seen: set[str] = set()
        for _ in range(45):
            seen |= {run.sha for run in await forge.runs([shas[3], shas[-1]])}
        assert seen == {shas[3], shas[-1]}

    talk(table, speak)


@pytest.mark.parametrize("version", ["11.0.0", "7.0.5"])
def test_many_commits_cost_one_call_where_there_are_no_runs(version: str) -> None:
    """D05: tasks page by page, statuses by turns."""
    table = server(version, "4-empty") | server(version, "1-broken") | server(version, "2-green")
    table["GET R/actions/tasks"] = Reply(200, fixture("5-cancel-tasks.json"))

    async def speak(forge: Forge, host: Host) -> None:
        await forge.greet()
        seen: set[str] = set()
        for _ in range(6):
            before = len(host.asked)
            seen |= {run.sha for run in await forge.runs([BROKEN, GREEN, EMPTY])}
            assert len(host.asked) == before + 1
        assert seen == {BROKEN, GREEN, EMPTY}

    talk(table, speak)


JOB = JobFact("test", Word.FAILURE, id="5")
RUN = RunFact("1", BROKEN, Word.FAILURE)


def test_a_jobs_log_is_read_where_there_is_one() -> None:
    """D06: as recorded; 404 is an empty one."""
    recorded = fixture("1-broken-log-test.txt")
    table = server("16.0.1", "1-broken") | {"GET R/actions/jobs/5/logs": Reply(200, recorded)}

    async def speak(forge: Forge, _: Host) -> None:
        assert await forge.log(RUN, JOB) == recorded.decode()
        assert await forge.log(RUN, JobFact("other", Word.FAILURE, id="77")) == ""
        assert await forge.rerun(RUN) is False

    talk(table, speak)


@pytest.mark.parametrize("version", ["15.0.3", "11.0.0", "7.0.5"])
def test_releases_without_logs_say_so(version: str) -> None:
    """D06: the worker gets name, status and link then."""

    async def speak(forge: Forge, _: Host) -> None:
        assert await forge.log(RUN, JOB) == "" and await forge.rerun(RUN) is False
        assert any("no job logs" in note for note in (await forge.greet()).notes)

    talk(server(version, "1-broken"), speak)


def test_a_greeting_says_who_answers_and_who_asks() -> None:
    """D19: the token is tried before the first push."""

    async def speak(forge: Forge, host: Host) -> None:
        greeting = await forge.greet()
        assert (greeting.version, greeting.user) == ("16.0.1+gitea-1.22.0", "dev")
        assert greeting.forge == forge.name == f"forgejo at {host.url.removeprefix('http://')}"
        assert host.asked[-1].headers["authorization"] == f"token {TOKEN}"

    talk(server("16.0.1", "1-broken"), speak)


def test_a_renewed_token_is_used_at_once_and_none_is_shown() -> None:
    """D19: it is read for each call."""
    tokens = iter(["first-token-1", "second-token-2", "second-token-2"])

    async def speak(forge: Forge, host: Host) -> None:
        for _ in range(2):
            await forge.runs([BROKEN])
        used = [asked.headers["authorization"] for asked in host.asked]
        assert used[0] == "token first-token-1" and used[-1] == "token second-token-2"
        assert "token-" not in repr(forge)

    talk(server("16.0.1", "1-broken"), speak, token=lambda: next(tokens))


REFUSALS = [(401, "FORGE_DENIED"), (403, "FORGE_DENIED"), (404, "FORGE_NOT_FOUND")]


@pytest.mark.parametrize(("status", "code"), REFUSALS)
def test_a_refusal_names_the_project_and_the_next_step(status: int, code: str) -> None:
    """D12, D19: permission denied is not looped."""
    table = server("16.0.1", "1-broken")
    table["GET R/actions/runs"] = Reply(status, {"message": f"no {TOKEN}"})

    async def speak(forge: Forge, _: Host) -> None:
        with pytest.raises(ForgeDenied, match="dev/app") as caught:
            await forge.runs([BROKEN])
        assert caught.value.code == code and caught.value.hint and TOKEN not in str(caught.value)

    talk(table, speak)


def test_a_page_of_html_is_trouble_and_not_an_empty_list() -> None:
    """D05: a proxy's page with 200 says nothing about CI."""
    table = server("16.0.1", "1-broken") | {"GET R/actions/runs": Reply(200, b"<html>hello</html>")}

    async def speak(forge: Forge, _: Host) -> None:
        with pytest.raises(ForgeUnreachable, match="not JSON"):
            await forge.runs([BROKEN])

    talk(table, speak)


def test_a_gitea_that_is_called_a_forgejo_is_read_as_a_gitea() -> None:
    """D19: both go by one setting in some projects."""
    row = {"id": 4, "head_sha": GREEN, "status": "completed", "conclusion": "success", "path": "ci.yml@refs/heads/main"}
    table: Table = {
        "GET /version": Reply(200, {"version": "1.25.5"}),
        "GET R/actions/runs": Reply(200, {"total_count": 1, "workflow_runs": [row]}),
    }

    async def speak(forge: Forge, _: Host) -> Sequence[RunFact]:
        return await forge.runs([GREEN])

    (run,) = talk(table, speak)
    assert (run.word, run.workflow) == (Word.SUCCESS, "ci.yml")


def test_a_storm_of_502_costs_time_and_never_a_verdict() -> None:
    """D05: the same call is asked again."""
    replies = iter([Reply(502), Reply(drop=True), Reply(200, fixture("1-broken-runs.json"))])
    table = server("16.0.1", "1-broken") | {"GET R/actions/runs": lambda _: next(replies)}
    time = Time()

    async def speak(forge: Forge, _: Host) -> None:
        assert [run.id for run in await forge.runs([BROKEN])] == ["1"] and time.slept == [5, 10]

    talk(table, speak, time=time)
