"""Rules that healers learned: kept beside each run, given to later runs only if the operator asks for it."""

from __future__ import annotations

import contextlib
import json

from ganger.core.model.run_state import RunState
from ganger.local.run_folder import RunFolder, replace_file

FILE = "rules.json"
_MOST = 50
_LONGEST = 2000


def write_rules(folder: RunFolder, state: RunState) -> None:
    """Each rule with the round that produced it; nothing is written while there is none."""
    rules = [
        {"run_id": state.run_id, "round": round_.number, "at": round_.at, "rule": round_.learned_rule}
        for round_ in state.healing.rounds
        if round_.learned_rule
    ]
    if rules:
        replace_file(folder.path / FILE, json.dumps({"rules": rules}, ensure_ascii=False, indent=1) + "\n")


def learned_elsewhere(folder: RunFolder) -> tuple[str, ...]:
    """What healers of other runs in this state directory learned, oldest run first; damaged files are skipped."""
    found: dict[str, None] = {}
    for path in sorted(folder.path.parent.glob(f"*/{FILE}"), key=lambda path: path.stat().st_mtime):
        if path.parent == folder.path:
            continue
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            found |= {str(entry["rule"])[:_LONGEST]: None for entry in json.loads(path.read_bytes())["rules"]}
    return tuple(found)[-_MOST:]
