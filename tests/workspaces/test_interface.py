"""Files that other repositories build on: they may grow, and nothing may be taken away from them."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from ganger.ports.changes import Rules
from ganger.workspaces.safeguards import ChangeLimits
from tests.workspaces.judged_change import Entry, MadeChange, codes, link

RULES = Rules(interface=("include/**/*.h", "*.proto", "api/public"))
TEXT = "one()\ntwo()\nthree()\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"a.proto": TEXT}, {"a.proto": "one()\nthree()\n"}),
        ({"a.proto": TEXT}, {"a.proto": TEXT.replace("two()", "two(int)")}),
        ({"a.proto": TEXT}, {}),
        ({"a.proto": TEXT}, {"a.proto": link("b.proto")}),
        ({"a.proto": TEXT}, {"a.proto": ""}),
        ({"a.proto": b"\0\1"}, {"a.proto": b"\0\2"}),
        ({"deep/in/A.Proto": TEXT}, {"deep/in/A.Proto": "one()\n"}),
        ({"include/x/y.h": TEXT}, {"include/x/y.h": "one()\n"}),
        ({"api/public/v1/all.py": TEXT}, {"api/public/v1/all.py": "one()\n"}),
    ],
    ids=["removed", "changed", "deleted", "retyped", "emptied", "binary", "other-case", "glob", "folder"],
)
def test_what_others_build_on_may_not_be_taken_away(before: dict[str, Entry], after: dict[str, Entry]) -> None:
    """D12: a breaking change by rule halts the chain, whatever else is wrong with it."""
    assert "INTERFACE_BROKEN" in [code for _, code in codes(MadeChange(before, after), RULES)]
    assert "INTERFACE_BROKEN" not in [code for _, code in codes(MadeChange(before, after), Rules())]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"a.proto": TEXT}, {"a.proto": TEXT + "four()\n"}),
        ({"a.proto": TEXT}, {"a.proto": "three()\none()\nnew()\ntwo()\n"}),
        ({"a.proto": TEXT}, {"a.proto": TEXT.replace("\n", "\r\n")}),
        ({"a.proto": "one()\n\n\n"}, {"a.proto": "one()\n"}),
        ({}, {"a.proto": TEXT}),
        ({"a.proto": TEXT}, {"a.proto": Entry(TEXT.encode(), 0o100755)}),
        ({"a.py": TEXT}, {"a.py": "one()\n"}),
        ({"elsewhere/include/y.h": TEXT}, {"elsewhere/include/y.h": "one()\n"}),
    ],
    ids=["grown", "moved-lines", "line-ends", "empty-lines", "new", "mode", "no-interface", "rooted"],
)
def test_what_only_grows_is_no_break(before: dict[str, Entry], after: dict[str, Entry]) -> None:
    """D12: additions, moves and blank lines pass, and so do files nobody builds on."""
    assert codes(MadeChange(before, after), RULES) == []


def test_a_file_that_was_moved_away_is_broken_under_its_old_name() -> None:
    """D12: whoever names the old path finds nothing there."""
    change = MadeChange({"a.proto": TEXT}, {"lib/b.txt": TEXT}, {"lib/b.txt": "a.proto"})
    assert ("a.proto", "INTERFACE_BROKEN") in codes(change, RULES)


def test_what_is_too_large_to_be_compared_counts_as_broken() -> None:
    """D12: nobody can say that nothing is missing."""
    change = MadeChange({"a.proto": TEXT * 10}, {"a.proto": TEXT * 6})
    found = codes(change, RULES, ChangeLimits(max_file_bytes=len(TEXT) * 8))
    assert found[0] == ("a.proto", "INTERFACE_BROKEN")


@given(st.lists(st.text("ab ", max_size=3), max_size=8), st.data())
def test_a_file_with_lines_put_in_anywhere_never_breaks(lines: list[str], data: st.DataObject) -> None:
    """D12: whatever was there is there afterwards."""
    grown = list(lines)
    for word in data.draw(st.lists(st.text("abc", max_size=3), max_size=4)):
        grown.insert(data.draw(st.integers(0, len(grown))), word)
    change = MadeChange({"a.proto": "\n".join(lines)}, {"a.proto": "\n".join(grown)})
    assert codes(change, RULES) == []
