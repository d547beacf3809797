"""Failing tests made from a Python project's own: an existing test that now fails at its end, copies of it that fail at
their start or expect something else, and a new file that imports what it imports."""

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


@dataclass(frozen=True, slots=True)
class Host:
    """A test that passed: its name in the report, and where it is. `stays`: it is copied and not changed itself."""

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
    """Adds what can be planted in and beside this file; nothing where it is no plain Python."""
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
        path, data, test, word = fresh
        plants.files[path] = data
        plants.tests.append(test)
        plants.words.append(word)


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
    return not any(isinstance(node, ast.Yield | ast.YieldFrom) for node in _own(found))


def _reaches_its_end(found: Function) -> bool:
    """A test that passes does so by running to its end, unless it returns."""
    return not any(isinstance(node, ast.Return) for node in _own(found)) and not isinstance(found.body[-1], ast.Raise)


def _own(found: Function) -> Iterator[ast.AST]:
    """What belongs to the function itself and not to one inside it."""
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
    """A copy that compares with another value than the test does; only where that comparison is surely reached."""
    made = copy.deepcopy(found)
    for statement in made.body:
        if any(isinstance(node, ast.Return) for node in ast.walk(statement)):
            return None
        if _change_expectation(statement):
            return made
    return None


def _change_expectation(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.Assert) and isinstance(statement.test, ast.Compare):
        compared = statement.test
        if len(compared.ops) == 1 and isinstance(compared.ops[0], ast.Eq):
            sides = [compared.left, compared.comparators[0]]
            if _change_one(sides):
                compared.left, compared.comparators = sides[0], [sides[1]]
                return True
        return False
    call = statement.value if isinstance(statement, ast.Expr) else None
    if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and len(call.args) >= 2:
        if call.func.attr not in ("assertEqual", "assertEquals") or any(isinstance(a, ast.Starred) for a in call.args):
            return False
        sides = call.args[:2]
        if _change_one(sides):
            call.args[:2] = sides
            return True
    return False


def _change_one(sides: list[ast.expr]) -> bool:
    """Exactly one side must be a plain value: the other is what the product gave."""
    values = [_value(side) for side in sides]
    if (values[0] is None) == (values[1] is None):
        return False
    place = 0 if values[0] is not None else 1
    found = values[place]
    assert found is not None
    sides[place] = ast.parse(repr(_other(found[0])), mode="eval").body
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


def _new_file(file: str, tree: ast.Module) -> tuple[str, bytes, PlantedTest, str] | None:
    """A file of the same pattern that sorts early, with the imports of this one and one failing test."""
    folder, name = posixpath.split(file)
    tokens = name.removesuffix(".py").split("_")
    if len(tokens) < 2 or not name.endswith(".py"):
        return None
    word, words = random_word(), random_word()
    path = posixpath.join(folder, f"{tokens[0]}_aa{word}_{tokens[-1]}.py")
    imports = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    lines = [ast.unparse(node) for node in imports]
    lines += ["import unittest as _unittest"]
    lines += [f"class Test{word.title()}(_unittest.TestCase):", f"    def test_{word}(self):"]
    lines += [f"        self.assertEqual({random_word()!r}, {random_word()!r}, {words!r})"]
    return path, ("\n".join(lines) + "\n").encode("utf-8", "surrogateescape"), PlantedTest(word, words), word


def _text(tree: ast.Module) -> bytes:
    return (ast.unparse(ast.fix_missing_locations(tree)) + "\n").encode("utf-8", "surrogateescape")
