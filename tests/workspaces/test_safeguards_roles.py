"""The built-in roles, and what counts as generated."""

from __future__ import annotations

import pytest

from ganger.ports.changes import Rules
from ganger.workspaces.rules.artifacts import is_generated
from ganger.workspaces.rules.roles import gates_of, paths_of
from tests.workspaces.judged_change import MadeChange, codes


@pytest.mark.parametrize(
    ("role", "path", "allowed"),
    [
        ("worker", "src/a.py", True),
        ("worker", "docs/a.md", True),
        ("tester", "tests/test_a.py", True),
        ("tester", "tests/data/in.json", True),
        ("tester", "src/a_test.go", True),
        ("tester", "web/a.spec.ts", True),
        ("tester", "conftest.py", True),
        ("tester", "src/a.py", False),
        ("tester", "Makefile", False),
        ("docser", "README.md", True),
        ("docser", "docs/img/a.png", True),
        ("docser", "src/pkg/NOTES.rst", True),
        ("docser", "requirements.txt", False),
        ("docser", "cmakelists.TXT", False),
        ("docser", "src/a.py", False),
        ("docser", "LICENSE", False),
        ("mine", "src/a.py", True),
    ],
)
def test_built_in_roles_touch_what_they_are_for(role: str, path: str, allowed: bool) -> None:
    """W01."""
    found = codes(MadeChange({}, {path: "x"}), Rules(paths=paths_of(role, None), may_change_gates=True))
    assert found == ([] if allowed else [(path, "OUTSIDE_ROLE")])


def test_the_configuration_overrules_the_built_in_paths_and_gates() -> None:
    """W01: also with nothing."""
    assert paths_of("tester", ("qa/**",)) == ("qa/**",)
    assert paths_of("worker", ()) == ()
    assert [gates_of(role, None) for role in ("worker", "tester", "docser", "mine")] == [False, True, False, False]
    assert (gates_of("tester", False), gates_of("mine", True)) == (False, True)


def test_a_tester_may_change_a_test_and_a_worker_may_not() -> None:
    """W01 G09: gate files need a role that allows it."""
    change = MadeChange({"tests/test_a.py": "a"}, {"tests/test_a.py": "b"})
    for role, found in (("tester", []), ("worker", [("tests/test_a.py", "GATE_CHANGED")])):
        rules = Rules(paths=paths_of(role, None), may_change_gates=gates_of(role, None))
        assert codes(change, rules) == found


GENERATED = """
a/__pycache__/b.cpython-311.pyc  x.pyc  .pytest_cache/v/cache/nodeids  .mypy_cache/3.11/a.json  node_modules/a/index.js
node_modules  web/node_modules/.bin/jest  .venv/bin/python  venv/bin/pytest  venv/lib/python3.11/site-packages/a.py
venv/pyvenv.cfg  .DS_Store  sub/.DS_Store  .coverage  .coverage.host.123  calc.egg-info/PKG-INFO
src/c.egg-info/SOURCES.txt  target/debug/deps/a.rlib  rust/target/release/.fingerprint/x
target/x86_64-unknown-linux-gnu/debug/build/a  target/CACHEDIR.TAG  .hypothesis/examples/ab  .tox/py311/log
.eslintcache  tsconfig.tsbuildinfo  .a.py.swp  .ruff_cache/0.1/x
"""
WORK = """
build/index.js  dist/app.js  target/notes.md  target/debug.py  src/target/model.py  out/a.txt  bin/run  vendor/lib.go
coverage/report.py  .coveragerc  venv/models.py  env/settings.py  data.egg  docs/pyc.md  cache/a.py  package-lock.json
egg-info/a.py  a.egg-info/mine.py  target/debug/main.c  lib/a.so  .gitignore  .env.example
"""


@pytest.mark.parametrize("path", GENERATED.split())
def test_what_tools_leave_behind_is_generated(path: str) -> None:
    """W05: dropped and remembered."""
    assert is_generated(path)


@pytest.mark.parametrize("path", WORK.split())
def test_what_may_be_somebodys_work_is_never_dropped(path: str) -> None:
    """W05: a false drop loses work."""
    assert not is_generated(path)
