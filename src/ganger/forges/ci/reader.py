"""Reading CI from a forge: the part of the port that differs between releases."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

from ganger.core.model.ci import ABSENT, NEEDS_APPROVAL, OVER, JobFact, RunFact, Word
from ganger.forges.api import Site
from ganger.forges.http.client import ForgeAsk

GONE = (404, 410)
NEVER_BEGAN = "startup_failure"


class CiReader(Protocol):
    @property
    def notes(self) -> tuple[str, ...]:
        """What it cannot do, as sentences for the operator."""

    async def runs(self, shas: Sequence[str]) -> Sequence[RunFact]: ...

    async def jobs(self, run: RunFact) -> RunFact: ...

    async def log(self, run: RunFact, job: JobFact) -> str: ...

    async def rerun(self, run: RunFact) -> bool: ...

    async def cancel(self, run: RunFact) -> bool: ...


def with_jobs(run: RunFact, jobs: Sequence[JobFact], digest: str, *, whole: bool = True) -> RunFact:
    """Adds a run's jobs. `asked` stays empty until the jobs have ended too, so that an ended run is asked for again.
    `whole`: these are all its jobs. A run without jobs is accepted only if it says that none began."""
    if run.reason == NEEDS_APPROVAL:
        jobs = [job if job.word in OVER else replace(job, word=Word.WAITING, reason=NEEDS_APPROVAL) for job in jobs]
    # Manual jobs of a child pipeline need not be started.
    left = [job for job in jobs if job.word not in OVER and not (job.child and job.reason == NEEDS_APPROVAL)]
    settled = whole and (bool(jobs) or run.raw == NEVER_BEGAN or bool(run.unread)) and not left
    through = run.word not in OVER or settled
    return replace(run, jobs=tuple(jobs), asked=run.state if through else "", digest=digest)


def deleted(run: RunFact) -> RunFact:
    gone = replace(run, word=Word.WAITING, raw="deleted", reason=ABSENT, jobs=())
    return replace(gone, asked=gone.state)


async def job_log(site: Site, path: str) -> str:
    """The end of the log; empty if there is none (any more). Not masked: a token in it is a leak that must be seen."""
    answer = await site.ask(ForgeAsk("GET", path, away=True, tail=True), also=GONE)
    return "" if answer.status in GONE else answer.text


async def ordered(site: Site, path: str) -> bool:
    """Whether the forge does what is asked of a run."""
    answer = await site.ask(ForgeAsk("POST", path, repeats=False), also=(400, 403, 404, 405, 409, 410, 422))
    return 200 <= answer.status < 300


def unfinished(run: RunFact) -> bool:
    """Whether any job failed or was cancelled: if none did, only the whole run can be rerun."""
    return any(job.word in (Word.FAILURE, Word.CANCELLED) for job in run.jobs)
