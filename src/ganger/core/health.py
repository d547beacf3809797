"""Is a worker at work? What was seen of it, in several ways, becomes a wait, a warning, a probe or a verdict.

    well ── half of a limit without a sign ──▶ suspicious (it is asked) ── the whole limit ──▶ stalled
      ▲                                             │
      └────────────── any sign of work ─────────────┘

Silence alone is never a crash: an open tool call, a changed file, a heartbeat, a line of output, an event of its own,
or for a while used processor time are each enough. All times are seconds of one clock that never goes back.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum

NEVER = float("inf")
# Who beats this often in a row is taken by its word, and missed when it stops.
_BEATS_OF_A_HABIT = 3


@dataclass(frozen=True, slots=True)
class HealthPolicy:
    """How long is too long, in seconds.

    stall    without any sign at all
    stale    without a heartbeat, for one that had the habit of them
    busy     with nothing but used processor time
    lease    without a word from a session that asked for its task
    working  at its task: from then on it must have shown a sign within `active`, or it is ended
    linger   after its last word, until it is asked to end; `shutdown` later it is ended
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
    """What was seen of a worker. `*_at` is the last time: its output grew, its processes used the processor, a file of
    its workspace changed, it said something over the protocol, its output told of an event.

    `said_all`: its answer is there. `marked`: it set its done mark. `reported`: its report is recorded.
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
class Watch:
    """What is remembered between two looks. `asked_at`: when it was probed, or asked to end."""

    suspicious_since: float | None = None
    asked_at: float | None = None
    working_until: float | None = None
    ending_since: float | None = None
    context_asked_at: float | None = None
    warned: frozenset[str] = field(default_factory=frozenset)


class What(StrEnum):
    """What is to be done. The last five end the worker."""

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
class Act:
    what: What
    why: str
    limit: str = ""
    until: float = 0.0


@dataclass(frozen=True, slots=True)
class Look:
    """What came of a look: what is remembered, what is to be done, and when the next look is due at the latest."""

    watch: Watch
    acts: tuple[Act, ...] = ()
    again_at: float = NEVER


def look(policy: HealthPolicy, signs: Signs, watch: Watch) -> Look:
    if signs.marked and not signs.reported:
        return Look(watch, (Act(What.SETTLE, "it set its done mark and its report never came"),), NEVER)
    if signs.said_all or signs.reported:
        return _over(policy, signs, watch)
    acts: list[Act] = []
    watch = _warnings(policy, signs, watch, acts)
    limit, name, quiet_since = _limit(policy, signs)
    quiet = signs.now - quiet_since
    if quiet >= limit:
        return Look(watch, (*acts, Act(What.STALLED, _stall_text(signs, name, quiet), name)), NEVER)
    if quiet >= limit / 2:
        if watch.suspicious_since is None:
            acts.append(Act(What.PROBE, f"{_silence(name)} for {_shown(quiet)} of {_shown(limit)}", name))
            watch = replace(watch, suspicious_since=signs.now, asked_at=signs.now)
        due = quiet_since + limit
    else:
        if watch.suspicious_since is not None:
            acts.append(Act(What.CLEAR, _seen_again(signs, watch.suspicious_since)))
            watch = replace(watch, suspicious_since=None, asked_at=None)
        due = quiet_since + limit / 2
    watch, more, soft_due = _working(policy, signs, watch)
    context, watch, context_due = _context(policy, signs, watch)
    again_at = min(due, soft_due, context_due, _next_warning(policy, signs, watch))
    return Look(watch, (*acts, *more, *context), again_at)


def is_habit(signs: Signs) -> bool:
    return signs.beats >= _BEATS_OF_A_HABIT


def last_sign(signs: Signs) -> float:
    """The last time anything but used processor time was seen."""
    return max(signs.began_at, signs.output_at, signs.files_at, signs.beat_at, signs.event_at)


def _limit(policy: HealthPolicy, signs: Signs) -> tuple[float, str, float]:
    """How long it may be silent, the limit's name, and since when it is."""
    seen = last_sign(signs)
    if signs.stopped:
        return policy.stall_sec, "stopped", seen
    if signs.tool:
        # An open tool call is work, however long and silent; the attempt's own time limit is its only bound.
        return NEVER, "tool", signs.now
    if is_habit(signs):
        return policy.stale_sec, "heartbeat", seen
    if signs.pulled:
        return policy.lease_sec, "lease", seen
    if signs.cpu_at > seen:
        return _busy(policy, signs, seen)
    return policy.stall_sec, "silence", seen


def _busy(policy: HealthPolicy, signs: Signs, seen: float) -> tuple[float, str, float]:
    """Nothing but processor time was seen. When that ends too, the silence counts from there."""
    if signs.now - signs.cpu_at >= policy.stall_sec / 2:
        idle_end, busy_end = signs.cpu_at + policy.stall_sec, seen + policy.busy_sec
        return (policy.stall_sec, "silence", signs.cpu_at) if idle_end <= busy_end else (policy.busy_sec, "busy", seen)
    return policy.busy_sec, "busy", seen


def _over(policy: HealthPolicy, signs: Signs, watch: Watch) -> Look:
    """It has given its answer: now it should end."""
    if signs.pulled:
        return Look(watch)
    since = max(last_sign(signs), signs.cpu_at)
    if watch.ending_since is not None:
        due = watch.ending_since + policy.shutdown_sec
        if since > watch.ending_since and not signs.reported:
            return Look(replace(watch, ending_since=None), (), signs.now + policy.linger_sec)
        if signs.now < due:
            return Look(watch, (), due)
        why = f"it gave its answer {_shown(signs.now - watch.ending_since + policy.linger_sec)} ago and did not end"
        return Look(watch, (Act(What.LINGERING, why),), NEVER)
    due = since + policy.linger_sec
    if signs.now < due:
        return Look(watch, (), due)
    ask = Act(What.ASK_SHUTDOWN, "its answer is there; it may end now")
    return Look(replace(watch, ending_since=signs.now), (ask,), signs.now + policy.shutdown_sec)


def _working(policy: HealthPolicy, signs: Signs, watch: Watch) -> tuple[Watch, list[Act], float]:
    """D14: past its time at the task it goes on as long as it shows signs of work, and is ended when it does not."""
    until = watch.working_until or signs.began_at + policy.working_sec
    if signs.now < until:
        return watch, [], until
    quiet = 0.0 if signs.tool else signs.now - max(last_sign(signs), signs.cpu_at)
    if quiet >= policy.active_sec and not signs.pulled:
        worked = _shown(signs.now - signs.began_at)
        why = f"it has worked for {worked} and shown no sign for {_shown(quiet)}"
        return watch, [Act(What.STALLED, _asking(signs, why), "working")], NEVER
    longer = signs.now + policy.active_sec
    why = f"it was seen at work {_shown(quiet)} ago" if quiet >= 1 else "it is at work"
    return replace(watch, working_until=longer), [Act(What.EXTEND, why, "working", longer)], longer


def _context(policy: HealthPolicy, signs: Signs, watch: Watch) -> tuple[list[Act], Watch, float]:
    """Z05: over the limit it is asked to save its state; one that does not, is ended between two tool calls."""
    if signs.context_pct < policy.context_pct or signs.pulled:
        return [], watch, NEVER
    full = f"its context is {signs.context_pct:.0f} % full"
    if watch.context_asked_at is None:
        watch = replace(watch, context_asked_at=signs.now)
        return [Act(What.ASK_CHECKPOINT, full)], watch, signs.now + policy.shutdown_sec
    # Whoever talks gets the time to say where it stands; nobody else can be asked.
    patience = policy.active_sec if signs.beats else policy.shutdown_sec
    if signs.tool or signs.now < watch.context_asked_at + patience:
        return [], watch, signs.now + max(1.0, policy.shutdown_sec / 2)
    return [Act(What.CONTEXT, f"{full} and it did not hand over")], watch, NEVER


def _warnings(policy: HealthPolicy, signs: Signs, watch: Watch, acts: list[Act]) -> Watch:
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
        found.append(("time", half, f"half of its time limit of {_shown(signs.time_limit_sec)} is gone"))
    if signs.files_at <= began and not signs.pulled:
        found.append(("no_change", began + policy.no_change_sec, f"it has changed no file in {worked}"))
    if signs.errors_in_a_row > policy.api_errors:
        found.append(("api_errors", signs.now, f"its model failed {signs.errors_in_a_row} times in a row"))
    return found


def _next_warning(policy: HealthPolicy, signs: Signs, watch: Watch) -> float:
    return min((due for name, due, _ in _due_warnings(policy, signs) if name not in watch.warned), default=NEVER)


def _stall_text(signs: Signs, name: str, quiet: float) -> str:
    if name == "stopped":
        return f"its process is stopped by a signal, for {_shown(quiet)}"
    if name == "busy":
        return f"for {_shown(quiet)} it did nothing but use the processor"
    return _asking(signs, f"{_silence(name)} for {_shown(quiet)}, and no answer when it was asked")


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
        "its output told of it": signs.event_at,
        "its output grew": signs.output_at,
        "a file changed": signs.files_at,
        "it used the processor": signs.cpu_at,
    }
    return next((word for word, at in seen.items() if at >= since), "it was seen")


def _shown(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"
