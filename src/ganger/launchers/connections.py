"""A connection to the keeper, on the keeper's side: its peer, received messages, bytes still to be sent."""

from __future__ import annotations

import os
import selectors
import socket
import struct
from collections.abc import Iterator

from ganger.launchers.messages import Lines, Message, line

_CREDENTIALS = struct.Struct("3i")
_CHUNK = 1 << 18


def peer_is_us(connection: socket.socket) -> bool:
    """Whether the process at the other end belongs to this user."""
    raw = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    _, uid, _ = _CREDENTIALS.unpack(raw)
    return bool(uid == os.geteuid())


class Client:
    """One lead, or another process of this user that found the socket. The keeper never waits for it."""

    def __init__(self, connection: socket.socket) -> None:
        connection.setblocking(False)
        self.connection = connection
        self.said_bye = False
        self.events = selectors.EVENT_READ
        self._lines = Lines()
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
