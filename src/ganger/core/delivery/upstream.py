"""Which upstream commit may have broken a repository: the ledger's verdicts, bisected; and the question (D13)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ganger.core.model.ledger import RepoVerdict
from ganger.core.model.run_state import RunState
from ganger.core.planning.repos import graph_of, shown

_MOST_SHOWN = 5
_SHORT = 12
REVERT, FIX, BOTH = "revert", "fix", "both"
_CULPRIT = re.compile(rf"{REVERT} (?P<repo>.+?) (?P<commit>[0-9a-zA-Z]{{1,{_SHORT}}}) \(task (?P<task>.+)\)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Suspect:
    """A commit that was proved upstream since the repository was last green. `implicated` counts other
    repositories that turned red with it, `cleared` those that were green with it."""

    repo: str
    task: str
    commit: str
    at: str
    implicated: int = 0
    cleared: int = 0


@dataclass(frozen=True, slots=True)
class CascadeQuestion:
    text: str
    options: tuple[str, ...]


def suspects(state: RunState, repo: str, red_sha: str) -> tuple[Suspect, ...]:
    """Upstream commits that may have turned `repo` red at `red_sha`, the likeliest first; none: its own change did.

    A commit the repository was green on is not the cause. Of the others, those present when it first turned red come
    first: a later red verdict may have another cause, but seldom does.
    """
    own = _until_red(state.pushes.verdicts, repo, red_sha)
    if not own:
        return ()
    found: list[tuple[tuple[int, ...], Suspect]] = []
    for distance, above in enumerate(graph_of(state.chains.rules).upstream.get(repo, ())):
        line = _line(state.pushes.verdicts, above)
        low, first, last = _bounds(own, above, line)
        for number in range(low + 1, last + 1):
            suspect = _suspect(state, repo, number, line)
            rank = (number > first, -suspect.implicated, suspect.cleared, distance, -number)
            found.append((rank, suspect))
    return tuple(suspect for _, suspect in sorted(found, key=lambda pair: pair[0]))


def _until_red(verdicts: Sequence[RepoVerdict], repo: str, sha: str) -> list[RepoVerdict]:
    """The repository's verdicts up to this red one; empty if there is no such verdict."""
    own = [verdict for verdict in verdicts if verdict.repo == repo]
    while own and (own[-1].commit != sha or own[-1].green):
        own.pop()
    return own


def _line(verdicts: Sequence[RepoVerdict], repo: str) -> list[RepoVerdict]:
    """The proved commits of a repository in order, each once."""
    found: dict[str, RepoVerdict] = {}
    for verdict in verdicts:
        if verdict.repo == repo and verdict.green:
            found.setdefault(verdict.commit, verdict)
    return list(found.values())


def _bounds(own: Sequence[RepoVerdict], above: str, line: Sequence[RepoVerdict]) -> tuple[int, int, int]:
    """The last place in the line where the repository was green, the first where it was red since, and the current one;
    -1 is the state before the run."""
    place = {verdict.commit: number for number, verdict in enumerate(line)}
    low = first = last = -1
    red = False
    for verdict in own:
        last = place.get(dict(verdict.upstream).get(above, ""), -1)
        if verdict.green:
            low, red = max(low, last), False
        else:
            first, red = min(first, last) if red else last, True
    return low, first, last


def _suspect(state: RunState, repo: str, number: int, line: Sequence[RepoVerdict]) -> Suspect:
    """What the verdicts on other repositories that build on it show about this commit."""
    proved = line[number]
    implicated = cleared = 0
    for other in graph_of(state.chains.rules).downstream.get(proved.repo, ()):
        theirs = [verdict for verdict in state.pushes.verdicts if verdict.repo == other != repo]
        low, first, _ = _bounds(theirs, proved.repo, line)
        implicated += bool(theirs) and not theirs[-1].green and low < number <= first
        cleared += number <= low
    return Suspect(proved.repo, proved.task, proved.commit, proved.at, implicated, cleared)


def question(state: RunState, repo: str, red_sha: str) -> CascadeQuestion | None:
    """The question for a person if an upstream commit may be the cause; None if nothing moved upstream."""
    found = suspects(state, repo, red_sha)
    if not found:
        return None
    first = found[0]
    culprit = f"{first.repo} {first.commit[:_SHORT]} (task {first.task})"
    shown_first = [f"{s.repo} {s.commit[:12]} (task {s.task}){_evidence(s)}" for s in found[:_MOST_SHOWN]]
    more = f", and {len(found) - _MOST_SHOWN} more" if len(found) > _MOST_SHOWN else ""
    here = shown(repo)
    return CascadeQuestion(
        f"{here} is red at {red_sha[:12]}. What it builds on has moved since it was last green; the likeliest cause "
        f"comes first: {', '.join(shown_first)}{more}. What should be done?",
        _options(culprit, here, known=first.task in state.tasks),
    )


def _options(culprit: str, here: str, *, known: bool) -> tuple[str, ...]:
    """Only options that can act: a task that is no longer in the run cannot change anything."""
    fix = f"{FIX} {here}: its worker adapts it to what changed"
    return (f"{REVERT} {culprit}", fix, f"{BOTH} {culprit} and {here}, changed together") if known else (fix,)


def culprit_of(options: Sequence[str]) -> Suspect | None:
    """The suspect that the options of such a question name."""
    match = _CULPRIT.fullmatch(options[0]) if options else None
    return None if match is None else Suspect(match["repo"], match["task"], match["commit"], "")


def _evidence(suspect: Suspect) -> str:
    parts = [
        f"{suspect.implicated} other {'repository' if suspect.implicated == 1 else 'repositories'} red since"
        if suspect.implicated
        else "",
        f"{suspect.cleared} green with it" if suspect.cleared else "",
    ]
    said = ", ".join(part for part in parts if part)
    return f" [{said}]" if said else ""
