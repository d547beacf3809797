"""`ganger validate` stops at no kind of fault."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.cli_project import CONFIG, ganger, make_project, manifest, task

GIT = '[workspace]\nmode = "local-git"\n'


def found(root: Path) -> dict[str, str]:
    """Every fault's code, by its path."""
    answer = ganger("validate", "--json", cwd=root)
    assert answer.code == 1 and answer.json["ok"] is False
    return {fault["path"]: fault["code"] for fault in answer.json["errors"]}


def spoiled(root: Path, settings: str, **changes: object) -> Path:
    """A project with a fault of every kind but those that are given."""
    bad = task("one", prompt_ref="none.md", verify_profile="nothing", metadata={"role": "tester"}, oops=1)
    tasks = changes.pop("tasks", [bad, task("two", depends_on=["three"], context_refs=["no.md"])])
    assert isinstance(tasks, list)
    make_project(root, steps=[{"name": "test", "cmd": "true | cat"}])
    (root / "ganger.toml").write_text(settings)
    (root / "manifest.json").write_text(json.dumps(manifest(*tasks, **changes)))
    return root


def test_faults_of_every_kind_are_listed_together(tmp_path: Path) -> None:
    """T01: manifest, graph, prompts, profiles, roles, settings, agents, git and sandbox."""
    settings = CONFIG.replace("script.json", "gone.json") + GIT + '[limits]\nworking_min = "soon"\n[polici]\n'
    faults = found(spoiled(tmp_path, settings))
    expected = {
        "ganger.toml:polici": "UNKNOWN_FIELD",
        "tasks[0].oops": "UNKNOWN_FIELD",
        "tasks[1].depends_on[0]": "UNKNOWN_DEPENDENCY",
        "tasks[0].prompt_ref": "PROMPT_MISSING",
        "tasks[1].context_refs[0]": "PROMPT_MISSING",
        "tasks[0].verify_profile": "UNKNOWN_PROFILE",
        "tasks[0].metadata.role": "UNKNOWN_ROLE",
        "": "NOT_A_REPOSITORY",
    }
    assert expected.items() <= faults.items(), faults
    assert any(path.startswith("verify.json:profiles.check.steps[0]") for path in faults)
    assert any(path.startswith("ganger.toml:limits.working_min") for path in faults)
    assert "ganger.toml:agents.worker" in faults


@pytest.mark.parametrize("broken", [b"{", b"", b"[1]", None])
def test_a_manifest_that_cannot_be_read_hides_nothing_else(tmp_path: Path, broken: bytes | None) -> None:
    """T01: settings, profiles, agents and git are looked at all the same."""
    spoiled(tmp_path, CONFIG.replace("script.json", "gone.json") + GIT + "[polici]\n")
    path = tmp_path / "manifest.json"
    path.unlink() if broken is None else path.write_bytes(broken)
    codes = set(found(tmp_path).values())
    assert {"UNKNOWN_FIELD", "NOT_A_REPOSITORY"} <= codes and len(codes) >= 4


IDLE = '[delivery]\nreview = "person"\n[limits]\ntimeout_sec = [9, 8]\n[verify.expect]\n"check/tset" = "x"\n'


@pytest.mark.parametrize("fault", [{"oops": 1}, {"timeout_sec": "x"}, {"metadata": {"mode": "Direct"}}])
def test_a_faulty_task_hides_nothing_that_has_no_effect(tmp_path: Path, fault: dict[str, object]) -> None:
    """T01 G24: settings, keys and near misses are judged by what can be read."""
    odd = {"reviw": "person", "repo": "gone", "kind": "q"}
    make_project(tmp_path, task("one", **fault), task("two", metadata=odd))
    (tmp_path / "ganger.toml").write_text(CONFIG + IDLE)
    faults = found(tmp_path)
    paths = {"delivery.review", "limits.timeout_sec", "verify.expect.check/tset"}
    assert {f"ganger.toml:{path}" for path in paths} | {"tasks[1].metadata.kind"} <= set(faults)
    warned = ganger("validate", "--json", cwd=tmp_path).json["warnings"]
    assert {"tasks[1].metadata.reviw", "tasks[1].metadata.repo"} <= {one["path"] for one in warned}


def test_of_a_manifest_that_cannot_be_read_nobody_knows_who_reviews(tmp_path: Path) -> None:
    """T01 G24: what its tasks may bring about is not called without effect."""
    make_project(tmp_path)
    (tmp_path / "ganger.toml").write_text(CONFIG + '[delivery]\nreviewer = "worker"\n' + GIT)
    (tmp_path / "manifest.json").write_text("{")
    assert {"", "manifest.json"} >= set(found(tmp_path))
    assert ganger("validate", "--json", cwd=tmp_path).json["warnings"] == []


def test_a_faulty_profile_hides_no_command_and_no_missing_profile(tmp_path: Path) -> None:
    """T01 T17: all of the file's faults are told, and what tasks and settings ask of it."""
    make_project(tmp_path, task(verify_profile="chek"))
    step = {"name": "test", "cmd": "true | cat", "timeout_sec": "soon"}
    (tmp_path / "verify.json").write_text(json.dumps({"profiles": {"check": {"steps": [step], "oops": 1}}}))
    (tmp_path / "ganger.toml").write_text(CONFIG + '[verify.tiers]\n"check/tset" = "quality"\n')
    assert {
        "verify.json:profiles.check.oops",
        "verify.json:profiles.check.steps[0].timeout_sec",
        "verify.json:profiles.check.steps[0].cmd",
        "tasks[0].verify_profile",
        'ganger.toml:verify.tiers."check/tset"',
    } == set(found(tmp_path))


NAMED = """
[workspace]
protected = ["[bad"]
unprotected = ["fine/**", "../up"]
[roles.tester]
agent = "worker"
prompt = "roles/gone.md"
[notify]
webhook = "env:NO_SUCH_VARIABLE"
"""


def test_what_a_run_asks_for_at_its_start_is_listed_with_the_rest(tmp_path: Path) -> None:
    """T01: patterns, words of roles, variables of notices; each ended a run that validate had called sound."""
    make_project(tmp_path, task(prompt_ref="none.md"))
    (tmp_path / "ganger.toml").write_text(CONFIG + NAMED)
    assert found(tmp_path) == {
        "tasks[0].prompt_ref": "PROMPT_MISSING",
        "ganger.toml:workspace.protected[0]": "BAD_PATTERN",
        "ganger.toml:workspace.unprotected[1]": "BAD_PATTERN",
        "ganger.toml:roles.tester.prompt": "FILE_NOT_FOUND",
        "ganger.toml:notify": "NOTIFY_NOT_READY",
    }


def test_an_expected_output_that_is_no_pattern_starts_no_agent(tmp_path: Path) -> None:
    """T01 G14: an agent was paid before the check could not be judged."""
    make_project(tmp_path)
    (tmp_path / "ganger.toml").write_text(CONFIG + '[verify.expect]\n"check/test" = "("\n')
    assert found(tmp_path) == {'ganger.toml:verify.expect["check/test"]': "SCHEMA_VIOLATION"}
    answer = ganger("run", cwd=tmp_path)
    assert answer.code == 1 and "a pattern that can be read" in answer.err and not (tmp_path / ".ganger").exists()


def test_settings_that_cannot_be_read_hide_no_fault_of_the_manifest(tmp_path: Path) -> None:
    """T01: and what they would have said is not guessed at."""
    faults = found(spoiled(tmp_path, CONFIG + "policy = [[[\n"))
    assert faults["ganger.toml"] == "INVALID_TOML" and faults["tasks[0].prompt_ref"] == "PROMPT_MISSING"
    assert faults["tasks[1].depends_on[0]"] == "UNKNOWN_DEPENDENCY" and "UNKNOWN_ROLE" not in faults.values()


def test_a_faulty_setting_breeds_no_second_fault(tmp_path: Path) -> None:
    """T01: what is wrong is told once, where it is."""
    settings = CONFIG.replace('kind = "scripted"', 'kind = 7\nscript = "script.json"').replace(
        '[roles.worker]\nagent = "worker"', '[roles.worker]\nagent = "worker"\nmax_turns = "many"'
    )
    make_project(tmp_path)
    (tmp_path / "ganger.toml").write_text(settings.replace('\nscript = "script.json"\nscript', "\nscript"))
    assert all(path.startswith("ganger.toml:") for path in found(tmp_path))
    assert "UNKNOWN_AGENT" not in found(tmp_path).values()


@pytest.mark.needs("root")
def test_a_wanted_sandbox_that_is_not_there_is_listed(tmp_path: Path) -> None:
    """G05: beside everything else, before anybody is paid."""
    spoiled(tmp_path, CONFIG + '[sandbox]\nuse = "require"\n')
    without = Path(__file__).parents[2] / "scripts" / "without.py"
    words = [str(without), "bwrap", "landlock", "--", sys.executable, "-m", "ganger", "validate", "--json"]
    env = {name: value for name, value in os.environ.items() if not name.startswith("GANGER_")}
    done = subprocess.run([sys.executable, *words], cwd=tmp_path, env=env, capture_output=True, check=False)
    paths = {fault["path"] for fault in json.loads(done.stdout)["errors"]}
    assert {"ganger.toml:sandbox.use", "tasks[0].prompt_ref"} <= paths


def test_a_repository_without_a_commit_is_listed(tmp_path: Path) -> None:
    """W02: with what to do."""
    make_project(tmp_path)
    (tmp_path / "ganger.toml").write_text(CONFIG + GIT)
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    assert found(tmp_path) == {"": "NO_COMMIT"}


def test_a_remote_that_is_not_there_is_listed(tmp_path: Path) -> None:
    """T01: where something is to be pushed, and before anybody is paid."""
    make_project(tmp_path)
    (tmp_path / "ganger.toml").write_text(CONFIG + '[workspace]\nmode = "forge"\n')
    who = ["-c", "user.name=a", "-c", "user.email=a@b"]
    for call in (["init", "-q"], ["add", "-A"], [*who, "commit", "-qm", "begin"]):
        subprocess.run(["git", *call], cwd=tmp_path, check=True)
    assert found(tmp_path) == {"ganger.toml:delivery.remote": "REMOTE_UNKNOWN"}


PUSHES = GIT + '[delivery]\ncompletion = ["pushed"]\n'


def pushing(root: Path, settings: str) -> Path:
    make_project(root)
    (root / "ganger.toml").write_text(CONFIG + settings)
    who = ["-c", "user.name=a", "-c", "user.email=a@b"]
    remote = ["remote", "add", "origin", "https://127.0.0.1:9/a/b.git"]
    for call in (["init", "-q"], ["add", "-A"], [*who, "commit", "-qm", "begin"], remote):
        subprocess.run(["git", *call], cwd=root, check=True)
    return root


@pytest.mark.parametrize("key", ['token_env = "NOTOKEN"', 'token_file = "../no-token"'])
def test_a_token_that_is_not_there_is_listed(tmp_path: Path, key: str) -> None:
    """T01: a run would be refused for it at its start."""
    name = key.partition(" ")[0]
    assert found(pushing(tmp_path, PUSHES + key)) == {f"ganger.toml:delivery.{name}": "FORGE_DENIED"}


def test_an_unset_secret_of_webhooks_is_listed(tmp_path: Path) -> None:
    """T01: where something is delivered; nothing else would hear them."""
    hooks = 'webhook_port = 9\nwebhook_secret_env = "NOSECRET"\n'
    assert found(pushing(tmp_path, PUSHES + hooks)) == {"ganger.toml:delivery.webhook_secret_env": "FORGE_DENIED"}


@pytest.mark.parametrize("key", ["linked", "copied"])
def test_folders_that_cannot_be_brought_into_a_workspace_are_listed(tmp_path: Path, key: str) -> None:
    """T01: each of them was seen only at the first attempt."""
    names = '["../out", "good", "/abs", "a//b", ".git"]'
    make_project(tmp_path)
    (tmp_path / "ganger.toml").write_text(CONFIG + f'[workspace]\nmode = "local-git"\n{key} = {names}\n')
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    expected = {f"ganger.toml:workspace.{key}[{n}]": "BAD_LINK" for n in (0, 2, 3, 4)}
    assert found(tmp_path) == {"": "NO_COMMIT", **expected}


def test_a_mistyped_kind_of_an_agent_that_nobody_plays_is_told(tmp_path: Path) -> None:
    """T01: by validate and by the run, which needs it not and goes on."""
    make_project(tmp_path)
    (tmp_path / "ganger.toml").write_text(CONFIG + '[agents.spare]\nkind = "clod"\n')
    answer = ganger("validate", "--json", cwd=tmp_path)
    told = {"path": "ganger.toml:agents.spare.kind", "code": "UNKNOWN_AGENT_KIND"}
    assert (
        answer.code == 0
        and [told | {"message": one["message"]} for one in answer.json["warnings"]] == answer.json["warnings"]
    )
    assert "there is no agent kind 'clod'" in ganger("run", cwd=tmp_path).err


def test_a_sound_project_has_no_fault(tmp_path: Path) -> None:
    """T01: what is checked more does not refuse more."""
    answer = ganger("validate", "--json", cwd=make_project(tmp_path))
    assert answer.code == 0 and answer.json["errors"] == []


def test_a_person_sees_them_all(tmp_path: Path) -> None:
    """T01: one line each, then how many."""
    answer = ganger("validate", cwd=spoiled(tmp_path, CONFIG + GIT + "[polici]\n"))
    lines = answer.out.splitlines()
    assert len(lines) >= 8 and f"{len(lines)} faults" in answer.err
