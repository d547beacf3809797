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
[places]
T01 = ["tests/"]
T02 = ["tests/test_x.py"]
T28 = ["tests/"]
"T28 resume" = ["tests/"]
"T28 pbh-growth" = ["tests/"]
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
    assert "**1 of 5 rows are proved by a test.**" in page
    assert "| T01 | One | [test_a](../tests/test_x.py) |" in page
    assert "| T02 | Two \\| half | open |" in page


def test_the_best_are_shown_in_their_order_and_the_rest_is_counted(tmp_path: Path) -> None:
    tests = "".join(f"def test_{name}():\n    '''T01: so'''\n" for name in "abcd")
    root = planted(tmp_path, tests)
    assert "test_b](../tests/test_x.py)<br>[test_c](../tests/test_x.py)<br>and 1 more |" in conformance.render(root)
    with open(root / "docs" / "rows.toml", "a", encoding="utf-8") as rows:
        rows.write('[best]\nT01 = ["test_d", "test_a"]\n')
    shown = "| T01 | One | [test_d](../tests/test_x.py)<br>[test_a](../tests/test_x.py)<br>and 2 more |"
    assert shown in conformance.render(root)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ("[best]\nT01 = ['test_b']", "test_b is best for T01, which no test of that name claims"),
        ("[best]\nT77 = ['test_a']", "T77 has places or best tests, and is no row"),
    ],
)
def test_a_best_proof_that_is_none_is_refused(tmp_path: Path, more: str, said: str) -> None:
    root = planted(tmp_path, "def test_a():\n    '''T01: so'''\n")
    with open(root / "docs" / "rows.toml", "a", encoding="utf-8") as rows:
        rows.write(more)
    with pytest.raises(conformance.UnknownRowError, match=said):
        conformance.render(root)


def test_a_row_is_claimed_from_its_places_only(tmp_path: Path) -> None:
    """An unrelated test proves nothing, whatever its docstring says."""
    root = planted(tmp_path, "")
    (root / "tests" / "test_y.py").write_text("def test_a():\n    '''T02: so'''\n", encoding="utf-8")
    with pytest.raises(conformance.UnknownRowError, match=r"test_y\.py:2: test_a names T02, whose proofs live else"):
        conformance.render(root)


def test_every_row_with_a_proof_has_one_of_its_best_in_the_quick_slice() -> None:
    rows = conformance.load_rows(generate.ROOT / "docs" / "rows.toml")
    found = conformance.gather(generate.ROOT, rows).tests
    proved = {row: conformance.best_of(row, rows, tests) for row, tests in found.items() if tests}
    assert [row for row in proved if len(found[row]) > 3 and row not in rows.best] == []
    assert [row for row, best in proved.items() if not any(conformance.is_quick(generate.ROOT, t) for t in best)] == []


QUICK = [
    ("def test_a(): ...", True),
    ("@pytest.mark.whole\ndef test_a(): ...", False),
    ("@pytest.mark.slow\ndef test_a(): ...", False),
    ("pytestmark = pytest.mark.whole\ndef test_a(): ...", False),
    ("pytestmark = [pytest.mark.needs('x'), pytest.mark.whole]\ndef test_a(): ...", False),
    ("pytestmark = pytest.mark.whole\n@pytest.mark.quick\ndef test_a(): ...", True),
    ("@pytest.mark.whole\nclass TestX:\n    def test_a(self): ...", False),
]


@pytest.mark.parametrize(("source", "quick"), QUICK)
def test_what_is_quick_is_read_from_the_marks(tmp_path: Path, source: str, quick: bool) -> None:
    """As pytest reads them: the nearest mark counts."""
    name = "TestX::test_a" if "class" in source else "test_a"
    assert conformance.is_quick(planted(tmp_path, source), f"tests/test_x.py::{name}") is quick


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
