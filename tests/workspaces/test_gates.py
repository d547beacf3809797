"""What is a gate file: tests of the base, configuration, what commands name, what shadows; and what is none."""

from __future__ import annotations

import fnmatch
import stat

import pytest

from ganger.ports.changes import Rules
from ganger.workspaces.gates.files import GATE_FILES, TEST_FILES
from ganger.workspaces.gates.gates import Gates, is_test
from tests.workspaces.judged_change import Entry, MadeChange, codes, link

PYTEST = ("python3 -m pytest tests",)
GATE = "GATE_CHANGED"


def gates(before: dict[str, str], after: dict[str, str], *verify: str, declared: str = "") -> list[str]:
    """The paths that are called gates; `declared` is what the task says it writes."""
    files = (declared,) if declared else None
    rules = Rules(verify=verify, allow_shrinkage=True, create=files, modify=files)
    found = codes(MadeChange(before, after), rules)
    return [path for path, code in found if code == GATE]


TESTS = """
tests/test_a.py  a_test.py  app/tests.py  tests/data/in.json  test/helper.js  src/a.test.ts  src/a.spec.jsx
pkg/a_test.go  src/__tests__/a.js  src/test/java/ATest.java  AppTests.cs  spec/models/user_spec.rb  spec/support/x.rb
testdata/a.golden  golden/out.txt  __snapshots__/a.snap  tests/ui/a.png  a.bats  features/login.feature
lib/a_test.exs  e2e/login.ts
"""
NO_TESTS = """
src/a.py  contest.py  latest.java  src/Latest.java  spec/api.yaml  specs/design.md  tests/README.md  testing/tool.py
docs/test.md  src/attest.go  protest.js  src/testify.rs
"""
SHADOWS = """
pytest.py  _pytest/__init__.py  unittest/__init__.py  json.py  Random.PY  tests/pluggy.py  re.so  src/os.py
"""


@pytest.mark.parametrize("path", TESTS.split())
def test_a_test_of_the_base_is_a_gate_and_a_new_one_is_not(path: str) -> None:
    """G09: modified, deleted, moved, retyped, chmod; anybody may add."""
    assert is_test(path)
    assert gates({}, {path: "b"}) == []
    for after in ({path: "b"}, {}, {"x/moved.txt": "a"}):
        assert gates({path: "a"}, after) == [path]
    for entry in (link("other"), Entry(b"a", stat.S_IFREG | 0o755)):
        assert codes(MadeChange({path: "a"}, {path: entry}))[0] == (path, GATE)


@pytest.mark.parametrize("path", NO_TESTS.split())
def test_a_name_that_only_resembles_a_test_is_no_gate(path: str) -> None:
    """G09: product files, documents and specifications may be worked on."""
    assert not is_test(path)
    assert gates({path: "a"}, {path: "b"}, *PYTEST) == []


def test_every_row_of_tests_matches_a_name_of_its_kind() -> None:
    """G09: no row is dead."""
    for glob in TEST_FILES:
        assert is_test("src/" + glob.replace("*", "Some")), glob


PLAIN = [row for row in GATE_FILES if row.look is None]
ROWS = [(name, row.runs.split()) for row in PLAIN if not row.only_new for name in row.names.split()]
NEW_ROWS = [(name, row.runs.split()) for row in PLAIN if row.only_new for name in row.names.split()]


@pytest.mark.parametrize(("name", "programs"), ROWS, ids=[name for name, _ in ROWS])
def test_configuration_is_a_gate_whether_new_changed_or_deleted(name: str, programs: list[str]) -> None:
    """G09: every row of the table, in any folder and in any case, and only where its program is run."""
    path = "web/" + name.replace("*", "x").upper()
    command = f"{programs[0]} test" if programs else "sh run"
    for before, after in (({}, {path: "a"}), ({path: "a"}, {path: "b"}), ({path: "a"}, {})):
        assert gates(before, after, command) == [path]
        if programs and not fnmatch.fnmatch("x.py", name):
            assert gates(before, after, "true") == []


@pytest.mark.parametrize(("name", "programs"), NEW_ROWS, ids=[name for name, _ in NEW_ROWS])
def test_what_steers_a_check_as_soon_as_it_comes_is_a_gate_only_then(name: str, programs: list[str]) -> None:
    """G09: where its program is run; one that the base has may be worked on."""
    path = "web/" + name.replace("*", "x").upper()
    for program in programs:
        assert gates({}, {path: "a"}, f"{program} test") == [path]
    assert gates({path: "a"}, {path: "b"}, f"{programs[0]} test") == gates({}, {path: "a"}, "true") == []


def test_a_star_stays_inside_one_name() -> None:
    """G09: tsconfig-paths/a.json is a source file."""
    assert gates({}, {"tsconfig-paths/a.json": "{}", "dockerfiles/a.txt": "x"}, "docker build .") == []
    assert gates({}, {"tsconfig.build.json": "{}"}) == ["tsconfig.build.json"]


@pytest.mark.parametrize(
    ("command", "named"),
    [
        ("bash scripts/check.sh", "scripts/check.sh"),
        ("./scripts/check.sh --all", "scripts/check.sh"),
        ("env A=b timeout 60 python3 check.py", "check.py"),
        ("cd tools && python3 check.py", "tools/check.py"),
        ("python3 -m checks.quick", "checks/quick.py"),
        ("python3 checks", "checks/__main__.py"),
        ("node scripts/run.mjs", "scripts/run.mjs"),
        ("sh -c 'python3 x/check.py | tee log'", "x/check.py"),
        ("sh -ec 'cd x && ./y.sh'", "x/y.sh"),
        ("diff expected.txt out.txt", "expected.txt"),
        ("pytest -c own.ini src", "own.ini"),
        ("pytest -cown.ini src", "own.ini"),
        ("mypy --config-file=types.ini src/a.py", "types.ini"),
        ("pytest -p plug src", "plug.py"),
        ("make -f build/rules.txt", "build/rules.txt"),
        ("uv run python checks/all.py", "checks/all.py"),
        ("coverage run checks/all.py", "checks/all.py"),
        ("python3 tool.py @arguments.txt", "arguments.txt"),
    ],
)
def test_a_file_that_a_command_names_is_a_gate_when_the_base_has_it(command: str, named: str) -> None:
    """G09: scripts, configuration, expectations; unless the task declares that it writes it."""
    assert gates({named: "a"}, {named: "b"}, command) == [named]
    assert gates({}, {named: "b"}, command) == []
    assert gates({named: "a"}, {named: "b"}, command, declared=named) == []


@pytest.mark.parametrize(
    "command",
    [
        "ruff check src/a.py",
        "python3 -m py_compile src/a.py",
        "python3 -m mypy src/a.py",
        "grep -q done src/a.py",
        "test -f src/a.py",
        "node_modules/.bin/eslint src/a.py",
        "pytest --cov=src/a tests",
        "python3 -m unittest discover -s src",
        "gcc -o a src/a.py",
    ],
)
def test_what_a_command_examines_is_no_gate(command: str) -> None:
    """G09: the subject of a check is the work itself."""
    assert gates({"src/a.py": "a"}, {"src/a.py": "b"}, command) == []


@pytest.mark.parametrize(
    ("command", "user", "text", "used"),
    [
        ("bash scripts/check.sh", "scripts/check.sh", "set -e\npython3 scripts/rules.py\n", "scripts/rules.py"),
        ("bash ci/all.sh", "ci/all.sh", "for x in a; do\n  ./ci/one.sh $x || exit 1\ndone\n", "ci/one.sh"),
        ("python3 scripts/check.py", "scripts/check.py", "import sys\nfrom rules import R\n", "scripts/rules.py"),
        ("make test", "Makefile", "test:\n\t@bash tools/run.sh\n", "tools/run.sh"),
        ("npm test", "package.json", '{"scripts": {"test": "node scripts/t.js"}}', "scripts/t.js"),
    ],
)
def test_what_a_check_uses_is_a_gate_as_well(command: str, user: str, text: str, used: str) -> None:
    """G09: the script behind the script."""
    assert gates({user: text, used: "a"}, {user: text, used: "b"}, command) == [used]


def test_the_product_that_a_check_runs_is_no_gate() -> None:
    """G09: only what lies beside the script or among the tools belongs to it."""
    script = "python3 src/app.py --selftest\npython3 -m app.report\ncat data/in.txt\n"
    before = {"scripts/check.sh": script, "src/app.py": "a", "app/report.py": "a", "data/in.txt": "a"}
    assert gates(before, {**before, "src/app.py": "b", "app/report.py": "b"}, "bash scripts/check.sh") == []


def test_a_recipe_reached_through_a_script_is_a_gate() -> None:
    """G09: the command runs a script, the script runs make."""
    before = {"scripts/check.sh": "make test\n", "Makefile": "test:\n\tpytest\n"}
    assert gates(before, {**before, "Makefile": "test:\n\ttrue\n"}, "sh scripts/check.sh") == ["Makefile"]
    assert gates({"Makefile": "a"}, {"Makefile": "b"}, *PYTEST) == []


@pytest.mark.parametrize("path", SHADOWS.split())
def test_a_new_module_in_the_place_of_a_real_one_is_a_gate(path: str) -> None:
    """G09: runner and standard library; a package that the base has may be worked on."""
    assert gates({}, {path: "x"}, *PYTEST) == [path]
    assert gates({path: "x"}, {path: "y"}, "sh run") == ([path] if path.startswith("tests/") else [])


def test_shadows_are_looked_for_where_commands_run() -> None:
    """G09: the folder of a cd and that of a script; elsewhere a name is only a name."""
    files = {"tools/json.py": "x", "app/json.py": "x", "web/types.ts": "x", "profile": "x"}
    assert gates({}, files, "cd tools && python3 -m pytest") == ["tools/json.py"]
    assert gates({}, files, "python3 tools/check.py") == ["tools/json.py"]
    assert gates({}, files, *PYTEST) == []
    assert codes(MadeChange({}, {"unittest": link("app")}), Rules(verify=PYTEST))[0] == ("unittest", GATE)


def test_a_module_beside_the_tests_may_not_stand_in_for_the_product() -> None:
    """G09: runners look among the tests first."""
    before = {"calc/__init__.py": "x = 1\n"}
    assert gates(before, {**before, "tests/calc.py": "x = 2\n"}, *PYTEST) == ["tests/calc.py"]
    assert gates(before, {**before, "tests/helpers.py": "x = 2\n"}, *PYTEST) == []


@pytest.mark.parametrize(
    "path", ["bin/python3", "pytest", "scripts/make", "node_modules/.bin/jest", ".venv/bin/x", "a/site-packages/x.py"]
)
def test_a_program_in_the_place_of_a_real_one_is_a_gate(path: str) -> None:
    """G09: PATH tricks and installed packages."""
    commands = ("python3 -m pytest", "make test", "pytest tests")
    assert codes(MadeChange({}, {path: Entry(b"x", 0o100755)}), Rules(verify=commands)) == [(path, GATE)]


def test_gates_fall_for_who_may_and_protection_does_not() -> None:
    """G09: may_change_gates lifts the gates alone."""
    change = MadeChange({"tests/test_a.py": "a"}, {"tests/test_a.py": "b", "conftest.py": "x", ".git/config": "x"})
    assert codes(change, Rules(may_change_gates=True)) == [(".git/config", "PATH_PROTECTED")]


def test_new_configuration_that_the_task_declares_is_its_work() -> None:
    """G09 Z08: a task that shall set a project up names the file; an existing one needs the permission."""
    assert gates({}, {"pytest.ini": "[pytest]"}, declared="pytest.ini") == []
    assert gates({"pytest.ini": "a"}, {"pytest.ini": "b"}, declared="pytest.ini") == ["pytest.ini"]
    assert gates({}, {"json.py": "x"}, declared="json.py") == ["json.py"]


def test_the_reason_is_a_part_of_a_sentence() -> None:
    """G09: told to the task and to people."""
    change = MadeChange({"tests/test_a.py": "a"}, {})
    assert Gates(PYTEST).gate_of(change.touched[0], change) == "a test that exists in the base was deleted"
