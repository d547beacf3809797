"""One attempt as its parts see it: its task, its state, what it reports, and how it fails."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from dataclasses import replace
from pathlib import Path

from ganger.core import events as ev
from ganger.core.failures.classes import Failure, failure
from ganger.core.model.ledger import NO_RULES
from ganger.core.model.records import TaskSpec
from ganger.core.model.task_state import TaskState
from ganger.core.names import verify_log, worker_log
from ganger.core.vocabulary import FailureClass
from ganger.engine.resources.run_resources import RunResources, one_line
from ganger.engine.stop_guard import StopGuard
from ganger.engine.verification.checks import WhyRed, seconds, step_records
from ganger.engine.verification.steps import Verdict
from ganger.errors import WriteRefused
from ganger.ports.changes import RoleRules, Rules

_MOST_NAMED = 40
_HALTING = frozenset({"SECRET_FOUND", "INTERFACE_BROKEN"})


class Failed(Exception):
    """Ends the attempt with a classified failure. `account`: what its account was refused for, `key` or
    `credit`; empty where it was not."""

    def __init__(self, failed: Failure) -> None:
        super().__init__(failed.detail)
        self.failed = failed
        self.reminder = ""
        self.keep_changes = False
        self.files: tuple[str, ...] = ()
        self.before: tuple[ev.Event, ...] = ()
        self.question = ""
        self.escalated = False
        self.sent_back = False
        # `goes_on`: the same session can fix its change. `refused`: nothing of the change may be taken over.
        self.goes_on = False
        self.refused = False
        # It ran out of time while it was working.
        self.cut_off = False
        self.reset_at: float | None = None
        self.account = ""


class Lost(Exception):
    """The keeper died under the agent, or a power cut took its answer: its end was not observed."""


class RunningAttempt:
    def __init__(self, tools: RunResources, task: str, gate: StopGuard, *, again: bool) -> None:
        """`again`: an earlier lead started it."""
        self.tools, self.gate, self.task, self.again = tools, gate, task, again
        self.state = tools.journal.state
        self.spec: TaskSpec = self.state.specs[task]
        self.number, self.token = self.now.attempts, self.now.attempt.token
        self.log = self.now.attempt.log or worker_log(task, self.number)
        self.verify_log = verify_log(task, self.number)

    @property
    def now(self) -> TaskState:
        return self.state.tasks[self.task]

    @property
    def log_path(self) -> Path:
        return self.tools.folder.path / self.log

    @property
    def role(self) -> RoleRules:
        return self.tools.roles.get(self.spec.role, RoleRules())

    @property
    def rules(self) -> Rules:
        spec, role = self.spec, self.role
        return Rules(
            allow_shrinkage=spec.allow_shrinkage,
            may_change_gates=spec.may_change_gates or role.may_change_gates,
            paths=role.paths,
            create=spec.creates,
            modify=spec.modifies,
            expected=spec.expected,
            verify=self.tools.checks.commands(spec.verify_profile),
            interface=() if spec.may_break else self.state.chains.rules.get(spec.repo, NO_RULES).interface,
        )

    @property
    def promised(self) -> tuple[str, ...]:
        """The files that its task must create, as far as it says so."""
        return (*(self.spec.creates or ()), *self.spec.expected)

    def record(self, *events: ev.Event) -> Awaitable[None]:
        return self.tools.journal.report(self.task, self.token, *events)

    def mention(self, *events: ev.Event) -> None:
        """For what a new lead would find out by itself."""
        self.tools.journal.mention(self.task, self.token, *events)

    def failed(self, cls: FailureClass, signal: str, detail: str, reminder: str = "") -> Failed:
        problem = Failed(failure(cls, signal, one_line(detail, 2000), self.state.specs.keys(), self.task))
        problem.reminder = reminder
        return problem

    def refused(self, refusal: WriteRefused) -> Failed:
        """A safeguard refused it. After a leaked key or a broken interface, another attempt does not help."""
        detail = f"{refusal.code}: {refusal.message}"
        cls = FailureClass.FATAL if refusal.code in _HALTING else FailureClass.POLICY_VIOLATION
        every = (refusal, *refusal.also)
        if len(every) > 1:
            detail = f"{detail} (and {len(every) - 1} more)"
        problem = self.failed(cls, f"{refusal.code} {refusal.message}", detail, _refused_note(every))
        problem.refused = True
        return problem

    def red(self, why: WhyRed) -> Failed:
        problem = self.failed(why.failure_class, why.signal, why.detail, why.reminder)
        problem.failed = replace(problem.failed, undecided=why.undecided)
        problem.goes_on, problem.refused = why.goes_on, why.refused
        return problem

    def verify_key(self) -> str:
        return f"{self.tools.folder.path / self.verify_log}#{self.state.lead.count}"

    def finished(self, verdict: Verdict, *, tree: str = "", evidence: str = "", cached: bool = False) -> list[ev.Event]:
        """A verdict, and what was recovered on the way to it, as events."""
        again: list[ev.Event] = [
            ev.VerifyRecovered(self.task, self.number, step.name, step.recovered)
            for step in verdict.steps
            if step.recovered
        ]
        log, steps = self.verify_log, step_records(verdict.steps)
        return [
            *again,
            ev.VerifyFinished(
                self.task,
                self.number,
                verdict.passed,
                log,
                seconds(verdict),
                steps,
                tree,
                evidence,
                cached,
                one_line(verdict.proof),
            ),
        ]

    async def expect(self, missing: tuple[str, ...]) -> None:
        """W04: missing expected files are a failure, or are reported."""
        if missing and self.tools.expected_must_come:
            raise self.missing(missing)
        if missing:
            await self.record(ev.ExpectedMissing(self.task, self.number, missing))

    def missing(self, names: tuple[str, ...]) -> Failed:
        """Missing expected files, if they are a failure."""
        more = f" and {len(names) - 10} more" if len(names) > 10 else ""
        detail = f"expected files are missing: {', '.join(names[:10])}{more}"
        note = f"The change was not accepted. The task must also create:\n\n{_listed(names)}"
        return self.failed(FailureClass.POLICY_VIOLATION, "EXPECTED_MISSING", detail, note)


def _refused_note(refusals: Sequence[WriteRefused]) -> str:
    """Every path that was refused, so that the next attempt does not meet them one by one."""
    lines = list(dict.fromkeys(f"{one_line(one.message, 400)} ({one.code})" for one in refusals))
    count = f"{len(lines)} refusals" if len(lines) > 1 else "one refusal"
    told = f"The change was not accepted: {count}. Nothing of it was kept in this folder. Do the task without:"
    return f"{told}\n\n{_listed(lines)}"


def _listed(lines: Sequence[str]) -> str:
    more = [f"- and {len(lines) - _MOST_NAMED} more"] if len(lines) > _MOST_NAMED else []
    return "\n".join([*(f"- {one_line(line, 500)}" for line in lines[:_MOST_NAMED]), *more])
