"""Measures of the source tree: how large its rooms, files and functions are, and how many places an addition touches.

`house.py [--json] [TREE]` reads the package below TREE/src, by default this repository's. Nothing of it is run.
"""

from __future__ import annotations

import ast
import dataclasses
import json
import re
import statistics
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path

MOST_FILES = 17
MANY_FIELDS = 16
MANY_POSITIONAL = 7
COMMANDS = "cli"
# What is added in one place and named in others: an enumeration's members, or the classes a union names.
MEMBERS = {"block reason": "BlockReason", "failure class": "FailureClass", "task status": "TaskStatus"}
COUNTERS = "Policy"

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclasses.dataclass(frozen=True)
class Module:
    name: str
    file: str
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text)

    @property
    def lines(self) -> int:
        return len(self.text.splitlines())

    @property
    def folder(self) -> str:
        return self.file.rpartition("/")[0] or "."

    @cached_property
    def words(self) -> frozenset[str]:
        return frozenset(re.findall(r"[A-Za-z_][A-Za-z_0-9]*", self.text))

    @cached_property
    def functions(self) -> list[Function]:
        return [node for node in ast.walk(self.tree) if isinstance(node, Function)]

    @cached_property
    def classes(self) -> list[ast.ClassDef]:
        return [node for node in self.tree.body if isinstance(node, ast.ClassDef)]


def modules_of(package: Path) -> list[Module]:
    found = []
    for file in sorted(package.rglob("*.py")):
        parts = file.relative_to(package.parent).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        found.append(Module(name, file.relative_to(package).as_posix(), file.read_text(encoding="utf-8")))
    return found


def imports_of(module: Module, names: frozenset[str], nodes: Iterable[ast.AST]) -> set[str]:
    """The modules of the package that these statements load."""
    package = module.name.split(".")
    package = package if module.file.endswith("__init__.py") else package[:-1]
    found: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            start = ".".join([*above, *filter(None, [node.module])])
            inner = {f"{start}.{alias.name}" for alias in node.names}
            found |= {name if name in names else start for name in inner}
    return {name for name in found if name in names and name != module.name}


def when_loaded(tree: ast.Module) -> Iterator[ast.stmt]:
    """The statements that run when a module is loaded: no function's, and none that only a type checker reads."""
    waiting: list[ast.AST] = [*tree.body]
    while waiting:
        node = waiting.pop()
        if isinstance(node, Function) or (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)):
            continue
        if isinstance(node, ast.stmt):
            yield node
        waiting.extend(child for child in ast.iter_child_nodes(node) if isinstance(child, ast.stmt))


def cycles(graph: Mapping[str, set[str]]) -> list[list[str]]:
    """Groups of modules that load each other, found by what each reaches."""
    reached = {name: reach(graph, name) for name in graph}
    groups = {frozenset(n for n in reached[name] if name in reached[n]) for name in graph if name in reached[name]}
    return sorted(sorted(group) for group in groups)


def reach(graph: Mapping[str, set[str]], start: str) -> set[str]:
    found: set[str] = set()
    waiting = [*graph[start]]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting.extend(graph.get(name, ()))
    return found


def spread(values: Iterable[int]) -> dict[str, int]:
    ordered = sorted(values) or [0]
    place = (len(ordered) - 1) * 9 // 10
    return {"median": int(statistics.median(ordered)), "p90": ordered[place], "max": ordered[-1]}


def fields(node: ast.ClassDef) -> int:
    marked = any("dataclass" in ast.unparse(decorator) for decorator in node.decorator_list)
    return sum(isinstance(item, ast.AnnAssign) for item in node.body) if marked else 0


def length(node: Function) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1


def twice(pairs: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """Names that stand in more than one place, each with its places."""
    found: dict[str, list[str]] = defaultdict(list)
    for name, place in pairs:
        found[name].append(place)
    return {name: places for name, places in sorted(found.items()) if len(places) > 1}


def members(modules: list[Module], name: str) -> list[str]:
    """The fields or values of a class, or the names in a union."""
    for node in (node for module in modules for node in module.tree.body):
        if isinstance(node, ast.ClassDef) and node.name == name:
            values = [t for item in node.body if isinstance(item, ast.Assign) for t in item.targets]
            values += [item.target for item in node.body if isinstance(item, ast.AnnAssign)]
            return [value.id for value in values if isinstance(value, ast.Name)]
        if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == name for t in node.targets):
            return [n.id for n in ast.walk(node.value) if isinstance(n, ast.Name)]
    return []


def places(modules: list[Module], names: Iterable[str]) -> dict[str, int]:
    """In how many files each of these is named."""
    return spread(sum(name in module.words for module in modules) for name in names)


def additions(modules: list[Module]) -> dict[str, dict[str, int]]:
    """For each kind of thing that can be added: how many files name one that is there."""
    found = {kind: places(modules, members(modules, name)) for kind, name in MEMBERS.items()}
    found["event"] = places(modules, members(modules, "Event"))
    found["setting of a policy"] = places(modules, members(modules, COUNTERS))
    for room in ("agents", "forges"):
        tables = [module.tree for module in modules if module.file == f"{room}/table.py"]
        texts = {node.value for tree in tables for node in ast.walk(tree) if isinstance(node, ast.Constant)}
        kinds = {text for text in texts if isinstance(text, str) and re.fullmatch(r"[a-z]{5,12}", text)}
        rooms = [module for module in modules if any(kind in module.words for kind in kinds)]
        found[f"one of {room}"] = places(rooms, kinds)
    commands = {m.file[4:-3] for m in modules if re.fullmatch(r"cli/[a-z]+\.py", m.file) and "@click.command" in m.text}
    found["command"] = places([m for m in modules if m.file.startswith(f"{COMMANDS}/")], commands)
    return found


def measure(package: Path) -> dict[str, object]:
    modules = modules_of(package)
    names = frozenset(module.name for module in modules)
    loaded = {m.name: imports_of(m, names, when_loaded(m.tree)) for m in modules}
    used = {m.name: imports_of(m, names, ast.walk(m.tree)) for m in modules}
    importers = Counter(name for found in used.values() for name in found)
    single = [m for m in modules if importers[m.name] == 1 and not m.file.endswith("__init__.py")]
    folders = Counter(module.folder for module in modules)
    sizes = [length(node) for module in modules for node in module.functions]
    bags = {f"{m.name}.{node.name}": fields(node) for m in modules for node in m.classes}
    calls = [n for m in modules for n in ast.walk(m.tree) if isinstance(n, ast.Call)]
    own = [m for m in modules if m.file.rpartition("/")[2] not in ("__init__.py", "__main__.py")]
    return {
        "files": len(modules),
        "folders": len(folders),
        "lines": sum(module.lines for module in modules),
        "files_per_folder": dict(folders.most_common()),
        "folders_too_full": {n: c for n, c in folders.most_common() if c > MOST_FILES and n != COMMANDS},
        "file_lines": spread(module.lines for module in modules),
        "files_under_50_lines": sum(module.lines < 50 for module in modules),
        "files_over_400_lines": sum(module.lines > 400 for module in modules),
        "functions": len(sizes),
        "function_lines": spread(sizes),
        "functions_over_30_lines": sum(size > 30 for size in sizes),
        "import_cycles": cycles(loaded),
        "cycles_with_late_imports": cycles(used),
        "file_names_used_twice": twice((m.file.rpartition("/")[2], m.file) for m in own),
        "class_names_used_twice": twice(
            (node.name, m.name) for m in modules for node in m.classes if not node.name.startswith("_")
        ),
        "modules_with_one_importer": sorted(module.name for module in single),
        "lines_with_one_importer": sum(module.lines for module in single),
        "bags": dict(sorted(((n, c) for n, c in bags.items() if c >= MANY_FIELDS), key=lambda pair: -pair[1])),
        "calls_with_many_positional": sum(len(call.args) >= MANY_POSITIONAL for call in calls),
        "files_that_read_proc": sum('"/proc' in module.text for module in modules),
        "files_that_replace_files": sum(bool(re.search(r"os\.(replace|rename)\(", m.text)) for m in modules),
        "files_naming_one": additions(modules),
    }


def shown(key: str, value: object) -> Iterator[str]:
    label = key.replace("_", " ")
    if isinstance(value, dict) and value and all(isinstance(item, int) for item in value.values()):
        yield f"{label}: {len(value) if len(value) > 3 else ''}".rstrip()
        yield "  " + ", ".join(f"{name} {count}" for name, count in value.items())
    elif isinstance(value, dict):
        yield f"{label}: {len(value)}"
        yield from (f"  {name}: {_flat(item)}" for name, item in value.items())
    elif isinstance(value, list):
        yield f"{label}: {len(value)}"
        yield from (f"  {_flat(item)}" for item in value)
    else:
        yield f"{label}: {value}"


def _flat(item: object) -> str:
    if isinstance(item, dict):
        return ", ".join(f"{name} {value}" for name, value in item.items())
    return ", ".join(map(str, item)) if isinstance(item, list) else str(item)


def main(words: list[str]) -> None:
    roots = [word for word in words if not word.startswith("-")]
    root = Path(roots[0]) if roots else Path(__file__).resolve().parents[1]
    measured = measure(root / "src" / "ganger")
    if "--json" in words:
        print(json.dumps(measured, indent=2))
        return
    for key, value in measured.items():
        print("\n".join(shown(key, value)))


if __name__ == "__main__":
    main(sys.argv[1:])
