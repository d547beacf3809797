"""A first project: what `ganger init` finds in a repository and writes to it."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from ganger.config import PROJECT_FILE
from ganger.core.verify.commands import DEFAULT_DENY, CommandFault, parse_command
from ganger.errors import GangerError
from ganger.local.run_folder import named_os_errors, replace_file
from ganger.workspaces.gates.expected_output import expected_output, is_quiet_pytest
from ganger.workspaces.git.git import Git, check_version

# Weak but real: fails on conflict markers and broken white space. Only used if no tests were found.
NO_TESTS = "git diff --check"
_PYTEST_ONLY = re.compile(r"^(?:(?:async )?def test|import pytest|from pytest )", re.MULTILINE)
_MOST_READ = 50


@dataclass
class FirstProject:
    """`mode` is where agents will work; `needs_commit`: there is no commit yet to start from. `expect` is a pattern of
    what a passing run of the check prints, if one is known."""

    written: list[str] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)
    agent: str = ""
    test: str = ""
    mode: str = "direct"
    needs_commit: bool = False
    expect: str = ""


def write_first_project(
    root: Path, *, agent: str | None, test_command: str | None, found: Sequence[ProjectFacts] = ()
) -> FirstProject:
    """`agent` is a kind or any command line; without it the best one found is used. `found` are the agent programs of
    this machine, as `ganger agents --check` lists them."""
    made = FirstProject(test=test_command or find_test_command(root))
    _require_runnable(made.test)
    if not (root / "verify.json").exists():
        made.expect = expected_output(made.test, lambda path: _text(root / path))
    made.mode, made.needs_commit = _workspace_mode(root)
    kind, argv = _choose(agent, found)
    made.agent = kind or " ".join(argv) or "scripted (no agent program on PATH)"
    files = {
        PROJECT_FILE: _config_text(kind, argv, made),
        "verify.json": _json(
            {"profiles": {"check": {"steps": [{"name": "test", "cmd": made.test, "timeout_sec": 600}]}}}
        ),
        "manifest.json": _json(_manifest(root)),
        "prompts/first-task.md": _PROMPT,
    }
    if not argv and not kind:
        files["agent-script.json"] = _json(_SCRIPT)
    with named_os_errors(root):
        root.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            path = root / name
            if path.exists():
                made.kept.append(name)
                continue
            path.parent.mkdir(exist_ok=True)
            replace_file(path, text, mode=0o666)
            made.written.append(name)
    return made


def _workspace_mode(root: Path) -> tuple[str, bool]:
    """The mode, and whether a commit is missing. Agents get workspaces in the top folder of a git repository."""
    if not (root / ".git").exists():
        return "direct", False
    try:
        check_version()
        top = Git(root / ".git").ask("rev-parse", "--git-dir", doing="looking for the repository", fine=(0, 128))
        if top.code:
            return "direct", False
        return "local-git", not Git(root / ".git").resolve("HEAD^{commit}")
    except GangerError:
        return "direct", False


def _require_runnable(command: str) -> None:
    answer = parse_command(command, deny=DEFAULT_DENY)
    if isinstance(answer, CommandFault):
        raise GangerError(
            f"the check {command!r} cannot be used: {answer.message}",
            hint="ganger explain " + answer.code,
            code=answer.code,
        )


@dataclass(frozen=True, slots=True)
class ProjectFacts:
    """A known agent program on this machine."""

    kind: str
    ready: bool
    detail: str


def _choose(agent: str | None, found: Sequence[ProjectFacts]) -> tuple[str, list[str]]:
    """A kind, or a command line of the operator's."""
    if agent is not None:
        named = next((one.kind for one in found if one.kind == agent), "")
        return named, [] if named else shlex.split(agent)
    best = sorted(found, key=lambda one: not one.ready)
    return (best[0].kind, []) if best else ("", [])


def find_test_command(root: Path) -> str:
    """The command that tests this project."""
    if re.search(r"^test\s*:", _text(root / "Makefile"), re.MULTILINE):
        return "make test"
    if '"test"' in _text(root / "package.json"):
        return "npm test"
    if (root / "Cargo.toml").exists():
        return "cargo test"
    if (root / "go.mod").exists():
        return "go test ./..."
    if _uses_pytest(root):
        is_quiet = is_quiet_pytest(lambda path: _text(root / path))
        return "python3 -m pytest" if is_quiet else "python3 -m pytest -q"
    if any(_test_files(root)):
        return "python3 -m unittest discover"
    return NO_TESTS


def _uses_pytest(root: Path) -> bool:
    """Whether pytest is used: named in a settings file, its own files, or tests that only it would run."""
    named = any("pytest" in _text(root / name) for name in ("pyproject.toml", "setup.cfg", "tox.ini"))
    if named or any((root / name).exists() for name in ("pytest.ini", "conftest.py", "tests/conftest.py")):
        return True
    return any(_PYTEST_ONLY.search(_text(path)) for path in islice(_test_files(root), _MOST_READ))


def _test_files(root: Path) -> Iterator[Path]:
    yield from root.glob("test*/**/test*.py")
    yield from root.glob("test*.py")


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")[:200_000]
    except OSError:
        return ""


def _json(data: object) -> str:
    return json.dumps(data, indent=2, ensure_ascii=False) + "\n"


def _manifest(root: Path) -> object:
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", root.resolve().name).strip("-.") or "project"
    task = {
        "id": "first-task",
        "prompt_ref": "prompts/first-task.md",
        "depends_on": [],
        "timeout_sec": 900,
        "verify_profile": "check",
    }
    return {"manifest_version": "2.0", "run_id": f"{name}-1", "tasks": [task]}


def _config_text(kind: str, argv: list[str], made: FirstProject) -> str:
    expect = _EXPECT.format(pattern=json.dumps(made.expect, ensure_ascii=False)) if made.expect else ""
    tail = _TAIL + expect + (_IN_GIT if made.mode == "local-git" else _DIRECT)
    if kind:
        return _HEAD + _KNOWN_AGENT.format(kind=kind) + tail
    own = _OWN_AGENT.format(argv=json.dumps(argv or ["your-agent", "--headless"]))
    if argv:
        return _HEAD + own + '\n[roles.worker]\nagent = "mine"\n' + tail
    commented = "".join(f"# {line}\n" for line in own.splitlines())
    return _HEAD + commented + _SCRIPTED_AGENT + tail


_KNOWN_AGENT = """[agents.{kind}]
kind = "{kind}"
# model = ""                     # default: the agent's own
# permissions = "auto"           # full inside Ganger's sandbox, else edits only

[roles.worker]
agent = "{kind}"
# strong_model = ""              # for tasks marked complexity = "high", critical_path, security, cross_repo
"""
_OWN_AGENT = """[agents.mine]
kind = "command"                 # any program that reads a prompt and prints a result block
argv = {argv}
prompt = "stdin"                 # stdin | argument | file
# env = ["MY_API_KEY"]           # secrets passed on; all others are withheld
"""
_SCRIPTED_AGENT = """
[agents.scripted]
kind = "scripted"                # plays a script: no key, no cost
script = "agent-script.json"

[roles.worker]
agent = "scripted"               # then: agent = "mine"
"""
_HEAD = """# Ganger's configuration. `ganger config show` lists every setting with its origin.
manifest = "manifest.json"
state_dir = ".ganger"

[policy]
concurrency = 1                  # attempts in parallel

"""
_TAIL = """
[verify]
profiles_file = "verify.json"    # your own commands decide what is done
"""
_EXPECT = """
[verify.expect]
"check/test" = {pattern}  # what a passing run prints besides exit code 0
"""
_IN_GIT = """
[workspace]
mode = "local-git"               # each agent in its own workspace, from the last commit; ganger land moves your branch
# linked = [".venv"]             # ignored folders that checks need; without the project itself in them
"""
_DIRECT = """
[workspace]
mode = "direct"                  # agents work in this folder; in a git repository "local-git" gives each a workspace
"""
_PROMPT = """Create the file HELLO.md with one friendly sentence about this project.

Send it as a write in your result: path "HELLO.md", op "create", encoding "utf8".
"""
_SCRIPT = {
    "tasks": {
        "first-task": [
            [
                {"text": "reading the prompt"},
                {"delay": 0.5},
                {
                    "result": {
                        "status": "DONE",
                        "summary": "Wrote HELLO.md.",
                        "writes": [
                            {
                                "path": "HELLO.md",
                                "op": "create",
                                "encoding": "utf8",
                                "content": "Hello from a verified task.\n",
                            }
                        ],
                    }
                },
            ]
        ]
    }
}
