"""What must hold of any run, finished or interrupted, whoever drove it: one judge for every harness and simulation.

It keeps its own account of the events, so that a mistake in `transitions` does not excuse itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from checker.ledger_invariants import LedgerWalk
from checker.outside import Attempt as Attempt, Seen as Seen, state_file, told
from ganger.core import events as ev
from ganger.core.failures.retries import allowed_attempts
from ganger.core.model.ledger import BY_GANGER
from ganger.core.model.records import Policy, TaskSpec
from ganger.core.model.run_state import RunState
from ganger.core.state.apply import apply
from ganger.core.vocabulary import RunStatus, TaskStatus

HEALER = ""
_PAID_APART = {
    "contract_error": "format_retries",
    "crash": "respawns",
    "transient_infra": "transient_retries",
    "merge_conflict": "merge_retries",
    "no_change": "no_change_retries",
    "stalled": "stalls",
}
_ROUNDING = 1e-6


def broken(events: Sequence[ev.Recorded], seen: Seen) -> list[str]:
    """Every rule that does not hold, as a sentence that begins with the rule's name; nothing when all do."""
    walk = _Walk()
    for recorded in events:
        walk.take(recorded)
    return [
        *walk.wrong,
        *walk.at_end(),
        *_refused(walk),
        *told(events, seen),
        *_outside(walk, seen),
        *state_file(events, seen),
    ]


@dataclass(slots=True)
class _Task:
    """One task as the events alone tell it."""

    spec: TaskSpec
    status: TaskStatus = TaskStatus.PENDING
    attempts: int = 0
    granted: int = 0
    by_person: int = 0
    harvest: bool = False
    took: bool = False
    uncharged: bool = False
    reverts: bool = False
    steps: set[str] = field(default_factory=set)
    used: dict[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class _Money:
    """Spent and set aside, of the run or of one task."""

    usd: float = 0.0
    tokens: int = 0
    held: dict[Attempt, tuple[float, int]] = field(default_factory=dict)

    def with_held(self) -> tuple[float, int]:
        return self.usd + sum(h[0] for h in self.held.values()), self.tokens + sum(h[1] for h in self.held.values())


class _Walk:
    """Goes through the events once and notes what may not be."""

    def __init__(self) -> None:
        self.state = RunState()
        self.ledger = LedgerWalk()
        self.wrong: list[str] = []
        self.tasks: dict[str, _Task] = {}
        self.live: dict[str, None] = {}
        self.parked: set[str] = set()
        self.pulled: dict[str, str] = {}
        self.reported: set[str] = set()
        self.moves: dict[str, ev.HeadIntended] = {}
        self.merged: dict[str, str] = {}
        self.heads: dict[str, str] = {}
        self.begun: set[Attempt] = set()
        self.attempts = 0
        self.tokens: set[str] = set()
        self.intents: dict[Attempt, tuple[str, ...]] = {}
        self.window: frozenset[str] | None = None
        self.lineages: dict[int, int] = {}
        self.rounds: dict[int, int] = {}
        self.round_open = 0
        self.healer_calls = 0
        self.patches: set[str] = set()
        self.questions: set[str] = set()
        self.policies: list[Policy] = []
        self.money: dict[str, _Money] = {HEALER: _Money()}
        self.seq, self.fence = 0, 0
        self.ended: ev.RunFinished | None = None
        self._now: ev.Recorded | None = None

    def take(self, recorded: ev.Recorded) -> None:
        self._now = recorded
        event = recorded.event
        if recorded.seq != self.seq + 1:
            self.say("numbers", f"{recorded.seq} follows {self.seq}")
        self.seq = recorded.seq
        if self.ended is not None and not isinstance(event, ev.LeadStarted | ev.Landed):
            self.say("end", "something happened after the run had ended and before a lead took it up again")
        apply(self.state, recorded)
        check = _CHECKS.get(type(event))
        if (check is not None or isinstance(event, ev.AttemptEvent)) and not self._belongs(event):
            return
        for rule, what in self.ledger.take(event):
            self.say(rule, what)
        if check is not None:
            check(self, event)

    def say(self, rule: str, what: str) -> None:
        assert self._now is not None
        event = self._now.event
        who = "/".join(str(getattr(event, name)) for name in ("task", "attempt") if hasattr(event, name))
        self.wrong.append(f"{rule}: event {self._now.seq} {ev.type_name(event)} {who}: {what}".replace(" : ", ": "))

    def _belongs(self, event: ev.Event) -> bool:
        """No attempt without its start, and none of a task that is not there; a healer's cost belongs to its round."""
        name = getattr(event, "task", HEALER)
        if name != HEALER and name not in self.tasks:
            self.say("start", "the run has no such task")
            return False
        if isinstance(event, ev.AttemptEvent | ev.CostSettled) and (event.task, event.attempt) not in self.begun:
            self.say("start", "this attempt was never started")
            return False
        if isinstance(event, ev.AttemptEvent) and (name not in self.live or self.tasks[name].attempts != event.attempt):
            self.say("fence", f"this attempt is over; attempt {self.tasks[name].attempts} counts")
            return False
        return True

    # --- the run --------------------------------------------------------------------------------------------------

    def run_started(self, event: ev.RunStarted) -> None:
        if self.seq != 1:
            self.say("start", "a run begins with this event and no other")
        self.policies.append(event.policy)
        self.tasks = {spec.id: _Task(spec) for spec in event.tasks}

    def lead_started(self, event: ev.LeadStarted) -> None:
        if event.fence and event.fence <= self.fence:
            self.say("lead", f"fence {event.fence} is not above {self.fence}")
        self.fence, self.ended = event.fence or self.fence, None
        self.settings_changed(event)

    def settings_changed(self, event: ev.LeadStarted | ev.SettingsChanged) -> None:
        if self.policies and self.policies[-1].heal_schedule is not event.policy.heal_schedule:
            self.window = None
        self.policies.append(event.policy)

    def reconciled(self, event: ev.Reconciled) -> None:
        """Changed tasks begin anew, only their attempts go on counting."""
        known, anew = self.tasks, {*event.added, *event.changed}
        self.tasks = {}
        for spec in event.tasks:
            old = known.get(spec.id) or _Task(spec)
            self.tasks[spec.id] = _Task(spec, attempts=old.attempts) if spec.id in anew else old
            self.tasks[spec.id].spec = spec

    def window_opened(self, event: ev.WindowOpened) -> None:
        at_work = self.at_work()
        if self.window is not None or at_work:
            self.say("windows", f"opened while another was open or attempts ran: {', '.join(at_work) or 'none'}")
        self.window = frozenset(event.tasks)
        self.lineages[event.index] = event.retry_of or event.index

    def window_closed(self, _event: ev.WindowClosed) -> None:
        live = [name for name in self.at_work() if name in (self.window or ())]
        if live:
            self.say("windows", f"closed while {', '.join(live)} ran")
        self.window = None

    def run_finished(self, event: ev.RunFinished) -> None:
        self.ended = event
        if self.live:
            self.say("end", f"ended while {', '.join(self.live)} ran")
        left = [name for name, task in self.tasks.items() if task.status is not TaskStatus.DONE]
        if event.run_status is RunStatus.COMPLETED and left:
            self.say("end", f"COMPLETED although {', '.join(left)} is not DONE")
        if event.run_status is RunStatus.ABORTED and not (event.abort_reason or "").strip():
            self.say("end", "ABORTED without a reason")

    # --- one attempt ----------------------------------------------------------------------------------------------

    def attempt_started(self, event: ev.AttemptStarted) -> None:
        task = self.tasks[event.task]
        if event.task in self.live:
            self.say("two live attempts", f"attempt {task.attempts} has not ended")
        if task.status is not TaskStatus.PENDING:
            self.say("one end", f"the task was {task.status.value} and nobody queued it again")
        if event.attempt != task.attempts + 1:
            self.say("start", f"it follows attempt {task.attempts}")
        waits = [
            need
            for need in task.spec.depends_on
            if need in self.tasks and self.tasks[need].status is not TaskStatus.DONE
        ]
        if waits:
            self.say("dependencies", f"{', '.join(waits)} is not DONE")
        if self.window is not None and event.task not in self.window:
            self.say("windows", "it is not in the window that is open")
        self.new_token(event.token)
        task.attempts, task.status = event.attempt, TaskStatus.RUNNING
        # An answer that was harvested needs no process: its end was recorded with the attempt before.
        task.steps = {"attempt_exited"} if task.harvest else set()
        task.took = task.took and task.harvest
        if task.took:
            # Its change is a commit already: the answer is not read again.
            task.steps |= {"result_accepted"}
        task.harvest = False
        self.live[event.task] = None
        self.begun.add((event.task, event.attempt))
        task.uncharged = event.delivers
        if event.delivers:
            # A revert is made by no worker, and verified and merged like any change.
            task.steps = {"result_accepted"} if task.reverts else {"verify_passed", "merged"}
            self.parked.add(event.task)
        else:
            self.attempts += 1
            self.charge(task, "worker_attempts", self.most_attempts(task))
        if event.worker:
            self.given(event)
        elif len(self.live.keys() - self.parked - self.pulled.keys()) > self.state.policy.concurrency:
            self.say("concurrency", f"{len(self.live)} attempts run, {self.state.policy.concurrency} may")
        self.reserve(event.task, event.attempt, event.reserved_usd, event.reserved_tokens)

    def given(self, event: ev.AttemptStarted) -> None:
        """W03: a session that asks has one task at a time; one whose task waits to be merged has given it back."""
        held = [name for name, worker in self.pulled.items() if worker == event.worker and name not in self.reported]
        if held:
            self.say("one task", f"{event.worker} has {', '.join(held)}")
        self.pulled[event.task] = event.worker

    def reported_by_worker(self, event: ev.WorkerReported) -> None:
        self.reported.add(event.task)

    def ending(self, event: ev.WorkerEnding) -> None:
        self.reported.add(event.task)

    def at_work(self) -> list[str]:
        """Attempts their window has to wait for: a level is merged later than its windows close."""
        waits = [name for name in self.live if name not in self.parked or self.state.merging != "level"]
        return [name for name in waits if name not in self.state.index.delivering]

    def most_attempts(self, task: _Task) -> int:
        """A later, narrower policy does not forbid what an earlier one had queued."""
        return max(
            (allowed_attempts(task.spec, policy, task.granted, task.by_person) for policy in self.policies), default=0
        )

    def charge(self, task: _Task, counter: str, limit: int) -> None:
        task.used[counter] = task.used.get(counter, 0) + 1
        if task.used[counter] > limit:
            self.say("counters", f"{counter} is {task.used[counter]}, the limit is {limit}")

    def new_token(self, token: str) -> None:
        if not token or token in self.tokens:
            self.say("tokens", "its token is empty or was given before")
        self.tokens.add(token)

    def step(self, event: ev.AttemptEvent, needs: tuple[str, ...] = ()) -> None:
        """T05: an attempt's steps come in their order; `needs` are those that must have been recorded."""
        steps = self.tasks[event.task].steps
        missing = [need for need in needs if need not in steps]
        if missing:
            self.say("order", f"before {', '.join(missing)}")
        steps.add(ev.type_name(event))

    def result_accepted(self, event: ev.ResultAccepted) -> None:
        self.step(event, ("attempt_exited",))

    def result_refused(self, event: ev.ResultRefused) -> None:
        if "result_accepted" in self.tasks[event.task].steps:
            self.say("one answer", "the answer was accepted before")
        self.step(event, ("attempt_exited",))

    def writes_intended(self, event: ev.WritesIntended) -> None:
        self.step(event, ("result_accepted",))
        self.intents[event.task, event.attempt] = event.files
        self.tasks[event.task].steps -= {"writes_applied", "verify_passed"}

    def writes_applied(self, event: ev.WritesApplied) -> None:
        if (event.task, event.attempt) not in self.intents:
            self.say("writes", "files were changed without a recorded intent")
        self.step(event, ("writes_intended",))

    def rolled_back(self, event: ev.WritesRolledBack) -> None:
        if self.intents.pop((event.task, event.attempt), None) is None:
            self.say("writes", "there was nothing to put back")
        self.tasks[event.task].steps -= {"writes_intended", "writes_applied", "verify_passed"}

    def verify_started(self, event: ev.VerifyStarted) -> None:
        wrote = "writes_intended" in self.tasks[event.task].steps
        taken = self.state.mode != "direct" and not self.tasks[event.task].took
        self.step(
            event,
            ("result_accepted", *(("writes_applied",) if wrote else ()), *(("change_taken",) if taken else ())),
        )
        self.tasks[event.task].steps.discard("verify_passed")

    def verify_finished(self, event: ev.VerifyFinished) -> None:
        self.step(event, ("verify_started",))
        if event.passed:
            self.tasks[event.task].steps.add("verify_passed")

    # --- merges ---------------------------------------------------------------------------------------------------

    def change_taken(self, event: ev.ChangeTaken) -> None:
        self.step(event, ("result_accepted",))
        self.tasks[event.task].took = True

    def revert_chosen(self, event: ev.RevertChosen) -> None:
        self.tasks[event.task].reverts = event.how == BY_GANGER

    def revert_failed(self, event: ev.RevertFailed) -> None:
        self.tasks[event.task].reverts = False

    def merge_queued(self, event: ev.MergeQueued) -> None:
        self.step(event, ("verify_passed",))
        self.parked.add(event.task)

    def head_intended(self, event: ev.HeadIntended) -> None:
        repo = self.repo(event.tasks[0])
        if repo in self.moves:
            self.say("merges", "the branch was about to move already")
        known = self.heads.get(repo, event.head)
        if event.head != known:
            self.say("merges", f"it moves from {event.head[:12]}, but the last merge left {known[:12]}")
        waiting = [name for name in event.tasks if name not in self.parked]
        if waiting:
            self.say("merges", f"{', '.join(waiting)} did not wait to be merged")
        self.moves[repo] = event

    def repo(self, task: str) -> str:
        return self.tasks[task].spec.repo if task in self.tasks else ""

    def head_kept(self, event: ev.HeadKept) -> None:
        self.moves.pop(event.repo, None)

    def head_moved(self, event: ev.HeadMoved) -> None:
        self.heads[event.repo] = event.head

    def merge_done(self, event: ev.Merged) -> None:
        if not event.commit:
            self.step(event, ("verify_passed",))
            return
        repo = self.repo(event.task)
        move = self.moves.get(repo)
        if move is None or event.task not in move.tasks or event.head != move.tip:
            self.say("merges", "merged although the branch was not about to move for it")
        if event.commit in self.merged.values():
            self.say("merges", "this commit was merged before")
        self.step(event, ("merge_queued",))
        self.tasks[event.task].reverts = False
        self.merged[event.task], self.heads[repo] = event.commit, event.head
        if move is not None and event.task == move.tasks[-1]:
            del self.moves[repo]

    def attempt_failed(self, event: ev.AttemptFailed) -> None:
        task = self.tasks[event.task]
        own = _PAID_APART.get(event.failure_class, "")
        limit = max(_most(policy, own) for policy in self.policies) if own else 0
        if own and not task.reverts and event.counter != own and task.used.get(own, 0) < limit:
            self.say("counters", f"{event.failure_class} was paid by {event.counter}, and {own} are left")
        if event.counter == "worker_attempts":
            return
        task.used["worker_attempts"] -= 0 if task.uncharged else 1
        if event.counter in _PAID_APART.values():
            self.charge(task, event.counter, max(_most(policy, event.counter) for policy in self.policies))

    def interrupted(self, event: ev.AttemptInterrupted) -> None:
        task = self.tasks[event.task]
        task.used["worker_attempts"] -= 0 if task.uncharged else 1
        if event.harvest and "attempt_exited" not in task.steps:
            self.say("order", "an answer is harvested that never was")
        task.harvest = event.harvest
        self._over(event.task, TaskStatus.PENDING)
        if (event.task, event.attempt) in self.intents:
            self.say("writes", "unverified changes were neither put back nor judged")

    def checkpointed(self, event: ev.AttemptCheckpointed) -> None:
        task = self.tasks[event.task]
        task.used["worker_attempts"] -= 1
        task.harvest = False
        self._over(event.task, TaskStatus.PENDING)
        if (event.task, event.attempt) in self.intents:
            self.say("writes", "unverified changes were neither put back nor judged")

    def _over(self, name: str, status: TaskStatus) -> None:
        task = self.tasks[name]
        task.status = status
        self.live.pop(name, None)
        self.parked.discard(name)
        self.pulled.pop(name, None)
        self.reported.discard(name)
        for money in (self.money[HEALER], self.money.setdefault(name, _Money())):
            money.held.pop((name, task.attempts), None)

    def settled(self, event: ev.TaskSettled) -> None:
        task = self.tasks[event.task]
        if task.status is TaskStatus.DONE:
            self.say("one end", "the task was DONE already")
        if event.status is TaskStatus.DONE and not (event.task in self.live and "verify_passed" in task.steps):
            self.say("verified", f"DONE without passed verification of attempt {task.attempts}")
        if event.status is TaskStatus.DONE and self.state.mode != "direct" and "merged" not in task.steps:
            self.say("merges", "DONE although its change is not in the branch")
        self._over(event.task, event.status)

    def requeued(self, event: ev.TaskRequeued) -> None:
        self._over(event.task, TaskStatus.PENDING)
        if event.by_person:
            self.tasks[event.task].by_person += event.granted
            for counter in ("respawns", "transient_retries", "merge_retries", "no_change_retries", "stalls"):
                self.tasks[event.task].used.pop(counter, None)
        else:
            self.tasks[event.task].granted += event.granted

    # --- money and healing ----------------------------------------------------------------------------------------

    def reserve(self, name: str, number: int, usd: float, tokens: int) -> None:
        run, task = self.money[HEALER], self.money.setdefault(name, _Money())
        for money in (run, task) if task is not run else (run,):
            money.held[name, number] = (usd, tokens)
        budget = self.state.money.budget
        starts = self.attempts
        limits = [(run, budget.usd, budget.tokens)]
        if name != HEALER:
            limits.append((task, budget.task_usd, budget.task_tokens))
        for money, most_usd, most_tokens in limits:
            now_usd, now_tokens = money.with_held()
            if most_usd is not None and now_usd > most_usd + _ROUNDING:
                self.say("budgets", f"{now_usd:g} USD spent and set aside, {most_usd:g} allowed")
            if most_tokens is not None and now_tokens > most_tokens:
                self.say("budgets", f"{now_tokens} tokens spent and set aside, {most_tokens} allowed")
        if budget.attempts is not None and starts > budget.attempts:
            self.say("budgets", f"{starts} attempts, {budget.attempts} allowed")

    def cost_settled(self, event: ev.CostSettled) -> None:
        run, task = self.money[HEALER], self.money.setdefault(event.task, _Money())
        for money in (run, task) if task is not run else (run,):
            money.held.pop((event.task, event.attempt), None)
            money.usd += event.usd
            money.tokens += event.input_tokens + event.output_tokens

    def heal_started(self, event: ev.HealStarted) -> None:
        if event.round != sum(self.rounds.values()) + 1 or self.round_open:
            self.say("heal rounds", f"round {event.round} begins while {self.round_open or 'another'} counts")
        if self.at_work():
            self.say("heal rounds", f"healing while {', '.join(self.live)} ran")
        lineage = event.lineage or self.lineages.get(event.window, event.window)
        self.rounds[lineage] = self.rounds.get(lineage, 0) + 1
        per_window = max(policy.max_heal_rounds_per_window for policy in self.policies)
        total = max(policy.max_total_heal_rounds for policy in self.policies)
        if self.rounds[lineage] > per_window or sum(self.rounds.values()) > total:
            self.say("heal rounds", f"more than {per_window} of one window or {total} in all")
        self.round_open = event.round
        self.new_token(event.token)
        self.begun.add((HEALER, event.round))
        self.healer_calls += 1
        self.reserve(HEALER, event.round, event.reserved_usd, event.reserved_tokens)

    def heal_refused(self, event: ev.HealRefused) -> None:
        self.in_round(event.round)
        self.healer_calls += 1

    def in_round(self, number: int) -> None:
        if number != self.round_open:
            self.say("heal rounds", f"round {number} is not the one that is open")

    def patch_applied(self, event: ev.PatchApplied) -> None:
        self.in_round(event.round)
        if event.patch in self.patches:
            self.say("heal rounds", f"patch {event.patch} was applied before")
        self.patches.add(event.patch)

    def heal_finished(self, event: ev.HealFinished) -> None:
        self.in_round(event.round)
        self.round_open = 0
        self.money[HEALER].held.pop((HEALER, event.round), None)

    def asked(self, event: ev.QuestionAsked) -> None:
        if event.question in self.questions:
            self.say("questions", f"{event.question} was asked before")
        self.questions.add(event.question)

    def answered(self, event: ev.QuestionAnswered) -> None:
        if event.question not in self.questions:
            self.say("questions", f"nobody asked {event.question}")

    def at_end(self) -> list[str]:
        """Own account against the state: the two must tell the same story."""
        told = {name: task.status for name, task in self.tasks.items()}
        kept = {name: task.status for name, task in self.state.tasks.items()}
        wrong = [
            f"account: {name} is {told.get(name)} by its events and {kept.get(name)} in the state"
            for name in sorted(told.keys() | kept.keys())
            if told.get(name) is not kept.get(name)
        ]
        return wrong + self.ledger.at_end(self.state)


_CHECKS: dict[type[ev.Event], Callable[[_Walk, Any], None]] = {
    ev.RunStarted: _Walk.run_started,
    ev.LeadStarted: _Walk.lead_started,
    ev.SettingsChanged: _Walk.settings_changed,
    ev.Reconciled: _Walk.reconciled,
    ev.WindowOpened: _Walk.window_opened,
    ev.WindowClosed: _Walk.window_closed,
    ev.RunFinished: _Walk.run_finished,
    ev.AttemptStarted: _Walk.attempt_started,
    ev.AttemptLaunched: _Walk.step,
    ev.AttemptExited: _Walk.step,
    ev.ResultAccepted: _Walk.result_accepted,
    ev.ResultRefused: _Walk.result_refused,
    ev.WritesIntended: _Walk.writes_intended,
    ev.WritesApplied: _Walk.writes_applied,
    ev.WritesRolledBack: _Walk.rolled_back,
    ev.VerifyStarted: _Walk.verify_started,
    ev.VerifyFinished: _Walk.verify_finished,
    ev.ChangeTaken: _Walk.change_taken,
    ev.RevertChosen: _Walk.revert_chosen,
    ev.RevertFailed: _Walk.revert_failed,
    ev.MergeQueued: _Walk.merge_queued,
    ev.HeadIntended: _Walk.head_intended,
    ev.HeadKept: _Walk.head_kept,
    ev.HeadMoved: _Walk.head_moved,
    ev.Merged: _Walk.merge_done,
    ev.WorkerReported: _Walk.reported_by_worker,
    ev.WorkerEnding: _Walk.ending,
    ev.AttemptFailed: _Walk.attempt_failed,
    ev.AttemptInterrupted: _Walk.interrupted,
    ev.AttemptCheckpointed: _Walk.checkpointed,
    ev.TaskSettled: _Walk.settled,
    ev.TaskRequeued: _Walk.requeued,
    ev.CostSettled: _Walk.cost_settled,
    ev.HealStarted: _Walk.heal_started,
    ev.HealRefused: _Walk.heal_refused,
    ev.PatchApplied: _Walk.patch_applied,
    ev.HealFinished: _Walk.heal_finished,
    ev.QuestionAsked: _Walk.asked,
    ev.QuestionAnswered: _Walk.answered,
}


def _most(policy: Policy, counter: str) -> int:
    """How often this counter may pay: stalls pay for every restart, for another worker, and for its stall too."""
    allowed: int = policy.stall_restarts + 2 if counter == "stalls" else getattr(policy, counter)
    return allowed


def _refused(walk: _Walk) -> list[str]:
    return [f"replay: event {problem}" for problem in walk.state.log.refused]


def _outside(walk: _Walk, seen: Seen) -> list[str]:
    wrong: list[str] = []
    for (name, number), count in sorted(seen.agent_starts.items()):
        recorded = number <= walk.healer_calls if name == HEALER else (name, number) in walk.begun
        if count > recorded:
            wrong.append(
                f"agent starts: {name or 'the healer'}/{number} was started {count} times, recorded {recorded:d}"
            )
    doubled = {name for name, _ in seen.live if name and sum(1 for other, _ in seen.live if other == name) > 1}
    wrong += [f"two live attempts: several processes of {name} run" for name in sorted(doubled)]
    for name, number in seen.live:
        task = walk.tasks.get(name)
        if name != HEALER and (name, number) not in walk.begun:
            wrong.append(f"start: {name}/{number} runs and was never started")
        elif seen.finished or (task is not None and not (name in walk.live and task.attempts == number)):
            wrong.append(f"left behind: {name}/{number} still runs although it is over")
    intended = {path for files in walk.intents.values() for path in files}
    wrong += [
        f"writes: {path} changed and no intent that stands names it" for path in sorted({*seen.changed} - intended)
    ]
    if seen.finished and walk.ended is None:
        wrong.append("end: the lead ended without saying how the run stands")
    return wrong
