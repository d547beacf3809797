"""One set of rules for every change, wherever it comes from: what may land and what may not."""

from __future__ import annotations

import posixpath
import stat
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from functools import cached_property

from ganger.core.masking import NOTHING, Masker
from ganger.core.path_patterns import part_match, path_match
from ganger.errors import WriteRefused
from ganger.ports.changes import Change, Rules, Side, Touched
from ganger.workspaces.files.tree import Tree, parents_of
from ganger.workspaces.gates.gates import Gates
from ganger.workspaces.git.case_twins import base_twins
from ganger.workspaces.refusals import refused, require_none
from ganger.workspaces.rules.line_counts import Line, added_lines
from ganger.workspaces.rules.masking import Mask
from ganger.workspaces.rules.protected import Protection, folded_parts, is_unseen
from ganger.workspaces.rules.secrets import Sample, find_secrets, new_secrets
from ganger.workspaces.rules.writes import SHRINKAGE_FROM_BYTES, ChangeKind, ChangeSet, FileChange, check_path

_BINARY_HEAD = 8000


class Interface:
    """`patterns` work like those of protected paths: without a slash they match any part, with one from the root."""

    def __init__(self, patterns: tuple[str, ...]) -> None:
        self._patterns = tuple(pattern.lower() for pattern in patterns)

    def covers(self, path: str) -> bool:
        parts = folded_parts(path)
        return any(part_match(pattern, parts) for pattern in self._patterns)

    def broken_by(self, touched: Touched, change: Change, *, comparable: bool) -> tuple[str, str] | None:
        """The path and what was removed from it; None when it only grew. `comparable`: both sides can be read."""
        if touched.renamed_from and self.covers(touched.renamed_from):
            return touched.renamed_from, f"it was moved to {touched.path!r}"
        if touched.before is None or not self.covers(touched.path):
            return None
        if touched.after is None:
            return touched.path, "it was deleted"
        if not _same_kind(touched.before, touched.after):
            return touched.path, "something else was put in its place"
        if touched.kind == "mode":
            return None
        if not comparable:
            return touched.path, "it is too large to see whether something was removed"
        lost = _lost(change.before(touched.path), change.after(touched.path))
        return (touched.path, lost) if lost else None


def _same_kind(before: Side, after: Side) -> bool:
    return stat.S_IFMT(before.mode) == stat.S_IFMT(after.mode)


def _lost(before: bytes, after: bytes) -> str:
    """The lines that are gone. Moved and empty lines do not count."""
    if b"\0" in before[:_BINARY_HEAD] or b"\0" in after[:_BINARY_HEAD]:
        return "it is not text, and it was changed"
    gone = [line for line in added_lines(after, before) if line.text.strip()]
    if not gone:
        return ""
    more = f" and {len(gone) - 1} more" if len(gone) > 1 else ""
    return f"line {gone[0].number}{more} of it was changed or removed"


# The first refusal is reported to the task and decides its failure class.
GRAVEST_FIRST = (
    "SECRET_FOUND",
    "INTERFACE_BROKEN",
    "PATH_ABSOLUTE",
    "PATH_ESCAPES",
    "PATH_PROTECTED",
    "LINK_OUTSIDE",
    "PATH_BAD_CHARACTER",
    "PATH_NOT_NORMAL",
    "PATH_TOO_LONG",
    "PATH_NOT_REGULAR",
    "SUBMODULE_CHANGE",
    "BAD_MODE",
    "GATE_CHANGED",
    "OUTSIDE_ROLE",
    "NOT_DECLARED",
    "TOO_LARGE",
    "SHRINKAGE",
    "CASE_TWIN",
)
_SUBMODULE = 0o160000
_DONE_TO = {
    "added": "added",
    "deleted": "deleted",
    "modified": "modified",
    "retyped": "replaced by another kind of entry",
    "mode": "given another mode",
}
_SPECIAL_BITS = stat.S_ISUID | stat.S_ISGID | stat.S_ISVTX
_MOST_SECRETS = 20


@dataclass(frozen=True, slots=True)
class ChangeLimits:
    """Rules for every task: what is protected, how large one change may be, what no change may hold."""

    protection: Protection = field(default_factory=Protection)
    max_file_bytes: int = 16 << 20
    max_total_bytes: int = 64 << 20
    max_files: int = 2000
    secrets: Masker = NOTHING


def judge(change: Change, rules: Rules, limits: ChangeLimits) -> list[WriteRefused]:
    """Every refusal, the gravest first; an empty list when the change may land."""
    if len(change.touched) > limits.max_files:
        message = f"{len(change.touched)} files in one change; the limit is {limits.max_files}: split the task"
        return [refused(change.touched[limits.max_files].path, "TOO_LARGE", message)]
    case = _Case(change, rules, limits)
    found = [refusal for look in _LOOKS for touched in change.touched for refusal in look(case, touched)]
    found += _case_twins(change)
    # A change that is too large to accept is too large to read.
    found += list(_too_much(case)) or _secrets(case)
    return sorted(found, key=lambda refusal: GRAVEST_FIRST.index(refusal.code))


def require(change: Change, rules: Rules, limits: ChangeLimits) -> None:
    """Raises the gravest refusal, with the others."""
    require_none(judge(change, rules, limits))


class _Case:
    """One change and all that is asked of it."""

    def __init__(self, change: Change, rules: Rules, limits: ChangeLimits) -> None:
        self.change = change
        self.rules = rules
        self.limits = limits
        self.protection = limits.protection
        declared = (*(rules.create or ()), *(rules.modify or ()))
        self.gates = None if rules.may_change_gates else Gates(rules.verify, declared=declared)
        self.interface = Interface(rules.interface) if rules.interface else None
        self.sizes = {one.path: one.before.size for one in change.touched if one.before is not None}

    def readable(self, touched: Touched) -> bool:
        """Whether both contents are small enough to be scanned; a larger one is refused for its size."""
        return all(side is None or side.size <= self.limits.max_file_bytes for side in (touched.before, touched.after))


def _paths(touched: Touched) -> tuple[str, ...]:
    return (touched.path, touched.renamed_from) if touched.renamed_from else (touched.path,)


def _is_link(side: Side | None) -> bool:
    return side is not None and stat.S_ISLNK(side.mode)


def _is_submodule(side: Side | None) -> bool:
    return side is not None and stat.S_IFMT(side.mode) == _SUBMODULE


def _is_file(side: Side | None) -> bool:
    return side is not None and stat.S_ISREG(side.mode)


def _bad_path(case: _Case, touched: Touched) -> Iterator[WriteRefused]:
    """A name that existed before may be odd, but must not lead outside."""
    known = touched.before is not None and "\0" not in touched.path
    path = "".join(char for char in touched.path if not is_unseen(char)) if known else touched.path
    try:
        check_path(path)
    except WriteRefused as refusal:
        if not (known and refusal.code == "PATH_TOO_LONG"):
            yield refusal


def _protected(case: _Case, touched: Touched) -> Iterator[WriteRefused]:
    for path in _paths(touched):
        if pattern := case.protection.protected_by(path):
            yield refused(path, "PATH_PROTECTED", f"protected by {pattern!r}; only the operator can open this path")


def _bad_mode(case: _Case, touched: Touched) -> Iterator[WriteRefused]:
    after = touched.after
    if after is None or _is_link(after) or _is_submodule(after):
        return
    if not _is_file(after):
        yield refused(touched.path, "PATH_NOT_REGULAR", "only regular files and links may be part of a change")
    elif after.mode & _SPECIAL_BITS:
        yield refused(touched.path, "BAD_MODE", f"mode {after.mode & 0o7777:04o} has setuid, setgid or sticky bits")


def _bad_submodule(case: _Case, touched: Touched) -> Iterator[WriteRefused]:
    if (_is_submodule(touched.before) or _is_submodule(touched.after)) and not case.protection.opens(touched.path):
        message = (
            f"a submodule or nested repository was {_DONE_TO[touched.kind]}; only the operator can allow this path"
        )
        yield refused(touched.path, "SUBMODULE_CHANGE", message)


def _bad_link(case: _Case, touched: Touched) -> Iterator[WriteRefused]:
    if _is_link(touched.after) and touched.kind != "mode" and case.readable(touched):
        problem = _link_problem(touched.path, case.change.after(touched.path), case.protection)
        if problem:
            yield refused(touched.path, "LINK_OUTSIDE", f"the link {problem}")


def _link_problem(path: str, raw: bytes, protection: Protection) -> str | None:
    """Only leading `..` are accepted: after a name, `..` goes wherever that name's own link points."""
    try:
        target = raw.decode()
    except UnicodeDecodeError:
        return "has a target that is not UTF-8"
    parts = target.split("/")
    if not target or target.startswith("/") or "\\" in target or any(is_unseen(char) for char in target):
        return "has a target that is absolute or not a plain path; make it relative"
    climbs = next((at for at, part in enumerate(parts) if part != ".."), len(parts))
    if ".." in parts[climbs:]:
        return "has a '..' after a name in its target; write the target in its plain form"
    resolved = posixpath.normpath(posixpath.join(posixpath.dirname(path), target))
    if resolved == ".." or resolved.startswith("../"):
        return "leads out of the workspace"
    if resolved == "." or f"{path}/".startswith(f"{resolved}/"):
        return "leads to a folder that holds it"
    pattern = protection.protected_by(resolved)
    return f"leads to a path protected by {pattern!r}" if pattern else None


def _gate(case: _Case, touched: Touched) -> Iterator[WriteRefused]:
    reason = case.gates.gate_of(touched, case.change) if case.gates is not None else None
    if reason:
        message = f"{reason}; only a role that may change gates, or may_change_gates in the task's metadata, allows it"
        yield refused(touched.path, "GATE_CHANGED", message)


def _interface(case: _Case, touched: Touched) -> Iterator[WriteRefused]:
    if case.interface is None:
        return
    broken = case.interface.broken_by(touched, case.change, comparable=case.readable(touched))
    if broken:
        message = (
            f"other repositories build on it: {broken[1]}; only may_break_interface in the task's metadata allows it"
        )
        yield refused(broken[0], "INTERFACE_BROKEN", message)


def _outside_role(case: _Case, touched: Touched) -> Iterator[WriteRefused]:
    if case.rules.paths is None:
        return
    for path in _paths(touched):
        if not _role_covers(case.rules.paths, path):
            yield refused(path, "OUTSIDE_ROLE", "the task's role may not touch this path; leave it as it was")


def _role_covers(patterns: tuple[str, ...], path: str) -> bool:
    """Compared exactly where it allows, folded where `!` excludes."""
    spelt = tuple(path.split("/"))
    allowed = any(part_match(one, spelt) for one in patterns if not one.startswith("!"))
    return allowed and not any(part_match(one[1:].lower(), folded_parts(path)) for one in patterns if one[:1] == "!")


def _undeclared(case: _Case, touched: Touched) -> Iterator[WriteRefused]:
    create, modify = case.rules.create, case.rules.modify
    if create is None and modify is None:
        return
    is_new = touched.before is None
    allowed = (create or ()) if is_new else (*(modify or ()), *(create or ()))
    if not any(covers(one, touched.path) for one in allowed):
        what = "metadata.files_create" if is_new else "metadata.files_modify"
        yield refused(touched.path, "NOT_DECLARED", f"the task does not name it under {what}; it may not be touched")


def covers(declared: str, path: str) -> bool:
    """Whether a declared path covers this one: the same path, or one below it when it ends in a slash or is a glob."""
    bare = declared.removeprefix("./").strip("/")
    below = declared.endswith("/") or "*" in bare or "?" in bare
    return bool(bare) and path_match(tuple(bare.split("/")), tuple(path.split("/")), below=below)


def _shrunken(case: _Case, touched: Touched) -> Iterator[WriteRefused]:
    """A renamed file is compared with its old content; one that changed its kind was removed, not shortened."""
    size = case.sizes.get(touched.renamed_from or touched.path)
    after = touched.after
    if case.rules.allow_shrinkage or size is None or after is None or touched.kind == "retyped" or not _is_file(after):
        return
    if size > SHRINKAGE_FROM_BYTES and after.size * 2 < size:
        yield refused(touched.path, "SHRINKAGE", f"{size} bytes would become {after.size}; write the whole file")


def _too_large(case: _Case, touched: Touched) -> Iterator[WriteRefused]:
    limit = case.limits.max_file_bytes
    if touched.after is not None and not _is_submodule(touched.after) and touched.after.size > limit:
        yield refused(touched.path, "TOO_LARGE", f"the file has {touched.after.size} bytes; the limit is {limit}")


_LOOKS: tuple[Callable[[_Case, Touched], Iterator[WriteRefused]], ...] = (
    _bad_path,
    _protected,
    _bad_mode,
    _bad_submodule,
    _bad_link,
    _gate,
    _interface,
    _outside_role,
    _undeclared,
    _shrunken,
    _too_large,
)


def _too_much(case: _Case) -> Iterator[WriteRefused]:
    total = 0
    for touched in case.change.touched:
        if touched.after is not None and touched.kind != "mode" and not _is_submodule(touched.after):
            total += touched.after.size
            if total > case.limits.max_total_bytes:
                limit = case.limits.max_total_bytes
                yield refused(touched.path, "TOO_LARGE", f"the files of this change come to more than {limit} bytes")
                return


def _case_twins(change: Change) -> Iterator[WriteRefused]:
    """Two new or remaining names that are one on many systems; removed names and old pairs do not count."""
    spelling: dict[tuple[str, ...], str] = {}
    for touched in change.touched:
        if touched.after is None:
            continue
        for one in (*parents_of(touched.path), touched.path):
            other = spelling.setdefault(folded_parts(one), one)
            if other != one and not (_was_there(one, change) and _was_there(other, change)):
                message = f"{one!r} and {other!r} of this change are one name on many systems"
                yield refused(touched.path, "CASE_TWIN", message)
                break
    for path, one, other in base_twins(change):
        message = f"{one!r} and {other!r}, which exists already, are one name on many systems; use the name that exists"
        yield refused(path, "CASE_TWIN", message)


def _was_there(path: str, change: Change) -> bool:
    folder, _, name = path.rpartition("/")
    return name in change.names_before(folder)


def _secrets(case: _Case) -> Iterator[WriteRefused]:
    readable = [one for one in case.change.touched if case.readable(one)]
    samples = (
        Sample(one.path, _content_before(case, one), case.change.after(one.path))
        for one in readable
        if (_is_file(one.after) or _is_link(one.after)) and one.kind != "mode"
    )
    yield from _secret_names(case)
    yield from _handed_values(case, readable)
    for path, found in new_secrets(samples, lambda: (_content_before(case, one) for one in readable))[:_MOST_SECRETS]:
        message = f"line {found.line} holds what looks like {found.kind}; withdraw the secret and keep it out of files"
        yield refused(path, "SECRET_FOUND", message)


def _handed_values(case: _Case, readable: list[Touched]) -> Iterator[WriteRefused]:
    """Values of variables that were passed on: known exactly, whatever they look like."""
    if not case.limits.secrets:
        return
    for one in readable:
        if one.before is None and (named := case.limits.secrets.hits(one.path.encode("utf-8", "surrogatepass"))):
            message = f"its name holds the value of {named[0].name}; withdraw the secret and keep it out of names"
            yield refused(case.limits.secrets.text(one.path), "SECRET_FOUND", message)
        if not (_is_file(one.after) or _is_link(one.after)) or one.kind == "mode":
            continue
        after = case.change.after(one.path)
        found = case.limits.secrets.hits(after)
        if found and len(found) > len(case.limits.secrets.hits(_content_before(case, one))):
            line = after.count(b"\n", 0, found[0].start) + 1
            message = f"line {line} holds the value of {found[0].name}; withdraw the secret and keep it out of files"
            yield refused(case.limits.secrets.text(one.path), "SECRET_FOUND", message)


def _secret_names(case: _Case) -> Iterator[WriteRefused]:
    new = [one.path for one in case.change.touched if one.before is None and one.after is not None]
    lines = [Line(number, path.encode("utf-8", "surrogatepass")) for number, path in enumerate(new)]
    for found in find_secrets(lines)[:_MOST_SECRETS]:
        message = f"its name holds what looks like {found.kind}; withdraw the secret and keep it out of names"
        yield refused(Mask().shown(new[found.line]), "SECRET_FOUND", message)


def _content_before(case: _Case, touched: Touched) -> bytes:
    if touched.renamed_from:
        return case.change.before(touched.renamed_from)
    return case.change.before(touched.path) if _is_file(touched.before) else b""


class PlannedChange:
    """A change set that is not written yet, with the tree it is meant for."""

    def __init__(self, changes: ChangeSet, tree: Tree, limit: int) -> None:
        self._changes, self._tree, self._limit = {change.path: change for change in changes.files}, tree, limit

    @cached_property
    def touched(self) -> tuple[Touched, ...]:
        return tuple(_touched(one) for one in self._changes.values() if one.kind is not ChangeKind.UNCHANGED)

    def before(self, path: str) -> bytes:
        """Also for an untouched file: a check may reach it through a touched one."""
        change = self._changes.get(path)
        if change is not None and change.before is None:
            return b""
        try:
            found = self._tree.read(path, self._limit)
        except WriteRefused:
            return b""
        return b"" if found is None else found.data

    def after(self, path: str) -> bytes:
        change = self._changes.get(path)
        return b"" if change is None else change.content

    def names_before(self, folder: str) -> Collection[str]:
        try:
            return self._tree.names(folder)
        except (OSError, WriteRefused):
            return ()


def _touched(change: FileChange) -> Touched:
    mode = _mode(change.mode)
    before = change.before
    was = None if before is None else Side(_mode(before.mode), before.size, before.sha256)
    return Touched(change.path, was, Side(mode, change.after_size, change.after_sha256))


def _mode(mode: int) -> int:
    return stat.S_IFREG | (0o755 if mode & 0o111 else 0o644)
