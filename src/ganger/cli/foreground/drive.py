"""Drives one run from a terminal or a pipe: screen, signals, summary."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from typing import TYPE_CHECKING

from ganger.app.checks.project import Checked, missing_programs
from ganger.app.commands.doctor import sandbox_lacks
from ganger.app.commands.land import land
from ganger.app.compose import RunOptions, open_lead, uncommitted
from ganger.app.run_places import place_of, stays_within_reach
from ganger.app.runs import has_begun
from ganger.cli.foreground.lasting_output import lasting_output
from ganger.cli.foreground.screens import JsonLines, LineScreen, Screen
from ganger.config import Project, environment
from ganger.core.vocabulary import Mode, RunStatus
from ganger.engine.lead import Lead
from ganger.errors import EXIT_INTERRUPTED, GangerError
from ganger.views.planned.reconcile import shown_difference

if TYPE_CHECKING:
    from collections.abc import Sequence


def _welcome(project: Project, checked: Checked) -> list[str]:
    """Checks remotes and forges before any agent starts. A run that has begun continues: a problem with a remote then
    belongs to the task that meets it."""
    assert checked.manifest is not None
    if has_begun(place_of(project, checked.manifest.run_id)):
        return []
    from ganger.app.preflight import delivering_repos, require_welcome

    return require_welcome(project, checked.specs) if delivering_repos(project, checked.specs) else []


@lasting_output()
def drive(
    project: Project,
    checked: Checked,
    *,
    only: Sequence[str] | None,
    max_tasks: int | None,
    as_json: bool,
    reconcile: bool = False,
    waits: bool = False,
    quiet_end: bool = False,
    notes: Sequence[str] = (),
) -> int:
    """Runs to the end and prints the outcome. `notes` are printed before it begins; `waits`: for people's reviews."""
    options = RunOptions(None if only is None else tuple(only), max_tasks, reconcile, waits)
    notes = [*notes, *_welcome(project, checked)]
    return asyncio.run(_drive(project, checked, options, as_json=as_json, quiet_end=quiet_end, notes=notes))


async def _drive(
    project: Project, checked: Checked, options: RunOptions, *, as_json: bool, quiet_end: bool, notes: Sequence[str]
) -> int:
    async with open_lead(project, checked, options) as lead:
        screen = choose_screen(lead, as_json=as_json)
        if lead.order.reconcile is not None:
            for line in shown_difference(lead.order.reconcile.difference):
                screen.note(line)
        lead.journal.listeners.append(screen.on_event)
        if await _already_complete(lead) and lead.order.reconcile is None:
            screen.note(f"run {lead.state.run_id} is already COMPLETED; nothing to do")
            await lead.show_state()
            await screen.show_end(lead, quiet=True)
            return 0
        within_reach = stays_within_reach(project, lead.tools.folder)
        for warning in [*notes, *warnings(project, checked), *([within_reach] if within_reach else [])]:
            screen.note(warning)
        lead.tell = screen.note
        screen.begin(lead)
        try:
            code = await _lead_on(lead, screen)
        finally:
            screen.close()
        if code == EXIT_INTERRUPTED:
            for number in (signal.SIGINT, signal.SIGTERM):
                signal.signal(number, lambda *_: os._exit(EXIT_INTERRUPTED))
        await _land(project, lead, screen)
        await screen.show_end(lead, quiet=quiet_end)
        return code


async def _land(project: Project, lead: Lead, screen: Screen) -> None:
    """With `workspace.land = "finish"` a completed run moves the operator's branch itself."""
    if (
        project.config.workspace.land == "finish"
        and lead.state.mode is not Mode.DIRECT
        and await _already_complete(lead)
    ):
        try:
            outcomes = await land(project, lead.tools.folder, lead.state, say=screen.note, led=True)
        except GangerError as problem:
            screen.note(f"not landed: {problem.message}" + (f"; {problem.hint}" if problem.hint else ""))
            return
        for outcome in outcomes:
            await lead.note_landing(outcome.branch, outcome.after, outcome.repo)
            where = f" of {outcome.repo}" if outcome.repo else ""
            screen.note(f"landed: {outcome.branch or 'HEAD'}{where} is at {outcome.after[:12]}")


async def _already_complete(lead: Lead) -> bool:
    state = lead.state
    asked = await lead.journal.store.commands(state.lead.commands_taken)
    return state.finished and state.status is RunStatus.COMPLETED and not asked


def warnings(project: Project, checked: Checked) -> list[str]:
    """What the operator should know before agents start."""
    found = [f"{program} is not on PATH; verification would fail" for program in missing_programs(project, checked)]
    found += sandbox_lacks(project)
    if project.config.policy.heal_schedule != "off" and "healer" not in project.config.roles:
        found.append("no [roles.healer] is configured: failed tasks are retried unchanged, nothing is healed")
    if project.config.workspace.mode != "direct":
        found += _left_out(project, checked)
    return found


def _left_out(project: Project, checked: Checked) -> list[str]:
    """Uncommitted files: agents start from the last commit and do not see them."""
    changed = uncommitted(project, checked.specs)
    if not changed:
        return []
    shown = ", ".join(changed[:5]) + (f" and {len(changed) - 5} more" if len(changed) > 5 else "")
    return [f"not committed, so agents do not see it: {shown}"]


def choose_screen(lead: Lead, *, as_json: bool) -> Screen:
    if as_json:
        return JsonLines()
    env = environment()
    if sys.stdout.isatty() and env.get("TERM") != "dumb" and not env.get("CI"):
        from ganger.cli.foreground.live import Live

        return Live(lead)
    return LineScreen()


async def _lead_on(lead: Lead, screen: Screen) -> int:
    loop = asyncio.get_running_loop()
    received: list[int] = []

    def on_signal(number: int) -> None:
        received.append(number)
        if len(received) == 1:
            lead.stop(signal.Signals(number).name)
            with contextlib.suppress(OSError):
                screen.note(f"{signal.Signals(number).name}: stopping every agent; a second signal exits at once")
        else:
            lead.tools.launcher.kill_all()
            os._exit(EXIT_INTERRUPTED)

    # A closed terminal is a request to stop too, unless SIGHUP is ignored (nohup).
    stopping = [signal.SIGINT, signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        stopping.append(signal.SIGHUP)
    for number in stopping:
        loop.add_signal_handler(number, on_signal, number)
    ticking = loop.create_task(screen.tick(lead))
    try:
        return await lead.run()
    finally:
        ticking.cancel()
        for number in stopping:
            loop.remove_signal_handler(number)
