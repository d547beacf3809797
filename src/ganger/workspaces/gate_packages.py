"""Whether a package list puts something else in the place of a test program."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ganger.workspaces.lines import listed

NODE_RUNNERS = listed(
    "jest vitest mocha ava tap karma cypress playwright @playwright/test eslint typescript ts-jest babel-jest ts-node"
    " jasmine qunit nyc c8 chai expect sinon assert @jest/core @jest/globals @babel/core prettier uvu tape"
)
_LISTS = ("dependencies", "devDependencies", "optionalDependencies", "overrides", "resolutions")
# A range or a tag comes from the registry; these come from a place the change can choose.
_CHOSEN = ("file:", "link:", "portal:", "npm:", "git", "http:", "https:", "./", "../", "/", "~")


def replaced_package(old: Mapping[str, object], new: Mapping[str, object]) -> str | None:
    """`"jest": "file:./mine"` is no dependency, it is another test runner."""
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
