"""What the answer does to a change that keeps a branch red: revert it, try again, or leave it as it is."""

from __future__ import annotations

from ganger.core import events as ev
from ganger.core.command_result import Effect, Refusal, counted
from ganger.core.control.questions import answer
from ganger.core.control.revert_offers import BY_WORKER, LEAVE, REVERT_IT, TRY_AGAIN, can_revert
from ganger.core.model.ledger import BY_GANGER, BY_WORKER as HOW_BY_WORKER
from ganger.core.model.records import Question
from ganger.core.model.run_state import RunState
from ganger.core.model.task_state import TaskState
from ganger.core.planning.repos import PROJECT
from ganger.core.scheduling.resume import back_beside, bring_back, but, close_questions, following
from ganger.core.vocabulary import TaskStatus

_ENDED = (TaskStatus.FAILED, TaskStatus.BLOCKED, TaskStatus.ESCALATED)
_TO_WORKER = (
    "A person decided to revert your change. Undo it and every fix of it, keep what others built since, and change "
    "nothing else."
)


def answer_red(state: RunState, question: Question, text: str, now: float) -> Effect:
    """`question` is about a task that ended with its change in the branch; other text is an answer for its worker."""
    name, task = question.task, state.tasks.get(question.task)
    if task is None or task.status not in _ENDED or text not in question.options:
        return answer(state, question, text, now)
    closed = close_questions(state, name, text)
    if text == LEAVE:
        stays = f"{name} stays {task.status.value}; ganger retry {name} runs it again"
        return Effect(f"{question.id} is answered; {stays}", tuple(closed))
    if text == TRY_AGAIN:
        back = bring_back(state, name, f"{question.id} was answered", "")
        again = f"{name} runs again{but(state, name, now)}{following((*closed, *back), name)}"
        return Effect(f"{question.id} is answered; {again}", (*closed, *back))
    if text not in (REVERT_IT, BY_WORKER):
        return answer(state, question, text, now)
    if not can_revert(state, name):
        raise Refusal(f"nothing of {name} is left in the branch; ganger retry {name} runs it again")
    if text == BY_WORKER:
        chosen = ev.RevertChosen(name, question.id, HOW_BY_WORKER)
        back = bring_back(state, name, f"{question.id}: its worker reverts it", _TO_WORKER)
        again = f"{name} runs again and reverts its change{but(state, name, now)}"
        return Effect(f"{question.id} is answered; {again}", (*closed, chosen, *back))
    return _revert(state, question, task, closed)


def _revert(state: RunState, question: Question, task: TaskState, closed: list[ev.QuestionAnswered]) -> Effect:
    """It continues as a delivery, with the tasks that wait for its branch. Its dependents stay as they are."""
    name, repo = question.task, state.specs[question.task].repo
    assert task.delivery is not None
    why = f"{question.id}: {REVERT_IT}"
    requeued = ev.TaskRequeued(name, why, granted=0, by_person=True)
    beside = back_beside(state, name, f"{name} is reverted")
    count = counted(len(task.delivery.standing), "commit")
    halted = f"; {repo or 'the project'} stays halted until ganger unlock {repo or PROJECT} --why TEXT"
    done = f"Ganger reverts {count} of {name} without a worker{halted if repo in state.chains.halted else ''}"
    chosen = ev.RevertChosen(name, question.id, BY_GANGER)
    return Effect(f"{question.id} is answered; {done}", (*closed, chosen, requeued, *beside))
