"""What a program may know of the lead's environment: what it needs, and no secret."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from ganger.core.verify.environment import (
    ORDINARY,
    child_environment,
    is_secret_name,
    is_secret_value,
    operator_environment,
    withheld_names,
)
from tests.promises.launcher_bench import ENV, Bench


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path, tmp_path)


CANARIES = {
    "ANTHROPIC_API_KEY": "canary1",
    "GITHUB_TOKEN": "canary2",
    "DB_PASSWORD": "canary3",
    "AWS_ACCESS_KEY_ID": "canary4",
    "GOOGLE_APPLICATION_CREDENTIALS": "/canary5.json",
    "SSH_AUTH_SOCK": "/run/canary6",
    "DATABASE_URL": "postgres://db/canary7",
    "SENTRY_DSN": "canary8",
    "npm_config__authToken": "canary9",
    "MY_PROXY": "http://user:canary10@proxy:3128",
    "CLIENT_SECRET": "canary11",
    "SOME_SETTING": "ghp_canary12",
    "GH_PAT": "canary13",
    "PGPASSWORD": "canary14",
    "SESSION_COOKIE": "canary15",
    "GIT_DIR": "/canary16",
    "LD_PRELOAD": "",
    "GANGER_TOKEN": "canary17",
    "STRIPE": "canary18",
    "foo": "canary19",
    "LC_LICENSE": "canary20",
    "Path": "canary21",
}


def test_no_secret_of_the_lead_is_in_a_real_childs_environment(bench: Bench) -> None:
    """T24 W06: canaries under every kind of name stay with the lead; what is named comes through."""
    env = child_environment(
        {**ENV, **CANARIES, "WANTED_KEY": "yes"}, passed=["WANTED_KEY"], extra={"GANGER_ROLE": "worker"}
    )
    bench.ended(bench.launch(sys.executable, "-S", "-c", "import os; print(dict(os.environ))", env=env))
    shown = bench.log.read_text()
    assert "canary" not in shown.replace(str(bench.folder), "")
    assert "'WANTED_KEY': 'yes'" in shown and "'GANGER_ROLE': 'worker'" in shown


def test_the_canaries_are_seen_when_nothing_is_withheld(bench: Bench) -> None:
    """T24: planted bug; an environment passed on whole is caught."""
    bench.ended(bench.launch(sys.executable, "-S", "-c", "import os; print(dict(os.environ))", env={**ENV, **CANARIES}))
    assert all(value in bench.log.read_text() for value in CANARIES.values())


SECRET = (
    "OPENAI_API_KEY openai_api_key TOKEN X_TOKEN2 API_TOKENS MYSQL_PWD BW_SESSION SIGNING-KEY auth.token REDISCLI_AUTH"
)
SECRET += " AWS_REGION PRIVATE_KEY_PATH GPG_PASSPHRASE MyApiKey HTTP_AUTHORIZATION SLACK_WEBHOOK_URL"
SECRET += " PROD_DATABASE_URL SSH_ASKPASS"
HARMLESS = "KEYBOARD_LAYOUT MONKEY TOKENIZERS_PARALLELISM MAX_OUTPUT_TOKENS PWD OLDPWD PATH HOME LANG XDG_SESSION_ID"
HARMLESS += " DESKTOP_SESSION PATIENCE AUTHOR PASSENGER_COUNT COMPASS OTP_VERSION SECRETARY PYTHONPATH LD_LIBRARY_PATH"


@pytest.mark.parametrize("name", SECRET.split())
def test_a_secret_name_is_known_by_its_words(name: str) -> None:
    """T24: withheld."""
    assert is_secret_name(name)


@pytest.mark.parametrize("name", HARMLESS.split())
def test_a_name_that_only_looks_like_a_secret_passes(name: str) -> None:
    """T24: words are compared whole, so the operator's own programs lose no settings."""
    assert not is_secret_name(name)
    assert operator_environment({name: "x"}, extra={}) == {name: "x"}


@pytest.mark.parametrize(
    ("value", "secret"),
    [
        ("https://user:pass@host/x", True),
        ("a b postgres://u:p@h/db", True),
        ("https://token@host", True),
        ("-----BEGIN RSA PRIVATE KEY-----\nx", True),
        ("ssh://git@host/x", False),
        ("https://host/a@b:c", False),
        ("http://host:3128", False),
        ("me@host.example", False),
        ("://" * 100_000, False),
        ("a" * 1_000_000, False),
    ],
    ids=lambda value: str(value)[:20],
)
def test_a_value_that_gives_itself_away_is_a_secret(value: str, secret: bool) -> None:
    """T24: a password inside a URL is withheld whatever the variable's name; long values cost little."""
    assert is_secret_value(value) is secret


def test_git_identity_passes_and_git_redirection_does_not() -> None:
    """T24: a child's git works on the child's own repository."""
    names = "GIT_AUTHOR_NAME GIT_COMMITTER_EMAIL GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE GIT_CONFIG_COUNT GIT_SSH_COMMAND"
    kept = child_environment(dict.fromkeys(names.split(), "x"), extra={})
    assert sorted(kept) == ["GIT_AUTHOR_NAME", "GIT_COMMITTER_EMAIL"]


def test_what_ganger_adds_wins_over_everything() -> None:
    """T24: an inherited or passed variable cannot replace one of the attempt's own."""
    env = child_environment({"A": "old", "GANGER_RUN_ID": "outer"}, passed=["A"], extra={"A": "new"})
    assert env == {"A": "new"}


def test_only_what_is_listed_or_named_is_passed_on() -> None:
    """D19 G05: a name nobody thought of is withheld; a listed one with a password in its value as well."""
    listed = [name for names in ORDINARY.values() for name in names]
    assert not any(is_secret_name(name) for name in listed) and len(set(listed)) == len(listed)
    given = child_environment({**dict.fromkeys(listed, "x"), "OTHER": "y", "NAMED": "z"}, passed=["NAMED"], extra={})
    assert given == {**dict.fromkeys(listed, "x"), "NAMED": "z"}
    assert child_environment({"HTTPS_PROXY": "http://me:word@proxy"}, extra={}) == {}


def test_what_was_withheld_is_told_by_name() -> None:
    """D19: without what a shell or Ganger sets for itself."""
    mine = {"PATH": "/bin", "PWD": "/", "_": "x", "GANGER_HOME": "x", "GIT_DIR": "x", "STRIPE": "s", "NAMED": "n"}
    assert withheld_names(mine, ["NAMED"]) == ("STRIPE",)
