"""Runs assembled from commit statuses and runner tasks, for releases that cannot list runs."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from ganger.core.model.ci import OVER, JobFact, RunFact, Word, is_sha
from ganger.forges.api import Site, at_end
from ganger.forges.ci.reader import with_jobs
from ganger.forges.ci.run_list import BY_NAME, PageOrder
from ganger.forges.ci.words import CiWord, commit_status, forgejo
from ganger.forges.untrusted import Row, number, row, rows, text

SIZE = 50
MOST_PAGES = 10
MOST_TASK_PAGES = 4
_CONTEXT = re.compile(r"(?P<workflow>.*?) / (?P<job>.*) \((?P<event>[a-z_]+)\)", re.DOTALL)
_TARGET = re.compile(r"/actions/runs/(?P<run>[0-9]{1,18})/jobs/[0-9]+(?:/attempt/[0-9]+)?/?$")
_BADNESS = (Word.SUCCESS, Word.SKIPPED, Word.CANCELLED, Word.FAILURE)


@dataclass(frozen=True, slots=True)
class Status:
    """`run` is the run's number in the repository; 0 if the status is not from the forge's own CI."""

    run: int
    workflow: str
    event: str
    job: JobFact


async def statuses_of(site: Site, sha: str) -> tuple[list[Status], str]:
    """The latest status of each context, and the SHA-256 of the answers."""
    found: dict[str, Status] = {}
    bodies, seen = hashlib.sha256(), 0
    for page in range(1, MOST_PAGES + 1):
        answer = await site.get(f"R/commits/{sha}/status", {"limit": SIZE, "page": page}, also=(404,))
        if answer.status == 404:
            break
        site.listed(answer, "statuses")
        body = row(answer.json())
        entries = rows(body, "statuses")
        bodies.update(answer.body)
        # Just after a push the answer has no SHA; with another SHA it is about another commit.
        if text(body, "sha") == sha:
            found.update((text(entry, "context"), _status(site, entry)) for entry in entries if text(entry, "context"))
        # `total_count` counts this page alone.
        seen += len(entries)
        if at_end(answer, seen=seen, part=len(entries), size=SIZE, counted=False):
            break
    return list(found.values()), bodies.hexdigest()


def _status(site: Site, entry: Row) -> Status:
    said = commit_status(text(entry, "status") or text(entry, "state"), text(entry, "description"))
    context, target = text(entry, "context"), site.page(text(entry, "target_url"))
    named, placed = _CONTEXT.fullmatch(context), _TARGET.search(target)
    if named is None or placed is None:
        return Status(0, "", "push", _job(context, said, "", target))
    job = _job(named["job"], said, "", target)
    return Status(int(placed["run"]), named["workflow"], named["event"], job)


def _job(name: str, said: CiWord, found: str, url: str) -> JobFact:
    return JobFact(name, said.word, said.raw, said.reason, found, 1, url)


@dataclass(frozen=True, slots=True)
class RunnerTask:
    """A job that a runner took."""

    run: int
    sha: str
    workflow: str
    event: str
    job: JobFact


def read_task(site: Site, entry: Row) -> RunnerTask | None:
    sha, run = text(entry, "head_sha"), number(entry, "run_number")
    if not is_sha(sha) or run <= 0:
        return None
    job = _job(text(entry, "name"), forgejo(text(entry, "status")), text(entry, "id"), site.page(text(entry, "url")))
    return RunnerTask(run, sha, text(entry, "workflow_id"), text(entry, "event"), job)


def newest(tasks: Iterable[RunnerTask]) -> dict[str, JobFact]:
    """For each job the task with the highest number, its latest attempt."""
    found: dict[str, JobFact] = {}
    for task in tasks:
        known = found.get(task.job.name)
        if known is None or _number(task.job) >= _number(known):
            found[task.job.name] = task.job
    return found


def _number(job: JobFact) -> int:
    return int(job.id) if job.id.isdecimal() and len(job.id) <= 20 else -1


def combined(statuses: Iterable[Status], tasks: Mapping[str, JobFact]) -> list[JobFact]:
    """Each job once. A status in progress belongs to a newer attempt than a task that has ended; if both have ended,
    the worse one counts."""
    jobs = dict(tasks)
    for status in statuses:
        known = jobs.get(status.job.name)
        jobs[status.job.name] = status.job if known is None else _both(status.job, known)
    return list(jobs.values())


def _both(status: JobFact, task: JobFact) -> JobFact:
    if task.word not in OVER or (status.word in OVER and _BADNESS.index(status.word) <= _BADNESS.index(task.word)):
        return task
    return replace(status, id=task.id, url=task.url or status.url)


def summary(jobs: Iterable[JobFact]) -> tuple[Word, str]:
    """A run's state by its jobs, if the forge tells none; the text changes with every job."""
    counts: dict[str, int] = {}
    for job in jobs:
        counts[job.word.value] = counts.get(job.word.value, 0) + 1
    words = [Word(word) for word in counts]
    for word in (Word.RUNNING, Word.WAITING, Word.FAILURE, Word.CANCELLED, Word.SUCCESS, Word.SKIPPED):
        if word in words:
            return word, ", ".join(f"{counts[name]} {name}" for name in sorted(counts))
    return Word.WAITING, ""


def of_run(statuses: Sequence[Status], run: int) -> list[Status]:
    return [status for status in statuses if status.run == run]


async def tasks_of(site: Site, sha: str, run: int, names: Iterable[str]) -> dict[str, JobFact]:
    """The tasks of one run: reads the newest pages until each of these jobs has a task."""
    looked_for, found, seen = set(names), list[RunnerTask](), 0
    for page in range(1, MOST_TASK_PAGES + 1):
        answer = await site.get("R/actions/tasks", {"limit": SIZE, "page": page}, also=(404,))
        entries = site.listed(answer, "workflow_runs")
        read = [task for task in (read_task(site, entry) for entry in entries) if task is not None]
        found += [task for task in read if task.sha == sha and task.run == run]
        seen += len(entries)
        if at_end(answer, seen=seen, part=len(entries), size=SIZE) or (
            looked_for and looked_for <= {task.job.name for task in found}
        ):
            break
    return newest(found)


class StatusRuns:
    """`with_tasks`: the server lists tasks, so that one call serves many commits."""

    def __init__(self, site: Site, *, with_tasks: bool) -> None:
        self._site = site
        self._with_tasks = with_tasks
        self._turns = PageOrder()
        self._by_status = True
        self._tasks: dict[tuple[str, int], dict[str, RunnerTask]] = {}
        self._statuses: dict[str, list[Status]] = {}
        self._order: list[str] = []

    @property
    def notes(self) -> tuple[str, ...]:
        return (
            "it provides no job logs: a worker gets the job's name, status and link",
            "it cannot rerun CI: Ganger pushes an empty commit instead",
            "jobs are read from commit statuses: name required jobs without their workflow",
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

    async def cancel(self, run: RunFact) -> bool:
        return False

    async def _read_tasks(self, wanted: set[str]) -> None:
        page = self._turns.next()
        page = self._turns.newest if page == BY_NAME else page
        answer = await self._site.get("R/actions/tasks", {"limit": SIZE, "page": page})
        entries = self._site.listed(answer, "workflow_runs")
        for task in (read_task(self._site, entry) for entry in entries):
            if task is not None and task.sha in wanted:
                self._tasks.setdefault((task.sha, task.run), {})[task.job.id] = task
        # A run's tasks may be on several pages, so older pages are always read too.
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
        """In turn; the commit that was asked for longest ago comes first."""
        self._order = [sha for sha in self._order if sha in among]
        sha = next((new for new in sorted(among) if new not in self._order), "") or self._order.pop(0)
        self._order.append(sha)
        return sha

    def _forget(self, wanted: set[str]) -> None:
        self._tasks = {key: tasks for key, tasks in self._tasks.items() if key[0] in wanted}
        self._statuses = {sha: found for sha, found in self._statuses.items() if sha in wanted}


def _run(sha: str, number: int, first: RunnerTask | Status, jobs: Iterable[JobFact]) -> RunFact:
    word, raw = summary(jobs)
    url = first.job.url.partition("/jobs/")[0]
    return RunFact(str(number), sha, word, raw, number=number, workflow=first.workflow, event=first.event, url=url)
