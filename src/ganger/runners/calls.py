"""The program that a command really starts: behind `env`, `uv run`, `npx` and the like, or an npm script."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ganger.core.verify.commands import CommandFault, parse_command

_PYTHON = re.compile(r"(?:python|pypy)[\d.]*$")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
# Programs that run the words after their own options, with the options that take a word.
_WRAPPERS = {
    "env": ("-u", "-C"),
    "nice": ("-n",),
    "timeout": ("-k", "-s"),
    "time": (),
    "xvfb-run": ("-s", "-n", "-e"),
    "npx": ("-p", "--package"),
    "bunx": (),
    "unbuffer": (),
    "stdbuf": ("-o", "-e", "-i"),
}
_WITH_RUN = {"uv": "run", "poetry": "run", "pdm": "run", "pipenv": "run", "hatch": "run", "rye": "run", "conda": "run"}
_WITH_EXEC = {"pnpm": ("exec", "dlx"), "npm": ("exec", "x"), "yarn": ("exec", "run"), "bundle": ("exec",)}
_TAKES_A_WORD = frozenset(("--with", "--python", "-p", "--extra", "--group", "--package", "-n", "--name", "--env-file"))
_PYTHON_OPTIONS_WITH_WORD = frozenset(("-W", "-X"))


@dataclass(frozen=True, slots=True)
class Program:
    """`at` is its index among the words, for a Python module that of the interpreter; `rest` is the index after both.

    `script`: npm or a similar program starts it, so added words go to the end, after `--`.
    """

    name: str
    at: int
    rest: int
    script: bool = False
    module: bool = False


def program_of(argv: Sequence[str], cwd: Path) -> Program | None:
    at = 0
    for _ in range(8):
        at = _skip_assignments(argv, at)
        if at >= len(argv):
            return None
        name = Path(argv[at]).name
        if _PYTHON.fullmatch(name):
            return _module(argv, at)
        if name == "coverage" and list(argv[at + 1 : at + 2]) == ["run"]:
            return _module(argv, at + 1, behind_coverage=True)
        step = _behind(argv, at, name)
        if step is None:
            return _script(argv, at, name, cwd) or Program(name, at, at + 1)
        at = step
    return None


def _skip_assignments(argv: Sequence[str], at: int) -> int:
    while at < len(argv) and _ASSIGNMENT.match(argv[at]):
        at += 1
    return at


def _behind(argv: Sequence[str], at: int, name: str) -> int | None:
    """The index of the program that this one starts; None if it starts none."""
    if name in _WRAPPERS:
        at = _skip_options(argv, at + 1, _WRAPPERS[name])
        return at + 1 if name == "timeout" else at
    word = argv[at + 1] if at + 1 < len(argv) else ""
    if _WITH_RUN.get(name) == word or word in _WITH_EXEC.get(name, ()):
        found = _skip_options(argv, at + 2, _TAKES_A_WORD)
        return None if name == "yarn" and word == "run" else found
    if name in ("yarn", "pnpm") and word in ("jest", "vitest"):
        return at + 1
    return None


def _skip_options(argv: Sequence[str], at: int, with_word: Sequence[str] | frozenset[str]) -> int:
    while at < len(argv) and argv[at].startswith("-"):
        if argv[at] == "--":
            return at + 1
        at += 2 if argv[at] in with_word else 1
    return at


def _module(argv: Sequence[str], at: int, *, behind_coverage: bool = False) -> Program | None:
    """`python -m NAME`, also after `-m coverage run -m`."""
    place = at + 1
    while place < len(argv) and argv[place].startswith("-") and argv[place] != "-m":
        place += 2 if argv[place] in _PYTHON_OPTIONS_WITH_WORD else 1
    if place + 1 >= len(argv) or argv[place] != "-m":
        return None
    if argv[place + 1] == "coverage" and list(argv[place + 2 : place + 3]) == ["run"]:
        return _module(argv, place + 2, behind_coverage=True)
    name = argv[place + 1]
    return Program("" if behind_coverage and name == "unittest" else name, at, place + 2, module=True)


def _script(argv: Sequence[str], at: int, name: str, cwd: Path) -> Program | None:
    """`npm test` and `npm run NAME`, if that script is one plain command."""
    if name not in ("npm", "pnpm", "yarn", "bun"):
        return None
    words = [word for word in argv[at + 1 :] if not word.startswith("-")]
    wanted = words[1] if words[:1] == ["run"] and len(words) > 1 else (words[0] if words else "")
    wanted = {"t": "test", "tst": "test"}.get(wanted, wanted)
    text = _scripts(cwd).get(wanted, "")
    parsed = parse_command(text, deny=()) if text else None
    if parsed is None or isinstance(parsed, CommandFault) or len(parsed.steps) != 1 or parsed.steps[0].cwd != ".":
        return None
    inner = program_of(parsed.steps[0].argv, cwd) if parsed.steps[0].argv[0] not in ("npm", "yarn", "pnpm") else None
    if inner is None:
        return None
    runs_tests = inner.name != "node" or "--test" in parsed.steps[0].argv
    return Program(inner.name if runs_tests else "", at, len(argv), script=True)


def _scripts(cwd: Path) -> dict[str, str]:
    try:
        found = json.loads((cwd / "package.json").read_text(encoding="utf-8"))["scripts"]
        return {str(name): str(text) for name, text in found.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}


def with_words(argv: tuple[str, ...], program: Program, *words: str) -> tuple[str, ...]:
    """Adds words for the program; before its own words if it is called directly."""
    if program.script:
        return (*argv, *(() if "--" in argv else ("--",)), *words)
    return (*argv[: program.rest], *words, *argv[program.rest :])
