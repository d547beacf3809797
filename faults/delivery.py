"""Kills a lead at every step of its deliveries, and around pushes; judges by what the remote and the forge counted."""

from __future__ import annotations

import contextlib
import os
import random
import signal
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path

from faults import leads, planted_pushes, steps
from faults.branch import sound_at_end
from faults.crash import spread
from faults.judge import end_all, events_of, judge, keepers, left_alive, paid_twice, words
from faults.leads import Ended, Lead
from faults.pool import Job, Verdict, scratch
from faults.scenes import SCENES, THEIRS, Stage, counted, in_turn, put_up
from faults.strace import Point, Strike
from ganger.core import events as ev
from ganger.core.vocabulary import TaskStatus
from ganger.errors import EXIT_ESCALATED

# The lead dies while a push hangs there, and the push goes on later; or the push itself dies there.
_PUSHES = ("late-push/brk.1", "late-push/exit_group.1", "git-push/exit_group.1", "git-push/pipe2.1")
_AROUND_PUSHES = ("push_intended", "pushed")
_CALLS = 12
_SOMEBODY = "Somebody Else"


@dataclass(frozen=True, slots=True)
class Blow:
    """Where the leads of one delivered run die; with `keeper` their keeper dies as well."""

    scene: str
    points: tuple[Point, ...]
    bug: str = ""
    keeper: bool = False

    def words(self) -> str:
        more = (" --keeper" if self.keeper else "") + (f" --bug {self.bug}" if self.bug else "")
        return f"delivery --scene {self.scene}{''.join(f' --point {point}' for point in self.points)}{more}"


def blows(scenes: Sequence[str], most: int, *, keeper: bool, bug: str = "", double: int = 0) -> list[Blow]:
    """At most so many of each scene, spread evenly over its steps; all of them with 0. `double`: so many more in which
    the two leads that follow die as well, at the first step of some kind that they come to."""
    chosen = []
    for scene in scenes:
        points = points_of(scene, bug)
        chosen += [Blow(scene, (point,), bug, keeper) for point in (spread(points, most) if most else points)]
        chance = random.Random(scene)  # noqa: S311
        kinds = sorted({kind for point in points if (kind := steps.kind_of(point))})
        for point in spread(points, double):
            later = tuple(Point(f"{kind}/*", 1) for kind in chance.sample(kinds, 2))
            chosen.append(Blow(scene, (point, *later), bug, keeper))
    return chosen


@cache
def points_of(scene: str, bug: str = "") -> list[Point]:
    """Both sides of every step, system calls between intent and outcome of a push, and pushes that die or hang; those
    of the lead that follows an answer apart."""
    leads.import_everything()
    with scratch() as folder, ExitStack() as ends:
        stage = put_up(SCENES[scene], folder, ends)
        ended = leads.run_on(stage.place, before=_before(stage, bug), answer=stage.scene.answer)
        if problems := judge_end(stage, ended, ended.shown):
            raise RuntimeError(f"the undisturbed run {scene} is not as it must be: {problems}")
        told = events_of(stage.place)
    pushes = [Point(call, n) for n in range(1, SCENES[scene].pushes + 1) for call in _PUSHES]
    if not SCENES[scene].later:
        return [*steps.steps_of(told), *pushes, *_calls_of(scene, bug)]
    second = max(place for place, recorded in enumerate(told) if isinstance(recorded.event, ev.LeadStarted))
    first = [*steps.steps_of(told[:second]), *pushes[: len(_PUSHES)], *_calls_of(scene, bug)]
    then = [*steps.steps_of(told[second:]), *pushes[: -len(_PUSHES)], *_calls_of(scene, bug, later=True)]
    return [*first, *map(steps.later, then)]


def _calls_of(scene: str, bug: str, *, later: bool = False) -> list[Point]:
    with scratch() as folder, ExitStack() as ends:
        stage = put_up(SCENES[scene], folder, ends)
        if later:
            _until_answered(stage, _before(stage, bug))
        every = leads.trace(stage.place, before=_before(stage, bug))
    return spread([point for point in every if point.after.partition(" ")[0] in _AROUND_PUSHES], _CALLS)


def _until_answered(stage: Stage, before: Callable[[], None] | None) -> Ended:
    """What a lead showed that ended with the question, which is answered then."""
    ended = leads.run(stage.place, before=before)
    if ended.code == EXIT_ESCALATED:
        leads.answered(stage.place, stage.scene.answer, before=before)
    return ended


def _before(stage: Stage, bug: str) -> Callable[[], None] | None:
    """The scene's own world, and the planted bug."""
    given = [act for act in (stage.scene.world(stage.ground), planted_pushes.planter(bug)) if act is not None]
    return partial(in_turn, given) if given else None


def jobs(chosen: Sequence[Blow]) -> list[Job]:
    return [partial(strike, blow) for blow in chosen]


def strike(blow: Blow) -> Verdict:
    """One run from its first lead to its end."""
    leads.import_everything()
    with scratch() as folder, ExitStack() as ends:
        stage = put_up(SCENES[blow.scene], folder, ends)
        try:
            return _struck(stage, blow)
        finally:
            end_all(stage.place)


def _struck(stage: Stage, blow: Blow) -> Verdict:
    place, before = stage.place, _before(stage, blow.bug)
    wrong: list[str] = []
    shown: list[tuple[int, str]] = []
    gaps: list[str] = []
    for point in blow.points:
        ended = _run_to(stage, point, before)
        shown += ended.shown
        if not ended.killed:
            break
        if blow.keeper:
            _kill_keeper(stage)
        events = events_of(place)
        gaps.append(ev.type_name(events[-1].event) if events else "nothing recorded")
        found = [*judge(place, shown, ended=None), *remote_now(stage, events)]
        wrong += [f"after the kill at {point}: {problem}" for problem in found]
    ended = leads.run_on(place, before=before, answer=stage.scene.answer)
    shown += ended.shown
    wrong += [f"at the end: {problem}" for problem in judge_end(stage, ended, shown)]
    if not wrong:
        wrong += paid_twice(place, stage.scene.starts, keeper_died=blow.keeper)
    return Verdict(blow.words(), tuple(wrong), "killed" if gaps else "not reached", tuple(gaps))


def _run_to(stage: Stage, point: Point, before: Callable[[], None] | None) -> Ended:
    """To that point of a lead, or to the end; a lead that ends with the question is followed by one that has the
    answer."""
    shown: list[tuple[int, str]] = []
    if steps.is_later(point):
        while not leads.has_answered(stage.place):
            ended = _until_answered(stage, before)
            shown += ended.shown
            if ended.code != EXIT_ESCALATED:
                return replace(ended, shown=tuple(shown))
        point = steps.without_phase(point)
    while True:
        ended = _struck_at(stage, point, before)
        shown += ended.shown
        asks = stage.scene.later and ended.code == EXIT_ESCALATED
        if not asks or leads.answered(stage.place, stage.scene.answer, before=before) is None:
            return replace(ended, shown=tuple(shown))


def _struck_at(stage: Stage, point: Point, before: Callable[[], None] | None) -> Ended:
    if steps.is_step(point):
        return Lead(stage.place, before=steps.arrange(point, before)).wait()
    return leads.run(stage.place, strike=Strike(point), before=before)


def _kill_keeper(stage: Stage) -> None:
    for pid in keepers(stage.place):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def hunt(name: str) -> Verdict:
    """Strikes where the bug shows; a bug that does not show is what is wrong here."""
    bug = planted_pushes.BUGS[name]
    points: list[tuple[Point, ...]] = [(Point.read(text),) for text in bug.points] or [()]
    seen: list[str] = []
    for point in points:
        verdict = strike(Blow(bug.scene, point, name))
        seen += verdict.wrong or [verdict.note]
        if any(bug.rule in problem for problem in verdict.wrong):
            print(f"caught {name} ({bug.what}) by: python -m faults {verdict.repeat}", flush=True)
            return Verdict(f"planted {name}", (), "caught")
    return Verdict(f"planted {name}", (f"delivery did not catch it: {bug.what} It saw: {seen[:3]}",), "missed")


# --- the judge ------------------------------------------------------------------------------------------------------


def judge_end(stage: Stage, ended: Ended, shown: Sequence[tuple[int, str]]) -> list[str]:
    """As if nobody had been killed."""
    place = stage.place
    wrong = [] if ended.code == stage.scene.ends else [f"outcome: the lead ended with {ended.code}: {words(ended)}"]
    if "Traceback" in ended.said:
        wrong.append(f"outcome: a traceback was shown: {words(ended)}")
    wrong += left_alive(place)
    wrong += judge(place, shown, ended=ended)
    events = events_of(place)
    wrong += sound_at_end(place, events)
    wrong += remote_now(stage, events)
    return [*wrong, *_remote_at_end(stage, events), *_ledger_at_end(stage, events)]


def remote_now(stage: Stage, events: Sequence[ev.Recorded]) -> list[str]:
    """What may not be at any moment: pushed without an intent, pushed twice, told and not there."""
    intended = {(e.branch, e.commit) for r in events if isinstance(e := r.event, ev.PushIntended)}
    came = own_pushes(stage)
    wrong = [f"remote: {sha[:12]} is on {branch}, and nobody intended that" for branch, sha in came
             if (branch, sha) not in intended]  # fmt: skip
    wrong += [f"remote: {sha[:12]} came to {branch} {count} times" for (branch, sha), count in Counter(came).items()
              if count > 1]  # fmt: skip
    for recorded in events:
        event = recorded.event
        if isinstance(event, ev.Pushed) and not any(
            stage.ground.holds(b, event.commit) or _is_taken_out(stage, event.commit) for b in (event.branch, "main")
        ):
            wrong.append(f"remote: {event.task} was pushed as {event.commit[:12]}, and {event.branch} lacks it")
    return [*wrong, *_brought_back(stage)]


def _is_taken_out(stage: Stage, commit: str) -> bool:
    """Whether it holds what the maintainer took out, and not what they put in its place."""
    files = stage.ground.files(commit)
    return f"out/{stage.scene.removes}.txt" in files and THEIRS not in files


def _brought_back(stage: Stage) -> list[str]:
    """Pushes that have in their history what a maintainer took out and a person left out."""
    if not stage.scene.leaves_out:
        return []
    path, found = f"out/{stage.scene.leaves_out}.txt", [p.after for p in stage.ground.pushes()]
    later = [sha for sha in found if THEIRS in stage.ground.files(sha)]
    return [
        f"remote: {sha[:12]} brings back {path}, which was taken out and left out"
        for sha in later
        if stage.ground.git("log", "-1", "--format=%h", sha, "--", path)
    ]


def own_pushes(stage: Stage) -> list[tuple[str, str]]:
    """Branch and commit of each, those of the forge's own merges left out."""
    found = stage.ground.pushes()
    return [(p.branch, p.after) for p in found if _committer(stage, p.after) != _SOMEBODY]


def _committer(stage: Stage, sha: str) -> str:
    return stage.ground.git("log", "-1", "--format=%cn", sha, check=False)


def _remote_at_end(stage: Stage, events: Sequence[ev.Recorded]) -> list[str]:
    scene, wrong = stage.scene, []
    told, pushes = counted(stage), len(own_pushes(stage))
    again = told.get("reruns", sum(isinstance(r.event, ev.Retriggered) and r.event.how == "rerun" for r in events))
    found = {
        "pushes": (pushes, pushes if scene.together and 0 < pushes <= scene.pushes else scene.pushes),
        "empty commits": (stage.ground.empty_commits(), scene.empty),
        "runs begun again": (again, scene.again),
        "change requests": (told.get("requests", 0), scene.requests),
        "merged change requests": (told.get("merged", 0), scene.requests),
        "drafts": (told.get("drafts", 0), 0),
        "comments": (told.get("comments", 0), scene.requests),
        "branches that are left": (told.get("branches", 0), 0),
        "labels of one name": (told.get("labels", 0), int(bool(scene.requests))),
    }
    for what, (there, expected) in found.items():
        if there != expected:
            wrong.append(f"remote: {there} {what}, not {expected}")
    if told.get("faults"):
        wrong.append(f"remote: the forge was asked what it does not know: {told['faults']}")
    if scene.linear and (bent := stage.ground.git("rev-list", "--merges", "main").split()):
        wrong.append(f"remote: main is to be straight, and {bent[0][:12]} is a merge")
    if scene.linear and not any(isinstance(r.event, ev.RebaseIntended) for r in events):
        wrong.append("remote: nothing was put on top of what somebody pushed")
    return [*wrong, *_mirror(stage, events)]


def _mirror(stage: Stage, events: Sequence[ev.Recorded]) -> list[str]:
    """By local commands only: it holds what was proved to be there."""
    if stage.beside is not None:
        return []
    mirror = type(stage.ground)(Path(stage.place.base / "mirror.git"))
    proved = [e for r in events if isinstance(e := r.event, ev.MirrorProved)]
    return [
        f"remote: the mirror lacks {e.sha[:12]} of {e.task}" for e in proved if not mirror.holds(f"of-{e.sha}", e.sha)
    ]


def _expected(stage: Stage, task: str, verdicts: Sequence[str]) -> list[list[str]]:
    """What is put back is in the branch again by the push of another task, or goes with its own and is judged again."""
    once = list(verdicts)
    is_put_back = task == stage.scene.removes and not stage.scene.leaves_out
    return [once, once * 2] if is_put_back else [once]


def _ledger_at_end(stage: Stage, events: Sequence[ev.Recorded]) -> list[str]:
    """No verdict is lost and none is given twice; everything is DONE, or reverted with proof."""
    verdicts: dict[str, list[str]] = {}
    status: dict[str, TaskStatus] = {}
    for recorded in events:
        match recorded.event:
            case ev.CiJudged(task=task, verdict=verdict):
                verdicts.setdefault(task, []).append(verdict)
            case ev.TaskSettled(task=task, status=now):
                status[task] = now
    wrong = [
        f"verdicts: {task} has {verdicts.get(task, [])}, not {list(expected)}"
        for task, expected in stage.scene.verdicts.items()
        if verdicts.get(task, []) not in _expected(stage, task, expected)
    ]
    reverted = [e.task for r in events if isinstance(e := r.event, ev.Reverted)]
    if reverted != (["red"] if stage.scene.reverts else []):
        wrong.append(f"outcome: {reverted} is reverted")
    wanted = {*stage.scene.verdicts} - {*reverted, stage.scene.leaves_out}
    wrong += [f"outcome: {task} is {status.get(task)}" for task in wanted if status.get(task) is not TaskStatus.DONE]
    out = stage.scene.leaves_out
    if out and status.get(out) is not TaskStatus.BLOCKED:
        wrong.append(f"outcome: {out} is {status.get(out)}, and it is left out")
    asked = sum(isinstance(r.event, ev.QuestionAsked) for r in events)
    if stage.scene.answer and asked != 1:
        wrong.append(f"outcome: {asked} questions were asked, not one")
    return wrong
