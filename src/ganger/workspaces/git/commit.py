"""Turns an attempt's workspace into a commit: judged as a change, or kept without judgement."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ganger.contracts.task_result import Write
from ganger.core.masking import Masker
from ganger.errors import GangerError, NotFoundError
from ganger.local.scratch import scratch_folder
from ganger.ports.changes import Rules, Touched
from ganger.ports.repository import Taken
from ganger.workspaces.files.tree import Tree
from ganger.workspaces.git.bare_repo import BareRepo
from ganger.workspaces.git.git import is_object
from ganger.workspaces.git.landing import KeptWork
from ganger.workspaces.git.objects import Commit, ObjectReader, Who, tidy, write_blobs, write_commit, write_tree
from ganger.workspaces.git.settings import AttemptPlace, GitSettings, RunRefs
from ganger.workspaces.git.take import (
    Bounds,
    FolderChange,
    Source,
    TreeDifference,
    id_width,
    renames_of,
    require_outside_links,
    scratch_index,
    shown_paths,
    to_judge,
    to_keep,
)
from ganger.workspaces.refusals import refused
from ganger.workspaces.rules.line_counts import Line
from ganger.workspaces.rules.secrets import find_secrets
from ganger.workspaces.rules.writes import WriteRequest, WriteRules, plan_changes

_MOST_REASONS = 50


@dataclass(frozen=True, slots=True)
class Attempts:
    """Blocks: call it in a thread."""

    settings: GitSettings
    bare: BareRepo
    refs: RunRefs

    def folder(self, attempt: AttemptPlace) -> Path:
        return self.settings.work / attempt.name

    def index(self, attempt: AttemptPlace, commit: str) -> Path:
        """A copy of the fresh workspace's index, where the agent never sees it."""
        return self.settings.work / ".index" / f"{attempt.name}.{commit}"

    def is_planted(self, attempt: AttemptPlace) -> bool:
        """Whether something other than a folder lies where no workspace was made."""
        folder = self.folder(attempt)
        return os.path.lexists(folder) and not _is_folder(folder) and not self._known_origin(attempt)

    def _known_origin(self, attempt: AttemptPlace) -> str:
        return self.bare.git.resolve(self.refs.at(attempt)) or self._origin_by_index(attempt)

    def origin(self, attempt: AttemptPlace) -> str:
        """The commit a workspace was made from."""
        found = self._known_origin(attempt)
        if not found:
            raise GangerError(
                f"Ganger's repository does not know from which commit {self.folder(attempt)} was made",
                hint="look at that folder by hand, move it away, and run the same command again",
                code="GIT_FAILED",
            )
        return found

    def _origin_by_index(self, attempt: AttemptPlace) -> str:
        """A power cut can empty the ref; the index's name reaches the disk before the folder's does."""
        folder = self.settings.work / ".index"
        names = [one.name for one in folder.iterdir()] if folder.is_dir() else []
        commits = [name.rpartition(".")[2] for name in names if name.rpartition(".")[0] == attempt.name]
        return commits[0] if len(commits) == 1 and is_object(commits[0]) else ""

    def take(self, attempt: AttemptPlace, writes: Sequence[Write], rules: Rules, message: str) -> Taken:
        source = self._source(attempt)
        difference = to_judge(source, self._bounds)
        self._lay_over(source, difference, writes, rules)
        commit = source.commit
        if difference.leaves:
            tree = self._judged(source, difference, rules)
            _require_no_secret(message, self.settings.secrets)
            commit = self._commit(tree, source.commit, self.refs.change(attempt), message)
        return Taken(
            commit=commit,
            base=source.commit,
            files=difference.files,
            dropped=shown_paths(sorted(difference.dropped)),
            missing=tuple(path for path in rules.expected if not _is_there(path, difference)),
        )

    def save(self, attempt: AttemptPlace, told: Callable[[Sequence[Touched]], str]) -> tuple[str, tuple[str, ...]]:
        if not _is_folder(self.folder(attempt)):
            # What an agent put in its place is not part of its work.
            return "", ()
        source = self._source(attempt)
        difference = to_keep(source)
        if not difference.leaves:
            return "", ()
        tree = self._kept_tree(source, difference)
        with ObjectReader(self.bare.git) as reader:
            message = told(FolderChange(difference, {}, reader).touched)
        if difference.left_out:
            reasons = [f"Left out: {one.message}" for one in list(difference.left_out.values())[:_MOST_REASONS]]
            message = _with_reasons(message, reasons)
        ref, message = self.refs.wip(attempt), self.settings.secrets.text(message)
        return self._commit(tree, source.commit, ref, message), shown_paths(difference.files)

    def kept(self, attempt: AttemptPlace, *, merged: bool) -> KeptWork:
        """Whether the content of a workspace is also stored elsewhere; "unsaved" where that is unknown."""
        try:
            source = self._source(attempt)
            difference = to_keep(source)
        except (GangerError, OSError):
            return KeptWork.UNSAVED
        lost = [one for one in difference.left_out.values() if one.code != "SPECIAL_FILE"]
        if not difference.leaves:
            return KeptWork.UNSAVED if lost else KeptWork.MERGED if merged else KeptWork.SAVED
        tree = self._kept_tree(source, difference)
        for ref, state in (
            (self.refs.change(attempt), KeptWork.MERGED if merged else KeptWork.SAVED),
            (self.refs.wip(attempt), KeptWork.SAVED),
        ):
            if self.bare.git.resolve(f"{ref}^{{tree}}") == tree:
                return state
        return KeptWork.UNSAVED

    def _source(self, attempt: AttemptPlace) -> Source:
        folder = self.folder(attempt)
        if not _is_folder(folder):
            raise NotFoundError(f"the workspace {folder} is gone", hint="the task is tried again")
        commit = self.origin(attempt)
        index = self.index(attempt, commit)
        return Source(self.bare.git, folder, commit, index, self.settings.brought, self.settings.generated)

    def _lay_over(self, source: Source, difference: TreeDifference, writes: Sequence[Write], rules: Rules) -> None:
        if not writes:
            return
        require_outside_links((write.path for write in writes), source.linked)
        limits = WriteRules(
            protection=self.settings.protection,
            allow_shrinkage=rules.allow_shrinkage,
            max_file_bytes=self.settings.max_file_bytes,
            max_total_bytes=self.settings.max_total_bytes,
            max_files=self.settings.max_files,
        )
        with Tree(source.folder) as tree:
            difference.lay_over(plan_changes(tree, [_request(write) for write in writes], limits).files)

    def _judged(self, source: Source, difference: TreeDifference, rules: Rules) -> str:
        """The difference as a tree, once the judge has accepted it."""
        git = self.bare.git
        write_blobs(git, list(difference.contents.values()), id_width(difference.before))
        with scratch_folder("take") as folder, ObjectReader(git) as reader:
            tree = write_tree(git, scratch_index(source, difference, Path(folder)), difference.leaves)
            renames = renames_of(git, source.commit, tree, difference)
            self.settings.judge(FolderChange(difference, renames, reader), rules)
        return tree

    def _kept_tree(self, source: Source, difference: TreeDifference) -> str:
        with scratch_folder("save") as folder:
            return write_tree(self.bare.git, scratch_index(source, difference, Path(folder)), difference.leaves)

    def _commit(self, tree: str, parent: str, ref: str, message: str) -> str:
        """A commit kept at a ref; the ref's own commit if it holds the same change already."""
        git, message = self.bare.git, self.settings.signed(message)
        known = git.resolve(ref)
        if known:
            with ObjectReader(git) as reader:
                found = reader.commit(known)
            if found is not None and (found.tree, found.parents, found.message) == (tree, (parent,), tidy(message)):
                return known
        who = Who.parse(self.settings.author).at(self.settings.now())
        made = write_commit(git, Commit(tree, (parent,), who, who, message))
        self.bare.set_ref(ref, made)
        return made

    @property
    def _bounds(self) -> Bounds:
        settings = self.settings
        return Bounds(settings.max_file_bytes, settings.max_total_bytes, settings.max_files)


def _is_folder(path: Path) -> bool:
    """A folder of its own, not one that a link points to."""
    return path.is_dir() and not path.is_symlink()


def _require_no_secret(message: str, handed: Masker) -> None:
    """Refuses a message with a secret in it: the message goes wherever the change goes."""
    for hit in handed.hits(message.encode("utf-8", "replace"))[:1]:
        told = f"it holds what {hit.name} was handed to it with; withdraw the secret and keep it out of summaries"
        raise refused("the commit message", "SECRET_FOUND", told)
    for found in find_secrets(
        [Line(number, text.encode("utf-8", "replace")) for number, text in enumerate(message.split("\n"), 1)]
    ):
        told = f"line {found.line} holds what looks like {found.kind}; withdraw the secret and keep it out of summaries"
        raise refused("the commit message", "SECRET_FOUND", told)


def _with_reasons(message: str, reasons: Sequence[str]) -> str:
    """Inserts before the last paragraph, which holds the trailers."""
    above, blank, last = message.rstrip("\n").rpartition("\n\n")
    return "\n\n".join([above, "\n".join(reasons), last]) if blank else "\n\n".join([last, "\n".join(reasons)])


def _request(write: Write) -> WriteRequest:
    return WriteRequest(write.path, write.op, write.content, write.content_ref, write.sha256_before)


def _is_there(path: str, difference: TreeDifference) -> bool:
    """Whether a file of that name exists after the change: new, or there before and not removed."""
    return difference.leaves[path] is not None if path in difference.leaves else path in difference.before
