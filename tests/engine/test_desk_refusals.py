"""The desk of a real lead: who is unknown, late, on another's business or unclear is refused, and nothing moves."""

from __future__ import annotations

import hashlib
import hmac
import json
import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from ganger.contracts.worker import KEPT, VERBS
from tests.engine.run_projects import Project, leading, task, until

pytestmark = pytest.mark.whole

PULL = 'kind = "pull"\nin_place = false'
GOOD: dict[str, dict[str, Any]] = {
    "next": {"worker": "mallory"},
    "heartbeat": {"step": "implementing", "percent": 40},
    "progress": {"step": "verifying_tier1", "percent": 60, "tiers": [{"tier": 1, "name": "syntax", "success": True}]},
    "milestone": {"name": "tests written"},
    "escalate": {"category": "ambiguous_spec", "message": "which one?"},
    "checkpoint": {"done": ["a"], "remaining": ["b"]},
    "report": {"result": {"contract_version": "2.0", "task_id": "a", "status": "DONE", "summary": "did it"}},
    "done": {},
    "brief": {"section": "task"},
    "messages": {},
}
SPOKEN = [verb for verb in GOOD if verb != "next"]


@dataclass
class Lead:
    """A lead at work with three claims: `a` is held, `b` is held by another, `c` was lost and is held anew."""

    project: Project
    address: str
    key: bytes
    tokens: dict[str, str]
    stale: str

    def ask(self, verb: str, token: str, body: object) -> tuple[int, dict[str, Any]]:
        data = json.dumps(body).encode()
        head = f"POST /v1/{verb} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n"
        head += "Content-Type: application/json\r\n"
        with socket.socket(socket.AF_UNIX) as line:
            line.connect(self.address)
            line.sendall(f"{head}Content-Length: {len(data)}\r\nConnection: close\r\n\r\n".encode() + data)
            answer = b"".join(iter(lambda: line.recv(65536), b""))
        first, _, text = answer.partition(b"\r\n\r\n")
        return int(first.split()[1]), json.loads(text)

    def join(self) -> str:
        return "j1." + hmac.new(self.key, b"join", hashlib.sha256).hexdigest()[:40]

    def events(self) -> list[str]:
        """Everything recorded but for what the watch itself says."""
        return [str(r.event) for r in self.project.events()]


@pytest.fixture(scope="module")
def lead(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lead]:
    root = tmp_path_factory.mktemp("desk")
    project = Project(root, [task(name, timeout_sec=600) for name in "abc"], agent=PULL).make()
    with leading(project) as process:
        key, place = project.folder.path / "worker.key", project.folder.path / "worker.json"
        until(lambda: place.exists() and key.exists(), beside=process)
        found = Lead(project, json.loads(place.read_text())["socket"], bytes.fromhex(key.read_text()), {}, "")
        for worker in ("ada", "bob", "cleo"):
            status, got = found.ask("next", found.join(), {"worker": worker, "wait_sec": 20})
            assert status == 200, got
            found.tokens[got["task"]["id"]] = got["token"]
        found.stale = found.tokens["c"]
        assert found.ask("checkpoint", found.stale, {"done": ["x"], "leave": True})[0] == 200
        until(lambda: project.state().tasks["c"].attempts == 1 and project.state().tasks["c"].attempt.step != "agent")
        status, got = found.ask("next", found.join(), {"worker": "dora", "wait_sec": 20})
        assert status == 200 and got["task"]["id"] == "c"
        yield found


def forged(token: str, part: int) -> str:
    """The token with one character of a part changed."""
    parts = token.split(".")
    parts[part] = parts[part][:-1] + ("0" if parts[part][-1] != "0" else "1")
    return ".".join(parts)


def of_another_run(lead: Lead) -> str:
    fence = lead.tokens["a"].split(".")[1]
    return f"w1.{fence}." + hmac.new(b"\1" * 32, f"worker:{fence}".encode(), hashlib.sha256).hexdigest()[:40]


TOKENS: dict[str, Callable[[Lead], str]] = {
    "none at all": lambda lead: "x" * 20,
    "a fence without its mark": lambda lead: lead.tokens["a"].rpartition(".")[0],
    "another fence": lambda lead: forged(lead.tokens["a"], 1),
    "another mark": lambda lead: forged(lead.tokens["a"], 2),
    "another kind": lambda lead: lead.tokens["a"].replace("w1", "j1"),
    "a forged join": lambda lead: forged(lead.join(), 1),
    "one of another run": of_another_run,
    "the fence of another task": lambda lead: ".".join(
        ["w1", lead.tokens["b"].split(".")[1], lead.tokens["a"].split(".")[2]]
    ),
}
LONG = "x" * 30_000
WRONG: list[tuple[str, object, int]] = [
    ("nothing", {}, 404),
    ("config", {}, 404),
    ("tasks", {}, 404),
    ("heartbeat", {"step": LONG}, 400),
    ("heartbeat", {"percent": 101}, 400),
    ("heartbeat", {"percent": "60"}, 400),
    ("heartbeat", {"task": "a"}, 400),
    ("progress", {"tiers": [{"tier": 0, "success": True}]}, 400),
    ("progress", {"tiers": [{"tier": 1, "success": True}] * 30}, 400),
    ("milestone", {}, 400),
    ("milestone", {"name": ""}, 400),
    ("escalate", {"category": "Ambiguous Spec", "message": "x"}, 400),
    ("escalate", {"category": "ambiguous_spec", "message": "x" * 5000}, 400),
    ("escalate", {"category": "ambiguous_spec", "message": "x", "deadline_sec": -1}, 400),
    ("checkpoint", {"done": ["x"] * 300}, 400),
    ("checkpoint", {"done": "x"}, 400),
    ("report", {}, 400),
    ("report", {"result": {}}, 400),
    ("report", {"result": {**GOOD["report"]["result"], "contract_version": "3.0"}}, 400),
    ("report", {"result": {**GOOD["report"]["result"], "task_id": "b"}}, 400),
    ("report", {"result": {**GOOD["report"]["result"], "extra": 1}}, 400),
    ("report", {"result": {**GOOD["report"]["result"], "status": "GREAT"}}, 400),
    ("done", {"why": "x"}, 400),
    ("done", {"id": "x" * 101}, 400),
    ("brief", {"section": "../../worker.key"}, 404),
    ("brief", {"section": "prompts"}, 404),
    ("brief", {"section": "b"}, 404),
    ("messages", {"since": -1}, 400),
    ("messages", {"wait_sec": 1e9}, 400),
]


def require_unmoved(lead: Lead, verb: str, token: str, body: object, status: int) -> dict[str, Any]:
    before = lead.events()
    got, answer = lead.ask(verb, token, body)
    assert (got, answer["ok"]) == (status, False), answer
    assert answer["code"] and answer["message"] and lead.events() == before
    return answer


@pytest.mark.quick
@pytest.mark.sample(1)
@pytest.mark.parametrize("kind", TOKENS)
@pytest.mark.parametrize("verb", ["next", "heartbeat", "report", "brief"])
def test_who_has_no_token_of_this_run_is_nobody(lead: Lead, kind: str, verb: str) -> None:
    """H07: 401, and nothing is recorded."""
    assert require_unmoved(lead, verb, TOKENS[kind](lead), GOOD[verb], 401)["code"] in ("WORKER_UNKNOWN", "NO_TOKEN")


@pytest.mark.parametrize("verb", SPOKEN)
def test_who_may_ask_for_tasks_may_do_nothing_else(lead: Lead, verb: str) -> None:
    """G02: the token that joins is no worker's."""
    assert require_unmoved(lead, verb, lead.join(), GOOD[verb], 403)["code"] == "NOT_ALLOWED"


def test_a_workers_token_asks_for_no_other_task(lead: Lead) -> None:
    """G02: it can do nothing but speak for its own attempt."""
    assert require_unmoved(lead, "next", lead.tokens["a"], GOOD["next"], 403)["code"] == "NOT_ALLOWED"


@pytest.mark.parametrize("verb", SPOKEN)
def test_nobody_speaks_for_another_task(lead: Lead, verb: str) -> None:
    """H07: the token decides whose word it is, whatever the request says."""
    answer = require_unmoved(lead, verb, lead.tokens["a"], {**GOOD[verb], "task_id": "b"}, 403)
    assert answer["code"] == "WRONG_TASK"


@pytest.mark.parametrize("verb", SPOKEN)
def test_an_attempt_that_is_over_says_nothing_more(lead: Lead, verb: str) -> None:
    """H07 W03: a worker that comes back changes nothing."""
    assert require_unmoved(lead, verb, lead.stale, GOOD[verb], 409)["code"] == "ATTEMPT_OVER"


@pytest.mark.parametrize(("verb", "body", "status"), WRONG)
def test_what_makes_no_sense_is_refused_with_its_place(lead: Lead, verb: str, body: object, status: int) -> None:
    """H07 T09: strict forms; a refused report can be mended and sent again."""
    require_unmoved(lead, verb, lead.tokens["a"], body, status)


@pytest.mark.parametrize("verb", sorted(KEPT - {"report", "done"}))
def test_a_request_that_comes_again_counts_once(lead: Lead, verb: str) -> None:
    """H07: the same id is acknowledged again, and recorded once."""
    body = {**GOOD[verb], "id": f"again-{verb}"}
    assert lead.ask(verb, lead.tokens["b"], body)[0] == 200
    before = lead.events()
    assert [lead.ask(verb, lead.tokens["b"], body)[0] for _ in range(3)] == [200] * 3
    assert lead.events() == before and sum(f"again-{verb}" in event for event in before) == 1


def test_a_brief_tells_of_its_own_task_alone(lead: Lead) -> None:
    """G02: no section holds a key, a token, or more of another task than how it stands."""
    sections = lead.ask("brief", lead.tokens["a"], {})[1]["sections"]
    texts = [lead.ask("brief", lead.tokens["a"], {"section": name})[1]["text"] for name in sections]
    told = "\n".join(texts)
    assert "Do it." in told and lead.key.hex() not in told
    assert not any(token in told for token in lead.tokens.values())


def test_no_token_and_no_key_is_kept_anywhere_in_the_run(lead: Lead) -> None:
    """D19 G02: tokens are made from the key, and the key is in its own file alone."""
    secrets = [lead.key.hex(), lead.join(), *lead.tokens.values()]
    for path in lead.project.folder.path.rglob("*"):
        if path.is_file() and path.name != "worker.key":
            data = path.read_bytes()
            assert not any(secret.encode() in data for secret in secrets), path
    assert (lead.project.folder.path / "worker.key").stat().st_mode & 0o077 == 0


def test_every_verb_is_tried_here() -> None:
    """H07: whoever adds a verb adds it to this table."""
    assert set(GOOD) == set(VERBS)


def test_an_answer_is_given_once(lead: Lead) -> None:
    """H07: after its report an attempt has said what it had to say; the rest changes nothing."""
    token = lead.tokens["a"]
    assert lead.ask("report", token, {**GOOD["report"], "id": "r"})[1]["accepted"] is True
    assert lead.ask("report", token, {**GOOD["report"], "id": "r"})[0] == 200
    assert lead.ask("report", token, {**GOOD["report"], "id": "s"})[0] == 409
    until(lambda: lead.project.status("a").value == "DONE")
    assert lead.ask("report", token, {**GOOD["report"], "id": "r"})[0] == 200
    require_unmoved(lead, "report", token, {**GOOD["report"], "id": "t"}, 409)
