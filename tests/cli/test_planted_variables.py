"""Forty secrets with odd names in the environment of a run whose agent and check print theirs."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from tests.cli.cli_project import ganger, manifest, task

pytestmark = pytest.mark.whole

NAMES = (
    *("STRIPE", "MYAPP_LICENSE", "HF_HOME_X", "SENTRY", "foo", "Bar", "DB", "PGSERVICE", "VAULT_ADDR", "OP", "SALT"),
    *("PEPPER", "LICENSE", "CERT", "PIN", "SEED", "MNEMONIC", "WALLET", "ACCOUNT", "TENANT", "CLIENT_ID", "LOGIN"),
    *("SMTP", "MAILGUN", "TWILIO_SID", "SLACK", "DISCORD", "TELEGRAM", "ROLLBAR", "DATADOG", "NEWRELIC", "FASTLY"),
    *("LC_SECRET", "GIT_AUTHOR_SECRET", "PIP_EXTRA", "NODE_OPTIONS_X", "path", "HOMEX", "XDG_STASH", "CI_JOB"),
)
PLANTED = {name: f"planted-{number:02}-Zq7X2m4V6" for number, name in enumerate(NAMES)}
NAMED = {"ROLLBAR", "DATADOG"}
LOUD = """import os, sys
print("\\n".join(f"{name}={value}" for name, value in sorted(os.environ.items())))
for value in os.environ.values():
    if value.startswith("planted-"):
        print("Error: cannot log in with", value, file=sys.stderr)
"""
AGENT = (
    LOUD
    + """
import json
said = [value for value in os.environ.values() if value.startswith("planted-")]
task = os.environ["GANGER_TASK_ID"]
result = {"contract_version": "2.0", "task_id": task, "status": "STATUS", "summary": f"used {said}"}
print("<<<TASK_RESULT_V2>>>\\n" + json.dumps(result) + "\\n<<<END_TASK_RESULT_V2>>>")
"""
)
CONFIG = """
[policy]
heal_schedule = "{schedule}"
max_worker_attempts_per_task = 2
[agents.worker]
kind = "command"
argv = ["python3", "agent.py"]
env = ["ROLLBAR"]
[agents.mender]
kind = "command"
argv = ["python3", "agent.py"]
[roles.worker]
agent = "worker"
[roles.healer]
agent = "mender"
[verify]
env = ["DATADOG"]
"""
SCREENS = (
    *(("status", "--json"), ("events", "--json"), ("inbox",), ("why", "one", "--json"), ("logs", "one", "--json")),
    *(("logs", "one", "--verify"), ("logs", "one", "--raw")),
)


def make(root: Path, *, status: str = "DONE", schedule: str = "off") -> Path:
    files = {
        "ganger.toml": CONFIG.format(schedule=schedule),
        "agent.py": AGENT.replace("STATUS", status),
        "check.py": LOUD + "sys.exit(1)\n",
        "prompt.md": "Do it.\n",
        "verify.json": json.dumps({"profiles": {"check": {"steps": [{"name": "t", "cmd": "python3 check.py"}]}}}),
        "manifest.json": json.dumps(manifest(task())),
    }
    for name, text in files.items():
        (root / name).write_text(text)
    return root


def holding(root: Path, values: set[str]) -> dict[str, set[str]]:
    """Which files hold which of the planted variables."""
    found: dict[str, set[str]] = {}
    for path in root.rglob("*"):
        if path.is_file() and not path.is_symlink():
            data = path.read_bytes()
            held = {name for name in values if PLANTED[name].encode() in data or PLANTED[name][:16].encode() in data}
            found |= {str(path.relative_to(root)): held} if held else {}
    return found


@pytest.mark.parametrize(
    ("status", "schedule"), [("DONE", "off"), ("FAILED", "off"), ("BLOCKED", "off"), ("DONE", "task")]
)
def test_forty_odd_secrets_stay_with_the_operator(tmp_path: Path, status: str, schedule: str) -> None:
    """D19 G05: what nobody named is nowhere; what was named is in raw logs that only their owner reads, and masked."""
    root = make(tmp_path, status=status, schedule=schedule)
    assert ganger("run", cwd=root, env=PLANTED).code != 0
    found = holding(root / ".ganger", set(PLANTED))
    assert found and set.union(*found.values()) <= NAMED
    assert all("/logs/" in f"/{name}" and name.endswith(".log") for name in found), found
    assert all(stat.S_IMODE((root / ".ganger" / name).stat().st_mode) == 0o600 for name in found)
    assert json.loads((root / ".ganger" / "r1" / "state.json").read_text())


def test_no_screen_shows_what_was_handed_on(tmp_path: Path) -> None:
    """D19: raw logs are masked where they are shown, in every form."""
    root = make(tmp_path)
    ganger("run", cwd=root, env=PLANTED)
    for words in SCREENS:
        shown = ganger(*words, cwd=root, env=PLANTED)
        assert "planted-" not in shown.out + shown.err, (words, shown.out)
    assert "[masked]" in ganger("logs", "one", cwd=root, env=PLANTED).out


def test_a_run_can_be_shown_by_somebody_without_its_environment(tmp_path: Path) -> None:
    """D19: every screen and the replay work; what is kept holds no value."""
    root = make(tmp_path)
    ganger("run", cwd=root, env=PLANTED)
    for words in (("status",), ("events",), ("why", "one"), ("replay",), ("logs", "one"), ("logs", "one", "--json")):
        shown = ganger(*words, cwd=root)
        assert shown.code in (0, 1) and "planted-" not in shown.out, words
    verified = ganger("logs", "one", "--verify", cwd=root).out
    assert "planted-" not in verified and "DATADOG=[masked]" in verified


def test_a_write_that_holds_a_handed_value_is_refused_for_good(tmp_path: Path) -> None:
    """D12 D19: whatever it looks like, it is known exactly; the refusal names the variable and not its value."""
    root = make(tmp_path)
    write = {"path": "x.txt", "op": "create", "encoding": "utf8", "content": "a\nPLACE\n"}
    loud = AGENT.replace('"summary": f"used {said}"', f'"summary": "done", "writes": [{write}]')
    (root / "agent.py").write_text(
        loud.replace("'a\\nPLACE\\n'", "'a\\n' + os.environ['ROLLBAR']").replace("STATUS", "DONE")
    )
    (root / "check.py").write_text("")
    ganger("run", cwd=root, env=PLANTED)
    assert not (root / "x.txt").exists()
    told = ganger("why", "one", cwd=root, env=PLANTED).out
    assert "line 2 holds the value of ROLLBAR" in told and "planted-" not in told


@pytest.mark.needs("bwrap")
def test_secret_files_of_a_project_are_read_by_no_agent_and_copied_nowhere(tmp_path: Path) -> None:
    """D19 G05: in the project's own folder too, where what agents do is watched and can be undone."""
    root = make(tmp_path)
    (root / ".env").write_text("A=canary-in-a-file\n")
    (root / ".npmrc").write_text("//host/:_authToken=canary-in-a-file\n")
    edits = "open('made.txt', 'w').write('x')\nprint(open('.env').read(), open('.npmrc').read())\n"
    (root / "agent.py").write_text(edits + AGENT.replace("STATUS", "DONE").replace("used {said}", "made it"))
    (root / "check.py").write_text("print(open('.env').read())\n")
    ran = ganger("run", cwd=root, env={"GANGER_SANDBOX_USE": "require"})
    assert ran.code == 0 and (root / "made.txt").read_text() == "x", ran.out + ran.err
    assert [
        path for path in (root / ".ganger").rglob("*") if path.is_file() and b"canary-in" in path.read_bytes()
    ] == []
    assert "canary-in-a-file" in (root / ".env").read_text()


def test_names_that_are_not_set_are_told_before_a_run(tmp_path: Path) -> None:
    """D19: by validate and by the doctor; a run goes on without them."""
    root = make(tmp_path)
    told = ganger("validate", cwd=root)
    assert told.code == 0 and "ROLLBAR" in told.out + told.err and "DATADOG" in told.out + told.err
    assert "agents.worker.env" in told.out + told.err and "verify.env" in told.out + told.err
    assert "ROLLBAR" in ganger("doctor", cwd=root).out


def test_a_red_check_is_told_which_variables_it_did_not_get(tmp_path: Path) -> None:
    """D19: names, never values; in its log, and in `why` where its error names one of them."""
    root = make(tmp_path)
    (root / "check.py").write_text("raise SystemExit('Error: STRIPE is not set')\n")
    ganger("run", cwd=root, env=PLANTED)
    log = ganger("logs", "one", "--verify", cwd=root, env=PLANTED).out
    assert "not passed on" in log and "verify.env" in log and "STRIPE" in log and "planted-" not in log
    assert "name STRIPE in verify.env" in ganger("why", "one", cwd=root, env=PLANTED).out
