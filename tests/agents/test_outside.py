"""An adapter from outside the package, as the document writes it: one file and one line, and its CLI is driven."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from ganger.agents.settings import AgentSettings
from ganger.agents.table import GROUP, make_agent
from ganger.core.signs import Heard
from ganger.errors import InputError
from tests.patience import stretched

PAGE = (Path(__file__).parents[2] / "docs" / "write-an-agent.md").read_text(encoding="utf-8")
PROGRAMS = Path(__file__).parent / "outside_package"
KEY = "parrot-key-that-nobody-may-see"


def block(kind: str, beginning: str = "") -> str:
    """The one block of the page of this kind that begins so."""
    found = re.findall(rf"^```{kind}\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    (text,) = [text for text in found if text.startswith(beginning)]
    return str(text)


def install(site: Path, module: str, points: Mapping[str, str]) -> Path:
    """What installing the package of the page leaves: its one file, and its entry points beside it."""
    info = site / "ganger_parrot-1.0.dist-info"
    info.mkdir(parents=True)
    (site / "ganger_parrot.py").write_text(module)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: ganger-parrot\nVersion: 1.0\n")
    lines = [f"{kind} = {target}\n" for kind, target in points.items()]
    (info / "entry_points.txt").write_text(f"[{GROUP}]\n{''.join(lines)}")
    return site


def points_of_the_page() -> dict[str, str]:
    package = tomllib.loads(block("toml", "[project]"))
    return dict(package["project"]["entry-points"][GROUP])


CONFIG = """
[policy]
heal_schedule = "off"
[workspace]
mode = "local-git"
"""


@dataclass(frozen=True)
class Aviary:
    """A project in git whose worker is the page's agent, on a machine where its package is installed."""

    root: Path
    site: Path

    def make(self, prompt: str) -> Aviary:
        task = {"id": "a", "prompt_ref": "p.md", "depends_on": [], "timeout_sec": 30, "verify_profile": "check"}
        steps = [{"name": "made", "cmd": "grep -q Polly parrot.txt"}]
        files = {
            "ganger.toml": CONFIG + block("toml", "[agents.polly]"),
            "p.md": prompt,
            "manifest.json": json.dumps({"manifest_version": "2.0", "run_id": "r1", "tasks": [task]}),
            "verify.json": json.dumps({"profiles": {"check": {"steps": steps}}}),
        }
        self.root.mkdir()
        for name, text in files.items():
            (self.root / name).write_text(text)
        as_somebody = ["git", "-c", "user.name=S", "-c", "user.email=s@example.org"]
        for words in (["init", "-q", "-b", "main"], ["add", "-A"], ["commit", "-qm", "begin"]):
            subprocess.run([*as_somebody, *words], cwd=self.root, check=True)
        return self

    def ganger(self, *words: str, key: str = KEY) -> tuple[int, str]:
        env = {name: value for name, value in os.environ.items() if name != "PARROT_API_KEY"}
        env |= {"PYTHONPATH": str(self.site), "PATH": f"{PROGRAMS}{os.pathsep}{env['PATH']}"}
        env |= {"PARROT_API_KEY": key} if key else {}
        done = subprocess.run(
            [sys.executable, "-m", "ganger", *words],
            cwd=self.root,
            env=env,
            capture_output=True,
            text=True,
            timeout=stretched(90),
        )
        assert "Traceback" not in done.stdout + done.stderr
        return done.returncode, done.stdout if "--json" in words else done.stdout + done.stderr

    def json(self, *words: str) -> Any:
        return json.loads(self.ganger(*words, "--json")[1])

    def log(self, attempt: int) -> Path:
        return self.root / f".ganger/r1/logs/a.worker.{attempt}.log"


@pytest.fixture
def aviary(tmp_path: Path) -> Callable[..., Aviary]:
    def make(prompt: str = "Say hello.\n", module: str | None = None, **points: str) -> Aviary:
        site = install(tmp_path / "site", module or block("python"), points or points_of_the_page())
        return Aviary(tmp_path / "project", site).make(prompt)

    return make


@pytest.mark.whole
def test_the_adapter_of_the_page_drives_its_cli_to_done(aviary: Callable[..., Aviary]) -> None:
    """T24: from its own file and one entry point; its edit is taken and verified, its tokens are counted."""
    project = aviary()
    code, said = project.ganger("run")
    assert code == 0, said
    (task,) = project.json("tasks")["tasks"]
    assert task["status"] == "DONE"
    cost = project.json("status")
    assert "120" in json.dumps(cost) and KEY not in json.dumps(cost) + said + project.log(1).read_text()


@pytest.mark.slow
def test_its_session_goes_on_after_a_crash(aviary: Callable[..., Aviary]) -> None:
    """H05 T24: the second process is told which one, finds it in its home, and ends the task."""
    project = aviary("Stumble over it.\n")
    code, said = project.ganger("run")
    assert code == 0, said
    first, second = (json.loads(project.log(n).read_text().splitlines()[0]) for n in (1, 2))
    assert first["session"] == second["session"]


def test_it_is_listed_and_checked_like_any_other(aviary: Callable[..., Aviary]) -> None:
    """T24: kind, version and login."""
    project = aviary()
    shown = project.json("agents", "--check")
    (agent,) = shown["agents"]
    assert (agent["kind"], agent["version"], agent["login"], agent["ready"]) == ("parrot", "parrot 1.4.2", True, True)
    assert "parrot" in shown["kinds"]


def test_without_its_key_the_run_does_not_begin_and_says_what_to_do(aviary: Callable[..., Aviary]) -> None:
    """T24: the adapter's own words."""
    code, said = aviary().ganger("run", key="")
    assert code != 0 and "set PARROT_API_KEY, or run: parrot login" in said


def test_the_page_shows_what_the_reader_understands(aviary: Callable[..., Aviary], tmp_path: Path) -> None:
    """T24: `ganger parse events` with the output of the page."""
    (tmp_path / "shown.jsonl").write_text(block("jsonl"))
    heard = aviary().json("parse", "events", "--agent", "parrot", str(tmp_path / "shown.jsonl"))["heard"]
    assert (heard["session"], heard["model"], heard["tools"], heard["over"]["how"]) == (
        "5d0c",
        "grey-parrot",
        1,
        "success",
    )
    assert (heard["tokens"]["input"], heard["tokens"]["output"]) == (120, 30)


def test_the_page_names_every_sign_and_every_member() -> None:
    """T24: what is not on the page would not be found."""
    signs = Path(sys.modules[Heard.__module__].__file__ or "").read_text()
    names = re.search(r"^Sign = \((.*?)^\)", signs, re.DOTALL | re.MULTILINE)
    assert names is not None
    assert [name for name in re.findall(r"\w+", names[1]) if f"`{name}" not in PAGE] == []


@pytest.mark.whole
def test_a_package_that_cannot_be_loaded_is_named(aviary: Callable[..., Aviary]) -> None:
    """T24: by its kind and its package, in a sentence."""
    code, said = aviary(module="import no_such_module_here\n").ganger("run")
    assert code != 0 and "'parrot' of package ganger-parrot cannot be loaded" in said and "no_such_module_here" in said


def test_a_package_cannot_take_the_place_of_a_kind_that_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`command` stays Ganger's own."""
    monkeypatch.syspath_prepend(install(tmp_path / "site", block("python"), {"command": "ganger_parrot:ParrotAgent"}))
    agent = make_agent("mine", AgentSettings("command", argv=("true",)), tmp_path, {})
    assert type(agent).__module__ == "ganger.agents.command"
    with pytest.raises(InputError, match="no agent kind 'parrot'"):
        make_agent("mine", AgentSettings("parrot"), tmp_path, {})


BROKEN = block("python").replace("data = read_json(line)", 'raise ValueError("a fault of the adapter")')


@pytest.mark.whole
def test_a_reader_that_fails_costs_its_attempt_and_never_the_lead(aviary: Callable[..., Aviary]) -> None:
    """T24: the run ends by itself and says whose fault it was."""
    project = aviary(module=BROKEN)
    _, said = project.ganger("run")
    (task,) = project.json("tasks")["tasks"]
    assert task["status"] == "FAILED" and "UNEXPECTED" not in said
    assert "the adapter for 'parrot' failed on its agent's output: ValueError: a fault of the adapter" in said
