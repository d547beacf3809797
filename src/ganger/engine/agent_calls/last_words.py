"""An agent that ended without a result: the last words of its log, and whether it ran at all."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

from ganger.core.logs.telling_line import TAIL_BYTES, clean_lines, last_words
from ganger.core.model.records import Ended
from ganger.core.names import desk_folder
from ganger.core.verify.lacks import Lack, lack_of, never_began
from ganger.core.vocabulary import FailureClass
from ganger.engine.agent_calls.launching import with_desk
from ganger.engine.attempt_context import Failed, RunningAttempt
from ganger.engine.change_strategy import ChangeStrategy
from ganger.engine.verification.lacking import hint_at, is_hidden, plain_launch
from ganger.local.run_folder import open_log
from ganger.ports.agents import Agent
from ganger.ports.sandbox import Room


def explain_end(
    case: RunningAttempt, road: ChangeStrategy, agent: Agent, ended: Ended, folder: Path | None, said: str
) -> Failed:
    """`folder` is where it worked, if known; `said` is its program's own words on why it failed, if there are any."""
    how = f"signal {ended.signal}" if ended.signal is not None else f"exit code {ended.code}"
    tail = _tail(case.log_path)
    lack = _lack(case, ended.code, tail)
    hints = _Hints(case, road, agent, folder)
    if lack is not None:
        remedy = hints.on_program(lack.name) or "install it, or correct the agent's argv; ganger agents --check"
        detail = f"the agent could not be started: {_shown(case, lack.said)}; {remedy}"
        return case.failed(FailureClass.ENVIRONMENT, f"not started: {lack.said}", detail)
    line = said or last_words(tail)
    if not line:
        return case.failed(
            FailureClass.CRASH, how, f"the agent ended with {how} and no result block, and printed nothing"
        )
    hint = hints.on_line(line, tail)
    detail = f"the agent ended with {how} and no result block: {_shown(case, line)}"
    return case.failed(FailureClass.CRASH, said or how, f"{detail} ({hint})" if hint else detail)


def _lack(case: RunningAttempt, code: int | None, tail: str) -> Lack | None:
    """Only for an agent that has not run, and only if Ganger sees so itself: what an agent prints is no evidence."""
    unborn = never_began(code, tail) if case.tools.sandbox.name != "none" else None
    if unborn is not None:
        return unborn
    found = lack_of(code, tail) if len(clean_lines(tail)) == 1 else None
    if found is None or found.kind != "program" or "/" in found.name:
        return None
    return found if shutil.which(found.name, path=_path(case)) is None else None


class _Hints:
    """What the sandbox keeps from an agent, as seen from its workspace."""

    def __init__(self, case: RunningAttempt, road: ChangeStrategy, agent: Agent, folder: Path | None) -> None:
        self._case, self._road, self._agent, self._folder = case, road, agent, folder

    def on_line(self, line: str, around: str) -> str:
        if self._folder is None:
            return ""
        tools = self._case.tools
        launch = plain_launch(self._folder, _path(self._case))
        return hint_at(line, tools.sandbox, launch, self._room(self._folder), tools.checks.network, around)

    def on_program(self, name: str) -> str:
        """A program that is on the machine and not in the sandbox."""
        found = name if name.startswith("/") else shutil.which(name, path=_path(self._case))
        if self._folder is None or found is None or not Path(found).exists():
            return ""
        launch = plain_launch(self._folder, _path(self._case))
        real = Path(found).resolve()
        shown = self._case.tools.sandbox.shows(real, launch, self._room(self._folder))
        return "" if shown else is_hidden(real)

    def _room(self, folder: Path) -> Room:
        tools, case = self._case.tools, self._case
        desk = tools.folder.path / desk_folder(case.task, case.number)
        room = with_desk(tools, self._road.room(folder), desk)
        if not self._agent.capabilities.stream:
            return room
        home = tools.homes.of(case.task, self._agent.name)
        return replace(room, writable=(*room.writable, home), home=home)


def _path(case: RunningAttempt) -> str:
    """Agents and checks get the operator's own PATH."""
    return case.tools.checks.env.get("PATH", "")


def _shown(case: RunningAttempt, line: str) -> str:
    return case.tools.shown(case.tools.masked(line))


def _tail(log: Path) -> str:
    try:
        with open_log(log) as file:
            file.seek(max(0, log.stat().st_size - TAIL_BYTES))
            return file.read(TAIL_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""
