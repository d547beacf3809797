"""What a changed manifest means for its run, as lines and as a JSON document."""

from __future__ import annotations

from ganger.core.control.reconcile import Difference, ManifestChange

_MOST_NAMED = 8


def difference_lines(found: Difference, most: int | None = None) -> list[str]:
    """One line per task, those that run again first; after `most` lines the rest is only counted."""
    lines = [f"added    {name}: will run" for name in found.added]
    lines += [f"removed  {name}: leaves the run; its past stays in the events" for name in found.removed]
    lines += [_changed_line(change) for change in sorted(found.changed, key=lambda change: not change.again)]
    lines += [f"back     {name}: what it waits for starts again" for name in found.back]
    if found.reordered:
        lines.append("order    the tasks are in another order")
    if not lines and not found.empty:
        lines.append("digest   the file differs; no task is affected")
    if most is not None and len(lines) > most:
        return [*lines[:most], f"and {len(lines) - most} more"]
    return lines


def _changed_line(change: ManifestChange) -> str:
    named = ", ".join(change.why[:_MOST_NAMED])
    more = f" and {len(change.why) - _MOST_NAMED} more" if len(change.why) > _MOST_NAMED else ""
    then = "runs again from the beginning" if change.again else "keeps its status"
    return f"changed  {change.task} ({change.status.value}): {named}{more}; {then}"


def difference_json(found: Difference) -> dict[str, object]:
    return {
        "run_id": found.run_id,
        "manifest_digest_before": found.digest_before,
        "manifest_digest": found.digest,
        "added": list(found.added),
        "removed": list(found.removed),
        "changed": [
            {"task": c.task, "status": c.status.value, "why": list(c.why), "again": c.again} for c in found.changed
        ],
        "reordered": found.reordered,
        "back": list(found.back),
        "stop": list(found.stop),
    }


def shown_difference(found: Difference) -> list[str]:
    """A page for the operator, with a headline."""
    if found.empty:
        return ["nothing to reconcile: manifest and prompts have not changed since the run began"]
    head = f"reconciling run {found.run_id} with the changed manifest:"
    return [head, *(f"  {line}" for line in difference_lines(found))]
