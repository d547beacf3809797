"""Nothing reaches whoever leads but what a worker may say; a server with one rule less is found out."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ganger.endpoint import admission, connection, http1, server as serving
from ganger.endpoint.admission import TokenRate
from ganger.endpoint.server import ReportServer
from tests.reports.endpoint import JOIN, OTHER, TOKEN, Endpoint, Said, play, request
from tests.reports.report_attacks import ATTACKS, CROSSED, Attack, fault

EVERY = [
    pytest.param(attack, carrier, id=f"{attack.name} over {carrier}")
    for attack in [*ATTACKS, *CROSSED]
    for carrier in attack.carriers
]


@pytest.mark.parametrize(("attack", "carrier"), EVERY)
def test_only_what_is_meant_to_come_in_does(tmp_path: Path, attack: Attack, carrier: str) -> None:
    """H07: R14; the handler hears of nothing else, and no page could read the answer."""
    assert play(lambda endpoint: fault(endpoint, attack, carrier), tmp_path) == ""


def test_there_are_enough_of_them() -> None:
    """H07: R14 asks for 120, 60 of them hostile."""
    assert len(EVERY) >= 300 and len({case.id for case in EVERY}) == len(EVERY)


def without(rule: str) -> Callable[[pytest.MonkeyPatch], None]:
    left = tuple(one for one in admission.RULES if one.__name__ != rule)
    assert len(left) == len(admission.RULES) - 1
    return lambda patch: patch.setattr(serving, "RULES", left)


def reading_lengths_first(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(http1, "_length", lambda headers: int(headers["content-length"]))


def taking_the_last_of_two(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(http1, "_ONCE", re.compile("(?!)"))


def parsing_kindly(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(serving, "_parsed", lambda body: json.loads(body))


class _Lenient(dict[str, str]):
    def __contains__(self, target: object) -> bool:
        return super().__contains__(str(target).partition("?")[0])

    def get(self, target: str, _default: object = None) -> Any:
        return self[target.partition("?")[0]]


def tidying_paths(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(admission, "_PLACES", _Lenient(admission._PLACES))


def allowing_pages(patch: pytest.MonkeyPatch) -> None:
    as_it_was = http1.render

    def render(answer: http1.HttpAnswer, *, close: bool) -> bytes:
        return as_it_was(replace(answer, headers={"Access-Control-Allow-Origin": "*"}), close=close)

    patch.setattr(connection, "render", render)


PLANTED: dict[str, Callable[[pytest.MonkeyPatch], None]] = {
    "no look at the host": without("_is_for_us"),
    "no look at the origin": without("_is_from_no_page"),
    "no look at the method": without("_is_post"),
    "no look at the type": without("_is_json"),
    "no limit": without("_fits"),
    "no look at the token": without("_has_token"),
    "a length in spite of a coding": reading_lengths_first,
    "the last of two headers": taking_the_last_of_two,
    "lenient JSON": parsing_kindly,
    "lenient paths": tidying_paths,
    "open to pages": allowing_pages,
}


@pytest.mark.parametrize("bug", PLANTED)
def test_a_server_with_a_planted_bug_is_found_out(tmp_path: Path, bug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """H07: the same requests tell that a check is gone."""
    PLANTED[bug](monkeypatch)

    async def found(endpoint: Endpoint) -> bool:
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: None)
        for case in EVERY:
            attack, carrier = case.values
            assert isinstance(attack, Attack) and isinstance(carrier, str)
            endpoint.server._pace = TokenRate(burst=10_000)
            if await fault(endpoint, attack, carrier):
                return True
        return False

    assert play(found, tmp_path, made=quick), f"{bug} goes unnoticed"


def quick(place: Path) -> ReportServer:
    made = ReportServer(place, peers=frozenset())
    made._read_within_sec = 1.0
    return made


@pytest.mark.parametrize("carrier", ["socket", "http"])
@pytest.mark.parametrize("token", [TOKEN, OTHER, JOIN])
def test_a_token_is_handed_on_as_it_came_and_speaks_for_its_own_task(tmp_path: Path, carrier: str, token: str) -> None:
    """H07: the endpoint mixes up nobody, also on one connection."""

    async def scene(endpoint: Endpoint) -> list[Said | None]:
        connected = await endpoint.wire(carrier)
        host = endpoint.host if carrier == "http" else "ganger"
        await connected.send(
            request(host, token=OTHER) + request(host, token=token) + request(host, token="w1.no.nobody")
        )
        answers = [await connected.answer() for _ in range(3)]
        assert [one.token for one in endpoint.ear.all_asked] == [OTHER, token, "w1.no.nobody"]
        return answers

    first, second, third = play(scene, tmp_path)
    assert first is not None and second is not None and third is not None
    assert first.json["task"] == "two" and third.status == 401
    assert second.status == (403 if token == JOIN else 200) and second.json.get("task") == {
        TOKEN: "one",
        OTHER: "two",
    }.get(token)
