"""How many tokens a text has, estimated without a model: rather too many than too few.

The weights were fitted on prose and code against a byte-pair vocabulary of 200,000 entries, then raised by an eighth,
because other models' vocabularies are smaller and cut finer. `docs/guide/prompts.md` has the figures.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import median

_PIECES = re.compile(
    r"(?P<word>[A-Z]?[a-z]+|[A-Z]+(?![a-z]))|(?P<digits>[0-9]+)|(?P<space>[^\S\n]*\n\s*|[^\S\n]{2,})|(?P<single>[^\S\n])"
    r"|(?P<marks>[!-/:-@\[-`{-~]+)|(?P<wide>[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uffef])"
    r"|(?P<letter>[^\W\d_])|(?P<picture>[\U00010000-\U0010ffff])|(?P<other>.)",
    re.DOTALL,
)
_MARGIN = 1.125
_WORD_LETTERS = 7
_LETTERS_BEYOND = 5
_CAPITALS = 2.5
_DIGITS = 3
_MARKS = 1.7
_FLAT = {"single": 0.0, "space": 1.0, "wide": 0.85, "letter": 0.6, "picture": 2.5, "other": 1.0}
_MOST_SAMPLES = 200
_LONGEST_KNOWN = 64 * 1024


def estimate(text: str) -> int:
    """Tokens of a text."""
    return _known(text) if len(text) <= _LONGEST_KNOWN else _counted(text)


def _counted(text: str) -> int:
    return math.ceil(_MARGIN * sum(_weight(found) for found in _PIECES.finditer(text)))


# All prompts of a manifest share their context.
_known = lru_cache(maxsize=512)(_counted)


def clipped(text: str, most: int) -> str:
    """The beginning of a text, as much as these tokens hold; a text that is cut ends with an ellipsis."""
    if estimate(text) <= most:
        return text
    short, long = 0, len(text)
    while long - short > 1:
        middle = (short + long) // 2
        short, long = (middle, long) if estimate(f"{text[:middle].rstrip()}…") <= most else (short, middle)
    return f"{text[:short].rstrip()}…"


def _weight(found: re.Match[str]) -> float:
    length = found.end() - found.start()
    match found.lastgroup:
        case "word":
            return _word(found.group(), length)
        case "digits":
            return math.ceil(length / _DIGITS)
        case "marks":
            return max(1.0, length / _MARKS)
    return _FLAT[found.lastgroup or "other"]


def _word(text: str, length: int) -> float:
    if length > 1 and text[1].isupper():
        return max(1.0, length / _CAPITALS)
    return 1.0 if length <= _WORD_LETTERS else 1.0 + (length - _WORD_LETTERS) / _LETTERS_BEYOND


@dataclass(frozen=True, slots=True)
class TokenSample:
    """One attempt: the estimate of its prompt, and the input its agent counted."""

    agent: str
    estimated: int
    counted: int


@dataclass(frozen=True, slots=True)
class Calibration:
    """What agents really used for each estimated token of a prompt.

    `factor` is the median over the attempts and includes everything an agent adds: its own instructions, its tools,
    every turn. `slope` is the median of what one more estimated token of prompt added, if prompts differed enough; for
    an agent that calls its model once, it is the estimator's own error.
    """

    agent: str
    attempts: int
    factor: float
    slope: float | None


def calibrations(samples: Sequence[TokenSample]) -> tuple[Calibration, ...]:
    """One per agent, from its newest samples."""
    by_agent: dict[str, list[TokenSample]] = {}
    for sample in samples:
        if sample.estimated > 0 and sample.counted > 0:
            by_agent.setdefault(sample.agent, []).append(sample)
    return tuple(_calibration(name, found[-_MOST_SAMPLES:]) for name, found in sorted(by_agent.items()))


def _calibration(agent: str, found: Sequence[TokenSample]) -> Calibration:
    factor = median(sample.counted / sample.estimated for sample in found)
    slopes = [
        (two.counted - one.counted) / (two.estimated - one.estimated)
        for index, one in enumerate(found)
        for two in found[index + 1 :]
        if abs(two.estimated - one.estimated) >= _far(one.estimated)
    ]
    return Calibration(agent, len(found), round(factor, 3), round(median(slopes), 3) if slopes else None)


def _far(estimated: int) -> float:
    """Prompts of about the same size do not show what one more token costs."""
    return max(20.0, estimated / 10)
