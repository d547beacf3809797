"""One sentence for each thing that can happen to a merged change, and to chains of repositories."""

from __future__ import annotations

from ganger.core.events import delivery as ev, requests as rq

_SHORT = 12
_MOST_LISTED = 6
_PUSHED = {"found": "is on", "together": "was pushed, together with others, to"}


def delivery_sentence(event: object) -> str:
    """Empty for what is no event of delivery."""
    match event:
        case ev.PushIntended(task=task, commit=commit, branch=branch, cause=cause, own=own):
            why = "" if cause in ("change", "update") else f", so that CI runs again ({cause})"
            held = f", with {own[:_SHORT]} in it" if own not in ("", commit) else ""
            return f"{task}: {commit[:_SHORT]} is to be pushed to {branch}{held}{why}"
        case ev.Pushed(task=task, commit=commit, branch=branch, how=how):
            return f"{task}: {commit[:_SHORT]} {_PUSHED.get(how, 'was pushed to')} {branch}"
        case ev.PushRefused(task=task, commit=commit, why=why):
            return f"{task}: the push of {commit[:_SHORT]} was refused: {why}"
        case ev.RebaseIntended(repo=repo, onto=onto, commits=commits):
            count = f"{len(commits)} commit{'s' if len(commits) != 1 else ''}"
            return f"{repo or 'the project'}: {count} of the run's branch to be put on {onto[:_SHORT]}"
        case ev.HeadMoved(repo=repo, head=head, why=why):
            return f"{repo or 'the project'}: the run's branch is at {head[:_SHORT]}: {why}"
        case ev.CiSeen(task=task, sha=sha, finding=finding, why=why, passed=passed, total=total):
            jobs = f", {passed} of {total} jobs passed" if total else ""
            return f"{task}: CI of {sha[:_SHORT]} is {finding}{jobs}: {why}"
        case ev.CiJudged(task=task, sha=sha, verdict=verdict, why=why):
            return f"{task}: CI is {verdict} for {sha[:_SHORT]}: {why}"
        case ev.CiWaived(task=task, sha=sha, why=why):
            return f"{task}: {sha[:_SHORT]} needs no green verdict of CI: {why}"
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
        case ev.RequestChanged(task=task, number=number, what=what, commit=commit):
            return f"{task}: change request #{number} {_changed(what, commit)}"
        case ev.Remarked(task=task, number=number, url=url):
            return f"{task}: " + (f"commented at {url}" if url else f"change request #{number} takes no comment")
        case ev.ReviewAsked(task=task, of=of, commit=commit):
            return f"{task}: {commit[:_SHORT]} awaits a review {_REVIEWERS.get(of, f'by the {of}')}"
        case ev.Reviewed():
            return _reviewed(event)
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


_REVIEWERS = {"person": "by a person", "forge": "on the forge"}


def _changed(what: str, commit: str) -> str:
    match what:
        case "rewritten":
            return f"tells of {commit[:_SHORT]} now"
        case "branch_removed":
            return "is merged, and its branch is removed"
    return f"is {what}"


def _reviewed(event: ev.Reviewed) -> str:
    by = f"{event.who} on the forge" if event.who else "a person" if event.by == "person" else f"the {event.by}"
    if event.verdict == "withdrawn":
        return f"{event.task}: nobody on the forge asks for changes to {event.commit[:_SHORT]} any more"
    said = "was approved" if event.verdict == "approved" else "was sent back"
    return f"{event.task}: {event.commit[:_SHORT]} {said} by {by}" + (f": {event.text}" if event.text else "")


def _chain_sentence(event: object) -> str:
    match event:
        case ev.ChainHalted(repo=repo, why=why):
            return f"{repo or 'the project'} and its chain are halted: {why}"
        case ev.ChainPaused(repo=repo, task=task, downstream=below, why=why):
            waits = f"; {_listed(below)} {'waits' if len(below) == 1 else 'wait'}" if below else ""
            return f"{repo or 'the project'} was turned red by {task}: {why}{waits}"
        case ev.TargetJudged(repo=repo, commit=commit, verdict=verdict, why=why):
            return f"{repo or 'the project'}: without this run CI is {verdict} for {commit[:_SHORT]}: {why}"
        case ev.HalfJudged(commit=commit, verdict=verdict, tip=tip, why=why):
            told = f": {why}" if why else ""
            return f"CI of {commit[:_SHORT]}, a part of the red {tip[:_SHORT]}, is {verdict}{told}"
        case ev.CulpritFound(task=task, tip=tip, how=how):
            return f"{task}: turned {tip[:_SHORT]} red ({how}); the others in it wait for its mend"
        case ev.ChainCleared(repo=repo):
            return f"{repo or 'the project'} is green again"
        case ev.RepoUnlocked(repo=repo, why=why, tasks=tasks):
            freed = f" by {_listed(tasks)}" if tasks else ""
            return f"{repo or 'the project'} is no longer held{freed}: {why}"
    return ""


def _listed(names: tuple[str, ...]) -> str:
    shown = ", ".join(names[:_MOST_LISTED])
    return shown if len(names) <= _MOST_LISTED else f"{shown} and {len(names) - _MOST_LISTED} more"
