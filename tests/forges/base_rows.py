"""The scenario table, fifth part: branches whose CI was red before the run."""

from __future__ import annotations

from tests.forges.loopback.script import RED, by_tree
from tests.forges.scenario import Row
from tests.forges.truth import Needs

OLD = by_tree("!fix.txt")
BOTH = by_tree("!fix.txt", "t2.txt~bad", sec=0.5)
ONLY_CI = '["verified", "committed", "pushed", "ci"]'
EXCUSED = Needs(ci=False, mirrored=False)
# Where there are logs: without them nothing shows that it is the same fault.
WITH_LOGS = ("forgejo-16", "github", "gitlab", "gitea-1.27", "gitea-1.25")
QUICK = frozenset({"forgejo-16", "github"})
IGNORE, MEND = 'base_red = "ignore"', 'base_red = "mend"'

BASES = [
    *(
        Row(f"red before the run, ignored on {flavour}", ((OLD,),), flavour, more=IGNORE, before=("base red",),
            completion=ONLY_CI, needs=EXCUSED, events=("pushed", "ci_waived"), never=("ci_judged",),
            slow=flavour not in QUICK)
        for flavour in WITH_LOGS
    ),
    *(
        Row(f"red before the run, fixed by the task on {flavour}", ((OLD,),), flavour, pushed=2, fixes=1, more=MEND,
            before=("base red",), attempts=({"a.txt": "one\n"}, {"fix.txt": "mended\n"}), prompt="was red before",
            slow=flavour not in QUICK)
        for flavour in (*WITH_LOGS, "forgejo-13")
    ),
    *(
        row
        for flavour in ("forgejo-16", "github", "gitlab", "gitea-1.27")
        for row in (
            Row(f"red before the run, ignored, and a fault of its own on {flavour}", ((RED,), (OLD,)), flavour,
                more=IGNORE, pushed=2, fixes=1, before=("base red",), completion=ONLY_CI, needs=EXCUSED,
                events=("ci_judged", "ci_waived"), slow=flavour != "forgejo-16"),
            Row(f"red before the run, ignored, one of three breaks something else on {flavour}", ((BOTH,),), flavour,
                tasks=3, most=4, more=IGNORE, before=("base red",), completion=ONLY_CI, needs=EXCUSED,
                fixes_of={"t2": 1}, work={"t2": [{"t2.txt": "bad\n"}, {"t2.txt": "good\n"}]},
                slow=flavour != "forgejo-16"),
            Row(f"red before the run, fixed by one of three on {flavour}", ((by_tree("!fix.txt", sec=0.5),),), flavour,
                tasks=3, most=4, more=MEND, before=("base red",), fixes=None, slow=flavour != "forgejo-16",
                work={name: [{f"{name}.txt": "one\n"}, {"fix.txt": "mended\n"}] for name in ("a", "t1", "t2")}),
            Row(f"red before the run and found late: a change request is not charged on {flavour}", ((OLD,),), flavour,
                "BLOCKED(external)", before=("base red",), more='style = "request"', requests=1, says="was red at",
                completion=ONLY_CI, needs=EXCUSED, never=("ci_judged",), slow=flavour != "github"),
        )
    ),
    Row("red before the run, ignored, without logs nothing is excused", ((OLD,),), "forgejo-13", "BLOCKED(external)",
        more=IGNORE, before=("base red",), completion=ONLY_CI, needs=EXCUSED, says="was red at", never=("ci_waived",)),
]  # fmt: skip
