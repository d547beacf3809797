"""Shared memory within the walls: there, a process's own, and told where it is not."""

from __future__ import annotations

import os
import secrets
import sys
from pathlib import Path

import pytest

from ganger.sandboxes.choose import has_shared_memory
from ganger.sandboxes.landlock import Landlock
from tests.sandboxes.sandboxed import KINDS, ORDINARY, PYTHON, place, with_own_folders

# What a test-suite does with several processes, pipes, terminals and sockets of its own.
USES = """
import multiprocessing, os, pty, socket, tempfile, threading, time
lock, queue = multiprocessing.Lock(), multiprocessing.Queue()
with lock:
    queue.put(os.listdir("/dev/shm"))
assert not [name for name in queue.get() if name.startswith("canary")]
with multiprocessing.Pool(2) as pool:
    assert pool.map(abs, [-1, 2]) == [1, 2]
from multiprocessing.shared_memory import SharedMemory
memory = SharedMemory(create=True, size=64)
memory.buf[0] = 7
memory.close(), memory.unlink()
leader, follower = pty.openpty()
os.write(leader, b"x\\n")
assert os.read(follower, 2) == b"x\\n" and os.isatty(follower) and os.ttyname(follower)
with tempfile.TemporaryDirectory() as folder:
    with socket.socket(socket.AF_UNIX) as server, socket.socket(socket.AF_UNIX) as client:
        server.bind(f"{folder}/socket"), server.listen(), client.connect(f"{folder}/socket")
    os.mkfifo(f"{folder}/pipe")
with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()):
    pass
open(os.path.expanduser("~/own"), "w").close()
open("/dev/null", "w").write("x"), open("/dev/urandom", "rb").read(1), open("/proc/self/status").read()
time.tzset()
print("all of it")
"""


@pytest.mark.parametrize("kind", KINDS)
def test_a_suite_has_its_processes_memory_terminals_and_sockets(tmp_path: Path, kind: str) -> None:
    """G05 G14: what lies in the machine's own shared memory is neither seen nor left anything."""
    name = f"canary-{secrets.token_hex(8)}"
    canary = Path("/dev/shm", name)
    canary.write_text("secret\n")
    try:
        before = set(os.listdir("/dev/shm"))
        made = place(tmp_path, kind)
        ended = made.run(sys.executable, "-c", USES)
        assert (ended.code, ended.out) == (0, "all of it\n"), ended.err
        assert made.shell(f"cat /dev/shm/{name}").code != 0
        assert {other for other in set(os.listdir("/dev/shm")) - before if "psm" in other} == set()
        assert has_shared_memory(made.walls, made.settings)
    finally:
        canary.unlink()


@pytest.mark.needs("root", "setpriv", "unshare")
def test_an_ordinary_user_behind_landlock_has_memory_of_its_own_too(tmp_path: Path) -> None:
    """G05: by a user namespace, of which nothing else is left."""
    code = """
import pathlib, sys
from ganger.ports.sandbox import Room
from ganger.sandboxes.landlock import Landlock
from ganger.sandboxes.settings import SandboxSettings
from ganger.sandboxes.trial import run
top = pathlib.Path("/tmp/try")
(top / "work").mkdir(parents=True), (top / "home").mkdir()
pathlib.Path("/dev/shm/canary").write_text("secret")
settings = SandboxSettings(top, top / "state", top / "home", "/usr/bin:/bin")
walls, room = Landlock(settings), Room(writable=(top / "work",))
for argv in ((sys.argv[1], "-c", sys.argv[2]), ("/bin/sh", "-c", sys.argv[3])):
    made = run(walls, argv, room, {"PATH": "/usr/bin:/bin"})
    print(made.code, made.out, made.err)
"""
    uses = "import multiprocessing as m; m.Lock(); print('a lock')"
    looks = "grep -h CapEff /proc/self/status; ls /dev/shm; cat /dev/shm/canary"
    said = with_own_folders(code, f"/srv/bin/{Path(PYTHON).name}", uses, looks, user=ORDINARY)
    assert said.startswith("0 a lock") and "0000000000000000" in said and "canary\n" not in said, said


def test_where_there_is_none_that_is_found_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """G14: before anybody is paid."""
    made = place(tmp_path, "landlock")
    confine = Landlock.confine

    def without(self: Landlock, launch: object, room: object) -> object:
        told = confine(self, launch, room)  # type: ignore[arg-type]
        kept = tuple(word for word in told.argv if not word.startswith("memory="))
        return type(told)(**{name: getattr(told, name) for name in told.__slots__} | {"argv": kept})

    monkeypatch.setattr(Landlock, "confine", without)
    assert not has_shared_memory(made.walls, made.settings)
