"""Objects of Ganger's repository: files as blobs, trees, commits, and a change as text; read within bounds."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import tempfile
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

from ganger.core.delivery.ci_files import workflow_files
from ganger.workspaces.git.git import (
    Git,
    GitCall,
    damaged,
    environment_for,
    failed,
    lines_of,
    require_object,
    shows_damage,
)

# From this number on one pack is cheaper than a file for each object.
_MANY = 100
_BLOB = 3
_FAST = 1
_WHO = re.compile(r"(?P<name>.*?) ?<(?P<mail>[^>]*)>(?: (?P<moment>-?\d+) (?P<zone>[+-]\d{4}))?")


@dataclass(frozen=True, slots=True)
class Who:
    """An author: a name, an address and, where known, a time in git's form (seconds and a zone)."""

    name: str
    mail: str
    moment: str = ""

    @classmethod
    def parse(cls, text: str) -> Who:
        found = _WHO.match(text)
        if found is None:
            return cls(_plain(text) or "Ganger", "ganger@localhost")
        moment = f"@{found['moment']} {found['zone']}" if found["moment"] else ""
        return cls(_plain(found["name"]) or "Ganger", _plain(found["mail"]) or "ganger@localhost", moment)

    def at(self, seconds: float) -> Who:
        return replace(self, moment=f"@{int(seconds)} +0000")

    @property
    def seconds(self) -> int:
        return int(self.moment[1:].split()[0]) if self.moment else 0


def _plain(text: str) -> str:
    return "".join(sign for sign in text if sign.isprintable() and sign not in "<>").strip()


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit as it is stored."""

    tree: str
    parents: tuple[str, ...]
    author: Who
    committer: Who
    message: str


def blob_id(data: bytes, width: int) -> str:
    """Git's id for this content; `width` is the length of the repository's ids."""
    header = b"blob %d\0" % len(data)
    digest = hashlib.sha1(header, usedforsecurity=False) if width == 40 else hashlib.sha256(header)
    digest.update(data)
    return digest.hexdigest()


def write_blobs(git: Git, contents: Sequence[bytes], width: int) -> None:
    """Puts contents into the repository, all in one process; they are on the disk when this returns."""
    if not contents:
        return
    pieces = [b"PACK", (2).to_bytes(4, "big"), len(contents).to_bytes(4, "big")]
    for data in contents:
        pieces += [_pack_header(len(data)), zlib.compress(data, _FAST)]
    body = b"".join(pieces)
    digest = hashlib.sha1(body, usedforsecurity=False) if width == 40 else hashlib.sha256(body)
    words = ("unpack-objects", "-q") if len(contents) < _MANY else ("index-pack", "--stdin")
    git.call(GitCall(words, "storing files", data=body + digest.digest()))


def _pack_header(size: int) -> bytes:
    first, size = (_BLOB << 4) | (size & 15), size >> 4
    head = bytearray()
    while size:
        head.append(first | 0x80)
        first, size = size & 0x7F, size >> 7
    head.append(first)
    return bytes(head)


@dataclass(frozen=True, slots=True)
class Leaf:
    """A path's new content in a tree."""

    mode: int
    oid: str


def write_tree(git: Git, index: Path, changes: Mapping[str, Leaf | None]) -> str:
    """The tree of an index with these paths changed (None: removed); `index` is rewritten."""
    gone = [b"0 %s\t%s" % (b"0" * 40, os.fsencode(path)) for path, leaf in changes.items() if leaf is None]
    come = [
        b"%06o %s\t%s" % (leaf.mode, leaf.oid.encode(), os.fsencode(path)) for path, leaf in changes.items() if leaf
    ]
    words = ("update-index", "--add", "--replace", "-z", "--index-info")
    data = b"".join(line + b"\0" for line in [*gone, *come])
    loose = ("core.protectNTFS=false", "core.protectHFS=false")
    git.call(GitCall(words, "writing a tree", data=data, index=index, settings=loose))
    return git.call(GitCall(("write-tree",), "writing a tree", index=index, settings=loose)).text


def write_commit(git: Git, commit: Commit) -> str:
    """Stores a commit; the same record gives the same id."""
    words = ["commit-tree", require_object(commit.tree)]
    for parent in commit.parents:
        words += ["-p", require_object(parent)]
    environment = {
        "GIT_AUTHOR_NAME": commit.author.name,
        "GIT_AUTHOR_EMAIL": commit.author.mail,
        "GIT_AUTHOR_DATE": commit.author.moment,
        "GIT_COMMITTER_NAME": commit.committer.name,
        "GIT_COMMITTER_EMAIL": commit.committer.mail,
        "GIT_COMMITTER_DATE": commit.committer.moment,
    }
    data = tidy(commit.message).encode("utf-8", "replace")
    return git.call(GitCall(tuple(words), "writing a commit", data=data, environment=environment)).text


def tidy(message: str) -> str:
    """A message as git stores it: no NUL, one newline at its end."""
    return message.replace("\0", "").rstrip("\n") + "\n"


class ObjectReader:
    """Objects read through one git process for as long as it is needed."""

    def __init__(self, git: Git) -> None:
        call = GitCall(("cat-file", "--batch-command"), "reading objects")
        self._call = call
        self._process = subprocess.Popen(
            git.argv(call),
            cwd="/",
            env=environment_for(call),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait()

    def look(self, name: str) -> tuple[str, str, int] | None:
        """Id, kind and size of an object; None when there is none."""
        self._say(f"info {name}\n")
        return self._answered()

    def read(self, name: str, limit_bytes: int) -> bytes | None:
        """An object's content; None when it is missing or larger than the limit."""
        found = self.look(name)
        if found is None or found[2] > limit_bytes:
            return None
        self._say(f"contents {name}\n")
        self._answered()
        return self._take(found[2] + 1)[:-1]

    def commit(self, oid: str) -> Commit | None:
        data = self.read(f"{require_object(oid)}^{{commit}}", 1 << 24)
        return None if data is None else _parsed(data)

    def _say(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(os.fsencode(line))
        self._process.stdin.flush()

    def _answered(self) -> tuple[str, str, int] | None:
        assert self._process.stdout is not None
        line = self._process.stdout.readline().decode("utf-8", "replace")
        if not line:
            raise failed(self._call, "git ended early")
        parts = line.split()
        return (parts[0], parts[1], int(parts[2])) if len(parts) == 3 and parts[2].isdigit() else None

    def _take(self, size: int) -> bytes:
        assert self._process.stdout is not None
        data = self._process.stdout.read(size)
        if len(data) != size:
            raise failed(self._call, "git ended early")
        return data


def _parsed(data: bytes) -> Commit:
    head, _, message = data.decode("utf-8", "replace").partition("\n\n")
    lines = [line.partition(" ") for line in head.split("\n") if not line.startswith(" ")]
    values = {name: value for name, _, value in reversed(lines)}
    return Commit(
        tree=values["tree"],
        parents=tuple(value for name, _, value in lines if name == "parent"),
        author=Who.parse(values.get("author", "")),
        committer=Who.parse(values.get("committer", "")),
        message=message,
    )


def ignored(git: Git, mirror: Path, paths: Iterable[str]) -> set[str]:
    """The paths that the .gitignore files in `mirror` exclude. The agent's folder itself is not read."""
    # The dot keeps a name that begins with a colon from being read as a pattern.
    data = lines_of([f"./{path}" for path in paths])
    words = ("check-ignore", "--no-index", "-z", "--stdin")
    plain = {"GIT_LITERAL_PATHSPECS": "0"}
    call = GitCall(words, "reading .gitignore", data=data, work_tree=mirror, environment=plain, fine=(0, 1))
    return {name.removeprefix("./") for name in git.call(call).names}


_WORDS = (
    "diff",
    "--no-color",
    "--no-ext-diff",
    "--no-textconv",
    "--find-renames",
    "--stat=100",
    "--patch",
    "--full-index",
)
_SETTINGS = ("core.bigFileThreshold=16m", "diff.renameLimit=1000", "diff.noprefix=false", "diff.mnemonicPrefix=false")
_CUT = "\n[… the rest is not shown]\n"
_PIECE = 1 << 16
_MOST_WORKFLOWS = 50


def files_of(git: Git, commit: str) -> list[str]:
    """The paths that a commit changed, compared with its first parent."""
    words = ("diff-tree", "-r", "-z", "--no-commit-id", "--name-only", "--root", "--no-renames")
    answer = git.ask(*words, "--diff-merges=first-parent", require_object(commit), doing="reading a change")
    return [os.fsdecode(name) for name in answer.out.split(b"\0") if name]


def files_between(git: Git, base: str, tip: str) -> list[str]:
    """The paths in which the trees of two commits differ."""
    words = ("diff-tree", "-r", "-z", "--name-only", "--no-renames", require_object(base), require_object(tip))
    answer = git.ask(*words, doing="comparing two commits")
    return [os.fsdecode(name) for name in answer.out.split(b"\0") if name]


def ci_texts(git: Git, commit: str) -> list[str]:
    """What the workflow files of a commit say."""
    answer = git.ask("ls-tree", "-r", "-z", "--name-only", require_object(commit), doing="looking for workflows")
    names = [os.fsdecode(name) for name in answer.out.split(b"\0") if name]
    asked = [f"{commit}:{name}" for name in workflow_files(names)[:_MOST_WORKFLOWS]]
    return [git.ask("cat-file", "blob", name, doing="reading a workflow").text for name in asked]


def diff_text(git: Git, base: str, commit: str, most_bytes: int) -> str:
    """A list of the files, then the change itself; it is cut at a line after `most_bytes`, with a note."""
    call = GitCall((*_WORDS, require_object(base), require_object(commit)), "showing a change", settings=_SETTINGS)
    with tempfile.TemporaryFile() as err:
        process = subprocess.Popen(
            git.argv(call),
            cwd="/",
            env=environment_for(call),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=err,
            start_new_session=True,
        )
        assert process.stdout is not None
        with process.stdout:
            data = process.stdout.read(most_bytes + 1)
        if len(data) > most_bytes:
            process.kill()
        code = process.wait()
        err.seek(0)
        said = err.read(_PIECE).decode("utf-8", "replace")
    if code != 0 and len(data) <= most_bytes:
        raise damaged(git.directory, said) if shows_damage(said) else failed(call, said)
    if len(data) <= most_bytes:
        return data.decode("utf-8", "replace")
    kept, _, _ = data[: max(0, most_bytes - len(_CUT.encode()))].rpartition(b"\n")
    return kept.decode("utf-8", "replace") + _CUT
