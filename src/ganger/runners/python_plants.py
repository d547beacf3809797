"""Failing tests made from a Python project's tests: an existing test that fails at its end, copies of it that fail at
their start or expect another value, and a new file with the same imports."""

from __future__ import annotations

import ast
import copy
import posixpath
import secrets
from collections.abc import Iterator
from dataclasses import dataclass, field

from ganger.ports.runners import PlantedTest
from ganger.runners.marks import random_word

Function = ast.FunctionDef | ast.AsyncFunctionDef
_LARGEST = 2 << 20
_COMPARING = frozenset({"isclose", "allclose", "eq"})
_ASSERTING = frozenset(
    (
        *("assertEqual", "assertEquals", "assertAlmostEqual", "assertListEqual", "assertDictEqual", "assertTupleEqual"),
        *("assertSetEqual", "assertSequenceEqual", "assertCountEqual", "assertMultiLineEqual"),
    )
)
# Runs in a new file with the imports of the tests. The planted test fails with its own words if the functions that
# tests compare and read with are those of Python and the runner, and with the name of one that was replaced if not.
_UNCHANGED = """
def _changed():
    import builtins, json, math, operator, os, re, statistics, sys, unittest
    for module in (json, math, operator, re, statistics):
        home = os.path.dirname(getattr(module, "__file__", None) or "")
        for name in dir(module):
            found = getattr(module, name)
            if name.startswith("_") or type(found).__name__ not in ("function", "builtin_function_or_method"):
                continue
            code = getattr(found, "__code__", None)
            if code is not None and not (home and code.co_filename.startswith((home, "<frozen"))):
                return module.__name__ + "." + name
            if code is None and (found.__name__ != name or type(found) is not type(len)):
                return module.__name__ + "." + name
            if code is not None and not hasattr(module, "__file__"):
                return module.__name__ + "." + name
    for name in "abs all any isinstance len max min repr round sorted sum".split():
        found = getattr(builtins, name)
        if type(found) is not type(len) or found.__name__ != name:
            return "builtins." + name
    for name in dir(unittest.TestCase):
        code = getattr(getattr(unittest.TestCase, name), "__code__", None)
        if name.startswith("assert") and (code is None or os.path.basename(code.co_filename) != "case.py"):
            return "TestCase." + name
    runner = sys.modules.get("pytest")
    for name in ("raises", "approx", "fail", "skip", "warns"):
        found = getattr(runner, name, None)
        code = getattr(found, "__code__", None) or getattr(getattr(found, "__call__", None), "__code__", None)
        if runner is not None and code is not None and "_pytest" not in code.co_filename:
            return "pytest." + name
    return ""
"""


@dataclass(frozen=True, slots=True)
class Host:
    """A test that passed: its name in the report, and its place. `stays`: it is copied, but not changed itself."""

    name: str
    classes: tuple[str, ...]
    function: str
    stays: bool = False


@dataclass(slots=True)
class Plants:
    files: dict[str, bytes] = field(default_factory=dict)
    tests: list[PlantedTest] = field(default_factory=list)
    words: list[str] = field(default_factory=list)


def plant(file: str, source: bytes, hosts: list[Host], plants: Plants) -> None:
    """Adds what can be planted in and beside this file; nothing if it cannot be parsed."""
    try:
        tree = ast.parse(source) if len(source) <= _LARGEST else None
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        tree = None
    if tree is None:
        return
    fresh = _new_file(file, tree)
    before = len(plants.tests)
    for host in hosts:
        place = _body_of(tree, host.classes)
        found = next((node for node in place or () if isinstance(node, Function) and node.name == host.function), None)
        if place is not None and found is not None and _is_plain(found):
            _plant_one(place, found, host, plants, in_test_case=_is_test_case(tree, host.classes, found))
    if len(plants.tests) == before:
        return
    plants.files[file] = _text(tree)
    if fresh is not None:
        path, data, tests = fresh
        plants.files[path] = data
        plants.tests += tests
        plants.words += [test.mark for test in tests]


def _plant_one(place: list[ast.stmt], found: Function, host: Host, plants: Plants, *, in_test_case: bool) -> None:
    at = place.index(found)
    own = found.args.args[0].arg if in_test_case and found.args.args else ""
    expecting = _expecting_otherwise(found)
    if expecting is not None:
        _add_copy(place, at, expecting, "", plants)
    words = random_word()
    early = copy.deepcopy(found)
    early.body.insert(_after_docstring(early), _parse(f"raise AssertionError({words!r})"))
    _add_copy(place, at, early, words, plants)
    plants.words.append(found.name)
    if not _reaches_its_end(found):
        return
    words = random_word()
    if host.stays:
        late = copy.deepcopy(found)
        late.body.append(_failing(own, words))
        _add_copy(place, at, late, words, plants)
    else:
        found.body.append(_failing(own, words))
        plants.tests.append(PlantedTest(host.name, words, whole=True))


def _add_copy(place: list[ast.stmt], at: int, made: Function, words: str, plants: Plants) -> None:
    word = random_word()
    made.name = f"{made.name}_{word}"
    place.insert(at, made)
    plants.tests.append(PlantedTest(word, words))
    plants.words.append(word)


def _failing(own: str, words: str) -> ast.stmt:
    one, other = random_word(), random_word()
    return _parse(
        f"{own}.assertEqual({one!r}, {other!r}, {words!r})" if own else f"assert {one!r} == {other!r}, {words!r}"
    )


def _parse(line: str) -> ast.stmt:
    return ast.parse(line).body[0]


def _body_of(tree: ast.Module, classes: tuple[str, ...]) -> list[ast.stmt] | None:
    body = tree.body
    for name in classes:
        inner = next((node for node in body if isinstance(node, ast.ClassDef) and node.name == name), None)
        if inner is None:
            return None
        body = inner.body
    return body


def _is_plain(found: Function) -> bool:
    """Whether it is neither a generator nor expected to fail or to be skipped."""
    if any(word in ast.unparse(mark) for mark in found.decorator_list for word in ("xfail", "xpect", "skip", "flaky")):
        return False
    return not any(isinstance(node, ast.Yield | ast.YieldFrom) for node in _own(found))


def _reaches_its_end(found: Function) -> bool:
    """Whether it passes by running to its end: it does not return or raise there."""
    return not any(isinstance(node, ast.Return) for node in _own(found)) and not isinstance(found.body[-1], ast.Raise)


def _own(found: Function) -> Iterator[ast.AST]:
    """The nodes of the function itself, without those of functions in it."""
    waiting: list[ast.AST] = [*found.body]
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, Function | ast.Lambda | ast.ClassDef):
            waiting.extend(ast.iter_child_nodes(node))


def _is_test_case(tree: ast.Module, classes: tuple[str, ...], found: Function) -> bool:
    if not classes or any(isinstance(node, ast.Name) and node.id == "staticmethod" for node in found.decorator_list):
        return False
    above = _body_of(tree, classes[:-1]) or []
    own = next((node for node in above if isinstance(node, ast.ClassDef) and node.name == classes[-1]), None)
    bases = [ast.unparse(base) for base in own.bases] if own is not None else []
    asserts = any(isinstance(node, ast.Attribute) and node.attr.startswith("assert") for node in ast.walk(found))
    return any(base.endswith("TestCase") for base in bases) or (bool(bases) and asserts)


def _after_docstring(found: Function) -> int:
    return 1 if len(found.body) > 1 and ast.get_docstring(found, clean=False) is not None else 0


def _expecting_otherwise(found: Function) -> Function | None:
    """A copy that expects another value than the test; None if that comparison may not be reached."""
    made = copy.deepcopy(found)
    for statement in made.body:
        if any(isinstance(node, ast.Return) for node in ast.walk(statement)):
            return None
        if _change_expectation(statement):
            return made
    return None


def _change_expectation(statement: ast.stmt) -> bool:
    """Changes it in place; True if the statement compares a result of the product with a plain value."""
    if isinstance(statement, ast.Assert):
        return _change_compare(statement.test) or _change_call(statement.test, _COMPARING)
    return isinstance(statement, ast.Expr) and _change_call(statement.value, _ASSERTING)


def _change_compare(test: ast.expr) -> bool:
    if not isinstance(test, ast.Compare) or len(test.ops) != 1 or not isinstance(test.ops[0], ast.Eq):
        return False
    sides = [test.left, test.comparators[0]]
    for side in sides:
        if isinstance(side, ast.Call) and _name(side.func) == "approx" and side.args:
            return _change_one([ast.Name("_"), *side.args[:1]], side.args, 1)
    changed = _change_one(sides, sides, 0)
    test.left, test.comparators = sides[0], [sides[1]]
    return changed


def _change_call(call: ast.expr, names: frozenset[str]) -> bool:
    if not isinstance(call, ast.Call) or _name(call.func) not in names or len(call.args) < 2:
        return False
    if any(isinstance(argument, ast.Starred) for argument in call.args[:2]):
        return False
    return _change_one(call.args[:2], call.args, 0)


def _name(function: ast.expr) -> str:
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def _change_one(sides: list[ast.expr], within: list[ast.expr], offset: int) -> bool:
    """Exactly one of the two sides must be a plain value; the other is the product's result. `within` holds both, the
    first one `offset` places further left."""
    values = [_value(side) for side in sides]
    if (values[0] is None) == (values[1] is None):
        return False
    place = 0 if values[0] is not None else 1
    found = values[place]
    assert found is not None
    within[place - offset] = ast.parse(repr(_other(found[0])), mode="eval").body
    return True


def _value(node: ast.expr) -> tuple[object] | None:
    try:
        value = ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None
    return (value,) if isinstance(value, int | float | str | bytes | list | tuple | dict) else None


def _other(value: object) -> object:
    """Another value of the same kind."""
    match value:
        case bool():
            return random_word()
        case int() | float():
            return value + 7919 + secrets.randbelow(100_000)
        case str():
            return random_word()
        case bytes():
            return random_word().encode()
        case list():
            return [*value, random_word()]
        case tuple():
            return (*value, random_word())
        case dict():
            return {**value, random_word(): 0}
    return random_word()


def _new_file(file: str, tree: ast.Module) -> tuple[str, bytes, tuple[PlantedTest, ...]] | None:
    """A new file of the same name pattern that sorts early, with the same imports and failing tests."""
    folder, name = posixpath.split(file)
    tokens = name.removesuffix(".py").split("_")
    if len(tokens) < 2 or not name.endswith(".py"):
        return None
    path = posixpath.join(folder, f"{tokens[0]}_aa{random_word()}_{tokens[-1]}.py")
    plain, raising, same = (PlantedTest(random_word(), random_word(), strict=at == 2) for at in range(3))
    imports = [ast.unparse(node) for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    has_pytest = any(line.split()[:2] == ["import", "pytest"] for line in imports)
    lines = [*imports, "import unittest as _unittest", _UNCHANGED, f"class {raising.words}(Exception): pass"]
    lines += [f"class Test{random_word().title()}(_unittest.TestCase):"]
    lines += [f"    def test_{plain.mark}(self):"]
    lines += [f"        self.assertEqual({random_word()!r}, {random_word()!r}, {plain.words!r})"]
    lines += [f"    def test_{raising.mark}(self):"]
    lines += [f"        with {'pytest.raises' if has_pytest else 'self.assertRaises'}({raising.words}): pass"]
    # In two parts, because runners quote the line that failed.
    half, rest = same.words[:4], same.words[4:]
    lines += [f"    def test_{same.mark}(self):", f"        raise AssertionError(_changed() or {half!r} + {rest!r})"]
    text = "\n".join(lines) + "\n"
    return path, text.encode("utf-8", "surrogateescape"), (plain, raising, same)


def _text(tree: ast.Module) -> bytes:
    return (ast.unparse(ast.fix_missing_locations(tree)) + "\n").encode("utf-8", "surrogateescape")
