"""Runs a command, by default every test, and tells what it changed outside this clone and its own temporary folder.

`python scripts/harmless.py [--apart] [--temporary FOLDER] [--watch PLACE]… [COMMAND…]` looks before and after at owner,
mode and content of files, at mounts, control groups, System V memory, and at what the command left running. The exit
code is the command's own; 99 if that is 0 and something is different.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import hashlib
import os
import shlex
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from ganger.launchers.processes import cgroups

ROOT = Path(__file__).resolve().parents[1]
HARM = 99
PLACES = (
    "/etc",
    "/usr/local",
    "/home",
    "/root",
    "/opt",
    "/srv",
    "/mnt",
    "/var",
    "/run",
    "/tmp",
    "/var/tmp",
    "/dev/shm",
)
# Written by the system itself, whatever is run; and what an interpreter keeps for itself of its own modules.
LEFT_OUT = ("/var/log", "/var/cache", "/var/lib/apt", "/var/lib/dpkg", "/var/lib/systemd", "/run/log", "/run/systemd")
LEFT_OUT_NAMES = ("__pycache__",)
_SHORT = Path("/tmp/t")
_APART = ("/tmp", "/var/tmp", "/dev/shm")
_ASIDE = "/mnt"
_DIGEST = "digest "
_HASHED_BYTES, _HASHED_BYTES_IN_ALL = 1 << 20, 1 << 29
_LAST_ONES_SEC = 3.0
_PR_SET_CHILD_SUBREAPER = 36
_SHOWN = 200

Look = Mapping[str, str]


def main() -> int:
    asked = _arguments()
    if asked.apart and os.environ.get("_HARMLESS_APART") is None:
        _start_again_apart()
    with _temporary_folder(asked) as (folder, also), _own_group() as group:
        left_out = (*map(str, (ROOT, folder, also)), *LEFT_OUT)
        places = asked.watch or [place for place in PLACES if Path(place).is_dir()]
        before = look(places, left_out, whole=not asked.watch)
        code, left = _run(asked.command or [sys.executable, "-m", "pytest"], folder)
        found = [
            *differences(before, look(places, left_out, whole=not asked.watch, like=before)),
            *left,
            *_groups_below(group),
        ]
    for line in found[:_SHOWN]:
        print(line)
    print(f"harmless: {len(found) or 'no'} differences outside {ROOT}; the command ended with {code}", file=sys.stderr)
    return code or (HARM if found else 0)


def look(places: Sequence[str], left_out: Sequence[str], *, whole: bool, like: Look | None = None) -> dict[str, str]:
    """Everything by name: what it is, as text. The `whole` machine has more than places.

    Contents are read as long as there is time for it; `like` an earlier look, of the same files again.
    """
    budget = [_HASHED_BYTES_IN_ALL]
    found: dict[str, str] = {}
    for path in (path for place in places for path in _walk(place, left_out)):
        reads = budget[0] > 0 if like is None else _DIGEST in like.get(path, "")
        found[path] = _described(path, budget, reads=reads)
    found |= {f"mount {line}": "mounted" for line in _mounts()}
    if not whole:
        return found
    for kind in ("shm", "sem", "msg"):
        with contextlib.suppress(OSError):
            lines = Path("/proc/sysvipc", kind).read_text(encoding="ascii").splitlines()[1:]
            found |= {f"System V {kind} {' '.join(line.split()[:2])}": "made" for line in lines}
    return found


def differences(before: Look, after: Look) -> Iterator[str]:
    for name in sorted({*before, *after}):
        if name not in after:
            yield f"gone: {name} ({before[name]})"
        elif name not in before:
            yield f"new: {name} ({after[name]})"
        elif before[name] != after[name]:
            yield f"changed: {name} ({before[name]} -> {after[name]})"


def _walk(place: str, left_out: Sequence[str]) -> Iterator[str]:
    yield place
    for folder, folders, files in os.walk(place):
        folders[:] = [
            name for name in folders if name not in LEFT_OUT_NAMES and f"{folder}/{name}" not in (*left_out, *PLACES)
        ]
        yield from (f"{folder}/{name}" for name in (*folders, *files))


def _described(path: str, budget: list[int], *, reads: bool) -> str:
    try:
        found = os.lstat(path)
        who = f"{stat.filemode(found.st_mode)} {found.st_uid}:{found.st_gid}"
        if stat.S_ISLNK(found.st_mode):
            return f"{who} to {Path(path).readlink()}"
        if not stat.S_ISREG(found.st_mode):
            return who
        return f"{who} {found.st_size} bytes, {_content(path, found, budget, reads=reads)}"
    except FileNotFoundError:
        return "gone meanwhile"
    except OSError as problem:
        return f"{problem.strerror}"


def _content(path: str, found: os.stat_result, budget: list[int], *, reads: bool) -> str:
    """A digest, or when it was written."""
    if reads and found.st_size <= _HASHED_BYTES and os.access(path, os.R_OK):
        budget[0] -= found.st_size
        return f"{_DIGEST}{hashlib.blake2b(Path(path).read_bytes(), digest_size=8).hexdigest()}"
    return f"of {found.st_mtime_ns}"


def _mounts() -> Iterator[str]:
    """Without the numbers that are given anew in every namespace."""
    for line in Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="replace").splitlines():
        words, _, kind = line.partition(" - ")
        yield f"{words.split()[4]} of {words.split()[3]} ({words.split()[5]}; {kind})"


@contextlib.contextmanager
def _own_group() -> Iterator[str | None]:
    """A control group of the command's own, where one can be had: what is left below it is the command's."""
    made = cgroups.make(f"harmless-{os.urandom(4).hex()}")
    try:
        yield made
    finally:
        if made is not None:
            cgroups.leave(made)
            cgroups.clear(made)


def _groups_below(group: str | None) -> list[str]:
    if group is None:
        return []
    below = [folder for folder, _, _ in os.walk(group)][1:]
    return [f"new: control group {folder}" for folder in below]


def _run(command: Sequence[str], folder: Path) -> tuple[int, list[str]]:
    """Its exit code, and what it left running. Orphans become children of this process, so none is missed."""
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    environment = {name: value for name, value in os.environ.items() if name != "_HARMLESS_APART"}
    started = subprocess.Popen(command, cwd=ROOT, env={**environment, "TMPDIR": str(folder)})
    while True:
        pid, status = os.waitpid(-1, 0)
        if pid == started.pid:
            break
    started.returncode = os.waitstatus_to_exitcode(status)
    left = _left_running()
    for pid in left:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return started.returncode, [f"left running: process {pid} ({words})" for pid, words in left.items()]


def _left_running() -> dict[int, str]:
    """What is still there after a while for those that are about to end."""
    give_up_at = time.monotonic() + _LAST_ONES_SEC
    while left := _descendants(os.getpid()):
        if time.monotonic() > give_up_at:
            break
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        time.sleep(0.05)
    return left


def _descendants(top: int) -> dict[int, str]:
    parents: dict[int, int] = {}
    words: dict[int, str] = {}
    for name in [path.name for path in Path("/proc").iterdir()]:
        with contextlib.suppress(OSError, ValueError):
            state, parent = Path("/proc", name, "stat").read_text(errors="replace").rpartition(")")[2].split()[:2]
            if name.isdigit() and state not in "ZX":
                parents[int(name)] = int(parent)
                shown = Path("/proc", name, "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                words[int(name)] = shown.strip()[:200]
    found = {top}
    while more := {pid for pid, parent in parents.items() if parent in found and pid not in found}:
        found |= more
    return {pid: words[pid] for pid in sorted(found - {top})}


def _start_again_apart() -> None:
    """In namespaces and temporary folders of its own: what others do there is not seen, nor anything done to them."""
    script = f"for f in {' '.join(_APART)}; do mount -t tmpfs -o mode=1777 tmpfs $f || exit 1; done"
    if any(ROOT.is_relative_to(place) for place in _APART):
        # The clone itself is to be found where it was.
        at = shlex.quote(str(ROOT))
        script = f"mount --bind {at} {_ASIDE} && {script} && mkdir -p {at} && mount --move {_ASIDE} {at} || exit 1"
    script += '; exec "$@"'
    words = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c", script, "sh"]
    os.execvpe(words[0], [*words, sys.executable, *sys.argv], {**os.environ, "_HARMLESS_APART": "1"})


@contextlib.contextmanager
def _temporary_folder(asked: argparse.Namespace) -> Iterator[tuple[Path, Path]]:
    """For the command and whichever user it becomes, as the machine's own; its path is short, for sockets in it.

    Also where it really is.
    """
    folder = Path(tempfile.mkdtemp(prefix="h-", dir=asked.temporary)).resolve()
    folder.chmod(0o1777)
    try:
        if asked.apart:
            _SHORT.mkdir()
            subprocess.run(["mount", "--bind", folder, _SHORT], check=True)
        yield (_SHORT if asked.apart else folder), folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--apart", action="store_true", help="in namespaces of its own; needs root")
    parser.add_argument("--temporary", metavar="FOLDER", help="where the command's temporary folder is made")
    parser.add_argument("--watch", action="append", metavar="PLACE", help="look here instead of at the whole machine")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    asked = parser.parse_args()
    asked.command = asked.command[1:] if asked.command[:1] == ["--"] else asked.command
    return asked


if __name__ == "__main__":
    sys.exit(main())
