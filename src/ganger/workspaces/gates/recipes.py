"""What a command ends up running: through make, package scripts and shell scripts, a few steps deep."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ganger.workspaces.gates.commands import MAKES, PACKAGERS, SHELLS, programs_of, steps_of
from ganger.workspaces.gates.make import MAKEFILES, read_makefile
from ganger.workspaces.gates.packages import package_scripts, reached_scripts

_DEEPEST = 4
_MOST_LINES = 200
_SHELL_ENDS = (".sh", ".bash", ".zsh")

Read = Callable[[str], str]


@dataclass(frozen=True, slots=True)
class RecipeStep:
    """One program with its arguments, and the folder it runs in, from the root ("" is the root itself)."""

    argv: tuple[str, ...]
    cwd: str

    @property
    def programs(self) -> list[str]:
        """The program, those it wraps, and for Python the module."""
        return programs_of(self.argv)


def unfolded(command: str, read: Read, cwd: str = "") -> list[RecipeStep]:
    """`read` gives the text of a project file, None where it does not exist. A call that cannot be resolved stays as it
    is."""
    return list(_unfolded(command, read, cwd, _DEEPEST))


def _unfolded(command: str, read: Read, cwd: str, depth: int) -> Iterator[RecipeStep]:
    for argv, inner in steps_of(command):
        place = _normal(posixpath.join(cwd, inner))
        step = RecipeStep(argv, place)
        lines = _lines_of(step, read)[:_MOST_LINES] if depth else []
        for line in lines:
            yield from _unfolded(line, read, place, depth - 1)
        if not lines:
            yield step


def _lines_of(step: RecipeStep, read: Read) -> list[str]:
    programs = step.programs
    last = programs[-1] if programs else ""
    words = [word for word in step.argv[1:] if word[:1] != "-" and "=" not in word]
    if last in MAKES:
        return _recipe(step.cwd, words, read)
    if last in PACKAGERS:
        scripts = package_scripts(read(posixpath.join(step.cwd, "package.json")))
        reached = reached_scripts(scripts, words)
        return [line for name, line in scripts.items() if name in reached]
    script = next((word for word in step.argv if word.endswith(_SHELL_ENDS)), "")
    if script and (last in SHELLS or last == posixpath.basename(script)):
        text = read(_normal(posixpath.join(step.cwd, script)))
        return [line for line in map(str.strip, text.splitlines()) if line and line[0] != "#"]
    return []


def _recipe(folder: str, goals: list[str], read: Read) -> list[str]:
    """make reads the first of its three default names that exists."""
    for name in reversed(MAKEFILES):
        if text := read(posixpath.join(folder, name)):
            for included in read_makefile(text).included:
                text += "\n" + read(_normal(posixpath.join(folder, included)))
            made = read_makefile(text)
            known = {rule.target for rule in made.rules}
            return made.lines_for(goals) if not goals or known.intersection(goals) else []
    return []


def _normal(path: str) -> str:
    plain = posixpath.normpath(path) if path else ""
    return "" if plain == "." else plain
