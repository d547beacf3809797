"""Programs that only talk to a terminal: a scripted one, on a real terminal, in every mood."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from ganger.agents.pty.agent import PtyAgent
from ganger.agents.settings import AgentSettings, TerminalSettings
from ganger.contracts.parser import Parsed, parse_result
from ganger.core.signs import Heard, Over
from ganger.errors import InputError
from ganger.ports.agents import AttemptContext
from tests.patience import stretched

STAND_IN = Path(__file__).with_name("interactive_stand_in.py")
EXAMPLE = """<<<TASK_RESULT_V2>>>
{"contract_version":"2.0","task_id":"a","status":"DONE","summary":"only an example"}
<<<END_TASK_RESULT_V2>>>"""
PROMPT = f"Do it.\n\nEnd like this, with your own words:\n{EXAMPLE}\nDo not run anything (y/n)? Thanks. ünï 日本\n"
TRUST = {r"Do you trust the files": "1"}
# Long where nothing is to happen by the clock.
PATIENT = TerminalSettings(ready="type a task|^task>", idle_sec=30, settle_sec=0.2, columns=100, rows=40)
HASTY = replace(PATIENT, idle_sec=1.2)
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


def start(mine: PtyAgent, root: Path, prompt: str = PROMPT, planted: str = "") -> subprocess.Popen[bytes]:
    launch = mine.prepare(context(root, prompt))
    if planted:
        at = launch.argv.index("-m")
        launch = replace(launch, argv=(*launch.argv[:at], "-c", planted, *launch.argv[at + 2 :]))
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


def talk(root: Path, terminal: TerminalSettings, *words: str, prompt: str = PROMPT, planted: str = "") -> Told:
    mine = agent(root, terminal, *words)
    process = start(mine, root, prompt, planted)
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


@pytest.mark.brief(1)
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


@pytest.mark.slow
def test_calls_are_finite(tmp_path: Path) -> None:
    """T25: after the last one it is over."""
    told = talk(tmp_path, replace(HASTY, rescues=1, rescue_text="Go on."), "mute", "mute")
    assert told.tasks.count("Go on.") == 1
    assert told.over.how == "error" and "called 1 times" in told.over.text


@pytest.mark.slow
def test_a_lost_enter_is_pressed_again_once(tmp_path: Path) -> None:
    """T25: a prompt that stands there as it was typed needs no rescue, only the key that was lost."""
    told = talk(tmp_path, replace(HASTY, rescues=0), "--lost", "1", "answer")
    assert told.tasks[0] == PROMPT.rstrip("\n") and told.summary.startswith("the real answer")
    (tmp_path / "journal").unlink()
    assert talk(tmp_path, replace(HASTY, rescues=0), "--lost", "2", "answer").over.how == "error"


def test_a_note_goes_with_every_prompt(tmp_path: Path) -> None:
    """T25: for programs that need to be told how to show the block."""
    told = talk(tmp_path, replace(PATIENT, note="In a code block, please."), "answer")
    assert told.tasks[0] == PROMPT.rstrip("\n") + "\n\nIn a code block, please."


@pytest.mark.slow
def test_what_it_showed_last_says_why(tmp_path: Path) -> None:
    """T25 D12 G04: a limit or a missing login on the screen is recognised."""
    quick = replace(HASTY, rescues=0)
    told = talk(tmp_path, quick, "say:You've hit your usage limit. Try again in 2 hours.", "mute")
    assert told.heard.limited is not None and told.heard.limited.reset_at is not None
    (tmp_path / "journal").unlink()
    told = talk(tmp_path, quick, "say:Not logged in. Please run /login", "crash")
    assert told.heard.login and "exit code 3" in told.over.text
    (tmp_path / "journal").unlink()
    work = [f"say:line {n} of the work" for n in range(8)]
    told = talk(tmp_path, quick, *work, "say:Not logged in. Please run /login", "crash")
    assert told.heard.login == ""


@pytest.mark.slow
def test_while_it_says_that_it_is_busy_it_is_not_called(tmp_path: Path) -> None:
    """T25: the operator's word for work goes before the clock."""
    told = talk(tmp_path, replace(HASTY, busy=r"Thinking \("), "spin:3", "answer")
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
    subprocess.run(watch, check=True, timeout=stretched(30))


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
    """T25: the environment holds what the operator named."""
    environ = {"PATH": os.environ["PATH"], "MY_API_KEY": "canary-1", "OTHER_TOKEN": "canary-2"}
    given = AgentSettings("pty", argv=("sh",), env=("MY_API_KEY",))
    launch = PtyAgent("mine", given, tmp_path, environ).prepare(context(tmp_path, "x"))
    assert "canary" not in " ".join(launch.argv)
    assert [value for value in launch.env.values() if "canary" in value] == ["canary-1"]


_WITHOUT_ECHO_RULE = """
import runpy
from ganger.agents.pty.transcript import Transcript
Transcript.typed = lambda self, text: None
Transcript.begin = lambda self, lines: None
runpy.run_module("ganger.agents.pty.driver", run_name="__main__")
"""


def test_a_planted_bug_is_seen_here(tmp_path: Path) -> None:
    """T25: with the echo rule taken out, the example in the prompt is taken for the answer."""
    told = talk(tmp_path, PATIENT, "mute", planted=_WITHOUT_ECHO_RULE)
    assert told.over.how == "success" and "only an example" in told.over.text
