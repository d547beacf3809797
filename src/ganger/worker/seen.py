"""The last message a worker has read: a number in its desk."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from .identity import WorkerIdentity

_NAME = "messages.seen"


def last_seen(post: WorkerIdentity) -> int:
    if not post.desk:
        return 0
    try:
        file = os.open(f"{post.desk}/{_NAME}", os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return 0
    try:
        text = os.read(file, 20)
    except OSError:
        text = b""
    finally:
        os.close(file)
    return int(text) if text.isdigit() else 0


def note_seen(post: WorkerIdentity, number: int) -> None:
    """Notes the number; if that fails, the messages are read again."""
    if not post.desk or number <= last_seen(post):
        return
    try:
        unfinished = f"{post.desk}/.{_NAME}.{os.getpid()}.tmp"
        file = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            os.write(file, str(number).encode("ascii"))
        finally:
            os.close(file)
        os.rename(unfinished, f"{post.desk}/{_NAME}")
    except OSError:
        return


def unread(post: WorkerIdentity, reply: Mapping[str, object]) -> int:
    """The number of unread messages, from a reply."""
    latest, count = reply.get("latest"), reply.get("messages")
    if not isinstance(latest, int) or not isinstance(count, int):
        return 0
    return min(count, max(0, latest - last_seen(post))) if post.desk else count
