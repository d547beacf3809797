"""Folders made from Ganger's repository, each with its own git that shares the objects; some made ahead of need."""

from __future__ import annotations

import os
import secrets
import shutil
import threading
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ganger.errors import GangerError
from ganger.workspaces.files.copying import Fill, can_share_blocks, copy_folder, give_away, share_blocks, stats_of
from ganger.workspaces.files.removal import discard, names_in
from ganger.workspaces.git.git import BYTE_EXACT, Git, GitCall, unjudged
from ganger.workspaces.git.index import restamp
from ganger.workspaces.git.objects import Who

BRANCH = "refs/heads/task"
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# A folder cut short by a power failure is recognized by its contents, so its index need not survive one.
_QUICK = ("core.fsync=none",)
_CONFIG = """[core]
\trepositoryformatversion = {version}
\tfilemode = true
\tbare = false
\tlogallrefupdates = true
[user]
\tname = {name}
\temail = {mail}
[gc]
\tauto = 0
[maintenance]
\tauto = false
{extensions}"""


@dataclass(frozen=True, slots=True)
class Recipe:
    """What folders are made from. `linked` and `copied` are ignored folders of the project that are needed too."""

    store: Path
    project: Path
    author: Who
    linked: tuple[str, ...] = ()
    copied: tuple[str, ...] = ()
    owner: tuple[int, int] | None = None


class Checkouts:
    """Makes folders. A folder gets its final name only when it is complete."""

    def __init__(self, recipe: Recipe) -> None:
        self.recipe = recipe

    def make(self, folder: Path, commit: str) -> None:
        """A new folder with exactly this commit."""
        folder.mkdir(parents=True)
        self._write_git(folder, commit)
        self._check_out(folder, commit)
        self.furnish(folder)

    def move(self, folder: Path, old: str, new: str) -> None:
        """Moves an unused folder from one commit to another."""
        if old != new:
            self._check_out(folder, old, new)
            (folder / ".git" / BRANCH).write_text(f"{new}\n")
            self.furnish(folder)

    def furnish(self, folder: Path) -> None:
        """Adds what git does not hold, and gives everything to the agent's user."""
        for name in self.recipe.linked:
            self._bring(folder, name, copied=False)
        for name in self.recipe.copied:
            self._bring(folder, name, copied=True)
        if self.recipe.owner is not None:
            give_away(folder, self.recipe.owner)
            restamp(folder / ".git" / "index", stats_of(folder))
            os.chown(folder / ".git" / "index", *self.recipe.owner)

    def _check_out(self, folder: Path, *commits: str) -> None:
        words = ("read-tree", "-m", "-u", "--no-recurse-submodules", *commits)
        Git(folder / ".git").call(GitCall(words, f"filling {folder.name}", work_tree=folder, settings=_QUICK))

    def _write_git(self, folder: Path, commit: str) -> None:
        git = folder / ".git"
        for name in ("objects/info", "objects/pack", "refs/heads", "refs/tags", "info"):
            (git / name).mkdir(parents=True)
        sha256 = len(commit) == 64
        who = self.recipe.author
        config = _CONFIG.format(
            version=1 if sha256 else 0,
            name=_quoted(who.name),
            mail=_quoted(who.mail),
            extensions="[extensions]\n\tobjectFormat = sha256\n" if sha256 else "",
        )
        config += unjudged()
        (git / "config").write_text(config, encoding="utf-8")
        (git / "HEAD").write_text(f"ref: {BRANCH}\n")
        (git / BRANCH).write_text(f"{commit}\n")
        (git / "objects" / "info" / "alternates").write_bytes(os.fsencode(self.recipe.store / "objects") + b"\n")
        (git / "info" / "attributes").write_text(BYTE_EXACT)
        brought = (*self.recipe.linked, *self.recipe.copied)
        (git / "info" / "exclude").write_text("".join(f"/{name}\n" for name in brought), encoding="utf-8")
        with suppress(FileNotFoundError):
            shutil.copyfile(self.recipe.store / "shallow", git / "shallow")

    def _bring(self, folder: Path, name: str, *, copied: bool) -> None:
        source = self.recipe.project / name
        *above, last = plain_parts(name)
        if not source.is_dir():
            return
        fd = os.open(folder, _DIRECTORY)
        try:
            for part in above:
                upper, fd = fd, os.open(part, _DIRECTORY, dir_fd=fd)
                os.close(upper)
            if last not in names_in(fd):
                if copied:
                    copy_folder(source.resolve(), last, into=fd)
                else:
                    os.symlink(source, last, dir_fd=fd)
        except (FileNotFoundError, NotADirectoryError):
            return
        finally:
            os.close(fd)


def plain_parts(name: str) -> list[str]:
    """The parts of a folder's name, if that folder may be brought into a workspace."""
    parts = name.split("/")
    if any(part in ("", ".", "..", ".git") for part in parts):
        raise GangerError(
            f"{name!r} cannot be brought into a workspace",
            hint="name a folder relative to the project, such as 'node_modules'",
            code="BAD_LINK",
        )
    return parts


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def fresh_name(above: Path, name: str) -> Path:
    """A place for something half-made."""
    return above / ".new" / f"{name[:100]}-{secrets.token_hex(6)}"


def put_in_place(made: Path, folder: Path) -> None:
    """Gives a complete folder its name; after any error nothing half-made is left."""
    try:
        made.rename(folder)
    except OSError:
        discard(made)
        raise


class Pool:
    """Ready folders, moved to the newest commit when they are taken. Those of an earlier process are discarded."""

    def __init__(self, checkouts: Checkouts, folder: Path, warm: int) -> None:
        self._checkouts = checkouts
        self._folder = folder
        self._warm = warm
        self._mark = secrets.token_hex(4)
        self._ready: dict[Path, str] = {}
        self._lock = threading.Lock()

    def take(self, into: Path, commit: str) -> bool:
        """Moves a ready folder to this place and commit; False when there is none."""
        with self._lock:
            if not self._ready:
                return False
            folder = next((one for one, at in self._ready.items() if at == commit), next(iter(self._ready)))
            old = self._ready.pop(folder)
        try:
            into.parent.mkdir(parents=True, exist_ok=True)
            folder.rename(into)
            self._checkouts.move(into, old, commit)
        except (OSError, GangerError):
            discard(folder)
            discard(into)
            return False
        return True

    @property
    def size(self) -> int:
        with self._lock:
            return len(self._ready)

    def wants_more(self) -> bool:
        with self._lock:
            return len(self._ready) < self._warm

    def fill(self, commit: str) -> None:
        """Makes one more folder if there are too few."""
        if not self.wants_more():
            return
        folder = self._folder / f"{self._mark}-{secrets.token_hex(6)}"
        try:
            self._checkouts.make(folder, commit)
        except (OSError, GangerError):
            discard(folder)
            return
        with self._lock:
            self._ready[folder] = commit

    def sweep(self) -> None:
        """Removes what an earlier process left."""
        if not self._folder.is_dir():
            return
        for folder in list(self._folder.iterdir()):
            if not folder.name.startswith(self._mark):
                discard(folder)


class Template:
    """One folder that follows the branch; others are cloned from it by sharing blocks."""

    def __init__(self, checkouts: Checkouts, pool: Path, fill_file: Fill | None = None) -> None:
        self._checkouts = checkouts
        self._pool = pool
        self._folder = pool / f"template-{secrets.token_hex(6)}"
        self._commit = ""
        self._fill = fill_file
        self._can: bool | None = None if fill_file is None else True
        self._lock = threading.Lock()

    def copy(self, into: Path, commit: str) -> bool:
        """A copy at this place and commit; False where blocks cannot be shared."""
        if not self._works():
            return False
        with self._lock:
            try:
                self._bring(commit)
                _copy(self._folder, into, self._fill or share_blocks)
            except (OSError, GangerError):
                self._can = False
                discard(into)
                discard(self._folder)
                return False
        restamp(into / ".git" / "index", stats_of(into))
        if self._checkouts.recipe.owner is not None:
            self._checkouts.furnish(into)
        return True

    def _works(self) -> bool:
        if self._can is None:
            self._pool.mkdir(parents=True, exist_ok=True)
            self._can = can_share_blocks(self._pool)
        return self._can

    def _bring(self, commit: str) -> None:
        if not self._commit:
            self._checkouts.make(self._folder, commit)
        else:
            self._checkouts.move(self._folder, self._commit, commit)
        self._commit = commit


def _copy(source: Path, into: Path, fill_file: Fill) -> None:
    into.parent.mkdir(parents=True, exist_ok=True)
    fd = os.open(into.parent, _DIRECTORY)
    try:
        copy_folder(source, into.name, into=fd, fill_file=fill_file)
    finally:
        os.close(fd)
