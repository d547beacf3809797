"""One event as a sentence."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from ganger.core import events as ev
from ganger.core.events import requests as rq
from ganger.core.model.workers import TierMark
from ganger.core.state.hosts import host_sentence

_SHORT = 12
_MOST_LISTED = 6
# As recorded in `WritesRolledBack`.
_PUSHED = {"found": "is already on", "together": "was pushed together with others to"}

_REMOVAL = {
    "leave_out": "stay out",
    "put_back": "will be pushed again",
    "restored": "are back in the branch",
}


def delivery_sentence(event: object) -> str:
    """Empty for an event that is not about delivery."""
    match event:
        case ev.PushIntended(task=task, commit=commit, branch=branch, cause=cause, own=own):
            why = "" if cause in ("change", "update") else f" to run CI again ({cause})"
            held = f" (includes {own[:_SHORT]})" if own not in ("", commit) else ""
            return f"{task}: pushing {commit[:_SHORT]}{held} to {branch}{why}"
        case ev.Pushed(task=task, commit=commit, branch=branch, how=how):
            return f"{task}: {commit[:_SHORT]} {_PUSHED.get(how, 'was pushed to')} {branch}"
        case ev.PushRefused(task=task, commit=commit, why=why):
            return f"{task}: the push of {commit[:_SHORT]} was refused: {why}"
        case ev.PushLost(task=task, commit=commit):
            return f"{task}: {commit[:_SHORT]} is no longer in the remote branch"
        case ev.RebaseIntended(repo=repo, onto=onto, commits=commits):
            count = f"{len(commits)} commit{'s' if len(commits) != 1 else ''}"
            return f"{repo or 'the project'}: rebasing {count} of the run's branch onto {onto[:_SHORT]}"
        case ev.CommitsRemoved(repo=repo, tasks=tasks):
            whose = f" of {', '.join(tasks)}" if tasks else ""
            return f"{repo or 'the project'}: commits{whose} were removed from the remote branch"
        case ev.RemovalDecided(repo=repo, what=what):
            return f"{repo or 'the project'}: commits removed from the remote branch {_REMOVAL.get(what, what)}"
        case ev.SetBackIntended(repo=repo, tip=tip):
            return f"{repo or 'the project'}: resetting the run's branch to {tip[:_SHORT]}"
        case ev.HeadMoved(repo=repo, head=head, why=why):
            return f"{repo or 'the project'}: the run's branch is at {head[:_SHORT]}: {why}"
        case ev.CiSeen(task=task, sha=sha, finding=finding, why=why, passed=passed, total=total):
            jobs = f", {passed} of {total} jobs passed" if total else ""
            return f"{task}: CI of {sha[:_SHORT]} is {finding}{jobs}: {why}"
        case ev.CiJudged(task=task, sha=sha, verdict=verdict, why=why):
            return f"{task}: CI verdict on {sha[:_SHORT]} is {verdict}: {why}"
        case ev.CiWaived(task=task, sha=sha, cause="not_expected", why=why):
            return f"{task}: no CI run is expected for {sha[:_SHORT]}: {why}"
        case ev.CiWaived(task=task, sha=sha, why=why):
            return f"{task}: {sha[:_SHORT]} does not need green CI: {why}"
        case ev.MirrorProved(task=task, sha=sha, how=how):
            return f"{task}: the mirror has {sha[:_SHORT]} ({how})"
        case ev.RetriggerIntended(task=task, cause=cause, how=how):
            return f"{task}: CI will run again ({cause}) by {_way(how)}"
        case ev.Retriggered(task=task, cause=cause, how=how):
            return f"{task}: CI is running again ({cause}) by {_way(how)}"
    return _request_sentence(event)


def _way(how: str) -> str:
    words = {"empty_commit": "an empty commit", "cancel": "canceling its run and rerunning it"}
    return words.get(how, "a rerun")


def _request_sentence(event: object) -> str:
    match event:
        case ev.RequestIntended(task=task, branch=branch, into=into):
            return f"{task}: opening a change request from {branch} into {into}"
        case ev.RequestOpened(task=task, number=number, url=url, found=found):
            return f"{task}: change request #{number} {'already exists' if found else 'is open'}: {url}"
        case ev.RequestChanged(task=task, number=number, what="branch_gone"):
            return f"{task}: the branch of change request #{number} no longer contains its commit"
        case ev.RequestChanged(task=task, number=number, what="merged", commit=commit, by=by):
            return f"{task}: change request #{number} was merged{' by a person' if by else ''} as {commit[:_SHORT]}"
        case ev.RequestChanged(task=task, number=number, what=what, commit=commit):
            return f"{task}: change request #{number} {_changed(what, commit)}"
        case ev.Remarked(task=task, number=number, url=url):
            return f"{task}: " + (
                f"commented at {url}" if url else f"the forge did not accept a comment on change request #{number}"
            )
        case ev.ReviewAsked(task=task, of=of, commit=commit):
            return f"{task}: {commit[:_SHORT]} is waiting for a review {_REVIEWERS.get(of, f'by the {of}')}"
        case ev.Reviewed():
            return _reviewed(event)
        case ev.MilestoneReached(task=task, milestone=milestone, substate=substate):
            return f"{task}: {milestone.value}{f' ({substate})' if substate else ''}"
    return _merge_sentence(event)


def _merge_sentence(event: object) -> str:
    match event:
        case rq.UpdateIntended(task=task, number=number, onto=onto):
            return f"{task}: updating change request #{number} to its target at {onto[:_SHORT]}"
        case rq.UpdateConflicted(task=task, number=number, onto=onto, files=files):
            return (
                f"{task}: change request #{number} conflicts with its target at {onto[:_SHORT]} in {_listed(files)}; "
                "the task runs again on top of it"
            )
        case rq.MergeIntended(task=task, number=number, commit=commit, how="queue"):
            return f"{task}: adding change request #{number} to the forge's merge queue at {commit[:_SHORT]}"
        case rq.MergeIntended(task=task, number=number, commit=commit, how=how):
            return f"{task}: merging change request #{number} at {commit[:_SHORT]} ({how})"
        case rq.TrackingMoved(task=task, commit=commit, branch=branch, what=what):
            made = "landed on" if what == "landed" else "is tested by the forge's queue for"
            return f"{task}: {commit[:_SHORT]} {made} {branch}; CI's verdict on this commit decides"
        case rq.LandedUnjudged(task=task, commit=commit, why=why):
            return f"{task}: CI gave no verdict on {commit[:_SHORT]}, whose tree is the tested one: {why}"
    return _chain_sentence(event)


_REVIEWERS = {"person": "by a person", "forge": "on the forge"}


def _changed(what: str, commit: str) -> str:
    match what:
        case "rewritten":
            return f"now describes {commit[:_SHORT]}"
        case "branch_removed":
            return "was merged and its branch was removed"
    return f"is {what}"


def _reviewed(event: ev.Reviewed) -> str:
    by = f"{event.who} on the forge" if event.who else "a person" if event.by == "person" else f"the {event.by}"
    if event.verdict == "withdrawn":
        return f"{event.task}: the request for changes to {event.commit[:_SHORT]} was withdrawn on the forge"
    said = "was approved" if event.verdict == "approved" else "was sent back"
    return f"{event.task}: {event.commit[:_SHORT]} {said} by {by}" + (f": {event.text}" if event.text else "")


def _chain_sentence(event: object) -> str:
    match event:
        case ev.ChainHalted(repo=repo, why=why):
            return f"{repo or 'the project'} and its chain are halted: {why}"
        case ev.ChainPaused(repo=repo, task=task, downstream=below, why=why):
            waits = f"; {_listed(below)} {'waits' if len(below) == 1 else 'wait'}" if below else ""
            return f"{task}: turned {repo or 'the project'} red: {why}{waits}"
        case ev.TargetJudged(repo=repo, commit=commit, verdict=verdict, why=why):
            return f"{repo or 'the project'}: CI is {verdict} without this run, at {commit[:_SHORT]}: {why}"
        case ev.HalfJudged(commit=commit, verdict=verdict, tip=tip, why=why):
            reason = f": {why}" if why else ""
            return f"CI of {commit[:_SHORT]} is {verdict} (part of the red {tip[:_SHORT]}){reason}"
        case ev.CulpritFound(task=task, tip=tip, how=how):
            return f"{task}: turned {tip[:_SHORT]} red ({how}); the other tasks in it wait for its fix"
        case ev.RevertChosen(task=task, question=question, how=how):
            return f"{task}: will be reverted{' by its worker' if how == 'worker' else ''} (answer to {question})"
        case ev.RevertFailed(task=task, why=why):
            return f"{task}: was not reverted: {why}"
        case ev.Reverted(task=task, commit=commit):
            return f"{task}: reverted; proved at {commit[:_SHORT]}"
        case ev.ChainCleared(repo=repo):
            return f"{repo or 'the project'} is green again"
        case ev.RepoUnlocked(repo=repo, why=why, tasks=tasks):
            freed = f" ({_listed(tasks)})" if tasks else ""
            return f"{repo or 'the project'} is unlocked{freed}: {why}"
    return ""


def _listed(names: tuple[str, ...]) -> str:
    shown = ", ".join(names[:_MOST_LISTED])
    return shown if len(names) <= _MOST_LISTED else f"{shown} and {len(names) - _MOST_LISTED} more"


def sentence(event: ev.Event) -> str:
    """One event in plain words; empty for those that need no reader while a run is active."""
    match event:
        case ev.RunStarted(run_id=run, tasks=tasks):
            return f"run {run} started with {len(tasks)} tasks"
        case ev.LeadStarted(pid=pid):
            return f"process {pid} leads the run"
        case ev.WindowOpened(index=index, tasks=tasks):
            return f"window {index} opened: {_listed(tasks)}"
        case ev.WindowClosed(index=index, done=done, failed=failed, blocked=blocked, next_size=size):
            return f"window {index} closed: {done} done, {failed} failed, {blocked} blocked; next size {size}"
        case ev.AttemptStarted(task=task, attempt=number, delivers=True):
            return f"{task}: attempt {number}: delivery continues without a worker"
        case ev.AttemptStarted(task=task, attempt=number, agent=agent, session=session, worker=worker):
            who = f"requested by {worker}" if worker else agent
            return f"{task}: attempt {number} started ({who}{', continues its session' if session else ''})"
        case ev.ResultRefused(task=task, code=code):
            return f"{task}: answer refused ({code})"
        case ev.ResultAccepted(task=task, status=status, writes=writes):
            return f"{task}: the agent reports {status}" + (f" with {writes} writes" if writes else "")
        case ev.WritesApplied(task=task):
            return f"{task}: changes written"
        case ev.WritesRolledBack(task=task, why=why):
            saved = re.split("; some(?:one|body) else had changed ", why, maxsplit=1)[1:]
            return f"{task}: changes rolled back" + (f"; someone else had changed {saved[0]}" if saved else "")
        case ev.VerifyFinished(task=task, passed=passed):
            return f"{task}: verification {'passed' if passed else 'failed'}"
        case ev.CostSettled(task=task, doubted=doubted) if doubted:
            return f"{task or 'the healer'}: reported usage of {doubted} is implausible and counts as unknown"
        case ev.AttemptFailed(task=task, failure_class=cls, detail=detail):
            return f"{task}: {cls}: {detail}"
        case ev.AttemptInterrupted(task=task, why=why):
            return f"{task}: interrupted: {why}"
        case ev.TaskSettled(task=task, status=status, detail=detail, block_reason=reason):
            return f"{task}: {status.value}{f' ({reason.value})' if reason else ''}: {detail}"
        case ev.TaskRequeued(task=task, why=why):
            return f"{task}: queued again: {why}"
        case ev.TaskHeld(task=task, canary=canary):
            return f"{task}: held until {canary} has passed"
        case ev.Reconciled(added=added, removed=removed, changed=changed):
            return f"manifest applied: {len(added)} added, {len(removed)} removed, {len(changed)} start over"
        case ev.StopRequested(why=why):
            return f"stop requested: {why}"
        case ev.RunFinished(run_status=status, why=why):
            return f"run {status.value}: {why}"
    return _merging_sentence(event) or _healing_sentence(event) or _control_sentence(event) or _worker_sentence(event)


def _merging_sentence(event: ev.Event) -> str:
    match event:
        case ev.ChangeTaken(task=task, files=files, dropped=dropped, missing=missing):
            extra = f", left out {len(dropped)} generated" if dropped else ""
            lack = f"; missing expected files: {_listed(missing)}" if missing else ""
            return f"{task}: changed {_counted(files)}{extra}{lack}"
        case ev.EditsSeen(task=task, files=files):
            return f"{task}: edited {_counted(files)} in place"
        case ev.UnclaimedEdits(role=role, files=files, saved=saved):
            undone = f" (undone, kept in {saved})" if saved else ""
            return f"{_listed(files)} changed while several agents worked{undone}; role {role} works alone from now on"
        case ev.FixedRestored(files=files, saved=saved, tasks=tasks, left=left):
            lost = f"; could not be restored: {_listed(left)}" if left else ""
            return (
                f"git settings or installed packages changed while {_listed(tasks)} ran and were restored: "
                f"{_listed(files)}; the changed versions are in {saved}{lost}"
            )
        case ev.RefsMoved(moves=moves, tasks=tasks):
            when = f"while {_listed(tasks)} ran" if tasks else "while no agent ran"
            return f"refs moved {when}, and not by this run: {_listed(moves)}"
        case ev.GatesRestored(task=task, files=files):
            return f"{task}: changed gate files restored before verification: {_listed(files)}"
        case ev.ExpectedMissing(task=task, files=files):
            return f"{task}: warning: expected files are missing: {_listed(files)}"
        case ev.VerifyRecovered(task=task, step=step, what=what):
            return f"{task}: verification step {step} ran again: {what}"
        case ev.WorkSaved(task=task, place=place, files=files):
            return f"{task}: unfinished work on {_counted(files)} saved as {place[:40]}"
        case ev.MergeQueued(task=task):
            return f"{task}: waiting to be merged"
        case ev.GatesChecked(tasks=tasks, profile=profile, passed=passed):
            return f"profile '{profile}' {'passed' if passed else 'failed'} on the merged head ({_listed(tasks)})"
        case ev.HeadKept(repo=repo, why=why):
            return f"{repo or 'the project'}: the branch did not move: {why}"
        case ev.Merged(task=task, commit=commit):
            return f"{task}: merged as {commit[:12]}" if commit else ""
        case ev.Landed(branch=branch, commit=commit, repo=repo):
            return f"landed: {branch or 'HEAD'}{f' of {repo}' if repo else ''} is at {commit[:12]}"
    return ""


def _counted(files: tuple[str, ...]) -> str:
    return _listed(files) if len(files) <= 3 else f"{len(files)} files"


def _healing_sentence(event: ev.Event) -> str:
    match event:
        case ev.HealStarted(round=number, failed=failed, agent=agent):
            return f"heal round {number} started ({agent}) for {_listed(failed)}"
        case ev.HealRefused(round=number, code=code, message=message):
            return f"heal round {number}: answer requested again ({code}: {message})"
        case ev.PatchApplied(patch=patch, round=number, target=target, path=path, task_id=task):
            place = path or task
            return f"heal round {number}: {patch} changes {target}{f' {place}' if place else ''}"
        case ev.PatchRefused(round=number, target=target, why=why):
            return f"heal round {number}: patch of {target} refused: {why}"
        case ev.PatchUndone(patch=patch):
            return f"{patch} undone"
        case ev.HealFinished(round=number, decision=decision, root_cause=cause, problem=problem):
            return f"heal round {number}: {decision}: {problem or cause}"
        case ev.HealAbandoned(reason=reason):
            return reason
    return ""


def _control_sentence(event: ev.Event) -> str:
    match event:
        case ev.QuestionAsked(question=name, task=task, kind=kind, text=text):
            return f"question {name} ({kind}{f', {task}' if task else ''}): {text}"
        case ev.QuestionAnswered(question=name, text=text):
            return f"question {name} answered: {text}"
        case ev.QuestionRaised(question=name, times=times):
            return f"question {name} is still open (reminder {times})"
        case ev.AccountPaused(account=account, until=until):
            return f"account {account} is waiting for its quota until {_clock(until)}"
        case ev.AccountLimited(account=account, at_once=at_once, why=why):
            return f"account {account}: {f'at most {at_once} at once' if at_once else 'no limit'} ({why})"
        case ev.AccountShut(account=account, why=why, until=until):
            return f"account {account} is suspended{f' until {_clock(until)}' if until else ''}: {why}"
        case ev.AccountTried(account=account, why=why):
            return f"account {account}: one worker is trying it: {why}"
        case ev.AccountWorks(account=account):
            return f"account {account} works again"
        case ev.CommandTaken(kind=kind, outcome=outcome):
            return f"{kind}: {outcome}"
        case ev.RunPaused(why=why):
            return f"paused: {why}"
        case ev.RunResumed(why=why):
            return f"resumed: {why}"
        case ev.DrainRequested(why=why):
            return f"draining: {why}"
        case ev.SettingsChanged(policy=policy):
            return f"settings changed; concurrency {policy.concurrency}"
    return ""


def _worker_sentence(event: ev.Event) -> str:
    match event:
        case ev.WorkerBeat(task=task, report=report):
            # Only recorded as a line of its own if the worker sent a report id.
            return f"{task}: {_progress(event)}" if report else ""
        case ev.WorkerMilestone(task=task, name=name, note=note):
            return f"{task}: milestone {name}{f': {note}' if note else ''}"
        case ev.CheckpointTaken(task=task, checkpoint=seen):
            then = f"; next: {seen.next_action}" if seen.next_action else ""
            stand = f"{len(seen.done)} done, {len(seen.remaining)} remaining"
            return f"{task}: checkpoint: {stand}{then}" if seen.by == "worker" else ""
        case ev.WorkerReported(task=task, status=status, summary=summary):
            return f"{task}: worker reports {status}: {summary}"
        case ev.WorkerSuspected(task=task, why=why, probe=probe):
            return f"{task}: suspicious: {why}{f'; {probe}' if probe else ''}"
        case ev.WorkerCleared(task=task, why=why):
            return f"{task}: no longer suspicious: {why}"
    return _ending_sentence(event)


def _ending_sentence(event: ev.Event) -> str:
    match event:
        case ev.LimitWarned(task=task, text=text):
            return f"{task}: warning: {text}"
        case ev.LimitExtended(task=task, until=until, why=why):
            return f"{task}: time limit extended to {_clock(until)}: {why}"
        case ev.WorkerEnding(task=task, verdict=verdict, why=why):
            return f"{task}: worker stopped ({verdict}): {why}"
        case ev.AttemptCheckpointed(task=task, why=why):
            return f"{task}: a new worker continues: {why}"
        case ev.MessageLeft(task=task, kind=kind, text=text):
            return f"{task}: {kind} for its worker: {text}"
    return delivery_sentence(event) or host_sentence(event)


def _progress(event: ev.WorkerBeat) -> str:
    parts = [event.step or "at work"]
    if event.percent is not None:
        parts.append(f"{event.percent:g} %")
    parts += [tier_words(mark) for mark in event.tiers]
    return ", ".join([*parts, *filter(None, [event.note])])


def tier_words(mark: TierMark) -> str:
    again = f" at retry {mark.retry}" if mark.retry else ""
    return f"tier {mark.tier}{f' {mark.name}' if mark.name else ''} {'passed' if mark.success else 'failed'}{again}"


def _clock(moment: float) -> str:
    return f"{datetime.fromtimestamp(moment, UTC):%H:%M:%S}"
