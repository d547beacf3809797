"""Keeps state.json true: exact at each window's end, at stop and at exit, else at most a second old."""

from __future__ import annotations

import asyncio

from ganger.core import events as ev
from ganger.core.model.run_state import RunState
from ganger.core.state.projection import StateText
from ganger.engine.output.published_files import ShownFiles, show
from ganger.local.run_folder import RunFolder, clear_way, replace_file
from ganger.ports.clock import Clock

_AT_MOST_SEC = 1.0
_SHARE = 20


class StateFile:
    """Writing costs time in proportion to the run, so it is never done per attempt."""

    def __init__(self, folder: RunFolder, state: RunState, clock: Clock) -> None:
        self._folder, self._state, self._clock = folder, state, clock
        self._text = StateText()
        self._shown_files = ShownFiles(folder, clock)
        self._written_seq = -1
        self._cost_sec = 0.0

    def on_event(self, recorded: ev.Recorded) -> None:
        if isinstance(recorded.event, ev.WindowClosed | ev.StopRequested | ev.RunFinished | ev.RunStarted):
            self.write()
        if isinstance(recorded.event, ev.LeadStarted):
            self._shown_files.refresh()

    def write(self) -> None:
        if self._written_seq == self._state.log.last_seq:
            return
        begun = self._clock.monotonic()
        text = self._text.of(self._state)
        clear_way(self._folder.state)
        replace_file(self._folder.state, text)
        show(self._folder, self._folder.state.name, text)
        self._written_seq = self._state.log.last_seq
        self._cost_sec = self._clock.monotonic() - begun

    def finish(self) -> None:
        """The last snapshot; after it nothing is written."""
        self.write()
        self._shown_files.finish()

    async def keep_fresh(self) -> None:
        while True:
            await asyncio.sleep(max(_AT_MOST_SEC * 0.8, _SHARE * self._cost_sec))
            self.write()
            self._shown_files.refresh()
