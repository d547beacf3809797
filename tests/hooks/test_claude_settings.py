"""Ganger's hooks come into somebody's settings and leave them again; everything else stays as it was, to the byte."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import Phase, given, settings, strategies as st

from ganger.hooks.claude_settings import EVENTS, command_line, found_in, installed, uninstalled
from ganger.hooks.json_text import NotJson

CALL = ["/opt/my tools/ganger"]
OTHER = {"hooks": [{"type": "command", "command": "say 'done'"}]}

# --- settings as people and programs write them -----------------------------------------------------------------------

words = st.text(max_size=8)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=6,
)
groups = st.lists(st.just(OTHER) | st.just({"matcher": "*", **OTHER}), max_size=2)
hooks = st.dictionaries(st.sampled_from([*EVENTS, "PreToolUse"]), groups, max_size=3)
documents = st.builds(
    lambda before, found, after: {**before, **({} if found is None else {"hooks": found}), **after},
    st.dictionaries(words.filter(lambda word: word != "hooks"), values, max_size=2),
    st.none() | hooks,
    st.dictionaries(st.sampled_from(["permissions", "env", "é"]), values, max_size=2),
)
layouts = st.sampled_from(
    [
        {"indent": 2},
        {"indent": "\t"},
        {"indent": 4, "ensure_ascii": False},
        {"indent": 1},
        {},
        {"separators": (",", ":")},
        {"separators": (" , ", " : ")},
    ]
)
ends = st.sampled_from(["", "\n", "\r\n", "\n\n", " "])


def written(document: Any, layout: dict[str, Any], end: str, *, windows: bool, mark: bool) -> str:
    text = json.dumps(document, **layout) + end
    text = text.replace("\r\n", "\n").replace("\n", "\r\n") if windows else text
    return ("\ufeff" if mark else "") + text


texts = st.builds(written, documents, layouts, ends, windows=st.booleans(), mark=st.booleans())


def plain(text: str) -> Any:
    return json.loads(text.removeprefix("\ufeff"))


def without_ours(document: Any) -> Any:
    """What is left of a document when our hooks are gone from every list."""
    rest = copy.deepcopy(document)
    for event in [*rest.get("hooks", {})]:
        kept = [group for group in rest["hooks"][event] if "hooks run claude" not in json.dumps(group)]
        rest["hooks"][event] = kept
    return rest


# --- what must hold ---------------------------------------------------------------------------------------------------


@given(texts)
def test_installing_adds_one_hook_for_each_event_and_changes_nothing_else(text: str) -> None:
    """H11: unknown keys, their order, other hooks and the text of all of them stay."""
    before, after = plain(text), plain(installed(text, CALL))
    theirs = before.get("hooks", {})
    assert sorted(found.event for found in found_in(installed(text, CALL))) == sorted(EVENTS)
    rest = without_ours(after)
    kept = {event: groups for event, groups in rest["hooks"].items() if groups or event in theirs}
    assert {**rest, "hooks": kept} == {**before, "hooks": theirs}
    assert [key for key in after if key in before] == list(before)


@given(texts)
def test_installing_twice_is_installing_once(text: str) -> None:
    """H11: and the hooks of a Ganger that moved are renewed where they stand."""
    once = installed(text, CALL)
    assert installed(once, CALL) == once
    moved = installed(once, ["/usr/bin/ganger"])
    assert len(found_in(moved)) == len(EVENTS)
    assert {found.call for found in found_in(moved)} == {"/usr/bin/ganger"}
    assert installed(moved, CALL) == once


@given(texts)
def test_removing_gives_every_byte_back(text: str) -> None:
    """H11: empty containers that were there before are still there."""
    assert uninstalled(installed(text, CALL))[0] == text


@given(texts)
def test_only_additions_are_made_to_the_text(text: str) -> None:
    """H11: whatever stood there stands there in the same order."""
    rest = iter(installed(text, CALL))
    assert all(character in rest for character in text)


@given(texts, st.sampled_from(EVENTS), st.booleans())
def test_what_others_add_beside_ours_survives_the_removal(text: str, event: str, first: bool) -> None:
    """H11: a person or a formatter may rewrite the whole file in between."""
    document = plain(installed(text, CALL))
    document["hooks"][event].insert(0 if first else len(document["hooks"][event]), OTHER)
    expected = plain(text)
    theirs = expected.setdefault("hooks", {}).setdefault(event, [])
    theirs.insert(0 if first else len(theirs), OTHER)
    assert plain(uninstalled(json.dumps(document, indent=3))[0]) == expected


def test_a_hook_that_a_person_put_beside_their_own_is_taken_out_of_their_group() -> None:
    """H11: exactly what is Ganger's goes."""
    mixed = {"hooks": {"Stop": [{"matcher": "", "hooks": [*OTHER["hooks"], {"command": command_line(CALL)}]}]}}
    assert plain(uninstalled(json.dumps(mixed))[0]) == {"hooks": {"Stop": [{"matcher": "", **OTHER}]}}


@pytest.mark.parametrize("text", ["{}", "{}\n", '{"hooks": {}}', '{"hooks": {"Stop": []}}', '{\n  "hooks": {\n  }\n}'])
def test_what_was_empty_before_is_empty_again(text: str) -> None:
    """H11: nobody's empty container is taken away."""
    assert plain(uninstalled(installed(text, CALL))[0]) == plain(text)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("", "line 1 column 1"),
        ('{\n  "a": 1,\n}', "line 3 column 1"),
        ('{"a": 1} // mine', "line 1 column 10"),
        ("[]", "the whole file"),
        ('{"hooks": []}', "hooks"),
        ('{"hooks": {"Stop": {}}}', "hooks.Stop"),
        ('{"hooks": {}, "hooks": {"Stop": []}}', "'hooks'"),
        ('{"hooks": {"Stop": [], "Stop": []}}', "'Stop'"),
        ('{"a": NaN}', "a number"),
        ("[" * 100_000, "line 1"),
    ],
)
def test_what_cannot_be_understood_is_refused_with_its_place(text: str, place: str) -> None:
    """H11: it is never guessed what somebody meant."""
    for change in (lambda: installed(text, CALL), lambda: uninstalled(text)):
        with pytest.raises(NotJson, match=f"^{re.escape(place)}"):
            change()


# --- the properties themselves ----------------------------------------------------------------------------------------


def rewriting(text: str) -> str:
    """A planted bug: the way it is usually done, which loses the layout."""
    return json.dumps(plain(uninstalled(installed(text, CALL))[0]), indent=2)


def greedy(text: str) -> str:
    """A planted bug: empty containers go, whoever made them."""
    document = plain(uninstalled(installed(text, CALL))[0])
    document["hooks"] = {event: found for event, found in document.get("hooks", {}).items() if found}
    return json.dumps(document)


@pytest.mark.parametrize("removal", [rewriting, greedy])
def test_a_removal_that_loses_something_is_caught(removal: Callable[[str], str]) -> None:
    """H11: the property sees the planted bugs."""

    @settings(phases=[Phase.generate])
    @given(texts)
    def gives_back(text: str) -> None:
        assert removal(text) == text

    with pytest.raises(AssertionError):
        gives_back()
