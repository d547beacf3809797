"""What is a gate file: tests the base has, what configures or shadows the checks, and what the verify commands name."""

from __future__ import annotations

import fnmatch
import posixpath
import re
import stat
from collections import Counter
from collections.abc import Callable, Collection, Sequence

from ganger.ports.changes import Change, Side, Touched
from ganger.workspaces.gates.commands import read_orders
from ganger.workspaces.gates.files import (
    DOCUMENT,
    EXPECTED_FOLDERS,
    EXPECTED_NAME,
    GATE_FILES,
    INSTALLED,
    MODULE_ENDS,
    MODULE_FOLDERS,
    PROGRAM_FOLDERS,
    RECIPE,
    SHADOWABLE,
    SOURCE_ENDS,
    SPEC_ENDS,
    SPEC_FOLDERS,
    TEST_FILES,
    TEST_FOLDERS,
    GateFile,
)
from ganger.workspaces.gates.make import MAKEFILES, only_adds, words_of
from ganger.workspaces.gates.packages import changed_script
from ganger.workspaces.gates.scripts import ScriptReach, reach_of
from ganger.workspaces.gates.shadows import Known, shadow_of
from ganger.workspaces.gates.shortcuts import shortcut_in
from ganger.workspaces.rules.protected import folded_parts

_RUST_REGION = re.compile(rb"^[ \t]*#\[cfg\((?:all\()?test\b", re.MULTILINE)
_RUST_OFF = re.compile(rb"#\[ignore|#\[cfg_attr\([^\n]*ignore|/\*")


def weakened_tests(path: str, before: bytes, after: bytes, *, doctests: bool) -> str | None:
    """What a change takes from the tests inside this file, as part of a sentence. Adding tests is fine."""
    if path.endswith(".rs"):
        return _rust(before, after)
    if (
        doctests
        and path.endswith((".py", ".rst", ".md", ".txt"))
        and Counter(_examples(before)) - Counter(_examples(after))
    ):
        return "an example that is run as a test was changed in it"
    return None


def _rust(before: bytes, after: bytes) -> str | None:
    """Every line from the first test module on must still be there, and the number of disabled tests may not grow."""
    start = _RUST_REGION.search(before)
    if start is None:
        return None
    old = before[start.start() :]
    again = _RUST_REGION.search(after)
    new = after[again.start() :] if again else b""
    if Counter(_lines(old)) - Counter(_lines(new)):
        return "a test inside it was changed"
    if len(_RUST_OFF.findall(new)) > len(_RUST_OFF.findall(old)):
        return "a test inside it was disabled"
    return None


def _lines(content: bytes) -> list[bytes]:
    return [line for line in map(bytes.strip, content.split(b"\n")) if line]


def _examples(content: bytes) -> list[bytes]:
    """Each `>>>` with the lines after it, up to the next one or an empty line."""
    examples: list[bytes] = []
    open_one = False
    for line in map(bytes.strip, content.split(b"\n")):
        if line.startswith(b">>>"):
            examples.append(line)
            open_one = True
        elif not line or line.startswith((b'"""', b"'''")):
            open_one = False
        elif open_one:
            examples[-1] += b"\n" + line
    return examples


LARGEST_COMPARED = 1 << 20

_HAPPENED = {
    "modified": "was modified",
    "deleted": "was deleted",
    "retyped": "was replaced by another kind of file",
    "mode": "had its mode changed",
}
_IF_MEANT = "list it under metadata.files_modify if the task is meant to change it"

_TEST_NAME = re.compile("|".join(fnmatch.translate(glob) for glob in TEST_FILES))


def _sorted_table() -> tuple[dict[str, list[GateFile]], list[tuple[re.Pattern[str], GateFile]]]:
    """Plain names and patterns, separately; `*` stays inside one part of a path, except at the end of a folder's
    row."""
    by_name: dict[str, list[GateFile]] = {}
    by_glob: list[tuple[re.Pattern[str], GateFile]] = []
    for row in GATE_FILES:
        for name in row.names.split():
            if "*" not in name and "/" not in name:
                by_name.setdefault(name, []).append(row)
            else:
                inner = re.escape(name.removesuffix("/*")).replace(r"\*", "[^/]*")
                end = "/.*" if name.endswith("/*") else ""
                by_glob.append((re.compile(f"(?:.*/)?{inner}{end}", re.DOTALL), row))
    return by_name, by_glob


_BY_NAME, _BY_GLOB = _sorted_table()


def _rows_for(path: str) -> list[GateFile]:
    name = path.rpartition("/")[2]
    return [*_BY_NAME.get(name, ()), *(row for pattern, row in _BY_GLOB if pattern.fullmatch(path))]


def is_test(path: str) -> bool:
    """Whether a path is a test or test data, judged by its name."""
    *folders, name = path.split("/")
    if _TEST_NAME.match(name) or not TEST_FOLDERS.isdisjoint(folder.lower() for folder in folders):
        return not name.lower().startswith("readme")
    return not SPEC_FOLDERS.isdisjoint(folders) and name.endswith(SPEC_ENDS)


def is_expectation(path: str) -> bool:
    """Whether a path is expected output, judged by its name: data, never code."""
    folder, _, name = path.lower().rpartition("/")
    if name.startswith("readme"):
        return False
    if folder.partition("/")[0] in EXPECTED_FOLDERS:
        return True
    return not name.endswith(SOURCE_ENDS) and all(one.fullmatch(name) for one in (EXPECTED_NAME, DOCUMENT))


def _is_file(side: Side | None) -> bool:
    return side is not None and stat.S_ISREG(side.mode)


class Gates:
    """The gates for one change of one task, given the commands that judge it.

    `declared` are paths the manifest lets the task write: the task may be about a script that a command names.
    """

    def __init__(self, verify: Sequence[str], *, declared: Collection[str] = ()) -> None:
        self._orders = read_orders(verify)
        self._declared = frozenset(declared)
        self._doctests = any("doctest" in command for command in verify)
        self._known: ScriptReach | None = None
        self._of_all = Known(self._declared)

    def gate_of(self, touched: Touched, change: Change) -> str | None:
        """Why this path is a gate, as part of a sentence; None when it is not one."""
        if touched.before is not None and is_test(touched.path):
            return f"a test that exists in the base {_HAPPENED[touched.kind]}"
        return (
            self._configures(touched, change)
            or self._is_expected(touched)
            or self._is_named(touched)
            or self._is_reached(touched, change)
            or self._shadows(touched, change)
            or self._inside_code(touched, change)
        )

    def _configures(self, touched: Touched, change: Change) -> str | None:
        if touched.before is None and touched.path in self._declared:
            return None
        folded = "/".join(folded_parts(touched.path))
        for row in _rows_for(folded):
            if row.only_new and touched.before is not None:
                continue
            if not self._runs(row, change) or (row.what == RECIPE and self._only_adds(touched, change)):
                continue
            inside = _inside(row, touched, change)
            if inside is None and folded.rpartition("/")[2] == "package.json":
                inside = _compared(self._changed_script, touched, change)
            if inside is not None:
                return f"it {row.what}{inside}"
        return None

    def _runs(self, row: GateFile, change: Change) -> bool:
        wanted = row.runs.split()
        return not wanted or not self._reach(change).orders.programs.isdisjoint(wanted)

    def _reach(self, change: Change) -> ScriptReach:
        if self._known is None:
            self._known = reach_of(self._orders, lambda path: _base(change, path))
        return self._known

    def _changed_script(self, touched: Touched, change: Change) -> str | None:
        called = self._reach(change).orders.scripts
        return changed_script(*_contents(touched, change), called)

    def _only_adds(self, touched: Touched, change: Change) -> bool:
        """A target that nothing asked for before changes no check."""
        reach = self._reach(change)
        is_makefile = touched.path in reach.makefiles or touched.path.rpartition("/")[2] in MAKEFILES
        if not is_makefile or reach.make_words is None or touched.kind != "modified" or not _is_small(touched):
            return False
        before, after = (content.decode("utf-8", "replace") for content in _contents(touched, change))
        return only_adds(before, after, reach.make_words | words_of(before) | reach.orders.goals)

    def _is_expected(self, touched: Touched) -> str | None:
        if touched.before is None or touched.path in self._declared or not is_expectation(touched.path):
            return None
        return f"expected output {_HAPPENED[touched.kind]} ({_IF_MEANT})"

    def _is_named(self, touched: Touched) -> str | None:
        if touched.before is None or touched.path in self._declared or touched.path not in self._orders.named:
            return None
        return f"a verify command names it ({_IF_MEANT})"

    def _is_reached(self, touched: Touched, change: Change) -> str | None:
        if touched.before is None or touched.path in self._declared:
            return None
        reach = self._reach(change)
        if touched.path in reach.makefiles and self._only_adds(touched, change):
            return None
        if user := reach.user_of(touched.path):
            return f"the check {user!r} uses it ({_IF_MEANT})"
        return "a verify command collects it as a test" if reach.is_collected(touched.path) else None

    def _shadows(self, touched: Touched, change: Change) -> str | None:
        path = touched.path
        for folder, what in INSTALLED:
            if f"/{folder}/" in f"/{path}/":
                return f"it {what}"
        if touched.before is not None or touched.after is None:
            return None
        is_link = stat.S_ISLNK(touched.after.mode)
        folded = "/".join(folded_parts(path))
        return (
            self._module_shadow(folded, change, is_link=is_link)
            or self._program_shadow(path)
            or _product_shadow(path, change)
            or shadow_of(touched, change, self._reach(change), self._of_all)
        )

    def _inside_code(self, touched: Touched, change: Change) -> str | None:
        if touched.kind == "mode" or not _is_small(touched):
            return None
        source = touched.renamed_from or (touched.path if _is_file(touched.before) else "")
        before = change.before(source) if source else b""
        after = change.after(touched.path) if _is_file(touched.after) else b""
        weakened = weakened_tests(touched.path, before, after, doctests=self._doctests)
        if weakened or not after:
            return weakened
        shortcut = shortcut_in(touched.path, before, after, in_tests=is_test(touched.path))
        return f"it {shortcut}" if shortcut else None

    def _module_shadow(self, path: str, change: Change, *, is_link: bool) -> str | None:
        folder, _, name = path.rpartition("/")
        if name == "__init__.py":
            folder, _, name = folder.rpartition("/")
        module = name.split(".")[0]
        is_package = is_link or path.endswith("/__init__.py")
        is_module = name.endswith(MODULE_ENDS) or ("." not in name and is_package)
        if not is_module or module not in SHADOWABLE or not self._imports_from(folder, change):
            return None
        return f"it would be imported in place of the module {module!r}"

    def _imports_from(self, folder: str, change: Change) -> bool:
        """Inside a package a name shadows nothing; but a new package must not close a known folder."""
        roots = {"", *self._reach(change).orders.roots}
        if folder in {"/".join(folded_parts(root)) for root in roots}:
            return True
        is_package = bool(_base(change, f"{folder}/__init__.py"))
        if folder in MODULE_FOLDERS:
            return not is_package
        is_made = any(one.path == f"{folder}/__init__.py" and one.after for one in change.touched)
        among_tests = self._puts_folders() and folder.partition("/")[0].lower() in TEST_FOLDERS
        return (among_tests or folder in self._collected_folders()) and not is_package and not is_made

    def _collected_folders(self) -> frozenset[str]:
        """Whether a command's runner puts a test's folder first in the path."""
        return self._orders.folders if self._puts_folders() else frozenset()

    def _puts_folders(self) -> bool:
        return not self._orders.programs.isdisjoint(("pytest", "py.test", "nose", "nose2"))

    def _program_shadow(self, path: str) -> str | None:
        folder, _, name = path.rpartition("/")
        stem = posixpath.splitext(name)[0] if name.endswith((".exe", ".cmd", ".bat")) else name
        is_meant = path in self._declared or path in self._orders.named
        if stem in self._orders.programs and folder in PROGRAM_FOLDERS and not is_meant:
            return f"it would run in place of the program {stem!r}"
        return None


def _product_shadow(path: str, change: Change) -> str | None:
    """Test runners put test folders first in the path, so `tests/calc.py` would be imported as calc."""
    parts = path.split("/")
    depth = next((at for at, part in enumerate(parts) if part.lower() in TEST_FOLDERS), None)
    inside = "/".join(parts[depth + 1 :]) if depth is not None else ""
    if not inside.endswith(".py") or _TEST_NAME.match(parts[-1]) or parts[-1] in ("__init__.py", "conftest.py"):
        return None
    module = inside.removesuffix(".py")
    places = [
        f"{root}{module}{end}" for root in ("", "src/", "lib/") for end in (".py", "/__init__.py", "/__main__.py")
    ]
    real = next((place for place in places if _base(change, place)), None)
    return f"it would be imported in place of {real!r}" if real else None


def _base(change: Change, path: str) -> bytes:
    """Also for a path the change does not touch, where the change knows its content."""
    try:
        return change.before(path)
    except LookupError:
        return b""


def _is_small(touched: Touched) -> bool:
    return all(side is None or side.size <= LARGEST_COMPARED for side in (touched.before, touched.after))


def _inside(row: GateFile, touched: Touched, change: Change) -> str | None:
    """None when the change does not touch what makes the file a gate; else what to add to the reason."""
    look = row.look
    return "" if look is None else _compared(lambda one, whole: look(*_contents(one, whole)), touched, change)


def _compared(look: Callable[[Touched, Change], str | None], touched: Touched, change: Change) -> str | None:
    if not _is_small(touched) or not all(side is None or _is_file(side) for side in (touched.before, touched.after)):
        return " and cannot be compared"
    what = look(touched, change)
    return None if what is None else f" and {what}" if what.startswith("cannot") else f": the change {what}"


def _contents(touched: Touched, change: Change) -> tuple[bytes, bytes]:
    before = change.before(touched.path) if touched.before is not None else b""
    after = change.after(touched.path) if touched.after is not None else b""
    return before, after
