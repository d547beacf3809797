"""New files that make a check read something else than before: finished targets, settings, modules over modules.

Nothing that exists is touched by them, so that only the place and the name of a file tell what it does.
"""

from __future__ import annotations

import configparser
import posixpath
import re
import stat
import tomllib
from collections.abc import Collection, Iterator

from ganger.ports import Change, Touched
from ganger.workspaces.gate_files import MODULE_ENDS, TEST_FOLDERS
from ganger.workspaces.gate_scripts import Reach
from ganger.workspaces.lines import listed
from ganger.workspaces.tree import parents_of

# The order in which a script's import without an ending is looked for; folders come last.
SCRIPT_ENDS = ("", ".mjs", ".js", ".mts", ".ts", ".jsx", ".tsx", ".cjs", ".cts", ".json", ".node")
# A file of this name makes its folder a package of its own, and takes its files out of the one around it.
BOUNDARIES = listed("package.json go.mod deno.json deno.jsonc")
SOURCE_ROOTS = ("", "src", "lib", "python")
_NOT_IMPORTED = listed("__init__ __main__ conftest setup test tests")
_PYTHON_RUNS = re.compile(r"(?:python|pypy)[\d.]*w?|pytest|py\.test|unittest|nose2?|coverage|tox|nox|hatch|poe")
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
    """What holds for all files of one change: paths the task declared, and modules that come from elsewhere."""

    def __init__(self, declared: Collection[str]) -> None:
        self.declared = declared
        self._dependencies: frozenset[str] | None = None

    def dependencies(self, change: Change) -> frozenset[str]:
        if self._dependencies is None:
            self._dependencies = frozenset(_dependencies(change))
        return self._dependencies


def shadow_of(touched: Touched, change: Change, reach: Reach, known: Known) -> str | None:
    """Why this new path would change what a check reads, as the part of a sentence."""
    declared = known.declared
    return (
        _finished(touched.path, change, reach)
        or _read_if_there(touched.path, reach, declared)
        or _package_over_module(touched, change)
        or _new_root(touched.path, change, reach)
        or _over_the_product(touched.path, change, reach)
        or _over_a_dependency(touched.path, change, reach, known)
        or _script_over_script(touched.path, change)
        or _boundary(touched.path, change, declared)
        or _automatic_mock(touched.path, reach)
    )


def was_there(path: str, change: Change) -> bool:
    folder, _, name = path.rpartition("/")
    return name in change.names_before(folder)


def _stays(path: str, change: Change) -> bool:
    """A file of the base that the change does not take away."""
    return was_there(path, change) and not any(one.path == path and one.after is None for one in change.touched)


# --- what is built, what is sourced --------------------------------------------------------------------------------


def _finished(path: str, change: Change, reach: Reach) -> str | None:
    for folder, made in reach.made.items():
        prefix = f"{folder}/" if folder else ""
        if not path.startswith(prefix):
            continue
        inside = path[len(prefix) :]
        for one in (*parents_of(inside), inside):
            if was_there(prefix + one, change):
                continue
            if made.is_made(one, lambda need, prefix=prefix: was_there(prefix + need, change)):  # type: ignore[misc]
                return f"make would take it for the finished target {one!r} (name that under .PHONY if it is no file)"
    return None


def _read_if_there(path: str, reach: Reach, declared: Collection[str]) -> str | None:
    user = None if path in declared else reach.reader_of(path)
    return f"the check {user!r} reads it if it is there" if user else None


# --- Python --------------------------------------------------------------------------------------------------------


def _runs_python(reach: Reach) -> bool:
    return any(_PYTHON_RUNS.fullmatch(program) for program in reach.orders.programs)


def _module_of(path: str) -> tuple[str, str]:
    """Where a path is imported from and as what; "" where it is no module."""
    folder, _, name = path.rpartition("/")
    if name.startswith("__init__."):
        folder, _, name = folder.rpartition("/")
        return (folder, name) if path.endswith(MODULE_ENDS) else ("", "")
    return (folder, name.split(".")[0]) if name.endswith(MODULE_ENDS) else ("", "")


def _joined(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name


def _package_over_module(touched: Touched, change: Change) -> str | None:
    """Python takes a package before a module, and a compiled module before a source."""
    path = touched.path
    folder, module = _module_of(path)
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


def _new_root(path: str, change: Change, reach: Reach) -> str | None:
    """pytest takes the nearest such file above the tests for the top of the project, and looks no higher."""
    folder, _, name = path.rpartition("/")
    is_top = folder.rpartition("/")[2].lower() in TEST_FOLDERS or folder in reach.orders.folders
    if name in _ROOT_MARKS and folder and is_top and change.names_before(folder) and _runs_python(reach):
        return "it would make a folder of tests the top of the project for the test runner"
    return None


def _over_the_product(path: str, change: Change, reach: Reach) -> str | None:
    """The folder a check runs in comes before the one the product lies in."""
    folder, module = _module_of(path)
    roots = {"", *reach.orders.roots}
    if not module or folder not in roots or module in _NOT_IMPORTED or not _runs_python(reach):
        return None
    for root in SOURCE_ROOTS:
        for real in (f"{_joined(root, module)}.py", f"{_joined(root, module)}/__init__.py"):
            if (
                root != folder
                and real != path
                and _stays(real, change)
                and not was_there(_joined(folder, module), change)
            ):
                return f"it would be imported in place of {real!r}"
    return None


def _over_a_dependency(path: str, change: Change, reach: Reach, known: Known) -> str | None:
    folder, module = _module_of(path)
    is_root = folder in {"", "src", *reach.orders.roots} or folder.rpartition("/")[2].lower() in TEST_FOLDERS
    if not module or not is_root or not _runs_python(reach):
        return None
    if module.lower() in known.dependencies(change):
        return f"it would be imported in place of the dependency {module!r}"
    return None


def _dependencies(change: Change) -> Iterator[str]:
    """Modules of what the base says it needs, by the customs of their names; a project may name itself with extras."""
    own = re.search(r"""^name\s*=\s*["']([^"']+)""", _before(change, "pyproject.toml"), re.MULTILINE)
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
        project = tomllib.loads(_before(change, "pyproject.toml"))
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
        parser.read_string(_before(change, "setup.cfg"))
        yield from _names(parser.get("options", "install_requires", fallback="").splitlines())
    except configparser.Error:
        pass
    for path in _LISTS:
        yield from _names([line for line in _before(change, path).splitlines() if line[:1] not in ("-", "#")])


def _names(lines: object) -> Iterator[str]:
    for line in lines if isinstance(lines, list) else ():
        if isinstance(line, str) and (found := _NAME.match(line.strip())):
            yield found[0]


def _at(tree: object, *names: str) -> object:
    for name in names:
        tree = tree.get(name) if isinstance(tree, dict) else None
    return tree


def _before(change: Change, path: str) -> str:
    try:
        return change.before(path).decode("utf-8-sig", "replace")
    except LookupError:
        return ""


# --- scripts -------------------------------------------------------------------------------------------------------


def _script_over_script(path: str, change: Change) -> str | None:
    """`helper.js` beside `helper.ts` or `helper/index.js`: among the tests, where it belongs to the gate."""
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
    return f"it would make a package of its own of {folder!r}, which has files already"


def _automatic_mock(path: str, reach: Reach) -> str | None:
    """jest takes what lies in the mocks beside node_modules for the packages themselves, without being told."""
    if path.startswith("__mocks__/") and not reach.orders.programs.isdisjoint(("jest", "react-scripts")):
        return "jest would load it in place of the package of its name"
    return None
