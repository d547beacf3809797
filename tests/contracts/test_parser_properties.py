"""Any log at all: the parser never raises, does not depend on chunk borders, and agrees with a simple reference."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given, settings, strategies as st

from ganger.contracts.parser import Parsed, Refused, neutralise, parse_heal, parse_result
from ganger.contracts.reading import terminal
from ganger.contracts.reading.blocks import HEAL_DECISION, TASK_RESULT, find_bodies, says_nothing
from ganger.contracts.reading.repair import repair

LOOK = settings(max_examples=max(200, settings().max_examples))
CODES = {"NO_SENTINEL", "INVALID_JSON", "SCHEMA_VIOLATION", "MISSING_REQUIRED_FIELD", "UNSUPPORTED_VERSION"}
START, END = TASK_RESULT.start, TASK_RESULT.end
GOOD = b'{"contract_version": "2.0", "task_id": "a", "status": "DONE", "summary": "s"}'
BLOCK = START + b"\n" + GOOD + b"\n" + END + b"\n"
CHUNKS = (1, 20_011, 33_333, 1 << 20)

ATOMS = [
    START, END, START, END, GOOD, b"\n", b"\r", b" ", b"\t", b"x", b"{}", b"/**/", b"<", b">", b"<<<",
    HEAL_DECISION.start,
    b"\x1b[0m", b"\x1b]0;t\x07", b"\x1b]0;t\x1b\\", b"\x1b", b"\x1b]", b"\x1b[", b"\x07", b"\0", b"\x01", b"\x7f",
    b"\xc2\x9b", b"\xc2", b"\x9b", b"\xef\xbb\xbf", b"\xbb", START[:7], START[7:], END[:9], END[9:],
]  # fmt: skip
BULK = [
    b"x" * 5000, b" " * 5000, b"\n" * 3000, b"\xc2\x9b" * 3000, b"\x80" * 5000, b"\xef\xbb\xbf" * 2000,
    b"\x1b]" + b"y" * 4094, b"\x1b]" + b"y" * 4096, b"\x1b]" + b"y" * 4200, b"\x1b[" + b"1;" * 200, "é".encode() * 4000,
]  # fmt: skip
LOGS = st.lists(st.sampled_from(ATOMS) | st.sampled_from(BULK) | st.binary(max_size=6), max_size=50).map(b"".join)
TEXT = st.text(st.characters(exclude_categories=["Cs"]) | st.sampled_from('"\\/*,]}[{`\n'), max_size=60)


def reference(log: bytes, wash: terminal.Wash) -> list[bytes]:
    """The rules in their simplest form, on the whole log at once."""
    text, blank = bytes(wash.apply(log)), terminal.BLANK_IN_LINE
    starts = [m.start(1) for m in re.finditer(rb"(?:\A|(?<=[\r\n]))" + blank + b"(" + START + b")", text)]
    ends = [m.start(1) for m in re.finditer(b"(" + END + b")" + blank + rb"(?:[\r\n]|\Z)", text)]
    anywhere = [[m.start() for m in re.finditer(mark, text)] for mark in (START, END)]
    first, second = last_block(text, starts, ends), last_block(text, *anywhere)
    found = [first, second] if first and second and first[0] == second[0] else [first or second]
    pairs = [one[:2] for one in found if one]
    if second and found[-1] == second:
        pairs.append((second[0], max(end for end in anywhere[1] if end < second[2])))
    return [text[start + len(START) : end] for start, end in dict.fromkeys(pairs)]


def last_block(text: bytes, starts: list[int], ends: list[int]) -> tuple[int, int, int] | None:
    """The last start that an end follows, the first of those ends, and the empty block it stands before."""
    before = len(text) + 1
    for start in reversed(starts):
        after = [end for end in ends if start + len(START) <= end < before]
        if after and not says_nothing(text[start + len(START) : min(after)]):
            return start, min(after), before
        before = start if after else before
    return None


def expected(log: bytes) -> list[bytes]:
    return reference(log, terminal.NORMAL) or reference(log, terminal.FULL)


def disagreement(log: bytes) -> str:
    for chunk in CHUNKS:
        if [body.data for body in find_bodies(log, TASK_RESULT, chunk=chunk)] != expected(log):
            return f"chunk {chunk} disagrees on {log!r:.200}"
    return ""


@LOOK
@given(LOGS)
def test_the_block_found_is_the_references_whatever_the_chunk_size(log: bytes) -> None:
    """T07: sentinels and escape sequences across chunk borders change nothing."""
    assert disagreement(log) == ""


CUTS = {
    "anywhere": lambda data, within: min(within, len(data)),
    "inside a sequence": lambda data, within: max(data.find(b"\x1b", 0, within) + 2, 1),
}


@pytest.mark.parametrize("cut", CUTS.values(), ids=CUTS)
def test_the_reference_catches_a_search_that_cuts_in_the_wrong_place(
    cut: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    """T07: the harness sees a planted bug, so its silence means something."""
    opening = START[:9] + b"\x1b]0;title\x07" + START[9:]
    logs = [b"p" * 9000 + opening + b"\n{}\n" + END + b"q" * size for size in range(8100, 8220, 3)]
    assert not any(map(disagreement, logs))
    monkeypatch.setattr(terminal, "safe_cut", cut)
    assert any(map(disagreement, logs))


@LOOK
@given(st.binary() | LOGS)
def test_any_bytes_are_parsed_or_refused_with_one_of_the_five_codes(log: bytes) -> None:
    """T07: nothing is ever raised."""
    for parsed in (parse_result(log), parse_heal(log), parse_result(START + log + END)):
        assert isinstance(parsed, Parsed) or (parsed.code in CODES and parsed.message)


@LOOK
@given(st.lists(st.tuples(st.integers(0, len(BLOCK)), st.sampled_from(ATOMS) | st.binary(max_size=3)), max_size=6))
def test_a_damaged_answer_is_parsed_or_refused(edits: list[tuple[int, bytes]]) -> None:
    """T07: a valid log with bytes overwritten and inserted."""
    log = BLOCK
    for place, patch in edits:
        log = log[:place] + patch + log[place + len(patch) // 2 :]
    parsed = parse_result(log, task_id="a")
    assert parsed.value.task_id == "a" if isinstance(parsed, Parsed) else parsed.code in CODES


@LOOK
@given(LOGS, LOGS.map(lambda log: log.replace(END, b"").replace(b"\x1b", b"")))
def test_a_block_after_any_garbage_is_found(before: bytes, after: bytes) -> None:
    """T07: what came before cannot hide the answer, nor can what follows without an end of its own."""
    after = b"" if terminal.FULL.apply(after).count(END) else after
    parsed = parse_result(before + b"\n" + BLOCK + b"\n" + after)
    assert isinstance(parsed, Parsed) and parsed.value.summary == "s"


@LOOK
@given(LOGS, LOGS.map(lambda log: log.replace(START, b"").replace(b"\x1b", b"")))
def test_what_follows_a_block_and_begins_none_takes_nothing_away(before: bytes, after: bytes) -> None:
    """T07: closing marks that close nothing, however many and wherever they stand."""
    after = b"" if terminal.FULL.apply(after).count(START) else after
    parsed = parse_result(before + b"\n" + BLOCK + b"\n" + after)
    assert isinstance(parsed, Parsed) and parsed.value.summary == "s"


@LOOK
@given(TEXT, TEXT, st.sampled_from(["", "// x\n", "/* x */", " "]), st.sampled_from(["", ",", ", ", ",\n"]))
def test_repair_never_changes_a_string(key: str, text: str, comment: str, comma: str) -> None:
    """T07: whatever a string holds, it reads the same after the repair."""
    quoted = json.dumps({key: [text, {text: key}]}, ensure_ascii=False)
    messy = f"```json\n{comment}{quoted[:-1]}{comma}{comment}}}{comment}\n```"
    assert json.loads(repair(messy)) == json.loads(quoted)


@LOOK
@given(TEXT)
def test_repair_leaves_good_json_as_it_is(text: str) -> None:
    """T07: the repair is the identity on what needs none."""
    quoted = json.dumps({text: [text, 1, {}]}, ensure_ascii=False)
    assert repair(quoted) == quoted


@LOOK
@given(TEXT)
def test_file_content_arrives_unchanged(text: str) -> None:
    """T07: a strict JSON answer is believed to the letter, odd characters included."""
    write = {"path": "f", "op": "create", "encoding": "utf8", "content": text}
    body = json.dumps({**json.loads(GOOD), "writes": [write]}, ensure_ascii=False).encode()
    parsed = parse_result(START + b"\n" + body + b"\n" + END)
    assert isinstance(parsed, Parsed) and parsed.value.writes[0].content == text


@LOOK
@given(LOGS)
def test_neutralised_text_holds_no_block(log: bytes) -> None:
    """T07: fed back and echoed, it is never an answer."""
    safe = neutralise(log.decode("utf-8", "replace")).encode()
    assert parse_result(safe) == Refused("NO_SENTINEL", parse_result(b"").message)  # type: ignore[union-attr]


@LOOK
@given(st.lists(st.sampled_from(ATOMS + BULK) | st.binary(max_size=4)).map(b"".join), st.integers(0, 200_000))
def test_washing_in_parts_gives_the_washed_whole(log: bytes, place: int) -> None:
    """T07: wherever a log may be cut, both sides clean to the same bytes."""
    begin = place % (len(log) + 1)
    cut = begin + terminal.safe_cut(log[begin:], len(log))
    for wash in (terminal.QUICK, terminal.NORMAL, terminal.FULL):
        assert wash.apply(log[:cut]) + wash.apply(log[cut:]) == wash.apply(log)
