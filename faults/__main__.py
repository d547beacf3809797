"""`python -m faults KIND`: disturbs runs; exit 1 when anything is wrong, with words to repeat it."""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Sequence

from faults import (
    crash,
    delivery,
    errors,
    hunt,
    kills,
    planted,
    planted_pushes,
    planted_reports,
    pool,
    powercut,
    workers,
)
from faults.scenario import MODES
from faults.scenes import SCENES
from faults.strace import Point

SKIPPED = 77
_GIT_SHARE = 4


def main(words: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m faults", description=__doc__)
    kinds = parser.add_subparsers(dest="kind", required=True)
    _crash_words(kinds.add_parser("crash", help="kill the lead at a system call, then go on"))
    _powercut_words(kinds.add_parser("powercut", help="cut the power at a system call, then go on (root)"))
    _errors_words(kinds.add_parser("errors", help="let a system call fail, then go on"))
    _kills_words(kinds.add_parser("kills", help="kill lead, keeper or both at random moments"))
    _workers_words(kinds.add_parser("workers", help="let many sessions take tasks and report while leads are killed"))
    _delivery_words(kinds.add_parser("delivery", help="kill the lead at every step of a delivery, then go on"))
    _planted_words(kinds.add_parser("planted", help="plant bugs; every one must be caught"))
    asked = parser.parse_args(words)
    if asked.kind not in ("kills", "workers") and shutil.which("strace") is None:
        print("faults: needs strace (Debian, Ubuntu: apt-get install strace)", file=sys.stderr)
        return 1
    return int(asked.act(asked))


def _mode_words(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--mode", choices=MODES, help="both without it; a quarter of the points in local-git")


def _modes(asked: argparse.Namespace, count: int) -> list[tuple[str, int]]:
    """How many of `count` points each mode gets."""
    if asked.mode:
        return [(asked.mode, count)]
    in_git = count // _GIT_SHARE
    return [("direct", count - in_git), ("local-git", in_git)]


def _crash_words(parser: argparse.ArgumentParser) -> None:
    _mode_words(parser)
    parser.add_argument("--points", type=int, default=2000, help="how many single kills")
    parser.add_argument("--double", type=int, default=0, help="how many kills of a recovery too")
    parser.add_argument("--seeds", type=int, default=5, help="how many different runs")
    parser.add_argument("--seed", type=int, default=0, help="with --point: which run")
    parser.add_argument(
        "--point", type=Point.read, action="append", help="one kill such as write:17; again: the next lead"
    )
    parser.add_argument("--keeper", action="store_true", help="kill the keeper instead of the lead")
    parser.add_argument("--bug", default="", help="plant this bug first")
    parser.add_argument("--jobs", type=int, default=0, help="how many at once; the number of cores otherwise")
    parser.set_defaults(act=_crash)


def _crash(asked: argparse.Namespace) -> int:
    if asked.point:
        chosen = [crash.Blow(asked.seed, tuple(asked.point), asked.bug, asked.keeper, asked.mode or MODES[0])]
    else:
        kinds = {"bug": asked.bug, "keeper": asked.keeper}
        doubles = dict(_modes(asked, asked.double))
        chosen = [
            blow
            for mode, count in _modes(asked, asked.points)
            for blow in crash.blows(count, asked.seeds, double=doubles[mode], mode=mode, **kinds)
        ]
    return _code(pool.carry_out("crash", crash.jobs(chosen), at_once=asked.jobs))


def _powercut_words(parser: argparse.ArgumentParser) -> None:
    _mode_words(parser)
    parser.add_argument("--points", type=int, default=500)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--point", type=Point.read)
    parser.add_argument("--at-end", action="store_true", help="cut after the lead has ended by itself")
    parser.add_argument("--bug", default="")
    parser.add_argument("--jobs", type=int, default=0)
    parser.set_defaults(act=_powercut)


def _powercut(asked: argparse.Namespace) -> int:
    problem = powercut.why_not()
    if problem:
        print(f"powercut: skipped, {problem}")
        return SKIPPED
    if asked.point or asked.at_end:
        chosen = [powercut.Cut(asked.seed, asked.point, asked.bug, asked.mode or MODES[0])]
    else:
        chosen = [
            cut
            for mode, count in _modes(asked, asked.points)
            for cut in powercut.cuts(count, asked.seeds, bug=asked.bug, mode=mode)
        ]
    return _code(pool.carry_out("powercut", powercut.jobs(chosen), at_once=asked.jobs))


def _errors_words(parser: argparse.ArgumentParser) -> None:
    _mode_words(parser)
    parser.add_argument("--points", type=int, default=1200)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--point", type=Point.read)
    parser.add_argument("--errno", choices=(*errors.ERRNOS, errors.KILLED), help="only this one")
    parser.add_argument("--limit", default="", help="fsize:KB or disk:KB instead of a point")
    parser.add_argument("--no-limits", action="store_true", help="errors at points only")
    parser.add_argument("--bug", default="")
    parser.add_argument("--jobs", type=int, default=0)
    parser.set_defaults(act=_errors)


def _errors(asked: argparse.Namespace) -> int:
    if asked.point or asked.limit:
        mode = asked.mode or MODES[0]
        chosen = [errors.Fault(asked.seed, asked.point, asked.errno or "EIO", asked.limit, asked.bug, mode)]
    else:
        chosen = []
        for mode, count in _modes(asked, asked.points):
            chosen += errors.faults(count, asked.seeds, errno=asked.errno or "", bug=asked.bug, mode=mode)
            if not asked.no_limits:
                chosen += errors.limits(0, mode, disks=not powercut.why_not())
    return _code(pool.carry_out("errors", errors.jobs(chosen), at_once=asked.jobs))


def _kills_words(parser: argparse.ArgumentParser) -> None:
    _mode_words(parser)
    parser.add_argument("--total", type=int, default=300, help="how many kills of each kind")
    parser.add_argument("--whom", choices=kills.WHOM, action="append", help="who is killed; all three without it")
    parser.add_argument("--seed", type=int, help="only the fleet of this seed")
    parser.add_argument("--kills", type=int, default=10, help="of one seed")
    parser.add_argument("--tasks", type=int, default=40)
    parser.add_argument("--concurrency", type=int, default=4)
    parser.add_argument("--agent-sec", type=float, default=0.2)
    parser.add_argument("--bug", default="")
    parser.add_argument("--jobs", type=int, default=0)
    parser.set_defaults(act=_kills)


def _kills(asked: argparse.Namespace) -> int:
    chosen = []
    size = (asked.kills, asked.tasks, asked.concurrency, asked.agent_sec)
    for whom in asked.whom or kills.WHOM:
        for mode, total in _modes(asked, asked.total):
            if asked.seed is not None and asked.mode is None and mode != MODES[0]:
                continue
            seeds = [asked.seed] if asked.seed is not None else range(-(-total // asked.kills))
            chosen += [kills.Spree(seed, whom, *size, bug=asked.bug, mode=mode) for seed in seeds]
    return _code(pool.carry_out("kills", kills.jobs(chosen), at_once=asked.jobs))


def _workers_words(parser: argparse.ArgumentParser) -> None:
    _mode_words(parser)
    parser.add_argument("--workers", type=int, default=100, help="how many sessions ask for tasks")
    parser.add_argument("--tasks", type=int, default=1000, help="in local-git mode a tenth, where both are run")
    parser.add_argument("--reports", type=int, default=1, help="what each says of a task before it reports")
    parser.add_argument("--restarts", type=int, default=5, help="how many leads are killed")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--bug", default="", choices=("", *planted_reports.BUGS), help="plant this bug first")
    parser.set_defaults(act=_workers)


def _workers(asked: argparse.Namespace) -> int:
    sizes = [(asked.mode, asked.tasks)] if asked.mode else [(MODES[0], asked.tasks), (MODES[1], asked.tasks // 10)]
    if asked.bug:
        size = {"workers": asked.workers, "tasks": asked.tasks, "restarts": asked.restarts, "reports": asked.reports}
        chosen = [workers.planted_trial(asked.bug, asked.seed, **size)]
    else:
        chosen = [
            workers.Trial(asked.seed, asked.workers, tasks, asked.reports, asked.restarts, mode)
            for mode, tasks in sizes
        ]
    return _code(pool.carry_out("workers", workers.jobs(chosen), at_once=1))


def _delivery_words(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--scene", choices=SCENES, action="append", help="which run; all without it")
    parser.add_argument("--points", type=int, default=0, help="how many of each; every one without it")
    parser.add_argument("--double", type=int, default=0, help="how many of each in which three leads die")
    parser.add_argument(
        "--point", type=Point.read, action="append", help="one kill such as before/pushed/red:2; again: the next lead"
    )
    parser.add_argument("--keeper", action="store_true", help="the keeper dies with the lead")
    parser.add_argument("--bug", default="", choices=("", *planted_pushes.BUGS), help="plant this bug first")
    parser.add_argument("--jobs", type=int, default=0)
    parser.set_defaults(act=_delivery)


def _delivery(asked: argparse.Namespace) -> int:
    scenes = asked.scene or list(SCENES)
    if asked.point:
        chosen = [delivery.Blow(scene, tuple(asked.point), asked.bug, asked.keeper) for scene in scenes]
    else:
        chosen = delivery.blows(scenes, asked.points, keeper=asked.keeper, bug=asked.bug, double=asked.double)
    return _code(pool.carry_out("delivery", delivery.jobs(chosen), at_once=asked.jobs))


def _planted_words(parser: argparse.ArgumentParser) -> None:
    known = (*planted.BUGS, *planted_reports.BUGS, *planted_pushes.BUGS)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"{', '.join(known)}; all without it")
    parser.add_argument("--most", type=int, default=48, help="how many points are tried for each")
    parser.add_argument("--jobs", type=int, default=0)
    parser.set_defaults(act=_planted)


def _planted(asked: argparse.Namespace) -> int:
    apart = (*planted_reports.BUGS, *planted_pushes.BUGS)
    mine = [name for name in apart if name in asked.names or not asked.names]
    others = [name for name in asked.names if name not in mine]
    chosen = [*mine, *(name for name, _ in planted.named(others) if others or not asked.names)]
    return _code(pool.carry_out("planted", hunt.jobs(chosen, asked.most), at_once=asked.jobs))


def _code(verdicts: Sequence[pool.Verdict]) -> int:
    return 1 if any(verdict.wrong for verdict in verdicts) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
