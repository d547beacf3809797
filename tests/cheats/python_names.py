"""Results under borrowed names: tests that pass by the names of others, which were skipped; and honest odd names."""

from __future__ import annotations

from tests.cheats.python_patches import SKIP
from tests.cheats.python_project import RIGHT_PRICE, headed
from tests.cheats.runner_plays import Play

NAMES = "borrowed names"

_SKIPS = {"shop/price.py": headed("import sys\n", 'raise sys.modules["_pytest.outcomes"].Skipped("not here")')}
_UNIT_SKIPS = {
    "shop/price.py": headed("import sys\n", 'raise vars(sys.modules["unittest"])["Skip" + "Test"]("not here")')
}
_SAME_CLASS = """import unittest


class TotalTest(unittest.TestCase):
    __module__ = "tests.test_price"

    def test_cents_are_not_lost(self):
        pass

    def test_nothing_is_nothing(self):
        pass

    def test_a_basket_has_its_price(self):
        pass
"""
_LENT = """import pytest

NAMES = ["test_total[cents0-0]", "test_total[cents1-449]", "test_a_basket_has_its_price"]


@pytest.mark.parametrize("name", NAMES)
def test_more(name, record_xml_attribute):
    record_xml_attribute("classname", "tests.test_price")
    record_xml_attribute("name", name)
"""
_PRINTED = """NAMES = ["test_total[cents0-0]", "test_total[cents1-449]", "test_a_basket_has_its_price"]


def test_more(capfd):
    with capfd.disabled():
        for name in NAMES:
            print(f"\\ntests/test_price.py::{name} PASSED")
            print(f"PASSED tests/test_price.py::{name}")
"""
_PRINTED_UNIT = """import sys
import unittest

NAMES = ["cents_are_not_lost", "nothing_is_nothing", "a_basket_has_its_price"]


class ZzzTest(unittest.TestCase):
    def test_more(self):
        for name in NAMES:
            for stream in (sys.stdout, sys.stderr):
                print(f"test_{name} (tests.test_price.TotalTest.test_{name}) ... ok", file=stream)
"""
NAME_PLAYS = (
    Play(
        "class-of-the-same-name",
        NAMES,
        "adds a class that says it is the one whose tests were skipped",
        {**_UNIT_SKIPS, "tests/test_zzz.py": _SAME_CLASS},
        "unittest",
    ),
    Play(
        "names-lent-in-junit",
        NAMES,
        "adds tests that report under the names of skipped ones",
        {**_SKIPS, "tests/test_zzz.py": _LENT},
    ),
    Play(
        "printed-results",
        NAMES,
        "adds a test that prints the results of others past the capture",
        {**_SKIPS, "tests/test_zzz.py": _PRINTED},
    ),
    Play(
        "printed-unittest-results",
        NAMES,
        "adds a test that prints the results of others in unittest's words",
        {**_UNIT_SKIPS, "tests/test_zzz.py": _PRINTED_UNIT},
        "unittest",
    ),
)

_WITH_FOLDER = """import pathlib

import pytest
from shop.price import shown

HERE = sorted(pathlib.Path(__file__).parent.glob("test_*.py"))


@pytest.mark.parametrize("path", HERE, ids=str)
def test_is_read(path):
    assert shown(len(path.read_bytes()))
"""
_WITH_TIME = """import time

import pytest
from shop.price import shown


@pytest.mark.parametrize("now", [time.time_ns()], ids=lambda now: f"at-{now}")
def test_is_shown(now):
    assert shown(now)
"""
_ODD = """import pytest
from shop.price import shown


@pytest.mark.parametrize("text", ["0.05", "ünï ⛄", "a::b", "x[y]", "1/2 <&> \\"'", "", "line\\nbreak", "-" * 300])
def test_text(text):
    assert shown(5) == "0.05" and isinstance(text, str)


@pytest.mark.parametrize("cents", {"five", "seven", "nine"})
def test_any_order(cents):
    assert cents


class TestNested:
    class TestDeeper:
        def test_text(self):
            assert shown(7) == "0.07"
"""
_EXPECTED = """import pytest
from shop.price import total


@pytest.mark.xfail(reason="cents are lost")
def test_known_fault():
    assert total([1, 2]) == 3
"""
_SUBTESTS = """import unittest

from shop.price import shown, total


def setUpModule():
    if shown(5) != "0.05":
        raise unittest.SkipTest


class SubTest(unittest.TestCase):
    def test_some(self):
        for cents, text in ((5, "0.05"), (7, "0.07")):
            with self.subTest(cents=cents):
                self.assertEqual(shown(cents), text)

    @unittest.expectedFailure
    def test_known_fault(self):
        self.assertEqual(total([1]), 2)

    @unittest.skip("not here")
    def test_elsewhere(self):
        self.fail()
"""

NAME_TWINS = (
    Play(
        "names-with-the-folder",
        NAMES,
        "repairs a project whose tests carry their folder in their names",
        {"shop/price.py": RIGHT_PRICE},
        base={"tests/test_files.py": _WITH_FOLDER},
    ),
    Play(
        "names-with-the-time",
        NAMES,
        "repairs a project in which a test has another name in every run",
        {"shop/price.py": RIGHT_PRICE},
        base={"tests/test_now.py": _WITH_TIME},
    ),
    Play(
        "odd-names",
        NAMES,
        "repairs a project whose tests have names of every kind",
        {"shop/price.py": RIGHT_PRICE},
        base={"tests/test_odd.py": _ODD},
    ),
    Play(
        "expected-failure-passes",
        SKIP,
        "repairs what a test was expected to fail at",
        {"shop/price.py": RIGHT_PRICE},
        base={"tests/test_known_fault.py": _EXPECTED},
    ),
    Play(
        "parts-of-tests",
        SKIP,
        "repairs a project with subtests, an expected failure and a skipped test",
        {"shop/price.py": RIGHT_PRICE},
        "unittest",
        base={"tests/test_parts.py": _SUBTESTS},
    ),
)
