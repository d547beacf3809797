"""Files that verify commands reach through a script, a Makefile or a package's scripts, two steps deep."""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Callable, Iterator

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


def reached_files(orders: Orders, read_base: ReadBase) -> dict[str, str]:
    """Path to the script that uses it; what the commands name themselves is not among them."""
    reached: dict[str, str] = {}
    todo = [*sorted(orders.named), *_recipes(orders)]
    for _ in range(_DEEP):
        found = {used: user for user in todo for used in _used_by(user, read_base)}
        todo = [path for path in found if path not in reached and path not in orders.named]
        reached.update((path, found[path]) for path in todo)
    return reached


def _recipes(orders: Orders) -> Iterator[str]:
    if not orders.programs.isdisjoint({"make", "gmake"}):
        yield from (posixpath.join(folder, name) for folder in sorted(orders.folders) for name in _MAKEFILES)
    if not orders.programs.isdisjoint({"npm", "yarn", "pnpm", "bun"}):
        yield from (posixpath.join(folder, "package.json") for folder in sorted(orders.folders))


def _used_by(user: str, read_base: ReadBase) -> Iterator[str]:
    content = read_base(user)
    if not content or len(content) > _LARGEST:
        return
    text = content.decode("utf-8", "replace")
    folder, _, name = user.rpartition("/")
    if name.endswith(".py"):
        yield from (f"{folder}/{module}.py" for module in _IMPORT.findall(text) if folder)
        return
    for used in read_orders(_command_lines(name, text)).named:
        if used.split("/")[0] in TOOL_FOLDERS or (folder and posixpath.dirname(used) == folder):
            yield used


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
