"""The keeper and its leads: one process a key, whoever asks and however often; a lead's death changes nothing."""

from __future__ import annotations

import asyncio
import json
import socket
from pathlib import Path

import pytest

from ganger.launchers.launcher import KeptLauncher
from ganger.launchers.messages import launch_message
from ganger.ports.processes import Exit
from tests.launchers.keeper_bench import Run, alive, until


def started_once(run: Run) -> bool:
    """Three starts of one key, one of them after its end, and what came of them."""

    async def main(launcher: KeptLauncher) -> list[Exit]:
        first, second = [await launcher.start(run.shell("a", "sleep .2; exit 4")) for _ in range(2)]
        exits = [await first.wait(), await second.wait()]
        return [*exits, await (await launcher.start(run.shell("a", "exit 5"))).wait()]

    exits = run.play(main)
    return run.starts() == 1 and [each.code for each in exits] == [4, 4, 4] and len(set(exits)) == 1


def test_a_key_is_started_once_and_what_became_of_it_is_returned_again(run: Run) -> None:
    """G01 T19: starting is harmless to repeat, while the program runs and after its end."""
    assert started_once(run)


class EarlierKeeper:
    """Speaks as keepers did before they could give more time: it closes the connection on what it does not know."""

    def __init__(self) -> None:
        self.connections = 0

    async def meet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        writer.write(b'{"keeper":1,"protocol":1}\n')
        while (said := json.loads(await reader.readline() or b"{}")).get("do") in ("start", "end"):
            writer.write(json.dumps({"n": said["n"], "pid": 1, "ticks": 1}).encode() + b"\n")
        writer.close()


def test_an_earlier_keeper_is_not_asked_for_more_time(run: Run) -> None:
    """D14 H10: a run that goes on under a new version keeps the keeper it has, and its programs their limits."""
    (run.folder / "keeper").mkdir()
    address, keeper = run.folder / "keeper" / "s", EarlierKeeper()
    (run.folder / "keeper" / "address").write_text(str(address))

    async def main(launcher: KeptLauncher) -> bool:
        async with await asyncio.start_unix_server(keeper.meet, address):
            await launcher.start(run.shell("a", "true"))
            return await launcher.extend(run.key("a"), 5.0)

    assert run.play(main) is False and keeper.connections == 1


def test_a_keeper_that_starts_twice_is_caught(tmp_path: Path) -> None:
    """G01 T19: planted bug."""
    run = Run(tmp_path, broken="StartsTwice")
    assert not started_once(run)
    run.clear()


@pytest.mark.parametrize("leads", [2, 5])
def test_leads_that_race_for_one_key_get_one_process_from_one_keeper(run: Run, leads: int) -> None:
    """G01 Z02: also when there is no keeper yet and each of them tries to start one."""

    async def main(launcher: KeptLauncher) -> list[Exit]:
        launchers = [launcher, *(run.new_launcher() for _ in range(leads - 1))]
        started = await asyncio.gather(*(each.start(run.shell("a", "exit 4")) for each in launchers))
        assert len(run.processes("keeper")) == 1
        exits = [await running.wait() for running in started]
        for each in launchers[1:]:
            await each.close()
        return exits

    assert {each.code for each in run.play(main)} == {4}
    assert run.starts() == 1


def test_a_lead_that_is_killed_leaves_its_programs_running_and_the_next_adopts_them(run: Run) -> None:
    """G01: `kill -9` of the lead touches no program; its end is there for the next one."""
    run.killed_lead("await launcher.start(run.shell('a', 'while [ ! -e go ]; do sleep .01; done; exit 6'))")

    async def main(launcher: KeptLauncher) -> Exit:
        running = await launcher.find(run.key("a"))
        assert running is not None and alive(running.pid or 0)
        (run.folder / "go").touch()
        return await running.wait()

    assert run.play(main).code == 6
    assert run.starts() == 1


def test_what_ended_while_nobody_led_is_harvested(run: Run) -> None:
    """G01: its exit was recorded and its log is whole, also when the keeper has left meanwhile."""
    run.killed_lead("await launcher.start(run.shell('a', 'echo result; exit 6'))")
    until(lambda: run.key("a") in run.account().ended)
    run.kill("guard")
    until(lambda: not run.processes("keeper"))
    exit_ = run.found("a")
    assert exit_ is not None and (exit_.code, exit_.lost) == (6, False)
    assert (run.folder / "a.log").read_text() == "result\n"


def test_a_request_whose_answer_nobody_heard_is_done_once(run: Run) -> None:
    """G01 T19: the lead died between asking and hearing; the next one asks again."""

    async def main(launcher: KeptLauncher) -> int | None:
        await launcher.start(run.shell("other", "sleep 60"))
        message = {"do": "start", "launch": launch_message(run.shell("a", "exit 4")), "grace": 1, "n": 1}
        with socket.socket(socket.AF_UNIX) as dying:
            dying.connect((run.folder / "keeper" / "address").read_text())
            hello = {"do": "hello", "key": (run.folder / "keeper" / "key").read_text()}
            dying.sendall(b"".join(json.dumps(one).encode() + b"\n" for one in (hello, message)))
        code = (await (await launcher.start(run.shell("a", "exit 4"))).wait()).code
        await launcher.stop_all(0)
        return code

    assert run.play(main) == 4
    assert run.starts() == 2


def test_what_was_never_started_is_not_found_and_costs_no_keeper(run: Run) -> None:
    """G01: None says that nothing ran under that key."""
    assert run.found("a") is None
    assert not (run.folder / "keeper").exists()


def test_limits_hold_without_a_lead(tmp_path: Path) -> None:
    """G01 T23: an abandoned run ends by itself: time, output, then the keeper."""
    run = Run(tmp_path, idle_sec=0.1)
    body = """
from dataclasses import replace
await launcher.start(run.shell('late', 'trap "" TERM; sleep 60', timeout_sec=1))
flood = run.shell('flood', 'while :; do echo flood; done')
await launcher.start(replace(flood, output_limit_bytes=5000))"""
    run.killed_lead(body)
    until(lambda: not run.processes("keeper"))
    ended = run.account().ended
    assert ended[run.key("late")].exit.timed_out and ended[run.key("flood")].exit.over_output


def test_a_keeper_with_nothing_to_do_and_nobody_there_leaves_nothing_behind(tmp_path: Path) -> None:
    """G01: no process, no socket, no address; the ledger stays."""
    run = Run(tmp_path, idle_sec=0.2)

    async def main(launcher: KeptLauncher) -> str:
        await (await launcher.start(run.shell("a", ":"))).wait()
        return (run.folder / "keeper" / "address").read_text()

    address = run.play(main)
    until(lambda: not run.processes("keeper") and not run.processes("guard"))
    assert not Path(address).parent.exists()
    assert sorted(path.name for path in (tmp_path / "keeper").iterdir()) == [
        "guard",
        "keeper.err",
        "ledger.jsonl",
        "lock",
    ]


def test_a_lead_that_hangs_up_without_a_word_is_waited_for_in_vain_and_not_for_long(tmp_path: Path) -> None:
    """G01: a dead lead keeps no keeper alive."""
    run = Run(tmp_path, idle_sec=0.2)
    with run.lead("await launcher.start(run.shell('a', ':'))") as doomed:
        assert doomed.stdout is not None and doomed.stdout.readline() == "done\n"
        assert run.processes("keeper")
        doomed.kill()
    until(lambda: not run.processes("keeper") and not run.processes("guard"))
