"""One host's client: what it repeats, when it stops, and where the token never goes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator
from itertools import pairwise

import pytest

from ganger.errors import ForgeDenied, ForgeError, ForgeLimited, ForgeUnreachable
from ganger.forges import Patience
from ganger.forges.http.client import Client, ForgeAnswer, ForgeAsk
from ganger.forges.settings import ForgeAddress, read_address
from tests.forges.answering import TOKEN, Answers, Asked, Host, Reply, Time, answering, settings

OK = Reply(200, {"fine": True})
THEIR_NOW = "Sun, 06 Nov 1994 08:49:37 GMT"
THEIR_EPOCH = 784111777


def in_turn(*replies: Reply) -> Answers:
    left: Iterator[Reply] = iter(replies)
    last = replies[-1]
    return lambda _: next(left, last)


def talk(
    answers: Answers, speak: Callable[[Client, Host], Awaitable[object]], time: Time | None = None, **more: object
) -> object:
    async def go() -> object:
        async with answering(answers) as host:
            client = Client(read_address(host.url), settings(host.url, time, **more))
            try:
                return await speak(client, host)
            finally:
                await client.close()

    return asyncio.run(go())


def send(ask: ForgeAsk) -> Callable[[Client, Host], Awaitable[ForgeAnswer]]:
    async def speak(client: Client, _: Host) -> ForgeAnswer:
        return await client.send(ask, "token", TOKEN)

    return speak


GET, ONCE = ForgeAsk("GET", "/x"), ForgeAsk("POST", "/x", body={}, repeats=False)


@pytest.mark.parametrize("trouble", [Reply(502), Reply(500), Reply(503), Reply(drop=True)])
def test_trouble_is_tried_three_times_with_growing_pauses(trouble: Reply) -> None:
    """D12: transient trouble waits 5 s, then twice that."""
    time = Time()
    answer = talk(in_turn(trouble, trouble, OK), send(GET), time)
    assert isinstance(answer, ForgeAnswer) and answer.status == 200 and time.slept == [5, 10]


def test_trouble_that_stays_is_named_with_the_host_and_without_the_token() -> None:
    """D12, D19: three tries and then an error that says what to do."""
    with pytest.raises(ForgeUnreachable, match=r"127\.0\.0\.1.*502") as caught:
        talk(lambda _: Reply(502, {"message": TOKEN}), send(GET))
    assert TOKEN not in str(caught.value) and caught.value.hint


def test_what_may_have_been_done_is_not_sent_twice() -> None:
    """D12: a comment that timed out may be there already."""
    asked: list[Asked] = []

    def answers(one: Asked) -> Reply:
        asked.append(one)
        return Reply(drop=True)

    with pytest.raises(ForgeUnreachable):
        talk(answers, send(ONCE))
    assert len(asked) == 1


def test_a_call_has_a_deadline() -> None:
    """D05: a host that says nothing costs one deadline per try."""
    with pytest.raises(ForgeUnreachable, match=r"no answer within 0\.05 s"):
        talk(lambda _: Reply(hang=True), send(GET), call_sec=0.05)


def test_a_host_that_is_not_there_is_unreachable() -> None:
    """D05: nothing listens: the same tries, then the error."""
    client = Client(ForgeAddress("http", "127.0.0.1", 1), settings("http://127.0.0.1:1"))
    with pytest.raises(ForgeUnreachable, match="cannot be reached"):
        asyncio.run(client.send(GET, "token", ""))


BROKEN = [
    b"nonsense",
    b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nshort",
    b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
    b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 3\r\n\r\nabc",
    b"HTTP/1.1 9999999999999999999999 OK\r\n\r\n",
    b"HTTP/1.1 200 OK\r\n" + b"x: " + b"y" * 200_000 + b"\r\n\r\n",
]


@pytest.mark.parametrize("raw", BROKEN)
def test_an_answer_cut_off_or_garbled_is_trouble(raw: bytes) -> None:
    """D05: half an answer is none."""
    with pytest.raises(ForgeUnreachable):
        talk(lambda _: Reply(exact=raw), send(GET))


@pytest.mark.parametrize(
    "target", ["http://[bad", "http://x:99999999/", "//", "ftp://127.0.0.1/", "http://a\\b@c/", "x:y"]
)
def test_an_address_that_leads_nowhere_is_not_followed(target: str) -> None:
    """D19: whatever the header holds, the token goes home or nowhere."""
    for ask in (GET, ForgeAsk("GET", "/x", away=True, tail=True)):
        with pytest.raises(ForgeError):
            talk(lambda _: Reply(302, b"", {"location": target}), send(ask))


LIMITS = [
    (429, {"retry-after": "20"}, 20),
    (403, {"retry-after": "7"}, 7),
    (503, {"retry-after": "9"}, 9),
    (429, {"retry-after": "Sun, 06 Nov 1994 08:49:57 GMT", "date": THEIR_NOW}, 20),
    (403, {"x-ratelimit-remaining": "0", "x-ratelimit-reset": str(THEIR_EPOCH + 30), "date": THEIR_NOW}, 30),
    (429, {"ratelimit-remaining": "0", "ratelimit-reset": "12"}, 12),
    (429, {}, 5),
]


@pytest.mark.parametrize(("status", "headers", "wait"), LIMITS)
def test_a_short_limit_is_waited_for_by_the_hosts_own_clock(status: int, headers: dict[str, str], wait: float) -> None:
    """D05: a host whose clock is decades behind says how long all the same."""
    time = Time()
    talk(in_turn(Reply(status, {}, headers), OK), send(GET), time)
    assert time.slept == [wait]


def test_a_long_limit_is_an_error_with_its_moment_and_stops_the_next_call() -> None:
    """D05: what is limited is not asked again before."""
    time = Time()

    async def speak(client: Client, host: Host) -> None:
        for _ in range(2):
            with pytest.raises(ForgeLimited) as caught:
                await client.send(GET, "token", TOKEN)
            assert caught.value.until == pytest.approx(time.now() + 900)
        assert len(host.asked) == 1
        await client.send(GET, "token", "another-token")

    talk(in_turn(Reply(429, {}, {"retry-after": "900"}), OK), speak, time)


def test_the_last_request_of_an_allowance_is_answered_and_the_next_one_waits() -> None:
    """D05: x-ratelimit-remaining 0 comes with a good answer."""
    spent = {"x-ratelimit-remaining": "0", "x-ratelimit-reset": str(THEIR_EPOCH + 600), "date": THEIR_NOW}

    async def speak(client: Client, host: Host) -> None:
        assert (await client.send(GET, "token", TOKEN)).status == 200
        with pytest.raises(ForgeLimited):
            await client.send(GET, "token", TOKEN)
        assert len(host.asked) == 1

    talk(lambda _: Reply(200, {}, spent), speak)


def test_a_secondary_limit_is_known_by_its_words() -> None:
    """D05: GitHub says 403 for it, sometimes without a time."""
    time = Time()
    said = Reply(403, {"message": "You have exceeded a secondary rate limit."})
    talk(in_turn(said, OK), send(GET), time)
    assert time.slept == [60]


def test_a_plain_refusal_is_no_limit() -> None:
    """D05: 403 without any sign of a limit comes back as it is."""
    answer = talk(lambda _: Reply(403, {"message": "no"}), send(GET))
    assert isinstance(answer, ForgeAnswer) and answer.status == 403


def test_a_failing_host_is_left_alone_then_probed_once() -> None:
    """D14: after failures in a row nothing is sent for a while; one call finds out."""
    time, well = Time(), [False]

    async def speak(client: Client, host: Host) -> None:
        for _ in range(2):
            with pytest.raises(ForgeUnreachable):
                await client.send(GET, "token", TOKEN)
        sent = len(host.asked)
        with pytest.raises(ForgeUnreachable, match="in a row"):
            await client.send(GET, "token", TOKEN)
        assert sent == len(host.asked) == 5
        time.seconds += 31
        well[0] = True
        answers = await asyncio.gather(*(client.send(GET, "token", TOKEN) for _ in range(3)), return_exceptions=True)
        assert sum(isinstance(answer, ForgeAnswer) for answer in answers) == 1 and len(host.asked) == 6
        await client.send(GET, "token", TOKEN)

    talk(lambda _: OK if well[0] else Reply(502), speak, time)


def test_a_probe_that_fails_rests_twice_as_long() -> None:
    """D12: a host that stays down is asked less and less."""
    time = Time()

    async def speak(client: Client, host: Host) -> None:
        waits = []
        for _ in range(4):
            with pytest.raises(ForgeUnreachable):
                await client.send(GET, "token", TOKEN)
            before = len(host.asked)
            while True:
                time.seconds += 1
                with pytest.raises(ForgeUnreachable):
                    await client.send(GET, "token", TOKEN)
                if len(host.asked) > before:
                    break
            waits.append(time.seconds)
        gaps = [later - sooner for sooner, later in pairwise(waits)]
        assert gaps == sorted(gaps) and gaps[-1] > gaps[0] and gaps[-1] <= 42

    talk(lambda _: Reply(502), speak, time, patience=Patience(tries=1, trips=1, rest_sec=10, rest_most_sec=40))


def test_an_unchanged_answer_is_not_sent_again() -> None:
    """D05: a conditional request costs nothing and says the same; another token has another cache."""

    def answers(asked: Asked) -> Reply:
        same = asked.headers.get("if-none-match") == '"1"'
        return Reply(304, b"", {"etag": '"1"'}) if same else Reply(200, {"n": 7}, {"etag": '"1"'})

    async def speak(client: Client, host: Host) -> None:
        first, second = [await client.send(GET, "token", TOKEN) for _ in range(2)]
        assert (first.body, first.status) == (second.body, second.status) and first.json() == {"n": 7}
        await client.send(GET, "token", "other")
        assert ["if-none-match" in asked.headers for asked in host.asked] == [False, True, False]

    talk(answers, speak)


def test_a_log_on_another_host_is_fetched_without_the_token() -> None:
    """D19: GitHub sends logs from elsewhere; the token stays at home."""

    async def go() -> None:
        async with answering(lambda _: Reply(200, b"the log")) as away:
            elsewhere = away.url.replace("127.0.0.1", "localhost") + "/log?sig=1"

            async def speak(client: Client, host: Host) -> None:
                answer = await client.send(ForgeAsk("GET", "/x", away=True, tail=True), "Bearer", TOKEN)
                assert answer.body == b"the log" and "authorization" in host.asked[0].headers
                assert "authorization" not in away.asked[0].headers and away.asked[0].query == {"sig": "1"}
                with pytest.raises(ForgeError, match="localhost, which is not followed"):
                    await client.send(GET, "Bearer", TOKEN)

            async with answering(lambda _: Reply(302, b"", {"location": elsewhere})) as host:
                client = Client(read_address(host.url), settings(host.url))
                await speak(client, host)
                await client.close()

    asyncio.run(go())


def test_a_renamed_repository_is_followed_on_its_own_host_and_never_in_circles() -> None:
    """D05: the same host may send on, a few times."""

    def answers(asked: Asked) -> Reply:
        return OK if asked.path == "/new" else Reply(301, b"", {"location": "/new" if asked.path == "/x" else "/y"})

    assert isinstance(talk(answers, send(GET)), ForgeAnswer)
    with pytest.raises(ForgeError, match="circles"):
        talk(answers, send(ForgeAsk("GET", "/y")))


def test_neither_cookies_nor_the_environment_go_along(monkeypatch: pytest.MonkeyPatch) -> None:
    """D19: what a host sets is not sent back, and no proxy or password file of the machine is used."""
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")

    async def speak(client: Client, host: Host) -> None:
        for _ in range(2):
            await client.send(GET, "token", "")
        assert not {"cookie", "authorization"} & {name for asked in host.asked for name in asked.headers}

    talk(lambda _: Reply(200, {}, {"set-cookie": "a=b; Path=/"}), speak)


def test_a_long_log_keeps_its_end_and_any_other_long_answer_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """D06: what failed stands at the end of a log; nothing fills the memory."""
    monkeypatch.setattr("ganger.forges.http.client.TAIL_BYTES", 1000)
    monkeypatch.setattr("ganger.forges.http.client.MOST_BYTES", 100_000)
    long = Reply(200, b"x" * 300_000 + b"the end")
    answer = talk(lambda _: long, send(ForgeAsk("GET", "/x", tail=True)))
    assert isinstance(answer, ForgeAnswer) and answer.body.endswith(b"xthe end") and len(answer.body) == 1000
    with pytest.raises(ForgeError, match="not read to its end"):
        talk(lambda _: long, send(GET))


def test_a_token_with_a_line_break_is_refused_without_being_shown() -> None:
    """D19: it would end the header."""
    client = Client(ForgeAddress("http", "127.0.0.1", 1), settings("http://127.0.0.1:1"))
    with pytest.raises(ForgeDenied) as caught:
        asyncio.run(client.send(GET, "token", f"{TOKEN}\r\nx: y"))
    assert TOKEN not in f"{caught.value}{caught.value.hint}{client!r}"


def test_no_log_line_has_the_token(caplog: pytest.LogCaptureFixture) -> None:
    """D19: not even those of the HTTP library."""
    with caplog.at_level(logging.DEBUG):
        talk(in_turn(Reply(502), OK), send(GET))
    assert caplog.text and TOKEN not in caplog.text


def test_requests_are_counted_by_the_minute() -> None:
    """D05: what polling costs can be said."""
    time = Time()

    async def speak(client: Client, host: Host) -> None:
        for _ in range(3):
            await client.send(GET, "token", TOKEN)
        assert (client.calls, client.per_minute) == (3, 3)
        time.seconds += 61
        assert (client.calls, client.per_minute) == (3, 0)

    talk(lambda _: OK, speak, time)


ADDRESSES = [
    ("git.example.org", "https://git.example.org"),
    ("127.0.0.1:3000", "http://127.0.0.1:3000"),
    ("localhost", "http://localhost"),
    ("http://git.example.org/", "http://git.example.org"),
    ("https://me:secret@git.example.org:8443/git/", "https://git.example.org:8443"),
    ("http://[::1]:80", "http://[::1]"),
]


@pytest.mark.parametrize(("given", "origin"), ADDRESSES)
def test_plain_http_is_for_this_machine_unless_the_address_says_so(given: str, origin: str) -> None:
    """D19: an address without a scheme never sends a token in the clear."""
    assert read_address(given).origin == origin and "secret" not in repr(read_address(given))


@pytest.mark.parametrize("given", ["", "ftp://me:secret@x", "https://", "http://x:99999"])
def test_what_is_no_address_is_refused_without_its_password(given: str) -> None:
    """D19: named, with the next step."""
    with pytest.raises(ForgeError, match="not an address of a forge") as caught:
        read_address(given)
    assert "secret" not in str(caught.value) and caught.value.hint
