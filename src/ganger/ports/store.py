"""A run's events: durable before `append` returns; the lease of its lead; commands from people."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from ganger.core.events import Event, Recorded


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


class Store(Protocol):
    """One run's events. One lead writes them; other processes read them and may leave commands."""

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

    def save_snapshot(self, seq: int, text: str) -> None:
        """Stores the state after event `seq`. Only the newest one is kept, and only the lead may store it."""

    def snapshot(self) -> tuple[int, str] | None: ...

    def close(self) -> None: ...


# Who is told of every event, once it is durable and applied.
Listener = Callable[["Recorded"], None]
