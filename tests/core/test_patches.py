"""Patches of a healer: what may be planned, what is refused and why, and that nothing in a decision is authority."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, strategies as st

from ganger.contracts.heal_decision import HealDecision, Patch
from ganger.contracts.parser import Parsed, parse_heal
from ganger.core.healing.patches import LARGEST_TEXT_BYTES, MOST_PATCHES, Ground, Judged, judge, plain_path
from ganger.core.model.records import Limits, TaskSpec
from ganger.core.vocabulary import HealSchedule

SPECS = {
    "a": TaskSpec("a", prompt_ref="p/a.md", context_refs=("shared.md", "src/app.py")),
    "b": TaskSpec("b", prompt_ref="p/b.md", context_refs=("./shared.md",)),
    "c": TaskSpec("c", prompt_ref="p/c.md", context_refs=("other.md",), writes=("src/app.py",)),
    "d": TaskSpec("d", prompt_ref="p/a.md", context_refs=("shared.md",)),
}
GROUND = Ground(HealSchedule.AUTO, ("a", "b"), SPECS, Limits())


def patch(target: str, content: object = "text", operation: str = "append", **more: str) -> dict[str, object]:
    return {"target": target, "operation": operation, "content": content, **more}


def decided(*patches: dict[str, object], **more: object) -> HealDecision:
    """Through the real parser, as a healer's answer comes in."""
    base = {"contract_version": "2.0", "scope": "task", "decision": "RETRY", "failure_class": "x", "root_cause": "why"}
    body = json.dumps({**base, "patches": list(patches), **more})
    answer = parse_heal(f"<<<HEAL_DECISION_V2>>>\n{body}\n<<<END_HEAL_DECISION_V2>>>".encode())
    assert isinstance(answer, Parsed), answer
    return answer.value


def judged(*patches: dict[str, object], ground: Ground = GROUND, **more: object) -> Judged:
    return judge(decided(*patches, **more), ground)


SHARED = patch("shared_context", path="shared.md")


def runtime(**content: object) -> dict[str, object]:
    return patch("runtime_patch", content, "merge")


def test_shared_context_touches_every_task_that_reads_the_file() -> None:
    """T14: also tasks that have not failed, however they spell the path."""
    (one,) = judged(SHARED).planned
    assert (one.path, one.tasks, one.text, one.operation) == ("shared.md", ("a", "b", "d"), "text", "append")


@pytest.mark.parametrize("scope", ["task", "batch", "epoch"])
def test_in_schedule_task_a_patch_stays_with_the_failing_task_whatever_scope_it_claims(scope: str) -> None:
    """T14: `scope` gives no authority."""
    ground = replace(GROUND, schedule=HealSchedule.TASK, failing=("a",))
    assert judged(SHARED, ground=ground, scope=scope).planned[0].tasks == ("a",)


def test_a_task_id_narrows_shared_context_and_never_widens_it() -> None:
    """T14."""
    assert judged(patch("shared_context", path="./shared.md", task_id="b")).planned[0].tasks == ("b",)
    assert "is not a context file of task" in why(patch("shared_context", path="src/app.py", task_id="b"))


def test_a_prompt_patch_touches_its_own_task_alone() -> None:
    """T14: although another task reads the same prompt file."""
    (one,) = judged(patch("task_prompt", "New.", "replace", task_id="a", path="p/a.md")).planned
    assert (one.path, one.task_id, one.tasks) == ("p/a.md", "a", ("a",))


def test_a_hint_reaches_one_task_or_the_whole_scope() -> None:
    """T15."""
    both, one = judged(patch("contract_hint"), patch("contract_hint", operation="replace", task_id="b")).planned
    assert (both.tasks, one.tasks, both.path) == (("a", "b"), ("b",), "")


def test_a_runtime_patch_keeps_its_numbers() -> None:
    """T14: within the operator's limits, also at their edges."""
    (one,) = judged(runtime(timeout_sec=60, concurrency=8, current_batch_size=21.0)).planned
    assert (one.timeout_sec, one.concurrency, one.current_batch_size) == (60, 8, 21)
    assert isinstance(one.current_batch_size, int) and one.tasks == ("a", "b")


BIG = "x" * (LARGEST_TEXT_BYTES + 1)
REFUSED: dict[str, tuple[dict[str, object], str]] = {
    "absolute": (patch("shared_context", path="/etc/passwd"), "must be relative"),
    "climbs out": (patch("shared_context", path="../shared.md"), "must be normalised"),
    "climbs inside": (patch("shared_context", path="p/../shared.md"), "must be normalised"),
    "zero byte": (patch("shared_context", path="shared.md\0"), "control characters"),
    "backslash": (patch("shared_context", path="p\\a.md"), "forward slashes"),
    "drive": (patch("shared_context", path="C:shared.md"), "must be relative"),
    "home": (patch("shared_context", path="~/shared.md"), "must be relative"),
    "double slash": (patch("shared_context", path="p//a.md"), "must be normalised"),
    "only a dot": (patch("shared_context", path="./"), "may not be empty"),
    "invisible": (patch("shared_context", path="shared\u200b.md"), "invisible"),
    "other case": (patch("shared_context", path="Shared.md"), "not a context file"),
    "a file nobody reads": (patch("shared_context", path="setup.py"), "not a context file"),
    "context of a task out of scope": (patch("shared_context", path="other.md"), "not a context file"),
    "a prompt as context": (patch("shared_context", path="p/a.md"), "not a context file"),
    "merge of text": (patch("shared_context", operation="merge", path="shared.md"), "appends or replaces"),
    "object as text": (patch("shared_context", {"a": 1}, path="shared.md"), "is a string"),
    "null as text": (patch("shared_context", None, path="shared.md"), "is a string"),
    "too long": (patch("shared_context", BIG, path="shared.md"), "65537 bytes; the limit is 65536"),
    "too long in bytes": (patch("shared_context", "é" * 32769, path="shared.md"), "65538 bytes"),
    "zero byte in text": (patch("shared_context", "a\0b", path="shared.md"), "zero byte"),
    "emptied context": (patch("shared_context", "", "replace", path="shared.md"), "is empty"),
    "emptied prompt": (patch("task_prompt", " \n", "replace", task_id="a"), "is empty"),
    "prompt of a task out of scope": (patch("task_prompt", task_id="c"), "outside this healing scope"),
    "prompt of an unknown task": (patch("task_prompt", task_id="nobody"), "outside this healing scope"),
    "another task's prompt file": (patch("task_prompt", task_id="a", path="p/b.md"), "is not the prompt of task"),
    "a source file as prompt": (patch("task_prompt", task_id="a", path="src/app.py"), "is not the prompt"),
    "hint as object": (patch("contract_hint", {}), "is a string"),
    "hint merged": (patch("contract_hint", operation="merge"), "appends or replaces"),
    "hint out of scope": (patch("contract_hint", task_id="d"), "outside this healing scope"),
    "runtime as text": (patch("runtime_patch", '{"concurrency": 2}', "merge"), "is an object"),
    "runtime replaced": (patch("runtime_patch", {"concurrency": 2}, "replace"), "operation merge"),
    "runtime empty": (runtime(), "is an object"),
    "runtime list": (patch("runtime_patch", ["concurrency"], "merge"), "is an object"),
    "runtime out of scope": (patch("runtime_patch", {"timeout_sec": 99}, "merge", task_id="c"), "outside"),
    "schedule": (runtime(heal_schedule="off"), '"heal_schedule": a healer may not change this'),
    "strategy": (runtime(**{"batch.strategy": "fixed"}), '"batch.strategy": a healer may not change this'),
    "verification": (runtime(timeout_sec=99, verify="true"), '"verify": a healer may not change this'),
    "model": (runtime(model="x", agent="y"), '"model", "agent": a healer may not change this'),
    "protected paths": (runtime(protected=[]), '"protected": a healer may not change this'),
    "a key with a dash": (runtime(**{"timeout-sec": 99}), "a healer may not change this"),
    "true is no number": (runtime(concurrency=True), "concurrency is a number"),
    "text is no number": (runtime(timeout_sec="90"), "timeout_sec is a number"),
    "null is no number": (runtime(timeout_sec=None), "timeout_sec is a number"),
    "half a worker": (runtime(concurrency=2.5), "a whole number, not 2.5"),
    "too low": (runtime(timeout_sec=59.9), "59.9 is outside the operator's limits, 60 to 7200"),
    "too high": (runtime(concurrency=9), "9 is outside the operator's limits, 1 to 8"),
    "zero": (runtime(current_batch_size=0), "outside the operator's limits, 1 to 21"),
    "far too high": (runtime(current_batch_size=10**300), "outside the operator's limits"),
}


def why(one: dict[str, object], ground: Ground = GROUND) -> str:
    answer = judged(one, ground=ground)
    assert answer.planned == ()
    assert [(refusal.place, refusal.target) for refusal in answer.refused] == [(0, one["target"])]
    return answer.refused[0].why


@pytest.mark.parametrize("case", REFUSED)
def test_what_a_healer_may_not_do_is_refused_with_its_reason(case: str) -> None:
    """T14: paths as strict as writes, only named keys, only within limits, never out of scope."""
    one, reason = REFUSED[case]
    assert reason in why(one)


def test_a_refused_patch_does_not_take_the_others_with_it() -> None:
    """T14: and each keeps its place in the decision."""
    answer = judged(SHARED, runtime(model="x"), patch("contract_hint"))
    assert ([one.place for one in answer.planned], [one.place for one in answer.refused]) == ([0, 2], [1])


def test_one_bad_key_refuses_the_whole_runtime_patch() -> None:
    """T14: half of what was asked for is something nobody asked for."""
    assert "300 is outside" in why(runtime(timeout_sec=120, concurrency=300))


def test_a_target_the_format_does_not_know_is_refused_by_name() -> None:
    """T14: even if it got past the parser."""
    stray = Patch.model_construct(target="verification", operation="replace", content="true")
    (refusal,) = judge(decided().model_copy(update={"patches": (stray,)}), GROUND).refused
    assert '"verification" is not a target a healer may change' in refusal.why


def test_more_patches_than_allowed_are_refused_together() -> None:
    """T14: one line says so, whatever their number."""
    answer = judged(*[patch("contract_hint")] * (MOST_PATCHES + 500))
    assert (len(answer.planned), len(answer.refused)) == (MOST_PATCHES, 1)
    assert "532 patches in one decision" in answer.refused[0].why


def test_only_retry_applies_patches() -> None:
    """T14 T22: any other decision hands the whole scope to a person."""
    for decision in ("ESCALATE", "NOT_FIXABLE"):
        listed = [{"task_id": "b", "reason": "needs a key"}, {"task_id": "c", "reason": "not asked"}]
        answer = judged(SHARED, decision=decision, escalations=listed)
        assert (answer.planned, answer.reset) == ((), ())
        assert answer.escalate == (("a", "why"), ("b", "needs a key"))


RESETS: list[tuple[dict[str, Any], tuple[str, ...]]] = [
    ({}, ("a", "b")),
    ({"retry_policy": {}}, ("a", "b")),
    ({"retry_policy": {"reset_tasks": ["b"]}}, ("b",)),
    ({"retry_policy": {"reset_tasks": ["c", "nobody"]}}, ("a", "b")),
    ({"escalations": [{"task_id": "a", "reason": "x"}]}, ("b",)),
    ({"retry_policy": {"reset_tasks": ["a"]}, "escalations": [{"task_id": "a", "reason": "x"}]}, ()),
]


@pytest.mark.parametrize(("more", "reset"), RESETS)
def test_only_tasks_of_the_scope_run_again_and_no_escalated_one(more: dict[str, Any], reset: tuple[str, ...]) -> None:
    """T14: reset_tasks chooses among the scope, and cannot reach beyond it."""
    answer = judged(SHARED, **more)
    assert answer.reset == reset and {task for task, _ in answer.escalate} <= {"a", "b"}


def test_the_window_a_healer_asks_for_is_handed_on() -> None:
    """T14."""
    asked = judged(SHARED, retry_policy={"retry_window": "shrink_window"}).retry_window
    assert (judged(SHARED).retry_window, asked) == ("same_window", "shrink_window")


IN_PLACE = replace(GROUND, in_place=True)
PLACES = [
    (patch("shared_context", path="shared.md"), GROUND, False, "not configured"),
    (patch("shared_context", path="shared.md"), IN_PLACE, True, "everyone who reads it is touched"),
    (patch("shared_context", path="shared.md", task_id="a"), IN_PLACE, False, "others read it too"),
    (patch("shared_context", path="shared.md"), replace(IN_PLACE, schedule=HealSchedule.TASK), False, "d reads it"),
    (patch("shared_context", path="src/app.py"), IN_PLACE, False, "product source"),
    (patch("task_prompt", task_id="a"), IN_PLACE, False, "d has the same prompt"),
    (patch("task_prompt", task_id="b"), IN_PLACE, True, "its own prompt"),
    (patch("contract_hint"), IN_PLACE, False, "never a file"),
]


@pytest.mark.parametrize(("one", "ground", "written", "reason"), PLACES)
def test_a_users_file_is_written_only_where_nobody_else_reads_it(
    one: dict[str, object], ground: Ground, written: bool, reason: str
) -> None:
    """T14 T15: and only when configured; product source and hints never are."""
    assert judged(one, ground=ground).planned[0].in_place is written, reason


def test_a_document_that_a_task_writes_is_product_source() -> None:
    """T14."""
    specs = {**SPECS, "c": replace(SPECS["c"], writes=("./shared.md",))}
    assert judged(SHARED, ground=replace(IN_PLACE, specs=specs)).planned[0].in_place is False


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
PATHS = st.sampled_from(["shared.md", "./shared.md", "src/app.py", "other.md", "p/a.md", "/x", "../x"]) | st.text()
PATCHES = st.builds(
    Patch.model_construct,
    target=st.sampled_from(["shared_context", "task_prompt", "runtime_patch", "contract_hint"]),
    operation=st.sampled_from(["replace", "append", "merge"]),
    path=st.none() | PATHS,
    task_id=st.none() | st.sampled_from(["a", "b", "c", "d", "x"]),
    content=JSON | st.dictionaries(st.sampled_from(["timeout_sec", "concurrency", "current_batch_size"]), JSON),
)


@given(st.lists(PATCHES, max_size=5), st.sampled_from(HealSchedule))
def test_whatever_is_asked_for_every_patch_is_planned_within_the_rules_or_refused(
    patches: list[Patch], schedule: HealSchedule
) -> None:
    """T14: nothing is dropped, nothing raises, nothing reaches a file outside the manifest."""
    ground = replace(GROUND, schedule=schedule, in_place=True)
    answer = judge(decided().model_copy(update={"patches": tuple(patches)}), ground)
    places = [one.place for one in answer.planned] + [one.place for one in answer.refused]
    assert sorted(places) == list(range(len(patches)))
    refs = {plain_path(ref) for spec in SPECS.values() for ref in (spec.prompt_ref, *spec.context_refs)}
    for one in answer.planned:
        assert one.path in {"", *refs} and set(one.tasks) <= set(SPECS) and one.tasks
        assert one.concurrency is None or 1 <= one.concurrency <= 8
        assert one.target == "shared_context" or set(one.tasks) <= {"a", "b"}
