"""One set of rules for every change: roles, declared files, shrinkage, sizes, links, modes, submodules, names."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from ganger.errors import WriteRefused
from ganger.ports.changes import Rules
from ganger.workspaces.rules.protected import DEFAULT_PROTECTED, Protection
from ganger.workspaces.safeguards import GRAVEST_FIRST, ChangeLimits, covers, judge, require
from tests.workspaces.judged_change import SUBMODULE, Entry, MadeChange, codes, link

OPEN = ChangeLimits(Protection(DEFAULT_PROTECTED, ("deps/lib", ".gitmodules")))
LONG = "x = 1\n" * 100


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({}, {".github/workflows/ci.yml": "on: push"}),
        ({".github/workflows/ci.yml": "a"}, {".github/workflows/ci.yml": "b"}),
        ({".github/workflows/ci.yml": "a"}, {}),
        ({".github/workflows/ci.yml": "a"}, {".github/workflows/ci.yml": link("x")}),
        ({".github/workflows/ci.sh": "a"}, {".github/workflows/ci.sh": Entry(b"a", 0o100755)}),
        ({".Github/Workflows/ci.yml": "a"}, {}),
    ],
    ids=["added", "modified", "deleted", "retyped", "mode", "other-case"],
)
def test_a_protected_path_is_refused_whatever_happens_to_it(before: dict[str, Entry], after: dict[str, Entry]) -> None:
    """T18 G09: adding, changing, deleting, retyping and chmod are one offence."""
    assert codes(MadeChange(before, after))[0][1] == "PATH_PROTECTED"


def test_both_ends_of_a_rename_are_judged() -> None:
    """T18: moving a protected file away, or something into its place, is refused even if only one end is shown."""
    change = MadeChange({}, {"notes.txt": "x"}, {"notes.txt": ".github/workflows/ci.yml"})
    assert codes(change) == [(".github/workflows/ci.yml", "PATH_PROTECTED")]
    assert ("a.py", "OUTSIDE_ROLE") in codes(MadeChange({"a.py": "x"}, {"docs/a.md": "x"}), Rules(paths=("docs",)))


@pytest.mark.parametrize(
    ("path", "allowed"),
    [
        ("docs/a.md", True),
        ("src/docs/x.txt", True),
        ("README.md", True),
        ("src/a.py", False),
        ("CMakeLists.txt", False),
    ],
)
def test_a_role_touches_its_own_paths_only(path: str, allowed: bool) -> None:
    """W01: patterns without a slash match any part, `!` takes back."""
    rules = Rules(paths=("docs", "*.md", "*.txt", "!CMakeLists.txt"))
    for before, after in (({}, {path: "x"}), ({path: "x"}, {path: "y"}), ({path: "x"}, {})):
        assert codes(MadeChange(before, after), rules) == ([] if allowed else [(path, "OUTSIDE_ROLE")])


def test_a_rooted_role_pattern_does_not_reach_elsewhere() -> None:
    """W01."""
    rules = Rules(paths=("web/src/**", "api/*.py"))
    allowed = {"web/src/a/b.ts": "x", "api/a.py": "x"}
    assert codes(MadeChange({}, allowed), rules) == []
    refused = {"src/web/src/a.ts": "x", "web/other.ts": "x", "lib/api/a.py": "x"}
    assert {code for _, code in codes(MadeChange({}, refused), rules)} == {"OUTSIDE_ROLE"}
    assert len(codes(MadeChange({}, refused), rules)) == 3


def test_only_declared_files_may_be_touched() -> None:
    """Z08: a new file must be declared for creation, any other for modification or creation."""
    rules = Rules(create=("new.py", "gen/"), modify=("old.py", "web/*.ts"))
    good = MadeChange({"old.py": "a", "web/x.ts": "a", "gen/y": "a"}, {"old.py": "b", "new.py": "n", "gen/z/y": "n"})
    assert codes(good, rules) == []
    bad = MadeChange({"other.py": "a", "old.py": "a"}, {"other.py": "b", "extra.py": "n", "web/new.ts": "n"})
    assert {path for path, code in codes(bad, rules) if code == "NOT_DECLARED"} == {
        "other.py",
        "extra.py",
        "web/new.ts",
    }


def test_a_task_that_declares_no_files_may_change_none() -> None:
    """Z08: an empty list is a declaration, a missing one is not."""
    change = MadeChange({"a.py": "1"}, {"a.py": "2"})
    assert codes(change, Rules(create=(), modify=None)) == [("a.py", "NOT_DECLARED")]
    assert codes(change, Rules()) == []


@pytest.mark.parametrize(
    ("declared", "path", "meant"),
    [
        ("a.py", "a.py", True),
        ("./a.py", "a.py", True),
        ("a.py", "sub/a.py", False),
        ("src", "src/a.py", False),
        ("src/", "src/deep/a.py", True),
        ("src/**", "src/deep/a.py", True),
        ("src/*.py", "src/a.py", True),
        ("app/[id]/page.tsx", "app/[id]/page.tsx", True),
        ("app/[id]/page.tsx", "app/i/page.tsx", False),
        ("", "a.py", False),
        ("/", "a.py", False),
    ],
)
def test_a_declared_path_means_itself_or_what_is_below(declared: str, path: str, meant: bool) -> None:
    """Z08: brackets are plain signs."""
    assert covers(declared, path) is meant


@pytest.mark.parametrize(
    ("before", "after", "shrinks"),
    [(600, 299, True), (600, 300, False), (101, 0, True), (100, 0, False), (101, 50, True), (101, 51, False)],
)
def test_a_file_that_loses_more_than_half_is_refused(before: int, after: int, shrinks: bool) -> None:
    """T18: over 100 bytes and under 50 %, unless the task may."""
    change = MadeChange({"a.py": "x" * before}, {"a.py": "y" * after})
    assert codes(change) == ([("a.py", "SHRINKAGE")] if shrinks else [])
    assert codes(change, Rules(allow_shrinkage=True)) == []


def test_a_renamed_file_is_held_against_what_it_was_and_a_deleted_one_is_not_shrunken() -> None:
    """T18: the whole file gone is a decision, half of it gone is an accident."""
    renamed = MadeChange({"a.py": LONG}, {"b.py": "x = 1\n"}, {"b.py": "a.py"})
    assert codes(renamed) == [("b.py", "SHRINKAGE")]
    assert codes(MadeChange({"a.py": LONG}, {})) == []


def test_sizes_and_numbers_are_bounded() -> None:
    """T18: one file, all files, and how many."""
    limits = ChangeLimits(max_file_bytes=100, max_total_bytes=150, max_files=3)
    assert codes(MadeChange({}, {"a": "x" * 101}), limits=limits) == [("a", "TOO_LARGE")]
    assert codes(MadeChange({}, {"a": "x" * 90, "b": "x" * 90}), limits=limits) == [("b", "TOO_LARGE")]
    assert codes(MadeChange({}, dict.fromkeys("abcd", "x")), limits=limits) == [("d", "TOO_LARGE")]
    assert codes(MadeChange(dict.fromkeys("ab", "x" * 90), {}), limits=limits) == []


@pytest.mark.parametrize(
    "target",
    ["/etc/passwd", "../up", "sub/../../../up", "..", ".", "sub/..", "a\\b", "", ".git/config", "../.git", "a\u202eb"],
    ids=ascii,
)
@pytest.mark.parametrize("before", [{}, {"sub/l": "text"}], ids=["new", "file-becomes-link"])
def test_a_link_may_not_lead_out_or_into_what_is_protected(target: str, before: dict[str, Entry]) -> None:
    """T18 R12: absolute, climbing, to a folder above, disguised, or into git's own."""
    place = "sub/l" if target != "../up" else "l"
    assert codes(MadeChange(before, {place: link(target)}))[0][1] == "LINK_OUTSIDE"


def test_a_climb_behind_a_name_is_refused_because_that_name_may_be_a_link() -> None:
    """T18 R12: each link stays inside by its text, both together would leave."""
    change = MadeChange({}, {"deep/x/s": link("../../top"), "deep/x/t": link("s/../..")})
    assert codes(change) == [("deep/x/t", "LINK_OUTSIDE")]


@pytest.mark.parametrize("target", ["b.py", "../lib/c.py", "deep/er", "./b.py"])
def test_a_plain_relative_link_is_fine(target: str) -> None:
    """T18."""
    assert codes(MadeChange({}, {"src/l": link(target)})) == []


@pytest.mark.parametrize("mode", [0o104755, 0o102755, 0o101644])
def test_special_bits_are_refused(mode: int) -> None:
    """T18 R12: setuid, setgid, sticky; an ordinary program is fine."""
    assert codes(MadeChange({"a": "x"}, {"a": Entry(b"x", mode)})) == [("a", "BAD_MODE")]
    assert codes(MadeChange({"a": "x"}, {"a": Entry(b"x", 0o100755)})) == []


@pytest.mark.parametrize("mode", [0o010644, 0o020644, 0o060644, 0o140755, 0o040755, 0])
def test_only_files_links_and_submodules_are_known(mode: int) -> None:
    """T18 R12: pipes, devices, sockets, directories."""
    assert codes(MadeChange({}, {"a": Entry(b"", mode)})) == [("a", "PATH_NOT_REGULAR")]


@pytest.mark.parametrize(
    ("before", "after"),
    [({}, {"deps/lib": SUBMODULE}), ({"deps/lib": SUBMODULE}, {}), ({"deps/lib": "text"}, {"deps/lib": SUBMODULE})],
    ids=["added", "removed", "retyped"],
)
def test_a_submodule_needs_the_operator(before: dict[str, Entry], after: dict[str, Entry]) -> None:
    """T18 G09: it brings content that nobody judged."""
    assert codes(MadeChange(before, after)) == [("deps/lib", "SUBMODULE_CHANGE")]
    assert codes(MadeChange(before, after), limits=OPEN) == []


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("/etc/x", "PATH_ABSOLUTE"),
        ("../x", "PATH_ESCAPES"),
        ("a/../b", "PATH_NOT_NORMAL"),
        ("a//b", "PATH_NOT_NORMAL"),
        ("a\0b", "PATH_BAD_CHARACTER"),
        ("a\nb", "PATH_BAD_CHARACTER"),
        ("a\udcffb", "PATH_BAD_CHARACTER"),
        ("a\\b", "PATH_NOT_NORMAL"),
        ("n" * 300, "PATH_TOO_LONG"),
        ("a/.GIT/config", "PATH_PROTECTED"),
        ("a/.g\u200cit/config", "PATH_PROTECTED"),
    ],
    ids=ascii,
)
def test_a_path_must_be_plain(path: str, code: str) -> None:
    """T18: whoever made the change."""
    assert code in {found for _, found in codes(MadeChange({}, {path: "x"}))}


def test_a_strange_name_the_owner_chose_may_be_worked_on_but_must_stay_inside() -> None:
    """T18: the base is trusted for its names, not for where they lead."""
    strange = "caf\u200de.txt"
    assert codes(MadeChange({strange: "a"}, {strange: "b"})) == []
    assert codes(MadeChange({"\u200d../x": "a"}, {"\u200d../x": "b"}))[0][1] == "PATH_ESCAPES"


def test_two_names_that_are_one_elsewhere_are_refused() -> None:
    """T18: files and folders; renaming one into the other is fine."""
    assert codes(MadeChange({}, {"Read.md": "a", "read.md": "b"})) == [("read.md", "CASE_TWIN")]
    assert codes(MadeChange({}, {"Src/a.py": "a", "src/b.py": "b"})) == [("src/b.py", "CASE_TWIN")]
    assert codes(MadeChange({"readme.md": "a"}, {"README.md": "a"}, {"README.md": "readme.md"})) == []


def test_the_gravest_refusal_is_raised_first() -> None:
    """T18 D12: a secret outweighs everything, then what is protected, then gates."""
    secret = "gh" + "p_" + "aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bC1dE3fG5"
    change = MadeChange({"tests/test_a.py": "a"}, {"tests/test_a.py": "b", ".env": "x", "s.py": f"t = '{secret}'"})
    assert [code for _, code in codes(change)] == ["SECRET_FOUND", "PATH_PROTECTED", "GATE_CHANGED"]
    with pytest.raises(WriteRefused) as caught:
        require(change, Rules(), ChangeLimits())
    assert caught.value.code == "SECRET_FOUND"


def test_an_ordinary_change_passes() -> None:
    """T18: source, document, new test, picture, program."""
    files = {"src/a.py": "x = 1\n", "README.md": "# a\n", "tests/test_new.py": "def test(): ...\n"}
    others = {"run.sh": Entry(b"#!/bin/sh\n", 0o100755), "logo.png": Entry(b"\x89PNG\0")}
    change = MadeChange({"src/a.py": "x = 0\n"}, {**files, **others})
    require(change, Rules(verify=("python3 -m pytest tests",)), ChangeLimits())


NAMES = st.text(st.characters(codec=None), min_size=1, max_size=12)
ENTRIES = st.builds(Entry, st.binary(max_size=40), st.sampled_from([0o100644, 0o100755, 0o120000, 0o160000, 0o104755]))
FILES = st.dictionaries(NAMES, ENTRIES, max_size=5)


@given(FILES, FILES, st.booleans())
def test_no_change_breaks_the_judge_and_every_code_has_its_rank(
    before: dict[str, Entry], after: dict[str, Entry], may: bool
) -> None:
    """T18: any names, contents, modes: the answer is refusals in order, never an error."""
    found = judge(MadeChange(before, after), Rules(may_change_gates=may, verify=("make test",)), ChangeLimits())
    ranks = [GRAVEST_FIRST.index(refusal.code) for refusal in found]
    assert ranks == sorted(ranks)
