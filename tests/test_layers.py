"""The rooms of the house: who may import whom, and where the world may be touched."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "ganger"

INNER = frozenset({"ports", "core", "contracts", "errors"})
ADAPTERS = frozenset(
    {"agents", "launchers", "stores", "workspaces", "sandboxes", "forges", "reports", "notices", "runners"}
)
APPLICATION = frozenset(
    {
        "app",
        "fleet",
        "check",
        "check_ground",
        "contents",
        "control",
        "runs",
        "start",
        "doctor",
        "land",
        "clean",
        "notify",
        "delivery",
        "outposts",
        "masks",
        "policies",
        "prompt_sizes",
        "places",
        "without_effect",
    }
)
SCREENS = frozenset({"cli", "tui", "web", "mcp", "demo", "__main__"})

MAY_IMPORT: Mapping[str, frozenset[str]] = {
    "errors": frozenset(),
    "scratch": frozenset(),
    "streams": frozenset(),
    "contracts": frozenset({"errors"}),
    "core": frozenset({"contracts", "errors"}),
    "dev": frozenset({"errors"}),
    "worker": frozenset(),
    "config": frozenset(
        {"config_sections", "contracts", "errors", "core.vocabulary", "core.verify.commands", "core.sentences.notable"}
    )
    | {"worker.folders"},
    "config_sections": frozenset({"core.verify.commands"}),
    "hooks": frozenset({"errors", "worker.folders"}),
    "notify": INNER | {"config", "notices"},
    "ports": frozenset({"core", "contracts", "errors"}),
    **dict.fromkeys(ADAPTERS, INNER | {"scratch"}),
    "engine": INNER | {"scratch"},
    "views": INNER | {"config"},
    "check": INNER | {"config", "check_argv", "check_copies", "check_delivery"},
    "check_argv": INNER | {"config"},
    "check_ground": INNER | {"check", "config", "delivery", "fleet", "outposts", "project_sandbox", "workspaces"},
    "project_sandbox": INNER | {"config", "delivery", "sandboxes", "workspaces"},
    "check_copies": INNER | {"config", "workspaces"},
    "check_delivery": INNER | {"config"},
    "contents": INNER | {"engine.files", "workspaces"},
    "control": INNER | {"engine.files", "stores"},
    "app": INNER
    | ADAPTERS
    | {
        "engine",
        "scratch",
        "views",
        "config",
        "check",
        "contents",
        "fleet",
        "masks",
        "notify",
        "worker",
        "delivery",
        "places",
        "policies",
        "project_sandbox",
    },
    "delivery": INNER | {"config", "engine.files", "engine.resources.delivery_target", "forges", "workspaces"},
    "fleet": INNER | {"agents", "engine.resources.run_resources", "config", "check"},
    "policies": INNER | {"config"},
    "without_effect": INNER | {"agents.table", "agents.settings_read", "check", "config", "places", "project_sandbox"},
    "masks": INNER | {"agents", "config", "delivery", "fleet", "notify"},
    "places": INNER | {"config", "engine.files", "scratch", "worker.folders"},
    "runs": INNER | {"config", "engine.files", "places", "stores"},
    "land": INNER
    | {
        "app",
        "places",
        "project_sandbox",
        "check",
        "config",
        "delivery",
        "engine",
        "launchers",
        "stores",
        "workspaces",
    },
    "clean": INNER | {"app", "config", "engine.files", "engine.resources.agent_homes", "places", "runs", "workspaces"},
    "prompt_sizes": INNER | {"app", "check", "config", "delivery", "engine", "places", "views", "workspaces"},
    "start": INNER | {"config", "engine.files", "workspaces"},
    "outposts": INNER | {"config", "delivery", "forges", "workspaces"},
    "doctor": INNER
    | {
        "app",
        "check",
        "check_copies",
        "outposts",
        "places",
        "project_sandbox",
        "runs",
        "config",
        "engine.files",
        "stores",
        "sandboxes",
    },
    **dict.fromkeys(
        SCREENS,
        INNER | SCREENS | APPLICATION | {"views", "config", "engine", "dev", "worker", "hooks", "streams"},
    ),
    "__init__": INNER | {"app", "views", "config"},
}

THIRD_PARTY: Mapping[str, frozenset[str]] = {
    "click": frozenset({"cli"}),
    "pydantic": frozenset({"contracts", "config", "config_sections", "views"}),
    "pydantic_core": frozenset({"contracts", "config"}),
    "annotated_types": frozenset({"contracts", "config"}),
    "apprise": frozenset({"notices"}),
    "apsw": frozenset({"stores"}),
    "httpx": frozenset({"forges"}),
    "rich": frozenset({"cli", "demo"}),
    "yaml": frozenset({"contracts"}),
}

PURE_MODULES = """
    __future__ abc base64 bisect collections copy dataclasses datetime decimal difflib enum fnmatch fractions functools
    graphlib hashlib heapq itertools json math operator pathlib posixpath re shlex statistics string textwrap types
    typing unicodedata zlib
"""
IMPURE_BUILTINS = frozenset({"open", "print", "input"})
IMPURE_METHODS = """
    now utcnow today
    absolute chmod cwd exists expanduser glob hardlink_to home is_dir is_file is_symlink iterdir lstat mkdir open
    read_bytes read_text readlink resolve rglob rmdir samefile stat symlink_to touch unlink walk write_bytes write_text
"""
ENVIRONMENT = frozenset({"environ", "environb", "getenv", "getenvb", "putenv"})
# The scripted agent is a process of its own and learns its task from its environment, as every agent does.
# A worker that reports is one too.
# What runs inside a sandbox hands its own environment on to the agent.
READS_ENVIRONMENT = frozenset(
    {"config.py", "__main__.py", "agents/scripted/play.py", "sandboxes/inside.py", "worker/commands.py"}
)

Import = tuple[int, str, str]


def room_of(file: Path, package: Path) -> str:
    return file.relative_to(package).parts[0].removesuffix(".py")


def imports_of(tree: ast.Module, file: Path, package: Path) -> Iterator[Import]:
    """(line, module, name) of every import, at any depth; relative ones made absolute."""
    place = ("ganger", *file.relative_to(package).parent.parts)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name, "") for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parents = place[: len(place) - node.level + 1] if node.level else ()
            module = ".".join([*parents, *filter(None, [node.module])])
            yield from ((node.lineno, module, alias.name) for alias in node.names)
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
            yield from ((node.lineno, str(a.value), "") for a in node.args[:1] if isinstance(a, ast.Constant))


def layer_faults(room: str, found: Import) -> Iterator[str]:
    _, module, name = found
    target = ".".join(filter(None, [module.partition("ganger")[2].lstrip("."), name]))
    other = target.partition(".")[0]
    if module == "ganger" and other not in MAY_IMPORT:
        return
    allowed = MAY_IMPORT.get(room, frozenset())
    if other != room and other not in allowed and not any(f"{target}.".startswith(f"{a}.") for a in allowed):
        yield f"{room} may not import {other}"


def outside_faults(room: str, found: Import) -> Iterator[str]:
    top = found[1].partition(".")[0]
    if top not in sys.stdlib_module_names and room not in THIRD_PARTY.get(top, frozenset()):
        yield f"{room} may not import the package {top}"
    if top == "sqlite3":
        yield "sqlite3 is banned: two SQLite copies in one process break locking"
    if room == "core" and top in sys.stdlib_module_names and top not in PURE_MODULES.split():
        yield f"core is pure and may not import {top}"


def purity_faults(tree: ast.Module) -> Iterator[tuple[int, str]]:
    touching = IMPURE_METHODS.split()
    for node in ast.walk(tree):
        if isinstance(node, ast.AsyncFunctionDef | ast.Await | ast.AsyncFor | ast.AsyncWith):
            yield node.lineno, "core is pure and may not wait"
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in IMPURE_BUILTINS:
            yield node.lineno, f"core is pure and may not call {node.func.id}()"
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in touching:
            yield node.lineno, f"core is pure and may not touch the world with .{node.func.attr}()"


def environment_faults(tree: ast.Module, imports: list[Import]) -> Iterator[tuple[int, str]]:
    message = "only config.py and __main__.py read the environment"
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in ENVIRONMENT and ast.unparse(node.value) == "os":
            yield node.lineno, message
    yield from ((line, message) for line, module, name in imports if module == "os" and name in ENVIRONMENT)


def faults_in(file: Path, package: Path) -> Iterator[tuple[int, str]]:
    tree = ast.parse(file.read_text(encoding="utf-8"), str(file))
    room = room_of(file, package)
    imports = list(imports_of(tree, file, package))
    for found in imports:
        check = layer_faults if found[1].partition(".")[0] == "ganger" else outside_faults
        yield from ((found[0], message) for message in check(room, found))
    if room == "core":
        yield from purity_faults(tree)
    if file.relative_to(package).as_posix() not in READS_ENVIRONMENT:
        yield from environment_faults(tree, imports)


def faults(package: Path) -> list[str]:
    return [
        f"{file.relative_to(package.parent)}:{line}: {message}"
        for file in sorted(package.rglob("*.py"))
        for line, message in sorted(set(faults_in(file, package)))
    ]


BAD = [
    ("core/x.py", "import os", "core is pure and may not import os"),
    ("core/x.py", "from pathlib import Path\nPath('a').read_text()", "may not touch the world with .read_text()"),
    ("core/x.py", "import time", "core is pure and may not import time"),
    ("core/x.py", "import asyncio", "core is pure and may not import asyncio"),
    ("core/x.py", "from datetime import datetime\ndatetime.now()", "may not touch the world with .now()"),
    ("core/x.py", "async def f(): ...", "core is pure and may not wait"),
    ("core/x.py", "def f(p): return open(p)", "core is pure and may not call open()"),
    ("core/x.py", "from ganger.ports import Store", "core may not import ports"),
    ("core/x.py", "from ..engine import run", "core may not import engine"),
    ("core/x.py", "def f():\n    from ganger.app import build", "core may not import app"),
    ("contracts/x.py", "from ganger.core.vocabulary import Tier", "contracts may not import core"),
    ("errors.py", "import ganger.contracts", "errors may not import contracts"),
    ("launchers/x.py", "from ganger.engine import run", "launchers may not import engine"),
    ("stores/x.py", "from ganger import engine", "stores may not import engine"),
    ("agents/x.py", "from ganger.launchers.local import L", "agents may not import launchers"),
    ("engine/x.py", "from ganger.stores.sqlite import S", "engine may not import stores"),
    ("engine/x.py", "import importlib\nimportlib.import_module('ganger.stores')", "engine may not import stores"),
    ("cli/x.py", "from ganger.stores import sqlite", "cli may not import stores"),
    ("views/x.py", "from ganger.stores import sqlite", "views may not import stores"),
    ("config.py", "from ganger.core.plan import order", "config may not import core"),
    ("stores/x.py", "import sqlite3", "sqlite3 is banned"),
    ("engine/x.py", "import click", "engine may not import the package click"),
    ("cli/x.py", "import requests", "cli may not import the package requests"),
    ("engine/x.py", "import os\nos.environ['A']", "only config.py and __main__.py read the environment"),
    ("engine/x.py", "from os import getenv", "only config.py and __main__.py read the environment"),
]

GOOD = [
    ("core/x.py", "from datetime import datetime\nfrom pathlib import Path\nfrom .plan import order"),
    ("core/x.py", "from ganger.contracts.manifest import Task\nfrom ganger.errors import GangerError"),
    ("config.py", "import os\nfrom ganger.core.vocabulary import Tier\nimport pydantic\nos.environ['A']"),
    ("stores/x.py", "import apsw, os\nimport ganger\nfrom ganger import ports, __version__"),
    ("app.py", "from ganger.engine import run\nfrom ganger.stores.sqlite import S"),
    ("cli/x.py", "import click\nfrom ganger.app import build\nfrom ganger.demo import fleet"),
]


def plant(folder: Path, file: str, source: str) -> Path:
    package = folder / "ganger"
    (package / file).parent.mkdir(parents=True, exist_ok=True)
    (package / file).write_text(source, encoding="utf-8")
    return package


@pytest.mark.parametrize(("file", "source", "message"), BAD)
def test_a_planted_breach_is_named_with_its_file_and_line(tmp_path: Path, file: str, source: str, message: str) -> None:
    found = faults(plant(tmp_path, file, source))
    line = source.count("\n") + 1
    assert any(fault.startswith(f"ganger/{file}:{line}: ") and message in fault for fault in found), found


@pytest.mark.parametrize(("file", "source"), GOOD)
def test_an_allowed_import_is_no_breach(tmp_path: Path, file: str, source: str) -> None:
    assert faults(plant(tmp_path, file, source)) == []


def test_every_import_goes_inwards_and_every_package_stays_in_its_room() -> None:
    """T24: the core names no CLI and no adapter, because it can import none."""
    found = faults(PACKAGE)
    assert not found, "\n" + "\n".join(found)


def test_every_room_has_a_rule() -> None:
    rooms = {room_of(file, PACKAGE) for file in PACKAGE.rglob("*.py")}
    assert rooms <= set(MAY_IMPORT)


def test_no_test_opens_a_second_sqlite() -> None:
    for folder in ("checker", "tests", "bench", "scripts", "faults", "sim"):
        for file in (ROOT / folder).rglob("*.py"):
            modules = {found[1] for found in imports_of(ast.parse(file.read_text(encoding="utf-8")), file, ROOT)}
            assert "sqlite3" not in modules, file


PROGRAMS = re.compile(r"\b(?:claude|codex|opencode|gemini|qwen|copilot|anthropic|openai)\b", re.IGNORECASE)


def test_no_agent_program_is_named_where_decisions_are_made() -> None:
    """T24: neither in code nor in words: what one of them does is known in its own file."""
    rooms = [PACKAGE / room for room in ("core", "engine", "contracts", "launchers", "stores")]
    files = [
        *sorted((PACKAGE / "ports").rglob("*.py")),
        *(file for room in rooms for file in sorted(room.rglob("*.py"))),
    ]
    named = [str(file) for file in files if PROGRAMS.search(file.read_text(encoding="utf-8"))]
    assert len(files) > 80 and named == []
    assert PROGRAMS.search((PACKAGE / "agents" / "table.py").read_text(encoding="utf-8"))
