"""Putting a change onto another commit, in memory: no folder, no index, no checkout."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ganger.local.scratch import scratch_folder
from ganger.ports.repository import Conflict, Rebased
from ganger.workspaces.git.case_twins import merged_twins
from ganger.workspaces.git.git import Git, GitCall, damaged, failed, is_object, require_object
from ganger.workspaces.git.objects import (
    Commit,
    Leaf,
    ObjectReader,
    Who,
    blob_id,
    write_blobs,
    write_commit,
    write_tree,
)
from ganger.workspaces.git.take import shown_paths
from ganger.workspaces.rules.protected import is_unseen

_MOST_LINES = 200
_MOST_BYTES = 8000
_LARGEST_ATTRIBUTES = 1 << 16
_LARGEST_FILE = 4 << 20
_AROUND = 3
_FOR_MERGING_ONLY = Who("Ganger", "ganger@localhost", "@0 +0000")


@dataclass(frozen=True, slots=True)
class _Merged:
    """What merge-tree said: a tree, the paths that clash, and a sentence for each."""

    tree: str
    files: tuple[str, ...] = ()
    messages: tuple[str, ...] = ()


def rebase(git: Git, commit: str, start: str, onto: str) -> Rebased | Conflict:
    """The change from `start` to `commit` as one commit on `onto`. Equal arguments give the same commit."""
    with ObjectReader(git) as reader:
        change, beginning, head = (known(git, reader, one) for one in (commit, start, onto))
        if change.parents == (onto,) and start == onto:
            return Rebased(commit, change.tree)
        sides = _sides(git, (commit, change), (start, beginning), (onto, head))
        merged = _merge(git, reader, *sides)
        if merged.files:
            return Conflict(shown_paths(merged.files), _excerpt(git, reader, merged))
        if met := _twins(reader, merged.tree, head.tree, change.tree):
            return met
    if merged.tree == head.tree:
        return Rebased(onto, head.tree)
    moment = max(change.committer.seconds, head.committer.seconds)
    placed = replace(change, tree=merged.tree, parents=(onto,), committer=change.committer.at(moment))
    return Rebased(write_commit(git, placed), merged.tree)


def like(git: Git, commit: str, tree: str, onto: str) -> Rebased:
    """A commit on `onto` with this tree, and all else as `commit` has it. The same question gets the same answer."""
    with ObjectReader(git) as reader:
        made, head = (known(git, reader, one) for one in (commit, onto))
    if tree == head.tree:
        return Rebased(onto, tree)
    moment = max(made.committer.seconds, head.committer.seconds)
    return Rebased(
        write_commit(git, replace(made, tree=tree, parents=(onto,), committer=made.committer.at(moment))), tree
    )


def take_back(git: Git, commit: str, onto: str, message: str, who: Who) -> Rebased | Conflict:
    """Reverts `commit` on top of `onto`. Equal arguments give the same commit."""
    with ObjectReader(git) as reader:
        made, head = known(git, reader, commit), known(git, reader, onto)
        before = known(git, reader, made.parents[0])
        sides = _sides(git, (made.parents[0], before), (commit, made), (onto, head))
        merged = _merge(git, reader, *sides)
        if merged.files:
            return Conflict(shown_paths(merged.files), _excerpt(git, reader, merged))
        if met := _twins(reader, merged.tree, head.tree, before.tree):
            return met
    if merged.tree == head.tree:
        return Rebased(onto, head.tree)
    return Rebased(write_commit(git, Commit(merged.tree, (onto,), who, who, message)), merged.tree)


def together(git: Git, commits: Sequence[str]) -> Rebased | Conflict:
    """What these commits change, as one commit on the parent of the first, without what others put between them."""
    with ObjectReader(git) as reader:
        parents = [known(git, reader, one).parents[0] for one in commits]
    top = commits[0]
    for commit, parent in zip(commits[1:], parents[1:], strict=True):
        put = rebase(git, commit, parent, top)
        if isinstance(put, Conflict):
            return put
        top = put.commit
    return rebase(git, top, parents[0], parents[0])


def join(git: Git, ours: str, theirs: str, message: str, who: Who | None = None) -> Rebased | Conflict:
    """A merge commit of two histories. Without `who` it has the other side's author and the later of both dates."""
    with ObjectReader(git) as reader:
        one, other = known(git, reader, ours), known(git, reader, theirs)
        merged = _merge(git, reader, ours, theirs)
        if merged.files:
            return Conflict(shown_paths(merged.files), _excerpt(git, reader, merged))
        if met := _twins(reader, merged.tree, one.tree, other.tree):
            return met
    by = who or other.committer.at(max(one.committer.seconds, other.committer.seconds))
    return Rebased(write_commit(git, Commit(merged.tree, (ours, theirs), by, by, message)), merged.tree)


def known(git: Git, reader: ObjectReader, oid: str) -> Commit:
    """Raises for a recorded commit that is missing."""
    found = reader.commit(oid)
    if found is None:
        raise damaged(git.directory, f"the commit {oid[:12]} is not in it")
    return found


Named = tuple[str, Commit]


def _sides(git: Git, change: Named, start: Named, onto: Named) -> tuple[str, str]:
    """Two commits whose merge base is `start`. Where it is not, new commits are made with that base."""
    if change[1].parents == (start[0],) and is_ancestor(git, start[0], onto[0]):
        return onto[0], change[0]

    def stand_in(tree: str, *parents: str) -> str:
        return write_commit(git, Commit(tree, parents, _FOR_MERGING_ONLY, _FOR_MERGING_ONLY, "merge"))

    root = stand_in(start[1].tree)
    return stand_in(onto[1].tree, root), stand_in(change[1].tree, root)


def is_ancestor(git: Git, one: str, other: str) -> bool:
    """False also when one of them is missing."""
    words = ("merge-base", "--is-ancestor", require_object(one), require_object(other))
    return git.ask(*words, doing="comparing two commits", fine=(0, 1, 128)).code == 0


def fork_point(git: Git, one: str, other: str) -> str:
    """Empty where they have no common history."""
    words = ("merge-base", require_object(one), require_object(other))
    return git.ask(*words, doing="comparing two histories", fine=(0, 1)).text.partition("\n")[0]


def first_parents(git: Git, base: str, tip: str, most: int) -> list[Rebased]:
    """The commits, oldest first."""
    words = ("rev-list", "--first-parent", f"--max-count={most}", require_object(tip), f"^{require_object(base)}")
    listed = git.ask(*words, doing="reading a history").text.split()
    with ObjectReader(git) as reader:
        return [Rebased(one, known(git, reader, one).tree) for one in reversed(listed)]


def is_straight(git: Git, base: str, tip: str) -> bool:
    words = ("rev-list", "--merges", "--max-count=1", require_object(tip), f"^{require_object(base)}")
    return not git.ask(*words, doing="reading a history").text


def _merge(git: Git, reader: ObjectReader, ours: str, theirs: str) -> _Merged:
    """Applies the branch's own attributes, such as `merge=union`; git reads them in the folder it runs in."""
    words = ("merge-tree", "--write-tree", "-z", "--name-only", "--messages", ours, theirs)
    call = GitCall(words, "merging a change", fine=(0, 1))
    attributes = reader.read(f"{ours}:.gitattributes", _LARGEST_ATTRIBUTES) or b""
    if b"merge" in attributes:
        with scratch_folder("merge") as name:
            folder = Path(name)
            (folder / ".gitattributes").write_bytes(attributes)
            answer = git.call(replace(call, work_tree=folder, inside=folder))
    else:
        answer = git.call(call)
    tree, _, rest = os.fsdecode(answer.out).partition("\0")
    tree = tree.strip()
    # Exit code 1 also means a bad name: only with a tree is it a conflict.
    if not is_object(tree):
        raise failed(call, answer.err)
    if answer.code == 0:
        return _Merged(tree)
    listed, _, told = rest.partition("\0\0")
    return _Merged(tree, tuple(dict.fromkeys(listed.split("\0"))), tuple(_messages(told.split("\0"))))


def _messages(pieces: list[str]) -> Iterator[str]:
    """Each message has: a number of paths, the paths, a kind, a text."""
    at = 0
    while at < len(pieces) and pieces[at].isdigit():
        at += int(pieces[at]) + 1
        kind, text = [*pieces[at : at + 2], "", ""][:2]
        at += 2
        if kind.startswith("CONFLICT"):
            yield text.strip()


def _excerpt(git: Git, reader: ObjectReader, merged: _Merged) -> str:
    """Git's message about each conflict and the lines around its markers, short enough for a prompt."""
    lines = [*merged.messages]
    for path in merged.files:
        text = _content(git, reader, merged.tree, path)
        hunks = list(_hunks(text.splitlines()))
        if hunks:
            lines += ["", f"--- {path}", *hunks]
        if len(lines) > _MOST_LINES:
            break
    shown = [_printable(line) for line in lines[:_MOST_LINES]]
    cut = "\n".join(shown).encode("utf-8", "replace")[:_MOST_BYTES].decode("utf-8", "ignore")
    return cut if len(lines) <= _MOST_LINES and cut.count("\n") == len(shown) - 1 else f"{cut}\n[…]"


def _twins(reader: ObjectReader, merged: str, *sides: str) -> Conflict | None:
    """Each side is valid by itself; together they have names that only some systems can tell apart."""
    pairs = merged_twins(reader, merged, sides)
    if not pairs:
        return None
    told = [f"{one!r} and {other!r} are one name on many systems: only one of them can stay" for one, other in pairs]
    text = "\n".join(_printable(line) for line in told[:_MOST_LINES])
    return Conflict(shown_paths(path for pair in pairs for path in pair), text[:_MOST_BYTES])


def _content(git: Git, reader: ObjectReader, tree: str, path: str) -> str:
    answer = git.ask("ls-tree", "-z", "--full-tree", tree, "--", path, doing="reading a conflict", fine=(0, 128))
    parts = answer.text.partition("\t")[0].split(" ")
    if len(parts) != 3 or parts[1] != "blob":
        return ""
    data = reader.read(parts[2], _LARGEST_FILE) or b""
    return "" if b"\0" in data else data.decode("utf-8", "replace")


def _hunks(lines: list[str]) -> Iterator[str]:
    """The lines between conflict markers and a few around them."""
    wanted: set[int] = set()
    inside = False
    for number, line in enumerate(lines):
        inside = inside or line.startswith("<<<<<<< ")
        if inside:
            wanted.update(range(max(0, number - _AROUND), min(len(lines), number + _AROUND + 1)))
        if line.startswith(">>>>>>> "):
            inside = False
    last = -1
    for number in sorted(wanted):
        if number > last + 1:
            yield f"@@ line {number + 1} @@"
        yield _renamed(lines[number])
        last = number


def _renamed(line: str) -> str:
    if line.startswith("<<<<<<< "):
        return "<<<<<<< the integration branch"
    return ">>>>>>> this task" if line.startswith(">>>>>>> ") else line


def _printable(line: str) -> str:
    return "".join(sign for sign in line[:500] if sign == "\t" or not is_unseen(sign))


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
    with ObjectReader(git) as reader, scratch_folder("yield") as name:
        changes = {clash.path: _settled(git, reader, Path(name), clash, theirs) for clash in clashes}
        if changes:
            index = Path(name) / "index"
            git.call(GitCall(("read-tree", tree), "joining two histories", index=index))
            tree = write_tree(git, index, changes)
    return Rebased(write_commit(git, Commit(tree, (ours, theirs), who, who, message)), tree)


def _merged(git: Git, ours: str, theirs: str) -> tuple[str, list[_Clash]]:
    call = GitCall(
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


def _settled(git: Git, reader: ObjectReader, place: Path, clash: _Clash, theirs: str) -> Leaf | None:
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
    joined = git.call(GitCall(words, "joining a file", inside=place)).out
    write_blobs(git, [joined], len(other.oid))
    return Leaf(other.mode, blob_id(joined, len(other.oid)))


def _text(reader: ObjectReader, side: Leaf | None) -> bytes | None:
    """Empty where the side lacks the file; None where it is not text that can be merged."""
    if side is None:
        return b""
    data = reader.read(side.oid, _LARGEST_FILE) if side.mode in _REGULAR else None
    return None if data is None or b"\0" in data else data


def _at(git: Git, commit: str, path: str) -> Leaf | None:
    answer = git.ask("ls-tree", "-z", "--full-tree", commit, "--", path, doing="reading a file's place", fine=(0, 128))
    parts = answer.text.partition("\t")[0].split(" ")
    return Leaf(int(parts[0], 8), parts[2]) if len(parts) == 3 and parts[1] != "tree" else None
