"""What a screen's lines mean: echo or answer, one question or two. With a rule taken out, its bug shows."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ganger.agents.pty import driver
from ganger.agents.pty.driver import PromptRule, ScreenLook
from ganger.agents.pty.screen import TerminalScreen, joined
from ganger.agents.pty.transcript import Transcript, gist

EXAMPLE = """<<<TASK_RESULT_V2>>>
{"contract_version":"2.0","task_id":"a","status":"DONE","summary":"only an example"}
<<<END_TASK_RESULT_V2>>>"""
PROMPT = f"Do it.\n\nEnd like this, with your own words:\n{EXAMPLE}\nDo not run anything (y/n)? Thanks. ünï 日本\n"


def _transcript(typed: str) -> Transcript:
    transcript = Transcript(lambda line: None)
    transcript.typed(typed)
    transcript.begin([])
    return transcript


def test_without_the_echo_rule_the_prompts_example_would_be_the_answer() -> None:
    """T25: what the rule is there for, and that these tests would see it missing."""
    lines = ["> Do it.", *(f"│ {line}" for line in EXAMPLE.splitlines()), "thinking"]
    assert "only an example" in _transcript("something else").answer(lines)
    assert _transcript(PROMPT).answer(lines) == ""
    assert _transcript(PROMPT).answer([line[:60] for line in lines]) == ""


@pytest.mark.parametrize("mark", ["<<<END_TASK_RESULT_V2>>>", "<<<TASK_RESULT_V2>>>", "<<<TASK_RESULT_V2>"])
def test_a_mark_behind_the_block_on_the_screen_is_no_part_of_it(mark: str) -> None:
    """T07 T25: the last complete block counts."""
    assert _transcript("").answer([*EXAMPLE.splitlines(), "bye", mark]) == EXAMPLE


def test_a_block_that_was_there_before_the_task_is_no_answer() -> None:
    """T25: an earlier conversation that the program shows again."""
    transcript = Transcript(lambda line: None)
    transcript.begin(EXAMPLE.splitlines())
    assert transcript.answer(EXAMPLE.splitlines()) == ""
    assert "new words" in transcript.answer(EXAMPLE.replace("only an example", "new words").splitlines())


@pytest.mark.parametrize(
    ("lines", "summary"),
    [
        (['  {"summary": "one two', '  three"}'], "one two three"),
        (['{"summary": "abc', "defghijklmnopqr", 'stu"}'], "abc defghijklmnopqr stu"),
        (['{"summary": "abcd', "efghijklmnopqrstu", 'vw"}'], "abcdefghijklmnopqrstuvw"),
        (['{"summary": "a \\"quoted', 'word\\" here"}'], 'a "quoted word" here'),
    ],
)
def test_a_text_that_a_program_broke_into_lines_is_put_together(lines: list[str], summary: str) -> None:
    """T25: at spaces, or where lines of one length were full."""
    block = _transcript("").answer(["<<<TASK_RESULT_V2>>>", *lines, "<<<END_TASK_RESULT_V2>>>"])
    assert json.loads(block.split(">>>", 1)[1].rsplit("<<<", 1)[0]) == {"summary": summary}


def test_content_that_a_program_broke_into_lines_is_not_guessed() -> None:
    """T25: a file's text is never put together from what a screen shows of it."""
    body = ['{"writes": [{"path": "a", "content": "one two', 'three"}]}']
    block = ["<<<TASK_RESULT_V2>>>", *body, "<<<END_TASK_RESULT_V2>>>"]
    assert _transcript("").answer(block) == "\n".join(block)


def test_a_long_answer_that_scrolled_off_is_whole() -> None:
    """T25: a block higher than the screen, with lines wider than it."""
    screen, told = TerminalScreen(40, 5), list[str]()
    transcript = Transcript(told.append)
    transcript.begin([])
    body = json.dumps({"summary": "w" * 300, "list": list(range(40))}, indent=1)
    for line in ["<<<TASK_RESULT_V2>>>", *body.splitlines(), "<<<END_TASK_RESULT_V2>>>", "$"]:
        screen.feed(line.encode() + b"\r\n")
        transcript.gone(screen.take_gone())
    visible = [line for _, line in joined(screen.visible())]
    assert json.loads(transcript.answer(visible).split(">>>", 1)[1].rsplit("<<<", 1)[0]) == json.loads(body)


def test_spinners_clocks_and_counters_say_nothing_new() -> None:
    """T25: only what is said counts as progress."""
    assert gist("⠋ Thinking… (12s · 1.2k tokens · 40%)") == gist("⠙ Thinking (59s · 3 k tokens · 41%) ")
    assert gist("│ x │") == gist("x") != gist("y")
    assert gist("|") == gist("/") == "#" and gist("  ") == ""


def _look(*lines: str, **more: Any) -> ScreenLook:
    first = more.get("first", 0)
    return ScreenLook(tuple(range(first, first + len(lines))), lines, "\n".join(lines), **{"first": 0, **more})


@pytest.mark.parametrize(
    ("looks", "answers"),
    [
        ([_look("ok?"), _look("ok?")], 1),
        ([_look("ok?"), _look("text", "ok?", still=False), _look("done")], 1),
        ([_look("ok?"), _look("text", "ok?")], 2),
        ([_look("ok?"), _look("text"), _look("ok?")], 2),
        ([_look("ok?"), _look("ok? y", "text")], 1),
        ([_look("ok?"), _look("ok? y", "ok?")], 2),
        ([_look("a", "ok?"), _look("b", "ok?", first=9)], 2),
        ([_look("ok?", redrawn=True), _look("ok?", redrawn=True)], 1),
        ([_look("a", "ok?", redrawn=True), _look("b", "ok?", redrawn=True)], 2),
        ([_look("really ok?"), _look("truly ok?")], 2),
        ([_look("text")], 0),
    ],
)
def test_one_appearance_of_a_question_is_one(looks: list[ScreenLook], answers: int) -> None:
    """T25: still there, moved, gone and back, one more below, scrolled away, another in its place."""
    rule = PromptRule(driver._pattern(r"ok\?"), b"y")
    assert sum(rule.is_new(look.hits(rule.pattern), look) for look in looks) == answers


@pytest.mark.parametrize(
    ("line", "asks"),
    [
        ("Run `make`? [y/N]", True),
        ("Proceed (yes/no)", True),
        ("❯ 1. Yes, proceed", True),
        ("│ 1) Allow once", True),
        ("Press Enter to continue", True),
        ("Do you trust the files in this folder?", True),
        ("Enter to confirm · Esc to cancel", True),
        ("I would ask whether you want to proceed, but I will not.", False),
        ("Yes, the tests pass", False),
        ("a list: 1. Yesterday", False),
    ],
)
def test_a_question_is_known_by_its_look(line: str, asks: bool) -> None:
    """T25 D12: prose that asks is none."""
    assert bool(_look(line).hits(driver._pattern(driver.ASKS))) is asks
