"""Short runs that touch everything durable: what they are made of, and how they must end."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

_AGENT = """#!/bin/sh
echo "$GANGER_TASK_ID $GANGER_ATTEMPT $$" >> "{starts}"
sleep {pause}
if [ "$GANGER_ATTEMPT" = 1 ] && [ -e "{answers}/$GANGER_TASK_ID.first" ]
then exec cat "{answers}/$GANGER_TASK_ID.first"
else exec cat "{answers}/$GANGER_TASK_ID"
fi
"""
_CHECK = """#!/bin/sh
! grep -rq WRONG "$PWD/out" "$PWD/kept.txt" "$PWD/ledger.txt"
"""
_BLOCK = "<<<TASK_RESULT_V2>>>\n{}\n<<<END_TASK_RESULT_V2>>>\n"


@dataclass(frozen=True, slots=True)
class Job:
    """One task: the file it writes, and what its first attempt does wrong (`check`, `talk`, or nothing)."""

    name: str
    op: str = ""
    path: str = ""
    content: str = ""
    first: str = ""
    needs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Scenario:
    """A run to be disturbed."""

    name: str
    jobs: tuple[Job, ...]
    schedule: str = "batch"
    batch_size: int = 3
    concurrency: int = 2
    pause_sec: float = 0.0
    files: Mapping[str, str] = field(default_factory=lambda: {"kept.txt": "old\n", "ledger.txt": "begin\n"})

    @property
    def undisturbed_starts(self) -> dict[str, int]:
        """How often each task's agent runs when nothing goes wrong but what the task itself does."""
        return {job.name: 2 if job.first else 1 for job in self.jobs}

    def expected_files(self) -> dict[str, frozenset[str]]:
        """The lines every file must have in the end; appending tasks may come in any order."""
        lines = {path: text.splitlines() for path, text in self.files.items()}
        for job in self.jobs:
            if job.op:
                lines[job.path] = (lines.get(job.path, []) if job.op == "append" else []) + job.content.splitlines()
        return {path: frozenset(found) for path, found in lines.items()}


SMALL = (
    Job("make", "create", "out/make.txt", "made\n"),
    Job("change", "replace", "kept.txt", "new\n", needs=("make",)),
    Job("add", "append", "ledger.txt", "added\n"),
    Job("bad", "create", "out/bad.txt", "good\n", first="check"),
    Job("talk", "append", "ledger.txt", "talked\n", first="talk"),
    Job("look"),
)


def crash_scenario(seed: int) -> Scenario:
    """The same six tasks under different schedules, widths and paces."""
    schedule = ("batch", "off", "auto", "epoch", "task")[seed % 5]
    pause = (0.0, 0.03, 0.1)[seed % 3]
    return Scenario(f"crash-{seed}", SMALL, schedule=schedule, concurrency=(2, 3, 1)[seed % 3], pause_sec=pause)


def fleet_scenario(tasks: int, concurrency: int, pause_sec: float) -> Scenario:
    """Many tasks; every second one adds its line to one shared file, so that a write done twice shows."""
    jobs = tuple(
        Job(f"t{n:03d}", "append", "ledger.txt", f"t{n:03d}\n") if n % 2 else Job(f"t{n:03d}", "create", f"out/t{n:03d}.txt", "x\n")
        for n in range(tasks)
    )
    return Scenario("fleet", jobs, schedule="off", concurrency=concurrency, pause_sec=pause_sec)


@dataclass(frozen=True, slots=True)
class Place:
    """Where one disturbed run lives: the project, and beside it what the harness alone writes."""

    base: Path
    scenario: Scenario

    @property
    def root(self) -> Path:
        return self.base / "project"

    @property
    def starts(self) -> Path:
        return self.base / "starts"

    @property
    def run_folder(self) -> Path:
        return self.root / ".ganger" / self.scenario.name

    def make(self, *, root: Path | None = None) -> Place:
        answers = self.base / "answers"
        for folder in (self.root, answers):
            folder.mkdir(parents=True)
        self.starts.touch()
        for job in self.scenario.jobs:
            (answers / job.name).write_text(_answer(job, job.content))
            if job.first:
                wrong = "I would rather talk.\n" if job.first == "talk" else _answer(job, "WRONG\n")
                (answers / f"{job.name}.first").write_text(wrong)
        agent = _AGENT.format(starts=self.starts, pause=self.scenario.pause_sec, answers=answers)
        for name, text in {"agent": agent, "check": _CHECK}.items():
            (self.base / name).write_text(text)
            (self.base / name).chmod(0o755)
        (self.root / "out").mkdir()
        for name, text in {**self._project_files(), **self.scenario.files}.items():
            (self.root / name).write_text(text)
        return self

    def _project_files(self) -> dict[str, str]:
        given = self.scenario
        profile = {"steps": [{"name": "check", "cmd": str(self.base / "check")}], "rollback_on_failure": True}
        tasks = [
            {
                "id": job.name,
                "prompt_ref": "prompt.md",
                "depends_on": list(job.needs),
                "timeout_sec": 60,
                "verify_profile": "check",
            }
            for job in given.jobs
        ]
        config = f"""
[policy]
heal_schedule = "{given.schedule}"
batch_size = {given.batch_size}
concurrency = {given.concurrency}
grace_sec = 1
[agents.counted]
kind = "command"
argv = ["{self.base / "agent"}"]
[roles.worker]
agent = "counted"
"""
        return {
            "ganger.toml": config,
            "prompt.md": "Do it.\n",
            "verify.json": json.dumps({"profiles": {"check": profile}}),
            "manifest.json": json.dumps({"manifest_version": "2.0", "run_id": given.name, "tasks": tasks}),
        }


def _answer(job: Job, content: str) -> str:
    result: dict[str, object] = {"contract_version": "2.0", "task_id": job.name, "status": "DONE", "summary": "did it"}
    if job.op:
        result["writes"] = [{"path": job.path, "op": job.op, "encoding": "utf8", "content": content}]
    return _BLOCK.format(json.dumps(result))
