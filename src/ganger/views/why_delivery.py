"""`ganger why` for a change on its way: what it waits for, with CI's own evidence."""

from __future__ import annotations

import re
import shlex

from ganger.core.control.reviews import FORGE, WANTED
from ganger.core.model.ci import Ci, Word, chosen, latest
from ganger.core.model.ledger import Delivery, Milestone
from ganger.core.model.records import Question, RunState, TaskState
from ganger.core.state.apply_delivery import not_proved, rules_of
from ganger.core.state.hosts import awaited_by, question_about_host, told
from ganger.core.state.indexes import is_delivering
from ganger.core.vocabulary import BlockReason, TaskStatus

_SHORT = 12
_MOST_FACTS = 6
_INTENT = re.compile(r"\bto be (?:pushed|opened|merged|brought)\b")


def delivery_running(state: RunState, name: str, task: TaskState) -> str:
    """What a task that runs without a worker waits for; empty where a worker is at it."""
    now = task.delivery
    if now is None or not is_delivering(task):
        return ""
    if host := awaited_by(state, name):
        return f"{told(host, state.hosts[host])}, and it goes on by itself when that is over"
    commit = now.commit[:_SHORT]
    if now.review == WANTED:
        return f"the {rules_of(state, name).reviewer} looks at {now.reviewed[:_SHORT]}"
    if now.retrigger is not None:
        return f"CI is asked to run again for {commit} ({now.retrigger.cause})"
    if not now.commit or now.pushed != now.commit:
        return f"{commit or 'its change'} is on its way to {now.branch or 'the remote'}"
    if not now.finding:
        return f"{commit} is on {now.branch}, and CI has no run for it yet"
    if now.finding == Ci.GREEN:
        return f"CI is green for {commit}; {_lacking(state, name, task)}"
    return f"CI of {commit} is {now.finding}: {now.why}{_progress(now)}{_where(state, name, now)}"


def _lacking(state: RunState, name: str, task: TaskState) -> str:
    lacking = not_proved(state, name, task)
    return f"no proof yet of {', '.join(lacking)}" if lacking else "it is being concluded"


def _progress(now: Delivery) -> str:
    jobs = f"; {now.passed} of {now.total} jobs passed" if now.total else ""
    return f"{jobs}, {now.current} is at work" if now.current else jobs


def _where(state: RunState, name: str, now: Delivery) -> str:
    urls = [run.url for run in chosen(now.commit, now.runs, rules_of(state, name).events) if run.url]
    return f" ({urls[-1]})" if urls else ""


def delivery_blocked(state: RunState, name: str, task: TaskState) -> tuple[str, str] | None:
    """The sentence and the next step for a delivery that only a person can help on; None where that is not why."""
    now = task.delivery
    if now is None or task.status is not TaskStatus.BLOCKED:
        return None
    quoted, asked_of_task = shlex.quote(name), _asked(state, name)
    since = f" since {asked_of_task.at}" if asked_of_task is not None else ""
    if task.block_reason is BlockReason.AWAITING_REVIEW:
        url = f" ({now.request.url})" if now.request is not None and now.request.url else ""
        sentence = f"{name} is BLOCKED (awaiting_review){since}: {task.detail}{url}."
        if now.review_of == FORGE:
            return sentence, f"review it there, or ganger approve {quoted}"
        return sentence, f"ganger approve {quoted}, or ganger rework {quoted} TEXT"
    if host := awaited_by(state, name):
        asked = question_about_host(state, host)
        step = f"ganger answer {asked.id} TEXT" if asked is not None else f"ganger retry {quoted}"
        return f"{name} is BLOCKED (external): {told(host, state.hosts[host])}.", step
    if task.block_reason is BlockReason.EXTERNAL and now.pending:
        step = f"ganger retry {quoted}"
        if asked_of_task is not None and asked_of_task.options:
            step = f"ganger answer {asked_of_task.id} NUMBER_OR_TEXT"
        return f"{name} is BLOCKED (external){since}: {task.detail.rstrip('.')}.", step
    if task.block_reason is BlockReason.PAUSED and state.halted:
        repo = next((one for one in state.halted if one == state.specs[name].repo), next(iter(state.halted)))
        return f"{name} is BLOCKED (paused): {task.detail}.", f"ganger unlock {repo or '.'} --why TEXT"
    return None


def _asked(state: RunState, name: str) -> Question | None:
    """The newest open question about it."""
    found = [one for one in state.questions.values() if one.task == name and one.answer is None]
    return found[-1] if found else None


def mends(task: TaskState) -> str:
    """That a worker mends what CI or a reviewer found; empty for every other attempt."""
    now = task.delivery
    if now is None or not now.fixing or is_delivering(task):
        return ""
    if now.review == "rework":
        return "; it does again what a reviewer sent back"
    return f"; it mends what CI found in {now.commit[:_SHORT]}: {now.why}"


def delivery_evidence(state: RunState, name: str, task: TaskState) -> list[str]:
    """The ledger's last lines, and every job that did not succeed."""
    now = task.delivery
    if now is None:
        return []
    lines = [f"milestone {now.milestone.value}{f' ({now.substate})' if now.substate else ''} since {now.since}"]
    # What was intended says nothing once something else is known.
    facts = [fact for fact in now.facts[:-1] if not _INTENT.search(fact.what)] + [*now.facts[-1:]]
    lines += [
        f"{fact.at} {fact.source}: {fact.what}" + (f" [{fact.commit[:_SHORT]}]" if fact.commit else "")
        for fact in facts[-_MOST_FACTS:]
    ]
    if now.milestone is not Milestone.DONE:
        for run in chosen(now.commit, now.runs, rules_of(state, name).events):
            open_jobs = [job for job in latest(run).values() if job.word is not Word.SUCCESS]
            lines += [
                f"job {job.name} {job.word.value}{f' ({job.reason})' if job.reason else ''}: {job.url or run.url}"
                for job in open_jobs[:_MOST_FACTS]
            ]
    if now.log and now.milestone is Milestone.FIXING_CI:
        lines.append(f"CI's log: {now.log}")
    return lines
