"""The runs that are disturbed: short ones that touch everything durable, and fleets."""

from __future__ import annotations

from collections.abc import Iterable

from faults.scenario import Job, Scenario

PLAIN = (
    Job("make", "create", "out/make.txt", "made\n"),
    Job("change", "replace", "kept.txt", "new\n", needs=("make",)),
    Job("add", "append", "ledger.txt", "added\n"),
    Job("bad", "create", "out/bad.txt", "good\n", wrong="check"),
    Job("talk", "append", "ledger.txt", "talked\n", wrong="talk"),
    Job("look"),
)
HEALED = (
    Job("sick", "create", "out/sick.txt", "well\n", wrong="sick"),
    Job("bad", "create", "out/bad.txt", "good\n", wrong="sick"),
    Job("add", "append", "ledger.txt", "added\n"),
    Job("talk", "append", "ledger.txt", "talked\n", wrong="talk"),
    Job("ask", "replace", "kept.txt", "new\n", wrong="ask"),
    Job("look", needs=("ask",)),
)
# The first of the two that is merged begins the file anew, so the other one conflicts and is done again.
_SHARE = """if [ "$(cat shared.txt)" = begin ]
then echo {0} > shared.txt
else echo {0} >> shared.txt
fi
"""
# Green alone and red together, whichever comes first; the one that comes later mends it.
_PARTNER = """mkdir -p out
echo partner > out/partner.txt
[ ! -e out/red.txt ] || echo fine > out/red.txt
"""
IN_GIT = (
    Job("partner", edit=_PARTNER),
    Job(
        "red",
        wrong="edit",
        edit="mkdir -p out; echo fine > out/red.txt",
        first_edit="mkdir -p out; echo FIRST > out/red.txt",
    ),
    Job("left", edit=_SHARE.format("left")),
    Job("right", edit=_SHARE.format("right")),
    Job("make", edit="mkdir -p out; echo made > out/make.txt"),
    Job("add", "append", "ledger.txt", "added\n", edit="mkdir -p out; echo both > out/add.txt"),
    Job(
        "bad",
        wrong="edit",
        edit="mkdir -p out; echo good > out/bad.txt",
        first_edit="mkdir -p out; echo WRONG > out/bad.txt",
    ),
    Job("talk", wrong="talk", edit="echo talked > talk.txt", first_edit="echo half > half.txt"),
    Job("look"),
    Job("change", "replace", "kept.txt", "new\n", needs=("make",)),
    Job("chain", needs=("change", "add"), edit="cat kept.txt ledger.txt out/make.txt > out/chain.txt"),
)
SICK = Job("sick", "create", "out/sick.txt", "well\n", wrong="sick")
_GIT_FILES = {"kept.txt": "old\n", "ledger.txt": "begin\n", "shared.txt": "begin\n"}
_GIT_WANTED = {
    "out/partner.txt": "partner\n",
    "out/red.txt": "fine\n",
    "shared.txt": "left\nright\n",
    "out/make.txt": "made\n",
    "out/add.txt": "both\n",
    "out/bad.txt": "good\n",
    "talk.txt": "talked\n",
    "out/chain.txt": "new\nbegin\nadded\nmade\n",
}


# From here on a seed is that of a very short run in git, for bugs that show in any.
SHORT = 100


def crash_scenario(seed: int, mode: str = "direct") -> Scenario:
    """Few tasks under every schedule, at different widths and paces, with and without a healer and a question."""
    if seed >= SHORT:
        return _short(seed, mode)
    schedule = ("batch", "off", "auto", "epoch", "task")[seed % 5]
    healed = schedule != "off" and seed % 10 < 5
    pause = (0.0, 0.03, 0.1)[seed % 3]
    if mode == "direct":
        jobs, width = HEALED if healed else PLAIN, (2, 3, 1)[seed % 3]
        return Scenario(f"crash-{seed}", jobs, schedule=schedule, concurrency=width, pause_sec=pause)
    return Scenario(
        f"crash-{seed}",
        (*IN_GIT, *((SICK,) if healed else ())),
        mode=mode,
        merging="level" if seed % 4 == 3 else "queue",
        warm=seed % 3,
        schedule=schedule,
        batch_size=6,
        concurrency=3,
        pause_sec=pause,
        files=_GIT_FILES,
        wanted=_GIT_WANTED,
    )


def _short(seed: int, mode: str) -> Scenario:
    jobs = tuple(job for job in IN_GIT if job.name in ("make", "add", "change"))
    return Scenario(
        f"crash-{seed}",
        jobs,
        mode=mode,
        schedule="off",
        files=_GIT_FILES,
        wanted={path: _GIT_WANTED[path] for path in ("out/make.txt", "out/add.txt")},
    )


def fleet_scenario(tasks: int, concurrency: int, pause_sec: float, mode: str = "direct") -> Scenario:
    """Many tasks; every second one changes one shared file, so that a write done twice shows."""
    names = [f"t{n:03d}" for n in range(tasks)]
    if mode == "direct":
        jobs = tuple(
            Job(name, "append", "ledger.txt", f"{name}\n")
            if place % 2
            else Job(name, "create", f"out/{name}.txt", "x\n")
            for place, name in enumerate(names)
        )
        return Scenario("fleet", jobs, schedule="off", concurrency=concurrency, pause_sec=pause_sec)
    jobs = tuple(
        Job(name, edit=f"sed -i 's/^of {name}$/& done/' table.txt") if place % 2 else _own_file(name)
        for place, name in enumerate(names)
    )
    # Lines far enough from each other to be merged without a conflict.
    rows = {name: f"of {name}" for name in names[1::2]}
    between = "".join(f"-{n}\n" for n in range(6))
    return Scenario(
        "fleet",
        jobs,
        mode=mode,
        warm=2,
        schedule="off",
        concurrency=concurrency,
        pause_sec=pause_sec,
        files={"kept.txt": "old\n", "ledger.txt": "begin\n", "table.txt": _table(rows.values(), between)},
        wanted={
            "table.txt": _table((f"{row} done" for row in rows.values()), between),
            **{f"out/{name}.txt": "x\n" for name in names[::2]},
        },
    )


def _own_file(name: str) -> Job:
    return Job(name, edit=f"mkdir -p out; echo x > out/{name}.txt")


def _table(rows: Iterable[str], between: str) -> str:
    return "".join(f"{row}\n{between}" for row in rows)
