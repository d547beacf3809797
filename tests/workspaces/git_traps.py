"""Traps an agent lays for whoever runs git in its folder: each leaves a file with its name when it goes off."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.workspaces.git_projects import git

HOOKS = [
    "applypatch-msg",
    "commit-msg",
    "fsmonitor-watchman",
    "post-applypatch",
    "post-checkout",
    "post-commit",
    "post-index-change",
    "post-merge",
    "post-receive",
    "post-rewrite",
    "post-update",
    "pre-applypatch",
    "pre-auto-gc",
    "pre-commit",
    "pre-merge-commit",
    "pre-push",
    "pre-rebase",
    "pre-receive",
    "prepare-commit-msg",
    "proc-receive",
    "push-to-checkout",
    "reference-transaction",
    "sendemail-validate",
    "update",
]


@dataclass(frozen=True)
class Trapper:
    """Writes programs that leave a mark."""

    marks: Path
    programs: Path

    def program(self, name: str, *, passes: bool = False) -> str:
        self.programs.mkdir(parents=True, exist_ok=True)
        self.marks.mkdir(parents=True, exist_ok=True)
        path = self.programs / name
        path.write_text(f"#!/bin/sh\n: > '{self.marks}/{name}'\n{'exec cat' if passes else 'exit 0'}\n")
        path.chmod(0o755)
        return str(path)

    def sprung(self) -> set[str]:
        return set(os.listdir(self.marks)) if self.marks.is_dir() else set()


def _config(folder: Path, *pairs: tuple[str, str]) -> None:
    for name, value in pairs:
        git(folder, "config", "--local", name, value)


def hooks(folder: Path, trapper: Trapper) -> None:
    (folder / ".git/hooks").mkdir(exist_ok=True)
    for name in HOOKS:
        (folder / ".git/hooks" / name).symlink_to(trapper.program(f"hook-{name}"))


def hooks_path(folder: Path, trapper: Trapper) -> None:
    elsewhere = trapper.programs / "hooks"
    elsewhere.mkdir(parents=True)
    for name in HOOKS:
        (elsewhere / name).symlink_to(trapper.program(f"hookspath-{name}"))
    _config(folder, ("core.hooksPath", str(elsewhere)))


def programs_in_config(folder: Path, trapper: Trapper) -> None:
    names = (
        "core.fsmonitor core.sshCommand core.pager core.editor core.askPass core.gitProxy core.alternateRefsCommand "
        "diff.external credential.helper gpg.program sequence.editor uploadpack.packObjectsHook"
    )
    _config(folder, *((name, trapper.program(f"config-{name}")) for name in names.split()))
    _config(folder, ("commit.gpgSign", "true"), ("alias.ls-files", f"!{trapper.program('alias')}"))


def filters_and_drivers(folder: Path, trapper: Trapper) -> None:
    for kind in ("clean", "smudge"):
        _config(folder, (f"filter.evil.{kind}", trapper.program(f"filter-{kind}", passes=True)))
    _config(folder, ("filter.evil2.process", trapper.program("filter-process")))
    _config(folder, ("diff.evil.command", trapper.program("diff-command")))
    _config(folder, ("diff.evil.textconv", f"{trapper.program('textconv', passes=True)} <"))
    _config(folder, ("merge.evil.driver", f"{trapper.program('merge-driver')} %O %A %B"))
    text = "* filter=evil diff=evil merge=evil ident text=auto eol=crlf\n*.bin filter=evil2\n"
    (folder / ".gitattributes").write_text(text)
    (folder / ".git/info/attributes").write_text(text)


def includes(folder: Path, trapper: Trapper) -> None:
    (folder / "more.config").write_text(f"[core]\n\tfsmonitor = {trapper.program('include')}\n")
    _config(folder, ("include.path", "../more.config"), ("extensions.worktreeConfig", "true"))
    (folder / ".git/config.worktree").write_text(f"[core]\n\tfsmonitor = {trapper.program('worktree-config')}\n")


def transports(folder: Path, trapper: Trapper) -> None:
    url = f"ext::{trapper.program('ext')}"
    _config(folder, ("protocol.ext.allow", "always"), ("remote.origin.url", url), ("url.ext::x.insteadOf", "/"))
    _config(folder, ("remote.origin.uploadpack", trapper.program("upload-pack")))
    (folder / ".gitmodules").write_text(
        f'[submodule "sub"]\n\tpath = sub\n\turl = {url}\n\tupdate = !{trapper.program("submodule-update")}\n'
    )
    _config(folder, ("submodule.sub.update", f"!{trapper.program('submodule-config')}"), ("submodule.sub.url", url))


def names_like_options(folder: Path, trapper: Trapper) -> None:
    for name in (
        f"--upload-pack={trapper.program('name-upload-pack')}".replace("/", "\\"),
        "--output=canary",
        "-cfoo",
        "--exec=sh",
        "-O",
        "--open-files-in-pager=sh",
        "new\nline",
        os.fsdecode(b"bad\xff"),
        ":(attr:x)y",
    ):
        (folder / name).write_text("x\n")


def embedded(folder: Path, trapper: Trapper) -> None:
    """Repositories inside: an ordinary one, a bare one, and a gitfile that leads to a third."""
    for name, flags in (("inner", ()), ("bare", ("--bare",)), ("ignored-git", ())):
        (folder / name).mkdir()
        git(folder / name, "init", "-q", *flags)
        _config(folder / name, ("core.fsmonitor", trapper.program(f"embedded-{name}")))
    (folder / "led").mkdir()
    (folder / "led/.git").write_text("gitdir: ../inner/.git\n")
    for name in ("inner", "led"):
        (folder / name / "file.txt").write_text("x\n")


def own_gitfile(folder: Path, trapper: Trapper) -> None:
    """The workspace's own git folder moved away and led to by a file."""
    (folder / ".git").rename(folder / "elsewhere.git")
    (folder / ".git").write_text("gitdir: elsewhere.git\n")
    _config(folder, ("core.fsmonitor", trapper.program("own-gitfile")))


TRAPS: dict[str, Callable[[Path, Trapper], None]] = {
    trap.__name__: trap
    for trap in (
        hooks,
        hooks_path,
        programs_in_config,
        filters_and_drivers,
        includes,
        transports,
        names_like_options,
        embedded,
        own_gitfile,
    )
}
