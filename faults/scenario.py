"""Short runs that touch everything durable: what they are made of, and how they must end."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

MODES = ("direct", "local-git")

_AGENT = """#!/bin/sh
echo "$GANGER_TASK_ID $GANGER_ATTEMPT $$ $GANGER_ROLE" >> "{starts}"
sleep {pause}
answer="{answers}/$GANGER_TASK_ID"
if [ -e "$answer.sick" ] && ! grep -q MEDICINE
then answer="$answer.sick"
elif [ -e "$answer.first" ] && [ "$GANGER_ATTEMPT" = 1 ]
then answer="$answer.first"
fi
[ ! -e "$answer.edit" ] || . "$answer.edit"
exec cat "$answer"
"""
_CHECK = """#!/bin/sh
if [ -e out/partner.txt ] && grep -q FIRST out/red.txt 2>/dev/null
then echo "AssertionError: red does not go with partner"; exit 1
fi
! grep -rq WRONG "$PWD/out" "$PWD/kept.txt" "$PWD/ledger.txt"
"""
_MARKS = {"result": "TASK_RESULT_V2", "heal": "HEAL_DECISION_V2"}


@dataclass(frozen=True, slots=True)
class Job:
    """One task: the file it writes, and what goes wrong with it.

    `wrong`: its first attempt fails the `check`, only `talk`s, or `ask`s a person; or it is `sick` until healed.
    """

    name: str
    op: str = ""
    path: str = ""
    content: str = ""
    wrong: str = ""
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
    budget_attempts: int | None = None
    files: Mapping[str, str] = field(default_factory=lambda: {"kept.txt": "old\n", "ledger.txt": "begin\n"})

    @property
    def heals(self) -> bool:
        return any(job.wrong == "sick" for job in self.jobs)

    def expected_files(self) -> dict[str, list[str]]:
        """The lines every file must have in the end, sorted: appending tasks may come in any order."""
        lines = {path: text.splitlines() for path, text in self.files.items()}
        for job in self.jobs:
            if job.op:
                lines[job.path] = (lines.get(job.path, []) if job.op == "append" else []) + job.content.splitlines()
        return {path: sorted(found) for path, found in lines.items()}


PLAIN = (
    Job("make", "create", "out/make.txt", "made\n"),
    Job("change", "replace", "kept.txt", "new\n", needs=("make",)),
    Job("add", "append", "ledger.txt", "added\n"),
    Job("bad", "create", "out/bad.txt", "good\n", wrong="check"),
    Job("talk", "append", "ledger.txt", "talked\n", wrong="talk"),
    Job("look"),
)
HEALED = (
    Job("sick", "create", "out/sick.txt", "well\n", wrong="sick"),
    Job("bad", "create", "out/bad.txt", "good\n", wrong="sick"),
    Job("add", "append", "ledger.txt", "added\n"),
    Job("talk", "append", "ledger.txt", "talked\n", wrong="talk"),
    Job("ask", "replace", "kept.txt", "new\n", wrong="ask"),
    Job("look", needs=("ask",)),
)


def crash_scenario(seed: int) -> Scenario:
    """Six tasks under every schedule, at different widths and paces, with and without a healer and a question."""
    schedule = ("batch", "off", "auto", "epoch", "task")[seed % 5]
    jobs = PLAIN if schedule == "off" or seed % 10 >= 5 else HEALED
    pause = (0.0, 0.03, 0.1)[seed % 3]
    return Scenario(f"crash-{seed}", jobs, schedule=schedule, concurrency=(2, 3, 1)[seed % 3], pause_sec=pause)


def fleet_scenario(tasks: int, concurrency: int, pause_sec: float) -> Scenario:
    """Many tasks; every second one adds its line to one shared file, so that a write done twice shows."""
    names = [f"t{n:03d}" for n in range(tasks)]
    jobs = tuple(
        Job(name, "append", "ledger.txt", f"{name}\n") if place % 2 else Job(name, "create", f"out/{name}.txt", "x\n")
        for place, name in enumerate(names)
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

    def make(self, *, at_root: Callable[[Path], None] | None = None) -> Place:
        """Writes everything; `at_root` is called once the project's folder is there and empty."""
        answers = self.base / "answers"
        for folder in (self.root, answers):
            folder.mkdir(parents=True)
        if at_root is not None:
            at_root(self.root)
        self.starts.touch()
        for job in self.scenario.jobs:
            (answers / job.name).write_text(_answer(job, job.content))
            if job.wrong:
                (answers / f"{job.name}.{'sick' if job.wrong == 'sick' else 'first'}").write_text(_wrong_answer(job))
        (answers / "healer").write_text(_cure(self.scenario))
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
max_worker_attempts_per_task = 3
concurrency = {given.concurrency}
grace_sec = 1
[agents.counted]
kind = "command"
argv = ["{self.base / "agent"}"]
[roles.worker]
agent = "counted"
"""
        if given.budget_attempts is not None:
            config += f"[budget]\nattempts = {given.budget_attempts}\n"
        if given.heals:
            config += '[roles.healer]\nagent = "counted"\n'
        return {
            "ganger.toml": config,
            "prompt.md": "Do it.\n",
            "verify.json": json.dumps({"profiles": {"check": profile}}),
            "manifest.json": json.dumps({"manifest_version": "2.0", "run_id": given.name, "tasks": tasks}),
        }


def _answer(job: Job, content: str, status: str = "DONE", **more: object) -> str:
    result: dict[str, object] = {
        "contract_version": "2.0",
        "task_id": job.name,
        "status": status,
        "summary": "it is so",
    }
    if job.op and status == "DONE":
        result["writes"] = [{"path": job.path, "op": job.op, "encoding": "utf8", "content": content}]
    return _block("result", result | more)


def _wrong_answer(job: Job) -> str:
    if job.wrong == "talk":
        return "I would rather talk.\n"
    if job.wrong == "ask":
        return _answer(job, "", "BLOCKED", failure_class="ambiguous_spec")
    return _answer(job, "WRONG\n")


def _cure(scenario: Scenario) -> str:
    patches = [
        {"target": "task_prompt", "operation": "append", "task_id": job.name, "content": "Take MEDICINE.\n"}
        for job in scenario.jobs
        if job.wrong == "sick"
    ]
    decision = {"scope": "batch", "decision": "RETRY", "failure_class": "prompt_gap", "root_cause": "no medicine"}
    return _block("heal", {"contract_version": "2.0", **decision, "patches": patches})


def _block(kind: str, body: dict[str, object]) -> str:
    return f"<<<{_MARKS[kind]}>>>\n{json.dumps(body)}\n<<<END_{_MARKS[kind]}>>>\n"
