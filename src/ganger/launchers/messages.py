"""Messages of lead and keeper, one JSON object a line, and a connection as the keeper sees it."""

from __future__ import annotations

import json
import os
import selectors
import socket
import struct
from collections.abc import Iterator, Mapping
from dataclasses import fields
from pathlib import Path

from ganger.ports.processes import Exit, Launch

# A keeper's greeting names its newer requests, so that a lead does not send them to an older keeper.
PROTOCOL = 1
LONGEST_LINE = 64 * 1024 * 1024

Message = Mapping[str, object]


class Garbage(ValueError):
    """Bytes that are not a message."""


def line(message: Message) -> bytes:
    # A lone surrogate, as in a file name that is not UTF-8, survives as an escape.
    return json.dumps(message, separators=(",", ":")).encode("ascii") + b"\n"


def message(line: bytes) -> Message:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError) as problem:
        raise Garbage("no JSON") from problem
    if not isinstance(found, dict):
        raise Garbage("no object")
    return found


class MessageLines:
    """Takes bytes as they arrive and returns complete messages."""

    def __init__(self, longest: int = LONGEST_LINE) -> None:
        self._rest = bytearray()
        self._longest = longest

    def feed(self, data: bytes) -> Iterator[Message]:
        self._rest += data
        if b"\n" not in data:
            if len(self._rest) > self._longest:
                raise Garbage("a line that does not end")
            return
        whole, _, rest = bytes(self._rest).rpartition(b"\n")
        self._rest = bytearray(rest)
        for each in whole.split(b"\n"):
            yield message(each)


def text(message: Message, name: str) -> str:
    found = message.get(name)
    if not isinstance(found, str):
        raise Garbage(f"{name} is not text")
    return found


def number(message: Message, name: str) -> int:
    found = message.get(name)
    if isinstance(found, bool) or not isinstance(found, int):
        raise Garbage(f"{name} is not a whole number")
    return found


def maybe(message: Message, name: str) -> int | None:
    return number(message, name) if message.get(name) is not None else None


def seconds(message: Message, name: str) -> float:
    found = message.get(name)
    if isinstance(found, bool) or not isinstance(found, int | float):
        raise Garbage(f"{name} is not a number")
    return float(found)


def texts(message: Message, name: str) -> tuple[str, ...]:
    found = message.get(name)
    if not isinstance(found, list) or not all(isinstance(each, str) for each in found):
        raise Garbage(f"{name} is not a list of texts")
    return tuple(found)


def part(message: Message, name: str) -> Message:
    found = message.get(name)
    if not isinstance(found, dict):
        raise Garbage(f"{name} is not an object")
    return found


def launch_message(launch: Launch) -> Message:
    """Makes paths absolute: the keeper works in another folder."""
    return {
        "key": launch.key,
        "argv": launch.argv,
        "cwd": str(launch.cwd.absolute()),
        "env": dict(launch.env),
        "stdin": str(launch.stdin_path.absolute()) if launch.stdin_path is not None else None,
        "log": str(launch.log_path.absolute()),
        "timeout": launch.timeout_sec,
        "append": launch.append,
        "limit": launch.output_limit_bytes,
    }


def launch_of(message: Message) -> Launch:
    env = part(message, "env")
    if not all(isinstance(value, str) for value in env.values()):
        raise Garbage("a variable is not text")
    return Launch(
        key=text(message, "key"),
        argv=texts(message, "argv"),
        cwd=Path(text(message, "cwd")),
        env={name: str(value) for name, value in env.items()},
        stdin_path=Path(text(message, "stdin")) if message.get("stdin") is not None else None,
        log_path=Path(text(message, "log")),
        timeout_sec=seconds(message, "timeout") if message.get("timeout") is not None else None,
        append=bool(message.get("append")),
        output_limit_bytes=maybe(message, "limit"),
    )


def exit_message(ended: Exit) -> Message:
    return {field.name: getattr(ended, field.name) for field in fields(ended)}


def exit_of(message: Message) -> Exit:
    return Exit(
        code=maybe(message, "code"),
        signal=maybe(message, "signal"),
        timed_out=bool(message.get("timed_out")),
        duration_sec=seconds(message, "duration_sec"),
        started=bool(message.get("started")),
        error=text(message, "error"),
        over_output=bool(message.get("over_output")),
        lost=bool(message.get("lost")),
        log_bytes=maybe(message, "log_bytes"),
    )


_CREDENTIALS = struct.Struct("3i")
_CHUNK = 1 << 18


def peer_is_us(connection: socket.socket) -> bool:
    """Whether the process at the other end belongs to this user."""
    raw = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    _, uid, _ = _CREDENTIALS.unpack(raw)
    return bool(uid == os.geteuid())


class KeeperClient:
    """One lead, or another process of this user that found the socket. The keeper never waits for it."""

    def __init__(self, connection: socket.socket) -> None:
        connection.setblocking(False)
        self.connection = connection
        self.said_bye = False
        self.events = selectors.EVENT_READ
        self._lines = MessageLines()
        self._unsent = bytearray()

    @property
    def has_unsent(self) -> bool:
        return bool(self._unsent)

    def read(self) -> Iterator[Message]:
        """The received messages; raises ConnectionError at the end and Garbage for invalid ones."""
        try:
            data = self.connection.recv(_CHUNK)
        except BlockingIOError:
            return iter(())
        if not data:
            raise ConnectionResetError
        return self._lines.feed(data)

    def say(self, message: Message) -> None:
        self._unsent += line(message)

    def flush(self) -> None:
        """Sends what the other side takes now; raises OSError when it is gone."""
        if self._unsent:
            try:
                sent = self.connection.send(self._unsent, socket.MSG_NOSIGNAL)
            except BlockingIOError:
                return
            del self._unsent[:sent]
