"""The lead's side of the worker protocol: every request, over any transport, is authenticated, checked and answered.

A request is answered with 200 only after its content is durable. A request that arrives twice counts once; a request of
a finished attempt changes nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import itertools
import json
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any
from weakref import WeakValueDictionary

from ganger.contracts import worker as words
from ganger.contracts.faults import examine
from ganger.contracts.parser import Parsed, Refused, parse_result
from ganger.contracts.task_result import TaskResult
from ganger.core import events as ev
from ganger.core.model.task_state import TaskState
from ganger.core.model.workers import Checkpoint, TierMark
from ganger.core.names import report_file
from ganger.core.scheduling.health import HealthPolicy
from ganger.core.times import stamp
from ganger.core.vocabulary import AttemptStep, TaskStatus, WorkerVerdict
from ganger.engine.resources.live_attempts import LiveAttempt, LiveAttempts
from ganger.engine.resources.run_resources import RunResources, one_line
from ganger.engine.resources.worker_tokens import Badge, WorkerTokens
from ganger.engine.workers.briefs import section_of, sections
from ganger.engine.workers.file_inbox import told
from ganger.errors import GangerError, StaleToken
from ganger.local.run_folder import replace_file
from ganger.ports.endpoint import Reply, WorkerCall
from ganger.ports.processes import Exit

_TOLD_EVERY_SEC = 60.0
TOLD_AT_MOST_EVERY_SEC = 5.0
_MOST_KEPT = 2_000
_MOST_QUESTIONS = 20
_MOST_FAULTS = 5
_NO_LIMIT = frozenset({"report", "done"})
_Next = Callable[[words.Next], Awaitable[Reply]]


class WorkerRefusal(Exception):
    """Why a request is refused."""

    def __init__(self, status: int, code: str, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.reply = Reply(status, {"ok": False, "code": code, "message": message, "hint": hint})


class WorkerProtocol:
    def __init__(
        self, tools: RunResources, badges: WorkerTokens, posts: LiveAttempts, health: HealthPolicy, next_: _Next
    ) -> None:
        self._tools, self._badges, self._posts, self._health = tools, badges, posts, health
        self._journal, self._state = tools.journal, tools.journal.state
        self._next = next_
        self._by_fence = {task.attempt.token: name for name, task in self._state.tasks.items() if task.attempt.token}
        self._under_way: dict[tuple[str, str], asyncio.Future[Reply]] = {}
        self._reporting: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._kept: dict[str, int] = {}
        self._numbers = itertools.count()
        tools.journal.listeners.append(self._on_event)

    def _on_event(self, recorded: ev.Recorded) -> None:
        if isinstance(recorded.event, ev.AttemptStarted):
            self._by_fence[recorded.event.token] = recorded.event.task

    async def handle(self, request: WorkerCall) -> Reply:
        """Never raises for what a worker says; an error of the journal is raised, and nothing is acknowledged."""
        try:
            badge = self._badges.read(request.token)
            if badge is None:
                raise WorkerRefusal(401, "WORKER_UNKNOWN", "unknown token", "use GANGER_TOKEN as it was given")
            said = self._understood(request)
            if isinstance(said, words.Next) or badge.joins:
                return await self._ask(badge, said)
            return await self._once(request.verb, badge.fence, said)
        except WorkerRefusal as refusal:
            return refusal.reply
        except StaleToken:
            return _over().reply

    def _understood(self, request: WorkerCall) -> words.Said:
        model = words.VERBS.get(request.verb)
        if model is None:
            raise WorkerRefusal(
                404, "NO_VERB", f"there is no {request.verb[:60]!r}", f"known are {', '.join(words.VERBS)}"
            )
        said, faults = examine(model, request.body)
        if said is None:
            named = "; ".join(f"{fault.path or '/'}: {fault.message}" for fault in faults[:_MOST_FAULTS])
            raise WorkerRefusal(400, "BAD_REQUEST", f"{request.verb}: {named}", "ganger schema worker shows every form")
        return said

    async def _ask(self, badge: Badge, said: words.Said) -> Reply:
        if not badge.joins:
            raise WorkerRefusal(403, "NOT_ALLOWED", "this token is only valid for its own attempt", "report, then end")
        if not isinstance(said, words.Next):
            raise WorkerRefusal(
                403, "NOT_ALLOWED", "this token only asks for tasks", "use the token that came with the task"
            )
        return await self._next(said)

    async def _once(self, verb: str, fence: str, said: words.Said) -> Reply:
        """Two requests of one name at the same time are one."""
        name = self._by_fence.get(fence, "")
        task = self._state.tasks.get(name)
        if task is None:
            raise _over()
        if said.task_id is not None and said.task_id != name:
            raise WorkerRefusal(403, "WRONG_TASK", "this token belongs to another task", "name your own, or none")
        if said.id and task.attempt.token == fence and task.worker is not None and said.id in task.worker.seen:
            return self._taken(task, **({"question": task.worker.escalated} if verb == "escalate" else {}))
        if task.attempt.token != fence or task.status is not TaskStatus.RUNNING:
            raise _over()
        if verb not in words.KEPT:
            return await self._take(verb, name, fence, said)
        place = (fence, said.id or f"nameless-{next(self._numbers)}")
        if place not in self._under_way:
            self._under_way[place] = asyncio.ensure_future(self._take(verb, name, fence, said))
            self._under_way[place].add_done_callback(lambda _: self._under_way.pop(place, None))
        return await asyncio.shield(self._under_way[place])

    async def close(self, post: LiveAttempt) -> None:
        """Takes what is in progress of a worker that has ended; after that its messages come too late."""
        while ends := [reply for (fence, _), reply in self._under_way.items() if fence == post.fence]:
            await asyncio.wait(ends)
        post.closed = True

    async def _take(self, verb: str, name: str, fence: str, said: words.Said) -> Reply:
        try:
            post, now = self._posts.get(name), self._tools.clock.monotonic()
            if post is not None and post.fence == fence:
                if verb == "heartbeat":
                    post.beat(now, self._health.heartbeat_sec)
                else:
                    post.spoke(now)
            if verb in words.KEPT and verb not in _NO_LIMIT:
                self._count(fence)
            return await self._verbs[verb](self, name, fence, said)
        except WorkerRefusal as refusal:
            return refusal.reply

    def _count(self, fence: str) -> None:
        """An attempt can fill neither the disk nor the operator's time."""
        self._kept[fence] = self._kept.get(fence, 0) + 1
        if self._kept[fence] > _MOST_KEPT:
            raise WorkerRefusal(
                403,
                "SAID_ENOUGH",
                f"this attempt has said {_MOST_KEPT} things worth keeping",
                "report, then end",
            )

    def _taken(self, task: TaskState, **more: object) -> Reply:
        told = task.worker.messages if task.worker is not None else ()
        latest = told[-1].number if told else 0
        return Reply(200, {"ok": True, "messages": len(told), "latest": latest, **more})

    def _record(self, name: str, fence: str, *events: ev.Event) -> Awaitable[None]:
        """Checked without an await in between: nothing of an attempt that is about to end reaches the store."""
        post = self._posts.get(name)
        late = post is not None and post.fence == fence and post.closed
        if (late and not isinstance(events[0], ev.WorkerDone)) or not self._journal.is_open(name, fence):
            raise _over()
        return self._journal.report(name, fence, *events)

    # --- verbs ------------------------------------------------------------------------------------------------------

    async def _heartbeat(self, name: str, fence: str, said: words.Heartbeat) -> Reply:
        """One of many: recorded when it says something new, and from time to time."""
        task, post = self._state.tasks[name], self._posts.get(name)
        beat = ev.WorkerBeat(
            name, task.attempts, step=_line(said.step), percent=said.percent, note=_line(said.note, 500),
            context_pct=said.context_pct,
        )  # fmt: skip
        worker, now = task.worker, self._tools.clock.monotonic()
        known = (
            worker is not None
            and worker.beat_at
            and (worker.step, worker.percent)
            == (
                beat.step or worker.step,
                beat.percent if beat.percent is not None else worker.percent,
            )
        )
        quiet = now - post.told_at if post is not None and post.told_at else _TOLD_EVERY_SEC
        if quiet >= (_TOLD_EVERY_SEC if known else TOLD_AT_MOST_EVERY_SEC):
            if post is not None:
                post.told_at, post.unsaid = now, None
            if self._journal.is_open(name, fence):
                self._journal.mention(name, fence, beat)
        elif not known and post is not None:
            post.unsaid = beat
        return self._taken(task)

    async def _progress(self, name: str, fence: str, said: words.Progress) -> Reply:
        task = self._state.tasks[name]
        tiers = tuple(TierMark(t.tier, _line(t.name), t.success, t.retry) for t in said.tiers)
        note = _line(said.note, 500)
        if said.tasks_total is not None:
            note = f"{said.tasks_completed or 0} of {said.tasks_total} parts; {note}".removesuffix("; ")
        event = ev.WorkerBeat(
            name, task.attempts, said.id, _line(said.step), said.percent, note, tiers, said.context_pct
        )
        await self._record(name, fence, event)
        return self._taken(self._state.tasks[name])

    async def _milestone(self, name: str, fence: str, said: words.Milestone) -> Reply:
        number = self._state.tasks[name].attempts
        event = ev.WorkerMilestone(name, number, said.id, _line(said.name), _line(said.note, 500))
        await self._record(name, fence, event)
        post = self._posts.get(name)
        if post is not None:
            post.stand_due = True
        return self._taken(self._state.tasks[name])

    async def _checkpoint(self, name: str, fence: str, said: words.Checkpoint) -> Reply:
        """A session leaves by saving its state: a session that has left is not waited for."""
        task = self._state.tasks[name]
        number, leaves = task.attempts, said.leave and task.worker is not None and task.worker.pulled
        left = [ev.WorkerEnding(name, number, WorkerVerdict.CONTEXT, "it saved its state and left")] if leaves else []
        await self._record(name, fence, ev.CheckpointTaken(name, number, said.id, self._stand(number, said)), *left)
        post = self._posts.get(name)
        if leaves and post is not None and post.fence == fence:
            post.finish(gone())
        return self._taken(self._state.tasks[name])

    def _stand(self, attempt: int, said: words.Checkpoint) -> Checkpoint:
        def lines(texts: tuple[str, ...]) -> tuple[str, ...]:
            return tuple(_line(text, 500) for text in texts)

        return Checkpoint(
            attempt, stamp(self._tools.clock.now()), "worker", _line(said.summary, 4000), lines(said.done),
            lines(said.remaining), _line(said.last_action, 500), _line(said.next_action, 500), lines(said.files),
            lines(said.blockers), lines(said.decisions), lines(said.commits), said.percent, said.context_pct,
        )  # fmt: skip

    async def _escalate(self, name: str, fence: str, said: words.Escalate) -> Reply:
        text = self._tools.masked(_line(said.message, 2000))
        asked = [q for q in self._state.inbox.questions.values() if q.task == name and q.answer is None]
        again = next((q for q in asked if (q.kind, q.text) == (said.category, text)), None)
        if again is not None:
            return self._taken(self._state.tasks[name], question=again.id)
        if len(asked) >= _MOST_QUESTIONS:
            raise WorkerRefusal(403, "SAID_ENOUGH", f"{name} has {len(asked)} open questions", "wait for the answers")
        context = said.context if isinstance(said.context, str) else json.dumps(said.context, ensure_ascii=False)
        due = self._tools.clock.now() + said.deadline_sec if said.deadline_sec and said.default else 0.0
        number = self._state.tasks[name].attempts
        question = ev.QuestionAsked(
            "", name, said.category, text, number, said.id or f"asked-{time.time_ns()}",
            _lines(context if said.context is not None else ""), tuple(_line(o) for o in said.options),
            _line(said.default, 2000), round(due, 3),
        )  # fmt: skip
        await self._record(name, fence, question)
        task = self._state.tasks[name]
        return self._taken(task, question=task.worker.escalated if task.worker is not None else "")

    async def _report(self, name: str, fence: str, said: words.Report) -> Reply:
        """Of several at once the first counts."""
        turn = self._reporting.setdefault(fence, asyncio.Lock())
        async with turn:
            return await self._take_report(name, fence, said)

    async def _take_report(self, name: str, fence: str, said: words.Report) -> Reply:
        """The answer is judged at once: one that breaks its contract is refused, and can be fixed without a retry."""
        task = self._state.tasks[name]
        if task.worker is not None and task.worker.report:
            raise WorkerRefusal(409, "ALREADY_REPORTED", "this attempt has given its answer already", "end now")
        if task.attempt.step != AttemptStep.AGENT:
            raise _over()
        # Parsing a large one takes long, and others are served meanwhile.
        block, parsed = await asyncio.to_thread(_judged, said.result, name)
        if isinstance(parsed, Refused):
            raise WorkerRefusal(400, parsed.code, parsed.message, "fix the result and report it again")
        pulled = task.worker is not None and task.worker.pulled
        file = task.attempt.log if pulled else report_file(name, task.attempts)
        place = self._tools.folder.path / file
        place.parent.mkdir(mode=0o700, exist_ok=True)
        await asyncio.to_thread(replace_file, place, block)
        value = parsed.value
        digest = hashlib.sha256(block.encode("utf-8", "replace")).hexdigest()
        summary = one_line(value.summary)
        await self._record(
            name,
            fence,
            ev.WorkerReported(
                name, task.attempts, said.id or f"report-{digest[:16]}", value.status, summary, file, digest
            ),
        )
        post = self._posts.get(name)
        if post is not None and post.pulled and post.fence == fence:
            post.finish(gone())
        return self._taken(self._state.tasks[name], accepted=True)

    async def _done(self, name: str, fence: str, said: words.Done) -> Reply:
        task = self._state.tasks[name]
        if task.worker is None or not task.worker.done:
            await self._record(name, fence, ev.WorkerDone(name, task.attempts, said.id))
        self._posts.on_change()
        return self._taken(self._state.tasks[name])

    async def _brief(self, name: str, _fence: str, said: words.Brief) -> Reply:
        known = sections(self._tools, name)
        if not said.section:
            return self._taken(self._state.tasks[name], section="", text="", sections=known)
        if said.section not in known:
            raise WorkerRefusal(
                404, "NO_SECTION", f"there is no section {said.section!r}", f"known are {', '.join(known)}"
            )
        try:
            text = section_of(self._tools, name, said.section)
        except GangerError as error:
            raise WorkerRefusal(404, "NO_SECTION", error.message, error.hint) from error
        return self._taken(self._state.tasks[name], section=said.section, text=text, sections=known)

    async def _messages(self, name: str, fence: str, said: words.Messages) -> Reply:
        until = self._tools.clock.monotonic() + said.wait_sec
        while True:
            task = self._state.tasks[name]
            if task.attempt.token != fence or task.worker is None:
                raise _over()
            new = [m for m in task.worker.messages if m.number > said.since]
            left = until - self._tools.clock.monotonic()
            if new or left <= 0:
                return self._taken(task, messages=told(new))
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(left):
                    await self._journal.changed()

    _verbs: Mapping[str, Callable[[WorkerProtocol, str, str, Any], Awaitable[Reply]]] = {
        "heartbeat": _heartbeat,
        "progress": _progress,
        "milestone": _milestone,
        "checkpoint": _checkpoint,
        "escalate": _escalate,
        "report": _report,
        "done": _done,
        "brief": _brief,
        "messages": _messages,
    }


def gone() -> Exit:
    """How a worker ends that is not Ganger's child process."""
    return Exit(0, None, False, 0.0, True, "")


def _judged(result: Mapping[str, object], name: str) -> tuple[str, Parsed[TaskResult] | Refused]:
    text = json.dumps(result, ensure_ascii=False, indent=1)
    block = f"<<<TASK_RESULT_V2>>>\n{text}\n<<<END_TASK_RESULT_V2>>>\n"
    return block, parse_result(block.encode("utf-8", "replace"), task_id=name)


def _over() -> WorkerRefusal:
    hint = "nothing was changed; end, or ask for another task: ganger worker next"
    return WorkerRefusal(409, "ATTEMPT_OVER", "this attempt is over", hint)


def _line(text: str, longest: int = 200) -> str:
    return one_line(text, longest)


def _lines(text: str) -> str:
    """Several lines for a person, without anything that controls a terminal."""
    return "".join(c if c.isprintable() or c == "\n" else " " for c in text)[:20_000]
