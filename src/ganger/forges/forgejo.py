"""Forgejo: the calls of each release. From 12 on it lists runs, from 16 on jobs."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from ganger.core.model.ci import JobFact, RunFact
from ganger.forges.api import Site
from ganger.forges.ci.reader import GONE, CiReader, deleted, job_log, with_jobs
from ganger.forges.ci.run_list import ListCall, RunList
from ganger.forges.ci.statuses import StatusRuns, combined, of_run, statuses_of, tasks_of
from ganger.forges.ci.words import forgejo
from ganger.forges.forge import Opened
from ganger.forges.gitea import gitea_rung
from ganger.forges.pull_requests import GiteaPulls
from ganger.forges.untrusted import Row, number, text, yes
from ganger.forges.version import Version, read_version


class ForgejoRuns:
    """`has_jobs`: the release has calls for jobs and logs; without them jobs are read from tasks and statuses."""

    def __init__(self, site: Site, *, has_jobs: bool, ordered: bool = True) -> None:
        self._site = site
        self._has_jobs = has_jobs
        self._list = RunList(site, ListCall("R/actions/runs", "head_sha", read_run, backwards=not ordered))

    @property
    def notes(self) -> tuple[str, ...]:
        again = "it cannot rerun CI: Ganger pushes an empty commit instead"
        logs = "it provides no job logs: a worker gets the job's name, status and link"
        return (again,) if self._has_jobs else (logs, again)

    async def runs(self, shas: Sequence[str]) -> Sequence[RunFact]:
        return await self._list.of(shas)

    async def jobs(self, run: RunFact) -> RunFact:
        if not self._has_jobs:
            return await self._by_status(run)
        answer = await self._site.get(f"R/actions/runs/{run.id}/jobs", also=GONE)
        if answer.status in GONE:
            return deleted(run)
        jobs = [read_job(found, run) for found in self._site.listed(answer) if text(found, "run_id") in ("", run.id)]
        return with_jobs(run, jobs, hashlib.sha256(answer.body).hexdigest())

    async def _by_status(self, run: RunFact) -> RunFact:
        listed, digest = await statuses_of(self._site, run.sha)
        statuses = of_run(listed, run.number)
        tasks = await tasks_of(self._site, run.sha, run.number, [status.job.name for status in statuses])
        return with_jobs(run, combined(statuses, tasks), digest, whole=bool(statuses))

    async def log(self, run: RunFact, job: JobFact) -> str:
        if not self._has_jobs or not job.id:
            return ""
        return await job_log(self._site, f"R/actions/jobs/{job.id}/logs")

    async def rerun(self, run: RunFact) -> bool:
        return False

    async def cancel(self, run: RunFact) -> bool:
        return False


def read_run(found: Row) -> RunFact:
    """The commit is in `commit_sha`; the filter for it is called `head_sha`, a field that no row has."""
    said = forgejo(text(found, "status"), need_approval=yes(found, "need_approval"))
    return RunFact(
        id=text(found, "id"),
        sha=text(found, "commit_sha"),
        word=said.word,
        raw=said.raw,
        reason=said.reason,
        number=number(found, "index_in_repo"),
        workflow=text(found, "workflow_id"),
        event=text(found, "trigger_event") or text(found, "event"),
        url=text(found, "html_url"),
    )


def read_job(found: Row, run: RunFact) -> JobFact:
    said = forgejo(text(found, "status"))
    return JobFact(
        name=text(found, "name"),
        word=said.word,
        raw=said.raw,
        reason=said.reason,
        id=text(found, "id"),
        attempt=max(1, number(found, "attempt", 1)),
        url=run.url,
    )


def forgejo_rung(site: Site, version: Version) -> CiReader:
    """A server that is Gitea is read as Gitea."""
    if version.gitea:
        return gitea_rung(site, version)
    if version.major >= 16:
        return ForgejoRuns(site, has_jobs=True)
    if version.major >= 12:
        return ForgejoRuns(site, has_jobs=False, ordered=version.major >= 15)
    return StatusRuns(site, with_tasks=version.major >= 8)


def open_forgejo(site: Site) -> Opened:
    async def meet() -> tuple[str, CiReader]:
        version = await read_version(site)
        return version.text, forgejo_rung(site, version)

    return Opened("forgejo", site, GiteaPulls(site), meet)
