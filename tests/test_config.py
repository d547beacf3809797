"""Settings: layers, origins, environment variables."""

from __future__ import annotations

from pathlib import Path

import pytest

from ganger.config import find_root, load_project, project_root
from ganger.errors import InputError, NotFoundError, UsageError

PROJECT = '[policy]\nconcurrency = 3\nbatch_size = 7\n[agents.mine]\nkind = "command"\nargv = ["a"]\n'


@pytest.fixture
def root(tmp_path: Path) -> Path:
    project = tmp_path / "project"
    project.mkdir()
    (project / "ganger.toml").write_text(PROJECT)
    (tmp_path / "config.toml").write_text("[policy]\nconcurrency = 2\nfailure_threshold = 0.5\nbatch_size = 9\n")
    return project


def values(root: Path, env: dict[str, str], flags: dict[str, object] | None = None) -> dict[str, tuple[object, str]]:
    project = load_project(root, environ={"GANGER_HOME": str(root.parent), **env}, flags=flags)
    return {s.key: (s.value, s.origin) for s in project.settings()}


def test_each_layer_wins_over_the_one_below_and_is_named(root: Path) -> None:
    """Flag, environment, project, user, default."""
    found = values(root, {"GANGER_POLICY_BATCH_SIZE": "11"}, {"policy.concurrency": 5})
    assert found["policy.concurrency"] == (5, "flag")
    assert found["policy.batch_size"] == (11, "environment GANGER_POLICY_BATCH_SIZE")
    assert found["policy.failure_threshold"] == (0.5, str(root.parent / "config.toml"))
    assert found["policy.respawns"] == (1, "default")
    assert values(root, {})["policy.batch_size"] == (7, str(root / "ganger.toml"))


def test_every_setting_can_come_from_the_environment(root: Path) -> None:
    """Strings, numbers, lists, pairs, named sections."""
    env = {
        "GANGER_MANIFEST": "other.yaml",
        "GANGER_WORKSPACE_PROTECTED": "a/**, b",
        "GANGER_LIMITS_CONCURRENCY": "2,4",
        "GANGER_AGENTS_MINE_MODEL": "big",
        "GANGER_VERIFY_TIERS": '{"p/lint": "quality"}',
    }
    config = load_project(root, environ={"GANGER_HOME": "/nowhere", **env}).config
    assert (config.manifest, config.workspace.protected) == ("other.yaml", ["a/**", "b"])
    assert (config.limits.concurrency, config.agents["mine"].model) == ([2, 4], "big")
    assert config.verify.tiers == {"p/lint": "quality"}


def test_what_differs_for_one_repository_can_come_from_the_environment_too(root: Path) -> None:
    """And the rest of its delivery is shown nowhere as if it were set here."""
    (root / "ganger.toml").write_text(f'{PROJECT}[delivery]\nbranch = "trunk"\n[repos.lib]\npath = "../lib"\n')
    env = {"GANGER_REPOS_LIB_DELIVERY_POLL_SEC": "7", "GANGER_REPOS_LIB_DELIVERY_REQUIRED_JOBS": "build,test"}
    own = load_project(root, environ={"GANGER_HOME": "/nowhere", **env}).delivery_of("lib")
    assert (own.branch, own.poll_sec, own.required_jobs) == ("trunk", 7, ["build", "test"])
    shown = {key: value for key, value in values(root, env).items() if key.startswith("repos.lib.delivery")}
    origin = "environment GANGER_REPOS_LIB_DELIVERY_POLL_SEC"
    assert len(shown) == 2 and shown["repos.lib.delivery.poll_sec"] == (7, origin)


@pytest.mark.parametrize(
    ("env", "place"),
    [
        ({"GANGER_POLICY_CONCURRENCY": "many"}, "policy.concurrency"),
        ({"GANGER_POLICY_CONCURRENCY": "0"}, "policy.concurrency"),
        ({"GANGER_POLICY_CONCURENCY": "2"}, "GANGER_POLICY_CONCURENCY"),
        ({"GANGER_WORKSPACE_MODE": "elsewhere"}, "workspace.mode"),
        ({"GANGER_POLCY_CONCURRENCY": "2"}, "GANGER_POLCY_CONCURRENCY"),
    ],
)
def test_a_wrong_variable_is_named(root: Path, env: dict[str, str], place: str) -> None:
    """Nothing is silently ignored."""
    with pytest.raises(InputError) as caught:
        load_project(root, environ={"GANGER_HOME": "/nowhere", **env})
    assert caught.value.faults[0].path == place


def test_a_worker_s_own_variables_are_no_settings(root: Path) -> None:
    """Ganger may run inside an attempt."""
    env = {"GANGER_RUN_ID": "x", "GANGER_TASK_ID": "y", "GANGER_ATTEMPT": "1", "GANGER_ROLE": "worker"}
    assert load_project(root, environ={"GANGER_HOME": "/nowhere", **env}).config.policy.concurrency == 3


def test_a_wrong_flag_is_a_usage_error(root: Path) -> None:
    """Z07: exit 64."""
    with pytest.raises(UsageError):
        load_project(root, environ={"GANGER_HOME": "/nowhere"}, flags={"policy.concurrency": "many"})


@pytest.mark.parametrize(("value", "words"), [("[60]", "at least 2 item(s)"), ("[1, 2, 3]", "at most 2 item(s)")])
def test_a_range_has_two_numbers(root: Path, value: str, words: str) -> None:
    """G24: one or three are a fault with its place, not a traceback."""
    (root / "ganger.toml").write_text(f"[limits]\ntimeout_sec = {value}\n")
    with pytest.raises(InputError) as caught:
        load_project(root, environ={"GANGER_HOME": "/nowhere"})
    assert caught.value.faults[0].path == "limits.timeout_sec" and words in caught.value.message


def test_a_role_must_name_a_configured_agent(root: Path) -> None:
    """W01: no dangling role."""
    (root / "ganger.toml").write_text(PROJECT + '[roles.worker]\nagent = "yours"\n')
    with pytest.raises(InputError) as caught:
        load_project(root, environ={"GANGER_HOME": "/nowhere"})
    assert caught.value.code == "UNKNOWN_AGENT" and "mine" in caught.value.message


def test_the_project_is_found_upwards(root: Path) -> None:
    """From any folder below."""
    deep = root / "a" / "b"
    deep.mkdir(parents=True)
    assert find_root(deep) == root
    assert project_root(None, None, deep) == root
    assert project_root(root, None, Path("/")) == root
    assert project_root(None, deep / "m.json", Path("/")) == root
    with pytest.raises(NotFoundError):
        project_root(root / "none", None, deep)
