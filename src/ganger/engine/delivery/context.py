"""What every step of one task's delivery needs, and how a delivery reports trouble."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from ganger.core.control.revert_offers import passes_halt
from ganger.core.delivery.landings import needs_no_request
from ganger.core.model.ledger import Delivery, RepoRules
from ganger.core.planning.repos import graph_of
from ganger.core.vocabulary import BlockReason, FailureClass
from ganger.engine.attempt_context import Failed, RunningAttempt
from ganger.engine.attempt_outcome import Waits, raise_if_person_decided
from ganger.engine.delivery.pollers.ci import CiPoller
from ganger.engine.delivery.pollers.hosts import HostPatience, HostWatch
from ganger.engine.delivery.pollers.reviews import ReviewWatch
from ganger.engine.merging.merge_queue import MergeQueue
from ganger.engine.merging.push_queue import PushQueue
from ganger.errors import ForgeDenied, ForgeError, HostError


class DeliveryContext:
    def __init__(
        self,
        case: RunningAttempt,
        sending: PushQueue,
        merging: MergeQueue,
        following: CiPoller | None,
        hosts: HostWatch,
        reviews: ReviewWatch | None = None,
    ) -> None:
        """`following` is set where a forge runs CI, `reviews` where people may review on it."""
        self.case, self.sending, self.merging, self.following = case, sending, merging, following
        self._hosts, self.reviews = hosts, reviews
        self.outlet, self.tools, self.unless_stopped = sending.outlet, case.tools, case.gate.unless_stopped
        self.rules: RepoRules = sending.rules(case.task)

    @property
    def now(self) -> Delivery:
        return self.sending.delivery(self.case.task)

    @property
    def needs_no_request(self) -> bool:
        return needs_no_request(self.rules, self.now)

    async def while_answered(self, work: Callable[[], Awaitable[None]]) -> None:
        """Does the work from its ledger on, whenever its hosts answer; see `HostWatch`."""
        rules = self.rules
        of = HostPatience(self.case.task, self.check_interrupts, rules.branch, rules.ci_sec, rules.ci_most_sec)
        await self._hosts.while_answered(self.outlet, of, work)

    def check_interrupts(self) -> None:
        """Raises when the run stops, or a person no longer wants to wait."""
        self.case.gate.check()
        raise_if_person_decided(self.case.now)

    def require_open_chain(self) -> None:
        state, repo = self.case.state, self.case.spec.repo
        graph = graph_of(state.chains.rules)
        chain = (repo, *graph.upstream.get(repo, ()), *graph.downstream.get(repo, ()))
        halted = next((one for one in chain if one in state.chains.halted), None)
        if halted is not None and not (halted == repo and passes_halt(state, self.case.task)):
            why = f"{halted or 'the project'} is halted, so nothing is pushed: {state.chains.halted[halted]}"
            raise Waits(BlockReason.PAUSED, why)

    def hinted(self, why: str, check: str) -> str:
        urls = [run.url for run in self.now.runs if run.url]
        where = f"; {urls[-1]}" if urls else ""
        return f"{why}: {check}{where}"

    def outside_for_all(self, signal: str, detail: str, cls: FailureClass = FailureClass.BLOCKED_EXTERNAL) -> Exception:
        """The same for every task of the repository: the first one asks, the others wait for the answer."""
        asked, state, own = self.sending.asked, self.case.state, (self.case.task, self.case.number)
        name, number = asked.setdefault(signal, own)
        if name != self.case.task and name in state.tasks and state.tasks[name].attempts == number:
            return Waits(BlockReason.EXTERNAL, f"{detail} (asked about {name})")
        asked[signal] = own
        return self.outside(signal, detail, cls)

    def outside(self, signal: str, detail: str, cls: FailureClass = FailureClass.BLOCKED_EXTERNAL) -> Failed:
        """No worker can fix this: a person acts, and the delivery continues from the ledger."""
        then = f"then ganger retry {self.case.task}: no worker is needed"
        problem = self.case.failed(cls, signal, f"{detail}; {then}")
        problem.question = "delivery"
        problem.keep_changes = True
        return problem


def passes(trouble: ForgeError) -> bool:
    """Whether it is enough to look again later. Trouble of the whole host is waited for elsewhere."""
    if isinstance(trouble, HostError) and trouble.host:
        return False
    return not isinstance(trouble, ForgeDenied)
