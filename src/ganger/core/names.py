"""Task ids as file names: readable for ordinary ids, safe for all."""

from __future__ import annotations

import hashlib
import re
import string

_PLAIN = frozenset(string.ascii_letters + string.digits + "._-")
_LONGEST = 120
# Git allows no two dots in a row, no dot at the end, and no name that ends like its own locks.
_NOT_IN_REFS = re.compile(r"\.(?=\.|lock$|$)")


def file_stem(task_id: str) -> str:
    """A name that is unique per id, stays in its folder and is valid on every file system."""
    stem = "".join(c if c in _PLAIN else "".join(f"%{b:02X}" for b in c.encode("utf-8", "replace")) for c in task_id)
    if stem.startswith((".", "-")):
        stem = f"%{ord(stem[0]):02X}{stem[1:]}"
    if len(stem) <= _LONGEST:
        return stem or "%"
    digest = hashlib.sha256(task_id.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return f"{stem[: _LONGEST - 17]}~{digest}"


def branch_stem(task_id: str) -> str:
    """The same for a part of a branch name: unique per id, and valid for git."""
    return _NOT_IN_REFS.sub("%2E", file_stem(task_id)).replace("~", "+")


def worker_log(task_id: str, attempt: int) -> str:
    return f"logs/{file_stem(task_id)}.worker.{attempt}.log"


def verify_log(task_id: str, attempt: int) -> str:
    return f"logs/{file_stem(task_id)}.verify.{attempt}.log"


def ci_log(task_id: str, attempt: int) -> str:
    return f"logs/{file_stem(task_id)}.ci.{attempt}.log"


def review_log(task_id: str, attempt: int, again: int = 0) -> str:
    """A reviewer that was lost or misunderstood is asked again, with its own log."""
    return f"logs/{file_stem(task_id)}.review.{attempt}.{again + 1}.log"


def review_prompt(task_id: str, attempt: int, again: int = 0) -> str:
    return f"prompts/{file_stem(task_id)}.review.{attempt}.{again + 1}.md"


def reviews_folder(task_id: str) -> str:
    """Where a reviewer of the task works; it holds nothing of the project."""
    return f"reviews/{file_stem(task_id)}"


def prompt_file(task_id: str, attempt: int) -> str:
    return f"prompts/{file_stem(task_id)}.{attempt}.md"


def repo_place(repo: str) -> str:
    """Where a repository has its workspaces, checkouts and pool, from the run's folder; the project's own are there."""
    return f"repos/{file_stem(repo)}" if repo else ""


def repo_store(repo: str) -> str:
    """Ganger's copy of a repository, from the state folder; all runs share it."""
    return f"repos/{file_stem(repo)}.git" if repo else "repo.git"


def backup_folder(task_id: str, attempt: int) -> str:
    return f"backups/{file_stem(task_id)}.{attempt}"


def saved_folder(task_id: str, attempt: int) -> str:
    """Work in the project's own folder that was not accepted."""
    return f"saved/{file_stem(task_id)}.{attempt}"


def edits_folder(task_id: str, attempt: int) -> str:
    """The summary of edits in the project's own folder that passed the safeguards."""
    return f"edits/{file_stem(task_id)}.{attempt}"


def shared_folder() -> str:
    """What all agents of a kind may read, across runs."""
    return "agents"


def merge_log(number: int) -> str:
    return f"logs/merge.{number}.log"


def healer_log(number: int, again: int = 0) -> str:
    """A healer that was lost or misunderstood is asked again, with its own log."""
    return f"logs/healer.{number}.log" if not again else f"logs/healer.{number}.{again + 1}.log"


def healer_prompt(number: int, again: int = 0) -> str:
    return f"prompts/healer.{number}.{again + 1}.md"


def desk_folder(task_id: str, attempt: int) -> str:
    """Where a worker spools what it could not send; workers that can only write files leave everything here."""
    return f"desks/{file_stem(task_id)}.{attempt}"


def report_file(task_id: str, attempt: int) -> str:
    return f"reports/{file_stem(task_id)}.{attempt}.txt"


def counter_folder() -> str:
    """Where sessions that can only write files ask for a task."""
    return "counter"
