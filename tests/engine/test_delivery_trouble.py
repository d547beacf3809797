"""Deliveries that meet a remote, a mirror or a person at a bad moment: real git, real processes."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from ganger.core.vocabulary import TaskStatus
from tests.engine.delivery_runs import DeliveryProject
from tests.engine.git_runs import edits, git
from tests.engine.run_projects import task, until
from tests.patience import stretched

pytestmark = pytest.mark.whole

GOOD = {"a": edits({"a.txt": "fine\n"})}
SLOW = "#!/bin/sh\necho $$ > {pid}\n[ -e {go} ] || exec sleep 100\n"
SOON_SEC = 15.0
LEAK = "AKIA" + "IOSFODNN7EXAMPLW"


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


@pytest.mark.brief(1)
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
        process.communicate(timeout=stretched(60))
    assert time.monotonic() - since < SOON_SEC and process.returncode == 130
    until(lambda: not is_alive(pid))
    go.touch()
    assert project.run() == 0
    assert (project.status("a"), project.workers(), len(project.pushed())) == (TaskStatus.DONE, 1, 1)


def test_who_is_red_by_the_fault_of_another_waits_until_that_one_mended_it(tmp_path: Path) -> None:
    """D06 D13: one fault is mended by one task; the others are judged by a commit that holds the mend."""
    bad = [edits({"bad.txt": "broken\n"}), {"delay": 1.5, **edits({"bad.txt": "whole\n"})}]
    good = {"delay": 0.6, **edits({"good.txt": "fine\n"})}
    project = DeliveryProject(
        tmp_path / "p", tasks=[task("bad"), task("good")], script={"bad": bad, "good": [good]}, policy="concurrency = 2"
    ).make()
    assert project.run() == 0
    now = project.state().tasks
    assert (now["bad"].counters.ci_fixes, now["good"].counters.ci_fixes) == (1, 0)
    assert (project.workers("bad"), project.workers("good")) == (2, 1)
    assert all(task.delivery is not None and task.delivery.green == task.delivery.commit for task in now.values())
    assert git(project.remote, "show", f"{now['good'].delivery.commit}:good.txt") == "fine"  # type: ignore[union-attr]


def test_who_brought_in_a_fault_of_its_own_mends_it_beside_the_other(tmp_path: Path) -> None:
    """D06 D13: nobody waits for a mend of what only itself can mend."""
    one = [edits({"one.txt": "broken\n"}), edits({"one.txt": "whole\n"})]
    two = [{"delay": 0.6, **edits({"two.txt": "broken too\n"})}, edits({"two.txt": "whole\n"})]
    project = DeliveryProject(
        tmp_path / "p", tasks=[task("one"), task("two")], script={"one": one, "two": two}, policy="concurrency = 2"
    ).make()
    assert project.run() == 0
    assert all(now.status is TaskStatus.DONE and now.counters.ci_fixes <= 3 for now in project.state().tasks.values())


def test_what_waited_for_a_halt_goes_on_when_a_person_lifts_it(tmp_path: Path) -> None:
    """D12: nothing is pushed while the chain is halted, and nobody works again for it afterwards."""
    leaks = edits({"leak.txt": f"key = {LEAK}\n"})
    late = {"delay": 1.0, **edits({"late.txt": "fine\n"})}
    project = DeliveryProject(
        tmp_path / "p", tasks=[task("leaks"), task("late")], script={"leaks": leaks, "late": late},
        policy="concurrency = 2",
    ).make()  # fmt: skip
    assert project.run() != 0
    assert (project.status("late"), project.pushed()) == (TaskStatus.BLOCKED, [])
    assert project.ganger("unlock", ".", "--why", "the key is replaced").returncode == 0
    project.run()
    assert (project.status("late"), project.workers("late"), len(project.pushed())) == (TaskStatus.DONE, 1, 1)
