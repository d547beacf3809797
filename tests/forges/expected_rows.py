"""The scenario table, sixth part: changes on which no workflow runs, and CI that does not begin."""

from __future__ import annotations

from dataclasses import replace

from tests.engine.git_runs import edits
from tests.forges.loopback.script import GREEN, MIRROR, RED, by_tree, ci
from tests.forges.scenario import Row
from tests.forges.truth import Needs

EXTERNAL = "BLOCKED(external)"
ONLY_CI = '["verified", "committed", "pushed", "ci"]'
NONE_NEEDED = Needs(ci=False, mirrored=False)
NO_MIRROR = Needs(mirrored=False)
DEPLOYED = Needs(required=("check", "deploy"), mirrored=False)
OFF = "expects_ci = false\n"
DOCS = 'ci_paths_ignore = ["docs/**", "*.md"]\n'
REQUEST = 'style = "request"\n'
CODE_ONLY = ci(None, paths_ignore=("docs/", "README.md"))
SLOW = by_tree(sec=0.6, paths_ignore=("docs/",))
ONE_RED = ci({"test": "run fail", MIRROR: None})
DOC = ({"docs/a.md": "one\n"}, {"docs/a.md": "two\n"})
WORKFLOW = ".forgejo/workflows/ci.yml"
FILTERED = "on:\n  push:\n    paths-ignore: [docs/**]\n"
WAIVED = ("pushed", "ci_waived")


def quiet(name: str, **more: object) -> Row:
    """No run is needed for the end it comes to."""
    given: dict[str, object] = {"needs": NONE_NEEDED, "completion": ONLY_CI, "events": WAIVED, "never": ("ci_judged",)}
    return replace(Row(name, ((CODE_ONLY,),)), **{**given, **more})  # type: ignore[arg-type]


def judged(name: str, **more: object) -> Row:
    given: dict[str, object] = {"needs": NO_MIRROR, "completion": ONLY_CI, "never": ("ci_waived",)}
    return replace(Row(name, ((CODE_ONLY,),)), **{**given, **more})  # type: ignore[arg-type]


EXPECTED = [
    quiet("no CI is expected, and none comes", pushes=((),), more=OFF),
    judged("no CI is expected, a red run comes, and its verdict counts", pushes=((RED,), (GREEN,)), more=OFF, pushed=2,
        fixes=1),
    judged("no CI is expected, a red run comes, and none of its fix", pushes=((RED,), ()), more=OFF, pushed=2, fixes=1,
        ends=EXTERNAL, says="never started"),
    judged("no CI is expected, and a run comes late in the grace", pushes=((ci(after=6),),),
        more=OFF + "appear_sec = 5\n"),
    judged("no CI is expected, and of a run that comes only the required jobs count", pushes=((ONE_RED,),), more=OFF,
        required=("check",), needs=Needs(required=("check",), mirrored=False)),
    judged("no CI is expected, and a run comes without a required job", pushes=((GREEN,),), more=OFF + "fixes = 0\n",
        required=("check", "deploy"), needs=DEPLOYED, ends="ESCALATED", fixes=0, asks=True,
        says="deploy (missing_job) failed"),
    judged("no CI is expected, and the run that came is deleted", pushes=((ci(gone=2),),), more=OFF, ends=EXTERNAL),
    quiet("no CI is expected of one task", pushes=((),), metadata={"a": {"expects_ci": False}}),
    judged("CI is expected of one task, and not of its repository", pushes=((),), more=OFF, ends=EXTERNAL,
        metadata={"a": {"expects_ci": True}}, says="never started"),
    quiet("no CI is expected of a change request", pushes=((),), more=OFF + REQUEST, requests=1),
    quiet("no CI is expected of a change request that is merged", pushes=((),), requests=1,
        more=OFF + REQUEST + "auto_merge = true\n", merged=1),
    quiet("only documents are changed", attempts=DOC, more=DOCS),
    quiet("only documents are changed in a change request", attempts=DOC, more=DOCS + REQUEST, requests=1),
    quiet("only documents are changed, and somebody pushed code before", attempts=DOC, more=DOCS, before=("push",)),
    judged("documents and code are changed", attempts=({"docs/a.md": "one\n", "a.txt": "one\n"},), more=DOCS),
    judged("code is red, and its fix is a document", pushes=((RED,), (CODE_ONLY,)), more=DOCS, pushed=2, fixes=1,
        attempts=({"a.txt": "one\n"}, *DOC), ends=EXTERNAL, says="never started"),
    judged("documents that nobody said start no run", attempts=DOC, ends=EXTERNAL, says="never started"),
    judged("documents and code in one push", pushes=((SLOW,),), tasks=3, most=3, more=DOCS, attempts=DOC,
        work={"t1": [{"docs/t1.md": "one\n"}]}, never=(), needs=NONE_NEEDED),
    judged("documents beside red code: who wrote them is not asked", tasks=4, most=4, more=DOCS, never=(),
        pushes=((by_tree("t1.txt~bad", sec=1.5, paths_ignore=("docs/",)),),), needs=NONE_NEEDED, fixes_of={"t1": 1},
        work={"t1": [{"t1.txt": "bad\n"}, {"t1.txt": "good\n"}], "t2": [{"docs/2.md": "two\n"}],
              "t3": [{"docs/3.md": "three\n"}]}, pace={"t1": 0.3, "t2": 0.7, "t3": 0.9}),
]  # fmt: skip
RETRIED = [
    judged("never started and retried: nothing was ever run there", pushes=((),), ends=EXTERNAL, retry="nothing",
        says="is known to have started a run", never=("retrigger_intended",)),
    judged("never started and retried, where CI ran before", pushes=((), (GREEN,)), before=("base green",),
        retry="nothing", pushed=2, empty=1),
    judged("never started and retried twice: one commit of nothing at the most", pushes=((),), before=("base green",),
        retry="nothing", then=("again",), pushed=2, empty=1, ends=EXTERNAL, says="a second time"),
    judged("never started and retried, where workflows go by paths", base={WORKFLOW: FILTERED}, attempts=DOC,
        before=("base green",), retry="nothing", ends=EXTERNAL, says="filter by changed paths"),
    quiet("never started, then no CI is expected, and retried", pushes=((),), retry="setting expects_ci = false"),
]  # fmt: skip
STUCK = ci({"check": "wait", "test": "wait"}, again=({"check": "run ok", "test": "run ok"},))
SOON = "ci_warn_sec = 0.3\nci_sec = 0.7\nci_most_sec = 30\n"
STOPPED = ("limit_warned", "retrigger_intended", "retriggered", "ci_judged")
WAITING = [
    judged("CI that does not move is stopped and run again on github", pushes=((STUCK,),), flavour="github", more=SOON,
        reruns=1, events=STOPPED),
    judged("CI that does not move is stopped and run again on gitlab", pushes=((STUCK,),), flavour="gitlab", more=SOON,
        reruns=1, events=STOPPED, slow=True),
    judged("CI that does not move is stopped once", pushes=((replace(STUCK, again=()),),), flavour="github",
        more="ci_warn_sec = 0.3\nci_sec = 0.7\nci_most_sec = 4\n", reruns=1, ends=EXTERNAL, says="not finished"),
    judged("CI that does not move, and may not be run again", pushes=((STUCK,),), flavour="github", ends=EXTERNAL,
        more="ci_warn_sec = 0.3\nci_sec = 0.7\nci_most_sec = 2\nretriggers = 0\n", says="not finished"),
    judged("CI that does not move where no run can be stopped", pushes=((STUCK,),), ends=EXTERNAL,
        more="ci_warn_sec = 0.3\nci_sec = 0.7\nci_most_sec = 2\n", says="not finished", never=("retrigger_intended",)),
    judged("three tasks whose CI does not move: one rerun for all", pushes=((STUCK,), (GREEN,)), flavour="github",
        more=SOON, tasks=3, most=3, reruns=1, fixes=None),
]  # fmt: skip
HEALTH = "\n[health]\nlook_sec = 0.05\nactive_sec = 0.6\nstall_sec = 30\n"
TALKS = [*({"text": f"step {n}", "delay": 0.25} for n in range(12)), edits({"a.txt": "mended\n"})]
FIXING = [
    judged("a fix that shows no sign is ended and given to the next worker", pushes=((RED,), (GREEN,)), pushed=2,
        fixes=None, more="fix_sec = 1.2\n" + HEALTH, doing={2: {"hang": True}},
        events=("ci_judged", "attempt_started", "limit_warned", "worker_ending", "attempt_failed", "attempt_started",
            "pushed", "ci_judged")),
    judged("a fix that is at work goes on after its time", pushes=((RED,), (GREEN,)), pushed=2, fixes=1,
        more="fix_sec = 1.2\n" + HEALTH, doing={2: TALKS}, never=("worker_ending",),
        events=("ci_judged", "attempt_started", "limit_warned", "limit_extended", "pushed", "ci_judged")),
]  # fmt: skip
