"""The generated files are fresh, and the conformance page tells the truth about who proves what."""

from __future__ import annotations

from pathlib import Path

import conformance
import generate
import pytest

ROWS = """
[sides]
T = "Threads"
[rows]
T01 = "One"
T02 = "Two | half"
T28 = "Matrix"
"T28 resume" = "Resume"
"T28 pbh-growth" = "Growth"
"""

NAMED = [
    pytest.param("def test_a():\n    '''T01: so'''", {"T01"}, id="docstring"),
    pytest.param("def test_a():\n    '''T01 T02: so'''", {"T01", "T02"}, id="two in one"),
    pytest.param("def test_a():\n    '''T28: so'''", {"T28"}, id="whole matrix"),
    pytest.param("def test_a():\n    '''T28 resume after a stop'''", {"T28 resume"}, id="line of the matrix"),
    pytest.param("def test_a():\n    '''T28 resume pbh-growth: x'''", {"T28 resume", "T28 pbh-growth"}, id="two lines"),
    pytest.param("async def test_a():\n    '''T02: so'''", {"T02"}, id="coroutine"),
    pytest.param("class TestA:\n    '''T01'''\n    def test_b(self):\n        '''T02'''", {"T01", "T02"}, id="class"),
    pytest.param("class M(RuleBasedStateMachine):\n    '''T01'''", {"T01"}, id="state machine"),
    pytest.param("'''T01: all'''\ndef test_a(): ...", {"T01"}, id="module"),
    pytest.param("'''T01: all'''\ndef part(): ...", set(), id="module without tests"),
    pytest.param("def part():\n    '''T01: so'''", set(), id="no test"),
    pytest.param("# T01\ndef test_a(): ...", set(), id="comment"),
    pytest.param("@parametrize('x', [param(1, id='T01 low')])\ndef test_a(x): ...", {"T01"}, id="id of a case"),
    pytest.param("@parametrize('x', [1], ids=['T02'])\ndef test_a(x): ...", {"T02"}, id="list of ids"),
    pytest.param("@parametrize('row, x', [('T01', 1)])\ndef test_a(row, x): ...", {"T01"}, id="column row"),
    pytest.param("@parametrize('x', ['T28 resume', 'T02: y'])\ndef test_a(x): ...", {"T28 resume", "T02"}, id="label"),
    pytest.param("@parametrize('task', ['T01', 'T99'])\ndef test_a(task): ...", set(), id="data"),
]

MISTYPED = ["T99: so", "G77", "T28 resumee", "T28 pbh-grow: so"]


def planted(folder: Path, test: str) -> Path:
    (folder / "docs").mkdir()
    (folder / "docs" / "rows.toml").write_text(ROWS, encoding="utf-8")
    (folder / "tests").mkdir()
    (folder / "tests" / "test_x.py").write_text(test, encoding="utf-8")
    return folder


@pytest.mark.parametrize(("source", "rows"), NAMED)
def test_rows_are_found_where_tests_name_them_and_nowhere_else(tmp_path: Path, source: str, rows: set[str]) -> None:
    root = planted(tmp_path, source)
    evidence = conformance.gather(root, conformance.load_rows(root / "docs" / "rows.toml"))
    assert {row for row, tests in evidence.tests.items() if tests} == rows
    assert evidence.unknown == ()


@pytest.mark.parametrize("claim", MISTYPED)
def test_a_mistyped_row_is_refused_with_its_place(tmp_path: Path, claim: str) -> None:
    root = planted(tmp_path, f"def test_a():\n    '''{claim}'''\n")
    with pytest.raises(conformance.UnknownRowError, match=r"tests/test_x\.py:2: test_a names"):
        conformance.render(root)


def test_the_page_links_tests_counts_rows_and_marks_open_ones(tmp_path: Path) -> None:
    page = conformance.render(planted(tmp_path, "def test_a():\n    '''T01: so'''\n"))
    assert "**1 of 5 rows are named by a test.**" in page
    assert "| T01 | One | [test_a](../tests/test_x.py) |" in page
    assert "| T02 | Two \\| half | open |" in page


def test_a_stale_or_missing_file_is_seen(tmp_path: Path) -> None:
    (tmp_path / "old.md").write_text("old", encoding="utf-8")
    (tmp_path / "same.md").write_text("same", encoding="utf-8")
    files = {Path("old.md"): "new", Path("same.md"): "same", Path("gone.md"): ""}
    assert generate.stale(tmp_path, files) == [Path("old.md"), Path("gone.md")]


def test_check_names_a_stale_file_and_its_cure_and_generate_mends_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = {"page": lambda: {Path("docs/page.md"): "new"}}
    assert generate.main(["--check"], tmp_path, page) == 1
    assert "docs/page.md is stale: run `make generate`" in capsys.readouterr().err
    assert generate.main([], tmp_path, page) == 0
    assert generate.main(["--check"], tmp_path, page) == 0


def test_a_broken_generator_is_told_and_stops_no_other(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def broken() -> generate.Files:
        raise ImportError("no such room")

    assert generate.main([], tmp_path, {"a": broken, "b": lambda: {Path("b.md"): "b"}}) == 1
    assert "a: no such room" in capsys.readouterr().err
    assert (tmp_path / "b.md").read_text(encoding="utf-8") == "b"


def test_every_line_of_the_matrix_is_named_by_a_test_of_its_own() -> None:
    """T28: and nobody else claims the whole of it."""
    rows = conformance.load_rows(generate.ROOT / "docs" / "rows.toml")
    tests = conformance.gather(generate.ROOT, rows).tests
    lines = [row for row in rows.sentences if row.startswith("T28 ")]
    assert len(lines) == 21 and [row for row in lines if not tests[row]] == []
    assert {name.rpartition("::")[2] for name in tests["T28"]} <= {
        "test_every_line_of_the_matrix_is_named_by_a_test_of_its_own"
    }


@pytest.mark.parametrize("generator", generate.GENERATORS)
def test_every_generated_file_is_fresh(generator: str) -> None:
    assert generate.stale(generate.ROOT, generate.GENERATORS[generator]()) == [], "run `make generate`"
