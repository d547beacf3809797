"""CI without a forge: its jobs are commands of the operator, each in a fresh checkout of the pushed commit."""

from __future__ import annotations

import asyncio
import re
import shutil
import signal
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from ganger.core.delivery.branch_rules import BranchRules
from ganger.core.delivery.forge_reviews import Review
from ganger.core.model.ci import TIMED_OUT, JobFact, RunFact, Word
from ganger.errors import ForgeError
from ganger.forges.command.record import SHORT, JobRecord, Records, RunRecord, inode_of, log_name
from ganger.ports.forge import Greeting, MergeAnswer, MergeRules, NewRequest, QueueLook, Request
from ganger.ports.processes import Exit, Launch, Launcher
from ganger.ports.repository import Repository
from ganger.ports.sandbox import Room, Sandbox

SKIPPED_CODE = 77
_MOST_TRIES = 5
_LOG_BYTES = 4 << 20
_OVER_ALREADY_SEC = 0.1
_WORD = re.compile(r"\{(sha|branch|repo)\}")
# Ended by something outside: that says nothing about the code.
_FROM_OUTSIDE = frozenset({signal.SIGTERM, signal.SIGKILL, signal.SIGINT, signal.SIGHUP})
# A checkout belongs to the user inside the sandbox; the mirror job runs outside, in a checkout that no other job used.
_OWN_CHECKOUT = {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "safe.directory", "GIT_CONFIG_VALUE_0": "*"}


@dataclass(frozen=True)
class CommandCi:
    """The jobs and their environment. `jobs` are programs with arguments by name, in order, with {sha} {branch} {repo}
    in them.

    `folder` is this repository's folder inside the run's folder. The `mirror_job` has to reach the mirror, so it runs
    without a sandbox; only it gets `mirror_env`, which leads to the operator's keys. `most` commits are checked at
    once. `halted`: the run is stopping, so a job that ends now was ended by that and gives no verdict.
    """

    folder: Path
    jobs: Mapping[str, Sequence[str]]
    env: Mapping[str, str]
    mirror_job: str = ""
    mirror_env: Mapping[str, str] = field(default_factory=dict)
    repo: str = ""
    branch: str = ""
    readable: tuple[Path, ...] = ()
    timeout_sec: float = 900.0
    output_limit_bytes: int | None = None
    most: int = 2
    can_rerun: bool = True
    halted: Callable[[], bool] = lambda: False


@dataclass(frozen=True, slots=True)
class _Ended:
    """The verdict on a job's end. `again`: there is none, and the job has to run again."""

    job: JobRecord
    again: bool = False


class CommandForge:
    """`runs` starts jobs that have not started; the keeper holds them, so a new lead finds them.

    Success is recorded at once. Any other end is recorded when the lead asks next: a lead that is stopping asks
    nothing more, and a job that was ended by the stop must not count as failed.
    """

    def __init__(self, ci: CommandCi, launcher: Launcher, repository: Repository, sandbox: Sandbox) -> None:
        self._ci, self._launcher, self._repository, self._sandbox = ci, launcher, repository, sandbox
        self._records = Records(ci.folder)
        self._now: dict[str, RunRecord] = {}
        self._drivers: dict[str, asyncio.Task[_Ended | None]] = {}
        self._tidying: set[asyncio.Task[None]] = set()
        self._asking = asyncio.Lock()
        self._calls = 0

    @property
    def host(self) -> str:
        return ""

    @property
    def name(self) -> str:
        return "command"

    @property
    def calls(self) -> int:
        return self._calls

    def keys(self) -> set[str]:
        """The launcher's names of running jobs, including those of an earlier lead."""
        records = (self._records.read(sha, list(self._ci.jobs)) for sha in self._records.known())
        under_way = [(r, r.next) for r in records if r is not None and r.next]
        return {self._key(r, name) for r, name in under_way if r.jobs[name].tries}

    async def knock(self) -> None:
        """Does nothing: local commands are always available."""

    async def greet(self) -> Greeting:
        if not self._ci.jobs:
            raise ForgeError("no CI job is configured", hint='add one: [delivery.jobs] test = ["make", "test"]')
        for name, argv in self._ci.jobs.items():
            program = argv[0] if argv else ""
            lacking = not program or ("/" not in program and shutil.which(program, path=self._path()) is None)
            if lacking:
                raise ForgeError(
                    f"the CI job {name} cannot run: {program or 'its program'} is not on PATH",
                    hint=f"install it, or correct delivery.jobs.{name}",
                )
        return Greeting("command", notes=(f"jobs: {', '.join(self._ci.jobs)}",))

    async def runs(self, shas: Sequence[str]) -> Sequence[RunFact]:
        self._calls += 1
        async with self._asking:
            for sha in dict.fromkeys(shas):
                await self._load(sha)
            await self._settle()
            for sha in dict.fromkeys(shas):
                if not self._now[sha].over and sha not in self._drivers and len(self._drivers) < self._ci.most:
                    self._drivers[sha] = asyncio.get_running_loop().create_task(self._drive(sha))
            return [self._now[sha].run_fact(self._ci.folder) for sha in dict.fromkeys(shas)]

    async def jobs(self, run: RunFact) -> RunFact:
        self._calls += 1
        return replace(run, jobs=(await self._load(run.sha)).job_facts(self._ci.folder), asked=run.state)

    async def log(self, run: RunFact, job: JobFact) -> str:
        """The log; of a long one the end, which shows what failed."""
        self._calls += 1
        path = self._ci.folder / log_name(run.sha, job.attempt, job.name)
        return await asyncio.to_thread(_tail, path)

    async def rerun(self, run: RunFact) -> bool:
        """Harmless to repeat: a run that is already at a later attempt stays there."""
        self._calls += 1
        if not self._ci.can_rerun:
            return False
        async with self._asking:
            record = await self._load(run.sha)
            if record.over and record.attempt == run.attempt:
                await self._keep(record.again())
            return True

    async def cancel(self, run: RunFact) -> bool:
        return False

    async def find_request(self, branch: str, into: str) -> Request | None:
        return None

    async def open_request(self, new: NewRequest) -> Request:
        raise _no_requests(new.branch)

    async def ready(self, request: Request) -> None:
        raise _no_requests(request.branch)

    async def update_request(self, request: Request, new: NewRequest) -> None:
        raise _no_requests(request.branch)

    async def reviews(self, request: Request) -> Sequence[Review]:
        raise _no_requests(request.branch)

    async def remark(self, request: Request, mark: str, words: str) -> str:
        raise _no_requests(request.number)

    async def branch_rules(self, branch: str) -> BranchRules:
        return BranchRules()

    async def merge_rules(self, into: str) -> MergeRules:
        return MergeRules()

    async def merge(self, request: Request, head: str, method: str = "merge") -> MergeAnswer:
        raise _no_requests(request.branch)

    async def enqueue(self, request: Request, head: str) -> MergeAnswer:
        raise _no_requests(request.branch)

    async def queued(self, request: Request) -> QueueLook:
        raise _no_requests(request.branch)

    async def close(self) -> None:
        """Running jobs continue; the next lead finds them. Checkouts of ended jobs are removed, also those of commits
        that only an earlier lead asked about."""
        for driver in self._drivers.values():
            driver.cancel()
        await asyncio.gather(*self._drivers.values(), return_exceptions=True)
        self._drivers.clear()
        for sha in await asyncio.to_thread(self._records.known):
            with suppress(ForgeError):
                await self._load(sha)
        await asyncio.gather(*self._tidying, return_exceptions=True)

    # --- records ----------------------------------------------------------------------------------------------------

    async def _load(self, sha: str) -> RunRecord:
        """Reads an earlier lead's records, once, and removes checkouts it left behind."""
        if sha not in self._now:
            names = list(self._ci.jobs)
            found = await asyncio.to_thread(self._records.read, sha, names)
            self._now[sha] = found or RunRecord(sha, jobs={name: JobRecord() for name in names})
            for name, job in self._now[sha].jobs.items():
                if job.tries and name != self._now[sha].next:
                    self._put_away(sha, name, job)
        return self._now[sha]

    async def _keep(self, record: RunRecord) -> None:
        await asyncio.to_thread(self._records.write, record)
        self._now[record.sha] = record

    async def _settle(self) -> None:
        """Records how finished jobs ended."""
        for sha, driver in list(self._drivers.items()):
            if not driver.done():
                continue
            del self._drivers[sha]
            ended = driver.result()
            if ended is None or self._ci.halted():
                continue
            record = self._now[sha]
            name = record.next
            if ended.again:
                await self._keep(record.with_job(name, replace(ended.job, word=Word.WAITING)))
                continue
            await self._note(record, name, ended.job.raw)
            await self._keep(record.failed(name, ended.job))
            self._put_away(sha, name, ended.job)

    def _put_away(self, sha: str, name: str, job: JobRecord) -> None:
        """A job's checkout is needed until its end is on disk; its removal is not waited for."""
        gone = self._repository.drop_checkout(_checkout_name(sha, name, job.attempt, job.tries))
        task = asyncio.ensure_future(gone)
        self._tidying.add(task)
        task.add_done_callback(self._tidying.discard)

    # --- jobs -------------------------------------------------------------------------------------------------------

    async def _drive(self, sha: str) -> _Ended | None:
        """Runs a commit's jobs one after the other; stops at the first that neither succeeds nor is skipped."""
        while name := self._now[sha].next:
            record = self._now[sha]
            ended = await self._adopt(record, name) if record.jobs[name].word is Word.RUNNING else None
            if ended is None:
                ended = await self._begin(record, name)
            if self._ci.halted() or ended.job.word not in (Word.SUCCESS, Word.SKIPPED):
                return ended
            record = self._now[sha]
            await self._note(record, name, ended.job.raw)
            await self._keep(record.with_job(name, ended.job))
            self._put_away(sha, name, ended.job)
        return None

    async def _begin(self, record: RunRecord, name: str) -> _Ended:
        """The intent is on disk before anything runs."""
        before = record.jobs[name]
        tried = before.tries
        if tried >= _MOST_TRIES:
            return _Ended(replace(before, word=Word.CANCELLED, raw=f"ended {tried} times by something outside"))
        if tried:
            self._put_away(record.sha, name, before)
        checkout_name = _checkout_name(record.sha, name, record.attempt, tried + 1)
        checkout = await self._repository.checkout(checkout_name, record.sha)
        job = JobRecord(Word.RUNNING, "running", "", record.attempt, tried + 1, str(checkout), inode_of(checkout))
        record = record.with_job(name, job)
        await self._keep(record)
        launch = self._launch(record, name, checkout)
        await self._note(record, name, f"{name}, attempt {record.attempt}, try {job.tries}: {' '.join(launch.argv)}")
        running = await self._launcher.start(self._confined(launch, name, checkout))
        return self._judged(job, await running.wait(), name)

    async def _adopt(self, record: RunRecord, name: str) -> _Ended | None:
        """The end of a job that an earlier lead began; None if it never ran or its end gives no verdict.

        The new lead has already ended the jobs it does not need. So a job that still runs in its own checkout counts
        whatever its verdict; one that had ended counts only if it succeeded.
        """
        key, job = self._key(record, name), record.jobs[name]
        running = await self._launcher.find(key)
        if running is None:
            return None
        waiting = asyncio.ensure_future(running.wait())
        over_already, _ = await asyncio.wait({waiting}, timeout=_OVER_ALREADY_SEC)
        if not job.stands:
            await self._launcher.end(key)
        ended = self._judged(job, await waiting, name)
        return ended if not over_already or ended.job.word is Word.SUCCESS else None

    def _judged(self, job: JobRecord, end: Exit, name: str) -> _Ended:
        """There is no verdict if something outside ended the job or removed its checkout while it ran."""
        if end.lost or not job.stands:
            return _Ended(job, again=True)
        if not end.started:
            # A missing program is the commit's fault if it belongs to the repository, else the machine's.
            word = Word.FAILURE if "/" in self._ci.jobs[name][0] else Word.CANCELLED
            return _Ended(replace(job, word=word, raw=f"not started: {end.error}"))
        if end.timed_out:
            raw = f"ran out of time after {end.duration_sec:.0f} s"
            return _Ended(replace(job, word=Word.FAILURE, raw=raw, reason=TIMED_OUT))
        if end.over_output:
            return _Ended(replace(job, word=Word.FAILURE, raw=f"printed more than {self._ci.output_limit_bytes} bytes"))
        if end.signal in _FROM_OUTSIDE:
            return _Ended(job, again=True)
        word = {0: Word.SUCCESS, SKIPPED_CODE: Word.SKIPPED}.get(-1 if end.code is None else end.code, Word.FAILURE)
        how = f"exit {end.code}" if end.signal is None else f"signal {end.signal}"
        return _Ended(replace(job, word=word, raw=f"{how} after {end.duration_sec:.1f} s"))

    def _launch(self, record: RunRecord, name: str, checkout: Path) -> Launch:
        named = {"sha": record.sha, "branch": self._ci.branch, "repo": self._ci.repo}
        env = {
            "CI": "true",
            "GANGER_CI_SHA": record.sha,
            "GANGER_CI_BRANCH": self._ci.branch,
            "GANGER_CI_ATTEMPT": str(record.attempt),
            "GANGER_CI_JOB": name,
        }
        return Launch(
            key=self._key(record, name),
            argv=tuple(_WORD.sub(lambda found: named[found[1]], word) for word in self._ci.jobs[name]),
            cwd=checkout,
            env={**self._ci.env, **env},
            stdin_path=None,
            log_path=self._ci.folder / log_name(record.sha, record.attempt, name),
            timeout_sec=self._ci.timeout_sec,
            append=True,
            output_limit_bytes=self._ci.output_limit_bytes,
        )

    def _confined(self, launch: Launch, name: str, checkout: Path) -> Launch:
        if name == self._ci.mirror_job:
            return replace(launch, env={**launch.env, **self._ci.mirror_env, **_OWN_CHECKOUT})
        return self._sandbox.confine(launch, Room(writable=(checkout,), readable=self._ci.readable))

    def _key(self, record: RunRecord, name: str) -> str:
        job = record.jobs[name]
        return f"{self._ci.folder / log_name(record.sha, job.attempt, name)}#{job.tries}"

    async def _note(self, record: RunRecord, name: str, line: str) -> None:
        await asyncio.to_thread(self._records.note, log_name(record.sha, record.attempt, name), line)

    def _path(self) -> str:
        return self._ci.env.get("PATH", "")


def _checkout_name(sha: str, job: str, attempt: int, tries: int) -> str:
    """Each try has its own checkout, so that an old one can be removed while the next is made."""
    return f"ci.{sha[:SHORT]}.{job}.{attempt}.{tries}"


def _no_requests(what: str) -> ForgeError:
    return ForgeError(
        f"a local command forge has no change requests ({what})",
        hint='set delivery.style = "branch", or use a forge with change requests',
    )


def _tail(path: Path) -> str:
    try:
        with path.open("rb") as log:
            log.seek(max(0, path.stat().st_size - _LOG_BYTES))
            return log.read(_LOG_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""
