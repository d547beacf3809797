"""Which parts of a package file belong to the gate: the test programs it depends on, and the scripts a check runs."""

from __future__ import annotations

import fnmatch
import json
from collections.abc import Collection, Iterator, Mapping

from ganger.workspaces.gates.commands import read_orders
from ganger.workspaces.rules.line_counts import listed

NODE_RUNNERS = listed(
    "jest vitest mocha ava tap karma cypress playwright @playwright/test eslint typescript ts-jest babel-jest ts-node"
    " jasmine qunit nyc c8 chai expect sinon assert @jest/core @jest/globals @babel/core prettier uvu tape"
)
# Installing runs these.
INSTALL_SCRIPTS = listed("preinstall install postinstall prepublish preprepare prepare postprepare dependencies")
_INSTALLS = listed("install i ci add install-test it clean-install")
_LISTS = ("dependencies", "devDependencies", "optionalDependencies", "overrides", "resolutions")
# A version range or a tag comes from the registry; these come from a place that the change chooses.
_CHOSEN = ("file:", "link:", "portal:", "npm:", "git", "http:", "https:", "./", "../", "/", "~")


def replaced_package(old: Mapping[str, object], new: Mapping[str, object]) -> str | None:
    """Whether a test program comes from elsewhere: `"jest": "file:./mine"` is another test runner."""
    known = set(_sources(old))
    for name, source in _sources(new):
        if (name, source) not in known and source.startswith(_CHOSEN) and not _is_range(source):
            return f"replaces the test program {name}"
    return None


def _is_range(source: str) -> bool:
    return source[:1] == "~" and source[1:2].isdigit()


def _sources(package: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    for section in _LISTS:
        packages = package.get(section)
        if isinstance(packages, dict):
            yield from (
                (name, source) for name, source in packages.items() if name in NODE_RUNNERS and _is_text(source)
            )


def _is_text(source: object) -> bool:
    return isinstance(source, str)


def changed_script(before: bytes, after: bytes, called: Collection[str]) -> str | None:
    """Which changed script a check reaches: `test`, the scripts a command calls, and those they call in turn."""
    try:
        old, new = (_scripts(content) for content in (before, after))
    except (ValueError, RecursionError):
        return "cannot be read before or after the change"
    reached = sorted({*reached_scripts(old, called), *reached_scripts(new, called)})
    return next((f"changes the script {name!r}" for name in reached if old.get(name) != new.get(name)), None)


def reached_scripts(scripts: Mapping[str, str], called: Collection[str]) -> set[str]:
    """The scripts these names stand for, known or not; npm also runs the `pre` and `post` script of each."""
    waiting = ["test", *(word.removeprefix("npm:") for word in called)]
    reached: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name in reached:
            continue
        if "*" in name:
            waiting += fnmatch.filter(scripts, name)
            continue
        reached |= {name, f"pre{name}", f"post{name}"}
        texts = [scripts[one] for one in (f"pre{name}", name, f"post{name}") if one in scripts]
        waiting += [word.removeprefix("npm:") for word in read_orders(texts).scripts]
    return reached | INSTALL_SCRIPTS if not reached.isdisjoint(_INSTALLS) else reached


def package_scripts(text: str) -> dict[str, str]:
    """None where the text is not a package file."""
    try:
        return _scripts(text.encode())
    except (ValueError, RecursionError):
        return {}


def _scripts(content: bytes) -> dict[str, str]:
    package = json.loads(content.decode("utf-8-sig") or "{}")
    scripts = package.get("scripts") if isinstance(package, dict) else None
    pairs = scripts.items() if isinstance(scripts, dict) else ()
    return {name: line if isinstance(line, str) else repr(line) for name, line in pairs}
