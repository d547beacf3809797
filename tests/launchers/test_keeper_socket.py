"""The keeper's socket: short, private, for one user; nothing that is sent to it can hurt."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ganger.errors import KeeperError
from ganger.launchers.connect import tell_in_passing
from ganger.launchers.launcher import KeptLauncher
from ganger.launchers.messages import Garbage, MessageLines, launch_message
from ganger.launchers.paths import House
from ganger.ports.processes import Exit
from tests.launchers.keeper_bench import Run

GARBAGE = {
    "noise": bytes(range(256)) + b"\n",
    "half a line": b'{"do":"st',
    "no object": b"[1,2]\n",
    "deep": b"[" * 100_000 + b"\n",
    "unknown": b'{"do":"dance","n":1}\n',
    "no number": b'{"do":"find","key":"x","n":"one"}\n',
    "no launch": b'{"do":"start","n":1,"grace":1,"launch":{}}\n',
    "odd launch": b'{"do":"start","n":1,"grace":1,"launch":{"key":"k","argv":[1],"cwd":"/","env":{},"log":"/tmp/x"}}\n',
    "no list": b'{"do":"end_others","n":1,"keep":"all"}\n',
    "nothing": b"",
}


@pytest.fixture
def deep_run(tmp_path: Path) -> Iterator[Run]:
    """Deeper than a socket's name may be long."""
    folder = tmp_path.joinpath(*["a-folder-with-a-long-name"] * 8)
    folder.mkdir(parents=True)
    run = Run(folder)
    yield run
    run.clear()


def address(run: Run) -> str:
    return (run.folder / "keeper" / "address").read_text()


def hello(run: Run) -> bytes:
    return json.dumps({"do": "hello", "key": (run.folder / "keeper" / "key").read_text()}).encode() + b"\n"


def test_whoever_only_found_the_socket_gets_nothing_done(run: Run) -> None:
    """G05 H08: a confined program of the same user reads the socket's name in /proc, and has not the key; nor can it
    keep the lead out by coming often."""
    wanted = {"do": "start", "launch": launch_message(run.shell("mine", "touch made")), "grace": 1, "n": 1}
    order = json.dumps(wanted).encode() + b"\n"
    wrong = json.dumps({"do": "hello", "key": "0" * 64}).encode() + b"\n"

    def answered(sent: bytes) -> bytes:
        with socket.socket(socket.AF_UNIX) as guest:
            guest.connect(address(run))
            guest.settimeout(10)
            guest.recv(4096)
            guest.sendall(sent)
            with contextlib.suppress(ConnectionError):
                return guest.recv(4096)
        return b""

    async def main(launcher: KeptLauncher) -> tuple[list[bytes], int | None]:
        await launcher.start(run.shell("a", "sleep 60"))
        assert stat.S_IMODE((run.folder / "keeper" / "key").stat().st_mode) == 0o600
        answers = [answered(sent) for sent in (order, wrong + order, b'{"do":"kill"}\n')]
        crowd = [socket.socket(socket.AF_UNIX) for _ in range(100)]
        for one in crowd:
            one.connect(address(run))
        code = (await (await launcher.start(run.shell("b", "exit 5"))).wait()).code
        for one in crowd:
            one.close()
        assert run.key("a") in run.account().open
        await launcher.stop_all(0)
        return answers, code

    answers, code = run.play(main)
    assert answers == [b""] * 3 and code == 5
    assert run.starts() == 2 and not (run.folder / "made").exists()


def test_the_socket_is_short_and_only_its_user_can_come_near(deep_run: Run) -> None:
    """H08 T24: a folder of its own with mode 0700, its name known to the owner alone."""

    async def main(launcher: KeptLauncher) -> tuple[Exit, list[int], str]:
        exit_ = await (await launcher.start(deep_run.shell("a", "exit 3"))).wait()
        files = [Path(address(deep_run)).parent, deep_run.folder / "keeper" / "address", deep_run.folder / "keeper"]
        return exit_, [stat.S_IMODE(file.stat().st_mode) for file in files], address(deep_run)

    exit_, modes, path = deep_run.play(main)
    assert exit_.code == 3 and modes == [0o700, 0o600, 0o700] and len(path) < 60


def test_garbage_hurts_nobody_but_its_sender(run: Run) -> None:
    """H08: whoever talks nonsense is hung up on; the programs and their lead notice nothing."""

    def heard(sent: bytes) -> bytes:
        with socket.socket(socket.AF_UNIX) as guest:
            guest.connect(address(run))
            guest.recv(4096)
            guest.sendall(hello(run) + sent)
            guest.shutdown(socket.SHUT_WR)
            return guest.recv(4096)

    async def main(launcher: KeptLauncher) -> tuple[dict[str, bytes], Exit]:
        running = await launcher.start(run.shell("a", "while [ ! -e go ]; do sleep .01; done; exit 3"))
        answers = {name: heard(sent) for name, sent in GARBAGE.items()}
        (run.folder / "go").touch()
        return answers, await running.wait()

    answers, exit_ = run.play(main)
    assert answers == dict.fromkeys(GARBAGE, b"") and exit_.code == 3


def test_what_a_guest_said_counts_although_it_has_left_already(run: Run) -> None:
    """H08: a lead that is ended says "kill" and is gone before a busy keeper has so much as greeted it."""

    async def main(launcher: KeptLauncher) -> Exit:
        running = await launcher.start(run.shell("a", "sleep 60"))
        keeper = int((run.folder / "keeper" / "lock").read_text())
        os.kill(keeper, signal.SIGSTOP)
        tell_in_passing(House(run.folder), {"do": "kill"})
        os.kill(keeper, signal.SIGCONT)
        return await asyncio.wait_for(running.wait(), 30)

    exit_ = run.play(main)
    assert exit_.signal == signal.SIGKILL and exit_.lost


def test_a_line_that_never_ends_is_not_collected_for_ever() -> None:
    """H08: memory has a bound, whatever is sent."""
    lines = MessageLines(longest=1000)
    assert list(lines.feed(b"x" * 1000)) == []
    with pytest.raises(Garbage):
        list(lines.feed(b"x"))


@pytest.mark.needs("root")
def test_another_user_is_not_served_even_if_the_folder_lets_it_in(run: Run) -> None:
    """H08 T24: the kernel says who is there; the folder's mode is not all that protects."""
    code = "import os, socket, sys; os.setuid(65534); s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]);"
    code += "print(s.recv(100))"

    async def main(launcher: KeptLauncher) -> tuple[str, int | None]:
        running = await launcher.start(run.shell("a", "while [ ! -e go ]; do sleep .01; done; exit 3"))
        os.chmod(Path(address(run)).parent, 0o755)
        os.chmod(address(run), 0o777)
        seen = subprocess.run([sys.executable, "-S", "-c", code, address(run)], capture_output=True, text=True)
        (run.folder / "go").touch()
        return seen.stdout, (await running.wait()).code

    assert run.play(main) == ("b''\n", 3)


@pytest.mark.needs("root")
def test_a_socket_of_another_user_is_not_spoken_to(run: Run, tmp_path: Path) -> None:
    """H08 T24: an address that was tampered with leads to no stranger."""
    code = (
        "import os, socket, sys; s = socket.socket(socket.AF_UNIX); s.bind(sys.argv[1]); os.chmod(sys.argv[1], 0o777)"
    )
    code += "; os.setuid(65534); s.listen(); print(flush=True); s.accept()"
    path = Path(f"/tmp/ganger-test-{os.getpid()}")
    with subprocess.Popen([sys.executable, "-S", "-c", code, path], stdout=subprocess.PIPE) as stranger:
        assert stranger.stdout is not None and stranger.stdout.readline()
        (tmp_path / "keeper").mkdir()
        (tmp_path / "keeper" / "address").write_text(str(path))
        with pytest.raises(KeeperError, match="another user"):
            run.play(lambda launcher: launcher.start(run.shell("a", ":")))
        stranger.kill()
    path.unlink()


def test_a_launch_survives_the_wire_whatever_its_words_are(run: Run) -> None:
    """T24: line ends, quotes, bytes that are no text, a megabyte; nothing is added, lost or interpreted."""
    odd = ["a\nb", '"', "\\", "\udcff", "é", "x" * 100_000, ""]
    code = "import os, sys; print([os.fsencode(a) for a in sys.argv[1:]])"
    launch = run.launch("a", sys.executable, "-S", "-c", code, *odd)
    assert json.loads(json.dumps(launch_message(launch)))["argv"] == list(launch.argv)

    async def main(launcher: KeptLauncher) -> int | None:
        return (await (await launcher.start(launch)).wait()).code

    assert run.play(main) == 0
    assert (run.folder / "a.log").read_text() == f"{[os.fsencode(each) for each in odd]}\n"
