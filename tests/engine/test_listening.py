"""Listening to an agent: when it is ended before it ends by itself, and what its log may do meanwhile."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import pytest

from ganger.core.failures.agent_errors import LONGEST_RETRYING_SEC, LONGEST_WAIT_SEC
from ganger.core.signs import Alive, Denied, Heard, Limited, Over, Retrying, Said, Session, Sign, ToolStarted
from ganger.engine.agent_calls.log_follower import LogFollower
from ganger.errors import GangerError

NOW = 1_000_000.0
SIGNS: dict[bytes, Sign] = {
    b"session": Session("s1"),
    b"denied": Denied("Bash", "rm -rf x"),
    b"retrying": Retrying("overloaded", status=529, wait_sec=2.0),
    b"long retry": Retrying("overloaded", wait_sec=LONGEST_WAIT_SEC + 1),
    b"limited": Limited("limit", final=False),
    b"far": Limited("limit", reset_at=NOW + LONGEST_WAIT_SEC + 60, final=False),
    b"near": Limited("limit", reset_at=NOW + 5, final=False),
    b"gone": Limited("limit", reset_at=NOW - 5, final=False),
    b"said": Said("going on"),
    b"tool": ToolStarted("t1", "Bash", "make"),
    b"alive": Alive(),
    b"over": Over("success", "done"),
}


class WordReader:
    def line(self, line: bytes) -> Iterable[Sign]:
        return [SIGNS[line]] if line in SIGNS else []

    def end(self) -> Iterable[Sign]:
        return ()


class HandClock:
    """Time that goes on when it is told to."""

    passed = 0.0

    def now(self) -> float:
        return NOW + self.passed

    def monotonic(self) -> float:
        return 100.0 + self.passed


@dataclass
class Ear:
    """One listening, its log and what it did."""

    log: Path

    def __post_init__(self) -> None:
        self.clock = HandClock()
        self.told: list[str] = []
        self.ended: list[str] = []
        self.listening = LogFollower(self.log, WordReader(), self.clock, self._tell, self.ended.append)

    def _tell(self, heard: Heard) -> None:
        self.told.append(heard.session)

    def hears(self, *words: str, after: float = 0.0) -> bool:
        """Whether the agent is to be ended once these lines are in its log."""
        with open(self.log, "a", encoding="utf-8") as file:
            file.writelines(f"{word}\n" for word in words)
        self.clock.passed += after
        return self.listening.look()


@pytest.fixture
def ear(tmp_path: Path) -> Ear:
    return Ear(tmp_path / "a.log")


def test_the_second_refusal_of_a_tool_ends_the_agent(ear: Ear) -> None:
    """D12: the first may be a misunderstanding."""
    assert not ear.hears("denied", "said")
    assert ear.hears("tool", "denied") and ear.ended == ["it was refused 2 times"]


def test_an_agent_that_wants_to_wait_long_is_ended_at_once(ear: Ear) -> None:
    """T24: the waiting is Ganger's, where it costs no attempt's time."""
    assert not ear.hears("retrying")
    assert ear.hears("long retry") and "wants to wait 61 s" in ear.ended[0]


@pytest.mark.parametrize("word", ["retrying", "limited"])
def test_an_agent_that_only_tries_again_is_ended_after_a_while(ear: Ear, word: str) -> None:
    """T24: many short waits are a long one; saying so again does not begin anew."""
    assert not ear.hears(word)
    assert not ear.hears(word, after=LONGEST_RETRYING_SEC - 1)
    assert ear.hears(word, after=2) and "retried without progress" in ear.ended[0]


@pytest.mark.parametrize(("word", "ends"), [("far", True), ("near", False), ("gone", False)])
def test_a_limit_that_ends_far_from_now_ends_the_agent(ear: Ear, word: str, ends: bool) -> None:
    """D12: one that passes soon is the agent's own to wait for."""
    assert ear.hears(word) is ends


@pytest.mark.parametrize("word", ["said", "tool"])
def test_progress_clears_what_was_tried_before(ear: Ear, word: str) -> None:
    """T24: the time counts from the newest trouble."""
    ear.hears("retrying")
    assert not ear.hears(word, after=LONGEST_RETRYING_SEC - 1)
    assert not ear.hears("retrying", after=10)
    assert not ear.hears(after=LONGEST_RETRYING_SEC - 1)
    assert ear.hears(after=2)


def test_an_agent_that_has_said_its_last_word_is_left_to_end(ear: Ear) -> None:
    """T24: what it tried before is over."""
    assert not ear.hears("retrying", "over", after=LONGEST_RETRYING_SEC + 1)


def test_names_are_told_when_they_are_known_and_then_at_a_modest_pace(ear: Ear) -> None:
    """H05: a session is recorded while the agent lives, because its process may be killed."""
    ear.hears("said")
    assert ear.told == []
    ear.hears("session")
    ear.hears("said", "tool", after=1)
    assert ear.told == ["s1"]
    ear.hears(after=30)
    assert ear.told == ["s1", "s1"]


def test_a_line_that_comes_in_pieces_is_one_line(ear: Ear) -> None:
    """T24: whatever was written when somebody looked."""
    ear.log.write_bytes(b"den")
    assert not ear.listening.look()
    ear.log.write_bytes(b"denied\ndenied")
    assert not ear.listening.look()
    ear.log.write_bytes(b"denied\ndenied\n")
    assert ear.listening.look()


def test_a_log_that_is_not_there_or_goes_away_tells_nothing(ear: Ear) -> None:
    """An agent without walls can remove its own log."""
    assert not ear.listening.look()
    ear.hears("session", "denied")
    ear.log.unlink()
    assert not ear.listening.look() and ear.listening.heard.session == "s1"


def test_a_log_that_shrinks_tells_nothing_twice(ear: Ear) -> None:
    """Cut short and written again, it cannot make one refusal into two."""
    ear.hears("session", "denied")
    ear.log.write_bytes(b"denied\n")
    assert not ear.listening.look() and len(ear.listening.heard.denied) == 1


@pytest.mark.parametrize("thing", ["pipe", "folder", "link"])
def test_something_else_in_the_place_of_the_log_makes_nobody_wait(ear: Ear, tmp_path: Path, thing: str) -> None:
    """A pipe without a writer would stop the whole lead."""
    make = {"pipe": os.mkfifo, "folder": os.mkdir, "link": lambda path: os.symlink(tmp_path / "nowhere", path)}
    make[thing](ear.log)
    assert not ear.listening.look()


def test_it_is_known_when_the_log_last_grew_and_when_it_last_told_of_an_event(ear: Ear) -> None:
    """H02 D14: trouble that is tried again makes the log grow and is no event; an answer to a question is one."""
    seen = ear.listening
    ear.hears()
    assert (seen.grew_at, seen.event_at) == (0.0, 0.0)
    for word, after, grew_at, event_at in [
        ("said", 1.0, 101.0, 101.0),
        ("retrying", 1.0, 102.0, 101.0),
        ("limited", 1.0, 103.0, 101.0),
        ("words for people", 1.0, 104.0, 101.0),
        ("alive", 1.0, 105.0, 105.0),
    ]:
        ear.hears(word, after=after)
        assert (seen.grew_at, seen.event_at) == (grew_at, event_at)
    ear.hears(after=10.0)
    assert (seen.grew_at, seen.event_at) == (105.0, 105.0)


def test_an_unfinished_line_counts_and_is_seen(ear: Ear) -> None:
    """H02: a program that asks leaves its line open."""
    ear.hears("denied")
    with open(ear.log, "ab") as file:
        file.write(b"\x1b[1mOverwrite it?\x1b[0m [y/N] ")
    ear.hears(after=5.0)
    assert ear.listening.grew_at == 105.0
    assert ear.listening.last_line() == ear.listening.asks() == "Overwrite it? [y/N]"
    ear.hears("y", "done")
    assert (ear.listening.last_line(), ear.listening.asks()) == ("done", "")


def test_an_output_without_a_form_is_listened_to_all_the_same(ear: Ear) -> None:
    """H02: its growth and its last line are all there is."""
    ear.listening = LogFollower(ear.log, None, ear.clock, ear._tell, ear.ended.append)
    assert not ear.hears("denied", "denied", "session", after=3.0)
    assert (ear.listening.grew_at, ear.listening.event_at) == (103.0, 0.0)
    assert (ear.listening.heard, ear.listening.last_line()) == (Heard(), "session")


def test_only_the_end_of_a_long_output_is_kept(ear: Ear) -> None:
    """And a letter or a colour that is cut there is not shown by halves."""
    ear.log.write_bytes("ä\x1b[31mü".encode() * 200_000 + b"\nlast")
    ear.hears()
    assert ear.listening.last_line() == "last"
    ear.log.write_bytes("ä\x1b[31mü".encode() * 400_000)
    ear.hears()
    assert set(ear.listening.last_line()) == {"ä", "ü"}


class FailingReader(WordReader):
    def line(self, line: bytes) -> Iterable[Sign]:
        raise IndexError("no such field")


def test_a_reader_that_fails_is_told_as_an_error_of_ganger(tmp_path: Path) -> None:
    """So that whoever listens can go on without it."""
    (tmp_path / "a.log").write_bytes(b"x\n")
    listening = LogFollower(tmp_path / "a.log", FailingReader(), HandClock(), lambda _: None, lambda _: None)
    with pytest.raises(GangerError, match="IndexError: no such field"):
        listening.look()


def test_an_agent_nobody_understands_still_shows_that_it_writes(tmp_path: Path) -> None:
    """H02: its silence would be taken for a stall."""
    log = tmp_path / "a.log"
    log.write_bytes(b"x\n")
    listening = LogFollower(log, FailingReader(), HandClock(), lambda _: None, lambda _: None)

    async def main() -> None:
        task = asyncio.ensure_future(listening.run())
        async with asyncio.timeout(20):
            while listening.last_line() != "y":
                log.write_bytes(b"x\ny\n")
                await asyncio.sleep(0.01)
        task.cancel()

    asyncio.run(main())
    assert listening.grew_at > 0
