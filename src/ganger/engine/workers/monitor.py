"""Monitors every worker: gathers signs, asks `core.scheduling.health` what they mean, and acts on its verdict."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import replace

from ganger.contracts.parser import Parsed, parse_result
from ganger.core import events as ev
from ganger.core.model.run_state import RunState
from ganger.core.model.workers import Checkpoint
from ganger.core.scheduling.health import Act, HealthPolicy, Signs, What, last_sign, look
from ganger.core.signs import context_pct
from ganger.core.state.apply_delivery import rules_of
from ganger.core.times import stamp
from ganger.core.vocabulary import AttemptStep, WorkerVerdict
from ganger.engine.attempt_outcome import speaks_for_itself
from ganger.engine.resources.live_attempts import LiveAttempt, LiveAttempts
from ganger.engine.resources.run_resources import RunResources, one_line
from ganger.engine.stop_guard import StopGuard
from ganger.engine.workers.protocol import TOLD_AT_MOST_EVERY_SEC, gone
from ganger.ports.processes import Facts

# A tenth of one processor is work; less means a waiting program.
_WORKS_SHARE = 0.1


def is_at_work(before: Facts, now: Facts, between_sec: float) -> bool:
    """On a busy machine a process gets little processor time; time in the run queue tells it from an idle one."""
    used = max(0.0, now.cpu_sec - before.cpu_sec)
    lined_up = sum(max(0.0, sec - before.lined_up.get(pid, 0.0)) for pid, sec in now.lined_up.items())
    return between_sec > 0 and used + lined_up >= _WORKS_SHARE * between_sec


_LOOK_AT_PROCESSES_AFTER_SEC = 2.0
_SHORTEST_SEC = 0.02
# How many folders are examined in one round; the others have their turn in the next rounds.
_MOST_EYES = 8


class WorkerMonitor:
    def __init__(self, tools: RunResources, gate: StopGuard, posts: LiveAttempts, health: HealthPolicy) -> None:
        self._tools, self._gate, self._posts, self._health = tools, gate, posts, health
        self._state: RunState = tools.journal.state
        self._changed = asyncio.Event()
        posts.on_change = self._changed.set

    async def run(self) -> None:
        while True:
            due = await self.look()
            self._changed.clear()
            if not self._posts:
                await self._changed.wait()
            # New workers have their first look in the next common round: many short attempts cost no look each.
            pace = self._tools.look_every_sec
            await asyncio.sleep(max(_SHORTEST_SEC, min(pace, due - self._tools.clock.monotonic())))

    async def look(self) -> float:
        """One round; returns when the next is due at the latest."""
        posts = [post for post in self._posts if self._is_current(post) and not post.ending]
        await self._open_eyes(posts)
        due = float("inf")
        for post in posts:
            if post.ending or not self._is_current(post):
                continue
            signs = await self._signs(post)
            found = look(self._health_of(post), signs, post.watch)
            post.watch = found.watch
            due = min(due, found.again_at)
            for act in found.acts:
                await self._act(post, signs, act)
            self._keep_stand(post, signs)
            self._say_unsaid(post, signs)
        return due

    def _health_of(self, post: LiveAttempt) -> HealthPolicy:
        """D14: a fix of what CI found has a time of its own."""
        delivery = self._state.tasks[post.task].delivery
        if delivery is None or not delivery.fixing:
            return self._health
        rules = rules_of(self._state, post.task)
        return replace(self._health, working_sec=rules.fix_sec, working_warn_sec=rules.warns_of_fix_sec)

    def _is_current(self, post: LiveAttempt) -> bool:
        return (
            self._tools.journal.is_open(post.task, post.fence)
            and self._state.tasks[post.task].attempt.step == AttemptStep.AGENT
        )

    # --- what is seen -----------------------------------------------------------------------------------------------

    async def _open_eyes(self, posts: list[LiveAttempt]) -> None:
        """Folders are examined in a thread, and only for workers without any other sign."""
        now = self._tools.clock.monotonic()
        quiet = [
            post
            for post in posts
            if post.eye is not None and (now - _heard_at(post) >= self._eye_pace or self._is_unchanged(post, now))
        ]
        if not quiet:
            return
        quiet = sorted(quiet, key=lambda post: post.eye_at)[:_MOST_EYES]

        def look_around() -> None:
            for post in quiet:
                post.eye_at = now
                if post.eye is not None:
                    post.files_at = max(post.files_at, post.eye.look(now))

        await asyncio.to_thread(look_around)

    def _is_unchanged(self, post: LiveAttempt, now: float) -> bool:
        """Before a warning says that no file was changed, the folder is examined."""
        return post.files_at <= post.began_at and now - post.began_at >= self._health.no_change_sec / 2

    @property
    def _eye_pace(self) -> float:
        return min(_LOOK_AT_PROCESSES_AFTER_SEC, self._health.stall_sec / 10, self._health.lease_sec / 10)

    async def _signs(self, post: LiveAttempt) -> Signs:
        now, ear = self._tools.clock.monotonic(), post.ear
        if ear is not None and not post.followed:
            ear.look()
        task = self._state.tasks[post.task]
        worker = task.worker
        heard = ear.heard if ear is not None else None
        tool = next(iter(reversed(heard.running.values())), None) if heard is not None else None
        full = context_pct(heard, post.window_tokens) if heard is not None else 0.0
        told = worker.context_pct if worker is not None and worker.context_pct else 0.0
        signs = Signs(
            now=now,
            began_at=post.began_at,
            output_at=ear.grew_at if ear is not None else 0.0,
            event_at=ear.event_at if ear is not None else 0.0,
            files_at=post.files_at,
            beat_at=post.beat_at,
            beats=post.beats,
            pulled=post.pulled,
            tool=one_line(f"{tool.name} {tool.about}", 120) if tool is not None else "",
            said_all=post.said_all or (heard is not None and heard.over is not None),
            marked=worker is not None and worker.done and not post.marked_since,
            reported=worker is not None and bool(worker.report),
            errors_in_a_row=heard.errors_in_a_row if heard is not None else 0,
            time_limit_sec=post.time_limit_sec,
            context_pct=max(full, told),
        )
        self._look_at_processes(post, signs)
        signs = replace(signs, cpu_at=post.cpu_at, stopped=post.stopped)
        if not signs.said_all and not signs.reported and not post.pulled and await self._has_answered(post, signs):
            post.said_all = True
            signs = replace(signs, said_all=True)
        if ear is not None and now - last_sign(signs) >= self._health.stall_sec / 2:
            signs = replace(signs, asks=ear.asks())
        return signs

    def _look_at_processes(self, post: LiveAttempt, signs: Signs) -> None:
        if post.running is None or signs.now - last_sign(signs) < min(
            _LOOK_AT_PROCESSES_AFTER_SEC, self._health.stall_sec / 10
        ):
            return
        facts = self._gate.facts(post.running)
        if facts is None:
            return
        post.stopped = facts.stopped
        if post.facts is not None and is_at_work(post.facts, facts, signs.now - post.facts_at):
            post.cpu_at = signs.now
        post.facts, post.facts_at = facts, signs.now

    async def _has_answered(self, post: LiveAttempt, signs: Signs) -> bool:
        """Whether its output ends with a complete answer; checked once each time it has fallen silent."""
        quiet = min(self._health.linger_sec, self._health.stall_sec / 4)
        if post.ear is None or signs.now - signs.output_at < quiet or post.judged_at >= signs.output_at > 0:
            return False
        if not signs.output_at:
            return False
        post.judged_at = signs.now
        agent = self._tools.agent_of(self._state.specs[post.task], self._state.tasks[post.task], self._state.policy)
        if agent.capabilities.stream:
            return False
        try:
            found = await asyncio.to_thread(parse_result, self._tools.folder.path / post.key, task_id=post.task)
        except OSError:
            return False
        return isinstance(found, Parsed)

    # --- what is done -----------------------------------------------------------------------------------------------

    async def _act(self, post: LiveAttempt, signs: Signs, act: Act) -> None:
        task, number = post.task, post.attempt
        match act.what:
            case What.WARN:
                self._mention(post, ev.LimitWarned(task, number, act.limit, act.why))
            case What.PROBE:
                how = "asked over the protocol" if post.beats or post.pulled else "looked at its processes"
                self._mention(post, ev.WorkerSuspected(task, number, act.why, how))
                self._tell(post, "probe", "Are you still at work on this task? Any word is an answer.")
            case What.CLEAR:
                self._mention(post, ev.WorkerCleared(task, number, act.why))
            case What.EXTEND:
                until = round(self._tools.clock.now() + act.until - signs.now, 3)
                self._mention(post, ev.LimitExtended(task, number, act.limit, until, act.why))
            case What.ASK_SHUTDOWN:
                self._tell(post, "shutdown", "Your answer was received. End now.")
            case What.ASK_CHECKPOINT:
                self._mention(post, ev.LimitWarned(task, number, "context", act.why))
                self._tell(post, "checkpoint", f"Save your state and end: ganger worker checkpoint ({act.why})")
            case What.SETTLE:
                await self._settle(post, signs)
            case What.STALLED if signs.now < post.spared_until:
                pass
            case What.STALLED | What.LINGERING | What.CONTEXT:
                crashed = act.what is What.STALLED and post.marked_since
                await self.end(post, WorkerVerdict.CRASHED if crashed else WorkerVerdict(act.what), act.why)

    async def end(self, post: LiveAttempt, verdict: WorkerVerdict, why: str) -> None:
        """The intent is durable before the process tree is ended."""
        if post.ending or not self._tools.journal.is_open(post.task, post.fence):
            return
        post.ending = True
        await self._tools.journal.report(post.task, post.fence, ev.WorkerEnding(post.task, post.attempt, verdict, why))
        await self._end_tree(post)

    async def carry_out(self, ending: ev.WorkerEnding) -> None:
        """Someone else decided and recorded it."""
        post = self._posts.get(ending.task)
        if post is not None and post.attempt == ending.attempt and not post.ending:
            post.ending = True
            await self._end_tree(post)

    async def can_prolong(self, given: ev.LimitExtended) -> bool:
        """Tells its keeper to move the worker's time limit; if asked twice, it is moved once."""
        post = self._posts.get(given.task)
        if post is None or post.attempt != given.attempt or post.pulled or post.time_limit_sec is None:
            return True
        left = given.until - self._tools.clock.now()
        return await self._gate.extend(str(self._tools.folder.path / post.key), left)

    async def prolong(self, given: ev.LimitExtended) -> None:
        """A person gives it more time."""
        post = self._posts.get(given.task)
        if post is None or post.attempt != given.attempt:
            return
        left = given.until - self._tools.clock.now()
        post.spared_until = self._tools.clock.monotonic() + left
        post.watch = replace(post.watch, working_until=post.spared_until)
        if post.pulled and post.limit_at is not None:
            post.limit_at = max(post.limit_at, post.spared_until)
            self._posts.on_change()

    async def _end_tree(self, post: LiveAttempt) -> None:
        if post.pulled:
            post.finish(gone())
        else:
            await self._gate.end(str(self._tools.folder.path / post.key))

    async def _settle(self, post: LiveAttempt, signs: Signs) -> None:
        """H06: a done mark and no report. Its checkpoint counts as one, else it is asked, else it has crashed."""
        task = self._state.tasks[post.task]
        answered = False
        if not post.pulled:
            log = self._tools.folder.path / post.key
            with contextlib.suppress(OSError):
                answered = isinstance(await asyncio.to_thread(parse_result, log, task_id=post.task), Parsed)
        if answered or speaks_for_itself(task):
            await self.end(post, WorkerVerdict.LOST_MESSAGE, "it set its done mark, and its report never came")
            return
        post.marked_since = signs.now
        why = "it set its done mark, but there is neither a report nor a checkpoint that says all is done"
        self._mention(post, ev.WorkerSuspected(post.task, post.attempt, why, "asked over the protocol"))
        self._tell(post, "probe", "You set your done mark but your report is missing: ganger worker report")
        post.beats = max(post.beats, 3)
        post.beat_at = signs.now

    def _keep_stand(self, post: LiveAttempt, signs: Signs) -> None:
        """D18: every few minutes, and at each milestone, what can be seen from outside is stored as a checkpoint."""
        due = signs.now - max(post.checkpoint_at, post.began_at) >= self._health.checkpoint_sec
        if not due and not post.stand_due:
            return
        post.checkpoint_at, post.stand_due = signs.now, False
        task = self._state.tasks[post.task]
        worker = task.worker
        stand = Checkpoint(
            post.attempt,
            stamp(self._tools.clock.now()),
            "ganger",
            summary=worker.milestone if worker is not None else "",
            last_action=task.agent.activity or signs.tool or (worker.step if worker is not None else ""),
            percent=worker.percent if worker is not None else None,
            context_pct=round(signs.context_pct, 1) or None,
        )
        self._mention(post, ev.CheckpointTaken(post.task, post.attempt, "", stand))

    def _say_unsaid(self, post: LiveAttempt, signs: Signs) -> None:
        """The newest of many heartbeats is shown, from time to time."""
        if post.unsaid is not None and signs.now - post.told_at >= TOLD_AT_MOST_EVERY_SEC:
            beat, post.unsaid, post.told_at = post.unsaid, None, signs.now
            self._mention(post, beat)

    def _mention(self, post: LiveAttempt, event: ev.Event) -> None:
        if self._tools.journal.is_open(post.task, post.fence):
            self._tools.journal.mention(post.task, post.fence, event)

    def _tell(self, post: LiveAttempt, kind: str, text: str) -> None:
        if self._tools.journal.is_open(post.task, post.fence):
            self._tools.journal.mention("", "", ev.MessageLeft(post.task, post.attempt, kind, text))


def _heard_at(post: LiveAttempt) -> float:
    ear = post.ear
    return max(post.began_at, post.beat_at, ear.grew_at if ear is not None else 0.0)
