"""The conformance page: which tests prove which row of docs/rows.toml."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

ROW = re.compile(r"\b([TDHWZG]\d{2})\b((?: [a-z][a-z-]*)*)")
LABEL = re.compile(r"[TDHWZG]\d{2}:|T28 [a-z]")
MATRIX = "T28"


class UnknownRowError(Exception):
    """Ids that tests name and docs/rows.toml does not have."""


@dataclass(frozen=True, slots=True)
class Rows:
    sides: Mapping[str, str]
    sentences: Mapping[str, str]

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
    return Rows(sides=data["sides"], sentences=data["rows"])


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
                if row in tests:
                    tests[row].add(claim.test)
                else:
                    unknown.append(
                        f"{file}:{claim.line}: {claim.test.rpartition('::')[2]} names {row}, which is no row"
                    )
    return Evidence({row: frozenset(names) for row, names in tests.items()}, tuple(unknown))


def link(test: str) -> str:
    file, _, name = test.partition("::")
    return f"[{name or file}](../{file})"


def table(side: str, rows: Rows, evidence: Evidence) -> Iterator[str]:
    yield f"## {side}: {rows.sides[side]}"
    yield ""
    yield "| row | what holds | proved by |"
    yield "| --- | --- | --- |"
    for row in rows.of_side(side):
        proof = "<br>".join(link(test) for test in sorted(evidence.tests[row])) or "open"
        yield f"| {row} | {rows.sentences[row].replace('|', chr(92) + '|')} | {proof} |"
    yield ""


def render(root: Path) -> str:
    rows = load_rows(root / "docs" / "rows.toml")
    evidence = gather(root, rows)
    if evidence.unknown:
        raise UnknownRowError("\n".join([*evidence.unknown, "correct the id, or add the row to docs/rows.toml"]))
    covered = sum(1 for names in evidence.tests.values() if names)
    lines = [
        "# Conformance",
        "",
        "Generated by `make generate` from docs/rows.toml and the row ids that tests name. Do not edit.",
        "",
        f"**{covered} of {len(rows.sentences)} rows are named by a test.** A row marked open has none yet.",
        "",
    ]
    for side in rows.sides:
        lines.extend(table(side, rows, evidence))
    return "\n".join(lines)
