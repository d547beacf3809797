"""The one parser: which block counts, what is repaired, and which of the five codes answers what."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

from ganger.contracts.parser import Parsed, Refused, neutralise, parse_heal, parse_result
from ganger.contracts.reading.blocks import CHUNK, HEAL_DECISION, TASK_RESULT
from ganger.errors import GangerError, NotFoundError
from tests.contracts.contract_samples import DROP, HEAL, RESULT, changed

START, END = TASK_RESULT.start.decode(), TASK_RESULT.end.decode()
HEAL_START, HEAL_END = HEAL_DECISION.start.decode(), HEAL_DECISION.end.decode()


def result(summary: str = "did it", **more: object) -> str:
    fields = {"contract_version": "2.0", "task_id": "a", "status": "DONE", "summary": summary, **more}
    return json.dumps(fields, ensure_ascii=False)


def block(body: str) -> str:
    return f"{START}\n{body}\n{END}\n"


def verdict(log: str | bytes, chunk: int = CHUNK) -> str:
    """The summary of an accepted result, or the code of a refusal."""
    parsed = parse_result(log.encode() if isinstance(log, str) else log, chunk=chunk)
    return parsed.value.summary if isinstance(parsed, Parsed) else parsed.code


GOOD = result()
CODES = [
    ("T28 missing-fence nothing", "", "NO_SENTINEL"),
    ("T28 missing-fence prose", "DONE. All tests pass.", "NO_SENTINEL"),
    ("bare json", GOOD, "NO_SENTINEL"),
    ("start only", f"{START}\n{GOOD}", "NO_SENTINEL"),
    ("end only", f"{GOOD}\n{END}", "NO_SENTINEL"),
    ("end before start", f"{END}\n{GOOD}\n{START}", "NO_SENTINEL"),
    ("blank body", block(" \t\r\n"), "NO_SENTINEL"),
    ("no body", START + END, "NO_SENTINEL"),
    ("invisible body", block("\ufeff\x1b[0m\x07\u0085"), "NO_SENTINEL"),
    ("T07 begun again and closed amid it", block(GOOD) + f"{START}\n{GOOD[:20]}\n{END}\n", "INVALID_JSON"),
    ("T07 the last one is another's", block(GOOD) + block("{}"), "UNSUPPORTED_VERSION"),
    ("another kind of block", f"{HEAL_START}\n{GOOD}\n{HEAL_END}", "NO_SENTINEL"),
    ("T28 invalid-json cut", block(GOOD[:-1]), "INVALID_JSON"),
    ("prose body", block("I did it"), "INVALID_JSON"),
    ("single quotes", block(GOOD.replace('"', "'")), "INVALID_JSON"),
    ("raw newline in a string", block(result("a\\nb").replace("\\\\n", "\n")), "INVALID_JSON"),
    ("raw tab in a string", block(GOOD.replace("did it", "did\tit")), "INVALID_JSON"),
    ("NaN", block(GOOD[:-1] + ', "x": NaN}'), "INVALID_JSON"),
    ("Infinity", block(GOOD[:-1] + ', "x": -Infinity}'), "INVALID_JSON"),
    ("too large a number", block(GOOD[:-1] + ', "x": 1e999}'), "INVALID_JSON"),
    ("two objects", block(GOOD + GOOD), "INVALID_JSON"),
    ("nested too deep", block("[" * 5000 + "]" * 5000), "INVALID_JSON"),
    ("half a surrogate", block(GOOD.replace("did it", "\\ud800")), "INVALID_JSON"),
    ("missing comma", block(GOOD.replace(", ", " ")), "INVALID_JSON"),
    ("two trailing commas", block(GOOD[:-1] + ",,}"), "INVALID_JSON"),
    ("only a comma", block("[,]"), "INVALID_JSON"),
    ("comment never closed", block("/* " + GOOD), "INVALID_JSON"),
    ("fence never closed", block("```json\n" + GOOD), "INVALID_JSON"),
    ("null", block("null"), "SCHEMA_VIOLATION"),
    ("a string", block('"DONE"'), "SCHEMA_VIOLATION"),
    ("a number", block("1"), "SCHEMA_VIOLATION"),
    ("duplicate key", block(GOOD[:-1] + ', "status": "FAILED"}'), "SCHEMA_VIOLATION"),
    ("duplicate key behind a comment", block("// x\n" + GOOD[:-1] + ', "status": "FAILED",}'), "SCHEMA_VIOLATION"),
    ("T28 schema-violation status", block(GOOD.replace("DONE", "OK")), "SCHEMA_VIOLATION"),
    ("unknown field", block(result(note="x")), "SCHEMA_VIOLATION"),
    ("empty summary", block(result("")), "SCHEMA_VIOLATION"),
    ("null hash", block(result(writes=[{**RESULT["writes"][0], "sha256_before": None}])), "SCHEMA_VIOLATION"),
    ("unknown before missing inside", block(result(x=1, writes=[{}])), "SCHEMA_VIOLATION"),
    ("array", block("[]"), "UNSUPPORTED_VERSION"),
    ("no version", block("{}"), "UNSUPPORTED_VERSION"),
    ("old version", block(GOOD.replace("2.0", "1.0")), "UNSUPPORTED_VERSION"),
    ("number as version", block(GOOD.replace('"2.0"', "2.0")), "UNSUPPORTED_VERSION"),
    ("version before schema", block('{"contract_version": "3.0", "x": 1}'), "UNSUPPORTED_VERSION"),
    ("missing summary", block(json.dumps(changed(json.loads(GOOD), "summary", DROP))), "MISSING_REQUIRED_FIELD"),
    ("missing before unknown", block('{"contract_version": "2.0", "x": 1}'), "MISSING_REQUIRED_FIELD"),
    ("write without content", block(result(writes=[{"path": "", "op": "x"}])), "MISSING_REQUIRED_FIELD"),
]
ACCEPTED = [
    ("T28 valid-result", block(GOOD)),
    ("text around it", f"thinking\n{block(GOOD)}bye\n"),
    ("T28 prompt-echo complete sample first", f"Answer like:\n{block('{ ...json... }')}\n{block(GOOD)}"),
    ("T28 prompt-echo without end", f"Answer with {START}\n{{...}}\n\n{block(GOOD)}"),
    ("T28 prompt-echo inline after it", f"{block(GOOD)}I used {START} and {END} as asked.\n"),
    ("last of two", block(result("first")) + block(GOOD)),
    ("later block without end", block(GOOD) + f"{START}\n{{"),
    ("later end without start", f"{START}\n{result('x')}\n{END}\n{START}\n{GOOD}\n{END}\n"),
    ("T07 one end too many", block(GOOD) + f"{END}\n"),
    ("T07 ends that close nothing", block(GOOD) + f"bye\n{END}\n and {END} again\n{END}"),
    ("T07 one line and an end too many", f"{START}{GOOD}{END}{END}"),
    ("T07 inline and an end too many", f"result: {START}{GOOD}{END} end.\n{END}\n"),
    ("T07 words behind its end, then another end", f"{START}\n{GOOD} {END} that is it\n{END}\n"),
    ("T07 half a start behind it", block(GOOD) + START[:-2]),
    ("T07 half an end behind it", block(GOOD) + f"{END[:-4]}\n"),
    ("T07 cut off while it was given again", block(GOOD) + f"{START}\n{GOOD[:20]}\n{END[:9]}"),
    ("T07 an end before it", f"{END}\n{block(GOOD)}"),
    ("one line", f"{START}{GOOD}{END}"),
    ("inline with text around", f"result: {START}{GOOD}{END} end."),
    ("indented", f"  {START}  \n  {GOOD}\n\t{END}  \n"),
    ("no newline at the end", f"{START}\n{GOOD}\n{END}"),
    ("CRLF", block(GOOD).replace("\n", "\r\n")),
    ("after a progress line", f"working...\r{START}\r\n{GOOD}\r\n{END}\rbye"),
    ("byte order mark", "\ufeff" + block("\ufeff" + GOOD)),
    ("pretty printed", block(json.dumps(json.loads(GOOD), indent=4))),
    ("colours", f"\x1b[1;32m{START}\x1b[0m\n\x1b[2m{GOOD}\x1b[0m\n{END}\x1b[K\n"),
    ("colour inside a sentinel", f"{START[:6]}\x1b[31m{START[6:]}\n{GOOD}\n{END[:9]}\x1b[0m{END[9:]}\n"),
    ("window title before it", f"\x1b]0;my title\x07{START}\n{GOOD}\n\x1b]8;;x\x1b\\{END}\n"),
    ("control characters inside", f"{START[:6]}\x00\x08{START[6:]}\n{GOOD[:9]}\x07{GOOD[9:]}\n{END}\x0c\n"),
    ("carriage return inside a sentinel", f"{START[:6]}\r{START[6:]}\n{GOOD}\n{END}\n"),
    ("C1 and delete inside a sentinel", f"{START[:6]}\u009b\x7f{START[6:]}\n{GOOD}\n{END}\n"),
    ("broken bytes around", b"\xff\xfe\x80".decode("latin-1") + "\n" + block(GOOD)),
    ("heal block after it", block(GOOD) + f"{HEAL_START}\n{{}}\n{HEAL_END}\n"),
]
REPAIRED = [
    ("markdown fence", "```json\n" + GOOD + "\n```"),
    ("plain fence and spaces", "  ```  \n" + GOOD + "\n```  "),
    ("longer fence", "~~~~\n" + GOOD + "\n~~~~"),
    ("line comment", "// the result\n" + GOOD + " // end"),
    ("block comment", '{/* a\n"b": 1 */' + GOOD[1:]),
    ("comment between tokens", GOOD.replace(": ", ":/**/")),
    ("trailing comma", GOOD[:-1] + ",}"),
    ("trailing comma, lines and comment", GOOD[:-1] + ", // last\n /* really */ }"),
    ("trailing comma in an array", GOOD[:-1] + ', "changed_files": ["a" ,\n]}'),
    ("all at once", "```\n/* x */" + GOOD[:-1] + ",}//\n```"),
]


@pytest.mark.parametrize(("log", "code"), [c[1:] for c in CODES], ids=[c[0] for c in CODES])
def test_an_answer_that_breaks_its_contract_gets_its_code(log: str, code: str) -> None:
    """T07 T09: the first stage that fails names the error."""
    parsed = parse_result(log.encode())
    assert isinstance(parsed, Refused) and parsed.code == code and parsed.message


@pytest.mark.parametrize("log", [a[1] for a in ACCEPTED], ids=[a[0] for a in ACCEPTED])
def test_the_last_complete_block_is_found(log: str) -> None:
    """T07: whatever stands around it, and whatever a terminal put into it."""
    parsed = parse_result(log.encode(), task_id="a")
    assert isinstance(parsed, Parsed), parsed
    assert (parsed.value.summary, parsed.repaired, parsed.data) == ("did it", False, json.loads(GOOD))


@pytest.mark.parametrize("body", [r[1] for r in REPAIRED], ids=[r[0] for r in REPAIRED])
def test_what_agents_add_to_json_is_repaired(body: str) -> None:
    """T07: outer fences, comments and trailing commas, nothing else; the repair is reported."""
    parsed = parse_result(block(body).encode())
    assert isinstance(parsed, Parsed), parsed
    assert parsed.repaired and parsed.value.summary == "did it"


HOSTILE_TEXT = [
    f"see\n{START}\n{{}}\n{END}\n", "// no comment", "/* none */", "a,]", '",}', "```json\n{}\n```", "\\", '\\"//',
    "\ufeff",
    "\u0085\u009b31m\x7f", "é😀\u2028", "<<<", f"{END}", f"{START}",
]  # fmt: skip


@pytest.mark.parametrize("text", HOSTILE_TEXT)
@pytest.mark.parametrize("broken", [False, True])
def test_text_inside_strings_is_never_touched(text: str, broken: bool) -> None:
    """T07: sentinels, comments, commas and odd characters in file content survive, with and without repair."""
    body = result(writes=[{"path": "f", "op": "create", "encoding": "utf8", "content": text}])
    body = body[:-1] + ", // tail\n}" if broken else body
    parsed = parse_result(block(body).encode())
    assert isinstance(parsed, Parsed), parsed
    assert parsed.value.writes[0].content == text


def test_a_block_quoted_in_file_content_does_not_win_over_the_real_one() -> None:
    """T07: a JSON string holds no raw line break, so a quoted sentinel never opens or closes its line."""
    quoted = result("quoted")
    log = block(result("real", changed_files=[f"{START}{quoted}{END}"])) + f"(quoting {START}{quoted}{END} again)\n"
    assert verdict(log) == "real"


def test_the_chosen_block_decides_alone() -> None:
    """T07: a broken last block is not replaced by an earlier good one."""
    assert verdict(block(GOOD) + block("{")) == "INVALID_JSON"
    assert verdict(block(GOOD) + block("null")) == "SCHEMA_VIOLATION"


EMPTY = [
    "",
    " ",
    "\r\n\t",
    "\x1b[0m",
    "// nothing\n",
    "/* a */ /* b */",
    "```json\n```",
    "~~~\n\n~~~",
    "\ufeff",
    "\n" * 9000,
]


@pytest.mark.parametrize("body", EMPTY)
@pytest.mark.parametrize("times", [1, 3])
def test_a_block_with_nothing_in_it_is_no_answer(body: str, times: int) -> None:
    """T07: the last one that says something counts, on lines of its own and within a line; alone there is none."""
    for chunk in (1, 20_011, 1 << 20):
        for empty in (block(body) * times, f"so {START}{body}{END} it is\n" * times):
            for good in (block(GOOD), f"a result: {START}{GOOD}{END} it is\n"):
                assert verdict(good + empty, chunk) == "did it"
            assert verdict(empty, chunk) == "NO_SENTINEL"


def test_an_end_quoted_in_a_block_that_stands_inside_a_line_does_not_cut_it() -> None:
    """T07: where the first end leaves half a string, the last one counts."""
    said = f"it ends with {END}"
    assert verdict(f"result: {START}{result(said)}{END} end.") == said


def test_an_anchored_block_wins_over_a_later_inline_one() -> None:
    """T07: sentinels inside a line count only if there is no complete block on lines of its own."""
    assert verdict(block(GOOD) + f"and {START}{result('inline')}{END} too") == "did it"
    assert verdict(f"and {START}{result('inline')}{END} too\n{START}\n") == "inline"


def test_a_result_for_another_task_is_a_schema_violation() -> None:
    """T09: both ids are named, shortened and harmless."""
    parsed = parse_result(block(GOOD.replace('"a"', json.dumps("b\x1b[2J" * 50))).encode(), task_id="a")
    assert isinstance(parsed, Refused) and parsed.code == "SCHEMA_VIOLATION"
    assert '"a"' in parsed.message and "\x1b" not in parsed.message and len(parsed.message) < 250


def test_messages_name_every_path() -> None:
    """T07: `<path or />: text`, joined by semicolons, so that a format retry can quote them."""
    parsed = parse_result(block(result(x=1, status="OK")).encode())
    assert isinstance(parsed, Refused)
    assert [part.split(":")[0] for part in parsed.message.split("; ") if ": " in part] == ["x", "status"]
    assert parse_result(block("3").encode()) == Refused("SCHEMA_VIOLATION", "/: expected an object, found 3")


HEAL_CASES = [
    ("good", json.dumps(HEAL), ""),
    ("T28 invalid-heal-json", json.dumps(HEAL)[:-1], "INVALID_JSON"),
    ("array", "[]", "UNSUPPORTED_VERSION"),
    ("missing", json.dumps(changed(HEAL, "patches", DROP)), "MISSING_REQUIRED_FIELD"),
    ("shared context without path", json.dumps(changed(HEAL, "patches.0.path", DROP)), "MISSING_REQUIRED_FIELD"),
    ("scope", json.dumps(changed(HEAL, "scope", "all")), "SCHEMA_VIOLATION"),
    ("blank", "", "NO_SENTINEL"),
]


@pytest.mark.parametrize(("body", "code"), [c[1:] for c in HEAL_CASES], ids=[c[0] for c in HEAL_CASES])
def test_a_heal_decision_is_parsed_by_the_same_rules(body: str, code: str) -> None:
    """T07 T09: own sentinels, the same five codes."""
    parsed = parse_heal(f"{block(GOOD)}{HEAL_START}\n{body}\n{HEAL_END}\n{block(GOOD)}".encode())
    assert parsed.code == code if isinstance(parsed, Refused) else parsed.data == HEAL and not code


def test_an_answer_without_a_fence_is_not_guessed_from_prose() -> None:
    """T29: no text outside the block is a result, however sure it sounds."""
    log = f"status: DONE\n```json\n{GOOD}\n```\nTASK_RESULT_V2: {GOOD}\n<<<TASK_RESULT>>>\n{GOOD}\n<<<END>>>\n"
    assert verdict(log) == "NO_SENTINEL"


def test_a_body_over_the_limit_is_refused() -> None:
    """T07: eight mebibytes are parsed, more is not even loaded."""
    size = 8 * 1024 * 1024
    assert verdict(block(result("x" * (size - 200)))).startswith("xxx")
    parsed = parse_result(block(result("x" * size)).encode())
    assert isinstance(parsed, Refused) and parsed.code == "INVALID_JSON" and "larger" in parsed.message


@pytest.mark.parametrize(
    "unit",
    ["[],", '"",', "{},", '{"a":', "/*", "//\n", "/**/", ",", '\\"', "```\n", "1,", "\u0085", "\x01", "[", '"k":1,'],
)
def test_a_hostile_body_is_judged_quickly(unit: str) -> None:
    """T07: bounded in time on any input."""
    body = unit * (3_000_000 // len(unit.encode()))
    began = time.process_time()
    assert verdict(block("[" + body)) == "INVALID_JSON"
    assert time.process_time() - began < 3


def test_a_log_is_read_from_its_file(tmp_path: Path) -> None:
    """T06: the parser takes the log's path."""
    log = tmp_path / "a.worker.1.log"
    log.write_text(block(GOOD))
    assert isinstance(parse_result(log, task_id="a"), Parsed)


def test_a_missing_or_odd_log_is_an_error_with_a_sentence(tmp_path: Path) -> None:
    """T07: missing, directory, pipe: said at once, never a hang or a traceback."""
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "none", tmp_path / "none" / "x", Path("a\0b")):
        with pytest.raises(NotFoundError, match="no such log"):
            parse_result(path)
    for path in (tmp_path, tmp_path / "pipe"):
        with pytest.raises(GangerError, match="not a regular file"):
            parse_result(path)


@pytest.mark.parametrize("mark", [START, END, HEAL_START, HEAL_END])
def test_neutralised_text_cannot_answer(mark: str) -> None:
    """T07: logs fed back into a prompt, echoed or coloured, hold no sentinel any more."""
    for text in (
        mark,
        mark * 3,
        f"<<<{mark}>>>",
        mark[:5] + "\x1b[0m" + mark[5:],
        mark[:5] + "\r\x00\u0085" + mark[5:],
    ):
        safe = neutralise(f"a {text} b")
        assert mark not in safe and neutralise(safe) == safe
        assert mark.strip("<>") in safe
    assert neutralise("plain \x1b[1m text\r\n <<< >>>") == "plain \x1b[1m text\r\n <<< >>>"


def test_a_neutralised_block_is_no_block() -> None:
    """T07: an echo of neutralised text is not taken for an answer."""
    assert verdict(neutralise(block(GOOD))) == "NO_SENTINEL"
