"""Whether a worker is at work: signs of several kinds become a wait, a warning, a probe or a verdict.

    well ── half of a limit without a sign ──▶ suspicious (it is asked) ── the whole limit ──▶ stalled
      ▲                                             │
      └────────────── any sign of work ─────────────┘

Silence alone never means a crash: an open tool call, a changed file, a heartbeat, a line of output, a message of its
own, or for a while used processor time are each enough. All times are seconds of one monotonic clock.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum

NEVER = float("inf")
# A worker that sends this many heartbeats in a row is expected to continue, and is missed when it stops.
_BEATS_OF_A_HABIT = 3


@dataclass(frozen=True, slots=True)
class HealthPolicy:
    """The time limits, in seconds.

    stall    without any sign at all
    stale    without a heartbeat, from a worker that sent them regularly
    busy     with nothing but used processor time
    lease    without a message from a session that asked for its task
    working  at its task: after that it must have shown a sign within `active`, or it is ended
    linger   after its answer, until it is asked to end; `shutdown` later it is ended
    """

    heartbeat_sec: float = 15.0
    stale_sec: float = 120.0
    stall_sec: float = 600.0
    busy_sec: float = 1800.0
    lease_sec: float = 900.0
    working_sec: float = 1200.0
    working_warn_sec: float = 900.0
    active_sec: float = 300.0
    no_change_sec: float = 900.0
    linger_sec: float = 30.0
    shutdown_sec: float = 10.0
    checkpoint_sec: float = 300.0
    context_pct: float = 70.0
    api_errors: int = 3


@dataclass(frozen=True, slots=True)
class Signs:
    """What was observed of a worker. `*_at` is the last time: its output grew, its processes used the processor, a file
    of its workspace changed, it sent a message over the protocol, its output reported an event.

    `said_all`: its answer is complete. `marked`: it set its done mark. `reported`: its report is recorded.
    """

    now: float
    began_at: float
    output_at: float = 0.0
    cpu_at: float = 0.0
    files_at: float = 0.0
    beat_at: float = 0.0
    event_at: float = 0.0
    beats: int = 0
    pulled: bool = False
    tool: str = ""
    stopped: bool = False
    said_all: bool = False
    marked: bool = False
    reported: bool = False
    asks: str = ""
    errors_in_a_row: int = 0
    time_limit_sec: float | None = None
    context_pct: float = 0.0


@dataclass(frozen=True, slots=True)
class HealthWatch:
    """What is remembered between two looks. `asked_at`: when it was probed. `tool_at`: when its tool call ended."""

    suspicious_since: float | None = None
    asked_at: float | None = None
    working_until: float | None = None
    at_tool: bool = False
    tool_at: float = 0.0
    marked_since: float | None = None
    over_since: float | None = None
    ending_since: float | None = None
    context_asked_at: float | None = None
    warned: frozenset[str] = field(default_factory=frozenset)


class What(StrEnum):
    """What to do. The last five end the worker."""

    WARN = "warn"
    PROBE = "probe"
    CLEAR = "clear"
    EXTEND = "extend"
    ASK_SHUTDOWN = "ask_shutdown"
    ASK_CHECKPOINT = "ask_checkpoint"
    SETTLE = "settle"
    STALLED = "stalled"
    LINGERING = "lingering"
    CONTEXT = "context"


@dataclass(frozen=True, slots=True)
class HealthClock:
    """One way of making no progress: since when, and how long it may last. It is probed at `probe_at` at the latest."""

    name: str
    since: float
    limit: float
    probe_at: float
    end_at: float
    answer_sec: float


@dataclass(frozen=True, slots=True)
class Act:
    what: What
    why: str
    limit: str = ""
    until: float = 0.0


@dataclass(frozen=True, slots=True)
class Look:
    """The result of a look: what to remember, what to do, and when the next look is due at the latest."""

    watch: HealthWatch
    acts: tuple[Act, ...] = ()
    again_at: float = NEVER


def look(policy: HealthPolicy, signs: Signs, watch: HealthWatch) -> Look:
    watch = _remembered(signs, watch)
    if signs.said_all or signs.reported:
        return _over(policy, signs, watch)
    settle_at = _settle_at(policy, signs, watch)
    if signs.now >= settle_at:
        return Look(watch, (Act(What.SETTLE, "it set its done mark and its report never came"),), NEVER)
    acts: list[Act] = []
    watch = _warnings(policy, signs, watch, acts)
    watch, extended_until = _working(policy, signs, watch, acts)
    clocks = _clocks(policy, signs, watch)
    watch = _suspicion(signs, watch, clocks, acts)
    for clock in clocks:
        if watch.asked_at is not None and signs.now >= max(clock.end_at, watch.asked_at + clock.answer_sec):
            stalled = Act(What.STALLED, _stall_text(signs, clock), clock.name)
            return Look(watch, (*acts, stalled), NEVER)
    watch, context_due = _context(policy, signs, watch, acts)
    moments = [_next_of(clock, signs.now, watch) for clock in clocks]
    again_at = min([settle_at, extended_until, context_due, _next_warning(policy, signs, watch), *moments])
    return Look(watch, tuple(acts), again_at)


def _remembered(signs: Signs, watch: HealthWatch) -> HealthWatch:
    """A tool call that ends leaves no other sign; a done mark and an answer carry no time of their own."""
    over = signs.said_all or signs.reported
    if not (over or signs.marked or signs.tool or watch.at_tool or watch.marked_since or watch.over_since):
        return watch
    return replace(
        watch,
        at_tool=bool(signs.tool),
        tool_at=signs.now if signs.tool or watch.at_tool else watch.tool_at,
        marked_since=_first(watch.marked_since, signs.now) if signs.marked else None,
        over_since=_first(watch.over_since, signs.now) if over else None,
    )


def _first(known: float | None, now: float) -> float:
    return now if known is None else known


def _settle_at(policy: HealthPolicy, signs: Signs, watch: HealthWatch) -> float:
    """H06: a done mark without a report is found within one heartbeat; a worker that still writes may yet report."""
    if watch.marked_since is None or signs.tool:
        return NEVER
    return max(watch.marked_since, signs.output_at, signs.event_at) + policy.heartbeat_sec


def _suspicion(signs: Signs, watch: HealthWatch, clocks: list[HealthClock], acts: list[Act]) -> HealthWatch:
    """H03: a worker is probed before it is judged, and any sign clears the suspicion."""
    due = [clock for clock in clocks if signs.now >= clock.probe_at]
    if due and watch.suspicious_since is None:
        quiet = signs.now - due[0].since
        why = f"{_silence(due[0].name)} for {_shown(quiet)} (limit {_shown(due[0].limit)})"
        acts.append(Act(What.PROBE, why, due[0].name))
        return replace(watch, suspicious_since=signs.now, asked_at=signs.now)
    if not due and watch.suspicious_since is not None:
        acts.append(Act(What.CLEAR, _seen_again(signs, watch.suspicious_since)))
        return replace(watch, suspicious_since=None, asked_at=None)
    return watch


def _next_of(clock: HealthClock, now: float, watch: HealthWatch) -> float:
    if watch.asked_at is None:
        return clock.probe_at
    return max(clock.end_at, watch.asked_at + clock.answer_sec) if now >= clock.probe_at else clock.probe_at


def is_habit(signs: Signs) -> bool:
    return signs.beats >= _BEATS_OF_A_HABIT


def last_sign(signs: Signs) -> float:
    """The last time of any sign other than used processor time."""
    return max(signs.began_at, signs.output_at, signs.files_at, signs.beat_at, signs.event_at)


def _clocks(policy: HealthPolicy, signs: Signs, watch: HealthWatch) -> list[HealthClock]:
    """The clocks that may each end it; the first to run out counts."""
    seen = max(last_sign(signs), watch.tool_at)
    if signs.stopped:
        return [_clock(policy, "stopped", seen, policy.stall_sec)]
    if signs.tool:
        # An open tool call is work, however long and silent; only the attempt's own time limit bounds it.
        return []
    used = max(seen, signs.cpu_at)
    clocks = []
    if is_habit(signs):
        clocks.append(_clock(policy, "heartbeat", used, policy.stale_sec))
    elif signs.pulled:
        clocks.append(_clock(policy, "lease", seen, policy.lease_sec))
    else:
        clocks.append(_clock(policy, "silence", used, policy.stall_sec))
    if signs.cpu_at > seen:
        clocks.append(_clock(policy, "busy", seen, policy.busy_sec))
    if not signs.pulled:
        stuck_at = max(_working_until(policy, signs, watch), used + policy.active_sec)
        answer = min(policy.heartbeat_sec, policy.active_sec / 2)
        clocks.append(HealthClock("working", used, policy.active_sec, stuck_at, stuck_at, answer))
    return clocks


def _working_until(policy: HealthPolicy, signs: Signs, watch: HealthWatch) -> float:
    return signs.began_at + policy.working_sec if watch.working_until is None else watch.working_until


def _clock(policy: HealthPolicy, name: str, since: float, limit: float) -> HealthClock:
    return HealthClock(name, since, limit, since + limit / 2, since + limit, min(policy.heartbeat_sec, limit / 2))


def _over(policy: HealthPolicy, signs: Signs, watch: HealthWatch) -> Look:
    """It has given its answer and should end now. A worker that has reported is finished, whatever else it does."""
    if signs.pulled:
        return Look(watch)
    since = watch.over_since if signs.reported and watch.over_since is not None else _last_word(policy, signs)
    if watch.ending_since is not None and since > watch.ending_since and not signs.reported:
        watch = replace(watch, ending_since=None)
    if watch.ending_since is not None:
        due = watch.ending_since + policy.shutdown_sec
        if signs.now < due:
            return Look(watch, (), due)
        why = f"it gave its answer {_shown(signs.now - since)} ago and did not end"
        return Look(watch, (Act(What.LINGERING, why),), NEVER)
    due = since + policy.linger_sec
    if signs.now < due:
        return Look(watch, (), due)
    ask = Act(What.ASK_SHUTDOWN, "its answer is there; it may end now")
    return Look(replace(watch, ending_since=signs.now), (ask,), signs.now + policy.shutdown_sec)


def _last_word(policy: HealthPolicy, signs: Signs) -> float:
    """A heartbeat does not count here: it may come from a separate loop. Used processor time counts for a while."""
    if signs.tool:
        return signs.now
    spoke = max(signs.began_at, signs.output_at, signs.files_at, signs.event_at)
    return max(spoke, signs.cpu_at) if signs.now - spoke < policy.busy_sec else spoke


def _working(policy: HealthPolicy, signs: Signs, watch: HealthWatch, acts: list[Act]) -> tuple[HealthWatch, float]:
    """D14: past its working time it continues as long as it shows signs of work; otherwise `_clocks` ends it."""
    until = _working_until(policy, signs, watch)
    if signs.now < until:
        return watch, until
    quiet = 0.0 if signs.tool else signs.now - max(last_sign(signs), signs.cpu_at, watch.tool_at)
    if quiet >= policy.active_sec and not signs.pulled:
        return watch, NEVER
    longer = signs.now + policy.active_sec
    why = f"it was seen at work {_shown(quiet)} ago" if quiet >= 1 else "it is at work"
    acts.append(Act(What.EXTEND, why, "working", longer))
    return replace(watch, working_until=longer), longer


def _context(policy: HealthPolicy, signs: Signs, watch: HealthWatch, acts: list[Act]) -> tuple[HealthWatch, float]:
    """Z05: over the limit it is asked to save its state; if it does not, it is ended between two tool calls."""
    if signs.context_pct < policy.context_pct or signs.pulled:
        return watch if watch.context_asked_at is None else replace(watch, context_asked_at=None), NEVER
    full = f"its context is {signs.context_pct:.0f} % full"
    # A worker that sends heartbeats gets time to save its state; others cannot be asked.
    patience = policy.active_sec if signs.beats else policy.shutdown_sec
    if watch.context_asked_at is None:
        acts.append(Act(What.ASK_CHECKPOINT, full))
        return replace(watch, context_asked_at=signs.now), signs.now + patience
    due = watch.context_asked_at + patience
    if signs.now < due:
        return watch, due
    if signs.tool:
        return watch, signs.now + max(1.0, policy.shutdown_sec / 2)
    acts.append(Act(What.CONTEXT, f"{full} and it did not save its state"))
    return watch, NEVER


def _warnings(policy: HealthPolicy, signs: Signs, watch: HealthWatch, acts: list[Act]) -> HealthWatch:
    for name, due, text in _due_warnings(policy, signs):
        if signs.now >= due and name not in watch.warned:
            acts.append(Act(What.WARN, text, name))
            watch = replace(watch, warned=watch.warned | {name})
    return watch


def _due_warnings(policy: HealthPolicy, signs: Signs) -> list[tuple[str, float, str]]:
    began, worked = signs.began_at, _shown(signs.now - signs.began_at)
    found = [
        ("working", began + policy.working_warn_sec, f"it has worked for {worked} of {_shown(policy.working_sec)}")
    ]
    if signs.time_limit_sec is not None:
        half = began + signs.time_limit_sec / 2
        found.append(("time", half, f"half of its time limit of {_shown(signs.time_limit_sec)} has passed"))
    if signs.files_at <= began and not signs.pulled:
        found.append(("no_change", began + policy.no_change_sec, f"it has changed no file in {worked}"))
    if signs.errors_in_a_row > policy.api_errors:
        found.append(("api_errors", signs.now, f"its model failed {signs.errors_in_a_row} times in a row"))
    return found


def _next_warning(policy: HealthPolicy, signs: Signs, watch: HealthWatch) -> float:
    return min((due for name, due, _ in _due_warnings(policy, signs) if name not in watch.warned), default=NEVER)


def _stall_text(signs: Signs, clock: HealthClock) -> str:
    quiet = _shown(signs.now - clock.since)
    if clock.name == "stopped":
        return f"its process is stopped by a signal, for {quiet}"
    if clock.name == "busy":
        return f"for {quiet} it did nothing but use the processor"
    if clock.name == "working":
        worked = _shown(signs.now - signs.began_at)
        return _asking(signs, f"it has worked for {worked} and shown no sign for {quiet}, not even when it was asked")
    return _asking(signs, f"{_silence(clock.name)} for {quiet}, and no answer when it was asked")


def _asking(signs: Signs, text: str) -> str:
    return f"{text}; it seems to wait for an answer: {signs.asks}" if signs.asks else text


def _silence(name: str) -> str:
    return {
        "heartbeat": "no heartbeat and no other sign",
        "lease": "no word from the session that took it",
        "busy": "nothing but used processor time",
        "stopped": "its process is stopped by a signal",
    }.get(name, "no sign of it")


def _seen_again(signs: Signs, since: float) -> str:
    if signs.tool:
        return f"a tool call is open: {signs.tool}"
    seen = {
        "it spoke": signs.beat_at,
        "its output reported an event": signs.event_at,
        "its output grew": signs.output_at,
        "a file changed": signs.files_at,
        "it used the processor": signs.cpu_at,
    }
    return next((word for word, at in seen.items() if at >= since), "it was seen")


def _shown(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"
