"""A task's ledger as people read it: tree, commit, push, CI run, jobs, mirror, verdict; when and from where."""

from __future__ import annotations

from dataclasses import asdict

from ganger.core.model.ci import JobFact, RunFact, Word
from ganger.core.model.ledger import Delivery, RepoVerdict
from ganger.core.model.records import RunState
from ganger.core.state.apply_delivery import not_proved, rules_of
from ganger.views.text import one_line

_GLYPHS = {Word.SUCCESS: "✓", Word.FAILURE: "✗", Word.CANCELLED: "■", Word.SKIPPED: "○", Word.RUNNING: "▶"}
_SHORT = 12


def delivered(state: RunState) -> list[str]:
    """The tasks that have a ledger, in plan order."""
    return [name for name in state.by_rank if state.tasks[name].delivery is not None]


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
        return f"{', '.join(rules_of(state, name).completion)}: all proved"
    at = f"{now.milestone.value} {now.substate}".strip() + ", " if now is not None else ""
    return f"{at}no proof yet of {', '.join(lacking)}"


def _verdicts(state: RunState, name: str) -> list[RepoVerdict]:
    return [one for one in state.verdicts if one.task == name]


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
