"""The parts of a prompt, in the order in which they are needed, and what is cut when a budget is short."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from ganger.core.prompts.tokens import estimate

SPAWN_BOUND = 110
CI_BOUND = 160


class Part(StrEnum):
    """The parts that are needed most come first. `spawn` is all that Ganger itself says at the start of a task."""

    CONTRACT = "contract"
    SPAWN = "spawn"
    TASK = "task"
    MARK = "mark"
    CHECKS = "checks"
    CI = "ci"
    FAILURE = "failure"
    ANSWERS = "answers"
    HINTS = "hints"
    CONTEXT = "context"
    RULES = "rules"
    HISTORY = "history"


NEVER_CUT = frozenset({Part.CONTRACT, Part.SPAWN, Part.TASK, Part.MARK})
_CUT_LINE = "[… cut here: the prompt has a budget]"
_MARK = "[Left out, because the prompt has a budget: {names}]"
# The longest possible mark, and the smallest part of a text worth keeping.
_MARK_TOKENS = 48
_LEAST_TOKENS = 40


@dataclass(frozen=True, slots=True)
class Piece:
    """A text in its place. `cut` is how many of its tokens were left out."""

    part: Part
    text: str
    cut: int = 0

    @property
    def tokens(self) -> int:
        """With the gap behind it, so that the pieces together are never fewer tokens than the whole."""
        return estimate(f"{self.text}\n\n")


def joined(pieces: Iterable[Piece]) -> str:
    return "\n\n".join(piece.text for piece in pieces if piece.text)


def sizes(pieces: Iterable[Piece]) -> dict[Part, int]:
    """Tokens by part, without empty parts."""
    found: dict[Part, int] = {}
    for piece in pieces:
        if piece.text:
            found[piece.part] = found.get(piece.part, 0) + piece.tokens
    return {part: found[part] for part in Part if part in found}


def needed(pieces: Iterable[Piece]) -> int:
    """Tokens of the parts that are never cut."""
    return sum(piece.tokens for piece in pieces if piece.text and piece.part in NEVER_CUT)


def fitted(pieces: Sequence[Piece], budget: int) -> list[Piece]:
    """The pieces within a budget (0 is none): the least needed goes first, and of that what comes last.

    The parts that are never cut may still exceed the budget."""
    known = [piece for piece in pieces if piece.text]
    if not budget or sum(piece.tokens for piece in known) <= budget:
        return known
    room = budget - needed(known) - _MARK_TOKENS
    by_need = sorted((i for i, p in enumerate(known) if p.part not in NEVER_CUT), key=lambda i: _need(known[i], i))
    for index in by_need:
        known[index] = _shortened(known[index], room)
        room -= known[index].tokens if known[index].text else 0
    return _marked(known)


def _need(piece: Piece, place: int) -> tuple[int, int]:
    return list(Part).index(piece.part), place


def _shortened(piece: Piece, room: int) -> Piece:
    whole = piece.tokens
    if whole <= room:
        return piece
    if room < _LEAST_TOKENS:
        return replace(piece, text="", cut=whole)
    kept: list[str] = []
    left = room - estimate(f"\n{_CUT_LINE}\n```\n\n")
    for line in piece.text.splitlines():
        left -= estimate(f"{line}\n")
        if left < 0:
            break
        kept.append(line)
    if len(kept) < 2:
        return replace(piece, text="", cut=whole)
    if sum(line.lstrip("> ").startswith("```") for line in kept) % 2:
        kept.append("```")
    text = "\n".join([*kept, _CUT_LINE])
    return Piece(piece.part, text, max(1, whole - estimate(text)))


def _marked(pieces: list[Piece]) -> list[Piece]:
    """A mark before the contract names what was left out, so that the contract stays the last thing read."""
    gone = dict.fromkeys(piece.part.value for piece in pieces if not piece.text)
    kept = [piece for piece in pieces if piece.text]
    if not gone:
        return kept
    at = next((i for i, piece in enumerate(kept) if piece.part is Part.CONTRACT), len(kept))
    return [*kept[:at], Piece(Part.MARK, _MARK.format(names=", ".join(gone))), *kept[at:]]
