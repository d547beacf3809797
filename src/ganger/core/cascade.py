"""What upstream may have broken a repository: the ledger's verdicts, bisected; and the question a person gets (D13)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ganger.core.delivery import RepoVerdict
from ganger.core.records import RunState
from ganger.core.repos import graph_of, shown

_MOST_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Suspect:
    """A commit that was proved upstream since the repository was last green. `implicated` counts red verdicts of other
    repositories that began with it, `cleared` repositories that were green with it."""

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
    """Upstream commits that can have turned `repo` red at `red_sha`, the likeliest first; none: it broke by itself.

    A commit the repository was green on is not it, nor is one that came only after the redness began.
    """
    place, red = _red(state.verdicts, repo, red_sha)
    if red is None:
        return ()
    graph = graph_of(state.repos)
    own = [verdict for verdict in state.verdicts[: place + 1] if verdict.repo == repo]
    found: list[tuple[tuple[int, int, int, int], Suspect]] = []
    for distance, above in enumerate(graph.upstream.get(repo, ())):
        line = _line(state.verdicts, above)
        low, high = _bounds(own, above, line)
        for number in range(low + 1, high + 1):
            suspect = _suspect(state, repo, line[number], line)
            found.append(((-suspect.implicated, suspect.cleared, distance, -number), suspect))
    return tuple(suspect for _, suspect in sorted(found, key=lambda pair: pair[0]))


def _red(verdicts: Sequence[RepoVerdict], repo: str, sha: str) -> tuple[int, RepoVerdict | None]:
    for place in range(len(verdicts) - 1, -1, -1):
        verdict = verdicts[place]
        if verdict.repo == repo and verdict.commit == sha and not verdict.green:
            return place, verdict
    return -1, None


def _line(verdicts: Sequence[RepoVerdict], repo: str) -> list[RepoVerdict]:
    """The proved commits of a repository in order, each once."""
    found: dict[str, RepoVerdict] = {}
    for verdict in verdicts:
        if verdict.repo == repo and verdict.green:
            found.setdefault(verdict.commit, verdict)
    return list(found.values())


def _head(verdict: RepoVerdict, above: str, line: Sequence[RepoVerdict]) -> int:
    """How far up the line the repository had come at this verdict; -1 for what was there before the run."""
    sha = dict(verdict.upstream).get(above, "")
    return next((number for number, known in enumerate(line) if known.commit == sha), -1)


def _bounds(own: Sequence[RepoVerdict], above: str, line: Sequence[RepoVerdict]) -> tuple[int, int]:
    """The last commit it was green on, and the first it was red on since: what is between them is open."""
    low, high = -1, len(line) - 1
    for verdict in own:
        head = _head(verdict, above, line)
        if verdict.green:
            low, high = max(low, head), len(line) - 1
        else:
            high = min(high, head)
    return low, high


def _suspect(state: RunState, repo: str, proved: RepoVerdict, line: Sequence[RepoVerdict]) -> Suspect:
    """What the other repositories that build on it say of this commit."""
    number = next(place for place, known in enumerate(line) if known.commit == proved.commit)
    implicated, cleared = 0, 0
    for other in graph_of(state.repos).downstream.get(proved.repo, ()):
        told = [verdict for verdict in state.verdicts if verdict.repo == other and other != repo]
        low, high = _bounds(told, proved.repo, line) if told else (-1, -1)
        if not told:
            continue
        implicated += not told[-1].green and low < number <= high
        cleared += number <= low
    return Suspect(proved.repo, proved.task, proved.commit, proved.at, implicated, cleared)


def question(state: RunState, repo: str, red_sha: str) -> CascadeQuestion | None:
    """What a person is asked when something upstream may be the cause; None when nothing there moved."""
    found = suspects(state, repo, red_sha)
    if not found:
        return None
    first = found[0]
    culprit = f"{first.repo} {first.commit[:12]} (task {first.task})"
    told = [f"{s.repo} {s.commit[:12]} (task {s.task}){_evidence(s)}" for s in found[:_MOST_SHOWN]]
    more = f", and {len(found) - _MOST_SHOWN} more" if len(found) > _MOST_SHOWN else ""
    here = shown(repo)
    return CascadeQuestion(
        f"{here} is red at {red_sha[:12]}. What it builds on has moved since it was last green; the likeliest cause "
        f"comes first: {', '.join(told)}{more}. What shall be done?",
        (
            f"revert {culprit}",
            f"mend {here}: its worker adapts it to what changed",
            f"both: {first.repo} and {here} are changed together",
        ),
    )


def _evidence(suspect: Suspect) -> str:
    parts = [
        f"{suspect.implicated} other {'repository' if suspect.implicated == 1 else 'repositories'} red since"
        if suspect.implicated
        else "",
        f"{suspect.cleared} green with it" if suspect.cleared else "",
    ]
    said = ", ".join(part for part in parts if part)
    return f" [{said}]" if said else ""
