"""What a run says of its deliveries, held against what the forge itself knows: an independent judge.

It reads the recorded events and the loopback forge's own world, and shares no line with the code that decides.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from ganger.core import events as ev
from ganger.core.vocabulary import TaskStatus
from tests.forges.loopback.script import OVER, holds
from tests.forges.loopback.world import Made, World

_BAD = frozenset({"fail", "timeout", "allowed"})
_NOBODYS = frozenset({"neutral", "allowed"})
# Recorded moments and the server's are of one clock; its answer travels before it is recorded.
_TRAVEL_SEC = 0.0


@dataclass(frozen=True)
class Needs:
    """What a completion asks of CI here. Without names every job counts."""

    required: tuple[str, ...] = ("check", "test")
    mirror: str = "radicle-push"
    events: tuple[str, ...] = ("push",)
    ci: bool = True
    mirrored: bool = True


class Ci:
    """What the forge told of one commit up to a moment."""

    def __init__(self, world: World, sha: str, needs: Needs, moment: float) -> None:
        self.world, self.needs, self.sha = world, needs, sha
        shown = [one for one in world.shown if one.sha == sha and one.at <= moment + _TRAVEL_SEC]
        told = {one.run: dict(one.words) for one in shown}
        # What begins after the last answer about the commit was in no answer.
        asked = max((one.at for one in shown), default=0.0)
        self.runs = [run for run in _counted(world, sha, needs, asked) if run.id in told]
        self.told = {run.id: told[run.id] for run in self.runs}

    def jobs(self) -> list[tuple[str, str]]:
        named = [(name, word, run) for run in self.runs for name, word in self.told[run.id].items()]
        if self.needs.required:
            return [(n, w) for n, w, run in named if {n, f"{run.script.workflow}/{n}"} & set(self.needs.required)]
        return [(n, w) for n, w, _ in named if n != self.needs.mirror and w not in _NOBODYS]

    def _found(self, name: str) -> bool:
        every = {n for run in self.runs for n in self.told[run.id]}
        every |= {f"{run.script.workflow}/{n}" for run in self.runs for n in self.told[run.id]}
        return name in every

    @property
    def green(self) -> bool:
        jobs = self.jobs()
        whole = all(self._found(name) for name in self.needs.required)
        return bool(jobs) and whole and all(word == "ok" for _, word in jobs)

    @property
    def red(self) -> bool:
        over = all(word in OVER for words in self.told.values() for word in words.values())
        if any(run.unparsed for run in self.world.runs if run.sha == self.sha):
            return True
        missing = bool(self.runs) and over and not all(self._found(name) for name in self.needs.required)
        return missing or any(word in _BAD for _, word in self.jobs())

    @property
    def mirrored(self) -> bool:
        words = [words[self.needs.mirror] for words in self.told.values() if self.needs.mirror in words]
        return bool(words) and all(word == "ok" for word in words)

    @property
    def stays(self) -> bool:
        """Whether each run that counts ends as it must, however long one waits."""
        for run in self.runs:
            end = self.world.final(run)
            named = {
                n
                for n in end
                if not self.needs.required or {n, f"{run.script.workflow}/{n}"} & set(self.needs.required)
            }
            if any(end[n] != "ok" for n in named if n != self.needs.mirror and end[n] not in _NOBODYS):
                return False
        return True


def _counted(world: World, sha: str, needs: Needs, asked: float) -> list[Made]:
    """Per workflow the newest run of the best trigger, of exactly this commit, that had begun by then."""
    best: dict[str, Made] = {}
    for run in world.runs:
        if (
            run.sha != sha
            or run.came_at > asked
            or run.script.event not in needs.events
            or run.script.sha not in ("", "late")
        ):
            continue
        known = best.get(run.script.workflow)
        weight = (-needs.events.index(run.script.event), run.id)
        if known is None or weight > (-needs.events.index(known.script.event), known.id):
            best[run.script.workflow] = run
    return list(best.values())


def lies(recorded: Sequence[ev.Recorded], world: World, needs: Needs) -> list[str]:
    """Everything the run recorded that the forge does not bear out; empty for an honest one."""
    return list(_Witness(world, needs).hear(recorded))


class _Witness:
    def __init__(self, world: World, needs: Needs) -> None:
        self.world, self.needs = world, needs
        self.tracked: dict[str, tuple[str, str]] = {}
        self.pushed: dict[str, str] = {}
        self.green: dict[str, str] = {}
        self.mirrored: dict[str, str] = {}
        self.merged: dict[str, str] = {}

    def _made(self, task: str, commit: str, branch: str, tested: str) -> Iterator[str]:
        """By the forge, of exactly what was pushed."""
        made = {(one.commit, one.head) for one in self.world.merges} | set(self.world.train.tried)
        if tested != self.pushed.get(task) or (commit, tested) not in made:
            yield f"{task}: the forge did not make {commit[:12]} of {tested[:12]}"
        self.tracked[task], self.pushed[task] = (commit, branch), commit

    def hear(self, recorded: Sequence[ev.Recorded]) -> Iterator[str]:
        for one in recorded:
            moment = datetime.fromisoformat(one.at).timestamp()
            match one.event:
                case ev.PushIntended(task=task, commit=commit, branch=branch):
                    self.tracked[task] = (commit, branch)
                case ev.Pushed(task=task, commit=commit, branch=branch):
                    yield from self._pushed(task, commit, branch)
                case ev.CiJudged(task=task, sha=sha, verdict=verdict):
                    yield from self._judged(task, sha, verdict, moment)
                case ev.MirrorProved(task=task, sha=sha, how=how):
                    yield from self._mirror(task, sha, how, moment)
                case ev.TrackingMoved(task=task, commit=commit, branch=branch, of=tested):
                    yield from self._made(task, commit, branch, tested)
                case ev.RequestChanged(task=task, what="merged", commit=commit):
                    self.merged[task] = commit
                case ev.TaskSettled(task=task, status=TaskStatus.DONE):
                    yield from self._done(task, moment)

    def _pushed(self, task: str, commit: str, branch: str) -> Iterator[str]:
        self.pushed[task] = commit
        if self.tracked.get(task) != (commit, branch):
            yield f"{task}: {commit[:12]} was pushed to {branch}, which nobody had intended"
        ground = self.world.ground
        if not any(one.branch == branch and ground.is_below(commit, one.after) for one in ground.pushes()):
            yield f"{task}: {commit[:12]} never came to {branch} of the remote"

    def _judged(self, task: str, sha: str, verdict: str, moment: float) -> Iterator[str]:
        if sha != self.pushed.get(task):
            yield f"{task}: a verdict on {sha[:12]}, but {self.pushed.get(task, 'nothing')[:12]} is what was pushed"
        ci = Ci(self.world, sha, self.needs, moment)
        if verdict == "green":
            self.green[task] = sha
            if not ci.green:
                yield f"{task}: green for {sha[:12]}, but the forge had told {ci.told}"
        elif not ci.red:
            yield f"{task}: red for {sha[:12]}, but the forge had told {ci.told}"

    def _mirror(self, task: str, sha: str, how: str, moment: float) -> Iterator[str]:
        self.mirrored[task] = sha
        if how == self.needs.mirror and not Ci(self.world, sha, self.needs, moment).mirrored:
            yield f"{task}: {how} is said to have mirrored {sha[:12]}, and the forge never told so"

    def _is_merged(self, branch: str, commit: str) -> bool:
        """Whether its request is, as far as the forge knows: then its branch may be gone."""
        asked = [one for one in self.world.asked if (one.branch, one.state) == (branch, "merged")]
        return any(self.world.ground.holds(one.into, commit) for one in asked)

    def _done(self, task: str, moment: float) -> Iterator[str]:
        commit, branch = self.tracked.get(task, ("", ""))
        if not commit or self.pushed.get(task) != commit:
            yield f"{task}: DONE, and {commit[:12] or 'nothing'} was not pushed"
            return
        landed = any((one.commit, one.head) == (self.merged.get(task), commit) for one in self.world.merges)
        if not landed and not self.world.ground.holds(branch, commit):
            yield f"{task}: DONE, and {commit[:12]} is not on {branch} of the remote"
        if self.needs.ci and self.green.get(task) != commit:
            yield f"{task}: DONE with {commit[:12]}, and CI's verdict is on {self.green.get(task, 'nothing')[:12]}"
        if self.needs.mirrored and self.mirrored.get(task) != commit:
            yield f"{task}: DONE with {commit[:12]}, which was not mirrored"
        ci = Ci(self.world, commit, self.needs, moment)
        if self.needs.ci and not (ci.green and ci.stays):
            yield f"{task}: DONE with {commit[:12]}, whose CI told {ci.told}"


def wrong_at_tip(world: World, branch: str = "main") -> list[str]:
    """Why CI would be red for what the branch holds now, by the files alone; empty where it would be green."""
    files = world.ground.files(world.ground.tip(branch))
    every = (run for scripts in (*world.scripts, world.others) for run in scripts)
    return sorted({one for run in every for one in (*run.red, *run.unparsed) if holds(one, files)})
