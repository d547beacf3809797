"""Tasks that are left out: because a person skips them, or because a maintainer removed what they had pushed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from ganger.core import events as ev
from ganger.core.command_result import Effect, counted
from ganger.core.control.questions import answer
from ganger.core.control.worker_commands import SKIPPED, require_running
from ganger.core.model.records import Question
from ganger.core.model.run_state import RunState
from ganger.core.planning.dependents import behind_failed
from ganger.core.scheduling.resume import bad_need, bring_back, close_questions, parked
from ganger.core.state.apply_removals import LEFT_OUT, PUT_BACK as PUT, RESTORED
from ganger.core.vocabulary import BlockReason, TaskStatus, WorkerVerdict

REMOVED = "removed"
LEAVE_REMOVED, PUT_BACK = "leave it out", "put it back"


def left_out(state: RunState, name: str, text: str) -> tuple[ev.Event, ...]:
    """A settled task that a person no longer wants, with the tasks that need it and the locks it holds."""
    task = state.tasks[name]
    blocked = [
        ev.TaskSettled(b, TaskStatus.BLOCKED, f"it waits for {name}, which was skipped", BlockReason.DEPENDENCY_FAILED)
        for b in behind_failed(state, name)
    ]
    settled = ev.TaskSettled(name, TaskStatus.BLOCKED, SKIPPED, BlockReason.PAUSED)
    freed = [ev.RepoUnlocked(state.specs[name].repo, SKIPPED, (name,), lifts=False)] if task.locked else []
    return (*close_questions(state, name, text), settled, *freed, *blocked)


def is_skipped(state: RunState, name: str) -> bool:
    """Left out by a person: it stays so until a person includes it again, also under a later lead."""
    task = state.tasks[name]
    return task.block_reason is BlockReason.PAUSED and task.detail == SKIPPED


def skipped_need(state: RunState, name: str) -> str:
    """A task it needs, directly or not, that is left out."""
    queue = list(state.specs[name].depends_on)
    seen = set(queue)
    for need in queue:
        if is_skipped(state, need):
            return need
        new = [one for one in state.specs[need].depends_on if one not in seen]
        seen.update(new)
        queue += new
    return ""


def open_question(state: RunState, repo: str) -> Question | None:
    """The open question about commits that were removed from this repository's branch."""
    asked = (q for q in state.inbox.questions.values() if q.kind == REMOVED and q.answer is None)
    return next((q for q in asked if state.specs[q.task].repo == repo), None)


def answer_removal(state: RunState, question: Question, text: str, now: float) -> Effect:
    """Left out: the run continues without the removed commits. Put back: they are pushed again."""
    repo = state.specs[question.task].repo
    removal = state.branches.removals.get(repo)
    if removal is None or text not in (LEAVE_REMOVED, PUT_BACK):
        return answer(state, question, text, now)
    if text == PUT_BACK:
        events = [ev.RemovalDecided(repo, PUT), *go_on(state, repo, (), text)]
        said = "the removed commits are pushed again"
    else:
        events = _leave_out(state, repo, removal.tasks, text)
        named = ", ".join(removal.tasks)
        said = f"{named} {'is' if len(removal.tasks) == 1 else 'are'} left out" if named else "nothing is left out"
    events = [ev.QuestionAnswered(question.id, text), *events]
    again = sum(isinstance(event, ev.TaskRequeued) and state.tasks[event.task].final is False for event in events)
    also = f"; {counted(again, 'task')} of that branch may continue" if again else ""
    return Effect(f"{question.id} is answered; {said}{also}", tuple(dict.fromkeys(events)))


def _leave_out(state: RunState, repo: str, names: Iterable[str], text: str) -> list[ev.Event]:
    events: list[ev.Event] = [ev.RemovalDecided(repo, LEFT_OUT)]
    names = [name for name in names if name in state.tasks and not is_skipped(state, name)]
    for name in names:
        task = state.tasks[name]
        if task.status is TaskStatus.RUNNING:
            require_running(state, name)
            events.append(ev.WorkerEnding(name, task.attempts, WorkerVerdict.SKIPPED, SKIPPED))
            continue
        if task.status is TaskStatus.DONE:
            # Only a queued task can end in another status.
            events.append(ev.TaskRequeued(name, "its commit was removed from the branch", granted=0, by_person=True))
        events += left_out(state, name, text)
    behind = _merged_behind(state, names)
    for name, need in behind.items():
        waits = f"it waits for {need}, which was skipped"
        events.append(ev.TaskSettled(name, TaskStatus.BLOCKED, waits, BlockReason.DEPENDENCY_FAILED))
    return [*events, *go_on(state, repo, (*names, *behind), text)]


def _merged_behind(state: RunState, names: Iterable[str]) -> dict[str, str]:
    """Tasks that build on these, were done on top of them, and wait to be delivered; with the task they need."""
    found: dict[str, str] = {}
    queue = [(name, name) for name in names]
    for name, root in queue:
        for dependent in state.index.dependents.get(name, ()):
            if dependent not in found:
                found[dependent] = root
                queue.append((dependent, root))
    return {name: root for name, root in found.items() if state.tasks[name].status is TaskStatus.BLOCKED}


def go_on(state: RunState, repo: str, left: Iterable[str], text: str) -> list[ev.Event]:
    """The other deliveries of the branch continue from their ledgers; no attempt was used up, so none is granted."""
    without = set(left)
    events: list[ev.Event] = []
    for name in parked(state, repo):
        if name not in without and bad_need(state, name) is None:
            events += [
                *close_questions(state, name, text),
                ev.TaskRequeued(name, text, granted=0, by_person=True),
            ]
    return events


def restored(state: RunState, repo: str, names: Iterable[str]) -> list[ev.Event]:
    """Someone put the commits of these tasks back by hand, although a person had left them out."""
    return [ev.RemovalDecided(repo, RESTORED), *restored_tasks(state, names)]


def restored_tasks(state: RunState, names: Iterable[str]) -> list[ev.Event]:
    """Their deliveries continue."""
    events: list[ev.Event] = []
    for name in names:
        back = bring_back(state, name, "its commit is in the branch again", "")
        events += [replace(event, granted=0) if isinstance(event, ev.TaskRequeued) else event for event in back]
    return list(dict.fromkeys(events))
