"""The project's `.claude/settings.json`: read with checks, replaced as a whole, never followed through a link."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ganger.errors import GangerError
from ganger.hooks.claude_settings import (
    EVENTS,
    FILE,
    FOLDER,
    NEW_FILE,
    FoundHooks,
    command_line,
    found_in,
    installed,
    is_empty,
    uninstalled,
)
from ganger.hooks.json_text import NotJson

_MOST_BYTES = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Hooked:
    """`state` of one event: `installed`, `outdated` (it calls another Ganger) or `missing`."""

    event: str
    state: str
    call: str = ""


def settings_path(root: Path) -> Path:
    return root / ".claude" / "settings.json"


def install(path: Path, call: Sequence[str]) -> bool:
    """Whether anything had to be written."""
    before = _read(path)
    made = () if before is not None else (FILE,) if path.parent.is_dir() else (FILE, FOLDER)
    with _named(path):
        after = installed(NEW_FILE if before is None else _text(path, before), call, made)
    if before is not None and after.encode() == before:
        return False
    _replace(path, before, after)
    return True


def remove(path: Path) -> bool:
    """Whether there was anything to remove."""
    before = _read(path)
    if before is None:
        return False
    with _named(path):
        after, made = uninstalled(_text(path, before))
    if after.encode() == before:
        return False
    if FILE in made and is_empty(after):
        _require_unchanged(path, before)
        path.unlink()
        if FOLDER in made and not any(path.parent.iterdir()):
            path.parent.rmdir()
    else:
        _replace(path, before, after)
    return True


def status(path: Path, call: Sequence[str]) -> list[Hooked]:
    before = _read(path)
    with _named(path):
        found = found_in(_text(path, before)) if before is not None else []
    return [_hooked(event, found, call) for event in EVENTS]


def _hooked(event: str, found: list[FoundHooks], call: Sequence[str]) -> Hooked:
    for hook in found:
        if hook.event == event:
            current = hook.command == command_line(call, hook.made)
            return Hooked(event, "installed" if current else "outdated", hook.call)
    return Hooked(event, "missing")


# --- the file ---------------------------------------------------------------------------------------------------------


@contextmanager
def _named(path: Path) -> Iterator[None]:
    """Adds the file's name to errors in its text."""
    try:
        yield
    except NotJson as error:
        raise _refused(f"{path}: {error}", "fix it by hand; it was not changed") from error


def _refused(message: str, hint: str) -> GangerError:
    return GangerError(message, hint=hint, code="SETTINGS_REFUSED")


def _read(path: Path) -> bytes | None:
    if path.parent.is_symlink():
        raise _refused(f"{path.parent} is a link; Ganger writes only in the project itself", "make it a folder")
    try:
        if not stat.S_ISREG(path.lstat().st_mode):
            kind = "a link; Ganger does not write through it" if path.is_symlink() else "not a regular file"
            raise _refused(f"{path} is {kind}", "make it a file")
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(file, "rb") as opened:
            data = opened.read(_MOST_BYTES + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _refused(f"{path}: cannot be read: {error.strerror}", "check its owner and permissions") from error
    if len(data) > _MOST_BYTES:
        raise _refused(f"{path} is larger than {_MOST_BYTES} bytes", "check its content")
    return data


def _text(path: Path, data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise _refused(f"{path}: byte {error.start} is not UTF-8", "fix it by hand; it was not changed") from error


def _require_unchanged(path: Path, before: bytes | None) -> None:
    if _read(path) != before:
        raise _refused(f"{path} was changed by another program at the same moment", "run the command again")


def _replace(path: Path, before: bytes | None, after: str) -> None:
    try:
        path.parent.mkdir(exist_ok=True)
        mode = stat.S_IMODE(path.stat().st_mode) if before is not None else 0o644
        file, name = tempfile.mkstemp(prefix=".settings-", dir=path.parent)
        temporary = Path(name)
        try:
            with open(file, "wb") as opened:
                opened.write(after.encode())
                opened.flush()
                os.fchmod(file, mode)
                os.fsync(file)
            _require_unchanged(path, before)
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        raise _refused(
            f"{path}: cannot be written: {error.strerror}", "check the folder's owner and permissions"
        ) from error
