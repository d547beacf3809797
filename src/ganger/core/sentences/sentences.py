"""One event in plain words."""

from __future__ import annotations

from datetime import UTC, datetime

from ganger.core import events as ev
from ganger.core.events import requests as rq
from ganger.core.model.workers import TierMark
from ganger.core.state.hosts import host_sentence

_SHORT = 12
_MOST_LISTED = 6
_PUSHED = {"found": "is on", "together": "was pushed, together with others, to"}

_REMOVAL = {
    "leave_out": "stays out",
    "put_back": "is to be pushed again",
    "restored": "is in it again",
}


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
        case ev.PushLost(task=task, commit=commit):
            return f"{task}: {commit[:_SHORT]} is no longer in the remote's branch"
        case ev.RebaseIntended(repo=repo, onto=onto, commits=commits):
            count = f"{len(commits)} commit{'s' if len(commits) != 1 else ''}"
            return f"{repo or 'the project'}: {count} of the run's branch to be put on {onto[:_SHORT]}"
        case ev.CommitsRemoved(repo=repo, tasks=tasks):
            whose = f" of {', '.join(tasks)}" if tasks else ""
            return f"{repo or 'the project'}: commits{whose} were taken out of the remote's branch"
        case ev.RemovalDecided(repo=repo, what=what):
            return f"{repo or 'the project'}: what was taken out of the remote's branch {_REMOVAL.get(what, what)}"
        case ev.SetBackIntended(repo=repo, tip=tip):
            return f"{repo or 'the project'}: the run's branch is to be set back to {tip[:_SHORT]}"
        case ev.HeadMoved(repo=repo, head=head, why=why):
            return f"{repo or 'the project'}: the run's branch is at {head[:_SHORT]}: {why}"
        case ev.CiSeen(task=task, sha=sha, finding=finding, why=why, passed=passed, total=total):
            jobs = f", {passed} of {total} jobs passed" if total else ""
            return f"{task}: CI of {sha[:_SHORT]} is {finding}{jobs}: {why}"
        case ev.CiJudged(task=task, sha=sha, verdict=verdict, why=why):
            return f"{task}: CI is {verdict} for {sha[:_SHORT]}: {why}"
        case ev.CiWaived(task=task, sha=sha, cause="not_expected", why=why):
            return f"{task}: CI is not expected for {sha[:_SHORT]} by setting: {why}"
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
    words = {"empty_commit": "an empty commit", "cancel": "stopping its run and a rerun"}
    return words.get(how, "a rerun")


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
        case ev.RevertChosen(task=task, question=question, how=how):
            return f"{task}: is to be reverted{' by its worker' if how == 'worker' else ''}, as {question} was answered"
        case ev.RevertFailed(task=task, why=why):
            return f"{task}: was not reverted: {why}"
        case ev.Reverted(task=task, commit=commit):
            return f"{task}: is out of the branch again, proved at {commit[:_SHORT]}"
        case ev.ChainCleared(repo=repo):
            return f"{repo or 'the project'} is green again"
        case ev.RepoUnlocked(repo=repo, why=why, tasks=tasks):
            freed = f" by {_listed(tasks)}" if tasks else ""
            return f"{repo or 'the project'} is no longer held{freed}: {why}"
    return ""


def _listed(names: tuple[str, ...]) -> str:
    shown = ", ".join(names[:_MOST_LISTED])
    return shown if len(names) <= _MOST_LISTED else f"{shown} and {len(names) - _MOST_LISTED} more"


def sentence(event: ev.Event) -> str:
    """One event in plain words; empty for those nobody needs to read while a run goes on."""
    match event:
        case ev.RunStarted(run_id=run, tasks=tasks):
            return f"run {run} started with {len(tasks)} tasks"
        case ev.LeadStarted(pid=pid):
            return f"process {pid} leads"
        case ev.WindowOpened(index=index, tasks=tasks):
            return f"window {index} opened: {_listed(tasks)}"
        case ev.WindowClosed(index=index, done=done, failed=failed, blocked=blocked, next_size=size):
            return f"window {index} closed: {done} done, {failed} failed, {blocked} blocked; next size {size}"
        case ev.AttemptStarted(task=task, attempt=number, delivers=True):
            return f"{task}: attempt {number}: its delivery goes on, no worker is needed"
        case ev.AttemptStarted(task=task, attempt=number, agent=agent, session=session, worker=worker):
            who = f"{worker} asked for it" if worker else agent
            return f"{task}: attempt {number} started ({who}{', goes on with its session' if session else ''})"
        case ev.ResultRefused(task=task, code=code):
            return f"{task}: the answer was refused ({code})"
        case ev.ResultAccepted(task=task, status=status, writes=writes):
            return f"{task}: the agent reports {status}" + (f" with {writes} writes" if writes else "")
        case ev.WritesApplied(task=task):
            return f"{task}: changes written"
        case ev.WritesRolledBack(task=task, why=why):
            saved = why.partition("; somebody else had changed ")[2]
            return f"{task}: changes rolled back" + (f"; somebody else had changed {saved}" if saved else "")
        case ev.VerifyFinished(task=task, passed=passed):
            return f"{task}: verification {'passed' if passed else 'failed'}"
        case ev.CostSettled(task=task, doubted=doubted) if doubted:
            return f"{task or 'the healer'}: said it used {doubted}: not believed, so it counts as unknown"
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
            return f"manifest taken over: {len(added)} added, {len(removed)} removed, {len(changed)} begin anew"
        case ev.StopRequested(why=why):
            return f"stop requested: {why}"
        case ev.RunFinished(run_status=status, why=why):
            return f"run {status.value}: {why}"
    return _merging_sentence(event) or _healing_sentence(event) or _control_sentence(event) or _worker_sentence(event)


def _merging_sentence(event: ev.Event) -> str:
    match event:
        case ev.ChangeTaken(task=task, files=files, dropped=dropped, missing=missing):
            extra = f", {len(dropped)} generated left out" if dropped else ""
            lack = f"; expected and not there: {_listed(missing)}" if missing else ""
            return f"{task}: changed {_counted(files)}{extra}{lack}"
        case ev.EditsSeen(task=task, files=files):
            return f"{task}: edited {_counted(files)} in place"
        case ev.UnclaimedEdits(role=role, files=files, saved=saved):
            undone = f", undone and kept in {saved}" if saved else ""
            return f"somebody edited {_listed(files)} while several worked{undone}; role {role} works alone from now on"
        case ev.FixedRestored(files=files, saved=saved, tasks=tasks, left=left):
            lost = f"; could not be put back: {_listed(left)}" if left else ""
            return (
                f"git's settings or installed packages were changed while {_listed(tasks)} ran and were put back: "
                f"{_listed(files)}; what was found is in {saved}{lost}"
            )
        case ev.RefsMoved(moves=moves, tasks=tasks):
            when = f"while {_listed(tasks)} ran" if tasks else "while no agent ran"
            return f"refs that this run did not move have moved {when}: {_listed(moves)}"
        case ev.GatesRestored(task=task, files=files):
            return f"{task}: gate files were changed and put back before they judged: {_listed(files)}"
        case ev.ExpectedMissing(task=task, files=files):
            return f"{task}: warning: expected files are missing: {_listed(files)}"
        case ev.VerifyRecovered(task=task, step=step, what=what):
            return f"{task}: verification step {step} ran again: {what}"
        case ev.WorkSaved(task=task, place=place, files=files):
            return f"{task}: unfinished work on {_counted(files)} saved as {place[:40]}"
        case ev.MergeQueued(task=task):
            return f"{task}: waits to be merged"
        case ev.GatesChecked(tasks=tasks, profile=profile, passed=passed):
            return f"gates {profile} {'green' if passed else 'red'} on the merge of {_listed(tasks)}"
        case ev.HeadKept(why=why):
            return f"the branch did not move: {why}"
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
            return f"heal round {number}: asked again ({code}: {message})"
        case ev.PatchApplied(patch=patch, round=number, target=target, path=path, task_id=task):
            place = path or task
            return f"heal round {number}: {patch} changes {target}{f' {place}' if place else ''}"
        case ev.PatchRefused(round=number, target=target, why=why):
            return f"heal round {number}: a patch of {target} was refused: {why}"
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
            return f"account {account} waits for its quota until {_clock(until)}"
        case ev.AccountLimited(account=account, at_once=at_once, why=why):
            return f"account {account}: {f'at most {at_once} at once' if at_once else 'no limit'} ({why})"
        case ev.AccountShut(account=account, why=why, until=until):
            return f"account {account} rests{f' until {_clock(until)}' if until else ''}: {why}"
        case ev.AccountTried(account=account, why=why):
            return f"account {account} is tried by one worker: {why}"
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
            # One of many, unless the worker wanted it kept.
            return f"{task}: {_progress(event)}" if report else ""
        case ev.WorkerMilestone(task=task, name=name, note=note):
            return f"{task}: milestone {name}{f': {note}' if note else ''}"
        case ev.CheckpointTaken(task=task, checkpoint=seen):
            then = f"; next: {seen.next_action}" if seen.next_action else ""
            stand = f"{len(seen.done)} done, {len(seen.remaining)} remaining"
            return f"{task}: checkpoint: {stand}{then}" if seen.by == "worker" else ""
        case ev.WorkerReported(task=task, status=status, summary=summary):
            return f"{task}: its worker reports {status}: {summary}"
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
            return f"{task}: may go on until {_clock(until)}: {why}"
        case ev.WorkerEnding(task=task, verdict=verdict, why=why):
            return f"{task}: its worker is ended ({verdict}): {why}"
        case ev.AttemptCheckpointed(task=task, why=why):
            return f"{task}: a fresh worker goes on: {why}"
        case ev.MessageLeft(task=task, kind=kind, text=text):
            return f"{task}: its worker is told ({kind}): {text}"
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
