"""Change requests of Forgejo and Gitea: opened once, found again, ready, merged at one commit only."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import pytest

from ganger.errors import ForgeDenied, ForgeError, ForgeUnreachable
from ganger.ports.forge import Forge, MergeAnswer, NewRequest, Request
from tests.forges.answering import Asked, Host, Reply, Table, fixture, talk_to

CREATED: dict[str, Any] = json.loads(fixture("pr-created.json"))
BRANCH, INTO, HEAD = CREATED["head"]["ref"], CREATED["base"]["ref"], CREATED["head"]["sha"]
NEW = NewRequest(BRANCH, INTO, "Add a thing", "Verified.", draft=True)
MERGED = "d" * 40
MERGE_ROW = CREATED | {"merged": True, "state": "closed", "merge_commit_sha": MERGED}
KNOWN = Request("1", "u", BRANCH, INTO, head=HEAD)
talk = partial(talk_to, "forgejo")


def listing(*rows: object) -> Table:
    """Open and closed ones in the lists they belong to."""

    def answer(asked: Asked) -> Reply:
        fitting = [row for row in rows if isinstance(row, dict) and row["state"] == asked.query["state"]]
        return Reply(200, fitting if asked.query["page"] == "1" else [])

    return {"GET R/pulls": answer}


def test_a_draft_is_opened_by_its_title() -> None:
    """W02: WIP until CI is green."""

    async def speak(forge: Forge, host: Host) -> None:
        request = await forge.open_request(NEW)
        assert (request.number, request.branch, request.into, request.head) == ("1", BRANCH, INTO, HEAD)
        body = host.asked[-1].json()
        assert body == {"head": BRANCH, "base": INTO, "title": "WIP: Add a thing", "body": "Verified."}

    talk({"POST R/pulls": Reply(201, CREATED)}, speak)


@pytest.mark.parametrize("status", [409, 422])
def test_one_that_is_there_is_found_instead(status: int) -> None:
    """W02, D05: whoever opens it again after a crash gets the same one."""
    table = listing(CREATED) | {"POST R/pulls": Reply(status, {"message": "pull request already exists"})}

    async def speak(forge: Forge, _: Host) -> None:
        assert (await forge.open_request(NEW)).number == "1"

    talk(table, speak)


def test_one_that_can_not_be_opened_says_why() -> None:
    """W02: refused, and there is none."""
    table = listing() | {"POST R/pulls": Reply(422, {"message": "there are no changes"})}

    async def speak(forge: Forge, _: Host) -> None:
        with pytest.raises(ForgeError, match="there are no changes"):
            await forge.open_request(NEW)

    talk(table, speak)


def test_the_newest_open_or_merged_one_is_found() -> None:
    """W02: not a closed one, not another branch's, not that of a fork."""
    fork = CREATED | {"number": 9, "head": CREATED["head"] | {"repo": {"full_name": "other/app"}}}
    closed = CREATED | {"number": 8, "state": "closed"}
    other = CREATED | {"number": 7, "head": CREATED["head"] | {"ref": "elsewhere"}}
    rows = [fork, closed, other, MERGE_ROW | {"number": 3}, MERGE_ROW | {"number": 2}]

    async def speak(forge: Forge, _: Host) -> None:
        found = await forge.find_request(BRANCH, INTO)
        assert found is not None and (found.number, found.state, found.merged) == ("3", "merged", MERGED)
        assert await forge.find_request("nothing", INTO) is None

    talk(listing(*rows), speak)


@pytest.mark.parametrize(
    ("title", "plain"), [("WIP: A", "A"), ("wip:A", "A"), ("[WIP] A", "A"), ("A", ""), ("WIP: ", "")]
)
def test_ready_takes_the_draft_from_the_title(title: str, plain: str) -> None:
    """W02: nothing is written where nothing needs to be."""
    table: Table = {"GET R/pulls/1": Reply(200, CREATED | {"title": title}), "PATCH R/pulls/1": Reply(201, CREATED)}

    async def speak(forge: Forge, host: Host) -> None:
        await forge.ready(KNOWN)
        written = [asked.json() for asked in host.asked if asked.method == "PATCH"]
        assert written == ([{"title": plain}] if plain else [])

    talk(table, speak)


def test_labels_are_used_by_number_and_made_where_missing() -> None:
    """W02: one the token may not make is left out."""

    def make(asked: Asked) -> Reply:
        return Reply(403, {}) if b"forbidden" in asked.body else Reply(201, {"id": 12, "name": "new"})

    table: Table = {
        "GET R/labels": Reply(200, [{"id": 5, "name": "ci"}]),
        "POST R/labels": make,
        "POST R/pulls": Reply(201, CREATED),
    }

    async def speak(forge: Forge, host: Host) -> None:
        await forge.open_request(NewRequest(BRANCH, INTO, "t", "b", labels=("ci", "new", "forbidden")))
        body = host.asked[-1].json()
        assert isinstance(body, dict) and body["labels"] == [5, 12]

    talk(table, speak)


def test_a_comment_is_sent_once() -> None:
    """W02: an answer that was lost is not asked for by saying it again."""
    table: Table = {
        "GET /user": Reply(200, {"login": "robot"}),
        "GET R/issues/1/comments": Reply(200, []),
        "POST R/issues/1/comments": Reply(drop=True),
    }

    async def speak(forge: Forge, host: Host) -> None:
        with pytest.raises(ForgeUnreachable):
            await forge.remark(KNOWN, "<1>", "green <1>")
        assert [asked.json() for asked in host.asked if asked.method == "POST"] == [{"body": "green <1>"}]

    talk(table, speak)


def test_exactly_one_commit_is_merged() -> None:
    """D02: the forge is told which."""
    table: Table = {"POST R/pulls/1/merge": Reply(200), "GET R/pulls/1": Reply(200, MERGE_ROW)}

    async def speak(forge: Forge, host: Host) -> None:
        assert await forge.merge(KNOWN, HEAD, "squash") == MergeAnswer(MERGED)
        assert host.asked[0].json() == {"Do": "squash", "head_commit_id": HEAD}

    talk(table, speak)


@pytest.mark.parametrize("status", [403, 405, 409, 423])
def test_a_refused_merge_is_no_merge(status: int) -> None:
    """D02 D12: the forge's own words are kept; while another merge is under way it may say otherwise later."""
    table: Table = {"POST R/pulls/1/merge": Reply(status, {"message": "no"}), "GET R/pulls/1": Reply(200, CREATED)}

    async def speak(forge: Forge, _: Host) -> None:
        assert await forge.merge(KNOWN, HEAD) == MergeAnswer(why="no", busy=status == 409)
        assert await forge.merge(KNOWN, "e" * 40) == MergeAnswer(why="no")

    talk(table, speak)


def test_one_that_was_merged_before_is_merged_and_one_of_another_head_is_not() -> None:
    """D02: after a crash the same question has the same answer."""
    table: Table = {"POST R/pulls/1/merge": Reply(405, {}), "GET R/pulls/1": Reply(200, MERGE_ROW)}

    async def speak(forge: Forge, _: Host) -> None:
        assert await forge.merge(KNOWN, HEAD) == MergeAnswer(MERGED)
        assert (await forge.merge(KNOWN, "e" * 40)).commit == ""

    talk(table, speak)


def test_a_forge_that_has_not_made_up_its_mind_is_asked_again_later() -> None:
    """D05: neither merged nor refused."""
    said = Reply(405, {"message": "Please try again later"})

    async def speak(forge: Forge, _: Host) -> None:
        assert await forge.merge(KNOWN, HEAD) == MergeAnswer(why="Please try again later", busy=True)

    talk({"POST R/pulls/1/merge": said, "GET R/pulls/1": Reply(200, CREATED)}, speak)


def test_a_token_that_may_not_open_is_denied() -> None:
    """D12: with what it lacks."""

    async def speak(forge: Forge, _: Host) -> None:
        with pytest.raises(ForgeDenied, match="POST R/pulls"):
            await forge.open_request(NEW)

    talk({"POST R/pulls": Reply(403, {"message": "token does not have write:repository"})}, speak)
