"""CI that is a local command: its jobs, what they say, and that nothing but the code makes them red."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from ganger.core.model.ci import Ci, RunFact, Word
from ganger.errors import ForgeError
from ganger.forges.command.forge import CommandCi, CommandForge
from ganger.ports.forge import NewRequest
from tests.forges.command_ci import TELL, Ground, Lead, found, git, job, words

HOLD = TELL + 'until [ -e "$MARKS/go" ]; do sleep 0.02; done; '


@pytest.fixture
def ground(tmp_path: Path) -> Iterator[Ground]:
    ground = Ground(tmp_path)
    yield ground
    ground.clear()


@pytest.mark.parametrize(
    ("script", "word", "reason", "ci"),
    [
        ("true", "success", "", Ci.GREEN),
        ("exit 1", "failure", "", Ci.RED),
        ("exit 77", "skipped", "", Ci.SKIPPED),
        ("exec sleep 60", "failure", "timed_out", Ci.TIMED_OUT),
        ("kill -SEGV $$", "failure", "", Ci.RED),
        ("kill -KILL $$", "cancelled", "", Ci.CANCELLED),
        ("while :; do head -c 300000 /dev/zero; sleep 0.01; done", "failure", "", Ci.RED),
    ],
)
def test_an_end_has_one_word(ground: Ground, script: str, word: str, reason: str, ci: Ci) -> None:
    """D03: exit 0 is success and 77 skipped; time, and a signal from outside, say nothing about the code."""
    run = ground.over(replace(ground.jobs(test=script), timeout_sec=1.5, output_limit_bytes=100_000))
    assert (words(run), job(run, "test").reason) == ({"test": word}, reason)
    assert found(run, "test").ci is ci and run.asked == run.state


def test_each_job_sees_exactly_the_pushed_commit_and_nothing_of_the_job_before(ground: Ground) -> None:
    """D02: not the newest, not the project's folder, and each job in a folder of its own."""
    ground.commit("two")
    script = 'test "$(cat file)" = one && test "$(git rev-parse HEAD)" = {sha} && test ! -e left && touch left'
    run = ground.over(ground.jobs(first=script, second=script))
    assert words(run) == {"first": "success", "second": "success"}
    assert run.sha == ground.head and list((ground.folder / "checks").glob("ci.*")) == []


def test_after_a_failure_the_rest_is_skipped_and_the_log_says_why(ground: Ground) -> None:
    """D04, D06: the mirror job is not reached by a red run."""
    ci = replace(ground.jobs(lint="true", test="echo AssertionError; exit 1", mirror=TELL), mirror_job="mirror")

    async def play(lead: Lead) -> tuple[RunFact, str]:
        run = await lead.over(ground.head)
        return run, await lead.forge.log(run, job(run, "test"))

    run, log = ground.lead(ci, play)
    assert words(run) == {"lint": "success", "test": "failure", "mirror": "skipped"} and ground.told() == []
    assert "AssertionError" in log and found(run, "lint", "test", mirror="mirror").ci is Ci.RED
    assert Path(job(run, "test").url.removeprefix("file://")).name == f"{ground.head[:12]}.1.test.log"


def test_only_the_mirror_job_is_outside_the_walls_and_reaches_the_mirror(ground: Ground) -> None:
    """D04: everything else runs where verification does."""
    mirror = ground.root / "mirror.git"
    git(ground.root, "init", "-q", "--bare", str(mirror))
    ci = replace(ground.jobs(test="true"), branch="main", repo=str(mirror), mirror_job="mirror")
    ci = replace(ci, jobs={**ci.jobs, "mirror": ("git", "push", "-q", "{repo}", "{sha}:refs/heads/{branch}")})

    async def play(lead: Lead) -> list[str]:
        assert found(await lead.over(ground.head), "test", mirror="mirror").ci is Ci.GREEN
        return lead.sandbox.confined

    assert ground.lead(ci, play) == ["test"]
    assert git(mirror, "rev-parse", "main") == ground.head


def test_the_way_to_the_operators_keys_is_the_mirror_jobs_alone(ground: Ground) -> None:
    """D04 D19: what reaches the mirror may need the ssh agent; what runs an agent's code must not have it."""
    say = 'echo "$GANGER_CI_JOB:$SSH_AUTH_SOCK" >> "$MARKS/told"'
    ci = replace(ground.jobs(test=say, mirror=say), mirror_job="mirror", mirror_env={"SSH_AUTH_SOCK": "/keys"})
    assert found(ground.over(ci), "test", mirror="mirror").ci is Ci.GREEN
    assert ground.told() == ["test:", "mirror:/keys"]


def test_a_rerun_is_a_new_attempt_of_what_did_not_succeed_and_repeating_the_call_starts_no_other(
    ground: Ground,
) -> None:
    """D04: asked for again after a crash, the same rerun is the same one."""
    ci = ground.jobs(test=TELL, mirror=TELL + '[ "$GANGER_CI_ATTEMPT" = 2 ] || exit 77')

    async def play(lead: Lead) -> tuple[RunFact, RunFact]:
        first = await lead.over(ground.head)
        assert await lead.forge.rerun(first) and await lead.forge.rerun(first)
        await lead.over(ground.head)
        assert await lead.forge.rerun(first)
        return first, await lead.over(ground.head)

    first, again = ground.lead(ci, play)
    assert found(first, "test", mirror="mirror").cause == "mirror_skipped" and (first.attempt, again.attempt) == (1, 2)
    assert found(again, "test", mirror="mirror").ci is Ci.GREEN and first.state != again.state
    assert ground.told() == ["test.1", "mirror.1", "mirror.2"]


async def always(forge: CommandForge, run: RunFact) -> bool:
    await forge._keep((await forge._load(run.sha)).again())
    return True


def test_a_rerun_that_is_counted_twice_is_caught(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    """D04: the claim about repeated reruns fails where a rerun does not look which attempt it is of."""
    monkeypatch.setattr(CommandForge, "rerun", always)
    with pytest.raises(AssertionError):
        test_a_rerun_is_a_new_attempt_of_what_did_not_succeed_and_repeating_the_call_starts_no_other(ground)


def test_where_nothing_can_be_run_again_it_says_so(ground: Ground) -> None:
    """D04: then an empty commit has to do."""
    ci = replace(ground.jobs(test="exit 77"), can_rerun=False)

    async def play(lead: Lead) -> bool:
        return await lead.forge.rerun(await lead.over(ground.head))

    assert ground.lead(ci, play) is False and ground.over(ci).attempt == 1


def test_jobs_are_asked_for_again_whenever_one_of_them_has_news(ground: Ground) -> None:
    """D05: the run's state changes with its jobs; a run with open jobs is not over."""

    async def play(lead: Lead) -> set[str]:
        states = {(await lead.forge.runs([ground.head]))[0].state}
        run = await lead.seen(ground.head, lambda run: run.word is Word.RUNNING and run.raw.endswith("b running"))
        assert words(run) == {"a": "success", "b": "running", "c": "waiting"}
        (ground.marks / "go").touch()
        return {*states, run.state, (await lead.over(ground.head)).state}

    assert len(ground.lead(ground.jobs(a="true", b=HOLD, c="true"), play)) == 3


def test_only_so_many_commits_are_checked_at_once(ground: Ground) -> None:
    """D14: the others wait their turn and are through in the end."""
    shas = [ground.commit(str(number)) for number in range(5)]

    async def play(lead: Lead) -> list[str]:
        most = 0
        while [run.word for run in await lead.forge.runs(shas)] != [Word.SUCCESS] * 5:
            running = len(list((ground.folder / "checks").glob("ci.*")))
            most = max(most, running)
            if running == 2:
                (ground.marks / "go").touch()
            await asyncio.sleep(0.01)
        assert most == 2
        return ground.told()

    assert len(ground.lead(replace(ground.jobs(test=HOLD), most=2), play)) == 5


# --- leads that come and go -----------------------------------------------------------------------------------------


def begun(ground: Ground, ci: CommandCi) -> set[str]:
    """A lead that died while a job ran; the keys it left."""

    async def play(lead: Lead) -> set[str]:
        await lead.seen(ground.head, lambda _run: bool(ground.told()))
        return lead.forge.keys()

    return ground.lead(ci, play)


@pytest.mark.parametrize(("then", "ci"), [("true", Ci.GREEN), ("exit 3", Ci.RED)])
def test_a_job_outlives_its_lead_and_the_next_one_adopts_it(ground: Ground, then: str, ci: Ci) -> None:
    """D18: what still runs is waited for, and runs once."""
    rules = ground.jobs(test=HOLD + then)
    assert len(begun(ground, rules)) == 1

    async def play(lead: Lead) -> RunFact:
        assert len(lead.forge.keys()) == 1
        run = (await lead.forge.runs([ground.head]))[0]
        assert run.word is Word.RUNNING
        await asyncio.sleep(0.3)
        (ground.marks / "go").touch()
        return await lead.over(ground.head)

    assert found(ground.lead(rules, play), "test").ci is ci and ground.told() == ["test.1"]


@pytest.mark.parametrize(("then", "starts"), [("true", 1), ("exit 3", 2)])
def test_of_what_ended_without_a_lead_only_success_is_believed(ground: Ground, then: str, starts: int) -> None:
    """D05, D18: a failure may be the work of whoever took over, so it has to show again."""
    rules = ground.jobs(test=HOLD + then)
    begun(ground, rules)
    (ground.marks / "go").touch()

    async def ended(lead: Lead) -> None:
        left = lead.forge.keys()
        for key in left:
            running = await lead.launcher.find(key)
            assert running is not None
            await running.wait()

    ground.lead(rules, ended)
    run = ground.over(rules)
    assert words(run) == {"test": "success" if starts == 1 else "failure"} and ground.told() == ["test.1"] * starts


def test_a_job_whose_checkout_was_swept_away_runs_again(ground: Ground) -> None:
    """D05: a folder that vanished under it makes nothing red, and nothing green."""
    rules = ground.jobs(test=HOLD + "test -e file")
    begun(ground, rules)

    async def play(lead: Lead) -> RunFact:
        await lead.repository.drop_checkout(f"ci.{ground.head[:12]}.test.1.1")
        (ground.marks / "go").touch()
        return await lead.over(ground.head)

    assert found(ground.lead(rules, play), "test").ci is Ci.GREEN and ground.told() == ["test.1", "test.1"]


@pytest.mark.parametrize("trap", ["", "trap 'exit 2' TERM; "])
def test_what_a_stop_ended_is_no_failure(ground: Ground, trap: str) -> None:
    """D05, D18: also where a program turns the signal into an exit code of its own."""
    stopping: list[bool] = []
    rules = replace(ground.jobs(test=trap + HOLD), halted=lambda: bool(stopping))

    async def stop(lead: Lead) -> None:
        await lead.seen(ground.head, lambda _run: bool(ground.told()))
        stopping.append(True)
        await lead.launcher.stop_all(1.0)
        assert (await lead.forge.runs([ground.head]))[0].word is Word.RUNNING

    ground.lead(rules, stop)
    stopping.clear()
    (ground.marks / "go").touch()
    assert found(ground.over(rules), "test").ci is Ci.GREEN


def test_a_killed_keeper_costs_a_try_and_no_verdict(ground: Ground) -> None:
    """D05: whoever kept the job is gone, nobody saw its end: it runs again."""

    async def play(lead: Lead) -> RunFact:
        await lead.seen(ground.head, lambda _run: bool(ground.told()))
        for keeper in ground.keepers():
            os.kill(keeper, signal.SIGKILL)
        await lead.seen(ground.head, lambda _run: len(ground.told()) == 2)
        (ground.marks / "go").touch()
        return await lead.over(ground.head)

    assert words(ground.lead(ground.jobs(test=HOLD), play)) == {"test": "success"}


def test_a_settled_run_stays_as_it_was_for_every_later_lead(ground: Ground) -> None:
    """D18: what was recorded decides; nothing runs again."""
    rules = ground.jobs(test=TELL + "exit 1")
    first, later = ground.over(rules), ground.over(rules)
    assert first == later and ground.told() == ["test.1"] and len(first.digest) == 64


# --- what is refused ------------------------------------------------------------------------------------------------


def test_a_damaged_record_and_a_short_sha_are_refused_by_name(ground: Ground) -> None:
    """D02, D05: neither becomes a verdict."""
    rules = ground.jobs(test="true")
    ground.over(rules)
    (ground.folder / "ci" / f"{ground.head}.json").write_text('{"sha": 1}')
    with pytest.raises(ForgeError, match="cannot read"):
        ground.over(rules)
    with pytest.raises(ForgeError, match="is not a commit id"):
        ground.over(rules, ground.head[:12])


def test_it_greets_only_with_jobs_that_can_run_and_knows_no_change_requests(ground: Ground) -> None:
    """D19: a missing program is found before anything is pushed."""

    async def play(lead: Lead) -> None:
        assert await lead.forge.find_request("a", "main") is None
        with pytest.raises(ForgeError, match="no change requests"):
            await lead.forge.open_request(NewRequest("a", "main", "t", "b"))
        with pytest.raises(ForgeError, match="nowhere-there is not on PATH"):
            await lead.forge.greet()

    ground.lead(replace(ground.ci, jobs={"test": ("nowhere-there",)}), play)
    ground.lead(ground.jobs(test="true"), lambda lead: lead.forge.greet())
    with pytest.raises(ForgeError, match="no CI job"):
        ground.lead(ground.ci, lambda lead: lead.forge.greet())


def test_a_program_that_is_not_there_blames_the_commit_only_where_it_should_hold_it(ground: Ground) -> None:
    """D06: nobody is paid to mend code because a tool is missing on this machine."""
    other = ground.commit("two")
    own = ground.over(replace(ground.ci, jobs={"test": ("./ci.sh",)}))
    ours = ground.over(replace(ground.ci, jobs={"other": ("nowhere-there",)}), other)
    assert (words(own), words(ours)) == ({"test": "failure"}, {"other": "cancelled"})
