"""Files that verify commands reach through a script, a Makefile or a package's scripts, two steps deep."""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from ganger.workspaces.gate_commands import Orders, read_orders
from ganger.workspaces.lines import listed

# A script also calls the program it tests. Only what lies beside it, or in a folder of tools, belongs to the gate.
TOOL_FOLDERS = listed("scripts script tools tool ci .ci hack devtools dev build-tools checks check qa bin etc")
_DEEP = 3
_LARGEST = 256 << 10
_MAKEFILES = ("Makefile", "makefile", "GNUmakefile")
_IMPORT = re.compile(r"^[ \t]*(?:from|import)[ \t]+\.?(\w+)", re.MULTILINE)
_SHELL_HEAD = re.compile(r"#!.*\b(?:ba|da|z|k|a)?sh\b")

ReadBase = Callable[[str], bytes]


@dataclass(frozen=True, slots=True)
class Reach:
    """`files` leads from a path to the script that uses it; `programs` are what the scripts call."""

    files: Mapping[str, str]
    programs: frozenset[str]


def reach_of(orders: Orders, read_base: ReadBase) -> Reach:
    """What the commands name themselves is not among it."""
    files: dict[str, str] = {}
    programs: set[str] = set()
    todo = [*sorted(orders.named), *_recipes(orders)]
    for _ in range(_DEEP):
        used = [(user, _used_by(user, read_base)) for user in todo]
        programs.update(name for _, (_, names) in used for name in names)
        found = {path: user for user, (paths, _) in used for path in paths}
        todo = [path for path in found if path not in files and path not in orders.named]
        files.update((path, found[path]) for path in todo)
    return Reach(files, frozenset(programs))


def _recipes(orders: Orders) -> Iterator[str]:
    if not orders.programs.isdisjoint({"make", "gmake"}):
        yield from (posixpath.join(folder, name) for folder in sorted(orders.folders) for name in _MAKEFILES)
    if not orders.programs.isdisjoint({"npm", "yarn", "pnpm", "bun"}):
        yield from (posixpath.join(folder, "package.json") for folder in sorted(orders.folders))


def _used_by(user: str, read_base: ReadBase) -> tuple[list[str], frozenset[str]]:
    """Files and programs."""
    content = read_base(user)
    if not content or len(content) > _LARGEST:
        return [], frozenset()
    text = content.decode("utf-8", "replace")
    folder, _, name = user.rpartition("/")
    if name.endswith(".py"):
        return [f"{folder}/{module}.py" for module in _IMPORT.findall(text) if folder], frozenset()
    orders = read_orders(_command_lines(name, text))
    return [path for path in sorted(orders.named) if _belongs(path, folder)], orders.programs


def _belongs(path: str, folder: str) -> bool:
    return path.split("/")[0] in TOOL_FOLDERS or (folder != "" and posixpath.dirname(path) == folder)


def _command_lines(name: str, text: str) -> list[str]:
    if name in _MAKEFILES or name.endswith(".mk"):
        return [line.lstrip("\t@-+ ") for line in text.splitlines() if line.startswith("\t")]
    if name == "package.json":
        return _package_scripts(text)
    if name.endswith((".sh", ".bash", ".zsh", ".bats")) or _SHELL_HEAD.match(text):
        return [line for line in map(str.strip, text.splitlines()) if line and not line.startswith("#")]
    return []


def _package_scripts(text: str) -> list[str]:
    try:
        package = json.loads(text)
    except (ValueError, RecursionError):
        return []
    scripts = package.get("scripts") if isinstance(package, dict) else None
    return [line for line in scripts.values() if isinstance(line, str)] if isinstance(scripts, dict) else []
