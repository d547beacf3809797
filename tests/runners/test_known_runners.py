"""Each known runner, for real: it reports by name, its own planted tests fail, and a runner that was changed shows."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from ganger.core.verify.census import TestOutcome
from ganger.ports.runners import CheckedChange
from tests.agents.installed import installed
from tests.runners.runner_projects import FETCHED, SAMPLES, Sample, lay, plant, run, try_planted

# Compilers are at hand on few machines, and slow.
COMPILED = ("cargo test", "go test", "ctest")
EACH = [
    pytest.param(
        sample,
        id=name,
        marks=[pytest.mark.needs(*sample.needs), *([pytest.mark.slow] if name in COMPILED else [])],
    )
    for name, sample in SAMPLES.items()
]
SUBVERTED = [p for p, sample in zip(EACH, SAMPLES.values(), strict=True) if sample.subverted is not None]


@pytest.fixture
def reports(tmp_path: Path) -> Path:
    (tmp_path / "reports").mkdir()
    return tmp_path / "reports"


@pytest.mark.sample(2)
@pytest.mark.parametrize("sample", EACH)
def test_it_reports_every_test_by_name(sample: Sample, tmp_path: Path, reports: Path) -> None:
    """G09: passed, failed and skipped, whatever the exit code."""
    lay(tmp_path / "project", sample.files)
    ran = run(sample, tmp_path / "project", reports)
    assert ran.code != 0 and ran.census is not None
    assert ran.census.tests[sample.passes] is TestOutcome.PASSED
    assert ran.census.tests[sample.fails] is TestOutcome.FAILED
    assert not sample.skipped or ran.census.tests[sample.skipped] is TestOutcome.SKIPPED


@pytest.mark.sample(2)
@pytest.mark.parametrize("narrow", [False, True], ids=["whole", "narrow"])
@pytest.mark.parametrize("sample", EACH)
def test_planted_tests_are_reported_as_failing(sample: Sample, tmp_path: Path, reports: Path, *, narrow: bool) -> None:
    """G09: on honest work every planted test that is reported is red, in a whole run and in a narrow one; classes that
    inherit tests of another class fail or skip what was planted there, and nobody is blamed for it."""
    project = tmp_path / "project"
    lay(project, {**sample.files, **sample.fix})
    ran = run(sample, project, reports)
    assert ran.code == 0 and ran.census is not None and not ran.census.failed
    planting = plant(ran, project, CheckedChange(tuple(sample.fix), frozenset({sample.fails})))
    if narrow and planting.narrow is None:
        pytest.skip("this command is always run whole")
    code, came = try_planted(sample, ran, planting, reports, narrow=narrow)
    assert code != 0 and came.green == () and came.broken == ()
    assert came.red >= (len(planting.tests) if not narrow else 1)


@pytest.mark.sample(2)
@pytest.mark.parametrize("sample", SUBVERTED)
def test_a_runner_that_calls_everything_passed_is_seen(sample: Sample, tmp_path: Path, reports: Path) -> None:
    """G09: the change leaves the product wrong, and the check is green; a planted test is green too."""
    assert sample.subverted is not None
    project = tmp_path / "project"
    lay(project, {**sample.files, **sample.subverted})
    ran = run(sample, project, reports)
    assert ran.code == 0 and ran.census is not None and not ran.census.failed
    planting = plant(ran, project, CheckedChange(tuple(sample.subverted), frozenset({sample.fails})))
    assert try_planted(sample, ran, planting, reports, narrow=False)[1].green


@pytest.mark.whole
@pytest.mark.parametrize("name", FETCHED)
def test_runners_of_npm_do_the_same(name: str, tmp_path: Path, reports: Path) -> None:
    """G09: jest and vitest report by name, and report planted tests as failing."""
    program = installed(name)
    project = tmp_path / "project"
    project.mkdir()
    (project / "node_modules").symlink_to(Path(program.argv[0]).parents[1])
    sample = replace(FETCHED[name], cmd=FETCHED[name].cmd.format(program=program.argv[0]))
    test_it_reports_every_test_by_name(sample, tmp_path, reports)
    test_planted_tests_are_reported_as_failing(sample, tmp_path, reports, narrow=False)


@pytest.mark.whole
def test_matchers_of_jest_that_were_replaced_are_seen(tmp_path: Path, reports: Path) -> None:
    """G09: a product that tells jest what equality is."""
    program = installed("jest")
    sample = replace(FETCHED["jest"], cmd=program.argv[0])
    test_a_runner_that_calls_everything_passed_is_seen(sample, tmp_path, reports)


@pytest.mark.parametrize("sample", [SAMPLES["pytest"], SAMPLES["unittest"]], ids=["pytest", "unittest"])
def test_a_run_that_was_ended_leaves_no_report(sample: Sample, tmp_path: Path, reports: Path) -> None:
    """G09: exit code 0 from the middle of a run."""
    project = tmp_path / "project"
    lay(project, {**sample.files, "money.py": sample.files["money.py"] + "import os\nos._exit(0)\n"})
    ran = run(sample, project, reports)
    assert ran.code == 0 and ran.census is None
    shutil.rmtree(project)
