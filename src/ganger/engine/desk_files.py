"""The worker protocol over plain files: what was spooled while nobody led, and workers that can only write files.

A desk belongs to its worker, which is not trusted: nothing in it is followed, and only small regular files are read.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import os
import stat
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ganger.contracts.strict_json import JsonFault, loads
from ganger.core.names import counter_folder, desk_folder
from ganger.core.records import RunState
from ganger.engine.badges import Badges
from ganger.engine.desk import Desk
from ganger.engine.files import named_os_errors
from ganger.engine.posts import Post, Posts
from ganger.engine.tools import Tools
from ganger.ports import Reply, Request

SPOOL, REFUSED = "spool", "refused"
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_LARGEST = 1024 * 1024
_LARGEST_REPORT = 9 * 1024 * 1024
_MOST_AT_ONCE = 50
_MOST_NAMES = 2_000
_TRY_LATER = frozenset({503})
_OK = 200


@dataclass(frozen=True, slots=True)
class Found:
    """A small regular file as it was found."""

    name: str
    mark: tuple[int, int]
    data: bytes


class DeskFiles:
    def __init__(self, tools: Tools, desk: Desk, badges: Badges, posts: Posts) -> None:
        self._tools, self._desk, self._badges, self._posts = tools, desk, badges, posts
        self._counter = tools.folder.path / counter_folder()
        self._asked: dict[str, tuple[int, int]] = {}
        self._asking: set[asyncio.Task[None]] = set()
        self._looking = asyncio.Lock()

    async def run(self) -> None:
        with named_os_errors(self._counter):
            self._counter.mkdir(mode=0o700, exist_ok=True)
        while True:
            await self.look()
            await asyncio.sleep(self._tools.look_every_sec)

    async def look(self) -> None:
        """One round over every desk, and over the counter where sessions ask for a task."""
        for post in self._posts:
            await self.look_at(post)
        for found in _files(self._counter, lambda name: name.startswith("next"), _LARGEST, self._asked):
            task = asyncio.ensure_future(self._hand_out(found))
            self._asking.add(task)
            task.add_done_callback(self._asking.discard)

    async def look_at(self, post: Post) -> int:
        """How much was there."""
        async with self._looking:
            taken = await self._empty_spool(post)
            for found in _files(post.desk, _is_known, _LARGEST_REPORT, post.files_seen):
                taken += 1
                for verb, body in _said_in(found):
                    await self._desk.handle(Request(verb, self._badges.worker(post.fence), body, "file"))
            return taken

    async def take_all(self, post: Post) -> None:
        """Until there is no more."""
        rounds = 0
        while await self.look_at(post) and rounds < _MOST_NAMES // _MOST_AT_ONCE:
            rounds += 1

    async def _empty_spool(self, post: Post) -> int:
        """In the order in which it was filled. What is taken or refused for good leaves it; the rest is tried again."""
        taken, refused = 0, False
        for found in sorted(_files(post.desk / SPOOL, _is_spooled, _LARGEST_REPORT, None), key=lambda f: f.name):
            try:
                kept = loads(found.data.decode("utf-8"))
            except (UnicodeDecodeError, JsonFault):
                kept = None
            verb = kept.get("verb") if isinstance(kept, dict) else ""
            # A done mark stands for a report: it must not follow one that was not taken.
            reply = Reply(400, {}) if verb == "done" and refused else await self._deliver(kept)
            if reply.status in _TRY_LATER:
                return taken
            refused = refused or (verb == "report" and reply.status != _OK)
            _put_away(post.desk, found.name, refused=reply.status != _OK)
            taken += 1
        return taken

    async def _deliver(self, kept: object) -> Reply:
        match kept:
            case {"verb": str(verb), "token": str(token), "body": dict(body)}:
                return await self._desk.handle(Request(verb, token, body, "spool"))
        return Reply(400, {})

    async def _hand_out(self, found: Found) -> None:
        """A session that can only write files gets its task as a file beside its question."""
        stem = found.name.removesuffix(".json").removeprefix("next").lstrip("-") or "worker"
        try:
            body = loads(found.data.decode("utf-8"))
        except (UnicodeDecodeError, JsonFault):
            body = None
        asked: dict[str, Any] = dict(body) if isinstance(body, dict) else {}
        asked = {"worker": str(asked.pop("worker_id", stem)), **asked}
        reply = await self._desk.handle(Request("next", self._badges.join, asked, "file"))
        answer = self._counter / f"brief-{stem}.json"
        await asyncio.to_thread(_write_private, answer, json.dumps(dict(reply.body), ensure_ascii=False))
        if isinstance(reply.body.get("task"), Mapping):
            (self._counter / found.name).unlink(missing_ok=True)
            self._asked.pop(found.name, None)
        else:
            # It is asked for again at the next look, until there is one.
            self._asked.pop(found.name, None)


def _is_known(name: str) -> bool:
    return name.endswith(("-done.flag", ".json")) or name == "done.flag"


def _is_spooled(name: str) -> bool:
    return name.endswith(".json") and not name.startswith(".")


def _said_in(found: Found) -> Iterator[tuple[str, object]]:
    """A file in one of the forms that workers write, as requests. Its digest names it: the same file counts once."""
    digest = hashlib.sha256(found.data).hexdigest()[:24]
    name = found.name.partition(".")[0].partition("-")[0]
    if found.name.endswith("done.flag"):
        yield "done", {"id": "file-done"}
        return
    try:
        data = loads(found.data.decode("utf-8"))
    except (UnicodeDecodeError, JsonFault):
        return
    if not isinstance(data, dict):
        return
    own = f"file-{name}-{digest}"
    if name == "result":
        yield "report", {"id": own, "result": data}
    elif name == "escalations":
        yield from _escalations(data)
    elif name in _SHAPES:
        body = {ours: data[theirs] for theirs, ours in _SHAPES[name].items() if data.get(theirs) not in (None, "")}
        yield ("heartbeat", body) if name == "heartbeat" else (name, {**body, "id": own})


def _escalations(data: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    entries = data.get("escalations")
    for entry in entries if isinstance(entries, list) else []:
        if not isinstance(entry, dict) or entry.get("resolved") is True:
            continue
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


def _files(
    folder: Path, wanted: Callable[[str], bool], largest: int, seen: dict[str, tuple[int, int]] | None
) -> list[Found]:
    """New and changed ones among those that are wanted; never more than a few at a time."""
    try:
        place = os.open(folder, _FOLDER)
    except OSError:
        return []
    try:
        with os.scandir(place) as entries:
            names = sorted(entry.name for entry, _ in zip(entries, range(_MOST_NAMES), strict=False))
        found: list[Found] = []
        for name in names:
            if len(found) >= _MOST_AT_ONCE:
                break
            if wanted(name) and (one := _read(place, name, largest, seen)) is not None:
                found.append(one)
        return found
    except OSError:
        return []
    finally:
        os.close(place)


def _read(place: int, name: str, largest: int, seen: dict[str, tuple[int, int]] | None) -> Found | None:
    try:
        handle = os.open(name, _FILE, dir_fd=place)
    except OSError:
        return None
    try:
        facts = os.fstat(handle)
        mark = (facts.st_mtime_ns, facts.st_size)
        if not stat.S_ISREG(facts.st_mode) or facts.st_size > largest or (seen is not None and seen.get(name) == mark):
            return None
        data = os.read(handle, largest + 1)
    except OSError:
        return None
    finally:
        os.close(handle)
    if seen is not None:
        seen[name] = mark
    return Found(name, mark, data)


def _put_away(desk: Path, name: str, *, refused: bool) -> None:
    """By folder handles: its worker may put anything in the place of a folder."""
    try:
        place = os.open(desk / SPOOL, _FOLDER)
    except OSError:
        return
    try:
        if refused:
            try:
                other = os.open(desk / REFUSED, _FOLDER)
            except OSError:
                (desk / REFUSED).mkdir(0o777)
                other = os.open(desk / REFUSED, _FOLDER)
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


def _write_private(path: Path, text: str) -> None:
    fresh = path.with_name(f".{path.name}.tmp")
    with open(fresh, "w", encoding="utf-8", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)


def left_desks(folder: Path, state: RunState) -> list[Path]:
    """Those of attempts that are over: a lead may have died before it could remove them."""
    needed = {folder / desk_folder(name, state.tasks[name].attempts) for name in state.running}
    with contextlib.suppress(OSError):
        return [desk for desk in sorted((folder / desk_folder("", 0)).parent.iterdir()) if desk not in needed]
    return []


def make_desk(desk: Path, owner: tuple[int, int] | None) -> None:
    """For the worker alone, whoever it is inside the walls; an earlier lead may have made it."""
    with named_os_errors(desk):
        for folder in (desk.parent, desk, desk / SPOOL):
            folder.mkdir(mode=0o711 if folder == desk.parent else 0o700, exist_ok=True)
        if owner is not None:
            for folder in (desk, desk / SPOOL):
                os.chown(folder, *owner, follow_symlinks=False)
