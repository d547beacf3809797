"""Which paths the built-in roles may touch, and which of them may change gates; the configuration overrides both."""

from __future__ import annotations

from collections.abc import Mapping

TESTER_PATHS: tuple[str, ...] = (
    *("tests", "test", "__tests__", "spec", "specs", "e2e", "testdata", "test-data", "test_data", "fixtures"),
    *("__snapshots__", "golden", "goldens", "cypress", "playwright"),
    *("test_*", "*_test.*", "*_tests.*", "*.test.*", "*.spec.*", "*_spec.*", "*Test.*", "*Tests.*", "*.snap", "*.bats"),
    *("*.feature", "*.robot"),
    *(
        "conftest.py",
        "pytest.ini",
        ".pytest.ini",
        "pytest.toml",
        ".pytest.toml",
        "tox.ini",
        "noxfile.py",
        ".coveragerc",
    ),
    *("jest.config.*", "jest.setup.*", "vitest.config.*", "vitest.setup.*", "vitest.workspace.*", "karma.conf.*"),
    *("ava.config.*", "playwright.config.*", "cypress.config.*", ".mocharc*", ".nycrc*", ".c8rc*", ".rspec"),
    *("phpunit.xml", "phpunit.xml.dist", "*.runsettings"),
)
DOCSER_PATHS: tuple[str, ...] = (
    *("docs", "doc", "documentation", "*.md", "*.mdx", "*.rst", "*.adoc", "*.asciidoc", "*.txt"),
    *("README*", "CHANGELOG*", "CHANGES*", "HISTORY*", "NEWS*", "CONTRIBUTING*", "AUTHORS*", "CITATION*", "SECURITY*"),
    *("mkdocs.yml", "mkdocs.yaml", ".readthedocs.yaml", ".readthedocs.yml"),
)
# These end in .txt and are read by programs.
DOCSER_NEVER: tuple[str, ...] = ("CMakeLists.txt", "*requirements*.txt", "*constraints*.txt", "robots.txt")

_PATHS: Mapping[str, tuple[str, ...] | None] = {
    "worker": None,
    "tester": TESTER_PATHS,
    "docser": (*DOCSER_PATHS, *(f"!{pattern}" for pattern in DOCSER_NEVER)),
}
_GATES: Mapping[str, bool] = {"tester": True}


def paths_of(role: str, configured: tuple[str, ...] | None) -> tuple[str, ...] | None:
    """The globs a role may touch; None: every path. A pattern after `!` excludes what the others allow."""
    return configured if configured is not None else _PATHS.get(role)


def gates_of(role: str, configured: bool | None) -> bool:
    """Whether a role may change gate files."""
    return configured if configured is not None else _GATES.get(role, False)
