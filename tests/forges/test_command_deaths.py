"""A lead that dies at every step of a local CI run: the next one goes on, and nothing is started twice."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import cast

import pytest

from ganger.core.model.ci import RunFact
from ganger.forges.command.forge import CommandCi, CommandForge
from ganger.forges.command.record import RunRecord
from ganger.ports.processes import Launch, Launcher, Running
from ganger.ports.repository import Repository
from tests.forges.command_ci import TELL, Ground, Lead, words

pytestmark = pytest.mark.whole


class Died(BaseException):
    """The lead is gone."""


class Fuse:
    """Lets so many steps pass, and then kills."""

    def __init__(self, steps: int) -> None:
        self.left = steps

    def burn(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise Died


def fused(lead: Lead, fuse: Fuse) -> None:
    """Before and after everything that lasts: a record, a checkout, a start."""
    records, forge = lead.forge._records, lead.forge
    write, start, checkout = records.write, lead.launcher.start, lead.repository.checkout

    def writes(record: RunRecord) -> None:
        fuse.burn()
        write(record)
        fuse.burn()

    async def starts(launch: Launch) -> Running:
        fuse.burn()
        running = await start(launch)
        fuse.burn()
        return running

    async def checks_out(name: str, commit: str) -> Path:
        folder = await checkout(name, commit)
        fuse.burn()
        return folder

    records.write = writes  # type: ignore[method-assign]
    forge._launcher = cast("Launcher", replace_part(lead.launcher, start=starts))
    forge._repository = cast("Repository", replace_part(lead.repository, checkout=checks_out))


def replace_part(whole: object, **parts: object) -> object:
    """The same, but for these methods."""
    return type("Replaced", (), {"__getattr__": lambda _self, name: getattr(whole, name), **_static(parts)})()


def _static(parts: dict[str, object]) -> dict[str, object]:
    return {name: staticmethod(part) for name, part in parts.items() if callable(part)}


def through(ground: Ground, rules: CommandCi, steps: int) -> tuple[RunFact, bool]:
    """A lead that dies after so many steps, and one that goes on; whether the first one did die."""

    async def dies(lead: Lead) -> bool:
        fused(lead, Fuse(steps))
        try:
            await settled(lead)
        except Died:
            return True
        return False

    async def settled(lead: Lead) -> RunFact:
        run = await lead.over(ground.head)
        if run.attempt == 1:
            assert await lead.forge.rerun(run)
            run = await lead.over(ground.head)
        return run

    died = ground.lead(rules, dies)
    return ground.lead(rules, settled), died


TWO = {"test": TELL, "mirror": TELL + '[ "$GANGER_CI_ATTEMPT" = 2 ] || exit 77'}


def dies_at_every(stride: int, tmp_path: Path) -> int:
    died, steps = True, 0
    while died:
        ground = Ground(tmp_path / str(steps))
        run, died = through(ground, ground.jobs(**TWO), steps)
        ground.clear()
        # The skipped one may have ended without a lead: then that is not believed, and it runs once more.
        assert [*dict.fromkeys(ground.told())] == ["test.1", "mirror.1", "mirror.2"]
        assert (ground.told().count("test.1"), ground.told().count("mirror.2")) == (1, 1)
        assert ground.told().count("mirror.1") <= 2
        assert (run.attempt, words(run)) == (2, {"test": "success", "mirror": "success"})
        steps += stride
    return steps


@pytest.mark.parametrize("stride", [5, pytest.param(1, marks=pytest.mark.slow)])
def test_a_lead_that_dies_at_any_step_costs_no_job_a_second_start_and_no_rerun_too_many(
    tmp_path: Path, stride: int
) -> None:
    """D18: intent before effect, and what was started is found again by its key."""
    assert dies_at_every(stride, tmp_path) > 15


def test_a_checkout_that_a_dead_lead_left_is_removed_although_no_one_asks_about_its_commit(tmp_path: Path) -> None:
    """D18: its lead died between the end of the job and the removal."""
    ground = Ground(tmp_path)
    later = ground.commit("two")

    async def dies(lead: Lead) -> None:
        lead.forge._put_away = lambda *_: None  # type: ignore[method-assign]
        await lead.over(ground.head)

    ground.lead(ground.jobs(test=TELL), dies)
    assert [one.name for one in ground.settings.checks.glob("ci.*")] == [f"ci.{ground.head[:12]}.test.1.1"]
    ground.over(ground.jobs(test=TELL), later)
    assert list(ground.settings.checks.glob("ci.*")) == [] and len(ground.told()) == 2


async def never(*_given: object) -> None:
    return None


@pytest.mark.parametrize(("name", "bug"), [("_adopt", never), ("_key", lambda *_given: f"{Path.cwd()}/{time.time()}")])
def test_a_forge_that_forgets_what_it_started_is_caught(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, bug: Callable[..., object]
) -> None:
    """D18: the harness sees a job that is started twice."""
    monkeypatch.setattr(CommandForge, name, bug)
    with pytest.raises(AssertionError):
        dies_at_every(1, tmp_path)
