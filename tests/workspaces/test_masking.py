"""Secrets in text from outside: none is left, its kind is told, and no text takes long."""

from __future__ import annotations

import base64
import time
from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import given, strategies as st

from ganger.core.logs.ci_logs import trim
from ganger.errors import WriteRefused
from ganger.ports.changes import Rules
from ganger.workspaces.rules.masking import IN_USE, Mask
from ganger.workspaces.safeguards import ChangeLimits, judge
from tests.workspaces.git_projects import ground_at
from tests.workspaces.judged_change import MadeChange, codes, link

# Put together here, so that no file of this project holds what looks like one.
RANDOM = "9fK2mQ7xW4vB8nR3tY6uZ1pL5sD0gHjC2eA7"
GITHUB = "ghp" + "_" + RANDOM
AWS = "AKI" + "A" + "Q7X2M4V6B3N5R7T2"
KEY_BODY = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7Vw"
KEY = "-----BEGIN RSA PRIVATE" + f" KEY-----\n{KEY_BODY}\n{KEY_BODY[::-1]}\n-----END RSA PRIVATE" + " KEY-----"
PLANTED = [
    (f"remote: using {GITHUB} for the push", GITHUB, "a GitHub token"),
    (f"2026-01-01T00:00:00Z AWS {AWS}\n", AWS, "an AWS access key"),
    (f"before\n{KEY}\nafter", KEY_BODY[::-1], "a private key"),
    (f"cloning https://ann:{RANDOM}@git.corp.net/x.git", RANDOM, "an address with a password"),
    (f'api_token = "{RANDOM}"', RANDOM, "a key, token or password"),
]


@pytest.mark.parametrize(("text", "secret", "kind"), PLANTED, ids=[kind for _, _, kind in PLANTED])
def test_a_secret_in_a_log_is_masked_and_its_kind_told(text: str, secret: str, kind: str) -> None:
    """D12, D19: what is around it stays readable."""
    masked, kinds = Mask()(f"step 3\n{text}\nexit 1")
    assert secret not in masked and kind in kinds
    assert masked.startswith("step 3\n") and masked.endswith("\nexit 1") and "[masked]" in masked


def test_a_secret_that_was_named_once_is_masked_everywhere() -> None:
    """D12: a log that says what it is says it again without a name."""
    masked, _ = Mask()(f'token = "{RANDOM}"\nnow calling with {RANDOM}|{RANDOM}')
    assert RANDOM not in masked


@pytest.mark.parametrize("cut", [10, 40, 60, 100])
def test_a_key_whose_head_was_cut_off_is_masked(cut: int) -> None:
    """D12: logs are looked at from their end; half a key is a key."""
    lines = "\n".join(f"2026-01-01T00:00:00Z {part}" for part in KEY.replace("END", "Q9\n-----END").split("\n"))
    masked, kinds = Mask()(lines.replace("-----Q9", "Q9")[cut:] + "\nafter")
    assert KEY_BODY[::-1][5:] not in masked and "a private key" in kinds and masked.endswith("\nafter")


@pytest.mark.parametrize("inside", ["\x1b[0m", "\0", "\x1b]0;title\x07", "\u200b", "\x9b", "\x7f"])
@pytest.mark.parametrize("secret", [GITHUB, RANDOM], ids=["a known shape", "a token in use"])
def test_what_a_screen_does_not_show_parts_no_secret(secret: str, inside: str) -> None:
    """D12, D19: a colour in the middle of a token hides it from nobody, also once the colour is taken out."""
    masked, kinds = Mask([RANDOM])(f"error: {secret[:9]}{inside}{secret[9:]} refused")
    assert kinds and secret[12:] not in masked and trim(masked).text == "error: [masked] refused"


FORMS = [
    ("plain", lambda token: token),
    ("in an address", lambda token: f"https://x:{quote(token, safe='')}@host/r"),
    ("hex", lambda token: token.encode().hex()),
    *(
        (
            f"base64, {before} before",
            lambda token, before=before: base64.b64encode(b"u:ab"[:before] + token.encode()).decode(),
        )
        for before in range(5)
    ),
]


@pytest.mark.parametrize(("_form", "written"), FORMS, ids=[name for name, _ in FORMS])
def test_a_token_in_use_is_masked_in_every_form(_form: str, written: object) -> None:
    """D19: however plain it looks, as it is, in an address and inside base64."""
    token = "plain/words-as-token"
    shown = written(token)  # type: ignore[operator]
    masked, kinds = Mask([token])(f"said {shown} there")
    assert IN_USE in kinds
    assert token not in masked and shown[6:-6] not in masked


@pytest.mark.parametrize(
    "text",
    [
        "Authorization: Basic dXNlcjpodW50ZXIy",
        "authorization: Bearer abcdefgh",
        "x https://u:p4ss@h/x",
        "PRIVATE-TOKEN: abcdefg",
    ],
)
def test_credentials_are_masked_even_where_they_are_no_leak(text: str) -> None:
    """D19: a forge's own words are no reason to halt, and need not be repeated."""
    masked, kinds = Mask()(text)
    assert "[masked]" in masked and kinds == ()


@pytest.mark.parametrize("text", ["", "all 12 tests passed", "sha256:" + "ab" * 32, "commit " + "0123456789abcdef" * 2])
def test_ordinary_text_stays_as_it_is(text: str) -> None:
    """A worker needs the log as it was."""
    assert Mask(["a-token-of-ours", ""])(text) == (text, ())


@given(st.text(max_size=200), st.integers(0, 200))
def test_a_known_token_never_comes_through(text: str, at: int) -> None:
    """D19: whatever stands around it."""
    token = "kn0wn-t0ken-" + RANDOM
    masked, kinds = Mask([token])(text[:at] + token + text[at:])
    assert token not in masked and IN_USE in kinds


HARD = [
    f"{KEY_BODY}\n-----END RSA PRIVATE" + " KEY-----\n",
    KEY_BODY + "\n",
    "-----BEGIN RSA PRIVATE" + f" KEY-----\n{KEY_BODY}\n",
    "token=" * 8,
    "://a:",
    f'secret = "{RANDOM}"\n',
    "eyJ" + "a" * 40 + ".",
    "AKIA",
    "Authorization: Basic ",
    " " * 64,
    "a" * 64,
    "://" + "a" * 60,
    "api_key: ",
]


@pytest.mark.parametrize("piece", HARD, ids=[piece[:12].strip() or "blank" for piece in HARD])
def test_no_text_takes_long(piece: str) -> None:
    """Four times the text takes about four times the time, and half a megabyte seconds at most."""

    def seconds(size: int) -> float:
        text = piece * (size // len(piece))
        began = time.process_time()
        Mask(["a-token-of-ours"])(text)
        return time.process_time() - began

    small, large = seconds(1 << 17), seconds(1 << 19)
    assert large < 5 and large < 0.2 + small * 10


def test_a_secret_in_the_name_of_a_file_is_refused_without_being_shown() -> None:
    """D12: names go into diffs, logs and change requests."""
    for change in (MadeChange({}, {f"keys/{GITHUB}.txt": "x"}), MadeChange({"a": "x"}, {GITHUB: "x"}, {GITHUB: "a"})):
        found = judge(change, Rules(), ChangeLimits())
        assert found[0].code == "SECRET_FOUND" and GITHUB not in found[0].message + found[0].path


def test_a_secret_in_the_target_of_a_link_is_refused() -> None:
    """D12: a link's target is content like any other."""
    assert ("a", "SECRET_FOUND") in codes(MadeChange({}, {"a": link(f"x/{GITHUB}")}))


def test_a_secret_in_what_an_agent_says_of_its_change_is_refused(tmp_path: Path) -> None:
    """D12: the summary becomes the commit's message and goes wherever the commit goes."""
    with ground_at(tmp_path) as ground:
        ground.open()
        (ground.place().folder / "new.txt").write_text("x\n")
        with pytest.raises(WriteRefused) as caught:
            ground.do(ground.repository.take("t", 1, (), Rules(), f"t: done\n\nused {GITHUB}"))
        assert caught.value.code == "SECRET_FOUND" and GITHUB not in caught.value.message
        assert ground.take().files == ("new.txt",)
