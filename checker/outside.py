"""What the outside showed of a run, and whether the store and the state file tell the same."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from ganger.contracts.faults import faults_of
from ganger.contracts.state import State
from ganger.core import events as ev
from ganger.core.model.run_state import RunState
from ganger.core.state.apply import apply
from ganger.core.state.projection import StateText

Attempt = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Seen:
    """What the outside showed; leave out what nobody looked at. The n-th call of the healer is (HEALER, n).

    `exact`: the lead has left, so the state file is as the last event; else it is as some event was.
    `finished`: the lead said that it had nothing more to do. `shown`: (number, type) of events somebody was told of.
    `changed`: files of the project that are not as the run found them.
    """

    state_text: str | None = None
    exact: bool = False
    finished: bool = False
    shown: Sequence[tuple[int, str]] = ()
    agent_starts: Mapping[Attempt, int] = field(default_factory=dict)
    live: Sequence[Attempt] = ()
    changed: Collection[str] = ()


def told(events: Sequence[ev.Recorded], seen: Seen) -> list[str]:
    kept = {recorded.seq: ev.type_name(recorded.event) for recorded in events}
    return [
        f"acknowledged: event {seq} {name} was shown and the store has {kept.get(seq, 'nothing')} there"
        for seq, name in seen.shown
        if kept.get(seq) != name
    ]


def state_file(events: Sequence[ev.Recorded], seen: Seen) -> list[str]:
    """T19: valid, and a picture of the run at a moment that really was."""
    if seen.state_text is None:
        return ["state file: there is none"] if seen.exact and events else []
    try:
        data = json.loads(seen.state_text)
    except ValueError as error:
        return [f"state file: not JSON ({error})"]
    faults = faults_of(State, data)
    if faults:
        return [f"state file: {faults[0].path}: {faults[0].message}"]
    state, text = RunState(), StateText()
    for recorded in events:
        apply(state, recorded)
        if not seen.exact and text.of(state) == seen.state_text:
            return []
    if seen.exact and text.of(state) == seen.state_text:
        return []
    return [f"state file: it shows no moment of this run{', or not its last' if seen.exact else ''}"]
