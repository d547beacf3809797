"""Secrets in added lines: every known shape is found, what only looks like one is not, and none is ever repeated.

The samples are put together from pieces, so that no file of this project holds one.
"""

from __future__ import annotations

import base64
import json
import random
import string
import uuid

import pytest

from ganger.ports.changes import Rules
from ganger.workspaces.rules.line_counts import added_lines
from ganger.workspaces.rules.secrets import FoundSecret, Sample, find_secrets, new_secrets
from ganger.workspaces.safeguards import ChangeLimits, judge
from tests.workspaces.judged_change import MadeChange, codes

MIXED = string.ascii_letters + string.digits
CHANCE = random.Random(7)


def body(size: int, signs: str = MIXED) -> str:
    """Random signs, without a run that reads like a placeholder."""
    return "".join(CHANCE.choice(signs) for _ in range(size))


def segment(value: dict[str, object]) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


def key_block(kind: str = "RSA ", size: int = 3) -> str:
    lines = [body(64, MIXED + "+/") for _ in range(size)]
    return "\n".join([f"-----BEGIN {kind}PRIVATE" + " KEY-----", *lines, f"-----END {kind}PRIVATE" + " KEY-----"])


HEX = "0123456789abcdef"
UPPER = string.ascii_uppercase + "234567"
JWT = ".".join([segment({"alg": "HS256"}), segment({"iss": "shop", "sub": "u-81", "exp": 1893456000}), body(43)])
SHAPES = {
    "aws": ("an AWS access key", "AK" + "IA" + body(16, UPPER)),
    "github": ("a GitHub token", "gh" + "p_" + body(36)),
    "github-fine": ("a GitHub token", "github" + "_pat_" + body(22) + "_" + body(59)),
    "gitlab": ("a GitLab token", "gl" + "pat-" + body(20)),
    "slack": ("a Slack token", "xo" + "xb-" + body(12, "123456789") + "-" + body(24)),
    "slack-hook": (
        "a Slack webhook",
        "https://hooks.slack" + ".com/services/T" + body(8) + "/B" + body(8) + "/" + body(24),
    ),
    "stripe": ("a Stripe key", "sk" + "_live_" + body(24)),
    "npm": ("an npm token", "np" + "m_" + body(36)),
    "pypi": ("a PyPI token", "py" + "pi-AgEIcHlwaS5vcmc" + body(60)),
    "google": ("a Google API key", "AI" + "za" + body(35)),
    "openai": ("an OpenAI key", "sk" + "-proj-" + body(48)),
    "anthropic": ("an Anthropic key", "sk" + "-ant-api03-" + body(90)),
    "hugging-face": ("a Hugging Face token", "h" + "f_" + body(34)),
    "azure": ("an Azure storage key", "Account" + "Key=" + body(86) + "=="),
    "sendgrid": ("a SendGrid key", "S" + "G." + body(22) + "." + body(43)),
    "digitalocean": ("a DigitalOcean token", "do" + "p_v1_" + body(64, HEX)),
    "vault": ("a Vault token", "hv" + "s." + body(30)),
    "telegram": ("a Telegram bot token", body(9, "123456789") + ":A" + "A" + body(33)),
    "jwt": ("a signed JWT", JWT),
    "database": ("an address with a password", "postgres://shop:" + body(14) + "@db.shop.io:5432/main"),
    "web-password": ("an address with a password", "https://deploy:" + body(20) + "@git.shop.io/app.git"),
    "assigned": ("a key, token or password", 'api_key = "' + body(32) + '"'),
    "in-json": ("a key, token or password", '"clientSecret": "' + body(40) + '"'),
    "in-yaml": ("a key, token or password", "password: " + body(28)),
    "annotated": ("a key, token or password", "TOKEN: str = '" + body(40, HEX) + "'"),
    "in-index": ("a key, token or password", "config['secret_key'] = '" + body(32) + "'"),
}


@pytest.mark.parametrize("name", SHAPES)
def test_every_known_shape_is_found_with_its_line_and_kind(name: str) -> None:
    """D12: wherever it stands in an added line."""
    kind, secret = SHAPES[name]
    text = f"# settings\nvalue {secret}\nend = 1\n" if "assigned" not in name else f"# settings\n{secret}\nend = 1\n"
    assert find_secrets(added_lines(b"", text.encode())) == [FoundSecret(2, kind)]


@pytest.mark.parametrize("name", SHAPES)
def test_the_refusal_names_file_line_and_kind_and_never_the_secret(name: str) -> None:
    """D12 R13: the message goes into events, logs and prompts."""
    kind, secret = SHAPES[name]
    [refusal, *_] = judge(MadeChange({}, {"app/settings.py": f"\n{secret}\n"}), Rules(), ChangeLimits())
    assert (refusal.code, refusal.path) == ("SECRET_FOUND", "app/settings.py")
    assert "line 2" in refusal.message and kind in refusal.message
    assert secret[12:24] not in refusal.message + refusal.hint


HARMLESS = {
    "aws-documentation": "AK" + "IAIOSFODNN7" + "EXAMPLE",
    "placeholder": 'api_key = "your-api-key-goes-here-123"',
    "crosses": 'token = "xxxxxxxxxxxxxxxxxxxxxxxx"',
    "changeme": 'PASSWORD = "changeme-changeme-1234"',
    "variable": 'api_key = "${API_KEY_OF_THE_SHOP_2}"',
    "environment": 'token = os.environ["SHOP_TOKEN_2024_PRODUCTION"]',
    "template": 'secret: "{{ .Values.shop.secretKey1 }}"',
    "angle": "https://user:<password-of-the-user1>@host.io/x",
    "fake-name": "FAKE_TOKEN = '" + "gh" + "p_" + body(36) + "'",
    "dummy-name": 'dummy_api_key = "' + body(32) + '"',
    "uuid": f'secret_id_token = "{uuid.UUID(int=CHANCE.getrandbits(128))}"',
    "git-sha": "commit = '" + body(40, HEX) + "'",
    "lock-hash": '"integrity": "sha512-' + body(86) + '=="',
    "password-hash": 'password_hash = "' + body(64, HEX) + '"',
    "image": 'src="data:image/png;base64,' + body(400, MIXED + "+/") + '"',
    "local-database": "postgres://postgres:postgres@localhost:5432/test",
    "compose-database": "mysql://root:password@db:3306/shop",
    "word-password": 'password = "correct-horse-battery-staple"',
    "camel-case": "token = getNextTokenFromTheStream2",
    "identifier": "api_key = settings.production_api_key_name",
    "tutorial-jwt": segment({"alg": "HS256", "typ": "JWT"})
    + ".eyJzdWIiOiIxMjM0NTY3ODkwIiwibmFtZSI6IkpvaG4ifQ."
    + body(43),
    "key-reader": 'if line == "-----BEGIN RSA PRIVATE' + ' KEY-----":',
    "shortened-key": "-----BEGIN RSA PRIVATE" + " KEY-----\\nMIIEowIBAAKCAQEA" + body(40) + "...\\n-----END",
    "public-key": "-----BEGIN PUBLIC KEY-----\n" + body(64) + "\n-----END PUBLIC KEY-----",
    "url-with-port": "https://example.com:8443/path@2x.png",
    "page-token": 'next_page_token = "' + body(32) + '"',
}


@pytest.mark.parametrize("name", HARMLESS)
def test_what_only_looks_like_a_secret_is_let_through(name: str) -> None:
    """D12: a false alarm stops the whole chain, so placeholders, hashes and readers of keys are none."""
    assert find_secrets(added_lines(b"", f"# head\n{HARMLESS[name]}\n".encode())) == []


@pytest.mark.parametrize("kind", ["RSA ", "", "EC ", "OPENSSH ", "ENCRYPTED "])
@pytest.mark.parametrize("head", [b"", b"\x00\x01binary\x00"], ids=["text", "binary"])
def test_a_private_key_is_found_in_text_and_in_binary_files(kind: str, head: bytes) -> None:
    """D12: key blocks are looked for in every file."""
    change = MadeChange({}, {"blob.bin": head + b"\n\n" + key_block(kind).encode()})
    assert codes(change) == [("blob.bin", "SECRET_FOUND")]


def test_a_key_in_one_line_with_escaped_ends_is_found() -> None:
    """D12: as in the account files of clouds."""
    text = json.dumps({"private" + "_key": key_block("")})
    assert find_secrets(added_lines(b"", text.encode())) == [FoundSecret(1, "a private key")]


def test_only_added_lines_count() -> None:
    """D12: a secret that was there before is the owner's, also when lines move or the one beside it changes."""
    secret = SHAPES["github"][1]
    before = f"a = 1\ntoken = '{secret}'\nb = 2\n"
    assert codes(MadeChange({"s.py": before}, {"s.py": f"b = 2\n\ntoken = '{secret}'\na = 3\n"})) == []
    assert codes(MadeChange({"s.py": before}, {"s.py": f"a = 1\ngithub_token = '{secret}'  # kept\nb = 2\n"})) == []


def test_a_secret_that_moves_to_another_file_is_not_a_new_one() -> None:
    """D12: a refactoring leaks nothing."""
    secret = f"token = '{SHAPES['gitlab'][1]}'\n"
    assert codes(MadeChange({"old.py": secret}, {"new.py": secret})) == []
    assert codes(MadeChange({"old.py": secret}, {"new.py": secret}, {"new.py": "old.py"})) == []


def test_a_second_secret_in_a_file_full_of_old_ones_is_found() -> None:
    """D12: no number of known secrets hides a new one."""
    old = "".join(f"t{i} = '{'gh' + 'p_' + body(36)}'\n" for i in range(200)) + key_block() * 80
    change = MadeChange({"s.txt": old}, {"s.txt": old + f"\nlast = '{'gh' + 'p_' + body(36)}'\n" + key_block("EC ")})
    assert codes(change) == [("s.txt", "SECRET_FOUND")] * 2


def test_a_new_body_under_an_old_head_is_found() -> None:
    """D12: a key that replaces another is a new secret."""
    assert codes(MadeChange({"k.txt": key_block()}, {"k.txt": key_block()})) == [("k.txt", "SECRET_FOUND")]


def test_named_values_in_lock_files_are_hashes() -> None:
    """D12: shapes are still found there."""
    line = f'token = "{body(40)}"\n'.encode()
    assert new_secrets([Sample("Cargo.lock", b"", line), Sample("web/pnpm-lock.yaml", b"", line)], list) == []
    shaped = SHAPES["npm"][1].encode()
    assert new_secrets([Sample("yarn.lock", b"", shaped)], list) == [("yarn.lock", FoundSecret(1, "an npm token"))]


HOSTILE = {
    "one-long-line": b"a" * (1 << 20),
    "names": b"api_key=" * (1 << 17),
    "quotes": b"token='" * (1 << 17),
    "prefixes": b"ghp_" * (1 << 18),
    "jwt-heads": b"eyJ" * (1 << 18) + b".eyJ" * (1 << 16),
    "addresses": b"://a:" * (1 << 17) + b"://" + b"b" * (1 << 19),
    "key-heads": (b"-----BEGIN PRIVATE" + b" KEY-----") * (1 << 15),
    "many-lines": b"key = 1\n" * 200_000,
    "digits": b"1" * (1 << 20) + b":AA",
    "dots": b"x" * 13 + b".atlasv1." * (1 << 16),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_text_is_read_in_linear_time(name: str) -> None:
    """D12: a megabyte made to be slow; a pattern that is not linear would run into the time limit of the suite."""
    assert find_secrets(added_lines(b"x\n" * 1000, HOSTILE[name])) == []
