"""`ganger parse events`: what Ganger understands of an agent's output, line by line and in all."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.cli_project import Answer, ganger

INIT = {"type": "system", "subtype": "init", "session_id": "1e1b", "model": "claude-opus-5-5"}
BLOCK = '<<<TASK_RESULT_V2>>>\n{"status": "DONE"}\n<<<END_TASK_RESULT_V2>>>'
RESULT = {
    "type": "result",
    "subtype": "success",
    "is_error": False,
    "session_id": "1e1b",
    "usage": {"input_tokens": 1200, "output_tokens": 34},
    "total_cost_usd": 0.00548,
    "permission_denials": [],
    "terminal_reason": "completed",
    "result": BLOCK,
}
LIMIT = {
    **RESULT,
    "is_error": True,
    "terminal_reason": "api_error",
    "api_error_status": 429,
    "result": "API Error: Request rejected (429) \x1b[31mlimit\x1b[0m",
}


def parsed(folder: Path, *lines: object, words: tuple[str, ...] = ("--json",)) -> Answer:
    texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
    (folder / "x.log").write_text("".join(f"{text}\n" for text in texts))
    return ganger("parse", "events", "--agent", "claude", "x.log", *words, cwd=folder)


def test_every_sign_is_shown_and_what_they_come_to(tmp_path: Path) -> None:
    """T24 T26: session, model, tokens, cost, how it ended."""
    answer = parsed(tmp_path, "a warning on stderr", INIT, RESULT).json
    assert [sign["sign"] for sign in answer["signs"]][:2] == ["session", "model"]
    heard = answer["heard"]
    assert (heard["session"], heard["model"], heard["over"]["how"]) == ("1e1b", "claude-opus-5-5", "success")
    assert (heard["tokens"]["input"], heard["tokens"]["output"], heard["tokens"]["usd"]) == (1200, 34, 0.00548)
    assert heard["answer"] == BLOCK and heard["without_result"] is None


def test_trouble_is_named_by_the_class_it_would_have(tmp_path: Path) -> None:
    """T24 D12: what would follow if there were no result."""
    assert parsed(tmp_path, INIT, LIMIT).json["heard"]["without_result"] == "quota"


def test_people_get_a_line_for_each_sign(tmp_path: Path) -> None:
    """T26: then the sum; colours of the agent's reach no terminal."""
    answer = parsed(tmp_path, INIT, LIMIT, words=())
    assert answer.code == 0 and "\x1b" not in answer.out
    assert answer.out.startswith("session") and "\n---\n" in answer.out
    assert "if no result  quota" in answer.out and "1200 in, 34 out, $0.0055" in answer.out


@pytest.mark.brief(2)
@pytest.mark.parametrize(
    "text", ["", "\n\n", "{", "[]", '{"type": 3}', "\x00\xff", '{"type": "result"}', "x" * 100_000]
)
def test_output_that_makes_no_sense_tells_nothing_and_is_no_error(tmp_path: Path, text: str) -> None:
    """T24 T29: whatever a program prints."""
    answer = parsed(tmp_path, text)
    assert answer.code == 0 and answer.json["heard"]["session"] is None


def test_an_agent_without_a_form_of_its_own_has_no_signs(tmp_path: Path) -> None:
    """T24: `command` tells what it used, and nothing else."""
    (tmp_path / "x.log").write_text('working\nGANGER_USAGE {"usd": 0.5}\n')
    answer = ganger("parse", "events", "--agent", "command", "x.log", "--json", cwd=tmp_path).json
    assert answer["signs"] == [] and answer["heard"]["tokens"]["usd"] == 0.5


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("--agent", "telepathy", "x.log"), "UNKNOWN_AGENT_KIND"),
        (("--agent", "claude", "missing.log"), ""),
        (("x.log",), ""),
    ],
)
def test_a_wrong_question_is_refused_with_a_sentence(tmp_path: Path, words: tuple[str, ...], code: str) -> None:
    """T26: an unknown kind, a log that is not there, no kind."""
    (tmp_path / "x.log").write_text("")
    answer = ganger("parse", "events", *words, cwd=tmp_path)
    assert answer.code != 0 and answer.out == "" and code in answer.err


@pytest.mark.brief(3)
@pytest.mark.parametrize("kind", ["claude", "codex", "opencode", "agent", "gemini", "qwen", "copilot", "acp", "pty"])
def test_every_kind_reads_a_log_without_its_program(tmp_path: Path, kind: str) -> None:
    """T24: on a machine where nothing is installed."""
    (tmp_path / "x.log").write_text("one line\n")
    answer = ganger("parse", "events", "--agent", kind, "x.log", "--json", cwd=tmp_path, env={"PATH": "/nowhere"})
    assert answer.code == 0 and answer.json["agent"] == kind
