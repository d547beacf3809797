"""What a person is asked about a task that ended with its change in a branch."""

from __future__ import annotations

from ganger.core import events as ev
from ganger.core.control.revert_offers import (
    ESCALATED,
    FATAL,
    LEAVE,
    REVERT_IT,
    STILL_IN_HISTORY,
    can_revert,
    options_after,
    told,
)
from ganger.core.failures.retries import NextStep
from ganger.core.vocabulary import FailureClass, TaskStatus
from ganger.engine.attempt_context import Failed, RunningAttempt
from ganger.engine.resources.run_resources import one_line

DAMAGED = "REPO_DAMAGED"


def revert_failed(case: RunningAttempt, chosen: NextStep, problem: Failed) -> list[ev.Event]:
    """For a task that ends with its revert unfinished and nothing to wait for."""
    now = case.now.delivery
    if now is None or now.revert is None or chosen.block_reason is not None:
        return []
    return [ev.RevertFailed(case.task, case.number, one_line(problem.failed.detail, 400))]


def asked_about_red(case: RunningAttempt, chosen: NextStep, problem: Failed, detail: str) -> list[ev.Event]:
    """Its change keeps a branch red, and nobody fixes it any more: what a person can choose."""
    if chosen.status is not TaskStatus.ESCALATED or problem.failed.failure_class is FailureClass.FATAL:
        return []
    if not (options := options_after(case.state, case.task)):
        return []
    context, number = told(case.state, case.task, options), case.number
    return [ev.QuestionAsked("", case.task, ESCALATED, detail, attempt=number, context=context, options=options)]


def asked_about_halt(case: RunningAttempt, text: str, *, damaged: bool) -> ev.QuestionAsked:
    """Of a repository that is damaged nothing more is made."""
    options = (REVERT_IT, LEAVE) if can_revert(case.state, case.task) and not damaged else ()
    context = f"{told(case.state, case.task, options)} Of a leaked key: {STILL_IN_HISTORY}" if options else ""
    return ev.QuestionAsked("", case.task, FATAL, text, attempt=case.number, context=context, options=options)
