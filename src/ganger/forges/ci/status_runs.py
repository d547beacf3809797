"""Runs put together from commit statuses and runners' tasks, where a forge has no call for runs.

Here a run's id is its number in the repository, and a workflow may be known by its name instead of its file.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ganger.core.model.ci import JobFact, RunFact, is_sha
from ganger.forges.api import Site
from ganger.forges.ci.page_order import BY_NAME, Turns
from ganger.forges.ci.reader import with_jobs
from ganger.forges.ci.statuses import (
    SIZE,
    Status,
    Task,
    combined,
    newest,
    of_run,
    read_task,
    statuses_of,
    summary,
    tasks_of,
)


class StatusRuns:
    """`with_tasks`: the server lists them, so that many commits cost one call."""

    def __init__(self, site: Site, *, with_tasks: bool) -> None:
        self._site = site
        self._with_tasks = with_tasks
        self._turns = Turns()
        self._by_status = True
        self._tasks: dict[tuple[str, int], dict[str, Task]] = {}
        self._statuses: dict[str, list[Status]] = {}
        self._order: list[str] = []

    @property
    def notes(self) -> tuple[str, ...]:
        return (
            "it gives no job logs: a worker gets the job's name, status and link",
            "it cannot run CI again: an empty commit does",
            "jobs are known by commit statuses: name required jobs without their workflow",
        )

    async def runs(self, shas: Sequence[str]) -> Sequence[RunFact]:
        wanted = {sha for sha in shas if is_sha(sha)}
        if not wanted:
            return []
        self._forget(wanted)
        self._by_status = not self._by_status
        unseen = wanted - {sha for sha, _ in self._tasks}
        if not self._with_tasks or len(wanted) == 1 or (self._by_status and unseen):
            sha = self._next(wanted if not self._with_tasks else unseen or wanted)
            self._statuses[sha], _ = await statuses_of(self._site, sha)
        else:
            await self._read_tasks(wanted)
        return [run for sha in sorted(wanted) for run in self._runs(sha)]

    async def jobs(self, run: RunFact) -> RunFact:
        listed, digest = await statuses_of(self._site, run.sha)
        statuses = of_run(listed, run.number)
        tasks: dict[str, JobFact] = {}
        if self._with_tasks and run.number:
            tasks = await tasks_of(self._site, run.sha, run.number, [status.job.name for status in statuses])
        return with_jobs(run, combined(statuses, tasks), digest, whole=bool(statuses))

    async def log(self, run: RunFact, job: JobFact) -> str:
        return ""

    async def rerun(self, run: RunFact) -> bool:
        return False

    async def _read_tasks(self, wanted: set[str]) -> None:
        page = self._turns.next()
        page = self._turns.newest if page == BY_NAME else page
        answer = await self._site.get("R/actions/tasks", {"limit": SIZE, "page": page})
        entries = self._site.listed(answer, "workflow_runs")
        for task in map(read_task, entries):
            if task is not None and task.sha in wanted:
                self._tasks.setdefault((task.sha, task.run), {})[task.job.id] = task
        # A run's tasks may lie on several pages, so the older ones are always gone through as well.
        self._turns.read(page, pages=page + 1 if len(entries) >= SIZE else page, enough=False)

    def _runs(self, sha: str) -> list[RunFact]:
        by_task = {run: list(tasks.values()) for (of, run), tasks in self._tasks.items() if of == sha}
        found = [_run(sha, run, tasks[0], newest(tasks).values()) for run, tasks in by_task.items()]
        by_status: dict[int, list[Status]] = {}
        for status in self._statuses.get(sha, []):
            by_status.setdefault(status.run, []).append(status)
        for run, statuses in by_status.items():
            if run not in by_task:
                found.append(_run(sha, run, statuses[0], [status.job for status in statuses]))
        return found

    def _next(self, among: set[str]) -> str:
        """By turns, whoever was not asked for longest first."""
        self._order = [sha for sha in self._order if sha in among]
        sha = next((new for new in sorted(among) if new not in self._order), "") or self._order.pop(0)
        self._order.append(sha)
        return sha

    def _forget(self, wanted: set[str]) -> None:
        self._tasks = {key: tasks for key, tasks in self._tasks.items() if key[0] in wanted}
        self._statuses = {sha: found for sha, found in self._statuses.items() if sha in wanted}


def _run(sha: str, number: int, first: Task | Status, jobs: Iterable[JobFact]) -> RunFact:
    word, raw = summary(jobs)
    url = first.job.url.partition("/jobs/")[0]
    return RunFact(str(number), sha, word, raw, number=number, workflow=first.workflow, event=first.event, url=url)
