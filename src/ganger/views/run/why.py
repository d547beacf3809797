"""`ganger why`: one sentence on a task, also on its way out, with the evidence it rests on."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from ganger.core.command_result import counted
from ganger.core.control.removals import open_question
from ganger.core.control.reviews import FORGE, WANTED
from ganger.core.delivery.shared_pushes import CANCEL
from ganger.core.failures.retries import allowed_attempts
from ganger.core.model.ci import Ci, Word, chosen, latest
from ganger.core.model.counters import COUNTERS
from ganger.core.model.ledger import Delivery, Milestone
from ganger.core.model.records import Question
from ganger.core.model.run_state import RunState
from ganger.core.model.task_state import TaskState
from ganger.core.model.workers import WorkerNow
from ganger.core.planning.repos import PROJECT, way_out, why_not
from ganger.core.scheduling.quota import account_of, question_about
from ganger.core.state.allowed import open_round
from ganger.core.state.apply_delivery import not_proved, rules_of
from ganger.core.state.hosts import awaited_by, question_about_host, told
from ganger.core.state.indexes import is_delivering, needed_files
from ganger.core.times import seconds_between
from ganger.core.vocabulary import AttemptStep, BlockReason, FailureClass, Phase, TaskStatus
from ganger.views.run.costs import UNKNOWN, known_tokens, known_usd

_SHORT = 12
_MOST_FACTS = 6
_INTENT = re.compile(r"\bto be (?:pushed|opened|merged|brought)\b")


def delivery_running(state: RunState, name: str, task: TaskState) -> str:
    """What a task that runs without a worker waits for; empty where a worker is at it."""
    now = task.delivery
    if now is None or not is_delivering(task):
        return ""
    if host := awaited_by(state, name):
        return f"{told(host, state.hosts[host])}, and the run continues by itself when that is over"
    commit = now.commit[:_SHORT]
    if now.review == WANTED:
        return f"the {rules_of(state, name).reviewer} looks at {now.reviewed[:_SHORT]}"
    if now.retrigger is not None and now.retrigger.how == CANCEL:
        return f"CI of {commit} did not begin in time; its run is stopped and begins again then"
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
        asked_of_task = asked_of_task or (None if task.final else open_question(state, state.specs[name].repo))
        if asked_of_task is not None and asked_of_task.options:
            step = f"ganger answer {asked_of_task.id} NUMBER_OR_TEXT"
        return f"{name} is BLOCKED (external){since}: {task.detail.rstrip('.')}.", step
    if now.reverted:
        return f"{name} is BLOCKED (paused): {task.detail}.", f"ganger retry {quoted} does it again"
    if task.block_reason is BlockReason.PAUSED and state.chains.halted:
        repo = next(
            (one for one in state.chains.halted if one == state.specs[name].repo), next(iter(state.chains.halted))
        )
        return f"{name} is BLOCKED (paused): {task.detail}.", f"ganger unlock {repo or '.'} --why TEXT"
    return None


def _asked(state: RunState, name: str) -> Question | None:
    """The newest open question about it."""
    found = [one for one in state.inbox.questions.values() if one.task == name and one.answer is None]
    return found[-1] if found else None


def mends(task: TaskState) -> str:
    """That a worker fixes what CI or a reviewer found; empty for every other attempt."""
    now = task.delivery
    if now is None or not now.fixing or is_delivering(task):
        return ""
    if now.review == "rework":
        return "; it does again what a reviewer sent back"
    return f"; it fixes what CI found in {now.commit[:_SHORT]}: {now.why}"


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


@dataclass(frozen=True, slots=True)
class Why:
    task: str
    status: str
    sentence: str
    evidence: tuple[str, ...] = ()
    counters: dict[str, str] = field(default_factory=dict)
    next_step: str = ""

    def as_json(self) -> dict[str, object]:
        return {
            "task": self.task,
            "status": self.status,
            "sentence": self.sentence,
            "evidence": list(self.evidence),
            "counters": self.counters,
            "next_step": self.next_step,
        }


def why(state: RunState, name: str, *, led: bool = True) -> Why:
    """`led` says whether a process leads the run; without one a task in state RUNNING has no lead."""
    task = state.tasks[name]
    if task.status is TaskStatus.RUNNING and not led:
        sentence = (
            f"{name} is in attempt {task.attempts} and its lead is gone; its agent goes on, and the next lead adopts "
            "it."
        )
        step = "ganger run"
    else:
        sentence, step = _REASONS[task.status](state, name, task)
    sentence = re.sub(r"(?<=[.?!…])\.(?=$| It will run again)", "", sentence)
    return Why(name, task.status.value, sentence, _evidence(state, name, task), _counters(state, name, task), step)


def _pending(state: RunState, name: str, task: TaskState) -> tuple[str, str]:
    waits = [f"{need} ({state.tasks[need].status.value})" for need in state.specs[name].depends_on
             if state.tasks[need].status is not TaskStatus.DONE]  # fmt: skip
    if waits:
        return f"{name} waits for {', '.join(waits[:5])}{_more(waits)}.", ""
    again = f" It will run again: {task.detail}." if task.attempts and task.detail else ""
    if barred := why_not(state, name):
        return f"{name} waits for its repository: {barred}.{again}", way_out(state, name)
    if state.finished and (shut := _shut(state, name)):
        return f"{name} waits for its account: {shut}.", _account_step(state, account_of(state, name))
    if state.finished and task.attempts:
        return f"{name} will run again; attempt {task.attempts} did not settle it: {task.detail}.", "ganger run"
    if state.finished:
        return f"{name} was not reached before the run stopped.", "ganger run"
    if state.lead.paused:
        return f"{name} waits because the run is paused.{again}", "ganger resume"
    round_ = open_round(state)
    if round_ is not None:
        return f"{name} waits while heal round {round_.number} looks for a fix.{again}", ""
    if task.not_before:
        return f"{name} is retried after {_clock(task.not_before)}.{again}", ""
    if (shut := _shut(state, name)) and state.specs[name].role not in state.lead.pull_roles:
        return f"{name} waits for its account: {shut}.{again}", _account_step(state, account_of(state, name))
    until = state.quota.paused.get(account_of(state, name), 0.0)
    if until and seconds_between(state.log.last_at, _clock(until)) > 0:
        return f"{name} waits for the quota of account {account_of(state, name)} until {_clock(until)}.{again}", ""
    if state.lead.scope.only is not None and name not in state.lead.scope.only:
        return f"{name} is left out by --only.{again}", ""
    clash = next((state.index.busy_files[f] for f in needed_files(state, name) if f in state.index.busy_files), None)
    if clash:
        return f"{name} waits because {clash} is writing a file that it writes too.{again}", ""
    if state.windows.current is not None and name not in state.windows.open:
        window = f"window {state.windows.current.index} ({counted(len(state.windows.open), 'task')} open)"
        return f"{name} is ready and waits for {window} to close.{again}", ""
    if state.specs[name].role in state.lead.pull_roles and name not in state.index.answered:
        return f"{name} is ready and waits for a worker to ask for it.{again}", "ganger worker next"
    ahead = sum(
        1
        for t in state.index.by_rank[: state.index.rank[name]]
        if state.tasks[t].status is TaskStatus.PENDING and not state.index.unmet[t]
    )
    place = f"{ahead} ready tasks are ahead of it" if ahead else "it is next"
    running = len(state.index.running)
    return (
        f"{name} is ready; {running} of {state.policy.concurrency} places are taken and {place}.{again}",
        "",
    )


def _clock(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).isoformat(timespec="seconds")


def _more(items: Sequence[str]) -> str:
    return f" and {len(items) - 5} more" if len(items) > 5 else ""


def _running(state: RunState, name: str, task: TaskState) -> tuple[str, str]:
    if on_its_way := delivery_running(state, name, task):
        since = f" since {task.delivery.since}" if task.delivery is not None and task.delivery.since else ""
        host = awaited_by(state, name)
        step = "ganger inbox" if host and question_about_host(state, host) is not None else f"ganger ledger {name}"
        return f"{name} is being delivered{since} without a worker: {on_its_way}.", step
    doing = {
        AttemptStep.AGENT: "its agent is working",
        AttemptStep.PARSE: "its answer is being read",
        AttemptStep.VERIFY: "its change is being verified",
    }
    what = doing.get(task.attempt.step, "its change is being written")
    if task.attempt.step == AttemptStep.AGENT and task.agent.activity:
        what = f"its agent is at {task.agent.activity}"
    if task.agent.continued:
        what += "; it continues its earlier session"
    what += mends(task)
    said = _worker(task.worker) if task.worker is not None and task.attempt.step == AttemptStep.AGENT else ""
    asked = _question(state, name)
    if asked:
        said += f"; it asked {asked}, which is not answered yet"
    step = _answer(asked) if asked else f"ganger logs {name} --follow"
    return f"{name} is in attempt {task.attempts} since {task.attempt.started_at}: {what}{said}.", step


def _worker(worker: WorkerNow) -> str:
    """Its last message, when, and the monitor's suspicion or verdict."""
    parts = [f"; {worker.name} took it" if worker.pulled else ""]
    told = ", ".join(filter(None, [worker.step, "" if worker.percent is None else f"{worker.percent:g} %"]))
    if worker.beat_at:
        parts.append(f"; its last message was at {worker.beat_at}{f': {told}' if told else ''}")
    if worker.suspicious:
        parts.append(f"; it is suspicious: {worker.suspicious}")
    if worker.verdict:
        parts.append(f"; it is being stopped ({worker.verdict}): {worker.why}")
    return "".join(parts)


def _done(_state: RunState, name: str, task: TaskState) -> tuple[str, str]:
    # A delivery that goes on has a number of its own, and no worker.
    worked = len({item.attempt for item in task.history if item.phase is Phase.WORKER}) or task.attempts
    tries = "" if worked == 1 else f" after {worked} attempts"
    lacks = (
        f"; expected files are missing: {', '.join(task.failure.missing_files[:5])}{_more(task.failure.missing_files)}"
        if task.failure.missing_files
        else ""
    )
    return f"{name} is DONE{tries}: {task.detail}{lacks}.", ""


def _blocked(state: RunState, name: str, task: TaskState) -> tuple[str, str]:
    if task.block_reason is BlockReason.DEPENDENCY_FAILED:
        bad = [need for need in state.specs[name].depends_on if state.tasks[need].status is not TaskStatus.DONE]
        shown = ", ".join(f"{need} ({state.tasks[need].status.value})" for need in bad[:5])
        if bad:
            return f"{name} is BLOCKED because its dependency {shown} did not end DONE.", f"ganger why {bad[0]}"
    if (delivery := delivery_blocked(state, name, task)) is not None:
        return delivery
    reason = task.block_reason.value if task.block_reason else "unknown"
    asked = _question(state, name)
    if not task.final and (shut := _shut(state, name)):
        said = f"{name} is BLOCKED ({reason}) and waits for its account: {task.detail}; {shut}."
        return said, _account_step(state, account_of(state, name))
    if asked:
        return f"{name} is BLOCKED ({reason}) and waits for an answer to {asked}: {task.detail}.", _answer(asked)
    return f"{name} is BLOCKED ({reason}): {task.detail}.", _after_blocked(task, name)


def _after_blocked(task: TaskState, name: str) -> str:
    if task.block_reason is BlockReason.EXTERNAL:
        return f"resolve it, then ganger retry {name}"
    return f"ganger explain {task.block_reason.value if task.block_reason else 'unknown'}"


def _shut(state: RunState, name: str) -> str:
    """Why no task of its account can run; empty if they can."""
    account = account_of(state, name)
    if account not in state.quota.shut:
        return ""
    asked, until = question_about(state, account), state.quota.shut[account]
    told = f"its key, login or credit was refused, and {asked.id} asks how to go on" if asked else "it was refused"
    when = f"one worker tries it after {_clock(until)}" if until > 1 else "one worker tries it first" if until else ""
    return f"account {account}: {'; '.join(filter(None, [told, when]))}"


def _account_step(state: RunState, account: str) -> str:
    asked = question_about(state, account)
    return _answer(asked.id) if asked is not None else "ganger inbox"


def _question(state: RunState, name: str) -> str:
    return next((q.id for q in state.inbox.questions.values() if q.task == name and q.answer is None), "")


def _answer(question: str) -> str:
    return f"ganger answer {question} TEXT"


def _failed(state: RunState, name: str, task: TaskState) -> tuple[str, str]:
    if task.waits_for_canary:
        return f"{name} FAILED and is held until {task.waits_for_canary}, which failed the same way, has passed.", ""
    if task.failure.failure_class == FailureClass.FATAL and state.specs[name].repo in state.chains.halted:
        return f"{name} FAILED: {task.detail}.", f"ganger unlock {state.specs[name].repo or PROJECT} --why TEXT"
    return f"{name} FAILED: {task.detail}.", f"ganger logs {name}" + (" --verify" if task.verification.steps else "")


def _escalated(state: RunState, name: str, task: TaskState) -> tuple[str, str]:
    asked = _question(state, name)
    step = _answer(asked) if asked else f"ganger retry {name}"
    return f"{name} is ESCALATED and waits for you: {task.detail}.", step


_REASONS = {
    TaskStatus.PENDING: _pending,
    TaskStatus.RUNNING: _running,
    TaskStatus.DONE: _done,
    TaskStatus.BLOCKED: _blocked,
    TaskStatus.FAILED: _failed,
    TaskStatus.ESCALATED: _escalated,
}


def _evidence(state: RunState, name: str, task: TaskState) -> tuple[str, ...]:
    lines = []
    for item in task.history:
        code = "" if item.exit_code is None else f", exit {item.exit_code}"
        cause = f", {item.failure_signature}" if item.failure_signature else ""
        lines.append(f"{item.at} {item.phase.value} {item.attempt}{code}{cause}: {item.log_path}")
    for step in task.verification.steps:
        said = f": {step.first_error}" if step.first_error else ""
        lines.append(f"verify {step.name} ({step.tier}) {step.outcome}{said}")
    if task.verification.proof:
        lines.append(f"proved by {task.verification.proof}")
    if task.failure.missing_files:
        more = f" and {len(task.failure.missing_files) - 10} more" if len(task.failure.missing_files) > 10 else ""
        lines.append(f"expected files are missing: {', '.join(task.failure.missing_files[:10])}{more}")
    return (*lines[-12:], *_refusals(task), *delivery_evidence(state, name, task), *_left_behind(task))


def _refusals(task: TaskState) -> Iterator[str]:
    """Every path that a safeguard refused, as the next attempt's prompt lists them."""
    if task.work.saved_refused and task.status is not TaskStatus.DONE:
        yield from (f"refused {line[2:]}" for line in task.next_start.reminder.splitlines() if line.startswith("- "))


def _left_behind(task: TaskState) -> tuple[str, ...]:
    """The last worker's warning, its checkpoint, and why its session was not continued."""
    lines = (
        [f"its session could not continue, a new one was started: {task.next_start.lost_session}"]
        if task.next_start.lost_session
        else []
    )
    worker, kept = task.worker, task.checkpoint
    if worker is not None and task.status is not TaskStatus.DONE:
        if worker.warned and not is_delivering(task):
            lines.append(f"worker {worker.name} was warned: {worker.warned}")
        elif worker.warned and task.status is TaskStatus.RUNNING:
            lines.append(f"warning: {worker.warned}")
        if worker.verdict and task.status is not TaskStatus.RUNNING:
            lines.append(f"worker {worker.name} was stopped ({worker.verdict}): {worker.why}")
    if kept is not None and task.status is not TaskStatus.DONE:
        stand = f"{len(kept.done)} done, {len(kept.remaining)} remaining"
        words = "; ".join(filter(None, [kept.summary, kept.last_action and f"last: {kept.last_action}",
                                        kept.next_action and f"next: {kept.next_action}"]))  # fmt: skip
        by = "its worker" if kept.by == "worker" else "Ganger"
        lines.append(f"{kept.at} checkpoint of attempt {kept.attempt} by {by}: {stand}{f': {words}' if words else ''}")
    return tuple(lines)


def _counters(state: RunState, name: str, task: TaskState) -> dict[str, str]:
    counters = task.counters
    limits = {
        "worker_attempts": allowed_attempts(
            state.specs[name], state.policy, counters.granted, counters.granted_by_person
        ),
        "ci_fixes": rules_of(state, name).fixes,
        "denials": 1,
    }
    shown = {}
    for row in COUNTERS.values():
        limit = getattr(state.policy, row.limit) if row.limit else limits.get(row.name)
        shown[row.shown] = str(getattr(counters, row.name)) + ("" if limit is None else f" of {limit}")
    return shown | {
        "attempts_started": str(task.attempts),
        "usd": UNKNOWN if known_usd(task.spent) is None else f"{task.spent.usd:.2f}",
        "tokens": UNKNOWN if known_tokens(task.spent) is None else str(task.spent.tokens),
    }
