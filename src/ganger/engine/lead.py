"""One lead's run: decide, act, wait; until nothing is left to do or someone stops it."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass, field

from ganger.contracts.worker import Next
from ganger.core import events as ev
from ganger.core.control.commands import act, refused
from ganger.core.control.questions import due, moot
from ganger.core.control.reconcile import Difference
from ganger.core.control.worker_commands import LIMIT_HOLDS, is_being_merged
from ganger.core.delivery.awaited import awaited_line, awaiting
from ganger.core.model.records import TaskSpec
from ganger.core.model.run_settings import RunSettings, settings_of
from ganger.core.model.run_state import RunState
from ganger.core.model.workers import PULL
from ganger.core.money.budgets import budget_named, reservation
from ganger.core.names import worker_log
from ganger.core.scheduling.choosing import exit_code as exit_code
from ganger.core.scheduling.quota import account_of
from ganger.core.scheduling.windows import (
    CloseWindow,
    Decision,
    Finish,
    MergeLevel,
    OpenWindow,
    Start,
    Wait,
    Wake,
    closing_events,
    decide,
)
from ganger.core.state.allowed import open_round
from ganger.core.state.apply import apply
from ganger.core.state.indexes import is_delivering
from ganger.core.times import stamp
from ganger.core.vocabulary import RunStatus, TaskStatus
from ganger.engine.attempt.attempt import Attempt
from ganger.engine.attempt_context import RunningAttempt
from ganger.engine.change_strategy import ChangeStrategy
from ganger.engine.changes.deleted_folder import FolderDeleted, until_deleted
from ganger.engine.changes.direct import DirectChanges
from ganger.engine.changes.repositories import Repositories
from ganger.engine.changes.shared_folder import SharedFolder
from ganger.engine.healing.heal_round import Healing, heal_started, write_in_place
from ganger.engine.healing.learned_rules import write_rules
from ganger.engine.output.progress import ProgressLog
from ganger.engine.output.report import write_report
from ganger.engine.output.state_file import StateFile
from ganger.engine.output.usage import write_usage
from ganger.engine.recover import recover
from ganger.engine.resources.run_resources import RunResources
from ganger.engine.stop_guard import StopGuard
from ganger.engine.workers.file_protocol import sweep_desks
from ganger.engine.workers.gateway import WorkerGateway
from ganger.errors import GangerError, LeadLost
from ganger.ports.store import RENEW_SEC, Command, Entry

# A longer wait is split, so that a changed clock is noticed.
_LONGEST_WAIT_SEC = 30.0
_QUESTIONS_EVERY_SEC = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Order(RunSettings):
    """What a lead was asked to do."""

    run_id: str
    manifest_digest: str
    tasks: tuple[TaskSpec, ...]
    pid: int
    version: str = ""
    contents: tuple[str, ...] = ()
    fence: int = 0
    boot_id: str = ""
    reconcile: Reconcile | None = None
    seen: dict[str, str] = field(default_factory=dict)
    waits: bool = False


@dataclass(frozen=True, slots=True)
class Reconcile:
    """A changed manifest to apply: the attempts that must end first, and what is recorded then."""

    difference: Difference
    events: Callable[[RunState], list[ev.Event]]


class Lead:
    """Owns the event loop's tasks of one run. One lead per run at a time."""

    def __init__(self, tools: RunResources, order: Order, *, grace_sec: float = 5.0) -> None:
        self.tools, self.order, self.grace_sec = tools, order, grace_sec
        self.journal = tools.journal
        self.state: RunState = tools.journal.state
        self.projector = StateFile(tools.folder, self.state, tools.clock)
        self.progress = ProgressLog(tools.folder, tools.journal, tools.checks.profiles)
        self._gate = StopGuard(tools.launcher, self.state)
        self._tasks: set[asyncio.Task[None]] = set()
        self._attempts: dict[str, Attempt] = {}
        self._company = SharedFolder(tools.watch, tools.fixed, self.state)
        self._branches = Repositories(tools, self._gate, self._spawn) if tools.repositories else None
        self._reception = WorkerGateway(tools, self._gate, self._claim)
        self._claiming = asyncio.Lock()
        self._duties: list[asyncio.Task[None]] = []
        self._problem: BaseException | None = None
        self._healing: asyncio.Task[None] | None = None
        self._barrier: asyncio.Task[None] | None = None
        self._taking = asyncio.Lock()
        self._last_seen = 0
        self._taken_over: list[str] = []
        self._stop_why = self._waits_for = ""
        self.tell: Callable[[str], None] = lambda _text: None
        self._begun = False

    async def run(self) -> int:
        """Leads the run to its end; the exit code says how it ended."""
        await self.progress.catch_up()
        self.journal.listeners += [self.projector.on_event, self.progress.on_event]
        if self.tools.notices is not None:
            self.journal.listeners.append(self.tools.notices.on_event)
        try:
            ready = self._spawn(self.tools.launcher.prepare())
            if self.state.log.last_seq == 0:
                await ready
            await self._begin()
            await self._reception.open()
            own = (self.projector.keep_fresh(), self._obey(), self._hold(), self._mind_questions())
            also = (until_deleted(self.tools.workspace.root), *self._reception.duties())
            self._duties = [self._spawn(duty) for duty in (*own, *also)]
            if self.tools.fixed is not None and not self._taken_over:
                # The first time, installed packages are copied, which takes seconds.
                await asyncio.to_thread(self.tools.fixed.begin)
            # A person's decision about a running attempt is applied before the attempt continues.
            await self._take_commands()
            self._adopt()
            await self._loop()
        except BaseException as problem:
            await self._leave(problem)
            raise
        await self._end_all()
        self._sweep_homes()
        await self.show_state()
        await self.journal.save_snapshot(ending=True)
        self._require_sound_end()
        return exit_code(self.state)

    def _require_sound_end(self) -> None:
        """Errors while everything was being ended are reported as well: something may not have been recorded."""
        problem = self.journal.error or self._problem
        if problem is not None:
            raise problem

    def _sweep_homes(self) -> None:
        tasks = self.state.tasks
        at_work = [*self.state.index.running, *([""] if open_round(self.state) is not None else [])]
        self.tools.homes.sweep(
            at_work,
            [name for name, task in tasks.items() if task.next_start.resume_session or task.next_start.answer_log],
        )
        sweep_desks(self.tools.folder.path, self.state, self.tools.homes.discard)

    async def show_state(self) -> None:
        """What people and programs read, updated from the events: the last lead may have died before it did so."""
        await self.progress.catch_up()
        self.projector.finish()
        write_report(self.tools.folder, self.state)
        write_rules(self.tools.folder, self.state)
        write_usage(self.tools.folder, self.state)

    async def note_landing(self, branch: str, commit: str, repo: str = "") -> None:
        """The run is finished, and the user's branch contains it."""
        entry = Entry(stamp(self.tools.clock.now()), ev.Landed(branch, commit, repo))
        for recorded in await self.journal.store.append([entry]):
            apply(self.state, recorded)
        await self.progress.catch_up()
        write_report(self.tools.folder, self.state)

    async def _begin(self) -> None:
        order = self.order
        clean = self.state.finished and not self.state.index.running and open_round(self.state) is None
        if self.state.log.last_seq == 0:
            begun = ev.RunStarted(
                order.run_id, order.manifest_digest, order.policy, order.tasks, order.version, order.contents
            )
            await self.journal.record(begun)
        leads = ev.LeadStarted(order.pid, order.fence, order.boot_id, **settings_of(order))
        await self.journal.record(leads)
        if self._branches is not None:
            await self._branches.recover()
        if order.reconcile is not None:
            await self._reconcile(order.reconcile)
        if order.seen:
            await self.journal.record(ev.ContentsSeen(order.seen))
        moot = [q.id for q in self.state.inbox.questions.values() if q.kind == "budget" and q.answer is None]
        if moot:
            await self.journal.record(*(ev.QuestionAnswered(name, "the run was continued") for name in moot))
        self._begun = True
        if self._stop_why:
            self._spawn(self._stop_all())
        if self.tools.heal_in_place:
            write_in_place(self.tools, self.state.healing.patches)
        tools = self.tools
        self._sweep_homes()
        needed = [key for outlet in tools.outlets.values() for key in outlet.jobs()]
        self._taken_over = await recover(
            self.journal, tools.folder, tools.workspace, tools.launcher, clean=clean, needed=needed
        )

    def _adopt(self) -> None:
        """Only once workers can reach this lead: they deliver what they spooled themselves."""
        for name in self._taken_over:
            self._spawn(self._attend(name, again=True))

    async def _attend(self, name: str, *, again: bool = False) -> None:
        """One attempt, from its claim to its end."""
        self._attempts[name] = attempt = self._attempt(name, again=again)
        try:
            await attempt.run()
        finally:
            if self._attempts.get(name) is attempt:
                del self._attempts[name]

    async def _reconcile(self, wanted: Reconcile) -> None:
        """Attempts on what changed end without a trace, and so does a healer: its window has changed."""
        kept = set(self.state.index.running) - set(wanted.difference.stop)
        keys = {str(self.tools.folder.path / worker_log(name, self.state.tasks[name].attempts)) for name in kept}
        await self.tools.launcher.end_others(keys)
        for name in wanted.difference.stop:
            await self._attempt(name, again=True).abandon("the manifest changed")
        round_ = open_round(self.state)
        if round_ is not None:
            why = "the manifest changed"
            await self.journal.record(ev.HealFinished(round_.number, "NOT_FIXABLE", "", "", problem=why))
        await self.journal.record(*wanted.events(self.state))

    async def _loop(self) -> None:
        while not self.state.finished:
            self._heal_if_open()
            await self.journal.idle()
            decisions = decide(self.state, self.tools.clock.now())
            wait = next((d for d in decisions if isinstance(d, Wait)), None)
            if decisions and wait is None and self._barrier is None:
                await self._carry_out(decisions)
            else:
                await self._pause(wait)
            if self._problem is not None:
                raise self._problem

    async def _pause(self, wait: Wait | None) -> None:
        """Waits until something is recorded, or until the moment before which nothing can change."""
        if self._problem is not None:
            return
        if wait is None:
            await self.journal.changed()
            return
        left = min(_LONGEST_WAIT_SEC, max(0.0, wait.until - self.tools.clock.now()))
        try:
            async with asyncio.timeout(left):
                await self.journal.changed()
        except TimeoutError:
            # A session that waits for a task may now get one that had to wait as well.
            self.journal.wake()

    def _heal_if_open(self) -> None:
        if open_round(self.state) is not None and self._healing is None and not self.state.lead.stopping:
            self._healing = self._spawn(Healing(self.tools, self._gate).run())
            self._healing.add_done_callback(self._healed)

    def _healed(self, _task: asyncio.Task[None]) -> None:
        self._healing = None
        self.journal.wake()

    def _passed(self, _task: asyncio.Task[None]) -> None:
        self._barrier = None
        self.journal.wake()

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

    # --- decisions ----------------------------------------------------------------------------------------------

    async def _carry_out(self, decisions: list[Decision]) -> None:
        starts = [d.task for d in decisions if isinstance(d, Start)]
        if starts:
            await self._start(starts)
        for decision in decisions:
            match decision:
                case OpenWindow(size, tasks, retry_of):
                    index = self.state.windows.opened + 1
                    await self.journal.record(ev.WindowOpened(index, size, tasks, retry_of))
                case CloseWindow():
                    await self._close_window(decision)
                case Wake(tasks):
                    why = "its account's quota is back"
                    await self.journal.record(*(ev.TaskRequeued(name, why) for name in tasks))
                case MergeLevel(tasks):
                    assert self._branches is not None
                    self._barrier = self._spawn(self._branches.merge_level(tasks))
                    self._barrier.add_done_callback(self._passed)
                case Finish():
                    await self._finish(decision)

    async def _finish(self, finish: Finish) -> None:
        if self.state.lead.stopping and self._healing is not None:
            await asyncio.wait({self._healing})
            return
        seen = self.state.log.last_seq
        if await self._take_commands() or self.state.log.last_seq != seen or not self.journal.is_idle:
            # Decided again: what was recorded meanwhile may have brought tasks back.
            return
        if self.order.waits and finish.run_status is RunStatus.ABORTED and not finish.question and awaiting(self.state):
            await self._await_people()
            return
        if self._branches and (await self._branches.has_set_back() or await self._branches.has_heard_reviews()):
            return
        events: list[ev.Event] = list(moot(self.state))
        if finish.question and not any(
            q.kind == "budget" and q.answer is None for q in self.state.inbox.questions.values()
        ):
            key = budget_named(finish.question)
            raised = f"raise it in ganger.toml or for this run (ganger run --set {key}=AMOUNT)"
            text = f"{finish.question}; {raised} and run again, or leave the rest undone"
            events.append(ev.QuestionAsked("", "", "budget", text))
        counts = {status.value: self.state.index.counts[status] for status in TaskStatus}
        events.append(ev.RunFinished(finish.run_status, finish.abort_reason, counts, finish.why))
        await self.journal.record(*events)

    async def _await_people(self) -> None:
        """Waits until something is recorded, by people here or on the forge, or until it is asked to stop. Dying here
        is harmless: the next lead waits for the same."""
        line = awaited_line(self.state)
        if line != self._waits_for:
            self._waits_for = line
            self.tell(f"{line}; the run continues by itself when it comes, and ganger stop ends the wait")
        await self._pause(None)

    async def _start(self, names: list[str]) -> None:
        """The claims of one tick share a commit; agents start only after it."""
        async with self._claiming:
            # A session may have got one of these since it was decided.
            names = [name for name in names if self.state.tasks[name].status is TaskStatus.PENDING]
            claims = await self._claim_all(names)
        for claim in claims:
            if self.state.tasks[claim.task].attempt.token == claim.token:
                self._spawn(self._attend(claim.task))

    async def _claim_all(self, names: list[str]) -> list[ev.AttemptStarted]:
        claims = []
        wanted = reservation(self.state)
        for name in names:
            task = self.state.tasks[name]
            number = task.attempts + 1
            agent = self.tools.agent_of(self.state.specs[name], task, self.state.policy)
            # An agent without a sandbox must never find what one inside a sandbox left in its home.
            sandbox = self.tools.sandbox.name
            same = (task.agent.used, task.agent.sandbox) == (f"{agent.name}/{agent.kind}", sandbox)
            why, delivers = task.detail if task.attempts else "first attempt", is_delivering(task)
            claims.append(
                ev.AttemptStarted(
                    name,
                    number,
                    secrets.token_hex(8),
                    agent.name,
                    why,
                    task.next_start.answer_log or (task.attempt.log if delivers else worker_log(name, number)),
                    account_of(self.state, name),
                    0.0 if delivers else wanted.usd,
                    0 if delivers else wanted.tokens,
                    # What was written shortly before a power cut may be missing from a workspace, without any trace.
                    task.next_start.resume_session
                    if same and not task.next_start.answer_log and not self.state.lead.rebooted
                    else "",
                    agent.kind,
                    sandbox,
                    delivers=delivers,
                )
            )
        if claims:
            await self.journal.record(*self._seen(names), *claims)
        return claims

    async def _claim(self, name: str, said: Next) -> bool:
        """For a session that asked; of all sessions that want a task exactly one gets it."""
        async with self._claiming:
            task = self.state.tasks[name]
            if task.status is not TaskStatus.PENDING or self.state.lead.stopping or self.state.finished:
                return False
            number, token = task.attempts + 1, secrets.token_hex(8)
            why = task.detail if task.attempts else "first attempt"
            log = task.next_start.answer_log or worker_log(name, number)
            started = ev.AttemptStarted(
                name, number, token, said.worker, why, log, kind=PULL,
                worker=said.worker, claim=said.id, worker_session=said.session,
            )  # fmt: skip
            await self.journal.record(*self._seen([name]), started)
        if self.state.tasks[name].attempt.token != token:
            return False
        self._spawn(self._attend(name))
        return True

    def _attempt(self, name: str, *, again: bool = False) -> Attempt:
        case = RunningAttempt(self.tools, name, self._gate.of_attempt(), again=again)
        road: ChangeStrategy = (
            DirectChanges(case, self._company) if self._branches is None else self._branches.road(case)
        )
        return Attempt(case, road)

    def _seen(self, names: list[str]) -> list[ev.Event]:
        """The prompts of tasks that are attempted for the first time: an earlier task may have written them."""
        first = [self.state.specs[name] for name in names if not self.state.tasks[name].attempts]
        now = self.tools.contents(first)
        seen = {name: text for name, text in now.items() if self.state.manifest.contents.get(name) != text}
        return [ev.ContentsSeen(seen)] if seen else []

    async def _close_window(self, close: CloseWindow) -> None:
        """The window's end and everything that follows from it are one commit; a healer starts only after it."""
        window = self.state.windows.current
        assert window is not None
        after = closing_events(self.state, close)
        if close.verdict.heal and not close.verdict.abandon:
            heal = close.verdict.heal
            after.append(heal_started(self.state, window, heal, isolate=close.verdict.isolate, tools=self.tools))
        await self.journal.record(*after)

    # --- duties -------------------------------------------------------------------------------------------------

    async def _obey(self) -> None:
        """Applies commands that people left in the store, within a second."""
        while True:
            await self._take_commands()
            # A command that could not be taken is not taken again and again.
            await self.journal.store.wait(commands=max(self.state.lead.commands_taken, self._last_seen))

    async def _take_commands(self) -> bool:
        """Whether there was one. Each is taken once, also when two parts of the lead look at the same time."""
        any_taken = False
        async with self._taking:
            for command in await self.journal.store.commands(self.state.lead.commands_taken):
                self._last_seen = command.number
                taken = await self._effects(command)
                if taken:
                    any_taken = True
                    await self._record_effects(taken)
                await self._act_on(taken)
        return any_taken

    async def _effects(self, command: Command) -> list[ev.Event]:
        """No one is promised more time before the process that limits the worker has agreed."""
        await self.journal.idle()
        now = self.tools.clock.now()
        taken = act(self.state, command, now)
        for given in taken:
            if isinstance(given, ev.LimitExtended):
                if not await self._reception.vigil.can_prolong(given):
                    return refused(command, f"the worker of {given.task}: {LIMIT_HOLDS}")
                await self.journal.idle()
                return act(self.state, command, now)
        return taken

    async def _record_effects(self, taken: list[ev.Event]) -> None:
        """What concerns a running attempt is recorded with its token."""
        about = next((e.task for e in taken if isinstance(e, ev.AttemptEvent)), "")
        token = self.state.tasks[about].attempt.token if about else ""
        await self.journal.report(about, token, *taken)

    async def _mind_questions(self) -> None:
        """Questions without an answer: in the end their default counts, or they are raised again."""
        while True:
            await asyncio.sleep(_QUESTIONS_EVERY_SEC)
            await self.journal.idle()
            if not self.state.finished and (events := due(self.state, self.tools.clock.now(), self.tools.remind_sec)):
                await self.journal.record(*events)

    async def _act_on(self, taken: list[ev.Event]) -> None:
        """What a command does beyond its events."""
        for event in taken:
            await self._reception.act_on(event)
            if isinstance(event, ev.StopRequested):
                self.stop("ganger stop")
            elif isinstance(event, ev.WorkerEnding):
                await self._break_off(event)
            elif isinstance(event, ev.PatchUndone) and self.tools.heal_in_place:
                write_in_place(self.tools, [event.patch])

    async def _break_off(self, ending: ev.WorkerEnding) -> None:
        """An attempt whose worker is finished, or never came, is not waited for either; a merge in progress is."""
        await self.journal.idle()
        attempt, at_work = self._attempts.get(ending.task), self._reception.posts.get(ending.task) is not None
        delivers = is_delivering(self.state.tasks[ending.task])
        if attempt is not None and not (at_work or delivers or is_being_merged(self.state, ending.task)):
            attempt.break_off()

    async def _hold(self) -> None:
        """Renews the lease, and keeps a snapshot for the next start."""
        while True:
            await asyncio.sleep(RENEW_SEC)
            await self.journal.store.renew()
            await self.journal.save_snapshot()

    # --- ends ---------------------------------------------------------------------------------------------------

    def stop(self, why: str) -> None:
        """Starts nothing new and ends every process tree; safe to call from a signal handler of the loop, any time."""
        if not self._stop_why:
            self._stop_why = why or "asked to"
            if self._begun:
                self._spawn(self._stop_all())

    async def _stop_all(self) -> None:
        if not self.state.lead.stopping:
            await self.journal.record(ev.StopRequested(self._stop_why))
        if self._branches is not None:
            self._branches.stop()
        self._reception.send_away()
        await self.tools.launcher.stop_all(self.grace_sec)

    async def _leave(self, problem: BaseException) -> None:
        """An error ends this lead, not the agents: the next lead continues with them. Files stay as they are. If the
        run's folder is gone, there is no next lead, so the agents end too."""
        self._gate.shut()
        await self._cancel(self._tasks)
        if self.state.log.last_seq and (isinstance(problem, FolderDeleted) or not await self.journal.store.exists()):
            with contextlib.suppress(GangerError, OSError):
                await self.tools.launcher.stop_all(self.grace_sec)
        await self._close()
        # What is being recorded at this moment is shown as well.
        await asyncio.gather(self.journal.settle(), return_exceptions=True)
        if self.state.log.last_seq and not isinstance(problem, LeadLost):
            with contextlib.suppress(GangerError):
                self.projector.write()

    async def _end_all(self) -> None:
        """Nothing Ganger started outlives a run that was stopped or is over; a running healer outlives a drain."""
        self._gate.shut()
        if self._branches is not None:
            self._branches.stop()
        if self.state.lead.draining and self._healing is not None:
            await self._cancel({self._healing})
        else:
            await self.tools.launcher.stop_all(self.grace_sec)
        await self._cancel(self._duties)
        await asyncio.gather(*self._tasks, return_exceptions=True)
        try:
            await self.journal.settle()
        finally:
            await self._close()

    async def _close(self) -> None:
        await self._reception.close()
        if self.tools.notices is not None:
            await self.tools.notices.close()
        await self.tools.launcher.close()
        if self._branches is not None:
            await self._branches.close()

    async def _cancel(self, tasks: Iterable[asyncio.Task[None]]) -> None:
        doomed = list(tasks)
        for task in doomed:
            task.cancel()
        await asyncio.gather(*doomed, return_exceptions=True)
