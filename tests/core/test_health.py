"""A worker's health: what is seen of it becomes a wait, a warning, a probe or a verdict, and never too early."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings, strategies as st

from ganger.core.scheduling import health
from ganger.core.scheduling.health import HealthPolicy, What
from tests.core.health_story import ENDS, POLICY, TICK, Story, beating, ended, only, watched, with_sign

# A story is a thousand looks: a third of the usual number of them is as much.
FEW = settings(max_examples=20)
HABIT = (4, 8, 12)
KINDS = ("output", "files", "beats", "events", "tool")
QUIET = replace(POLICY, working_sec=9000, working_warn_sec=9000, no_change_sec=9000)

# What was seen, when it is asked, and when and by which limit it is ended.
VERDICTS: dict[str, tuple[Story, float, tuple[float, str]]] = {
    "nothing at all": (Story(), 30, (60, "silence")),
    "output until 10": (Story(output=(5, 10)), 40, (70, "silence")),
    "a file at 20": (Story(files=(20,)), 50, (80, "silence")),
    "an event of its own at 20": (Story(events=(20,)), 50, (80, "silence")),
    "one word over the protocol": (Story(beats=(10,)), 40, (70, "silence")),
    "a habit of heartbeats": (Story(beats=HABIT), 22, (32, "heartbeat")),
    "a habit, and output after it": (Story(beats=HABIT, output=(14,)), 24, (34, "heartbeat")),
    "a session that asked": (Story(pulled=True), 50, (100, "lease")),
    "a session with the habit": (Story(pulled=True, beats=HABIT), 22, (32, "heartbeat")),
    "stopped by a signal": (Story(output=(10,), stops=((11, 900),)), 40, (70, "stopped")),
    "processor time and then none": (Story(output=(10,), cpu=(20, 25)), 55, (85, "silence")),
    "nothing but processor time": (Story(cpu=tuple(range(1, 400))), 90, (180, "busy")),
    "a silent tool call and then nothing": (Story(output=(1,), tools=((2, 500),)), 530, (560, "silence")),
}


@pytest.mark.parametrize("case", VERDICTS)
@pytest.mark.parametrize("adaptive", [False, True])
def test_it_is_asked_at_half_the_limit_and_ended_at_the_limit(case: str, adaptive: bool) -> None:
    """H02 H03 Z03: suspicious, probe, verdict; in time and never before."""
    story, asked, (at, limit) = VERDICTS[case]
    done = watched(story, 1000, QUIET, adaptive=adaptive)
    assert ended(done) == (at, What.STALLED, limit)
    assert only(done, What.PROBE) == [(asked, What.PROBE)]


@pytest.mark.parametrize("kind", [*KINDS, "cpu"])
def test_any_sign_clears_it(kind: str) -> None:
    """H03: an answer is any sign of work, and silence counts anew from there."""
    done = watched(with_sign(Story(), kind, 45), 200, QUIET)
    assert only(done, What.PROBE, What.CLEAR)[:2] == [(30, What.PROBE), (45, What.CLEAR)]
    at, what, _ = ended(done) or (0.0, None, "")
    assert what is What.STALLED and at >= 105


@pytest.mark.parametrize(
    ("kind", "words"), [("output", "its output grew"), ("files", "a file changed"), ("tool", "a tool call is open")]
)
def test_it_is_told_what_cleared_it(kind: str, words: str) -> None:
    """H03 Z09: a false alarm says what was seen."""
    (cleared,) = [one.act for one in watched(with_sign(Story(), kind, 45), 50, QUIET) if one.what is What.CLEAR]
    assert words in cleared.why


moments = st.lists(st.integers(1, 300), max_size=6).map(lambda found: tuple(sorted(found)))
spans = st.lists(st.tuples(st.integers(0, 300), st.integers(1, 120)), max_size=2).map(
    lambda found: tuple((start, start + length) for start, length in found)
)
maybe = st.none() | st.integers(0, 300)


@st.composite
def stories(draw: st.DrawFn, /, **fixed: object) -> Story:
    story = Story(
        output=draw(moments),
        cpu=tuple(n for start, end in draw(spans) for n in range(start, end)),
        files=draw(moments),
        beats=draw(st.just(()) | moments | st.integers(1, 60).map(lambda n: tuple(range(4, 4 * n, 4)))),
        events=draw(moments),
        tools=draw(spans),
        stops=draw(st.just(()) | spans),
        full=draw(st.just(()) | spans),
        said_all=draw(maybe),
        marked=draw(maybe),
        reported=draw(maybe),
        pulled=draw(st.booleans()),
        errors=draw(st.just(()) | spans),
        time_limit=draw(st.sampled_from((None, 100.0))),
    )
    return replace(story, **fixed)  # type: ignore[arg-type]


unsaid = {"said_all": None, "marked": None, "reported": None, "full": (), "stops": ()}


@FEW
@given(stories())
def test_looking_only_when_it_is_due_sees_what_looking_always_sees(story: Story) -> None:
    """H02 H03 H12: the next look is never later than the next thing that can become due."""
    always, due = watched(story, 600), watched(story, 600, adaptive=True)
    assert [(one.what, one.act.limit) for one in always] == [(one.what, one.act.limit) for one in due]
    assert all(abs(one.at - other.at) <= TICK for one, other in zip(always, due, strict=True))


@FEW
@given(stories(**unsaid))
def test_no_verdict_comes_before_its_limit_and_none_without_a_question(story: Story) -> None:
    """H02 H03: a verdict has a question before it that stood unanswered."""
    done = watched(story, 600)
    end = ended(done)
    if end is None:
        return
    at, what, limit = end
    signs = story.at(at)
    allowed = {"heartbeat": 20, "lease": 100, "silence": 60, "busy": 180, "working": 30}[limit]
    quiet = at - max(health.last_sign(signs), *(float(stop) for _, stop in story.tools if stop <= at), 0.0)
    used = at - signs.cpu_at if limit in ("silence", "working") else quiet
    assert what is What.STALLED and not signs.tool and min(quiet, used) >= allowed - TICK
    asked = [one for one in done if one.what in (What.PROBE, What.CLEAR)]
    assert asked[-1].what is What.PROBE and at - asked[-1].at >= min(4, allowed / 2)


@FEW
@given(stories(**unsaid, pulled=False))
def test_whoever_falls_silent_for_good_is_ended_in_time(story: Story) -> None:
    """H02 Z03: no life in which silence goes on for ever."""
    last = story.moments()[-1]
    end = ended(watched(story, 2000))
    assert end is not None and end[0] <= last + 60 + 2 * TICK


@FEW
@given(stories(**unsaid, tools=((0, 5000),)))
def test_an_open_tool_call_is_never_ended(story: Story) -> None:
    """H02: however long and silent."""
    assert ended(watched(story, 1000)) is None


@pytest.mark.whole
@FEW
@given(stories(full=((0, 900),), tools=((0, 900),), stops=(), reported=None))
def test_neither_a_full_context_nor_an_answer_nor_a_mark_ends_an_open_tool_call(story: Story) -> None:
    """H02 Z05 H06: it is asked, and ended between two calls."""
    assert ended(watched(story, 800)) is None


@FEW
@given(stories(reported=10, pulled=False))
def test_whoever_has_reported_holds_its_place_for_a_bounded_time(story: Story) -> None:
    """H08: asked to end, waited for, ended; whatever it says or uses meanwhile."""
    done = watched(replace(story, said_all=None, marked=None, stops=()), 400)
    end = ended(done)
    if end is not None and end[0] >= 10:
        assert end == (20.0, What.LINGERING, "") and (16.0, What.ASK_SHUTDOWN) in only(done, What.ASK_SHUTDOWN)
    assert end is not None


@pytest.mark.parametrize("first", [61.0, 500.0, 5000.0])
def test_a_lead_that_looks_late_asks_first(first: float) -> None:
    """H03 H10: after a lead's death or sleep nobody is judged for a silence in which nobody listened."""
    done = watched(Story(), first + 100, QUIET, first=first)
    assert only(done, What.PROBE) == [(first, What.PROBE)]
    assert ended(done) == (first + 4, What.STALLED, "silence")


def test_whoever_answers_a_late_question_goes_on() -> None:
    """H03 H10: the answer counts as at any time."""
    done = watched(Story(output=(503,)), 520, QUIET, first=500.0)
    assert only(done, *What) == [(500, What.PROBE), (503, What.CLEAR)]


# --- time at the task ----------------------------------------------------------------------------------------------


def test_past_its_time_it_goes_on_while_it_works_and_is_ended_when_it_does_not() -> None:
    """D14: extended as often as it was active lately, stuck otherwise."""
    busy = Story(output=tuple(range(10, 241, 10)), files=(5,))
    done = watched(busy, 600)
    assert only(done, What.WARN) == [(150, What.WARN)]
    assert [at for at, _ in only(done, What.EXTEND)] == [200, 230, 260]
    assert ended(done) == (290, What.STALLED, "working")
    assert only(done, What.PROBE) == [(270, What.PROBE)]


def test_a_session_that_asked_is_extended_until_its_lease_ends() -> None:
    """D14 W03: its lease is its only bound."""
    done = watched(Story(pulled=True, beats=(90, 150)), 900)
    assert ended(done) == (250, What.STALLED, "lease") and only(done, What.EXTEND)[0] == (200, What.EXTEND)


WARNINGS: dict[str, tuple[Story, list[tuple[float, str]]]] = {
    "at work for long": (Story(beats=tuple(range(4, 300, 4)), files=(3,)), [(150, "working")]),
    "no file changed": (Story(output=tuple(range(4, 300, 4))), [(150, "working"), (150, "no_change")]),
    "half of its time": (Story(output=tuple(range(4, 300, 4)), files=(3,), time_limit=100.0), [(50, "time")]),
    "its model fails": (Story(output=tuple(range(4, 90, 4)), errors=((20, 30), (40, 50))), [(20, "api_errors")]),
}


@pytest.mark.parametrize("case", WARNINGS)
def test_signs_of_a_deadlock_are_told_once(case: str) -> None:
    """D14: half of a limit, no change for long, errors in a row."""
    story, expected = WARNINGS[case]
    told = [(one.at, one.act.limit) for one in watched(story, 190) if one.what is What.WARN]
    assert told[: len(expected)] == expected and len({limit for _, limit in told}) == len(told)


# --- the end -------------------------------------------------------------------------------------------------------

SETTLED: dict[str, tuple[Story, tuple[float, What] | None]] = {
    "a mark and nothing else": (Story(marked=20), (24, What.SETTLE)),
    "a mark, and still talking": (Story(marked=20, output=(22, 25)), (29, What.SETTLE)),
    "a mark and heartbeats": (Story(marked=20, beats=tuple(range(4, 80, 4))), (24, What.SETTLE)),
    "a mark during a tool call": (Story(marked=20, tools=((19, 40),)), (40, What.SETTLE)),
    "a mark and its report": (Story(marked=20, reported=20), (30, What.LINGERING)),
    "a mark, its report a moment later": (Story(marked=20, reported=22), (32, What.LINGERING)),
    "a mark and an answer": (Story(marked=20, said_all=20, output=(20,)), (30, What.LINGERING)),
    "a session with its report": (Story(marked=20, reported=20, pulled=True), None),
}


@pytest.mark.parametrize("case", SETTLED)
def test_a_done_mark_without_a_report_is_found_within_one_heartbeat(case: str) -> None:
    """H06 H02: and idle with a done mark and an answer is normal."""
    story, expected = SETTLED[case]
    end = ended(watched(story, 500, QUIET))
    assert (end and end[:2]) == expected


LINGERING: dict[str, tuple[Story, list[tuple[float, What]]]] = {
    "it said all and stays": (
        Story(said_all=10, output=(10,)),
        [(16, What.ASK_SHUTDOWN), (20, What.LINGERING)],
    ),
    "it says more": (
        Story(said_all=10, output=(10, 14)),
        [(20, What.ASK_SHUTDOWN), (24, What.LINGERING)],
    ),
    "it comes back after it was asked": (
        Story(said_all=10, output=(10, 18)),
        [(16, What.ASK_SHUTDOWN), (24, What.ASK_SHUTDOWN), (28, What.LINGERING)],
    ),
    "a loop of heartbeats": (
        Story(said_all=10, output=(10,), beats=tuple(range(4, 200, 4))),
        [(16, What.ASK_SHUTDOWN), (20, What.LINGERING)],
    ),
    "it uses the processor for ever": (
        Story(said_all=10, output=(10,), cpu=tuple(range(1, 400))),
        [(190, What.ASK_SHUTDOWN), (194, What.LINGERING)],
    ),
}


@pytest.mark.parametrize("case", LINGERING)
@pytest.mark.parametrize("adaptive", [False, True])
def test_whoever_gave_its_answer_is_asked_to_end_and_then_ended(case: str, adaptive: bool) -> None:
    """H08: asks, waits, ends; a zombie holds no place."""
    story, expected = LINGERING[case]
    assert only(watched(story, 500, QUIET, adaptive=adaptive), *What) == expected


CONTEXT: dict[str, tuple[Story, list[tuple[float, What]]]] = {
    "it cannot be asked": (Story(full=((10, 500),)), [(10, What.ASK_CHECKPOINT), (14, What.CONTEXT)]),
    "it talks": (
        Story(full=((10, 500),), beats=tuple(range(4, 200, 4))),
        [(10, What.ASK_CHECKPOINT), (40, What.CONTEXT)],
    ),
    "a tool call is open": (
        Story(full=((10, 500),), tools=((12, 30),)),
        [(10, What.ASK_CHECKPOINT), (30, What.CONTEXT)],
    ),
    "it made room by itself, and fills up again": (
        Story(full=((10, 13), (20, 500)), output=(20,)),
        [(10, What.ASK_CHECKPOINT), (20, What.ASK_CHECKPOINT), (24, What.CONTEXT)],
    ),
    "it is a session that asked": (Story(full=((10, 500),), pulled=True, beats=(10, 49)), []),
}


@pytest.mark.parametrize("case", CONTEXT)
def test_a_full_context_is_handed_over_between_two_tool_calls(case: str) -> None:
    """Z05: asked to save its state, given time if it talks, then ended."""
    story, expected = CONTEXT[case]
    assert only(watched(story, 60, QUIET), *(ENDS - {What.STALLED}), What.ASK_CHECKPOINT) == expected


def test_the_words_say_what_was_seen_and_what_it_seems_to_wait_for() -> None:
    """G10 Z09: a verdict can be understood without the code."""
    signs = replace(Story().at(100.0), asks="Continue? [y/N]")
    found = health.look(POLICY, signs, health.HealthWatch(suspicious_since=30.0, asked_at=30.0))
    (act,) = [one for one in found.acts if one.what is What.STALLED]
    assert "no sign of it for 100 s" in act.why and "Continue? [y/N]" in act.why


@pytest.mark.parametrize("at", [0.0, 1.0, 30.0])
def test_the_defaults_are_the_promised_ones(at: float) -> None:
    """Z03 D14 Z05: 15 s and 120 s, 20 and 15 minutes, 5 minutes, 10 minutes, 70 %."""
    policy = HealthPolicy()
    assert (policy.heartbeat_sec, policy.stale_sec, policy.stall_sec) == (15, 120, 600)
    assert (policy.working_sec, policy.working_warn_sec, policy.active_sec, policy.context_pct) == (1200, 900, 300, 70)
    assert health.look(policy, Story().at(at), health.HealthWatch()).acts == ()


def test_the_looks_notice_a_next_look_that_is_too_late(monkeypatch: pytest.MonkeyPatch) -> None:
    """H12: a planted bug: the next look waits for the verdict and misses the question."""
    monkeypatch.setattr(health, "_next_of", lambda clock, now, watch: clock.end_at)
    with pytest.raises(AssertionError, match="never over"):
        watched(Story(), 100, QUIET, adaptive=True)


def test_the_looks_notice_a_verdict_without_a_question(monkeypatch: pytest.MonkeyPatch) -> None:
    """H03: a planted bug: nobody is asked."""
    monkeypatch.setattr(health, "_suspicion", lambda signs, watch, clocks, acts: replace(watch, asked_at=-1e9))
    assert not only(watched(beating(40), 100), What.PROBE)
