"""Who never sees what opens a forge: agents, checks, CI jobs, hooks."""

from __future__ import annotations

from pathlib import Path

import pytest

from ganger.app.agents import make_agents
from ganger.app.compose import protection_of, verify_environment
from ganger.app.sandbox import sandbox_settings
from ganger.config import Project, load_project
from ganger.core.verify.environment import tool_environment
from ganger.ports.agents import AttemptContext
from ganger.ports.processes import Launch
from ganger.ports.sandbox import Room
from ganger.sandboxes.view import Access, view

TOKEN = "plain-word-opens-it"
CONFIG = """
[agents.one]
kind = "command"
argv = ["true"]
env = {env}
[agents.two]
kind = "copilot"
[delivery]
token_env = "{name}"
token_file = "{file}"
forge = "command"
mirror_job = "mirror"
[delivery.jobs]
mirror = ["sh", "tools/mirror.sh", "{{sha}}"]
[repos.lib]
path = "lib"
[repos.lib.delivery]
webhook_secret_env = "HOOK"
"""


@pytest.fixture(autouse=True)
def _given(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("FORGE", "GITHUB_TOKEN", "COPY_OF_IT"):
        monkeypatch.setenv(name, f"x:{TOKEN}" if name == "COPY_OF_IT" else TOKEN)
    monkeypatch.setenv("HOOK", "signs-webhooks")


def project_at(root: Path, name: str = "FORGE", *, env: str = "[]", file: str = "") -> Project:
    (root / "ganger.toml").write_text(CONFIG.format(name=name, env=env, file=file))
    (root / "tools").mkdir(exist_ok=True)
    (root / "tools/mirror.sh").write_text("git push\n")
    return load_project(root)


def launch_env(project: Project, agent: str, root: Path) -> dict[str, str]:
    prompt = root / "prompt.md"
    prompt.write_text("do it")
    context = AttemptContext("run", "a", 1, "worker", root, prompt, root / "log", 10.0)
    return dict(make_agents(project)[agent].prepare(context).env)


@pytest.mark.parametrize(("agent", "name"), [("one", "FORGE"), ("two", "GITHUB_TOKEN")])
def test_no_agent_gets_the_forges_token_whatever_its_variable_is_called(tmp_path: Path, agent: str, name: str) -> None:
    """D19: not under its name, not as a copy, and not because the agent's own program would take it for a key."""
    given = launch_env(project_at(tmp_path, name), agent, tmp_path)
    assert given and not any(secret in value for value in given.values() for secret in (TOKEN, "signs-webhooks"))


def test_an_agent_whose_settings_name_the_variable_gets_it(tmp_path: Path) -> None:
    """D19: the operator may share one token; nobody else gets it by that."""
    project = project_at(tmp_path, env='["FORGE"]')
    given = launch_env(project, "one", tmp_path)
    assert given["FORGE"] == TOKEN and "COPY_OF_IT" not in given
    assert TOKEN not in str(tool_environment(project.handed_on()))


def test_no_check_and_no_ci_job_gets_the_token(tmp_path: Path) -> None:
    """D19: what an agent wrote runs there."""
    given = verify_environment(project_at(tmp_path))
    assert given["PATH"] and not {"FORGE", "HOOK", "COPY_OF_IT"}.intersection(given)


def test_walls_hide_the_token_file_also_where_its_folder_is_granted(tmp_path: Path) -> None:
    """D19: a folder that is opened for agents does not open the token in it."""
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / "token").write_text(TOKEN)
    root = tmp_path / "project"
    root.mkdir()
    project_at(root, file=str(kept / "token"))
    with (root / "ganger.toml").open("a") as config:
        config.write(f'[sandbox]\nreadable = ["{kept}"]\n')
    launch = Launch("k", ("true",), root, {}, None, root / "log", 10.0)
    seen = view(sandbox_settings(load_project(root)), Room(), launch, "/bin/true")
    spot, beside = seen.around(str(kept / "token")), seen.around(str(kept / "other"))
    assert spot is not None and spot.access is Access.HIDDEN
    assert beside is not None and beside.access is Access.READ


def test_what_mirrors_outside_the_walls_is_changed_by_no_agent(tmp_path: Path) -> None:
    """D17: the mirror job runs a file of the commit with the operator's rights."""
    project = project_at(tmp_path)
    assert "/tools/mirror.sh" in protection_of(project, project.manifest_path).patterns
