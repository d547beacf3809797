"""Webhooks: who is believed, what they do, and that nobody can use them to do more than make Ganger look."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import hmac
import json
import time
from collections.abc import Awaitable, Callable, Mapping

import pytest

from ganger.errors import ForgeError
from ganger.forges import webhook
from ganger.forges.webhook import BODY_BYTES, HEAD_BYTES, HookLimits, WebhookReceiver

SECRET, PROJECT = "a secret for tests", "ann/tools"
QUICK = HookLimits(within_sec=0.5, linger_sec=0.5, every_sec=0.2)
BODY = {"action": "completed", "repository": {"full_name": PROJECT}}
GITLAB = {"object_kind": "pipeline", "project": {"path_with_namespace": PROJECT}}


def signed(body: bytes, secret: str = SECRET) -> str:
    return hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()


def forgejo(body: bytes, name: str = "1", secret: str = SECRET) -> dict[str, str]:
    """Forgejo sends its own, Gitea's and GitHub's headers."""
    one = signed(body, secret)
    return {
        "X-Forgejo-Delivery": name,
        "X-Gitea-Delivery": name,
        "X-Forgejo-Signature": one,
        "X-Gitea-Signature": one,
        "X-Hub-Signature-256": f"sha256={one}",
    }


def request(body: bytes, headers: Mapping[str, str], **other: str) -> bytes:
    every = {"Host": "localhost", "Content-Type": "application/json", "Content-Length": str(len(body)), **headers}
    every |= {name.replace("_", "-"): value for name, value in other.items()}
    lines = [f"{name}: {value}" for name, value in every.items()]
    return "\r\n".join(["POST /hook HTTP/1.1", *lines, "", ""]).encode() + body


class Post:
    """A receiver, and those who write to it."""

    def __init__(self, limits: HookLimits = QUICK) -> None:
        self.nudged: list[str] = []
        self.receiver = WebhookReceiver({PROJECT: SECRET, "bob/site": "another one"}, self.nudged.append, limits=limits)

    async def send(self, raw: bytes, *, whole: bool = True) -> int:
        """The status it was answered with."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.receiver.port)
        writer.write(raw)
        if whole:
            await writer.drain()
        line = await reader.readline()
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()
        return int(line.split()[1])

    async def hook(self, value: object = BODY, name: str = "1", secret: str = SECRET) -> int:
        body = json.dumps(value).encode()
        return await self.send(request(body, forgejo(body, name, secret)))


def with_post(play: Callable[[Post], Awaitable[None]], limits: HookLimits = QUICK) -> Post:
    async def whole() -> Post:
        post = Post(limits)
        await post.receiver.open()
        try:
            await play(post)
        finally:
            await post.receiver.close()
        return post

    return asyncio.run(whole())


@pytest.mark.parametrize(
    ("value", "headers"),
    [
        (BODY, lambda body: {"X-Gitea-Delivery": "1", "X-Gitea-Signature": signed(body)}),
        (BODY, lambda body: {"X-Forgejo-Delivery": "1", "X-Forgejo-Signature": signed(body)}),
        (BODY, forgejo),
        (BODY, lambda body: {"X-GitHub-Delivery": "1", "X-Hub-Signature-256": f"sha256={signed(body)}"}),
        (GITLAB, lambda _body: {"X-Gitlab-Event-UUID": "1", "X-Gitlab-Token": SECRET}),
    ],
)
def test_a_signed_hook_of_every_forge_nudges_its_project(
    value: object, headers: Callable[[bytes], dict[str, str]]
) -> None:
    """D05, D19: it makes Ganger look, and carries no verdict."""
    body = json.dumps(value).encode()

    async def play(post: Post) -> None:
        assert await post.send(request(body, headers(body))) == 200

    assert with_post(play).nudged == [PROJECT]


BODY_BYTES_SIGNED = json.dumps(BODY).encode()


@pytest.mark.parametrize(
    "headers",
    [
        {},
        forgejo(BODY_BYTES_SIGNED, secret="guessed"),
        forgejo(BODY_BYTES_SIGNED) | {"X-Gitea-Signature": "0" * 64},
        forgejo(b"another body"),
        {"X-Gitea-Signature": ""},
        {"X-Gitea-Signature": "\u00e9" * 64},
        {"X-Hub-Signature-256": signed(BODY_BYTES_SIGNED)},
        {"X-Hub-Signature": "sha1=" + hmac.new(SECRET.encode(), BODY_BYTES_SIGNED, hashlib.sha1).hexdigest()},
        {"X-Gitlab-Token": "guessed"},
        {"X-Gitlab-Token": ""},
    ],
)
def test_a_forged_hook_is_refused_and_counted(headers: dict[str, str]) -> None:
    """D19: not signed, badly signed, signed for something else: 401, and nothing happens."""

    async def play(post: Post) -> None:
        assert await post.send(request(BODY_BYTES_SIGNED, headers)) == 401

    post = with_post(play)
    assert (post.nudged, post.receiver.counts.forged, post.receiver.counts.taken) == ([], 1, 0)


def test_a_replayed_hook_is_answered_and_ignored() -> None:
    """D05: the same delivery, or the same body under another name; a forged one takes no name away."""

    async def play(post: Post) -> None:
        assert await post.hook(name="7", secret="guessed") == 401
        assert [await post.hook(name=name) for name in ("7", "7", "8")] == [200, 200, 200]
        assert await post.hook({**BODY, "n": 2}, name="7") == 200

    counts = with_post(play).receiver.counts
    assert (counts.taken, counts.repeated, counts.forged) == (1, 3, 1)


def test_a_hook_about_another_project_nudges_nobody() -> None:
    """D02: nor does one that is signed with the secret of another project."""

    async def play(post: Post) -> None:
        for number, value in enumerate([{"repository": {"full_name": "eve/x"}}, {}, [], {"repository": None}]):
            assert await post.hook(value, name=str(number)) == 200
        assert await post.hook({"repository": {"full_name": "bob/site"}}, name="9") == 200
        assert await post.hook({"repository": {"full_name": "Bob/Site"}}, name="10", secret="another one") == 200

    post = with_post(play)
    assert (post.nudged, post.receiver.counts.unknown) == (["bob/site"], 5)


@pytest.mark.parametrize(
    ("raw", "status"),
    [
        (request(b"x", {}, Content_Length=str(BODY_BYTES + 1)), 413),
        (request(b"", {"X-Long": "x" * HEAD_BYTES}), 431),
        (request(b"{}", {}, Content_Type="application/x-www-form-urlencoded"), 415),
        (request(b"{}", {}, Content_Encoding="gzip"), 415),
        (request(b"{}", {}, Content_Length="many"), 411),
        (request(b"{}", {}, Transfer_Encoding="chunked"), 411),
        (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", 405),
        (b"\x16\x03\x01 hello\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nHost x\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nA: 1\r\na: 2\r\n\r\n", 400),
        (request(b"{{", forgejo(b"{{")), 400),
        (request(b"\xff", forgejo(b"\xff")), 400),
        (request(b"[" * 5000, forgejo(b"[" * 5000)), 400),
    ],
)
def test_what_is_no_hook_is_refused_by_name(raw: bytes, status: int) -> None:
    """D19: too large, another content, no HTTP at all."""

    async def play(post: Post) -> None:
        assert await post.send(raw) == status
        assert await post.hook() == 200

    post = with_post(play)
    assert post.nudged == [PROJECT] and post.receiver.counts.refused == 1


@pytest.mark.parametrize("begun", [b"", b"POST / HT", request(b"{}", {}, Content_Length="400")])
def test_who_is_slow_is_sent_away_and_holds_up_nobody(begun: bytes) -> None:
    """D05: a request has its time, and others are answered meanwhile."""

    async def play(post: Post) -> None:
        began = time.monotonic()
        slow = [asyncio.ensure_future(post.send(begun, whole=False)) for _ in range(8)]
        await asyncio.sleep(0)
        assert await post.hook() == 200 and time.monotonic() - began < QUICK.within_sec
        assert await asyncio.gather(*slow) == [408] * 8

    assert with_post(play).nudged == [PROJECT]


def test_a_thousand_hooks_in_a_row_are_answered_and_make_few_nudges() -> None:
    """D05: a burst costs one look per interval, the last hook of it is followed by one, and memory is bounded."""

    async def play(post: Post) -> None:
        for number in range(1000):
            assert await post.hook({**BODY, "n": number}, name=str(number)) == 200
        before = len(post.nudged)
        async with asyncio.timeout(10):
            while len(post.nudged) == before:
                await asyncio.sleep(0.01)

    began = time.monotonic()
    post = with_post(play, HookLimits(every_sec=0.5))
    assert post.receiver.counts.taken == 1000
    assert 2 <= len(post.nudged) <= 2 + (time.monotonic() - began) / 0.5
    assert len(post.receiver._seen) <= webhook._MOST_REMEMBERED


def test_a_flood_is_turned_away_and_the_next_hook_after_it_comes_in() -> None:
    """D05: neither many connections nor many requests take more than their share."""
    limits = HookLimits(within_sec=0.5, linger_sec=0.1, rate=50, burst=60, every_sec=0.01)

    async def play(post: Post) -> None:
        held = [asyncio.ensure_future(post.send(b"", whole=False)) for _ in range(50)]
        answers = await asyncio.gather(*held)
        assert answers.count(408) == webhook._MOST_LINES and answers.count(429) == 50 - webhook._MOST_LINES
        statuses = [await post.hook(secret="guessed") for _ in range(200)]
        assert 429 in statuses and statuses[0] == 401
        async with asyncio.timeout(10):
            while await post.hook() != 200:
                await asyncio.sleep(0.02)

    assert with_post(play, limits).nudged == [PROJECT]


def test_without_a_secret_or_a_free_port_it_does_not_open() -> None:
    """D19: a hook that nobody signed could be anybody's."""

    async def play(post: Post) -> None:
        for secrets in ({}, {PROJECT: ""}):
            with pytest.raises(ForgeError, match="need a secret"):
                await WebhookReceiver(secrets, print).open()
        with pytest.raises(ForgeError, match="cannot listen"):
            await WebhookReceiver({PROJECT: SECRET}, print, port=post.receiver.port).open()

    with_post(play)


def test_a_receiver_that_takes_any_signature_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """D19: the claim about forged hooks fails where signatures are not looked at."""
    monkeypatch.setattr(webhook, "signer", lambda _head, _body, _secrets: SECRET)
    with pytest.raises(AssertionError):
        test_a_forged_hook_is_refused_and_counted({"X-Gitlab-Token": "guessed"})
