"""The keeper: a small process that starts a run's programs, holds them to their limits, and outlives the lead.

One loop, one thread. The events of one turn are recorded together and then reported; what cannot be recorded is not
reported.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import socket
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

from ganger.errors import DiskFullError
from ganger.launchers.guard import BUSY
from ganger.launchers.leftovers import clear_traces, remove_socket
from ganger.launchers.messages import (
    PROTOCOL,
    Garbage,
    KeeperClient,
    Message,
    exit_message,
    launch_of,
    number,
    part,
    peer_is_us,
    seconds,
    text,
    texts,
)
from ganger.launchers.paths import House, hold, make_socket_folder
from ganger.launchers.processes.adoption import adopt_orphans
from ganger.launchers.processes.tree import NEVER, ProcessTree
from ganger.launchers.programs import Programs, Unrecorded

_SWEEP_PAUSE_SEC = 0.005
# How soon the keeper notices that the run's folder was deleted.
_LOOK_SEC = 10.0
_MOST_STRANGERS = 32


@dataclass(slots=True)
class Wish:
    """A client waits until these trees are gone and, if `keep` is given, all strays that are not kept."""

    client: KeeperClient
    number: int
    trees: set[ProcessTree]
    keep: frozenset[str] | None = None
    ended: set[object] = field(default_factory=set)
    look_at: float = 0.0


def _same(one: str, other: str) -> bool:
    """Compares in constant time; `hmac` would load a library at every start."""
    return len(one) == len(other) and not sum([a != b for a, b in zip(one, other, strict=True)])


class Keeper:
    """The keeper's loop: it serves the leads of one run and its programs."""

    def __init__(self, house: House, programs: Programs, *, alive: int, idle_sec: float) -> None:
        self._house = house
        self._programs = programs
        self._idle_sec = idle_sec
        self._idle_since = time.monotonic()
        self._lock = house.lock.stat()
        self._look_at = self._idle_since + _LOOK_SEC
        self._leaving = False
        self._clients: set[KeeperClient] = set()
        # Clients that have not shown the key. A sandboxed program may find the socket too: it is not served.
        self._strangers: dict[KeeperClient, None] = {}
        self._key = os.urandom(32).hex()
        self._wishes: list[Wish] = []
        self._selector = selectors.DefaultSelector()
        self._alive = alive
        self._listen(alive, self._guard_is_gone)
        self._signals = self._catch_signals()
        self._listen(self._signals.fileno(), self._read_signals)
        self._address = make_socket_folder() / "s"
        self._door = self._open_door()
        self._listen(self._door.fileno(), self._accept)

    def run(self) -> None:
        """Runs until no program runs and no client is connected."""
        try:
            while not self._is_over(time.monotonic()):
                self._turn()
        except Unrecorded as problem:
            self._programs.give_up()
            self._tell_all(str(problem))
            sys.exit(1)
        finally:
            self._leave()

    def _catch_signals(self) -> socket.socket:
        ours, theirs = socket.socketpair()
        theirs.setblocking(False)
        # A handler, unlike SIG_IGN, is not inherited by the programs that are started.
        for each in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(each, _note)
        signal.set_wakeup_fd(theirs.detach(), warn_on_full_buffer=False)
        return ours

    def _open_door(self) -> socket.socket:
        door = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        door.setblocking(False)
        door.bind(str(self._address))
        door.listen(64)
        self._house.write(self._house.key, self._key)
        self._house.write(self._house.address, str(self._address))
        return door

    def _listen(self, descriptor: int, hear: Callable[[], None]) -> None:
        self._selector.register(descriptor, selectors.EVENT_READ, hear)

    def _is_over(self, now: float) -> bool:
        if self._programs.running or self._wishes:
            return False
        return self._leaving or (not self._clients and now - self._idle_since >= self._idle_sec)

    def _leave(self) -> None:
        """Closes everything; the address is removed first, so that no lead finds a closed socket."""
        self._house.address.unlink(missing_ok=True)
        self._house.key.unlink(missing_ok=True)
        self._door.close()
        remove_socket(str(self._address))
        self._programs.close()
        for client in (*self._clients, *self._strangers):
            client.connection.close()

    def _tell_all(self, reason: str) -> None:
        for client in self._clients:
            client.say({"fatal": reason})
            client.connection.settimeout(1.0)
            with contextlib.suppress(OSError):
                client.flush()

    def _turn(self) -> None:
        for key, _ in self._selector.select(self._wait_sec(time.monotonic())):
            key.data()
        now = time.monotonic()
        if now >= self._look_at:
            self._look_at = now + _LOOK_SEC
            if not self._leaving and self._house.is_gone(self._lock):
                # No lead can ask for the programs' results any more, and none will stop them.
                self._end_everything()
        self._programs.enforce(now)
        for tree, ended in self._programs.settle(now).items():
            self._idle_since = now
            for client in tree.waiting & self._clients:
                client.say({"key": tree.key, "ended": exit_message(ended)})
        for wish in list(self._wishes):
            self._grant(wish, now)
        for client in (*self._clients, *self._strangers):
            self._flush(client)

    def _wait_sec(self, now: float) -> float | None:
        due_at = min(self._programs.due_at, *(wish.look_at for wish in self._wishes if not wish.trees), NEVER)
        if not self._programs.running and not self._clients:
            due_at = min(due_at, self._idle_since + self._idle_sec)
        if self._programs.running and not self._leaving:
            due_at = min(due_at, self._look_at)
        return None if due_at == NEVER else max(0.0, due_at - now)

    def _read_signals(self) -> None:
        found = self._signals.recv(4096)
        if signal.SIGTERM in found:
            self._end_everything()
        if signal.SIGCHLD in found:
            self._programs.see_ends(time.monotonic())

    def _guard_is_gone(self) -> None:
        """Stops everything: without the guard, a dying keeper would leave its programs running."""
        self._selector.unregister(self._alive)
        self._end_everything()

    def _end_everything(self) -> None:
        """Stops all programs and exits. The programs are not at fault, so they count as lost."""
        self._leaving = True
        self._programs.lose()
        self._programs.terminate(time.monotonic())

    def _accept(self) -> None:
        try:
            connection, _ = self._door.accept()
        except OSError:
            return
        if not peer_is_us(connection):
            connection.close()
            return
        client = KeeperClient(connection)
        self._strangers[client] = None
        if len(self._strangers) > _MOST_STRANGERS:
            self._drop(next(iter(self._strangers)))
        self._listen(connection.fileno(), lambda: self._hear(client))
        client.say({"keeper": os.getpid(), "protocol": PROTOCOL, "does": ["extend", "hello"]})

    def _hear(self, client: KeeperClient) -> None:
        if client not in self._clients and client not in self._strangers:
            return
        try:
            for message in client.read():
                if client in self._strangers:
                    self._admit(client, message)
                else:
                    self._obey(client, message)
        except (Garbage, ConnectionError):
            self._drop(client)

    def _admit(self, client: KeeperClient, message: Message) -> None:
        if message.get("do") != "hello" or not _same(text(message, "key"), self._key):
            raise Garbage("no key")
        del self._strangers[client]
        self._clients.add(client)

    def _flush(self, client: KeeperClient) -> None:
        try:
            client.flush()
        except OSError:
            self._part_from_gone(client)
            return
        if client.said_bye and not client.has_unsent:
            self._part_from(client)
            return
        events = selectors.EVENT_READ | (selectors.EVENT_WRITE if client.has_unsent else 0)
        if client.events != events:
            client.events = events
            self._selector.modify(client.connection, events, lambda: self._hear(client))

    def _part_from_gone(self, client: KeeperClient) -> None:
        """Parts from a client that is gone; its last messages still count."""
        self._hear(client)
        if client in self._clients or client in self._strangers:
            self._drop(client)

    def _part_from(self, client: KeeperClient) -> None:
        """Parts from a client. The last one of an idle keeper is hung up on only after the cleanup."""
        if self._clients == {client} and not self._programs.running and not self._wishes:
            self._leaving = True
        else:
            self._drop(client)

    def _drop(self, client: KeeperClient) -> None:
        if client in self._clients:
            self._idle_since = time.monotonic()
        self._clients.discard(client)
        self._strangers.pop(client, None)
        self._selector.unregister(client.connection)
        client.connection.close()

    def _obey(self, client: KeeperClient, message: Message) -> None:
        match message.get("do"):
            case "start":
                self._start(client, message)
            case "find":
                self._answer(client, text(message, "key"), number(message, "n"))
            case "end":
                self._programs.terminate_one(text(message, "key"), time.monotonic())
                client.say({"n": number(message, "n")})
            case "extend":
                longer = self._programs.extend(text(message, "key"), time.monotonic(), seconds(message, "sec"))
                client.say({"n": number(message, "n"), "extended": longer})
            case "stop":
                wish = Wish(client, number(message, "n"), set(self._programs.running.values()))
                self._programs.lose()
                self._programs.terminate(time.monotonic(), seconds(message, "grace"))
                self._wishes.append(wish)
            case "end_others":
                n, keep = number(message, "n"), frozenset(texts(message, "keep"))
                others = self._programs.kill(keep)
                self._wishes.append(Wish(client, n, others, keep, {tree.pid for tree in others}))
            case "kill":
                self._programs.lose()
                self._programs.kill()
            case "bye":
                client.said_bye = True
            case _:
                raise Garbage("unknown request to a keeper")

    def _start(self, client: KeeperClient, message: Message) -> None:
        launch, grace_sec, n = launch_of(part(message, "launch")), seconds(message, "grace"), number(message, "n")
        if self._programs.find(launch.key) is None:
            if self._leaving:
                # The client gets no answer from this keeper and asks the next one.
                return
            try:
                self._programs.begin(launch, grace_sec)
            except DiskFullError as problem:
                client.say({"n": n, "full": problem.message})
                return
        self._answer(client, launch.key, n)

    def _answer(self, client: KeeperClient, key: str, n: int) -> None:
        found = self._programs.find(key)
        if found is None:
            client.say({"n": n})
            return
        answer: dict[str, object] = {"n": n, "pid": found.pid, "ticks": found.start_ticks}
        if isinstance(found, ProcessTree):
            found.waiting.add(client)
        else:
            answer["ended"] = exit_message(found.now())
        client.say(answer)

    def _grant(self, wish: Wish, now: float) -> None:
        wish.trees.intersection_update(self._programs.running.values())
        if wish.trees or now < wish.look_at:
            return
        if wish.keep is not None and (found := self._programs.kill_strays(wish.keep)):
            wish.ended |= found
            wish.look_at = now + _SWEEP_PAUSE_SEC
            return
        self._wishes.remove(wish)
        wish.client.say({"n": wish.number, "count": len(wish.ended)})


def _note(number_: int, frame: FrameType | None) -> None:
    """Does nothing: the signal number is in the loop's descriptor already."""


def main(arguments: list[str]) -> None:
    serve(arguments)


def serve(arguments: list[str], make_programs: type[Programs] = Programs) -> None:
    """Arguments: the run's folder, the descriptor for the answer, the guard's, idle seconds, whether to make a
    cgroup."""
    folder, ready, alive, idle_sec, cgroup = arguments
    house = House(Path(folder))
    lock = hold(house.lock)
    if lock is None:
        os.write(int(ready), b"busy\n")
        sys.exit(BUSY)
    # A keeper and its guard that were killed together left their traces; both locks are free by now.
    clear_traces(str(house.room))
    adopt_orphans()
    programs = make_programs(house, with_cgroup=cgroup == "yes")
    keeper = Keeper(house, programs, alive=int(alive), idle_sec=float(idle_sec))
    os.write(int(ready), b"ready\n")
    os.close(int(ready))
    keeper.run()
