"""Nobody who is slow, greedy or many keeps a worker's report from getting through."""

from __future__ import annotations

import asyncio
import resource
import socket
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from ganger.endpoint import address, capacity as halls
from ganger.endpoint.admission import TokenRate
from ganger.endpoint.capacity import Hall
from ganger.endpoint.server import ReportServer
from tests.reports.endpoint import JOIN, OTHER, Ear, Endpoint, Wire, play, request, until

HEAD, _, BODY = request("ganger", "/v1/report", {"result": {"summary": "x" * 1000}}).partition(b"\r\n\r\n")
SLOW = {
    "says nothing": b"",
    "begins a line": b"POST /v1/rep",
    "begins a head": HEAD[:-20],
    "begins a body": HEAD + b"\r\n\r\n" + BODY[:500],
}


def with_hall(**limits: int) -> Callable[[Path], ReportServer]:
    def made(place: Path) -> ReportServer:
        server = ReportServer(place, peers=frozenset())
        server._hall = Hall(**limits)
        server._pace = TokenRate(burst=100_000)
        return server

    return made


def hurried(place: Path) -> ReportServer:
    server = with_hall()(place)
    server._read_within_sec = 0.3
    return server


async def crowd(endpoint: Endpoint, count: int, carrier: str, sent: bytes) -> list[Wire]:
    wires = [await endpoint.wire(carrier) for _ in range(count)]
    for wire in wires:
        await wire.send(sent)
    return wires


@pytest.mark.parametrize("carrier", ["socket", "http"])
@pytest.mark.parametrize("slow", SLOW)
def test_200_slow_connections_do_not_stop_reports(tmp_path: Path, slow: str, carrier: str) -> None:
    """H07: R14; they wait, and a report is acknowledged at once."""

    async def scene(endpoint: Endpoint) -> float:
        await crowd(endpoint, 200, carrier, SLOW[slow].replace(b"Host: ganger", f"Host: {endpoint.host}".encode()))
        began = time.monotonic()
        said = await endpoint.post("report", {"result": {}}, carrier)
        assert said is not None and said.status == 200
        assert len(endpoint.server._hall.guests) >= 200
        return time.monotonic() - began

    assert play(scene, tmp_path) < 2.0


@pytest.mark.parametrize("slow", ["begins a line", "begins a head", "begins a body"])
def test_who_is_too_slow_is_sent_away(tmp_path: Path, slow: str) -> None:
    """H07: also one who sends a byte now and then."""

    async def scene(endpoint: Endpoint) -> tuple[int, bytes]:
        wire = await endpoint.wire()
        await wire.send(SLOW[slow])
        answering = asyncio.ensure_future(wire.answer())
        while not answering.done():
            await wire.send(b"x")
            await asyncio.wait({answering}, timeout=0.05)
        said = answering.result()
        assert said is not None and endpoint.ear.all_asked == []
        return said.status, said.body

    status, body = play(scene, tmp_path, made=hurried)
    assert status == 408 and b"TOO_SLOW" in body


def test_the_longest_idle_makes_room_for_the_newest(tmp_path: Path) -> None:
    """H07: with every place taken, whoever has been idle longest goes; one who is being served stays."""
    ear = Ear(holds=frozenset({"messages"}))

    async def scene(endpoint: Endpoint) -> None:
        served = await endpoint.wire()
        await served.send(request("ganger", "/v1/messages"))
        await until(lambda: bool(ear.asked))
        idle = await crowd(endpoint, 19, "socket", b"POST")
        await until(lambda: len(endpoint.server._hall.guests) == 20)
        for _ in range(3):
            said = await endpoint.post("heartbeat", {})
            assert said is not None and said.status == 200
        assert await idle[0].ended() and len(endpoint.server._hall.guests) <= 20
        ear.gate.set()
        answered = await served.answer()
        assert answered is not None and answered.status == 200

    play(scene, tmp_path, ear, with_hall(most_lines=20))


async def _pushed_out(endpoint: Endpoint) -> bool:
    """Whether a report is lost that came with 300 connections behind it, all of them in one moment."""
    path = str(endpoint.server.socket)
    sent = socket.socket(socket.AF_UNIX)
    sent.connect(path)
    sent.sendall(request("ganger", "/v1/report", {"result": {}}))
    behind = [socket.socket(socket.AF_UNIX) for _ in range(300)]
    for one in behind:
        one.connect(path)
    sent.setblocking(False)
    wire = Wire(*await asyncio.open_unix_connection(sock=sent))
    said = await wire.answer()
    wire.close()
    for one in behind:
        one.close()
    return said is None or said.status != 200


@pytest.mark.parametrize(("at_once", "lost"), [(address.AT_ONCE, False), (512, True)], ids=["ours", "planted bug"])
def test_a_rush_of_connections_pushes_no_report_out(
    tmp_path: Path, at_once: int, lost: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """H07: what was sent is read before those who came later take its place; letting all in at once is found out."""
    monkeypatch.setattr(address, "AT_ONCE", at_once)
    assert play(_pushed_out, tmp_path, made=with_hall(most_lines=250)) is lost


def test_when_everybody_is_served_the_next_is_told_to_come_again(tmp_path: Path) -> None:
    """H07: nobody who is being served is sent away for another."""
    ear = Ear(holds=frozenset({"brief"}))

    async def scene(endpoint: Endpoint) -> None:
        wires = await crowd(endpoint, 5, "socket", request("ganger", "/v1/brief"))
        await until(lambda: len(ear.asked) == 5)
        said = await (await endpoint.wire()).answer()
        assert said is not None and said.status == 503 and said.json["code"] == "LEAD_BUSY"
        ear.gate.set()
        assert [said.status for wire in wires if (said := await wire.answer())] == [200] * 5

    play(scene, tmp_path, ear, with_hall(most_lines=5))


WAITS = {"wait_sec": 60}
ASKS = {**WAITS, "worker": "me"}


def test_who_only_waits_takes_nobody_s_place(tmp_path: Path) -> None:
    """H07: sessions that wait for a task are many, and every report gets through."""
    ear = Ear(holds=frozenset({"next"}))

    async def scene(endpoint: Endpoint) -> None:
        wires: list[Wire] = []
        while len(wires) < 60:
            wires.extend(await crowd(endpoint, 5, "socket", request("ganger", "/v1/next", ASKS, token=JOIN)))
            await until(lambda: len(ear.asked) == len(wires))
        said = await endpoint.post("report", {"result": {}})
        assert said is not None and said.status == 200
        ear.gate.set()
        assert [said.status for wire in wires if (said := await wire.answer())] == [200] * 60

    play(scene, tmp_path, ear, with_hall(most_lines=10))


@pytest.mark.parametrize("most_lines", [40, 512])
def test_one_worker_waits_a_few_times_at_once(tmp_path: Path, most_lines: int) -> None:
    """H07: the rest shall come again; others wait and beat as ever."""
    ear = Ear(holds=frozenset({"messages"}))

    async def scene(endpoint: Endpoint) -> None:
        wires = await crowd(endpoint, 30, "socket", request("ganger", "/v1/messages", WAITS))
        refused = [said for wire in wires[8:] if (said := await wire.answer()) is not None]
        assert [said.json["code"] for said in refused] == ["TOO_OFTEN"] * 22
        assert all("retry-after" in said.headers for said in refused)
        said = await endpoint.post("heartbeat", {}, token=OTHER)
        assert said is not None and said.status == 200
        other = await endpoint.wire()
        await other.send(request("ganger", "/v1/messages", WAITS, token=OTHER))
        await until(lambda: len(ear.asked) == 10)

    play(scene, tmp_path, ear, with_hall(most_lines=most_lines))


def test_as_many_as_may_come_can_be_held_open(tmp_path: Path) -> None:
    """H07: where a process may open few files at first, places are made before anybody comes."""
    few, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, most))
    try:

        async def scene(_endpoint: Endpoint) -> int:
            return resource.getrlimit(resource.RLIMIT_NOFILE)[0]

        assert play(scene, tmp_path) >= min(most, 4096)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (few, most))


def test_one_token_is_answered_a_bounded_number_of_times_at_once(tmp_path: Path) -> None:
    """H07: whatever takes the lead long, others still come in."""
    ear = Ear(holds=frozenset({"brief"}))

    async def scene(endpoint: Endpoint) -> None:
        wires = await crowd(endpoint, 70, "socket", request("ganger", "/v1/brief"))
        assert [said.status for wire in wires[64:] if (said := await wire.answer())] == [429] * 6
        said = await endpoint.post("heartbeat", {}, token=OTHER)
        assert said is not None and said.status == 200
        ear.gate.set()
        assert [said.status for wire in wires[:64] if (said := await wire.answer())] == [200] * 64
        await until(lambda: not endpoint.server._hall._served and not endpoint.server._hall._waiting)

    play(scene, tmp_path, ear, with_hall())


@pytest.mark.parametrize(("token", "heard"), [(OTHER, 1), ("w1.nobody." + "f" * 40, 0)])
def test_a_large_body_is_parsed_for_somebody_known_alone(tmp_path: Path, token: str, heard: int) -> None:
    """H07: and counts for more than one request, so that few of them come at once."""
    body = {"result": {"summary": "x" * (7 << 20)}}

    async def scene(endpoint: Endpoint) -> None:
        said = await endpoint.post("report", body, token=token)
        assert said is not None and said.status == (200 if heard else 401)
        assert sum(one.verb == "report" for one in endpoint.ear.all_asked) == heard
        said = await endpoint.post("heartbeat", {}, token=token)
        assert said is not None and said.status == 429
        said = await endpoint.post("heartbeat", {})
        assert said is not None and said.status == 200

    play(scene, tmp_path)


def test_what_is_being_sent_takes_bounded_memory_and_small_requests_go_on(tmp_path: Path) -> None:
    """H07: many large bodies at once: some shall come again, none piles up, a heartbeat passes."""
    limit, size = 8 << 20, 4 << 20
    highest = 0

    async def scene(endpoint: Endpoint) -> list[int]:
        nonlocal highest
        endpoint.server._read_within_sec = 2.0
        whole = request("ganger", "/v1/report", raw_body=b" " * size)
        wires = [await endpoint.wire() for _ in range(8)]
        sending = [asyncio.ensure_future(wire.send(whole[:-1])) for wire in wires]
        while not all(one.done() for one in sending):
            highest = max(highest, endpoint.server._hall.held)
            said = await endpoint.post("heartbeat", {}, token=OTHER)
            assert said is not None and said.status == 200
        return [said.status for wire in wires if (said := await wire.answer())]

    answered = play(scene, tmp_path, made=with_hall(most_held=limit))
    assert set(answered) == {408, 503} and limit / 2 < highest <= limit + 8 * halls.SCRATCH


def test_who_never_reads_its_answers_is_not_answered_for_ever(tmp_path: Path) -> None:
    """H07: answers that nobody takes are bounded, and then the connection ends."""

    async def scene(endpoint: Endpoint) -> int:
        wire = await endpoint.wire()
        wire.writer.transport.pause_reading()  # type: ignore[attr-defined]
        sending = asyncio.ensure_future(wire.send(request("ganger") * 20_000))
        await until(lambda: not endpoint.server._hall.guests)
        sending.cancel()
        said = await endpoint.post("heartbeat", {}, token=OTHER)
        assert said is not None and said.status == 200
        return len(endpoint.ear.asked)

    assert play(scene, tmp_path, made=hurried) < 20_000


def test_a_thousand_short_connections_leave_nothing_behind(tmp_path: Path) -> None:
    """H07: neither places nor bytes are kept of who has gone."""

    async def scene(endpoint: Endpoint) -> bool:
        hall = endpoint.server._hall
        for _ in range(20):
            for wire in await crowd(endpoint, 50, "socket", SLOW["begins a body"]):
                wire.close()
        await until(lambda: not hall.guests and not hall.held)
        return not endpoint.server._under_way

    assert play(scene, tmp_path)


@pytest.mark.parametrize(("waited", "granted"), [(0.0, 10), (0.5, 15), (100.0, 20)])
def test_a_pace_fills_again_and_never_beyond_its_burst(waited: float, granted: int) -> None:
    """H07: time is an argument."""
    pace = TokenRate(rate=10.0, burst=10.0)
    first = sum(pace.wait_sec("t", 1.0) == 0.0 for _ in range(30))
    again = sum(pace.wait_sec("t", 1.0 + waited) == 0.0 for _ in range(30))
    assert first == 10 and first + again == granted


def test_a_pace_forgets_who_asked_longest_ago() -> None:
    """H07: made-up tokens fill no memory."""
    pace = TokenRate(most=100)
    for number in range(10_000):
        pace.wait_sec(str(number), 0.0)
    assert len(pace._buckets) == 100
