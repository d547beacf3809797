"""Strict JSON: what it refuses, where, and that it stays linear and small."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given, strategies as st

from ganger.contracts.reading.strict_json import JsonFault, check_count, loads, shorten

TEXT = st.text(st.characters(exclude_categories=["Cs"]))
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner) | st.dictionaries(TEXT, inner),
    max_leaves=20,
)


@given(VALUES, st.booleans())
def test_whatever_json_can_say_is_read_back(value: object, ascii_only: bool) -> None:
    """T09: strictness changes no accepted value."""
    assert loads(json.dumps(value, ensure_ascii=ascii_only)) == value


@given(st.text(alphabet='{}[]",:0123456789.eE+-truefalsn \\\n/N\ud800'))
def test_nothing_but_a_json_fault_is_ever_raised(text: str) -> None:
    """T07 T09: any text is a value or a fault with a code."""
    try:
        loads(text)
    except JsonFault as fault:
        assert fault.code in {"INVALID_JSON", "DUPLICATE_KEY", "NESTED_TOO_DEEP"} and fault.message


@pytest.mark.parametrize(
    ("text", "code", "line", "column"),
    [
        ('{"a": {"b": 1,\n "b": 2}}', "DUPLICATE_KEY", 2, 2),
        ('[{"k": 1}, {"k": 1, "j": {"k": 2}, "k": 3}]', "DUPLICATE_KEY", 1, 36),
        (r'{"a": 1, "\u0061": 2}', "DUPLICATE_KEY", 1, 10),
        ('["NaN", NaN]', "INVALID_JSON", 1, 9),
        ('["1e999",\n1e999]', "INVALID_JSON", 2, 1),
        ("[1,]", "INVALID_JSON", 1, 4),
        ('"a\nb"', "INVALID_JSON", 1, 3),
    ],
)
def test_a_fault_names_its_place(text: str, code: str, line: int, column: int) -> None:
    """T09: line and column point at the second key, the bad number, the bad character."""
    with pytest.raises(JsonFault) as caught:
        loads(text)
    assert (caught.value.code, caught.value.line, caught.value.column) == (code, line, column)


def test_depth_is_counted_exactly() -> None:
    """T07: a hundred levels pass, one more does not."""
    assert loads("[" * 100 + "]" * 100)
    for text in ("[" * 101 + "]" * 101, '{"a":' * 101 + "1" + "}" * 101):
        with pytest.raises(JsonFault, match="nested"):
            loads(text)


def test_a_surrogate_pair_is_a_character_and_half_of_one_is_not() -> None:
    """T09: what cannot be written as UTF-8 again is refused, in keys too."""
    assert loads(r'"\ud83d\ude00"') == "😀"
    for text in (r'"\ud83d"', r'{"\udc00": 1}', '"\ud800"', r'["\ude00\ud83d"]'):
        with pytest.raises(JsonFault, match="surrogate"):
            loads(text)


def test_values_are_counted_outside_strings_only() -> None:
    """T07: a text full of commas is one value; a list of many is many."""
    check_count(json.dumps("a,[{" * 1000), 10)
    check_count('["a,\\",[", 1]', 3)
    for text in ("[" + "[]," * 20, '""' * 30, '{"a":1,' * 11):
        with pytest.raises(JsonFault, match="too many values"):
            check_count(text, 10)


@pytest.mark.parametrize("unit", ['"', '\\"', '"a":1,', "[", "{", "9", ",", "NaN ", '"\\', '{"a":', "\\ud800"])
def test_hostile_text_takes_linear_time(unit: str) -> None:
    """T07: two megabytes of anything are judged within a second."""
    text = '{"k":"' + unit * (2_000_000 // len(unit))
    began = time.process_time()
    for attempt in (text, text[6:]):
        with pytest.raises(JsonFault):
            loads(attempt)
    assert time.process_time() - began < 2


@given(st.text())
def test_a_shortened_text_is_one_printable_line(text: str) -> None:
    """T09: messages cannot be forged by the values they quote."""
    assert shorten(text).isprintable() and len(shorten(text)) < 500
