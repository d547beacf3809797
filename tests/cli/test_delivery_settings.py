"""Settings of delivery that could never work are named before anything runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ganger.app.checks.project import check_project
from ganger.config import load_project
from ganger.demo.delivery import build_delivery
from tests.cli.cli_project import CONFIG, ganger, make_project

JOBS = '[delivery.jobs]\ntest = ["make"]\nmirror = ["push"]\n'
GIT = '[workspace]\nmode = "local-git"\n'
MIRRORED = '[delivery]\ncompletion = ["ci", "mirrored"]\nforge = "github"\n'
NO_REQUESTS = "there are no change requests where CI is a local command"


@pytest.mark.parametrize(
    ("settings", "place", "message"),
    [
        ('[delivery]\ncompletion = ["pushed"]\n', "delivery.completion", "has to be a commit"),
        (GIT + '[delivery]\ncompletion = ["ci"]\n', "delivery.forge", "nothing says who runs CI"),
        (GIT + '[delivery]\ncompletion = ["mirrored"]\n', "delivery.forge", "asks for mirrored"),
        (GIT + '[delivery]\ncompletion = ["ci"]\nforge = "command"\n', "delivery.jobs", "no CI job is configured"),
        (GIT + f'[delivery]\nforge = "command"\nstyle = "request"\n{JOBS}', "delivery.style", NO_REQUESTS),
        (GIT + f'[delivery]\nforge = "command"\nrequired_jobs = ["lint"]\n{JOBS}', "required_jobs", "no job 'lint'"),
        (
            GIT + f'[delivery]\ncompletion = ["mirrored"]\nforge = "command"\nmirror_job = "rad"\n{JOBS}',
            "delivery.mirror_job",
            "no job 'rad'; there are: test, mirror",
        ),
        (GIT + '[delivery]\nforge = "command"\n[delivery.jobs]\ntest = []\n', "delivery.jobs.test", "names no program"),
        (GIT + f'[delivery]\nforge = "github"\n{JOBS}', "delivery.jobs", "github runs its own"),
        (GIT + '[delivery]\nreview = "agent"\n', "delivery.reviewer", "no agent plays the role 'reviewer'"),
        (GIT + '[delivery]\nremote = "https://ann:word@git.corp.net/x"\n', "delivery.remote", "sees its password"),
        (GIT + '[delivery]\nbranch_name = "ganger/{run}"\n', "delivery.branch_name", "a branch of its own"),
        (GIT + '[delivery]\nbranch_name = "{task}/{who}"\n', "delivery.branch_name", "only {run} and {task}"),
        (GIT + '[delivery]\nbranch_name = "a:{task}"\n', "delivery.branch_name", "git takes no branch"),
        (GIT + '[delivery]\nbranch_name = "/{task}.lock"\n', "delivery.branch_name", "git takes no branch"),
        (GIT + MIRRORED + "expects_ci = false\n", "delivery.expects_ci", "the mirror job is part of CI"),
        (GIT + MIRRORED + 'ci_paths_ignore = ["*.md"]\n', "delivery.ci_paths_ignore", "the mirror job is part of CI"),
        (GIT + '[delivery]\nci_paths_ignore = ["!a.md"]\n', "delivery.ci_paths_ignore", "begins with '!'"),
        ("[delivery]\nwebhook_port = 8765\n", "delivery.webhook_secret_env", "unsigned webhooks can come from anyone"),
    ],
)
def test_a_setting_that_can_never_work_is_a_fault(tmp_path: Path, settings: str, place: str, message: str) -> None:
    """D01 D04 W08: named with its place and what to do, by one code."""
    root = make_project(tmp_path)
    (root / "ganger.toml").write_text(CONFIG + settings)
    found = check_project(load_project(root, environ={})).faults
    assert [fault.code for fault in found] == ["DELIVERY_UNFIT"]
    assert place in found[0].path and message in found[0].message


def test_a_repositorys_own_settings_are_judged_over_the_projects(tmp_path: Path) -> None:
    """D19: what it does not say itself holds from the project; the place names whose it is."""
    office = build_delivery(tmp_path)
    config = (office / "ganger.toml").read_text()
    assert check_project(load_project(office, environ={})).faults == []
    (office / "ganger.toml").write_text(config + '\n[repos.app.delivery]\nmirror_job = "other"\n')
    found = check_project(load_project(office, environ={})).faults
    assert [(fault.code, fault.path) for fault in found] == [
        ("DELIVERY_UNFIT", "ganger.toml:repos.app.delivery.mirror_job")
    ]


def test_a_task_cannot_do_without_ci_where_a_job_of_it_mirrors(tmp_path: Path) -> None:
    """D01 D04: named at the task."""
    root = make_project(tmp_path)
    (root / "ganger.toml").write_text(CONFIG + GIT + MIRRORED)
    manifest = json.loads((root / "manifest.json").read_text())
    manifest["tasks"][0]["metadata"] = {"expects_ci": False}
    (root / "manifest.json").write_text(json.dumps(manifest))
    found = check_project(load_project(root, environ={})).faults
    assert [(fault.code, fault.path) for fault in found] == [("DELIVERY_UNFIT", "tasks[0].metadata.expects_ci")]


def test_the_code_can_be_explained(tmp_path: Path) -> None:
    """G10: as every other."""
    assert "can never work" in ganger("explain", "DELIVERY_UNFIT", cwd=tmp_path).out


@pytest.mark.whole
def test_config_show_has_no_password_of_an_address(tmp_path: Path) -> None:
    """D19: an address that came with one is shown without."""
    root = make_project(tmp_path)
    (root / "ganger.toml").write_text(CONFIG + '[delivery]\nremote = "https://ann:opens-it@git.corp.net/x"\n')
    for words in (["config", "show"], ["config", "show", "--json"]):
        shown = ganger(*words, cwd=root).out
        assert "https://ann:[masked]@git.corp.net/x" in shown and "opens-it" not in shown
