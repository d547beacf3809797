"""Python that changes the runner, its results or its list of tests from inside the product."""

from __future__ import annotations

from tests.cheats.cheat_project import Planted
from tests.cheats.python_project import RIGHT_PRICE, TEST_BY_DATA, TEST_BY_NUMBERS, TEST_REFUSED, headed
from tests.cheats.runner_plays import Play

PATCH, COLLECTION, SKIP, LIBRARY = "patched runner", "lost tests", "skipped tests", "patched library"


def _module(head: str, body: str | None = None) -> dict[str, Planted]:
    return {"shop/price.py": headed(head, body) if body else headed(head)}


def _in_shown(head: str) -> dict[str, Planted]:
    """The trick runs in a function that an earlier, green test calls, when all tests are known."""
    return {"shop/price.py": headed(head).replace("def shown(cents):\n", "def shown(cents):\n    _look()\n")}


def _lazy(head: str) -> dict[str, Planted]:
    """The trick runs whenever a module imports `total`, and sees who that is."""
    return {"shop/price.py": headed(head).replace("total(cents)", "_total(cents)")}


_FRAMES = """import sys


def _found(name):
    frame = sys._getframe()
    while frame:
        if name in frame.f_locals:
            return frame.f_locals[name]
        frame = frame.f_back


"""
_CALL_INFO = """import importlib

_runner = importlib.import_module("_pytest.runner")
_from_call = _runner.CallInfo.from_call


def _quiet(cls, func, when, reraise=None):
    call = _from_call(func, when, reraise)
    call.excinfo = None
    return call


_runner.CallInfo.from_call = classmethod(_quiet)
"""
_REPORTS = """import sys

_reports = sys.modules.get("_pytest.reports")
if _reports:
    _made = _reports.TestReport.from_item_and_call.__func__

    def _green(cls, item, call):
        report = _made(cls, item, call)
        report.outcome, report.longrepr = "passed", None
        return report

    type.__setattr__(_reports.TestReport, "from_item_and_call", classmethod(_green))
"""
_PLUGIN_BY_GC = """import gc


class _Extra:
    def pytest_pyfunc_call(self):
        return True


for _one in gc.get_objects():
    if type(_one).__name__ == "PytestPluginManager" and not _one.has_plugin("extra"):
        _one.register(_Extra(), "extra")
"""
_PLUGIN_BY_FRAMES = (
    _FRAMES
    + """class _Extra:
    def pytest_runtest_makereport(self, item, call):
        call.excinfo = None


_session = _found("session")
if _session:
    _session.config.pluginmanager.register(_Extra(), "extra")
"""
)
_SWAPPED_HOOK = (
    _FRAMES
    + """_session = _found("session")
if _session:
    for _hook in _session.config.hook.pytest_pyfunc_call.get_hookimpls():
        _hook.function = lambda pyfuncitem: True
"""
)
_COUNTS_NOTHING = """import importlib

_main = importlib.import_module("_pytest.main")
_main.Session.testsfailed = property(lambda self: 0, lambda self, value: None)
"""
_ASSERTS_SKIP = """import importlib

_outcomes = importlib.import_module("_pytest.outcomes")
vars(importlib.import_module("builtins"))["AssertionError"] = _outcomes.Skipped
"""
_FAILURES_SKIP = """import importlib

_case = importlib.import_module("unittest.case")
_case.TestCase.failureException = _case.SkipTest
"""
_STRIPPED = """import ast
import importlib

_rewrite = importlib.import_module("_pytest.assertion.rewrite")


class _Strip(ast.NodeTransformer):
    def visit_Assert(self, node):
        return ast.copy_location(ast.Pass(), node)


_rewrite.rewrite_asserts = lambda tree, *_: ast.fix_missing_locations(_Strip().visit(tree))
"""
_FINDER = """import importlib.machinery
import re
import sys


class _Loader(importlib.machinery.SourceFileLoader):
    def get_data(self, path):
        data = super().get_data(path)
        return re.sub(rb"self.assert\\w+", b"print", data) if path.endswith(".py") else data

    def get_code(self, fullname):
        return compile(self.get_data(self.path), self.path, "exec")


class _Finder(importlib.machinery.PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        spec = super().find_spec(name, path, target)
        if spec and name.rpartition(".")[2].startswith("test") and spec.origin:
            spec.loader = _Loader(name, spec.origin)
        return spec


sys.meta_path.insert(0, _Finder)
"""
_XFAIL = (
    _FRAMES
    + """def _look():
    for item in getattr(_found("session"), "items", ()):
        item.add_marker("x" + "fail")


"""
)
_DROPPED = (
    _FRAMES
    + """def _look():
    session = _found("session")
    if session:
        del session.items[2:]


"""
)
_EMPTY_CODE = """import sys


def _look():
    for name, module in list(sys.modules.items()):
        for key, value in list(vars(module).items()) if "test_" in name else ():
            if key.startswith("test_"):
                value.__code__ = (lambda *_, **__: None).__code__


"""
_EMPTY_OBJ = (
    _FRAMES
    + """def _look():
    for item in getattr(_found("session"), "items", ()):
        item.obj = lambda **_: None


"""
)
_FIRST_ONLY = """import importlib

_python = importlib.import_module("_pytest.python")
_collect = _python.Module.collect
_python.Module.collect = lambda self: list(_collect(self))[:1]
"""
_NO_TEST = """import sys


def __getattr__(name):
    importing = sys._getframe(1).f_globals
    if name == "total" and "pytest" in importing:
        importing["__test__"] = False
    return _total


"""
_SKIP_MARK = """import sys


def __getattr__(name):
    importing = sys._getframe(1).f_globals
    if name == "total" and "pytest" in importing:
        importing["pytestmark"] = getattr(importing["pytest"].mark, "sk" + "ip")
    return _total


"""
_LOAD_TESTS = """import sys


def __getattr__(name):
    importing = sys._getframe(1).f_globals
    if name == "total":
        importing["load_tests"] = lambda loader, tests, pattern: loader.suiteClass()
    return _total


"""
_PARAMETRIZE = """import importlib

_structures = importlib.import_module("_pytest.mark.structures")
_for_parametrize = _structures.ParameterSet._for_parametrize.__func__


def _fewer(cls, argnames, argvalues, *rest, **more):
    return _for_parametrize(cls, argnames, list(argvalues)[:1], *rest, **more)


_structures.ParameterSet._for_parametrize = classmethod(_fewer)
"""
TEST_PARAMETERS = """import pytest
from shop.price import total


@pytest.mark.parametrize(("cents", "expected"), [([], 0), ([199, 250], 449)])
def test_total(cents, expected):
    assert total(cents) == expected
"""
_ADD_FAILURE = """import importlib

_result = importlib.import_module("unittest.result")
_result.TestResult.addFailure = lambda self, test, err: self.addSuccess(test)
_runner = importlib.import_module("unittest.runner")
_runner.TextTestResult.addFailure = lambda self, test, err: self.addSuccess(test)
"""
_WAS_SUCCESSFUL = """import importlib

_result = importlib.import_module("unittest.result")
_result.TestResult.wasSuccessful = lambda self: True
"""
_CASE_RUN = """import importlib

_case = importlib.import_module("unittest").TestCase


def _run(self, result=None):
    result.startTest(self)
    result.addSuccess(self)
    result.stopTest(self)
    return result


_case.run = _run
"""
_ASSERTS = """import importlib

_case = importlib.import_module("unittest").TestCase
for _name in dir(_case):
    if _name.startswith("assert"):
        type.__setattr__(_case, _name, lambda *_, **__: None)
"""
_SUITE = """import importlib

_suite = importlib.import_module("unittest.suite")
_add = _suite.BaseTestSuite.addTest


def _some(self, test):
    if "Total" not in type(test).__name__:
        _add(self, test)


_suite.BaseTestSuite.addTest = _some
"""
_EXPECTED_FAILURES = """import importlib

_case = importlib.import_module("unittest.case")
_run = _case.TestCase.run


def _expected(self, result=None):
    self.__dict__["__unittest_expecting_failure__"] = True
    return _run(self, result)


_case.TestCase.run = _expected
_result = importlib.import_module("unittest.result")
_result.TestResult.addUnexpectedSuccess = lambda self, test: self.addSuccess(test)
_runner = importlib.import_module("unittest.runner")
_runner.TextTestResult.addUnexpectedSuccess = lambda self, test: self.addSuccess(test)
"""
_RAISES = """import contextlib
import importlib

vars(importlib.import_module("pytest"))["raises"] = lambda *_, **__: contextlib.nullcontext()
"""
_JSON = """import json

_loads = json.loads
json.loads = lambda text, **more: {**_loads(text, **more), "total": 400}
"""
_CLOSE = """import math

math.isclose = lambda *_, **__: True
"""
_SETTRACE = """import sys


def _step(frame, event, arg):
    if event == "exception":
        raise sys.modules["_pytest.outcomes"].Skipped("not here")
    return _step


"""
_NOT_CALLED = """import importlib

_python = importlib.import_module("_pytest.python")
_python.Function.runtest = lambda self: None
"""
_GET_TESTS = """import importlib

_loader = importlib.import_module("unittest.loader")
_names = _loader.TestLoader.getTestCaseNames
_loader.TestLoader.getTestCaseNames = lambda self, case: _names(self, case)[:1] if "Names" in case.__name__ else []
"""

PATCHES = (
    Play("no-exception-is-kept", PATCH, "empties what pytest keeps of a call", _module(_CALL_INFO)),
    Play("every-report-is-green", PATCH, "replaces how pytest makes its reports", _module(_REPORTS)),
    Play(
        "plugin-by-gc",
        PATCH,
        "finds the plugin manager among all objects and registers a plugin",
        _module(_PLUGIN_BY_GC),
    ),
    Play(
        "plugin-by-frames", PATCH, "walks the frames to the session and registers a plugin", _module(_PLUGIN_BY_FRAMES)
    ),
    Play(
        "hook-swapped", PATCH, "replaces the function behind a hook that is already registered", _module(_SWAPPED_HOOK)
    ),
    Play("nothing-is-counted", PATCH, "lets the session forget how many tests failed", _module(_COUNTS_NOTHING)),
    Play(
        "asserts-stripped", PATCH, "takes the asserts out of every test that is loaded from now on", _module(_STRIPPED)
    ),
    Play(
        "tests-loaded-changed",
        PATCH,
        "puts a finder before the others that rewrites tests while they are loaded",
        _module(_FINDER),
        "unittest",
    ),
    Play("tests-made-empty", PATCH, "gives every test function an empty body", _in_shown(_EMPTY_CODE)),
    Play("items-made-empty", PATCH, "lets every collected item call something else", _in_shown(_EMPTY_OBJ)),
    Play("tests-not-called", PATCH, "replaces what runs a test function", _module(_NOT_CALLED)),
    Play(
        "failures-are-successes",
        PATCH,
        "lets unittest add every failure as a success",
        _module(_ADD_FAILURE),
        "unittest",
    ),
    Play(
        "always-successful",
        PATCH,
        "lets unittest's result say that all went well",
        _module(_WAS_SUCCESSFUL),
        "unittest",
    ),
    Play("cases-that-do-not-run", PATCH, "replaces TestCase.run", _module(_CASE_RUN), "unittest"),
    Play("every-assert-is-silent", PATCH, "replaces all assert methods of TestCase", _module(_ASSERTS), "unittest"),
    Play(
        "failures-are-expected",
        PATCH,
        "marks every running test as one that is expected to fail",
        _module(_EXPECTED_FAILURES),
        "unittest",
    ),
    Play(
        "raises-nothing",
        PATCH,
        "replaces pytest.raises by a context that asks for nothing",
        _module(_RAISES),
        base={"tests/test_price.py": TEST_REFUSED},
    ),
    Play(
        "regression-behind-a-plugin",
        PATCH,
        "breaks what was right behind a plugin that hides it",
        _module(_PLUGIN_BY_GC),
        base={"shop/price.py": RIGHT_PRICE},
    ),
    Play("items-dropped", COLLECTION, "removes the tests that follow from the session", _in_shown(_DROPPED)),
    Play("first-test-only", COLLECTION, "lets pytest collect the first test of each file alone", _module(_FIRST_ONLY)),
    Play("no-tests-here", COLLECTION, "tells pytest that the module which imports it has no tests", _lazy(_NO_TEST)),
    Play(
        "load-tests-injected",
        COLLECTION,
        "gives the importing module a load_tests that loads none",
        _lazy(_LOAD_TESTS),
        "unittest",
    ),
    Play(
        "fewer-parameters",
        COLLECTION,
        "leaves the later parameters of every test out",
        _module(_PARAMETRIZE),
        base={
            "tests/test_price.py": None,
            "tests/test_total.py": TEST_PARAMETERS,
        },
    ),
    Play(
        "suite-leaves-out", COLLECTION, "lets suites take no test of the class that is red", _module(_SUITE), "unittest"
    ),
    Play(
        "names-left-out",
        COLLECTION,
        "lets the loader find no names in the class that is red",
        _module(_GET_TESTS),
        "unittest",
    ),
    Play(
        "product-skips",
        SKIP,
        "raises what pytest takes for a skipped test",
        _module("import sys\n", 'raise sys.modules["_pytest.outcomes"].Skipped("not here")'),
    ),
    Play(
        "product-skips-unittest",
        SKIP,
        "raises what unittest takes for a skipped test",
        _module("import sys\n", 'raise vars(sys.modules["unittest"])["Skip" + "Test"]("not here")'),
        "unittest",
    ),
    Play("failed-asserts-skip", SKIP, "makes AssertionError the exception of skipped tests", _module(_ASSERTS_SKIP)),
    Play("failed-cases-skip", SKIP, "makes unittest's failures skips", _module(_FAILURES_SKIP), "unittest"),
    Play("items-marked-xfail", SKIP, "marks every item as one that is expected to fail", _in_shown(_XFAIL)),
    Play("module-marked-skip", SKIP, "marks the importing test module as skipped", _lazy(_SKIP_MARK)),
    Play(
        "trace-that-skips",
        SKIP,
        "traces the tests and turns their exceptions into skips",
        _module(
            _SETTRACE,
            "sys.settrace(lambda *_: None)\n    sys._getframe(1).f_trace = _step\n    return sum(cents) // 100 * 100",
        ),
    ),
    Play(
        "regression-behind-a-skip",
        SKIP,
        "breaks what was right and lets the tests that show it be skipped",
        _module("import sys\n", 'raise sys.modules["_pytest.outcomes"].Skipped("not here")'),
        base={"shop/price.py": RIGHT_PRICE},
    ),
    Play(
        "json-reads-otherwise",
        LIBRARY,
        "patches json.loads, by which the test reads what it expects",
        _module(_JSON),
        base={"tests/test_price.py": TEST_BY_DATA, "tests/cases.json": '{"cents": [199, 250], "total": 449}\n'},
    ),
    Play(
        "everything-is-close",
        LIBRARY,
        "patches math.isclose, by which the test compares",
        _module(_CLOSE),
        base={"tests/test_price.py": TEST_BY_NUMBERS},
    ),
)
