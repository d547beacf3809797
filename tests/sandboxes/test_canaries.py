"""Secrets: twelve canaries, none of which an agent in the walls can find."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ganger.core.verify.environment import child_environment
from tests.sandboxes.canaries import DUMPER, LIKELY_PLACES, NAMES, planted
from tests.sandboxes.sandboxed import KINDS, PATH, place

# What Landlock cannot hide: every user sees the command lines of all.
SEEN_BY_ALL = {"landlock": ["argv"], "bubblewrap": []}


@pytest.mark.parametrize("kind", KINDS)
def test_no_canary_is_seen_within_the_walls(tmp_path: Path, kind: str) -> None:
    """G05 D19: environment, home, project, store, other processes: nothing of it is there."""
    here = place(tmp_path, kind)
    with planted(here.settings.home, here.settings.project, here.settings.state_dir / "run" / "ganger.db") as canaries:
        env = child_environment({"PATH": PATH, **canaries.environment()}, extra={})
        shown = here.run(sys.executable, "-S", "-c", DUMPER, str(tmp_path), *LIKELY_PLACES, env=env)
    assert shown.code == 0 and "HOME" in shown.out
    assert canaries.seen_in(shown.out + shown.err) == SEEN_BY_ALL[kind]


def test_without_walls_every_canary_is_seen(tmp_path: Path) -> None:
    """G05: planted bug, no walls and the whole environment; a dumper that finds nothing proves nothing."""
    home, project = tmp_path / "home", tmp_path / "project"
    with planted(home, project, project / ".ganger" / "ganger.db") as canaries:
        env = {"PATH": PATH, "HOME": str(home), **canaries.environment()}
        argv = [sys.executable, "-S", "-c", DUMPER, str(tmp_path)]
        shown = subprocess.run(argv, env=env, capture_output=True, text=True, check=True).stdout
    assert sorted(canaries.seen_in(shown)) == sorted(NAMES) and len(NAMES) == 12
