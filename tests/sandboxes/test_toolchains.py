"""Toolchains: what programs outside the system's folders need is there, and nothing else of a home."""

from __future__ import annotations

from pathlib import Path

import pytest

from ganger.sandboxes.paths import SYSTEM
from ganger.sandboxes.toolchains import of_program, on_path


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


def program(path: Path, first_line: str = "#!/bin/sh") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{first_line}\n")
    path.chmod(0o755)
    return path


def needed(home: Path, *folders: str) -> set[str]:
    found = on_path(":".join(f"{home}/{folder}" for folder in folders), str(home), SYSTEM)
    return {path.removeprefix(f"{home}/") for path in found}


def test_a_version_manager_is_needed_whole(home: Path) -> None:
    """G05: its shims read its own files."""
    program(home / ".pyenv" / "shims" / "python")
    assert needed(home, ".pyenv/shims") == {".pyenv"}


def test_a_prefix_is_needed_by_its_parts(home: Path) -> None:
    """G05: programs and libraries, not what else lies beside them."""
    program(home / ".npm-global" / "bin" / "agent")
    for part in ("lib", "etc"):
        (home / ".npm-global" / part).mkdir()
    assert needed(home, ".npm-global/bin") == {".npm-global/bin", ".npm-global/lib"}


def test_cargo_shows_its_programs_and_toolchains_and_no_token(home: Path) -> None:
    """G05 D19: the registry's token lies beside the programs."""
    program(home / ".cargo" / "bin" / "cargo")
    (home / ".cargo" / "credentials.toml").write_text("token")
    (home / ".rustup").mkdir()
    assert needed(home, ".cargo/bin") == {".cargo/bin", ".rustup"}


def test_links_and_first_lines_are_followed(home: Path) -> None:
    """G05: a link in ~/.local/bin to a tool whose interpreter lies in a third place."""
    python = program(home / "pythons" / "3.12" / "bin" / "python3")
    (home / "pythons" / "3.12" / "lib").mkdir()
    tool = program(home / "tools" / "agent" / "bin" / "agent", f"#!{python}")
    (home / ".local" / "bin").mkdir(parents=True)
    (home / ".local" / "bin" / "agent").symlink_to(tool)
    expected = {".local/bin", "tools/agent/bin", "pythons/3.12/bin", "pythons/3.12/lib"}
    assert needed(home, ".local/bin") == expected


def test_local_share_with_its_key_ring_is_never_shown(home: Path) -> None:
    """G05 D19: the desktop's passwords lie there."""
    program(home / ".local" / "bin" / "x")
    (home / ".local" / "share" / "keyrings").mkdir(parents=True)
    assert needed(home, ".local/bin") == {".local/bin"}


def test_a_virtual_environment_is_needed_whole(home: Path) -> None:
    """G05: its configuration lies above its programs."""
    program(home / "project" / ".venv" / "bin" / "tool")
    (home / "project" / ".venv" / "pyvenv.cfg").write_text("home = /usr/bin\n")
    assert needed(home, "project/.venv/bin") == {"project/.venv"}


@pytest.mark.parametrize("folder", ["", ".ssh", ".config/gh"])
def test_neither_a_home_nor_a_place_of_keys_is_shown_for_being_on_the_path(home: Path, folder: str) -> None:
    """G05 D19: PATH may say what it likes."""
    program(home / folder / "x")
    assert needed(home, folder) == set()


def test_a_program_in_a_node_module_is_needed_with_all_modules(home: Path) -> None:
    """G05: it loads its neighbours."""
    tool = program(home / "apps" / "node_modules" / "agent" / "cli.js", "#!/usr/bin/env node")
    assert of_program(str(tool), str(home)) == (f"{home}/apps/node_modules",)
