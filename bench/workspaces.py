"""What a workspace costs, against the plain git command that makes the same folder."""

from __future__ import annotations

import asyncio
import os
import random
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from bench.figures import Figure
from bench.processes import BenchError, run, scratch
from bench.sizes import TINY, Sizes
from ganger.ports.changes import Rules
from ganger.workspaces.files.copying import bytes_of
from ganger.workspaces.git.repository import GitRepository, GitSettings

MOST_MAKING = 2.0
CONCURRENCY = 8
_WHO = ("-c", "user.name=bench", "-c", "user.email=bench@localhost")


@dataclass(frozen=True, slots=True)
class Scale:
    files: int
    folders: int
    rounds: int


_SCALES = {TINY: Scale(40, 4, 1)}
_USUAL = Scale(5_000, 25, 2)


def measure(sizes: Sizes) -> Iterator[Figure]:
    """Paired rounds, each making its folders in a fresh place; git's own first in one round, second in the next."""
    scale = _SCALES.get(sizes, _USUAL)
    root = scratch()
    build(root / "project", scale.files)
    repository = GitRepository(_settings(root))
    with asyncio.Runner() as runner:
        runner.run(repository.open())
        ours: list[float] = []
        plain: list[float] = []
        for number in range(scale.rounds):
            pair = [(plain, _plain(root, number)), (ours, _own(repository, number))]
            for times, make in pair if number % 2 == 0 else reversed(pair):
                times.append(runner.run(_timed(make, scale.folders)))
        taken = runner.run(_timed(_taking(repository), scale.folders))
        runner.run(repository.close())
    yield _making(ours, plain, scale)
    yield Figure(
        "workspaces", "take a change of 3 files", taken / scale.folders * 1000, "ms", how=f"{scale.files} files"
    )
    yield _disk(root, scale)


def _making(ours: list[float], plain: list[float], scale: Scale) -> Figure:
    ratio = median(one / other for one, other in zip(ours, plain, strict=True))
    own, git = (min(times) / scale.folders * 1000 for times in (ours, plain))
    note = f"{own:.0f} ms to {git:.0f} ms each; {_amount(scale)}"
    return Figure("workspaces", "make a workspace: to git clone --shared", ratio, "x", MOST_MAKING, note)


def _disk(root: Path, scale: Scale) -> Figure:
    """Objects are shared: a workspace's own git folder holds an index and little else."""
    own = bytes_of(root / "state/bench/work/t-0.1/.git")
    return Figure("workspaces", "disk of a workspace's own .git", own / 1024, "KiB", how=_amount(scale))


def _amount(scale: Scale) -> str:
    return f"{scale.folders * scale.rounds} at concurrency {CONCURRENCY}, {scale.files} files"


def build(project: Path, files: int) -> None:
    """A repository of ordinary source files: the same for the same number."""
    dice = random.Random(files)
    for number in range(files):
        file = project / f"pkg{number % 50}" / f"part{number % 7}" / f"module_{number}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("".join(f"value_{n} = {dice.random()}\n" for n in range(dice.randint(10, 200))))
    for words in (("init", "-q"), ("add", "-A"), ("commit", "-qm", "start"), ("gc", "-q")):
        run(["git", *_WHO, *words], project)


def _settings(root: Path) -> GitSettings:
    state = root / "state"
    return GitSettings(
        project=root / "project",
        store=state / "repo.git",
        run="bench",
        work=state / "bench/work",
        checks=state / "bench/checks",
        pool=state / "bench/pool",
        judge=lambda change, rules: None,
        generated=lambda path: False,
        min_free_bytes=0,
    )


Step = Callable[[int], Awaitable[None]]


async def _timed(step: Step, count: int) -> float:
    """Seconds until all are done, a bounded number at a time."""
    room = asyncio.Semaphore(CONCURRENCY)

    async def one(number: int) -> None:
        async with room:
            await step(number)

    # What earlier rounds wrote would otherwise be written back in the time of the next.
    await asyncio.to_thread(os.sync)
    began = time.perf_counter()
    await asyncio.gather(*(one(number) for number in range(count)))
    return time.perf_counter() - began


def _plain(root: Path, around: int) -> Step:
    async def make(number: int) -> None:
        target = root / f"plain-{around}" / str(number)
        words = ("git", "clone", "-q", "--shared", str(root / "state/repo.git"), str(target), "-b", "ganger/bench")
        child = await asyncio.create_subprocess_exec(*words)
        if await child.wait() != 0 or not (target / "pkg0").is_dir():
            raise BenchError(f"git clone into {target} failed")

    return make


def _own(repository: GitRepository, around: int) -> Step:
    async def make(number: int) -> None:
        place = await repository.place(f"t-{number}", around + 1)
        if not (place.folder / "pkg0").is_dir():
            raise BenchError(f"{place.folder} is not a workspace")

    return make


def _taking(repository: GitRepository) -> Step:
    async def take(number: int) -> None:
        place = await repository.place(f"t-{number}", 1)
        for name in ("one", "two", "three"):
            (place.folder / f"pkg0/{name}.py").write_text(f"{name} = {number}\n")
        taken = await repository.take(f"t-{number}", 1, (), Rules(), "bench")
        if len(taken.files) != 3:
            raise BenchError(f"{len(taken.files)} files were taken, not 3")

    return take
