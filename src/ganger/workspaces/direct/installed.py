"""Copies of a project in folders beside it: installed, editable, linked or built. A check that imports one does not see
the change it judges. Only entry names and a few small files are read, never whole packages."""

from __future__ import annotations

import configparser
import json
import os
import re
import tomllib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote, urlsplit

from ganger.workspaces.rules.line_counts import listed

_LARGEST = 256 << 10
_MOST_PACKAGES = 2000
_SITES = ("lib/python3*/site-packages", "lib/pypy3*/site-packages", "lib/python3*/dist-packages", "Lib/site-packages")
# Folders of a project that are not part of what it installs.
_NO_PRODUCT = listed(
    "test tests docs doc examples example scripts tools benchmarks bench build dist setup conftest noxfile tasks venv"
)
_SOURCE_ROOTS = ("", "src", "lib", "python")
_SETUP_NAME = re.compile(r"""\bname\s*=\s*["']([^"']+)["']""")
_DIST = re.compile(r"(.+?)(?:-[^-]*)?(?:-py[\d.]+)?\.(?:dist|egg)-info")


@dataclass(frozen=True, slots=True)
class Copy:
    """`kind`: installed and editable are Python's, and harmless to a check that first imports from the folders
    `instead_of` of its checkout; link and build point or belong to the project's own folder. `remedy` is what to do."""

    place: Path
    kind: str
    what: str
    remedy: str
    instead_of: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Product:
    """The project's names and what it installs. `modules` maps names to folders."""

    root: Path
    names: frozenset[str] = frozenset()
    modules: dict[str, str] = field(default_factory=dict)
    packages: frozenset[str] = frozenset()
    loads_itself: bool = False

    def holds(self, path: str | Path, beside: Path | None = None) -> bool:
        """Whether a path belongs to the project and not to the examined folder `beside`."""
        real = Path(os.path.realpath(path))
        is_beside = beside is not None and real.is_relative_to(os.path.realpath(beside))
        return real.is_relative_to(self.root) and not is_beside


def product_at(root: Path) -> Product:
    root = Path(os.path.realpath(root))
    package = _json(root / "package.json")
    composer = _json(root / "composer.json")
    return Product(
        root,
        frozenset(_python_names(root)),
        _modules(root),
        frozenset(_package_names(root, package)),
        bool(composer.get("autoload") or composer.get("autoload-dev")),
    )


def copies_in(folder: Path, product: Product, *, copied: bool = False) -> list[Copy]:
    """All kinds, in a folder that workspaces get; if `copied`, its relative links point into the workspace."""
    if not folder.is_dir():
        return []
    found = [copy for site in sites_of(folder) for copy in python_copies(site, product, folder)]
    found += _linked_packages(folder, product, copied=copied)
    return [*found, *_built(folder, product, copied=copied)]


# --- Python --------------------------------------------------------------------------------------------------------


def sites_of(prefix: Path) -> list[Path]:
    """An environment's package folders; also those of environments inside it (tox), or a bare target folder."""
    prefixes = [prefix, *(one.parent for one in sorted(prefix.glob("*/pyvenv.cfg")))]
    found = [site for one in prefixes for glob in _SITES for site in sorted(one.glob(glob)) if site.is_dir()]
    found += [site for site in sorted(prefix.glob("3.*/lib")) if prefix.name == "__pypackages__"]
    if any(name.endswith(".dist-info") for name in _names(prefix)):
        found.append(prefix)
    return list({os.path.realpath(site): site for site in found}.values())


def python_copies(site: Path, product: Product, beside: Path) -> list[Copy]:
    """At most one: the first that is found."""
    names = _names(site)
    editable = next(_editable(site, names, product, beside), None)
    if editable is not None:
        return [editable]
    modules = {name.partition(".")[0] for name in names if not name.endswith((".dist-info", ".egg-info", ".pth"))}
    shared = sorted(modules.intersection(product.modules))
    for name in names:
        dist = _DIST.fullmatch(name)
        if dist and (_plain(dist[1]) in product.names or _came_from(site / name, product, beside)):
            return [_installed(site / name, dist[1], shared, product)]
    return [_installed(site / shared[0], shared[0], shared, product)] if shared else []


def _installed(place: Path, name: str, modules: list[str], product: Product) -> Copy:
    remedy = f"remove it (pip uninstall {name}, or uv sync --no-install-project)"
    folders = frozenset(product.modules[module] for module in modules)
    return Copy(place, "installed", f"an installed copy of the project ({name})", remedy, folders)


def _editable(site: Path, names: list[str], product: Product, beside: Path) -> Iterator[Copy]:
    """Entries with a target come first; those that only say "editable" tell less."""
    for name in sorted(names, key=lambda one: one.endswith("-info")):
        for target, folder in _targets(site, name):
            if target and product.holds(target, beside):
                remedy = "remove it (pip uninstall, or uv sync --no-install-project)"
                folders = {os.path.relpath(os.path.realpath(folder), product.root)} if folder else set()
                places = frozenset("" if one == "." else one for one in folders or product.modules.values())
                yield Copy(site / name, "editable", f"an editable install that points to {target}", remedy, places)


def _targets(site: Path, name: str) -> Iterator[tuple[str, str]]:
    """An entry's target, and the folder that is then imported from, where known."""
    if name.endswith((".pth", ".egg-link")):
        yield from ((target, target) for target in _lines_that_lead(site, _text(site / name)))
    elif name.startswith("__editable__") and name.endswith(".py"):
        found = re.findall(r"""["'](/[^"']+)["']""", _text(site / name))
        yield from ((target, str(Path(target).parent)) for target in found)
    elif name.endswith((".dist-info", ".egg-info")):
        url = _json(site / name / "direct_url.json")
        info = url.get("dir_info")
        if isinstance(info, dict) and info.get("editable"):
            yield _file_of(url), ""


def _lines_that_lead(site: Path, text: str) -> list[str]:
    lines = [line.strip() for line in text.splitlines()]
    plain = [str(site / line) for line in lines if line and not line.startswith(("#", "import ", "import\t"))]
    code = [
        found for line in lines if line.startswith("import") for found in re.findall(r"""["'](/[^"']+)["']""", line)
    ]
    return plain + code


def _came_from(info: Path, product: Product, beside: Path) -> bool:
    return bool(target := _file_of(_json(info / "direct_url.json"))) and product.holds(target, beside)


def _file_of(direct_url: dict[str, object]) -> str:
    parts = urlsplit(str(direct_url.get("url", "")))
    return unquote(parts.path) if parts.scheme == "file" else ""


def _python_names(root: Path) -> Iterator[str]:
    with suppress(ValueError, RecursionError):
        project = tomllib.loads(_text(root / "pyproject.toml"))
        tool = project.get("tool")
        poetry = tool.get("poetry") if isinstance(tool, dict) else None
        for table in (project.get("project"), poetry):
            if isinstance(table, dict) and isinstance(table.get("name"), str):
                yield _plain(table["name"])
    with suppress(configparser.Error):
        parser = configparser.RawConfigParser()
        parser.read_string(_text(root / "setup.cfg"))
        if name := parser.get("metadata", "name", fallback=""):
            yield _plain(name)
    if found := _SETUP_NAME.search(_text(root / "setup.py")):
        yield _plain(found[1])


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name.strip()).lower()


def _modules(root: Path) -> dict[str, str]:
    """Packages of the project that can be imported by name, and their folder."""
    found: dict[str, str] = {}
    for folder in _SOURCE_ROOTS:
        for name in _names(root / folder):
            is_package = (root / folder / name / "__init__.py").is_file()
            if is_package and name.isidentifier() and name not in _NO_PRODUCT:
                found.setdefault(name, folder)
    return found


# --- links and builds ----------------------------------------------------------------------------------------------


def _linked_packages(folder: Path, product: Product, *, copied: bool) -> Iterator[Copy]:
    """Packages as npm, pnpm, yarn and composer place them: one level deep, or two with a scope or vendor."""
    for place in _packages_of(folder):
        target = str(place.readlink()) if place.is_symlink() else ""
        name = place.relative_to(folder).as_posix()
        if target and product.holds(place, folder) and (not copied or target.startswith("/")):
            remedy = "name the folder under workspace.copied instead of workspace.linked, or remove the link"
            yield Copy(place, "link", f"a link that points to {os.path.realpath(place)}", remedy)
            return
        if name in product.packages and not (target and product.holds(place, folder)):
            yield Copy(
                place, "link", f"an installed copy of the project's package {name}", f"remove it (npm rm {name})"
            )
            return


def _packages_of(folder: Path) -> Iterator[Path]:
    for name in _names(folder):
        place = folder / name
        if name.startswith("@") or (place.is_dir() and not place.is_symlink() and folder.name == "vendor"):
            yield from (place / inner for inner in _names(place))
        yield place


def _built(folder: Path, product: Product, *, copied: bool) -> Iterator[Copy]:
    """Builds made in the project's own folder, and builds that refer to it by its path."""
    cache = folder / "CMakeCache.txt"
    source = re.search(r"^CMAKE_HOME_DIRECTORY:INTERNAL=(.*)$", _text(cache, 1 << 22), re.MULTILINE)
    if source and product.holds(source[1], folder):
        yield Copy(cache, "build", f"a build of {source[1]}", "let the check configure a build of its own")
    if (folder / ".rustc_info.json").is_file():
        remedy = "leave it out of workspace.linked and workspace.copied; CARGO_TARGET_DIR may name one for all checks"
        yield Copy(folder, "build", "cargo's build of the project", remedy)
    modules = folder / "modules.txt"
    if replaced := re.search(r"^# (\S+).* => (\.\.?/\S*)", _text(modules, 1 << 22), re.MULTILINE):
        yield Copy(modules, "build", f"a copy of {replaced[2]} as {replaced[1]}", "commit vendor, or check without it")
    if not copied and product.loads_itself and (folder / "composer" / "autoload_real.php").is_file():
        remedy = "name the folder under workspace.copied instead of workspace.linked"
        text = f"an autoloader that loads the classes of {product.root}, wherever it is linked"
        yield Copy(folder / "autoload.php", "link", text, remedy)


def _package_names(root: Path, package: dict[str, object]) -> Iterator[str]:
    """The package names of the project and of its workspaces."""
    globs = package.get("workspaces", [])
    if isinstance(globs, dict):
        globs = globs.get("packages", [])
    listed_globs = [str(glob) for glob in globs] if isinstance(globs, list) else []
    pnpm = _text(root / "pnpm-workspace.yaml")
    listed_globs += re.findall(r"""^\s*-\s*["']?([^"'\s!]+)["']?\s*$""", pnpm, re.MULTILINE)
    folders = [root]
    for glob in listed_globs:
        with suppress(ValueError, NotImplementedError, OSError):
            folders += list(root.glob(glob.rstrip("/")))[:_MOST_PACKAGES]
    for folder in folders:
        name = _json(folder / "package.json").get("name")
        if isinstance(name, str):
            yield name


# --- small files ---------------------------------------------------------------------------------------------------


def _names(folder: Path) -> list[str]:
    try:
        return sorted(one.name for one in folder.iterdir())
    except OSError:
        return []


def _text(path: Path, largest: int = _LARGEST) -> str:
    try:
        with path.open("rb") as file:
            return file.read(largest).decode("utf-8", "replace")
    except (OSError, ValueError):
        return ""


def _json(path: Path) -> dict[str, object]:
    try:
        found = json.loads(_text(path) or "{}")
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
