"""What a real forge does beyond answering: each a switch, off unless a row says so."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Manners:
    """`cancels`: a later run of a workflow on a branch stops the older one there. `folds_sec`: runs begin so long after
    their push and are of what the branch holds by then, so that two pushes within it give two runs of the later commit
    and none of the earlier. `merge_sec`: a merge takes so long, and a second one meanwhile is refused. `lost_merges`:
    so many merges happen, and nobody is told; Forgejo and Gitea then leave the request open and say 405 ever after.
    `methods` are the ways in which requests may be merged. `train`: through the forge's own queue alone.
    """

    cancels: bool = False
    folds_sec: float = 0.0
    merge_sec: float = 0.0
    lost_merges: int = 0
    methods: tuple[str, ...] = ("merge", "squash", "rebase", "fast-forward")
    train: bool = False


@dataclass(frozen=True)
class Protection:
    """What a protected branch asks. `push`: whether this token may push to it. `checks` are contexts of statuses."""

    push: bool = False
    approvals: int = 0
    checks: tuple[str, ...] = ()
    dismisses_stale: bool = False
    refuses_rejected: bool = True
    up_to_date: bool = False
    linear: bool = False


QUIET = Manners()
