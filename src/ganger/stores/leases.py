"""Who may write: the lead's lease, the claims of attempts, and the errors of a refused write."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ganger.core import events as ev
from ganger.errors import LeadLost, RunLockedError, StaleToken
from ganger.ports.store import Entry, Owner

# Events that report on an attempt: written only with that attempt's token.
REPORTS: frozenset[type] = frozenset(kind for kind in ev.EVENT_TYPES.values() if issubclass(kind, ev.AttemptEvent))
# Events after which a task can be claimed again.
CLOSING: frozenset[type] = frozenset({ev.TaskSettled, ev.TaskRequeued, ev.AttemptInterrupted, ev.AttemptCheckpointed})
NOBODY = Owner(0)
RELEASED = -1


@dataclass(frozen=True, slots=True)
class Lease:
    """Who leads, with which fence, and until when. Times are seconds of a monotonic clock."""

    fence: int = 0
    owner: Owner = NOBODY
    expires_at: float = 0.0
    taken_at: float = 0.0

    @property
    def held(self) -> bool:
        return self.owner.pid != 0


@dataclass(frozen=True, slots=True)
class Claim:
    """The attempt a task is in, or was in last."""

    attempt: int
    token: str
    open: bool = True


def require_free(lease: Lease, owner: Owner, now: float, holder_is_dead: Callable[[Owner], bool]) -> None:
    """Raises RunLockedError while the holder may be active. `holder_is_dead` is also called when the lease has
    expired."""
    holder = lease.owner
    if not lease.held or holder_is_dead(holder):
        return
    same_boot = holder.boot_id == owner.boot_id
    if not same_boot and holder.host == owner.host:
        return
    # Clocks of two machines cannot be compared.
    if same_boot and now >= lease.expires_at:
        return
    since = f" for {now - lease.taken_at:.0f} s" if same_boot else ""
    raise RunLockedError(
        f"this run is led by {named(holder)}{since}", hint="watch it with ganger status, or end it first"
    )


def named(owner: Owner) -> str:
    return f"process {owner.pid}" + (f" on {owner.host}" if owner.host else "")


def lead_lost(lease: Lease) -> LeadLost:
    now = f"it is led by {named(lease.owner)} now" if lease.held else "no process leads it now"
    return LeadLost(
        f"this process no longer leads the run; {now}, and events this process still had to record do not count",
        hint="watch the run with ganger status; to continue it, run the same command again",
    )


def stale(entry: Entry, claim: Claim | None) -> StaleToken:
    """Why an entry's claim or token does not hold."""
    task, attempt = getattr(entry.event, "task", ""), getattr(entry.event, "attempt", 0)
    name = ev.type_name(entry.event)
    if isinstance(entry.event, ev.AttemptStarted):
        if claim is not None and claim.open:
            problem = f"attempt {attempt} cannot start, the task is claimed already by attempt {claim.attempt}"
        else:
            problem = f"attempt {attempt} cannot start, attempt {claim.attempt + 1 if claim else 1} is the next"
    elif claim is None:
        problem = f"{name} reports on an attempt that was never claimed"
    else:
        state = "the current one is" if claim.open else "the last one, ended, was"
        problem = f"{name} comes from an attempt that is over; {state} attempt {claim.attempt}"
    return StaleToken(
        f"task {task}: {problem}", hint="the report is dropped; the run continues with the current attempt"
    )
