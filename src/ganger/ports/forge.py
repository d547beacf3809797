"""What delivery needs from the world: a remote that accepts commits, a forge that runs CI on them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from ganger.core.delivery.branch_rules import BranchRules
from ganger.core.delivery.forge_reviews import Review
from ganger.core.model.ci import JobFact, RunFact


@dataclass(frozen=True, slots=True)
class Sent:
    """The remote's branch holds the commit. `found`: it did so before the push."""

    found: bool = False


@dataclass(frozen=True, slots=True)
class Behind:
    """The remote's branch has commits that the pushed one does not hold; `head` is its tip."""

    head: str


@dataclass(frozen=True, slots=True)
class Rejected:
    """The remote answered and rejected the push: a hook, a protected branch, a token without the right."""

    why: str
    denied: bool = False


PushOutcome = Sent | Behind | Rejected


class Remote(Protocol):
    """Another repository that this one is pushed to. Raises ForgeUnreachable where it does not answer, ForgeDenied
    where it does not accept the token. A commit is added on top of the branch or not at all; only `replace` removes
    commits, and only those it is given."""

    @property
    def address(self) -> str:
        """The remote's name for people, without credentials."""

    @property
    def host(self) -> str:
        """The remote's host; empty for a folder."""

    async def head(self, branch: str) -> str:
        """The branch's tip; empty when there is no such branch."""

    async def holds(self, commit: str, branch: str) -> bool:
        """Whether the branch has the commit, at its tip or below; fetches if necessary."""

    async def fetch(self, branch: str) -> str:
        """Fetches the branch's commits; returns its tip, or an empty text."""

    async def push(self, commit: str, branch: str, onto: str = "") -> PushOutcome:
        """Pushes a commit to the branch. Safe to repeat. `onto` is a commit below it: only if the branch is there."""

    async def remove(self, commit: str, branch: str) -> bool:
        """Removes the branch if it is at exactly this commit; returns whether it is gone now."""

    async def replace(self, commit: str, branch: str, expected: str) -> PushOutcome:
        """Moves the branch to a commit that is not a descendant, only if it is at `expected`. Safe to repeat."""


@dataclass(frozen=True, slots=True)
class Greeting:
    """Who answers. `user` is the token's user; empty where it has none."""

    forge: str
    version: str = ""
    user: str = ""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Request:
    """A change request as the forge has it. `head` is its present commit; `title` lacks the prefix that marks a
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
    """Missing `labels` are created; a missing `milestone` is left out."""

    branch: str
    into: str
    title: str
    body: str
    draft: bool = False
    labels: tuple[str, ...] = ()
    milestone: str = ""


@dataclass(frozen=True, slots=True)
class MergeRules:
    """How changes reach a branch on the forge. `methods` are the allowed ones of `merge`, `squash`, `rebase` and
    `fast-forward`; none: unknown. `queue`: only through the forge's own queue or train. `only_merges`: every method
    makes a merge commit."""

    methods: tuple[str, ...] = ()
    queue: bool = False
    only_merges: bool = False


@dataclass(frozen=True, slots=True)
class MergeAnswer:
    """`commit` is the result of the merge; empty where there was none, and `why` is the forge's own reason.
    `busy`: the answer may change a moment later."""

    commit: str = ""
    why: str = ""
    busy: bool = False


@dataclass(frozen=True, slots=True)
class QueueLook:
    """A request's place in the forge's queue: `waiting`, `merged` (as `commit`) or `out` of it. While it waits,
    `commit` is what the queue tests with it, where known."""

    state: str
    commit: str = ""
    why: str = ""


class Forge(Protocol):
    """One repository on a forge. Every call has its own deadline and retries, and then raises ForgeUnreachable;
    ForgeDenied when the token is not (or no longer) valid for it; ForgeLimited with the time of the next allowed
    request. An answer that it does not understand is never a verdict."""

    @property
    def name(self) -> str:
        """The forge's name for people: `forgejo at git.example.org`."""

    @property
    def host(self) -> str:
        """The forge's host; empty where CI runs locally."""

    @property
    def calls(self) -> int:
        """The number of requests sent so far."""

    async def greet(self) -> Greeting: ...

    async def knock(self) -> None:
        """Sends one request, regardless of earlier failures: raises like all others where the host does not answer or
        does not accept the token."""

    async def runs(self, shas: Sequence[str]) -> Sequence[RunFact]:
        """The runs of these commits, without their jobs. One call for any number of commits; a run on a page that is
        not read this time comes the next time."""

    async def jobs(self, run: RunFact) -> RunFact:
        """The run with its jobs, `asked` set to its state. One call where the forge has one for it."""

    async def log(self, run: RunFact, job: JobFact) -> str:
        """The job's log; empty where the forge has none, or no longer has it."""

    async def rerun(self, run: RunFact) -> bool:
        """Runs it again for the same commit; False where this forge cannot."""

    async def cancel(self, run: RunFact) -> bool:
        """Stops a run that is not over. Safe to repeat; False where this forge cannot."""

    async def find_request(self, branch: str, into: str) -> Request | None:
        """The newest request that is open or merged."""

    async def open_request(self, new: NewRequest) -> Request:
        """Opens a request; returns the existing one if there is one."""

    async def update_request(self, request: Request, new: NewRequest) -> None:
        """Sets its title, text, labels and milestone as in `new`; additions by others stay. A draft stays a draft."""

    async def ready(self, request: Request) -> None:
        """Makes a draft ready for review."""

    async def reviews(self, request: Request) -> Sequence[Review]:
        """People's reviews and comments, oldest first; remarks on lines are included with requests for changes that
        still stand."""

    async def remark(self, request: Request, mark: str, words: str) -> str:
        """Writes Ganger's one comment with this text, found again by the `mark` in it; returns its address. Empty where
        the forge does not accept it."""

    async def branch_rules(self, branch: str) -> BranchRules:
        """What the forge requires for a push to the branch or a merge into it, as far as this token may see it."""

    async def merge_rules(self, into: str) -> MergeRules: ...

    async def merge(self, request: Request, head: str, method: str = "merge") -> MergeAnswer:
        """Merges exactly `head`, or nothing."""

    async def enqueue(self, request: Request, head: str) -> MergeAnswer:
        """Puts exactly `head` into the forge's own queue. Safe to repeat; `commit` stays empty."""

    async def queued(self, request: Request) -> QueueLook: ...

    async def close(self) -> None: ...
