"""Live control from outside a run: stores a command durably with the run and reports what the lead made of it."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace

from ganger.app.runs import is_led, open_store
from ganger.core.control.commands import act, was_refused
from ganger.core.events import CommandTaken
from ganger.core.model.run_state import RunState
from ganger.core.times import stamp
from ganger.local.procfs import living_since as start_ticks
from ganger.local.run_folder import RunFolder
from ganger.ports.store import Command

WAIT_SEC = 2.0
_LOOK_SEC = 0.05


@dataclass(frozen=True, slots=True)
class Told:
    """The outcome of a command. `outcome` is the lead's sentence, empty until a lead has taken it."""

    run_id: str
    kind: str
    number: int
    led: bool
    outcome: str = ""

    @property
    def refused(self) -> bool:
        return was_refused(self.outcome)

    @property
    def sentence(self) -> str:
        if self.outcome:
            return self.outcome
        if self.led:
            return f"command {self.number} is stored for the lead, which is busy; ganger events shows when it is taken"
        return "no process leads this run now; the next ganger run applies it"


def tell(folder: RunFolder, state: RunState, kind: str, data: Mapping[str, object], wait_sec: float = WAIT_SEC) -> Told:
    """Stores the command and waits a moment for the lead. `state` is the run as read just before.

    Without a lead, a command that does not apply to the run's state is refused at once: the next lead would refuse it.
    """
    if not is_led(folder) and (refusal := _refusal(state, kind, data)):
        return Told(state.run_id, kind, 0, False, refusal)
    store = open_store(folder)
    try:
        number = store.send(stamp(time.time()), kind, data)
    finally:
        store.close()
    led, outcome = _wait(folder, state.log.last_seq, number, wait_sec)
    return Told(state.run_id, kind, number, led, outcome)


def _refusal(state: RunState, kind: str, data: Mapping[str, object]) -> str:
    probe = Command(state.lead.commands_taken + 1, "", kind, data)
    taken = act(replace(state, finished=False), probe, time.time())
    outcome = next((event.outcome for event in taken if isinstance(event, CommandTaken)), "")
    return outcome if was_refused(outcome) else ""


def _wait(folder: RunFolder, since: int, number: int, wait_sec: float) -> tuple[bool, str]:
    """Whether a lead runs, and its outcome; empty without a lead or when the time is over."""
    deadline = time.monotonic() + wait_sec
    store = open_store(folder, read_only=True)
    try:
        while True:
            # The lead is checked first: it writes its last outcome to the store before it releases the lead.
            led = is_led(folder)
            for recorded in store.read(since):
                since = recorded.seq
                if isinstance(recorded.event, CommandTaken) and recorded.event.number == number:
                    return led, recorded.event.outcome
            if not led or time.monotonic() >= deadline:
                return led, ""
            time.sleep(_LOOK_SEC)
    finally:
        store.close()


def current_lead(state: RunState) -> int:
    """The number of the lead that a command for the running lead is meant for; a later lead ignores it."""
    return state.lead.count + 1 if state.finished else state.lead.count


def still_working(state: RunState) -> list[str]:
    """Tasks whose agents still run although no process leads the run."""
    launched = [
        (name, state.tasks[name].attempt.launched)
        for name in sorted(state.index.running, key=state.index.rank.__getitem__)
    ]
    return [name for name, process in launched if process is not None and start_ticks(process[0]) == process[1]]
