"""Secrets in a project that agents work in themselves are masked there, where the walls can."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from ganger.app.sandbox import tracked_in
from ganger.ports.sandbox import Room
from ganger.sandboxes.concealed import concealed, git_settings, secret_files
from ganger.sandboxes.trial import give
from tests.sandboxes.sandboxed import place

PEM = "-----BEGIN PRIVATE KEY-----\nMIIE\n"
SECRET = {
    ".env": "A=canary\n",
    ".env.local": "A=canary\n",
    "app/.env.production": "A=canary\n",
    ".envrc": "export A=canary\n",
    ".npmrc": "//host/:_authToken=canary\n",
    ".pypirc": "[pypi]\npassword = canary\n",
    ".git-credentials": "https://me:canary@host\n",
    "deploy/server.pem": PEM + "canary\n",
    "deploy/server.key": PEM + "canary\n",
    "keys/id_ed25519": "canary\n",
    "account.json": '{"type": "service_account", "private_key": "-----BEGIN PRIVATE KEY-----canary"}\n',
}
OPEN = {
    ".env.example": "A=\n",
    ".npmrc.md": "text\n",
    "sub/.npmrc": "save-exact=true\n",
    "chain.pem": "-----BEGIN CERTIFICATE-----\n",
    "package.json": "{}\n",
    "id_maker.py": "pass\n",
}


def lay(root: Path) -> None:
    for name, text in {**SECRET, **OPEN}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


def test_secret_files_are_known_by_name_and_content(tmp_path: Path) -> None:
    """D19: and what only looks like one stays."""
    lay(tmp_path)
    assert {str(Path(path).relative_to(tmp_path)) for path in secret_files(str(tmp_path))} == set(SECRET)


@pytest.mark.needs("bwrap")
def test_nobody_who_works_in_the_project_reads_them(tmp_path: Path) -> None:
    """G05 D19: nor moves or rewrites them; they are untouched outside, and what else there is can be worked on."""
    here = place(tmp_path, "bubblewrap")
    root = here.settings.project
    lay(root)
    give(here.walls, root, *(path for path in root.rglob("*") if ".ganger" not in path.parts))
    names = " ".join(SECRET)
    code = f"cat {names}; for f in {names}; do echo x > $f; mv $f moved; rm -f $f; done; cat package.json; echo y > new"
    shown = here.shell(code, room=Room(writable=(root,)))
    assert "canary" not in shown.out + shown.err and "{}" in shown.out
    assert {name: (root / name).read_text() for name in SECRET} == SECRET
    assert (root / "new").read_text() == "y\n" and not (root / "moved").exists()


@pytest.mark.needs("bwrap")
def test_what_the_operator_names_is_shown(tmp_path: Path) -> None:
    """D19: checks may need it."""
    here = place(tmp_path, "bubblewrap")
    root = here.settings.project
    lay(root)
    give(here.walls, root, root / ".env")
    walls = here.walls.rebuilt(replace(here.settings, readable=(root / ".env",)))
    shown = replace(here, walls=walls).shell("cat .env .env.local", room=Room(writable=(root,)))
    assert shown.out == SECRET[".env"]


def test_what_is_in_the_history_is_no_secret(tmp_path: Path) -> None:
    """D19: tests have certificates and keys of their own."""
    here = place(tmp_path, "landlock")
    root = here.settings.project
    lay(root)
    for words in (("init", "-q"), ("add", "-f", "deploy/server.pem", ".env.example")):
        subprocess.run(["git", *words], cwd=root, check=True)
    found = concealed(replace(here.settings, tracked=tracked_in), str(root))
    assert {str(Path(path).relative_to(root)) for path in found} == set(SECRET) - {"deploy/server.pem"}


@pytest.mark.needs("bwrap")
def test_git_works_without_the_token_in_its_settings(tmp_path: Path) -> None:
    """D19: the address is there, the password and the header are not."""
    here = place(tmp_path, "bubblewrap")
    root = here.settings.project
    settings = (("remote.origin.url", "https://me:canary@host.example/x"), ("user.name", "Somebody"))
    header = ("http.https://host.example/.extraheader", "AUTHORIZATION: basic canary")
    subprocess.run(["git", "init", "-q"], cwd=root, check=True)
    for name, value in (*settings, header):
        subprocess.run(["git", "config", name, value], cwd=root, check=True)
    give(here.walls, root, *(root / ".git").rglob("*"), root / ".git")
    room = Room(writable=(root,))
    shown = here.shell("cat .git/config; git config user.name; git remote -v; git status --short", room=room)
    assert "canary" not in shown.out + shown.err and "Somebody" in shown.out
    assert "https://host.example/x" in shown.out and "canary" in (root / ".git/config").read_text()


def test_settings_without_a_token_are_shown_as_they_are(tmp_path: Path) -> None:
    """D19: nothing is put in their place."""
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    subprocess.run(["git", "config", "remote.origin.url", "ssh://git@host.example/x"], cwd=tmp_path, check=True)
    assert list(git_settings(str(tmp_path))) == []
