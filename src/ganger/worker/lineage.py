"""The session a command belongs to, by its ancestor processes: everything one agent runs is one session."""

from __future__ import annotations

import os

_SHELLS = frozenset({"sh", "bash", "dash", "zsh", "fish", "ksh", "mksh", "ash", "busybox", "tcsh", "csh", "nu", "pwsh"})
# These live only for one command, like the shell in which an agent runs it.
_WRAPPERS = frozenset(
    {"env", "timeout", "nohup", "nice", "ionice", "stdbuf", "setsid", "sudo", "doas", "su", "xargs", "time", "script"}
    | {"bwrap", "firejail", "unshare", "nsenter", "setpriv", "strace", "make", "just", "uv", "uvx", "pipx", "ganger"}
)
_FARTHEST = 32
# Fields of /proc/PID/stat, counted after the name.
_PARENT, _STARTED = 1, 19


def caller() -> str:
    """The nearest ancestor that outlives a command, by pid and start time; empty if unknown."""
    pid = os.getppid()
    for _ in range(_FARTHEST):
        if pid <= 1:
            return ""
        found = _process(pid)
        if found is None:
            return ""
        name, parent, started = found
        if name not in _SHELLS and name not in _WRAPPERS:
            return f"{pid}-{started % 0x10000:04x}"
        pid = parent
    return ""


def _process(pid: int) -> tuple[str, int, int] | None:
    """A process's name, parent and start time."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as stream:
            head, _, tail = stream.read().rpartition(")")
        fields = tail.split()
        return head.partition("(")[2], int(fields[_PARENT]), int(fields[_STARTED])
    except (OSError, ValueError, IndexError):
        return None
