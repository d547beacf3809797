"""The one way Ganger runs git: its own git directory, a clean environment, no code but git's; and how damage shows."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import IO

from ganger.errors import DiskFullError, GangerError

REPO_DAMAGED = "REPO_DAMAGED"
_DAMAGE = re.compile(
    r"(?:loose|packed) object .{0,300}(?:is corrupt|is garbage)|object file .{0,300} is empty|invalid sha1 pointer"
    r"|(?:unable to|could not|cannot) read (?:tree |object |sha1 file of |blob )?\(?[0-9a-f]{40}|bad tree object"
    r"|bad object [0-9a-f]{40}|missing (?:blob|tree|commit|object)|garbage at end of loose object|hash mismatch"
    r"|inflate: data stream error|(?:pack|file|index) .{0,300}(?:is far too short to be a packfile|is corrupt)",
    re.IGNORECASE,
)


def shows_damage(said: str) -> bool:
    """Whether git's message reports broken or missing objects, and not a bad request."""
    return _DAMAGE.search(said) is not None


def damaged(store: Path, found: str) -> GangerError:
    lines = [line.strip() for line in found.splitlines() if line.strip()]
    first = next(filter(shows_damage, lines), lines[0] if lines else "git gave no reason")[:300]
    return GangerError(
        f"the git repository {store}, or what it was read from, is damaged: {first}",
        hint="check the disk; `git fsck` in that folder lists the damage, and what the remote or another clone still "
        "holds can be fetched into it again",
        code=REPO_DAMAGED,
    )


OLDEST_GIT = (2, 38)
# What `git fsck` checks in files with these names; an older git that lacks one of them refuses the setting.
_OF_MODULES = (
    *(
        f"gitmodules{what}"
        for what in ("Missing", "Blob", "Large", "Name", "Parse", "Path", "Symlink", "Update", "Url")
    ),
    *("gitattributesSymlink", "gitignoreSymlink", "mailmapSymlink"),
)
_OF_ATTRIBUTES = tuple(f"gitattributes{what}" for what in ("Missing", "Blob", "Large", "LineLength"))
_KNOWS_ATTRIBUTES = (2, 39, 1)
LONG_SEC = 3600.0
_USUAL_SEC = 300.0

# A file's bytes are the repository's bytes, whatever .gitattributes says; only the merge driver is left to the project.
# "!" and not "-" for the encoding: git fails on a false one.
BYTE_EXACT = "* -text -ident -filter !working-tree-encoding !eol\n"

_SETTINGS = (
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.untrackedCache=false",
    "core.splitIndex=false",
    "core.excludesFile=/dev/null",
    "core.attributesFile=/dev/null",
    "core.sshCommand=false",
    "core.gitProxy=false",
    "core.alternateRefsCommand=true",
    "core.pager=cat",
    "core.editor=false",
    "core.fileMode=true",
    "core.symlinks=true",
    "core.ignoreCase=false",
    "core.precomposeUnicode=false",
    "core.autocrlf=false",
    "core.safecrlf=false",
    "core.fsync=committed,reference",
    "core.fsyncMethod=batch",
    "core.filesRefLockTimeout=10000",
    "core.packedRefsTimeout=10000",
    "core.quotePath=false",
    "commit.gpgSign=false",
    "credential.helper=",
    "fetch.fsckObjects=false",
    "fetch.recurseSubmodules=false",
    "fetch.writeCommitGraph=false",
    "gc.auto=0",
    "gpg.program=false",
    "index.sparse=false",
    "index.version=2",
    "init.templateDir=",
    "log.showSignature=false",
    "maintenance.auto=false",
    "merge.conflictStyle=merge",
    "merge.renormalize=false",
    "protocol.allow=never",
    "protocol.ext.allow=never",
    "protocol.file.allow=always",
    "safe.directory=*",
    "submodule.recurse=false",
    "transfer.fsckObjects=false",
    "transfer.unpackLimit=100",
)
_ENVIRONMENT = {
    "LC_ALL": "C",
    "HOME": "/nonexistent",
    "XDG_CONFIG_HOME": "/nonexistent",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ASKPASS": "false",
    "GIT_EDITOR": "false",
    "GIT_PAGER": "cat",
    "GIT_SSH_COMMAND": "false",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_LITERAL_PATHSPECS": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_NO_LAZY_FETCH": "1",
}
_OBJECT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_DISK_FULL = re.compile(r"No space left on device|Disk quota exceeded")


@dataclass(frozen=True, slots=True)
class GitAnswer:
    """A git process's result: exit code and output come together, because neither is enough alone."""

    code: int
    out: bytes
    err: str

    @property
    def text(self) -> str:
        return os.fsdecode(self.out).strip()

    @property
    def names(self) -> list[str]:
        """Output of a `-z` command, piece by piece."""
        return [os.fsdecode(one) for one in self.out.split(b"\0")[:-1]]


@dataclass(frozen=True, slots=True)
class GitCall:
    """One git command. `doing` completes the sentence "git failed while …"; `fine` are the exit codes that are
    results."""

    words: tuple[str, ...]
    doing: str
    data: bytes | IO[bytes] = b""
    work_tree: Path | None = None
    index: Path | None = None
    inside: Path = Path("/")
    environment: Mapping[str, str] = field(default_factory=dict)
    settings: tuple[str, ...] = ()
    fine: tuple[int, ...] = (0,)
    timeout_sec: float = _USUAL_SEC


@cache
def git_program() -> str:
    """The absolute path of git, looked up once."""
    found = shutil.which("git")
    if found is None:
        raise GangerError(
            "git is not installed on this machine",
            hint="install git 2.38 or newer, or set workspace.mode = 'direct'",
            code="GIT_MISSING",
        )
    return str(Path(found).absolute())


class Git:
    """Git on one directory that Ganger owns (or, for reading and exporting, the user's own)."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def call(self, call: GitCall) -> GitAnswer:
        """Runs the call to its end; raises when the exit code is not a fine one. Blocks: call it in a thread."""
        fed = call.data if not isinstance(call.data, bytes) else None
        try:
            done = subprocess.run(
                self.argv(call),
                input=call.data if isinstance(call.data, bytes) else None,
                stdin=fed,
                capture_output=True,
                cwd=call.inside,
                env=environment_for(call),
                timeout=call.timeout_sec,
                start_new_session=True,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise GangerError(
                f"git {call.words[0]} took longer than {call.timeout_sec:.0f} s while {call.doing}",
                hint="check the load and the disk of this machine, then run the same command again",
                code="GIT_FAILED",
            ) from None
        except OSError as problem:
            raise failed(call, problem.strerror or str(problem)) from problem
        answer = GitAnswer(done.returncode, done.stdout, done.stderr.decode("utf-8", "replace"))
        if answer.code not in call.fine:
            raise damaged(self.directory, answer.err) if shows_damage(answer.err) else failed(call, answer.err)
        return answer

    def ask(self, *words: str, doing: str, data: bytes = b"", fine: tuple[int, ...] = (0,)) -> GitAnswer:
        """Runs a call that needs only words."""
        return self.call(GitCall(words, doing, data=data, fine=fine))

    def argv(self, call: GitCall) -> list[str]:
        settings = [word for one in (*_SETTINGS, *call.settings) for word in ("-c", one)]
        place = [f"--git-dir={self.directory}"]
        if call.work_tree is not None:
            place.append(f"--work-tree={call.work_tree}")
            settings += ["-c", "core.bare=false"]
        return [git_program(), *settings, *place, *call.words]

    def resolve(self, name: str) -> str:
        """The object id of a ref or of an expression that Ganger wrote; "" when there is none."""
        answer = self.ask("rev-parse", "--verify", "--quiet", name, doing=f"looking up {name}", fine=(0, 1, 128))
        return answer.text if answer.code == 0 and is_object(answer.text) else ""


def environment_for(call: GitCall) -> dict[str, str]:
    environment = {**_ENVIRONMENT, "PATH": f"{Path(git_program()).parent}:/usr/bin:/bin", **call.environment}
    if call.index is not None:
        environment["GIT_INDEX_FILE"] = str(call.index)
    return environment


def failed(call: GitCall, said: str) -> GangerError:
    """The error shown for a git process that failed."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    first = next((line for line in lines if line.startswith(("fatal:", "error:"))), lines[0] if lines else "no message")
    if _DISK_FULL.search(said):
        return DiskFullError(
            f"the disk is full: git {call.words[0]} failed while {call.doing}",
            hint="Free some space on that file system, then run `ganger run` again; it continues where it stopped.",
        )
    return GangerError(
        f"git {call.words[0]} failed while {call.doing}: {first[:300]}",
        hint="the message is git's own; fix what it names, then run the same command again",
        code="GIT_FAILED",
    )


def is_object(text: str) -> bool:
    """Whether this is a full object id, which can never be taken for an option or an expression."""
    return _OBJECT.fullmatch(text) is not None


def require_object(text: str) -> str:
    if not is_object(text):
        raise GangerError(
            f"{text[:80]!r} is not a commit id", hint="give the full id that Ganger recorded", code="GIT_FAILED"
        )
    return text


@cache
def version() -> tuple[int, int, int]:
    """Zeros where git's version is unknown."""
    found = re.search(r"(\d+)\.(\d+)(?:\.(\d+))?", _said_version())
    return (int(found[1]), int(found[2]), int(found[3] or 0)) if found is not None else (0, 0, 0)


def _said_version() -> str:
    return Git(Path("/nonexistent")).ask("version", doing="asking git for its version").text


def unjudged() -> str:
    """Settings with which `git fsck` does not complain about agents' files that no safeguard has accepted."""
    names = [*_OF_MODULES, *(_OF_ATTRIBUTES if version() >= _KNOWS_ATTRIBUTES else ())]
    return "[fsck]\n" + "".join(f"\t{name} = ignore\n" for name in names)


def check_version() -> None:
    """Refuses a git that cannot merge without a work tree."""
    if version()[:2] < OLDEST_GIT:
        said = _said_version()
        raise GangerError(
            f"{said} is too old for Ganger's workspaces",
            hint="install git 2.38 or newer, or set workspace.mode = 'direct'",
            code="GIT_TOO_OLD",
        )


def lines_of(words: Sequence[str]) -> bytes:
    """Words for a `-z --stdin` command."""
    return b"".join(os.fsencode(word) + b"\0" for word in words)
