"""Every row of the table of counters, with and without a healer: who pays, and how the task ends."""

from __future__ import annotations

import pytest

from ganger.core.failures.classes import CLASSES
from ganger.core.vocabulary import FailureClass as F, HealSchedule
from tests.core.heal_runs import WRONG, Ailment, Healer, HealRun, answer, in_turn, policy, tasks

# Nobody heals; a healer that finds nothing to patch; one whose patches do not help.
HEALERS: dict[str, Healer | None] = {"none": None, "idle": in_turn(answer()), "wrong": in_turn(WRONG)}
FAILED, ESCALATED, REWORK = "FAILED", "ESCALATED", "BLOCKED(needs_rework)"
PAUSED, DENIED, EXTERNAL = "BLOCKED(paused)", "BLOCKED(permission_denied)", "BLOCKED(external)"
AS_WORKER = (FAILED, FAILED, ESCALATED)
# class, signal; the end without a healer, with an idle one, with a wrong one; the counter that pays first, how often
ROWS: dict[str, tuple[F, str, tuple[str, str, str], str, int]] = {
    "T13 Z10 failed tests": (F.TEST_ERROR, "assert", AS_WORKER, "worker_attempts", 2),
    "T13 Z10 failed build": (F.BUILD_ERROR, "no such name", AS_WORKER, "worker_attempts", 2),
    "T13 Z10 refused change": (F.POLICY_VIOLATION, "PROTECTED", AS_WORKER, "worker_attempts", 2),
    "T13 Z10 check out of time": (F.TIMEOUT, "verify test", AS_WORKER, "worker_attempts", 2),
    "T13 Z10 reported failure": (F.PROMPT_GAP, "no spec", AS_WORKER, "worker_attempts", 2),
    "T13 Z10 worker out of time": (F.TIMEOUT, "time limit", AS_WORKER, "worker_attempts", 2),
    "T13 Z10 no prompt can mend it": (F.REAL_BUG, "bug", (FAILED, ESCALATED, ESCALATED), "worker_attempts", 1),
    "T08 contract error": (F.CONTRACT_ERROR, "NO_SENTINEL", AS_WORKER, "format_retries", 1),
    "D12 transient trouble": (F.TRANSIENT_INFRA, "502", AS_WORKER, "transient_retries", 3),
    "H04 crash": (F.CRASH, "exit 139", (PAUSED,) * 3, "respawns", 1),
    "Z03 stall": (F.STALLED, "silent", (ESCALATED,) * 3, "stalls", 4),
    "D06 CI failed": (F.CI_ERROR, "red", (ESCALATED,) * 3, "ci_fixes", 5),
    "G03 merge conflict": (F.MERGE_CONFLICT, "a.txt", (REWORK,) * 3, "merge_retries", 2),
    "D12 permission denied": (F.PERMISSION_DENIED, "push", (DENIED,) * 3, "worker_attempts", 0),
    "W07 something outside": (F.BLOCKED_EXTERNAL, "login", (EXTERNAL,) * 3, "worker_attempts", 0),
}
JUDGED = {
    name for name in ROWS if any(word in name for word in ("failed tests", "failed build", "refused", "check out"))
}
ASKS = {ESCALATED: "escalated", PAUSED: "crash", DENIED: "permission_denied"}


@pytest.mark.parametrize("exhausted", ["fail", "rework"])
@pytest.mark.parametrize("healer", HEALERS)
def test_a_check_that_decides_nothing_waits_for_a_person_and_nobody_pays(healer: str, exhausted: str) -> None:
    """W05: the verify recovery is used up, and the check is ended by a signal without the change as well."""
    ill = {"t01": [Ailment(signal="test exit code 137", cls=F.TEST_ERROR, undecided=True)]}
    run = HealRun(tasks(1), ill, HEALERS[healer], policy(HealSchedule.BATCH, exhausted=exhausted)).begin().run()
    assert (end(run), run.state.tasks["t01"].counters.worker_attempts) == (REWORK, 0)


def ended(cls: F, signal: str, healer: Healer | None, **settings: object) -> HealRun:
    given = policy(HealSchedule.BATCH, **settings)
    return HealRun(tasks(1), {"t01": [Ailment(signal=signal, cls=cls)]}, healer, given).begin().run()


def end(run: HealRun) -> str:
    task = run.state.tasks["t01"]
    return f"{task.status.value}({task.block_reason.value})" if task.block_reason else task.status.value


@pytest.mark.parametrize("healer", HEALERS)
@pytest.mark.parametrize("row", ROWS)
def test_each_failure_ends_as_the_table_of_counters_says(row: str, healer: str) -> None:
    """T13: each counter is its own, none borrows from another; a person is asked where the end is theirs."""
    cls, signal, ends, counter, paid = ROWS[row]
    run = ended(cls, signal, HEALERS[healer])
    wanted = ends[list(HEALERS).index(healer)]
    assert end(run) == wanted
    assert {q.kind for q in run.state.inbox.questions.values() if q.task == "t01"} == (
        {ASKS[wanted]} if wanted in ASKS else set()
    )
    if healer == "none":
        assert getattr(run.state.tasks["t01"].counters, counter) == paid


@pytest.mark.parametrize("healer", ["none", "idle"])
@pytest.mark.parametrize("row", ROWS)
def test_with_exhausted_rework_checks_and_rules_end_for_a_person_to_take_up(row: str, healer: str) -> None:
    """W05 W07: BLOCKED(needs_rework) for what verification or policy refused; everything else ends as ever."""
    cls, signal, ends, _, _ = ROWS[row]
    usual = ends[list(HEALERS).index(healer)]
    assert end(ended(cls, signal, HEALERS[healer], exhausted="rework")) == (REWORK if row in JUDGED else usual)


def test_the_same_failure_twice_after_healing_escalates_also_with_exhausted_rework() -> None:
    """T12 W05: healing's own end comes first."""
    assert end(ended(F.TEST_ERROR, "assert", HEALERS["wrong"], exhausted="rework")) == ESCALATED


@pytest.mark.parametrize("healer", HEALERS)
def test_a_quota_pays_with_nothing_and_comes_back_by_itself(healer: str) -> None:
    """W07 G04: waited for, with and without a healer."""
    ill = {"t01": [Ailment(signal="limit", cls=F.QUOTA, times=2)]}
    run = HealRun(tasks(1), ill, HEALERS[healer], policy(HealSchedule.BATCH), accounts={"worker": "acme"}).begin().run()
    task = run.state.tasks["t01"]
    assert (end(run), task.counters.worker_attempts, task.counters.transient_retries) == ("DONE", 1, 0)


@pytest.mark.parametrize(("cls", "words"), [(F.TEST_ERROR, "policy.exhausted"), (F.REAL_BUG, "ESCALATED")])
def test_the_explanation_of_a_class_tells_how_it_ends(cls: F, words: str) -> None:
    """T26 W07: `ganger explain CLASS` prints this."""
    assert words in CLASSES[cls].then
