"""The rooms of the house: who may import whom, and where the world may be touched."""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "ganger"

INNER = frozenset({"ports", "core", "contracts", "errors"})
ADAPTERS = frozenset(
    {"agents", "launchers", "stores", "workspaces", "sandboxes", "forges", "endpoint", "notices", "runners"}
)
SCREENS = frozenset({"cli", "tui", "web", "mcp", "demo", "__main__"})

MAY_IMPORT: Mapping[str, frozenset[str]] = {
    "errors": frozenset(),
    "local": frozenset({"errors"}),
    "contracts": frozenset({"errors"}),
    "core": frozenset({"contracts", "errors"}),
    "dev": frozenset({"errors"}),
    "worker": frozenset(),
    "config": frozenset(
        {
            "contracts",
            "errors",
            "core.model.counters",
            "core.vocabulary",
            "core.verify.commands",
            "core.events.notable",
        }
    )
    | {"worker.folders"},
    "hooks": frozenset({"errors", "worker.folders"}),
    "ports": frozenset({"core", "contracts", "errors"}),
    **dict.fromkeys(ADAPTERS, INNER | {"local"}),
    "engine": INNER | {"local"},
    "views": INNER | {"config"},
    "app.agents": INNER | {"app", "agents", "config", "engine.resources"},
    "app.checks": INNER | {"app", "config"},
    "app.checks.copies": INNER | {"app", "config", "workspaces"},
    "app.checks.without_effect": INNER | {"app", "agents.table", "config"},
    "app.commands": INNER
    | {"app", "config", "engine", "launchers", "local", "sandboxes", "stores", "views", "workspaces"},
    "app.compose": INNER | ADAPTERS | {"app", "config", "engine", "local", "views"},
    "app.control": INNER | {"app", "local"},
    "app.delivery": INNER | {"app", "config", "engine.resources", "forges", "local", "workspaces"},
    "app.masks": INNER | {"app", "agents", "config"},
    "app.notices": INNER | {"app", "config", "notices"},
    "app.policies": INNER | {"config"},
    "app.preflight": INNER | {"app", "config", "forges", "workspaces"},
    "app.prompt_files": INNER | {"local", "workspaces"},
    "app.run_places": INNER | {"config", "local", "stores.table", "worker.folders"},
    "app.runs": INNER | {"app", "config", "local", "stores.table"},
    "app.sandbox": INNER | {"app", "config", "sandboxes", "workspaces"},
    "app.worker_program": INNER | {"engine.resources", "local", "worker"},
    "app": INNER,
    **dict.fromkeys(SCREENS, INNER | SCREENS | {"app", "views", "config", "engine", "dev", "worker", "hooks", "local"}),
    "__init__": INNER | {"app", "views", "config"},
}

# From the inside out: what stands in a room, folders and the files beside them. Each may import what stands before it.
ORDER: Mapping[str, str] = {
    "contracts": """
        codes ids reading model heal_decision manifest state task_result verify_profile worker digest faults schemas
        parser
    """,
    "core": """
        plain_values vocabulary names times path_patterns signs agent_output model settings prompts events
        command_result failures money planning logs delivery verify masking state healing scheduling
        control replay
    """,
    "ports": """
        clock copies endpoint fixed forge keys runners sessions store changes processes sandbox agents workspace
        repository __init__
    """,
    "engine": """
        direct_lock change_strategy stop_guard journal log_masks prompts verification resources attempt_context merging
        output attempt_outcome agent_calls healing workers attempt delivery.pollers delivery.context
        delivery.shared_push delivery.status_comment delivery.request_commits delivery.push delivery.ci
        delivery.requests delivery.reviews delivery.deliver changes recover lead
    """,
    "stores": "database leases lead_lock on_thread sqlite table",
    "launchers": "messages ledger processes leftovers paths guard frozen programs connect keeper launcher",
    "workspaces": "refusals files rules gates git remotes safeguards direct",
    "agents": """
        sign_lines child_processes settings streams versions result_schema reset_times  pull table usage
        words command cli shells scripted pty programs acp
    """,
    "forges": """
        settings untrusted webhook command http api ci comments labels version forge pull_requests gitea github gitlab
        forgejo table __init__
    """,
    "sandboxes": """
        settings paths filters kernel none concealed machine process toolchains trial inside view landlock bubblewrap
        choose probes
    """,
    "worker": """
        folders errors arguments output http identity claims find_run spool sending table requests next reading mcp
        commands __init__ __main__
    """,
    "views": "text reference run history planned",
    "app": """
        run_places delivery policies notices prompt_files runs control preflight sandbox checks agents masks
        worker_program compose commands
    """,
}

THIRD_PARTY: Mapping[str, frozenset[str]] = {
    "click": frozenset({"cli"}),
    "pydantic": frozenset({"contracts", "config", "views"}),
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
    {"config/__init__.py", "__main__.py", "agents/scripted/play.py", "sandboxes/inside.py", "worker/commands.py"}
)

Import = tuple[int, str, str]
ROOMS = frozenset(name.partition(".")[0] for name in MAY_IMPORT)


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


def rule_of(file: Path, package: Path) -> str:
    """The longest name of a file's that has a rule: its own, its folder's, its room's."""
    parts = file.relative_to(package).with_suffix("").parts
    names = [".".join(parts[:count]) for count in range(len(parts), 0, -1)]
    return next((name for name in names if name in MAY_IMPORT), names[-1])


def layer_faults(rule: str, found: Import) -> Iterator[str]:
    module = found[1]
    room, target = rule.partition(".")[0], target_of(found)
    other = target.partition(".")[0]
    if module == "ganger" and other not in ROOMS:
        return
    allowed = MAY_IMPORT.get(rule, frozenset())
    if other != room and other not in allowed and not any(f"{target}.".startswith(f"{a}.") for a in allowed):
        yield f"{rule} may not import {other}"


def target_of(found: Import) -> str:
    return ".".join(filter(None, [found[1].partition("ganger")[2].lstrip("."), found[2]]))


def place_in(room: str, name: str) -> str:
    """Which of the places of a room a dotted name belongs to: the longest that begins it."""
    places = sorted(ORDER[room].split(), key=len, reverse=True)
    return next((place for place in places if f"{name}.".startswith(f"{place}.")), "")


def order_faults(file: Path, package: Path, found: Import) -> Iterator[str]:
    room, _, inner = ".".join(file.relative_to(package).with_suffix("").parts).partition(".")
    other, _, target = target_of(found).partition(".")
    if room not in ORDER or other != room or not target:
        return
    places = ORDER[room].split()
    here, there = place_in(room, inner), place_in(room, target)
    if here and there and places.index(there) > places.index(here):
        yield f"{room}.{here} may not import {room}.{there}"


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
    message = "only config and __main__.py read the environment"
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in ENVIRONMENT and ast.unparse(node.value) == "os":
            yield node.lineno, message
    yield from ((line, message) for line, module, name in imports if module == "os" and name in ENVIRONMENT)


def faults_in(file: Path, package: Path) -> Iterator[tuple[int, str]]:
    tree = ast.parse(file.read_text(encoding="utf-8"), str(file))
    room, rule = room_of(file, package), rule_of(file, package)
    imports = list(imports_of(tree, file, package))
    for found in imports:
        own = found[1].partition(".")[0] == "ganger"
        messages = layer_faults(rule, found) if own else outside_faults(room, found)
        yield from ((found[0], message) for message in messages)
        yield from ((found[0], message) for message in order_faults(file, package, found) if own)
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
    ("config/x.py", "from ganger.core.planning.plan import order", "config may not import core"),
    ("core/events/x.py", "from ganger.core.state.apply import a", "core.events may not import core.state"),
    ("core/model/x.py", "from ganger.core import replay", "core.model may not import core.replay"),
    ("engine/delivery/ci/x.py", "from ganger.engine import lead", "engine.delivery.ci may not import engine.lead"),
    ("app/policies.py", "from ganger.stores import sqlite", "app.policies may not import stores"),
    ("stores/x.py", "import sqlite3", "sqlite3 is banned"),
    ("engine/x.py", "import click", "engine may not import the package click"),
    ("cli/x.py", "import requests", "cli may not import the package requests"),
    ("engine/x.py", "import os\nos.environ['A']", "only config and __main__.py read the environment"),
    ("engine/x.py", "from os import getenv", "only config and __main__.py read the environment"),
]

GOOD = [
    ("core/x.py", "from datetime import datetime\nfrom pathlib import Path\nfrom .plan import order"),
    ("core/x.py", "from ganger.contracts.manifest import Task\nfrom ganger.errors import GangerError"),
    ("config/__init__.py", "import os\nfrom ganger.core.vocabulary import Tier\nimport pydantic\nos.environ['A']"),
    ("stores/x.py", "import apsw, os\nimport ganger\nfrom ganger import ports, __version__"),
    ("app/compose.py", "from ganger.engine import lead\nfrom ganger.stores.sqlite import S"),
    ("core/state/x.py", "from ganger.core.events import E\nfrom ganger.core.state import apply"),
    ("cli/x.py", "import click\nfrom ganger.app.compose import build\nfrom ganger.demo import project"),
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


@pytest.mark.parametrize("room", sorted(ORDER))
def test_everything_in_a_room_has_its_place_in_the_order_and_every_place_is_there(room: str) -> None:
    files = [file.relative_to(PACKAGE / room).with_suffix("") for file in (PACKAGE / room).rglob("*.py")]
    names = {".".join(file.parts) for file in files}
    homeless = {name for name in names if not place_in(room, name) and not name.endswith("__init__")}
    assert homeless == set()
    assert {place for place in ORDER[room].split() if not any(f"{n}.".startswith(f"{place}.") for n in names)} == set()


def test_no_folder_holds_more_files_than_a_reader_looks_through() -> None:
    folders = Counter(file.parent.relative_to(PACKAGE).as_posix() for file in PACKAGE.rglob("*.py"))
    # One file per command.
    assert {name: count for name, count in folders.items() if count > 18 and name != "cli"} == {}


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
