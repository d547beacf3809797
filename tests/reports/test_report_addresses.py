"""The endpoint is found at the same place from lead to lead, and nobody else can take that place."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ganger.endpoint import address
from ganger.endpoint.server import ReportServer
from ganger.errors import GangerError
from tests.reports.endpoint import Ear, Endpoint, play, request

NOBODY = 65534
LISTENS = """
import os, signal, socket, sys
made = socket.socket(socket.AF_UNIX)
made.bind(sys.argv[1])
made.listen()
print("ready", flush=True)
os.kill(os.getpid(), signal.SIGSTOP)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path
    shutil.rmtree(address.find(tmp_path).socket.parent, ignore_errors=True)


def opened(folder: Path, **options: int) -> tuple[Path, str]:
    """Where a lead was reached, now gone again."""

    async def scene() -> tuple[Path, str]:
        server = ReportServer(folder, peers=frozenset(), **options)  # type: ignore[arg-type]
        await server.open(Ear().hear)
        await server.close()
        return server.socket, server.url

    return asyncio.run(scene())


def test_the_next_lead_has_the_same_addresses(folder: Path) -> None:
    """H07: what a running worker was told still holds after the lead died and came back."""
    first = opened(folder)
    assert opened(folder) == first
    assert json.loads((folder / "worker.json").read_text()) == {
        "socket": str(first[0]), "url": first[1], "protocol": "1"
    }  # fmt: skip
    assert not first[0].exists() and first[0].parent.is_dir()


def test_two_runs_have_two_addresses(tmp_path: Path) -> None:
    """H07: also when their folders have one name."""
    assert address.find(tmp_path / "a" / "run").socket != address.find(tmp_path / "b" / "run").socket


def test_a_port_that_somebody_took_is_replaced_and_told(folder: Path) -> None:
    """H07: the run goes on elsewhere."""
    first = opened(folder)
    with socket.create_server(("127.0.0.1", int(first[1].rpartition(":")[2]))):
        second = opened(folder)
    assert second[0] == first[0] and second[1] not in ("", first[1])
    assert json.loads((folder / "worker.json").read_text())["url"] == second[1]


def test_a_port_that_was_asked_for_is_used_or_refused(folder: Path) -> None:
    """H07: what an operator set is not silently something else."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(GangerError, match=str(port)) as refused:
            opened(folder, port=port)
    assert refused.value.code == "ENDPOINT_ERROR" and refused.value.hint
    assert opened(folder, port=port)[1] == f"http://127.0.0.1:{port}"


def test_without_http_there_is_only_the_socket(folder: Path) -> None:
    """H07: nothing listens on loopback that was not asked for."""
    path, url = opened(folder, http=False)
    assert url == "" and json.loads((folder / "worker.json").read_text())["url"] == "" and path


def test_modes_let_in_confined_workers_and_show_the_file_to_nobody(folder: Path) -> None:
    """H07: the folder can be passed, not listed; the socket can be used; worker.json is the owner's."""

    async def scene(endpoint: Endpoint) -> list[int]:
        paths = [endpoint.server.socket.parent, endpoint.server.socket, folder / "worker.json"]
        return [stat.S_IMODE(path.lstat().st_mode) for path in paths]

    old = os.umask(0o077)
    try:
        assert play(scene, folder) == [0o711, 0o666, 0o600]
    finally:
        os.umask(old)


def test_a_dead_leads_socket_is_replaced(folder: Path) -> None:
    """H07: what a killed lead left behind is in nobody's way."""
    path = address.find(folder).socket
    path.parent.mkdir(mode=0o711)
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))
    assert opened(folder)[0] == path


def test_a_stopped_leads_socket_is_replaced(folder: Path) -> None:
    """H07: it does not answer, so it is not one; its own end takes nothing away."""
    path = address.find(folder).socket
    path.parent.mkdir(mode=0o711)
    with subprocess.Popen([sys.executable, "-c", LISTENS, str(path)], stdout=subprocess.PIPE) as stopped:
        assert stopped.stdout is not None and stopped.stdout.readline() == b"ready\n"
        try:
            assert opened(folder)[0] == path
        finally:
            stopped.send_signal(signal.SIGKILL)


def test_a_living_leads_socket_is_left_alone(folder: Path) -> None:
    """H07: the second is refused, the first goes on."""

    async def scene(endpoint: Endpoint) -> int:
        second = ReportServer(folder, peers=frozenset())
        with pytest.raises(GangerError, match="another process answers") as refused:
            await second.open(Ear().hear)
        assert refused.value.code == "ENDPOINT_ERROR"
        said = await endpoint.post("heartbeat", {})
        return 0 if said is None else said.status

    assert play(scene, folder) == 200


def test_a_lead_that_closes_late_leaves_its_successors_socket(folder: Path) -> None:
    """H07: it removes its own and no other."""

    async def scene() -> bool:
        first, second = ReportServer(folder, peers=frozenset()), ReportServer(folder, peers=frozenset())
        await first.open(Ear().hear)
        first.socket.unlink()
        await second.open(Ear().hear)
        await first.close()
        found = second.socket.exists()
        await second.close()
        return found

    assert asyncio.run(scene())


@pytest.mark.parametrize(
    "trap", ["link", "file", "open to all", pytest.param("foreign", marks=pytest.mark.needs("root"))]
)
def test_a_folder_that_somebody_else_prepared_stops_no_run(folder: Path, tmp_path: Path, trap: str) -> None:
    """H07: nothing listens where another could put a socket of its own; the leads of the run meet elsewhere."""
    place = address.find(folder).socket.parent
    set_trap(place, tmp_path, trap)
    try:
        with pytest.raises(GangerError, match="for reports"):
            address.make_folder(place)
        first = opened(folder)
        assert first[0].parent != place and opened(folder) == first
        assert not list(tmp_path.glob("report.sock")) and not (place / "report.sock").exists()
        address.remove(folder)
        assert not first[0].parent.exists()
    finally:
        place.rmdir() if place.is_dir() and not place.is_symlink() else place.unlink()


def set_trap(place: Path, tmp_path: Path, trap: str) -> None:
    if trap == "link":
        place.symlink_to(tmp_path)
    elif trap == "file":
        place.touch()
    else:
        place.mkdir()
        place.chmod(0o777 if trap == "open to all" else 0o711)
        os.chown(place, NOBODY if trap == "foreign" else os.geteuid(), -1)


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"socket": 3}', '{"socket": "/etc/passwd", "url": "http://x:99999999"}']
)
def test_a_broken_worker_file_changes_no_address(folder: Path, text: str) -> None:
    """H07: it is read for the port alone, and never believed about the socket."""
    expected = opened(folder)[0]
    (folder / "worker.json").write_text(text)
    assert opened(folder)[0] == expected


@pytest.mark.needs("root")
@pytest.mark.parametrize(("peers", "heard"), [(frozenset(), 0), (frozenset({NOBODY}), 1), (frozenset({12345}), 0)])
def test_only_users_who_were_named_may_use_the_socket(folder: Path, peers: frozenset[int], heard: int) -> None:
    """H07: a stranger's connection ends before a byte of it is read, whatever token it has."""

    async def scene(endpoint: Endpoint) -> int:
        connection = socket.socket(socket.AF_UNIX)
        os.seteuid(NOBODY)
        try:
            connection.connect(str(endpoint.server.socket))
        finally:
            os.seteuid(0)
        connection.setblocking(False)
        reader, writer = await asyncio.open_unix_connection(sock=connection)
        writer.write(request("ganger"))
        with contextlib.suppress(ConnectionError):
            await reader.read(1)
        writer.transport.abort()
        return len(endpoint.ear.all_asked)

    folder.chmod(0o755)
    assert play(scene, folder, made=lambda place: ReportServer(place, peers=peers)) == heard


def test_a_run_that_is_over_leaves_no_folder(folder: Path) -> None:
    """H07: nothing of it stays in a place for all."""
    path, _ = opened(folder)
    address.remove(folder)
    address.remove(folder)
    assert not path.parent.exists()
