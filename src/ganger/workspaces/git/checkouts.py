"""New folders from Ganger's repository, each with its own git folder that shares the objects; still unused."""

from __future__ import annotations

import os
import secrets
import shutil
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ganger.errors import GangerError
from ganger.workspaces.files.copying import copy_folder, give_away, stats_of
from ganger.workspaces.files.removal import discard, names_in
from ganger.workspaces.git.git import BYTE_EXACT, Call, Git, unjudged
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
        Git(folder / ".git").call(Call(words, f"filling {folder.name}", work_tree=folder, settings=_QUICK))

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
