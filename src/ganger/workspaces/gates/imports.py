"""What Python code of a check imports only if it exists, and the folders a test run puts first in its path."""

from __future__ import annotations

import ast
import posixpath
import re
from collections.abc import Collection, Iterator

from ganger.ports.changes import Change
from ganger.workspaces.gates.files import MODULE_ENDS, TEST_FOLDERS
from ganger.workspaces.rules.line_counts import listed

_TEST_MODULE = re.compile(r"test_.*\.py|.*_test\.py|tests?\.py|conftest\.py")
_CAUGHT = listed("ImportError ModuleNotFoundError Exception BaseException")
_IMPORTERS = listed("find_spec import_module __import__ find_module find_loader")
_ENDS = re.compile(r"(?:.*_)?(?:exit|skip|skipTest|fail|xfail|abort)")
_DEMANDS = re.compile(r"assert\w*|skip\w*|importorskip|xfail")
_MODE = re.compile(r"import[-_]mode[\s\"'=,]*importlib")
_PATHS = re.compile(r"^[ \t]*pythonpath[ \t]*=[ \t]*(\[[^\]]*\]|.*(?:\n[ \t]+\S.*)*)", re.MULTILINE)
_CONFIGS = ("pyproject.toml", "pytest.ini", ".pytest.ini", "pytest.toml", "tox.ini", "setup.cfg")
_MOST_FOLDERS, _DEEP, _LARGEST = 300, 4, 256 << 10


def is_test_module(name: str) -> bool:
    return _TEST_MODULE.fullmatch(name) is not None


def module_place(path: str) -> tuple[str, str]:
    """The folder a path is imported from and its module name; "" where it is not a module."""
    folder, _, name = path.rpartition("/")
    if name.startswith("__init__."):
        folder, _, name = folder.rpartition("/")
        return (folder, name) if path.endswith(MODULE_ENDS) else ("", "")
    return (folder, name.split(".")[0]) if name.endswith(MODULE_ENDS) else ("", "")


class Layout:
    """The project's folders as a test run sees them after a change."""

    def __init__(self, change: Change) -> None:
        self._change = change
        self._new: dict[str, set[str]] = {}
        for one in change.touched:
            if one.before is None:
                path = one.path
                while path:
                    folder, _, name = path.rpartition("/")
                    self._new.setdefault(folder, set()).add(name)
                    path = folder
        self._searched: dict[str, bool] = {}
        self._settings: str | None = None

    def names(self, folder: str) -> set[str]:
        """The new ones among these files and folders."""
        return {*self._change.names_before(folder), *self._new.get(folder, ())}

    def is_searched(self, folder: str) -> bool:
        """Whether pytest puts this folder first: it is not a package, and tests lie in it or in packages below."""
        if folder not in self._searched:
            is_open = "__init__.py" not in self.names(folder)
            self._searched[folder] = is_open and self._holds_tests(folder, 0)
        return self._searched[folder]

    def _holds_tests(self, folder: str, depth: int) -> bool:
        names = self.names(folder)
        if any(map(is_test_module, names)):
            return True
        inner = (f"{folder}/{name}" for name in sorted(names) if "." not in name) if depth < _DEEP else ()
        return any("__init__.py" in self.names(one) and self._holds_tests(one, depth + 1) for one in inner)

    def test_folders(self, folder: str) -> Iterator[str]:
        """All folders below the same top folder of tests, including this one."""
        parts = folder.split("/")
        top = next((at for at, part in enumerate(parts) if part.lower() in TEST_FOLDERS), len(parts) - 1)
        waiting = ["/".join(parts[: top + 1])]
        for _ in range(_MOST_FOLDERS):
            if not waiting:
                return
            one = waiting.pop()
            yield one
            waiting += [f"{one}/{name}" for name in sorted(self._change.names_before(one)) if "." not in name]

    @property
    def puts_folders_in_front(self) -> bool:
        """Whether pytest changes the path: it does unless `--import-mode=importlib` is set."""
        return _MODE.search(self._configured()) is None

    def python_path(self) -> set[str]:
        """Folders that pytest's own settings put first."""
        found = {word for match in _PATHS.findall(self._configured()) for word in re.findall(r"[^\s\[\]\"',]+", match)}
        return {"" if (plain := posixpath.normpath(word)) == "." else plain for word in found}

    def _configured(self) -> str:
        if self._settings is None:
            self._settings = "\n".join(base_text(self._change, name) for name in _CONFIGS)
        return self._settings

    def tests(self, folder: str) -> Iterator[tuple[str, str]]:
        """Paths and texts of the modules among these tests."""
        for one in self.test_folders(folder):
            for name in sorted(self._change.names_before(one)):
                if name.endswith(".py"):
                    path = f"{one}/{name}" if one else name
                    yield path, base_text(self._change, path)


def base_text(change: Change, path: str) -> str:
    """None where there was no such file or it is too large to read."""
    try:
        content = change.before(path)
    except LookupError:
        return ""
    return content.decode("utf-8-sig", "replace") if len(content) <= _LARGEST else ""


def optional_modules(text: str, package: str) -> set[str]:
    """Dotted names this code can do without, and behaves differently with.

    A module it requires, or skips a test without, is work still to be done. `package` is where relative names start.
    """
    try:
        tree = ast.parse(text)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return set()
    steering = _steering_names(tree)
    return set(_tried(tree, package, steering)) | set(_asked_for(tree))


def _tried(tree: ast.AST, package: str, steering: Collection[str]) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Try):
            handlers = [one.body for one in node.handlers if _catches(one.type)]
            if handlers and any(_goes_on(body, node.body, steering) for body in handlers):
                yield from (name for one in node.body for name in _imported(one, package))
        elif isinstance(node, ast.With) and any(_suppresses(item.context_expr) for item in node.items):
            yield from (name for one in node.body for name in _imported(one, package))


def _catches(kind: ast.expr | None) -> bool:
    kinds = kind.elts if isinstance(kind, ast.Tuple) else [kind]
    return any(one is None or _name(one) in _CAUGHT for one in kinds)


def _suppresses(call: ast.expr) -> bool:
    return (
        isinstance(call, ast.Call)
        and _name(call.func) == "suppress"
        and any(_name(one) in _CAUGHT for one in call.args)
    )


def _goes_on(body: list[ast.stmt], tried: list[ast.stmt], steering: Collection[str]) -> bool:
    """Whether the code works without the module; `x = None` alone means that only if x is tested later."""
    if _ends(body):
        return False
    if not all(isinstance(one, ast.Assign) and _is_nothing(one.value) for one in body):
        return True
    names = {_name(target) for one in body if isinstance(one, ast.Assign) for target in one.targets}
    return not names.isdisjoint(steering)


def _is_nothing(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and value.value in (None, False)


def _ends(body: list[ast.stmt]) -> bool:
    """Whether the code ends with an error, a failing exit or a skipped test."""
    for one in (node for statement in body for node in ast.walk(statement)):
        if isinstance(one, ast.Raise):
            return True
        if isinstance(one, ast.Call) and _ENDS.fullmatch(_name(one.func)):
            is_success = "exit" in _name(one.func) and (not one.args or _is_success(one.args[0]))
            return not is_success
    return False


def _is_success(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and value.value in (None, 0)


def _steering_names(tree: ast.AST) -> set[str]:
    """Names whose presence makes the code do something: `if x:`, `x.y if x else z`, `x or y`, `getattr(x, ...)`."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and not _only_demands(node.body):
            found |= _present(node.test)
        elif isinstance(node, ast.IfExp):
            found |= _present(node.test) | _absent(node.test)
        elif isinstance(node, ast.BoolOp):
            found |= _present(node.values[0])
        elif isinstance(node, ast.Call) and _name(node.func) == "getattr" and node.args:
            found.add(_name(node.args[0]))
        if isinstance(node, ast.If) and not _ends(node.body):
            found |= _absent(node.test)
    return found - {""}


def _only_demands(body: list[ast.stmt]) -> bool:
    calls = (one.value.func for one in body if isinstance(one, ast.Expr) and isinstance(one.value, ast.Call))
    return all(isinstance(one, (ast.Assert, ast.Expr, ast.FunctionDef, ast.ClassDef)) for one in body) and all(
        _DEMANDS.fullmatch(_name(func)) for func in calls
    )


def _present(test: ast.expr) -> set[str]:
    if isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.IsNot):
        return {_name(test.left)}
    return {_name(test)}


def _absent(test: ast.expr) -> set[str]:
    if isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.Is):
        return {_name(test.left)}
    return {_name(test.operand)} if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not) else set()


def _imported(statement: ast.stmt, package: str) -> Iterator[str]:
    for node in ast.walk(statement):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parts = package.split("/")[: len(package.split("/")) - node.level + 1] if node.level else []
            base = ".".join([*filter(None, parts), *filter(None, [node.module])])
            yield from ([base] if base else [])
            yield from (f"{base}.{alias.name}" if base else alias.name for alias in node.names if alias.name != "*")
        elif isinstance(node, ast.Call) and _name(node.func) in _IMPORTERS:
            yield from _texts(node.args[:1])


def _asked_for(tree: ast.AST) -> Iterator[str]:
    """`find_spec("x")`, except where it only demands x or leaves out a test without it."""
    demanded: set[ast.AST] = set()
    for node in ast.walk(tree):
        is_demand = isinstance(node, ast.Assert) or (
            isinstance(node, ast.Call) and _DEMANDS.fullmatch(_name(node.func))
        )
        if is_demand:
            demanded |= set(ast.walk(node))
        elif isinstance(node, ast.If) and _ends(node.body):
            demanded |= set(ast.walk(node.test))
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and node not in demanded and _name(node.func) == "find_spec":
            yield from _texts(node.args[:1])


def _texts(values: list[ast.expr]) -> Iterator[str]:
    yield from (one.value for one in values if isinstance(one, ast.Constant) and isinstance(one.value, str))


def _name(node: ast.AST | None) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
