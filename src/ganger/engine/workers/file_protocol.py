"""The worker protocol over plain files: for messages spooled while no lead ran, and for workers that can only write
files.

A desk belongs to its worker, which is not trusted: no link in it is followed, and no more of it is read than the limit
for a desk.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ganger.core.model.run_state import RunState
from ganger.core.names import counter_folder, desk_folder
from ganger.engine.resources.live_attempts import LiveAttempt, LiveAttempts
from ganger.engine.resources.run_resources import RunResources
from ganger.engine.resources.worker_tokens import WorkerTokens
from ganger.engine.workers.file_inbox import (
    FOLDER,
    Allowance,
    InboxFile,
    Mark,
    leave_messages,
    leave_refusal,
    new_names,
    read,
    take_back_refusal,
)
from ganger.engine.workers.protocol import WorkerProtocol
from ganger.errors import GangerError
from ganger.local.atomic import put_file
from ganger.local.run_folder import named_os_errors
from ganger.ports.endpoint import Reply, WorkerCall

SPOOL, REFUSED = "spool", "refused"
_KIB, _MIB = 1024, 1024 * 1024
_LARGEST_REPORT = 9 * _MIB
# What is read from one desk in a round and, averaged, in a second; and from a desk whose worker has ended.
_MOST_AT_ONCE, _MOST_AT_THE_END = 1 * _MIB, 64 * _MIB
_MOST_SEEN = 2_000
_MOST_ASKING, _MOST_ESCALATIONS = 1_000, 50
_TRY_LATER = frozenset({503})
_OK = 200


@dataclass(slots=True)
class _Drawer:
    """How one desk is read: in turn, and at its own pace."""

    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    allowance: Allowance = field(default_factory=lambda: Allowance(_MOST_AT_ONCE))
    report_refused: bool = False
    told: int = 0


@dataclass(slots=True)
class _Round:
    """What may still be read, and how many files were."""

    left: int
    taken: int = 0

    def take(self, found: InboxFile) -> None:
        self.left -= found.cost
        self.taken += 1


@dataclass(frozen=True, slots=True)
class _New:
    """Names of files on a desk."""

    spooled: list[str]
    plain: list[str]


class DeskFiles:
    """Reads one file at a time in a thread: whatever is on a desk, the other workers are served meanwhile."""

    def __init__(self, tools: RunResources, desk: WorkerProtocol, badges: WorkerTokens, posts: LiveAttempts) -> None:
        self._tools, self._desk, self._badges, self._posts = tools, desk, badges, posts
        self._counter = tools.folder.path / counter_folder()
        self._drawers: dict[str, _Drawer] = {}
        self._asked: dict[str, Mark] = {}
        self._asking: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        with named_os_errors(self._counter):
            self._counter.mkdir(mode=0o700, exist_ok=True)
        while True:
            began = self._tools.clock.monotonic()
            await self.look()
            took = self._tools.clock.monotonic() - began
            await asyncio.sleep(max(took, self._tools.look_every_sec))

    async def look(self) -> None:
        """One round over every desk, and over the counter where sessions ask for a task."""
        here = {post.fence for post in self._posts}
        self._drawers = {fence: drawer for fence, drawer in self._drawers.items() if fence in here}
        now = self._tools.clock.monotonic()
        posts = [post for post in self._posts if not self._drawer(post).allowance.rests(now)]
        there = await asyncio.to_thread(lambda: [_new_on(post) for post in posts])
        for post, new in zip(posts, there, strict=True):
            if new is not None:
                await self._go_through(post, new, _Round(_MOST_AT_ONCE))
        for post in self._posts:
            await self._tell(post)
        await self._look_at_counter()

    async def _tell(self, post: LiveAttempt) -> None:
        """Its messages are put on its desk, for workers that cannot ask."""
        task, drawer = self._tools.journal.state.tasks[post.task], self._drawer(post)
        told = task.worker.messages if task.attempt.token == post.fence and task.worker is not None else ()
        if told and told[-1].number != drawer.told:
            left = await asyncio.to_thread(leave_messages, post.desk, told)
            drawer.told = told[-1].number if left else drawer.told

    def _drawer(self, post: LiveAttempt) -> _Drawer:
        return self._drawers.setdefault(post.fence, _Drawer())

    async def take_all(self, post: LiveAttempt) -> None:
        """Until there is no more, or more than any worker needs."""
        if is_bare(post.desk):
            return
        left = _Round(_MOST_AT_THE_END)
        while left.left > 0 and (new := await asyncio.to_thread(_new_on, post)) is not None:
            before = left.taken
            await self._go_through(post, new, left)
            if left.taken == before:
                return

    async def _go_through(self, post: LiveAttempt, new: _New, left: _Round) -> None:
        drawer, before = self._drawer(post), left.left
        async with drawer.turn:
            await self._empty_spool(post, drawer, new.spooled, left)
            await self._read_plain(post, new.plain, left)
        drawer.allowance.charge(self._tools.clock.monotonic(), before - left.left)

    async def _read_plain(self, post: LiveAttempt, names: list[str], left: _Round) -> None:
        if len(post.files_seen) > _MOST_SEEN:
            post.files_seen.clear()
        for name in names:
            if left.left <= 0:
                return
            found = await asyncio.to_thread(read, post.desk, name, limit_of(name) or 0)
            if found is None:
                continue
            left.take(found)
            post.files_seen[name] = found.mark
            replies = [
                await self._desk.handle(WorkerCall(verb, self._badges.worker(post.fence), body, "file"))
                for verb, body in _said_in(found)
            ]
            await asyncio.to_thread(_leave_word, post.desk, found, replies)

    async def _empty_spool(self, post: LiveAttempt, drawer: _Drawer, names: list[str], left: _Round) -> None:
        """In the order in which it was filled. Accepted and rejected files are removed; the others are retried."""
        for name in names:
            if left.left <= 0:
                return
            found = await asyncio.to_thread(read, post.desk / SPOOL, name, _LARGEST_REPORT)
            if found is None:
                continue
            verb = found.value.get("verb") if isinstance(found.value, dict) else ""
            # A done mark stands for a report: it must not follow one that was not accepted.
            alone = verb == "done" and drawer.report_refused
            reply = Reply(400, {}) if alone else await self._deliver(found.value)
            if reply.status in _TRY_LATER:
                return
            left.take(found)
            if verb == "report":
                drawer.report_refused = reply.status != _OK
            _put_away(post.desk, name, refused=reply.status != _OK)

    async def _deliver(self, kept: object) -> Reply:
        match kept:
            case {"verb": str(verb), "token": str(token), "body": dict(body)}:
                return await self._desk.handle(WorkerCall(verb, token, body, "spool"))
        return Reply(400, {})

    async def _look_at_counter(self) -> None:
        names = await asyncio.to_thread(new_names, self._counter, _limit_at_counter, self._asked)
        left = _Round(_MOST_AT_ONCE)
        for name in names[: _MOST_ASKING - len(self._asking)]:
            if left.left <= 0 or (found := await asyncio.to_thread(read, self._counter, name, 64 * _KIB)) is None:
                continue
            left.take(found)
            self._asked[name] = found.mark
            task = asyncio.ensure_future(self._hand_out(found))
            self._asking.add(task)
            task.add_done_callback(self._asking.discard)

    async def _hand_out(self, found: InboxFile) -> None:
        try:
            await self._answer_at_counter(found)
        except (OSError, GangerError):
            # A full disk, or something in the way: the session asks again; one that holds a task gets the same answer.
            return
        finally:
            # A request without a task is repeated at the next look, until there is one.
            self._asked.pop(found.name, None)

    async def _answer_at_counter(self, found: InboxFile) -> None:
        """A session that can only write files gets its task as a file beside its question."""
        stem = found.name.removesuffix(".json").removeprefix("next").lstrip("-") or "worker"
        asked: dict[str, Any] = dict(found.value) if isinstance(found.value, dict) else {}
        asked = {"worker": str(asked.pop("worker_id", stem)), **asked}
        answer = self._counter / f"brief-{stem}.json"
        # No task is given to a session that cannot be answered.
        await asyncio.to_thread(_check_place, answer)
        reply = await self._desk.handle(WorkerCall("next", self._badges.join, asked, "file"))
        await asyncio.to_thread(_write_private, answer, json.dumps(dict(reply.body), ensure_ascii=False))
        if isinstance(reply.body.get("task"), Mapping):
            (self._counter / found.name).unlink(missing_ok=True)


def _new_on(post: LiveAttempt) -> _New | None:
    """None: nothing. A done mark comes last: it stands for everything before it."""
    spooled = new_names(post.desk / SPOOL, _limit_in_spool, {})
    plain = sorted(new_names(post.desk, limit_of, post.files_seen), key=lambda name: _kind(name) == "done")
    return _New(spooled, plain) if spooled or plain else None


def _limit_in_spool(name: str) -> int | None:
    return _LARGEST_REPORT if name.endswith(".json") and not name.startswith(".") else None


def _limit_at_counter(name: str) -> int | None:
    return 64 * _KIB if name.startswith("next") else None


def limit_of(name: str) -> int | None:
    """How large a plain file of a desk may be; None: it is not a message."""
    return _LARGEST.get(_kind(name))


def _kind(name: str) -> str:
    if name == "done.flag" or name.endswith("-done.flag"):
        return "done"
    kind, dash, _ = name.removesuffix(".json").partition("-")
    known = name.endswith(".json") and (not dash or kind in _SEVERAL)
    return kind if known else ""


_SEVERAL = frozenset({"heartbeat", "progress", "checkpoint"})
_LARGEST: Mapping[str, int] = {
    "done": 0,
    "heartbeat": 64 * _KIB,
    "progress": 64 * _KIB,
    "escalations": 1 * _MIB,
    "checkpoint": 1 * _MIB,
    "result": _LARGEST_REPORT,
}


def _said_in(found: InboxFile) -> Iterator[tuple[str, object]]:
    """A file in one of the forms that workers write, as requests. Its digest names it: the same file counts once."""
    kind, data = _kind(found.name), found.value
    if kind == "done":
        yield "done", {"id": "file-done"}
        return
    if not isinstance(data, dict):
        return
    own = f"file-{kind}-{found.digest[:24]}"
    if kind == "result":
        yield "report", {"id": own, "result": data}
    elif kind == "escalations":
        yield from _escalations(data)
    else:
        body = {ours: data[theirs] for theirs, ours in _SHAPES[kind].items() if data.get(theirs) not in (None, "")}
        yield ("heartbeat", body) if kind == "heartbeat" else (kind, {**body, "id": own})


def _leave_word(desk: Path, found: InboxFile, replies: list[Reply]) -> None:
    """A worker that can only write files reads there why one was refused."""
    kind = _kind(found.name)
    refused = next((reply.body for reply in replies if reply.status != _OK), None)
    if kind != "done" and not isinstance(found.value, dict):
        why = f"{found.name} is not a JSON object, larger than {limit_of(found.name)} bytes, or was read half-written"
        hint = "write it under another name, then rename it to this one"
        refused = {"ok": False, "code": "BAD_REQUEST", "message": why, "hint": hint}
    if refused is None:
        take_back_refusal(desk, kind)
    else:
        leave_refusal(desk, kind, found.name, refused)


def _escalations(data: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    entries = data.get("escalations")
    open_ones = [
        entry
        for entry in (entries if isinstance(entries, list) else [])
        if isinstance(entry, dict) and entry.get("resolved") is not True
    ]
    for entry in open_ones[-_MOST_ESCALATIONS:]:
        known = ("category", "message", "context", "options", "default", "deadline_sec")
        body = {key: entry[key] for key in known if entry.get(key) is not None}
        text = json.dumps([body.get("category"), body.get("message")], sort_keys=True)
        yield "escalate", {**body, "id": f"file-escalation-{hashlib.sha256(text.encode()).hexdigest()[:24]}"}


# What the files call it, and what the protocol does.
_SHAPES: Mapping[str, Mapping[str, str]] = {
    "heartbeat": {"step": "step", "progress_pct": "percent", "percent": "percent", "note": "note"},
    "progress": {
        "current_step": "step",
        "step": "step",
        "progress_pct": "percent",
        "percent": "percent",
        "tier_results": "tiers",
        "tasks_completed": "tasks_completed",
        "tasks_total": "tasks_total",
        "note": "note",
    },
    "checkpoint": {
        **{name: name for name in ("summary", "done", "remaining", "files", "blockers", "decisions", "commits")},
        **{name: name for name in ("last_action", "next_action", "percent", "context_pct")},
        "tasksCompleted": "done",
        "tasksRemaining": "remaining",
        "lastAction": "last_action",
    },
}


def _put_away(desk: Path, name: str, *, refused: bool) -> None:
    """By folder handles: its worker may replace a folder with anything."""
    try:
        place = os.open(desk / SPOOL, FOLDER)
    except OSError:
        return
    try:
        if refused:
            try:
                other = os.open(desk / REFUSED, FOLDER)
            except OSError:
                (desk / REFUSED).mkdir(0o777)
                other = os.open(desk / REFUSED, FOLDER)
            try:
                os.rename(name, name, src_dir_fd=place, dst_dir_fd=other)
                return
            finally:
                os.close(other)
        os.unlink(name, dir_fd=place)
    except OSError:
        return
    finally:
        os.close(place)


def _check_place(path: Path) -> None:
    """Raises OSError if no such file can be written."""
    if path.is_dir():
        raise IsADirectoryError(path)
    path.with_name(f".{path.name}.tmp").write_bytes(b" ")


def _write_private(path: Path, text: str) -> None:
    put_file(path, text.encode(), synced=True)


def sweep_desks(folder: Path, state: RunState, discard: Callable[[Path], object]) -> None:
    """Removes desks of finished attempts; a lead may have died before it could, and empty ones wait for this."""
    needed = {folder / desk_folder(name, state.tasks[name].attempts) for name in state.index.running}
    with contextlib.suppress(OSError):
        for desk in sorted((folder / desk_folder("", 0)).parent.iterdir()):
            if desk not in needed:
                _remove(desk, discard)


def _remove(desk: Path, discard: Callable[[Path], object]) -> None:
    try:
        desk.rmdir()
    except OSError:
        discard(desk)


def is_bare(desk: Path) -> bool:
    """Whether its worker left nothing at all there: a quick look, however much there is."""
    try:
        place = os.open(desk, FOLDER)
    except OSError:
        return False
    try:
        with os.scandir(place) as entries:
            return next(entries, None) is None
    except OSError:
        return False
    finally:
        os.close(place)


def make_desk(desk: Path, owner: tuple[int, int] | None) -> None:
    """For the worker alone, whichever user it is in the sandbox; an earlier lead may have made it."""
    with named_os_errors(desk):
        try:
            desk.mkdir(mode=0o700, exist_ok=True)
        except FileNotFoundError:
            desk.parent.mkdir(mode=0o711, exist_ok=True)
            desk.mkdir(mode=0o700)
        if owner is not None:
            os.chown(desk, *owner, follow_symlinks=False)
