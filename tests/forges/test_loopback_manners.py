"""The loopback forge does what a real one was seen to do: cancels, folds, loses answers, is away, has people."""

from __future__ import annotations

import base64
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.forges.forge_projects import ground_in
from tests.forges.loopback.ground import Ground
from tests.forges.loopback.manners import Manners, Protection
from tests.forges.loopback.script import GREEN, MIRROR, Run, by_tree, ci
from tests.forges.loopback.server import FLAVOURS, TOKEN, LoopbackForge, serving
from tests.forges.loopback.world import World
from tests.forges.loopback_client import WITH_JOBS, Client, push
from tests.forges.truth import wrong_at_tip

GITEA_LIKE = ["forgejo-16", "gitea-1.25", "gitea-1.27"]
KINDS = ["forgejo-16", "gitea-1.27", "github", "gitlab"]
SLOW = by_tree("bad.txt", "one.txt+two.txt", sec=0.3)


@pytest.fixture
def ground(tmp_path: Path) -> Ground:
    return ground_in(tmp_path)


def asked(client: Client, ground: Ground, branch: str = "topic", name: str = "b.txt") -> str:
    """A change request of a new branch; the path of it."""
    ground.git("branch", branch, ground.tip("main"))
    push(ground, name, branch)
    where = f"{client.repo}/{'merge_requests' if client.lab else 'pulls'}"
    given = {"title": "t", "head": branch, "base": "main", "source_branch": branch, "target_branch": "main"}
    made = client.http.post(where, json=given).json()
    return f"{where}/{made['iid'] if client.lab else made['number']}"


def merge(client: Client, path: str) -> int:
    way = client.http.put if client.lab or client.hub else client.http.post
    return way(f"{path}/merge", json={"Do": "merge"}).status_code


def ended(client: Client, sha: str, most_sec: float = 5.0) -> list[dict[str, str]]:
    """The jobs of each run of a commit once they are over."""
    until = time.monotonic() + most_sec
    while time.monotonic() < until:
        jobs = [client.jobs(run) for run in client.runs(sha)]
        if jobs and all(set(one.values()) <= OVER_WORDS for one in jobs):
            return jobs
        threading.Event().wait(0.02)
    raise AssertionError(jobs)


OVER_WORDS = {"success", "failure", "failed", "cancelled", "canceled", "skipped", "action_required"}


@pytest.mark.parametrize("flavour", WITH_JOBS)
def test_a_later_push_cancels_the_older_run_of_its_branch_alone(ground: Ground, flavour: str) -> None:
    """D02 D03: what was over stays as it was; another branch goes on."""
    world = World(ground, [[GREEN]], manners=Manners(cancels=True))
    with serving(flavour, world) as forge, Client(flavour, forge) as client:
        ground.git("branch", "topic", ground.tip("main"))
        first, other = push(ground), push(ground, "o.txt", "topic")
        client.runs(first)
        second = push(ground, "b.txt")
        (stopped,), (going,) = ended(client, first), ended(client, second)
        assert set(stopped.values()) <= {"cancelled", "canceled"} and set(going.values()) == {"success"}
        assert set(ended(client, other)[0].values()) == {"success"}


def test_two_pushes_in_a_moment_give_two_runs_of_the_later_commit(ground: Ground) -> None:
    """D02 D05: none of the earlier one, ever."""
    world = World(ground, [[GREEN]], manners=Manners(folds_sec=0.3))
    with serving("forgejo-16", world) as forge, Client("forgejo-16", forge) as client:
        first, second = push(ground), push(ground, "b.txt")
        assert client.runs(second) == []
        threading.Event().wait(0.35)
        client.runs(second)
        assert len(client.runs(second)) == 2 and client.runs(first) == []


@pytest.mark.parametrize("flavour", WITH_JOBS)
def test_ci_takes_its_time_by_the_wall_clock_and_judges_what_is_in_the_commit(ground: Ground, flavour: str) -> None:
    """D03 D06: red with a bad file, red with two together, green when one is taken out again."""
    world = World(ground, [[SLOW]])
    with serving(flavour, world) as forge, Client(flavour, forge) as client:
        begun = time.monotonic()
        one, two = push(ground, "one.txt"), push(ground, "two.txt")
        assert ended(client, one)[0]["test"] == "success" and time.monotonic() - begun >= 0.3
        (red,) = ended(client, two)
        assert red["test"] in ("failure", "failed") and wrong_at_tip(world) == ["one.txt+two.txt"]
        world.cut("main", 1)
        assert wrong_at_tip(world) == [] and ended(client, one)[0]["test"] == "success"


def test_the_log_of_a_red_job_names_what_is_in_the_way(ground: Ground) -> None:
    """D06: two faults can be told apart."""
    world = World(ground, [[by_tree("bad.txt")]])
    with serving("forgejo-16", world) as forge, Client("forgejo-16", forge) as client:
        sha = push(ground, "bad.txt")
        client.runs(sha)
        (run,) = client.runs(sha)
        rows = client.http.get(f"{client.repo}/actions/runs/{run['id']}/jobs").json()
        number = next(row["id"] for row in rows if row["name"] == "test")
        assert "bad.txt is in the way" in client.http.get(f"{client.repo}/actions/jobs/{number}/logs").text


def test_a_workflow_that_does_not_parse_looks_as_each_forge_shows_it(ground: Ground) -> None:
    """D05: Forgejo: one failed job with the commit's title; GitHub: no jobs, startup_failure; GitLab: yaml errors."""
    world = World(ground, [[ci(unparsed=("ci.yml",))]])
    sha = push(ground, "ci.yml")
    for flavour in KINDS:
        with serving(flavour, World(ground, world.scripts)) as forge, Client(flavour, forge) as client:
            client.runs(sha)
            found = client.runs(sha)
            if flavour == "gitea-1.27":
                assert found == []
                continue
            (run,) = found
            jobs = client.jobs(run)
            assert jobs == ({ground.subject(sha): "failure"} if flavour == "forgejo-16" else {})
            assert run.get("conclusion", "startup_failure") == "startup_failure" and run["status"] != "success"
            if client.lab:
                assert client.http.get(f"{client.repo}/pipelines/{run['id']}").json()["yaml_errors"]


@pytest.mark.parametrize("flavour", KINDS)
def test_a_merge_whose_answer_is_lost_has_happened(ground: Ground, flavour: str) -> None:
    """W02: Forgejo and Gitea leave the request open and say 405 ever after; the others know that it is merged."""
    world = World(ground, [[GREEN]], manners=Manners(lost_merges=1))
    with serving(flavour, world) as forge, Client(flavour, forge) as client:
        path = asked(client, ground)
        with pytest.raises(httpx.HTTPError):
            merge(client, path)
        assert ground.holds("main", ground.tip("topic"))
        state = client.http.get(path).json()["state"]
        assert state == ("open" if flavour in GITEA_LIKE else "merged" if client.lab else "closed")
        assert merge(client, path) == 405
        if flavour in GITEA_LIKE:
            assert "try again later" in client.http.post(f"{path}/merge", json={}).json()["message"]


@pytest.mark.parametrize("flavour", KINDS)
def test_two_merges_at_once_are_one_and_a_refusal(ground: Ground, flavour: str) -> None:
    """W02 D12: a merge takes its time; later the second one works."""
    world = World(ground, [[GREEN]], manners=Manners(merge_sec=0.3))
    with serving(flavour, world) as forge, Client(flavour, forge) as client:
        paths = [asked(client, ground, one, f"{one}.txt") for one in ("one", "two")]
        got: list[int] = []
        both = [threading.Thread(target=lambda path=path: got.append(merge(client, path))) for path in paths]
        for one in both:
            one.start()
        for one in both:
            one.join()
        assert sorted(got) == [200, 409 if flavour in GITEA_LIKE else 405]
        assert merge(client, paths[0]) + merge(client, paths[1]) == 200 + 405
        assert ground.holds("main", ground.tip("one")) and ground.holds("main", ground.tip("two"))


@pytest.mark.parametrize("flavour", KINDS)
def test_a_maintainer_reviews_and_a_new_push_makes_it_stale(ground: Ground, flavour: str) -> None:
    """W02: the word, the remarks with path and line, dismissal."""
    world = World(ground, [[GREEN]])
    with serving(flavour, world) as forge, Client(flavour, forge) as client:
        path = asked(client, ground)
        made = world.review(world.newest(), "changes", "not yet", at=[("b.txt", 3, "name it")])
        if client.lab:
            assert client.http.get(f"{path}/reviewers").json()[0]["state"] == "requested_changes"
            first = client.http.get(f"{path}/discussions").json()[0]["notes"][0]
            assert (first["position"]["new_path"], first["position"]["new_line"]) == ("b.txt", 3)
            return
        (row,) = client.http.get(f"{path}/reviews").json()
        assert row["state"] in ("REQUEST_CHANGES", "CHANGES_REQUESTED") and row["commit_id"] == ground.tip("topic")
        (remark,) = client.http.get(f"{path}/reviews/{made.id}/comments").json()
        assert (remark["path"], remark["position"], remark["body"]) == ("b.txt", 3, "name it")
        push(ground, "c.txt", "topic")
        made.dismissed = True
        (row,) = client.http.get(f"{path}/reviews").json()
        assert row["state"] == "DISMISSED" if client.hub else row["dismissed"] and row["stale"]


@pytest.mark.parametrize("flavour", KINDS)
def test_a_protected_branch_refuses_a_push_and_a_merge_without_approval(ground: Ground, flavour: str) -> None:
    """D12 W02: readable before; approvals of the very commit, statuses, requested changes."""
    world = World(ground, [[GREEN]])
    with serving(flavour, world) as forge, Client(flavour, forge) as client:
        path = asked(client, ground)
        world.protect("main", Protection(approvals=1, checks=("lint",), dismisses_stale=True))
        branch = f"{client.repo}/{'repository/' if client.lab else ''}branches/main"
        row = client.http.get(branch).json()
        assert row["protected"] and row.get("user_can_push", row.get("can_push", False)) is False
        assert merge(client, path) == 405
        world.review(world.newest(), "approve")
        assert merge(client, path) == 405
        given = {"state": "success", "context": "lint", "name": "lint"}
        assert client.http.post(f"{client.repo}/statuses/{ground.tip('topic')}", json=given).status_code == 201
        world.review(world.newest(), "changes", by="somebody")
        assert merge(client, path) == 405
        world.review(world.newest(), "approve", by="somebody")
        assert merge(client, path) == 200


def test_a_new_push_takes_an_approval_away_where_the_branch_wants_it(ground: Ground) -> None:
    """W02: dismissed, and not enough any more."""
    world = World(ground, [[GREEN]])
    with serving("forgejo-16", world) as forge, Client("forgejo-16", forge) as client:
        path = asked(client, ground)
        world.protect("main", Protection(push=True, approvals=1, dismisses_stale=True))
        world.review(world.newest(), "approve")
        push(ground, "c.txt", "topic")
        assert merge(client, path) == 405 and client.http.get(f"{path}/reviews").json()[0]["dismissed"]


def pushing(ground: Ground, to: str, place: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Real git pushes a new commit to main."""
    ground.git("worktree", "add", "-q", "--detach", str(place), ground.tip("main"))
    (place / "new.txt").write_text(place.name)
    mine = ("-c", "user.name=a", "-c", "user.email=a@example.org", *options)
    subprocess.run(["git", *mine, "add", "-A"], cwd=place, check=True)
    subprocess.run(["git", *mine, "commit", "-qm", "new"], cwd=place, check=True)
    words = ["git", *mine, "push", "--porcelain", to, "HEAD:refs/heads/main"]
    quiet = {"PATH": "/usr/bin:/bin", "GIT_TERMINAL_PROMPT": "0"}
    return subprocess.run(words, cwd=place, capture_output=True, text=True, check=False, env=quiet)


@pytest.mark.parametrize(("rule", "says"), [(Protection(), "Not allowed"), (Protection(push=True), "")])
def test_a_push_to_a_protected_branch_is_refused_before_it_is_received(
    ground: Ground, tmp_path: Path, rule: Protection, says: str
) -> None:
    """D12: `pre-receive hook declined`; one that may be pushed to takes it."""
    with serving("forgejo-16", World(ground, [])) as forge:
        forge.world.protect("main", rule)
        made = pushing(ground, str(ground.path), tmp_path / "place")
    assert (made.returncode == 0) == rule.push and says in made.stderr
    assert rule.push or "pre-receive hook declined" in made.stdout


def test_git_over_http_wants_the_token_and_is_gone_in_an_outage(ground: Ground, tmp_path: Path) -> None:
    """D12 D19: a revoked token makes git ask for a name; nobody listens while the host is away."""
    basic = f"http.extraHeader=Authorization: Basic {_word(TOKEN)}"
    with serving("forgejo-16", World(ground, [[GREEN]])) as forge:
        without = pushing(ground, forge.git_url, tmp_path / "one")
        assert without.returncode == 128 and "could not read Username" in without.stderr
        assert pushing(ground, forge.git_url, tmp_path / "two", "-c", basic).returncode == 0
        forge.world.sync()
        assert forge.world.own == 1
        forge.revoke()
        assert pushing(ground, forge.git_url, tmp_path / "three", "-c", basic).returncode == 128
        forge.restore()
        forge.outage(0.5)
        away = pushing(ground, forge.git_url, tmp_path / "four", "-c", basic)
        assert "Connection refused" in away.stderr or "Failed to connect" in away.stderr
        assert until(lambda: pushing(ground, forge.git_url, tmp_path / f"{time.time()}", "-c", basic).returncode == 0)


def _word(token: str) -> str:
    return base64.b64encode(f"x:{token}".encode()).decode()


def until(so: Callable[[], bool], most_sec: float = 10.0) -> bool:
    end = time.monotonic() + most_sec
    while time.monotonic() < end:
        if so():
            return True
        threading.Event().wait(0.05)
    return False


@pytest.mark.parametrize("kind", ["refused", "502"])
def test_an_outage_begins_and_is_over_by_itself(ground: Ground, kind: str) -> None:
    """D05 D12: connection refused, or 502 for each request, by the wall clock."""
    with serving("forgejo-16", World(ground, [[GREEN]])) as forge:

        def works() -> bool:
            try:
                return httpx.get(f"{forge.url}/api/v1/version", timeout=2).status_code == 200
            except httpx.HTTPError:
                return False

        assert works()
        forge.outage(0.4, kind)
        assert not works() and until(works)


@pytest.mark.parametrize("flavour", KINDS)
def test_a_request_is_brought_up_to_date_and_its_branch_goes_with_it(ground: Ground, flavour: str) -> None:
    """W02: update or rebase; deleting a branch closes a request that is open, where the forge does so."""
    with serving(flavour, World(ground, [[GREEN]])) as forge, Client(flavour, forge) as client:
        path = asked(client, ground)
        base = push(ground, "base.txt")
        words = ("rebase", client.http.put) if client.lab else ("update-branch", client.http.put)
        name, way = words if client.lab or client.hub else ("update", client.http.post)
        assert way(f"{path}/{name}").status_code in (200, 202)
        assert ground.holds("topic", base) and not forge.world.is_behind(forge.world.newest())
        under = "repository/branches" if client.lab else "git/refs/heads" if client.hub else "branches"
        assert client.http.delete(f"{client.repo}/{under}/topic").status_code == 204 and not ground.tip("topic")
        state = client.http.get(path).json()["state"]
        assert state == ("opened" if client.lab else "closed")


@pytest.mark.parametrize("flavour", GITEA_LIKE)
def test_labels_are_not_unique_and_a_request_keeps_what_it_is_given(ground: Ground, flavour: str) -> None:
    """W02: two of one name; milestone, title and text by PATCH; the branch deleted with the merge."""
    with serving(flavour, World(ground, [[GREEN]])) as forge, Client(flavour, forge) as client:
        path = asked(client, ground)
        for _ in range(2):
            assert client.http.post(f"{client.repo}/labels", json={"name": "x"}).status_code == 201
        numbers = [row["id"] for row in client.http.get(f"{client.repo}/labels").json() if row["name"] == "x"]
        assert len(set(numbers)) == 2
        stone = client.http.post(f"{client.repo}/milestones", json={"title": "v1"}).json()
        row = client.http.patch(path, json={"title": "new", "body": "text", "milestone": stone["id"]}).json()
        assert (row["title"], row["body"], row["milestone"]["title"]) == ("new", "text", "v1") and row["mergeable"]
        given = {"Do": "merge", "delete_branch_after_merge": True}
        assert client.http.post(f"{path}/merge", json=given).status_code == 200 and not ground.tip("topic")


@pytest.mark.parametrize("flavour", KINDS)
def test_remarks_can_be_rewritten_and_reviews_of_ones_own_may_only_comment(ground: Ground, flavour: str) -> None:
    """D14 W02: one remark that is kept current."""
    with serving(flavour, World(ground, [[GREEN]])) as forge, Client(flavour, forge) as client:
        path = asked(client, ground)
        number = path.rpartition("/")[2]
        notes = f"{path}/notes" if client.lab else f"{client.repo}/issues/{number}/comments"
        made = client.http.post(notes, json={"body": "one"}).json()
        one = f"{notes}/{made['id']}" if client.lab else f"{client.repo}/issues/comments/{made['id']}"
        way = client.http.put if client.lab else client.http.patch
        assert way(one, json={"body": "two"}).json()["body"] == "two"
        assert [row["body"] for row in client.http.get(notes).json()] == ["two"]
        if not client.lab:
            own: Any = {"event": "COMMENT", "body": "seen"}
            assert client.http.post(f"{path}/reviews", json=own).status_code == 200
            mine = {"event": "APPROVE" if client.hub else "APPROVED", "body": "good"}
            assert client.http.post(f"{path}/reviews", json=mine).status_code == 422


def test_each_flavour_can_still_be_made(ground: Ground) -> None:
    """D19: none lacks what another one brings."""
    for name in FLAVOURS:
        forge = LoopbackForge(name, World(ground, [[Run({"test": "ok", MIRROR: "ok"})]]))
        assert forge.git_url.endswith("/dev/app.git")
        forge.wire.server_close()
