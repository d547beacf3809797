"""What really happens in a world, apart from what the engine believes: rules judged at the moment of each effect."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from ganger.core import events as ev
from ganger.core.names import backup_folder
from ganger.core.state.apply_worker import BY_PERSON
from ganger.core.vocabulary import TaskStatus
from sim.keeper import Process
from sim.life import Life
from sim.programs import CHECK, HEALER, checked_attempt, checked_task

Attempt = tuple[str, int]
_KILLED, _TERMINATED = 9, 15
_GIVEN_UP = (TaskStatus.FAILED, TaskStatus.ESCALATED)


@dataclass(slots=True)
class Known:
    """One task as the durable events tell it."""

    needs: tuple[str, ...]
    status: TaskStatus = TaskStatus.PENDING
    attempt: int = 0
    log: str = ""
    open: bool = False
    canary: str = ""
    held_after: int = 0


@dataclass(slots=True)
class Witness:
    """Sees every commit, every process and every change of a file, as they happen."""

    elapsed: Callable[[], float]
    wrong: list[str] = field(default_factory=list)
    events: list[ev.Recorded] = field(default_factory=list)
    tasks: dict[str, Known] = field(default_factory=dict)
    leader: int = 0
    starts: dict[Attempt, int] = field(default_factory=dict)
    workers: dict[Attempt, Process] = field(default_factory=dict)
    by_log: dict[str, Process] = field(default_factory=dict)
    healers: list[Process] = field(default_factory=list)
    rounds_ended: int = 0
    round_open: bool = False
    intents: set[str] = field(default_factory=set)
    passed: set[Attempt] = field(default_factory=set)
    checking: dict[int, tuple[Attempt, bool]] = field(default_factory=dict)
    sentenced: dict[str, str] = field(default_factory=dict)
    stop_asked: bool = False
    last_commit_at: float = 0.0

    def say(self, what: str) -> None:
        self.wrong.append(f"{what} (after event {len(self.events)})")

    # --- the store ------------------------------------------------------------------------------------------------

    def committed(self, life: Life, recorded: Sequence[ev.Recorded]) -> None:
        if life.pid != self.leader:
            self.say(f"stale lead: process {life.pid} wrote although {self.leader} leads")
        for entry in recorded:
            self.events.append(entry)
            self._take(entry.event)
        self.last_commit_at = self.elapsed()

    def _take(self, event: ev.Event) -> None:
        match event:
            case ev.RunStarted():
                self.tasks = {spec.id: Known(spec.depends_on) for spec in event.tasks}
            case ev.LeadStarted():
                self.stop_asked = False
            case ev.StopRequested():
                self.stop_asked = True
            case ev.HealStarted():
                self.round_open = True
            case ev.HealFinished():
                self.round_open, self.rounds_ended = False, event.round
            case ev.WritesIntended():
                self.intents.add(backup_folder(event.task, event.attempt).rpartition("/")[2])
            case ev.AttemptStarted():
                known = self.tasks[event.task]
                known.status, known.attempt, known.open = TaskStatus.RUNNING, event.attempt, True
                known.log = event.log
                self.sentenced.pop(event.task, None)
            case ev.WorkerEnding() if event.verdict not in BY_PERSON:
                self.sentenced[event.task] = event.verdict
            case ev.TaskHeld():
                known = self.tasks[event.task]
                known.canary, known.held_after = event.canary, self.rounds_ended
            case ev.AttemptInterrupted():
                self._interrupted(event)
            case ev.TaskRequeued():
                self._over(event.task, TaskStatus.PENDING)
                if event.by_person:
                    self.tasks[event.task].canary = ""
            case ev.TaskSettled():
                self._settled(event)

    def _over(self, task: str, status: TaskStatus) -> None:
        self.tasks[task].status, self.tasks[task].open = status, False

    def _settled(self, event: ev.TaskSettled) -> None:
        known = self.tasks[event.task]
        attempt = (event.task, known.attempt)
        if event.status is TaskStatus.DONE and attempt not in self.passed:
            self.say(f"false DONE: no check passed for {event.task}/{known.attempt}")
        self._over(event.task, event.status)
        if event.final:
            known.canary = ""

    def _interrupted(self, event: ev.AttemptInterrupted) -> None:
        """G01: an answer is only ever thrown away because its process was lost, or ended when a person said stop."""
        process = self.author(event.task)
        self._over(event.task, TaskStatus.PENDING)
        if process is None or event.harvest:
            return
        if process.exit is None:
            self.say(f"paid twice: {event.task}/{event.attempt} was thrown away while it worked")
        elif not process.exit.lost and process.exit.signal not in (_KILLED, _TERMINATED):
            self.say(f"paid twice: {event.task}/{event.attempt} had ended by itself and was thrown away")

    def author(self, task: str) -> Process | None:
        """The agent whose answer the current attempt of a task uses; it may have been started by an earlier one."""
        return self.by_log.get(self.tasks[task].log)

    # --- processes ------------------------------------------------------------------------------------------------

    def started(self, process: Process) -> None:
        match process.launch.argv:
            case (program, *_) if program == CHECK:
                self._check_started(process)
            case (program, *_) if program == HEALER:
                self._healer_started(process)
            case (_, task, attempt, *_):
                self._worker_started(process, task, int(attempt))

    def _worker_started(self, process: Process, task: str, attempt: int) -> None:
        known = self.tasks.get(task)
        if known is None or not known.open or known.attempt != attempt:
            self.say(f"unrecorded start: {task}/{attempt} runs without a recorded claim")
            return
        self.starts[task, attempt] = self.starts.get((task, attempt), 0) + 1
        if self.starts[task, attempt] > 1:
            self.say(f"paid twice: {task}/{attempt} was started again")
        for (other, number), running in self.workers.items():
            if other == task and running.alive:
                self.say(f"two live attempts: {task}/{attempt} beside {task}/{number}")
        waits = [need for need in known.needs if self.tasks[need].status is not TaskStatus.DONE]
        if waits:
            self.say(f"dependency: {task}/{attempt} starts although {', '.join(waits)} is not DONE")
        if known.canary and not self._may_go(known):
            self.say(f"canary: {task}/{attempt} starts although its canary {known.canary} has not passed")
        self.workers[task, attempt] = process
        self.by_log["/".join(process.launch.log_path.parts[-2:])] = process

    def _may_go(self, held: Known) -> bool:
        """A canary that was blocked could not tell; one given up is followed by another only after another round."""
        canary = self.tasks[held.canary].status
        followed = canary in _GIVEN_UP and self.rounds_ended > held.held_after
        return canary in (TaskStatus.DONE, TaskStatus.BLOCKED) or followed

    def _healer_started(self, process: Process) -> None:
        if not self.round_open:
            self.say(f"unrecorded start: the healer {process.launch.key} runs without a recorded round")
        if any(other.alive for other in self.healers):
            self.say("two healers run at once")
        if any(worker.alive for worker in self.workers.values()):
            self.say("a healer runs beside workers")
        self.healers.append(process)

    def _check_started(self, process: Process) -> None:
        task, attempt = checked_task(process.launch), checked_attempt(process.launch.key)
        known = self.tasks.get(task)
        if known is None or not known.open or known.attempt != attempt:
            self.say(f"unrecorded start: a check of {task}/{attempt} without a recorded claim")
        worker = self.author(task)
        if worker is None or worker.alive:
            self.say(f"early check: {task}/{attempt} is checked before its agent has ended")
        self.checking[process.number] = ((task, attempt), process.ending.code == 0)

    def ended(self, process: Process) -> None:
        ended = process.exit
        if ended is None or process.launch.argv[0] == HEALER:
            return
        if process.launch.argv[0] == CHECK:
            attempt, good = self.checking[process.number]
            if good and ended.code == 0 and not ended.timed_out:
                self.passed.add(attempt)
            return
        task, number = process.launch.argv[1], int(process.launch.argv[2])
        if task in self.sentenced and not process.ending.idle:
            self.say(f"ended at work: {task}/{number} used the processor until it was ended as {self.sentenced[task]}")
        killed = ended.signal == _KILLED and not ended.lost
        if killed and self.tasks[task].open and self.tasks[task].attempt == number and not self.stop_asked:
            self.say(f"paid twice: {task}/{number} was killed although its answer counts")

    # --- files ----------------------------------------------------------------------------------------------------

    def applies(self, backup: str) -> None:
        if backup not in self.intents:
            self.say(f"unrecorded write: {backup} is applied without a recorded intent")

    def live(self) -> list[Attempt]:
        return [attempt for attempt, process in self.workers.items() if process.alive]
