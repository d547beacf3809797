"""The scenario table, second part: several tasks on one branch, whose changes are pushed together."""

from __future__ import annotations

from dataclasses import replace

from tests.forges.loopback.manners import Manners
from tests.forges.loopback.script import GREEN, by_tree, ci
from tests.forges.scenario import Row
from tests.forges.truth import Needs

CANCELS = Manners(cancels=True)
SLOW = by_tree(sec=0.8)
BAD_T2 = by_tree("t2.txt~bad", sec=0.8)
ONLY_MAIN = replace(BAD_T2, branches=("main",), logs={"test": "t2.txt:1: error: bad\n"})
MENDED = [{"t2.txt": "bad\n"}, {"t2.txt": "good\n"}]
OUT = "BLOCKED(external)"
ONLY_CI = '["verified", "committed", "pushed", "ci"]'
EACH = 'pushes = "each"'
STRAIGHT = 'history = "rebase"'
LINEAR = ("protect main push linear",)
LINE = [
    Row("a straight history, and somebody pushes meanwhile", ((SLOW,),), tasks=4, most=5, before=LINEAR,
        meanwhile=((3, "push"), (9, "push other.txt")), others=(SLOW,), more=STRAIGHT),
    Row("a straight history, one by one", ((SLOW,),), tasks=3, most=4, before=LINEAR, meanwhile=((3, "push"),),
        others=(SLOW,), more=f"{STRAIGHT}\n{EACH}"),
    Row("a straight history, one of four is red", ((BAD_T2,),), tasks=4, most=9, before=LINEAR,
        meanwhile=((3, "push"),), others=(SLOW,), work={"t2": MENDED}, fixes_of={"t2": 1}, more=STRAIGHT),
    Row("a straight history, and their push takes the run away", ((SLOW,),), pushed=None, before=LINEAR,
        meanwhile=((3, "push"),), others=(SLOW,), more=STRAIGHT, manners=CANCELS),
]  # fmt: skip
# One of them is pushed first, and the others want to be joined with what somebody pushed then.
UNSAID = Row("a branch that takes no merges, and nobody said so", ((SLOW,),), tasks=3, pushed=None, before=LINEAR,
    meanwhile=((1, "push"),), others=(SLOW,), more=EACH)  # fmt: skip

UNMENDED = Row("one that nobody mends", ((BAD_T2,),), tasks=4, manners=CANCELS, work={"t2": MENDED}, more="fixes = 0")
TRAINS = [
    *LINE,
    Row("five tasks where older runs are cancelled", ((SLOW,),), tasks=5, most=4, manners=CANCELS),
    Row("five tasks one by one where older runs are cancelled", ((SLOW,),), tasks=5, pushed=5, manners=CANCELS,
        more=EACH),
    Row("somebody pushes between two that are pushed one by one", ((SLOW,),), tasks=3, pushed=None, more=EACH,
        meanwhile=((1, "push"),), others=(SLOW,)),
    Row("one of five is red, and only that is mended", ((BAD_T2,),), tasks=5, most=9, manners=CANCELS,
        work={"t2": MENDED}, fixes_of={"t2": 1}),
    Row("one of five is red, and no other branch is judged", ((ONLY_MAIN,),), tasks=5,
        most=9, manners=CANCELS, work={"t2": MENDED}, fixes_of={"t2": 1}),
    Row("one of three is red one by one", ((BAD_T2,),), tasks=3, most=5, manners=CANCELS, more=EACH,
        work={"t2": MENDED}, fixes_of={"t2": 1}),
    Row("two of five are red, each mends its own", ((by_tree("t1.txt~bad", "t3.txt~bad", sec=0.8),),), tasks=5,
        most=14, manners=CANCELS, work={n: [{f"{n}.txt": "bad\n"}, {f"{n}.txt": "good\n"}] for n in ("t1", "t3")},
        fixes_of={"t1": 1, "t3": 1}),
    Row("somebody's push takes the run away", ((SLOW,),), pushed=2, empty=1, meanwhile=((3, "push"),),
        others=(GREEN,), manners=CANCELS),
    Row("somebody's push right after ours leaves it without a run", ((SLOW,),), pushed=2, empty=1,
        meanwhile=((1, "push"),), others=(GREEN,), manners=Manners(cancels=True, folds_sec=0.3)),
    Row("red by what others pushed meanwhile", ((by_tree("theirs.txt", sec=0.5),),), tasks=1, most=4,
        meanwhile=((1, "push"),), others=(by_tree("theirs.txt", sec=0.3),), ends="BLOCKED(external)", empty=1,
        says="also without this run's changes", manners=CANCELS),
    Row("green alone and red together: the later one adapts", ((by_tree("t1.txt~one+t2.txt~one", sec=0.8),),), tasks=3,
        most=8, manners=CANCELS, work={n: [{f"{n}.txt": "one\n"}, {f"{n}.txt": "two\n"}] for n in ("t1", "t2")},
        fixes_of={"t1": -1, "t2": -1}),
]  # fmt: skip
# Workflows that filter by paths start no run for an empty commit.
PATHS = ".forgejo/workflows/ci.yml"
FILTERED = by_tree(sec=0.6, paths_ignore=("docs",))
TAKEN_AWAY = Row("somebody's push takes the run away, and workflows go by paths", ((FILTERED,),), pushed=1,
    meanwhile=((3, "push"),), others=(FILTERED,), manners=CANCELS,
    base={PATHS: "on:\n  push:\n    paths-ignore: [docs/**]\n"})  # fmt: skip
BY_PATHS = [
    TAKEN_AWAY,
    replace(TAKEN_AWAY, name="the same for three tasks", tasks=3, pushed=None),
    replace(TAKEN_AWAY, name="the same by the settings alone", base={}, completion=ONLY_CI,
        more='ci_paths_ignore = ["docs/**"]', needs=Needs(mirrored=False)),
    replace(TAKEN_AWAY, name="the same right after the push", meanwhile=((1, "push"),),
        manners=Manners(cancels=True, folds_sec=0.3)),
    replace(TAKEN_AWAY, name="the same, and their commit is red", others=(by_tree("theirs.txt", sec=0.3),),
        pushes=((by_tree("theirs.txt", sec=0.6, paths_ignore=("docs",)),),), ends="BLOCKED(external)",
        says="also without this run's changes", pushed=None),
    replace(TAKEN_AWAY, pushes=((ci({"test": "run cancel"}, sec=0.6, paths_ignore=("docs",)),),), others=(
        replace(FILTERED, workflow="docs.yml"),), required=(), needs=Needs(required=()), ends="BLOCKED(external)",
        name="it is cancelled, and their commit has another workflow alone", says="filter by changed paths"),
    replace(TAKEN_AWAY, name="somebody pushes documents alone, and the run goes on", meanwhile=((3, "push docs.md"),)),
]  # fmt: skip
