"""What must come of each behaviour: crashes are seen at once, stalls at their limit, healthy workers left alone."""

from __future__ import annotations

from tests.health.behaviour_run import BUSY_SEC, CRASH_SEC, LIMITS, STALL_SEC, Row

_CRASH, _STALL = "crash/respawns", "stalled/stalls"
_LINGER_SEC = LIMITS["linger_sec"] + LIMITS["shutdown_sec"]
WELL = Row(counters={"attempts_started": "1", "stalls": "0 of 2", "respawns": "0 of 1"})


def stalls_once(why: str, limit_sec: float = STALL_SEC) -> Row:
    return Row((_STALL,), ("stalled",), why=why, limit_sec=limit_sec, counters={"stalls": "1 of 2"})


BREAKING: dict[str, Row] = {
    "crashes_at_start": Row(
        (_CRASH, "crash/worker_attempts"), status="BLOCKED", limit_sec=CRASH_SEC, counters={"respawns": "1 of 1"}
    ),
    "crashes_at_work": Row((_CRASH,), why="signal 11", limit_sec=CRASH_SEC, counters={"respawns": "1 of 1"}),
    "crashes_after_answer": Row(limit_sec=CRASH_SEC),
    "crashes_after_report": Row(limit_sec=CRASH_SEC),
    "crashes_after_mark": Row(limit_sec=CRASH_SEC),
    "leaves_a_file": Row(),
    "loses_the_acknowledgement": Row(limit_sec=CRASH_SEC),
    "loses_half_of_a_request": Row(),
    "says_it_twice": Row(),
    "looks_into_the_store": Row(),
}
GETTING_NOWHERE: dict[str, Row] = {
    "hangs": Row((_STALL,) * 4, ("stalled",) * 4, "ESCALATED", "no sign of it", STALL_SEC, {"stalls": "4 of 2"}),
    "loops": stalls_once("nothing but use the processor", BUSY_SEC),
    "floods": Row(("output_format/worker_attempts",), why="printed more than"),
    "babbles": Row(("timeout/worker_attempts",), why="no result within 4 s"),
    "waits_for_a_person": stalls_once("Overwrite the file? [y/N]"),
    "is_stopped": stalls_once("stopped by a signal"),
    "will_not_end": stalls_once("no sign of it"),
    "is_half_dead": stalls_once("no sign of it"),
    "hides_behind_a_child": stalls_once("no sign of it"),
    "stops_beating": stalls_once("no heartbeat", LIMITS["stale_sec"]),
    "answers_and_stays": Row(verdicts=("lingering",), limit_sec=_LINGER_SEC),
    "reports_and_stays": Row(verdicts=("lingering",), limit_sec=_LINGER_SEC),
}
# A done mark without a report is looked into after a heartbeat, and who does not say then what it did has crashed.
LOSING_MESSAGES: dict[str, Row] = {
    "marks_and_stays": Row(
        (_CRASH,), ("crashed",), why="no heartbeat", limit_sec=LIMITS["heartbeat_sec"] + LIMITS["stale_sec"]
    ),
    "marks_after_its_answer": Row(verdicts=("lingering",), limit_sec=_LINGER_SEC),
    "marks_after_a_checkpoint": Row(verdicts=("lost_message",), limit_sec=LIMITS["heartbeat_sec"]),
    "marks_and_ends": Row(limit_sec=CRASH_SEC),
    "marks_too_early": Row(),
}
BEING_WELL: dict[str, Row] = {
    **dict.fromkeys(("holds_the_pipe", "leaves_zombies"), Row(limit_sec=CRASH_SEC)),
    **dict.fromkeys(("talks_slowly", "computes", "lets_compute", "beats", "beats_by_file"), WELL),
    "answers_when_asked": WELL,
}
