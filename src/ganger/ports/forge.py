"""What delivery needs of the world: a remote that takes commits, a forge that runs CI on them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from ganger.core.branch_rules import BranchRules
from ganger.core.ci import JobFact, RunFact
from ganger.core.forge_reviews import Review


@dataclass(frozen=True, slots=True)
class Sent:
    """The remote's branch holds the commit. `found`: it did so before."""

    found: bool = False


@dataclass(frozen=True, slots=True)
class Behind:
    """The remote's branch has commits that the pushed one does not hold; `head` is its tip."""

    head: str


@dataclass(frozen=True, slots=True)
class Rejected:
    """The remote took the call and said no: a hook, a protected branch, a token without the right."""

    why: str
    denied: bool = False


PushOutcome = Sent | Behind | Rejected


class Remote(Protocol):
    """Another repository that this one is pushed to. Raises ForgeUnreachable where it cannot be asked, ForgeDenied
    where it knows nobody by that token. A commit goes on top of what is there, or not at all; `replace` alone takes
    something away, and only what it is told."""

    @property
    def address(self) -> str:
        """For people, without credentials."""

    @property
    def host(self) -> str:
        """Which host that is on; empty for a folder."""

    async def head(self, branch: str) -> str:
        """The branch's tip; empty when there is no such branch."""

    async def holds(self, commit: str, branch: str) -> bool:
        """Whether the branch has the commit, at its tip or below: fetches where only that can tell."""

    async def fetch(self, branch: str) -> str:
        """Brings the branch's commits here; its tip, or empty."""

    async def push(self, commit: str, branch: str) -> PushOutcome:
        """Harmless to repeat."""

    async def remove(self, commit: str, branch: str) -> bool:
        """Takes the branch away where it stands at exactly this commit; whether it is gone now."""

    async def replace(self, commit: str, branch: str, expected: str) -> PushOutcome:
        """Moves the branch from `expected` to a commit that does not build on it, and from nowhere else. Harmless to
        repeat."""


@dataclass(frozen=True, slots=True)
class Greeting:
    """Who answers. `user` is who the token speaks for; empty where that is nobody."""

    forge: str
    version: str = ""
    user: str = ""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Request:
    """A change request as the forge has it. `head` is the commit it stands at; `title` is without what makes it a
    draft."""

    number: str
    url: str
    branch: str
    into: str
    state: str = "open"
    draft: bool = False
    head: str = ""
    merged: str = ""
    title: str = ""
    body: str = ""


@dataclass(frozen=True, slots=True)
class NewRequest:
    """`labels` are made where there are none of that name; a `milestone` that is not there is left out."""

    branch: str
    into: str
    title: str
    body: str
    draft: bool = False
    labels: tuple[str, ...] = ()
    milestone: str = ""


@dataclass(frozen=True, slots=True)
class MergeRules:
    """How changes reach a branch there. `methods` are those that are allowed, of `merge`, `squash`, `rebase` and
    `fast-forward`; none: it does not say. `queue`: through the forge's own queue or train alone. `only_merges`:
    whatever the method, a merge commit comes of it."""

    methods: tuple[str, ...] = ()
    queue: bool = False
    only_merges: bool = False


@dataclass(frozen=True, slots=True)
class MergeAnswer:
    """`commit` is what the merge made; empty where there was none, and `why` says in the forge's own words why not.
    `busy`: it may say otherwise a moment later."""

    commit: str = ""
    why: str = ""
    busy: bool = False


@dataclass(frozen=True, slots=True)
class QueueLook:
    """Where a request stands in the forge's queue: `waiting`, `merged` (as `commit`) or `out` of it. While it waits,
    `commit` is what the queue tries with it, where that is known."""

    state: str
    commit: str = ""
    why: str = ""


class Forge(Protocol):
    """One repository on a forge. Every call has a deadline and retries of its own, and then raises ForgeUnreachable;
    ForgeDenied when the token is not (any more) good for it; ForgeLimited with the moment when it may be asked again.
    What it does not understand is never a verdict."""

    @property
    def name(self) -> str:
        """Which forge, for people: `forgejo at git.example.org`."""

    @property
    def host(self) -> str:
        """Which host is asked; empty where CI is done here."""

    @property
    def calls(self) -> int:
        """How many requests were sent so far."""

    async def greet(self) -> Greeting: ...

    async def knock(self) -> None:
        """One request, whatever was before: raises as all others where the host does not answer or knows nobody by
        this token."""

    async def runs(self, shas: Sequence[str]) -> Sequence[RunFact]:
        """The runs of these commits, without their jobs. One call, however many commits there are; a run that is on
        none of the pages read this time comes the next time."""

    async def jobs(self, run: RunFact) -> RunFact:
        """The run with its jobs, `asked` set to its state. One call where the forge has one for it."""

    async def log(self, run: RunFact, job: JobFact) -> str:
        """The job's log; empty where the forge has none (any more)."""

    async def rerun(self, run: RunFact) -> bool:
        """Runs it again for the same commit; False where this forge cannot."""

    async def find_request(self, branch: str, into: str) -> Request | None:
        """The newest that is open or merged."""

    async def open_request(self, new: NewRequest) -> Request:
        """Finds it where it is there already."""

    async def update_request(self, request: Request, new: NewRequest) -> None:
        """Its title, text, labels and milestone are as in `new`, and what others added besides stays. A draft stays
        one."""

    async def ready(self, request: Request) -> None:
        """No longer a draft."""

    async def reviews(self, request: Request) -> Sequence[Review]:
        """What people said of it, the oldest first; their remarks on lines come with requests for changes that
        stand."""

    async def remark(self, request: Request, mark: str, words: str) -> str:
        """One comment of its own, found again by the `mark` that its text holds, with this text; where it is to be
        seen. Empty where the forge takes none."""

    async def branch_rules(self, branch: str) -> BranchRules:
        """What the forge asks of those who push to the branch or merge into it, as far as this token may see it."""

    async def merge_rules(self, into: str) -> MergeRules: ...

    async def merge(self, request: Request, head: str, method: str = "merge") -> MergeAnswer:
        """Merges exactly `head`, or nothing."""

    async def enqueue(self, request: Request, head: str) -> MergeAnswer:
        """Puts exactly `head` into the forge's own queue. Harmless to repeat; `commit` stays empty."""

    async def queued(self, request: Request) -> QueueLook: ...

    async def close(self) -> None: ...
