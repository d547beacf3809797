"""What a worker says arrives once, in order, and is answered; what is being recorded outlives its sender."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from ganger.contracts.worker import VERBS
from ganger.errors import StoreError
from ganger.ports.endpoint import Reply, WorkerCall
from tests.reports.endpoint import TOKEN, Ear, Endpoint, Said, play, request, until

CARRIERS = ["socket", "http"]


def status_of(said: Said | None) -> int:
    return 0 if said is None else said.status


@pytest.mark.parametrize("carrier", CARRIERS)
@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_reaches_the_handler_with_its_token_and_its_body(tmp_path: Path, verb: str, carrier: str) -> None:
    """G02 H07: one protocol, whatever carries it."""
    body = {"id": "a-1", "note": "ünïcode \N{SNOWMAN}", "n": [1, 2.5, None, True]}
    ear = Ear()
    said = play(lambda endpoint: endpoint.post(verb, body, carrier), tmp_path, ear)
    assert said is not None and said.status == 200 and said.json["ok"] is True
    assert ear.asked == [WorkerCall(verb, TOKEN, body, carrier)]


@pytest.mark.parametrize("status", [200, 400, 401, 403, 404, 409, 413, 429, 503])
def test_a_reply_goes_out_as_it_was_given(tmp_path: Path, status: int) -> None:
    """H07: with `ok` where the handler left it out; who shall come again is told when."""
    ear = Ear(reply=Reply(status, {"code": "X", "text": "ü"}))
    said = play(lambda endpoint: endpoint.post("report", {"result": {}}), tmp_path, ear)
    assert said is not None and said.status == status
    assert said.json == {"ok": status == 200, "code": "X", "text": "ü"}
    assert ("retry-after" in said.headers) == (status in (429, 503))
    assert said.headers["cache-control"] == "no-store" and said.headers["content-type"] == "application/json"


@pytest.mark.parametrize("carrier", CARRIERS)
def test_pipelined_requests_are_answered_in_order(tmp_path: Path, carrier: str) -> None:
    """H07: 90 at once on one connection, also after the sender has closed its side."""

    async def scene(endpoint: Endpoint) -> list[int]:
        wire = await endpoint.wire(carrier)
        host = endpoint.host if carrier == "http" else "ganger"
        await wire.send(b"".join(request(host, body={"id": str(n)}) for n in range(90)))
        wire.writer.write_eof()
        answers = [status_of(await wire.answer()) for _ in range(90)]
        assert await wire.ended()
        assert [json.loads(json.dumps(one.body))["id"] for one in endpoint.ear.asked] == [str(n) for n in range(90)]
        return answers

    assert play(scene, tmp_path) == [200] * 90


@pytest.mark.parametrize("size", [1, 3, 1000])
def test_a_request_may_come_in_small_pieces(tmp_path: Path, size: int) -> None:
    """H07: how the system cuts a stream means nothing."""

    async def scene(endpoint: Endpoint) -> list[int]:
        wire = await endpoint.wire()
        data = request("ganger", "/v1/report", {"result": {"summary": "x" * 300}}) * 2
        for start in range(0, len(data), size):
            await wire.send(data[start : start + size])
        return [status_of(await wire.answer()) for _ in range(2)]

    assert play(scene, tmp_path) == [200, 200]


def test_a_sender_that_asks_first_is_told_to_go_on(tmp_path: Path) -> None:
    """H07: `Expect: 100-continue`, as some clients send it before a large report."""

    async def scene(endpoint: Endpoint) -> tuple[int, int]:
        wire = await endpoint.wire()
        data = request("ganger", "/v1/report", {"result": {}}, more={"expect": "100-continue"})
        head, end, body = data.partition(b"\r\n\r\n")
        await wire.send(head + end)
        first = status_of(await wire.answer())
        await wire.send(body)
        return first, status_of(await wire.answer())

    assert play(scene, tmp_path) == (100, 200)


@pytest.mark.parametrize("problem", [RuntimeError("secret path /root/x"), StoreError("disk"), KeyError("k")])
def test_a_handler_that_fails_says_only_that_nothing_was_taken(tmp_path: Path, problem: Exception) -> None:
    """H07: 503, so that the worker says it again; what went wrong stays inside, and is told there."""
    told: list[Mapping[str, Any]] = []

    async def scene(endpoint: Endpoint) -> Said | None:
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: told.append(context))
        return await endpoint.post("report", {"result": {}})

    said = play(scene, tmp_path, Ear(fails=problem))
    assert said is not None and said.status == 503 and said.json["code"] == "LEAD_BUSY"
    assert b"secret" not in said.body and b"disk" not in said.body
    assert len(told) == (0 if isinstance(problem, StoreError) else 1)


def test_a_reply_that_is_no_json_is_a_fault_of_the_handler(tmp_path: Path) -> None:
    """H07: the worker is told to come again, and the connection goes on."""

    async def scene(endpoint: Endpoint) -> list[int]:
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: None)
        wire = await endpoint.wire()
        await wire.send(request("ganger") * 2)
        return [status_of(await wire.answer()) for _ in range(2)]

    assert play(scene, tmp_path, Ear(reply=Reply(200, {"odd": object()}))) == [503, 503]


@pytest.mark.parametrize(("verb", "ends"), [("messages", "cancelled"), ("next", "cancelled"), ("report", "finished")])
def test_only_a_wait_ends_with_the_one_who_waits(tmp_path: Path, verb: str, ends: str) -> None:
    """H07: whoever goes away takes back its waiting, never what is being recorded."""
    ear = Ear(holds=frozenset({verb}))

    async def scene(endpoint: Endpoint) -> list[str]:
        wire = await endpoint.wire()
        await wire.send(request("ganger", f"/v1/{verb}"))
        await until(lambda: bool(ear.asked))
        wire.close()
        assert status_of(await endpoint.post("heartbeat", {})) == 200
        if ends == "finished":
            ear.gate.set()
        await until(lambda: verb in ear.cancelled + ear.finished)
        return [name for name in ("cancelled", "finished") if verb in getattr(ear, name)]

    assert play(scene, tmp_path, ear) == [ends]


@pytest.mark.parametrize(("verb", "status"), [("messages", 503), ("next", 503), ("report", 200)])
def test_a_lead_that_leaves_answers_everybody(tmp_path: Path, verb: str, status: int) -> None:
    """H07: who waits shall come again; what is being recorded is recorded and acknowledged first."""
    ear = Ear(holds=frozenset({verb}))

    async def scene(endpoint: Endpoint) -> int:
        wire = await endpoint.wire()
        await wire.send(request("ganger", f"/v1/{verb}"))
        await until(lambda: bool(ear.asked))
        closing = asyncio.ensure_future(endpoint.server.close())
        await until(lambda: not endpoint.server.socket.exists())
        if status == 200:
            ear.gate.set()
        said = await wire.answer()
        await closing
        return status_of(said)

    assert play(scene, tmp_path, ear) == status


@pytest.mark.parametrize("carrier", CARRIERS)
def test_a_token_that_asks_too_often_is_slowed_down_and_nobody_else(tmp_path: Path, carrier: str) -> None:
    """H07: a hundred at once, fifty a second."""

    async def scene(endpoint: Endpoint) -> tuple[list[int], int]:
        wire = await endpoint.wire(carrier)
        host = endpoint.host if carrier == "http" else "ganger"
        await wire.send(request(host) * 300)
        said = [await wire.answer() for _ in range(300)]
        late = next(one for one in said if one is not None and one.status == 429)
        assert late.json["code"] == "TOO_OFTEN" and late.headers["retry-after"] == "1"
        other = await endpoint.post("heartbeat", {}, token="w1.fence-2." + "b" * 40)
        return [status_of(one) for one in said], status_of(other)

    statuses, other = play(scene, tmp_path)
    assert statuses[:100] == [200] * 100 and set(statuses) == {200, 429} and other == 200
    assert statuses.count(200) < 200
