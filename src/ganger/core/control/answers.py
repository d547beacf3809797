"""What an answer does, by the kind of its question: every offered option acts, and free text goes to the worker.

The options of each kind are listed here, next to what each of them does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from ganger.core import events as ev
from ganger.core.command_result import Effect, counted
from ganger.core.control import removals, reviews
from ganger.core.control.questions import answer
from ganger.core.control.removals import REMOVED, left_out
from ganger.core.control.revert_offers import ESCALATED, FATAL
from ganger.core.control.reverts import answer_red
from ganger.core.control.worker_commands import REASSIGNED
from ganger.core.delivery.upstream import BOTH, REVERT, culprit_of
from ganger.core.model.records import Question
from ganger.core.model.run_state import RunState
from ganger.core.planning.repos import shown
from ganger.core.scheduling.accounts import answer_account
from ganger.core.scheduling.resume import bring_back, but, close_questions
from ganger.core.state.apply_worker import is_at_work
from ganger.core.state.hosts import answer_host
from ganger.core.vocabulary import AttemptStep, BlockReason, TaskStatus, WorkerVerdict

CASCADE, PACKAGES, REFS, REQUEST = "cascade", "packages", "refs", "request"
WAS_ME, WAS_NOT_ME = "it was me", "it was not me: pause the run, I will look at it"
REINSTALLED = "they are correct again"
DELIVER_AGAIN, LEAVE_OUT = "deliver it again", "leave the task out"
# Options of earlier versions, with `_` for each space: open questions of old runs still offer them.
_EARLIER: Mapping[str, str] = {
    "it_was_not_me:_pause_the_run,_I_look_at_it": WAS_NOT_ME,
    "they_are_as_they_shall_be_again": REINSTALLED,
    "bring_it_there_once_more": DELIVER_AGAIN,
}
OPTIONS: Mapping[str, tuple[str, ...]] = {
    reviews.REVIEW: (reviews.APPROVE_WORD,),
    REFS: (WAS_ME, WAS_NOT_ME),
    PACKAGES: (REINSTALLED,),
    REQUEST: (DELIVER_AGAIN, LEAVE_OUT),
    REMOVED: (removals.LEAVE_REMOVED, removals.PUT_BACK),
}
# How an attempt that found changed packages is recognized.
PACKAGES_SIGNAL = "packages changed"


def given(state: RunState, question: Question, text: str, now: float) -> Effect:
    """`text` is an option in full, or free text."""
    if question.kind == reviews.REVIEW and reviews.is_open(state, question.task):
        return reviews.answer_review(state, question, text, now)
    if question.host:
        return answer_host(state, question, text)
    if question.account:
        return answer_account(state, question, text)
    act = _ACTS.get(question.kind)
    return act(state, question, text, now) if act is not None else answer(state, question, text, now)


def _meaning(text: str) -> str:
    """The current option for an option of an earlier version; any other text as it is."""
    return _EARLIER.get(text.replace(" ", "_"), text)


def _refs(state: RunState, question: Question, text: str, now: float) -> Effect:
    """Nothing new starts while a person looks into the moved refs."""
    if _meaning(text) != WAS_NOT_ME or state.lead.paused or state.lead.stopping or state.lead.draining:
        return answer(state, question, text, now)
    paused = ev.RunPaused(f"{question.id}: refs moved, and a person is looking into it")
    said = f"{question.id} is answered; paused: nothing new starts; ganger resume continues"
    return Effect(said, (ev.QuestionAnswered(question.id, text), paused))


def _packages(state: RunState, question: Question, text: str, now: float) -> Effect:
    """The tasks that could not start because of it may run."""
    if _meaning(text) != REINSTALLED:
        return answer(state, question, text, now)
    names = [name for name in state.index.by_rank if _lacks_packages(state, name)]
    back: list[ev.Event] = []
    for name in names:
        events = bring_back(state, name, text, "")
        # No attempt was used up, so none is granted.
        back += [replace(event, granted=0) if isinstance(event, ev.TaskRequeued) else event for event in events]
    once = list(dict.fromkeys(back))
    also = f"; {counted(len(names), 'task')} that waited for it may run" if names else ""
    return Effect(f"{question.id} is answered{also}", (ev.QuestionAnswered(question.id, text), *once))


def _lacks_packages(state: RunState, name: str) -> bool:
    task = state.tasks[name]
    signature = task.failure.signature or ""
    return task.block_reason is BlockReason.EXTERNAL and PACKAGES_SIGNAL in signature


def _cascade(state: RunState, question: Question, text: str, now: float) -> Effect:
    """The task that made the suspected commit reverts it, or changes it together with what it broke."""
    culprit = culprit_of(question.options)
    word = text.partition(" ")[0].rstrip(":")
    if text not in question.options or word not in (REVERT, BOTH) or culprit is None or culprit.task not in state.tasks:
        return answer(state, question, text, now)
    here, name = shown(state.specs[question.task].repo), question.task
    commit = f"{culprit.commit} of {culprit.repo}"
    if word == REVERT:
        above = f"Revert what {commit} changed: {here} is red with it, and a person decided to revert it."
        below = f"{commit}, which you build on, is being reverted. Then do only what is still needed."
        then = f"{culprit.task} runs again and reverts {culprit.commit}"
    else:
        above = f"{here} is red with {commit}. Both are being changed together: change it so that they fit."
        below = f"{commit}, which you build on, is being changed again. Adapt {here} to it."
        then = f"{culprit.task} and {name} run again, one after the other"
    answered = ev.QuestionAnswered(question.id, text)
    others = [event for event in close_questions(state, name, text) if event != answered]
    freed = ev.RepoUnlocked(state.specs[name].repo, f"{question.id}: {text}", (name,), lifts=False)
    events = (
        answered,
        *others,
        *([freed] if state.tasks[name].locked else []),
        *_told(state, culprit.task, question, above),
        *_told(state, name, question, below),
    )
    events = tuple(dict.fromkeys(events))
    return Effect(f"{question.id} is answered; {then}{but(state, culprit.task, now)}", events)


def _told(state: RunState, name: str, question: Question, text: str) -> list[ev.Event]:
    """The task runs again with these words; a running one starts over with them, so that nothing waits for it."""
    task = state.tasks[name]
    if task.status is not TaskStatus.RUNNING:
        return bring_back(state, name, f"{question.id} was answered", text)
    left: list[ev.Event] = [ev.MessageLeft(name, task.attempts, "answer", text, question.id)]
    if (
        is_at_work(task)
        and task.attempt.step == AttemptStep.AGENT
        and task.worker is not None
        and not task.worker.verdict
    ):
        left.append(ev.WorkerEnding(name, task.attempts, WorkerVerdict.REASSIGNED, REASSIGNED))
    return left


def _request(state: RunState, question: Question, text: str, now: float) -> Effect:
    """What a person closed or deleted stays so until a person wants it delivered again."""
    meant = _meaning(text)
    name = question.task
    if meant == LEAVE_OUT and state.tasks[name].status is not TaskStatus.RUNNING:
        return Effect(f"{question.id} is answered; {name} is left out", left_out(state, name, text))
    if meant != DELIVER_AGAIN or state.tasks[name].status is TaskStatus.RUNNING:
        return answer(state, question, text, now)
    back = bring_back(state, name, text, "")
    # No attempt was used up, so none is granted.
    back = [replace(event, granted=0) if isinstance(event, ev.TaskRequeued) else event for event in back]
    said = f"{question.id} is answered; {name} is delivered again{but(state, name, now)}"
    return Effect(said, (*close_questions(state, name, text), *back))


_ACTS: Mapping[str, Callable[[RunState, Question, str, float], Effect]] = {
    REFS: _refs,
    PACKAGES: _packages,
    CASCADE: _cascade,
    REQUEST: _request,
    ESCALATED: answer_red,
    FATAL: answer_red,
    REMOVED: removals.answer_removal,
}
