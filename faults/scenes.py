"""Runs that are delivered, to be killed on their way: what they are made of, and what the outside must have counted."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from faults.forge_process import TOKEN, Beside, Ground, kind_of
from faults.scenario import Job, Place, Scenario
from ganger.core import events as ev
from ganger.core.control.removals import LEAVE_REMOVED, PUT_BACK
from ganger.core.control.revert_offers import REVERT_IT
from ganger.errors import EXIT_BLOCKED, EXIT_OK
from ganger.forges.command.forge import CommandForge
from ganger.ports.forge import Forge, PushOutcome
from ganger.ports.store import Entry
from ganger.stores.sqlite import SqliteStore
from ganger.workspaces.remotes.remote import GitRemote

_VARIABLE = "LOOPBACK_TOKEN"
_SKIP = "out/skipped.txt"
_CHANGES = 'git -c safe.directory="*" diff --name-only "$1^" "$1"'
_TEST = f"""#!/bin/sh
{_CHANGES} | grep -q '^out/red.txt$' || exit 0
! grep -q CIRED out/red.txt || {{ echo "AssertionError: red is CIRED"; exit 1; }}
"""
# Skipped the first time for one change, and for nothing else: neither for a second attempt nor for an empty commit.
_MIRROR = f"""#!/bin/sh
if [ "$GANGER_CI_ATTEMPT" = 1 ] && {_CHANGES} | grep -q '^{_SKIP}$'
then exit 77
fi
exec git push -q "{{mirror}}" "$1:refs/heads/of-$1"
"""
# Of what the commit holds, whoever brought it.
_TEST_ALL = """#!/bin/sh
sleep 0.2
! grep -qs CIRED out/red.txt || { echo "out/red.txt:1: error: CIRED"; exit 1; }
"""
_MIRROR_ALL = """#!/bin/sh
exec git push -q "{mirror}" "$1:refs/heads/of-$1"
"""
_SKIPPED = f"mkdir -p out; echo well > {_SKIP}"
_FINE = "mkdir -p out; echo fine > out/red.txt"
# What a maintainer puts where the commit was that they took out.
THEIRS = "theirs.txt"
_PLAIN = "mkdir -p out; echo plain > out/plain.txt"
_REWORKED = """mkdir -p out
if [ -e out/plain.txt ]
then echo plainly > out/plain.txt
else echo plain > out/plain.txt
fi
"""
_RED = """mkdir -p out
if grep -q CIRED out/red.txt 2>/dev/null
then echo fine > out/red.txt
else echo CIRED > out/red.txt
fi
"""
_SETTINGS = """
[delivery]
completion = ["verified", "committed", "pushed", "ci", "mirrored"]
poll_sec = 0.02
poll_most_sec = 0.1
remote = "{remote}"
"""
_COMMAND = """forge = "command"
mirror_job = "mirror"
[delivery.jobs]
test = ["{base}/ci-test", "{{sha}}"]
mirror = ["{base}/ci-mirror", "{{sha}}"]
"""
_FORGE = """forge = "{kind}"
url = "{url}"
project = "dev/app"
token_env = "{token}"
required_jobs = ["check", "test"]
style = "request"
auto_merge = true
delete_branch = true
labels = ["fresh"]
call_sec = 5
appear_sec = 2
{more}"""


@dataclass(frozen=True)
class Scene:
    """One delivered run. `flavour` is that of the forge, or empty for CI by local commands; `reruns`: whether those can
    be run again. `together`: nobody waits for another, so changes share pushes, and `pushes` is the most there may be.
    `answer` is what a person says to the one question: in the moment in which it is asked, or (`later`) once the lead
    has ended with it. `removes`: a maintainer takes the pushed commit of this task out of the branch. What follows is
    what must have been counted in the end."""

    name: str
    flavour: str = ""
    reruns: bool = True
    pushes: int = 4
    empty: int = 0
    again: int = 0
    requests: int = 0
    more: str = ""
    verdicts: Mapping[str, Sequence[str]] = field(
        default_factory=lambda: {"plain": ["green"], "skipped": ["green"], "red": ["red", "green"]}
    )
    starts: Mapping[str, int] = field(default_factory=lambda: {"plain": 1, "skipped": 1, "red": 2})
    together: bool = False
    linear: bool = False
    answer: str = ""
    later: bool = False
    removes: str = ""
    ends: int = EXIT_OK

    @property
    def reverts(self) -> bool:
        return self.answer == REVERT_IT

    @property
    def leaves_out(self) -> str:
        """The task that ends without its commit in the branch."""
        return self.removes if self.answer == LEAVE_REMOVED else ""

    @property
    def edits(self) -> Mapping[str, str]:
        plain = _REWORKED if self.starts["plain"] > 1 else _PLAIN
        red = _RED if self.starts["red"] > 1 or self.reverts else _FINE
        return {"plain": plain, "skipped": self._late(_SKIPPED), "red": self._late(red)}

    def _late(self, edit: str) -> str:
        """What is removed goes first."""
        return f"sleep 0.3; {edit}" if self.removes else edit

    @property
    def jobs(self) -> tuple[Job, ...]:
        """One after the other, because what CI does goes by the order of pushes or by what the last commit changed."""
        queue = not self.together
        return (
            Job("plain", edit=self.edits["plain"]),
            Job("skipped", edit=self.edits["skipped"], needs=("plain",) if queue else ()),
            Job("red", edit=self.edits["red"], needs=("skipped",) if queue else ()),
        )

    def world(self, ground: Ground) -> Callable[[], None] | None:
        """What is different in this scene's leads."""
        acts = [
            _somebody_first if self.linear else None,
            None if self.reruns else _no_reruns,
            partial(_taken_out, self.removes, ground) if self.removes else None,
            partial(_answered_at_once, self.answer) if self.answer and not self.later else None,
        ]
        chosen = [act for act in acts if act is not None]
        return partial(in_turn, chosen) if chosen else None


def in_turn(acts: Sequence[Callable[[], None]]) -> None:
    for act in acts:
        act()


def _somebody_first() -> None:
    """Just before the first push of a run, and before the one that comes after it, somebody pushes."""
    real = GitRemote.push

    async def push(self: GitRemote, commit: str, branch: str, onto: str = "") -> PushOutcome:
        ground = Ground(Path(self.address))
        theirs = [one for one in ("theirs.txt", "more.txt") if one in ground.files(ground.tip("main"))]
        ours = any(one.startswith("out/") for one in ground.files(ground.tip("main")))
        if branch == "main" and (not theirs or (ours and len(theirs) == 1)):
            ground.commit("main", "more.txt" if theirs else "theirs.txt", "theirs\n")
        return await real(self, commit, branch, onto)

    setattr(GitRemote, "push", push)  # noqa: B010


def _answered_at_once(answer: str) -> None:
    """The person answers in the moment in which the question is on record."""
    real = SqliteStore.append

    def append(self: SqliteStore, batch: Sequence[Entry]) -> list[ev.Recorded]:
        recorded = real(self, batch)
        for one in recorded:
            if isinstance(one.event, ev.QuestionAsked) and answer in one.event.options:
                self.send(one.at, "answer", {"question": one.event.question, "text": answer})
        return recorded

    setattr(SqliteStore, "append", append)  # noqa: B010


def _taken_out(task: str, ground: Ground) -> None:
    """A maintainer takes the commit of this task out of the branch once the run has recorded that it was pushed, and
    puts one of their own in its place."""
    real = SqliteStore.append

    def append(self: SqliteStore, batch: Sequence[Entry]) -> list[ev.Recorded]:
        recorded = real(self, batch)
        if any(isinstance(one.event, ev.Pushed | ev.LeadStarted) for one in recorded):
            known = [one.event for one in self.read(0)]
            if any(isinstance(event, ev.Pushed) and event.task == task for event in known):
                _take_out(ground, f"out/{task}.txt")
        return recorded

    setattr(SqliteStore, "append", append)  # noqa: B010


def _take_out(ground: Ground, path: str) -> None:
    tip = ground.tip("main")
    if path in ground.files(tip) and THEIRS not in ground.files(tip):
        first = ground.git("log", "--format=%H", "--reverse", tip, "--", path).split()[0]
        ground.commit("main", THEIRS, "theirs\n", on=ground.parent(first))


def _no_reruns() -> None:
    async def rerun(_forge: Forge, _run: object) -> bool:
        return False

    setattr(CommandForge, "rerun", rerun)  # noqa: B010


SCENES = {
    scene.name: scene
    for scene in (
        Scene("rerun", again=1),
        Scene("empty", reruns=False, pushes=5, empty=1),
        Scene("train", together=True, pushes=6),
        Scene("linear", together=True, pushes=6, linear=True),
        Scene(
            "revert",
            together=True,
            pushes=6,
            answer=REVERT_IT,
            ends=EXIT_BLOCKED,
            verdicts={"plain": ["green"], "skipped": ["green"], "red": ["red", "green"]},
            starts={"plain": 1, "skipped": 1, "red": 1},
        ),
        Scene(
            "leave-out",
            together=True,
            pushes=3,
            more='pushes = "each"\n',
            answer=LEAVE_REMOVED,
            later=True,
            removes="plain",
            ends=EXIT_BLOCKED,
            verdicts={"plain": ["green"], "skipped": ["green"], "red": ["green"]},
            starts={"plain": 1, "skipped": 1, "red": 1},
        ),
        Scene(
            "put-back",
            together=True,
            pushes=4,
            more='pushes = "each"\n',
            answer=PUT_BACK,
            removes="plain",
            verdicts={"plain": ["green"], "skipped": ["green"], "red": ["green"]},
            starts={"plain": 1, "skipped": 1, "red": 1},
        ),
        Scene("request", "gitea-1.27", again=1, requests=3),
        Scene("request-empty", "forgejo-16", pushes=5, empty=1, requests=3),
        Scene(
            "review",
            "forgejo-16:people",
            pushes=5,
            requests=3,
            more='review = "person"\n',
            verdicts={"plain": ["green", "green"], "skipped": ["green"], "red": ["red", "green"]},
            starts={"plain": 2, "skipped": 1, "red": 2},
        ),
        # Each is green by itself, brought up to date, green again, and green where it landed.
        Scene(
            "request-merge",
            "forgejo-16:lively",
            pushes=7,
            requests=3,
            verdicts={
                "plain": ["green"] * 3,
                "skipped": ["green"] * 3,
                "red": ["red", "green", "green", "green"],
            },
        ),
    )
}


@dataclass(frozen=True)
class Stage:
    """A scene that is put up."""

    scene: Scene
    place: Place
    ground: Ground
    beside: Beside | None = None


def put_up(scene: Scene, folder: Path, ends: ExitStack) -> Stage:
    """Project, remote, mirror, forge; what must be ended is left with `ends`."""
    base = folder / "run"
    base.mkdir()
    ground = Ground(base / "origin.git")
    beside = ends.enter_context(Beside(scene.flavour, ground.path)) if scene.flavour else None
    settings = _SETTINGS.format(remote=ground.path)
    settings += 'history = "rebase"\n' if scene.linear else ""
    settings += "fixes = 0\n" if scene.reverts else ""
    if beside is None:
        settings += scene.more + _COMMAND.format(base=base)
    else:
        os.environ[_VARIABLE] = TOKEN
        settings += _FORGE.format(kind=kind_of(scene.flavour), url=beside.url, token=_VARIABLE, more=scene.more)
    scenario = Scenario(
        "delivered",
        scene.jobs,
        mode="local-git",
        schedule="off",
        concurrency=3,
        wanted=_wanted(scene),
        settings=settings,
    )
    place = Place(base, scenario).make()
    Ground.make(ground.path, place.root)
    subprocess.run(["git", "init", "-q", "--bare", str(base / "mirror.git")], check=True)
    test, mirror = (_TEST_ALL, _MIRROR_ALL) if scene.together else (_TEST, _MIRROR)
    for name, text in {"ci-test": test, "ci-mirror": mirror.format(mirror=base / "mirror.git")}.items():
        (base / name).write_text(text)
        (base / name).chmod(0o755)
    return Stage(scene, place, ground, beside)


def _wanted(scene: Scene) -> dict[str, str]:
    files = {"plain": "plainly\n" if scene.starts["plain"] > 1 else "plain\n", "skipped": "well\n", "red": "fine\n"}
    without = ("red" if scene.reverts else "", scene.leaves_out)
    return {f"out/{task}.txt": text for task, text in files.items() if task not in without}


def counted(stage: Stage) -> dict[str, object]:
    """What the forge says of itself."""
    return stage.beside.truth() if stage.beside is not None else {}
