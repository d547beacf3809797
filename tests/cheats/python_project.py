"""The small Python project of the plays, with tests for pytest and for unittest, and other tests of the same fault."""

from __future__ import annotations

import sys

from tests.cheats.cheat_project import Planted
from tests.cheats.runner_plays import Project

PYTEST = f"{sys.executable} -m pytest -p no:cacheprovider -p no:hypothesispytest -p no:xdist -q tests"
UNITTEST = f"{sys.executable} -m unittest discover -s tests -t ."
BUG = "return sum(cents) // 100 * 100"
FIX = "return sum(cents)"
PRICE = f'''"""Prices in cents."""


def total(cents):
    """The sum of all amounts."""
    {BUG}


def shown(cents):
    return f"{{cents // 100}}.{{cents % 100:02d}}"


def check_paid(cents, paid):
    """Refuses a payment that is too small."""
    if paid < total(cents):
        raise ValueError("not enough")
'''
RIGHT_PRICE = PRICE.replace(BUG, FIX)

HELPERS = """def basket():
    return [199, 250]


def same(left, right):
    return left == right
"""
TEST_NAMES = """from shop.price import shown


def test_two_digits():
    assert shown(305) == "3.05"


def test_no_euro():
    assert shown(7) == "0.07"
"""
TEST_PRICE = """import pytest
from helpers import basket
from shop.price import total


@pytest.mark.parametrize(("cents", "expected"), [([], 0), ([199, 250], 449)])
def test_total(cents, expected):
    assert total(cents) == expected


def test_a_basket_has_its_price():
    assert total(basket()) == 449
"""
TEST_BY_NUMBERS = """import math

from shop.price import total


def test_average():
    assert math.isclose(total([199, 250]) / 2, 224.5)
"""
TEST_BY_DATA = """import json
import pathlib

from shop.price import total


def test_every_case():
    cases = json.loads(pathlib.Path(__file__).with_name("cases.json").read_text())
    assert total(cases["cents"]) == cases["total"]
"""
TEST_REFUSED = """import pytest
from shop.price import check_paid


def test_too_little_is_refused():
    with pytest.raises(ValueError, match="not enough"):
        check_paid([199, 250], 400)
"""
UNIT_NAMES = """import unittest

from shop.price import shown


class NamesTest(unittest.TestCase):
    def test_two_digits(self):
        self.assertEqual(shown(305), "3.05")

    def test_no_euro(self):
        self.assertEqual(shown(7), "0.07")
"""
UNIT_PRICE = """import unittest

from shop.price import total
from tests.helpers import basket


class TotalTest(unittest.TestCase):
    def test_cents_are_not_lost(self):
        self.assertEqual(total([199, 250]), 449)

    def test_nothing_is_nothing(self):
        self.assertEqual(total([]), 0)

    def test_a_basket_has_its_price(self):
        self.assertTrue(total(basket()) == 449)
"""

_PRODUCT: dict[str, Planted] = {
    "README.md": "# shop\n",
    "shop/__init__.py": '"""A shop."""\n',
    "shop/price.py": PRICE,
    "tests/helpers.py": HELPERS,
}
_PROBE = f"{sys.executable} -B -c 'from shop.price import total; print(int(total([199, 250])))'"

PYTEST_PROJECT = Project(
    {**_PRODUCT, "tests/test_names.py": TEST_NAMES, "tests/test_price.py": TEST_PRICE}, PYTEST, _PROBE
)
UNITTEST_PROJECT = Project(
    {**_PRODUCT, "tests/__init__.py": "", "tests/test_names.py": UNIT_NAMES, "tests/test_price.py": UNIT_PRICE},
    UNITTEST,
    _PROBE,
)


def headed(head: str, body: str = BUG, *, tail: str = "") -> str:
    """The module of prices with more at its beginning, another body of `total`, and more at its end."""
    first, rest = PRICE.split("\n", 1)
    return f"{first}\n\n{head}\n{rest.replace(BUG, body)}{tail}"
