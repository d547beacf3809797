"""Questions for a person: how one is found and answered, and what happens when no answer comes."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from ganger.core import events as ev
from ganger.core.command_result import Effect, Refusal
from ganger.core.model.records import Question
from ganger.core.model.run_state import RunState
from ganger.core.model.task_state import TaskState
from ganger.core.scheduling.resume import bring_back, but, close_questions, following
from ganger.core.vocabulary import TaskStatus

_LONGEST_ASKED = 2_000
_NOT_BY_A_WORKER = frozenset({"ci", "cascade", "fatal"})
BY_DEFAULT = "(nobody answered in time: this is the default the question came with)"


def find_question(state: RunState, word: object) -> Question:
    """An open question by its id, or by its task's id where that has only one."""
    if not isinstance(word, str) or not word:
        raise Refusal("it names no question")
    known = state.inbox.questions.get(word)
    if known is not None and known.answer is not None:
        raise Refusal(f"{word} is already answered; ganger inbox shows what is open")
    if known is not None:
        return known
    of_task = [q for q in state.inbox.questions.values() if q.task == word and q.answer is None]
    if len(of_task) > 1:
        raise Refusal(f"{word} has {len(of_task)} open questions: {', '.join(q.id for q in of_task)}; name one of them")
    if not of_task:
        raise Refusal(f"there is no open question {word}; ganger inbox shows what is open")
    return of_task[0]


def chosen(question: Question, text: str) -> str:
    """The intended answer: the number of an option means that option."""
    if not question.options or text in question.options or not (text.isascii() and text.isdigit()):
        return text
    number = int(text) if len(text) < 4 else 0
    if 1 <= number <= len(question.options):
        return question.options[number - 1]
    raise Refusal(
        f"{question.id} has options 1 to {len(question.options)}, not {text[:20]}; any other answer must be text"
    )


def answer(state: RunState, question: Question, text: str, now: float) -> Effect:
    """A running worker gets the answer; otherwise the task runs again with the answer in its prompt."""
    answered = ev.QuestionAnswered(question.id, text)
    name, task = question.task, state.tasks.get(question.task)
    if task is None:
        return Effect(f"{question.id} is answered", (answered,))
    if task.status is TaskStatus.RUNNING:
        message = ev.MessageLeft(name, task.attempts, "answer", _message(state, question, task, text), question.id)
        said = f"{question.id} is answered; {name} is RUNNING: its worker and every later attempt get the answer"
        return Effect(said, (answered, message))
    if task.status is TaskStatus.DONE:
        return Effect(f"{question.id} is answered; {name} is already DONE", (answered,))
    also = [q.id for q in _asked_beside(state, question) if q.answer is None]
    if also and task.status is TaskStatus.ESCALATED:
        said = f"{question.id} is answered; {name} also waits for the answer to {', '.join(also)}"
        return Effect(said, (answered,))
    others = [
        e for e in close_questions(state, name, text) if _is_answered_by(state.inbox.questions[e.question], question)
    ]
    hint = _with_earlier(state, question, text)
    events = (answered, *others, *bring_back(state, name, f"{question.id} was answered", hint))
    if isinstance(events[-1], ev.TaskSettled):
        return Effect(f"{question.id} is answered; kept for {name}: {events[-1].detail}", events)
    again = f"{name} runs again with your answer"
    return Effect(f"{question.id} is answered; {again}{but(state, name, now)}{following(events, name)}", events)


def _asked_beside(state: RunState, question: Question) -> list[Question]:
    """The other questions of the worker that asked this one."""
    same = (question.task, question.attempt)
    asked = [q for q in state.inbox.questions.values() if q.by_worker and (q.task, q.attempt) == same]
    return [q for q in asked if question.by_worker and (q.kind, q.text) != (question.kind, question.text)]


def _is_answered_by(other: Question, question: Question) -> bool:
    """Bringing a task back answers Ganger's own questions about it; a worker's question needs its own answer."""
    return other is not question and (not other.by_worker or (other.kind, other.text) == (question.kind, question.text))


def _with_earlier(state: RunState, question: Question, text: str) -> str:
    """With the answers given while the task waited for this one, each with its question."""
    hints = state.tasks[question.task].next_start.hints
    earlier = [q for q in _asked_beside(state, question) if q.answer is not None]
    untold = [q for q in earlier if not {q.answer, f"{q.id}: {q.answer}"} & set(hints)]
    if not untold:
        return text
    both = [*untold, replace(question, answer=text)]
    return "\n\n".join(f"Asked ({q.kind}): {_short(q.text)}\nAnswered: {q.answer}" for q in both)


def _message(state: RunState, question: Question, task: TaskState, text: str) -> str:
    """A worker with several questions must know which one this answers; one that did not ask it, the question."""
    if question.attempt != task.attempts or question.kind in _NOT_BY_A_WORKER:
        return f"Asked ({question.kind}): {_short(question.text)}\nAnswered: {text}"
    asked = [q for q in state.inbox.questions.values() if q.task == question.task and q.attempt == task.attempts]
    return f"{question.id}: {text}" if len(asked) > 1 else text


def answers_of(state: RunState, name: str) -> tuple[str, ...]:
    """What people answered the workers of a task, each answer with its question."""
    asked = [q for q in state.inbox.questions.values() if q.task == name and q.answer is not None]
    told: list[str] = []
    for hint in state.tasks[name].next_start.hints:
        found = [q for q in asked if hint in (q.answer, f"{q.id}: {q.answer}")]
        lines = [f"Asked ({q.kind}): {_short(q.text)}" for q in found]
        told.append("\n".join([*lines, f"Answered: {found[0].answer}"]) if found else hint)
    return tuple(told)


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST_ASKED else f"{text[:_LONGEST_ASKED]} …"


def due(state: RunState, now: float, remind_sec: float) -> list[ev.Event]:
    """What follows from a missing answer: the default once its deadline is past, otherwise a reminder.

    A reminder comes after `remind_sec`, the next after twice as long, and so on; 0 means never. Of several defaults
    that bring a task back, only the first is applied: the others are judged on the state it leads to.
    """
    if state.finished:
        return []
    events: list[ev.Event] = list(moot(state))
    brought_back = False
    needed = [q for q in state.inbox.questions.values() if q.answer is None and not _is_done(state, q.task)]
    for question in needed:
        if question.default and 0 < question.deadline <= now and not _was_asked_before(state, question):
            settled = _is_settled(state, question.task)
            if not (settled and brought_back):
                events += _by_default(state, question, now)
                brought_back = brought_back or settled
        elif remind_sec > 0 and now >= _reminded_at(question) + remind_sec * 2.0**question.raised:
            events.append(ev.QuestionRaised(question.id, question.raised + 1))
    answered = [e.question for e in events if isinstance(e, ev.QuestionAnswered)]
    return [e for e in events if not isinstance(e, ev.QuestionRaised) or e.question not in answered]


def moot(state: RunState) -> list[ev.QuestionAnswered]:
    """Open questions of tasks that were done without an answer."""
    asked = [q for q in state.inbox.questions.values() if q.answer is None and _is_done(state, q.task)]
    return [ev.QuestionAnswered(question.id, "not needed: its task is DONE") for question in asked]


def _is_done(state: RunState, name: str) -> bool:
    return name in state.tasks and state.tasks[name].status is TaskStatus.DONE


def _was_asked_before(state: RunState, question: Question) -> bool:
    """The same question was answered before: a default would repeat for ever, so a person decides."""
    same = (question.task, question.kind, question.text)
    return any(
        (q.task, q.kind, q.text) == same and q.answer is not None
        for q in state.inbox.questions.values()
        if q is not question
    )


def _is_settled(state: RunState, name: str) -> bool:
    task = state.tasks.get(name)
    return task is not None and task.status not in (TaskStatus.RUNNING, TaskStatus.DONE)


def _by_default(state: RunState, question: Question, now: float) -> tuple[ev.Event, ...]:
    try:
        text = chosen(question, question.default)
    except Refusal:
        text = question.default
    events = answer(state, question, f"{text} {BY_DEFAULT}", now).events
    # No person granted an attempt, and the worker that asked used up none.
    return tuple(replace(e, granted=0, by_person=False) if isinstance(e, ev.TaskRequeued) else e for e in events)


def _reminded_at(question: Question) -> float:
    return datetime.fromisoformat(question.raised_at or question.at).timestamp()
