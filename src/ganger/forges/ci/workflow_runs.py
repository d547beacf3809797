"""CI of GitHub, and of Gitea since 1.25: runs by `head_sha`, jobs with a status and then a conclusion."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ganger.core.model.ci import JobFact, RunFact
from ganger.forges.api import Site
from ganger.forges.ci.reader import NEVER_BEGAN, deleted, job_log, ordered, unfinished, with_jobs
from ganger.forges.ci.run_list import ListCall, RunList
from ganger.forges.ci.words import GITEA_STATUS, GITHUB_STATUS, Table, github
from ganger.forges.untrusted import Row, number, row, text


@dataclass(frozen=True, slots=True)
class Dialect:
    """The differences between the two."""

    statuses: Table
    size: int
    size_name: str
    reruns: bool = True
    cancels: bool = False


GITHUB = Dialect(GITHUB_STATUS, 100, "per_page", cancels=True)
GITEA = Dialect(GITEA_STATUS, 50, "limit")
GITEA_WITHOUT_RERUN = Dialect(GITEA_STATUS, 50, "limit", reruns=False)


class WorkflowRuns:
    def __init__(self, site: Site, dialect: Dialect) -> None:
        self._site = site
        self._dialect = dialect
        self._list = RunList(
            site,
            ListCall("R/actions/runs", "head_sha", self._run, size=dialect.size, size_name=dialect.size_name),
        )

    @property
    def notes(self) -> tuple[str, ...]:
        return () if self._dialect.reruns else ("it cannot rerun CI: Ganger pushes an empty commit instead",)

    async def runs(self, shas: Sequence[str]) -> Sequence[RunFact]:
        return await self._list.of(shas)

    async def jobs(self, run: RunFact) -> RunFact:
        query: dict[str, str | int] = {self._dialect.size_name: self._dialect.size}
        if self._dialect is GITHUB:
            query["filter"] = "latest"
        listed = await self._site.pages(f"R/actions/runs/{run.id}/jobs", query, "jobs", self._dialect.size)
        if listed is None:
            return deleted(run)
        jobs = [self._job(found) for found in listed.rows if _belongs(found, run)]
        if not jobs and run.raw in (NEVER_BEGAN, "failure"):
            run = await self._with_trouble(run)
        return with_jobs(run, jobs, listed.digest)

    async def _with_trouble(self, run: RunFact) -> RunFact:
        """A run that failed without a job; its workflow has no name if the file could not be read."""
        found = row((await self._site.get(f"R/actions/runs/{run.id}")).json())
        nameless = text(found, "name") == text(found, "path").partition("@")[0] != ""
        if run.raw != NEVER_BEGAN and not nameless:
            return run
        return replace(run, unread=f"the run ended as {run.raw} before any job began; its page shows why")

    async def log(self, run: RunFact, job: JobFact) -> str:
        return await job_log(self._site, f"R/actions/jobs/{job.id}/logs") if job.id else ""

    async def rerun(self, run: RunFact) -> bool:
        if not self._dialect.reruns:
            return False
        how = "rerun-failed-jobs" if unfinished(run) else "rerun"
        return await ordered(self._site, f"R/actions/runs/{run.id}/{how}")

    async def cancel(self, run: RunFact) -> bool:
        return self._dialect.cancels and await ordered(self._site, f"R/actions/runs/{run.id}/cancel")

    def _run(self, found: Row) -> RunFact | None:
        said = github(text(found, "status"), text(found, "conclusion"), self._dialect.statuses)
        return RunFact(
            id=text(found, "id"),
            sha=text(found, "head_sha"),
            word=said.word,
            raw=said.raw,
            reason=said.reason,
            number=number(found, "run_number"),
            attempt=max(1, number(found, "run_attempt", 1)),
            workflow=_workflow(found),
            event=text(found, "event"),
            url=text(found, "html_url"),
        )

    def _job(self, found: Row) -> JobFact:
        said = github(text(found, "status"), text(found, "conclusion"), self._dialect.statuses)
        return JobFact(
            name=text(found, "name"),
            word=said.word,
            raw=said.raw,
            reason=said.reason,
            id=text(found, "id"),
            attempt=max(1, number(found, "run_attempt", 1)),
            url=text(found, "html_url"),
        )


def _belongs(found: Row, run: RunFact) -> bool:
    return text(found, "head_sha") in ("", run.sha) and text(found, "run_id") in ("", run.id)


def _workflow(found: Row) -> str:
    """The file's name: `.github/workflows/ci.yml@refs/heads/main` is `ci.yml`."""
    file = text(found, "path").partition("@")[0].rpartition("/")[2]
    return file or text(found, "name") or text(found, "workflow_id")
