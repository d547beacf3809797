"""A red CI: fetches its log, masks it, cuts it to the error and keeps it; finds who must fix it, and what the worker
reads."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace

from ganger.core import events as ev
from ganger.core.delivery.upstream import question
from ganger.core.logs.check_logs import note_of
from ganger.core.logs.ci_logs import Excerpt, known_by, trim
from ganger.core.model.ci import MISSING_JOB, Ci, Finding, JobFact, RunFact, chosen
from ganger.core.model.ledger import Delivery, RepoVerdict
from ganger.core.names import ci_log
from ganger.core.planning.repos import graph_of
from ganger.core.state.apply_delivery import rules_of
from ganger.core.vocabulary import FailureClass
from ganger.engine.attempt_context import Failed, RunningAttempt
from ganger.engine.resources.delivery_target import DeliveryTarget
from ganger.engine.resources.run_resources import one_line
from ganger.errors import ForgeError, HostError
from ganger.local.run_folder import named_os_errors, write_private
from ganger.ports.forge import Forge

_MOST_LOGS = 3
_MOST_LOG_CHARS = 2_000_000
# A job that timed out is run again as well: the machine may have been slow.
_PASSING = frozenset({FailureClass.TRANSIENT_INFRA, FailureClass.TIMEOUT})
TRANSIENT = "transient"


class CiTrouble:
    def __init__(self, case: RunningAttempt, outlet: DeliveryTarget) -> None:
        self.case, self.outlet = case, outlet
        self.rules = rules_of(case.state, case.task)
        self._excerpts: dict[str, tuple[Excerpt, str, tuple[str, ...]]] = {}

    @property
    def now(self) -> Delivery:
        found = self.case.now.delivery
        assert found is not None
        return found

    @property
    def _source(self) -> str:
        return self.outlet.forge.name if self.outlet.forge is not None else ""

    async def passing(self, sha: str, finding: Finding, runs: Sequence[RunFact]) -> Finding | None:
        """D12: where every failed job met transient trouble, CI runs again once before a worker fixes anything."""
        if TRANSIENT in self.now.retriggered or self.rules.retriggers <= len(self.now.retriggered):
            return None
        found = [await self._log_of(sha, job, runs) for job in finding.jobs[:_MOST_LOGS]]
        if not found or any(kinds or excerpt.kind not in _PASSING for excerpt, _, kinds in found):
            return None
        return Finding(
            Ci.TIMED_OUT, f"{finding.why}: {one_line(found[0][0].signal, 200)}", finding.jobs, cause=TRANSIENT
        )

    async def red(self, sha: str, finding: Finding, runs: Sequence[RunFact]) -> Failed:
        """The verdict with all its consequences; it is recorded together with the attempt's end."""
        case = self.case
        found = [(job, *await self._log_of(sha, job, runs)) for job in finding.jobs[:_MOST_LOGS]]
        if leaked := {job.name: kinds for job, _, _, kinds in found if kinds}:
            return self._leaked(sha, finding, leaked)
        signals = [f"{job.name}: {excerpt.signal or job.raw or job.reason}" for job, excerpt, _, _ in found]
        detail = (
            f"CI is red for {sha[:12]}: {one_line(finding.why, 300)}; {one_line(signals[0], 300) if signals else ''}"
        )
        known = known_by((job.name, excerpt) for job, excerpt, _, _ in found)
        problem = case.failed(FailureClass.CI_ERROR, known or (signals[0] if signals else finding.why), detail)
        problem.keep_changes = problem.goes_on = True
        problem.reminder = self._reminder(sha, found, runs)
        log = self._keep([(job, text) for job, _, text, _ in found])
        kind = found[0][1].kind.value if found else ""
        why, signature = one_line(finding.why, 500), problem.failed.signature
        judged = ev.CiJudged(case.task, case.number, sha, "red", why, self._source, kind, signature, log)
        problem.before = (judged, *self._downstream(sha, finding), *self._questions(sha, problem))
        return problem

    async def is_of_workflow(self, sha: str, finding: Finding, runs: Sequence[RunFact]) -> bool:
        """Whether the logs of all failed jobs speak of a workflow that cannot be read or executed."""
        found = [await self._log_of(sha, job, runs) for job in finding.jobs[:_MOST_LOGS]]
        return bool(found) and all(
            excerpt.kind is FailureClass.ENVIRONMENT and not kinds for excerpt, _, kinds in found
        )

    async def faults(self, sha: str, finding: Finding, runs: Sequence[RunFact]) -> frozenset[str]:
        """The faults in the logs of all failed jobs; none where one has no log, holds a secret, or names no fault."""
        found = [(job.name, *await self._log_of(sha, job, runs)) for job in finding.jobs]
        if any(kinds or not excerpt.faults or not text for _, excerpt, text, kinds in found):
            return frozenset()
        return frozenset(f"{name}: {fault}" for name, excerpt, _, _ in found for fault in excerpt.faults)

    async def printed(self, sha: str, finding: Finding, runs: Sequence[RunFact]) -> str | None:
        """What the failed jobs printed; None where it holds a secret, which halts the project in any case."""
        found = [await self._log_of(sha, job, runs) for job in finding.jobs[:_MOST_LOGS]]
        return None if any(kinds for _, _, kinds in found) else "\n".join(text for _, text, _ in found)

    def _leaked(self, sha: str, finding: Finding, leaked: Mapping[str, Sequence[str]]) -> Failed:
        """A secret in a log is exposed, and no worker can fix that (D12). The log is not kept here; the forge has
        it."""
        case, kinds = self.case, sorted({kind for kinds in leaked.values() for kind in kinds})
        where = one_line(", ".join(leaked), 200)
        why = f"CI printed what looks like a secret ({', '.join(kinds)}) in the log of {where} for {sha[:12]}"
        problem = case.failed(FailureClass.FATAL, "secret in a CI log", f"{why}; replace that key")
        problem.keep_changes = True
        problem.before = (
            ev.CiJudged(case.task, case.number, sha, "red", f"{one_line(finding.why)}; {why}", self._source),
        )
        return problem

    async def _log_of(self, sha: str, job: JobFact, runs: Sequence[RunFact]) -> tuple[Excerpt, str, tuple[str, ...]]:
        """The excerpt, the masked log, and the kinds of secrets in it."""
        known = self._excerpts.get(f"{sha}:{job.id or job.name}")
        if known is not None:
            return known
        text = ""
        owner = next((run for run in chosen(sha, runs, self.rules.events) if job in run.jobs), None)
        if owner is not None and self.outlet.forge is not None and job.reason != MISSING_JOB:
            text = await self._fetched(self.outlet.forge, owner, job)
        masked, kinds = await asyncio.to_thread(self.outlet.mask, _end_of(text))
        # A very long log takes seconds.
        found = (await asyncio.to_thread(trim, masked), masked, kinds)
        self._excerpts[f"{sha}:{job.id or job.name}"] = found
        return found

    async def _fetched(self, forge: Forge, owner: RunFact, job: JobFact) -> str:
        """Empty where the forge has no log. A host that does not answer is waited for: without the log, a worker would
        be paid for guessing."""
        try:
            return await forge.log(owner, job)
        except HostError as trouble:
            if trouble.host:
                await forge.knock()
        except ForgeError:
            pass
        return ""

    def _keep(self, logs: Sequence[tuple[JobFact, str]]) -> str:
        name = ci_log(self.case.task, self.case.number)
        path = self.case.tools.folder.path / name
        # The whole file is read when it is compared with another log.
        share = _MOST_LOG_CHARS // max(1, len(logs))
        with named_os_errors(path):
            write_private(path, "".join(f"=== {job.name}\n{_end_of(text, share)}\n" for job, text in logs))
        return name

    def _reminder(
        self,
        sha: str,
        found: Sequence[tuple[JobFact, Excerpt, str, tuple[str, ...]]],
        runs: Sequence[RunFact],
    ) -> str:
        """What a worker needs in order to fix it; the rest is in `ganger worker brief ci`."""
        parts = [f"Your change is merged and was pushed as {sha[:12]}; CI failed on it."]
        for job, excerpt, _, _ in found:
            raw = one_line(job.raw or job.reason) or "no word"
            said = note_of(excerpt.telling) or f"the forge has no log of it ({raw}) {one_line(job.url)}".strip()
            parts.append(f"Job {one_line(job.name, 200)} ({raw}):\n\n{said}")
        if not any(excerpt.text for _, excerpt, _, _ in found):
            urls = [run.url for run in runs if run.url]
            parts += [f"It is at {urls[-1]}"] if urls else []
        return "\n\n".join(parts)

    def _downstream(self, sha: str, finding: Finding) -> list[ev.Event]:
        """D13: repositories that build on this one wait until it is green again."""
        state, repo = self.case.state, self.case.spec.repo
        below = graph_of(state.chains.rules).downstream.get(repo, ())
        if not below or repo in state.chains.broken:
            return []
        return [ev.ChainPaused(repo, self.case.task, sha, one_line(finding.why, 300), tuple(below))]

    def _questions(self, sha: str, problem: Failed) -> list[ev.Event]:
        """D06: after that many attempts, or when the same fault returns, a person is asked while attempts continue."""
        case, now, rules = self.case, self.now, self.rules
        asked: list[ev.Event] = []
        open_ones = {q.kind for q in case.state.inbox.questions.values() if q.task == case.task and q.answer is None}
        same = problem.failed.signature in now.signatures
        if "ci" not in open_ones and (same or case.now.counters.ci_fixes >= rules.ask_after):
            times = (
                f"{case.now.counters.ci_fixes} attempts to fix it"
                if not same
                else "an attempt to fix it: the same fault again"
            )
            text = f"CI is red after {times}: {one_line(problem.failed.detail, 400)}. Attempts continue; a hint helps"
            asked.append(ev.QuestionAsked("", case.task, "ci", text, attempt=case.number))
        verdict = RepoVerdict(case.spec.repo, sha, case.task, False, "", now.upstream)
        judged = replace(case.state, pushes=replace(case.state.pushes, verdicts=[*case.state.pushes.verdicts, verdict]))
        traced = question(judged, case.spec.repo, sha)
        if traced is not None and "cascade" not in open_ones:
            options = traced.options
            asked.append(ev.QuestionAsked("", case.task, "cascade", traced.text, attempt=case.number, options=options))
        return asked


def _end_of(text: str, most: int = _MOST_LOG_CHARS) -> str:
    """Cut at a line: masking does not recognise half a secret."""
    return text if len(text) <= most else text[-most:].partition("\n")[2]
