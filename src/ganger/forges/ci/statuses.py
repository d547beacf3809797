"""CI as commit statuses and the tasks of runners tell it: all that older Forgejo and Gitea have.

A status' address names the run it is of; its context is `workflow / job (event)`. Tasks know what a status hides
(older servers post a skipped job as success), statuses know the jobs that no runner ever took.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from ganger.core.model.ci import OVER, JobFact, Word, is_sha
from ganger.forges.api import Site, at_end
from ganger.forges.ci.words import Said, commit_status, forgejo
from ganger.forges.untrusted import Row, number, row, rows, text

SIZE = 50
MOST_PAGES = 10
MOST_TASK_PAGES = 4
_CONTEXT = re.compile(r"(?P<workflow>.*?) / (?P<job>.*) \((?P<event>[a-z_]+)\)", re.DOTALL)
_TARGET = re.compile(r"/actions/runs/(?P<run>[0-9]{1,18})/jobs/[0-9]+(?:/attempt/[0-9]+)?/?$")
_BADNESS = (Word.SUCCESS, Word.SKIPPED, Word.CANCELLED, Word.FAILURE)


@dataclass(frozen=True, slots=True)
class Status:
    """`run` is the number in the repository of the run it is of; 0: of something else than this forge's own CI."""

    run: int
    workflow: str
    event: str
    job: JobFact


async def statuses_of(site: Site, sha: str) -> tuple[list[Status], str]:
    """The latest of each context, and the SHA-256 of what was answered."""
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
        # Just after a push the answer has no SHA at all; one with another SHA is about something else.
        if text(body, "sha") == sha:
            found.update((text(entry, "context"), _status(entry)) for entry in entries if text(entry, "context"))
        # `total_count` counts this page alone.
        seen += len(entries)
        if at_end(answer, seen=seen, part=len(entries), size=SIZE, counted=False):
            break
    return list(found.values()), bodies.hexdigest()


def _status(entry: Row) -> Status:
    said = commit_status(text(entry, "status") or text(entry, "state"), text(entry, "description"))
    context, target = text(entry, "context"), text(entry, "target_url")
    named, placed = _CONTEXT.fullmatch(context), _TARGET.search(target)
    if named is None or placed is None:
        return Status(0, "", "push", _job(context, said, "", target))
    job = _job(named["job"], said, "", target)
    return Status(int(placed["run"]), named["workflow"], named["event"], job)


def _job(name: str, said: Said, found: str, url: str) -> JobFact:
    return JobFact(name, said.word, said.raw, said.reason, found, 1, url)


@dataclass(frozen=True, slots=True)
class Task:
    """One job a runner took."""

    run: int
    sha: str
    workflow: str
    event: str
    job: JobFact


def read_task(entry: Row) -> Task | None:
    sha, run = text(entry, "head_sha"), number(entry, "run_number")
    if not is_sha(sha) or run <= 0:
        return None
    job = _job(text(entry, "name"), forgejo(text(entry, "status")), text(entry, "id"), text(entry, "url"))
    return Task(run, sha, text(entry, "workflow_id"), text(entry, "event"), job)


def newest(tasks: Iterable[Task]) -> dict[str, JobFact]:
    """Per job the task with the highest number, which is its latest attempt."""
    found: dict[str, JobFact] = {}
    for task in tasks:
        known = found.get(task.job.name)
        if known is None or _number(task.job) >= _number(known):
            found[task.job.name] = task.job
    return found


def _number(job: JobFact) -> int:
    return int(job.id) if job.id.isdecimal() and len(job.id) <= 20 else -1


def combined(statuses: Iterable[Status], tasks: Mapping[str, JobFact]) -> list[JobFact]:
    """Each job once. A status that is not over is of a newer attempt than a task that is; of two that are, the worse
    counts."""
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
    """What jobs come to where nothing says it for the run; the words change with any of them."""
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
    """The tasks of one run: the newest pages of the repository's, until each of these jobs has one."""
    looked_for, found, seen = set(names), list[Task](), 0
    for page in range(1, MOST_TASK_PAGES + 1):
        answer = await site.get("R/actions/tasks", {"limit": SIZE, "page": page}, also=(404,))
        entries = site.listed(answer, "workflow_runs")
        read = [task for task in map(read_task, entries) if task is not None]
        found += [task for task in read if task.sha == sha and task.run == run]
        seen += len(entries)
        if at_end(answer, seen=seen, part=len(entries), size=SIZE) or (
            looked_for and looked_for <= {task.job.name for task in found}
        ):
            break
    return newest(found)
