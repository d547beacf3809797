"""The part of an attempt in which its worker works: prompt, process or session, until the end."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from ganger.core import events as ev
from ganger.core.control.questions import answers_of
from ganger.core.model.records import Ended, TaskSpec
from ganger.core.money.budgets import time_limit
from ganger.core.names import desk_folder, prompt_file
from ganger.core.state.apply_delivery import rules_of
from ganger.core.times import seconds_between, stamp
from ganger.core.vocabulary import FailureClass
from ganger.engine.agent_calls.agent_output import AgentOutput
from ganger.engine.agent_calls.launching import at_home, confined, forget_login, owner_of, reporting, with_desk
from ganger.engine.attempt_context import Lost, RunningAttempt
from ganger.engine.attempt_outcome import raise_if_person_decided
from ganger.engine.change_strategy import ChangeStrategy
from ganger.engine.log_masks import note_masks
from ganger.engine.prompts.assemble import Advice, assemble, continuation, edits_files
from ganger.engine.resources.live_attempts import LiveAttempt
from ganger.engine.resources.run_resources import one_line
from ganger.engine.workers.file_protocol import is_bare, make_desk
from ganger.engine.workers.handoff import ci_note, handoff_of
from ganger.engine.workers.protocol import gone
from ganger.errors import GangerError, InputError
from ganger.local.run_folder import named_os_errors, write_private
from ganger.ports.agents import Agent, AttemptContext
from ganger.ports.processes import Exit, Launch

# What programs generate is not a file of the project.
_LEFT_ALONE = frozenset({".git", ".ganger", ".venv", "venv", "node_modules"})


def unread(folder: Path, spec: TaskSpec) -> tuple[Path, ...]:
    """Files, and whole folders, that hold nothing the task declares to read, create or modify; empty if it
    declares no reading."""
    if not spec.reads:
        return ()
    named = (*spec.reads, *(spec.creates or ()), *(spec.modifies or ()), *spec.expected)
    allowed = frozenset(os.path.normpath(path) for path in named)
    return tuple(_below(folder, "", allowed))


def _below(folder: Path, under: str, allowed: frozenset[str]) -> Iterator[Path]:
    """A link is left alone: its target is either in the workspace, and judged there, or out of reach."""
    try:
        with os.scandir(folder / under) as entries:
            found = sorted(entries, key=lambda entry: entry.name)
    except OSError:
        return
    for entry in found:
        path = f"{under}/{entry.name}" if under else entry.name
        if path in allowed or entry.is_symlink() or (not under and entry.name in _LEFT_ALONE):
            continue
        if entry.is_dir(follow_symlinks=False) and any(name.startswith(f"{path}/") for name in allowed):
            yield from _below(folder, path, allowed)
        else:
            yield folder / path


class WorkerPhase:
    def __init__(
        self, case: RunningAttempt, road: ChangeStrategy, hearing: AgentOutput, agent: Agent, starts: Agent
    ) -> None:
        """`starts` is the agent to start now; `agent` reads what an earlier one printed."""
        self.case, self.road, self.hearing, self.agent = case, road, hearing, agent
        self.tools, self.state, self.gate = case.tools, case.state, case.gate
        self.desk = case.tools.folder.path / desk_folder(case.task, case.number)
        self._starts = starts

    @property
    def pulled(self) -> bool:
        worker = self.case.now.worker
        return worker is not None and worker.pulled

    async def work(self, folder: Path) -> tuple[Ended, bool]:
        """How its worker ended, and whether that may be an answer; raises Lost or Stopped."""
        post = self._post(folder)
        self.tools.posts.enter(post)
        try:
            ended = await (self._wait_for_session(post) if post.pulled else self._wait_for_process(post, folder))
            if not ended.lost:
                await self.tools.posts.take_rest(post, ended)
        finally:
            self.tools.posts.leave(post)
        if ended.lost:
            self.gate.check()
            raise Lost
        if self.tools.journal.masker:
            await asyncio.to_thread(note_masks, self.case.log_path, self.tools.journal.masker)
        self.case.mention(self._exited(ended), *await self.hearing.settled(ended))
        error = "" if ended.started else ended.error
        how = Ended(ended.code, ended.signal, ended.timed_out, ended.over_output, error, ended.log_bytes)
        worker = self.case.now.worker
        answered = bool(worker and worker.report) if post.pulled else ended.started
        return how, answered

    def _post(self, folder: Path) -> LiveAttempt:
        case = self.case
        at = stamp(self.tools.clock.now())
        post = LiveAttempt(
            case.task,
            case.number,
            case.token,
            case.log,
            self.tools.clock.monotonic(),
            folder,
            self.desk,
            pulled=self.pulled,
            time_limit_sec=time_limit(self.state, case.task, at),
            window_tokens=self.tools.windows_tokens.get(self.agent.name, 0),
            eye=self.tools.eye(folder) if self.tools.eye is not None else None,
        )
        if post.pulled:
            post.ready = asyncio.get_running_loop().create_future()
            post.over = asyncio.get_running_loop().create_future()
        return post

    # --- a session that asked ---------------------------------------------------------------------------------------

    async def _wait_for_session(self, post: LiveAttempt) -> Exit:
        """It is not Ganger's child process: only its messages, its files, or its silence end this."""
        limit = post.time_limit_sec
        assert post.over is not None and post.ready is not None
        self.gate.check()
        prompt = await asyncio.to_thread(self._write_prompt)
        self._make_desk(post.folder)
        post.ready.set_result(prompt.read_text(encoding="utf-8"))
        worker = self.case.now.worker
        if worker is not None and (worker.report or worker.verdict):
            # The message came before this wait began.
            post.finish(gone())
        self.tools.journal.wake()
        used = seconds_between(self.case.now.attempt.started_at, stamp(self.tools.clock.now()))
        now = self.tools.clock.monotonic
        post.limit_at = None if limit is None else now() + max(0.0, limit - used)
        timed_out = False
        while not post.over.done() and not timed_out:
            # A person may have given it more time meanwhile.
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(None if post.limit_at is None else max(0.0, post.limit_at - now())):
                    await asyncio.shield(post.over)
            timed_out = not post.over.done() and post.limit_at is not None and now() >= post.limit_at
        used = seconds_between(self.case.now.attempt.started_at, stamp(self.tools.clock.now()))
        size: int | None = None
        with contextlib.suppress(OSError):
            size = self.case.log_path.stat().st_size
        return Exit(None if timed_out else 0, None, timed_out, max(0.0, used), True, "", log_bytes=size)

    def _make_desk(self, folder: Path) -> None:
        if self.tools.endpoint is not None:
            make_desk(self.desk, owner_of(folder))

    # --- a process --------------------------------------------------------------------------------------------------

    async def _wait_for_process(self, post: LiveAttempt, folder: Path) -> Exit:
        case = self.case
        running = await self.gate.find(str(case.log_path)) if case.again else None
        if running is None and case.again and not self.gate.knows_all():
            # After a power cut it is unknown whether it was started; as a new attempt it is certainly counted.
            raise Lost
        if running is None and self.agent is not self._starts:
            raise Lost
        if running is None:
            raise_if_person_decided(case.now)
            running = await self.agent.execute(await self._prepare(folder), self.gate)
        if running.pid is not None and running.start_time is not None and case.now.attempt.launched is None:
            case.mention(ev.AttemptLaunched(case.task, case.number, running.pid, running.start_time))
        post.running, post.followed = running, self.agent.capabilities.stream
        if post.ending or (case.now.worker is not None and case.now.worker.verdict):
            # Its end was decided while it was being started, or by a lead that may have died before it was.
            post.ending = True
            await self.gate.end(str(case.log_path))
        ended = await self.hearing.wait(running, folder, post)
        forget_login(self.tools, self._context(self._prompt_path, folder))
        return ended

    async def _prepare(self, folder: Path) -> Launch:
        """What fails here concerns this task's prompt or its agent's settings, never the run."""
        prompt, agent = self._write_prompt(), self.agent
        self._make_desk(folder)
        try:
            hidden = unread(folder, self.case.spec) if self._hides else ()
            room = with_desk(self.tools, replace(self.road.room(folder), unread=hidden), self.desk)
            context = self._context(prompt, folder)
            context = replace(context, environment=reporting(self.tools, self.case.token, self.desk))
            if not agent.capabilities.stream:
                return confined(self.tools, agent, context, room)
            # Some programs are queried first, which takes seconds.
            return await asyncio.to_thread(confined, self.tools, agent, context, room)
        except GangerError as error:
            detail = f"{error.code}: {error.message}" + (f"; {error.hint}" if error.hint else "")
            raise self.case.failed(FailureClass.BLOCKED_EXTERNAL, error.code, detail) from error

    def _exited(self, ended: Exit) -> ev.AttemptExited:
        return ev.AttemptExited(
            self.case.task,
            self.case.number,
            ended.code,
            ended.signal,
            ended.timed_out,
            round(ended.duration_sec, 3),
            one_line(ended.error) if not ended.started else "",
            ended.over_output,
            ended.log_bytes,
        )

    async def leave(self) -> None:
        """A desk ends with its attempt; a session ends with its task and may continue until then.

        An empty desk is removed with all others at the end: file systems are slow with many short-lived files.
        """
        if self.tools.endpoint is not None and not is_bare(self.desk):
            await asyncio.to_thread(self.tools.homes.discard, self.desk)
        if self.agent.capabilities.stream and self.case.now.final:
            await asyncio.to_thread(self.tools.homes.remove, self.case.task)

    # --- the prompt -------------------------------------------------------------------------------------------------

    def _context(self, prompt: Path, folder: Path) -> AttemptContext:
        context = AttemptContext(
            run_id=self.state.run_id,
            task_id=self.case.task,
            attempt=self.case.number,
            role=self.case.spec.role,
            workspace=folder,
            prompt_file=prompt,
            log_path=self.case.log_path,
            timeout_sec=time_limit(self.state, self.case.task, stamp(self.tools.clock.now())),
            session=self.case.now.agent.continued,
        )
        return at_home(self.tools, self.agent, self.case.task, context)

    @property
    def _prompt_path(self) -> Path:
        return self.tools.folder.path / prompt_file(self.case.task, self.case.number)

    @property
    def _hides(self) -> bool:
        """Whether files that its task does not declare to read are hidden from it."""
        return self.tools.sandbox.name == "bubblewrap" and not self.pulled

    def _write_prompt(self) -> Path:
        path = self._prompt_path
        try:
            text = self.tools.masked(self._prompt_text())
        except InputError as error:
            raise self.case.failed(FailureClass.MISSING_PATHS, error.message, error.message) from error
        with named_os_errors(path):
            write_private(path, text)
        return path

    def _prompt_text(self) -> str:
        now, spec = self.case.now, self.case.spec
        patches = [self.state.healing.patches[name] for name in now.healing.patches]
        reader = self.tools.overlay.reader(self.case.task, patches)
        git = bool(self.tools.repositories)
        advice = Advice(
            hints=self.tools.overlay.hints(self.case.task, patches) if now.healing.pending else (),
            answers=answers_of(self.state, self.case.task),
            rules=self.tools.rules,
            role=self.case.role.prompt,
            workspace=git,
            gates=self.case.rules.may_change_gates,
            hides=self._hides,
            saved=now.work.saved if git else "",
            saved_files=now.work.saved_files,
            saved_refused=now.work.saved_refused,
            turned_down=self.road.found_work if now.work.remade and now.agent.continued else None,
            checks=self.tools.checks.commands(spec.verify_profile),
            edits=self.pulled or edits_files(self.agent.capabilities),
            checkpoint=now.checkpoint,
            protocol=self.tools.endpoint is not None and self.tools.tell_protocol,
            handoff=handoff_of(rules_of(self.state, self.case.task), spec.repo),
            ci=ci_note(self.state, self.case.task),
            budget=self.tools.prompt_budget,
        )
        told = continuation if now.agent.continued else assemble
        return told(spec, reader, now.next_start.reminder, advice)
