"""Changes on their way, and a task's ledger: milestone, commit, push, CI run, jobs, mirror, verdict, time left."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from ganger.core.delivery.expected_ci import NOT_EXPECTED
from ganger.core.model.ci import JobFact, RunFact, Word, chosen
from ganger.core.model.ledger import CI, Delivery, Milestone, RepoRules, RepoVerdict
from ganger.core.model.run_state import RunState
from ganger.core.model.task_state import TaskState
from ganger.core.money.budgets import time_limit
from ganger.core.planning.repos import Holding, registry, shown
from ganger.core.state.apply_delivery import not_proved, rules_of
from ganger.core.times import seconds_between
from ganger.core.vocabulary import AttemptStep, BlockReason, TaskStatus
from ganger.views.run.board import shown_duration
from ganger.views.text import one_line

_AT_WORK = AttemptStep.AGENT


@dataclass(frozen=True, slots=True)
class DeliveryRow:
    """One task on its way. `left_sec` is what its milestone has left; below zero it is over time, None where no clock
    runs. `fix` counts fixes of what CI or a reviewer found."""

    task: str
    repo: str
    status: str
    milestone: str
    substate: str
    passed: int
    total: int
    current: str
    fix: int
    fixes: int
    left_sec: float | None
    commit: str
    why: str
    run_url: str
    request: str
    request_url: str
    review: str

    def as_json(self) -> dict[str, object]:
        """Empty words are null."""
        return {key: None if value == "" else value for key, value in asdict(self).items()}

    def line(self) -> str:
        """One line that can be read without colour."""
        where = f" in {self.repo}" if self.repo else ""
        link = self.request_url or self.run_url
        return f"{self.task}{where}  {', '.join(self.parts)}{f'  {link}' if link else ''}"

    @property
    def parts(self) -> list[str]:
        found = [f"{self.milestone} {self.substate}".strip()]
        if self.total:
            found.append(f"{self.passed} of {self.total} jobs")
        if self.current:
            found.append(f"at {self.current}")
        if self.milestone == Milestone.FIXING_CI:
            found.append(f"fix {max(1, self.fix)} of {self.fixes}")
        if self.left_sec is not None:
            span = shown_duration(abs(self.left_sec))
            found.append(f"{span} left" if self.left_sec >= 0 else f"over time by {span}")
        return found


def delivery_rows(state: RunState, now: str) -> list[DeliveryRow]:
    """Every task that is being delivered or will be, as far as it is not DONE, in plan order. `now` is as in events."""
    rows = (delivery_row(state, name, now) for name in state.index.by_rank)
    return [row for row in rows if row is not None and row.status != TaskStatus.DONE]


def delivery_row(state: RunState, name: str, now: str) -> DeliveryRow | None:
    """None for a task whose repository delivers nothing, or that nobody has begun."""
    task, rules = state.tasks[name], rules_of(state, name)
    known = task.delivery
    if known is None and not (rules.delivers and task.status is TaskStatus.RUNNING):
        return None
    known = known or Delivery(since=task.attempt.started_at)
    runs = chosen(known.commit, known.runs, rules.events)
    urls = [run.url for run in runs if run.url]
    return DeliveryRow(
        task=name,
        repo=state.specs[name].repo,
        status=task.status.value,
        milestone=known.milestone.value,
        substate=_substate(task, known),
        passed=known.passed,
        total=known.total,
        current=known.current,
        fix=task.counters.ci_fixes,
        fixes=rules.fixes,
        left_sec=_left_sec(state, name, known, rules, now),
        commit=known.commit,
        why=known.why,
        run_url=urls[-1] if urls else "",
        request=known.request.number if known.request is not None else "",
        request_url=known.request.url if known.request is not None else "",
        review=known.review,
    )


# What an attempt does, in D40's words for a worker's part of the way.
_STEPS = {
    AttemptStep.PARSE: "preparing_commit",
    AttemptStep.CHANGE: "verifying",
    AttemptStep.VERIFY: "verifying",
    AttemptStep.VERIFIED: "preparing_commit",
}
_FIX_STEPS = {
    AttemptStep.PARSE: "preparing_fix",
    AttemptStep.CHANGE: "verifying",
    AttemptStep.VERIFY: "verifying",
    AttemptStep.VERIFIED: "preparing_fix",
}


def _substate(task: TaskState, known: Delivery) -> str:
    """Ganger's own word where it has one, else what the worker says it does."""
    if task.status is TaskStatus.BLOCKED and task.block_reason is BlockReason.EXTERNAL:
        # What it was at before says nothing of what it waits for.
        return "blocked_external"
    if task.status is not TaskStatus.RUNNING or known.milestone is Milestone.PUSHED_TO_CI or known.pending:
        return known.substate
    steps = _FIX_STEPS if known.fixing else _STEPS
    if task.attempt.step in steps or task.attempt.step == AttemptStep.MERGE:
        return steps.get(task.attempt.step, "merging")
    said = task.worker.step if task.worker is not None else ""
    return said or ("implementing_fix" if known.fixing else "writing")


def _left_sec(state: RunState, name: str, known: Delivery, rules: RepoRules, now: str) -> float | None:
    """D14: CI's time counts from the push, a worker's from the start of its attempt. Who waits for a person has all
    the time there is."""
    task = state.tasks[name]
    if task.status is not TaskStatus.RUNNING or known.substate == "awaiting_review":
        return None
    if known.milestone is Milestone.PUSHED_TO_CI:
        spent = seconds_between(known.pushed_at, now)
        return (rules.ci_sec if spent <= rules.ci_sec else rules.ci_most_sec) - spent
    if task.attempt.step != _AT_WORK:
        return None
    most = time_limit(state, name, now)
    return (min(most, rules.fix_sec) if known.fixing else most) - seconds_between(task.attempt.started_at, now)


# --- repositories ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RepoRow:
    """One repository (D11). `proved` is its newest commit that CI found green."""

    repo: str
    holders: tuple[Holding, ...]
    halted: str
    broken_by: str
    head: str
    proved: str

    def as_json(self) -> dict[str, object]:
        values = asdict(self) | {"repo": self.repo or ".", "holders": [_holder(one) for one in self.holders]}
        return {key: None if value == "" else value for key, value in values.items()}

    def line(self) -> str:
        parts = [f"{one.task} ({' '.join(filter(None, [one.doing, one.substate]))})" for one in self.holders]
        told = [f"held by {', '.join(parts)}"] if parts else []
        if self.halted:
            told.append(f"HALTED: {self.halted}; ganger unlock {self.repo or '.'} --why TEXT")
        if self.broken_by:
            told.append(f"turned red by {self.broken_by}; what builds on it waits")
        return f"{shown(self.repo)}: {'; '.join(told) or 'free'}"


def _holder(one: Holding) -> dict[str, object]:
    return {"task": one.task, "milestone": one.doing, "substate": one.substate or None, "active": one.active}


def repo_rows(state: RunState) -> list[RepoRow]:
    """Every repository of a run that has locks, halts or several of them; none where that says nothing."""
    held: dict[str, list[Holding]] = {}
    for one in registry(state):
        held.setdefault(one.repo, []).append(one)
    named = [name for name in state.chains.rules if name or name in held or name in state.chains.halted]
    return [
        RepoRow(
            name,
            tuple(held.get(name, ())),
            state.chains.halted.get(name, ""),
            state.chains.broken.get(name, ""),
            state.branches.heads.get(name, ""),
            state.pushes.proved.get(name, ""),
        )
        for name in named
    ]


_GLYPHS = {Word.SUCCESS: "✓", Word.FAILURE: "✗", Word.CANCELLED: "■", Word.SKIPPED: "○", Word.RUNNING: "▶"}
_SHORT = 12


def delivered(state: RunState) -> list[str]:
    """The tasks that have a ledger, in plan order."""
    return [name for name in state.index.by_rank if state.tasks[name].delivery is not None]


def ledger_lines(state: RunState, name: str) -> list[str]:
    task, rules = state.tasks[name], rules_of(state, name)
    where = f" in {rules.name}" if rules.name else ""
    lines = [f"{name}  {task.status.value}{where}, {_sentence(state, name)}"]
    now = task.delivery
    if now is None:
        return lines
    lines += [_line("tree", now.tree), _line("commit", now.commit), _line("push", _push(now))]
    if now.request is not None:
        lines.append(_line("request", f"#{now.request.number or '?'} {now.request.url}"))
        lines.append(_line("comment", now.request.remark))
    for run in now.runs:
        lines.append(_line("CI run", _run(run)))
        lines += [f"    {_job(job)}" for job in run.jobs]
    lines.append(_line("no CI", waived(now)))
    lines.append(_line("mirror", _mirror(now, rules.mirror_job)))
    if now.review:
        lines.append(_line("review", f"{now.review} ({now.reviewed[:_SHORT]}) {now.review_url}".rstrip()))
    lines += [_line("verdict", _verdict(one)) for one in _verdicts(state, name)]
    lines.append("  facts")
    width = max([10, *(len(one_line(fact.source, 48)) for fact in now.facts)])
    for fact in now.facts:
        told = f"    {_moment(fact.at)}  {one_line(fact.source, 48):<{width}} {fact.commit[:_SHORT]:<12}  "
        lines.append(f"{told}{one_line(fact.what, 300)}")
    return [line for line in lines if line]


def ledger_json(state: RunState, name: str) -> dict[str, object]:
    task, rules, now = state.tasks[name], rules_of(state, name), state.tasks[name].delivery
    told: dict[str, object] = {
        "task": name,
        "status": task.status.value,
        "repo": rules.name or None,
        "completion": list(rules.completion),
        "missing": list(not_proved(state, name, task)),
        "verdicts": [
            {
                "commit": one.commit,
                "verdict": "green" if one.green else "red",
                "at": one.at,
                "upstream": dict(one.upstream),
            }
            for one in _verdicts(state, name)
        ],
        "delivery": None,
    }
    if now is not None:
        told["delivery"] = asdict(now) | {"milestone": now.milestone.value, "upstream": dict(now.upstream)}
    return told


def _sentence(state: RunState, name: str) -> str:
    task, now = state.tasks[name], state.tasks[name].delivery
    lacking = not_proved(state, name, task)
    if not lacking:
        excused = f"; {text}" if now is not None and (text := waived(now)) else ""
        proved = [step for step in rules_of(state, name).completion if not excused or step != CI]
        return f"{', '.join(proved)}: all proved{excused}"
    at = f"{now.milestone.value} {now.substate}".strip() + ", " if now is not None else ""
    return f"{at}no proof yet of {', '.join(lacking)}"


def waived(now: Delivery) -> str:
    """Why the tracked commit needs no green verdict of CI; empty where it needs one, or has it."""
    if not now.waived or now.waived != now.commit or now.green == now.commit:
        return ""
    told = "CI not expected by setting" if now.waived_cause == NOT_EXPECTED else "not green by CI"
    return f"{told}: {one_line(now.waived_why, 300)}"


def _verdicts(state: RunState, name: str) -> list[RepoVerdict]:
    return [one for one in state.pushes.verdicts if one.task == name]


def _verdict(one: RepoVerdict) -> str:
    above = "".join(f", on {repo} {sha[:_SHORT]}" for repo, sha in one.upstream)
    return f"{'green' if one.green else 'red'} for {one.commit[:_SHORT]} at {_moment(one.at)}{above}"


def _push(now: Delivery) -> str:
    if not now.pushed:
        return ""
    stale = "" if now.pushed == now.commit else f", which is {now.pushed[:_SHORT]} and not the tracked commit"
    told = [fact.at for fact in now.facts if fact.source == "remote" and fact.commit == now.pushed]
    return f"to {now.branch} at {_moment(told[0] if told else now.pushed_at)}, push {now.pushes}{stale}"


def _run(run: RunFact) -> str:
    number = f"#{run.number}" if run.number else run.id
    flow = f"{run.workflow} " if run.workflow else ""
    return f"{flow}{number}, attempt {run.attempt}, by {run.event}: {run.word.value}  {one_line(run.url, 300)}".rstrip()


def _job(job: JobFact) -> str:
    said = f" ({job.reason})" if job.reason else ""
    raw = f"  [{one_line(job.raw, 60)}]" if job.raw and job.raw != job.word.value else ""
    return (
        f"{_GLYPHS.get(job.word, '·')} {one_line(job.name, 40):<14} {job.word.value}{said}, attempt {job.attempt}{raw}"
    )


def _mirror(now: Delivery, job: str) -> str:
    if now.mirrored and now.mirrored == now.commit:
        return f"proved for {now.commit[:_SHORT]}" + (f" ({job})" if job and now.mirror else "")
    return f"{now.mirror}, not proved" if now.mirror else ""


def _line(name: str, text: str) -> str:
    """Nothing where nothing is known."""
    return f"  {name:<9} {text}" if text else ""


def _moment(at: str) -> str:
    return f"{at[:10]} {at[11:23].rstrip('Z')}Z" if at else "?"
