"""The verdict on one commit: from the required jobs of its own runs, and from nothing else."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings, strategies as st

from ganger.core.model.ci import (
    ALLOWED_TO_FAIL,
    MISSING_JOB,
    NEEDS_APPROVAL,
    OVER,
    TIMED_OUT,
    UNREAD,
    UNSETTLED,
    Ci,
    CiRules,
    JobFact,
    RunFact,
    Word,
    is_sha,
    is_stale,
    judge,
    mark,
    with_unread,
)

SHA, OTHER = "a" * 40, "b" * 40
OK, BAD, SKIP, STOP, GOES, WAIT = Word.SUCCESS, Word.FAILURE, Word.SKIPPED, Word.CANCELLED, Word.RUNNING, Word.WAITING
NAMED = CiRules(("check", "test"))
MIRRORED = CiRules(("check", "test"), "mirror")
ANY = CiRules()


def run(word: Word = OK, number: str = "1", *, asked: bool = True, **jobs: Word) -> RunFact:
    """One that was looked at; its jobs by name."""
    made = RunFact(number, SHA, word, jobs=tuple(JobFact(name, word) for name, word in jobs.items()))
    return replace(made, asked=made.state) if asked else made


def with_job(made: RunFact, name: str, **fields: object) -> RunFact:
    jobs = tuple(replace(job, **fields) if job.name == name else job for job in made.jobs)  # type: ignore[arg-type]
    return replace(made, jobs=jobs)


GREEN = run(check=OK, test=OK, mirror=OK)
LATER = replace(run(check=OK, test=OK, number="2"), workflow="other.yml")
ROWS: dict[str, tuple[Ci, CiRules, list[RunFact]]] = {
    "every required job": (Ci.GREEN, NAMED, [GREEN]),
    "every job there is": (Ci.GREEN, ANY, [GREEN]),
    "and the mirror": (Ci.GREEN, MIRRORED, [GREEN]),
    "no run yet": (Ci.ABSENT, NAMED, []),
    "a run of another commit": (Ci.ABSENT, NAMED, [replace(GREEN, sha=OTHER)]),
    "a run of no commit": (Ci.ABSENT, NAMED, [replace(GREEN, sha="")]),
    "a run of half a commit": (Ci.ABSENT, NAMED, [replace(GREEN, sha=SHA[:12])]),
    "a run of another trigger": (Ci.ABSENT, NAMED, [replace(GREEN, event="workflow_dispatch")]),
    "the run says success, a job failed": (Ci.RED, NAMED, [run(check=OK, test=BAD)]),
    "the run says failure, the jobs do not": (Ci.GREEN, NAMED, [run(BAD, check=OK, test=OK, lint=BAD)]),
    "one failed, others go on": (Ci.RED, NAMED, [run(GOES, check=GOES, test=BAD)]),
    "one goes on": (Ci.RUNNING, NAMED, [run(GOES, check=OK, test=GOES)]),
    "one waits": (Ci.WAITING, NAMED, [run(GOES, check=OK, test=WAIT)]),
    "one is not there yet": (Ci.WAITING, NAMED, [run(GOES, check=OK)]),
    "one is not there at the end": (Ci.RED, NAMED, [run(check=OK)]),
    "the end is not known to be the jobs'": (Ci.WAITING, NAMED, [run(check=OK, asked=False)]),
    "a required job was skipped": (Ci.SKIPPED, NAMED, [run(check=OK, test=SKIP)]),
    "a required job was cancelled": (Ci.CANCELLED, NAMED, [run(check=STOP, test=OK)]),
    "it ran out of time": (Ci.TIMED_OUT, NAMED, [with_job(run(check=OK, test=BAD), "test", reason=TIMED_OUT)]),
    "out of time, and another failed": (Ci.RED, NAMED, [with_job(run(check=BAD, test=BAD), "test", reason=TIMED_OUT)]),
    "the mirror was skipped": (Ci.MIRROR, MIRRORED, [run(check=OK, test=OK, mirror=SKIP)]),
    "the mirror failed": (Ci.MIRROR, MIRRORED, [run(check=OK, test=OK, mirror=BAD)]),
    "the mirror is missing": (Ci.MIRROR, MIRRORED, [run(check=OK, test=OK)]),
    "the mirror goes on": (Ci.RUNNING, MIRRORED, [run(GOES, check=OK, test=OK, mirror=GOES)]),
    "the mirror skipped on a red run": (Ci.RED, MIRRORED, [run(check=OK, test=BAD, mirror=SKIP)]),
    "the mirror is nobody's concern": (Ci.GREEN, NAMED, [run(check=OK, test=OK, mirror=SKIP)]),
    "somebody must approve a job": (
        Ci.NEEDS_APPROVAL, NAMED, [with_job(run(WAIT, check=OK, test=WAIT), "test", reason=NEEDS_APPROVAL)]),
    "somebody must approve the run": (Ci.NEEDS_APPROVAL, NAMED, [replace(run(WAIT), reason=NEEDS_APPROVAL)]),
    "two workflows, one red": (Ci.RED, NAMED, [GREEN, with_job(LATER, "test", word=BAD)]),
    "two workflows, one not through": (Ci.WAITING, ANY, [GREEN, replace(run(GOES, number="2"), workflow="other.yml")]),
    "the older run of a workflow is red": (Ci.GREEN, NAMED, [run(check=BAD, test=BAD), replace(GREEN, id="10")]),
    "the newer run of a workflow is red": (
        Ci.RED, NAMED, [replace(GREEN, id="9"), run(check=OK, test=BAD, number="10")]),
    "without names what may fail is left out": (
        Ci.GREEN, ANY, [with_job(run(check=OK, lint=BAD), "lint", reason=ALLOWED_TO_FAIL)]),
    "with names nothing may fail": (
        Ci.RED, NAMED, [with_job(run(check=OK, test=BAD), "test", reason=ALLOWED_TO_FAIL)]),
    "no job at all": (Ci.WAITING, ANY, [run()]),
}  # fmt: skip


@pytest.mark.parametrize(("ci", "rules", "runs"), ROWS.values(), ids=ROWS)
def test_what_the_runs_of_a_commit_come_to(ci: Ci, rules: CiRules, runs: list[RunFact]) -> None:
    """D02 D03 D04: by jobs, by name, for one commit; never by the run's own word."""
    assert judge(SHA, runs, rules).ci is ci
    assert judge(SHA, runs[::-1], rules).ci is ci


def test_a_later_attempt_of_a_job_counts_alone() -> None:
    """D03: and of two in one attempt the worse."""
    again = replace(GREEN, jobs=(*run(check=OK, test=BAD).jobs, JobFact("test", OK, attempt=2)))
    assert judge(SHA, [again], NAMED).ci is Ci.GREEN
    both = replace(GREEN, jobs=(*GREEN.jobs, JobFact("test", BAD)))
    assert judge(SHA, [both], NAMED).ci is Ci.RED


def test_a_job_can_be_named_with_its_workflow() -> None:
    """D03: a job of another workflow with that name does not stand for it."""
    rules = CiRules(("ci.yml/test",))
    assert judge(SHA, [replace(GREEN, workflow="ci.yml")], rules).ci is Ci.GREEN
    assert judge(SHA, [replace(GREEN, workflow="nightly.yml")], rules).ci is Ci.RED


def test_a_finding_tells_how_far_it_is_and_what_is_to_be_tried() -> None:
    """D04 D40: passed of total, the job at work, the cause of another run, the job that is missing."""
    at_work = judge(SHA, [run(GOES, check=OK, test=GOES)], NAMED)
    assert (at_work.passed, at_work.total, at_work.current) == (1, 2, "test")
    assert judge(SHA, [run(check=OK, test=OK, mirror=SKIP)], MIRRORED).cause == "mirror_skipped"
    assert judge(SHA, [run(check=OK, test=STOP)], NAMED).cause == "cancelled"
    assert [job.reason for job in judge(SHA, [run(check=OK)], NAMED).jobs] == [MISSING_JOB]


def test_a_run_asked_to_run_again_is_stale_until_it_does() -> None:
    """D04: the same attempt says nothing new; another one, or one that is not over, does."""
    asked = (mark(GREEN),)
    assert is_stale(GREEN, asked)
    assert not is_stale(replace(GREEN, attempt=2), asked) and not is_stale(replace(GREEN, word=GOES), asked)


@pytest.mark.parametrize("text", ["", "a" * 39, "a" * 41, "A" * 40, f"{'a' * 39}\n", "HEAD", "g" * 40])
def test_only_a_whole_name_names_a_commit(text: str) -> None:
    """D02: anything else matches too much."""
    assert not is_sha(text) and judge(text, [replace(GREEN, sha=text)], NAMED).ci is Ci.ABSENT
    assert is_sha("0" * 40) and is_sha("f" * 64)


# --- any runs at all --------------------------------------------------------------------------------------------------

names = st.sampled_from(["check", "test", "mirror", "lint"])
jobs = st.builds(JobFact, names, st.sampled_from(Word), reason=st.sampled_from(["", TIMED_OUT, NEEDS_APPROVAL]),
                 attempt=st.integers(1, 2))  # fmt: skip
runs = st.builds(
    RunFact,
    st.integers(1, 30).map(str),
    st.sampled_from([SHA, SHA, SHA, OTHER, ""]),
    st.sampled_from(Word),
    workflow=st.sampled_from(["ci.yml", "other.yml"]),
    event=st.sampled_from(["push", "push", "pull_request"]),
    jobs=st.lists(jobs, max_size=5).map(tuple),
).map(lambda made: replace(made, asked=made.state))
every = st.lists(runs, max_size=5, unique_by=lambda made: made.id)
rule_sets = st.sampled_from([NAMED, MIRRORED, ANY, CiRules((), "mirror"), CiRules(("test",), "mirror", ("push",))])


def counted(found: list[RunFact], rules: CiRules) -> list[RunFact]:
    """Per workflow the newest of this commit that a trigger of the rules began; found another way than `chosen`."""
    fitting = [one for one in found if one.sha == SHA and one.event in rules.events]
    return [one for one in fitting
            if all(int(one.id) >= int(other.id) for other in fitting if other.workflow == one.workflow)]  # fmt: skip


def last_words(one: RunFact, name: str) -> set[Word]:
    own = [job for job in one.jobs if job.name == name]
    newest = max((job.attempt for job in own), default=0)
    return {job.word for job in own if job.attempt == newest}


@settings(max_examples=300, deadline=None)
@given(every, rule_sets)
def test_green_is_never_said_without_every_required_job(found: list[RunFact], rules: CiRules) -> None:
    """D01 D02 D03: whatever else there is, each required job succeeded in each run that counts and has it."""
    finding, own = judge(SHA, found, rules), counted(found, rules)
    if finding.ci is not Ci.GREEN:
        return
    wanted = [*rules.required, *([rules.mirror_job] if rules.mirror_job else [])]
    for name in wanted:
        words = [last_words(one, name) for one in own if last_words(one, name)]
        assert words and all(each == {OK} for each in words), (name, words)
    assert own and (rules.required or all(one.word in OVER for one in own))


@settings(max_examples=300, deadline=None)
@given(every, rule_sets, st.randoms())
def test_runs_of_others_and_their_order_change_nothing(found: list[RunFact], rules: CiRules, chance: object) -> None:
    """D02 D17: another commit's run never counts, and neither does who was told first."""
    own = [one for one in found if one.sha == SHA]
    mixed = list(found)
    chance.shuffle(mixed)  # type: ignore[attr-defined]
    assert judge(SHA, found, rules) == judge(SHA, own, rules)
    assert judge(SHA, mixed, rules).ci is judge(SHA, found, rules).ci


@settings(max_examples=300, deadline=None)
@given(every, rule_sets)
def test_red_names_a_job_that_failed_and_the_mirror_alone_is_never_red(found: list[RunFact], rules: CiRules) -> None:
    """D04 D06: a fix is asked for only where a required job failed; a mirror only where all else is green."""
    finding, own = judge(SHA, found, rules), counted(found, rules)
    if finding.ci is Ci.RED:
        assert any(job.reason == MISSING_JOB or job.word is BAD for job in finding.jobs)
        assert rules.mirror_job not in {job.name for job in finding.jobs} or not rules.mirror_job
    if finding.ci is Ci.MIRROR:
        for name in rules.required:
            assert all(last_words(one, name) <= {OK} for one in own)
    if finding.ci in UNSETTLED:
        assert not finding.cause


def test_an_unreadable_workflow_is_told_from_a_job_that_failed() -> None:
    """D05: one failed job named as the commit is titled, where nobody requires a job of that name."""
    job = JobFact("fix: the port", Word.FAILURE)
    seen = RunFact("7", SHA, Word.FAILURE, "failure", workflow="ci.yml", jobs=(job,), asked="1:failure:")
    unread = with_unread(seen, "fix: the port", ("test",))
    found = judge(SHA, [unread], CiRules(("test",)))
    assert (found.ci, found.cause) == (Ci.RED, UNREAD) and "ci.yml" in found.why
    assert with_unread(seen, "another title", ("test",)) == with_unread(seen, "fix: the port", (job.name,)) == seen
    assert with_unread(replace(seen, word=Word.SUCCESS), "fix: the port", ()).unread == ""


def test_an_unreadable_workflow_that_no_required_job_misses_changes_nothing() -> None:
    """D03: the required jobs alone decide."""
    lint = RunFact("8", SHA, Word.FAILURE, "failure", workflow="lint.yml", asked="1:failure:", unread="line 3")
    job = JobFact("test", Word.SUCCESS)
    good = RunFact("7", SHA, Word.SUCCESS, "success", workflow="ci.yml", jobs=(job,), asked="1:success:")
    assert judge(SHA, [good, lint], CiRules(("test",))).ci is Ci.GREEN
    assert judge(SHA, [good, lint], CiRules()).cause == UNREAD
