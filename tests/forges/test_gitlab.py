"""GitLab, by its documentation."""

from __future__ import annotations

from functools import partial

import pytest

from ganger.core.model.ci import ALLOWED_TO_FAIL, TIMED_OUT, Ci, CiRules, JobFact, RunFact, Word, judge
from ganger.errors import ForgeError
from ganger.ports.forge import Forge, MergeAnswer, NewRequest, QueueLook, Request
from tests.forges.answering import TOKEN, Host, Reply, Table, talk_to

SHA, HEAD = "a" * 40, "b" * 40
PIPELINE = {"id": 31, "iid": 3, "sha": SHA, "ref": "main", "status": "success", "source": "push", "web_url": "w"}
talk = partial(talk_to, "gitlab")


def job(name: str, **more: object) -> dict[str, object]:
    return {"id": 8, "name": name, "status": "success", "allow_failure": False, "commit": {"id": SHA}, **more}


def server(*jobs: dict[str, object], **pipeline: object) -> Table:
    return {
        "GET R/pipelines": Reply(200, [PIPELINE | pipeline]),
        "GET R/pipelines/31/jobs": Reply(200, list(jobs)),
    }


async def look(forge: Forge) -> list[RunFact]:
    return [await forge.jobs(run) for run in await forge.runs([SHA])]


def test_a_pipeline_is_a_run() -> None:
    """D02, D03: by its SHA; the project's name is one word of the path."""

    async def speak(forge: Forge, host: Host) -> None:
        (run,) = await look(forge)
        assert (run.id, run.number, run.event, run.word, run.asked) == ("31", 3, "push", Word.SUCCESS, run.state)
        assert host.asked[0].path == "/api/v4/projects/dev%2Fapp/pipelines" and host.asked[0].query["sha"] == SHA
        assert host.asked[0].headers["authorization"] == f"Bearer {TOKEN}"
        assert judge(SHA, [run], CiRules(("test",))).ci is Ci.GREEN

    talk(server(job("test")), speak)


JOBS = [
    ({"status": "failed"}, Word.FAILURE, ""),
    ({"status": "failed", "failure_reason": "job_execution_timeout"}, Word.FAILURE, TIMED_OUT),
    ({"status": "failed", "failure_reason": "script_failure"}, Word.FAILURE, ""),
    ({"status": "failed", "allow_failure": True}, Word.FAILURE, ALLOWED_TO_FAIL),
    ({"status": "manual"}, Word.WAITING, "needs_approval"),
    ({"status": "manual", "allow_failure": True}, Word.SKIPPED, ALLOWED_TO_FAIL),
    ({"status": "canceled"}, Word.CANCELLED, ""),
    ({"status": "canceling"}, Word.RUNNING, ""),
    ({"status": "waiting_for_resource"}, Word.WAITING, ""),
    ({"status": "cancelled"}, Word.WAITING, "unknown_word"),
    ({"status": None}, Word.WAITING, "unknown_word"),
]


@pytest.mark.parametrize(("row", "word", "reason"), JOBS)
def test_a_job_counts_by_its_words(row: dict[str, object], word: Word, reason: str) -> None:
    """D03: what may fail is no success of a required job."""

    async def speak(forge: Forge, _: Host) -> None:
        (run,) = await look(forge)
        assert (run.jobs[0].word, run.jobs[0].reason) == (word, reason)
        assert judge(SHA, [run], CiRules(("test",))).ci is not Ci.GREEN

    talk(server(job("test", **row)), speak)


def test_jobs_of_another_commit_are_dropped() -> None:
    """D02: whatever list they came in."""

    async def speak(forge: Forge, _: Host) -> None:
        (run,) = await look(forge)
        assert [found.name for found in run.jobs] == ["mine"]

    talk(server(job("mine"), job("other", commit={"id": HEAD})), speak)


@pytest.mark.parametrize(("source", "event"), [("merge_request_event", "pull_request"), ("web", "web"), (None, "")])
def test_triggers_have_the_names_of_the_others(source: str | None, event: str) -> None:
    """D02: one setting says which triggers count."""

    async def speak(forge: Forge, _: Host) -> None:
        assert (await forge.runs([SHA]))[0].event == event

    talk(server(source=source), speak)


def test_only_what_failed_can_be_run_again() -> None:
    """D04: retrying a pipeline leaves skipped jobs as they are."""
    table: Table = {"POST R/pipelines/31/retry": Reply(201, {})}
    failed, skipped = (
        RunFact("31", SHA, Word.SUCCESS, jobs=(JobFact("a", word),)) for word in (Word.FAILURE, Word.SKIPPED)
    )

    async def speak(forge: Forge, _: Host) -> None:
        assert await forge.rerun(failed) and not await forge.rerun(skipped)

    talk(table, speak)


def test_a_trace_is_a_log() -> None:
    """D06: 404 where it was erased."""
    run, kept, gone = RunFact("31", SHA, Word.FAILURE), *(JobFact("a", Word.FAILURE, id=n) for n in ("8", "9"))

    async def speak(forge: Forge, _: Host) -> None:
        assert await forge.log(run, kept) == "boom" and await forge.log(run, gone) == ""

    talk({"GET R/jobs/8/trace": Reply(200, b"boom")}, speak)


OPEN = {
    "iid": 5,
    "state": "opened",
    "source_branch": "topic",
    "target_branch": "main",
    "sha": HEAD,
    "title": "Draft: Add",
    "draft": True,
    "source_project_id": 1,
    "target_project_id": 1,
}
NEW = NewRequest("topic", "main", "Add", "Verified.", draft=True, labels=("ci", "bot"))


def test_a_merge_request_is_opened_as_a_draft_with_labels() -> None:
    """W02: a draft by its title."""

    async def speak(forge: Forge, host: Host) -> None:
        request = await forge.open_request(NEW)
        assert (request.number, request.draft, request.head, request.state) == ("5", True, HEAD, "open")
        body = host.asked[0].json()
        assert isinstance(body, dict) and (body["title"], body["labels"]) == ("Draft: Add", "ci,bot")

    talk({"POST R/merge_requests": Reply(201, OPEN)}, speak)


def test_one_that_is_there_is_found() -> None:
    """W02: neither a fork's nor a closed one."""
    rows = [OPEN | {"iid": 9, "source_project_id": 2}, OPEN | {"iid": 8, "state": "closed"}, OPEN]
    table: Table = {"POST R/merge_requests": Reply(409, {"message": ["Another open merge request already exists"]})}

    async def speak(forge: Forge, _: Host) -> None:
        with pytest.raises(ForgeError, match="already exists"):
            await forge.open_request(NEW)
        table["GET R/merge_requests"] = Reply(200, rows)
        assert (await forge.open_request(NEW)).number == "5"

    table["GET R/merge_requests"] = Reply(200, [])
    talk(table, speak)


def test_ready_takes_the_draft_from_the_title_and_a_comment_is_a_note() -> None:
    """W02: one write each."""
    table: Table = {
        "GET R/merge_requests/5": Reply(200, OPEN),
        "PUT R/merge_requests/5": Reply(200, OPEN),
        "GET R/merge_requests/5/notes": Reply(200, []),
        "GET /user": Reply(200, {"username": "robot"}),
        "POST R/merge_requests/5/notes": Reply(201, {"id": 3}),
    }

    async def speak(forge: Forge, host: Host) -> None:
        request = Request("5", "u", "topic", "main")
        await forge.ready(request)
        assert await forge.remark(request, "<1>", "green <1>") == "u#note_3"
        written = [asked.json() for asked in host.asked if asked.method != "GET"]
        assert written == [{"title": "Add"}, {"body": "green <1>"}]

    talk(table, speak)


@pytest.mark.parametrize(
    ("status", "state", "made"), [(200, "merged", "c" * 40), (409, "opened", ""), (401, "opened", "")]
)
def test_exactly_one_commit_is_merged(status: int, state: str, made: str) -> None:
    """D02: by its SHA; GitLab says 401 where the token may not merge."""
    table: Table = {
        "PUT R/merge_requests/5/merge": Reply(status, {}),
        "GET R/merge_requests/5": Reply(200, OPEN | {"state": state, "merge_commit_sha": made or None}),
    }

    async def speak(forge: Forge, host: Host) -> None:
        answer = await forge.merge(Request("5", "", "topic", "main"), HEAD)
        assert (answer.commit, bool(answer.why), answer.busy) == (made, not made, status == 409)
        assert host.asked[0].json() == {"sha": HEAD, "squash": False}

    talk(table, speak)


def test_a_greeting_names_version_and_user() -> None:
    """D19: the user's name is under another word here."""
    table: Table = {"GET /version": Reply(200, {"version": "18.1.0"}), "GET /user": Reply(200, {"username": "dev"})}

    async def speak(forge: Forge, _: Host) -> None:
        greeting = await forge.greet()
        assert (greeting.version, greeting.user) == ("18.1.0", "dev")

    talk(table, speak)


def bridge(number: int, pipeline: dict[str, object] | None) -> dict[str, object]:
    return {"id": number, "name": f"start {number}", "status": "success", "downstream_pipeline": pipeline}


BRIDGES = [
    bridge(9, {"id": 41, "web_url": "h/dev/app/-/pipelines/41"}),
    bridge(10, {"id": 42, "web_url": "h/x/y/-/pipelines/42"}),
    bridge(11, None),
]


@pytest.mark.parametrize("name", ["bridges", "trigger_jobs"])
def test_jobs_of_child_pipelines_count_where_they_are_named(name: str) -> None:
    """D03: under both names that GitLab has for what starts them; of another project's pipeline nothing is read."""
    table = server(job("test")) | {
        f"GET R/pipelines/31/{name}": Reply(200, BRIDGES),
        "GET R/pipelines/41/jobs": Reply(
            200, [job("deep", status="failed", id=12), job("hand", status="manual", id=13)]
        ),
    }

    async def speak(forge: Forge, _: Host) -> None:
        (run,) = await look(forge)
        assert [(one.name, one.child) for one in run.jobs] == [("test", ""), ("deep", "41"), ("hand", "41")]
        assert judge(SHA, [run], CiRules(("test", "deep"))).ci is Ci.RED
        assert judge(SHA, [run], CiRules()).ci is Ci.GREEN and run.asked == run.state

    talk(table, speak)


KNOWN = Request("5", "", "topic", "main")
TRAIN = {"id": 1, "status": "fresh", "pipeline": {"id": 77, "sha": "d" * 40}, "merge_request": {"iid": 5}}
PLACE = "merge_trains/merge_requests/5"


def test_a_request_goes_onto_the_merge_train_and_is_followed_there() -> None:
    """D02: with exactly this head; what the train tries with it is told."""
    table: Table = {
        "GET R": Reply(200, {"merge_method": "merge", "squash_option": "default_off", "merge_trains_enabled": True}),
        f"POST R/{PLACE}": Reply(201, [TRAIN]),
        f"GET R/{PLACE}": Reply(200, TRAIN),
        "GET R/merge_requests/5": Reply(200, OPEN),
    }

    async def speak(forge: Forge, host: Host) -> None:
        rules = await forge.merge_rules("main")
        assert rules.queue and rules.methods == ("merge", "squash")
        assert await forge.enqueue(KNOWN, HEAD) == MergeAnswer() and host.asked[-1].json() == {"sha": HEAD}
        assert await forge.queued(KNOWN) == QueueLook("waiting", "d" * 40, "fresh")

    talk(table, speak)


def test_one_that_left_the_train_or_was_merged_by_it_is_told_apart() -> None:
    """D02: a refusal to take it in comes with GitLab's own words."""
    merged = OPEN | {"state": "merged", "merge_commit_sha": "c" * 40}
    table: Table = {
        f"GET R/{PLACE}": Reply(404, {}),
        f"POST R/{PLACE}": Reply(400, {"message": "not mergeable"}),
        "GET R/merge_requests/5": Reply(200, OPEN),
    }

    async def out(forge: Forge, _: Host) -> None:
        assert (await forge.queued(KNOWN)).state == "out"
        assert await forge.enqueue(KNOWN, HEAD) == MergeAnswer(why="not mergeable")

    async def through(forge: Forge, _: Host) -> None:
        assert await forge.queued(KNOWN) == QueueLook("merged", "c" * 40)

    talk(table, out)
    talk({"GET R/merge_requests/5": Reply(200, merged)}, through)


def test_a_request_from_a_fork_is_opened_where_its_branch_lies() -> None:
    """W02: and belongs to the project it goes into."""
    made = OPEN | {"source_project_id": 8, "target_project_id": 7}
    table: Table = {
        "GET R": Reply(200, {"id": 7}),
        "GET /projects/me%2Fapp": Reply(200, {"id": 8}),
        "POST /projects/me%2Fapp/merge_requests": Reply(201, made),
        "GET R/merge_requests": Reply(200, [made, OPEN | {"iid": 9, "source_project_id": 7, "target_project_id": 7}]),
    }

    async def speak(forge: Forge, host: Host) -> None:
        request = await forge.open_request(NewRequest("topic", "main", "t", ""))
        sent = host.asked[-1].json()
        assert isinstance(sent, dict) and sent["target_project_id"] == "7" and request.number == "5"
        assert (await forge.find_request("topic", "main")) == request

    talk_to("gitlab", table, speak, source="me/app")
