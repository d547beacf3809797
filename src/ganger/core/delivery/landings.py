"""Where a person finds what a run merged, per repository: in their branch, on the remote, or still to be landed."""

from __future__ import annotations

from ganger.core.model.records import RunState
from ganger.core.planning.repos import PROJECT, shown


def repos_merged(state: RunState) -> tuple[str, ...]:
    """Those with a change in them, the project's own first."""
    used = {state.specs[name].repo for name, task in state.tasks.items() if task.merged}
    return tuple(sorted(used))


def is_requested(state: RunState, repo: str) -> bool:
    """Its changes go as change requests: a person, or the forge, merges those there."""
    rules = state.repos.get(repo)
    return rules is not None and rules.delivers and rules.style == "request"


def is_pushed(state: RunState, repo: str) -> bool:
    """Its changes go straight to a branch of its remote."""
    rules = state.repos.get(repo)
    return rules is not None and rules.delivers and rules.style != "request"


def landable(state: RunState, repo: str) -> str:
    """The commit a person's branch may move to, empty for all that was merged: what is followed must be proved."""
    rules = state.repos.get(repo)
    return state.proved.get(repo, "") if is_pushed(state, repo) and rules is not None and rules.follows_ci else ""


def where_words(state: RunState) -> str:
    """One clause for each way in which what was merged reaches a person."""
    merged = repos_merged(state)
    several = bool(merged and merged != ("",))
    parts = []
    for repo in merged:
        of = f"{shown(repo)}: " if several else ""
        if repo in state.landed:
            parts.append(f"{of}your branch has it since {state.landed[repo][:12]}")
        elif is_requested(state, repo):
            parts.append(f"{of}its change requests have it (ganger ledger)")
        elif is_pushed(state, repo):
            parts.append(f"{of}{state.repos[repo].branch} of its remote has it (ganger ledger); git pull brings it")
        else:
            only = f" --repo {repo or PROJECT}" if several and len(merged) > 1 else ""
            parts.append(f"{of}ganger land{only} moves your branch")
    return "; ".join(parts)
