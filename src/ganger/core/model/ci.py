"""What CI says about one commit: jobs of runs in six words, and what all of them together mean."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

_SHA = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")


def is_sha(text: str) -> bool:
    """Whether it names one commit and nothing else: abbreviated and empty ones match too much."""
    return _SHA.fullmatch(text) is not None


class Word(StrEnum):
    """Every forge's words for runs and jobs, as one set (D03)."""

    WAITING = "waiting"
    RUNNING = "running"
    SUCCESS = "success"
    FAILURE = "failure"
    CANCELLED = "cancelled"
    SKIPPED = "skipped"


OVER = frozenset({Word.SUCCESS, Word.FAILURE, Word.CANCELLED, Word.SKIPPED})
# Reasons beside a word, for cases that the six words do not cover.
UNKNOWN_WORD, NEEDS_APPROVAL, TIMED_OUT = "unknown_word", "needs_approval", "timed_out"
ALLOWED_TO_FAIL, MISSING_JOB, ABSENT = "allowed_to_fail", "missing_job", "absent"
# The forge could not read the workflow itself.
UNREAD = "unread"


@dataclass(frozen=True, slots=True)
class JobFact:
    """One job in one attempt of a run. `raw` is the forge's own word. `child` is the downstream pipeline that it
    belongs to: it counts only if it is named as required."""

    name: str
    word: Word
    raw: str = ""
    reason: str = ""
    id: str = ""
    attempt: int = 1
    url: str = ""
    child: str = ""


@dataclass(frozen=True, slots=True)
class RunFact:
    """One run of a workflow for one commit. `jobs` are filled in when they are requested; `asked` is the run's state at
    that time. `event` is what triggered it, `digest` the SHA-256 of the forge's answer. `unread` is what the
    forge says if it could not read the workflow itself."""

    id: str
    sha: str
    word: Word
    raw: str = ""
    reason: str = ""
    number: int = 0
    attempt: int = 1
    workflow: str = ""
    event: str = "push"
    url: str = ""
    jobs: tuple[JobFact, ...] = ()
    asked: str = ""
    digest: str = ""
    unread: str = ""

    @property
    def state(self) -> str:
        """What must change before its jobs are requested again."""
        return f"{self.attempt}:{self.raw or self.word.value}:{self.reason}"


@dataclass(frozen=True, slots=True)
class CiRules:
    """What CI must show. `required` are job names, or `workflow/job`; empty means every job. A `mirror_job` is
    required only if a completion needs it. `events` are the triggers that count, the best first."""

    required: tuple[str, ...] = ()
    mirror_job: str = ""
    events: tuple[str, ...] = ("push",)


class Ci(StrEnum):
    """What the runs of a commit amount to."""

    ABSENT = "absent"
    WAITING = "waiting"
    RUNNING = "running"
    NEEDS_APPROVAL = "needs_approval"
    RED = "red"
    TIMED_OUT = "timed_out"
    CANCELLED = "cancelled"
    SKIPPED = "skipped"
    MIRROR = "mirror"
    GREEN = "green"


# Time alone may change the finding.
UNSETTLED = frozenset({Ci.ABSENT, Ci.WAITING, Ci.RUNNING})


@dataclass(frozen=True, slots=True)
class Finding:
    """`jobs` are those that explain it; `mirror` is the mirror job's word, or empty. `cause` names what running CI
    again may fix: `mirror_skipped`, `cancelled`, `timed_out` and so on."""

    ci: Ci
    why: str
    jobs: tuple[JobFact, ...] = ()
    passed: int = 0
    total: int = 0
    current: str = ""
    mirror: str = ""
    cause: str = ""


def mark(run: RunFact) -> str:
    """What must differ once a run that was asked to run again has done so."""
    return f"{run.id}:{run.attempt}:{','.join(sorted(f'{job.id}.{job.attempt}' for job in run.jobs))}"


def is_stale(run: RunFact, stale: Sequence[str]) -> bool:
    """Whether it still shows the state from before it was asked to run again."""
    return run.word in OVER and mark(run) in stale


def chosen(sha: str, runs: Iterable[RunFact], events: Sequence[str]) -> list[RunFact]:
    """The run that counts for each workflow: of this commit, of the best trigger, the newest."""
    best: dict[str, RunFact] = {}
    for run in runs:
        if run.sha != sha or not is_sha(sha) or run.event not in events:
            continue
        known = best.get(run.workflow)
        if known is None or _weight(run, events) > _weight(known, events):
            best[run.workflow] = run
    return sorted(best.values(), key=lambda run: _number(run.id))


def _weight(run: RunFact, events: Sequence[str]) -> tuple[int, tuple[int, str], int]:
    return -events.index(run.event), _number(run.id), run.attempt


def _number(text: str) -> tuple[int, str]:
    return (int(text), "") if text.isdigit() else (-1, text)


def latest(run: RunFact) -> dict[str, JobFact]:
    """Each job once, in its latest attempt; of two in one attempt, the worse counts."""
    found: dict[str, JobFact] = {}
    for job in run.jobs:
        key = f"{job.child}/{job.name}" if job.child else job.name
        known = found.get(key)
        if known is None or job.attempt > known.attempt or (job.attempt == known.attempt and _worse(job, known)):
            found[key] = job
    return found


_BADNESS = (Word.SUCCESS, Word.RUNNING, Word.WAITING, Word.SKIPPED, Word.CANCELLED, Word.FAILURE)


def _worse(one: JobFact, other: JobFact) -> bool:
    return _BADNESS.index(one.word) > _BADNESS.index(other.word)


def judge(sha: str, runs: Iterable[RunFact], rules: CiRules) -> Finding:
    """Only the required jobs of this commit count: not a run's own status, the newest run or a combined status."""
    counted = chosen(sha, runs, rules.events)
    if not counted:
        return Finding(Ci.ABSENT, f"no CI run for {sha[:12]} yet", total=len(rules.required))
    held = [run for run in counted if run.reason == NEEDS_APPROVAL]
    settled = all(run.word in OVER and run.asked == run.state for run in counted)
    jobs = _required(counted, rules, settled=settled)
    unread = [run for run in counted if run.unread and run.word in OVER]
    if unread and (not rules.required or any(job.reason in (MISSING_JOB, ABSENT) for job in jobs)):
        return Finding(Ci.RED, _unread(unread[0]), tuple(map(_as_job, unread)), total=len(jobs), cause=UNREAD)
    mirror = _job(rules.mirror_job, counted, settled=settled) if rules.mirror_job else None
    passed = sum(job.word is Word.SUCCESS for job in jobs)
    told = _found(jobs, mirror, settled=settled, named=bool(rules.required))
    if held and told.ci in UNSETTLED:
        told = Finding(Ci.NEEDS_APPROVAL, f"{held[0].workflow or 'the run'} waits for approval")
    at_work = [job.name for job in (*jobs, *([mirror] if mirror else [])) if job.word is Word.RUNNING]
    return Finding(
        told.ci,
        told.why,
        told.jobs,
        passed,
        len(jobs),
        at_work[0] if at_work else "",
        mirror.word.value if mirror else "",
        told.cause,
    )


def with_unread(run: RunFact, title: str, required: Sequence[str]) -> RunFact:
    """Forgejo shows a workflow that it cannot read as a failed run with one job named after the commit's title."""
    alone = run.jobs[0] if len(run.jobs) == 1 and run.word is Word.FAILURE and not run.unread else None
    if alone is None or not title or alone.name in required or not title.startswith(alone.name):
        return run
    return replace(run, unread=f"its only job failed and has the commit's title, {alone.name!r}")


def _unread(run: RunFact) -> str:
    return f"the forge cannot read the workflow {run.workflow}: {run.unread}"


def _as_job(run: RunFact) -> JobFact:
    return run.jobs[0] if run.jobs else JobFact(run.workflow, Word.FAILURE, run.unread, UNREAD, url=run.url)


def _required(counted: Sequence[RunFact], rules: CiRules, *, settled: bool) -> list[JobFact]:
    if rules.required:
        return [_job(name, counted, settled=settled) for name in rules.required]
    every = [job for run in counted for job in latest(run).values()]
    return [job for job in every if job.name != rules.mirror_job and job.reason != ALLOWED_TO_FAIL and not job.child]


def _job(name: str, counted: Sequence[RunFact], *, settled: bool) -> JobFact:
    """The worst of that name: if two workflows have the job, it must succeed in both."""
    found: JobFact | None = None
    for run in counted:
        for job in latest(run).values():
            if name in (job.name, f"{run.workflow}/{job.name}") and (found is None or _worse(job, found)):
                found = job
    if found is not None:
        return found
    return JobFact(name, Word.FAILURE, "", MISSING_JOB) if settled else JobFact(name, Word.WAITING, "", ABSENT)


def _found(jobs: Sequence[JobFact], mirror: JobFact | None, *, settled: bool, named: bool) -> Finding:
    failed = [job for job in jobs if job.word is Word.FAILURE]
    red = [job for job in failed if job.reason != TIMED_OUT]
    if red:
        return Finding(Ci.RED, _say(red, "failed"), tuple(failed))
    every = [*jobs, *([mirror] if mirror else [])]
    held = [job for job in every if job.reason == NEEDS_APPROVAL]
    if held:
        return Finding(Ci.NEEDS_APPROVAL, _say(held, "waits for approval"), tuple(held))
    open_jobs = [job for job in jobs if job.word not in OVER]
    if open_jobs or (not named and not settled) or not jobs:
        running = any(job.word is Word.RUNNING for job in open_jobs)
        return Finding(Ci.RUNNING if running else Ci.WAITING, _say(open_jobs, "is not finished yet"), tuple(open_jobs))
    if failed:
        return Finding(Ci.TIMED_OUT, _say(failed, "ran out of time"), tuple(failed), cause="timed_out")
    for word, ci in ((Word.CANCELLED, Ci.CANCELLED), (Word.SKIPPED, Ci.SKIPPED)):
        stopped = [job for job in jobs if job.word is word]
        if stopped:
            return Finding(ci, _say(stopped, f"was {word.value}"), tuple(stopped), cause=word.value)
    return _mirrored(mirror)


def _mirrored(mirror: JobFact | None) -> Finding:
    """All other required jobs are green."""
    if mirror is None or mirror.word is Word.SUCCESS:
        return Finding(Ci.GREEN, "all required jobs succeeded")
    if mirror.word not in OVER:
        ci = Ci.RUNNING if mirror.word is Word.RUNNING else Ci.WAITING
        return Finding(ci, f"{mirror.name} is not finished yet", (mirror,))
    how = mirror.reason if mirror.reason == MISSING_JOB else mirror.word.value
    return Finding(Ci.MIRROR, f"the mirror job {mirror.name} ended as {how}", (mirror,), cause=f"mirror_{how}")


_PLURAL = {"is": "are", "was": "were", "waits": "wait"}


def _say(jobs: Sequence[JobFact], what: str) -> str:
    names = ", ".join(f"{job.name} ({job.reason})" if job.reason else job.name for job in jobs[:5])
    more = f" and {len(jobs) - 5} more" if len(jobs) > 5 else ""
    if len(jobs) > 1:
        first, _, rest = what.partition(" ")
        what = f"{_PLURAL.get(first, first)} {rest}".rstrip()
    return f"{names or 'CI'}{more} {what}"
