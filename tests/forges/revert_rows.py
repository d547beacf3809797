"""The scenario table, fourth part: a change that keeps its branch red is reverted because a person says so."""

from __future__ import annotations

from dataclasses import replace

from tests.forges.loopback.manners import Manners
from tests.forges.loopback.script import by_tree
from tests.forges.merge_rows import AUTO, merged
from tests.forges.scenario import LEAK, Row

REVERT = "answer a revert it"
BAD = by_tree("a.txt~bad", sec=0.4)
STAYS_BAD = [{"a.txt": "bad\n"}, {"a.txt": "bad again\n"}, {"a.txt": "bad still\n"}, {"a.txt": "good\n"}]
ALONE = Row("alone", ((BAD,),), attempts=STAYS_BAD, more="fixes = 1", then=(REVERT,))
OTHERS = replace(ALONE, name="with others on the branch", tasks=4, manners=Manners(cancels=True))
LINEAR = ("protect main push linear",)
BRANCHES = [
    ALONE,
    OTHERS,
    replace(OTHERS, name="one push each", more='fixes = 1\npushes = "each"'),
    replace(OTHERS, name="a straight history, and somebody pushes", more='fixes = 1\nhistory = "rebase"', before=LINEAR,
        then=("push", REVERT), others=(BAD,)),
    replace(OTHERS, name="while the token is refused", over_http=True, then=("revoke awaited", REVERT)),
    replace(OTHERS, name="while the run goes on", then=(), timed=((0.0, f"soon {REVERT.removeprefix('answer ')}"),),
        pace={"t3": 12.0}, concurrency=4, slow=True),
    replace(ALONE, name="a maintainer reverted it already", then=("undo a.txt", REVERT), others=(BAD,)),
    replace(OTHERS, name="a maintainer reverted it, and others are merged", then=("undo a.txt", REVERT), others=(BAD,)),
]  # fmt: skip
LEAKS = replace(ALONE, name="a key in the log", attempts=STAYS_BAD[:1],
    pushes=((by_tree("a.txt~bad", sec=0.4, logs={"test": f"the key is {LEAK}\n"}),),))  # fmt: skip
# The next task builds on what is to be reverted, in the same line.
BUILT_ON = replace(ALONE, name="built on", tasks=2, concurrency=1, pushes=((by_tree("red.txt~bad", sec=0.4),),),
    attempts=[{"red.txt": "bad\n", "a.txt": "one\n"}, {"red.txt": "bad again\n"}, {"red.txt": "good\n"}],
    work={"t1": [{"a.txt": "one, and more\n"}] * 2})  # fmt: skip
NEEDED = """import os, sys
sys.exit(os.path.exists("t1.txt") and not os.path.exists("a.txt"))
"""
NEEDED_BY_CHECK = replace(ALONE, name="needed by another", tasks=2, check=NEEDED)
STILL_RED = replace(ALONE, name="red without it", pushes=((by_tree("a.txt~bad", "!a.txt", sec=0.4),),))
LANDED = merged("red where it landed", others=(by_tree("a.txt~attempt", sec=0.3),), more=AUTO + "fixes = 0\n")
NOT_LANDED = merged("red in its request", by_tree("a.txt~attempt", sec=0.3), more=AUTO + "fixes = 0\n")
MENDS = 'base_red = "mend"\nfixes = 1\n'
OLD_AND_OWN = by_tree("!fix.txt", "a.txt~bad", sec=0.4)
BEFORE = replace(OTHERS, name="the branch was red before", pushes=((OLD_AND_OWN,),), before=("base red",), more=MENDS,
    tasks=3, work={name: [{f"{name}.txt": "one\n"}, {"fix.txt": "fixed\n"}] for name in ("t1", "t2")})  # fmt: skip
BEFORE_ALONE = replace(ALONE, name="the branch was red before, and nobody else fixes it", before=("base red",),
    pushes=((OLD_AND_OWN,),), others=(OLD_AND_OWN,), more=MENDS)  # fmt: skip
