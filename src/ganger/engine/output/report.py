"""report.md: what a person reads after the run."""

from __future__ import annotations

from ganger.core.delivery.landings import where_words
from ganger.core.model.run_state import RunState
from ganger.core.model.task_state import TaskState
from ganger.core.vocabulary import NEEDS_FIRST, Mode, TaskStatus
from ganger.engine.output.published_files import show
from ganger.local.run_folder import RunFolder, clear_way, replace_file

_LONGEST = 600


def write_report(folder: RunFolder, state: RunState) -> None:
    text = report_text(state)
    clear_way(folder.report)
    replace_file(folder.report, text)
    show(folder, folder.report.name, text)


def report_text(state: RunState) -> str:
    counts = ", ".join(f"{state.index.counts[s]} {s.value}" for s in NEEDS_FIRST if state.index.counts.get(s))
    lines = [
        f"# Run {_safe(state.run_id)}",
        "",
        f"- Status: {state.status.value}",
        f"- Tasks: {counts or 'none'}",
        f"- Started: {state.started_at or '-'}",
        f"- Ended: {state.finished_at or '-'}",
    ]
    if state.money.spent.usd or state.money.spent.counted:
        lines.append(f"- Spent: {_spent(state)}")
    if state.mode is not Mode.DIRECT:
        merged = sum(bool(task.work.merged) for task in state.tasks.values())
        where = f", at {state.branches.heads[''][:12]}" if state.branches.heads.get("") else ""
        found = f"; {_safe(where_words(state))}" if merged else ""
        lines.append(f"- Merged: {merged} tasks on branch ganger/{_safe(state.run_id)}{where}{found}")
        lines.append(f"- Gate runs on merges: {state.checks.on_merges}")
    if state.files.artifacts:
        lines.append(f"- Generated files left out: {_safe(', '.join(sorted(state.files.artifacts)[:20]))}")
    if state.healing.rounds:
        lines.append(f"- Healing: {len(state.healing.rounds)} rounds, {len(state.healing.patches)} patches")
    asked = [question for question in state.inbox.questions.values() if question.answer is None]
    lines += [f"- Question {q.id} ({q.kind}): {_safe(q.text)}" for q in asked]
    if state.abort_reason:
        lines.append(f"- Why it ended: {_safe(state.abort_reason)}")
    for status in NEEDS_FIRST:
        names = [name for name in state.index.by_rank if state.tasks[name].status is status]
        if names:
            lines += ["", f"## {status.value}", ""]
            lines += [_entry(name, state.tasks[name]) for name in names]
    return "\n".join(lines) + "\n"


def _spent(state: RunState) -> str:
    spent = state.money.spent
    price = f"${spent.usd:.2f}" if spent.priced or spent.usd else "cost unknown"
    tokens = f"{spent.tokens} tokens" if spent.counted or spent.tokens else "tokens unknown"
    some = spent.attempts - len(state.index.running) - spent.priced
    rest = f", {some} of them of unknown cost" if some > 0 else ""
    return f"{price}, {tokens} in {spent.attempts} attempts{rest}"


def _entry(name: str, task: TaskState) -> str:
    reason = f" ({task.block_reason.value})" if task.block_reason else ""
    said = task.attempt.summary if task.status is TaskStatus.DONE else task.detail
    tried = f"{task.attempts} attempt{'s' if task.attempts != 1 else ''}"
    kept = f" · unfinished work: {_safe(task.work.saved)}" if task.work.saved else ""
    lacks = (
        f" · expected files are missing: {_safe(', '.join(task.failure.missing_files))}"
        if task.failure.missing_files
        else ""
    )
    return f"- **{_safe(name)}**{reason} · {tried} · {_safe(said) or 'no note'}{lacks}{kept}"


def _safe(text: str) -> str:
    """Agents' words as one line of plain text that cannot forge structure."""
    flat = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    flat = flat if len(flat) <= _LONGEST else f"{flat[: _LONGEST - 1]}…"
    return flat.replace("<", "&lt;")
