"""Files with many purposes: only what belongs to the gate counts, and what cannot be read counts as changed."""

from __future__ import annotations

import json

import pytest

from ganger.ports.changes import Rules
from tests.workspaces.judged_change import MadeChange, codes, link

PROJECT = '[project]\nname = "a"\ndependencies = ["x"]\n'
PYPROJECT = PROJECT + '[tool.pytest.ini_options]\naddopts = "-q"\n[tool.ruff]\nline-length = 88\n'
SETUP = (
    "[metadata]\nname = a\n[options]\ninstall_requires =\n    x\n[tool:pytest]\naddopts = -q\n[flake8]\nignore = E1\n"
)
PACKAGE = {"name": "a", "scripts": {"test": "jest"}, "devDependencies": {"jest": "^29.0.0"}}
CARGO = '[package]\nname = "a"\n[dependencies]\nserde = "1"\n[lib]\nname = "a"\n[profile.test]\nopt-level = 0\n'
POM = "<project>\n<dependency>a</dependency>\n<plugin>\n<artifactId>surefire</artifactId>\n</plugin>\n</project>\n"


def package(**changes: object) -> str:
    return json.dumps({**PACKAGE, **changes})


def is_gate(path: str, before: str | None, after: str | None) -> bool:
    old = {} if before is None else {path: before}
    new = {} if after is None else {path: after}
    found = codes(MadeChange(old, new), Rules(allow_shrinkage=True))
    assert {code for _, code in found} <= {"GATE_CHANGED"}
    return bool(found)


HONEST = [
    ("pyproject.toml", PYPROJECT, PYPROJECT.replace('["x"]', '["x", "y>=2"]')),
    ("pyproject.toml", PYPROJECT, PYPROJECT + '[tool.poetry.group.dev.dependencies]\nrich = "13"\n'),
    ("pyproject.toml", None, '[project]\nname = "a"\n'),
    ("sub/pyproject.toml", PYPROJECT, PYPROJECT.replace('name = "a"', 'name = "b"')),
    ("setup.cfg", SETUP, SETUP.replace("    x\n", "    x\n    y\n")),
    ("package.json", package(), package(dependencies={"left-pad": "^1"})),
    ("package.json", package(), package(devDependencies={"jest": "~29.1.0"}, version="2.0.0")),
    ("package.json", None, '{"name": "a", "dependencies": {}}'),
    ("Cargo.toml", CARGO, CARGO.replace('serde = "1"', 'serde = "1"\nrand = "0.8"')),
    ("go.mod", "module a\n\ngo 1.22\n", "module a\n\ngo 1.22\n\nrequire x v1.0.0\n"),
    ("pom.xml", POM, POM.replace("<plugin>", "<dependency>b</dependency>\n<plugin>", 1)),
    ("CMakeLists.txt", "add_library(a a.c)\nadd_test(t t)\n", "add_library(a a.c b.c)\nadd_test(t t)\nadd_test(u u)\n"),
    ("composer.json", '{"require": {"a": "1"}}', '{"require": {"a": "1", "b": "2"}}'),
    ("vite.config.ts", "plugins: [a]\n", "plugins: [a, b]\n"),
]
CHEATING = [
    ("pyproject.toml", PYPROJECT, PYPROJECT.replace('"-q"', '"-q --co"')),
    ("pyproject.toml", PYPROJECT, PYPROJECT.replace("88", "500")),
    ("pyproject.toml", PYPROJECT, PYPROJECT + '[project.entry-points.pytest11]\nx = "x"\n'),
    ("pyproject.toml", PYPROJECT, None),
    ("pyproject.toml", None, "[tool.pytest.ini_options]\naddopts = '--co'\n"),
    ("PyProject.toml", None, "[tool.coverage.report]\nfail_under = 0\n"),
    ("pyproject.toml", PYPROJECT, PYPROJECT + "broken ="),
    ("pyproject.toml", "broken =", '[project]\nname = "a"\n'),
    ("setup.cfg", SETUP, SETUP.replace("-q", "--co")),
    ("setup.cfg", SETUP, SETUP.replace("[tool:pytest]", "[tool:none]")),
    ("setup.cfg", SETUP, SETUP.replace("E1", "E,W,F")),
    ("setup.cfg", None, "[tool:pytest]\naddopts = --co\n"),
    ("setup.cfg", SETUP, "[metadata\n"),
    ("package.json", package(), package(scripts={"test": "true"})),
    ("package.json", package(), package(jest={"testMatch": []})),
    ("package.json", package(), package(devDependencies={"jest": "file:./mine"})),
    ("package.json", package(), package(overrides={"jest": "npm:other@1"})),
    ("package.json", package(), "[]"),
    ("package.json", package(), "{"),
    ("package.json", package(), "[" * 100_000),
    ("package.json", package(), None),
    ("Cargo.toml", CARGO, CARGO.replace("opt-level = 0", "debug-assertions = false")),
    ("Cargo.toml", CARGO, CARGO.replace('[lib]\nname = "a"', '[lib]\nname = "a"\ntest = false')),
    ("Cargo.toml", CARGO, CARGO + '[[test]]\nname = "t"\nharness = false\n'),
    ("go.mod", "module a\n", "module a\nreplace testing => ./mine\n"),
    ("pom.xml", POM, POM.replace("</plugin>", "<skipTests>true</skipTests></plugin>")),
    ("app/build.gradle", "dependencies {}\n", "dependencies {}\ntest { enabled = false }\n"),
    ("CMakeLists.txt", "add_library(a a.c)\nadd_test(t t)\n", "add_library(a a.c)\n"),
    ("composer.json", '{"scripts": {"test": "phpunit"}}', '{"scripts": {"test": "true"}}'),
    ("vite.config.ts", "plugins: []\n", "plugins: []\ntest: { include: [] }\n"),
]


@pytest.mark.parametrize(("path", "before", "after"), HONEST)
def test_a_dependency_or_a_name_may_be_changed(path: str, before: str | None, after: str | None) -> None:
    """G09: what has nothing to do with the gate passes."""
    assert not is_gate(path, before, after)


@pytest.mark.parametrize(("path", "before", "after"), CHEATING)
def test_a_section_that_judges_is_a_gate(path: str, before: str | None, after: str | None) -> None:
    """G09: changed, added, removed, made unreadable."""
    assert is_gate(path, before, after)


def test_a_link_in_the_place_of_such_a_file_is_a_gate() -> None:
    """G09: what it leads to was not compared."""
    for target in ("other.toml", "a = 1"):
        change = MadeChange({"pyproject.toml": PYPROJECT}, {"pyproject.toml": link(target)})
        assert ("pyproject.toml", "GATE_CHANGED") in codes(change)


def test_one_too_large_to_compare_is_a_gate() -> None:
    """G09: every limit fails closed."""
    assert is_gate("pyproject.toml", PYPROJECT, PYPROJECT + "# padding\n" * 120_000)


RUST = "pub fn a() {}\n\n#[cfg(test)]\nmod tests {\n    #[test]\n    fn one() { assert!(true); }\n}\n"


@pytest.mark.parametrize(
    ("after", "gate"),
    [
        (RUST.replace("a() {}", "a() { b() }"), False),
        (RUST.replace("}\n}\n", "}\n    #[test]\n    fn two() {}\n}\n"), False),
        (RUST.replace("assert!(true)", "()"), True),
        (RUST.replace("#[test]", "#[test]\n    #[ignore]"), True),
        (RUST.replace("    fn one", "    /* fn one"), True),
        (RUST.replace("#[cfg(test)]", "#[cfg(all())]"), True),
        ("pub fn a() {}\n", True),
    ],
)
def test_a_test_inside_a_product_file_is_a_gate(after: str, gate: bool) -> None:
    """G09: adding is fine, changing, ignoring and removing is not."""
    assert is_gate("src/lib.rs", RUST, after) is gate


DOC = 'def f():\n    """\n    >>> f()\n    1\n    """\n    return 2\n'


@pytest.mark.parametrize(
    ("after", "gate"),
    [
        (DOC.replace("2", "1"), False),
        (DOC.replace("    1\n", "    2\n"), True),
        (DOC.replace("f()\n    1", "f()  # doctest: +SKIP\n    1"), True),
    ],
)
def test_an_example_in_a_docstring_is_a_gate_where_it_is_run(after: str, gate: bool) -> None:
    """G09: `python -m doctest` and `--doctest-modules`; elsewhere it is text."""
    change = MadeChange({"a.py": DOC}, {"a.py": after})
    for command in ("python3 -m doctest a.py", "pytest --doctest-modules"):
        assert codes(change, Rules(verify=(command,))) == ([("a.py", "GATE_CHANGED")] if gate else [])
    assert codes(change, Rules(verify=("pytest",))) == []
