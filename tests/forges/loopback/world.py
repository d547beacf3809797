"""Everything a forge knows: runs of what was pushed, change requests, and what it did not say."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from .ground import Ground, Push
from .script import OVER, Run

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
    ) -> None:
        self.ground = ground
        self.scripts = [tuple(one) for one in pushes]
        self.others = tuple(others)
        self.skew = skew
        self.began = time.time()
        self.lock = threading.RLock()
        self.looks = 0
        self.runs: list[Made] = []
        self.asked: list[Asked] = []
        self.shown: list[Shown] = []
        self.meanwhile: dict[int, list[Callable[[], None]]] = {}
        self.taken = 0
        self.own = 0
        self.foreign: set[str] = set()
        self.waiting_for_request: list[tuple[Push, Run]] = []
        self.labels = {"ganger": 7, "robots": 9}
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
            if push.after in self.foreign:
                scripts: Sequence[Run] = self.others
            else:
                scripts = self.scripts[min(self.own, len(self.scripts) - 1)] if self.scripts else ()
                self.own += 1
            for script in scripts:
                if script.event == "pull_request":
                    self.waiting_for_request.append((push, script))
                else:
                    self.begin(push.after, push.branch, script)
        for push, script in list(self.waiting_for_request):
            if any(one.branch == push.branch and one.state == "open" for one in self.asked):
                self.waiting_for_request.remove((push, script))
                self.begin(push.after, push.branch, script)

    def begin(self, sha: str, branch: str, script: Run) -> Made:
        n = len(self.runs)
        seen_from = self.looks + 1 + script.after
        made = Made(FIRST_ID + ID_STEP * n, n + 1, sha, branch, script, seen_from, attempt_born=seen_from)
        made.first_job = FIRST_JOB + 10_000 * n
        self.runs.append(made)
        return made

    def somebody_pushes(self, branch: str, name: str = "theirs.txt", text: str = "theirs\n") -> str:
        with self.lock:
            commit = self.ground.commit(branch, name, text)
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
        begun = self.looks if self.released is None else max(run.attempt_born, self.released)
        return run.script.words(run.attempt, max(0, self.looks - begun))

    def list_as(self, run: Made, word: str) -> str:
        """Remembers each change of what lists say of a run."""
        told = self.listed.setdefault(run.id, [])
        if not told or told[-1] != word:
            told.append(word)
        return word

    def final(self, run: Made) -> dict[str, str]:
        return run.script.words(run.attempt, 10_000)

    def tell(self, run: Made) -> dict[str, str]:
        """The same, and it is remembered that it was told."""
        words = self.words(run)
        self.shown.append(Shown(time.time(), run.id, run.sha, run.attempt, tuple(words.items())))
        return words

    def again(self, run: Made) -> bool:
        if not all(word in OVER for word in self.words(run).values()):
            return False
        run.attempt, run.attempt_born = run.attempt + 1, self.looks + 1
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
        return self.ground.tip(asked.branch)

    def merge(self, asked: Asked, head: str) -> str:
        """The commit the merge made; empty where it is refused."""
        with self.lock:
            if self.merge_refused or asked.state != "open" or (head and head != self.head_of(asked)):
                return ""
            commit = self.ground.merge(asked.branch, asked.into)
            if commit:
                self.foreign.add(commit)
                asked.state, asked.merged = "merged", commit
                self.sync()
            return commit
