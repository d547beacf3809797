"""Every code a person can meet has its page."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from ganger.contracts.manifest import METADATA_KEYS
from ganger.core.vocabulary import BlockReason, RunStatus, TaskStatus
from ganger.views.reference.codes import entries

SOURCE = Path(__file__).resolve().parents[1] / "src" / "ganger"
CODE = re.compile(r"[A-Z][A-Z0-9]+(?:_[A-Z0-9]+)*")
# Calls whose arguments name a code, and the attribute by which an error class names its own.
CALLS = {"Fault", "refused", "Refused", "CommandFault", "_contract_error", "ScriptProblem"}


def codes_in(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        values: list[ast.expr] = []
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func).rpartition(".")[2]
            values = [*(node.args if name in CALLS else []), *(k.value for k in node.keywords if k.arg == "code")]
        elif isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "code":
            values = [node.value]
        for value in values:
            if isinstance(value, ast.Constant) and isinstance(value.value, str) and CODE.fullmatch(value.value):
                yield value.value


def test_every_code_in_the_source_can_be_explained() -> None:
    """T26: explain knows whatever Ganger says."""
    used = {code: path.name for path in SOURCE.rglob("*.py") for code in codes_in(ast.parse(path.read_text()))}
    known = {entry.code.lower() for entry in entries()}
    assert len(used) > 40
    assert {code: file for code, file in used.items() if code.lower() not in known} == {}


def test_a_code_without_a_page_is_found() -> None:
    """T26: the search sees a planted one."""
    assert list(codes_in(ast.parse('raise GangerError("x", code="NEW_ONE")'))) == ["NEW_ONE"]


def test_every_status_that_people_are_shown_can_be_explained() -> None:
    """T26: what a run's last line says of a task is a word that explain knows."""
    known = {entry.code for entry in entries()}
    assert {*TaskStatus, *BlockReason, RunStatus.COMPLETED, RunStatus.ABORTED} <= known


def test_the_page_of_bad_metadata_names_every_key() -> None:
    """T01 T26: and none that is not read."""
    meaning = next(entry.meaning for entry in entries() if entry.code == "BAD_METADATA")
    assert set(re.split(r"[,:.]? ", meaning.partition("reads: ")[2].rstrip("."))) == METADATA_KEYS
