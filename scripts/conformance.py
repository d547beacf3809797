"""The conformance page: which tests prove which row of docs/rows.toml, and whether they may."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

ROW = re.compile(r"\b([TDHWZG]\d{2})\b((?: [a-z][a-z-]*)*)")
LABEL = re.compile(r"[TDHWZG]\d{2}:|T28 [a-z]")
MATRIX = "T28"
SHOWN = 3


class UnknownRowError(Exception):
    """Claims that docs/rows.toml does not allow: of no row, from the wrong place, or best without being a proof."""


@dataclass(frozen=True, slots=True)
class Rows:
    """`places` says where the proofs of a row may live, `best` which of them to look at first."""

    sides: Mapping[str, str]
    sentences: Mapping[str, str]
    places: Mapping[str, Sequence[str]] = field(default_factory=dict)
    best: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def may_live_in(self, row: str, file: str) -> bool:
        places = self.places.get(row, ())
        return any(file.startswith(place) if place.endswith("/") else file == place for place in places)

    def of_side(self, side: str) -> list[str]:
        return [row for row in self.sentences if row.startswith(side)]


@dataclass(frozen=True, slots=True)
class Claim:
    """A text in a test that may name rows."""

    test: str
    line: int
    text: str


@dataclass(frozen=True, slots=True)
class Evidence:
    """Tests per row, and every id that is no row, with its place."""

    tests: Mapping[str, frozenset[str]]
    unknown: tuple[str, ...]


def load_rows(path: Path) -> Rows:
    data = tomllib.loads(path.read_text(encoding="utf-8"))
    return Rows(data["sides"], data["rows"], data.get("places", {}), data.get("best", {}))


def rows_named(text: str, rows: Rows) -> Iterator[str]:
    """Ids as written; after T28 the next words are lines of the matrix as long as they are known ones."""
    for match in ROW.finditer(text):
        row, words = match.group(1), match.group(2).split()
        if row != MATRIX or not words:
            yield row
            continue
        yield f"{row} {words[0]}"
        for word in words[1:]:
            if f"{row} {word}" not in rows.sentences:
                break
            yield f"{row} {word}"


def claims_of(source: str, file: str) -> Iterator[Claim]:
    module = ast.parse(source, file)
    tests = [node for node in ast.walk(module) if is_test(node)]
    if tests:
        yield from docstring_claim(module, file)
    for owner, node in with_owner(module):
        name = f"{file}::{owner}{node.name}"
        yield from docstring_claim(node, name)
        for decorator in node.decorator_list:
            yield from parametrize_claims(decorator, name)


def is_test(node: ast.AST) -> bool:
    return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test")


def is_test_class(node: ast.ClassDef) -> bool:
    return node.name.startswith("Test") or any(ast.unparse(parent).endswith("StateMachine") for parent in node.bases)


def with_owner(module: ast.Module) -> Iterator[tuple[str, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef]]:
    for node in module.body:
        if isinstance(node, ast.ClassDef) and is_test_class(node):
            yield "", node
            for inner in node.body:
                if isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef) and is_test(inner):
                    yield f"{node.name}::", inner
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and is_test(node):
            yield "", node


def docstring_claim(
    node: ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef, name: str
) -> Iterator[Claim]:
    text = ast.get_docstring(node)
    if text:
        yield Claim(name, node.body[0].lineno, text)


def parametrize_claims(decorator: ast.expr, name: str) -> Iterator[Claim]:
    """Ids of cases, values of a parameter called `row`, and labels such as "T28 resume" or "T07: why".

    Any other string is data: a task called T01 proves nothing.
    """
    if not isinstance(decorator, ast.Call) or not ast.unparse(decorator.func).endswith("parametrize"):
        return
    named_row = bool(decorator.args) and re.search(r"\brow\b", ast.unparse(decorator.args[0])) is not None
    as_ids = {
        id(constant)
        for keyword in ast.walk(decorator)
        if isinstance(keyword, ast.keyword) and keyword.arg in {"id", "ids"}
        for constant in ast.walk(keyword.value)
    }
    for node in ast.walk(decorator):
        if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
            continue
        if named_row or id(node) in as_ids or LABEL.match(node.value):
            yield Claim(name, node.lineno, node.value)


def gather(root: Path, rows: Rows) -> Evidence:
    tests: dict[str, set[str]] = {row: set() for row in rows.sentences}
    unknown: list[str] = []
    for path in sorted((root / "tests").rglob("test_*.py")):
        file = path.relative_to(root).as_posix()
        for claim in claims_of(path.read_text(encoding="utf-8"), file):
            for row in rows_named(claim.text, rows):
                said = f"{file}:{claim.line}: {claim.test.rpartition('::')[2]} names {row}"
                if row not in tests:
                    unknown.append(f"{said}, which is no row")
                elif not rows.may_live_in(row, file):
                    unknown.append(f"{said}, whose proofs live elsewhere ([places] in docs/rows.toml)")
                else:
                    tests[row].add(claim.test)
    unknown += misplaced(rows, tests)
    return Evidence({row: frozenset(names) for row, names in tests.items()}, tuple(unknown))


def is_quick(root: Path, test: str) -> bool:
    """Whether `make test` runs it: its own marks count before those of its class and its module."""
    file, *names = test.split("::")
    body: list[ast.stmt] = ast.parse((root / file).read_text(encoding="utf-8")).body
    levels = [[ast.unparse(node.value) for node in body if isinstance(node, ast.Assign) and _sets_marks(node)]]
    for name in names:
        node = next(
            n for n in body if isinstance(n, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and n.name == name
        )
        levels.append([ast.unparse(decorator) for decorator in node.decorator_list])
        body = node.body
    for marks in reversed(levels):
        found = set(re.findall(r"pytest\.mark\.(quick|whole|slow|agents_full)\b(?!\()", " ".join(marks)))
        if found:
            return found == {"quick"}
    return True


def _sets_marks(node: ast.Assign) -> bool:
    return ast.unparse(node.targets[0]) == "pytestmark"


def misplaced(rows: Rows, tests: Mapping[str, set[str]]) -> Iterator[str]:
    """Lines of docs/rows.toml that say what is not so."""
    for row in sorted({*rows.places, *rows.best} - tests.keys()):
        yield f"docs/rows.toml: {row} has places or best tests, and is no row"
    for row, named in rows.best.items():
        found = {test.rpartition("::")[2] for test in tests.get(row, ())}
        for test in named:
            if test not in found:
                yield f"docs/rows.toml: {test} is best for {row}, which no test of that name claims"


def best_of(row: str, rows: Rows, tests: frozenset[str]) -> list[str]:
    """The named ones in their order; of a row that names none, all if they are few."""
    named = [test for name in rows.best.get(row, ()) for test in sorted(tests) if test.rpartition("::")[2] == name]
    return named or sorted(tests)[:SHOWN]


def proof(row: str, rows: Rows, tests: frozenset[str]) -> str:
    if not tests:
        return "open"
    best = best_of(row, rows, tests)
    more = len(tests) - len(best)
    return "<br>".join([*map(link, best), *([f"and {more} more"] if more else [])])


def link(test: str) -> str:
    file, _, name = test.partition("::")
    return f"[{name or file}](../{file})"


def table(side: str, rows: Rows, evidence: Evidence) -> Iterator[str]:
    yield f"## {side}: {rows.sides[side]}"
    yield ""
    yield "| row | what holds | best proved by |"
    yield "| --- | --- | --- |"
    for row in rows.of_side(side):
        sentence = rows.sentences[row].replace("|", chr(92) + "|")
        yield f"| {row} | {sentence} | {proof(row, rows, evidence.tests[row])} |"
    yield ""


def render(root: Path) -> str:
    rows = load_rows(root / "docs" / "rows.toml")
    evidence = gather(root, rows)
    if evidence.unknown:
        raise UnknownRowError("\n".join([*evidence.unknown, "correct the claim, or docs/rows.toml"]))
    covered = sum(1 for names in evidence.tests.values() if names)
    lines = [
        "# Conformance",
        "",
        "Generated by `make generate` from docs/rows.toml and the row ids that tests name. Do not edit.",
        "",
        f"**{covered} of {len(rows.sentences)} rows are proved by a test.** A row marked open has no proof yet.",
        "Of the others the tests that prove it best are named, at least one of which `make test` runs.",
        "The rest is counted, and `grep -rn T01 tests` finds all of one row.",
        "",
    ]
    for side in rows.sides:
        lines.extend(table(side, rows, evidence))
    return "\n".join(lines)
