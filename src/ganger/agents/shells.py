"""Withholds the program's own key from the commands a model runs, because any of them could print it into a log.

For programs that pass their whole environment to bash, which reads the file named by BASH_ENV before its command.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from ganger.agents.cli import CliAgent

SHELL_FILE = ".ganger-shell.sh"
_EXPANDED = re.compile(r"([$`\\\"])")


def shell_settings(home: Path | None, inside: str) -> Mapping[str, str]:
    """`inside` is a variable the program sets for its commands: a script that starts the program keeps the key."""
    if home is None:
        return {}
    # The shell expands the name of this file.
    return {"BASH_ENV": _EXPANDED.sub(r"\\\1", str(home.absolute() / SHELL_FILE)), inside: ""}


def shell_file(agent: CliAgent, inside: str, *more: str) -> Mapping[str, bytes]:
    """`more` are further variables that can hold a key."""
    names = sorted({"BASH_ENV", *agent.keys, *more, *((agent.given.key_env,) if agent.given.key_env else ())})
    return {SHELL_FILE: f'if [ -n "${{{inside}-}}" ]; then unset {" ".join(names)}; fi\n'.encode()}
