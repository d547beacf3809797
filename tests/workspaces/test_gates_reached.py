"""What a check reaches through recipes, folders and patterns is a gate; what it only runs of the product is none."""

from __future__ import annotations

import json

import pytest

from ganger.ports.changes import Rules
from ganger.workspaces.gates.gates import Gates, is_expectation, is_test
from tests.workspaces.judged_change import Entry, MadeChange, codes

GATE = "GATE_CHANGED"
MAKE = "RUN = python3\n\ntest: lint\n\t$(RUN) run_all.py\n\nlint:\n\tsh lint.sh\n\nserve:\n\tpython3 serve.py\n"
PACKAGE = {"test": "npm run unit && node t.js", "unit": "node unit.js", "start": "node start.js"}


def gates(before: dict[str, str], path: str, *verify: str, after: str = "b", declared: str = "") -> list[str]:
    """Which paths are called gates when this one is changed."""
    files = (declared,) if declared else None
    rules = Rules(verify=verify, allow_shrinkage=True, create=files, modify=files)
    change = MadeChange(before, {**before, path: after})
    return [one for one, code in codes(change, rules) if code == GATE]


def package(**scripts: str) -> str:
    return json.dumps({"name": "a", "scripts": {**PACKAGE, **scripts}})


REACHED = [
    ("make test", {"Makefile": MAKE}, "run_all.py", True),
    ("make test", {"Makefile": MAKE}, "lint.sh", True),
    ("make", {"Makefile": MAKE}, "run_all.py", True),
    ("make test", {"Makefile": MAKE}, "serve.py", False),
    ("make test", {"Makefile": "include rules.make\n", "rules.make": "test:\n\t./run\n"}, "rules.make", True),
    ("make test", {"Makefile": "include rules.make\n", "rules.make": "test:\n\t./run\n"}, "run", True),
    ("make test", {"Makefile": "include parts/*.inc\ntest:\n\ttrue\n"}, "parts/a.inc", True),
    ("cd web && make test", {"web/Makefile": MAKE}, "web/run_all.py", True),
    ("make ci", {"Makefile": "ci:\n\t$(MAKE) test\ntest:\n\tnode t.js\n"}, "t.js", True),
    ("make ci", {"Makefile": "ci:\n\tnpm test\n", "package.json": package()}, "unit.js", True),
    ("npm test", {"package.json": package()}, "t.js", True),
    ("npm test", {"package.json": package()}, "unit.js", True),
    ("npm test", {"package.json": package()}, "start.js", False),
    ("npm start", {"package.json": package()}, "start.js", True),
    ('python3 -m unittest discover -s checks -p "check_*.py" -t .', {}, "checks/deep/check_a.py", True),
    ('python3 -m unittest discover checks "check_*.py"', {}, "checks/check_a.py", True),
    ('python3 -m unittest discover -s checks -p "check_*.py"', {}, "checks/rules.txt", False),
    ("pytest -o python_files=*.py checks", {}, "checks/money.py", True),
    ("python3 -m pytest -q -o python_files=*.py checks", {}, "calc/money.py", False),
    ("pytest -o python_files=*.py", {}, "calc/money.py", False),
    ("sh verify.d/run.sh", {"verify.d/run.sh": "for f in verify.d/cases/*.py; do :; done\n"}, "verify.d/cases/a", True),
    ("sh verify.d/run.sh", {"verify.d/run.sh": "cd cases && ./all\n"}, "verify.d/cases/deep/a.py", True),
    ("python3 v/run.py", {"v/run.py": "HERE / 'cases'\n"}, "v/cases/a.json", True),
    ("python3 v/run.py", {"v/run.py": "import cases\n"}, "v/other/a.json", False),
    ("sh web/check.sh", {"web/check.sh": "ruff check pages\n"}, "web/pages/a.py", False),
    ("python3 check.py", {"check.py": "open('greeting.txt').read() == 'hello'\n"}, "greeting.txt", False),
    ("python3 check.py", {"check.py": "open('data/greeting.txt').read()\n"}, "data/greeting.txt", False),
]


@pytest.mark.parametrize(("command", "base", "path", "gate"), REACHED)
def test_what_a_recipe_runs_or_a_pattern_collects_is_a_gate(
    command: str, base: dict[str, str], path: str, gate: bool
) -> None:
    """G09: through make, npm, unittest, pytest and a script's own folders; not what a check only mentions."""
    before = {path: "a", **base}
    assert gates(before, path, command) == ([path] if gate else [])
    assert gates(before, path, command, declared=path) == []


EXPECTED = "expected.json out.golden fixtures/a.json snapshots/x/a.txt expected/a api-expected.yaml expected.md"
NOT_EXPECTED = "expected.py unexpected.json app/fixtures/a.json src/golden.ts docs/expected-load.md fixtures/README.md"


@pytest.mark.parametrize("path", [*EXPECTED.split(), *NOT_EXPECTED.split()])
def test_what_results_are_compared_with_is_a_gate_when_the_base_has_it(path: str) -> None:
    """G09: data by its name or its folder at the root; code and documents are none; new ones are free."""
    wanted = path in EXPECTED.split()
    assert is_expectation(path) is wanted
    assert gates({path: "a"}, path, "python3 check.py") == ([path] if wanted else [])
    assert gates({}, path, "python3 check.py") == []


def test_the_folder_of_tests_may_be_spelt_in_any_case() -> None:
    """G09: Tests and TESTS."""
    assert is_test("Tests/verify_calc.py") and is_test("pkg/TESTS/data.json")


@pytest.mark.parametrize(
    ("command", "path"),
    [
        ("python3 app.py", "app.py"),
        ("python3 -m app.main", "app/main.py"),
        ("python3 -m app", "app/__main__.py"),
        ("python3 -m report.monthly", "report/monthly.py"),
        ("node index.js", "index.js"),
        ("node src/server.mjs --once", "src/server.mjs"),
        ("./cli.sh", "cli.sh"),
    ],
)
def test_a_program_of_the_product_is_the_work(command: str, path: str) -> None:
    """G09: running it is a check of it."""
    assert gates({path: "a"}, path, command) == []


@pytest.mark.parametrize(
    ("command", "path"),
    [
        ("python3 run_all.py", "run_all.py"),
        ("python3 tests_all/main.py", "tests_all/main.py"),
        ("python3 checks/app.py", "checks/app.py"),
        ("python3 -m app.selftest", "app/selftest.py"),
        ("python3 manage.py test", "manage.py"),
        ("python3 -m pytest main.py", "main.py"),
        ("node ci.js", "ci.js"),
    ],
)
def test_a_program_that_checks_stays_a_gate(command: str, path: str) -> None:
    """G09: by its name, its folder, or because it runs the tests."""
    assert gates({path: "a"}, path, command) == [path]


@pytest.mark.parametrize("command", ["python3 -m app.main", "python3 -m pytest app/test_a.py", "pytest tests"])
def test_inside_a_package_a_name_shadows_nothing(command: str) -> None:
    """G09: app.types is not types."""
    for name in ("app/types.py", "app/queue.py"):
        assert gates({"app/__init__.py": "# app\n"}, name, command) == []
    new = MadeChange({}, {"app/__init__.py": "", "app/types.py": "x = 1\n"})
    assert codes(new, Rules(verify=(command,))) == []


@pytest.mark.parametrize(
    ("command", "path"),
    [
        ("python3 app/main.py", "app/types.py"),
        ("python3 -m unittest discover -s app", "app/queue.py"),
        ("env PYTHONPATH=app python3 -m pytest", "app/json.py"),
        ("cd app && python3 -m pytest", "app/json.py"),
        ("pytest src", "src/os.py"),
    ],
)
def test_a_package_on_the_path_itself_shadows(command: str, path: str) -> None:
    """G09: a new __init__.py does not close a folder that is imported from."""
    folder = path.partition("/")[0]
    change = MadeChange({}, {path: "x = 1\n", f"{folder}/__init__.py": ""})
    assert (path, GATE) in codes(change, Rules(verify=(command,)))


@pytest.mark.parametrize(
    ("scripts", "command", "gate"),
    [
        ({"build": "tsc"}, "npm test", False),
        ({"start": "node other.js"}, "npm test", False),
        ({"start": "node other.js"}, "npm start", True),
        ({"unit": "true"}, "npm test", True),
        ({"pretest": "true"}, "npm test", True),
        ({"postunit": "true"}, "npm test", True),
        ({"preinstall": "true"}, "npm test", False),
        ({"preinstall": "true"}, "npm ci && npm test", True),
    ],
)
def test_only_scripts_that_a_check_reaches_count(scripts: dict[str, str], command: str, gate: bool) -> None:
    """G09: adding `start` or `build` is work."""
    found = gates({"package.json": package()}, "package.json", command, after=package(**scripts))
    assert found == (["package.json"] if gate else [])


@pytest.mark.parametrize(
    ("more", "gate"),
    [
        ("\n.PHONY: docs\ndocs: README.md\n\tpython3 build_docs.py\n", False),
        ("\n# pictures\nDOCS_OUT := out\nclean:\n\trm -rf $(DOCS_OUT)\n", False),
        ("test:\n\ttrue\n", True),
        ("lint: docs\ndocs:\n\ttrue\n", True),
        ("\ttrue\n", True),
        ("RUN = true\n", True),
        ("SHELL = /bin/true\n", True),
        ("PYTHONPATH = mine\n", True),
        ("OUT := $(shell rm -rf tests)\n", True),
        ("include more.mk\n", True),
        (".PHONY: test\n", True),
        ("%:\n\ttrue\n", True),
        (".DEFAULT:\n\ttrue\n", True),
        ("run_all.py:\n\ttrue\n", True),
        ("define x\nendef\n", True),
        ("$(eval x)\n", True),
        ("override x = 1\n", True),
        ("a = b\\\nRUN = true\n", True),
    ],
)
def test_a_target_that_nothing_asks_for_may_be_added(more: str, gate: bool) -> None:
    """G09: at the end, under a name that is new in every makefile of the check."""
    found = gates({"Makefile": MAKE}, "Makefile", "make test", after=MAKE + more)
    assert found == (["Makefile"] if gate else [])


def test_a_name_that_an_included_file_uses_is_not_new() -> None:
    """G09: and where an included file cannot be read, nothing is."""
    main = "include rules.make\nx:\n\ttrue\n"
    before = {"Makefile": main, "rules.make": "test:\n\t$(CHECK)\n"}
    assert gates(before, "Makefile", "make test", after=main + "CHECK = true\n") == ["Makefile"]
    assert gates(before, "Makefile", "make test", after=main + "docs:\n\ttrue\n") == []
    assert gates({"Makefile": main}, "Makefile", "make test", after=main + "docs:\n\ttrue\n") == ["Makefile"]


def test_the_reason_says_what_happened_and_what_to_do() -> None:
    """G09: a mode, a kind, and the key of the manifest."""
    mode = MadeChange({"tests/test_a.py": "a"}, {"tests/test_a.py": Entry(b"a", 0o100755)})
    reason = Gates(()).gate_of(mode.touched[0], mode)
    assert reason == "a test that exists in the base had its mode changed"
    named = MadeChange({"check.py": "a"}, {"check.py": "b"})
    assert "metadata.files_modify" in (Gates(("python3 check.py",)).gate_of(named.touched[0], named) or "")
