"""Protected paths: every default, in every disguise, whether it exists or not; and the matcher behind them."""

from __future__ import annotations

import time
from fnmatch import fnmatchcase
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from ganger.core.path_patterns import glob_match, path_match
from ganger.errors import InputError
from ganger.workspaces.rules.protected import DEFAULT_PROTECTED, Protection
from ganger.workspaces.rules.writes import WriteRequest, WriteRules
from tests.workspaces.write_harness import Place, code_of, create, make_place


def specimen(pattern: str) -> str:
    """One path the pattern must match."""
    return pattern.removeprefix("**/").rstrip("/").replace("*", "x").replace("?", "1")


def arrange(place: Place, path: str, state: str) -> str:
    """Bring the workspace into a state and say what the agent writes."""
    target = place.root / path
    target.parent.mkdir(parents=True, exist_ok=True)
    if state == "present":
        target.write_text("old\n")
    elif state == "symlink":
        target.symlink_to(place.outside / "secret.txt")
    elif state == "directory":
        target.mkdir()
        return f"{path}/inner.txt"
    return {"nested": f"deep/er/{path}", "other-case": path.swapcase(), "below": f"{path}/x"}.get(state, path)


@pytest.mark.parametrize("state", ["present", "absent", "symlink", "directory", "other-case", "nested", "below"])
@pytest.mark.parametrize("pattern", DEFAULT_PROTECTED)
def test_every_default_is_protected_in_every_state(tmp_path: Path, pattern: str, state: str) -> None:
    """T18 T28 protected-file: a path that does not exist yet is protected like one that does."""
    place = make_place(tmp_path)
    path = arrange(place, specimen(pattern), state)
    before = place.snapshot()
    for op in ("create", "replace", "append"):
        assert code_of(place, WriteRequest(path, op, "evil")) == "PATH_PROTECTED"
    assert place.snapshot() == before


DISGUISES = [
    ".git/config",
    ".GIT/config",
    ".Git/Config",
    ".git./config",
    ".git /config",
    ".git. . /config",
    "git~1/config",
    "GIT~1/hooks/pre-commit",
    ".git::$INDEX_ALLOCATION/config",
    "sub/module/.git/hooks/pre-commit",
    "sub/.git",
    ".g\u200cit/config",
    "\u202e.git/config",
    ".gi\u2060t/config",
    "\uff0egit/config",
    ".\uff47\uff49\uff54/config",
    "sub\uff0f.git\uff0fconfig",
    ".GITMODULES",
    "a/.Env.Local",
    "certs/Server.PEM",
    "x/SECRETS/y",
    ".github/WORKFLOWS/ci.yml",
    "agents.MD",
    ".vscode/tasks.json",
]


@pytest.mark.parametrize("path", DISGUISES, ids=ascii)
def test_a_disguised_name_is_still_protected(path: str) -> None:
    """T18 T28 protected-file: case, trailing signs, invisible signs, short names, streams and look-alike forms."""
    assert Protection().protected_by(path) is not None


@pytest.mark.parametrize(
    "path",
    ["src/git.py", ".gitignore", "env.py", "keys.md", "secret.txt", "a.key.md", "github/workflows/x", "agents/x.md"],
)
def test_ordinary_names_are_not_protected(path: str) -> None:
    """T18: the defaults leave ordinary work alone."""
    assert Protection().protected_by(path) is None


PATTERNS = [
    ("*.lock", "a/b.lock", True),
    ("*.lock", "b.lock/c", True),
    ("docs", "docs/x/y", True),
    ("docs", "a/docs/x", True),
    ("/docs", "docs/x", True),
    ("/docs", "a/docs/x", False),
    ("a/b", "a/b", True),
    ("a/b", "a/b/c/d", True),
    ("a/b", "x/a/b", False),
    ("a/*/c", "a/x/c", True),
    ("a/*/c", "a/x/y/c", False),
    ("a/**/c", "a/c", True),
    ("a/**/c", "a/x/y/c/z", True),
    ("**/c", "c", True),
    ("**/b/c", "x/b/c", True),
    ("extra/glob/**", "extra/glob/x", True),
    ("extra/glob/**", "extra/glob", False),
    ("extra/glob/**", "extra/globs/x", False),
    ("Straße", "STRASSE/x", True),
    ("?.c", "a.c", True),
    ("?.c", "ab.c", False),
]


@pytest.mark.parametrize(("pattern", "path", "protected"), PATTERNS)
def test_patterns_mean_what_they_say(pattern: str, path: str, protected: bool) -> None:
    """T18: without a slash any component, with a slash from the root, and always everything below."""
    assert Protection((pattern,)).protected_by(path) == (pattern if protected else None)


def test_an_exception_opens_exactly_what_it_spells() -> None:
    """T18: the operator opens single paths; nothing else comes with them."""
    opened = Protection(exceptions=(".env.local", ".github/workflows/docs.yml", "vendor/secrets/**"))
    assert opened.protected_by(".env.local") is None
    assert opened.protected_by(".github/workflows/docs.yml") is None
    assert opened.protected_by("vendor/secrets/a/b.txt") is None
    shut = (".ENV.local", "sub/.env.local", ".env.local/x", ".git/.env.local", ".github/workflows/ci.yml")
    assert all(opened.protected_by(path) for path in (*shut, "vendor/secrets", "secrets/a"))


def test_the_operators_patterns_come_on_top_of_the_defaults(tmp_path: Path) -> None:
    """T18 T28 protected-file: state, manifest, profiles and configured globs are added by the caller."""
    rules = WriteRules(protection=Protection((*DEFAULT_PROTECTED, "verify.json", "state/**")))
    place = make_place(tmp_path)
    assert code_of(place, create("VERIFY.json"), rules) == "PATH_PROTECTED"
    assert code_of(place, create("state/run/events.db"), rules) == "PATH_PROTECTED"
    assert code_of(place, create(".git/config"), rules) == "PATH_PROTECTED"


@pytest.mark.parametrize("pattern", ["", "/", "../x", "a//b", "!keep", "[ab].txt", "a\\b", "a**b", "x/**y/z", "./a"])
def test_a_pattern_that_cannot_be_read_is_refused(pattern: str) -> None:
    """T18: an unread sign would silently protect nothing."""
    with pytest.raises(InputError, match="protected paths"):
        Protection((pattern,))


@given(st.text("ab*?", max_size=12), st.text("ab", max_size=12))
def test_the_matcher_agrees_with_a_reference_on_one_name(pattern: str, name: str) -> None:
    """T18: `*` and `?` mean what they mean everywhere."""
    assert glob_match(pattern, name) == fnmatchcase(name, pattern)


def reference(segments: tuple[str, ...], parts: tuple[str, ...]) -> bool:
    if not segments:
        return not parts
    if segments[0] == "**":
        return any(reference(segments[1:], parts[skip:]) for skip in range(len(parts) + 1))
    return bool(parts) and segments[0] == parts[0] and reference(segments[1:], parts[1:])


@given(
    st.lists(st.sampled_from(["a", "b", "**"]), min_size=1, max_size=5),
    st.lists(st.sampled_from(["a", "b"]), min_size=1, max_size=6),
)
def test_the_matcher_agrees_with_a_reference_on_paths(segments: list[str], parts: list[str]) -> None:
    """T18: `**` is any number of components; at the end it means what lies below."""
    closing = [*segments, "b"]
    assert path_match(tuple(closing), tuple(parts), below=False) == reference(tuple(closing), tuple(parts))


def test_hostile_names_and_patterns_take_no_time() -> None:
    """T18: no blow-up on many stars, many parts or long names."""
    rules = Protection(("*a" * 100 + "b", "/".join(["**", "a"] * 50) + "/b"))
    started = time.process_time()
    assert rules.protected_by("a" * 255) is None
    assert rules.protected_by("/".join(["a"] * 500)) is None
    assert time.process_time() - started < 2
