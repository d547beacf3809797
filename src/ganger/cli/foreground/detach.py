"""`ganger run --detach`: starts the same command in a session of its own, without a terminal; waits until it leads."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import click

from ganger.cli.shell.options import print_json
from ganger.errors import EXIT_OK, NotFoundError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from ganger.local.run_folder import RunFolder

LOG = "lead.log"
_LOOK_SEC = 0.05
_PATIENCE_SEC = 60.0


def detach(context: click.Context, folder: RunFolder, run_id: str, *, as_json: bool) -> int:
    """Starts the lead. Returns as soon as it has recorded that it leads, or with the code it failed with."""
    log = folder.path / LOG
    since = _last_seq(folder)
    with os.fdopen(os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600), "wb") as file:
        begin = file.seek(0, os.SEEK_END)
        child = _start([sys.executable, "-P", "-m", "ganger", *words(context)], file.fileno())
    try:
        leads = _leads(folder, since, child)
    except BaseException:
        child.terminate()
        raise
    if not leads and child.returncode is not None:
        return _ended(child.returncode, run_id, log, begin, as_json=as_json)
    _say(run_id, child.pid, log, leads=leads, as_json=as_json)
    return EXIT_OK


def words(context: click.Context) -> list[str]:
    """The command line that was given, as click understood it, without --detach."""
    options: list[str] = []
    arguments: list[str] = []
    for parameter in context.command.params:
        value = context.params.get(parameter.name or "")
        if parameter.name == "detach" or value is None or value is False:
            continue
        if isinstance(parameter, click.Argument):
            arguments.append(str(value))
        else:
            options += _option(parameter.opts[0], value)
    return [context.info_name or "run", *options, "--", *arguments]


def _option(name: str, value: object) -> Iterator[str]:
    if value is True:
        yield name
    else:
        yield from (f"{name}={each}" for each in (value if isinstance(value, tuple) else (value,)))


def _start(argv: list[str], log: int) -> subprocess.Popen[bytes]:
    """In its own session: closing a terminal does not reach it, and an ignored SIGHUP stays ignored in the child."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        return subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
    finally:
        signal.signal(signal.SIGHUP, before)


def _leads(folder: RunFolder, since: int, child: subprocess.Popen[bytes]) -> bool:
    """Whether the child has taken the lead; false when it exits first or takes longer than 60 s."""
    deadline = time.monotonic() + _PATIENCE_SEC
    while True:
        # The exit is checked first: a short run may take the lead and end between two checks.
        ended = child.poll() is not None
        since, leads = _look(folder, since, child.pid)
        if leads or ended or time.monotonic() >= deadline:
            return leads
        time.sleep(_LOOK_SEC)


def _look(folder: RunFolder, since: int, pid: int) -> tuple[int, bool]:
    from ganger.app.runs import read_events
    from ganger.core.events import LeadStarted

    try:
        for recorded in read_events(folder, since):
            since = recorded.seq
            if isinstance(recorded.event, LeadStarted) and recorded.event.pid == pid:
                return since, True
    except NotFoundError:
        pass
    return since, False


def _last_seq(folder: RunFolder) -> int:
    from ganger.app.runs import read_events

    try:
        return max((recorded.seq for recorded in read_events(folder, 0)), default=0)
    except NotFoundError:
        return 0


def _ended(code: int, run_id: str, log: Path, begin: int, *, as_json: bool) -> int:
    """It never led: print its output and return its exit code."""
    said = log.read_bytes()[begin:].decode("utf-8", "replace")
    if as_json and code == EXIT_OK:
        print_json("detached", run_id=run_id, pid=None, leads=False, log=str(log), message="nothing to do")
    elif as_json:
        print(_last_document(said) or json.dumps(_unknown(code, log), ensure_ascii=False))
    else:
        click.echo(said.rstrip("\n"), err=code != EXIT_OK)
    return code if code >= 0 else 128 - code


def _last_document(said: str) -> str:
    return next((line for line in reversed(said.splitlines()) if line.startswith('{"schema": "ganger.error/1"')), "")


def _unknown(code: int, log: Path) -> Mapping[str, object]:
    body = {"code": "ERROR", "message": f"the lead ended with code {code}", "hint": f"read {log}", "where": []}
    return {"schema": "ganger.error/1", "ok": False, "error": body}


def _say(run_id: str, pid: int, log: Path, *, leads: bool, as_json: bool) -> None:
    run = f" --run {shlex.quote(run_id)}"
    watch, stop = f"ganger status{run}", f"ganger stop{run}"
    if as_json:
        print_json("detached", run_id=run_id, pid=pid, leads=leads, log=str(log), watch=watch, stop=stop)
        return
    doing = "leads" if leads else "has started and does not lead yet:"
    click.echo(f"run {run_id}: process {pid} {doing} without a terminal")
    click.echo(f"  watch   {watch}   ganger events{run} --follow")
    click.echo(f"  stop    {stop}   {stop} --drain")
    click.echo(f"  log     {log}")
