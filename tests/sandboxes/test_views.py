"""Views: which places a confined process sees, and what counts when several rules speak of one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ganger.ports.processes import Launch
from ganger.ports.sandbox import Room
from ganger.sandboxes.paths import is_within, only_for_root, open_parts
from ganger.sandboxes.settings import SandboxSettings
from ganger.sandboxes.view import Access, View, view


@pytest.fixture
def settings(tmp_path: Path) -> SandboxSettings:
    for folder in ("home/.ssh", "home/.config/gh", "home/docs", "home/project/.ganger/run/work/own"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "home/project/.env").write_text("x")
    project = tmp_path / "home" / "project"
    return SandboxSettings(project, project / ".ganger", tmp_path / "home", "/usr/bin:/bin")


def seen(settings: SandboxSettings, *argv: str, writable: str = "", readable: str = "") -> View:
    granted = [tuple(settings.home / place for place in places.split()) for places in (writable, readable)]
    room = Room(granted[0], granted[1])
    launch = Launch("k", argv or ("true",), settings.project, {}, None, settings.home / "log", None)
    return view(settings, room, launch, "/usr/bin/true")


def access(found: View, path: Path) -> Access:
    spot = found.around(str(path))
    return spot.access if spot is not None else Access.HIDDEN


def test_a_workspace_is_seen_and_nothing_around_it(settings: SandboxSettings) -> None:
    """G05: the project, its .env, the state folder and the home are not there."""
    own = settings.state_dir / "run" / "work" / "own"
    found = seen(settings, writable="project/.ganger/run/work/own")
    assert access(found, own / "deep" / "file") is Access.WRITE
    for hidden in (settings.project / ".env", settings.state_dir / "run" / "ganger.db", settings.home / ".ssh"):
        assert access(found, hidden) in (Access.HIDDEN, Access.PRIVATE)


def test_the_deeper_place_counts(settings: SandboxSettings) -> None:
    """G05: a project edited in place hides the state folder in it, and that shows the workspace in it."""
    found = seen(settings, writable="project project/.ganger/run/work/own")
    assert access(found, settings.project / "a.txt") is Access.WRITE
    assert access(found, settings.state_dir / "run" / "ganger.db") is Access.HIDDEN
    assert access(found, settings.state_dir / "run" / "work" / "own" / "a") is Access.WRITE


def test_what_is_hidden_stays_hidden_whatever_is_granted(settings: SandboxSettings) -> None:
    """G05: the operator's own list wins over every grant, also over one for the very same place."""
    hidden = replace(settings, hidden=(settings.project / ".env",), readable=(settings.project / ".env",))
    found = seen(hidden, str(settings.project / ".env"), "x", writable="project")
    assert access(found, settings.project / ".env") is Access.HIDDEN


def test_a_granted_home_keeps_its_keys(settings: SandboxSettings) -> None:
    """G05 D19: unless a place of keys is granted by its own name."""
    found = seen(replace(settings, readable=(settings.home, settings.home / ".config" / "gh")))
    assert access(found, settings.home / "docs" / "a") is Access.READ
    assert access(found, settings.home / ".ssh" / "id") is Access.HIDDEN
    assert access(found, settings.home / ".config" / "gh" / "hosts.yml") is Access.READ


def test_a_name_that_begins_alike_is_another_place() -> None:
    """G05: compared by components, as `ws` and `ws-evil` show."""
    assert is_within("/a/ws/x", "/a/ws") and is_within("/a/ws", "/a/ws") and is_within("/a", "/")
    assert not is_within("/a/ws-evil", "/a/ws") and not is_within("/a", "/a/ws")


def test_a_word_of_the_command_opens_no_file_of_gangers_own(settings: SandboxSettings) -> None:
    """G05: the store does not become readable because its name is said."""
    store = settings.state_dir / "run" / "ganger.db"
    store.write_text("events")
    assert access(seen(settings, "cat", str(store)), store) in (Access.HIDDEN, Access.PRIVATE)
    assert access(seen(settings, "cat", str(settings.project / ".env")), settings.project / ".env") is Access.READ


def test_nothing_an_agent_can_write_opens_another_place(settings: SandboxSettings, tmp_path: Path) -> None:
    """G05: planted links as a granted folder, as the program and as a word of the command; none is followed."""
    secret = tmp_path / "home" / "docs"
    (secret / "bin").mkdir()
    for name in ("vendor", "program", "config"):
        (settings.project / name).symlink_to(secret / "bin" if name == "program" else secret)
    (secret / "notes").write_text("x")
    (settings.project / "word").symlink_to(secret / "notes")
    granted = replace(settings, readable=(settings.project / "vendor",), path=f"{settings.project}/program")
    found = seen(granted, "cat", f"{settings.project}/word", writable="project", readable="project/config")
    assert access(found, secret / "notes") in (Access.HIDDEN, Access.PRIVATE)


def test_a_link_on_the_way_makes_no_difference(settings: SandboxSettings, tmp_path: Path) -> None:
    """G05: a folder is granted, and hidden, as it is called and as it is."""
    (tmp_path / "link").symlink_to(settings.home)
    by_link = replace(settings, project=tmp_path / "link" / "project")
    found = seen(replace(by_link, readable=(settings.home,)))
    assert access(found, settings.project / ".env") is Access.HIDDEN


@pytest.mark.parametrize("home", ["/", "/usr/sbin", "/nonexistent"])
def test_an_account_without_a_folder_of_its_own_is_given_one(settings: SandboxSettings, home: str) -> None:
    """G05: no folder of the system is masked for it."""
    found = seen(replace(settings, home=Path(home)))
    assert found.home.startswith("/tmp/") and access(found, Path("/usr/bin/env")) is Access.READ


def test_a_folder_is_opened_part_by_part_around_what_is_closed(tmp_path: Path) -> None:
    """G05: rules that only add cannot take away."""
    for name in ("a/x", "b/secret", "b/open"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "b" / "secret").chmod(0o700)
    assert only_for_root(str(tmp_path)) == (f"{tmp_path}/b/secret",)
    parts = sorted(open_parts(str(tmp_path), only_for_root(str(tmp_path))))
    assert parts == [f"{tmp_path}/a", f"{tmp_path}/b/open"]
