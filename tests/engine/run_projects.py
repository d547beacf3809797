"""A project folder with scripted agents, run for real: in this process, or by the command line as a user does."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jsonschema_rs

from ganger.app.checks.project import check_project
from ganger.app.compose import RunOptions, open_lead
from ganger.app.run_places import place_of
from ganger.app.runs import read_events, read_state
from ganger.config import load_project
from ganger.core.events import Event, Recorded, type_name
from ganger.core.model.run_state import RunState
from ganger.core.vocabulary import TaskStatus
from ganger.engine.lead import Lead
from ganger.local.procfs import ATTEMPT_MARK as MARK, tag_of
from ganger.local.run_folder import RunFolder
from tests.cli.in_process import call, can_be_called
from tests.patience import Patience, stretched

ROOT = Path(__file__).resolve().parents[2]
CONFIG = """
[policy]
heal_schedule = "off"
grace_sec = 0.5
{policy}
[agents.mine]
{agent}
[roles.worker]
agent = "mine"
[verify.tiers]
{tiers}
"""
SCRIPTED = 'kind = "scripted"\nscript = "script.json"'
TRUE = ({"name": "test", "cmd": "true"},)


def task(name: str, *needs: str, **more: object) -> dict[str, object]:
    base = {"id": name, "prompt_ref": "prompt.md", "depends_on": list(needs), "timeout_sec": 20}
    return {**base, "verify_profile": "check", **more}


def write(path: str, content: str, op: str = "create", **more: object) -> dict[str, object]:
    return {"path": path, "op": op, "encoding": "utf8", "content": content, **more}


def done(*writes: dict[str, object], **more: object) -> dict[str, object]:
    return {"result": {"status": "DONE", "summary": "did it", "writes": list(writes), **more}}


@dataclass
class Project:
    """What a run is made of; `make` puts it on disk."""

    root: Path
    tasks: list[dict[str, object]] = field(default_factory=lambda: [task("a")])
    script: Mapping[str, object] = field(default_factory=dict)
    default: object = field(default_factory=lambda: {"result": "DONE"})
    steps: tuple[Mapping[str, object], ...] = TRUE
    profile: Mapping[str, object] = field(default_factory=dict)
    tiers: str = ""
    policy: str = ""
    agent: str = SCRIPTED
    run_id: str = "r1"
    files: Mapping[str, str] = field(default_factory=dict)

    def make(self) -> Project:
        self.root.mkdir(parents=True, exist_ok=True)
        config = CONFIG.format(policy=self.policy, agent=self.agent, tiers=self.tiers)
        (self.root / "ganger.toml").write_text(config)
        (self.root / "prompt.md").write_text("Do it.\n")
        self.write_script(self.script)
        profiles = {"profiles": {"check": {"steps": list(self.steps), **self.profile}}}
        (self.root / "verify.json").write_text(json.dumps(profiles))
        manifest = {"manifest_version": "2.0", "run_id": self.run_id, "tasks": self.tasks}
        (self.root / "manifest.json").write_text(json.dumps(manifest))
        for name, text in self.files.items():
            (self.root / name).parent.mkdir(parents=True, exist_ok=True)
            (self.root / name).write_text(text)
        return self

    def write_script(self, script: Mapping[str, object]) -> None:
        text = json.dumps({"tasks": dict(script), "default": self.default})
        (self.root / "script.json").write_text(text)

    def set_schedule(self, schedule: str) -> None:
        path = self.root / "ganger.toml"
        path.write_text(path.read_text().replace('heal_schedule = "off"', f'heal_schedule = "{schedule}"'))

    # --- running ----------------------------------------------------------------------------------------------------

    def run(self, during: Callable[[Lead], None] | None = None, **options: Any) -> int:
        """One lead in this process; `during` is called once the loop runs."""

        async def lead_on() -> int:
            async with open_lead(project, check_project(project), RunOptions(**options)) as lead:
                if during is not None:
                    during(lead)
                code = await asyncio.wait_for(lead.run(), stretched(60))
                await require_sound_end(lead)
                return code

        project = load_project(self.root)
        return asyncio.run(lead_on())

    def start(self, *words: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "ganger", "run", *words],
            cwd=self.root,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def ganger(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Read commands are called in this process, the others as programs."""
        if can_be_called(words):
            code, out, err = call(words, self.root)
            made = subprocess.CompletedProcess(list(words), code, out.decode(), err.decode())
        else:
            line = [sys.executable, "-m", "ganger", *words]
            made = subprocess.run(line, cwd=self.root, capture_output=True, text=True, timeout=stretched(60))
        assert "Traceback" not in made.stdout + made.stderr
        return made

    # --- looking ----------------------------------------------------------------------------------------------------

    @property
    def folder(self) -> RunFolder:
        return place_of(load_project(self.root), self.run_id)

    def state(self) -> RunState:
        return read_state(self.folder)

    def status(self, name: str = "a") -> TaskStatus:
        return self.state().tasks[name].status

    def events(self) -> list[Recorded]:
        return list(read_events(self.folder, 0))

    def happened(self, name: str = "a") -> list[str]:
        """The types of one task's events, in order."""
        return [type_name(r.event) for r in self.events() if getattr(r.event, "task", None) == name]

    def find(self, kind: type[Event]) -> list[Any]:
        return [r.event for r in self.events() if isinstance(r.event, kind)]

    def state_file(self) -> Any:
        return json.loads(self.folder.state.read_text(encoding="utf-8"))

    def log(self, name: str, attempt: int = 1, kind: str = "worker") -> str:
        return (self.folder.path / f"logs/{name}.{kind}.{attempt}.log").read_text(errors="replace")

    def logs(self) -> list[str]:
        return sorted(path.name for path in (self.folder.path / "logs").iterdir())

    def tree(self) -> dict[str, bytes | str]:
        """Every file and folder of the project outside Ganger's own, with its bytes."""
        found = (p for p in self.root.rglob("*") if ".ganger" not in p.relative_to(self.root).parts)
        return {str(p.relative_to(self.root)): p.read_bytes() if p.is_file() else "folder" for p in found}

    def processes(self) -> list[int]:
        """Living processes that were started for this run, found by the mark they inherit; checks have none, but a tag
        and a folder of the project's."""
        mark = os.fsencode(f"{MARK}={self.folder.path}/")
        found = []
        for path in Path("/proc").iterdir():
            with contextlib.suppress(OSError):
                if path.name.isdecimal() and (mark in (path / "environ").read_bytes() or self._is_check(path)):
                    found.append(int(path.name))
        return found

    def _is_check(self, process: Path) -> bool:
        where = (process / "cwd").readlink()
        ours = where.is_relative_to(self.root) or where.is_relative_to(self.folder.path)
        return ours and tag_of(int(process.name)) is not None


async def require_sound_end(lead: Lead) -> None:
    """Everything that was said is recorded, and the next start is cheap."""
    assert lead.journal.error is None
    kept = await lead.journal.store.snapshot()
    assert kept is not None and lead.state.log.last_seq - kept[0] <= len(lead.state.tasks) // 20


def until(happened: Callable[[], object], *, beside: subprocess.Popen[str] | None = None, within: float = 30) -> None:
    """Waits for something another process does; fails when that process has ended without it."""
    patience = Patience(within)
    while not happened():
        assert not patience.is_over(), "it did not happen in time"
        if beside is not None and beside.poll() is not None:
            assert happened(), beside.communicate()
        time.sleep(0.01)


@contextlib.contextmanager
def leading(project: Project, *words: str) -> Iterator[subprocess.Popen[str]]:
    """A lead as a process of its own, ended for certain."""
    lead = project.start(*words)
    try:
        yield lead
    finally:
        if lead.poll() is None:
            lead.kill()
        lead.communicate()
        for pid in project.processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z")
LINE_KEYS = """task_id phase attempt_number log_path verify_log_path exit_code failure_class failure_signature
    applied_patch_ids duration_sec timestamp"""
TASK_KEYS = """status worker_attempts healer_attempts last_failure_class last_failure_signature applied_patch_ids
    history"""
POLICY_KEYS = """heal_schedule batch_strategy current_batch_size failure_threshold max_worker_attempts_per_task
    max_heal_rounds_per_window max_total_heal_rounds signature_repeat_limit"""
TOP_KEYS = "state_version run_id run_status abort_reason manifest_digest policy tasks healing_rounds"


def require_state_2_0(text: str) -> None:
    """The format as a strict reader of another program takes it: these keys, this order, nothing else."""
    schema = json.loads((ROOT / "schemas" / "state.json").read_text())
    data = json.loads(text)
    jsonschema_rs.validate(schema, data)
    assert text == json.dumps(data, indent=2, ensure_ascii=False) + "\n"
    assert list(data) == TOP_KEYS.split() and list(data["policy"]) == POLICY_KEYS.split()
    assert (data["run_status"] == "ABORTED") == bool(data["abort_reason"])
    for name, entry in data["tasks"].items():
        assert list(entry) == TASK_KEYS.split()
        for line in entry["history"]:
            assert (
                list(line) == LINE_KEYS.split() and line["task_id"] == name and TIMESTAMP.fullmatch(line["timestamp"])
            )


def kill(lead: subprocess.Popen[str]) -> None:
    lead.send_signal(signal.SIGKILL)
    lead.wait()
