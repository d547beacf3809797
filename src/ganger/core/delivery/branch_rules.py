"""Compares a forge's rules for a branch with the way changes will reach it, before any agent starts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ganger.core.model.ledger import RepoRules
from ganger.core.vocabulary import PushStyle

_CONTEXT = re.compile(r"(?:(?P<workflow>.+?) / )?(?P<job>.+?)(?: \([a-z_]+\))?")
_NO_MERGES = re.compile(r"merge commit|linear history|non-linear|semi-linear", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class BranchRules:
    """`may_push` and `may_merge` are about this token; None: unknown. `checks` are the statuses a merge needs, as the
    forge names them. `linear_push`: merge commits are refused; `linear_merge`: the forge makes none; `only_merges`:
    it makes one for every merge. `unseen` is what could not be read, for people."""

    protected: bool = False
    may_push: bool | None = None
    may_merge: bool | None = None
    approvals: int = 0
    checks: tuple[str, ...] = ()
    linear_push: bool = False
    linear_merge: bool = False
    only_merges: bool = False
    signed: bool = False
    unseen: str = ""

    @property
    def told(self) -> str:
        """One line for people."""
        parts = ["protected" if self.protected else "not protected"]
        if self.may_push is not None:
            parts.append(f"this token may {'' if self.may_push else 'not '}push to it")
        if self.approvals:
            parts.append(f"a merge needs {_counted(self.approvals, 'approval')}")
        if self.checks:
            parts.append(f"a merge needs {', '.join(self.checks)}")
        if self.linear_push or self.linear_merge:
            parts.append("merge commits are refused")
        if self.signed:
            parts.append("commits must be signed")
        return "; ".join([*parts, self.unseen] if self.unseen else parts)


@dataclass(frozen=True, slots=True)
class RuleClash:
    """`stops`: no delivery can succeed with it."""

    text: str
    hint: str
    stops: bool = True


def merge_hint(why: str, rules: RepoRules) -> str:
    """The next step if a remote's message says that it accepts no merges."""
    if rules.is_linear or not _NO_MERGES.search(why):
        return ""
    return '; it accepts no merges: set delivery.history = "rebase"'


def clashes(rules: RepoRules, branch: BranchRules, *, by_token: bool = True) -> Iterator[RuleClash]:
    """Rules of the branch that contradict the project's settings. `by_token`: pushes are made with the token that was
    checked, and not with another key."""
    name, requests = rules.branch, rules.style is PushStyle.REQUEST
    if not requests and by_token and branch.may_push is False:
        yield RuleClash(
            f"{name} is protected and this token may not push to it",
            'let its user push there, or set delivery.style = "request" (with workspace.mode = "forge")',
        )
    if branch.signed:
        yield RuleClash(
            f"{name} accepts only signed commits, and Ganger signs none", "remove that rule, or use another branch"
        )
    merges = requests and rules.auto_merge
    if _lands_by_merge(rules, branch):
        yield RuleClash(
            f"{name} accepts no merge commits, and changes arrive as merge commits",
            'set delivery.history = "rebase", or allow merge commits there',
        )
    if merges and rules.is_linear and branch.only_merges:
        yield RuleClash(
            f'the forge makes a merge commit for everything it merges into {name}, and delivery.history is "rebase"',
            "allow fast-forward or rebase there (on GitLab: the project's merge method), or set delivery.history = "
            '"merge"',
        )
    if not requests and branch.linear_merge and not branch.linear_push and not rules.is_linear:
        yield RuleClash(
            f"the forge makes no merge commits on {name}, but what Ganger pushes there can contain some",
            'set delivery.history = "rebase" to keep its history linear',
            stops=False,
        )
    if not merges:
        return
    if branch.may_merge is False:
        yield RuleClash(
            f"this token may not merge into {name}", "let its user merge there, or set delivery.auto_merge = false"
        )
    if branch.approvals and rules.review != "person":
        yield RuleClash(
            f"{name} needs {_counted(branch.approvals, 'approval')} on the forge before anything is merged, and "
            f"delivery.review is {_said(rules.review)}: each change waits there for approval",
            'set delivery.review = "person", or delivery.auto_merge = false',
            stops=False,
        )
    lacking = unnamed(branch.checks, rules.required_jobs)
    if lacking:
        yield RuleClash(
            f"{name} needs the checks {', '.join(lacking)} before anything is merged, and delivery.required_jobs names "
            "none of them",
            "add them to delivery.required_jobs, or make sure that they run for change requests",
            stops=False,
        )


def _lands_by_merge(rules: RepoRules, branch: BranchRules) -> bool:
    """Whether changes arrive as merge commits that the branch refuses. Without a configured merge method, the choice
    follows what the forge allows, which does not cover every rule of a branch."""
    if rules.is_linear:
        return False
    if rules.style is not PushStyle.REQUEST:
        return branch.linear_push
    if not rules.auto_merge:
        return False
    return (branch.linear_merge and rules.merge_method == "merge") or (
        branch.linear_push and rules.merge_method in ("", "merge")
    )


def unnamed(checks: Sequence[str], required: Sequence[str]) -> list[str]:
    """The forge's checks that are not among the required jobs; if no job is required, every job counts."""
    if not required:
        return []
    jobs = {name.rpartition("/")[2] for name in required}
    return [check for check in checks if "*" not in check and not {check, _job_of(check)} & (jobs | set(required))]


def _job_of(context: str) -> str:
    """`CI / test (push)` is the job `test`."""
    found = _CONTEXT.fullmatch(context)
    return found["job"] if found is not None else context


def _said(review: str) -> str:
    return f'"{review}"' if review else "not set"


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
