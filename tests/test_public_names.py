"""The public names, and the house style a machine can check: first lines, words, sizes."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

import ganger

ROOT = Path(__file__).resolve().parents[1]
SOURCES = sorted((ROOT / "src").rglob("*.py"))
MODULES = [
    file for folder in ("src", "checker", "tests", "scripts", "bench") for file in sorted((ROOT / folder).rglob("*.py"))
]
EMPTY_WORDS = frozenset({"manager", "service", "util", "common", "helper", "base"})
# A published format has the word already, and stored snapshots name the core's.
IN_A_FORMAT_TOO = frozenset({"Checkpoint", "Milestone", "Policy", "Said", "TaskState"})
LONGEST_FILE = 600
LONGEST_FUNCTION = 80


def words(name: str) -> set[str]:
    parts = re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name)
    return {part.lower().removesuffix("s") for part in parts}


def functions(file: Path) -> Iterator[tuple[int, str]]:
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield (
                (node.end_lineno or node.lineno) - node.lineno + 1,
                f"{file.relative_to(ROOT)}:{node.lineno} {node.name}",
            )


def empty_names(file: Path) -> list[str]:
    classes = [n.name for n in ast.walk(ast.parse(file.read_text(encoding="utf-8"))) if isinstance(n, ast.ClassDef)]
    return [name for name in [file.stem, *classes] if words(name) & EMPTY_WORDS]


def test_the_public_names_are_the_written_ones_and_resolve() -> None:
    written = (ROOT / "docs" / "public-names.txt").read_text(encoding="utf-8").split()
    assert sorted(getattr(ganger, "__all__", ["__version__"])) == written
    assert [name for name in written if not hasattr(ganger, name)] == []


def test_every_module_says_in_its_first_line_what_it_owns() -> None:
    silent = [f for f in MODULES if not f.read_text(encoding="utf-8").startswith(('"""', 'r"""'))]
    assert [str(file.relative_to(ROOT)) for file in silent] == []


@pytest.mark.parametrize("name", ["task_utils", "StoreManager", "base", "HTTPService", "commonWords", "helpers"])
def test_an_empty_word_is_seen(name: str) -> None:
    assert words(name) & EMPTY_WORDS


@pytest.mark.parametrize("name", ["database", "Baseline", "serviceable_x", "uncommon"])
def test_a_word_that_only_contains_an_empty_one_is_fine(name: str) -> None:
    assert not words(name) & EMPTY_WORDS


def test_no_name_is_an_empty_word() -> None:
    assert {str(file.relative_to(ROOT)): names for file in SOURCES if (names := empty_names(file))} == {}


def test_no_file_is_longer_than_a_reader_can_hold() -> None:
    sizes = {str(file.relative_to(ROOT)): len(file.read_text(encoding="utf-8").splitlines()) for file in SOURCES}
    assert {name: size for name, size in sizes.items() if size > LONGEST_FILE} == {}


def test_no_function_is_longer_than_a_screen() -> None:
    assert [entry for file in SOURCES for entry in functions(file) if entry[0] > LONGEST_FUNCTION] == []


def test_no_public_class_name_stands_for_two_things() -> None:
    trees = [ast.parse(file.read_text(encoding="utf-8")) for file in SOURCES]
    names = Counter(n.name for tree in trees for n in tree.body if isinstance(n, ast.ClassDef) and n.name[0] != "_")
    assert {name for name, count in names.items() if count > 1} == IN_A_FORMAT_TOO
