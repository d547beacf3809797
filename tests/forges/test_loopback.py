"""The loopback forge itself: answers by the published schemas, CI as scripted, faults as planned."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from tests.forges.forge_projects import ground_in
from tests.forges.loopback.ground import Ground
from tests.forges.loopback.http import Answer, Ask
from tests.forges.loopback.schemas import NotBySchema, published
from tests.forges.loopback.script import GREEN, MIRROR, RED, Fault, Run, ci
from tests.forges.loopback.server import FLAVOURS, TOKEN, LoopbackForge, serving
from tests.forges.loopback.world import World
from tests.forges.loopback_client import WITH_JOBS, Client, push

SCHEMED = [name for name in FLAVOURS if name != "gitlab"]


@pytest.fixture
def ground(tmp_path: Path) -> Ground:
    return ground_in(tmp_path)


@pytest.mark.parametrize("flavour", WITH_JOBS)
def test_a_pushed_commit_has_a_run_whose_jobs_go_on_with_each_look(ground: Ground, flavour: str) -> None:
    """D02 D03: the script's words in the forge's own, by the SHA that was pushed; ids are no numbers."""
    with serving(flavour, World(ground, [[GREEN]])) as forge, Client(flavour, forge) as client:
        sha = push(ground)
        seen = []
        for _ in range(5):
            (run,) = client.runs(sha)
            seen.append(client.jobs(run)["test"])
        assert run["id"] > 4000 and run.get("commit_sha", run.get("head_sha", run.get("sha"))) == sha
        assert len(set(seen)) == 3 and seen[-1] == "success" and client.runs("0" * 40) == []


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_every_kind_of_call_is_answered_as_published(ground: Ground, flavour: str) -> None:
    """D19: version, user, runs, statuses, tasks, change requests; the server itself refuses what does not fit."""
    with serving(flavour, World(ground, [[GREEN, ci(workflow="lint.yml")]])) as forge, Client(flavour, forge) as client:
        sha = push(ground, branch="main")
        ground.git("branch", "topic", sha)
        paths = ["/user", *([] if client.hub else ["/version"])]
        if not (client.lab or client.hub):
            paths += [
                f"{client.repo}/actions/tasks",
                f"{client.repo}/commits/{sha}/status",
                client.repo,
                "/settings/api",
            ]
        assert [client.http.get(path).status_code for path in paths] == [200] * len(paths)
        where = f"{client.repo}/{'merge_requests' if client.lab else 'pulls'}"
        given = {"title": "t", "head": "topic", "base": "main", "source_branch": "topic", "target_branch": "main"}
        first, second = client.http.post(where, json=given), client.http.post(where, json=given)
        assert first.status_code == 201 and second.status_code == (422 if client.hub else 409)
        assert client.http.get(where).json()[0]["title"] == "t"


@pytest.mark.parametrize("flavour", SCHEMED)
def test_an_answer_that_is_not_as_published_is_refused(ground: Ground, flavour: str) -> None:
    """D19: the check is worth something: a wrong type, and a field nobody published."""
    forge = LoopbackForge(flavour, World(ground, []))
    ask = Ask("GET", f"{forge.forge.published_under or forge.forge.base}/user", {}, {})
    wrongs: list[object] = [{"login": 5}, [], {"id": "one", "login": "x"}]
    for wrong in wrongs:
        with pytest.raises(NotBySchema):
            forge.require(ask, Answer(200, wrong))
    with pytest.raises(NotBySchema):
        forge.require(Ask("GET", f"{forge.forge.base}/nowhere", {}, {}), Answer(200, {}))
    forge.wire.server_close()


@pytest.mark.parametrize("name", ["2-green", "3-dispatch", "1-broken", "5-cancel"])
def test_what_a_real_server_sent_passes_the_same_check(name: str) -> None:
    """D19: recorded answers of a running Forgejo 16; they hold a few fields more than it publishes."""
    place = Path(__file__).resolve().parents[1] / "data/forge/fixtures/forgejo-16"
    schema = published("forgejo-v16.0.swagger.json", closed=False)
    paths = {
        "runs": "actions/runs",
        "jobs": "actions/runs/1/jobs",
        "tasks": "actions/tasks",
        "status": "commits/x/status",
    }
    for kind, path in paths.items():
        body = json.loads((place / f"{name}-{kind}.json").read_text())
        assert schema.require("GET", f"/api/v1/repos/dev/app/{path}", 200, body)


def test_a_forgejo_run_fails_before_its_last_jobs_are_through(ground: Ground) -> None:
    """D03: as recorded from a running server: the run's own word is no verdict on its jobs."""
    script = Run({"test": "run fail", "coverage": "wait wait run ok", MIRROR: "block block block skip"})
    with serving("forgejo-16", World(ground, [[script]])) as forge, Client("forgejo-16", forge) as client:
        sha = push(ground)
        client.runs(sha)
        (run,) = client.runs(sha)
        assert run["status"] == "failure" and client.jobs(run)["coverage"] == "waiting"


@pytest.mark.parametrize("flavour", ["gitea-1.27", "github", "gitlab"])
def test_running_again_raises_the_attempt_and_may_end_otherwise(ground: Ground, flavour: str) -> None:
    """D04: the run keeps its id, its jobs get new ones."""
    script = ci({"test": "fail", "check": "ok", MIRROR: "skip"}, again=({"test": "run ok", MIRROR: "run ok"},))
    with serving(flavour, World(ground, [[script]])) as forge, Client(flavour, forge) as client:
        (run,) = client.runs(push(ground))
        before = client.jobs(run)
        way = f"pipelines/{run['id']}/retry" if client.lab else f"actions/runs/{run['id']}/rerun"
        assert client.http.post(f"{client.repo}/{way}").status_code == 201
        for _ in range(2):
            (again,) = client.runs(run.get("head_sha") or run["sha"])
        assert again["id"] == run["id"] and client.jobs(again)["test"] == "success" != before["test"]


@pytest.mark.parametrize(
    ("kind", "status"), [("502", 502), ("limited", 429), ("secondary", 403), ("revoked", 401), ("garbage", 200)]
)
def test_faults_come_when_planned_and_go(ground: Ground, kind: str, status: int) -> None:
    """D05: the second list of runs alone; a revoked token stays so."""
    world = World(ground, [[GREEN]])
    with (
        serving("forgejo-16", world, faults=[Fault("runs", kind, 2, 1)]) as forge,
        Client("forgejo-16", forge) as client,
    ):
        path = f"{client.repo}/actions/runs"
        got = [client.http.get(path).status_code for _ in range(3)]
        assert got == [200, status, 401 if kind == "revoked" else 200]
        assert world.looks == (1 if kind == "revoked" else 2)


@pytest.mark.parametrize("kind", ["reset", "silence", "cut"])
def test_a_connection_that_breaks_is_no_answer(ground: Ground, kind: str) -> None:
    """D05: reset, no word at all, half a body."""
    with (
        serving("github", World(ground, [[GREEN]]), faults=[Fault("user", kind)]) as forge,
        Client("github", forge) as client,
    ):
        with pytest.raises(httpx.HTTPError):
            client.http.get("/user", timeout=0.5)
        assert client.http.get("/user").status_code == 200


def test_an_unchanged_answer_costs_github_nothing(ground: Ground) -> None:
    """D05: If-None-Match is answered 304, and counted so."""
    with serving("github", World(ground, [[GREEN]])) as forge, Client("github", forge) as client:
        tag = client.http.get("/user").headers["etag"]
        assert client.http.get("/user", headers={"If-None-Match": tag}).status_code == 304
        assert forge.log.count("user", status=304) == 1


def test_no_token_is_in_the_log_and_a_wrong_one_is_refused(ground: Ground) -> None:
    """D19: neither from a header nor from an address."""
    with serving("forgejo-16", World(ground, [[GREEN]])) as forge, Client("forgejo-16", forge) as client:
        client.http.get("/user", params={"access_token": TOKEN})
        bad = client.http.get("/user", headers={"Authorization": "token wrong"})
        assert bad.status_code == 401 and TOKEN not in "\n".join(map(str, forge.log.lines)) + forge.summary()
        assert re.search(r"2 requests, \d+ a minute", forge.summary())


SHA_FIELDS: list[tuple[str, Callable[[str], object]]] = [
    ("empty", lambda sha: ""), ("missing", lambda sha: None),
    ("short", lambda sha: sha[:10]), ("other", lambda sha: "f" * 40),
]  # fmt: skip


@pytest.mark.parametrize(("how", "said"), SHA_FIELDS)
def test_the_field_of_the_commit_can_be_wrong(ground: Ground, how: str, said: Callable[[str], object]) -> None:
    """D05: the server's filter knows the run, its answer's field does not say which commit."""
    with serving("forgejo-16", World(ground, [[ci(sha=how)]])) as forge, Client("forgejo-16", forge) as client:
        sha = push(ground)
        (run,) = client.runs(sha)
        assert run.get("commit_sha") == said(sha)


def test_runs_appear_late_are_deleted_and_belong_to_their_own_commit(ground: Ground) -> None:
    """D02 D05: what somebody else pushes has runs of its own."""
    world = World(ground, [[ci(after=2, gone=2)]], others=[RED])
    with serving("forgejo-16", world) as forge, Client("forgejo-16", forge) as client:
        sha = push(ground)
        theirs = world.somebody_pushes("main")
        assert [len(client.runs(sha)) for _ in range(6)] == [0, 0, 1, 1, 0, 0] and len(client.runs(theirs)) == 1


def test_a_change_request_is_merged_at_exactly_this_head(ground: Ground) -> None:
    """W02: another head is refused; the merge is a commit of real git."""
    with serving("forgejo-16", World(ground, [[GREEN]])) as forge, Client("forgejo-16", forge) as client:
        ground.git("branch", "topic", ground.tip("main"))
        head = push(ground, "b.txt", "topic")
        number = client.http.post(f"{client.repo}/pulls", json={"title": "t", "head": "topic", "base": "main"}).json()[
            "number"
        ]
        merge = f"{client.repo}/pulls/{number}/merge"
        assert client.http.post(merge, json={"Do": "merge", "head_commit_id": "0" * 40}).status_code == 409
        assert client.http.post(merge, json={"Do": "merge", "head_commit_id": head}).status_code == 200
        assert ground.holds("main", head) and client.http.get(f"{client.repo}/pulls/{number}").json()["merged"]
