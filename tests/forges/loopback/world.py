"""Everything a forge knows: runs of what was pushed, change requests, and what it did not say."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from .ground import NONE, Ground, Push
from .manners import QUIET, Manners, Protection
from .people import MAINTAINER, ROBOT, Comment, Label, Milestone, Remark, Review, Status, counted
from .script import OVER, Run, holds
from .train import Train

FIRST_ID, ID_STEP = 4001, 37
FIRST_JOB, JOB_STEP = 90001, 11
LONG_AGO = "1970-01-01T00:00:00Z"


@dataclass
class Made:
    """A run that is there. Ids are never numbers; a later attempt has jobs with other ids."""

    id: int
    number: int
    sha: str
    branch: str
    script: Run
    born: int
    attempt: int = 1
    attempt_born: int = 0
    deleted: bool = False
    first_job: int = 0
    born_at: float = 0.0
    came_at: float = 0.0
    stopped: dict[str, str] | None = None
    unparsed: bool = False

    def job_id(self, name: str, attempt: int = 0) -> int:
        place = list(self.script.of_attempt(attempt or self.attempt)).index(name)
        return self.first_job + JOB_STEP * place + 1000 * ((attempt or self.attempt) - 1)


@dataclass
class Asked:
    """A change request."""

    number: int
    title: str
    body: str
    branch: str
    into: str
    draft: bool = False
    state: str = "open"
    merged: str = ""
    labels: list[str] = field(default_factory=list)
    comments: list[str] = field(default_factory=list)
    reviews: list[Review] = field(default_factory=list)
    said: list[Comment] = field(default_factory=list)
    milestone: int = 0
    # Merged, and nobody was told: the request stays open for ever.
    stuck: bool = False
    # Where its branch was when that was deleted.
    head: str = ""


@dataclass(frozen=True)
class Merge:
    """One request came into its target: as `commit`, of `head`, onto `before`. `called`: by the API, and not by a
    person."""

    at: float
    number: int
    head: str
    before: str
    commit: str
    how: str
    called: bool = True


@dataclass(frozen=True)
class Trouble:
    """Why a merge is refused: `kind` is `busy`, `stuck`, `conflict`, `head`, `approvals`, `rejected`, `checks`,
    `behind`, `draft` or `closed`."""

    kind: str
    text: str


@dataclass(frozen=True)
class Shown:
    """Jobs as they were told to somebody, and when."""

    at: float
    run: int
    sha: str
    attempt: int
    words: tuple[tuple[str, str], ...]


class World:
    """`pushes` says what CI does for the first push, the second and so on; the last holds for all that follow.

    Time goes by looks: each list of runs somebody asks for is one, and `meanwhile` has what happens at one of them.
    Until there were `hold` pushes no job goes on.
    """

    def __init__(
        self,
        ground: Ground,
        pushes: Sequence[Sequence[Run]],
        *,
        others: Sequence[Run] = (),
        skew: float = 0.0,
        manners: Manners = QUIET,
        token_is: str = ROBOT,
    ) -> None:
        self.ground = ground
        self.manners, self.robot = manners, token_is
        self.scripts = [tuple(one) for one in pushes]
        self.others = tuple(others)
        self.skew = skew
        self.began = time.time()
        self.lock = threading.RLock()
        self.looks = 0
        self.runs: list[Made] = []
        self.asked: list[Asked] = []
        self.merges: list[Merge] = []
        self.train = Train(self)
        self.shown: list[Shown] = []
        self.meanwhile: dict[int, list[Callable[[], None]]] = {}
        self.taken = 0
        self.own = 0
        self.foreign: set[str] = set()
        self.forced: set[float] = set()
        self.waiting_for_request: list[tuple[Push, Run]] = []
        self.labels = [Label(7, "ganger"), Label(9, "robots")]
        self.milestones: list[Milestone] = []
        self.statuses: list[Status] = []
        self.protected: dict[str, Protection] = {}
        self.protected_says = "Not allowed to push to protected branch"
        # How this kind of forge shows a workflow that cannot be read: `job`, `bare` (a run without jobs) or nothing.
        self.unparsed_as = "job"
        self.left_open = False
        self.closes_with_branch = True
        self.lost = 0
        self.merging = False
        self.numbers = 500
        self.queue: list[tuple[Push, Sequence[Run]]] = []
        self.merge_refused = ""
        self.hold = 0
        self.released: int | None = None
        self.listed: dict[int, list[str]] = {}

    # --- time -------------------------------------------------------------------------------------------------------

    def look(self) -> None:
        """Somebody asks what runs there are."""
        with self.lock:
            self.sync()
            self.looks += 1
            if self.released is None and self.own >= self.hold:
                self.released = self.looks
            for act in self.meanwhile.pop(self.looks, ()):
                act()
            self.sync()

    def stamp(self) -> str:
        """Always the same: what has not changed is answered with the same bytes."""
        return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(self.began + self.skew))

    def sync(self) -> None:
        """Runs begin for whatever was pushed since."""
        for push in self.ground.pushes()[self.taken :]:
            self.taken += 1
            if push.after in self.foreign or push.at in self.forced:
                scripts: Sequence[Run] = self.others
            else:
                scripts = self.scripts[min(self.own, len(self.scripts) - 1)] if self.scripts else ()
                self.own += 1
            self._outdate(push)
            self.queue.append((push, scripts))
        for push, scripts in list(self.queue):
            if time.time() - push.at < self.manners.folds_sec:
                continue
            self.queue.remove((push, scripts))
            self._start(push, scripts)
        for push, script in list(self.waiting_for_request):
            if any(one.branch == push.branch and one.state == "open" for one in self.asked):
                self.waiting_for_request.remove((push, script))
                self.begin(push.after, push.branch, script)
        self.train.advance()

    def _start(self, push: Push, scripts: Sequence[Run]) -> None:
        """With folding, whatever the branch holds when the push is looked at."""
        sha = self.ground.tip(push.branch) if self.manners.folds_sec else push.after
        for script in scripts if sha else ():
            if script.branches and push.branch not in script.branches:
                continue
            if script.paths_ignore and self._is_ignored(push, script):
                continue
            if script.event == "pull_request":
                self.waiting_for_request.append((replace(push, after=sha), script))
            else:
                self.begin(sha, push.branch, script)

    def _is_ignored(self, push: Push, script: Run) -> bool:
        """Whether all that the push changed lies in these folders, a new branch compared with the target."""
        before = push.before if push.before != NONE else self.ground.git("merge-base", "main", push.after)
        changed = self.ground.changed(before, push.after)
        return all(name.startswith(script.paths_ignore) for name in changed)

    def _outdate(self, push: Push) -> None:
        """A protected branch may want approvals of the very commit."""
        for asked in self.asked:
            rule = self.protected.get(asked.into)
            if asked.branch == push.branch and asked.state == "open" and rule and rule.dismisses_stale:
                for review in asked.reviews:
                    review.dismissed = review.dismissed or (review.state == "approve" and review.commit != push.after)

    def began_before(self, branch: str, script: Run) -> Made:
        """CI ran for what the branch holds before anybody looks."""
        made = self.begin(self.ground.tip(branch), branch, script)
        made.born = made.attempt_born = 0
        return made

    def begin(self, sha: str, branch: str, script: Run) -> Made:
        n = len(self.runs)
        seen_from = self.looks + 1 + script.after
        made = Made(FIRST_ID + ID_STEP * n, n + 1, sha, branch, script, seen_from, attempt_born=seen_from)
        made.first_job, made.born_at = FIRST_JOB + 10_000 * n, time.time()
        made.came_at = made.born_at
        if script.red or script.when or script.unparsed:
            files = self.ground.files(sha)
            made.script = script.for_tree(files)
            made.unparsed = any(holds(one, files) for one in script.unparsed)
            made.deleted = bool(script.when) and not holds(script.when, files)
        if made.unparsed:
            jobs = {self.ground.subject(sha): "fail"} if self.unparsed_as == "job" else {}
            made.script = replace(script, jobs=jobs, sec=0.0, again=())
            made.deleted = made.deleted or not self.unparsed_as
        if self.manners.cancels and not made.deleted and script.event in ("push", "pull_request"):
            for older in self.runs:
                if (older.branch, older.script.workflow, older.script.event) == (branch, script.workflow, script.event):
                    self.stop(older)
        self.runs.append(made)
        return made

    def stop(self, run: Made) -> bool:
        """What is not over is cancelled, and stays so. Whether there was anything."""
        words = self.words(run)
        if all(word in OVER for word in words.values()):
            return False
        run.stopped = {name: word if word in OVER else "cancel" for name, word in words.items()}
        return True

    def somebody_pushes(self, branch: str, name: str = "theirs.txt", text: str = "theirs\n", message: str = "") -> str:
        with self.lock:
            commit = self.ground.commit(branch, name, text, message=message)
            self.foreign.add(commit)
            self.sync()
            return commit

    def somebody_removes(self, branch: str, name: str) -> str:
        with self.lock:
            commit = self.ground.commit(branch, name, None)
            self.foreign.add(commit)
            self.sync()
            return commit

    # --- runs -------------------------------------------------------------------------------------------------------

    def visible(self) -> list[Made]:
        """What can be seen now, the newest first."""
        return [run for run in reversed(self.runs) if self._seen(run)]

    def _seen(self, run: Made) -> bool:
        gone = run.script.gone is not None and self.looks >= run.born + run.script.gone
        return not run.deleted and self.looks >= run.born and not gone

    def find(self, run_id: int) -> Made | None:
        return next((run for run in self.visible() if run.id == run_id), None)

    def words(self, run: Made) -> dict[str, str]:
        if run.stopped is not None:
            return dict(run.stopped)
        if run.script.sec:
            held = self.own < self.hold
            return run.script.words_after(run.attempt, 0.0 if held else time.time() - run.born_at)
        begun = self.looks if self.released is None else max(run.attempt_born, self.released)
        return run.script.words(run.attempt, max(0, self.looks - begun))

    def children(self, run_id: int) -> list[Made]:
        """The pipelines that this one started, in the same repository."""
        parent = self.find(run_id)
        return [run for run in self.runs if parent and run.script.event == "parent" and run.sha == parent.sha]

    def list_as(self, run: Made, word: str) -> str:
        """Remembers each change of what lists say of a run."""
        told = self.listed.setdefault(run.id, [])
        if not told or told[-1] != word:
            told.append(word)
        return word

    def final(self, run: Made) -> dict[str, str]:
        return dict(run.stopped) if run.stopped is not None else run.script.words(run.attempt, 10_000)

    def tell(self, run: Made) -> dict[str, str]:
        """The same, and it is remembered that it was told."""
        words = self.words(run)
        self.shown.append(Shown(time.time(), run.id, run.sha, run.attempt, tuple(words.items())))
        return words

    def again(self, run: Made) -> bool:
        if not all(word in OVER for word in self.words(run).values()):
            return False
        run.attempt, run.attempt_born = run.attempt + 1, self.looks + 1
        run.born_at, run.stopped = time.time(), None
        return True

    def told_sha(self, run: Made) -> str | None:
        """What the answer's field says; None: it is not in it."""
        match run.script.sha:
            case "empty":
                return ""
            case "late" if self.looks < run.born + 3:
                return ""
            case "missing":
                return None
            case "short":
                return run.sha[:10]
            case "parent":
                return self.ground.parent(run.sha)
            case "other":
                return "f" * 40
        return run.sha

    def log_of(self, job_id: int) -> str | None:
        for run in self.visible():
            for attempt in range(1, run.attempt + 1):
                for name in run.script.of_attempt(attempt):
                    if run.job_id(name, attempt) == job_id:
                        return run.script.logs.get(name, f"log of {name}\nstep 1 ok\nerror: {name} is broken here\n")
        return None

    # --- change requests --------------------------------------------------------------------------------------------

    def open_request(self, title: str, body: str, branch: str, into: str, *, draft: bool) -> Asked:
        with self.lock:
            made = Asked(101 + len(self.asked), title, body, branch, into, draft)
            self.asked.append(made)
            self.sync()
            return made

    def request_of(self, branch: str, into: str) -> Asked | None:
        return next((a for a in self.asked if (a.branch, a.into, a.state) == (branch, into, "open")), None)

    def numbered(self, number: int) -> Asked | None:
        return next((one for one in self.asked if one.number == number), None)

    def head_of(self, asked: Asked) -> str:
        return self.ground.tip(asked.branch) or asked.head

    def trouble(self, asked: Asked, head: str = "") -> Trouble | None:
        """Why it cannot be merged now."""
        if asked.stuck:
            return Trouble("stuck", "Please try again later")
        if asked.state != "open" or not self.ground.tip(asked.branch):
            return Trouble("closed", "The pull request is not open")
        if self.merging:
            return Trouble("busy", "Another merge is under way")
        if self.manners.train:
            return Trouble("approvals", "Changes must be made through the merge queue")
        if self.merge_refused or (head and head != self.head_of(asked)):
            return Trouble("head", self.merge_refused or "head out of date")
        rule = self.protected.get(asked.into)
        found = self._ruled(asked, rule) if rule else None
        if found is None and not self.mergeable(asked):
            return Trouble("conflict", "There are conflicts")
        return found

    def _ruled(self, asked: Asked, rule: Protection) -> Trouble | None:
        said = counted(asked.reviews, self.head_of(asked))
        if rule.refuses_rejected and "changes" in said.values():
            return Trouble("rejected", "There are requested changes")
        if list(said.values()).count("approve") < rule.approvals:
            return Trouble("approvals", "Does not have enough approvals")
        states = self.contexts(self.head_of(asked))
        if any(states.get(one) != "success" for one in rule.checks):
            return Trouble("checks", "Not all required status checks successful")
        if rule.up_to_date and not self.ground.is_below(self.ground.tip(asked.into), self.head_of(asked)):
            return Trouble("behind", "The head branch is behind the base branch")
        return None

    def contexts(self, sha: str) -> dict[str, str]:
        """The state of each context of a commit: by CI, by anybody."""
        word = {"ok": "success", "skip": "success", "neutral": "success", "fail": "failure", "cancel": "failure",
                "timeout": "failure", "allowed": "failure"}  # fmt: skip
        found: dict[str, str] = {}
        for run in (one for one in self.runs if one.sha == sha and self._seen(one)):
            for name, told in self.words(run).items():
                for context in (name, f"{run.script.workflow.partition('.')[0]} / {name} ({run.script.event})"):
                    found[context] = word.get(told, "pending")
        return found | {one.context: one.state for one in self.statuses if one.sha == sha}

    def mergeable(self, asked: Asked) -> bool:
        """Whether git can join them."""
        ours, theirs = self.ground.tip(asked.into), self.ground.tip(asked.branch)
        return bool(ours and theirs) and bool(self.ground.joined(ours, theirs))

    def is_behind(self, asked: Asked) -> bool:
        return not self.ground.is_below(self.ground.tip(asked.into), self.head_of(asked))

    def merge(self, asked: Asked, head: str, *, delete: bool = False, how: str = "") -> tuple[str, bool]:
        """The commit the merge made, empty where it is refused; and whether anybody is told of it. Who calls does not
        hold the lock: others may ask while it goes on. Without a word on `how` it is a person's."""
        with self.lock:
            if self.trouble(asked, head) is not None:
                return "", True
            self.merging = True
        try:
            time.sleep(self.manners.merge_sec)
            with self.lock:
                return self._merged(asked, delete=delete, how=how)
        finally:
            self.merging = False

    def landed(self, asked: Asked, commit: str, how: str) -> None:
        before = self.ground.tip(asked.into)
        asked.state, asked.merged, asked.head = "merged", commit, self.head_of(asked)
        self.merges.append(Merge(time.time(), asked.number, asked.head, before, commit, how))

    def _merged(self, asked: Asked, *, delete: bool, how: str) -> tuple[str, bool]:
        asked.head, before = self.head_of(asked), self.ground.tip(asked.into)
        # As Forgejo says it by itself.
        words = f"Merge pull request '{asked.title}' (#{asked.number}) from {asked.branch} into {asked.into}"
        commit = self.ground.land(asked.branch, asked.into, how or "merge", words)
        if not commit:
            return "", True
        self.merges.append(Merge(time.time(), asked.number, asked.head, before, commit, how, bool(how)))
        self.foreign.add(commit)
        lost = self.lost < self.manners.lost_merges
        self.lost += lost
        asked.stuck = lost and self.left_open
        if not asked.stuck:
            asked.state, asked.merged = "merged", commit
            if delete:
                self.ground.delete(asked.branch)
        self.sync()
        return commit, not lost

    def bring_up_to_date(self, asked: Asked, *, how: str = "merge") -> str:
        """The base goes into the request's branch; its new head, empty where they do not go together."""
        with self.lock:
            if how == "rebase":
                made = self.ground.rebase(asked.branch, asked.into)
            else:
                made = self.ground.merge(asked.into, asked.branch)
            if made:
                self.foreign.add(made)
                self.sync()
            return made

    def is_outdated(self, asked: Asked, review: Review) -> bool:
        """Forgejo and Gitea compare what the request shows: an empty commit leaves reviews as they are, and so does a
        merge of the target."""
        commits = [one for one in (review.commit, self.head_of(asked)) if one]
        return len({self.ground.git("diff", f"{asked.into}...{one}") for one in commits}) > 1

    # --- people -----------------------------------------------------------------------------------------------------

    def number(self) -> int:
        """One that nothing else here has."""
        self.numbers += 7
        return self.numbers

    def newest(self) -> Asked:
        """The newest request that is open, else the newest."""
        return next((one for one in reversed(self.asked) if one.state == "open"), self.asked[-1])

    def review(
        self,
        asked: Asked,
        state: str,
        body: str = "",
        *,
        by: str = MAINTAINER,
        at: Sequence[tuple[str, int, str]] = (),
        commit: str = "",
    ) -> Review:
        """`at`: path, line and text of each remark."""
        with self.lock:
            remarks = [Remark(self.number(), *one) for one in at]
            made = Review(self.number(), by, state, body, commit or self.head_of(asked), remarks)
            asked.reviews.append(made)
            return made

    def comment(self, asked: Asked, body: str, by: str = "") -> Comment:
        asked.comments.append(body)
        asked.said.append(Comment(self.number(), by or self.robot, body))
        return asked.said[-1]

    def label(self, name: str) -> Label:
        """Nobody looks whether one of that name is there."""
        made = Label(self.number(), name)
        self.labels.append(made)
        return made

    def put_labels(self, asked: Asked, numbers: Sequence[int | str]) -> None:
        """By number, or by name."""
        known = {one.id: one.name for one in self.labels}
        for one in numbers:
            name = one if isinstance(one, str) else known.get(one, "")
            if name and name not in asked.labels:
                asked.labels.append(name)

    def milestone(self, title: str) -> Milestone:
        self.milestones.append(Milestone(self.number(), title))
        return self.milestones[-1]

    def say_status(self, sha: str, given: Mapping[str, str]) -> Status:
        text, url = given.get("description") or "", given.get("target_url") or ""
        made = Status(self.number(), sha, given.get("context") or "default", given["state"], text, url)
        self.statuses.append(made)
        return made

    def rewrite(self, number: int, body: str) -> Comment | None:
        """A remark gets another text."""
        found = next((one for asked in self.asked for one in asked.said if one.id == number), None)
        if found is not None:
            found.body = body
        return found

    def place_of(self, comment: Comment) -> int:
        """The number of the request it is below."""
        return next(asked.number for asked in self.asked if any(one is comment for one in asked.said))

    def label_of(self, name: str) -> Label:
        return next((one for one in self.labels if one.name == name), Label(1, name))

    def protect(self, branch: str, rule: Protection | None) -> None:
        with self.lock:
            if rule is None:
                self.protected.pop(branch, None)
            else:
                self.protected[branch] = rule
            self.ground.protect({name: (one.push, one.linear) for name, one in self.protected.items()},
                self.protected_says)  # fmt: skip

    def cut(self, branch: str, count: int = 1) -> str:
        """Somebody forces the branch back."""
        with self.lock:
            self.forced.add(self.ground.cut(branch, count))
            self.sync()
            return self.ground.tip(branch)

    def drop(self, branch: str, above: int) -> None:
        """Someone rewrites the branch without one commit, above which there are so many others."""
        with self.lock:
            self.forced.add(self.ground.drop(branch, above))
            self.sync()

    def uncut(self, branch: str) -> None:
        """Someone puts back what was forced out last."""
        with self.lock:
            was = next(push.before for push in reversed(self.ground.pushes()) if push.at in self.forced)
            self.forced.add(self.ground.move(branch, was))
            self.sync()

    def delete_branch(self, branch: str) -> bool:
        with self.lock:
            for asked in self.asked:
                if asked.branch == branch:
                    asked.head = self.head_of(asked)
                    if asked.state == "open" and self.closes_with_branch:
                        asked.state = "closed"
            return self.ground.delete(branch)
