"""Turns an agent's writes into a checked change set. Every safeguard applies here; nothing is written."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from ganger.errors import WriteRefused
from ganger.workspaces.files.tree import NEW_FILE_MODE, FileImage, Tree, TreeEntry, parents_of, sha256_of
from ganger.workspaces.refusals import named_failures, refused, require_none
from ganger.workspaces.rules.protected import Protection, is_unseen

MAX_NAME_BYTES = 255
MAX_PATH_BYTES = 1024
SHRINKAGE_FROM_BYTES = 100

_HEX_DIGEST = re.compile(r"[0-9a-f]{64}")
_DRIVE = re.compile(r"[A-Za-z]:")


class ChangeKind(StrEnum):
    CREATE = "create"
    REPLACE = "replace"
    APPEND = "append"
    UNCHANGED = "unchanged"


@dataclass(frozen=True, slots=True)
class WriteRequest:
    """One write as the agent requested it; when both contents are given, `content` is used."""

    path: str
    op: str
    content: str | None = None
    content_ref: str | None = None
    sha256_before: str | None = None


@dataclass(frozen=True, slots=True)
class WriteRules:
    protection: Protection = field(default_factory=Protection)
    allow_shrinkage: bool = False
    max_file_bytes: int = 16 << 20
    max_total_bytes: int = 64 << 20
    max_files: int = 2000


@dataclass(frozen=True, slots=True)
class FileChange:
    """One file: its present and its new content."""

    path: str
    kind: ChangeKind
    before: FileImage | None
    after_sha256: str
    after_size: int
    mode: int
    content: bytes = field(repr=False)
    new_dirs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ChangeSet:
    """All of a task's writes, in the order in which their paths were first named."""

    files: tuple[FileChange, ...]

    @property
    def paths(self) -> tuple[str, ...]:
        return tuple(change.path for change in self.files)

    @property
    def digests(self) -> dict[str, str]:
        return {change.path: change.after_sha256 for change in self.files}

    def describe(self) -> list[dict[str, str | int | None]]:
        """For events and reports: what changes, without the contents."""
        return [
            {
                "path": change.path,
                "kind": change.kind.value,
                "sha256_before": change.before.sha256 if change.before else None,
                "sha256_after": change.after_sha256,
                "size_before": change.before.size if change.before else None,
                "size_after": change.after_size,
            }
            for change in self.files
        ]


def plan_changes(tree: Tree, requests: Sequence[WriteRequest], rules: WriteRules) -> ChangeSet:
    """The change set, or the first refusal with the others. Reads only."""
    planner = _Planner(tree, rules)
    require_none(_refusals(planner, requests))
    return planner.change_set()


def check_changes(tree: Tree, requests: Sequence[WriteRequest], rules: WriteRules) -> list[WriteRefused]:
    """Every refusal, in the order of the writes; an empty list when the change set may land."""
    return _refusals(_Planner(tree, rules), requests)


def _refusals(planner: _Planner, requests: Sequence[WriteRequest]) -> list[WriteRefused]:
    refusals: list[WriteRefused] = []
    try:
        planner.check_count(requests)
    except WriteRefused as refusal:
        return [refusal]
    for request in requests:
        try:
            planner.add(request)
        except WriteRefused as refusal:
            refusals.append(refusal)
    return [*refusals, *planner.shrunken()]


def check_path(path: str) -> None:
    """Refuse a path that is not a plain relative one, judged by its text alone."""
    if any(is_unseen(char) for char in path):
        raise refused(
            path, "PATH_BAD_CHARACTER", "the path has a control, invisible or invalid character; use plain names"
        )
    if path.startswith("/"):
        raise refused(path, "PATH_ABSOLUTE", "the path is absolute; name it relative to the workspace")
    if _climbs_out(path):
        raise refused(path, "PATH_ESCAPES", "the path leads out of the workspace")
    parts = path.split("/")
    if any(part in ("", ".", "..") for part in parts):
        raise refused(path, "PATH_NOT_NORMAL", "the path has an empty part, '.' or '..'; write it in its plain form")
    if "\\" in path or path.startswith("~") or _DRIVE.match(path):
        raise refused(path, "PATH_NOT_NORMAL", "backslash, drive letter and leading '~' are not accepted; use 'a/b/c'")
    encoded = [len(part.encode()) for part in parts]
    if max(encoded) > MAX_NAME_BYTES or sum(encoded) + len(parts) - 1 > MAX_PATH_BYTES:
        limits = f"{MAX_NAME_BYTES} bytes a name and {MAX_PATH_BYTES} bytes a path"
        raise refused(path, "PATH_TOO_LONG", f"the path is too long; the limits are {limits}")


def _climbs_out(path: str) -> bool:
    depth = 0
    for part in path.replace("\\", "/").split("/"):
        depth += -1 if part == ".." else 0 if part in ("", ".") else 1
        if depth < 0:
            return True
    return False


def _twin_key(path: str) -> str:
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", path).casefold())


@dataclass(slots=True)
class _Pending:
    """One path while the writes are combined."""

    before: FileImage | None
    content: bytes
    new_dirs: tuple[str, ...]
    exists: bool
    ops: list[str] = field(default_factory=list)

    def kind(self, after_sha256: str) -> ChangeKind:
        if self.before is None:
            return ChangeKind.CREATE
        if self.before.sha256 == after_sha256:
            return ChangeKind.UNCHANGED
        return ChangeKind.APPEND if set(self.ops) == {"append"} else ChangeKind.REPLACE


class _Planner:
    """The tree as it would be after the writes so far."""

    def __init__(self, tree: Tree, rules: WriteRules) -> None:
        self._tree = tree
        self._rules = rules
        self._pending: dict[str, _Pending] = {}
        self._spelling: dict[str, str] = {}
        self._listings: dict[str, dict[str, str]] = {}
        self._directories: set[str] = set()
        self._total_bytes = 0

    def check_count(self, requests: Sequence[WriteRequest]) -> None:
        limit = self._rules.max_files
        if len(requests) > limit:
            raise refused(
                requests[limit].path, "TOO_LARGE", f"{len(requests)} writes in one result; the limit is {limit}"
            )

    def add(self, request: WriteRequest) -> None:
        path = request.path
        check_path(path)
        if pattern := self._rules.protection.protected_by(path):
            raise refused(path, "PATH_PROTECTED", f"protected by {pattern!r}; only the operator can open this path")
        pending = self._pending.get(path)
        if pending is None:
            pending = self._first_look(path)
        _check_op(request, pending)
        _check_hash(request, pending)
        content = self._content_of(request)
        after = pending.content + content if request.op == ChangeKind.APPEND else content
        self._check_size(path, len(after) - (len(pending.content) if pending.ops else 0), len(after))
        pending.content, pending.exists = after, True
        pending.ops.append(request.op)
        self._remember(path, pending)

    def shrunken(self) -> list[WriteRefused]:
        """Judged on the whole change set, because a long file may arrive as one replace and several appends."""
        if self._rules.allow_shrinkage:
            return []
        return [
            refused(path, "SHRINKAGE", f"{one.before.size} bytes would become {len(one.content)}; write the whole file")
            for path, one in self._pending.items()
            if one.before is not None
            and ChangeKind.REPLACE in one.ops
            and one.before.size > SHRINKAGE_FROM_BYTES
            and len(one.content) * 2 < one.before.size
        ]

    def change_set(self) -> ChangeSet:
        return ChangeSet(tuple(_file_change(path, pending) for path, pending in self._pending.items()))

    def _first_look(self, path: str) -> _Pending:
        """Checks the path against the disk and against the other paths of this change set."""
        self._check_own_paths(path)
        with named_failures(path):
            new_dirs = self._tree.missing_parents(path)
            found = None if new_dirs else self._tree.read(path, self._rules.max_file_bytes)
            if found is None:
                self._check_neighbours(new_dirs[0] if new_dirs else path, path)
        new_dirs = tuple(one for one in new_dirs if one not in self._directories)
        if found is None:
            return _Pending(None, b"", new_dirs, exists=False)
        return _Pending(found.image, found.data, (), exists=True)

    def _check_own_paths(self, path: str) -> None:
        for one in (*parents_of(path), path):
            other = self._spelling.get(_twin_key(one), one)
            if other != one and not (self._tree.look(one) and self._tree.look(other)):
                raise refused(
                    path, "CASE_TWIN", f"{one!r} and {other!r} of this change set are one name on many systems"
                )
        if any(parent in self._pending for parent in parents_of(path)) or path in self._directories:
            raise refused(path, "PATH_NOT_REGULAR", "this change set uses one path as a file and as a directory")

    def _check_neighbours(self, first_new: str, path: str) -> None:
        directory, _, name = first_new.rpartition("/")
        if directory not in self._listings:
            self._listings[directory] = {_twin_key(one): one for one in self._tree.names(directory)}
        twin = self._listings[directory].get(_twin_key(name))
        if twin is not None and twin != name:
            raise refused(path, "CASE_TWIN", f"{twin!r} exists beside it and is the same name on many systems")

    def _content_of(self, request: WriteRequest) -> bytes:
        if request.content is not None:
            try:
                return request.content.encode("utf-8")
            except UnicodeEncodeError:
                raise refused(request.path, "CONTENT_NOT_UTF8", "the content has an invalid character in it") from None
        if request.content_ref is None:
            raise refused(request.path, "CONTENT_REF_MISSING", "the write has neither content nor content_ref")
        return self._referred(request.path, request.content_ref)

    def _referred(self, path: str, reference: str) -> bytes:
        pattern = None
        try:
            check_path(reference)
            pattern = self._rules.protection.protected_by(reference)
            with named_failures(reference):
                found = None if pattern else self._tree.read(reference, self._rules.max_file_bytes)
        except WriteRefused as refusal:
            code = refusal.code if refusal.code == "TOO_LARGE" else "CONTENT_REF_UNSAFE"
            raise refused(path, code, f"content_ref cannot be read: {refusal.message}") from None
        if pattern:
            raise refused(path, "CONTENT_REF_UNSAFE", f"content_ref is protected by {pattern!r}")
        return _utf8_bytes(path, found)

    def _check_size(self, path: str, growth: int, size: int) -> None:
        if size > self._rules.max_file_bytes:
            limit = self._rules.max_file_bytes
            raise refused(path, "TOO_LARGE", f"the file would have {size} bytes; the limit is {limit}")
        if self._total_bytes + growth > self._rules.max_total_bytes:
            limit = self._rules.max_total_bytes
            raise refused(path, "TOO_LARGE", f"the writes of this result come to more than {limit} bytes")
        self._total_bytes += growth

    def _remember(self, path: str, pending: _Pending) -> None:
        if path in self._pending:
            return
        self._pending[path] = pending
        for one in (*pending.new_dirs, path):
            self._spelling.setdefault(_twin_key(one), one)
        self._directories.update(parents_of(path))


def _check_op(request: WriteRequest, pending: _Pending) -> None:
    if request.op not in (ChangeKind.CREATE, ChangeKind.REPLACE, ChangeKind.APPEND):
        raise refused(
            request.path, "OP_UNKNOWN", f"{request.op!r} is not a write operation; use create, replace or append"
        )
    if request.op == ChangeKind.CREATE and pending.exists:
        raise refused(request.path, "CREATE_EXISTS", "the file exists already; use replace")
    if request.op == ChangeKind.REPLACE and not pending.exists:
        raise refused(request.path, "REPLACE_MISSING", "there is no such file to replace; use create")


def _check_hash(request: WriteRequest, pending: _Pending) -> None:
    """A later write to a path may name the file on disk or the result of the earlier writes."""
    if request.sha256_before is None:
        return
    given = request.sha256_before.strip().lower().removeprefix("sha256:")
    if not _HEX_DIGEST.fullmatch(given):
        raise refused(request.path, "HASH_MISMATCH", "sha256_before is not a SHA-256 in hexadecimal")
    known = {sha256_of(pending.content)} if pending.exists else set()
    if pending.before is not None:
        known.add(pending.before.sha256)
    if given not in known:
        state = "the file is not the one the agent saw" if pending.exists else "there is no such file yet"
        raise refused(request.path, "HASH_MISMATCH", f"sha256_before does not fit: {state}")


def _utf8_bytes(path: str, found: TreeEntry | None) -> bytes:
    if found is None:
        raise refused(path, "CONTENT_REF_MISSING", "content_ref names no file in the workspace")
    try:
        found.data.decode("utf-8")
    except UnicodeDecodeError:
        raise refused(path, "CONTENT_NOT_UTF8", "the file named by content_ref is not UTF-8 text") from None
    return found.data


def _file_change(path: str, pending: _Pending) -> FileChange:
    after = sha256_of(pending.content)
    return FileChange(
        path=path,
        kind=pending.kind(after),
        before=pending.before,
        after_sha256=after,
        after_size=len(pending.content),
        mode=pending.before.mode & 0o777 if pending.before else NEW_FILE_MODE,
        content=pending.content,
        new_dirs=pending.new_dirs,
    )
