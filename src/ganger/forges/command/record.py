"""The record of one commit's CI by local commands: its attempt, and the result of each job."""

from __future__ import annotations

import errno
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from ganger.core.model.ci import OVER, JobFact, RunFact, Word, is_sha
from ganger.core.names import file_stem
from ganger.errors import DiskFullError, ForgeError
from ganger.local.atomic import replace_file

SHORT = 12


@dataclass(frozen=True, slots=True)
class JobRecord:
    """`attempt` is the attempt of the run in which the job last began, `tries` how often it began in that attempt.
    `checkout` and `inode` identify its folder."""

    word: Word = Word.WAITING
    raw: str = ""
    reason: str = ""
    attempt: int = 1
    tries: int = 0
    checkout: str = ""
    inode: int = 0

    @property
    def stands(self) -> bool:
        """Whether this exact folder still exists."""
        return bool(self.checkout) and inode_of(Path(self.checkout)) == self.inode


@dataclass(frozen=True, slots=True)
class RunRecord:
    """CI of `sha`; `jobs` are in the order in which they run."""

    sha: str
    attempt: int = 1
    jobs: Mapping[str, JobRecord] = field(default_factory=dict)

    @property
    def over(self) -> bool:
        return all(job.word in OVER for job in self.jobs.values())

    @property
    def next(self) -> str:
        """The job that runs or begins next; empty if there is none."""
        return next((name for name, job in self.jobs.items() if job.word not in OVER), "")

    def with_job(self, name: str, job: JobRecord) -> RunRecord:
        return replace(self, jobs={**self.jobs, name: job})

    def failed(self, name: str, job: JobRecord) -> RunRecord:
        """Jobs after one that did not succeed do not run: they need it."""
        left = list(self.jobs)[list(self.jobs).index(name) + 1 :]
        skipped = JobRecord(Word.SKIPPED, f"needs {name}", attempt=self.attempt)
        return replace(self, jobs={**self.jobs, name: job, **dict.fromkeys(left, skipped)})

    def again(self) -> RunRecord:
        """The next attempt: of the jobs that did not succeed, or of all jobs if all succeeded."""
        number = self.attempt + 1
        every = all(job.word is Word.SUCCESS for job in self.jobs.values())
        fresh = JobRecord(attempt=number)
        jobs = {n: j if j.word is Word.SUCCESS and not every else fresh for n, j in self.jobs.items()}
        return replace(self, attempt=number, jobs=jobs)

    def run_fact(self, folder: Path) -> RunFact:
        """The raw word changes with every job, so that jobs are read again after each change."""
        done = sum(job.word in OVER for job in self.jobs.values())
        current = f" {self.next} {self.jobs[self.next].word.value}" if self.next else ""
        raw = f"{self._word().value} {done}/{len(self.jobs)}{current}"
        return RunFact(
            id=self.sha[:SHORT],
            sha=self.sha,
            word=self._word(),
            raw=raw,
            attempt=self.attempt,
            workflow="command",
            url=folder.as_uri(),
            digest=hashlib.sha256(self.text().encode()).hexdigest(),
        )

    def job_facts(self, folder: Path) -> tuple[JobFact, ...]:
        facts = []
        for name, job in self.jobs.items():
            log = folder / log_name(self.sha, job.attempt, name)
            facts.append(JobFact(name, job.word, job.raw, job.reason, log.stem, job.attempt, log.as_uri()))
        return tuple(facts)

    def _word(self) -> Word:
        words = {job.word for job in self.jobs.values()}
        if not words <= OVER:
            return Word.WAITING if words == {Word.WAITING} else Word.RUNNING
        worst = (Word.FAILURE, Word.CANCELLED, Word.SUCCESS)
        return next((word for word in worst if word in words), Word.SKIPPED)

    def text(self) -> str:
        jobs = [
            [name, job.word.value, job.raw, job.reason, job.attempt, job.tries, job.checkout, job.inode]
            for name, job in self.jobs.items()
        ]
        return json.dumps({"sha": self.sha, "attempt": self.attempt, "jobs": jobs}, indent=1) + "\n"


def inode_of(folder: Path) -> int:
    """0 if there is none."""
    try:
        return folder.lstat().st_ino
    except OSError:
        return 0


def log_name(sha: str, attempt: int, job: str) -> str:
    return f"{sha[:SHORT]}.{attempt}.{file_stem(job)}.log"


class Records:
    """The records in one folder: one file per commit, replaced as a whole."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def read(self, sha: str, names: Sequence[str]) -> RunRecord | None:
        """The record, or None. Jobs that were added to the configuration still have to run; removed ones do not."""
        path = self._path(sha)
        try:
            found = _parsed(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        except (OSError, ValueError, TypeError, KeyError) as problem:
            raise _damaged(path) from problem
        if found.sha != sha:
            raise _damaged(path)
        fresh = JobRecord(attempt=found.attempt)
        return replace(found, jobs={name: found.jobs.get(name, fresh) for name in names})

    def known(self) -> list[str]:
        """The commits that have a record."""
        if not self.folder.is_dir():
            return []
        return sorted(path.stem for path in self.folder.glob("*.json") if is_sha(path.stem))

    def write(self, record: RunRecord) -> None:
        """Durable when this returns."""
        path = self._path(record.sha)
        try:
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            replace_file(path, record.text().encode())
        except OSError as problem:
            raise _unwritable(path, problem) from problem

    def note(self, name: str, line: str) -> None:
        """Writes a line by Ganger into a job's log."""
        path = self.folder / name
        try:
            with path.open("a", encoding="utf-8") as log:
                log.write(f"=== {line}\n")
        except OSError as problem:
            raise _unwritable(path, problem) from problem

    def _path(self, sha: str) -> Path:
        if not is_sha(sha):
            raise ForgeError(f"{sha!r} is not a commit id", hint="give the full commit id")
        return self.folder / f"{sha}.json"


def _parsed(text: str) -> RunRecord:
    value = json.loads(text)
    jobs = {
        str(name): JobRecord(Word(word), str(raw), str(reason), int(attempt), int(tries), str(checkout), int(inode))
        for name, word, raw, reason, attempt, tries, checkout, inode in value["jobs"]
    }
    return RunRecord(str(value["sha"]), int(value["attempt"]), jobs)


def _damaged(path: Path) -> ForgeError:
    return ForgeError(f"{path}: cannot read this record of a CI run", hint="remove the file; its jobs then run again")


def _unwritable(path: Path, problem: OSError) -> ForgeError | DiskFullError:
    if problem.errno in (errno.ENOSPC, errno.EDQUOT):
        return DiskFullError(f"{path}: the disk is full", hint="free some space, then run the same command again")
    return ForgeError(
        f"{path}: cannot write it ({problem.strerror})", hint="correct its permissions, then run the same command again"
    )
