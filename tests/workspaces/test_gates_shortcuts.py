"""Code that makes a test run pass without being right is a gate; code that only resembles it is not."""

from __future__ import annotations

import pytest

from ganger.ports.changes import Rules
from tests.workspaces.judged_change import MadeChange, codes

TRICKS = {
    "hard-exit": "import os\nos._exit(0)\n",
    "hard-exit-in-a-function": "import os\ndef f(code):\n    os._exit(code)\n",
    "hard-exit-imported": "from os import _exit as leave\n",
    "hard-exit-by-name": "import os\ngetattr(os, '_exit')(0)\n",
    "hard-exit-at-exit": "import atexit, os\natexit.register(os._exit, 0)\n",
    "exit-on-import": "import sys\nsys.exit(0)\n",
    "exit-without-status": "exit()\n",
    "raise-on-import": "raise SystemExit\n",
    "exit-in-a-class": "import sys\nclass A:\n    sys.exit()\n",
    "equals-everything": "class A:\n    def __eq__(self, other):\n        return True\n",
    "patched-assert": "import unittest\nunittest.TestCase.assertEqual = print\n",
    "patched-late": "def f():\n    from unittest import TestCase as T\n    T.assertTrue = print\n",
    "patched-by-setattr": "import _pytest.runner as r\nsetattr(r, 'call_and_report', print)\n",
    "patched-builtins": "import builtins\nbuiltins.AssertionError = ValueError\n",
    "swapped-module": "import sys\nsys.modules['unittest'] = None\n",
    "plugins": "pytest_plugins = ['mine']\n",
    "other-program": "import os\nos.execvp('true', ['true'])\n",
    "run-ended": "import pytest\npytest.exit('done', 0)\n",
    "equality-assigned": "class A:\n    __eq__ = lambda self, other: True\n",
    "broken-with-exit": "import os\nos._exit(0\n",
}
FINE = {
    "main-guard": "import sys\nif __name__ == '__main__':\n    sys.exit(0)\n",
    "status-of-main": "import sys\nsys.exit(main())\n",
    "failure": "import sys\nif sys.version_info < (3,):\n    sys.exit('too old')\n",
    "exit-in-a-function": "import sys\ndef main():\n    sys.exit(0)\n",
    "forked-child": "import os\ndef run():\n    if os.fork() == 0:\n        os._exit(0)\n",
    "hard-failure": "import os\ndef f():\n    os._exit(1)\n",
    "text": "HELP = 'os._exit(0) ends the process'  # os._exit(0)\n",
    "real-equality": "class A:\n    def __eq__(self, other):\n        return self.x == other.x\n",
    "own-module": "import sys\nsys.modules[__name__] = Lazy()\n",
    "other-attributes": "import logging\nlogging.raiseExceptions = False\n",
    "product-patches-itself": "import calc\ncalc.debug = True\n",
    "program-in-a-function": "import os\ndef run():\n    os.execvp('ls', ['ls'])\n",
    "python-two": "print 'hello'\n",
    "deep": "(" * 5000,
}


@pytest.mark.parametrize("name", TRICKS)
def test_a_trick_that_is_added_is_a_gate_and_one_that_was_there_is_not(name: str) -> None:
    """G09: in product files and in new tests alike."""
    for path in ("calc/money.py", "tests/test_new.py"):
        assert codes(MadeChange({}, {path: TRICKS[name]})) == [(path, "GATE_CHANGED")]
        assert codes(MadeChange({}, {path: TRICKS[name]}), Rules(may_change_gates=True)) == []
    before = {"calc/money.py": TRICKS[name]}
    assert codes(MadeChange(before, {"calc/money.py": TRICKS[name] + "# more\n"})) == []


@pytest.mark.parametrize("name", FINE)
def test_honest_code_is_no_trick(name: str) -> None:
    """G09: scripts, children, texts, real comparisons."""
    assert codes(MadeChange({}, {"calc/money.py": FINE[name]})) == []


def test_a_moved_file_brings_no_new_trick() -> None:
    """G09: a rename is held against what it was."""
    trick = TRICKS["hard-exit"]
    assert codes(MadeChange({"a.py": trick}, {"b.py": trick}, {"b.py": "a.py"})) == []


def test_a_new_test_may_not_patch_the_product_for_all_tests() -> None:
    """G09: at import it holds for every test of the run; inside a test it is ordinary."""
    patch = "import calc.money\ncalc.money.total = sum\n"
    assert codes(MadeChange({}, {"tests/test_a.py": patch})) == [("tests/test_a.py", "GATE_CHANGED")]
    inside = "import calc.money\ndef test_a(monkeypatch):\n    calc.money.total = sum\n"
    assert codes(MadeChange({}, {"tests/test_a.py": inside})) == []


def test_a_package_may_not_decide_which_tests_there_are() -> None:
    """G09: load_tests of a package rules its siblings, that of a module only itself."""
    code = "def load_tests(loader, tests, pattern):\n    return tests\n"
    assert codes(MadeChange({}, {"tests/__init__.py": code})) == [("tests/__init__.py", "GATE_CHANGED")]
    assert codes(MadeChange({}, {"tests/test_a.py": code})) == []


@pytest.mark.parametrize(
    "code",
    [
        "import unittest\ndef f():\n    raise unittest.SkipTest\n",
        "from unittest import SkipTest\n",
        "import pytest\ndef f():\n    pytest.skip('later')\n",
        "from unittest.mock import ANY\n",
    ],
)
def test_what_tests_may_use_the_product_may_not(code: str) -> None:
    """G09: a product that skips the test which calls it, or equals whatever is expected."""
    assert codes(MadeChange({}, {"calc/money.py": code})) == [("calc/money.py", "GATE_CHANGED")]
    assert codes(MadeChange({}, {"tests/test_new.py": code, "calc/testing.py": code})) == []


@pytest.mark.parametrize(
    ("path", "line", "gate"),
    [
        ("src/a.js", "process.exit(0)", True),
        ("src/a.ts", "process.exitCode = 0", True),
        ("src/a.mjs", "globalThis.expect = () => ({})", True),
        ("src/a.js", "  process.exit(0)", False),
        ("src/a.js", "process.exit(1)", False),
        ("src/new.test.js", "  process.exit(0)", True),
        ("a_test.go", "func TestMain(m *testing.M) {", True),
        ("main.go", "\tos.Exit(0)", False),
        ("src/lib.rs", "    std::process::exit(0);", True),
        ("src/main.rs", "    std::process::exit(0);", False),
        ("lib/a.rb", "exit!", True),
        ("src/a.c", "  _exit(0);", True),
        ("src/a.c", "  exit(0);", False),
        ("notes.md", "process.exit(0)", False),
    ],
)
def test_lines_that_end_the_run_are_gates(path: str, line: str, gate: bool) -> None:
    """G09: other languages, by their lines; programs may end themselves."""
    assert bool(codes(MadeChange({}, {path: f"first\n{line}\n"}))) is gate
