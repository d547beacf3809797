"""New files that make a check read something else than before: finished targets, settings, shadowing modules.

They touch no existing file, so only a file's place and name show what it does.
"""

from __future__ import annotations

import configparser
import posixpath
import re
import shutil
import stat
import tomllib
from collections.abc import Callable, Collection, Iterator

from ganger.ports.changes import Change, Touched
from ganger.workspaces.files.tree import parents_of
from ganger.workspaces.gates.commands import is_known_program
from ganger.workspaces.gates.files import TEST_FOLDERS
from ganger.workspaces.gates.imports import Layout, base_text, is_test_module, module_place, optional_modules
from ganger.workspaces.gates.make import Made
from ganger.workspaces.gates.scripts import PRODUCT_FOLDERS, TOOL_FOLDERS, ScriptReach
from ganger.workspaces.rules.line_counts import listed

# The order in which an import without a suffix is resolved; folders come last.
SCRIPT_ENDS = ("", ".mjs", ".js", ".mts", ".ts", ".jsx", ".tsx", ".cjs", ".cts", ".json", ".node")
# A file with this name makes its folder a separate package and takes its files out of the package around it.
BOUNDARIES = listed("package.json go.mod deno.json deno.jsonc")
SOURCE_ROOTS = ("", "src", "lib", "python")
_NOT_IMPORTED = listed("__init__ __main__ conftest setup test tests")
_PYTHON_RUNS = re.compile(r"(?:python|pypy)[\d.]*w?|pytest|py\.test|unittest|nose2?|coverage|tox|nox|hatch|poe")
# These put the folder of a test in front of the path.
_PUT_FOLDERS = listed("pytest py.test nose nose2 tox nox hatch poe")
# Folders with scripts in them, which are not imported by the folder's name.
_NO_PACKAGES = TOOL_FOLDERS | PRODUCT_FOLDERS | listed("examples example benchmarks")
_ROOT_MARKS = listed("setup.py pyproject.toml")
_EXTENSIONS = (".so", ".pyd")
# Distributions whose module has another name.
_MODULES = {
    "pyyaml": "yaml", "beautifulsoup4": "bs4", "pillow": "pil", "scikit-learn": "sklearn", "opencv-python": "cv2",
    "attrs": "attr", "pyjwt": "jwt", "psycopg2-binary": "psycopg2", "gitpython": "git", "pycryptodome": "crypto",
    "protobuf": "google", "mysqlclient": "mysqldb", "pyserial": "serial", "pyzmq": "zmq", "scikit-image": "skimage",
    "djangorestframework": "rest_framework", "websocket-client": "websocket", "typing-extensions": "typing_extensions",
}  # fmt: skip
_LISTS = (
    "requirements.txt",
    "requirements-dev.txt",
    "requirements/dev.txt",
    "requirements/base.txt",
    "dev-requirements.txt",
)
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


class Known:
    """Facts about one change: paths the task declared, and modules that come from elsewhere."""

    def __init__(self, declared: Collection[str]) -> None:
        self.declared = declared
        self._dependencies: frozenset[str] | None = None
        self._layout: Layout | None = None
        self._optional: dict[str, frozenset[str]] = {}

    def layout(self, change: Change) -> Layout:
        if self._layout is None:
            self._layout = Layout(change)
        return self._layout

    def optional(self, path: str, text: str) -> frozenset[str]:
        """Modules that this code imports if they exist."""
        if path not in self._optional:
            self._optional[path] = frozenset(optional_modules(text, posixpath.dirname(path)))
        return self._optional[path]

    def dependencies(self, change: Change) -> frozenset[str]:
        if self._dependencies is None:
            self._dependencies = frozenset(_dependencies(change))
        return self._dependencies


def shadow_of(touched: Touched, change: Change, reach: ScriptReach, known: Known) -> str | None:
    """Why this new path would change what a check reads, as the part of a sentence."""
    declared = known.declared
    return (
        _finished(touched.path, change, reach)
        or _read_if_there(touched.path, reach, declared)
        or _program(touched, reach, declared)
        or _package_over_module(touched, change)
        or _new_root(touched.path, change, reach)
        or _over_the_product(touched, change, reach, known)
        or _imported_if_there(touched.path, change, reach, known)
        or _over_a_dependency(touched.path, change, reach, known)
        or _script_over_script(touched.path, change)
        or _boundary(touched.path, change, declared)
        or _automatic_mock(touched.path, reach)
    )


def was_there(path: str, change: Change) -> bool:
    folder, _, name = path.rpartition("/")
    return name in change.names_before(folder)


def _stays(path: str, change: Change) -> bool:
    """A file of the base that the change does not remove."""
    return was_there(path, change) and not any(one.path == path and one.after is None for one in change.touched)


# --- what is built, what is sourced --------------------------------------------------------------------------------


def _finished(path: str, change: Change, reach: ScriptReach) -> str | None:
    for folder, made in reach.made.items():
        prefix = f"{folder}/" if folder else ""
        if not path.startswith(prefix):
            continue
        inside = path[len(prefix) :]
        for one in (*parents_of(inside), inside):
            if was_there(prefix + one, change):
                continue
            for name in made.names_of(one):
                if reason := _made_or_found(name, one, made, lambda need, at=prefix: was_there(at + need, change)):  # type: ignore[misc]
                    return reason
    return None


def _made_or_found(name: str, place: str, made: Made, exists: Callable[[str], bool]) -> str | None:
    """`place` is the folder of the file that make may look for as `name`."""
    places = made.places_of(name)
    at = places.index(place)
    if any(map(exists, places[:at])):
        return None
    if made.is_made(name, lambda need: any(map(exists, made.places_of(need)))):
        return f"make would take it for the finished target {name!r} (list it under .PHONY if it is not a file)"
    later = next(filter(exists, places[at + 1 :]), None) if name in made.needed else None
    return f"make would read it in place of {later!r}" if later else None


def _program(touched: Touched, reach: ScriptReach, declared: Collection[str]) -> str | None:
    """A program in a folder that a check puts first in PATH."""
    folder, _, name = touched.path.rpartition("/")
    if folder not in reach.orders.program_folders or touched.path in declared:
        return None
    # A program that no machine has is the work the check asks for.
    is_there = is_known_program(name) or shutil.which(name) is not None
    return f"it would run in place of the program {name!r}" if is_there else None


def _read_if_there(path: str, reach: ScriptReach, declared: Collection[str]) -> str | None:
    user = None if path in declared else reach.reader_of(path)
    return f"the check {user!r} reads it if it exists" if user else None


# --- Python --------------------------------------------------------------------------------------------------------


def _runs_python(reach: ScriptReach) -> bool:
    return any(_PYTHON_RUNS.fullmatch(program) for program in reach.orders.programs)


def _joined(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name


def _package_over_module(touched: Touched, change: Change) -> str | None:
    """Python prefers a package to a module, and a compiled module to a source file."""
    path = touched.path
    folder, module = module_place(path)
    is_link = touched.after is not None and stat.S_ISLNK(touched.after.mode)
    if is_link and "." not in posixpath.basename(path):
        folder, module = posixpath.dirname(path), posixpath.basename(path)
    if not module:
        return None
    beside = _joined(folder, f"{module}.py")
    is_package = is_link or posixpath.basename(path).startswith("__init__.")
    if (is_package or path.endswith(_EXTENSIONS)) and beside != path and _stays(beside, change):
        return f"it would be imported in place of {beside!r}"
    inside = _joined(folder, module)
    if path == beside and was_there(inside, change) and not was_there(f"{inside}/__init__.py", change):
        plain = sorted(name for name in change.names_before(inside) if name.endswith(".py"))
        if plain and _stays(f"{inside}/{plain[0]}", change):
            return f"it would be imported in place of the modules in {inside!r}"
    return None


def _new_root(path: str, change: Change, reach: ScriptReach) -> str | None:
    """pytest takes the nearest such file above the tests as the project's top folder and looks no higher."""
    folder, _, name = path.rpartition("/")
    is_top = folder.rpartition("/")[2].lower() in TEST_FOLDERS or folder in reach.orders.folders
    if name in _ROOT_MARKS and folder and is_top and change.names_before(folder) and _runs_python(reach):
        return "it would make a folder of tests the project's top folder for the test runner"
    return None


def _roots(change: Change, reach: ScriptReach, known: Known) -> set[str]:
    """Folders Python imports from, apart from test folders."""
    configured = known.layout(change).python_path() if _puts_folders(reach) else set()
    return {"", *reach.orders.roots, *configured}


def _puts_folders(reach: ScriptReach) -> bool:
    return not reach.orders.programs.isdisjoint(_PUT_FOLDERS) and "importlib" not in reach.orders.named


def _over_the_product(touched: Touched, change: Change, reach: ScriptReach, known: Known) -> str | None:
    """The folder a check runs in comes before the product's folder, and test folders come before both."""
    path = touched.path
    folder, module = module_place(path)
    if touched.after is not None and stat.S_ISLNK(touched.after.mode) and "." not in posixpath.basename(path):
        folder, module = posixpath.dirname(path), posixpath.basename(path)
    if not module or not _runs_python(reach):
        return None
    layout, roots = known.layout(change), _roots(change, reach, known)
    others = {*SOURCE_ROOTS, *roots}
    in_tests = _puts_folders(reach) and layout.puts_folders_in_front
    searched = [one for one in parents_of(path) if one not in roots and in_tests and layout.is_searched(one)]
    if folder in searched:
        others |= {one for one in layout.test_folders(folder) if layout.is_searched(one)}
    real = None
    if folder in roots or folder in searched:
        real = _hidden_module(path, folder, module, others, change)
    for first in searched:
        real = real or _hidden_part(path, first, {*SOURCE_ROOTS, *roots}, change)
    return f"it would be imported in place of {real!r}" if real else None


def _hidden_module(path: str, folder: str, module: str, roots: Collection[str], change: Change) -> str | None:
    """A module in another root that would no longer be found."""
    if module in _NOT_IMPORTED or is_test_module(f"{module}.py") or _was_module(_joined(folder, module), change):
        return None
    for root in sorted({*roots} - {folder}):
        inner = _joined(root, module)
        for real in (f"{inner}.py", f"{inner}/__init__.py"):
            if real != path and _stays(real, change):
                return real
        plain = sorted(name for name in change.names_before(inner) if name.endswith(".py"))
        if plain and module not in _NO_PACKAGES and _stays(f"{inner}/{plain[0]}", change):
            return inner
    return None


def _hidden_part(path: str, first: str, roots: Collection[str], change: Change) -> str | None:
    """Packages without `__init__.py` are joined from all folders; the first folder that has a module wins."""
    inside = path[len(first) + 1 :]
    package, _, rest = inside.partition("/")
    for root in sorted({*roots} - {first}) if rest else ():
        real = _joined(root, inside)
        is_open = not was_there(f"{_joined(root, package)}/__init__.py", change)
        if is_open and real != path and _stays(real, change):
            return real
    return None


def _was_module(inner: str, change: Change) -> bool:
    return was_there(f"{inner}.py", change) or was_there(f"{inner}/__init__.py", change)


def _imported_if_there(path: str, change: Change, reach: ScriptReach, known: Known) -> str | None:
    """`try: import settings` in a check or a test that also runs without it."""
    folder, module = module_place(path)
    if not module or path in known.declared or not _runs_python(reach):
        return None
    stem = _joined(folder, module)
    if was_there(f"{stem}.py", change) or was_there(f"{stem}/__init__.py", change):
        return None
    roots = _roots(change, reach, known)
    for user, text in _code_of_checks(folder, change, reach, known):
        if module not in text:
            continue
        places = {*roots, posixpath.dirname(user)}
        if any(
            stem == _joined(root, name.replace(".", "/")) and not _is_product(root, name, user, change)
            for name in known.optional(user, text)
            for root in places
        ):
            return f"the check {user!r} imports it if it exists"
    return None


def _code_of_checks(folder: str, change: Change, reach: ScriptReach, known: Known) -> Iterator[tuple[str, str]]:
    yield from ((user, text) for user, text in reach.texts.items() if user.endswith(".py"))
    layout = known.layout(change)
    tops = {one for one in change.names_before("") if one.lower() in TEST_FOLDERS}
    tops |= {top for top in (folder, *parents_of(folder)) if posixpath.basename(top).lower() in TEST_FOLDERS}
    for top in sorted(tops):
        yield from layout.tests(top)


def _is_product(root: str, name: str, user: str, change: Change) -> bool:
    """A part of an existing package, neither among the tests nor beside the check: it is work to be done."""
    package, _, rest = name.partition(".")
    place = _joined(root, package)
    among_tests = not TEST_FOLDERS.isdisjoint(part.lower() for part in place.split("/"))
    return bool(rest) and bool(change.names_before(place)) and not among_tests and not user.startswith(f"{place}/")


def _over_a_dependency(path: str, change: Change, reach: ScriptReach, known: Known) -> str | None:
    folder, module = module_place(path)
    is_root = folder in {"", "src", *reach.orders.roots} or folder.rpartition("/")[2].lower() in TEST_FOLDERS
    if not module or not is_root or not _runs_python(reach):
        return None
    if module.lower() in known.dependencies(change):
        return f"it would be imported in place of the dependency {module!r}"
    return None


def _dependencies(change: Change) -> Iterator[str]:
    """Modules of the base's dependencies, by naming conventions; a project may depend on itself with extras."""
    own = re.search(r"""^name\s*=\s*["']([^"']+)""", base_text(change, "pyproject.toml"), re.MULTILINE)
    for dist in _required(change):
        name = _plain(dist)
        if own and name == _plain(own[1]):
            continue
        yield _MODULES.get(name, name.replace("-", "_"))
        yield name.removeprefix("python-").removeprefix("py-").removesuffix("-python").replace("-", "_")


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _required(change: Change) -> Iterator[str]:
    try:
        project = tomllib.loads(base_text(change, "pyproject.toml"))
    except (ValueError, RecursionError):
        project = {}
    yield from _names(_at(project, "project", "dependencies"))
    for groups in (_at(project, "project", "optional-dependencies"), _at(project, "dependency-groups")):
        for group in groups.values() if isinstance(groups, dict) else ():
            yield from _names(group)
    for name in ("dependencies", "dev-dependencies"):
        needed = _at(project, "tool", "poetry", name)
        yield from (one for one in needed if one != "python") if isinstance(needed, dict) else ()
    parser = configparser.RawConfigParser()
    try:
        parser.read_string(base_text(change, "setup.cfg"))
        yield from _names(parser.get("options", "install_requires", fallback="").splitlines())
    except configparser.Error:
        pass
    for path in _LISTS:
        yield from _names([line for line in base_text(change, path).splitlines() if line[:1] not in ("-", "#")])


def _names(lines: object) -> Iterator[str]:
    for line in lines if isinstance(lines, list) else ():
        if isinstance(line, str) and (found := _NAME.match(line.strip())):
            yield found[0]


def _at(tree: object, *names: str) -> object:
    for name in names:
        tree = tree.get(name) if isinstance(tree, dict) else None
    return tree


# --- scripts -------------------------------------------------------------------------------------------------------


def _script_over_script(path: str, change: Change) -> str | None:
    """`helper.js` beside `helper.ts` or `helper/index.js` among the tests, where it is a gate file."""
    folder, _, name = path.rpartition("/")
    if TEST_FOLDERS.isdisjoint(part.lower() for part in folder.split("/")):
        return None
    stem, end = posixpath.splitext(name)
    if end not in SCRIPT_ENDS or not stem:
        return None
    later = SCRIPT_ENDS[SCRIPT_ENDS.index(end) + 1 :]
    places = [_joined(folder, stem + other) for other in later]
    places += [_joined(folder, f"{stem}/index{other}") for other in SCRIPT_ENDS[1:]]
    real = next((place for place in places if _stays(place, change)), None)
    return f"it would be loaded in place of {real!r}" if real else None


def _boundary(path: str, change: Change, declared: Collection[str]) -> str | None:
    folder, _, name = path.rpartition("/")
    if name not in BOUNDARIES or not folder or path in declared or not change.names_before(folder):
        return None
    return f"it would make a separate package of {folder!r}, which has files already"


def _automatic_mock(path: str, reach: ScriptReach) -> str | None:
    """jest uses files in `__mocks__` beside node_modules in place of the packages, without any setting."""
    if path.startswith("__mocks__/") and not reach.orders.programs.isdisjoint(("jest", "react-scripts")):
        return "jest would load it in place of the package of its name"
    return None
