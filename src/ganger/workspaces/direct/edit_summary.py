"""The `direct_edit` artifact: what an agent changed and created in place, for people and for the next attempt."""

from __future__ import annotations

import itertools
import json
import os
from pathlib import Path

from ganger.ports import Side, Touched
from ganger.workspaces.direct.edits import InPlace
from ganger.workspaces.files.snapshot import DIGEST_LENGTH
from ganger.workspaces.files.tree import Draft, Tree, parents_of
from ganger.workspaces.refusals import named_failures

SUMMARY_NAME = "summary.json"
SAVED_LIMIT_BYTES = 64 << 20

_FORMAT = 1
_FILES = "files"
_KINDS = ("added", "modified", "deleted")
_LARGEST_SUMMARY = 256 << 20


def save_edit(
    change: InPlace, folder: Path, *, contents: bool = True, limit_bytes: int = SAVED_LIMIT_BYTES
) -> tuple[str, ...]:
    """Writes the complete artifact, the summary last. An existing one is never replaced: if it describes all of this
    change nothing is written, else the artifact goes into `folder.2` and so on.

    Returns the files whose content is not in it, because they are too large or cannot be read.
    """
    for number in itertools.count(1):
        place = folder if number == 1 else folder.with_name(f"{folder.name}.{number}")
        with named_failures(str(place)):
            place.mkdir(mode=0o700, parents=True, exist_ok=True)
            with Tree(place) as store:
                if store.look(SUMMARY_NAME) is not None and not _tells(store, change):
                    continue
                if store.look(SUMMARY_NAME) is None:
                    _write(change, store, limit_bytes if contents else -1)
                saved = _saved(change, store)
                break
    return tuple(path for path in _made(change) if path not in saved)


def _tells(store: Tree, change: InPlace) -> bool:
    """Whether a summary has every path of the change with its present content; half an undo leaves fewer paths."""
    try:
        summary = json.loads(store.read_file(SUMMARY_NAME, limit=_LARGEST_SUMMARY))
        told = {one["path"]: one["after"] for kind in _KINDS for one in summary[kind]}
    except (ValueError, KeyError, TypeError):
        return False
    return all(told.get(_shown(one.path), "") == _side(one.after) for one in change.touched)


def _write(change: InPlace, store: Tree, limit_bytes: int) -> None:
    _save_contents(change, store, limit_bytes)
    text = json.dumps(_summary(change, store), indent=1)
    store.land(SUMMARY_NAME, _draft(text.encode("ascii")), expected=None, tag="edit")
    store.sync([""])


def _made(change: InPlace) -> list[str]:
    """Files only: a link could lead a reader out of the artifact, so its target stands in the summary."""
    present = change.present.files
    return [one.path for one in change.touched if one.after is not None and present[one.path].is_file]


def _saved(change: InPlace, store: Tree) -> frozenset[str]:
    return frozenset(path for path in _made(change) if store.look(f"{_FILES}/{path}") is not None)


def _save_contents(change: InPlace, store: Tree, limit_bytes: int) -> None:
    places: list[str] = []
    for path in _made(change):
        entry = change.present.files[path]
        if not entry.has_digest or entry.size > limit_bytes:
            continue
        place = f"{_FILES}/{path}"
        store.make_directories(parents_of(place))
        store.restore(place, _draft(change.after(path)), tag="edit")
        places.append(place)
        limit_bytes -= entry.size
    store.sync(folder for place in places for folder in parents_of(place))


def _draft(data: bytes) -> Draft:
    return Draft(data, 0o600, owner=(os.geteuid(), os.getegid()))


def _summary(change: InPlace, store: Tree) -> dict[str, object]:
    kinds: dict[str, list[dict[str, object]]] = {kind: [] for kind in _KINDS}
    saved = _saved(change, store)
    for one in change.touched:
        kind = one.kind if one.kind in kinds else "modified"
        kinds[kind].append(_described(change, one, is_saved=one.path in saved))
    return {"kind": "direct_edit", "format": _FORMAT, **kinds}


def _described(change: InPlace, one: Touched, *, is_saved: bool) -> dict[str, object]:
    more: dict[str, object] = {"renamed_from": _shown(one.renamed_from)} if one.renamed_from else {}
    if one.after is not None:
        entry = change.present.files[one.path]
        more["saved"] = is_saved
        if entry.is_link and entry.has_digest:
            more["link_to"] = _shown(os.fsdecode(change.after(one.path)))
    return {"path": _shown(one.path), "before": _side(one.before), "after": _side(one.after), **more}


def _side(side: Side | None) -> dict[str, object] | None:
    if side is None:
        return None
    is_read = len(side.digest) == DIGEST_LENGTH
    return {"mode": f"{side.mode:06o}", "size": side.size, "sha256": side.digest if is_read else None}


def _shown(path: str) -> str:
    """Escapes bytes that are not UTF-8, so that every JSON reader accepts the text."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")
