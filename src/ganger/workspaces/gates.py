"""What is a gate file: tests the base has, what configures or shadows the checks, and what the verify commands name."""

from __future__ import annotations

import fnmatch
import posixpath
import re
import stat
from collections.abc import Collection, Sequence

from ganger.ports import Change, Side, Touched
from ganger.workspaces.gate_commands import read_orders
from ganger.workspaces.gate_files import (
    GATE_FILES,
    INSTALLED,
    MODULE_ENDS,
    MODULE_FOLDERS,
    PROGRAM_FOLDERS,
    SHADOWABLE,
    SPEC_ENDS,
    SPEC_FOLDERS,
    TEST_FILES,
    TEST_FOLDERS,
    GateFile,
)
from ganger.workspaces.gate_scripts import Reach, reach_of
from ganger.workspaces.inline_tests import weakened_tests
from ganger.workspaces.protect import folded_parts
from ganger.workspaces.shortcuts import shortcut_in

LARGEST_COMPARED = 1 << 20

_TEST_NAME = re.compile("|".join(fnmatch.translate(glob) for glob in TEST_FILES))


def _sorted_table() -> tuple[dict[str, list[GateFile]], list[tuple[re.Pattern[str], GateFile]]]:
    """Plain names apart from patterns; `*` stays inside one part of a path, except at the end of a folder's row."""
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
    """Whether a path is a test or test data by its name."""
    *folders, name = path.split("/")
    if _TEST_NAME.match(name) or not TEST_FOLDERS.isdisjoint(folders):
        return not name.lower().startswith("readme")
    return not SPEC_FOLDERS.isdisjoint(folders) and name.endswith(SPEC_ENDS)


def _is_file(side: Side | None) -> bool:
    return side is not None and stat.S_ISREG(side.mode)


class Gates:
    """The gates of one change of one task, by the commands that will judge it.

    `declared` are paths the manifest lets the task write: a script a command names may be its very subject.
    """

    def __init__(self, verify: Sequence[str], *, declared: Collection[str] = ()) -> None:
        self._orders = read_orders(verify)
        self._declared = frozenset(declared)
        self._doctests = any("doctest" in command for command in verify)
        self._known: Reach | None = None

    def gate_of(self, touched: Touched, change: Change) -> str | None:
        """Why this path is a gate, as the part of a sentence; None when it is none."""
        if touched.before is not None and is_test(touched.path):
            return f"a test that exists in the base was {touched.kind}"
        return (
            self._configures(touched, change)
            or self._is_named(touched)
            or self._is_reached(touched, change)
            or self._shadows(touched, change)
            or self._inside_code(touched, change)
        )

    def _configures(self, touched: Touched, change: Change) -> str | None:
        if touched.before is None and touched.path in self._declared:
            return None
        for row in _rows_for("/".join(folded_parts(touched.path))):
            inside = _inside(row, touched, change) if self._runs(row, change) else None
            if inside is not None:
                return f"it {row.what}{inside}"
        return None

    def _runs(self, row: GateFile, change: Change) -> bool:
        wanted = row.runs.split()
        programs = self._orders.programs
        return not wanted or not (programs | self._reach(change).programs).isdisjoint(wanted)

    def _reach(self, change: Change) -> Reach:
        if self._known is None:
            self._known = reach_of(self._orders, lambda path: _base(change, path))
        return self._known

    def _is_named(self, touched: Touched) -> str | None:
        if touched.before is None or touched.path in self._declared or touched.path not in self._orders.named:
            return None
        return "a verify command names it (list it under files.modify if it is what the task shall change)"

    def _is_reached(self, touched: Touched, change: Change) -> str | None:
        if touched.before is None or touched.path in self._declared:
            return None
        user = self._reach(change).files.get(touched.path)
        return f"the check {user!r} uses it" if user else None

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
            self._module_shadow(folded, is_link=is_link) or self._program_shadow(path) or _product_shadow(path, change)
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

    def _module_shadow(self, path: str, *, is_link: bool) -> str | None:
        folder, _, name = path.rpartition("/")
        if name == "__init__.py":
            folder, _, name = folder.rpartition("/")
        module = name.split(".")[0]
        is_package = is_link or path.endswith("/__init__.py")
        is_module = name.endswith(MODULE_ENDS) or ("." not in name and is_package)
        if not is_module or module not in SHADOWABLE or folder not in MODULE_FOLDERS | self._orders.folders:
            return None
        return f"it would be imported in place of the module {module!r}"

    def _program_shadow(self, path: str) -> str | None:
        folder, _, name = path.rpartition("/")
        stem = posixpath.splitext(name)[0] if name.endswith((".exe", ".cmd", ".bat")) else name
        is_meant = path in self._declared or path in self._orders.named
        if stem in self._orders.programs and folder in PROGRAM_FOLDERS and not is_meant:
            return f"it would run in place of the program {stem!r}"
        return None


def _product_shadow(path: str, change: Change) -> str | None:
    """Test runners put the folders of tests in front of the path, so that `tests/calc.py` would be imported as calc."""
    parts = path.split("/")
    depth = next((at for at, part in enumerate(parts) if part in TEST_FOLDERS), None)
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
    """Also of a path the change does not touch, where the change can tell."""
    try:
        return change.before(path)
    except LookupError:
        return b""


def _is_small(touched: Touched) -> bool:
    return all(side is None or side.size <= LARGEST_COMPARED for side in (touched.before, touched.after))


def _inside(row: GateFile, touched: Touched, change: Change) -> str | None:
    """Nothing when the change leaves alone what makes the file a gate; else what to add to the reason."""
    if row.look is None:
        return ""
    if not _is_small(touched) or not all(side is None or _is_file(side) for side in (touched.before, touched.after)):
        return " and cannot be compared"
    before = change.before(touched.path) if touched.before is not None else b""
    after = change.after(touched.path) if touched.after is not None else b""
    what = row.look(before, after)
    return None if what is None else f" and {what}" if what.startswith("cannot") else f": the change {what}"
