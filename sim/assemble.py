"""Puts one lead of a world together, as the program does with real parts."""

from __future__ import annotations

from dataclasses import dataclass

from checker.memory_store import Memory, MemoryStore
from ganger.contracts.verify_profile import Profile, Step
from ganger.core.model.run_state import RunState
from ganger.engine.journal import Journal
from ganger.engine.lead import Lead, Order
from ganger.engine.prompts.patched_prompts import PatchedPrompts
from ganger.engine.resources.agent_homes import Homes
from ganger.engine.resources.folder_lock import FolderLock
from ganger.engine.resources.run_resources import RunResources
from ganger.engine.verification.checks import Checks
from ganger.local.run_folder import RunFolder
from ganger.ports.store import Owner
from ganger.sandboxes.none import NoSandbox
from sim.agents import SimAgent
from sim.clock import SimClock
from sim.keeper import Keeper, SimLauncher
from sim.life import Life
from sim.plan import Plan
from sim.programs import CHECK, HEALER, PROFILE
from sim.store import Disk, SimStore
from sim.witness import Witness
from sim.workspace import Project, SimWorkspace

_CHECK_TIMEOUT_SEC = 900.0
_HEAL_TIMEOUT_SEC = 5400.0
_OUTPUT_LIMIT_BYTES = 200_000


@dataclass(frozen=True, slots=True)
class House:
    """What outlives every lead of one world."""

    plan: Plan
    folder: RunFolder
    project: Project
    clock: SimClock
    keeper: Keeper
    memory: Memory
    disk: Disk
    witness: Witness

    async def lead(self, life: Life, dead: set[int]) -> Lead:
        """A new process takes the lead; `dead` are the processes it can prove dead."""
        store = SimStore(
            MemoryStore(self.memory),
            life,
            self.disk,
            self.witness.committed,
            elapsed=self.clock.monotonic,
            look_sec=0.9 * self.plan.tick_sec,
        )
        owner = Owner(life.pid, boot_id="boot", host="here")
        fence = store.take_lead_as(owner, lambda holder: holder.pid in dead)
        self.witness.leader = life.pid
        journal = Journal(store, RunState(), self.clock)
        await journal.replay()
        return Lead(self._tools(journal, life), self._order(life, fence))

    def _tools(self, journal: Journal, life: Life) -> RunResources:
        workspace = SimWorkspace(self.project, life, watch_apply=self.witness.applies)
        healer = SimAgent(HEALER)
        step = Step(name="test", cmd=CHECK)
        return RunResources(
            journal=journal,
            folder=self.folder,
            workspace=workspace,
            launcher=SimLauncher(self.keeper, life),
            clock=self.clock,
            agents={"worker": SimAgent("worker"), HEALER: healer},
            checks=Checks(
                profiles={PROFILE: Profile(steps=(step,))},
                tiers={},
                expect={},
                deny=(),
                env={},
                timeout_sec=_CHECK_TIMEOUT_SEC,
                sandbox=NoSandbox(),
                clock=self.clock,
            ),
            sandbox=NoSandbox(),
            homes=Homes(self.folder.path, self.folder.path / "agents", lambda _home: None),
            turns=FolderLock(),
            overlay=PatchedPrompts(self.folder.path, workspace, healer.extract_heal),
            output_limit_bytes=_OUTPUT_LIMIT_BYTES,
            heal_timeout_sec=_HEAL_TIMEOUT_SEC,
            health=self.plan.health,
            look_every_sec=self.plan.tick_sec,
        )

    def _order(self, life: Life, fence: int) -> Order:
        plan = self.plan
        return Order(
            run_id=f"sim-{plan.seed}",
            manifest_digest="digest",
            tasks=plan.specs,
            policy=plan.policy,
            pid=life.pid,
            fence=fence,
            budget=plan.budget,
            healer=HEALER,
            accounts={"worker": "account", HEALER: "account"},
        )
