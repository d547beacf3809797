"""A person's verdict on a change that awaits review (W08): when it counts, and what follows from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ganger.core import events as ev
from ganger.core.command_result import Effect, Refusal, task_named, text_of
from ganger.core.delivery.forge_reviews import Opinion, ReviewSaid, rework_text, too_few
from ganger.core.model.records import Question
from ganger.core.model.run_state import RunState
from ganger.core.model.task_state import TaskState
from ganger.core.scheduling.resume import bring_back, but, close_questions, following
from ganger.core.vocabulary import BlockReason, TaskStatus

REVIEW = "review"
APPROVED, REWORK, WANTED, WITHDRAWN = "approved", "rework", "wanted", "withdrawn"
APPROVE_WORD = "approve"
# Who is asked: a person here or on the forge, or only people on the forge, who objected or whose approval it requires.
PERSON, FORGE = "person", "forge"
_HERE = ReviewSaid(Opinion.NONE)


def approve(state: RunState, data: Mapping[str, object], now: float) -> Effect:
    """The delivery continues from its ledger; no worker is needed for it."""
    name, text = task_named(state, data), text_of(data, "text")
    commit = _awaited(state, name, data.get("commit"))
    events = _decided(state, name, APPROVED, text, commit, text or APPROVED, "approved by a person", "")
    then = "merged" if not state.tasks[name].work.merged else "delivered"
    return Effect(
        f"{name} is approved ({commit[:12]}) and is {then} without another worker{_rest(state, name, now, events)}",
        events,
    )


def rework(state: RunState, data: Mapping[str, object], now: float) -> Effect:
    """The next worker gets the reason."""
    name, text = task_named(state, data), text_of(data, "text")
    if not text:
        raise Refusal("it gives no reason; a worker needs one to do better")
    commit = _awaited(state, name, data.get("commit"))
    events = _decided(state, name, REWORK, text, commit, text, "sent back by a person", text)
    return Effect(f"{name} is sent back; it runs again with your remark{_rest(state, name, now, events)}", events)


def answer_review(state: RunState, question: Question, text: str, now: float) -> Effect:
    """The answer to a review question is the review: its option approves, any other text sends the change back."""
    data = {"task": question.task, "text": "" if text.lower() in (APPROVE_WORD, APPROVED) else text}
    return rework(state, data, now) if data["text"] else approve(state, data, now)


def is_open(state: RunState, name: str) -> bool:
    task = state.tasks.get(name)
    return task is not None and task.delivery is not None and task.delivery.review == WANTED


def on_forge(state: RunState, name: str, said: ReviewSaid, *, needed: int = 0) -> tuple[ev.Event, ...]:
    """Reviews on the forge of a change that awaits review, as if they were given here; empty if nothing is new.

    `needed`: how many approvals the forge itself requires.
    """
    if not awaits_people(state, name):
        return ()
    now = state.tasks[name].delivery
    assert now is not None
    commit = now.reviewed
    if said.opinion is Opinion.REWORK:
        text = rework_text(said)
        return _decided(state, name, REWORK, text, commit, text, f"sent back on the forge by {said.who}", text, said)
    if said.opinion is Opinion.APPROVED:
        why = f"approved on the forge by {said.who}"
        return _decided(state, name, APPROVED, "", commit, why, why, "", said)
    if said.opinion is Opinion.NONE and now.review_of == FORGE and not needed:
        why = "the objection on the forge was withdrawn"
        return _decided(state, name, WITHDRAWN, "", commit, why, why, "", said)
    if 0 < said.approvals < needed and state.tasks[name].detail != too_few(commit, said.approvals, needed):
        return _looked_at_again(state, name, "approved on the forge, which requires more approvals")
    return ()


def shows_another(state: RunState, name: str) -> tuple[ev.Event, ...]:
    """Its request was closed, or its branch shows another commit: the delivery decides what to do about it."""
    return (
        _looked_at_again(state, name, "its change request no longer shows its commit")
        if awaits_people(state, name)
        else ()
    )


def _looked_at_again(state: RunState, name: str, why: str) -> tuple[ev.Event, ...]:
    """No attempt is used up, so none is granted."""
    back = bring_back(state, name, why, "")
    back = [replace(e, granted=0) if isinstance(e, ev.TaskRequeued) else e for e in back]
    return (*close_questions(state, name, why), *back)


def awaits_people(state: RunState, name: str) -> bool:
    task = state.tasks[name]
    waits = task.status is TaskStatus.BLOCKED and task.block_reason is BlockReason.AWAITING_REVIEW
    return waits and task.delivery is not None and task.delivery.review == WANTED


def has_request(task: TaskState) -> bool:
    """Whether there is a place on a forge where its change can be reviewed."""
    known = task.delivery.request if task.delivery is not None else None
    return known is not None and bool(known.number)


def _awaited(state: RunState, name: str, seen: object) -> str:
    """The commit that awaits the review. `seen` is the one the person looked at, if known."""
    task = state.tasks[name]
    now = task.delivery
    if now is None or now.review != WANTED:
        reason = (
            f"it is already {now.review} ({now.reviewed[:12]})"
            if now is not None and now.review
            else "none was requested"
        )
        raise Refusal(f"{name} is {task.status.value} and no change of it awaits a review: {reason}")
    if task.status is TaskStatus.RUNNING:
        raise Refusal(f"{name} is being reviewed by an agent; its verdict comes first")
    if task.block_reason is not BlockReason.AWAITING_REVIEW and task.status is not TaskStatus.ESCALATED:
        raise Refusal(
            f"{name} is {task.status.value} and waits for something else; ganger why {name} shows what it waits for"
        )
    if isinstance(seen, str) and seen and seen != now.reviewed:
        raise Refusal(f"{name} has a newer commit: {now.reviewed[:12]} awaits review, not {seen[:12]}")
    return now.reviewed


def _decided(
    state: RunState, name: str, verdict: str, text: str, commit: str, answer: str, why: str, hint: str,
    said: ReviewSaid = _HERE,
) -> tuple[ev.Event, ...]:  # fmt: skip
    names = tuple(review.id for review in said.reviews)
    reviewed = ev.Reviewed(name, verdict, PERSON, text, commit, said.who, said.url, names)
    back = bring_back(state, name, why, hint)
    if verdict != REWORK:
        # No attempt is used up, so none is granted.
        back = [replace(e, granted=0) if isinstance(e, ev.TaskRequeued) else e for e in back]
    return (reviewed, *close_questions(state, name, answer), *back)


def _rest(state: RunState, name: str, now: float, events: tuple[ev.Event, ...]) -> str:
    return f"{but(state, name, now)}{following(events, name)}"
