"""Programs that only talk to a terminal: a scripted one, on a real terminal, in every mood."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ganger.agents import pty_talk
from ganger.agents.pty import PtyAgent
from ganger.agents.pty_talk import Look, Rule
from ganger.agents.pty_transcript import Transcript, gist
from ganger.agents.screen import Screen
from ganger.agents.screen_rows import joined
from ganger.agents.settings import AgentSettings, TerminalSettings
from ganger.contracts.parser import Parsed, parse_result
from ganger.core.signs import Denied, Heard, Over
from ganger.errors import InputError
from ganger.ports import AttemptContext

STAND_IN = Path(__file__).with_name("interactive_stand_in.py")
EXAMPLE = """<<<TASK_RESULT_V2>>>
{"contract_version":"2.0","task_id":"a","status":"DONE","summary":"only an example"}
<<<END_TASK_RESULT_V2>>>"""
PROMPT = f"Do it.\n\nEnd like this, with your own words:\n{EXAMPLE}\nDo not run anything (y/n)? Thanks. ünï 日本\n"
TRUST = {r"Do you trust the files": "1"}
# Long where nothing is to happen by the clock.
PATIENT = TerminalSettings(ready="type a task|^task>", idle_sec=30, settle_sec=0.2, columns=100, rows=40)
HASTY = replace(PATIENT, idle_sec=0.7)
LINES = replace(PATIENT, submit="\r.\r")


class Told:
    """What one conversation came to."""

    def __init__(self, heard: Heard, code: int, journal: Path, log: Path) -> None:
        self.heard, self.code, self.text = heard, code, log.read_text(encoding="utf-8")
        noted = [json.loads(line) for line in journal.read_text().splitlines()] if journal.exists() else []
        self.tasks = [text for what, text in noted if what == "task"]
        self.keys = [text for what, text in noted if what == "key"]
        self.pids = [int(text) for what, text in noted if what in ("pid", "child")]
        self.over = heard.over or Over("error", "no last word")

    @property
    def summary(self) -> str:
        parsed = parse_result(self.heard.answer.encode(), task_id="a")
        return parsed.value.summary if isinstance(parsed, Parsed) else str(parsed)

    @property
    def lines(self) -> list[str]:
        return [line for line in self.text.splitlines() if not line.startswith('{"ganger"')]


def agent(root: Path, terminal: TerminalSettings, *words: str) -> PtyAgent:
    argv = (sys.executable, str(STAND_IN), "--journal", str(root / "journal"), *words)
    return PtyAgent("mine", AgentSettings("pty", argv=argv, terminal=terminal), root, os.environ)


def context(root: Path, prompt: str) -> AttemptContext:
    (root / "prompt.md").write_text(prompt, encoding="utf-8")
    return AttemptContext("r1", "a", 1, "worker", root, root / "prompt.md", root / "a.log", 60.0, home=root)


def start(mine: PtyAgent, root: Path, prompt: str = PROMPT) -> subprocess.Popen[bytes]:
    launch = mine.prepare(context(root, prompt))
    with open(root / "prompt.md", "rb") as given, open(root / "a.log", "wb") as log:
        return subprocess.Popen(
            launch.argv,
            stdin=given,
            stdout=log,
            stderr=log,
            env=dict(launch.env),
            cwd=launch.cwd,
            start_new_session=True,
        )


def talk(root: Path, terminal: TerminalSettings, *words: str, prompt: str = PROMPT) -> Told:
    mine = agent(root, terminal, *words)
    process = start(mine, root, prompt)
    try:
        code = process.wait(60)
    finally:
        process.kill()
        process.wait()
    return Told(mine.hear(root / "a.log"), code, root / "journal", root / "a.log")


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


@pytest.mark.parametrize("look", ["tui", "screen", "line"])
def test_a_task_is_typed_and_its_answer_is_read_from_the_screen(tmp_path: Path, look: str) -> None:
    """T25: redrawn in place, on the other screen, and line by line; the example in the echoed prompt is no answer."""
    told = talk(tmp_path, LINES if look == "line" else PATIENT, "--look", look, "spin:0.3", "say:at work", "answer")
    assert told.summary.startswith("the real answer"), told.text
    assert (told.code, told.over.how) == (0, "success")
    assert told.tasks[0] == PROMPT.rstrip("\n")
    assert not any(is_alive(pid) for pid in told.pids)


def test_the_transcript_holds_each_line_once_and_no_terminal_codes(tmp_path: Path) -> None:
    """T25: whatever was redrawn how often."""
    told = talk(tmp_path, PATIENT, "say:first words", "spin:0.6", "say:second words", "spin:0.6", "answer")
    assert [told.lines.count(line) for line in ("first words", "second words", "Stand-in 1.0")] == [1, 1, 1]
    assert "\x1b" not in told.text and "\r" not in told.text
    assert sum("Thinking" in line for line in told.lines) <= 2


@pytest.mark.parametrize("style", ["framed", "bullet"])
def test_a_block_drawn_with_frames_or_bullets_is_read(tmp_path: Path, style: str) -> None:
    """T25: also where the program broke its text into lines of its own."""
    told = talk(tmp_path, PATIENT, "--look", "screen", "--style", style, "answer")
    assert told.summary == ("the real answer " + "with a long text " * 12).strip()


def test_trust_and_permission_questions_get_their_keys_once_each(tmp_path: Path) -> None:
    """T25: each appearance of a question is answered once, the prompt's own question not at all."""
    terminal = replace(PATIENT, answers={**TRUST, r"Run the command": "1"})
    told = talk(tmp_path, terminal, "--trust", "ask:make", "ask:make", "spin:0.4", "answer")
    assert told.keys == ["1", "1", "1"]
    assert told.heard.denied == [] and told.summary.startswith("the real answer")
    assert len(told.tasks) == 2


def test_questions_in_lines_are_answered_once_each_though_old_ones_stay_in_sight(tmp_path: Path) -> None:
    """T25: the same question again is a new one."""
    terminal = replace(LINES, answers={r"Run the command .*\[y/N\]": "y\r"})
    told = talk(tmp_path, terminal, "--look", "line", "yn:make", "yn:make", "answer")
    assert told.keys == ["y", "y"] and told.summary.startswith("the real answer")


def test_a_question_nobody_foresaw_is_denied_and_the_second_ends_it(tmp_path: Path) -> None:
    """T25 D12: a refused permission is told at once; nothing is typed into the second, where Enter might mean yes."""
    told = talk(tmp_path, PATIENT, "ask:rm -rf", "say:and now", "yn:curl", "answer")
    assert [denied.tool for denied in told.heard.denied] == ["question", "question"]
    assert "curl" in told.heard.denied[1].about
    assert told.keys == ["\x1b"] and told.over.how == "error" and told.code == 1


def test_one_denied_question_does_not_end_it(tmp_path: Path) -> None:
    """T25 D12: a program that can go without gives its answer."""
    told = talk(tmp_path, PATIENT, "ask:rm -rf", "answer")
    assert len(told.heard.denied) == 1 and told.summary.startswith("the real answer")


def test_a_program_that_asks_for_ever_is_ended(tmp_path: Path) -> None:
    """T25: the number of answers is bounded."""
    told = talk(tmp_path, replace(PATIENT, answers={r"Run the command": "1"}, most_answers=5), "ask-forever")
    assert told.keys == ["1"] * 5
    assert told.over.how == "error" and "again and again" in told.over.text


def test_one_that_is_quiet_is_called_and_goes_on(tmp_path: Path) -> None:
    """T25: a finite rescue; a spinner is no progress."""
    told = talk(tmp_path, replace(HASTY, rescue_text="Go on."), "hang", "answer")
    assert told.tasks[1] == "Go on." and told.summary.startswith("the real answer")


def test_calls_are_finite(tmp_path: Path) -> None:
    """T25: after the last one it is over."""
    told = talk(tmp_path, replace(HASTY, rescues=1, rescue_text="Go on."), "mute", "mute")
    assert told.tasks.count("Go on.") == 1
    assert told.over.how == "error" and "called 1 times" in told.over.text


def test_what_it_showed_last_says_why(tmp_path: Path) -> None:
    """T25 D12 G04: a limit or a missing login on the screen is recognised."""
    quick = replace(HASTY, rescues=0)
    told = talk(tmp_path, quick, "say:You've hit your usage limit. Try again in 2 hours.", "mute")
    assert told.heard.limited is not None and told.heard.limited.reset_at is not None
    (tmp_path / "journal").unlink()
    told = talk(tmp_path, quick, "say:Not logged in. Please run /login", "crash")
    assert told.heard.login and "exit code 3" in told.over.text


def test_while_it_says_that_it_is_busy_it_is_not_called(tmp_path: Path) -> None:
    """T25: the operator's word for work goes before the clock."""
    told = talk(tmp_path, replace(HASTY, busy=r"Thinking \("), "spin:2", "answer")
    assert told.tasks == [PROMPT.rstrip("\n"), "/exit"]


def test_done_and_quiet_without_a_block_is_an_end_with_what_was_said(tmp_path: Path) -> None:
    """T25: the text goes to the parser, which says what is missing; echoes are left out."""
    told = talk(tmp_path, replace(HASTY, done="All finished"), "say:All finished, sir", "mute")
    assert told.over.how == "success" and "All finished, sir" in told.over.text
    assert "only an example" not in told.over.text


def test_one_that_crashes_is_told_from_one_that_answered_and_left(tmp_path: Path) -> None:
    """T25: the answer counts, however the program ended."""
    told = talk(tmp_path, PATIENT, "say:oh no", "crash")
    assert told.over.how == "error" and "oh no" in told.over.text and told.code == 1
    (tmp_path / "journal").unlink()
    assert talk(tmp_path, PATIENT, "answer", "crash").summary.startswith("the real answer")


def test_nothing_is_left_of_one_that_ignores_every_signal(tmp_path: Path) -> None:
    """T25: nor of what it started in a session of its own."""
    told = talk(tmp_path, replace(PATIENT, quit=""), "--deaf", "child", "answer")
    assert told.code == 0 and len(told.pids) == 2
    assert not any(is_alive(pid) for pid in told.pids)


def test_a_stop_ends_the_program_too(tmp_path: Path) -> None:
    """T25: SIGTERM to the one that talks; its last word is that it was ended."""
    mine = agent(tmp_path, PATIENT, "--deaf", "child", "mute")
    process = start(mine, tmp_path)
    try:
        _wait_for(tmp_path / "journal", '["child"')
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 143
    finally:
        process.kill()
        process.wait()
    told = Told(mine.hear(tmp_path / "a.log"), 143, tmp_path / "journal", tmp_path / "a.log")
    assert told.over.how == "aborted" and not any(is_alive(pid) for pid in told.pids)


def _wait_for(file: Path, text: str) -> None:
    watch = ["sh", "-c", 'until grep -qF -- "$2" "$1" 2>/dev/null; do sleep 0.05; done', "-", str(file), text]
    subprocess.run(watch, check=True, timeout=30)


def test_one_that_never_gets_ready_is_given_up(tmp_path: Path) -> None:
    """T25: the prompt is not typed into something else."""
    told = talk(tmp_path, replace(PATIENT, ready="never shown", ready_sec=1), "answer")
    assert told.over.how == "error" and "not ready" in told.over.text and told.tasks == []


def test_a_missing_program_is_told(tmp_path: Path) -> None:
    """T25: nothing was run."""
    given = AgentSettings("pty", argv=("/nowhere/at-all",), terminal=PATIENT)
    mine = PtyAgent("mine", given, tmp_path, os.environ)
    assert not mine.healthcheck().ready
    assert start(mine, tmp_path).wait(30) == 127
    assert mine.hear(tmp_path / "a.log").over == Over(
        "usage", "program '/nowhere/at-all' cannot be started: No such file or directory"
    )


def test_a_long_prompt_arrives_whole_where_the_terminal_takes_lines_only(tmp_path: Path) -> None:
    """T25: a terminal drops what is longer than 4 kB in one line; long ones are cut at a space."""
    prompt = "\n".join(["word " * 3000, "x" * 5000, "end"])
    told = talk(tmp_path, LINES, "--look", "line", "answer", prompt=prompt)
    assert "".join(told.tasks[0].split()) == "".join(prompt.split())


def test_settings_that_make_no_sense_are_refused(tmp_path: Path) -> None:
    """T25: before anything runs, and all at once."""
    terminal = TerminalSettings(ready="(", answers={"[": "y"})
    with pytest.raises(InputError) as refused:
        PtyAgent("mine", AgentSettings("pty", terminal=terminal), tmp_path, {})
    assert [fault.path for fault in refused.value.faults] == [
        "agents.mine.argv",
        "agents.mine.terminal.ready",
        "agents.mine.terminal.answers.[",
    ]


def test_no_secret_is_in_an_argument_and_keys_are_passed_only_when_named(tmp_path: Path) -> None:
    """T25 G06: the environment holds what the operator named."""
    environ = {"PATH": os.environ["PATH"], "MY_API_KEY": "canary-1", "OTHER_TOKEN": "canary-2"}
    given = AgentSettings("pty", argv=("sh",), env=("MY_API_KEY",))
    launch = PtyAgent("mine", given, tmp_path, environ).prepare(context(tmp_path, "x"))
    assert "canary" not in " ".join(launch.argv)
    assert [value for value in launch.env.values() if "canary" in value] == ["canary-1"]


# --- the harness itself: with the rule taken out, the bug shows ------------------------------------------------------


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


def test_a_block_that_was_there_before_the_task_is_no_answer() -> None:
    """T25: an earlier conversation that the program shows again."""
    transcript = Transcript(lambda line: None)
    transcript.begin(EXAMPLE.splitlines())
    assert transcript.answer(EXAMPLE.splitlines()) == ""
    assert "new words" in transcript.answer(EXAMPLE.replace("only an example", "new words").splitlines())


def test_content_that_a_program_broke_into_lines_is_not_guessed() -> None:
    """T25: a file's text is never put together from what a screen shows of it."""
    body = ['{"writes": [{"path": "a", "content": "one two', 'three"}]}']
    block = ["<<<TASK_RESULT_V2>>>", *body, "<<<END_TASK_RESULT_V2>>>"]
    assert _transcript("").answer(block) == "\n".join(block)


def test_a_long_answer_that_scrolled_off_is_whole() -> None:
    """T25: a block higher than the screen, with lines wider than it."""
    screen, told = Screen(40, 5), list[str]()
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


def _look(*lines: str, **more: Any) -> Look:
    first = more.get("first", 0)
    return Look(tuple(range(first, first + len(lines))), lines, "\n".join(lines), **{"first": 0, **more})


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
def test_one_appearance_of_a_question_is_one(looks: list[Look], answers: int) -> None:
    """T25: still there, moved, gone and back, one more below, scrolled away, another in its place."""
    rule = Rule(pty_talk._pattern(r"ok\?"), b"y")
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
        ("I would ask whether you want to proceed, but I will not.", False),
        ("Yes, the tests pass", False),
        ("a list: 1. Yesterday", False),
    ],
)
def test_a_question_is_known_by_its_look(line: str, asks: bool) -> None:
    """T25 D12: prose that asks is none."""
    assert bool(_look(line).hits(pty_talk._pattern(pty_talk.ASKS))) is asks


def test_denied_questions_are_signs_the_engine_knows() -> None:
    """T25 D12: the same sign as of every other agent."""
    heard = Heard()
    heard.add([Denied("question", "x")])
    assert len(heard.denied) == 1
