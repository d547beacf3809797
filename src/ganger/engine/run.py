"""One lead's run: decide, carry out, wait; until nothing more can be done or somebody says stop."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from collections.abc import Coroutine, Iterable
from dataclasses import dataclass

from ganger.core import events as ev
from ganger.core.names import worker_log
from ganger.core.records import Policy, RunState, TaskSpec
from ganger.core.vocabulary import RunStatus, TaskStatus
from ganger.core.windows import CloseWindow, Decision, Finish, OpenWindow, Start, decide
from ganger.engine.attempt import Attempt, Tools, block_dependents
from ganger.engine.gate import Gate
from ganger.engine.projector import Projector
from ganger.engine.recover import recover
from ganger.engine.report import write_report
from ganger.errors import EXIT_BLOCKED, EXIT_ERROR, EXIT_ESCALATED, EXIT_INTERRUPTED, EXIT_OK, GangerError


@dataclass(frozen=True, slots=True)
class Order:
    """What a lead was asked to do."""

    run_id: str
    manifest_digest: str
    tasks: tuple[TaskSpec, ...]
    policy: Policy
    pid: int
    version: str = ""
    only: tuple[str, ...] | None = None
    max_tasks: int | None = None


class Lead:
    """Owns the event loop's tasks of one run. One lead per run at a time."""

    def __init__(self, tools: Tools, order: Order, *, grace_sec: float = 5.0) -> None:
        self.tools, self.order, self.grace_sec = tools, order, grace_sec
        self.journal = tools.journal
        self.state: RunState = tools.journal.state
        self.projector = Projector(tools.folder, self.state, tools.clock)
        self._gate = Gate(tools.launcher, self.state)
        self._tasks: set[asyncio.Task[None]] = set()
        self._problem: BaseException | None = None
        self._fresh: asyncio.Task[None] | None = None
        self._stop_why = ""
        self._begun = False

    async def run(self) -> int:
        """Leads the run to its end; the exit code tells how it stands."""
        self.journal.listeners.append(self.projector.on_event)
        await self._begin()
        self._fresh = self._spawn(self.projector.keep_fresh())
        try:
            await self._loop()
        except BaseException:
            with contextlib.suppress(GangerError):
                await self._end_all()
                self.projector.write()
            raise
        await self._end_all()
        self.projector.write()
        write_report(self.tools.folder, self.state)
        return exit_code(self.state)

    async def _begin(self) -> None:
        order = self.order
        if self.state.last_seq == 0:
            await self.journal.record(
                ev.RunStarted(order.run_id, order.manifest_digest, order.policy, order.tasks, order.version)
            )
        require_same_tasks(self.state, order.tasks)
        await self.journal.record(ev.LeadStarted(order.pid, order.policy, order.only, order.max_tasks))
        self._begun = True
        if self._stop_why:
            self._spawn(self._stop_all())
        await recover(self.journal, self.tools.folder, self.tools.workspace)

    async def _loop(self) -> None:
        while not self.state.finished:
            decisions = decide(self.state)
            if decisions:
                await self._carry_out(decisions)
            else:
                await self.journal.changed()
            if self._problem is not None:
                raise self._problem

    def _spawn(self, work: Coroutine[object, object, None]) -> asyncio.Task[None]:
        """A background task whose failure ends the run instead of vanishing."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (problem := task.exception()) is not None:
            self._problem = self._problem or problem
            self.journal.wake()

    async def _carry_out(self, decisions: list[Decision]) -> None:
        starts = [d.task for d in decisions if isinstance(d, Start)]
        if starts:
            await self._start(starts)
        for decision in decisions:
            if isinstance(decision, OpenWindow):
                index = self.state.windows_opened + 1
                await self.journal.record(ev.WindowOpened(index, decision.size, decision.tasks))
            elif isinstance(decision, CloseWindow):
                await self._close_window(decision)
            elif isinstance(decision, Finish):
                counts = {status.value: self.state.counts[status] for status in TaskStatus}
                await self.journal.record(
                    ev.RunFinished(decision.run_status, decision.abort_reason, counts, decision.why)
                )

    async def _start(self, names: list[str]) -> None:
        """The claims of one tick share a commit; only then is anything launched."""
        claims = []
        for name in names:
            task = self.state.tasks[name]
            number = task.attempts + 1
            agent = self.tools.agents[self.state.specs[name].role].name
            why = task.detail if task.attempts else "first attempt"
            claims.append(ev.AttemptStarted(name, number, secrets.token_hex(8), agent, why, worker_log(name, number)))
        await self.journal.record(*claims)
        for claim in claims:
            if self.state.tasks[claim.task].token == claim.token:
                self._spawn(Attempt(self.tools, claim.task, self._gate).run())

    async def _close_window(self, close: CloseWindow) -> None:
        window = self.state.window
        assert window is not None
        after: list[ev.Event] = [
            ev.WindowClosed(window.index, close.done, close.failed, close.blocked, close.failure_rate, close.next_size)
        ]
        after += [ev.TaskRequeued(name, "retried after its window") for name in close.requeue]
        for name in close.give_up:
            after.append(ev.TaskSettled(name, TaskStatus.FAILED, self.state.tasks[name].detail))
            after += block_dependents(self.journal, name)
        await self.journal.record(*after)

    def stop(self, why: str) -> None:
        """Starts nothing new and ends every tree; safe to call from a signal handler of the loop, at any time."""
        if not self._stop_why:
            self._stop_why = why or "asked to"
            if self._begun:
                self._spawn(self._stop_all())

    async def _stop_all(self) -> None:
        await self.journal.record(ev.StopRequested(self._stop_why))
        await self.tools.launcher.stop_all(self.grace_sec)

    async def _end_all(self) -> None:
        """Nothing Ganger started outlives it, also when the loop ended by an error: first processes, then files."""
        self._gate.shut()
        await self.tools.launcher.stop_all(self.grace_sec)
        if self._fresh is not None:
            self._fresh.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.journal.settle()


def require_same_tasks(state: RunState, tasks: tuple[TaskSpec, ...]) -> None:
    """What the manifest says beyond its digest (roles, files, priorities, budgets) is part of the run too."""
    changed = [spec.id for spec in tasks if state.specs.get(spec.id) != spec]
    if changed or len(tasks) != len(state.specs):
        named = f": {', '.join(changed[:5])}" if changed else ""
        raise GangerError(
            f"the tasks of run {state.run_id} changed since it began{named}",
            hint="restore the manifest to continue this run, or give it a new run_id to start another",
            code="MANIFEST_CHANGED",
        )


def exit_code(state: RunState) -> int:
    """0 all that was asked for is DONE · 1 not all · 3 something is blocked · 4 a person must decide · 130 stopped ."""
    if state.status is RunStatus.COMPLETED:
        return EXIT_OK
    if state.stopping:
        return EXIT_INTERRUPTED
    left = {state.tasks[name].status for name in _asked_for(state)} - {TaskStatus.DONE}
    if not left:
        return EXIT_OK
    if TaskStatus.ESCALATED in left:
        return EXIT_ESCALATED
    return EXIT_BLOCKED if TaskStatus.BLOCKED in left else EXIT_ERROR


def _asked_for(state: RunState) -> Iterable[str]:
    if state.scope.only is not None:
        return state.scope.only
    return state.touched if state.scope.max_tasks is not None and state.touched else state.tasks
