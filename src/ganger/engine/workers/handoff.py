"""A task's surroundings, as its worker learns them: where its change goes, who works beside it, what CI said."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ganger.core.model.ci import RunFact, chosen, latest
from ganger.core.model.ledger import Delivery, RepoRules
from ganger.core.model.run_state import RunState
from ganger.core.planning.repos import graph_of
from ganger.core.state.apply_delivery import rules_of
from ganger.core.vocabulary import PushStyle, TaskStatus
from ganger.engine.prompts.assemble import CiNote, Handoff
from ganger.engine.resources.run_resources import one_line
from ganger.local.run_folder import RunFolder, open_log

_MOST_LISTED = 50
_LOG_BYTES = 16 * 1024
_NOT_STARTED = "WORKING"


def handoff_of(rules: RepoRules, repo: str) -> Handoff:
    """The branch is named only if the change will leave this machine."""
    if not rules.delivers:
        return Handoff(repo)
    return Handoff(repo, rules.branch, request=rules.style is PushStyle.REQUEST)


def ci_note(state: RunState, task: str) -> CiNote | None:
    """Set for an attempt that fixes what CI found, and for no other."""
    now = state.tasks[task]
    if now.delivery is None or not now.delivery.fixing or now.delivery.review == "rework":
        return None
    rules = rules_of(state, task)
    why = one_line(now.delivery.why) or "a required job did not succeed"
    return CiNote(max(1, now.counters.ci_fixes), rules.fixes, now.delivery.commit, why)


# --- the brief on the repository -------------------------------------------------------------------------------------


def repo_brief(state: RunState, task: str) -> str:
    repo, rules = state.specs[task].repo, rules_of(state, task)
    lines = [f"repository: {repo or 'the project itself'}", f"your change goes: {_way(rules)}"]
    if rules.delivers:
        lines.append(f"done means: {', '.join(rules.completion)}; Ganger does all of it")
    if repo in state.chains.rules and any(state.chains.rules):
        graph = graph_of(state.chains.rules)
        lines.append(f"builds on: {_listed(rules.depends_on)}")
        lines.append(f"others in its chain: {_listed(graph.chain(repo))}")
    lines += ["working beside you (no need to wait for them):", *_beside(state, task)]
    return "\n".join(lines)


def _way(rules: RepoRules) -> str:
    if not rules.delivers:
        return "it is merged into the run's own branch"
    branch = rules.branch or "the branch that is checked out"
    if rules.style is PushStyle.REQUEST:
        return f"as a separate change request into {branch}"
    return f"merged, then onto {branch}"


def _beside(state: RunState, task: str) -> list[str]:
    others = sorted(state.index.running - {task})
    lines = [f"- {name}{_where(state, name)}" for name in others[:_MOST_LISTED]]
    return [*lines, *_more(others)] or ["- nobody"]


def _where(state: RunState, name: str) -> str:
    delivery, repo = state.tasks[name].delivery, state.specs[name].repo
    milestone = delivery.milestone.value if delivery is not None else _NOT_STARTED
    return f" in {repo}, {milestone}" if repo else f", {milestone}"


# --- the brief on the plan -------------------------------------------------------------------------------------------


def plan_brief(state: RunState, task: str) -> str:
    """What the task builds on and what waits for it; of others their names and status."""
    spec = state.specs[task]
    lines = [f"task: {task}", f"component: {spec.component}"] if spec.component else [f"task: {task}"]
    lines += ["builds on:", *_standing(state, spec.depends_on)]
    lines += ["wait for it:", *_standing(state, state.index.dependents.get(task, ()))]
    over = sum(count for status, count in state.index.counts.items() if status is TaskStatus.DONE)
    return "\n".join([*lines, f"of all {len(state.specs)} tasks {over} are done"])


def _standing(state: RunState, names: Sequence[str]) -> list[str]:
    lines = [f"- {name}: {state.tasks[name].status.value}" for name in names[:_MOST_LISTED] if name in state.tasks]
    return [*lines, *_more(names)] or ["- none"]


def _more(names: Sequence[str]) -> list[str]:
    return [f"- and {len(names) - _MOST_LISTED} more"] if len(names) > _MOST_LISTED else []


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names) or "none"


# --- the brief on CI -------------------------------------------------------------------------------------------------


def ci_brief(state: RunState, folder: RunFolder, task: str) -> str:
    """All that is known of CI's verdict, for the worker that fixes it; the log only as far as it is worth reading."""
    delivery, rules = state.tasks[task].delivery or Delivery(), rules_of(state, task)
    lines = [f"commit: {delivery.commit} on {delivery.branch}", f"CI: {delivery.why or delivery.finding or 'unknown'}"]
    note = ci_note(state, task)
    if note is not None:
        lines.append(f"fix: {note.fix} of {note.most}; change the code; Ganger pushes it and follows CI")
    for run in chosen(delivery.commit, delivery.runs, rules.events):
        lines += [f"run {run.workflow or run.id}: {run.url or 'no address known'}", *_jobs(run)]
    text = "\n".join(lines)
    log = _log_end(folder, delivery.log)
    return f"{text}\n\nThe end of the failing log:\n\n{log}" if log else text


def _jobs(run: RunFact) -> list[str]:
    jobs = list(latest(run).values())
    told = [f"- {job.name}: {job.word.value}" + (f" ({job.reason})" if job.reason else "") for job in jobs]
    return [*told[:_MOST_LISTED], *_more([job.name for job in jobs])]


def _log_end(folder: RunFolder, name: str) -> str:
    if not name.startswith("logs/") or ".." in name.split("/"):
        return ""
    try:
        with open_log(folder.path / name) as file:
            file.seek(0, 2)
            file.seek(max(0, file.tell() - _LOG_BYTES))
            return file.read(_LOG_BYTES).decode("utf-8", "replace").strip()
    except OSError:
        return ""
