"""Deliveries that meet a remote, a mirror or a person at a bad moment: real git, real processes."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest
from delivery_runs import DeliveryProject
from git_runs import edits
from run_projects import until

from ganger.core.vocabulary import TaskStatus

GOOD = {"a": edits({"a.txt": "fine\n"})}
SLOW = "#!/bin/sh\necho $$ > {pid}\n[ -e {go} ] || exec sleep 100\n"
SOON_SEC = 15.0


def hook(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


def is_alive(pid: Path) -> bool:
    try:
        os.kill(int(pid.read_text()), 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.parametrize("where", ["push", "mirror"])
def test_a_stop_does_not_wait_for_a_remote_that_hangs(tmp_path: Path, where: str) -> None:
    """D18 T23: what hangs is ended with the lead, and done once by the next one."""
    pid, go = tmp_path / "pid", tmp_path / "go"
    script = tmp_path / "slow.sh"
    settings = f'mirror_command = ["{script}", "{{sha}}"]' if where == "mirror" else ""
    completion = ("verified", "committed", "pushed", "ci", "mirrored")[: 5 if where == "mirror" else 4]
    project = DeliveryProject(tmp_path / "p", script=GOOD, settings=settings, completion=completion).make()
    hook(script if where == "mirror" else project.remote / "hooks/pre-receive", SLOW.format(pid=pid, go=go))
    with project.start() as process:
        until(pid.exists, beside=process)
        process.send_signal(signal.SIGINT)
        since = time.monotonic()
        process.communicate(timeout=60)
    assert time.monotonic() - since < SOON_SEC and process.returncode == 130
    until(lambda: not is_alive(pid))
    go.touch()
    assert project.run() == 0
    assert (project.status("a"), project.workers(), len(project.pushed())) == (TaskStatus.DONE, 1, 1)
