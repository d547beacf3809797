"""Cursor's agent by its documentation: a stand-in plays the program, which cannot be installed here."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from ganger.agents.programs.cursor import CursorAgent, CursorReader
from ganger.agents.settings import AgentSettings
from ganger.agents.streams import hear
from ganger.contracts.parser import Parsed
from ganger.core.signs import Denied, Limited, Over, Tokens
from ganger.errors import InputError
from tests.agents.installed import Installed
from tests.agents.real import KEY, Ran, Trial

HERE = Path(__file__).parent
STAND_IN = Installed("agent", "stand-in", (sys.executable, str(HERE / "cursor_stand_in.py")), "/usr/bin:/bin")


def trial(folder: Path, **environ: str) -> Trial:
    return Trial(folder, CursorAgent, STAND_IN, environ=environ or {"CURSOR_API_KEY": KEY})


def play(folder: Path, do: str, **more: Any) -> Ran:
    return trial(folder).run(f'STAND-IN: {{"do": "{do}"}}', **more)


def test_the_agent_edits_a_file_and_its_answer_is_found(tmp_path: Path) -> None:
    """T24 G04: session, model, tools, tokens and the result block come from the stream."""
    place = trial(tmp_path)
    ran = place.run("make a file", model="gpt-5", permissions="full")
    result = place.agent().extract_result(ran.log, "T1")
    assert isinstance(result, Parsed) and result.value.status == "DONE"
    assert (place.workspace / "made.txt").exists() and place.leaks(ran) == []
    assert (ran.heard.model, ran.heard.tools, ran.heard.tokens) == ("gpt-5", 1, Tokens(1200, 34, cache_read=1000))


def test_a_session_is_continued(tmp_path: Path) -> None:
    """H05: the next process knows what the one before did."""
    place = trial(tmp_path)
    first = place.run("make a file")
    second = place.run("go on", session=first.heard.session)
    assert second.heard.session == first.heard.session
    assert "Turns before: 1." in second.heard.answer


def test_a_session_that_is_gone_is_told_apart(tmp_path: Path) -> None:
    """H05: then a new one is begun."""
    over = trial(tmp_path).run("go on", session="nowhere").heard.over
    assert over is not None and over.how == "no_session"


def test_commands_are_refused_without_the_right_to_all(tmp_path: Path) -> None:
    """D12: each refused command is a denial."""
    ran = play(tmp_path, "shell", permissions="edit")
    assert ran.heard.denied == [Denied("shell", "touch one.txt"), Denied("shell", "touch two.txt")]
    assert play(tmp_path, "shell", permissions="full").heard.denied == []


def test_a_limit_is_heard_with_the_day_it_ends(tmp_path: Path) -> None:
    """G04 D12: the words on stderr name the day."""
    limited = play(tmp_path, "limit").heard.limited
    assert limited is not None and limited.final and limited.reset_at == 1797465600.0


def test_a_missing_login_is_heard(tmp_path: Path) -> None:
    """D12: nobody is logged in, or the key is not set."""
    assert "Authentication required" in trial(tmp_path, LANG="C").run("make a file").heard.login
    assert play(tmp_path, "login").heard.login


@pytest.mark.parametrize(("do", "how"), [("down", "network"), ("model", "usage")])
def test_how_it_ended_is_told_apart(tmp_path: Path, do: str, how: str) -> None:
    """D12: a broken connection, and a model it does not have."""
    over = play(tmp_path, do).heard.over
    assert over is not None and over.how == how


def test_an_error_result_is_no_success() -> None:
    """T24: `is_error` counts, whatever else the last event says."""
    line = b'{"type":"result","subtype":"success","is_error":true,"result":"[resource_exhausted] Too many requests"}'
    signs = list(CursorReader().line(line))
    assert isinstance(signs[-1], Limited)


def test_a_recorded_stream_is_understood() -> None:
    """T24: a stream as the documentation prints it, with kinds of events nobody knows."""
    heard = hear(CursorReader(), HERE / "streams" / "cursor-documented.jsonl")
    assert (heard.session, heard.model, heard.tools) == ("c6b62c6f-7ead-4fd6-9922-e952131177ff", "Claude 4 Sonnet", 3)
    assert heard.over is not None and heard.over.how == "success" and heard.denied == [Denied("shell", "rm -rf build")]


def test_it_takes_no_other_endpoint() -> None:
    """T24: a setting that would be passed over is refused."""
    with pytest.raises(InputError, match="base_url"):
        CursorAgent("c", AgentSettings("agent", base_url="http://127.0.0.1:1"), HERE, {})


def test_noise_is_nothing() -> None:
    """T24: a reader never raises."""
    reader = CursorReader()
    for line in (b"", b"{", b"[]", b'{"type": 3}', b'{"type":"tool_call"}', b'{"type":"result"}', b"\xff\xfe"):
        assert all(isinstance(sign, Over) or sign for sign in reader.line(line))
