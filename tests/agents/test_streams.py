"""JSON in the lines of a log: found behind other words, and given up before it costs more than the line is long."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ganger.agents.programs.claude import ClaudeReader
from ganger.agents.programs.codex import CodexReader
from ganger.agents.programs.copilot import CopilotReader
from ganger.agents.programs.gemini import GeminiReader
from ganger.agents.programs.opencode import OpencodeReader
from ganger.agents.programs.qwen import QwenReader
from ganger.agents.streams import read_json
from ganger.ports.agents import Reader

READERS: list[Callable[[], Reader]] = [
    *(ClaudeReader, CodexReader, CopilotReader),
    *(GeminiReader, OpencodeReader, QwenReader),
]
TRACED = b"2026-11-15T17:22:06.729170Z ERROR codex_core::tools::router: "
BEGINNINGS = [
    *(TRACED + b"error=", b"2026-11-15T17:22:06.729170Z INFO codex_otel.trace_safe: aaaaaaaa", b"Attempt 1 failed "),
    *(b'level=ERROR message="stream error" small=true', b" level=INFO  message=created id=ses_a "),
    *(b" level=INFO  message=stream providerID=a modelID=b ", b" level=INFO  message=evaluated permission=a pattern="),
]


@pytest.mark.parametrize(
    "line", [b'{"a": 1}', b'Warning: no colours{"a": 1}', b'(node) { code: 1 } {"a": 1}', b'{"type":"x", {"a": 1}']
)
def test_an_object_is_found_behind_other_words(line: bytes) -> None:
    """T24: the streams of a program share one log."""
    assert read_json(line) == {"a": 1}


@pytest.mark.parametrize("piece", [b'{"a":1},', b'{"a":', b"{", b'"{"'])
def test_a_long_line_that_is_no_object_is_soon_given_up(piece: bytes) -> None:
    """T24: tried from each of its million places, it would keep the lead from its work for hours."""
    assert read_json(b"said " + piece * (4_000_000 // len(piece))) is None


@pytest.mark.parametrize("reader", READERS)
def test_a_long_line_of_beginnings_of_what_is_looked_for_is_soon_given_up(reader: Callable[[], Reader]) -> None:
    """T24: an agent writes what it likes into its log, and the lead must come to the end of it."""
    for words in BEGINNINGS:
        head, _, last = words.rpartition(b": ")
        line = (head + b": " if head else b"") + last * (2_000_000 // len(last))
        assert list(reader().line(line)) == []
