"""A run beside a changed manifest: what counts as a change, and what becomes of every task."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import pytest

from ganger.core import events as ev
from ganger.core.control.reconcile import FIELDS, ContentDigest, Weight, compare, reconcile
from ganger.core.model.records import Policy, TaskSpec
from ganger.core.model.run_state import RunState
from ganger.core.scheduling.windows import Start, decide
from ganger.core.state.allowed import run_misfit
from ganger.core.state.apply import apply
from ganger.core.vocabulary import BlockReason, HealSchedule, TaskStatus

P, D = TaskStatus.PENDING, TaskStatus.DONE
F, B, E = TaskStatus.FAILED, TaskStatus.BLOCKED, TaskStatus.ESCALATED
AT = "2026-01-01T00:00:00.000000Z"
CHAIN = (TaskSpec("a", prompt_ref="a.md"), TaskSpec("b", ("a",), prompt_ref="b.md"), TaskSpec("c", ("b",)))
OTHER: dict[str, Any] = {
    "depends_on": ("x",), "priority": 7, "timeout_sec": 5, "verify_profile": "other", "prompt_ref": "new.md",
    "strong": ("security",), "repo": "core", "review": "person", "component": "A001",
    "context_refs": ("new.md",), "role": "judge", "max_attempts": 1, "widened_attempts": 9, "retry_on": ("timeout",),
    "writes": ("f",), "allow_shrinkage": True, "creates": ("f",), "modifies": ("f",), "expected": ("f",),
    "reads": ("f",), "may_change_gates": True, "may_break": True, "expects_ci": False,
}  # fmt: skip


def digests(specs: tuple[TaskSpec, ...], **texts: str) -> dict[str, ContentDigest]:
    """Each file's digest is its name, unless told otherwise."""
    said = {name.replace("_", "."): text for name, text in texts.items()}
    return {
        spec.id: ContentDigest(
            said.get(spec.prompt_ref, spec.prompt_ref), tuple(said.get(r, r) for r in spec.context_refs)
        )
        for spec in specs
    }


class Run:
    """A run whose tasks ended as asked."""

    def __init__(self, *specs: TaskSpec, **ended: TaskStatus) -> None:
        self.specs, self.state, self.seq = specs, RunState(), 0
        policy = Policy(heal_schedule=HealSchedule.OFF, concurrency=9)
        contents = tuple(digest.text for digest in digests(specs).values())
        self.record(ev.RunStarted("r", "d", policy, specs, contents=contents), ev.LeadStarted(1, policy=policy))
        for name, status in ended.items():
            self.attempt(name, status)

    def record(self, *events: ev.Event) -> None:
        for event in events:
            self.seq += 1
            apply(self.state, ev.Recorded(self.seq, AT, event))
        assert self.state.log.refused == []

    def attempt(self, name: str, status: TaskStatus) -> None:
        if status is B:
            self.record(ev.TaskSettled(name, B, "", BlockReason.DEPENDENCY_FAILED))
            return
        number = self.state.tasks[name].attempts + 1
        self.record(ev.AttemptStarted(name, number, f"{name}{number}", "agent", "", "log"))
        if status is D:
            self.record(ev.VerifyFinished(name, number, True, "log", 0.0, ()))
        if status is not TaskStatus.RUNNING:
            self.record(ev.TaskSettled(name, status, "so it ended"))

    def take_over(self, *specs: TaskSpec, **texts: str) -> RunState:
        contents = digests(specs, **texts)
        found = compare(self.state, "new", specs, contents)
        self.record(*reconcile(self.state, found, specs, contents))
        return self.state


def changed(run: Run, *specs: TaskSpec, edited: tuple[str, ...] = (), **texts: str) -> list[tuple[str, ...]]:
    found = compare(run.state, "d", specs, digests(specs, **texts), edited=edited)
    return [(change.task, *change.why) for change in found.changed]


def test_an_untouched_manifest_is_no_difference() -> None:
    """T20: then a run simply goes on."""
    run = Run(*CHAIN, a=D, b=F)
    assert compare(run.state, "d", CHAIN, digests(CHAIN)).empty


def test_every_field_of_a_task_is_judged() -> None:
    """T20: whoever adds a field says what its change means."""
    assert {"id", *FIELDS} == {field.name for field in fields(TaskSpec)} and set(FIELDS) == set(OTHER)


@pytest.mark.parametrize("name", FIELDS)
def test_a_changed_field_is_named_and_undoes_as_much_as_its_weight_says(name: str) -> None:
    """T20: DONE runs again for another prompt, context, dependency or profile; a failure for any but its priority."""
    run = Run(TaskSpec("x"), TaskSpec("done"), TaskSpec("bad"), TaskSpec("new"), x=D, done=D, bad=E)
    now = [TaskSpec("x"), *(replace(TaskSpec(task), **{name: OTHER[name]}) for task in ("done", "bad", "new"))]
    found = compare(run.state, "new", now, {})
    shown, weight = FIELDS[name]
    assert [(c.task, c.why) for c in found.changed] == [(task, (shown,)) for task in ("done", "bad", "new")]
    again = {"done": weight is Weight.EVERYTHING, "bad": weight is not Weight.NOTHING}
    assert found.again == tuple(task for task, is_again in again.items() if is_again)


def test_dependencies_in_another_order_are_the_same_dependencies() -> None:
    """T20: as in the manifest's own digest."""
    run = Run(TaskSpec("x"), TaskSpec("y"), TaskSpec("z", ("x", "y")), x=D, y=D, z=D)
    now = (TaskSpec("x"), TaskSpec("y"), TaskSpec("z", ("y", "x", "y")))
    assert compare(run.state, "d", now, {}).empty


def test_added_removed_and_moved_tasks_are_found() -> None:
    """T20: and a digest that changed without them is a difference too."""
    run = Run(*CHAIN, a=D)
    now = (TaskSpec("new"), CHAIN[1], CHAIN[0])
    found = compare(run.state, "e", (replace(now[1], depends_on=()), now[0], now[2]), {})
    assert (found.added, found.removed, found.reordered) == (("new",), ("c",), True)
    assert not compare(run.state, "e", CHAIN, {}).empty


def test_the_content_of_a_prompt_counts_once_a_task_was_attempted() -> None:
    """T20: before that nothing was done with the old one."""
    run = Run(*CHAIN, a=D)
    assert changed(run, *CHAIN, a_md="other", b_md="other") == [("a", "content of a.md")]
    assert Run(*CHAIN, a=F).take_over(*CHAIN, a_md="other").tasks["a"].status is P


def test_a_run_that_recorded_no_contents_is_judged_by_its_manifest_alone() -> None:
    """T20: runs of older versions go on."""
    run = Run(*CHAIN, a=D)
    run.state.manifest.contents = {}
    assert changed(run, *CHAIN, a_md="other") == []


CONTEXT = (TaskSpec("a", prompt_ref="a.md", context_refs=("x.md", "y.md")), TaskSpec("w", writes=("./w.md",)))


def test_a_context_file_counts_when_somebody_else_wrote_it_after_the_run_had_stopped() -> None:
    """T20: each file on its own; what changed while agents worked is taken for their work."""
    run = Run(*CONTEXT, a=D)
    assert changed(run, *CONTEXT, x_md="other", y_md="other", edited=("y.md",)) == [("a", "content of y.md")]


@pytest.mark.parametrize("file", ["w.md", "sent.md"])
def test_a_file_the_run_itself_writes_never_counts(file: str) -> None:
    """T20: whether a task declares it or an agent was recorded to have written it, as prompt or as context."""
    spec = TaskSpec("a", prompt_ref=file, context_refs=(file,))
    run = Run(spec, CONTEXT[1], a=D)
    run.attempt("w", TaskStatus.RUNNING)
    run.record(ev.WritesIntended("w", 1, "backup", ("sent.md",)))
    run.record(ev.AttemptInterrupted("w", 1, "stopped"))
    assert changed(run, spec, CONTEXT[1], edited=(file,), **{file.replace(".", "_"): "other"}) == []


def test_while_attempts_run_a_context_file_tells_nothing_but_a_prompt_does() -> None:
    """T20: the lead died, its agents go on and may edit any file of the project."""
    run = Run(*CONTEXT, a=D, w=TaskStatus.RUNNING)
    assert changed(run, *CONTEXT, x_md="other", edited=("x.md",)) == []
    assert changed(run, *CONTEXT, a_md="other") == [("a", "content of a.md")]


def test_a_changed_task_begins_anew_and_what_was_built_on_it_stays() -> None:
    """T20: counters are fresh; the history, and the number of the next log, are kept."""
    run = Run(*CHAIN, a=D, b=D, c=D)
    state = run.take_over(replace(CHAIN[0], prompt_ref="new.md"), *CHAIN[1:])
    assert [state.tasks[name].status for name in "abc"] == [P, D, D]
    task = state.tasks["a"]
    assert (task.attempts, task.counters.worker_attempts, len(task.history)) == (1, 0, 2)
    assert decide(state, 0.0) == [Start("a")] and state.manifest.digest == "new"


def test_added_tasks_run_and_removed_ones_leave() -> None:
    """T20: a dependency on what left is gone with it."""
    run = Run(*CHAIN, a=D, b=D)
    state = run.take_over(CHAIN[0], TaskSpec("n", ("a",)), TaskSpec("c"))
    assert set(state.tasks) == {"a", "n", "c"} == set(state.specs)
    assert sorted(str(start) for start in decide(state, 0.0)) == [str(Start("c")), str(Start("n"))]


def test_what_was_blocked_behind_a_changed_task_comes_back_and_nothing_else() -> None:
    """T20: all along the chain, unless something else it needs stays bad."""
    specs = (*CHAIN, TaskSpec("x"), TaskSpec("y", ("a", "x")))
    run = Run(*specs, a=F, b=B, c=B, x=F, y=B)
    now = (replace(CHAIN[0], verify_profile="other"), *specs[1:])
    found = compare(run.state, "new", now, digests(now))
    assert (found.again, found.back) == (("a",), ("b", "c"))
    statuses = {name: task.status for name, task in run.take_over(*now).tasks.items()}
    assert statuses == {"a": P, "b": P, "c": P, "x": F, "y": B}


def test_a_change_that_saves_nobody_leaves_the_blocked_ones_blocked() -> None:
    """T20: another priority gives a failed task no new attempts."""
    run = Run(*CHAIN, a=F, b=B, c=B)
    assert [run.take_over(replace(CHAIN[0], priority=1), *CHAIN[1:]).tasks[n].status for n in "abc"] == [F, B, B]


def test_running_attempts_of_changed_and_removed_tasks_must_end_first() -> None:
    """T20: until then the change does not fit the run."""
    specs = (TaskSpec("a"), TaskSpec("b"), TaskSpec("c"))
    run = Run(*specs, a=TaskStatus.RUNNING, b=TaskStatus.RUNNING, c=TaskStatus.RUNNING)
    now = (replace(specs[0], prompt_ref="new.md"), specs[1])
    found = compare(run.state, "new", now, {})
    taken = next(e for e in reconcile(run.state, found, now, {}) if isinstance(e, ev.Reconciled))
    assert found.stop == ("a", "c") and run_misfit(run.state, taken) == "a is still RUNNING"
    for name in found.stop:
        run.record(ev.AttemptInterrupted(name, 1, "its task changed"))
    assert run_misfit(run.state, taken) == ""


@pytest.mark.parametrize(
    ("event", "problem"),
    [
        (ev.Reconciled("e", (TaskSpec("a"),), (), changed=("z",)), "does not exist"),
        (ev.Reconciled("e", (TaskSpec("a", ("z",)),), ()), "no order"),
        (ev.Reconciled("e", (TaskSpec("a", ("b",)), TaskSpec("b", ("a",))), ()), "no order"),
    ],
)
def test_a_change_that_makes_no_sense_does_not_fit(event: ev.Reconciled, problem: str) -> None:
    """T20: whoever wrote it."""
    assert problem in run_misfit(Run(*CHAIN).state, event)


def test_questions_about_a_changed_task_are_settled_with_it() -> None:
    """T20: changing what a task asks is the answer."""
    run = Run(*CHAIN, a=E)
    run.record(ev.QuestionAsked("q-1", "a", "escalated", "what now?"))
    state = run.take_over(replace(CHAIN[0], prompt_ref="new.md"), *CHAIN[1:])
    assert state.inbox.questions["q-1"].answer == "the manifest changed"


def test_whoever_waited_for_a_canary_that_left_is_judged_by_itself() -> None:
    """T12 T20: it would wait for ever otherwise."""
    specs = (TaskSpec("canary"), TaskSpec("one"), TaskSpec("spent", max_attempts=1))
    run = Run(*specs)
    for name in ("canary", "one", "spent"):
        run.record(ev.AttemptStarted(name, 1, name, "agent", "", "log"))
        run.record(ev.AttemptFailed(name, 1, "test_error", "test_error:x", "x", "worker_attempts"))
        run.record(ev.TaskSettled(name, F, "", final=False))
    run.record(ev.TaskHeld("one", "canary"), ev.TaskHeld("spent", "canary"))
    state = run.take_over(*specs[1:])
    assert [(state.tasks[n].status, state.tasks[n].waits_for_canary) for n in ("one", "spent")] == [(P, ""), (F, "")]


def test_what_was_taken_over_is_no_difference_the_next_time() -> None:
    """T20: the new contents count from then on."""
    run = Run(*CHAIN, a=D, b=F)
    now = (replace(CHAIN[0], timeout_sec=9), CHAIN[1], TaskSpec("n"))
    run.take_over(*now, a_md="other")
    assert compare(run.state, "new", now, digests(now, a_md="other")).empty
