"""A run to be disturbed: what it is made of, where it lives, and how it must end."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ganger.worker.folders import private_folder

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
TOGETHER = "red does not go with partner"
_CHECK = f"""#!/bin/sh
if [ -e out/partner.txt ] && grep -q FIRST out/red.txt 2>/dev/null
then echo "AssertionError: {TOGETHER}"; exit 1
fi
! grep -rq WRONG "$PWD/out" "$PWD/kept.txt" "$PWD/ledger.txt"
"""
_MARKS = {"result": "TASK_RESULT_V2", "heal": "HEAL_DECISION_V2"}


@dataclass(frozen=True, slots=True)
class Job:
    """One task: the file it writes, and what goes wrong with it.

    `wrong`: its first attempt fails the `check`, only `talk`s, or `ask`s a person; or it is `sick` until healed.
    `edit`: what the agent does in its folder, in words of the shell; `first_edit` at its first attempt.
    """

    name: str
    op: str = ""
    path: str = ""
    content: str = ""
    wrong: str = ""
    needs: tuple[str, ...] = ()
    edit: str = ""
    first_edit: str = ""


@dataclass(frozen=True, slots=True)
class Scenario:
    """`wanted`: files of the merged tree, where the jobs' own words do not tell them.

    `pulled`: the jobs that nobody is started for; sessions ask for them. `settings`: more of the project's own.
    """

    name: str
    jobs: tuple[Job, ...]
    mode: str = "direct"
    merging: str = "queue"
    warm: int = 0
    schedule: str = "batch"
    batch_size: int = 3
    concurrency: int = 2
    pause_sec: float = 0.0
    budget_attempts: int | None = None
    files: Mapping[str, str] = field(default_factory=lambda: {"kept.txt": "old\n", "ledger.txt": "begin\n"})
    wanted: Mapping[str, str] = field(default_factory=dict)
    pulled: frozenset[str] = frozenset()
    settings: str = ""

    @property
    def heals(self) -> bool:
        return any(job.wrong == "sick" for job in self.jobs)

    @property
    def in_git(self) -> bool:
        return self.mode != "direct"

    def expected_files(self) -> dict[str, list[str]]:
        """The lines every file must have in the end, sorted: appending tasks may come in any order."""
        lines = {path: text.splitlines() for path, text in {**self.files, **self.wanted}.items()}
        for job in self.jobs:
            if job.op:
                lines[job.path] = (lines.get(job.path, []) if job.op == "append" else []) + job.content.splitlines()
        return {path: sorted(found) for path, found in lines.items()}


@dataclass(frozen=True, slots=True)
class Place:
    """Where one disturbed run lives: the project, and beside it what the harness alone writes."""

    base: Path
    scenario: Scenario

    @property
    def ground(self) -> Path:
        """All that a run works with: where a disk that fails is mounted."""
        return self.base / "ground"

    @property
    def root(self) -> Path:
        return self.ground / "project"

    @property
    def state_home(self) -> Path:
        """The user's state folder of this place: runs that work in the project itself are kept there."""
        return self.ground / "state"

    @property
    def starts(self) -> Path:
        return self.base / "starts"

    @property
    def run_folder(self) -> Path:
        shown = self.root / ".ganger"
        private = private_folder(str(self.root), {"XDG_STATE_HOME": str(self.state_home)})
        return (shown if self.scenario.in_git else Path(private)) / self.scenario.name

    @property
    def store(self) -> Path:
        return self.root / ".ganger" / "repo.git"

    @property
    def checkout(self) -> Path:
        """What the person's own folder was like before the run, in one file."""
        return self.base / "checkout"

    def make(self, *, at_root: Callable[[Path], None] | None = None) -> Place:
        """Writes everything; `at_root` is called once the folder is there in which everything will be."""
        answers = self.base / "answers"
        for folder in (self.ground, answers):
            folder.mkdir(parents=True)
        if at_root is not None:
            at_root(self.ground)
        for folder in (self.root, self.state_home):
            folder.mkdir()
        self.starts.touch()
        for job in self.scenario.jobs:
            _write_answers(answers, job)
        (answers / "healer").write_text(_cure(self.scenario))
        agent = _AGENT.format(starts=self.starts, pause=self.scenario.pause_sec, answers=answers)
        for name, text in {"agent": agent, "check": _CHECK}.items():
            (self.base / name).write_text(text)
            (self.base / name).chmod(0o755)
        (self.root / "out").mkdir()
        for name, text in {**self._project_files(), **self.scenario.files}.items():
            (self.root / name).write_text(text)
        if self.scenario.in_git:
            self._commit()
        return self

    def _commit(self) -> None:
        for words in ("init -q -b main", "add -A", "-c user.name=A -c user.email=a@example.org commit -qm begin"):
            subprocess.run(["git", *words.split()], cwd=self.root, check=True, capture_output=True)
        self.checkout.write_text(json.dumps(self.look()))

    def look(self) -> dict[str, str]:
        """Every file of the project that is not Ganger's, byte for byte: index, branches and all."""
        return {
            path.relative_to(self.root).as_posix(): path.read_bytes().hex()
            for path in sorted(self.root.rglob("*"))
            if path.is_file() and not path.is_relative_to(self.root / ".ganger")
        }

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
                **({"metadata": {"role": "session"}} if job.name in given.pulled else {}),
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
[sandbox]
use = "off"
"""
        if given.budget_attempts is not None:
            config += f"[budget]\nattempts = {given.budget_attempts}\n"
        if given.in_git:
            config += f'[workspace]\nmode = "{given.mode}"\nmerging = "{given.merging}"\nwarm = {given.warm}\n'
            config += "min_free_mb = 0\n"
        if given.heals:
            config += '[roles.healer]\nagent = "counted"\n'
        if given.pulled:
            config += '[agents.session]\nkind = "pull"\nin_place = false\n[roles.session]\nagent = "session"\n'
        config += given.settings
        return {
            "ganger.toml": config,
            "prompt.md": "Do it.\n",
            "verify.json": json.dumps({"profiles": {"check": profile}}),
            "manifest.json": json.dumps({"manifest_version": "2.0", "run_id": given.name, "tasks": tasks}),
        }


def _write_answers(answers: Path, job: Job) -> None:
    (answers / job.name).write_text(_answer(job, job.content))
    if job.edit:
        (answers / f"{job.name}.edit").write_text(job.edit)
    if job.wrong:
        bad = answers / f"{job.name}.{'sick' if job.wrong == 'sick' else 'first'}"
        bad.write_text(_wrong_answer(job))
        if job.first_edit:
            bad.with_name(f"{bad.name}.edit").write_text(job.first_edit)


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
