"""Choosing: the strongest walls that stand, found by trying; said plainly where there are none."""

from __future__ import annotations

from pathlib import Path

import pytest

from ganger.errors import GangerError
from ganger.ports.processes import Launch
from ganger.ports.sandbox import Room
from ganger.sandboxes import choose as choosing, landlock
from ganger.sandboxes.choose import AnySandbox, choose, fault_of
from ganger.sandboxes.none import NoSandbox
from ganger.sandboxes.settings import SandboxSettings, Use
from tests.sandboxes.sandboxed import PATH


@pytest.fixture(autouse=True)
def forgetful(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choosing, "_stood", set())


def settings(folder: Path, use: Use = "auto") -> SandboxSettings:
    (folder / ".ganger").mkdir(exist_ok=True)
    return SandboxSettings(folder, folder / ".ganger", folder, PATH, use=use)


def fake_bwrap(folder: Path, monkeypatch: pytest.MonkeyPatch, code: str) -> None:
    fake = folder / "bwrap"
    fake.write_text(f"#!/bin/sh\n{code}\n")
    fake.chmod(0o755)
    monkeypatch.setattr(choosing, "find_bwrap", lambda path: str(fake))


@pytest.mark.needs("bwrap")
def test_bubblewrap_is_chosen_where_it_stands(tmp_path: Path) -> None:
    """G05: by default, without being asked for."""
    assert choose(settings(tmp_path)).name == "bubblewrap"


def test_a_bubblewrap_that_fails_is_not_believed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """G05: installed is not enough; user namespaces may be forbidden."""
    fake_bwrap(tmp_path, monkeypatch, "echo 'bwrap: No permissions to create a new namespace' >&2; exit 1")
    assert choose(settings(tmp_path)).name == ("landlock" if landlock.is_there() else "none")


def test_walls_that_hold_nothing_are_found_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """G05: planted bug, a bubblewrap that only runs the program."""
    fake_bwrap(tmp_path, monkeypatch, 'while [ "$1" != -- ]; do shift; done; shift; exec "$@"')
    assert choose(settings(tmp_path)).name != "bubblewrap"
    assert fault_of(NoSandbox(), settings(tmp_path)) != ""


def test_required_and_missing_is_an_error_that_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """G05: `require` never runs an agent without walls."""
    fake_bwrap(tmp_path, monkeypatch, "echo 'bwrap: no namespaces' >&2; exit 1")
    monkeypatch.setattr(landlock, "landlock_version", lambda: 0)
    with pytest.raises(GangerError, match="bwrap: no namespaces") as caught:
        choose(settings(tmp_path, "require"))
    assert caught.value.code == "SANDBOX_UNAVAILABLE" and "apt install bubblewrap" in caught.value.hint


def test_off_is_off(tmp_path: Path) -> None:
    """G05: the operator's explicit word."""
    launch = Launch("k", ("true",), tmp_path, {}, None, tmp_path / "log", None)
    walls = choose(settings(tmp_path, "off"))
    assert (walls.name, walls.owner, walls.confine(launch, Room())) == ("none", None, launch)


@pytest.mark.needs("bwrap")
def test_what_stood_once_is_not_tried_again_until_the_next_boot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """G05: a run's start pays for the trial once on a machine."""
    choose(settings(tmp_path))
    monkeypatch.setattr(choosing, "_stood", set())
    tried: list[AnySandbox] = []

    def fault_of(walls: AnySandbox, _: SandboxSettings) -> str:
        tried.append(walls)
        return ""

    monkeypatch.setattr(choosing, "fault_of", fault_of)
    assert choose(settings(tmp_path)).name == "bubblewrap" and tried == []
    (tmp_path / ".ganger" / "sandbox.json").write_text("half")
    monkeypatch.setattr(choosing, "_stood", set())
    assert choose(settings(tmp_path)).name == "bubblewrap" and len(tried) == 1
