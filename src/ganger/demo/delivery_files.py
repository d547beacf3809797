"""The content of the delivery demo's repositories: a library, an app that uses it, their CI, and the settings."""

from __future__ import annotations

LENGTH = '''"""Lengths in metres."""


def from_feet(feet):
    """1 foot is 0.3048 m."""
    return feet * 0.3048
'''
TEST_LENGTH = """import unittest

from measure.length import from_feet


class LengthTest(unittest.TestCase):
    def test_a_foot(self):
        self.assertAlmostEqual(from_feet(1), 0.3048)
"""
UNITS = '''"""Units by name."""

from measure.length import from_feet

_METRES = {"m": lambda value: value, "ft": from_feet}


def to_metres(value, unit):
    return _METRES[unit](value)
'''
UNITS_TEST = """import unittest

from measure.units import to_metres


class UnitsTest(unittest.TestCase):
    def test_feet_and_metres(self):
        self.assertEqual(to_metres(2, "m"), 2)
        self.assertAlmostEqual(to_metres(10, "ft"), 3.048)
"""
MENDED_UNITS = UNITS.replace(
    "def to_metres(value, unit):\n", 'def to_metres(value, unit):\n    """A length in any unit, in metres."""\n'
)
ROUNDING = '''"""Lengths as people write them."""


def to_text(metres):
    """3.048 -> '3.05 m'"""
    return f"{metres:.2f} m"
'''
REPORT = '''"""One line per thing that was measured."""

from measure.rounding import to_text
from measure.units import to_metres


def report(things):
    """[("rope", 10, "ft")] -> 'rope: 3.05 m'"""
    return "\\n".join(f"{name}: {to_text(to_metres(value, unit))}" for name, value, unit in things)
'''
TEST_REPORT = """import unittest

from shop.report import report


class ReportTest(unittest.TestCase):
    def test_a_rope(self):
        self.assertEqual(report([("rope", 10, "ft")]), "rope: 3.05 m")
"""
TEST_SHOP = """import unittest

from shop import NAME


class ShopTest(unittest.TestCase):
    def test_it_has_a_name(self):
        self.assertTrue(NAME)
"""
CI = '''"""python ci.py lint|test: what CI runs for every push. Tests use what the library's remote holds."""

import ast
import io
import os
import pathlib
import subprocess
import sys
import zipfile

LIBRARY = {library!r}


def lint():
    bad = []
    for path in sorted(pathlib.Path({package!r}).rglob("*.py")):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.FunctionDef) and not ast.get_docstring(node):
                bad.append(f"{{path}}:{{node.lineno}}: error: the function {{node.name}} has no docstring")
    print("\\n".join(bad) or "every function is documented")
    return len(bad) > 0


def test():
    if LIBRARY:
        words = ["git", "--git-dir", LIBRARY, "archive", "--format=zip", "main"]
        packed = subprocess.run(words, check=True, stdout=subprocess.PIPE).stdout
        zipfile.ZipFile(io.BytesIO(packed)).extractall(".library")
    words = [sys.executable, "-B", "-m", "unittest", "discover", "-s", "tests", "-t", "."]
    return subprocess.run(words, env={{**os.environ, "PYTHONPATH": ".library"}}).returncode


sys.exit({{"lint": lint, "test": test}}[sys.argv[1]]())
'''
MIRROR = '''"""The mirror job: brings a commit that CI passed to the mirror. Exit code 77 says that it was skipped."""

import os
import subprocess
import sys

mirror, repo, sha = sys.argv[1:]
said = subprocess.run(["git", "log", "-1", "--format=%B", sha], check=True, capture_output=True, text=True).stdout
first = os.environ["GANGER_CI_ATTEMPT"] == "1" and "Ganger-Retrigger" not in said
if first and "Ganger-Task: report" in said:
    print("the mirror's node is asleep: skipped")
    sys.exit(77)
subprocess.run(["git", "push", "-q", mirror, f"{sha}:refs/heads/{repo}"], check=True)
print(f"{repo} is mirrored at {sha}")
'''
PROMPTS = {
    "units": "Add measure/units.py: to_metres(value, unit) for metres and feet. Add a test.",
    "rounding": "Add measure/rounding.py: to_text(metres), with two decimals.",
    "report": "Add shop/report.py: one line per thing, its length in metres, with the library. Add a test.",
}
CONFIG = """manifest = "manifest.json"

[policy]
heal_schedule = "off"
concurrency = 3
grace_sec = 1

[agents.scripted]
kind = "scripted"
script = "agent-script.json"

[roles.worker]
agent = "scripted"

[workspace]
mode = "local-git"

[verify]
profiles_file = "verify.json"

[sandbox]
readable = [{remotes}]

[repos.lib]
path = {lib}

[repos.app]
path = {app}
depends_on = ["lib"]

[delivery]
completion = ["verified", "committed", "pushed", "ci", "mirrored"]
style = "branch"
forge = "command"
branch = "main"
required_jobs = ["lint", "test"]
mirror_job = "mirror"
poll_sec = 0.1
poll_most_sec = 0.5

[delivery.jobs]
lint = [{python}, "-B", "ci.py", "lint"]
test = [{python}, "-B", "ci.py", "test"]
mirror = [{python}, "-B", {mirror_script}, {mirror}, "{{repo}}", "{{sha}}"]
"""
