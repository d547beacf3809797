"""Finds, before a run, copies of the project that its checks would test instead of the change."""

from __future__ import annotations

import os
import posixpath
import re
import shutil
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from ganger.config import PROJECT_FILE, Project
from ganger.contracts.verify_profile import VerifyProfiles
from ganger.core.model.records import TaskSpec
from ganger.core.verify.environment import child_environment
from ganger.errors import Fault
from ganger.workspaces.direct.installed import Copy, Product, copies_in, product_at, python_copies, sites_of
from ganger.workspaces.gates.commands import LINTERS, PYTHONS
from ganger.workspaces.gates.recipes import RecipeStep, unfolded

CODE = "INSTALLED_COPY"
_PYTESTS = frozenset({"pytest", "py.test"})
_OWN_PATH = re.compile(r"-[A-Za-z]*[IP][A-Za-z]*")
_LARGEST = 256 << 10
_WAY_OUT = f'or, if the checks import the checkout anyway, set workspace.installed_copies = "allow" ({PROJECT_FILE})'


def copy_faults(project: Project, specs: Iterable[TaskSpec], profiles: VerifyProfiles) -> list[Fault]:
    """A fault per copy, with its place and the next step."""
    if project.config.workspace.installed_copies == "allow":
        return []
    used = list(specs)
    found: dict[Path, Fault] = {}
    for repo in dict.fromkeys(spec.repo if spec.repo in project.config.repos else "" for spec in used):
        commands = _commands(profiles, {spec.verify_profile for spec in used})
        root = (project.root / project.config.repos[repo].path).resolve() if repo else project.root
        for where, copy in _Look(project, root, commands).harmful():
            message = f"{copy.place} holds {copy.what}: a check would test that instead of the change"
            found.setdefault(copy.place, Fault(where, CODE, f"{message}; {copy.remedy}; {_WAY_OUT}"))
    return list(found.values())


@dataclass(frozen=True, slots=True)
class _Command:
    text: str
    cwd: str


def _commands(profiles: VerifyProfiles, names: set[str]) -> list[_Command]:
    steps = [step for name, profile in profiles.profiles.items() if name in names for step in profile.steps]
    return [_Command(step.cmd, step.cwd or "") for step in steps]


class _Look:
    """One repository and the commands that judge its changes."""

    def __init__(self, project: Project, root: Path, commands: list[_Command]) -> None:
        self._config = project.config.workspace
        self._profiles = project.config.verify.profiles_file
        self._root = root
        self._product: Product = product_at(root)
        self._environ = child_environment(project.handed_on(), extra={})
        self._steps = [step for one in commands for step in unfolded(one.text, self._read, one.cwd)]
        self._pytest = _PytestSettings.of(root)

    def harmful(self) -> Iterator[tuple[str, Copy]]:
        """The copies, each with the place of the setting that brings it in."""
        is_direct = self._config.mode == "direct"
        for where, copy in self._all():
            if copy.kind == "editable" and is_direct:
                continue
            if copy.instead_of and all(self._imports_first(step, copy.instead_of) for step in self._steps):
                continue
            yield where, copy

    def _all(self) -> Iterator[tuple[str, Copy]]:
        if self._config.mode != "direct":
            for name in self._config.linked:
                for copy in copies_in(self._root / name, self._product):
                    yield f"{PROJECT_FILE}:workspace.linked", copy
            for name in self._config.copied:
                for copy in copies_in(self._root / name, self._product, copied=True):
                    yield f"{PROJECT_FILE}:workspace.copied", copy
        for prefix in self._prefixes():
            for site in sites_of(prefix):
                for copy in python_copies(site, self._product, prefix):
                    yield self._profiles, copy
        if self._config.mode != "direct":
            yield from self._search_path()

    def _search_path(self) -> Iterator[tuple[str, Copy]]:
        """PYTHONPATH is passed on to checks, and is searched right after the check's own folder."""
        for folder in self._environ.get("PYTHONPATH", "").split(os.pathsep):
            if folder.startswith("/") and self._product.holds(folder):
                remedy = "unset PYTHONPATH; a check can have its own: env PYTHONPATH=src pytest"
                yield self._profiles, Copy(Path(folder), "link", "the project's own folder, on PYTHONPATH", remedy)

    def _prefixes(self) -> list[Path]:
        """The environments of the programs that the checks run."""
        found: dict[Path, None] = {}
        for step in self._steps:
            for word in step.argv:
                name = posixpath.basename(word)
                if PYTHONS.fullmatch(name) or name in _PYTESTS or name in ("coverage", "tox", "nox"):
                    found |= dict.fromkeys(self._prefixes_of(word, step.cwd))
        return list(found)

    def _prefixes_of(self, word: str, cwd: str) -> Iterator[Path]:
        found = str(self._root / cwd / word) if "/" in word else shutil.which(word, path=self._environ.get("PATH", ""))
        if not found or not Path(found).is_file():
            return
        program = _interpreter(Path(found))
        yield program.parent.parent
        if not (program.parent.parent / "pyvenv.cfg").is_file():
            yield Path(os.path.realpath(program)).parent.parent
            yield Path(self._environ.get("HOME") or "/nonexistent") / ".local"

    def _imports_first(self, step: RecipeStep, folders: frozenset[str]) -> bool:
        """Whether this step searches these folders of its checkout before installed packages."""
        programs = step.programs
        if not programs or programs[-1] in LINTERS:
            return True
        return folders <= set(self._first_folders(step, programs))

    def _first_folders(self, step: RecipeStep, programs: list[str]) -> Iterator[str]:
        for word in step.argv:
            if word.startswith("PYTHONPATH="):
                yield from (_normal(step.cwd, folder) for folder in word.partition("=")[2].split(":"))
        at = next((at for at, word in enumerate(step.argv) if PYTHONS.fullmatch(posixpath.basename(word))), None)
        if at is not None and not any(_OWN_PATH.fullmatch(word) for word in step.argv[at + 1 : at + 2]):
            if "-m" in step.argv[at:]:
                yield step.cwd
            elif at + 1 < len(step.argv) and not step.argv[at + 1].startswith("-"):
                yield posixpath.dirname(_normal(step.cwd, step.argv[at + 1]))
        if not _PYTESTS.isdisjoint(programs) and not step.cwd:
            yield from self._pytest.folders

    def _read(self, path: str) -> str:
        try:
            with (self._root / path).open("rb") as file:
                return file.read(_LARGEST).decode("utf-8", "replace")
        except (OSError, ValueError):
            return ""


def _interpreter(program: Path) -> Path:
    """The interpreter of a program: a script made by pip names it in its first line."""
    try:
        with program.open("rb") as file:
            head = file.readline(1000)
    except OSError:
        return program
    words = head[2:].decode("utf-8", "replace").split() if head.startswith(b"#!/") else []
    return Path(words[0]) if words and PYTHONS.fullmatch(posixpath.basename(words[0])) else program


def _normal(cwd: str, path: str) -> str:
    plain = posixpath.normpath(posixpath.join(cwd, path))
    return "" if plain == "." else plain


@dataclass(frozen=True, slots=True)
class _PytestSettings:
    """The folders pytest puts at the front of the path when it runs at the root."""

    folders: tuple[str, ...]

    @classmethod
    def of(cls, root: Path) -> _PytestSettings:
        found = list(cls._pythonpath(root))
        texts = "".join(_small(root / name) for name in ("pytest.ini", "pyproject.toml", "tox.ini", "setup.cfg"))
        puts_folders = not re.search(r"import[-_]mode\W+importlib", texts)
        if puts_folders and any((root / name).is_file() for name in ("conftest.py", "tests/__init__.py")):
            found.append("")
        return cls(tuple(found))

    @staticmethod
    def _pythonpath(root: Path) -> Iterator[str]:
        try:
            table: object = tomllib.loads(_small(root / "pyproject.toml"))
        except (ValueError, RecursionError):
            table = {}
        for key in ("tool", "pytest", "ini_options", "pythonpath"):
            table = table.get(key) if isinstance(table, dict) else None
        words = table.split() if isinstance(table, str) else table if isinstance(table, list) else []
        for name in ("pytest.ini", "tox.ini", "setup.cfg"):
            if line := re.search(r"^pythonpath\s*=\s*(.+(?:\n\s+.+)*)", _small(root / name), re.MULTILINE):
                words = [*words, *line[1].split()]
        yield from (_normal("", str(word)) for word in words)


def _small(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(_LARGEST).decode("utf-8", "replace")
    except OSError:
        return ""
