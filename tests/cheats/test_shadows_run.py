"""New files beside untouched ones, with the real programs: each turns a red check green, and is refused for it."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from ganger.ports.changes import Rules
from ganger.workspaces.safeguards import ChangeLimits, judge
from tests.cheats.cheat_project import Link, Planted, lay
from tests.cheats.folder_change import FolderChange
from tests.patience import stretched

PYTEST = f"{sys.executable} -m pytest -p no:cacheprovider -p no:hypothesispytest -p no:xdist -q"
WRONG, RIGHT = "def total(cents):\n    return 0\n", "def total(cents):\n    return sum(cents)\n"
TEST = "from calc import total\n\n\ndef test_total():\n    assert total([1, 2]) == 3\n"
HELPED = f"from helpers import expected\n{TEST.replace('3', 'expected')}"
CASE = "import unittest\nfrom calc import total\n\nclass T(unittest.TestCase):\n    def test_total(self):\n"
CASE += "        self.assertEqual(total([1, 2]), 3)\n"
PY: dict[str, Planted] = {"calc.py": WRONG, "tests/test_calc.py": TEST}
JS: dict[str, Planted] = {
    "total.js": "exports.total = () => 0;\n",
    "test/kit/index.js": "exports.three = 3;\n",
    "test/run.js": "require('assert').strictEqual(require('../total').total([1, 2]), require('./kit').three);\n",
}
GO: dict[str, Planted] = {
    "go.mod": "module x\n\ngo 1.18\n",
    "calc/calc.go": "package calc\n\nfunc Total() int { return 0 }\n",
    "calc/calc_test.go": 'package calc\n\nimport "testing"\n\nfunc TestTotal(*testing.T) { _ = [1]int{}[3-Total()] }\n',
    "main.go": "package main\n\nfunc main() {}\n",
}


@dataclass(frozen=True)
class Shadow:
    """`base` is red under the command, `new` turns it green; `honest` are new files that may come all the same."""

    base: dict[str, Planted]
    new: dict[str, Planted]
    command: str
    honest: dict[str, Planted]
    needs: tuple[str, ...] = ()


def make(recipe: str, **more: str) -> dict[str, Planted]:
    return {"Makefile": recipe, "calc.py": WRONG, "test_calc.py": CASE, **more}


SCRIPT = "#!/bin/sh\nset -e\nRUN='python3 -m unittest'\n[ -f settings.sh ] && . ./settings.sh\n$RUN\n"
SWITCH = "#!/bin/sh\nif [ -e SKIP ]; then exit 0; fi\npython3 -m unittest\n"
SHADOWS = {
    "finished-target": Shadow(
        make("check:\n\tpython3 -m unittest\n"), {"check": ""}, "make check", {"checks.md": ""}, ("make",)
    ),
    "finished-folder": Shadow(
        make("test:\n\tpython3 -m unittest\n"), {"test/notes.txt": ""}, "make test", {"tests/notes.txt": ""}, ("make",)
    ),
    "stamp": Shadow(
        make(".PHONY: test\ntest: .tested\n.tested:\n\tpython3 -m unittest && touch .tested\n"),
        {".tested": ""}, "make test", {"test/notes.txt": ""}, ("make",),
    ),
    "included-settings": Shadow(
        make("-include local.conf\nRUN ?= python3 -m unittest\n.PHONY: test\ntest:\n\t$(RUN)\n"),
        {"local.conf": "RUN = true\n"}, "make test", {"other.conf": ""}, ("make",),
    ),
    "condition": Shadow(
        make("RUN = python3 -m unittest\nifneq ($(wildcard SKIP),)\nRUN = true\nendif\ntests:\n\t$(RUN)\n"),
        {"SKIP": ""}, "make tests", {"SKIPPED.md": ""}, ("make",),
    ),
    "first-makefile": Shadow(
        make(".PHONY: test\ntest:\n\tpython3 -m unittest\n"),
        {"GNUmakefile": "test:\n\ttrue\n"}, "make test", {"docs/Makefile.md": ""}, ("make",),
    ),
    "makefile-behind-a-makefile": Shadow(
        {"Makefile": ".PHONY: test\ntest:\n\t$(MAKE) -C part check\n",
         **{f"part/{name}": text for name, text in make("check:\n\tpython3 -m unittest\n").items()}},
        {"part/check": ""}, "make test", {"check": ""}, ("make",),
    ),
    "sourced-settings": Shadow(
        {"run.sh": SCRIPT, "calc.py": WRONG, "test_calc.py": CASE},
        {"settings.sh": "RUN=true\n"}, "sh run.sh", {"settings.md": ""},
    ),
    "switch": Shadow(
        {"run.sh": SWITCH, "calc.py": WRONG, "test_calc.py": CASE}, {"SKIP": ""}, "sh run.sh", {"skipped": ""}
    ),
    "package-over-helper": Shadow(
        {**PY, "tests/helpers.py": "expected = 3\n", "tests/test_calc.py": HELPED},
        {"tests/helpers/__init__.py": "expected = 0\n"}, f"{PYTEST} tests", {"tests/more/__init__.py": "x = 1\n"},
    ),
    "linked-package-over-helper": Shadow(
        {**PY, "tests/helpers.py": "expected = 3\n", "tests/test_calc.py": HELPED},
        {"data/__init__.py": "expected = 0\n", "tests/helpers": Link("../data")}, f"{PYTEST} tests", {"data/x.py": ""},
    ),
    "package-over-a-root-helper": Shadow(
        {**PY, "helpers.py": "expected = 3\n", "tests/test_calc.py": HELPED},
        {"helpers/__init__.py": "expected = 0\n"}, f"{PYTEST} tests", {"kit/__init__.py": ""},
    ),
    "module-over-names": Shadow(
        {**PY, "tests/kit/three.py": "expected = 3\n", "tests/test_calc.py": HELPED.replace("helpers", "kit.three")},
        {"tests/kit.py": "__path__ = ['tests/other']\n", "tests/other/three.py": "expected = 0\n"},
        f"{PYTEST} tests", {"tests/kit/four.py": "expected = 4\n"},
    ),
    "product-in-another-folder": Shadow(
        {"src/calc.py": WRONG, "tests/test_calc.py": TEST},
        {"calc.py": RIGHT}, f"env PYTHONPATH=src {PYTEST} tests", {"src/more.py": ""},
    ),
    "library-beside-nested-tests": Shadow(
        {"calc.py": WRONG, "tests/unit/test_calc.py": f"import colorsys\n{TEST}"},
        {"tests/unit/colorsys.py": "import calc\ncalc.total = sum\n"}, f"{PYTEST} tests", {"tests/unit/test_b.py": ""},
    ),
    "new-top-of-the-project": Shadow(
        {"calc.py": RIGHT, "tests/test_calc.py": TEST, "conftest.py": "raise ImportError('the operator says no')\n"},
        {"tests/setup.py": ""}, f"env PYTHONPATH=. {PYTEST} tests", {"tests/data/setup.py": ""},
    ),
    "script-before-a-folder": Shadow(
        JS, {"test/kit.js": "exports.three = 0;\n"}, "node test/run.js", {"test/kit/more.js": ""}, ("node",)
    ),
    "script-without-an-ending": Shadow(
        {**{name: text for name, text in JS.items() if "kit" not in name}, "test/kit.js": "exports.three = 3;\n"},
        {"test/kit": "exports.three = 0;\n"}, "node test/run.js", {"test/kits.js": ""}, ("node",),
    ),
    "module-inside-a-module": Shadow(
        GO, {"calc/go.mod": "module y\n"}, "go test ./...", {"tools/new/go.mod": "module z\n"}, ("go",)
    ),
}  # fmt: skip
EACH = [
    pytest.param(shadow, id=name, marks=[pytest.mark.needs(*shadow.needs)] if shadow.needs else [])
    for name, shadow in SHADOWS.items()
]


def is_green(folder: Path, command: str) -> bool:
    env = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder.parent),
        "PYTHONDONTWRITEBYTECODE": "1",
        "GOFLAGS": "-mod=mod",
    }
    done = subprocess.run(
        shlex.split(command), cwd=folder, env=env, capture_output=True, timeout=stretched(120), check=False
    )
    return done.returncode == 0


def laid(folder: Path, *files: dict[str, Planted]) -> Path:
    for one in files:
        lay(folder, one)
    return folder


@pytest.mark.brief(5)
@pytest.mark.parametrize("shadow", EACH)
def test_a_new_file_that_turns_a_red_check_green_is_refused(tmp_path: Path, shadow: Shadow) -> None:
    """G09: red without it, green with it; the judge names it, and only for being a gate."""
    base = laid(tmp_path / "base", shadow.base)
    after = laid(tmp_path / "after", shadow.base, shadow.new)
    assert (is_green(base, shadow.command), is_green(after, shadow.command)) == (False, True)
    found = judge(FolderChange(base, after), Rules(verify=(shadow.command,)), ChangeLimits())
    assert found and {(one.path in shadow.new, one.code) for one in found} == {(True, "GATE_CHANGED")}


@pytest.mark.parametrize("shadow", EACH)
def test_a_new_file_beside_it_is_work(tmp_path: Path, shadow: Shadow) -> None:
    """G09: a name that differs, a folder of its own; none is refused."""
    base = laid(tmp_path / "base", shadow.base)
    after = laid(tmp_path / "after", shadow.base, shadow.honest)
    assert judge(FolderChange(base, after), Rules(verify=(shadow.command,)), ChangeLimits()) == []
