"""One sentence for each thing that can happen to a merged change, and to chains of repositories."""

from __future__ import annotations

from ganger.core import delivery_events as ev, request_events as rq

_SHORT = 12
_MOST_LISTED = 6


def delivery_sentence(event: object) -> str:
    """Empty for what is no event of delivery."""
    match event:
        case ev.PushIntended(task=task, commit=commit, branch=branch, cause=cause):
            why = "" if cause in ("change", "update") else f", so that CI runs again ({cause})"
            return f"{task}: {commit[:_SHORT]} is to be pushed to {branch}{why}"
        case ev.Pushed(task=task, commit=commit, branch=branch, how=how):
            return f"{task}: {commit[:_SHORT]} {'is on' if how == 'found' else 'was pushed to'} {branch}"
        case ev.PushRefused(task=task, commit=commit, why=why):
            return f"{task}: the push of {commit[:_SHORT]} was refused: {why}"
        case ev.HeadMoved(repo=repo, head=head, why=why):
            return f"{repo or 'the project'}: the run's branch is at {head[:_SHORT]}: {why}"
        case ev.CiSeen(task=task, sha=sha, finding=finding, why=why, passed=passed, total=total):
            jobs = f", {passed} of {total} jobs passed" if total else ""
            return f"{task}: CI of {sha[:_SHORT]} is {finding}{jobs}: {why}"
        case ev.CiJudged(task=task, sha=sha, verdict=verdict, why=why):
            return f"{task}: CI is {verdict} for {sha[:_SHORT]}: {why}"
        case ev.MirrorProved(task=task, sha=sha, how=how):
            return f"{task}: the mirror has {sha[:_SHORT]} ({how})"
        case ev.RetriggerIntended(task=task, cause=cause, how=how):
            return f"{task}: CI is to run again because of {cause}, by {_way(how)}"
        case ev.Retriggered(task=task, cause=cause, how=how):
            return f"{task}: CI runs again because of {cause}, by {_way(how)}"
    return _request_sentence(event)


def _way(how: str) -> str:
    return "an empty commit" if how == "empty_commit" else "a rerun"


def _request_sentence(event: object) -> str:
    match event:
        case ev.RequestIntended(task=task, branch=branch, into=into):
            return f"{task}: a change request of {branch} into {into} is to be opened"
        case ev.RequestOpened(task=task, number=number, url=url, found=found):
            return f"{task}: change request #{number} {'was there' if found else 'is open'}: {url}"
        case ev.RequestChanged(task=task, number=number, what="branch_gone"):
            return f"{task}: the branch of change request #{number} no longer holds its commit"
        case ev.RequestChanged(task=task, number=number, what="merged", commit=commit, by=by):
            return f"{task}: change request #{number} is merged{' by a person' if by else ''} as {commit[:_SHORT]}"
        case ev.RequestChanged(task=task, number=number, what=what):
            return f"{task}: change request #{number} is {what}"
        case ev.ReviewAsked(task=task, of=of, commit=commit):
            return f"{task}: {commit[:_SHORT]} awaits a review by {'a person' if of == 'person' else f'the {of}'}"
        case ev.Reviewed(task=task, verdict=verdict, by=by, text=text, commit=commit):
            said = "was approved" if verdict == "approved" else "was sent back"
            return f"{task}: {commit[:_SHORT]} {said} by {'a person' if by == 'person' else f'the {by}'}" + (
                f": {text}" if text else ""
            )
        case ev.MilestoneReached(task=task, milestone=milestone, substate=substate):
            return f"{task}: {milestone.value}{f' ({substate})' if substate else ''}"
    return _merge_sentence(event)


def _merge_sentence(event: object) -> str:
    match event:
        case rq.UpdateIntended(task=task, number=number, onto=onto):
            return f"{task}: change request #{number} is to be brought up to date with its target at {onto[:_SHORT]}"
        case rq.UpdateConflicted(task=task, number=number, onto=onto, files=files):
            return (
                f"{task}: change request #{number} conflicts with its target at {onto[:_SHORT]} in {_listed(files)}; "
                "it is done again on that"
            )
        case rq.MergeIntended(task=task, number=number, commit=commit, how="queue"):
            return f"{task}: change request #{number} is to go into the forge's merge queue at {commit[:_SHORT]}"
        case rq.MergeIntended(task=task, number=number, commit=commit, how=how):
            return f"{task}: change request #{number} is to be merged at {commit[:_SHORT]} ({how})"
        case rq.TrackingMoved(task=task, commit=commit, branch=branch, what=what):
            made = "landed" if what == "landed" else "was tried by the forge's queue"
            return f"{task}: {commit[:_SHORT]} {made} on {branch}; CI's verdict on it counts"
        case rq.LandedUnjudged(task=task, commit=commit, why=why):
            return f"{task}: CI gave no verdict on {commit[:_SHORT]}, which has the tree that was tested: {why}"
    return _chain_sentence(event)


def _chain_sentence(event: object) -> str:
    match event:
        case ev.ChainHalted(repo=repo, why=why):
            return f"{repo or 'the project'} and its chain are halted: {why}"
        case ev.ChainPaused(repo=repo, task=task, downstream=below, why=why):
            waits = f"; {_listed(below)} {'waits' if len(below) == 1 else 'wait'}" if below else ""
            return f"{repo or 'the project'} was turned red by {task}: {why}{waits}"
        case ev.ChainCleared(repo=repo):
            return f"{repo or 'the project'} is green again"
        case ev.RepoUnlocked(repo=repo, why=why, tasks=tasks):
            freed = f" by {_listed(tasks)}" if tasks else ""
            return f"{repo or 'the project'} is no longer held{freed}: {why}"
    return ""


def _listed(names: tuple[str, ...]) -> str:
    shown = ", ".join(names[:_MOST_LISTED])
    return shown if len(names) <= _MOST_LISTED else f"{shown} and {len(names) - _MOST_LISTED} more"
