"""GitHub, on its published example answers."""

from __future__ import annotations

import asyncio
import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from ganger.core.model.ci import Ci, CiRules, JobFact, RunFact, Word, judge
from ganger.errors import ForgeDenied, ForgeError, ForgeLimited, ForgeUnreachable
from ganger.forges import Hosts
from ganger.forges.table import opened
from ganger.ports.forge import Forge, MergeAnswer, MergeRules, NewRequest, QueueLook, Request
from tests.forges.answering import TOKEN, Asked, Host, Reply, Table, answering, settings, talk_to

EXAMPLES = Path(__file__).resolve().parents[1] / "data" / "forge" / "schemas" / "github-23.0.2.examples.json"
FOUND: dict[str, Any] = json.loads(EXAMPLES.read_bytes())
RUNS: dict[str, Any] = FOUND["workflow-run-paginated"]["value"]
JOBS: dict[str, Any] = FOUND["job-paginated"]["value"]
PULL: dict[str, Any] = FOUND["pull-request"]["value"]
SHA = RUNS["workflow_runs"][0]["head_sha"]
RUN_ID = RUNS["workflow_runs"][0]["id"]
talk = partial(talk_to, "github")


def run_row(**more: object) -> dict[str, Any]:
    return {**RUNS["workflow_runs"][0], **more}


def job_row(**more: object) -> dict[str, Any]:
    return {**JOBS["jobs"][0], "head_sha": SHA, "run_id": RUN_ID, "run_attempt": 1, **more}


def server(run: dict[str, Any], *jobs: dict[str, Any]) -> Table:
    return {
        "GET R/actions/runs": Reply(200, {"total_count": 1, "workflow_runs": [run]}),
        f"GET R/actions/runs/{RUN_ID}/jobs": Reply(200, {"total_count": len(jobs), "jobs": jobs}),
    }


async def look(forge: Forge) -> list[RunFact]:
    return [await forge.jobs(run) for run in await forge.runs([SHA])]


def test_a_published_run_is_read() -> None:
    """D03: queued is waiting; the workflow is its file."""

    async def speak(forge: Forge, host: Host) -> None:
        (run,) = await forge.runs([SHA])
        assert (run.word, run.raw, run.workflow, run.number) == (Word.WAITING, "queued", "build.yml", 562)
        assert host.asked[0].path.startswith("/api/v3/repos/dev/app/") and host.asked[0].query["head_sha"] == SHA
        assert host.asked[0].headers["authorization"] == f"Bearer {TOKEN}"

    talk(server(run_row()), speak)


ENDS = [
    ("success", Ci.GREEN),
    ("failure", Ci.RED),
    ("timed_out", Ci.TIMED_OUT),
    ("cancelled", Ci.CANCELLED),
    ("stale", Ci.CANCELLED),
    ("skipped", Ci.SKIPPED),
    ("neutral", Ci.SKIPPED),
    ("startup_failure", Ci.RED),
    ("action_required", Ci.NEEDS_APPROVAL),
    ("something_new", Ci.WAITING),
    (None, Ci.WAITING),
]


@pytest.mark.parametrize(("conclusion", "ci"), ENDS)
def test_a_required_job_counts_by_its_conclusion(conclusion: str | None, ci: Ci) -> None:
    """D03: never by the run's, which is success here."""
    row = job_row(name="build", status="completed", conclusion=conclusion)

    async def speak(forge: Forge, _: Host) -> None:
        assert judge(SHA, await look(forge), CiRules(("build",))).ci is ci

    talk(server(run_row(status="completed", conclusion="success"), row), speak)


def test_a_rerun_is_another_state_of_the_same_run() -> None:
    """D03: the attempt goes up, the id stays; jobs of the latest attempt are asked for."""
    table = server(run_row(run_attempt=2, status="completed", conclusion="success"), job_row(run_attempt=2))

    async def speak(forge: Forge, host: Host) -> None:
        (run,) = await look(forge)
        assert run.state == "2:success:" == run.asked and run.jobs[0].attempt == 2
        assert host.asked[-1].query["filter"] == "latest"

    talk(table, speak)


def test_a_log_comes_from_elsewhere_without_the_token() -> None:
    """D06, D19: GitHub answers with an address that is good for a minute."""

    async def go() -> None:
        async with answering(lambda _: Reply(200, b"error: it broke")) as store:
            target = store.url.replace("127.0.0.1", "localhost") + "/blob?sig=abc"
            async with answering(lambda _: Reply(302, b"", {"location": target})) as host:
                forge = opened("github", settings(host.url), Hosts())
                log = await forge.log(RunFact("1", SHA, Word.FAILURE), JobFact("a", Word.FAILURE, id="9"))
                assert log == "error: it broke" and "authorization" not in store.asked[0].headers
                await forge.close()

    asyncio.run(go())


@pytest.mark.parametrize(("word", "call"), [(Word.FAILURE, "rerun-failed-jobs"), (Word.SKIPPED, "rerun")])
def test_what_failed_is_run_again_or_all_of_it(word: Word, call: str) -> None:
    """D04: a skipped mirror has nothing that failed."""
    table: Table = {f"POST R/actions/runs/1/{call}": Reply(201, {})}

    async def speak(forge: Forge, _: Host) -> None:
        assert await forge.rerun(RunFact("1", SHA, Word.SUCCESS, jobs=(JobFact("a", word),)))

    talk(table, speak)


NEW = NewRequest("new-topic", "master", "Add a thing", "Verified.", draft=True, labels=("ci",))
OPEN = PULL | {"draft": True, "merged_at": None, "head": PULL["head"] | {"repo": {"full_name": "dev/app"}}}


def test_a_draft_is_opened_with_its_labels() -> None:
    """W02: labels go by name here."""
    table: Table = {"POST R/pulls": Reply(201, OPEN), "POST R/issues/1347/labels": Reply(200, [])}

    async def speak(forge: Forge, host: Host) -> None:
        request = await forge.open_request(NEW)
        assert (request.number, request.draft, request.state, request.branch) == ("1347", True, "open", "new-topic")
        assert [asked.json() for asked in host.asked][1] == {"labels": ["ci"]}

    talk(table, speak)


def test_one_that_is_there_is_found_by_its_branch() -> None:
    """W02: 422 is also the answer to a second one."""
    table: Table = {
        "POST R/pulls": Reply(422, {"message": "Validation Failed"}),
        "GET R/pulls": Reply(200, [OPEN]),
        "POST R/issues/1347/labels": Reply(200, []),
    }

    async def speak(forge: Forge, host: Host) -> None:
        assert (await forge.open_request(NEW)).number == "1347"
        assert host.asked[1].query["head"] == "dev:new-topic" and host.asked[1].query["base"] == "master"

    talk(table, speak)


def test_where_there_are_no_drafts_it_is_none() -> None:
    """W02: not every plan has them."""

    def answer(asked: Asked) -> Reply:
        refused = b'"draft": true' in asked.body
        said = "Draft pull requests are not supported in this repository."
        return Reply(422, {"message": said}) if refused else Reply(201, OPEN | {"draft": False})

    async def speak(forge: Forge, _: Host) -> None:
        assert (await forge.open_request(NEW)).draft is False

    talk({"POST R/pulls": answer, "GET R/pulls": Reply(200, [])}, speak)


@pytest.mark.parametrize("refused", [False, True])
def test_a_draft_is_made_ready_by_the_other_api(refused: bool) -> None:
    """W02: REST cannot; a refusal says what to do."""
    body: object = {"errors": [{"message": "no"}]} if refused else {"data": {}}
    table: Table = {"GET R/pulls/1347": Reply(200, OPEN), "POST /api/graphql": Reply(200, body)}

    async def speak(forge: Forge, host: Host) -> None:
        request = Request("1347", "", "new-topic", "master", draft=True)
        if refused:
            with pytest.raises(ForgeError, match="stays a draft"):
                await forge.ready(request)
        else:
            await forge.ready(request)
        sent = host.asked[-1].json()
        assert isinstance(sent, dict) and sent["variables"] == {"id": PULL["node_id"]}

    talk(table, speak)


@pytest.mark.parametrize(("status", "made"), [(200, "f" * 40), (405, ""), (422, "")])
def test_exactly_one_commit_is_merged(status: int, made: str) -> None:
    """D02: by its SHA, or not at all."""
    body = {"sha": made, "merged": True} if made else {"message": "Draft"}
    table: Table = {"PUT R/pulls/1347/merge": Reply(status, body), "GET R/pulls/1347": Reply(200, OPEN)}

    async def speak(forge: Forge, host: Host) -> None:
        answer = await forge.merge(Request("1347", "", "new-topic", "master"), "a" * 40)
        assert answer == (MergeAnswer(made) if made else MergeAnswer(why="Draft"))
        sent = host.asked[0].json()
        assert isinstance(sent, dict) and sent == {"sha": "a" * 40, "merge_method": "merge"}

    talk(table, speak)


@pytest.mark.parametrize(
    ("url", "root"), [("https://github.com", ""), ("api.github.com", ""), ("https://git.corp.example", "/api/v3")]
)
def test_the_public_one_has_its_api_elsewhere(url: str, root: str) -> None:
    """D19: only delivery.url is needed."""
    forge = opened("github", settings(url), Hosts())
    host = "api.github.com" if not root else "git.corp.example"
    assert forge.name == f"github at {host}" and forge._site.root == root


def test_a_spent_allowance_is_an_error_with_its_moment() -> None:
    """D05: 403 with remaining 0 is no lack of rights."""
    headers = {"x-ratelimit-remaining": "0", "x-ratelimit-reset": "1893456000", "date": "Mon, 31 Dec 2029 23:00:00 GMT"}

    async def speak(forge: Forge, _: Host) -> None:
        with pytest.raises(ForgeLimited) as caught:
            await forge.runs([SHA])
        assert caught.value.until == pytest.approx(1_000_000_000 + 3600)

    talk({"GET R/actions/runs": Reply(403, {"message": "API rate limit exceeded"}, headers)}, speak)


def test_a_token_of_an_app_is_tried_on_the_repository() -> None:
    """D19: it may not read a user, and is good all the same."""
    table: Table = {"GET /user": Reply(403, {"message": "Resource not accessible by integration"})}

    async def speak(forge: Forge, _: Host) -> None:
        with pytest.raises(ForgeDenied):
            await forge.greet()
        table["GET R"] = Reply(200, {})
        assert "can read the repository" in (await forge.greet()).notes[0]

    talk(table, speak)


def test_one_client_serves_all_repositories_of_a_host() -> None:
    """D05: one breaker and one limit; it closes with the last of them."""

    async def go() -> None:
        async with answering(lambda _: Reply(200, {"total_count": 0, "workflow_runs": []})) as host:
            hosts = Hosts()
            first, second = (opened("github", settings(host.url, project=name), hosts) for name in ("a/b", "a/c"))
            await first.runs([SHA])
            await second.runs([SHA])
            assert (first.calls, second.calls, list(hosts.per_minute.values())) == (1, 1, [2])
            await first.close()
            await second.runs([SHA])
            await second.close()
            await second.close()
            assert hosts.per_minute == {}

    asyncio.run(go())


REPO = {"allow_merge_commit": True, "allow_squash_merge": True, "allow_rebase_merge": False}
KNOWN = Request("1347", "", "new-topic", "master")


@pytest.mark.parametrize(
    ("kinds", "methods", "queue"),
    [
        ([], ("merge", "squash"), False),
        (["merge_queue"], ("merge", "squash"), True),
        (["required_linear_history", "pull_request"], ("squash",), False),
    ],
)
def test_how_changes_reach_a_branch_is_read_from_its_rules(
    kinds: list[str], methods: tuple[str, ...], queue: bool
) -> None:
    """W02: a branch with a merge queue takes nothing else; one with a straight history no merge commits."""
    table: Table = {
        "GET R": Reply(200, REPO),
        "GET R/rules/branches/master": Reply(200, [{"type": kind} for kind in kinds]),
    }

    async def speak(forge: Forge, _: Host) -> None:
        assert await forge.merge_rules("master") == MergeRules(methods, queue)

    talk(table, speak)


def in_queue(state: str, entry: dict[str, Any] | None, merged: str = "") -> Reply:
    row = {"state": state, "mergeCommit": {"oid": merged} if merged else None, "mergeQueueEntry": entry}
    return Reply(200, {"data": {"repository": {"pullRequest": row}}})


QUEUED = {"state": "AWAITING_CHECKS", "headCommit": {"oid": "e" * 40}}


@pytest.mark.parametrize(
    ("reply", "look"),
    [
        (in_queue("OPEN", QUEUED), QueueLook("waiting", "e" * 40, "AWAITING_CHECKS")),
        (in_queue("OPEN", None), QueueLook("out", why="it is not in the merge queue")),
        (in_queue("MERGED", None, "f" * 40), QueueLook("merged", "f" * 40)),
    ],
)
def test_where_a_request_stands_in_the_merge_queue(reply: Reply, look: QueueLook) -> None:
    """D02: with the commit that the queue tries, or made."""

    async def speak(forge: Forge, _: Host) -> None:
        assert await forge.queued(KNOWN) == look

    talk({"POST /api/graphql": reply}, speak)


def test_what_the_queue_says_nothing_of_is_trouble_and_no_news() -> None:
    """D05: an answer of errors is not an empty queue."""

    async def speak(forge: Forge, _: Host) -> None:
        with pytest.raises(ForgeUnreachable):
            await forge.queued(KNOWN)

    talk({"POST /api/graphql": Reply(200, {"data": None, "errors": [{"message": "busy"}]})}, speak)


@pytest.mark.parametrize("there", [False, True])
def test_a_request_goes_into_the_merge_queue_at_exactly_one_head(there: bool) -> None:
    """D02 W02: one that is in it already is no refusal."""

    def answer(asked: Asked) -> Reply:
        sent = asked.json()
        assert isinstance(sent, dict)
        if "enqueuePullRequest" not in str(sent["query"]):
            return in_queue("OPEN", QUEUED if there else None)
        assert sent["variables"] == {"id": PULL["node_id"], "head": "a" * 40}
        return Reply(200, {"errors": [{"message": "No"}]})

    async def speak(forge: Forge, _: Host) -> None:
        assert await forge.enqueue(KNOWN, "a" * 40) == MergeAnswer(why="" if there else "No")

    talk({"GET R/pulls/1347": Reply(200, OPEN), "POST /api/graphql": answer}, speak)


def test_a_request_from_a_fork_names_its_owner_and_is_found_by_that() -> None:
    """W02: another fork may have a branch of the same name."""
    mine = OPEN | {"head": OPEN["head"] | {"ref": "topic", "repo": {"full_name": "me/app"}}, "base": {"ref": "main"}}
    table: Table = {
        "POST R/pulls": Reply(201, mine),
        "GET R/pulls": Reply(
            200, [mine | {"number": 9, "head": mine["head"] | {"repo": {"full_name": "x/app"}}}, mine]
        ),
    }

    async def speak(forge: Forge, host: Host) -> None:
        await forge.open_request(NewRequest("topic", "main", "t", ""))
        sent = host.asked[0].json()
        assert isinstance(sent, dict) and sent["head"] == "me:topic"
        found = await forge.find_request("topic", "main")
        assert found is not None and found.number == "1347" and host.asked[-1].query["head"] == "me:topic"

    talk_to("github", table, speak, source="me/app")
