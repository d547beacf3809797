"""Lets system calls of a lead fail, or its git processes die: never a false DONE, never a traceback, and the next lead
completes the run."""

from __future__ import annotations

import contextlib
import resource
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from faults import leads, planted
from faults.crash import moments_of, points_of, spread, usual_starts
from faults.disks import small_disk
from faults.judge import end_all, judge, judge_end, paid_twice, words
from faults.leads import Ended
from faults.pool import Job, Verdict, scratch
from faults.runs import crash_scenario
from faults.scenario import Place
from faults.strace import Point, Strike
from ganger.errors import EXIT_ESCALATED

ERRNOS = ("EIO", "ENOSPC", "EINTR", "EMFILE", "EACCES", "ENOMEM")
# Calls on files, with the errors they really meet. What a failing clock does is the interpreter's matter.
_FAILS_WITH = {
    "openat open": ERRNOS,
    "read pread64 getdents64": ("EIO", "EINTR"),
    "write pwrite64": ("EIO", "ENOSPC", "EINTR"),
    "fsync fdatasync": ("EIO", "ENOSPC"),
    "rename renameat renameat2 link linkat mkdir mkdirat": ("EIO", "ENOSPC", "EACCES"),
    "unlink unlinkat rmdir fchmod fchown chmod utimensat ftruncate": ("EIO", "EACCES"),
    "newfstatat stat lstat": ("EIO", "EACCES", "ENOMEM"),
}
# A git process of the lead dies, and the lead lives.
KILLED = "KILL"
_SYNCS = frozenset({"fsync", "fdatasync"})
_WHOLE = (0, EXIT_ESCALATED)


@dataclass(frozen=True, slots=True)
class Fault:
    """One error at one point, or a limit on the whole lead (`fsize:KB` no file beyond it, `disk:KB` no more space)."""

    seed: int
    point: Point | None
    errno: str = ""
    limit: str = ""
    bug: str = ""
    mode: str = "direct"

    def words(self) -> str:
        what = f"--point {self.point} --errno {self.errno}" if self.point else f"--limit {self.limit}"
        bug = f" --bug {self.bug}" if self.bug else ""
        return f"errors --mode {self.mode} --seed {self.seed} {what}{bug}"


def faults(count: int, seeds: int, *, errno: str = "", bug: str = "", mode: str = "direct") -> list[Fault]:
    """`count` errors, each call's kinds in turn, spread evenly over the file calls of all seeds' runs.

    In git two of three happen to git processes, and half of these die.
    """
    chosen: list[Fault] = []
    for seed in range(seeds if count else 0):
        share = max(1, (count + seeds - 1 - seed) // seeds)
        own = [point for point in points_of(seed, bug, mode=mode) if kinds_of(point, errno)]
        groups = [(own, share)]
        if mode != "direct":
            _, children = moments_of(seed, bug)
            groups = [(own, share // 3), ([p for p in children if kinds_of(p, errno)], share - share // 3)]
        for points, part in groups:
            for n, point in enumerate(spread(points, part)):
                kinds = kinds_of(point, errno)
                chosen.append(Fault(seed, point, kinds[n % len(kinds)], bug=bug, mode=mode))
    return chosen


def kinds_of(point: Point, errno: str = "") -> tuple[str, ...]:
    """How this call may fail; not at all where it is none of the run's own files."""
    if point.call.startswith("git-"):
        return _of_child(point, errno)
    kinds = next((errnos for calls, errnos in _FAILS_WITH.items() if point.call in calls.split()), ())
    # SQLite itself passes over a folder that cannot be synced, and a last checkpoint that fails: the log still has all.
    harmless = point.call == "fdatasync" and (".db" not in point.arguments or point.after == "run_finished")
    told = point.arguments.startswith(("1<", "2<"))
    ours = "/project" in point.arguments and not harmless and not told
    return tuple(kind for kind in kinds if errno in ("", kind)) if ours else ()


def _of_child(point: Point, errno: str) -> tuple[str, ...]:
    """A git process dies at any of its calls; it is told of an error where there can be one."""
    call = point.call.partition("/")[2].partition(".")[0]
    told = next((errnos for calls, errnos in _FAILS_WITH.items() if call in calls.split()), ())
    both = tuple(kind for one in told for kind in (KILLED, one)) or (KILLED,)
    return tuple(kind for kind in both if errno in ("", kind))


def limits(seed: int, mode: str = "direct", *, disks: bool) -> list[Fault]:
    """Short writes, and disks that are full at different moments."""
    sizes = [Fault(seed, None, limit=f"fsize:{kilobytes}", mode=mode) for kilobytes in (1, 4, 16, 40, 64, 100)]
    room = (80, 120, 160, 200, 260, 320) if mode == "direct" else (200, 400, 600, 800, 1100, 1500)
    full = [Fault(seed, None, limit=f"disk:{kilobytes}", mode=mode) for kilobytes in room]
    return sizes + (full if disks else [])


def jobs(chosen: Sequence[Fault]) -> list[Job]:
    return [partial(fail, fault) for fault in chosen]


def fail(fault: Fault) -> Verdict:
    leads.import_everything()
    before = planted.planter(fault.bug)
    kind, _, kilobytes = fault.limit.partition(":")
    with scratch() as folder, contextlib.ExitStack() as stack:
        place = Place(folder / "run", crash_scenario(fault.seed, fault.mode))
        if kind == "disk":
            place.make(at_root=lambda root: stack.enter_context(small_disk(root, int(kilobytes))))
        else:
            place.make()
        try:
            return _failed(place, fault, before)
        finally:
            end_all(place)


def _failed(place: Place, fault: Fault, before: Callable[[], None] | None) -> Verdict:
    kind, _, kilobytes = fault.limit.partition(":")
    if fault.point is not None:
        strike = Strike(fault.point, "signal=KILL" if fault.errno == KILLED else f"error={fault.errno}")
        struck = leads.run(place, strike=strike, before=before)
    elif kind == "fsize":
        struck = leads.run(place, before=partial(_no_larger_than, int(kilobytes), before))
    else:
        struck = leads.run(place, before=before)
    wrong = [f"after the fault: {problem}" for problem in _judge_struck(place, fault, struck)]
    if kind == "disk":
        return Verdict(fault.words(), tuple(wrong), f"ended {struck.code}")
    ended = leads.run_on(place, before=before)
    wrong += [
        f"at the end: {problem}" for problem in judge_end(place, ended, [*struck.shown, *ended.shown], tidy=False)
    ]
    wrong += paid_twice(place, usual_starts(fault.seed, fault.mode), keeper_died=True, errors=True)
    return Verdict(fault.words(), tuple(wrong), "survived" if struck.code in _WHOLE else "stopped")


def _no_larger_than(kilobytes: int, before: Callable[[], None] | None) -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (kilobytes << 10, kilobytes << 10))
    if before is not None:
        before()


def _judge_struck(place: Place, fault: Fault, struck: Ended) -> list[str]:
    whole = any(name == "run_finished" for _, name in struck.shown)
    wrong = judge(place, struck.shown, ended=struck if struck.code in _WHOLE else None)
    if struck.code < 0:
        wrong.append(f"outcome: the lead died of signal {-struck.code}")
    if "Traceback" in struck.said or '"UNEXPECTED"' in struck.error:
        wrong.append(f"outcome: an error nobody expected: {words(struck)}")
    # A struck write may have been the very one that tells.
    if struck.code not in _WHOLE and not (whole or struck.error or (fault.point and fault.point.call == "write")):
        wrong.append(f"outcome: it ended with {struck.code} and did not say why: {words(struck)}")
    if fault.point and fault.point.call in _SYNCS and struck.code in _WHOLE:
        wrong.append("outcome: a failed fsync did not stop the run")
    return wrong
