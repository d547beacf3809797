"""A small honest project in which every gate is red because the product is wrong; and the change that repairs it."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

UNITTEST = "python3 -m unittest discover -s tests -t ."
PYTEST = f"{sys.executable} -m pytest -p no:cacheprovider -p no:hypothesispytest -p no:xdist -q tests"
RUFF = f"{sys.executable} -m ruff check --no-cache calc"
MAKE = "make test"
SCRIPT = "bash scripts/check.sh"
GOLDEN = "bash scripts/golden.sh"
NPM = "npm test"
DOCTEST = "python3 -m doctest calc/words.py"
CARGO = "cargo test"
MAKE_SCRIPT = "make all-tests"
MAKE_SHELL = "make shell-tests"
MAKE_INCLUDED = "make quick"
NPM_CHECK = "npm run check"
FOLDER_UNITTEST = 'python3 -m unittest discover -s checks -p "check_*.py" -t .'
FOLDER_PYTEST = PYTEST.removesuffix("tests") + "-o python_files=*.py checks"
CASES = "sh verify.d/run.sh"
EXPECTED = "python3 check.py"
FIXTURES = "python3 check_cases.py"

BUG = "return sum(cents) // 100 * 100"
FIX = "return sum(cents)"

MONEY = f'''"""Sums of money."""


def total(cents):
    """The sum of all amounts, in cents."""
    {BUG}


def shown(cents):
    return f"{{cents // 100}}.{{cents % 100:02d}}"
'''
TEST_MONEY = """import unittest

from calc.money import total


class TotalTest(unittest.TestCase):
    def test_cents_are_not_lost(self):
        self.assertEqual(total([199, 250]), 449)

    def test_nothing_is_nothing(self):
        self.assertEqual(total([]), 0)
"""
TEST_SHOWN = """import unittest

from calc.money import shown


class ShownTest(unittest.TestCase):
    def test_two_digits(self):
        self.assertEqual(shown(305), "3.05")
"""
PYPROJECT = """[project]
name = "calc"
version = "1.0"
dependencies = ["rich>=13"]

[tool.pytest.ini_options]
testpaths = ["tests"]

[tool.ruff.lint]
select = ["F"]
"""
PACKAGE = {
    "name": "calc",
    "version": "1.0.0",
    "scripts": {"test": "node test/total.test.js", "check": "node check_total.js"},
    "dependencies": {"left-pad": "^1.3.0"},
    "devDependencies": {"jest": "^29.0.0"},
}
CHECK = """#!/bin/sh
set -e
python3 scripts/check_money.py
"""
CHECK_MONEY = """import sys

sys.path.insert(0, ".")
from calc.money import total
from rules import EXPECTED

sys.exit(0 if total([199, 250]) == EXPECTED else 1)
"""
TOTAL_JS = "exports.total = (cents) => Math.floor(cents.reduce((a, b) => a + b, 0) / 100) * 100;\n"
TOTAL_TEST_JS = """const assert = require("node:assert");
const { total } = require("../src/total.js");
assert.strictEqual(total([199, 250]), 449);
"""
WORDS = '''"""Amounts in words."""


def plural(count):
    """
    >>> plural(1)
    '1 cent'
    >>> plural(2)
    '2 cents'
    """
    return f"{count} cent"
'''
LIB_RS = """pub fn total(cents: &[i64]) -> i64 {
    cents.iter().sum::<i64>() / 100 * 100
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cents_are_not_lost() {
        assert_eq!(total(&[199, 250]), 449);
    }
}
"""


MAKEFILE = """include common.mk

.PHONY: test
test:
\t$(RUN) unittest discover -s tests -t .

all-tests:
\tpython3 run_all.py

shell-tests:
\tsh run_tests.sh

include rules.make
"""
RUN_ALL = """import sys

from calc.money import total

sys.exit(0 if total([199, 250]) == 449 else 1)
"""
CHECK_JS = TOTAL_TEST_JS.replace("../src", "./src")
CASE = "from calc.money import total\n\nassert total([199, 250]) == 449\n"
COMPARE = """import json
import pathlib
import sys

from calc.money import total

expected = json.loads(pathlib.Path("{path}").read_text())["total"]
sys.exit(0 if total([199, 250]) == expected else 1)
"""


@dataclass(frozen=True)
class Link:
    """A symbolic link to be made."""

    target: str


# New content; None deletes; (content, mode); or a link.
Planted = str | None | tuple[str, int] | Link


def base_files() -> dict[str, str | tuple[str, int]]:
    """The project as the task finds it: every gate is red, because the product is wrong."""
    return {
        "README.md": "# calc\n\nSums of money.\n",
        "calc/__init__.py": '"""Money."""\n',
        "calc/__main__.py": "from calc.money import shown, total\n\nprint(shown(total([199, 250])))\n",
        "calc/money.py": MONEY,
        "calc/words.py": WORDS,
        "calc/style.py": "import os\n\nNAME = 'calc'\n",
        "tests/__init__.py": "",
        "tests/test_money.py": TEST_MONEY,
        "tests/test_shown.py": TEST_SHOWN,
        "golden/report.txt": "4.49\n",
        "pyproject.toml": PYPROJECT,
        "Makefile": MAKEFILE,
        "rules.make": "quick:\n\tpython3 run_all.py\n",
        "run_all.py": RUN_ALL,
        "run_tests.sh": "set -e\npython3 run_all.py\n",
        "check_total.js": CHECK_JS,
        "checks/__init__.py": "",
        "checks/check_total.py": TEST_MONEY,
        "verify.d/run.sh": "set -e\nfor one in verify.d/cases/*.py; do PYTHONPATH=. python3 $one; done\n",
        "verify.d/cases/one.py": CASE,
        "check.py": COMPARE.format(path="expected.json"),
        "expected.json": '{"total": 449}\n',
        "check_cases.py": COMPARE.format(path="fixtures/cases.json"),
        "fixtures/cases.json": '{"total": 449}\n',
        "common.mk": "RUN = python3 -m\n",
        "scripts/check.sh": (CHECK, 0o755),
        "scripts/check_money.py": CHECK_MONEY,
        "scripts/rules.py": "EXPECTED = 449\n",
        "scripts/golden.sh": ("#!/bin/sh\npython3 -m calc | diff golden/report.txt -\n", 0o755),
        "checks.ini": "[pytest]\ntestpaths = tests\n",
        "package.json": package(),
        "src/total.js": TOTAL_JS,
        "test/total.test.js": TOTAL_TEST_JS,
        "rust/Cargo.toml": '[package]\nname = "calc"\nversion = "1.0.0"\nedition = "2021"\n',
        "rust/src/lib.rs": LIB_RS,
        ".github/workflows/ci.yml": "on: push\njobs:\n  test:\n    runs-on: host\n    steps:\n      - run: make test\n",
        "verify.json": json.dumps({"profiles": {"check": {"steps": [{"name": "test", "cmd": UNITTEST}]}}}, indent=2)
        + "\n",
    }


def package(**changes: object) -> str:
    return json.dumps({**PACKAGE, **changes}, indent=2) + "\n"


HONEST: Mapping[str, Planted] = {
    "calc/money.py": MONEY.replace(BUG, FIX),
    "calc/words.py": WORDS.replace('{count} cent"', '{count} cent" + "s" * (count != 1)'),
    "calc/style.py": "NAME = 'calc'\n",
    "src/total.js": "exports.total = (cents) => cents.reduce((a, b) => a + b, 0);\n",
    "rust/src/lib.rs": LIB_RS.replace(" / 100 * 100", ""),
    "tests/test_more.py": TEST_MONEY.replace("TotalTest", "MoreTest").replace("[199, 250]), 449", "[1, 2]), 3"),
    "README.md": "# calc\n\nSums of money, to the cent.\n",
    "pyproject.toml": PYPROJECT.replace('"rich>=13"', '"rich>=13", "click>=8"'),
    "package.json": json.dumps({**PACKAGE, "dependencies": {"left-pad": "^1.3.0", "semver": "^7.0.0"}}, indent=2)
    + "\n",
}
# Red in the base, green after the honest change.
ALL_COMMANDS = (
    *(UNITTEST, PYTEST, RUFF, MAKE, SCRIPT, GOLDEN, DOCTEST, NPM, MAKE_SCRIPT, MAKE_SHELL, MAKE_INCLUDED, NPM_CHECK),
    *(FOLDER_UNITTEST, FOLDER_PYTEST, CASES, EXPECTED, FIXTURES),
)

# What the operator adds to the protected paths: the profile itself.
PROTECTED_HERE = ("verify.json",)


def lay(root: Path, files: Mapping[str, Planted]) -> None:
    """Writes, deletes and links as the mapping says."""
    for path, planted in files.items():
        target = root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.unlink(missing_ok=True)
        if isinstance(planted, Link):
            target.symlink_to(planted.target)
        elif planted is not None:
            content, mode = planted if isinstance(planted, tuple) else (planted, 0o644)
            target.write_text(content, encoding="utf-8")
            target.chmod(mode)
