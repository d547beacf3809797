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


def at(words: str, age: int) -> str:
    told = words.split()
    return told[min(age, len(told) - 1)]


_GREEN = {"check": "wait run ok", "test": "wait run run ok", MIRROR: "block block block run ok"}


def ci(changed: Mapping[str, str | None] | None = None, **more: object) -> Run:
    """The usual workflow, with other words for some of its jobs; None leaves a job out."""
    jobs: dict[str, str | None] = {**_GREEN, **(changed or {})}
    return replace(Run({name: words for name, words in jobs.items() if words is not None}), **more)  # type: ignore[arg-type]


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
