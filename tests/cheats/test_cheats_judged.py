"""The cheat suite on the safeguards: all refused, each would have worked without them, and the honest twin passes."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from ganger.ports.changes import Rules
from ganger.workspaces.rules.protected import DEFAULT_PROTECTED, Protection
from ganger.workspaces.safeguards import ChangeLimits, judge
from tests.cheats.cheat_catalogue import CHEATS, Cheat
from tests.cheats.cheat_project import ALL_COMMANDS, HONEST, PROTECTED_HERE, Planted, base_files, lay
from tests.cheats.folder_change import FolderChange
from tests.patience import stretched


def program_of(command: str) -> str:
    return command.split()[0]


LIMITS = ChangeLimits(Protection((*DEFAULT_PROTECTED, *PROTECTED_HERE)))
EVERY = [pytest.param(cheat, id=cheat.name) for cheat in CHEATS]
EFFECTIVE = [
    pytest.param(cheat, id=cheat.name, marks=[pytest.mark.needs(*cheat.needs)] if cheat.needs else [])
    for cheat in CHEATS
    if cheat.runs
]
RUNNABLE = [
    pytest.param(command, id=command.replace(sys.executable, "python"), marks=pytest.mark.needs(program_of(command)))
    for command in dict.fromkeys(command for cheat in CHEATS if cheat.runs for command in cheat.verify)
]
EVERY_COMMAND = (*ALL_COMMANDS, "cd rust && cargo test", "npx jest")


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project as the task finds it; nothing may be written into it."""
    folder = tmp_path_factory.mktemp("base")
    lay(folder, base_files())
    return folder


def changed(base: Path, tmp_path: Path, files: Mapping[str, Planted]) -> Path:
    """A copy with the change in it; files that stay are shared with the base."""
    after = tmp_path / "after"
    shutil.copytree(base, after, copy_function=os.link)
    lay(after, files)
    return after


def answers(base: Path, after: Path, rules: Rules) -> list[tuple[str, str]]:
    return [(one.path, one.code) for one in judge(FolderChange(base, after), rules, LIMITS)]


def is_green(folder: Path, command: str) -> bool:
    """The command as Ganger runs it: no shell, a plain environment."""
    env = {"PATH": os.environ["PATH"], "HOME": str(folder.parent), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        shlex.split(command), cwd=folder, env=env, capture_output=True, timeout=stretched(60), check=False
    )
    return done.returncode == 0


@pytest.mark.parametrize("cheat", EVERY)
def test_every_cheat_is_refused(base: Path, tmp_path: Path, cheat: Cheat) -> None:
    """G09: the first refusal is the one the catalogue names."""
    found = answers(base, changed(base, tmp_path, cheat.files), Rules(verify=cheat.verify))
    assert found and found[0][1] == cheat.code
    assert found[0][0] in cheat.files


@pytest.mark.sample(3)
@pytest.mark.brief(15)
@pytest.mark.parametrize("cheat", EFFECTIVE)
def test_without_the_gates_the_cheat_turns_the_real_command_green(base: Path, tmp_path: Path, cheat: Cheat) -> None:
    """G09 control: the command is green after the cheat, and a judge that knows no gates would let it through."""
    after = changed(base, tmp_path, cheat.files)
    assert [is_green(after, command) for command in cheat.verify] == [True] * len(cheat.verify)
    rules = Rules(verify=cheat.verify, may_change_gates=True, allow_shrinkage=True)
    assert answers(base, after, rules) == []


def test_the_honest_twin_passes_under_every_command(base: Path, tmp_path: Path) -> None:
    """G09: the fix, a new test, a document and two added dependencies are no offence."""
    assert answers(base, changed(base, tmp_path, HONEST), Rules(verify=EVERY_COMMAND)) == []


@pytest.mark.brief(7)
@pytest.mark.parametrize("command", RUNNABLE)
def test_only_the_honest_twin_repairs_the_project(base: Path, tmp_path: Path, command: str) -> None:
    """G09 control: every command that a cheat deceives is red before the fix and green after it."""
    after = changed(base, tmp_path, HONEST)
    assert (is_green(base, command), is_green(after, command)) == (False, True)


def test_the_catalogue_is_wide_enough() -> None:
    """G09: at least 24 ways, and no name twice."""
    assert len({cheat.name for cheat in CHEATS}) == len(CHEATS) >= 24
