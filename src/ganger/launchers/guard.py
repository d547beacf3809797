"""The guard: the keeper's parent process. When the keeper dies, the guard inherits all its programs and kills them.

It is so small that little can fail in it: it waits, kills and exits.
"""

from __future__ import annotations

import fcntl
import os
import signal
import sys
import time

from ganger.launchers.leftovers import clear_traces
from ganger.launchers.processes.adoption import adopt_orphans, adopted, kill_child

# Without site-packages only the standard library and Ganger itself can be imported, and of Ganger not even its public
# names: those take longer than everything the guard needs.
PYTHON_FLAGS = ("-I", "-S", "-c")
BOOT = """import sys
root, module, *rest = sys.argv[1:]
*places, module = module.split(":")
sys.path += [root, *places]
sys.modules["ganger"] = ganger = type(sys)("ganger")
ganger.__path__ = [root + "/ganger"]
__import__(module, fromlist=["main"]).main(rest)"""
KEEPER = "ganger.launchers.keeper"
BUSY = 75
_SPINS = 200


def main(arguments: list[str]) -> None:
    """Arguments: the run's folder, the descriptor for the answer, the keeper's two options, and another module, if
    any."""
    folder, ready, idle_sec, cgroup, *odd = arguments
    if os.fork():
        os._exit(0)
    os.setsid()
    room = f"{folder}/keeper"
    lock = os.open(f"{room}/guard", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.write(int(ready), b"busy\n")
        return
    adopt_orphans()
    # End of file tells the keeper that the guard is gone; nothing is ever written to it.
    alive, _held = os.pipe()
    keeper = _spawn(alive, int(ready), [sys.argv[1], *(odd or [KEEPER]), folder, ready, str(alive), idle_sec, cgroup])
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM, signal.SIGPIPE):
        signal.signal(number, signal.SIG_IGN)
    while (ended := os.wait())[0] != keeper:
        pass
    # The files of another, living keeper are not traces of a dead one.
    if os.waitstatus_to_exitcode(ended[1]) != BUSY:
        clear_traces(room)
    end_all()


def end_all() -> None:
    """Kills every child, and every orphan that becomes a child, until there is none."""
    spins = 0
    while orphans := adopted(()):
        for pid in orphans:
            kill_child(pid)
        spins += 1
        if spins > _SPINS:
            time.sleep(0.001)


def _spawn(alive: int, ready: int, arguments: list[str]) -> int:
    for descriptor in (alive, ready):
        os.set_inheritable(descriptor, True)
    keeper = os.posix_spawn(sys.executable, [sys.executable, *PYTHON_FLAGS, BOOT, *arguments], {})
    os.close(alive)
    os.close(ready)
    return keeper
