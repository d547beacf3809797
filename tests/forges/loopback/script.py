"""What CI shall do, as data: runs of workflows, and the words of their jobs from one look to the next."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

# A job's words, whatever the forge calls them. `odd` is one that no documentation has.
WORDS = frozenset(
    {"wait", "block", "run", "ok", "fail", "cancel", "skip", "timeout", "approve", "neutral", "allowed", "odd"}
)
OVER = frozenset({"ok", "fail", "cancel", "skip", "timeout", "neutral", "allowed"})
MIRROR = "radicle-push"


@dataclass(frozen=True)
class Run:
    """One run of a workflow for one push.

    `jobs` has each job's words, one per look, the last of which stays. A run can be seen from look `after` on, and no
    longer from look `gone` on. `sha` changes what the answer's field says: `empty`, `late` (empty at first), `missing`,
    `short`, `parent` (the commit before) or `other` (nobody's). `again` is what later attempts do. `word` is the run's
    own, where the forge's rule shall not say it. `logs` has the texts of jobs, None where there is none.

    `sec`: it takes so long by the wall clock, whoever looks; 0: a word goes on with each look. `red` says for which
    files of the commit the job `judge` fails (see `holds`); `unparsed` for which the workflow itself cannot be read.
    `when`: it runs only for commits that hold for it. `branches`: only for pushes to these; none: to all.
    `paths_ignore`: not for a push that changes nothing but files whose paths begin so.
    """

    jobs: Mapping[str, str]
    workflow: str = "ci.yml"
    event: str = "push"
    after: int = 0
    gone: int | None = None
    sha: str = ""
    word: str = ""
    again: tuple[Mapping[str, str], ...] = ()
    logs: Mapping[str, str | None] = field(default_factory=dict)
    sec: float = 0.0
    red: tuple[str, ...] = ()
    judge: str = "test"
    unparsed: tuple[str, ...] = ()
    when: str = ""
    branches: tuple[str, ...] = ()
    paths_ignore: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for words in (*self.jobs.values(), *(w for one in self.again for w in one.values())):
            unknown = set(words.split()) - WORDS
            if unknown:
                raise ValueError(f"{unknown} is no word of the script")

    def of_attempt(self, attempt: int) -> Mapping[str, str]:
        """The jobs' words in that attempt; what no attempt says is as in the one before."""
        words = dict(self.jobs)
        for changed in self.again[: attempt - 1]:
            words.update(changed)
        return words

    def words(self, attempt: int, age: int) -> dict[str, str]:
        return {name: at(words, age) for name, words in self.of_attempt(attempt).items()}

    def words_after(self, attempt: int, sec: float) -> dict[str, str]:
        """By the wall clock: the last word comes when the time is over, those before share it."""
        part = min(1.0, max(0.0, sec / self.sec))
        found = {}
        for name, words in self.of_attempt(attempt).items():
            steps = len(words.split()) - 1
            found[name] = at(words, steps if part >= 1 else min(int(part * steps), max(0, steps - 1)))
        return found

    def for_tree(self, files: Tree) -> Run:
        """As it goes for a commit of these files: the same in every attempt, as the files stay the same."""
        found = [one for one in self.red if holds(one, files)]
        if not found:
            return self
        jobs = {name: words if name != self.judge else _ending(words, "fail") for name, words in self.jobs.items()}
        if MIRROR in jobs:
            jobs[MIRROR] = _ending(jobs[MIRROR], "skip")
        why = "".join(f"error: {one} is in the way\n" for one in found)
        return replace(self, jobs=jobs, logs={self.judge: f"log of {self.judge}\n{why}", **self.logs})


Tree = Mapping[str, str]


def holds(wanted: str, files: Tree) -> bool:
    """`a.txt`: the file is there; `a.txt~word`: and has that in it; `!a.txt`: it is not there; joined by `+`, all of
    it. `*` always holds."""
    return all(_holds(one, files) for one in wanted.split("+"))


def _holds(wanted: str, files: Tree) -> bool:
    if wanted == "*":
        return True
    if wanted.startswith("!"):
        return not _holds(wanted[1:], files)
    name, _, word = wanted.partition("~")
    return name in files and word in files[name]


def _ending(words: str, last: str) -> str:
    return " ".join([*words.split()[:-1], last])


def at(words: str, age: int) -> str:
    told = words.split()
    return told[min(age, len(told) - 1)]


_GREEN = {"check": "wait run ok", "test": "wait run run ok", MIRROR: "block block block run ok"}


def ci(changed: Mapping[str, str | None] | None = None, **more: object) -> Run:
    """The usual workflow, with other words for some of its jobs; None leaves a job out."""
    jobs: dict[str, str | None] = {**_GREEN, **(changed or {})}
    return replace(Run({name: words for name, words in jobs.items() if words is not None}), **more)  # type: ignore[arg-type]


def by_tree(*red: str, sec: float = 0.0, **more: object) -> Run:
    """The usual workflow, red for commits that hold one of these: see `holds`."""
    return ci(None, red=red, sec=sec, **more)


GREEN = ci()
RED = ci({"test": "wait run fail", MIRROR: "block block skip"})


@dataclass(frozen=True)
class Fault:
    """Something wrong with the answers to requests of a kind (`what`, or `any`): from the `first` on, `count` of them.

    `kind`: a status (`502`), `reset`, `silence` (no answer), `garbage` (no JSON), `cut` (half an answer), `limited`
    (429 with the moment it is over), `secondary` (403 that means later), `revoked` (401 from then on, for everything).
    """

    what: str
    kind: str
    first: int = 1
    count: int = 1

    def hits(self, what: str, of_kind: int, of_all: int) -> bool:
        number = of_all if self.what == "any" else of_kind
        return self.what in (what, "any") and self.first <= number < self.first + self.count
