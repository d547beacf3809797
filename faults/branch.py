"""Looks at a run's branch with git itself: every merge once, nothing else, nothing lost, nothing of it in the person's
own checkout."""

from __future__ import annotations

import json
import os
import subprocess
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from faults.scenario import Place
from ganger.core import events as ev
from ganger.core.vocabulary import FailureClass, TaskStatus

_FIELDS = "%H%x00%P%x00%(trailers:key=Ganger-Task,valueonly,separator=%x2C)%x00"
_FIELDS += "%(trailers:key=Ganger-Attempt,valueonly,separator=%x2C)%x01"
_MOVES = (ev.RebaseIntended, ev.SetBackIntended)
_HARMLESS = ("dangling ", "notice: ", "Checking ")


@dataclass(frozen=True, slots=True)
class Commit:
    """One commit of the run: whose it is by its trailers."""

    oid: str
    parents: tuple[str, ...]
    task: str
    attempt: str


def branch_now(place: Place, events: Sequence[ev.Recorded]) -> list[str]:
    """What may not be at any moment: merged work that the branch lacks, or a person's checkout that was touched."""
    wrong = _checkout(place)
    merged = [event for event in standing(events) if event.commit]
    if not merged or is_between(place, events):
        return wrong
    found = {commit.oid for commit in commits(place)}
    places = places_of(events)
    lost = [event for event in merged if places.get(event.commit, event.commit) not in found]
    return wrong + [f"branch: {event.task} is merged as {event.commit[:12]}, and the branch lacks it" for event in lost]


def branch_at_end(place: Place, events: Sequence[ev.Recorded]) -> list[str]:
    """What must be once everything is done."""
    return [*sound_at_end(place, events), *_not_once(commits(place), events)]


def sound_at_end(place: Place, events: Sequence[ev.Recorded]) -> list[str]:
    """The same, however many commits each task has in the branch."""
    return [*_damage(place), *_not_a_line(place, commits(place)), *_files(place), *_folders(place, events)]


def commits(place: Place) -> list[Commit]:
    """The run's own commits, oldest first; none when there is no branch yet. What it took in from others is below the
    second parent of a merge."""
    name = place.scenario.name
    told = _git(place, "log", "--reverse", "--topo-order", "--first-parent", f"--format={_FIELDS}",
                f"refs/heads/ganger/{name}", f"^refs/ganger/{name}/base")  # fmt: skip
    found = []
    for line in told.split("\x01"):
        parts = line.strip("\n").split("\0")
        if len(parts) == 4:
            found.append(Commit(parts[0], tuple(parts[1].split()), parts[2], parts[3]))
    return found


def is_between(place: Place, events: Sequence[ev.Recorded]) -> bool:
    """The branch moved to the same commits without merges, or back, and that is not told yet."""
    last = next((e for r in reversed(events) if isinstance(e := r.event, (*_MOVES, ev.HeadMoved))), None)
    return isinstance(last, _MOVES) and head(place) == last.tip


def places_of(events: Sequence[ev.Recorded]) -> dict[str, str]:
    """Where each commit is that was put on top of what others pushed. What is only intended may be so or not: then the
    branch tells."""
    places: dict[str, str] = {}
    intended: dict[str, ev.RebaseIntended] = {}
    for recorded in events:
        match recorded.event:
            case ev.RebaseIntended(repo=repo) as rebase:
                intended[repo] = rebase
            case ev.HeadMoved(repo=repo, before=before, head=tip):
                last = intended.get(repo)
                if last is not None and (last.head, last.tip) == (before, tip):
                    moved = dict(last.commits)
                    places = {old: moved.get(now, now) for old, now in places.items()} | moved
    return places


def head(place: Place) -> str:
    return _git(place, "rev-parse", "--verify", "--quiet", f"refs/heads/ganger/{place.scenario.name}").strip()


def merges(events: Sequence[ev.Recorded]) -> list[ev.Merged]:
    return [recorded.event for recorded in events if isinstance(recorded.event, ev.Merged)]


def standing(events: Sequence[ev.Recorded]) -> list[ev.Merged]:
    """Those that no set-back took out of the branch."""
    found: list[ev.Merged] = []
    intended: dict[str, ev.SetBackIntended] = {}
    for recorded in events:
        match recorded.event:
            case ev.Merged() as merged:
                found.append(merged)
            case ev.SetBackIntended(repo=repo) as move:
                intended[repo] = move
            case ev.HeadMoved(repo=repo, before=before, head=tip):
                last = intended.get(repo)
                if last is not None and (last.head, last.tip) == (before, tip):
                    found = [merged for merged in found if merged.commit not in last.gone]
    return found


def gap(place: Place, events: Sequence[ev.Recorded]) -> str:
    """Between which two steps of its life a run was cut off: the event it recorded last, and where the branch was."""
    if not events:
        return "nothing recorded"
    last = events[-1].event
    name = ev.type_name(last)
    intended = [r.event for r in events if isinstance(r.event, ev.HeadIntended | ev.HeadKept | ev.Merged)]
    open_ = intended[-1] if intended and isinstance(intended[-1], ev.HeadIntended) else None
    if open_ is None:
        return name
    moved = "the branch moved" if head(place) == open_.tip else "the branch not moved"
    return f"head_intended, {moved}"


def _checkout(place: Place) -> list[str]:
    before, now = json.loads(place.checkout.read_text()), place.look()
    changed = sorted(path for path in before.keys() | now.keys() if before.get(path) != now.get(path))
    return [f"checkout: {path} of the person's own folder was changed" for path in changed]


def _damage(place: Place) -> list[str]:
    done = _run(place, "fsck", "--full", "--strict", "--no-progress", "--no-reflogs")
    said = [line for line in (done.stdout + done.stderr).splitlines() if not line.startswith(_HARMLESS)]
    if done.returncode != 0 or said:
        return [f"branch: git fsck ended with {done.returncode}: {' | '.join(said)[:600]}"]
    return []


def _not_a_line(place: Place, line: Sequence[Commit]) -> list[str]:
    below = _git(place, "rev-parse", f"refs/ganger/{place.scenario.name}/base").strip()
    wrong = []
    for commit in line:
        if commit.parents[:1] != (below,):
            wrong.append(f"branch: {commit.oid[:12]} of {commit.task} does not follow {below[:12]}")
        below = commit.oid
    return wrong


def _not_once(line: Sequence[Commit], events: Sequence[ev.Recorded]) -> list[str]:
    """One commit for each DONE task that changed something, in the order of the events."""
    status = {r.event.task: r.event.status for r in events if isinstance(r.event, ev.TaskSettled)}
    told = [event for event in merges(events) if event.commit]
    wrong = []
    for task, count in sorted(Counter(commit.task for commit in line).items()):
        if count > 1:
            wrong.append(f"branch: {task} was merged {count} times")
        if status.get(task) is not TaskStatus.DONE:
            wrong.append(f"branch: it holds a commit of {task or 'nobody'}, which is {status.get(task)}")
    if [commit.oid for commit in line] != [event.commit for event in told]:
        shown = ", ".join(f"{event.task} {event.commit[:8]}" for event in told)
        held = ", ".join(f"{commit.task} {commit.oid[:8]}" for commit in line)
        wrong.append(f"branch: it holds {held}; the events tell {shown}")
    done = {name for name, now in status.items() if now is TaskStatus.DONE}
    nothing = {event.task for event in merges(events) if not event.commit}
    lost = sorted(done - nothing - {commit.task for commit in line})
    return wrong + [f"branch: {task} is DONE and has no commit" for task in lost]


def _files(place: Place) -> list[str]:
    """The tree is what it was, and what the jobs made of it: no file more, none less."""
    name = f"refs/heads/ganger/{place.scenario.name}"
    found = _git(place, "ls-tree", "-r", "--name-only", name).splitlines()
    wanted = place.scenario.expected_files()
    own = set(_git(place, "ls-tree", "-r", "--name-only", f"refs/ganger/{place.scenario.name}/base").splitlines())
    for commit in commits(place):
        if not commit.task:
            # Somebody else's, in a straight history.
            own |= set(_git(place, "diff-tree", "-r", "--no-commit-id", "--name-only", commit.oid).splitlines())
        for other in commit.parents[1:]:
            own |= set(_git(place, "ls-tree", "-r", "--name-only", other).splitlines())
    wrong = [f"files: {path} is in the tree" for path in sorted(set(found) - wanted.keys() - own)]
    for path, lines in wanted.items():
        text = _git(place, "cat-file", "blob", f"{name}:{path}") if path in found else ""
        if sorted(text.splitlines()) != lines:
            wrong.append(f"files: {path} holds {text.splitlines()}, expected {lines}")
    return wrong


def _folders(place: Place, events: Sequence[ev.Recorded]) -> list[str]:
    """Workspaces are removed; only one whose attempt ended fatal waits for a person."""
    fatal = {
        f"{r.event.task}.{r.event.attempt}"
        for r in events
        if isinstance(r.event, ev.AttemptFailed) and r.event.failure_class == FailureClass.FATAL.value
    }
    wrong = []
    for kind in ("work", "checks"):
        above = place.run_folder / kind
        inner = [above, *(above / name for name in (".new", ".trash", ".index"))]
        left = [path for folder in inner if folder.is_dir() for path in folder.iterdir()]
        named = [path for path in left if path not in inner and path.name not in fatal]
        wrong += [f"left behind: {path.relative_to(place.run_folder)}" for path in sorted(named)]
    return wrong


def _git(place: Place, *words: str) -> str:
    return _run(place, *words).stdout


def _run(place: Place, *words: str) -> subprocess.CompletedProcess[str]:
    """With settings of nobody's."""
    environment = {"PATH": os.environ.get("PATH", os.defpath), "GIT_CONFIG_NOSYSTEM": "1", "HOME": "/nonexistent"}
    return subprocess.run(
        ["git", "-c", "safe.directory=*", f"--git-dir={place.store}", *words],
        capture_output=True,
        text=True,
        errors="replace",
        env=environment,
        check=False,
    )
