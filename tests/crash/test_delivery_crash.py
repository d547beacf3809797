"""Leads that die on the way to the remote and the forge: a slice of what `make crash` does at every step."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from faults.planted_pushes import BUGS
from tests.patience import stretched

pytestmark = pytest.mark.whole

ROOT = Path(__file__).resolve().parents[2]


def harness(*words: str) -> subprocess.CompletedProcess[str]:
    """In a process of its own: it forks leads, which a threaded test runner should not."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTEST_CURRENT_TEST"}
    argv = [sys.executable, "-m", "faults", *words]
    return subprocess.run(argv, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=stretched(110))


# Each lead dies at the first such step it comes to; `before`: it is done, and nobody knows.
STEPS = {
    "rerun": ("before/push_intended", "after/push_intended", "before/pushed", "after/ci_seen", "before/retriggered",
              "before/ci_judged", "after/ci_judged"),
    "empty": ("before/pushed", "after/retrigger_intended", "before/head_moved", "before/pushed", "before/retriggered"),
    "linear": ("before/rebase_intended", "after/rebase_intended", "before/head_moved", "after/head_moved",
              "before/pushed"),
    "revert": ("before/revert_chosen", "after/revert_chosen", "before/reverted", "after/reverted"),
    "leave-out": ("before/commits_removed", "answered/after/removal_decided", "answered/before/set_back_intended",
              "answered/after/set_back_intended", "answered/before/head_moved", "answered/before/pushed"),
    "put-back": ("after/commits_removed", "before/removal_decided", "after/removal_decided", "before/pushed"),
    "request": ("before/pushed", "before/request_opened", "after/request_opened", "before/request_changed"),
    "request-merge": ("before/request_opened", "after/update_intended", "before/pushed", "after/merge_intended",
              "before/request_changed", "before/tracking_moved", "after/ci_judged"),
    "request-empty": ("after/request_intended", "before/retrigger_intended", "after/push_intended", "before/pushed"),
}  # fmt: skip
BRIEF = ("rerun", "request", "linear", "revert", "leave-out")


@pytest.mark.needs("strace", "git")
@pytest.mark.parametrize(
    "scene", [name if name in BRIEF else pytest.param(name, marks=pytest.mark.slow) for name in STEPS]
)
def test_leads_killed_on_the_way_push_ask_and_pay_nothing_twice(scene: str) -> None:
    """D01 D02 D04 D18: one push, one change request, one empty commit and one verdict each, as if nobody had died."""
    points = [word for step in STEPS[scene] for word in ("--point", f"{step}/*:1")]
    found = harness("delivery", "--scene", scene, *points)
    assert found.returncode == 0, found.stdout + found.stderr[-3000:]
    died = sum(int(count) for count in re.findall(r"^ +(\d+) after ", found.stdout, re.MULTILINE))
    assert died == len(STEPS[scene]), found.stdout


@pytest.mark.slow
@pytest.mark.needs("strace", "git")
@pytest.mark.parametrize("point", ["late-push/brk.1:2", "late-push/exit_group.1:1", "git-push/exit_group.1:1"])
@pytest.mark.parametrize("scene", ["rerun", "request"])
def test_a_push_that_outlives_its_lead_or_dies_alone_is_found_or_done_once(scene: str, point: str) -> None:
    """D05 D18: the remote tells what became of it."""
    found = harness("delivery", "--scene", scene, "--point", point)
    assert found.returncode == 0, found.stdout + found.stderr[-3000:]


@pytest.mark.slow
@pytest.mark.needs("strace", "git")
def test_a_keeper_that_dies_with_its_lead_costs_only_the_ci_jobs_that_ran() -> None:
    """D18 H10: local CI is begun anew, no agent is paid again, no verdict comes of it."""
    points = [word for step in ("after/pushed", "after/ci_seen", "before/retriggered", "before/ci_judged")
              for word in ("--point", f"{step}/*:1")]  # fmt: skip
    found = harness("delivery", "--scene", "rerun", "--keeper", *points)
    assert found.returncode == 0, found.stdout + found.stderr[-3000:]


CAUGHT_BRIEFLY = ("pushed-without-intent",)


@pytest.mark.needs("strace", "git")
@pytest.mark.parametrize(
    "name", [name if name in CAUGHT_BRIEFLY else pytest.param(name, marks=pytest.mark.slow) for name in BUGS]
)
def test_a_planted_bug_of_delivery_is_caught(name: str) -> None:
    """D01 D04 D17 D18: the harness is believed because it has caught each of these."""
    found = harness("planted", name)
    assert found.returncode == 0, found.stdout + found.stderr[-3000:]
