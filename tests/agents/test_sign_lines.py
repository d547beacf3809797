"""Signs as lines: every sign comes back as it was, and nothing else is one."""

from __future__ import annotations

from typing import get_args

import pytest
from hypothesis import given, strategies as st

from ganger.agents.sign_lines import SignReader, decode, encode, harmless
from ganger.core.signs import Over, Said, Sign, Tokens

SIGNS = st.one_of([st.from_type(kind) for kind in get_args(Sign)])


def _is_plain(sign: Sign) -> bool:
    """Numbers an agent could mean."""
    values = [getattr(sign, name) for name in sign.__slots__]
    return all(0 <= value < 2**53 for value in values if isinstance(value, int | float))


@given(SIGNS.filter(_is_plain), st.sampled_from(["", "words of another stream ", "{ not json "]))
def test_every_sign_comes_back_as_it_was(sign: Sign, before: str) -> None:
    """T24: also where another stream left words in its line."""
    line = encode(sign)
    assert "\n" not in line and line.isascii()
    assert decode(before.encode() + line.encode()) == sign


@given(SIGNS)
def test_a_line_made_harmless_is_no_sign(sign: Sign) -> None:
    """T25: a program that prints one gives none."""
    assert decode(harmless(encode(sign)).encode()) is None


@given(st.binary())
def test_no_line_makes_it_raise(line: bytes) -> None:
    """T24: output is untrusted."""
    assert decode(line) is None
    decode(b'{"ganger": "sign", ' + line)


@pytest.mark.parametrize(
    "rest",
    [
        '"is": "Over", "how": "great"}',
        '"is": "Over"}',
        '"is": ["Over"]}',
        '"is": "Context", "used": true}',
        '"is": "Context", "used": -1}',
        '"is": "Context", "used": 1.5}',
        '"is": "Retrying", "text": "", "wait_sec": 1' + "0" * 400 + "}",
        '"is": "Retrying", "text": "", "wait_sec": NaN}',
        '"is": "Said", "text": null}',
    ],
)
def test_a_sign_of_the_wrong_shape_is_none(rest: str) -> None:
    """T24: its fields are checked."""
    assert decode(('{"ganger": "sign", ' + rest).encode()) is None


def test_unknown_fields_are_passed_over() -> None:
    """T24: a newer process may say more."""
    assert decode(b'{"ganger": "sign", "is": "Said", "text": "x", "new": 1}') == Said("x")


def test_the_reader_gives_signs_and_nothing_for_other_lines() -> None:
    """T24 T25: the lines between are for people."""
    reader = SignReader()
    lines = [b"plain words", encode(Tokens(input=5)).encode(), b"", encode(Over("success", "done")).encode()]
    assert [sign for line in lines for sign in reader.line(line)] == [Tokens(input=5), Over("success", "done")]
    assert list(reader.end()) == []
