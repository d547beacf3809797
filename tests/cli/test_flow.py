"""The control flow of a run, seen from outside."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.cli_project import ganger, make_project, task

pytestmark = pytest.mark.whole

WRITE = {"path": "out.txt", "op": "create", "encoding": "utf8", "content": "hello\n"}
SCRIPT = {"one": [{"garbage": "nothing useful"}, {"result": {"status": "DONE", "summary": "ok", "writes": [WRITE]}}]}


@pytest.mark.quick
def test_every_step_happens_in_the_prescribed_order(tmp_path: Path) -> None:
    """T05 T17: load, queue, run, parse, write, verify, classify, checkpoint, stop."""
    root = make_project(tmp_path, script=SCRIPT, steps=[{"name": "test", "cmd": "test -s out.txt"}])
    types = [line["type"] for line in ganger("run", "--json", cwd=root).lines]
    first_try = ["attempt_started", "attempt_launched", "attempt_exited", "result_refused", "attempt_failed"]
    second_try = ["attempt_started", "attempt_launched", "attempt_exited", "result_accepted", "writes_intended"]
    verdict = ["writes_applied", "verify_started", "verify_finished", "task_settled"]
    start, end = ["run_started", "lead_started"], ["run_finished"]
    assert types == [*start, *first_try, "task_requeued", *second_try, *verdict, *end]


@pytest.mark.quick
def test_windows_grow_while_all_goes_well(tmp_path: Path) -> None:
    """T04 T10 T28 pbh-growth: 1, 2, 3, 5 under the default schedule; nothing starts outside its window."""
    root = make_project(tmp_path, *(task(f"t{n}") for n in range(11)))
    lines = ganger("run", "--set", "policy.heal_schedule=auto", "--concurrency", "8", "--json", cwd=root).lines
    assert [len(line["tasks"]) for line in lines if line["type"] == "window_opened"] == [1, 2, 3, 5]
    inside: set[str] = set()
    for line in lines:
        inside = set(line["tasks"]) if line["type"] == "window_opened" else inside
        assert line["type"] != "attempt_started" or line["task"] in inside


def test_each_concurrent_task_has_its_own_logs(tmp_path: Path) -> None:
    """T04 T06: worker and verify logs by task and attempt."""
    script = {name: {"text": f"I am {name}", "delay": 0.2, "result": "DONE"} for name in ("a", "b", "c")}
    root = make_project(tmp_path, task("a"), task("b"), task("c"), script=script)
    assert ganger("run", "--concurrency", "3", cwd=root).code == 0
    logs = root / ".ganger/r1/logs"
    assert all((logs / f"{n}.worker.1.log").read_text().startswith(f"I am {n}\n") for n in "abc")
    assert all("=== step test" in (logs / f"{n}.verify.1.log").read_text() for n in "abc")


def test_a_hostile_id_cannot_leave_the_log_folder(tmp_path: Path) -> None:
    """T01: ids become file names safely."""
    names = ["-rf", "a b", "ä", "x:y", "$(id)", "%2e%2e", "CON", "t'\"q"]
    root = make_project(tmp_path, *(task(name) for name in names))
    before = {path for path in tmp_path.rglob("*") if ".ganger" not in path.parts}
    assert ganger("run", "--concurrency", "4", cwd=root).code == 0
    assert {path for path in tmp_path.rglob("*") if ".ganger" not in path.parts} == before
    state = json.loads((root / ".ganger/r1/state.json").read_text())
    paths = [entry["log_path"] for row in state["tasks"].values() for entry in row["history"]]
    assert len(set(paths)) == len(paths) and all((root / ".ganger/r1" / path).is_file() for path in paths)


def test_secrets_are_withheld_unless_named(tmp_path: Path) -> None:
    """An agent gets only the secrets its section names."""
    root = make_project(tmp_path)
    agent = (
        '[agents.worker]\nkind = "command"\nargv = ["env"]\nenv = ["MY_API_KEY"]\n[roles.worker]\nagent = "worker"\n'
    )
    (root / "ganger.toml").write_text('[policy]\nheal_schedule = "off"\n' + agent)
    secrets = {"MY_API_KEY": "canary-passed", "OTHER_TOKEN": "canary-one", "DB_PASSWORD": "canary-two"}
    ganger("run", cwd=root, env=secrets)
    log = (root / ".ganger/r1/logs/one.worker.1.log").read_text()
    assert "canary-passed" in log and "GANGER_TASK_ID=one" in log and "GANGER_ROLE=worker" in log
    everything = "".join(p.read_bytes().decode("latin-1") for p in (root / ".ganger").rglob("*") if p.is_file())
    assert "canary-one" not in everything and "canary-two" not in everything
