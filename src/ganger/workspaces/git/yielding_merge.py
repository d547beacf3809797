"""A merge that never stops: where both sides changed the same lines, the other side wins."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from ganger.local.scratch import scratch_folder
from ganger.ports import Rebased
from ganger.workspaces.git.git import Call, Git, failed, is_object
from ganger.workspaces.git.objects import Commit, Leaf, Reader, Who, blob_id, write_blobs, write_commit, write_tree

_LARGEST_FILE = 4 << 20
_REGULAR = frozenset({0o100644, 0o100755})
_OURS, _THEIRS, _BASE = 2, 3, 1


@dataclass(frozen=True, slots=True)
class _Clash:
    """One path that both sides changed: its state in the common base, on our side and on theirs."""

    path: str
    stages: dict[int, Leaf]


def join_yielding(git: Git, ours: str, theirs: str, message: str, who: Who) -> Rebased:
    """A merge commit of both. A file that cannot be merged line by line is taken from `theirs`."""
    tree, clashes = _merged(git, ours, theirs)
    with Reader(git) as reader, scratch_folder("yield") as name:
        changes = {clash.path: _settled(git, reader, Path(name), clash, theirs) for clash in clashes}
        if changes:
            index = Path(name) / "index"
            git.call(Call(("read-tree", tree), "joining two histories", index=index))
            tree = write_tree(git, index, changes)
    return Rebased(write_commit(git, Commit(tree, (ours, theirs), who, who, message)), tree)


def _merged(git: Git, ours: str, theirs: str) -> tuple[str, list[_Clash]]:
    call = Call(
        ("merge-tree", "--write-tree", "-z", "--no-messages", ours, theirs), "joining two histories", fine=(0, 1)
    )
    answer = git.call(call)
    tree, *rows = os.fsdecode(answer.out).split("\0")
    if not is_object(tree):
        raise failed(call, answer.err)
    found: dict[str, dict[int, Leaf]] = {}
    for row in filter(None, rows):
        told, _, path = row.partition("\t")
        mode, oid, stage = told.split(" ")
        found.setdefault(path, {})[int(stage)] = Leaf(int(mode, 8), oid)
    return tree, [_Clash(path, stages) for path, stages in found.items()]


def _settled(git: Git, reader: Reader, place: Path, clash: _Clash, theirs: str) -> Leaf | None:
    """The merged lines of the file, or the state of that path in `theirs`, which may be absent."""
    sides = [clash.stages.get(stage) for stage in (_OURS, _BASE, _THEIRS)]
    texts = [_text(reader, side) for side in sides]
    mine, _, other = sides
    if mine is None or other is None or any(text is None for text in texts) or mine.mode != other.mode:
        return _at(git, theirs, clash.path)
    files = [place / name for name in ("ours", "base", "theirs")]
    for file, text in zip(files, texts, strict=True):
        file.write_bytes(text or b"")
    words = ("merge-file", "--theirs", "-p", *map(str, files))
    joined = git.call(Call(words, "joining a file", inside=place)).out
    write_blobs(git, [joined], len(other.oid))
    return Leaf(other.mode, blob_id(joined, len(other.oid)))


def _text(reader: Reader, side: Leaf | None) -> bytes | None:
    """Empty where the side lacks the file; None where it is not text that can be merged."""
    if side is None:
        return b""
    data = reader.read(side.oid, _LARGEST_FILE) if side.mode in _REGULAR else None
    return None if data is None or b"\0" in data else data


def _at(git: Git, commit: str, path: str) -> Leaf | None:
    answer = git.ask("ls-tree", "-z", "--full-tree", commit, "--", path, doing="reading a file's place", fine=(0, 128))
    parts = answer.text.partition("\t")[0].split(" ")
    return Leaf(int(parts[0], 8), parts[2]) if len(parts) == 3 and parts[1] != "tree" else None
