"""The script that takes something away from a machine takes it from the command alone."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LOOK = """
import os
from ganger.sandboxes.bubblewrap import find_bwrap
from ganger.sandboxes.landlock import is_there
print(find_bwrap(os.environ["PATH"]) is not None, is_there(), "CI" in os.environ)
"""


@pytest.mark.needs("root", "bwrap", "landlock")
@pytest.mark.parametrize(
    ("names", "found"),
    [((), "True True False"), (("bwrap",), "False True False"), (("bwrap", "landlock"), "False False False")],
)
def test_what_is_named_is_gone_and_only_for_the_command(names: tuple[str, ...], found: str) -> None:
    """So the tests run as on a machine with Landlock only, or with neither."""
    words = [sys.executable, str(ROOT / "scripts" / "without.py"), *names, "--", sys.executable, "-c", LOOK]
    env = {**os.environ, "CI": "true"}
    assert subprocess.run(words, env=env, capture_output=True, text=True, check=True).stdout.strip() == found
