"""Projects and runs on disk, the claim of a session in them, and the address where sessions may ask for a task."""

from __future__ import annotations

import os

from .claims import claims, read_object, stem, worker_name
from .errors import Away, NoRun, WorkerError
from .folders import newest_first, private_folder, read_book, run_folders, user_file
from .identity import WorkerIdentity

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

PROJECT_FILE = "ganger.toml"


class RunFile:
    """The state folder of a project, and the user's folder for it, which may not exist."""

    __slots__ = ("private", "shown")

    def __init__(self, folder: str, environ: Mapping[str, str]) -> None:
        self.shown, self.private = _state_of(folder, environ), private_folder(folder, environ)

    def runs(self) -> list[str]:
        return run_folders(self.shown, self.private)

    def folder_of(self, run: str) -> str:
        """The folder of a run that exists or is being created; empty if there is none."""
        found = [folder for folder in self.runs() if os.path.basename(folder) == stem(run)]
        place = self.shown if read_book(self.private) is None else self.private
        made = os.path.join(place, stem(run))
        return found[0] if found else made if os.path.isdir(made) else ""


def state_of(project: str, environ: Mapping[str, str]) -> RunFile:
    """Where the project keeps its runs. For a workspace with its own project file, the project above it counts."""
    if project:
        if not os.path.isdir(project):
            raise WorkerError(f"{project}: no such project folder", hint="give an existing folder", code="NOT_FOUND")
        return RunFile(os.path.abspath(project), environ)
    folder, nearest = _here(), None
    while True:
        if os.path.isfile(f"{folder}/{PROJECT_FILE}"):
            state = RunFile(folder, environ)
            if state.runs():
                return state
            nearest = nearest or state
        above = os.path.dirname(folder)
        if above == folder:
            break
        folder = above
    if nearest is None:
        raise WorkerError(
            f"there is no {PROJECT_FILE} here or above",
            hint="change into the project, or name it: --project DIR",
            code="NOT_FOUND",
        )
    return nearest


def _here() -> str:
    try:
        return os.getcwd()
    except OSError as error:
        raise WorkerError("this folder is gone", hint="change into the project, or name it: --project DIR") from error


def _state_of(folder: str, environ: Mapping[str, str]) -> str:
    name = environ.get("GANGER_STATE_DIR") or _written_state_dir(f"{folder}/{PROJECT_FILE}")
    return os.path.join(folder, name or _written_state_dir(user_file(environ)) or ".ganger")


def _written_state_dir(file: str) -> str:
    try:
        with open(file, encoding="utf-8", errors="replace") as stream:
            text = stream.read()
    except (OSError, ValueError):
        return ""
    if "state_dir" not in text:
        return ""
    try:
        import tomllib
    except ImportError:  # Python 3.10 and older
        return _plain_state_dir(text)
    try:
        return str(tomllib.loads(text).get("state_dir", ""))
    except ValueError:
        # The operator may be editing it while sessions work; what comes before the fault counts.
        return _plain_state_dir(text)


def _plain_state_dir(text: str) -> str:
    for line in text.split("\n[", 1)[0].splitlines():
        key, _, value = line.partition("=")
        if key.strip() == "state_dir":
            return value.split("#")[0].strip().strip("\"'")
    return ""


def runs(project: str, run: str, environ: Mapping[str, str]) -> list[str]:
    """The folders of the project's runs, newest first; or only the named one."""
    state = state_of(project, environ)
    if run:
        folder = state.folder_of(run)
        if not folder:
            raise NoRun(run, state.shown)
        return [folder]
    return newest_first(state.runs())


def is_over(folder: str) -> bool:
    """Whether a run has ended for good, by its state file: there may be no lead left to ask."""
    import re

    try:
        with open(f"{folder}/state.json", encoding="utf-8", errors="replace") as stream:
            found = re.search(r'"run_status"\s*:\s*"(\w+)"', stream.read(4096))
    except OSError:
        return False
    return found is not None and found[1] in ("COMPLETED", "ABORTED")


def is_led(folder: str) -> bool:
    """Whether a living process of this machine leads the run, also one that has just started and does not accept
    workers yet. By its lock, not by its store: a worker is plain files for any Python, so it opens no store."""
    import fcntl

    try:
        lock = os.open(f"{folder}/lead.lock", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        os.close(lock)
    return False


class RunAddress:
    """Where a run's lead is reached, and the token with which the operator's sessions may ask for a task."""

    __slots__ = ("address", "folder", "token")

    def __init__(self, folder: str) -> None:
        import hashlib
        import hmac

        said = read_object(f"{folder}/worker.json")
        if said is None:
            raise Away(f"run {os.path.basename(folder)} does not accept workers yet")
        try:
            with open(f"{folder}/worker.key", encoding="ascii") as stream:
                key = bytes.fromhex(stream.read().strip())
        except (OSError, ValueError) as error:
            raise WorkerError(
                f"{folder}/worker.key cannot be read, so no task can be asked for",
                hint="ask as the user who runs Ganger; a worker that Ganger started works only on its own task",
                code="NOT_ALLOWED",
            ) from error
        self.folder = folder
        self.address = str(said.get("socket") or said.get("url") or "")
        self.token = "j1." + hmac.new(key, b"join", hashlib.sha256).hexdigest()[:40]
        self._owned_alike()

    def _owned_alike(self) -> None:
        """Raises unless the socket belongs to the run's owner: anyone can create sockets there."""
        if self.address.startswith("/"):
            try:
                owner = os.stat(self.address, follow_symlinks=False).st_uid
            except OSError as error:
                raise Away(error.strerror or "there is no socket") from error
            if owner not in (0, os.stat(f"{self.folder}/worker.key").st_uid):
                raise WorkerError(
                    f"{self.address} does not belong to the run's owner",
                    hint="remove it, then continue the run: ganger run",
                    code="NOT_ALLOWED",
                )


def find_claim(worker: str, run: str, project: str, environ: Mapping[str, str]) -> WorkerIdentity:
    """The worker named on the command line, else in the environment, else the only open claim."""
    try:
        found = [claim for folder in runs(project, run, environ) for claim in claims(folder)]
    except WorkerError as problem:
        message = f"this is not a worker: GANGER_TOKEN is not set, and {problem.message}"
        raise WorkerError(message, hint=problem.hint, code="NO_CLAIM") from problem
    asked = worker or environ.get("GANGER_WORKER", "")
    session = environ.get("GANGER_SESSION", "")
    mine = [claim for claim in found if claim["worker"] == asked or (not asked and _of(session, claim))]
    held = [claim for claim in mine if not claim["done"]] or mine[:1]
    names = sorted({str(claim["worker"]) for claim in held})
    if len(names) > 1 and not asked:
        own = worker_name("", environ)
        held = [claim for claim in held if claim["worker"] == own] or held
        names = [own] if own in names else names
    if len(names) > 1:
        raise WorkerError(
            f"{len(names)} workers hold tasks here: {', '.join(names[:10])}",
            hint=f"name one: --worker {names[0]}, or GANGER_WORKER in the environment",
            code="NO_CLAIM",
        )
    if not held:
        raise WorkerError(
            f"{asked or 'this session'} holds no task here, and GANGER_TOKEN is not set",
            hint="ask for one: ganger worker next",
            code="NO_CLAIM",
        )
    return _post(held[0])


def _of(session: str, claim: dict[str, Any]) -> bool:
    return not session or claim.get("session", "") in ("", session)


def _post(claim: dict[str, Any]) -> WorkerIdentity:
    address = claim.get("report") or claim.get("url") or ""
    return WorkerIdentity(claim["token"], address, claim.get("desk") or "", claim.get("task_id") or "", claim["file"])
