"""Values handed on purpose are found in texts by what they are, however they are written."""

from __future__ import annotations

import base64
import json
import time
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given, strategies as st

from ganger.core import events as ev
from ganger.core.masking import MASKED, Masker, is_worth_masking
from ganger.core.vocabulary import BlockReason, TaskStatus

VALUE = 'pl4nted/"odd"+välue\\99'
PEM = (
    "-----BEGIN PRIVATE KEY-----\n" + "\n".join(f"{n}MIIEvQIBADANBgkqhkiG9w0BAQEFAASC" for n in range(4)) + "\n-----END"
)


def shapes(value: str) -> dict[str, str]:
    raw = value.encode()
    return {
        "plain": value,
        "json": json.dumps(value),
        "json-utf8": json.dumps(value, ensure_ascii=False),
        "repr": repr(value),
        "address": quote(value, safe=""),
        "form": quote_plus(value),
        "hex": raw.hex(),
        "HEX": raw.hex().upper(),
        **{f"base64-{n}": base64.b64encode(b"x" * n + raw + b"yy").decode() for n in range(4)},
        "base64-url": base64.urlsafe_b64encode(raw).decode(),
    }


@pytest.mark.parametrize("shape", shapes(VALUE))
def test_a_value_is_taken_out_in_every_form(shape: str) -> None:
    """D19: between other words, twice."""
    masker, said = Masker({"STRIPE": VALUE}), shapes(VALUE)[shape]
    shown = masker.text(f"before {said} between {said} after")
    assert shown.count(MASKED) == 2 and shown.startswith("before ") and shown.endswith(" after")
    assert VALUE[4:-4] not in shown and masker.text(shown) == shown


@pytest.mark.parametrize("cut", [9, 12, 20])
def test_a_value_that_was_cut_off_is_taken_out(cut: str | int) -> None:
    """D19: texts are shortened before they are kept."""
    masker, value = Masker({"A": "q7X2m4V6b3N5r7T2z9K1"}), "q7X2m4V6b3N5r7T2z9K1"
    assert masker.text(f"error: {value[: int(cut)]}") == f"error: {MASKED}"
    assert masker.text(f"{value[-int(cut) :]} is wrong") == f"{MASKED} is wrong"
    assert masker.text(f"error: {value[:12]}… (more)") == f"error: {MASKED}… (more)"


def test_what_many_keys_begin_with_stays() -> None:
    """D19: a family name is no secret."""
    masker = Masker({"KEY": "sk-ant-api03-" + "q7X2m4V6" * 8})
    assert masker.text("a key begins with sk-ant-api03- as you know") == "a key begins with sk-ant-api03- as you know"


@pytest.mark.parametrize(
    ("name", "value", "worth"),
    [
        ("DEBUG", "true", False),
        ("BRANCH", "main", False),
        ("STAGE", "production", False),
        ("PORT", "8080", False),
        ("COUNT", "1234567890", False),
        ("LINE", "--------", False),
        ("MY_TOKEN", "hunter2", True),
        ("MY_TOKEN", "abc", False),
        ("foo", "correct-horse", True),
        ("foo", "aB3dE5gH", True),
        ("foo", "correcthorsebatterystaple", True),
    ],
)
def test_ordinary_words_are_not_masked(name: str, value: str, worth: bool) -> None:
    """D19: a text in which every `main` is hidden helps nobody."""
    assert is_worth_masking(name, value) is worth
    assert bool(Masker({name: value})) is worth


def test_what_everybody_can_read_is_no_secret() -> None:
    """D19: a task's name stays its name, whatever a variable holds."""
    masker = Masker({"STAGE": "deploy-to-prod-2", "STRIPE": VALUE}, clear=['{"id": "deploy-to-prod-2"}'])
    assert masker.text(f"deploy-to-prod-2 {VALUE}") == f"deploy-to-prod-2 {MASKED}"


@pytest.mark.parametrize(
    ("value", "piece"),
    [
        (PEM, PEM.splitlines()[2]),
        ("X-Tenant: eu1\nAuthorization: Bearer q7X2m4V6b3N5", "q7X2m4V6b3N5"),
        ("postgres://app:q7X2m4@db.internal/x", "q7X2m4"),
        ("https://q7X2m4V6@host/x", "q7X2m4V6"),
    ],
)
def test_what_can_stand_alone_of_a_value_is_taken_out(value: str, piece: str) -> None:
    """D19: the lines of a key, a header's word, an address's password."""
    assert Masker({"foo": value}).text(f"said {piece}!") == f"said {MASKED}!"


def test_an_event_is_masked_in_every_field_and_stays_what_it_is() -> None:
    """D19: enumerations, numbers and texts without it are untouched; the form in the store is valid."""
    settled = ev.TaskSettled("a", TaskStatus.BLOCKED, f"it said {VALUE}", BlockReason.PAUSED)
    masked = Masker({"A": VALUE}).event(settled)
    assert masked == ev.TaskSettled("a", TaskStatus.BLOCKED, f"it said {MASKED}", BlockReason.PAUSED)
    assert type(masked.status) is TaskStatus and ev.decode(
        ev.type_name(masked), json.loads(json.dumps(ev.encode(masked)))
    )
    question = ev.QuestionAsked("q-1", "a", "x", "t", 1, "i", f"c {VALUE}", (f"o {VALUE}", "no"), "", 0.0)
    assert Masker({"A": VALUE}).event(question).options == (f"o {MASKED}", "no")
    other = ev.TaskSettled("a", TaskStatus.DONE, "nothing")
    assert Masker({"A": VALUE}).event(other) is other


@given(st.text(min_size=12, max_size=40), st.text(max_size=50), st.text(max_size=50))
def test_whatever_surrounds_it_a_value_is_gone(value: str, before: str, after: str) -> None:
    """D19: and what is masked twice is masked once."""
    masker = Masker({"A_TOKEN": value})
    shown = masker.text(before + value + after)
    if masker and value.strip() not in MASKED:
        assert value.strip() not in shown.replace(MASKED, "\0")


@pytest.mark.whole
def test_masking_takes_linear_time() -> None:
    """D19: 40 values in 20 MB that are made of their beginnings."""
    secrets = {f"V{n}": f"q7X2m4V6-{n}-" + "b3N5r7T2" * 8 for n in range(40)}
    text = "q7X2m4V6" * (20 << 17)
    begun = time.process_time()
    assert len(Masker(secrets).text(text)) > 0
    assert time.process_time() - begun < 60
