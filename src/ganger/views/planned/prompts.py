"""Prompt sizes: tokens by part, both limits on Ganger's own text, the budget, and what agents counted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ganger.core.prompts.parts import CI_BOUND, SPAWN_BOUND, Part, Piece, fitted, joined, needed, sizes
from ganger.core.prompts.tokens import Calibration, estimate


@dataclass(frozen=True, slots=True)
class PromptSize:
    """One task's first prompt. `needed` is what is never cut, `total` is everything, `sent` is what fits the budget,
    and `cut` are the parts that are shortened."""

    task: str
    parts: Mapping[Part, int]
    own: int
    needed: int
    total: int
    sent: int
    cut: tuple[Part, ...]
    budget: int

    @property
    def over(self) -> bool:
        return bool(self.budget) and self.needed > self.budget


@dataclass(frozen=True, slots=True)
class PromptSizes:
    """The prompts of a whole manifest. `ci` is the largest section that an attempt to fix CI can get here."""

    tasks: tuple[PromptSize, ...]
    ci: int
    budget: int
    calibrations: tuple[Calibration, ...] = ()

    @property
    def own(self) -> int:
        return max((size.own for size in self.tasks), default=0)

    @property
    def ok(self) -> bool:
        return self.own <= SPAWN_BOUND and self.ci <= CI_BOUND and not any(size.over for size in self.tasks)


def weighed(task: str, pieces: Sequence[Piece], budget: int) -> PromptSize:
    kept = fitted(pieces, budget)
    before, after = sizes(pieces), sizes(kept)
    own = joined(piece for piece in pieces if piece.part is Part.SPAWN)
    return PromptSize(
        task,
        before,
        estimate(own),
        needed(pieces),
        sum(before.values()),
        sum(after.values()),
        tuple(part for part in before if after.get(part, 0) < before[part]),
        budget,
    )


def document(found: PromptSizes) -> dict[str, object]:
    return {
        "ok": found.ok,
        "budget_tokens": found.budget,
        "spawn": {"tokens": found.own, "most": SPAWN_BOUND},
        "ci": {"tokens": found.ci, "most": CI_BOUND},
        "tasks": [
            {
                "id": size.task,
                "sections": {part.value: tokens for part, tokens in size.parts.items()},
                "own": size.own,
                "needed": size.needed,
                "total": size.total,
                "sent": size.sent,
                "cut": [part.value for part in size.cut],
                "over": size.over,
            }
            for size in found.tasks
        ],
        "calibration": [
            {"agent": one.agent, "attempts": one.attempts, "factor": one.factor, "slope": one.slope}
            for one in found.calibrations
        ],
    }


def page(found: PromptSizes) -> Iterator[str]:
    limit = f"{found.budget} tokens each" if found.budget else "no budget set"
    yield f"{len(found.tasks)} prompts, estimated tokens; {limit}"
    for size in found.tasks:
        yield f"  {size.task}: {size.total} ({', '.join(f'{part.value} {n}' for part, n in size.parts.items())})"
        if size.over:
            yield f"    over: {size.needed} are needed, {size.budget} are allowed; shorten the task or raise the budget"
        elif size.cut:
            yield f"    {size.sent} are sent; shortened: {', '.join(part.value for part in size.cut)}"
    yield f"Ganger's own text at the start of a task: {found.own} of at most {SPAWN_BOUND}"
    yield f"section for an attempt that fixes CI: {found.ci} of at most {CI_BOUND}"
    for one in found.calibrations:
        more = "" if one.slope is None else f", {one.slope:g} for one more"
        times = "attempt" if one.attempts == 1 else "attempts"
        yield f"counted by {one.agent} in {one.attempts} {times}: {one.factor:g} for each estimated token{more}"
