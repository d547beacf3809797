"""Trouble of one attempt ends that attempt: the others are DONE, and commands find a way out of RUNNING."""

from __future__ import annotations

import contextlib
import shutil
from pathlib import Path
from typing import Any

import pytest

from ganger.core import events as ev
from ganger.core.vocabulary import BlockReason, TaskStatus
from ganger.engine.lead import Lead
from ganger.errors import NotFoundError, RollbackFailed
from ganger.ports.repository import Taken
from tests.engine.git_runs import GitProject
from tests.engine.run_projects import Project, done, kill, leading, task, until, write

pytestmark = pytest.mark.whole

THREE = [task("a"), task("bad"), task("z")]
# Without walls it reaches whatever its user can.
AGENT = """
cd "$GANGER_WORKSPACE"
run=$(cd ../.. && pwd)
if [ "$GANGER_TASK_ID" = bad ]; then
  echo half > half.txt
  {trick}
else
  echo x > "$GANGER_TASK_ID.txt"
fi
echo '<<<TASK_RESULT_V2>>>'
echo '{{"contract_version": "2.0", "task_id": "'$GANGER_TASK_ID'", "status": "DONE", "summary": "did it"}}'
echo '<<<END_TASK_RESULT_V2>>>'
"""
REPLACED = {
    "by a link to another folder": 'cd /; rm -rf "$GANGER_WORKSPACE"; ln -s {outside} "$GANGER_WORKSPACE"',
    "by a link to itself": 'cd /; rm -rf "$GANGER_WORKSPACE"; ln -s "$GANGER_WORKSPACE" "$GANGER_WORKSPACE"',
    "by a dangling link": 'cd /; rm -rf "$GANGER_WORKSPACE"; ln -s /no/such/place "$GANGER_WORKSPACE"',
    "moved away behind a link": 'cd /; mv "$GANGER_WORKSPACE" {outside}/w; ln -s {outside}/w "$GANGER_WORKSPACE"',
    "by a file": 'cd /; rm -rf "$GANGER_WORKSPACE"; echo x > "$GANGER_WORKSPACE"',
    "by a pipe": 'cd /; rm -rf "$GANGER_WORKSPACE"; mkfifo "$GANGER_WORKSPACE"',
    "deleted": 'cd /; rm -rf "$GANGER_WORKSPACE"',
}
SPOILT = {
    "its .git is a link": "rm -rf .git; ln -s {outside} .git",
    "its .git is a pipe": "rm -rf .git; mkfifo .git",
    "its .git is gone": "rm -rf .git",
    "its .git is a loop": "rm -rf .git; ln -s .git .git",
}
LOG_GONE = 'rm -f "$run"/logs/bad.*'
BEHIND = {
    "its index is gone": 'rm -rf "$run"/work/.index',
    "its index is a folder": 'rm -f "$run"/work/.index/bad.*; mkdir -p "$run"/work/.index/bad.1.x',
    "its log is a pipe": f'{LOG_GONE}; mkfifo "$run"/logs/bad.worker.1.log; exit 0',
    "its log is a pipe and it fails": f'{LOG_GONE}; mkfifo "$run"/logs/bad.worker.1.log; exit 1',
    "its log is a folder": f'{LOG_GONE}; mkdir "$run"/logs/bad.worker.1.log; exit 0',
    "its log is gone": f"{LOG_GONE}; exit 0",
    "its check's log is a pipe": 'mkfifo "$run"/logs/bad.verify.1.log',
    "its check's log is a folder": 'mkdir "$run"/logs/bad.verify.1.log',
    "its logs are elsewhere": 'mv "$run"/logs "$run"/gone; sleep 1; mv "$run"/gone "$run"/logs',
    "the place of workspaces is a file": 'rm -rf "$run"/work; echo x > "$run"/work',
    "the place of workspaces is a dangling link": 'rm -rf "$run"/work; ln -s /no/such/place "$run"/work',
    "the place of checks is a pipe": 'rm -rf "$run"/checks; mkfifo "$run"/checks',
    "the state is a folder": 'rm -f "$run"/state.json; mkdir -p "$run"/state.json/x',
    "the report is a folder": 'mkdir -p "$run"/report.md/x',
    "its desk is a link": 'for d in "$run"/desks/*; do rm -rf "$d"; ln -s {outside} "$d"; done',
    "its desk is a pipe": 'for d in "$run"/desks/*; do rm -rf "$d"; mkfifo "$d"; done',
    "its desks are gone": 'rm -rf "$run"/desks',
    "its prompts are gone": 'rm -rf "$run"/prompts/bad*; mkfifo "$run"/prompts/bad.2.md; exit 1',
}


def hostile(root: Path, trick: str, **more: object) -> GitProject:
    outside = root.parent / "outside"
    outside.mkdir(exist_ok=True)
    (outside / "mine.txt").write_text("mine\n")
    script = root.parent / "agent.sh"
    script.write_text(AGENT.format(trick=trick.format(outside=outside)))
    agent = f'kind = "command"\nargv = ["sh", "{script}"]'
    project = GitProject(root, THREE, agent=agent, more='[sandbox]\nuse = "off"')
    for name, value in more.items():
        setattr(project, name, value)
    project.make()
    return project


def others_are_done(project: Project) -> bool:
    return {project.status(name) for name in "az"} == {TaskStatus.DONE} and not project.state().index.running


@pytest.mark.quick
@pytest.mark.sample(1)
@pytest.mark.parametrize("trick", REPLACED.values(), ids=REPLACED)
def test_an_agent_that_replaces_its_workspace_fails_alone(tmp_path: Path, trick: str) -> None:
    """G05 G08: it has a class and a sentence, everybody else is merged, and nothing outside is touched."""
    project = hostile(tmp_path / "p", trick)
    assert project.run() == 1 and others_are_done(project)
    bad = project.state().tasks["bad"]
    assert (bad.status, bad.failure.failure_class) == (
        TaskStatus.FAILED,
        "policy_violation",
    ) and "is gone" in bad.detail
    assert (tmp_path / "outside/mine.txt").read_text() == "mine\n" and project.folders() == []
    assert project.run() == 1 and project.ganger("clean", "--json").returncode == 0


@pytest.mark.parametrize("trick", [*SPOILT.values(), *BEHIND.values()], ids=[*SPOILT, *BEHIND])
def test_whatever_an_agent_does_to_what_is_kept_of_it_the_others_are_done(tmp_path: Path, trick: str) -> None:
    """G05 G08: the run ends by itself and says what became of the task."""
    project = hostile(tmp_path / "p", trick)
    assert project.run() in (0, 1, 3, 4) and others_are_done(project)
    bad = project.state().tasks["bad"]
    assert bad.status is TaskStatus.DONE or bad.detail
    assert project.folder.state.is_file() and project.folder.report.is_file()
    assert (tmp_path / "outside/mine.txt").read_text() == "mine\n"


def test_a_file_of_holes_is_not_copied_and_stays_where_it_is(tmp_path: Path) -> None:
    """G08: a terabyte that takes no room on the disk would be read for hours."""
    project = hostile(tmp_path / "p", "truncate -s 1T huge.bin")
    assert project.run() == 1 and others_are_done(project)
    bad = project.state().tasks["bad"]
    assert (bad.failure.failure_class, bad.counters.worker_attempts) == (
        "policy_violation",
        2,
    ) and "huge.bin" in bad.detail
    assert {path.parent.name for path in (project.folder.path / "work").rglob("huge.bin")} == {"bad.1", "bad.2"}


def test_a_lead_that_dies_beside_such_an_agent_is_followed_by_one_that_goes_on(tmp_path: Path) -> None:
    """H10 T20: recovery meets the same folder, and the run does not end with it."""
    link = f'cd /; rm -rf "$GANGER_WORKSPACE"; ln -s {{outside}} "$GANGER_WORKSPACE"; touch {tmp_path}/linked; sleep 1'
    project = hostile(tmp_path / "p", link)
    lead = project.start()
    until(lambda: (tmp_path / "linked").exists(), beside=lead)
    kill(lead)
    lead.communicate()
    assert project.run() == 1 and others_are_done(project) and project.folders() == []
    assert project.state().tasks["bad"].failure.failure_class == "policy_violation"


@pytest.mark.parametrize("answered", [False, True], ids=["at work", "answered"])
def test_work_whose_folder_is_gone_when_the_next_lead_comes_is_begun_anew(tmp_path: Path, answered: bool) -> None:
    """G08 H10: its answer does not say that nothing had to be changed; no counter pays, who still works is ended."""
    waits = f"if mkdir {tmp_path}/first; then while [ ! -e {tmp_path}/go ]; do sleep 0.1; done; fi"
    project = hostile(tmp_path / "p", waits)
    lead = project.start()
    until(lambda: (tmp_path / "first").exists(), beside=lead)
    kill(lead)
    lead.communicate()
    if answered:
        (tmp_path / "go").touch()
        until(lambda: "END_TASK_RESULT" in (project.folder.path / "logs/bad.worker.1.log").read_text())
    shutil.rmtree(project.folder.path / "work/bad.1")
    assert project.run() == 0 and others_are_done(project) and "half.txt" in project.merged_files()
    assert project.state().tasks["bad"].counters.worker_attempts == 1 and project.find(ev.AttemptInterrupted)


def test_no_agent_is_started_in_a_folder_that_leads_elsewhere(tmp_path: Path) -> None:
    """G05: what would be writable for it is where the link leads."""
    project = GitProject(tmp_path / "p", [task("a")]).make()
    outside = tmp_path / "outside"
    outside.mkdir()
    work = project.folder.path / "work"
    work.mkdir(parents=True)
    (work / "a.1").symlink_to(outside)
    assert project.run() == 0 and list(outside.iterdir()) == []


def test_an_error_nobody_foresaw_is_told_in_its_own_words_and_the_others_are_done(tmp_path: Path) -> None:
    """G10 G08: no counter pays; its answer is looked at once more, and nobody is paid for it again."""
    project = hostile(tmp_path / "p", "true")

    def break_taking(lead: Lead) -> None:
        repository = lead.tools.repositories[""]
        take = repository.take

        async def broken(name: str, *more: Any) -> Taken:
            if name == "bad":
                raise KeyError("no such thing")
            return await take(name, *more)

        repository.take = broken  # type: ignore[assignment,method-assign]

    assert project.run(during=break_taking) == 3 and others_are_done(project)
    bad = project.state().tasks["bad"]
    assert (bad.block_reason, bad.counters.worker_attempts) == (BlockReason.EXTERNAL, 0) and "KeyError" in bad.detail
    assert len([event for event in project.find(ev.AttemptLaunched) if event.task == "bad"]) == 1
    assert "no such thing" in project.ganger("why", "bad").stdout
    assert project.run() == 0


# While the change of `bad` is judged and a file outside says so.
STUCK = "import os, time\nwhile os.path.exists('half.txt') and os.path.exists({stuck!r}):\n    time.sleep(0.1)\n"
AFTER = {
    "end": (TaskStatus.BLOCKED, "ended by a person"),
    "skip": (TaskStatus.BLOCKED, "skipped by a person"),
    "retry": (TaskStatus.PENDING, "given to another worker by a person"),
}


def stuck(tmp_path: Path) -> GitProject:
    (tmp_path / "stuck").touch()
    check = STUCK.format(stuck=str(tmp_path / "stuck"))
    return hostile(tmp_path / "p", "true", check=check, policy="concurrency = 3")


def wanted(command: str) -> list[str]:
    return [command, "bad", *(["--force"] if command == "retry" else [])]


def is_judged(project: Project) -> bool:
    with contextlib.suppress(NotFoundError):
        return any(event.task == "bad" for event in project.find(ev.VerifyStarted))
    return False


@pytest.mark.parametrize("command", AFTER)
def test_a_command_ends_an_attempt_whose_worker_is_through(tmp_path: Path, command: str) -> None:
    """G12: also while it is verified, and everybody else goes on."""
    project = stuck(tmp_path)
    with leading(project) as lead:
        until(lambda: is_judged(project), beside=lead)
        project.ganger("pause")
        assert project.ganger(*wanted(command)).returncode == 0
        until(lambda: project.status("bad") is AFTER[command][0], beside=lead)
        assert AFTER[command][1] in project.state().tasks["bad"].detail
        until(lambda: others_are_done(project), beside=lead)
        until(lambda: len(project.processes()) == 0, beside=lead)
        assert project.ganger("stop").returncode == 0 and lead.wait(30) in (3, 130)


@pytest.mark.parametrize("command", AFTER)
def test_a_command_that_was_left_without_a_lead_ends_the_attempt_the_next_one_finds(
    tmp_path: Path, command: str
) -> None:
    """G12 H10: before the next lead goes on with it."""
    project = stuck(tmp_path)
    with leading(project) as lead:
        until(lambda: is_judged(project), beside=lead)
        kill(lead)
        assert "next ganger run" in (told := project.ganger(*wanted(command))).stdout + told.stderr
        (tmp_path / "stuck").unlink()
        assert project.run() == (0 if command == "retry" else 3) and others_are_done(project)
    bad, started = project.state().tasks["bad"], [e for e in project.find(ev.AttemptStarted) if e.task == "bad"]
    assert (bad.status is TaskStatus.DONE and len(started) == 2) or bad.detail == AFTER[command][1]


def test_files_that_cannot_be_put_back_are_a_persons_to_give_up(tmp_path: Path) -> None:
    """T18 G12: until then nobody goes on over such a tree; then the others do, and the originals are kept."""
    project = Project(tmp_path, [task("a"), task("z")], {"a": done(write("a.txt", "new", op="replace"))})
    project.files = {"a.txt": "old", "b.txt": "old"}
    project.steps = (
        {"name": "test", "cmd": "rm -rf .ganger/r1/backups/a.1/00000.orig"},
        {"name": "no", "cmd": "test ! -e once"},
    )
    project.make()
    (tmp_path / "once").touch()
    with pytest.raises(RollbackFailed):
        project.run()
    project.ganger("skip", "a")
    (tmp_path / "once").unlink()
    assert project.run() in (1, 3) and project.status("z") is TaskStatus.DONE
    assert project.status("a") is TaskStatus.FAILED and ".saved" in project.state().tasks["a"].detail


IN_PLACE = {
    "a folder became a link": "rm -rf src; ln -s {outside} src",
    "a folder became a pipe": "rm -rf src; mkfifo src",
    "a file became a loop": "ln -sf a.py src/a.py",
    "a file became a pipe": "rm src/a.py; mkfifo src/a.py",
    "a folder nobody may enter": "mkdir -p deep/er; echo x > deep/er/f; chmod 000 deep/er deep",
    "its runs are gone from where people look": "rm -rf .ganger; ln -s {outside} .ganger",
}


@pytest.mark.parametrize("trick", IN_PLACE.values(), ids=IN_PLACE)
def test_in_the_projects_own_folder_too_one_attempt_stops_no_other(tmp_path: Path, trick: str) -> None:
    """W02 G08: what it did is put back or told, and the others are DONE."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "mine.txt").write_text("mine\n")
    script = tmp_path / "agent.sh"
    script.write_text(AGENT.format(trick=trick.format(outside=outside)))
    project = Project(tmp_path / "p", THREE, agent=f'kind = "command"\nargv = ["sh", "{script}"]')
    project.files = {"src/a.py": "a = 1\n"}
    project.steps = ({"name": "test", "cmd": "test ! -e half.txt"},)
    project.make()
    config = project.root / "ganger.toml"
    config.write_text(f'{config.read_text()}\n[sandbox]\nuse = "off"\n')
    assert project.run() in (1, 3, 4) and others_are_done(project)
    assert project.state().tasks["bad"].detail and (outside / "mine.txt").read_text() == "mine\n"
