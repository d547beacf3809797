"""Change requests on their way into their target, as rows of the scenario table."""

from __future__ import annotations

from dataclasses import replace

from tests.forges.loopback.manners import Manners
from tests.forges.loopback.script import Run, by_tree
from tests.forges.scenario import Row
from tests.forges.truth import Needs

EXTERNAL = "BLOCKED(external)"
CI = Needs(mirror="", mirrored=False)
PLAIN = '["verified", "committed", "pushed", "ci"]'
AUTO = 'style = "request"\nauto_merge = true\n'
TOGETHER = by_tree("a.txt~attempt 1+t1.txt~t1 1")
FLAVOURS = ("forgejo-16", "github", "gitlab", "gitea-1.27")
LOST = Manners(lost_merges=1)
BUSY = Manners(merge_sec=0.2)


def merged(name: str, *pushes: Run, **more: object) -> Row:
    given: dict[str, object] = {"more": AUTO, "requests": 1, "merged": 1, "completion": PLAIN, "needs": CI}
    return Row(name, ((*pushes,) or (by_tree(),),), **{**given, **more})  # type: ignore[arg-type]


def on(flavour: str, row: Row) -> Row:
    usual = flavour == "forgejo-16"
    return replace(row, name=f"{row.name} on {flavour}", flavour=flavour, slow=row.slow or not usual)


SCENES = [
    merged("merged, and CI of what landed is green", others=(by_tree(),), events=(
        "merge_intended", "request_changed", "tracking_moved", "ci_judged")),
    merged("merged, and CI says nothing of what landed", events=("merge_intended", "request_changed",
        "landed_unjudged"), never=("tracking_moved",)),
    merged("two that are green alone and red together", TOGETHER, tasks=2, requests=2, merged=2, pushed=4, fixes=None,
        asks=False),
    merged("three side by side, one after the other", tasks=3, requests=3, merged=3, pushed=None, others=(by_tree(),)),
    merged("somebody pushed meanwhile", meanwhile=((2, "push"),), pushed=2, others=(by_tree(),),
        events=("update_intended", "push_intended", "pushed", "ci_judged", "merge_intended")),
    merged("the answer to a merge is lost", manners=LOST),
    merged("another merge is under way", manners=BUSY, tasks=2, requests=2, merged=2, pushed=None),
    merged("what landed is red", others=(by_tree("a.txt~attempt 1"),), requests=2, merged=2, pushed=2, fixes=1,
        events=("tracking_moved", "ci_judged", "attempt_failed", "merged", "request_opened", "request_changed")),
    merged("a conflict with what is in the target by now", meanwhile=((2, "push a.txt"),), pushed=2,
        others=(by_tree(),), events=("update_conflicted", "attempt_failed", "attempt_started", "merge_intended")),
    merged("merged by hand", meanwhile=((2, "merge"),), never=("merge_intended",), events=("request_changed",)),
    merged("merged by hand, and its branch deleted", meanwhile=((2, "merge and delete"),), never=("merge_intended",)),
    merged("merged by hand while it was red", by_tree("a.txt~attempt 1"), meanwhile=((2, "merge"),), pushed=2,
        requests=2, merged=2, fixes=1, asks=False, more=AUTO + "draft = false\n"),
    merged("closed by hand", meanwhile=((2, "close"),), ends=EXTERNAL, merged=0, says="someone closed"),
    merged("its branch deleted", meanwhile=((2, "delete ganger/r1/a"),), ends=EXTERNAL, merged=0, says="deleted"),
    merged("its branch forced back", meanwhile=((2, "cut ganger/r1/a"),), ends=EXTERNAL, merged=0, says="replaced"),
    merged("somebody pushed onto its branch", meanwhile=((2, "onto ganger/r1/a"),), ends=EXTERNAL, merged=0,
        says="on top of", others=(by_tree(),)),
    merged("merged by squash", more=AUTO + 'merge_method = "squash"\n', others=(by_tree(),)),
    merged("only squashes are allowed", manners=Manners(methods=("squash",)), others=(by_tree(),)),
]  # fmt: skip
REBASED = merged("merged by rebase after somebody pushed", more=AUTO + 'merge_method = "rebase"\n', pushed=2,
    others=(by_tree(),), meanwhile=((2, "push"),))  # fmt: skip
STRAIGHT = merged("fast-forward alone is allowed", manners=Manners(methods=("fast-forward",)), pushed=2,
    meanwhile=((2, "push"),))  # fmt: skip
STRAIGHT_AUTO = AUTO + 'history = "rebase"\n'
# Nothing that is pushed or lands is a merge; what lands may have others' names and times.
LINES = [
    merged("a straight history after somebody pushed", pushed=2, others=(by_tree(),), more=STRAIGHT_AUTO,
        meanwhile=((2, "push"),)),
    merged("a straight history, red together", TOGETHER, tasks=2, requests=2, merged=2, pushed=4, fixes=None,
        asks=False, more=STRAIGHT_AUTO),
    merged("a straight history, and a conflict with the target", meanwhile=((2, "push a.txt"),), pushed=2,
        others=(by_tree(),), more=STRAIGHT_AUTO,
        events=("update_conflicted", "attempt_failed", "attempt_started", "merge_intended")),
    merged("a straight history, and what landed is red", others=(by_tree("a.txt~attempt 1"),), requests=2, merged=2,
        pushed=2, fixes=1, more=STRAIGHT_AUTO),
]  # fmt: skip
# What lands there is the very commit that was tested.
LINES_ON_GITLAB = [replace(row, manners=Manners(methods=("fast-forward",)), others=()) for row in LINES[:3]]
BY_QUEUE = [
    # By the wall clock: while a request is in the queue nobody asks for runs.
    merged("merged by the forge's own queue", by_tree(sec=0.2), manners=Manners(train=True),
        others=(by_tree(sec=0.2),)),
    merged("two through the forge's own queue, red together", replace(TOGETHER, sec=0.2), manners=Manners(train=True),
        tasks=2, requests=2, merged=2, pushed=3, fixes=None, asks=False, others=(by_tree(sec=0.2),)),
]  # fmt: skip
BY_QUEUE = [replace(row, needs=replace(CI, events=("push", "merge_group"))) for row in BY_QUEUE]
CHILD = Run({"child": "wait run ok"}, workflow="child", event="parent")
CHILD_RED = replace(CHILD, jobs={"child": "wait run fail"})
WITH_CHILD = replace(CI, required=("check", "test", "child"), events=("push", "parent"))
MERGES = [
    *(on(flavour, row) for row in SCENES for flavour in FLAVOURS),
    *(on(flavour, REBASED) for flavour in FLAVOURS if flavour != "gitlab"),
    *(on(flavour, STRAIGHT) for flavour in FLAVOURS if flavour != "github"),
    Row("what the forge does not allow is told", flavour="gitlab", more=AUTO + 'merge_method = "rebase"\n', requests=1,
        completion=PLAIN, needs=CI, ends=EXTERNAL, says="does not allow merging requests by rebase"),
    *(on(flavour, row) for row in LINES for flavour in FLAVOURS if flavour != "gitlab"),
    *(on("gitlab", row) for row in LINES_ON_GITLAB),
    *(on(flavour, row) for row in BY_QUEUE for flavour in ("github", "gitlab")),
    Row("a job of a child pipeline counts where it is named", ((by_tree(), CHILD_RED), (by_tree(), CHILD)), "gitlab",
        completion=PLAIN, required=WITH_CHILD.required, needs=WITH_CHILD, pushed=2, fixes=1),
    Row("a job of a child pipeline that nobody named", ((by_tree(), CHILD_RED),), "gitlab", completion=PLAIN, needs=CI),
]  # fmt: skip
