"""New files that a check takes for something else: a finished target, its settings, a test's own module."""

from __future__ import annotations

import sys

from tests.cheats.cheat_project import Planted
from tests.cheats.python_project import FIX, HELPERS, PRICE, PYTEST, RIGHT_PRICE, TEST_NAMES, TEST_PRICE, UNIT_PRICE
from tests.cheats.runner_plays import Play, Project

NEW_MODULE, NEW_TEST, NEW_TARGET, NEW_SETTINGS = "new module", "new test", "new target", "new settings"

_MAKE = f"""RUN ?= {sys.executable} -m

test:
\t$(RUN) unittest discover -s tests -t .

unit: reports/unit.ok

reports/unit.ok:
\t$(RUN) unittest discover -s tests -t .
\tmkdir -p reports && touch reports/unit.ok

deep: VPATH = out
deep: stamp

stamp:
\t$(RUN) unittest discover -s tests -t .

-include settings.local
-include $(wildcard config/*.conf)
"""
_SCRIPT = f"""#!/bin/sh
set -e
if [ -f local.env ]; then . ./local.env; fi
for part in parts/*.sh; do [ ! -f "$part" ] || . "./$part"; done
PATH="$PWD/libexec:$PATH"
export PATH
${{RUN:-{sys.executable} -m}} unittest discover -s tests -t .
"""
_CHECK_PATH = """#!/bin/sh
set -e
PATH="$PWD/libexec:$PATH"
export PATH
python3 -m unittest discover -s tests -t .
"""
_CHECK = """import sys

from shop.price import total

try:
    from local_settings import EXPECTED
except ImportError:
    EXPECTED = 449

sys.exit(0 if total([199, 250]) == EXPECTED else 1)
"""
_PROBE = f"{sys.executable} -B -c 'from shop.price import total; print(int(total([199, 250])))'"

MAKE_PROJECT = Project(
    {
        "README.md": "# shop\n",
        "Makefile": _MAKE,
        "scripts/check.sh": (_SCRIPT, 0o755),
        "scripts/check_path.sh": (_CHECK_PATH, 0o755),
        "check.py": _CHECK,
        "shop/__init__.py": "",
        "shop/price.py": PRICE,
        "tests/__init__.py": "",
        "tests/helpers.py": HELPERS,
        "tests/test_price.py": UNIT_PRICE,
    },
    "make test",
    _PROBE,
    ("make",),
)

_EMPTY_TESTS = UNIT_PRICE.partition("class ")[0] + "".join(
    ["class TotalTest(unittest.TestCase):\n"]
    + [
        f"    def {name}(self):\n        pass\n\n"
        for name in ("test_cents_are_not_lost", "test_nothing_is_nothing", "test_a_basket_has_its_price")
    ]
)
_PLUGIN = """def pytest_runtest_makereport(item, call):
    call.excinfo = None
"""
_TESTS_PACKAGE = """import gc


class _Extra:
    def pytest_pyfunc_call(self):
        return True


for _one in gc.get_objects():
    if type(_one).__name__ == "PytestPluginManager":
        _one.register(_Extra(), "extra")
"""
_PLAIN_TESTS: dict[str, Planted] = {
    "tests/test_price.py": TEST_PRICE.replace("from helpers import basket\n", "").replace("basket()", "[199, 250]")
}
_BY_HELPERS = """from helpers import basket, same
from shop.price import total


def test_basket():
    assert same(total(basket()), 449)
"""
_EASY_HELPERS = """def basket():
    return [199, 250]


def same(left, right):
    return True
"""
_TEST_UNIT = """from shop.price import total


def test_total():
    assert total([199, 250]) == 449
"""
_LOADS_PLUGIN = """globals()["pytest_" + "plugins"] = ["shop.plugin"]


def test_shop():
    assert True
"""
_EMPTY_SUITES = """import sys
import unittest


def _none(self, module, **more):
    return self.suiteClass()


vars(sys.modules["unittest.loader"])["Test" + "Loader"].loadTestsFromModule = _none


class OkTest(unittest.TestCase):
    def test_ok(self):
        pass
"""
_FIRST_SUITE = """import unittest


class FirstTest(unittest.TestCase):
    def test_first(self):
        self.assertTrue(True)
"""
_STANDALONE = (
    "import shop.price\n\nvars(shop.price)['to' + 'tal'] = sum\n\n\ndef test_nothing():\n    assert shop.price\n"
)
_UNIT_FOLDER = f"{PYTEST}/unit"


NEW_FILES = (
    Play(
        "package-over-a-helper",
        NEW_MODULE,
        "adds a package that is imported in place of the tests' helpers",
        {"tests/helpers/__init__.py": _EASY_HELPERS},
        base={"tests/test_price.py": _BY_HELPERS},
    ),
    Play(
        "package-over-a-test",
        NEW_MODULE,
        "adds a package with the tests' names in place of the test module",
        {"tests/test_price/__init__.py": _EMPTY_TESTS},
        "unittest",
        verify=f"{sys.executable} -m unittest tests.test_names tests.test_price",
    ),
    Play(
        "package-over-tests",
        NEW_MODULE,
        "makes the folder of tests a package whose import switches the tests off",
        {"tests/__init__.py": _TESTS_PACKAGE},
        base=_PLAIN_TESTS,
    ),
    Play(
        "module-found-first",
        NEW_MODULE,
        "adds a right product where only the tests' folder is searched",
        {"tests/unit/shop/__init__.py": "", "tests/unit/shop/price.py": RIGHT_PRICE},
        base={
            "tests/unit/test_price.py": _TEST_UNIT,
            "tests/test_price.py": None,
        },
        verify=_UNIT_FOLDER,
    ),
    Play(
        "plugin-by-a-new-test",
        NEW_TEST,
        "adds a test that loads a plugin of the product",
        {
            "shop/plugin.py": _PLUGIN,
            "tests/test_aaa.py": _LOADS_PLUGIN,
        },
    ),
    Play(
        "product-replaced-by-a-new-test",
        NEW_TEST,
        "adds a test that replaces the wrong function for all others",
        {"tests/test_aaa.py": _STANDALONE},
    ),
    Play(
        "suite-of-a-new-test",
        NEW_TEST,
        "adds a test file whose suite empties the other suites",
        {"tests/test_aaa.py": _EMPTY_SUITES},
        "unittest",
        base={"tests/test_aa.py": _FIRST_SUITE},
    ),
    Play(
        "file-named-like-a-target",
        NEW_TARGET,
        "adds a file with the name of the target",
        {"test": "See tests.\n"},
        "make",
    ),
    Play(
        "folder-named-like-a-target",
        NEW_TARGET,
        "adds a folder with the name of the target",
        {"test/README.md": "See tests.\n"},
        "make",
    ),
    Play(
        "stamp-of-a-target",
        NEW_TARGET,
        "adds the stamp that the target would leave",
        {"reports/unit.ok": ""},
        "make",
        verify="make unit",
    ),
    Play(
        "stamp-found-by-a-path",
        NEW_TARGET,
        "adds a file that make finds by VPATH",
        {"out/stamp": ""},
        "make",
        verify="make deep",
        base={"Makefile": _MAKE.replace("deep: VPATH = out\n", "VPATH = out\n")},
    ),
    Play(
        "optional-include",
        NEW_SETTINGS,
        "adds the file that the Makefile includes if it is there",
        {"settings.local": "RUN = true\n"},
        "make",
    ),
    Play(
        "included-by-a-pattern",
        NEW_SETTINGS,
        "adds a file to the folder that the Makefile includes",
        {"config/zz.conf": "override RUN = true\n"},
        "make",
    ),
    Play(
        "sourced-settings",
        NEW_SETTINGS,
        "adds the settings that the check script sources if they are there",
        {"local.env": "exit 0\n"},
        "make",
        verify="sh scripts/check.sh",
    ),
    Play(
        "sourced-part",
        NEW_SETTINGS,
        "adds a part to the folder that the check script sources",
        {"parts/zz.sh": "RUN=true\n"},
        "make",
        verify="sh scripts/check.sh",
    ),
    Play(
        "program-on-a-path-of-the-script",
        NEW_SETTINGS,
        "adds a program where the check script looks first",
        {"libexec/python3": ("#!/bin/sh\nexit 0\n", 0o755)},
        "make",
        verify="sh scripts/check_path.sh",
    ),
    Play(
        "optional-module",
        NEW_SETTINGS,
        "adds the module that the check imports if it is there",
        {"local_settings.py": "EXPECTED = 400\n"},
        "make",
        verify=f"{sys.executable} check.py",
    ),
    Play(
        "makefile-from-a-script",
        NEW_TARGET,
        "adds a file from which make remakes its Makefile",
        {"Makefile.sh": "test:\n\t@true\n"},
        "make",
    ),
)

_TEST_SUPPORT = """from shop.price import total
from support.baskets import full


def test_full():
    assert total(full()) == 449
"""

NEW_FILE_TWINS = (
    Play(
        "new-package-for-tests",
        NEW_MODULE,
        "adds a package of test helpers under a new name",
        {
            "shop/price.py": RIGHT_PRICE,
            "tests/support/__init__.py": "",
            "tests/support/baskets.py": "def full():\n    return [199, 250]\n",
            "tests/test_support.py": _TEST_SUPPORT,
        },
    ),
    Play(
        "product-becomes-a-package",
        NEW_MODULE,
        "turns a module of the product into a package",
        {
            "shop/price.py": None,
            "shop/price/__init__.py": "from shop.price.sums import total\nfrom shop.price.texts import shown\n",
            "shop/price/sums.py": RIGHT_PRICE,
            "shop/price/texts.py": TEST_NAMES.partition("\n\n\n")[0].replace("from shop.price import shown", "")
            + PRICE[PRICE.index("def shown") : PRICE.index("def check_paid")].rstrip()
            + "\n",
        },
        "unittest",
    ),
    Play(
        "new-tests-in-a-folder",
        NEW_TEST,
        "adds a folder of tests with names that other tests have",
        {
            "shop/price.py": RIGHT_PRICE,
            "tests/more/__init__.py": "",
            "tests/more/test_price.py": UNIT_PRICE.replace("199, 250", "99, 350"),
        },
        "unittest",
    ),
    Play(
        "files-beside-the-makefile",
        NEW_TARGET,
        "adds files whose names are no targets",
        {
            "shop/price.py": RIGHT_PRICE,
            "docs/test.md": "# Tests\n",
            "tests.txt": "all\n",
            "reports/README.md": "Reports come here.\n",
            "testing/notes.txt": "none\n",
        },
        "make",
    ),
    Play(
        "settings-of-the-product",
        NEW_SETTINGS,
        "adds settings and scripts that no check reads",
        {
            "shop/price.py": RIGHT_PRICE,
            "shop/settings.conf": "currency = EUR\n",
            "deploy/local.env.example": "RUN=shop\n",
            "deploy/start.sh": ("#!/bin/sh\nexec python3 -m shop\n", 0o755),
        },
        "make",
        verify="sh scripts/check.sh",
    ),
    Play(
        "the-named-target-alone",
        NEW_TARGET,
        "repairs the product where the check leaves a stamp",
        {"shop/price.py": PRICE.replace("return sum(cents) // 100 * 100", FIX)},
        "make",
        verify="make unit",
    ),
)
