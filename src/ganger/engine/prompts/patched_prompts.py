"""Patched prompts and context: the user's files as they are, with the run's active patches applied.

A patch's files are on disk before its event is recorded. If the process dies between the two, they belong to no
recorded patch: nothing reads them, and the next patch takes the same number and replaces them.
"""

from __future__ import annotations

import difflib
import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ganger.contracts.heal_decision import HealDecision
from ganger.contracts.parser import Parsed, Refused, parse_heal
from ganger.contracts.task_result import Write
from ganger.core.events import PatchApplied
from ganger.core.healing.patches import LARGEST_TEXT_BYTES, PatchRefusal, Planned, plain_path
from ganger.core.model.records import PatchRecord
from ganger.engine.prompts.assemble import TextReader
from ganger.errors import Fault, GangerError, InputError
from ganger.local.atomic import sync_folder
from ganger.local.run_folder import named_os_errors, replace_file

PATCHES = "patches"
TEXT_TARGETS = ("shared_context", "task_prompt")
HINT = "contract_hint"

_SHRINKAGE_FROM_BYTES = 100

ReadHeal = Callable[[Path], Parsed[HealDecision] | Refused]


@dataclass(frozen=True, slots=True)
class KeptPrompts:
    """The result of a round's patches: the events to record, and the refusals based on the files themselves."""

    applied: tuple[PatchApplied, ...]
    refused: tuple[PatchRefusal, ...]


@dataclass(frozen=True, slots=True)
class _Stored:
    """A patch's file. `before` is the user's file as it was, for a patch that may be written into it."""

    operation: str
    content: str
    before: str | None = None

    def on(self, text: str) -> str:
        if self.operation == "replace":
            return self.content
        head = text if not text or text.endswith("\n") else f"{text}\n"
        gap = "\n" if head.strip() else ""
        return f"{head}{gap}{self.content}" + ("" if self.content.endswith("\n") else "\n")


@dataclass(frozen=True, slots=True)
class Patched:
    """The project's texts as one task sees them."""

    overlay: PatchedPrompts
    task: str
    patches: tuple[PatchRecord, ...]

    def read_text(self, ref: str) -> str:
        return self.overlay.text(ref, self.task, self.patches)


class PatchedPrompts:
    """`folder` is the run's; `base` reads the user's files; `read_heal` reads a healer's log."""

    def __init__(self, folder: Path, base: TextReader, read_heal: ReadHeal = parse_heal) -> None:
        self._folder = folder
        self._base = base
        self._read_heal = read_heal

    # --- reading ----------------------------------------------------------------------------------------------------

    def text(self, ref: str, task: str, patches: Sequence[PatchRecord]) -> str:
        """The user's file with every active patch that touches this task, in order."""
        return self._fold(ref, task, patches)[0]

    def reader(self, task: str, patches: Sequence[PatchRecord]) -> Patched:
        return Patched(self, task, tuple(patches))

    def hints(self, task: str, patches: Sequence[PatchRecord]) -> tuple[str, ...]:
        """The hints for a task's next prompt from the newest round with a patch for it."""
        mine = [one for one in patches if task in one.tasks]
        newest = max((one.round for one in mine), default=0)
        found = (self.hint(one) for one in mine if one.round == newest and not one.undone)
        return tuple(text for text in found if text)

    def hint(self, record: PatchRecord) -> str:
        """Read again from the healer's log, as it has no file of its own; a hint whose log is gone is only advice."""
        return logged_hint(self._folder, record.file, self._read_heal) if record.target == HINT else ""

    def _fold(self, ref: str, task: str, patches: Sequence[PatchRecord]) -> tuple[str, str]:
        """What the task reads, and what the file on disk is or is about to become.

        A patch written in place is applied here only while the file is as it was before: afterwards the file contains
        it, or a person has changed the file.
        """
        text = disk = self._base.read_text(ref if ".." in ref else plain_path(ref))
        for stored in self._active(plain_path(ref), task, patches):
            if stored.before is None:
                text = stored.on(text)
            elif stored.before == disk:
                text, disk = stored.on(text), stored.on(disk)
        return text, disk

    def _active(self, path: str, task: str, patches: Sequence[PatchRecord]) -> Iterator[_Stored]:
        for one in patches:
            if not one.undone and one.target in TEXT_TARGETS and one.path == path and task in one.tasks:
                yield self._stored(one)

    def _stored(self, record: PatchRecord) -> _Stored:
        path = self._folder / record.file
        try:
            data = json.loads(path.read_bytes())
            stored = _Stored(data["operation"], data["content"], data.get("before"))
        except (OSError, ValueError, KeyError, TypeError) as error:
            message = f"the text of {record.id} cannot be read; undo it: ganger patches --undo {record.id}"
            raise InputError(str(path), [Fault("", "FILE_NOT_FOUND", message)]) from error
        return stored

    # --- keeping ----------------------------------------------------------------------------------------------------

    def keep(self, planned: Sequence[Planned], number: int, log: str, patches: Sequence[PatchRecord]) -> KeptPrompts:
        """Puts a round's patches on disk, each on top of those before it; `log` is the healer's, below the run folder.

        `patches` are all of the run so far, including undone ones: numbers are never used twice.
        """
        known = list(patches)
        applied: list[PatchApplied] = []
        refused: list[PatchRefusal] = []
        for one in planned:
            name = f"patch-{len(known) + 1:03d}"
            try:
                event = self._keep_one(one, name, number, log, known)
            except InputError as problem:
                refused.append(PatchRefusal(one.place, one.target, problem.message))
                continue
            applied.append(event)
            known.append(record_of(event))
        return KeptPrompts(tuple(applied), tuple(refused))

    def _keep_one(self, one: Planned, name: str, number: int, log: str, known: Sequence[PatchRecord]) -> PatchApplied:
        file = ""
        if one.target in TEXT_TARGETS:
            file = f"{PATCHES}/{name}.json"
            self._store(one, name, number, known)
        elif one.target == HINT:
            file = f"{log}#{one.place}"
        return PatchApplied(
            name,
            number,
            one.target,
            one.operation,
            one.tasks,
            path=one.path,
            task_id=one.task_id,
            file=file,
            timeout_sec=one.timeout_sec,
            concurrency=one.concurrency,
            current_batch_size=one.current_batch_size,
            in_place=one.in_place,
        )

    def _store(self, one: Planned, name: str, number: int, known: Sequence[PatchRecord]) -> None:
        text, disk = self._fold(one.path, one.tasks[0], known)
        before = disk if one.in_place else text
        stored = _Stored(one.operation, one.text, disk if one.in_place else None)
        after = stored.on(before)
        _check_change(one.path, before, after)
        data = {
            "patch": name,
            "round": number,
            "target": one.target,
            "operation": one.operation,
            "path": one.path,
            "task_id": one.task_id,
            "content": one.text,
        }
        if stored.before is not None:
            data["before"] = stored.before
        self._make_folder()
        replace_file(self._folder / PATCHES / f"{name}.diff", unified(one.path, before, after))
        replace_file(self._folder / PATCHES / f"{name}.json", json.dumps(data, ensure_ascii=False, indent=1) + "\n")

    def _make_folder(self) -> None:
        path = self._folder / PATCHES
        with named_os_errors(path):
            if path.is_dir():
                return
            path.mkdir(mode=0o700, exist_ok=True)
            sync_folder(self._folder)

    # --- the user's own files ---------------------------------------------------------------------------------------

    def in_place_write(self, record: PatchRecord) -> Write | None:
        """The edit that writes an in-place patch into the user's file; None if there is nothing to write or the file
        has changed since. Harmless to ask again: until it is written, the patch is applied in the prompts."""
        before, after = self._sides(record)
        return None if record.undone else self._replacement(record.path, before, after)

    def undo_write(self, record: PatchRecord) -> Write | None:
        """The edit that removes an in-place patch from the user's file; None if the patch's text is not in place."""
        before, after = self._sides(record)
        return self._replacement(record.path, after, before)

    def _sides(self, record: PatchRecord) -> tuple[str | None, str]:
        """The user's file before and after the patch; None when it was never meant for the file."""
        stored = self._stored(record) if record.target in TEXT_TARGETS else None
        if stored is None or stored.before is None:
            return None, ""
        return stored.before, stored.on(stored.before)

    def _replacement(self, path: str, old: str | None, new: str | None) -> Write | None:
        """From one text to the other, and only if the file is the first of them now."""
        try:
            if old is None or new is None or self._base.read_text(path) != old:
                return None
        except InputError:
            return None
        digest = hashlib.sha256(old.encode()).hexdigest()
        return Write(path=path, op="replace", encoding="utf8", content=new, sha256_before=digest)


def record_of(event: PatchApplied) -> PatchRecord:
    return PatchRecord(
        event.patch, event.round, event.target, event.operation, event.tasks, event.path, event.task_id, event.file
    )


def logged_hint(folder: Path, file: str, read_heal: ReadHeal = parse_heal) -> str:
    """The hint at `LOG#PLACE`, or nothing."""
    log, mark, place = file.rpartition("#")
    if not mark or not place.isdecimal():
        return ""
    try:
        answer = read_heal(folder / log)
    except (OSError, GangerError):
        return ""
    if isinstance(answer, Refused) or int(place) >= len(answer.value.patches):
        return ""
    content = answer.value.patches[int(place)].content
    return content if isinstance(content, str) and len(content) <= LARGEST_TEXT_BYTES else ""


def unified(path: str, before: str, after: str) -> str:
    """A readable diff of a text before and after a patch."""
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), f"a/{path}", f"b/{path}", lineterm="")
    return "".join(f"{line}\n" for line in lines)


def _check_change(path: str, before: str, after: str) -> None:
    """The safeguards of a write that need the file itself."""
    old, new = len(before.encode()), len(after.encode())
    if after == before:
        raise InputError(path, [Fault("", "INVALID_INPUT", "the patch changes nothing")])
    if old > _SHRINKAGE_FROM_BYTES and new * 2 < old:
        message = f"{old} bytes would become {new}; append, or replace with the whole text"
        raise InputError(path, [Fault("", "SHRINKAGE", message)])
