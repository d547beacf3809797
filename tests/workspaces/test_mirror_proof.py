"""The command that shows whether the mirror has a commit."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from ganger.app.delivery import _prover
from ganger.workspaces.rules.masking import Mask

SHA = "ab12" * 10
PASSWORD = "9fK2mQ7xW4vB8nR3tY6u"


def proved(tmp_path: Path, *command: str) -> tuple[bool, str]:
    async def ask() -> tuple[bool, str]:
        return await _prover(list(command), tmp_path, Mask([PASSWORD]))(SHA, "main")

    return asyncio.run(ask())


@pytest.mark.parametrize(
    ("program", "proves"),
    [
        (f"print('{SHA}\\trefs/heads/main')", True),
        ("print('0000\\trefs/heads/main')", False),
        ("pass", False),
        (f"print('{SHA}'); exit(1)", False),
        ("exit('{sha}' != '" + SHA + "')", True),
    ],
)
def test_a_command_proves_the_very_commit(tmp_path: Path, program: str, proves: bool) -> None:
    """D01: `git ls-remote` ends well for any commit; without {sha} it is its output that counts."""
    assert proved(tmp_path, sys.executable, "-c", program)[0] is proves


def test_what_the_command_says_shows_no_secret(tmp_path: Path) -> None:
    """D19: git names the whole address it could not reach, and that ends in events and questions."""
    said = f"fatal: unable to access https://ann:{PASSWORD}@mirror.corp.net/x.git"
    assert PASSWORD not in proved(tmp_path, sys.executable, "-c", f"exit('{said}')")[1]


def test_a_command_that_cannot_run_is_named(tmp_path: Path) -> None:
    """D04: a person reads which program it was."""
    assert proved(tmp_path, "no-such-program") == (False, "no-such-program: No such file or directory")
