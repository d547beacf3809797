"""What the lead leaves on a desk for a worker that can only read files: its messages, and why a file was refused."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from ganger.core.model.workers import Message
from ganger.engine.workers.file_inbox import FOLDER

MESSAGES = "messages.json"
_FRESH = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
# The desk itself is closed to others; inside walls its worker may be another user than the lead.
_MODE = 0o644


def told(messages: Sequence[Message]) -> list[dict[str, object]]:
    """Messages as every carrier shows them."""
    return [
        {"number": m.number, "kind": m.kind, "text": m.text, "at": m.at, "question": m.about or None} for m in messages
    ]


def leave_messages(desk: Path, messages: Sequence[Message]) -> bool:
    """All of them: a file is read whole, whenever its reader has time."""
    latest = messages[-1].number if messages else 0
    return _leave(desk, MESSAGES, {"messages": told(messages), "latest": latest})


def leave_refusal(desk: Path, kind: str, file: str, why: Mapping[str, object]) -> bool:
    """The newest of its kind."""
    return _leave(desk, _refusal(kind), {"file": file, **why})


def take_back_refusal(desk: Path, kind: str) -> None:
    """What came later was taken."""
    with contextlib.suppress(OSError):
        place = os.open(desk, FOLDER)
        try:
            os.unlink(_refusal(kind), dir_fd=place)
        finally:
            os.close(place)


def _refusal(kind: str) -> str:
    return f"refused-{kind}.json"


def _leave(desk: Path, name: str, value: Mapping[str, object]) -> bool:
    """Whole or not at all, by folder handles: its worker may put anything in the place of a file."""
    content = json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")
    fresh = f".{name}.new"
    try:
        place = os.open(desk, FOLDER)
    except OSError:
        return False
    try:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(fresh, dir_fd=place)
        with open(os.open(fresh, _FRESH, 0o600, dir_fd=place), "wb") as file:
            os.fchmod(file.fileno(), _MODE)
            file.write(content)
        os.rename(fresh, name, src_dir_fd=place, dst_dir_fd=place)
    except OSError:
        return False
    finally:
        os.close(place)
    return True
