"""Files named in agents' command lines; missing ones are found before a run."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from ganger.config import PROJECT_FILE, Project
from ganger.errors import Fault

CODE = "ARGV_FILE_MISSING"
_INTERPRETER = re.compile(r"(?:python|pypy)[\d.]*|node(?:js)?|deno|bun|ruby|perl|php|(?:ba|da|z|k|a)?sh|tsx|ts-node")
# The argument after these is not a file: it is a module, code, or read elsewhere.
_NO_SCRIPT = ("-m", "-c", "-e", "-p", "-r", "--eval", "--print", "-")
_RUN = ("run",)


def argv_faults(project: Project) -> list[Fault]:
    """Scripts that an interpreter should run and that do not exist."""
    return [_fault(place, word) for place, word in _scripts(project) if not _is_there(project.root, word)]


def argv_warnings(project: Project) -> list[Fault]:
    """Other absolute paths that do not exist; an agent may be meant to create them."""
    scripts = set(_scripts(project))
    found = [(place, word) for name, argv in _used(project) for place, word in _words(name, argv)]
    return [
        _fault(place, word)
        for place, word in found
        if (place, word) not in scripts and word.startswith("/") and not _is_there(project.root, word)
    ]


def _fault(place: str, word: str) -> Fault:
    message = f"{word} does not exist; create the file or correct the path"
    return Fault(f"{PROJECT_FILE}:{place}", CODE, message)


def _used(project: Project) -> Iterator[tuple[str, Sequence[str]]]:
    config = project.config
    names = {name for role in config.roles.values() for name in (role.agent, role.fallback) if name}
    for name, agent in config.agents.items():
        if name in names and agent.argv:
            yield name, agent.argv


def _words(name: str, argv: Sequence[str]) -> list[tuple[str, str]]:
    places = [(f"agents.{name}.argv[{number}]", word) for number, word in enumerate(argv)]
    return [(place, word) for place, word in places[1:] if "{" not in word and "\0" not in word]


def _scripts(project: Project) -> Iterator[tuple[str, str]]:
    for name, argv in _used(project):
        if _INTERPRETER.fullmatch(Path(argv[0]).name) is None:
            continue
        for place, word in _words(name, argv):
            if word in _NO_SCRIPT:
                break
            if word.startswith("-") or word in _RUN:
                continue
            yield place, word
            break


def _is_there(root: Path, word: str) -> bool:
    try:
        return (root / word).exists()
    except OSError:
        return False
