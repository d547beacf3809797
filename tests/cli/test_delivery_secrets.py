"""Secrets of a delivery that are not there, or that everybody sees, are told before anybody is paid."""

from __future__ import annotations

from pathlib import Path

import pytest

from ganger.app.preflight import delivering_repos, meet
from ganger.config import load_project
from ganger.demo.delivery import build_delivery
from tests.cli.cli_project import CONFIG, ganger, make_project
from tests.engine.git_runs import git

SOMEBODY = ("-c", "user.name=Somebody", "-c", "user.email=somebody@example.org")
DELIVERY = """
[workspace]
mode = "local-git"
[delivery]
completion = ["verified", "committed", "pushed"]
remote = "{remote}"
"""


def troubles(tmp_path: Path, settings: str, *, tracked: bool = False) -> list[str]:
    root = make_project(tmp_path)
    (root / "ganger.toml").write_text(CONFIG + DELIVERY.format(remote=tmp_path / "remote.git") + settings)
    (root / "forge-token").write_text("plain-word-opens-it\n")
    git(root, "init", "-q", "-b", "main")
    git(root, "add", "forge-token" if tracked else "ganger.toml")
    git(root, *SOMEBODY, "commit", "-qm", "begin")
    git(root, "init", "-q", "--bare", "-b", "main", str(tmp_path / "remote.git"))
    return [met.trouble.code for met in meet(load_project(root), [""]) if met.trouble is not None]


@pytest.mark.parametrize(("tracked", "found"), [(True, ["TOKEN_SEEN"]), (False, [])])
def test_a_token_file_in_the_history_is_told(tmp_path: Path, tracked: bool, found: list[str]) -> None:
    """D19: what is committed is in every agent's workspace."""
    assert troubles(tmp_path, 'token_file = "forge-token"\n', tracked=tracked) == found
    assert "replace the token" in ganger("explain", "TOKEN_SEEN", cwd=tmp_path).out


@pytest.mark.parametrize(("value", "found"), [("", ["FORGE_DENIED"]), ("signs", [])])
def test_a_webhook_secret_that_is_not_set_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: str, found: list[str]
) -> None:
    """D19: by the name of its variable."""
    monkeypatch.setenv("HOOK_SECRET", value)
    assert troubles(tmp_path, 'webhook_port = 8765\nwebhook_secret_env = "HOOK_SECRET"\n') == found


def test_a_folder_that_only_holds_settings_needs_no_remote(tmp_path: Path) -> None:
    """Where other repositories are worked on, the doctor asks about those."""
    office = build_delivery(tmp_path)
    assert delivering_repos(load_project(office, environ={})) == ["lib", "app"]
