"""`ganger hooks run claude`: tells a session that holds a task and has not reported to continue, and no other session.

It is called whenever a session stops, so it imports little, waits at most two seconds for an answer, and lets the
session end whenever anything is unexpected.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence

GO_ON = 2
LET_GO = 0
# How often a session is reminded of one task in a row without an effect, and how often in all.
IN_A_ROW = 3
IN_ALL = 12
_MOST_BYTES = 1_000_000
_ASK_SEC = 2.0
_SESSION = re.compile(r"[A-Za-z0-9._:-]{1,128}")
_OVER = frozenset({401, 403, 404, 409})

Claim = dict[str, object]


def main(words: Sequence[str], environ: Mapping[str, str]) -> int:
    try:
        if list(words) != ["claude"]:
            return LET_GO
        told = json.loads(sys.stdin.buffer.read(_MOST_BYTES))
        return _answer(told, environ) if isinstance(told, dict) else LET_GO
    except Exception:  # noqa: BLE001 - nothing of Ganger's may hold up a person's session
        return LET_GO


def _answer(told: Mapping[str, object], environ: Mapping[str, str]) -> int:
    event, session = told.get("hook_event_name"), _word(told.get("session_id"))
    starts = [environ.get("CLAUDE_PROJECT_DIR", ""), _word(told.get("cwd"))]
    roots = list(_projects(starts, environ))
    if event == "SessionStart":
        if roots:
            _name_session(session, environ.get("CLAUDE_ENV_FILE", ""))
        return LET_GO
    if event not in ("Stop", "TeammateIdle") or _goes_on_by_itself(told.get("background_tasks")):
        return LET_GO
    mate = _word(told.get("teammate_name"))
    if event == "TeammateIdle" and not mate:
        return LET_GO
    for place, claim in _claims(roots, environ):
        if _is_held(claim, session, mate if event == "TeammateIdle" else "") and _lead_waits(claim):
            active = told.get("stop_hook_active") is not False
            if _may_tell(place, claim, active=active):
                print(_words(claim), file=sys.stderr)
                return GO_ON
    return LET_GO


def _goes_on_by_itself(tasks: object) -> bool:
    """Whether the session's own agents are at work: it is called again when they finish, and one of them may hold the
    task."""
    rows = [task for task in tasks if isinstance(task, dict)] if isinstance(tasks, list) else []
    return any(row.get("status") == "running" and "agent" in _word(row.get("type")) for row in rows)


def _name_session(session: str, file: str) -> None:
    """Every later command of this session finds its name in GANGER_SESSION."""
    if file and _SESSION.fullmatch(session):
        with open(file, "a", encoding="utf-8") as opened:
            opened.write(f"export GANGER_SESSION={session}\n")


def _word(value: object) -> str:
    return value if isinstance(value, str) else ""


# --- which tasks this session holds -----------------------------------------------------------------------------------


def _projects(starts: Sequence[str], environ: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Every project around these places, and its state folder; a workspace is a project inside another."""
    seen, state_dir = set(), environ.get("GANGER_STATE_DIR", "")
    for start in starts:
        place = os.path.realpath(start) if start else ""
        while place and place not in seen:
            seen.add(place)
            file = f"{place}/ganger.toml"
            if os.path.isfile(file):  # noqa: PTH113
                yield place, os.path.join(place, state_dir or _state_dir(file))  # noqa: PTH118
            place = "" if place == "/" else os.path.dirname(place)  # noqa: PTH120


def _state_dir(file: str) -> str:
    with open(file, "rb") as opened:
        data = opened.read(_MOST_BYTES)
    if b"state_dir" not in data:
        return ".ganger"
    import tomllib

    try:
        return _word(tomllib.loads(data.decode()).get("state_dir")) or ".ganger"
    except ValueError:
        return ".ganger"


def _claims(projects: Sequence[tuple[str, str]], environ: Mapping[str, str]) -> Iterator[tuple[str, Claim]]:
    from ganger.worker.folders import private_folder, run_folders

    for project, state_dir in projects:
        for run in run_folders(state_dir, private_folder(project, environ)):
            folder = f"{run}/workers"
            for name in _names(folder):
                if name.endswith(".json"):
                    claim = _read(f"{folder}/{name}")
                    if claim is not None:
                        yield f"{folder}/{name}", claim


def _names(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))  # noqa: PTH208
    except OSError:
        return []


def _read(file: str) -> Claim | None:
    """The claim in a file; a damaged or foreign file has none."""
    try:
        opened = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(opened, "rb") as stream:
            value = json.loads(stream.read(_MOST_BYTES))
    except (OSError, ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _is_held(claim: Claim, session: str, mate: str) -> bool:
    """Whether a claim belongs to this agent. A teammate is identified by its name, because it shares its leader's
    session."""
    if claim.get("reported") is not False or claim.get("done") is True:
        return False
    if mate:
        return claim.get("worker") == mate and claim.get("session", "") in ("", session)
    return bool(session) and claim.get("session") == session


# --- whether the lead still waits for it ----------------------------------------------------------------------------


def _lead_waits(claim: Claim) -> bool:
    """Whether a lead runs and the attempt is not over."""
    import socket

    address, token = _word(claim.get("report")), _word(claim.get("token"))
    if not address or not token.isascii() or not token.isprintable():
        return False
    host, _, port = address.removeprefix("http://").rstrip("/").rpartition(":")
    is_local = address.startswith("/")
    if not (_is_own(address) if is_local else host in ("127.0.0.1", "localhost")):
        return False
    with socket.socket(socket.AF_UNIX if is_local else socket.AF_INET) as line:
        line.settimeout(_ASK_SEC)
        line.connect(address if is_local else (host, int(port)))
        line.sendall(
            f"POST /v1/brief HTTP/1.1\r\nHost: {'ganger' if is_local else f'{host}:{port}'}\r\nConnection: close\r\n"
            f"Content-Type: application/json\r\nAuthorization: Bearer {token}\r\nContent-Length: 2\r\n\r\n{{}}".encode()
        )
        answer = line.recv(64)
    return answer.startswith(b"HTTP/1.") and int(answer[9:12]) not in _OVER


def _is_own(address: str) -> bool:
    """Whether a socket is this user's: others can make sockets in that place, and the token must not reach them."""
    return os.stat(address, follow_symlinks=False).st_uid in (0, os.geteuid())  # noqa: PTH116


# --- how often it was reminded --------------------------------------------------------------------------------------


def _may_tell(place: str, claim: Claim, *, active: bool) -> bool:
    """Counts a reminder. Where the count cannot be stored, one is enough: `active` says that there was one before."""
    beside = place.removesuffix(".json") + ".hook"
    stands = [claim.get("task_id"), claim.get("attempt"), *_marks(place, _word(claim.get("desk")))]
    before = _read(beside) or {}
    same = [before.get("task_id"), before.get("attempt")] == stands[:2]
    in_all, row = (_number(before.get(key)) if same else 0 for key in ("in_all", "in_a_row"))
    row = row if before.get("stands") == stands else 0
    if row >= IN_A_ROW or in_all >= IN_ALL:
        return False
    kept = {"task_id": stands[0], "attempt": stands[1], "stands": stands, "in_a_row": row + 1, "in_all": in_all + 1}
    return _keep(beside, kept) or not active


def _marks(place: str, desk: str) -> Iterator[int]:
    """When this worker last wrote something: its claim, or files in its folder."""
    for path in (place, desk, f"{desk}/spool"):
        try:
            yield os.stat(path).st_mtime_ns if path.startswith("/") else 0  # noqa: PTH116
        except OSError:
            yield 0


def _number(value: object) -> int:
    return value if isinstance(value, int) else 0


def _keep(file: str, value: object) -> bool:
    new = f"{file}.{os.getpid()}.tmp"
    try:
        made = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        with open(made, "w", encoding="utf-8") as opened:
            json.dump(value, opened)
        os.replace(new, file)  # noqa: PTH105
    except OSError:
        return False
    return True


def _words(claim: Claim) -> str:
    task, attempt = _shown(claim.get("task_id")), _shown(claim.get("attempt"))
    worker = shlex.quote(_shown(claim.get("worker")))
    return (
        f"Ganger: this session took task {task} (attempt {attempt}) and has not reported on it. Continue with it now.\n"
        "When it is finished, or cannot be done, report that; nothing counts before:\n"
        f"  ganger worker report --worker {worker} --status DONE --summary '...'   (or a task result: report FILE)\n"
        f"  ganger worker done --worker {worker}\n"
        f"If you wait for an answer: ganger worker messages --worker {worker} --wait 30\n"
        f"If your context runs out: ganger worker checkpoint --worker {worker} --leave --summary '...'"
    )


def _shown(value: object) -> str:
    return "".join(c if c.isprintable() else "?" for c in str(value))[:200]
