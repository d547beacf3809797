"""People and requests through the real adapters: whose word counts, one label, one comment, texts that stay theirs."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from ganger.core.delivery.branch_rules import BranchRules
from ganger.core.delivery.forge_reviews import Opinion, Remark, said_of
from ganger.ports.forge import Forge, NewRequest, Request
from tests.forges.forge_projects import ground_in, with_forge
from tests.forges.loopback.ground import Ground
from tests.forges.loopback.manners import Protection
from tests.forges.loopback.script import GREEN
from tests.forges.loopback.server import LoopbackForge, serving
from tests.forges.loopback.world import Asked, World

KINDS = ("forgejo-16", "gitea-1.27", "github", "gitlab")
BRANCH = "ganger/r1/a"


@pytest.fixture
def ground(tmp_path: Path) -> Ground:
    made = ground_in(tmp_path)
    made.git("branch", BRANCH, made.tip("main"))
    made.commit(BRANCH, "a.txt", "a")
    return made


def asked_in(world: World) -> tuple[Asked, Request]:
    made = world.open_request("Add a", "text", BRANCH, "main", draft=False)
    return made, Request(str(made.number), "u", BRANCH, "main", head=world.head_of(made))


def opinion(flavour: str, server: LoopbackForge, request: Request) -> Opinion:
    return said_of(with_forge(flavour, server, lambda forge: forge.reviews(request)), request.head).opinion


@pytest.mark.parametrize("flavour", KINDS)
def test_the_word_of_the_token_s_own_user_counts_for_nothing(ground: Ground, flavour: str) -> None:
    """W08: who pushes does not approve."""
    world = World(ground, [[GREEN]])
    with serving(flavour, world) as server:
        asked, request = asked_in(world)
        world.review(asked, "approve", "fine", by=world.robot)
        assert opinion(flavour, server, request) is Opinion.NONE
        world.review(asked, "approve", "fine")
        assert opinion(flavour, server, request) is Opinion.APPROVED


def test_who_may_only_read_a_github_repository_approves_nothing(ground: Ground) -> None:
    """W08: their word is shown there and asked for by nobody."""
    world = World(ground, [[GREEN]])
    with serving("github", world) as server:
        asked, request = asked_in(world)
        world.review(asked, "approve", "fine", by="passer-by")
        assert opinion("github", server, request) is Opinion.NONE


@pytest.mark.parametrize("flavour", KINDS)
def test_remarks_on_lines_come_with_the_review_that_asks_for_changes(ground: Ground, flavour: str) -> None:
    """W08 D06: text, path and line."""
    world = World(ground, [[GREEN]])
    with serving(flavour, world) as server:
        asked, request = asked_in(world)
        world.review(asked, "changes", "not yet", at=[("a.txt", 3, "say hello")])
        (found,) = with_forge(flavour, server, lambda forge: forge.reviews(request))
    assert (found.by, found.text, found.remarks) == ("maintainer", "not yet", (Remark("a.txt", 3, "say hello"),))
    assert found.verdict == "rework" and found.stands and found.url


@pytest.mark.parametrize("flavour", KINDS)
def test_a_comment_of_somebody_else_with_the_same_mark_is_left_alone(ground: Ground, flavour: str) -> None:
    """W02: it is written once, rewritten after that, and never over another person's words."""
    world = World(ground, [[GREEN]])
    with serving(flavour, world) as server:
        asked, request = asked_in(world)
        world.comment(asked, "copied <!-- m -->", by="maintainer")

        async def twice(forge: Forge) -> list[str]:
            return [await forge.remark(request, "<!-- m -->", f"{words} <!-- m -->") for words in ("one", "two")]

        first, second = with_forge(flavour, server, twice)
    assert first == second != "" and [one.body for one in asked.said] == ["copied <!-- m -->", "two <!-- m -->"]


@pytest.mark.parametrize("flavour", ["forgejo-16", "gitea-1.27"])
def test_two_requests_at_one_moment_make_a_label_once(ground: Ground, flavour: str) -> None:
    """W02: names are no keys there; of two programs that made one each the older one stays."""
    world = World(ground, [[GREEN]])
    for name in ("b", "c"):
        ground.git("branch", name, BRANCH)
    news = [NewRequest(branch, "main", "t", "b", labels=("fresh",)) for branch in (BRANCH, "b", "c")]

    async def two(forge: Forge) -> None:
        await asyncio.gather(*map(forge.open_request, news[:2]))

    with serving(flavour, world) as server:
        with_forge(flavour, server, two)
        assert [one.name for one in world.labels].count("fresh") == 1
        with_forge(flavour, server, lambda forge: forge.open_request(news[2]))
    assert [one.name for one in world.labels].count("fresh") == 1
    assert [asked.labels for asked in world.asked] == [["fresh"]] * 3


def test_a_label_that_another_program_made_at_the_same_moment_is_used(ground: Ground) -> None:
    """W02: ours goes again, before anything carries it."""
    world = World(ground, [[GREEN]])
    made_by_us = world.label

    def both(name: str):  # type: ignore[no-untyped-def]
        made_by_us(name)
        return made_by_us(name)

    world.label = both  # type: ignore[method-assign]
    with serving("forgejo-16", world) as server:
        new = NewRequest(BRANCH, "main", "t", "b", labels=("fresh",))
        with_forge("forgejo-16", server, lambda forge: forge.open_request(new))
    assert [one.name for one in world.labels].count("fresh") == 1 and world.asked[0].labels == ["fresh"]


@pytest.mark.parametrize("flavour", KINDS)
def test_a_request_is_brought_up_to_what_is_wanted_and_stays_a_draft(ground: Ground, flavour: str) -> None:
    """W02: title, text, labels and milestone; a second time nothing is written."""
    world = World(ground, [[GREEN]])
    number = world.milestone("1.0").id
    with serving(flavour, world) as server:
        new = NewRequest(BRANCH, "main", "old", "old text", draft=True)
        better = NewRequest(BRANCH, "main", "new", "new text", labels=("ganger",), milestone="1.0")

        async def change(forge: Forge) -> Request | None:
            request = await forge.open_request(new)
            await forge.update_request(request, better)
            await forge.update_request(request, better)
            return await forge.find_request(BRANCH, "main")

        found = with_forge(flavour, server, change)
        written = sum(line.method in ("PATCH", "PUT") for line in server.log.lines)
    (asked,) = world.asked
    assert found is not None and (found.title, found.body, found.draft) == ("new", "new text", True)
    assert (asked.labels, asked.milestone) == (["ganger"], number) and written == (2 if flavour == "github" else 1)


@pytest.mark.parametrize("flavour", KINDS)
def test_a_branch_s_rules_are_read_as_far_as_the_token_may(ground: Ground, flavour: str) -> None:
    """D19: pushes, approvals and checks."""
    world = World(ground, [[GREEN]])
    with serving(flavour, world) as server:
        open_one = with_forge(flavour, server, lambda forge: forge.branch_rules("main"))
        world.protect("main", Protection(push=False, approvals=2, checks=("CI / test (push)",)))
        shut = with_forge(flavour, server, lambda forge: forge.branch_rules("main"))
    assert (open_one.protected, open_one.may_push, open_one.approvals) == (False, True, 0)
    assert (shut.protected, shut.may_push, shut.approvals) == (True, False, 2)
    assert shut.checks == (() if flavour == "gitlab" else ("CI / test (push)",))


def test_a_branch_that_is_not_there_yet_asks_for_nothing(ground: Ground) -> None:
    """D19: the first push makes it."""
    with serving("forgejo-16", World(ground, [[GREEN]])) as server:
        assert with_forge("forgejo-16", server, lambda forge: forge.branch_rules("new")) == BranchRules()
