"""Claims: the tasks held by sessions that asked for one, each a private file in the run's folder.

Later calls of a session need no environment: the claim identifies it. A session is known by its name, else by its
ancestor processes: everything that one agent runs is one session.
"""

from __future__ import annotations

import json
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from .identity import WorkerIdentity

_PLAIN = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-")
_LONGEST_STEM = 120
_LONGEST_FILE = 4 * 1024 * 1024
_SHELLS = frozenset({"sh", "bash", "dash", "zsh", "fish", "ksh", "mksh", "ash", "busybox", "tcsh", "csh", "nu", "pwsh"})
# These live only for one command, like the shell in which an agent runs it.
_WRAPPERS = frozenset(
    {"env", "timeout", "nohup", "nice", "ionice", "stdbuf", "setsid", "sudo", "doas", "su", "xargs", "time", "script"}
    | {"bwrap", "firejail", "unshare", "nsenter", "setpriv", "strace", "make", "just", "uv", "uvx", "pipx", "ganger"}
)
_FARTHEST = 32
# Fields of /proc/PID/stat, counted after the name.
_PARENT, _STARTED = 1, 19


def stem(name: str) -> str:
    """A run's or worker's name as a file name: unique, and unable to leave its folder."""
    text = "".join(c if c in _PLAIN else "".join(f"%{b:02X}" for b in c.encode("utf-8", "replace")) for c in name)
    if text.startswith((".", "-")):
        text = f"%{ord(text[0]):02X}{text[1:]}"
    if len(text) <= _LONGEST_STEM:
        return text or "%"
    import hashlib

    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return f"{text[: _LONGEST_STEM - 17]}~{digest}"


def claims(folder: str) -> list[dict[str, Any]]:
    """The claims of a run's workers, each with its file."""
    try:
        names = sorted(name for name in os.listdir(f"{folder}/workers") if name.endswith(".json") and name[0] != ".")
    except OSError:
        return []
    found = []
    for name in names:
        claim = read_object(f"{folder}/workers/{name}")
        if claim is not None and all(isinstance(claim.get(key), str) for key in ("worker", "token")):
            found.append({"done": False, **claim, "file": f"{folder}/workers/{name}"})
    return found


def claim_of(folder: str, worker: str) -> dict[str, Any] | None:
    return next((claim for claim in claims(folder) if claim["worker"] == worker), None)


def claim_file(folder: str, worker: str) -> str:
    return f"{folder}/workers/{stem(worker)}.json"


def mark(post: WorkerIdentity, **marks: bool) -> None:
    """Marks on a worker's claim what it has done; does nothing without a claim."""
    file = post.claim or _claim_beside(post)
    claim = read_object(file) if file else None
    if claim is not None and claim.get("token") == post.token:
        try:
            write_private(file, json.dumps({**claim, **marks}, indent=1))
        except OSError:
            # The request was sent, even if it cannot be noted here.
            return


def is_marked(post: WorkerIdentity, name: str) -> bool:
    file = post.claim or _claim_beside(post)
    claim = read_object(file) if file else None
    return claim is not None and claim.get("token") == post.token and claim.get(name) is True


def _claim_beside(post: WorkerIdentity) -> str:
    """The claim of a session that put it into its environment; its desk is in the run's folder."""
    folder = os.path.dirname(os.path.dirname(post.desk)) if post.desk else ""
    return next((str(claim["file"]) for claim in claims(folder) if claim["token"] == post.token), "") if folder else ""


def write_private(file: str, text: str) -> None:
    """Replaces the file atomically; only its owner can read it."""
    os.makedirs(os.path.dirname(file), mode=0o700, exist_ok=True)
    unfinished = os.path.join(os.path.dirname(file), f".{os.path.basename(file)}.{os.getpid()}.tmp")
    descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8", errors="replace") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(descriptor)
        os.rename(unfinished, file)
    except OSError:
        os.unlink(unfinished)
        raise


def read_object(file: str) -> dict[str, Any] | None:
    try:
        with open(file, encoding="utf-8") as stream:
            found = json.loads(stream.read(_LONGEST_FILE))
    except (OSError, ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def worker_name(asked: str, environ: Mapping[str, str]) -> str:
    """The given name, else GANGER_WORKER, else one made of user, host, and session, terminal or program."""
    if asked or environ.get("GANGER_WORKER"):
        return asked or environ["GANGER_WORKER"]
    session = environ.get("GANGER_SESSION", "")[:8] or _terminal() or session_of_caller()
    who = f"{environ.get('USER') or environ.get('LOGNAME') or os.getuid()}@{os.uname().nodename}"
    return f"{who}/{session}" if session else who


def _terminal() -> str:
    for stream in (0, 1, 2):
        try:
            return os.ttyname(stream).removeprefix("/dev/").replace("/", "-")
        except OSError:
            continue
    return ""


def session_of_caller() -> str:
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
