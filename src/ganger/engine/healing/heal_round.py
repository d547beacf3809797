"""One heal round, from bundle to patches: prompt → healer → log → parse → judge → patches → what runs again.

`HealStarted` is recorded before the healer is launched; a new lead finds the healer by its key, and adopts or harvests
it. Patches are on disk before their events, and everything a round decides is recorded in one commit.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

from ganger.contracts.heal_decision import HealDecision
from ganger.contracts.parser import Parsed, Refused
from ganger.contracts.task_result import Write
from ganger.core import events as ev
from ganger.core.failures.agent_errors import AgentError, trouble_of
from ganger.core.failures.retries import backoff_sec
from ganger.core.healing.patches import Ground, Judged, judge
from ganger.core.healing.policy import Cure, after_nothing, after_round, questions_for, shrunk_size
from ganger.core.model.records import HealRound, Totals, Window
from ganger.core.model.run_state import RunState
from ganger.core.money.budgets import active_seconds, cost_settled, reservation
from ganger.core.money.pricing import believed, used_by
from ganger.core.names import healer_log, healer_prompt
from ganger.core.planning.dependents import blocked_behind
from ganger.core.scheduling.accounts import after_refusal
from ganger.core.scheduling.quota import after_quota, paused_until, shut_until, works_again
from ganger.core.signs import Heard
from ganger.core.state.apply_healing import QUOTA, REFUSED, TRANSIENT
from ganger.core.times import stamp
from ganger.core.vocabulary import FailureClass, TaskStatus
from ganger.engine.agent_calls.account_questions import question_text
from ganger.engine.agent_calls.launching import at_home, confined, forget_login
from ganger.engine.agent_calls.log_follower import LogFollower, followed
from ganger.engine.healing.prompt import gather, render
from ganger.engine.prompts.patched_prompts import KeptPrompts
from ganger.engine.resources.run_resources import RunResources, one_line
from ganger.engine.stop_guard import StopGuard, Stopped
from ganger.errors import GangerError, RollbackFailed, WriteRefused
from ganger.local.run_folder import named_os_errors, write_private
from ganger.ports.agents import Agent, AttemptContext
from ganger.ports.changes import Rules
from ganger.ports.processes import Exit, Running
from ganger.ports.sandbox import Room

_HEALER = "healer"
_LOOK_EVERY_SEC = 0.5
_HEARD_WITHIN_SEC = 120.0


def heal_started(
    state: RunState, window: Window, failed: tuple[str, ...], *, isolate: bool, tools: RunResources
) -> ev.HealStarted:
    """The intent of a round for a window that is just being closed."""
    return _intent(
        state, len(state.healing.rounds) + 1, window.index, window.tasks, failed, window.lineage, isolate, tools
    )


def _intent(
    state: RunState,
    number: int,
    window: int,
    tasks: tuple[str, ...],
    failed: tuple[str, ...],
    lineage: int,
    isolate: bool,
    tools: RunResources,
) -> ev.HealStarted:
    wanted = reservation(state)
    return ev.HealStarted(
        number,
        window,
        tasks,
        failed,
        tools.agents[_HEALER].name,
        healer_log(number),
        secrets.token_hex(8),
        lineage=lineage,
        isolate=isolate,
        account=state.quota.accounts.get(_HEALER, ""),
        reserved_usd=wanted.usd,
        reserved_tokens=wanted.tokens,
    )


class Healing:
    """One call of the healer, and what follows from it."""

    def __init__(self, tools: RunResources, gate: StopGuard) -> None:
        self.tools, self.gate = tools, gate
        self.state = tools.journal.state
        self.number = len(self.state.healing.rounds)
        self._unpaid: list[ev.Event] = []
        self._passing = 0

    @property
    def round(self) -> HealRound:
        return self.state.healing.rounds[self.number - 1]

    @property
    def log(self) -> str:
        return healer_log(self.number, self.round.tries)

    @property
    def log_path(self) -> Path:
        return self.tools.folder.path / self.log

    async def run(self) -> None:
        """A stop leaves the round open: the next lead asks the healer again."""
        try:
            await self._run()
        except Stopped:
            await self._ask_again("LOST", "the run was stopped")

    async def _run(self) -> None:
        while True:
            await self._wait_for_account()
            ended = await self._execute()
            heard = await self._heard(ended)
            self._unpaid = self._cost(heard)
            if ended.lost:
                await self._ask_again("LOST", "the keeper was lost")
                continue
            self.gate.check()
            answer = self._read(ended)
            if heard.has_worked:
                self._unpaid += works_again(self.state, self._account)
            trouble = self._trouble(ended, heard) if isinstance(answer, Refused) else None
            if trouble is not None and await self._waits(trouble):
                continue
            if trouble is not None and isinstance(answer, Refused):
                answer = Refused(answer.code, trouble.detail)
            if (
                isinstance(answer, Refused)
                and trouble is None
                and self.round.refusals < self.state.policy.format_retries
            ):
                await self._ask_again(answer.code, answer.message)
                continue
            await self._conclude(answer, ended)
            return

    async def _ask_again(self, code: str, message: str, *after: ev.Event) -> None:
        paid, self._unpaid = self._unpaid, []
        await self.tools.journal.record(*paid, *after, ev.HealRefused(self.number, code, one_line(message)))

    def _trouble(self, ended: Exit, heard: Heard) -> AgentError | None:
        """What keeps the healer from answering, as far as its output says; as for every other agent."""
        cut_short = ended.timed_out or ended.signal is not None or bool(ended.code)
        return trouble_of(heard, cut_short=cut_short, timed_out=ended.timed_out)

    async def _waits(self, trouble: AgentError) -> bool:
        """A limit is waited out, and so are temporary errors; neither uses up the round."""
        if trouble.failure_class is FailureClass.QUOTA:
            paused = after_quota(self.state, self._account, self.tools.clock.now(), trouble.reset_at)
            asked = self._refused(trouble) if trouble.empty else []
            await self._ask_again(QUOTA, trouble.detail, *paused, *asked)
            return True
        if trouble.refused:
            await self._ask_again(REFUSED, trouble.detail, *self._refused(trouble))
            return True
        if (
            trouble.failure_class is FailureClass.TRANSIENT_INFRA
            and self._passing < self.state.policy.transient_retries
        ):
            self._passing += 1
            await self._ask_again(TRANSIENT, trouble.detail)
            await self._rest(self.tools.clock.now() + backoff_sec(_HEALER, self._passing - 1))
            return True
        return False

    def _refused(self, trouble: AgentError) -> list[ev.Event]:
        """One question for all of the account, whichever agent asks it; an empty account is also retried by itself."""
        now, account = self.tools.clock.now(), self._account
        until = now + self.state.policy.quota_wait_sec if trouble.empty else 0.0
        text = question_text(self.tools.agents[_HEALER], account, trouble.detail, until)
        return after_refusal(self.state, account, trouble.detail, text, until)

    @property
    def _account(self) -> str:
        return self.state.quota.accounts.get(_HEALER, "")

    async def _wait_for_account(self) -> None:
        clock, state = self.tools.clock, self.state
        await self._rest(paused_until(state, self._account, clock.now()))
        while shut_until(state, self._account, clock.now()):
            await self._rest(clock.now() + _LOOK_EVERY_SEC)

    async def _rest(self, until: float) -> None:
        while (left := until - self.tools.clock.now()) > 0:
            self.gate.check()
            await asyncio.sleep(min(_LOOK_EVERY_SEC, left))

    async def _execute(self) -> Exit:
        agent = self.tools.agents[_HEALER]
        running = await self.gate.find(str(self.log_path))
        if running is None:
            self.gate.check()
            prompt = self._write_prompt()
            # The healer would otherwise use settings and hooks that an earlier call left there.
            await asyncio.to_thread(self.tools.homes.discard, self._folder())
            try:
                launch = confined(self.tools, agent, self._context(prompt), Room(writable=(self._folder(),)))
            except GangerError as error:
                # As with a worker: a failure of its adapter or its settings does not end the run.
                return Exit(None, None, False, 0.0, started=False, error=f"{error.code}: {error.message}")
            running = await agent.execute(launch, self.gate)
        ended = await self._followed(agent, running)
        forget_login(self.tools, self._context(self._prompt_path))
        return ended

    async def _followed(self, agent: Agent, running: Running) -> Exit:
        reader = agent.reader()
        if reader is None or running.pid is None:
            return await running.wait()
        log = self.log_path

        def listening(end: Callable[[str], None]) -> LogFollower:
            return LogFollower(log, reader, self.tools.clock, lambda _heard: None, end)

        return await followed(running, listening, lambda: self.gate.end(str(log)))

    def _folder(self) -> Path:
        """Where the healer works: all it needs is in its prompt, and it may touch nothing of the project."""
        folder = self.tools.folder.path / "healer"
        with named_os_errors(folder):
            folder.mkdir(mode=0o700, exist_ok=True)
            if self.tools.sandbox.owner is not None:
                os.chown(folder, *self.tools.sandbox.owner)
        return folder

    @property
    def _prompt_path(self) -> Path:
        return self.tools.folder.path / healer_prompt(self.number, self.round.tries)

    def _write_prompt(self) -> Path:
        bundle = gather(
            self.state,
            self.number,
            self.round.failed,
            self.tools.folder.path,
            self.tools.overlay,
            secrets.token_hex(6),
        )
        path = self._prompt_path
        with named_os_errors(path):
            write_private(path, self.tools.masked(render(bundle)))
        return path

    def _context(self, prompt: Path) -> AttemptContext:
        context = AttemptContext(
            run_id=self.state.run_id,
            task_id=_HEALER,
            attempt=self.number + sum(round_.tries for round_ in self.state.healing.rounds),
            role=_HEALER,
            workspace=self._folder(),
            prompt_file=prompt,
            log_path=self.log_path,
            timeout_sec=self._time_limit(),
        )
        return at_home(self.tools, self.tools.agents[_HEALER], "", context)

    def _time_limit(self) -> float:
        """The healer's own limit, and what is left of the run's wall time."""
        own, most = self.tools.heal_timeout_sec, self.state.money.budget.wall_sec
        if most is None:
            return own
        return max(0.1, min(own, most - active_seconds(self.state, stamp(self.tools.clock.now()))))

    def _read(self, ended: Exit) -> Parsed[HealDecision] | Refused:
        if not ended.started:
            return Refused("NO_SENTINEL", f"the healer could not be started: {ended.error}")
        try:
            answer = self.tools.agents[_HEALER].extract_heal(self.log_path)
        except (OSError, GangerError) as error:
            return Refused("NO_SENTINEL", f"the healer's log cannot be read: {error}")
        if isinstance(answer, Refused) and ended.timed_out:
            return Refused(answer.code, f"the healer gave no answer within {self.tools.heal_timeout_sec:g} s")
        return answer

    # --- what follows -------------------------------------------------------------------------------------------------

    async def _conclude(self, answer: Parsed[HealDecision] | Refused, ended: Exit) -> None:
        if isinstance(answer, Refused):
            judged, kept = Judged(), KeptPrompts((), ())
        else:
            judged = judge(answer.value, self._ground())
            kept = self.tools.overlay.keep(
                judged.planned, self.number, self.log, list(self.state.healing.patches.values())
            )
        refused = [
            ev.PatchRefused(self.number, r.place, r.target, one_line(r.why)) for r in (*judged.refused, *kept.refused)
        ]
        cure = Cure(
            judged.reset,
            judged.escalate,
            frozenset(name for applied in kept.applied for name in applied.tasks),
            next_epoch=judged.retry_window == "next_epoch",
            shrink=judged.retry_window == "shrink_window",
        )
        again: tuple[str, ...] = ()
        size = 0
        if kept.applied:
            retry, after = after_round(self.state, self.round, cure)
            # A number that the healer sets itself counts as it is.
            named = any(applied.current_batch_size is not None for applied in kept.applied)
            size = 0 if named else shrunk_size(self.state, self.round, cure)
        else:
            again, retry, after = after_nothing(self.state, self.round, dict(judged.escalate))
        after = self._completed(after)
        finished = replace(self._finished(answer, ended, retry), next_size=size)
        last = self.round
        opened = (
            [
                _intent(
                    self.state, self.number + 1, last.window, last.tasks, again, last.lineage, last.isolate, self.tools
                )
            ]
            if again
            else []
        )
        await self.tools.journal.record(*self._unpaid, *kept.applied, *refused, finished, *after, *opened)
        if self.tools.heal_in_place:
            write_in_place(self.tools, [applied.patch for applied in kept.applied])

    def _ground(self) -> Ground:
        state = self.state
        return Ground(
            state.policy.heal_schedule,
            self.round.failed,
            state.specs,
            state.healing.limits,
            in_place=self.tools.heal_in_place,
        )

    def _completed(self, events: list[ev.Event]) -> list[ev.Event]:
        """Questions for what is escalated, and events for the tasks that can no longer run because of it."""
        ended = [e.task for e in events if isinstance(e, ev.TaskSettled) and e.status is not TaskStatus.DONE]
        return [*events, *questions_for(events), *blocked_behind(self.state, ended)]

    def _finished(self, answer: Parsed[HealDecision] | Refused, ended: Exit, retry: tuple[str, ...]) -> ev.HealFinished:
        code, took = ended.code, round(ended.duration_sec, 3)
        if isinstance(answer, Refused):
            problem = one_line(f"the healer gave no usable answer ({answer.code}: {answer.message})")
            return ev.HealFinished(self.number, "NOT_FIXABLE", "", "", code, took, problem=problem, retry=retry)
        said = answer.value
        return ev.HealFinished(
            self.number,
            said.decision,
            one_line(said.failure_class),
            one_line(said.root_cause),
            code,
            took,
            said.scope,
            one_line(said.learned_rule or "", 2000),
            retry=retry,
        )

    async def _heard(self, ended: Exit) -> Heard:
        """The healer can fill its log and its home with data that takes long to read."""
        if ended.started:
            hear, home = self.tools.agents[_HEALER].hear, self._context(self._prompt_path).home
            with contextlib.suppress(OSError, GangerError, TimeoutError):
                return await asyncio.wait_for(asyncio.to_thread(hear, self.log_path, home), _HEARD_WITHIN_SEC)
        return Heard()

    def _cost(self, heard: Heard) -> list[ev.Event]:
        agent, held, tokens = self.tools.agents[_HEALER], self.round, heard.tokens
        if tokens is None and not held.reserved_usd and not held.reserved_tokens:
            return []
        model = heard.model or agent.model
        used = used_by(tokens, model, self.tools.prices, None) if tokens is not None else Totals()
        cost = cost_settled("", self.number, used, held.reserved_usd, held.reserved_tokens)
        return [replace(cost, doubted=believed(tokens).doubted if tokens is not None else "")]


def write_in_place(tools: RunResources, names: Iterable[str]) -> None:
    """Only if the operator asked for it; if a file changed meanwhile, the patch stays only in the prompt.

    Harmless to repeat, so the next lead finishes what an earlier one did not.
    """
    for name in names:
        record = tools.journal.state.healing.patches[name]
        _land(tools, name, tools.overlay.undo_write(record) if record.undone else tools.overlay.in_place_write(record))


def _land(tools: RunResources, name: str, write: Write | None) -> None:
    if write is None:
        return
    folder = tools.folder.path / "backups" / name
    with contextlib.suppress(WriteRefused, RollbackFailed):
        changes = tools.workspace.propose((write,), Rules(allow_shrinkage=True, may_change_gates=True))
        tools.workspace.back_up(changes, folder)
        tools.workspace.apply(changes, folder)
        tools.workspace.discard(folder)
