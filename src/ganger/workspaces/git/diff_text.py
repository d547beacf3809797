"""A change as text for people and reviewers, within a length limit."""

from __future__ import annotations

import os
import subprocess
import tempfile

from ganger.workspaces.git.damage import damaged, shows_damage
from ganger.workspaces.git.git import Call, Git, environment_for, failed, require_object

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


def files_of(git: Git, commit: str) -> list[str]:
    """The paths that a commit changed, compared with its first parent."""
    words = ("diff-tree", "-r", "-z", "--no-commit-id", "--name-only", "--root", "--no-renames")
    answer = git.ask(*words, "--diff-merges=first-parent", require_object(commit), doing="reading a change")
    return [os.fsdecode(name) for name in answer.out.split(b"\0") if name]


def diff_text(git: Git, base: str, commit: str, most_bytes: int) -> str:
    """A list of the files, then the change itself; it is cut at a line after `most_bytes`, with a note."""
    call = Call((*_WORDS, require_object(base), require_object(commit)), "showing a change", settings=_SETTINGS)
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
