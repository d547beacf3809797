"""The scenario table, fourth part: workflows that a forge cannot read."""

from __future__ import annotations

from tests.forges.loopback.script import GREEN, Run, ci
from tests.forges.scenario import Row

UNREAD = ci(unparsed=("*",))
SHOWN = ("forgejo-16", "forgejo-13", "forgejo-11", "github", "gitlab")
# Gitea shows nothing of it: no run begins.
EVERY = (*SHOWN, "gitea-1.27", "gitea-1.25")
QUICK = frozenset({"forgejo-16", "github", "gitlab"})


def _file(flavour: str) -> str:
    """Where that forge looks for its workflows."""
    kind = flavour.partition("-")[0]
    return ".gitlab-ci.yml" if kind == "gitlab" else f".{kind}/workflows/ci.yml"


def _by_the_task(flavour: str) -> Row:
    """The task's own change makes the file unreadable, and its next attempt mends that."""
    file = _file(flavour)
    broken: Run = ci(unparsed=(f"{file}~[",))
    return Row(
        f"the task's own workflow cannot be read on {flavour}", ((broken,),), flavour, pushed=2, fixes=1,
        attempts=({file: "on: [push\n"}, {file: "on: push\n"}), unprotected=(file,),
        slow=flavour not in QUICK,
    )  # fmt: skip


UNREADABLE = [
    *(
        Row(f"a workflow cannot be read on {flavour}", ((UNREAD,),), flavour, "BLOCKED(external)",
            says="cannot read the workflow", never=("ci_judged", "retrigger_intended"), slow=flavour not in QUICK)
        for flavour in SHOWN
    ),
    *(
        Row(f"a workflow cannot be read on {flavour}, which shows nothing of it", ((UNREAD,),), flavour,
            "BLOCKED(external)", says="never started", never=("ci_judged", "retrigger_intended"), slow=True)
        for flavour in ("gitea-1.27", "gitea-1.25")
    ),
    *(_by_the_task(flavour) for flavour in EVERY),
    Row("a workflow could not be read, it is corrected on the branch", ((UNREAD,), (GREEN,)), ends="DONE", pushed=2,
        empty=1, retry="push corrected.yml", others=(GREEN,), says="cannot read the workflow"),
    Row("an unreadable workflow that nobody asks for", ((GREEN, Run({"lint": "ok"}, "lint.yml", unparsed=("*",))),)),
]  # fmt: skip
