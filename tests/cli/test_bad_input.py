"""Bad input gets a named error, a place and a next step; exit 1 or 64; nothing half-written."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.cli_project import ganger, make_project, manifest, task
from tests.patience import stretched

DEEP = b"[" * 200_000
BYTES = {
    "missing": (None, "FILE_NOT_FOUND"),
    "empty": (b"", "FILE_EMPTY"),
    "binary": (b'{"a": "\x00\x01\x02"}', "BINARY_FILE"),
    "not-utf8": (b'{"run_id": "caf\xe9"}', "NOT_UTF8"),
    "utf16": ('{"run_id": "a"}'.encode("utf-16"), "NOT_UTF8"),
    "deep": (DEEP, "NESTED_TOO_DEEP"),
    "duplicate-key": (b'{"run_id": "a", "run_id": "b"}', "DUPLICATE_KEY"),
    "not-json": (b"{'run_id': 1}", "INVALID_JSON"),
    "nan": (b'{"run_id": NaN}', "INVALID_JSON"),
}
TREES: dict[str, tuple[dict[str, object], str, str]] = {
    "version": (manifest(task(), manifest_version="1.0"), "manifest_version", "UNSUPPORTED_VERSION"),
    "no-tasks": (manifest(), "tasks", "SCHEMA_VIOLATION"),
    "unknown-field": (manifest(task(dependson=[])), "tasks[0].dependson", "UNKNOWN_FIELD"),
    "missing-field": (manifest({"id": "a"}), "tasks[0].prompt_ref", "MISSING_REQUIRED_FIELD"),
    "slash": (manifest(task("a/b")), "tasks[0].id", "BAD_TASK_ID"),
    "dots": (manifest(task("..")), "tasks[0].id", "BAD_TASK_ID"),
    "nul": (manifest(task("a\0b")), "tasks[0].id", "BAD_TASK_ID"),
    "control": (manifest(task("a\x1b[31mb")), "tasks[0].id", "BAD_TASK_ID"),
    "10kB": (manifest(task("x" * 10_000)), "tasks[0].id", "BAD_TASK_ID"),
    "case-twin": (manifest(task("Aa"), task("aA")), "tasks[1].id", "CASE_TWIN"),
    "run-id": (manifest(task(), run_id="../up"), "run_id", "BAD_RUN_ID"),
    "twice": (manifest(task(), task()), "tasks[1].id", "DUPLICATE_ID"),
    "unknown-need": (manifest(task(depends_on=["two"])), "tasks[0].depends_on[0]", "UNKNOWN_DEPENDENCY"),
    "own-need": (manifest(task(depends_on=["one"])), "tasks[0].depends_on[0]", "SELF_DEPENDENCY"),
    "prompt-missing": (manifest(task(prompt_ref="none.md")), "tasks[0].prompt_ref", "PROMPT_MISSING"),
    "prompt-up": (manifest(task(prompt_ref="../x.md")), "tasks[0].prompt_ref", "PROMPT_OUTSIDE_PROJECT"),
    "prompt-absolute": (manifest(task(prompt_ref="/etc/hosts")), "tasks[0].prompt_ref", "PROMPT_OUTSIDE_PROJECT"),
    "context": (manifest(task(context_refs=["no.md"])), "tasks[0].context_refs[0]", "PROMPT_MISSING"),
    "profile": (manifest(task(verify_profile="p")), "tasks[0].verify_profile", "UNKNOWN_PROFILE"),
    "role": (manifest(task(metadata={"role": "tester"})), "tasks[0].metadata.role", "UNKNOWN_ROLE"),
    "metadata": (manifest(task(metadata={"max_attempts": 9})), "tasks[0].metadata.max_attempts", "BAD_METADATA"),
}


@pytest.mark.brief(2)
@pytest.mark.parametrize("case", BYTES)
def test_a_file_that_is_no_manifest_is_named(tmp_path: Path, case: str) -> None:
    """T01: missing, empty, binary, broken files."""
    content, code = BYTES[case]
    path = make_project(tmp_path) / "manifest.json"
    path.unlink() if content is None else path.write_bytes(content)
    answer = ganger("validate", "--json", cwd=tmp_path)
    assert (answer.code, answer.json["ok"], answer.json["errors"][0]["code"]) == (1, False, code)
    assert ganger("run", cwd=tmp_path).code == 1 and not (tmp_path / ".ganger").exists()


@pytest.mark.brief(5)
@pytest.mark.parametrize("case", TREES)
def test_a_faulty_manifest_is_refused_with_the_place(tmp_path: Path, case: str) -> None:
    """T01 T02: ids, graph, prompts, profiles, roles."""
    data, path, code = TREES[case]
    (make_project(tmp_path) / "manifest.json").write_text(json.dumps(data))
    answer = ganger("validate", "--json", cwd=tmp_path)
    assert answer.code == 1
    assert (path, code) in [(error["path"], error["code"]) for error in answer.json["errors"]]
    assert ganger("run", cwd=tmp_path).code == 1 and not (tmp_path / ".ganger").exists()


def test_every_fault_is_listed_at_once(tmp_path: Path) -> None:
    """T01: shape, graph and unknown fields in one answer."""
    data = manifest(task(extra=1), task("two", depends_on=["tree"], timeout_sec=0), task("two"))
    (make_project(tmp_path) / "manifest.json").write_text(json.dumps(data))
    codes = [error["code"] for error in ganger("validate", "--json", cwd=tmp_path).json["errors"]]
    assert sorted(codes) == ["DUPLICATE_ID", "SCHEMA_VIOLATION", "UNKNOWN_DEPENDENCY", "UNKNOWN_FIELD"]


def test_a_cycle_is_printed_as_a_path(tmp_path: Path) -> None:
    """T02: the circle is shown."""
    tasks = [task("a", depends_on=["c"]), task("b", depends_on=["a"]), task("c", depends_on=["b"])]
    (make_project(tmp_path) / "manifest.json").write_text(json.dumps(manifest(*tasks)))
    answer = ganger("validate", cwd=tmp_path)
    assert answer.code == 1 and "a -> c -> b -> a" in answer.out


@pytest.mark.brief(2)
@pytest.mark.parametrize(
    ("cmd", "code"),
    [
        ("true | false", "COMMAND_SHELL_OPERATOR"),
        ("echo $(id)", "COMMAND_SHELL_OPERATOR"),
        ("true; false", "COMMAND_SHELL_OPERATOR"),
        ("echo `id`", "COMMAND_SHELL_OPERATOR"),
        ("true > out", "COMMAND_SHELL_OPERATOR"),
        ("source env.sh && make", "COMMAND_BUILTIN"),
        ("export A=1", "COMMAND_BUILTIN"),
        ("sudo make", "COMMAND_DENIED"),
    ],
)
def test_a_command_that_needs_a_shell_stops_the_run_before_it_begins(tmp_path: Path, cmd: str, code: str) -> None:
    """W06: refused at the door, with the step's place."""
    make_project(tmp_path, steps=[{"name": "test", "cmd": cmd}])
    error = ganger("validate", "--json", cwd=tmp_path).json["errors"][0]
    assert (error["code"], error["path"]) == (code, "verify.json:profiles.check.steps[0].cmd")
    assert ganger("run", cwd=tmp_path).code == 1


def _no_steps(root: Path) -> None:
    (root / "verify.json").write_text('{"profiles": {"check": {"steps": []}}}')


def _bad_toml(root: Path) -> None:
    (root / "ganger.toml").write_text("x = [")


def _unknown_key(root: Path) -> None:
    (root / "ganger.toml").write_text("[policy]\nconcurency = 2\n")


def _bad_tier(root: Path) -> None:
    with (root / "ganger.toml").open("a") as file:
        file.write('[verify.tiers]\n"check/lnt" = "quality"\n')


def _unwritable(root: Path) -> None:
    (root / "ganger.toml").write_text('state_dir = "/proc/nowhere"\n' + (root / "ganger.toml").read_text())


def _no_script(root: Path) -> None:
    (root / "script.json").unlink()


def _symlinked_prompt(root: Path) -> None:
    (root / "prompt.md").unlink()
    (root / "prompt.md").symlink_to("/etc/hosts")


@pytest.mark.whole
@pytest.mark.brief(2)
@pytest.mark.parametrize(
    ("spoil", "code"),
    [
        (_no_steps, "SCHEMA_VIOLATION"),
        (_bad_toml, "INVALID_TOML"),
        (_unknown_key, "UNKNOWN_FIELD"),
        (_bad_tier, "UNKNOWN_STEP"),
        (_unwritable, "NOT_WRITABLE"),
        (_no_script, "AGENT_NOT_READY"),
        (_symlinked_prompt, "PROMPT_OUTSIDE_PROJECT"),
    ],
)
def test_a_spoilt_project_does_not_run(tmp_path: Path, spoil: Callable[[Path], None], code: str) -> None:
    """T01 T26: named error, next step, exit 1."""
    spoil(make_project(tmp_path))
    answer = ganger("run", "--json", cwd=tmp_path)
    assert (answer.code, answer.json["error"]["code"]) == (1, code)
    shown = ganger("run", cwd=tmp_path)
    assert f"[{code}]" in shown.err and "next:" in shown.err


@pytest.mark.needs("root")
def test_a_full_disk_ends_the_run_with_a_sentence(tmp_path: Path) -> None:
    """T19: the disk is full; nothing pretends otherwise."""
    for name in ("project", "small"):
        (tmp_path / name).mkdir()
    root = make_project(tmp_path / "project")
    config = (root / "ganger.toml").read_text()
    (root / "ganger.toml").write_text('state_dir = "../small/s"\n' + config)
    inside = f"mount -t tmpfs -o size=64k tmpfs {tmp_path}/small && exec {sys.executable} -m ganger run --json"
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", inside], cwd=root, capture_output=True, text=True, timeout=stretched(60)
    )
    assert done.returncode == 1 and "DISK_FULL" in done.stdout.splitlines()[-1] and "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "words",
    [
        ("frob",),
        ("run", "--nope"),
        ("run", "--concurrency", "0"),
        ("run", "--set", "policy.concurrency=many"),
        ("logs",),
        ("schema", "nothing"),
        ("parse", "events", "x"),
        ("worker", "frob"),
        ("worker", "heartbeat", "--percent", "101"),
        ("export", "one", "to"),
        ("run", "--budget", "-3"),
        ("set", "concurrency"),
        ("answer", "q-1"),
    ],
    ids=" ".join,
)
def test_a_wrong_or_future_command_line_is_a_usage_error(tmp_path: Path, words: tuple[str, ...]) -> None:
    """Z07: exit 64."""
    answer = ganger(*words, cwd=make_project(tmp_path))
    assert answer.code == 64 and answer.err.startswith("error: ") and not (tmp_path / ".ganger").exists()
