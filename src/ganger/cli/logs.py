"""`ganger logs`: what an agent or a verification printed."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ganger.cli.shell.options import (
    json_option,
    known_task,
    look_at_project,
    open_run,
    print_json,
    project_option,
    run_option,
)
from ganger.errors import NotFoundError
from ganger.local.streams import SaidOutput

if TYPE_CHECKING:
    from ganger.core.masking import Masker

_CHUNK = 1 << 16


@click.command("logs")
@click.argument("task_id", metavar="TASK")
@click.option("--attempt", type=click.IntRange(1), help="Which attempt (default: the newest).")
@click.option("--verify", is_flag=True, help="Print the verification's log instead of the agent's.")
@click.option("--follow", is_flag=True, help="Keep printing until the attempt ends.")
@click.option("--raw", is_flag=True, help="Print the bytes unchanged, terminal codes included.")
@project_option
@run_option
@json_option
def command(
    task_id: str,
    attempt: int | None,
    verify: bool,
    follow: bool,
    raw: bool,
    project: Path | None,
    run_id: str | None,
    as_json: bool,
) -> int:
    """Print a log. Terminal codes are removed unless --raw is given.

    \b
    Examples:
      ganger logs build-api
      ganger logs build-api --attempt 1 --verify
      ganger logs build-api --follow
    """
    from ganger.core.names import verify_log, worker_log

    folder, state = open_run(project, run_id)
    task = state.tasks[known_task(state, task_id)]
    number = attempt or task.attempts
    if not number:
        raise NotFoundError(f"{task_id} has not been attempted yet", hint=f"ganger why {task_id}")
    path = folder.path / (verify_log if verify else worker_log)(task_id, number)
    if not path.is_file():
        kind = "verification" if verify else "agent"
        raise NotFoundError(
            f"{task_id} has no {kind} log for attempt {number}", hint=f"attempts so far: {task.attempts}"
        )
    from ganger.app.masks import masker_of
    from ganger.engine.log_masks import covered, read_masks

    masker = masker_of(look_at_project(project))
    if as_json:
        data = path.read_bytes()[-(4 << 20) :]
        shown = covered(data, path.stat().st_size - len(data), read_masks(path))
        text = masker.text(shown.decode("utf-8", "replace"))
        kind = "verify" if verify else "worker"
        print_json("logs", run_id=state.run_id, task=task_id, attempt=number, kind=kind, path=str(path), text=text)
        return 0
    _print(
        path,
        masker,
        raw=raw,
        still_running=(lambda: _running(project, run_id, task_id, number)) if follow else lambda: False,
    )
    return 0


def _running(project: Path | None, run_id: str | None, task_id: str, attempt: int) -> bool:
    from ganger.core.vocabulary import TaskStatus

    task = open_run(project, run_id)[1].tasks[task_id]
    return task.status is TaskStatus.RUNNING and task.attempts == attempt


def _print(path: Path, masker: Masker, *, raw: bool, still_running: object) -> None:
    from ganger.engine.log_masks import covered, read_masks
    from ganger.views.text import clean_text

    assert callable(still_running)
    out, noted = SaidOutput(sys.stdout.buffer), read_masks(path)
    with path.open("rb") as file:
        going = True
        while True:
            at, data = file.tell(), file.read(_CHUNK)
            if data:
                line = covered(data + (file.readline() if not data.endswith(b"\n") else b""), at, noted)
                out.write(masker.data(line) if raw else masker.text(clean_text(line)).encode("utf-8", "replace"))
                out.flush()
            elif not going:
                return
            else:
                going = bool(still_running())
                if going:
                    time.sleep(0.3)
