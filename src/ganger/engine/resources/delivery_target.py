"""How the changes of one repository leave the machine: its remote, its forge, and what Ganger writes there."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass

from ganger.ports.forge import Forge, Remote

Mask = Callable[[str], tuple[str, tuple[str, ...]]]


@dataclass(frozen=True, slots=True)
class DeliveryTarget:
    """`mask` removes secrets from a text and says which kinds there were. `prove_mirror` asks whether the mirror has a
    commit of a branch; the sentence is the answer. `poll_sec` and `poll_most_sec` are the shortest and the
    longest time between two looks at CI. `jobs` are the launcher's keys of CI that runs here. `remarks`: Ganger
    comments on its change requests. `fork` is where the branches of change requests go, if not to the remote; the
    `target` branch is never there."""

    name: str
    remote: Remote
    mask: Mask
    forge: Forge | None = None
    prove_mirror: Callable[[str, str], Awaitable[tuple[bool, str]]] | None = None
    poll_sec: float = 5.0
    poll_most_sec: float = 60.0
    branch_name: str = "ganger/{run}/{task}"
    draft: bool = True
    labels: tuple[str, ...] = ()
    milestone: str = ""
    remarks: bool = True
    reviewer: str = "reviewer"
    jobs: Callable[[], Collection[str]] = tuple
    fork: Remote | None = None
    target: str = ""

    @property
    def hosts(self) -> tuple[str, ...]:
        """The hosts without which nothing can be delivered; a folder has none."""
        used = (self.remote, self.fork, self.forge)
        return tuple(dict.fromkeys(one.host for one in used if one is not None and one.host))

    def place_of(self, branch: str) -> Remote:
        """The owner of the repository that has this branch."""
        return self.remote if self.fork is None or branch in ("", self.target) else self.fork
