"""Where a person finds what a run merged, per repository: in their branch, on the remote, or not landed yet."""

from __future__ import annotations

from ganger.core.model.ledger import Delivery, RepoRules
from ganger.core.model.run_state import RunState
from ganger.core.planning.repos import PROJECT, shown
from ganger.core.vocabulary import PushStyle


def repos_merged(state: RunState) -> tuple[str, ...]:
    """Repositories with a merged change, the project first."""
    used = {state.specs[name].repo for name, task in state.tasks.items() if task.work.merged}
    return tuple(sorted(used))


def is_requested(state: RunState, repo: str) -> bool:
    """Its changes become change requests, which a person or the forge merges."""
    rules = state.chains.rules.get(repo)
    return rules is not None and rules.delivers and rules.style is PushStyle.REQUEST


def is_pushed(state: RunState, repo: str) -> bool:
    """Its changes are pushed directly to a branch of its remote."""
    rules = state.chains.rules.get(repo)
    return rules is not None and rules.delivers and rules.style is not PushStyle.REQUEST


def needs_no_request(rules: RepoRules, now: Delivery) -> bool:
    """Whether a later change of what was merged adds nothing: someone did the same in the target by hand, and what is
    tracked is the target's own commit."""
    request = now.request
    if rules.style is not PushStyle.REQUEST or request is None or not request.merged or now.branch != rules.branch:
        return False
    return now.commit not in ("", request.tested, request.merged)


def landable(state: RunState, repo: str) -> str:
    """The commit a person's branch may move to; empty: all that was merged. If CI is followed, it must be proved."""
    rules = state.chains.rules.get(repo)
    return (
        state.pushes.proved.get(repo, "") if is_pushed(state, repo) and rules is not None and rules.follows_ci else ""
    )


def where_words(state: RunState) -> str:
    """One clause for each place where merged changes are."""
    merged = repos_merged(state)
    several = bool(merged and merged != ("",))
    parts = []
    for repo in merged:
        of = f"{shown(repo)}: " if several else ""
        if repo in state.branches.landed:
            parts.append(f"{of}landed in your branch at {state.branches.landed[repo][:12]}")
        elif is_requested(state, repo):
            parts.append(f"{of}in change requests (ganger ledger)")
        elif is_pushed(state, repo):
            parts.append(f"{of}pushed to {state.chains.rules[repo].branch} (ganger ledger); git pull fetches it")
        else:
            only = f" --repo {repo or PROJECT}" if several and len(merged) > 1 else ""
            parts.append(f"{of}ganger land{only} moves your branch")
    return "; ".join(parts)
