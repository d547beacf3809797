"""A run's events: durable before `append` returns; who leads it; commands from people.

`Store` is what the engine uses. `BlockingStore` is the same for callers without an event loop, such as commands, and
`RunStores` is one way of keeping runs: it finds them and opens them in both forms.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from ganger.core.events import Event, Recorded

# How long a lead may be silent before another may take its place, and how often it reports.
LEASE_SEC = 15.0
RENEW_SEC = 4.0


@dataclass(frozen=True, slots=True)
class Owner:
    """A process that leads or wants to. `start_ticks` and `boot_id` exclude a later process with the same id."""

    pid: int
    start_ticks: int = 0
    boot_id: str = ""
    host: str = ""


@dataclass(frozen=True, slots=True)
class Entry:
    """An event to be written. One that reports on an attempt carries that attempt's token."""

    at: str
    event: Event
    token: str = ""


@dataclass(frozen=True, slots=True)
class Command:
    """A request of a person or a program to a run; its lead carries it out."""

    number: int
    at: str
    kind: str
    data: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Leader:
    """Who leads a run, and since when (seconds since the epoch). None: a process that has not identified itself."""

    owner: Owner | None
    since: float


class Store(Protocol):
    """One run's events, for its lead. No call blocks the event loop.

    Calls are carried out in the order in which they are made, each one completely, also when its caller is cancelled.
    """

    async def take_lead(self) -> int:
        """Makes this process the lead and returns its fence; raises RunLockedError while another one leads.

        From then on every write by an earlier lead is refused.
        """

    async def renew(self) -> None:
        """Extends the lease by LEASE_SEC; raises LeadLost when another process leads."""

    async def release(self) -> None:
        """Gives the lead back. Raises nothing, and may be called without the lead: what cannot be given back ends with
        the process."""

    async def append(self, batch: Sequence[Entry]) -> list[Recorded]:
        """Writes all or nothing in one durable transaction and returns the events numbered.

        The fence and every token are checked by the statements that write: LeadLost, StaleToken.
        """

    def read(self, since: int = 0) -> AsyncIterator[Recorded]:
        """Events with a number above `since`, in order."""

    async def commands(self, since: int) -> list[Command]:
        """Commands with a number above `since`, in order."""

    async def wait(self, *, events: int | None = None, commands: int | None = None) -> None:
        """Returns when there is an event or a command with a number above the given one; at once if there is already.
        Within a second of its recording, whichever process recorded it."""

    async def save_snapshot(self, seq: int, text: str) -> None:
        """Stores the state after event `seq`. Only the newest one is kept, and only the lead may store it."""

    async def snapshot(self) -> tuple[int, str] | None: ...

    async def exists(self) -> bool:
        """Whether the run is still kept: false if its store was removed."""

    async def close(self) -> None:
        """Returns when everything asked before is done. The store is of no use after it."""


class BlockingStore(Protocol):
    """One run's events. One lead writes them; other processes read them and may leave commands.

    Every call returns when it is done. One thread at a time uses it.
    """

    def take_lead(self, owner: Owner, *, now: float, lease_sec: float, holder_is_dead: Callable[[Owner], bool]) -> int:
        """Makes this store the writer and returns its fence; raises RunLockedError while another lease lasts.

        A holder that is provably dead is replaced at once. From then on every write by an earlier lead is refused.
        """

    def renew(self, now: float, lease_sec: float) -> None:
        """Extends the lease; raises LeadLost when another process leads."""

    def release(self) -> None:
        """Releases the lead; safe to call when it is lost."""

    def append(self, batch: Sequence[Entry]) -> list[Recorded]:
        """Writes all or nothing in one durable transaction and returns the events numbered.

        The fence and every token are checked by the statements that write: LeadLost, StaleToken.
        """

    def read(self, since: int = 0) -> Iterator[Recorded]:
        """Events with a number above `since`, in order."""

    def send(self, at: str, kind: str, data: Mapping[str, object]) -> int:
        """Leaves a command, durably, and returns its number. Needs no lead."""

    def commands(self, since: int) -> list[Command]:
        """Commands with a number above `since`, in order. Cheap when there is none."""

    def has_new(self, *, events: int | None = None, commands: int | None = None) -> bool:
        """Whether there is an event or a command with a number above the given one. Cheap: it is asked often."""

    def save_snapshot(self, seq: int, text: str) -> None:
        """Stores the state after event `seq`. Only the newest one is kept, and only the lead may store it."""

    def snapshot(self) -> tuple[int, str] | None: ...

    def exists(self) -> bool:
        """Whether the run is still kept: false if its store was removed."""

    def close(self) -> None: ...


class RunStores(Protocol):
    """One way of keeping runs. A run is named by its folder, which holds its logs and prompts in any case."""

    files: tuple[str, ...]
    """The files in a run's folder that hold its events, if any: they are shown to people, and users must be able to
    read them."""

    def runs(self, above: Path) -> list[Path]:
        """The runs kept here whose folders are in `above`. Links do not count: an agent may have put them there."""

    def exists(self, run: Path) -> bool:
        """Whether the run has begun here."""

    def open(self, run: Path, *, read_only: bool = False) -> BlockingStore:
        """Raises NotFoundError when it is opened to be read and does not exist; to be written, it is created."""

    def open_async(self, run: Path) -> Store:
        """For the lead of a run, which may be new. Errors are raised by the first call."""

    def leading(self, run: Path, store: BlockingStore) -> AbstractContextManager[int]:
        """Holds the lead with a store opened here; yields its fence. RunLockedError while another process leads."""

    def leader(self, run: Path) -> Leader | None:
        """Who leads the run now. Cheap; the run need not exist."""


# Who is told of every event, once it is durable and applied.
Listener = Callable[["Recorded"], None]
