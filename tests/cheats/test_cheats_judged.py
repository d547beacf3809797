"""The cheat suite on the safeguards: all refused, each would have worked without them, and the honest twin passes."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest
from cheat_catalogue import CHEATS, Cheat
from cheat_project import ALL_COMMANDS, HONEST, PROTECTED_HERE, Planted, base_files, lay
from judged_change import MadeChange, codes, folder_entries

from ganger.ports import Rules
from ganger.workspaces.protect import DEFAULT_PROTECTED, Protection
from ganger.workspaces.safeguards import ChangeLimits

LIMITS = ChangeLimits(Protection((*DEFAULT_PROTECTED, *PROTECTED_HERE)))
EVERY = [pytest.param(cheat, id=cheat.name) for cheat in CHEATS]
EFFECTIVE = [
    pytest.param(cheat, id=cheat.name, marks=[pytest.mark.needs(*cheat.needs)] if cheat.needs else [])
    for cheat in CHEATS
    if cheat.runs
]
EVERY_COMMAND = (*ALL_COMMANDS, "cd rust && cargo test", "npx jest")


def projects(tmp_path: Path, files: Mapping[str, Planted]) -> tuple[Path, Path]:
    """The project before and after."""
    base, after = tmp_path / "base", tmp_path / "after"
    lay(base, base_files())
    shutil.copytree(base, after, symlinks=True)
    lay(after, files)
    return base, after


def answers(tmp_path: Path, files: Mapping[str, Planted], rules: Rules) -> list[tuple[str, str]]:
    base, after = projects(tmp_path, files)
    return codes(MadeChange(folder_entries(base), folder_entries(after)), rules, LIMITS)


def is_green(folder: Path, command: str) -> bool:
    """The command as Ganger runs it: no shell, a plain environment."""
    env = {"PATH": os.environ["PATH"], "HOME": str(folder.parent), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(shlex.split(command), cwd=folder, env=env, capture_output=True, timeout=60, check=False)
    return done.returncode == 0


@pytest.mark.parametrize("cheat", EVERY)
def test_every_cheat_is_refused(tmp_path: Path, cheat: Cheat) -> None:
    """G09: the first refusal is the one the catalogue names."""
    found = answers(tmp_path, cheat.files, Rules(verify=cheat.verify))
    assert found and found[0][1] == cheat.code
    assert found[0][0] in cheat.files


@pytest.mark.parametrize("cheat", EFFECTIVE)
def test_without_the_gates_the_cheat_turns_the_real_command_green(tmp_path: Path, cheat: Cheat) -> None:
    """G09 control: the command is red before, green after the cheat, and a judge without gates would let it through."""
    base, after = projects(tmp_path, cheat.files)
    assert [is_green(base, command) for command in cheat.verify] == [False] * len(cheat.verify)
    assert [is_green(after, command) for command in cheat.verify] == [True] * len(cheat.verify)
    change = MadeChange(folder_entries(base), folder_entries(after))
    assert codes(change, Rules(verify=cheat.verify, may_change_gates=True, allow_shrinkage=True), LIMITS) == []


def test_the_honest_twin_passes_under_every_command(tmp_path: Path) -> None:
    """G09: the fix, a new test, a document and two added dependencies are no offence."""
    assert answers(tmp_path, HONEST, Rules(verify=EVERY_COMMAND)) == []


@pytest.mark.needs("npm", "make")
@pytest.mark.parametrize("command", ALL_COMMANDS)
def test_the_honest_twin_really_repairs_the_project(tmp_path: Path, command: str) -> None:
    """G09: red before, green after."""
    base, after = projects(tmp_path, HONEST)
    assert (is_green(base, command), is_green(after, command)) == (False, True)


def test_the_catalogue_is_wide_enough() -> None:
    """G09: at least 24 ways, and no name twice."""
    assert len({cheat.name for cheat in CHEATS}) == len(CHEATS) >= 24
