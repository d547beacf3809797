"""What a program in a terminal has shown: each line once, and the result block that is its answer.

The prompt is shown too, anywhere and any number of times, and may contain a block. So all typed text is remembered,
and text that is only a part of it is never an answer.
"""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from difflib import SequenceMatcher

from ganger.agents.pty.screen import ScreenRow
from ganger.contracts.reading.blocks import HEAL_DECISION, TASK_RESULT

_MOST_LINES = 20_000
_LONGEST_PART = 256 * 1024
_LEAST_ECHO = 8
_FRAMES = re.compile(r"^\s*[│┃║▌▐▏▕▎▍╎┆┊|]{1,4} ?|[│┃║▌▐▏▕▎▍╎┆┊|]{1,4}\s*$")
_BULLETS = re.compile(r"^[\s●⏺•◦○⎿└├─╰>❯»✦*+-]{1,40}")
_COUNTERS = re.compile(r"\d+(?::\d\d)+|\d+(?:[.,]\d+)?\s?(?:%|(?:ms|[smhk]|sec\w{0,4}|min\w{0,4}|tokens)\b)")
_FENCES = tuple((fence.start.decode(), fence.end.decode()) for fence in (TASK_RESULT, HEAL_DECISION))


def gist(line: str) -> str:
    """The text of a line, without frames, spinners, clocks and counters; `#` for one with symbols only."""
    letters = "".join(one for one in _COUNTERS.sub("", line) if one.isalnum())
    return letters or ("#" if line.strip() else "")


def unframed(line: str) -> str:
    return _FRAMES.sub("", line)


class Transcript:
    """`write` gets every line once: when it leaves the screen, or when it has settled on it."""

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write
        self._shown: list[str] = []
        self._typed = ""
        self._typed_lines: set[str] = set()
        self._part = ""
        self._since: deque[str] = deque(maxlen=_MOST_LINES)
        self._old: set[str] = set()

    # --- lines --------------------------------------------------------------------------------------------------------

    @property
    def part(self) -> str:
        """The start of a line whose rest is still on the screen."""
        return self._part

    def gone(self, rows: Iterable[ScreenRow]) -> bool:
        """Takes rows that left the screen; whether they ended a line."""
        ended = False
        for row in rows:
            line = self._part + row.text()
            if row.wrapped and len(line) < _LONGEST_PART:
                self._part = line
                continue
            self._part, ended = "", True
            self._since.append(line)
            self._leave(line)
        return ended

    def _leave(self, line: str) -> None:
        key = gist(line)
        if key in self._shown:
            del self._shown[: self._shown.index(key) + 1]
        elif key:
            self._write(line)

    def settle(self, lines: Sequence[str]) -> None:
        """Takes lines that have settled on the screen."""
        told = [(key, line) for line in lines if (key := gist(line))]
        keys = [key for key, _ in told]
        for how, _, _, first, last in SequenceMatcher(None, self._shown, keys, autojunk=False).get_opcodes():
            if how in ("insert", "replace"):
                for _, line in told[first:last]:
                    self._write(line)
        self._shown = keys

    # --- what was typed -----------------------------------------------------------------------------------------------

    def typed(self, text: str) -> None:
        self._typed += _letters(text)
        self._typed_lines |= {_letters(line) for line in text.splitlines()}

    def is_echo(self, line: str) -> bool:
        """Whether a line is only a part of what was typed."""
        letters = _letters(line)
        return bool(letters) and (
            letters in self._typed_lines or (len(letters) >= _LEAST_ECHO and letters in self._typed)
        )

    # --- the answer ---------------------------------------------------------------------------------------------------

    def begin(self, lines: Sequence[str]) -> None:
        """Marks the moment the task was typed: what is shown before is not an answer to it."""
        self._old |= {_letters(block) for block in _blocks(lines)}
        self._since.clear()

    def answer(self, lines: Sequence[str]) -> str:
        """The last complete block since then; empty if there is none."""
        for block in _blocks([*self._since, *lines]):
            if _letters(block) not in self._old and not self._is_echoed(block):
                return block
        return ""

    def said(self, lines: Sequence[str]) -> str:
        """What was shown since the task was typed, without its echo."""
        kept = [line for line in [*self._since, *lines] if line.strip() and not self.is_echo(line)]
        return "\n".join(kept)[-_LONGEST_PART:]

    def _is_echoed(self, block: str) -> bool:
        """Whether a block is an echo, compared by line: a program may draw the prompt with frames, or cut its lines."""
        lines = [letters for line in block.splitlines() if (letters := _letters(line))]
        return all(line in self._typed for line in lines)


def _letters(text: str) -> str:
    return "".join(one for one in text if one.isalnum())


def _blocks(lines: Sequence[str]) -> Iterable[str]:
    """Every complete block, the last one first, without frames. An end without a start is ignored."""
    marked = [(n, _bare(line)) for n, line in enumerate(lines) if "<<<" in line]
    ends: dict[str, int] = {}
    for n, sentinel in reversed(marked):
        fence = next((fence for fence in _FENCES if sentinel in fence), None)
        if fence is None:
            continue
        if sentinel == fence[1]:
            ends[sentinel] = n
        elif (end := ends.pop(fence[1], None)) is not None:
            yield _block([unframed(line).rstrip() for line in lines[n + 1 : end]], fence)


def _bare(line: str) -> str:
    return _BULLETS.sub("", unframed(line)).strip()


def _block(lines: list[str], fence: tuple[str, str]) -> str:
    body = "\n".join(lines)
    if not _is_json(body):
        body = _rejoined(lines) or body
    return f"{fence[0]}\n{body}\n{fence[1]}"


def _rejoined(lines: list[str]) -> str:
    """Joins a text that the program broke into lines; empty if the result is not JSON.

    A space may be lost at a break: good enough for a summary, never for a file's content.
    """
    margin = min((len(line) - len(line.lstrip()) for line in lines if line), default=0)
    parts: list[tuple[str, bool]] = []
    inside = False
    for line in lines:
        inside ^= len(re.findall(r'(?<!\\)(?:\\\\)*"', line)) % 2 == 1
        parts.append((line[margin:], inside))
    broken = [len(line) for line, inside in parts if inside]
    # Lines of equal length were cut where they were full; others at spaces.
    seam = "" if len(broken) > 1 and len(set(broken)) == 1 else " "
    text = "".join(line + (seam if inside else "\n") for line, inside in parts).rstrip()
    return text if _is_json(text) and '"content"' not in text else ""


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True
