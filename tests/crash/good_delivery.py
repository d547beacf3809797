"""A run in which everything is delivered as it must be, told by its events: what planted violations are made from.

`a` works on lib, is red once, is mended, and its mirror is skipped once; `b` works on app, which builds on lib, and has
a change request.
"""

from __future__ import annotations

from ganger.core import events as ev
from ganger.core.model.ci import JobFact, RunFact, Word
from ganger.core.model.ledger import RepoRules
from ganger.core.model.records import Policy, TaskSpec
from ganger.core.vocabulary import HealSchedule, Mode, PushStyle, RunStatus, TaskStatus
from tests.crash.good_run import Tale, start, worked

POLICY = Policy(heal_schedule=HealSchedule.OFF, concurrency=2)
SPECS = (TaskSpec("a", repo="lib"), TaskSpec("b", repo="app"))
LIB = RepoRules(
    "lib",
    locks="exclusive",
    completion=("verified", "committed", "pushed", "ci", "mirrored"),
    branch="main",
    forge="forgejo",
    required_jobs=("test",),
    mirror_job="mirror",
)
APP = RepoRules(
    "app",
    ("lib",),
    "exclusive",
    ("verified", "committed", "pushed", "ci"),
    PushStyle.REQUEST,
    "main",
    "forgejo",
    ("test",),
    auto_merge=True,
)
A1, A2, B1, OTHER = ("a1" * 20, "a2" * 20, "b1" * 20, "ee" * 20)
ROOT = "00" * 20


def run_of(sha: str, test: Word = Word.SUCCESS, mirror: Word = Word.SUCCESS, number: str = "7") -> RunFact:
    jobs = (JobFact("test", test), JobFact("mirror", mirror))
    return RunFact(number, sha, Word.SUCCESS, jobs=jobs)


def seen(task: str, number: int, sha: str, finding: str, *runs: RunFact) -> ev.CiSeen:
    return ev.CiSeen(task, number, sha, runs, finding, finding)


def judged(task: str, number: int, sha: str, verdict: str = "green") -> ev.CiJudged:
    return ev.CiJudged(task, number, sha, verdict, "so it is")


def merged(task: str, number: int, base: str, commit: str, head: str) -> list[ev.Event]:
    """From its agent to the run's branch."""
    return [
        start(task, number),
        *worked(task, number),
        ev.ChangeTaken(task, number, base, commit, ("x.txt",)),
        ev.VerifyStarted(task, number, "log"),
        ev.VerifyFinished(task, number, True, "log", 0.1, ()),
        ev.MergeQueued(task, number, commit),
        ev.HeadIntended(head, commit, (task,), (commit,)),
        ev.Merged(task, number, commit, commit),
    ]


def pushed(task: str, number: int, commit: str, branch: str = "main") -> list[ev.Event]:
    repo = {"a": "lib", "b": "app"}[task]
    return [ev.PushIntended(task, number, repo, branch, commit, "tree"), ev.Pushed(task, number, commit, branch)]


def red(task: str, number: int, sha: str) -> list[ev.Event]:
    return [
        seen(task, number, sha, "red", run_of(sha, Word.FAILURE, Word.SKIPPED)),
        judged(task, number, sha, "red"),
        ev.AttemptFailed(task, number, "ci_error", "ci_error:x", "boom", "ci_fixes"),
        ev.TaskRequeued(task, "CI is red"),
    ]


def good() -> list[ev.Event]:
    return [
        ev.RunStarted("run", "digest", POLICY, SPECS),
        ev.LeadStarted(1, policy=POLICY, fence=1, mode=Mode.LOCAL_GIT, repos=(LIB, APP)),
        *merged("a", 1, ROOT, A1, ROOT),
        *pushed("a", 1, A1),
        *red("a", 1, A1),
        *merged("a", 2, A1, A2, A1),
        *pushed("a", 2, A2),
        seen("a", 2, A2, "mirror", run_of(A2, mirror=Word.SKIPPED)),
        ev.RetriggerIntended("a", 2, A2, "mirror_skipped", "rerun", "7"),
        ev.Retriggered("a", 2, A2, "mirror_skipped", "rerun"),
        seen("a", 2, A2, "green", run_of(A2)),
        judged("a", 2, A2),
        ev.MirrorProved("a", 2, A2, "mirror", "success"),
        ev.TaskSettled("a", TaskStatus.DONE, "proved"),
        *merged("b", 1, ROOT, B1, ROOT),
        *pushed("b", 1, B1, "ganger/run/b"),
        ev.RequestIntended("b", 1, "ganger/run/b", "main"),
        ev.RequestOpened("b", 1, "101", "url"),
        seen("b", 1, B1, "green", run_of(B1)),
        judged("b", 1, B1),
        ev.RequestChanged("b", 1, "101", "merged", OTHER),
        ev.TaskSettled("b", TaskStatus.DONE, "proved"),
        ev.RunFinished(RunStatus.COMPLETED, None, {"DONE": 2}),
    ]


GOOD = Tale(tuple(good()))
