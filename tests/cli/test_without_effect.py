"""What has no effect is told by validate, and keeps a run from beginning where a safeguard would be missing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.cli_project import CONFIG, ganger, make_project, manifest, task

pytestmark = pytest.mark.whole

GIT = '[workspace]\nmode = "local-git"\n'
DIRECT = {
    "delivery.review": '[delivery]\nreview = "person"\n',
    "workspace.merging": '[workspace]\nmerging = "level"\n',
    "workspace.land": '[workspace]\nland = "finish"\n',
    "delivery.completion": '[delivery]\ncompletion = ["verified", "committed"]\n',
    "delivery.auto_merge": "[delivery]\nauto_merge = true\n",
    "limits.concurrency": "[limits]\nconcurrency = [8, 1]\n",
    "verify.expect.check/tset": '[verify.expect]\n"check/tset" = "ok"\n',
    "sandbox.network": '[sandbox]\nuse = "off"\nnetwork = "none"\n',
    "agents.worker.permissions": '[agents.worker]\nkind = "scripted"\nscript = "script.json"\npermissions = "edit"\n'
    '[sandbox]\nuse = "off"\n',
}
IN_GIT = {
    "delivery.auto_merge": '[delivery]\nauto_merge = true\nstyle = "branch"\ncompletion = ["verified", "pushed"]\n',
    "delivery.required_jobs": '[delivery]\nrequired_jobs = ["test"]\n',
    "delivery.mirror_command": '[delivery]\nmirror_command = ["true"]\n',
}
TOLD = {
    "workspace.author": '[workspace]\nauthor = "A <a@b>"\n',
    "policy.merge_retries": "[policy]\nmerge_retries = 3\n",
    "policy.batch_size": "[policy]\nbatch_size = 3\n",
    "delivery.remote": '[delivery]\nremote = "upstream"\n',
    "notify.on": '[notify]\non = ["finish"]\n',
    "agents.worker.model": '[agents.worker]\nkind = "scripted"\nscript = "script.json"\nmodel = "m"\n',
    "health.working_warn_sec": "[health]\nworking_warn_sec = 5000\n",
    "sandbox.readable": '[sandbox]\nuse = "off"\nreadable = ["x"]\n',
}
META = {
    "review": "person",
    "mode": "forge",
    "kind": "research",
    "stage": 2,
}


def project(root: Path, settings: str, **metadata: object) -> Path:
    make_project(root, task(metadata=metadata))
    base = CONFIG if "[agents.worker]" not in settings else CONFIG.replace(CONFIG[CONFIG.index("[agents") :], "")
    base += '[roles.worker]\nagent = "worker"\n' if base != CONFIG else ""
    if "[policy]" in settings:
        base, settings = base.replace("[policy]", settings.strip()), ""
    (root / "ganger.toml").write_text(base + "\n" + settings)
    return root


def found(root: Path) -> tuple[dict[str, str], dict[str, str]]:
    said = ganger("validate", "--json", cwd=root).json
    return tuple({one["path"]: one["code"] for one in said[kind]} for kind in ("errors", "warnings"))  # type: ignore[return-value]


@pytest.mark.parametrize(("key", "settings"), [*DIRECT.items(), *((k, GIT + s) for k, s in IN_GIT.items())])
def test_a_run_does_not_begin_without_a_safeguard_that_was_asked_for(tmp_path: Path, key: str, settings: str) -> None:
    """G24: validate names it, the first start is refused, and nothing was started."""
    root = project(tmp_path, settings)
    errors, _ = found(root)
    assert f"ganger.toml:{key}" in errors
    for words in (["run"], ["run", "--dry-run"], ["run", "--detach"]):
        answer = ganger(*words, cwd=root)
        assert answer.code == 1 and key in answer.err
    assert not (root / ".ganger").exists()


@pytest.mark.parametrize(("key", "settings"), TOLD.items())
def test_what_drops_no_safeguard_is_told_and_the_run_goes_on(tmp_path: Path, key: str, settings: str) -> None:
    """G24: by validate and by the run."""
    root = project(tmp_path, settings)
    errors, warnings = found(root)
    assert errors == {} and warnings.get(f"ganger.toml:{key}") == "SETTING_WITHOUT_EFFECT"
    answer = ganger("run", cwd=root)
    assert answer.code == 0 and f"ganger.toml:{key}: " in answer.out + answer.err


@pytest.mark.parametrize("key", META)
def test_metadata_that_nothing_reads_is_refused(tmp_path: Path, key: str) -> None:
    """G24 W02 W08: a review in direct mode, another mode than the run's, a kind or a stage."""
    root = project(tmp_path, "", **{key: META[key]})
    assert found(root)[0] == {f"tasks[0].metadata.{key}": "METADATA_WITHOUT_EFFECT"}
    assert ganger("run", cwd=root).code == 1


@pytest.mark.parametrize("mode", ["direct", "local-git"])
def test_a_rollback_that_is_not_wanted_is_told_where_there_is_none(tmp_path: Path, mode: str) -> None:
    """G24 T18: it keeps a failed change in the folder of direct mode; elsewhere none comes there."""
    root = project(tmp_path, GIT.replace("local-git", mode))
    profile = {"steps": [{"name": "test", "cmd": "true"}], "rollback_on_failure": False}
    (root / "verify.json").write_text(json.dumps({"profiles": {"check": profile}}))
    assert ("verify.json:profiles.check.rollback_on_failure" in found(root)[1]) == (mode == "local-git")


def test_a_run_that_has_begun_goes_on_and_tells_it(tmp_path: Path) -> None:
    """G24: nobody's night ends because of a setting that was written into it later."""
    tasks = [task("a"), task("b", depends_on=["a"])]
    root = make_project(tmp_path, *tasks)
    assert ganger("run", "--max-tasks", "1", cwd=root).code != 64
    (root / "ganger.toml").write_text(CONFIG + DIRECT["delivery.review"])
    (root / "manifest.json").write_text(json.dumps(manifest(tasks[0], {**tasks[1], "metadata": {"kind": "research"}})))
    answer = ganger("run", cwd=root)
    assert answer.code == 0, answer.err
    said = answer.out + answer.err
    assert "ganger.toml:delivery.review" in said and "tasks[1].metadata.kind" in said


def test_near_misses_are_told_and_other_tools_keys_are_not(tmp_path: Path) -> None:
    """G24 T01: {"reviw": "person"} looks like a safeguard and is none."""
    keys = {"reviw": "person", "maxAttempts": 3, "may-change-gates": True, "owner": "ann", "model": "big", "jira": 7}
    root = project(tmp_path, "", **keys)
    errors, warnings = found(root)
    assert errors == {}
    assert {path.rpartition(".")[2] for path in warnings} == {"reviw", "maxAttempts", "may-change-gates"}
    assert set(warnings.values()) == {"METADATA_NEAR_MISS"}
    assert "only 'review'" in ganger("run", cwd=root).err


def test_one_mistake_in_many_tasks_is_told_once(tmp_path: Path) -> None:
    """G24: with how many tasks have it."""
    root = make_project(tmp_path, *(task(f"t{n}", metadata={"reviw": "x"}) for n in range(300)))
    told = ganger("validate", "--json", cwd=root).json["warnings"]
    assert len(told) == 1 and "(and in 299 more tasks)" in told[0]["message"]


def test_defaults_nobody_wrote_and_values_that_ask_for_nothing_are_silent(tmp_path: Path) -> None:
    """G24: an empty review asks for none, a false flag for nothing."""
    quiet = '[delivery]\nreview = ""\nauto_merge = false\nlabels = []\n[workspace]\nland = "ask"\n'
    assert found(project(tmp_path, quiet)) == ({}, {})


def test_the_layer_a_setting_came_from_is_named(tmp_path: Path) -> None:
    """G24: whoever set a variable does not look for it in ganger.toml."""
    root = project(tmp_path, "")
    answer = ganger("validate", cwd=root, env={"GANGER_DELIVERY_REVIEW": "person"})
    assert answer.code == 1 and "(from environment GANGER_DELIVERY_REVIEW)" in answer.out
    flag = ganger("run", "--set", "workspace.merging=level", cwd=root)
    assert flag.code == 1 and "(from flag)" in flag.err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--reconcile", "--dry-run"), "--reconcile: has no effect"),
        (("--detach", "--dry-run"), "--detach: has no effect"),
        (("--max-tasks", "1", "--dry-run"), "--max-tasks: has no effect"),
    ],
)
def test_a_flag_that_has_no_effect_is_told(tmp_path: Path, words: tuple[str, ...], told: str) -> None:
    """G24: flags too."""
    answer = ganger("run", *words, cwd=project(tmp_path, ""))
    assert answer.code == 0 and told in answer.err


def test_a_retry_policy_that_widens_or_names_no_class_is_told(tmp_path: Path) -> None:
    """G24 T13: it only narrows."""
    root = make_project(tmp_path, task(retry_policy={"max_attempts": 9, "retry_on": ["test_eror"]}))
    assert {path.rpartition(".")[2] for path in found(root)[1]} == {"max_attempts", "retry_on"}
