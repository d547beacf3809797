"""What every command answers, to people and to programs."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from ganger.cli.shell.table import COMMANDS
from tests.cli.cli_project import Answer, ganger, make_project, task
from tests.patience import stretched

WRITE = {"path": "out.txt", "op": "create", "encoding": "utf8", "content": "hello\n"}
SCRIPT = {
    "good": [{"result": {"status": "DONE", "summary": "made it", "writes": [WRITE]}}],
    "bad": [{"text": "\x1b[31mtrying\x1b[0m", "result": {"status": "FAILED", "summary": "no idea"}}],
    "stuck": [{"result": {"status": "BLOCKED", "summary": "needs a key"}}],
}
TASKS = (task("good"), task("bad", retry_policy={"max_attempts": 1}), task("stuck"), task("after", depends_on=["bad"]))


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = make_project(tmp_path_factory.mktemp("finished"), *TASKS, script=SCRIPT)
    (root / "first.json").write_text(json.dumps(ganger("run", "--json", cwd=root).lines))
    return root


def run_again(root: Path) -> Answer:
    return ganger("run", "--json", cwd=root)


def test_run_prints_events_and_ends_with_run_finished(finished: Path) -> None:
    """T26 Z07: JSON lines; the last one has status, counts and reason."""
    lines = json.loads((finished / "first.json").read_text())
    last = lines[-1]
    assert {line["schema"] for line in lines} == {"ganger.event/1"}
    assert [line["seq"] for line in lines] == list(range(1, len(lines) + 1))
    assert (last["type"], last["run_status"]) == ("run_finished", "ABORTED")
    assert last["counts"] == {"PENDING": 0, "RUNNING": 0, "DONE": 1, "BLOCKED": 2, "FAILED": 1, "ESCALATED": 0}
    assert "bad FAILED" in last["abort_reason"]


def test_status_counts_and_names_what_is_open(finished: Path) -> None:
    """T26: status."""
    answer = ganger("status", "--json", cwd=finished).json
    assert (answer["run_id"], answer["run_status"], answer["total"]) == ("r1", "ABORTED", 4)
    assert {row["id"] for row in answer["open_tasks"]} == {"bad", "stuck", "after"}
    assert "run r1: ABORTED" in ganger("status", cwd=finished).out


def test_tasks_lists_every_task_in_plan_order(finished: Path) -> None:
    """T02: plan order."""
    rows = ganger("tasks", "--json", cwd=finished).json["tasks"]
    assert [row["id"] for row in rows] == ["good", "bad", "stuck", "after"]
    assert [row["id"] for row in ganger("tasks", "--status", "failed", "--json", cwd=finished).json["tasks"]] == ["bad"]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("good", "good is DONE: verified by check"),
        ("bad", "bad FAILED: the worker reported failure: no idea"),
        ("stuck", "stuck is BLOCKED (external): the worker is blocked: needs a key"),
        ("after", "after is BLOCKED because its dependency bad (FAILED) did not end DONE"),
    ],
)
def test_why_answers_in_one_sentence_with_evidence(finished: Path, name: str, said: str) -> None:
    """G10: sentence, evidence, counters."""
    answer = ganger("why", name, "--json", cwd=finished).json
    assert answer["sentence"].startswith(said) and answer["counters"]["worker_attempts"]
    assert ganger("why", name, cwd=finished).out.startswith(said)
    assert name == "after" or any("logs/" in line for line in answer["evidence"])


def test_why_knows_that_a_task_waits(tmp_path: Path) -> None:
    """G10: not reached, and waiting for what."""
    root = make_project(tmp_path, task("a"), task("b", depends_on=["a"]), task("c"))
    assert ganger("run", "--max-tasks", "1", cwd=root).code == 0
    assert "was not reached" in ganger("why", "c", cwd=root).out
    assert ganger("status", "--json", cwd=root).json["run_status"] == "RUNNING"


def test_logs_show_what_was_printed_without_terminal_codes(finished: Path) -> None:
    """T06: combined output; --raw keeps the bytes."""
    assert ganger("logs", "bad", cwd=finished).out.startswith("trying\n")
    assert ganger("logs", "bad", "--raw", cwd=finished).out.startswith("\x1b[31mtrying")
    assert "=== step test" in ganger("logs", "good", "--verify", cwd=finished).out
    assert ganger("logs", "good", "--json", cwd=finished).json["attempt"] == 1
    assert ganger("logs", "after", cwd=finished).code == 1


def test_events_can_be_read_from_any_number_on(finished: Path) -> None:
    """T26: since."""
    everything = ganger("events", "--json", cwd=finished).lines
    assert ganger("events", "--json", "--since", "5", cwd=finished).lines == everything[5:]
    assert ganger("events", "--follow", "--json", cwd=finished).lines == everything


def test_state_export_equals_the_file_and_init_never_overwrites(finished: Path, tmp_path: Path) -> None:
    """T19 T26: state init and export."""
    assert ganger("state", "export", cwd=finished).out == (finished / ".ganger/r1/state.json").read_text()
    root = make_project(tmp_path)
    assert ganger("state", "init", cwd=root).code == 0
    fresh = json.loads((root / ".ganger/r1/state.json").read_text())
    assert (fresh["run_status"], fresh["tasks"]["one"]["status"]) == ("RUNNING", "PENDING")
    assert ganger("state", "init", cwd=root).code == 1
    assert ganger("run", cwd=root).code == 0


def test_the_report_names_every_task(finished: Path) -> None:
    """T22: the reason is in the summary too."""
    text = (finished / ".ganger/r1/report.md").read_text()
    assert all(f"**{name}**" in text for name in ("good", "bad", "stuck", "after"))
    assert "3 of 4 tasks are not done: bad FAILED" in text


def test_a_finished_run_is_not_run_again(finished: Path) -> None:
    """T20: what is DONE stays done, what may not be retried is not."""
    again = [line for line in run_again(finished).lines if line["type"] == "attempt_started"]
    assert {line["task"] for line in again} <= {"stuck"}


def test_plan_and_validate_answer_programs(finished: Path) -> None:
    """T02 T26: order, levels, digest, clashes."""
    plan = ganger("plan", "--json", cwd=finished).json
    assert plan["order"] == ["good", "bad", "stuck", "after"] and plan["levels"][1] == ["after"]
    assert len(plan["digest"]) == 64 and plan["clashes"] == []
    assert ganger("validate", "--json", cwd=finished).json["errors"] == []


def test_clashes_are_named_with_both_tasks(tmp_path: Path) -> None:
    """Z08: two tasks of one level that write one file."""
    files = {"files_modify": ["src/a.py"]}
    root = make_project(tmp_path, task("a", metadata=files), task("b", metadata=files))
    clash = {"file": "src/a.py", "level": 0, "tasks": ["a", "b"]}
    assert ganger("plan", "--json", cwd=root).json["clashes"] == [clash]
    assert "a, b" in ganger("plan", cwd=root).out


def test_dry_run_starts_nothing(tmp_path: Path) -> None:
    """T26: what would run, and how often at most."""
    root = make_project(tmp_path)
    answer = ganger("run", "--dry-run", "--json", cwd=root).json
    assert (answer["order"], answer["most_attempts"]) == (["one"], 4)
    assert not (root / ".ganger").exists()


def test_what_there_is_one_of_is_called_one(tmp_path: Path) -> None:
    """T26: a plan and a dry run of a single task."""
    root = make_project(tmp_path)
    for words in (("plan",), ("run", "--dry-run"), ("state", "init")):
        said = ganger(*words, cwd=root)
        assert "1 task" in said.out + said.err and not re.search(r"\b1 \w+s\b", said.out + said.err)


def test_only_runs_the_named_tasks(tmp_path: Path) -> None:
    """T03: the rest stays PENDING and the run open."""
    root = make_project(tmp_path, task("a"), task("b"))
    last = ganger("run", "--only", "b", "--json", cwd=root).lines[-1]
    assert (last["run_status"], last["counts"]["DONE"], last["counts"]["PENDING"]) == ("RUNNING", 1, 1)
    assert ganger("run", "--only", "nope", cwd=root).code == 1
    assert ganger("run", cwd=root).code == 0


@pytest.mark.brief(2)
@pytest.mark.parametrize("code", ["NO_SENTINEL", "test_error", "PATH_PROTECTED", "COMMAND_DENIED", "dependency_failed"])
def test_explain_knows_codes_classes_and_reasons(tmp_path: Path, code: str) -> None:
    """T26: explain."""
    answer = ganger("explain", code, "--json", cwd=tmp_path).json
    assert answer["code"] == code and answer["meaning"] and answer["next_step"]


def test_explain_suggests_for_a_misspelt_code(tmp_path: Path) -> None:
    """T26: explain."""
    assert "NO_SENTINEL" in ganger("explain", "NO_SENTINL", cwd=tmp_path).err
    assert ganger("explain", cwd=tmp_path).out.count("\n") > 50


@pytest.mark.brief(2)
@pytest.mark.parametrize(
    "name", ["manifest", "task_result", "heal_decision", "state", "verify_profile", "config", "events"]
)
def test_schemas_are_printed(tmp_path: Path, name: str) -> None:
    """T09: published schemas."""
    answer = ganger("schema", name, cwd=tmp_path).json
    assert answer["$schema"].endswith("2020-12/schema")


def test_events_fit_their_schema(finished: Path) -> None:
    """T09: what is printed is what is published."""
    import jsonschema_rs

    check = jsonschema_rs.validator_for(ganger("schema", "events", cwd=finished).json)
    for line in ganger("events", "--json", cwd=finished).lines:
        check.validate(line)


def test_doctor_agents_and_config_answer(finished: Path) -> None:
    """T26: doctor; every setting with its origin."""
    assert ganger("doctor", "--json", cwd=finished).json["ok"] is True
    agent = ganger("agents", "--check", "--json", cwd=finished).json["agents"][0]
    assert (agent["name"], agent["kind"], agent["ready"]) == ("worker", "scripted", True)
    settings = {row["key"]: row for row in ganger("config", "show", "--json", cwd=finished).json["settings"]}
    assert settings["policy.heal_schedule"]["origin"].endswith("ganger.toml")


@pytest.mark.parametrize(
    ("log", "code", "words"),
    [
        ("<<<TASK_RESULT_V2>>>\n{}\n", "NO_SENTINEL", ()),
        ("<<<TASK_RESULT_V2>>>\n{]\n<<<END_TASK_RESULT_V2>>>\n", "INVALID_JSON", ()),
        ("<<<TASK_RESULT_V2>>>\n{}\n<<<END_TASK_RESULT_V2>>>\n", "UNSUPPORTED_VERSION", ()),
    ],
)
def test_parse_answers_with_the_code_and_exit_1(tmp_path: Path, log: str, code: str, words: tuple[str, ...]) -> None:
    """T07 T26: parse result."""
    (tmp_path / "x.log").write_text(log)
    answer = ganger("parse", "result", "x.log", "--json", cwd=tmp_path)
    assert (answer.code, answer.json["ok"], answer.json["code"]) == (1, False, code)
    assert code in ganger("parse", "result", "x.log", cwd=tmp_path).err
    assert ganger("parse", "heal", "x.log", "--json", cwd=tmp_path).json["code"] == "NO_SENTINEL"


def test_parse_prints_the_value(tmp_path: Path) -> None:
    """T07 T26: parse result for this task only."""
    body = {"contract_version": "2.0", "task_id": "a", "status": "DONE", "summary": "ok"}
    (tmp_path / "x.log").write_text(f"noise\n<<<TASK_RESULT_V2>>>\n{json.dumps(body)},\n<<<END_TASK_RESULT_V2>>>\n")
    assert ganger("parse", "result", "x.log", "--json", cwd=tmp_path).code == 1
    (tmp_path / "x.log").write_text(f"noise\n<<<TASK_RESULT_V2>>>\n{json.dumps(body)}\n<<<END_TASK_RESULT_V2>>>\n")
    answer = ganger("parse", "result", "x.log", "--json", "--task", "a", cwd=tmp_path).json
    assert (answer["ok"], answer["value"], answer["repaired"]) == (True, body, False)
    assert ganger("parse", "result", "x.log", "--task", "b", "--json", cwd=tmp_path).json["code"] == "SCHEMA_VIOLATION"
    assert ganger("parse", "result", "missing.log", cwd=tmp_path).code == 1


def test_init_writes_a_project_that_runs_and_keeps_what_exists(tmp_path: Path) -> None:
    """From nothing to a verified task; outside of git in the folder itself."""
    (tmp_path / "verify.json").write_text(
        '{"profiles": {"check": {"steps": [{"name": "t", "cmd": "test -s HELLO.md"}]}}}'
    )
    answer = ganger("init", "--json", cwd=tmp_path, env={"PATH": "/usr/bin:/bin"}).json
    assert answer["kept"] == ["verify.json"] and "ganger.toml" in answer["written"]
    assert (answer["mode"], answer["needs_commit"]) == ("direct", False)
    assert ganger("run", cwd=tmp_path).code == 0 and (tmp_path / "HELLO.md").exists()


def test_in_a_repository_init_gives_agents_workspaces_of_their_own(tmp_path: Path) -> None:
    """Without a commit it says what to do first; then the same project runs and lands."""
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    (tmp_path / "verify.json").write_text(
        '{"profiles": {"check": {"steps": [{"name": "t", "cmd": "test -s HELLO.md"}]}}}'
    )
    said = ganger("init", cwd=tmp_path, env={"PATH": "/usr/bin:/bin"})
    assert "mode    local-git" in said.out and 'next    git add -A && git commit -m "begin" && ganger' in said.out
    assert ganger("run", cwd=tmp_path).code == 1
    who = ("-c", "user.name=S", "-c", "user.email=s@example.org")
    for words in (("add", "-A"), ("commit", "-qm", "begin")):
        subprocess.run(["git", *who, *words], cwd=tmp_path, check=True)
    assert ganger("run", cwd=tmp_path).code == 0 and not (tmp_path / "HELLO.md").exists()
    assert ganger("land", cwd=tmp_path).code == 0 and (tmp_path / "HELLO.md").exists()


def test_a_folder_inside_a_repository_is_worked_on_in_place(tmp_path: Path) -> None:
    """Workspaces are made of whole repositories; and a folder that only looks like one is none."""
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    inner, broken = tmp_path / "inner", tmp_path / "broken"
    inner.mkdir()
    (broken / ".git").mkdir(parents=True)
    assert [ganger("init", "--json", cwd=one).json["mode"] for one in (inner, broken)] == ["direct", "direct"]


@pytest.mark.brief(2)
@pytest.mark.parametrize(
    ("file", "text", "command"),
    [
        ("Makefile", "all:\n\ntest: all\n\ttrue\n", "make test"),
        ("package.json", '{"scripts": {"test": "jest"}}', "npm test"),
        ("Cargo.toml", "", "cargo test"),
        ("go.mod", "", "go test ./..."),
        ("pytest.ini", "", "python3 -m pytest -q"),
        ("pytest.ini", "[pytest]\naddopts = -q\n", "python3 -m pytest"),
        ("test_x.py", "", "python3 -m unittest discover"),
    ],
)
def test_init_finds_the_test_command(tmp_path: Path, file: str, text: str, command: str) -> None:
    """T26: looks before it asks."""
    (tmp_path / file).write_text(text)
    assert ganger("init", "--json", cwd=tmp_path).json["test"] == command


def test_the_demo_ends_as_its_script_says(tmp_path: Path) -> None:
    """G06: most succeed, one is kept out, one saved by the format retry, one waits for its quota and goes on with its
    session, one is blocked; exit 0."""
    answer = ganger("demo", "--keep", str(tmp_path / "demo"), cwd=tmp_path, env={"HOME": str(tmp_path)})
    assert answer.code == 0 and "Next steps:" in answer.out and answer.out.count("✓ DONE") == 6
    events = ganger("events", "--json", cwd=tmp_path / "demo").lines
    assert [e["task"] for e in events if e["type"] == "result_refused"] == ["transfer", "csv-export"]
    assert [e["task"] for e in events if e["type"] == "attempt_started" and e["session"]] == ["transfer"]
    assert {e["task"] for e in events if e["type"] == "work_saved"} == {"rounding"}
    assert ganger("demo", "--keep", str(tmp_path / "demo"), cwd=tmp_path).code == 1


def test_help_is_answered_without_importing_anything_heavy() -> None:
    """Instant start."""
    code = (
        "import sys; sys.argv = ['ganger', '--help']; from ganger.__main__ import main; main();"
        "heavy = {'click', 'pydantic', 'rich', 'asyncio', 'apsw', 'yaml', 'json'} & set(sys.modules);"
        "sys.exit(f'imported {heavy}' if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert all(f"  {name} " in done.stdout for name in COMMANDS)


@pytest.mark.brief(8)
@pytest.mark.parametrize("name", [name for name, row in COMMANDS.items() if row.built])
def test_every_command_has_help_with_examples(tmp_path: Path, name: str) -> None:
    """T26: examples in every help."""
    answer = ganger(name, "--help", cwd=tmp_path)
    assert answer.code == 0 and "Examples:" in answer.out


@pytest.mark.parametrize("words", ["--help", "worker --help", "worker next --help", "run --help", "schema task_result"])
def test_a_reader_that_has_seen_enough_is_no_trouble(tmp_path: Path, words: str) -> None:
    """T26: `ganger --help | head -3` ends quietly."""
    reader, writer = os.pipe()
    os.close(reader)
    argv = [sys.executable, "-m", "ganger", *words.split()]
    try:
        ended = subprocess.run(
            argv, cwd=tmp_path, stdout=writer, stderr=subprocess.PIPE, text=True, timeout=stretched(60)
        )
    finally:
        os.close(writer)
    assert ended.stderr == ""
