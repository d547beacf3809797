"""How a lead reaches the keeper of its run: finds the living one, or starts one."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import ganger
from ganger.errors import KeeperError
from ganger.launchers.guard import BOOT, PYTHON_FLAGS
from ganger.launchers.messages import PROTOCOL, Garbage, Message, MessageLines, line, number, peer_is_us
from ganger.launchers.paths import House

IDLE_SEC = 5.0
_REACHED_WITHIN_SEC = 30.0
_GREETED_WITHIN_SEC = 10.0
_TRIES = 3
_FIRST_PAUSE_SEC = 0.005
_LONGEST_PAUSE_SEC = 0.1
_ERRORS_SHOWN = 2000

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class KeeperOptions:
    """How a keeper is run. `odd` names a folder and a module, "folder:module", to run instead of Ganger's own."""

    python: str = sys.executable
    idle_sec: float = IDLE_SEC
    cgroup: bool = True
    odd: str = ""


class LineLost(Exception):
    """The keeper is gone or has hung up; it may or may not have carried out the request."""


class KeeperConnection(asyncio.Protocol):
    """The connection to a keeper. Answers go to their requests, all other messages to `hear`."""

    def __init__(self, hear: Callable[[Message], None], lost: Callable[[KeeperConnection], None]) -> None:
        loop = asyncio.get_running_loop()
        self.greeting: asyncio.Future[Message] = loop.create_future()
        self.is_over: asyncio.Future[None] = loop.create_future()
        self._hear = hear
        self._tell_lost = lost
        self._lines = MessageLines()
        self._transport: asyncio.Transport | None = None
        self._asked = 0
        self._answers: dict[int, Callable[[Message | None], None]] = {}

    def can(self, what: str) -> bool:
        """Whether this keeper knows the request; a keeper of an earlier version hangs up on an unknown one."""
        does = self.greeting.result().get("does") if self.greeting.done() else None
        return isinstance(does, list) and what in does

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        try:
            for message in self._lines.feed(data):
                self._dispatch(message)
        except Garbage:
            self.hang_up()

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_over.set_result(None)
        if not self.greeting.done():
            self.greeting.set_result({})
        for answer in list(self._answers.values()):
            answer(None)
        self._answers.clear()
        self._tell_lost(self)

    def hang_up(self) -> None:
        if self._transport is not None:
            self._transport.close()

    def say(self, message: Message) -> None:
        assert self._transport is not None
        self._transport.write(line(message))

    async def ask(self, message: Message, read: Callable[[Message], _T]) -> _T:
        """What `read` returns for the answer, called when it arrives and before any later message."""
        if self.is_over.done():
            raise LineLost
        answered: asyncio.Future[_T] = asyncio.get_running_loop().create_future()

        def answer(found: Message | None) -> None:
            if answered.cancelled():
                return
            if found is None:
                answered.set_exception(LineLost())
                return
            answered.set_result(read(found))

        self._asked += 1
        self._answers[self._asked] = answer
        self.say({**message, "n": self._asked})
        return await answered

    def _dispatch(self, message: Message) -> None:
        if "n" in message:
            answer = self._answers.pop(number(message, "n"), None)
            if answer is not None:
                answer(message)
        elif not self.greeting.done():
            self.greeting.set_result(message)
        else:
            self._hear(message)


async def connect(
    house: House, hear: Callable[[Message], None], lost: Callable[[KeeperConnection], None]
) -> KeeperConnection | None:
    """The living keeper, or None."""
    address = house.read(house.address)
    if not address:
        return None
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.setblocking(False)
    try:
        connection.connect(address)
        if not peer_is_us(connection):
            raise KeeperError(
                f"the socket {address} belongs to another user",
                hint=f"Remove {house.address} if you did not share this run.",
            )
    except (FileNotFoundError, ConnectionError, BlockingIOError):
        connection.close()
        return None
    except BaseException:
        connection.close()
        raise
    loop = asyncio.get_running_loop()
    _, made = await loop.create_unix_connection(lambda: KeeperConnection(hear, lost), sock=connection)
    try:
        greeting = await asyncio.wait_for(asyncio.shield(made.greeting), _GREETED_WITHIN_SEC)
    except TimeoutError:
        made.hang_up()
        raise KeeperError(
            f"the keeper of {house.folder} is alive and does not answer",
            hint=f"Continue it if it was stopped, or kill it; it is the process that holds {house.lock}.",
        ) from None
    if not greeting:
        return None
    if greeting.get("protocol") != PROTOCOL:
        made.hang_up()
        raise KeeperError(
            f"the keeper of {house.folder} was started by another version of Ganger",
            hint="Let its programs end, or stop them with the version that started them, then run again.",
        )
    if made.can("hello"):
        made.say(_hello(house))
    return made


def _hello(house: House) -> Message:
    return {"do": "hello", "key": house.read(house.key)}


async def reach(
    house: House, options: KeeperOptions, hear: Callable[[Message], None], lost: Callable[[KeeperConnection], None]
) -> KeeperConnection:
    """Connects to the keeper and starts one if none is alive. Raises KeeperError when that fails."""
    loop = asyncio.get_running_loop()
    give_up_at = loop.time() + _REACHED_WITHIN_SEC
    pause, failures = _FIRST_PAUSE_SEC, 0
    while loop.time() < give_up_at:
        found = await connect(house, hear, lost)
        if found is not None:
            return found
        said = await start_keeper(house, options, give_up_at - loop.time())
        failures += not said
        if failures == _TRIES:
            raise KeeperError(
                f"the process that keeps this run's programs could not be started{_last_words(house)}",
                hint=f"See {house.errors}.",
            )
        # Busy: an earlier keeper is exiting, or another lead is starting one.
        if said != b"ready\n":
            await asyncio.sleep(pause)
            pause = min(pause * 2, _LONGEST_PAUSE_SEC)
    raise KeeperError(
        f"the keeper of {house.folder} did not answer within {_REACHED_WITHIN_SEC:.0f} s",
        hint=f"See {house.errors}; kill the process that holds {house.lock} or {house.guard_lock}.",
    )


async def start_keeper(house: House, options: KeeperOptions, within_sec: float) -> bytes:
    """What the guard or the keeper reported: ready, busy, or nothing."""
    house.room.mkdir(mode=0o700, parents=True, exist_ok=True)
    answer, ready = os.pipe()
    root = str(Path(ganger.__file__).parent.parent)
    rest = (str(house.folder), str(ready), str(options.idle_sec), "yes" if options.cgroup else "no")
    argv = [options.python, *PYTHON_FLAGS, BOOT, root, "ganger.launchers.guard", *rest, *filter(None, [options.odd])]
    try:
        with open(house.errors, "ab", opener=_private) as errors:
            guard = subprocess.Popen(
                argv,
                cwd="/",
                env={},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                pass_fds=(ready,),
                start_new_session=True,
            )
    except OSError as problem:
        os.close(answer)
        raise KeeperError(
            f"the process that keeps this run's programs could not be started: {problem}",
            hint="Free some resources or correct the interpreter, then run again.",
        ) from problem
    finally:
        os.close(ready)
    try:
        return await asyncio.wait_for(_read_all(answer), within_sec)
    except TimeoutError:
        return b""
    finally:
        os.close(answer)
        # The guard itself is a child of this process, which has ended already.
        guard.wait()


async def _read_all(descriptor: int) -> bytes:
    loop = asyncio.get_running_loop()
    said = b""
    while not said.endswith(b"\n"):
        readable: asyncio.Future[None] = loop.create_future()
        loop.add_reader(descriptor, readable.set_result, None)
        try:
            await readable
        finally:
            loop.remove_reader(descriptor)
        more = os.read(descriptor, 100)
        if not more:
            break
        said += more
    return said


def _last_words(house: House) -> str:
    words = house.read(house.errors)[-_ERRORS_SHOWN:].strip().splitlines()
    return f": {words[-1]}" if words else ""


def _private(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_CLOEXEC, 0o600)


def tell_in_passing(house: House, message: Message) -> None:
    """Sends one message to a living keeper and waits for no answer; usable when no event loop may be running."""
    address = house.read(house.address)
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(1.0)
        connection.connect(address)
        if peer_is_us(connection):
            # A keeper of an earlier version has no key and asks for none.
            hello = line(_hello(house)) if house.read(house.key) else b""
            connection.sendall(hello + line(message))
