"""What one seed stands for: a manifest, a policy, what is true in that world, and everything that will go wrong."""

from __future__ import annotations

from dataclasses import dataclass, field

from ganger.core.model.records import Budget, Policy, TaskSpec
from ganger.core.scheduling.health import HealthPolicy
from sim.life import Death

# Simulated programs print only at their end: that they use the processor is all that is seen of them.
_HEALTH = HealthPolicy(busy_sec=1e9)


@dataclass(frozen=True, slots=True)
class Cause:
    """Something a task's worker must know; it stands nowhere until a healer writes it where it belongs."""

    name: str
    sentence: str
    target: str
    path: str = ""

    @property
    def error(self) -> str:
        return f"AssertionError: the convention {self.name} is not kept"


@dataclass(frozen=True, slots=True)
class Rates:
    """How often an agent misbehaves in each way; what is left of 1 is honest work.

    `hang`: it goes round in circles. `stall`: it does nothing at all.
    """

    crash: float = 0.0
    hang: float = 0.0
    silent: float = 0.0
    garbage: float = 0.0
    wrong_id: float = 0.0
    oversized: float = 0.0
    repaired: float = 0.0
    blocked: float = 0.0
    failed: float = 0.0
    quota: float = 0.0
    transient: float = 0.0
    denied: float = 0.0
    outside: float = 0.0
    unlucky: float = 0.0
    not_started: float = 0.0
    slow_check: float = 0.0
    stall: float = 0.0


@dataclass(frozen=True, slots=True)
class HealerRates:
    """How often a healer does other than mend what it saw."""

    crash: float = 0.0
    hang: float = 0.0
    garbage: float = 0.0
    lie: float = 0.0
    hopeless: float = 0.0
    escalate: float = 0.0
    wild: float = 0.0


@dataclass(frozen=True, slots=True)
class Asked:
    """What a person asks of the run at a moment."""

    at: float
    kind: str
    data: tuple[tuple[str, object], ...] = ()


@dataclass(frozen=True, slots=True)
class StoreFault:
    """The n-th append of the run fails before (nothing kept) or after (all kept) its commit."""

    append: int
    after: bool
    disk_full: bool


@dataclass(frozen=True, slots=True)
class Outage:
    """The account's quota is out between these moments; whoever is refused is told when it ends."""

    start: float
    end: float


@dataclass(frozen=True, slots=True)
class Plan:
    """One world. Everything in it follows from the seed."""

    seed: int
    kind: str
    specs: tuple[TaskSpec, ...]
    policy: Policy
    budget: Budget
    causes: tuple[Cause, ...]
    needs: dict[str, tuple[Cause, ...]]
    hopeless: frozenset[str] = frozenset()
    appends: frozenset[str] = frozenset()
    rates: Rates = Rates()
    healer: HealerRates = HealerRates()
    work_sec: tuple[float, float] = (60.0, 600.0)
    check_sec: tuple[float, float] = (1.0, 60.0)
    tick_sec: float = 1.0
    snapshot_events: int = 5000
    taken_up_again: bool = False
    calm_at: float = 0.0
    deaths: tuple[Death, ...] = ()
    away_sec: tuple[float, ...] = (1.0,)
    thaw_sec: float = 45.0
    keeper_deaths: tuple[float, ...] = ()
    clock_steps: tuple[tuple[float, float], ...] = ()
    stops: tuple[float, ...] = ()
    asked: tuple[Asked, ...] = ()
    store_faults: tuple[StoreFault, ...] = ()
    outages: tuple[Outage, ...] = ()
    health: HealthPolicy = _HEALTH
    files: dict[str, str] = field(default_factory=dict)
