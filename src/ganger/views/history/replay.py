"""The result of a replay: what was compared, and where the current core or parser decides differently."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass

from ganger.core.replay import Divergence, Replayed, Reread

_MOST_SHOWN = 20


@dataclass(frozen=True, slots=True)
class ReplayReport:
    """`settings` are those tried instead of the recorded ones; `logs` is set if logs were read again."""

    replayed: Replayed
    logs: Reread | None = None
    settings: tuple[str, ...] = ()

    @property
    def same(self) -> bool:
        return not self.replayed.divergences and (self.logs is None or not self.logs.divergences)


def replay_lines(report: ReplayReport) -> Iterator[str]:
    done = report.replayed
    tried = f" with {', '.join(report.settings)}" if report.settings else ""
    yield f"run {done.run_id}: {done.events} events, {done.decisions} decisions compared{tried}"
    yield from _decision_lines(done.divergences, first_only=bool(report.settings))
    if report.logs is not None:
        yield from _log_lines(report.logs)


def _decision_lines(found: Sequence[Divergence], *, first_only: bool) -> Iterator[str]:
    """With other settings only the first difference counts: after it the recorded events no longer fit."""
    if not found:
        yield "every decision would be the same today"
        return
    shown = found[: 1 if first_only else _MOST_SHOWN]
    for divergence in shown:
        yield from _pair(divergence)
    left = len(found) - len(shown)
    if left and first_only:
        yield f"{left} later decisions differ too, but by then the run would have gone another way"
    elif left:
        yield f"and {left} more; --json lists them all"


def _log_lines(logs: Reread) -> Iterator[str]:
    gone = f", {len(logs.missing)} logs are gone" if logs.missing else ""
    verdict = f"{len(logs.divergences)} would be read differently" if logs.divergences else "all read the same"
    yield f"{logs.answers} answers read again from their logs{gone}: {verdict}"
    for divergence in logs.divergences[:_MOST_SHOWN]:
        yield from _pair(divergence)


def _pair(divergence: Divergence) -> Iterator[str]:
    yield f"event {divergence.seq} at {divergence.at}, {divergence.about}"
    yield f"  recorded  {divergence.recorded}"
    yield f"  today     {divergence.today}"


def replay_json(report: ReplayReport) -> dict[str, object]:
    done, logs = report.replayed, report.logs
    return {
        "run_id": done.run_id,
        "same": report.same,
        "settings": list(report.settings),
        "events": done.events,
        "decisions": done.decisions,
        "divergences": [asdict(divergence) for divergence in done.divergences],
        "logs": None
        if logs is None
        else {
            "answers": logs.answers,
            "missing": list(logs.missing),
            "divergences": [asdict(divergence) for divergence in logs.divergences],
        },
    }
