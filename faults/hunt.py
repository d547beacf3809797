"""Hunts a planted bug with the harness that must catch it: few points, aimed at where it bites."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial

from faults import crash, delivery, errors, kills, leads, planted, planted_pushes, planted_reports, powercut, workers
from faults.judge import end_all, judge_end
from faults.planted import Bug
from faults.pool import Job, Verdict, scratch
from faults.runs import crash_scenario
from faults.scenario import Place
from faults.strace import Point

# Longer than the next lead takes to start on a busy machine: otherwise there is nothing left to adopt.
_AGENT_SEC = 3.0


def jobs(names: Sequence[str], most: int) -> list[Job]:
    return [partial(_hunter(name, most), name) for name in names]


def _hunter(name: str, most: int) -> Callable[[str], Verdict]:
    if name in planted_pushes.BUGS:
        return delivery.hunt
    return workers.hunt if name in planted_reports.BUGS else partial(hunt, most=most)


def hunt(name: str, most: int) -> Verdict:
    """Strikes until the bug shows; a bug that does not show is what is wrong here."""
    bug = planted.BUGS[name]
    if bug.harness == "powercut" and (problem := powercut.why_not()):
        return Verdict(f"planted {name}", (), f"skipped, {problem}")
    tried = 0
    for verdict in _verdicts(name, bug, most):
        tried += 1
        if any(bug.rule in problem for problem in verdict.wrong):
            print(f"caught {name} ({bug.what}) by: python -m faults {verdict.repeat}", flush=True)
            return Verdict(f"planted {name}", (), "caught")
    return Verdict(f"planted {name}", (f"{bug.harness} did not catch it at {tried} points: {bug.what}",), "missed")


def _verdicts(name: str, bug: Bug, most: int) -> Iterator[Verdict]:
    if bug.harness == "run":
        yield undisturbed(name, bug)
        return
    if bug.harness == "kills":
        for seed in range(most):
            yield kills.carry_on(kills.Spree(seed, "lead", kills=4, tasks=12, agent_sec=_AGENT_SEC, bug=name))
        return
    if bug.harness == "powercut" and not bug.after and not bug.points:
        yield powercut.cut_power(powercut.Cut(bug.seed, None, name, bug.mode))
        return
    exact = [Point.read(text) for text in bug.points]
    for point in exact or aimed(crash.points_of(bug.seed, name, mode=bug.mode), bug, most):
        if bug.harness == "crash":
            yield crash.strike(crash.Blow(bug.seed, (point,), name, mode=bug.mode))
        elif bug.harness == "powercut":
            yield powercut.cut_power(powercut.Cut(bug.seed, point, name, bug.mode))
        else:
            yield errors.fail(errors.Fault(bug.seed, point, bug.errno, bug=name, mode=bug.mode))


def aimed(points: Sequence[Point], bug: Bug, most: int) -> list[Point]:
    """At most `most` points where the bug can show, spread evenly, the middle ones first."""
    fitting = [p for p in points if (not bug.after or p.after in bug.after) and (not bug.calls or p.call in bug.calls)]
    step = max(1, len(fitting) // most)
    chosen = fitting[step // 2 :: step][:most]
    return sorted(chosen, key=lambda point: abs(chosen.index(point) - len(chosen) // 2))


def undisturbed(name: str, bug: Bug) -> Verdict:
    """One run that nobody touches; the judge alone must see it."""
    leads.import_everything()
    scenario = replace(crash_scenario(bug.seed), budget_attempts=bug.budget_attempts)
    with scratch() as folder:
        place = Place(folder / "run", scenario).make()
        try:
            ended = leads.run(place, before=planted.planter(name))
            return Verdict(f"planted {name}", tuple(judge_end(place, ended, ended.shown)))
        finally:
            end_all(place)
