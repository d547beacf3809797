"""Agent programs that work, break, hang and come back. The task's name says which one it is.

Run as `agent_behaviours.py FOLDER`: there each notes the moment from which on it must be noticed.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

TASK, ATTEMPT = os.environ["GANGER_TASK_ID"], int(os.environ["GANGER_ATTEMPT"])
NOTES = Path(sys.argv[1])
_SYS_EXIT = 60 if os.uname().machine == "x86_64" else 93


def note(about: str = "cause") -> None:
    """Behind walls there is nowhere to note it."""
    with contextlib.suppress(OSError):
        (NOTES / f"{TASK}.{ATTEMPT}.{about}").write_text(repr(time.time()))


def say(text: str, end: str = "\n") -> None:
    print(text, end=end, flush=True)


def result() -> dict[str, object]:
    return {"contract_version": "2.0", "task_id": TASK, "status": "DONE", "summary": "did it"}


def answer() -> None:
    say(f"<<<TASK_RESULT_V2>>>\n{json.dumps(result())}\n<<<END_TASK_RESULT_V2>>>")


def worker(*words: str, text: str = "") -> str:
    """The worker's own program, as an agent calls it."""
    called = ["ganger", "worker", *words]
    return subprocess.run(called, input=text, capture_output=True, text=True, check=True).stdout


def post(verb: str, body: dict[str, object], *, read: bool = True, part: float = 1.0) -> str:
    """A request by hand: perhaps only a part of it, perhaps without waiting for what comes back."""
    data = json.dumps(body).encode()
    head = (
        f"POST /v1/{verb} HTTP/1.1\r\nHost: lead\r\nAuthorization: Bearer {os.environ['GANGER_TOKEN']}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(data)}\r\nConnection: close\r\n\r\n"
    )
    whole = head.encode() + data
    with socket.socket(socket.AF_UNIX) as line:
        line.connect(os.environ["GANGER_REPORT"])
        line.sendall(whole[: int(len(whole) * part)])
        return line.makefile("rb").read().decode() if read else ""


def die(number: signal.Signals = signal.SIGKILL) -> NoReturn:
    note()
    os.kill(os.getpid(), number)
    raise SystemExit(1)


def sleep_on() -> NoReturn:
    while True:
        time.sleep(600)


# --- those that break -----------------------------------------------------------------------------------------------


def crashes_at_start() -> None:
    note()
    os._exit(1)


def crashes_at_work() -> None:
    say("half of it")
    Path(f"{TASK}.txt").write_text("half\n")
    die(signal.SIGSEGV)


def crashes_after_answer() -> None:
    answer()
    die()


def crashes_after_report() -> None:
    worker("report", "-", text=json.dumps(result()))
    die()


def crashes_after_mark() -> None:
    worker("report", "-", text=json.dumps(result()))
    worker("done")
    die()


def leaves_a_file() -> None:
    """Its last deed before it ends."""
    (Path(os.environ["GANGER_DESK"]) / "result.json").write_text(json.dumps(result()))
    os._exit(0)


def loses_the_acknowledgement() -> None:
    """It is killed while it waits for it."""
    post("report", {"id": "r-1", "result": result()}, read=False)
    die()


def loses_half_of_a_request() -> None:
    post("report", {"id": "r-1", "result": result()}, read=False, part=0.8)
    say(post("report", {"id": "r-1", "result": result()}))


def says_it_twice() -> None:
    """As one whose acknowledgement was lost; it is acknowledged again and counts once."""
    for _ in range(2):
        assert " 200 " in post("milestone", {"id": "m-1", "name": "half"})
    assert len(recorded("m-1")) == 1
    for _ in range(2):
        assert " 200 " in post("report", {"id": "r-1", "result": result()})


def recorded(request: str) -> list[str]:
    """The events that came of it, as everybody can see them."""
    # Where it works in the project itself, runs are kept elsewhere.
    above = Path(os.environ["GANGER_DESK"]).parents[3]
    folder = above if (above / "ganger.toml").is_file() else Path(os.environ["GANGER_WORKSPACE"])
    called = [sys.executable, "-m", "ganger", "events", "--json", "--project", str(folder)]
    shown = subprocess.run(called, capture_output=True, text=True, check=True).stdout
    return [line for line in shown.splitlines() if f'"{request}"' in line]


def is_stored(request: str) -> bool:
    """Whether the store's files hold it by now."""
    folder = Path(os.environ["GANGER_DESK"]).parents[1]
    return any(f'"{request}"'.encode() in file.read_bytes() for file in folder.glob("ganger.db*"))


def looks_into_the_store() -> None:
    """What is acknowledged is there."""
    bodies: dict[str, dict[str, object]] = {
        "progress": {"step": "looks"},
        "milestone": {"name": "half"},
        "checkpoint": {"summary": "half of it"},
        "report": {"result": result()},
        "done": {},
    }
    for verb, body in bodies.items():
        assert " 200 " in post(verb, {"id": f"id-{verb}", **body})
        assert is_stored(f"id-{verb}"), verb


# --- those that get nowhere -----------------------------------------------------------------------------------------


def hangs() -> None:
    note()
    sleep_on()


def loops() -> None:
    note()
    while True:
        pass


def floods() -> None:
    note()
    while True:
        print("x" * 10_000)


def babbles() -> None:
    while True:
        say("still at it")
        time.sleep(0.2)


def waits_for_a_person() -> None:
    say("Overwrite the file? [y/N] ", end="")
    note()
    sleep_on()


def is_stopped() -> None:
    note()
    os.kill(os.getpid(), signal.SIGSTOP)


def will_not_end() -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    hangs()


def is_half_dead() -> None:
    """Its first thread has ended, which makes a zombie of it while another thread sleeps."""
    threading.Thread(target=sleep_on).start()
    note()
    ctypes.CDLL(None).syscall(_SYS_EXIT, 0)


def hides_behind_a_child() -> None:
    """What it started sleeps in a session of its own."""
    subprocess.Popen(["sleep", "600"], start_new_session=True)
    hangs()


def stops_beating() -> None:
    beat = Path(os.environ["GANGER_DESK"]) / "heartbeat.json"
    for step in range(5):
        beat.write_text(json.dumps({"step": f"step {step}"}))
        time.sleep(0.4)
    note()
    sleep_on()


def answers_and_stays() -> None:
    answer()
    note()
    sleep_on()


def reports_and_stays() -> None:
    worker("report", "-", text=json.dumps(result()))
    note()
    while True:
        say("and another thing")
        time.sleep(0.2)


def marks_and_stays() -> None:
    """Its report never came, and nothing says that it is through."""
    mark()
    sleep_on()


def marks_after_its_answer() -> None:
    answer()
    mark()
    sleep_on()


def marks_after_a_checkpoint() -> None:
    worker("checkpoint", "--summary", "all is done", "--done", "everything")
    mark()
    sleep_on()


def marks_and_ends() -> None:
    worker("checkpoint", "--summary", "all is done", "--done", "everything")
    mark()


def marks_too_early() -> None:
    """Its report is on its way when it is asked for it."""
    mark()
    while "report" not in worker("messages", "--wait", "30"):
        continue
    worker("report", "-", text=json.dumps(result()))


def mark() -> None:
    note()
    (Path(os.environ["GANGER_DESK"]) / "done.flag").touch()


# --- those that are well --------------------------------------------------------------------------------------------


def holds_the_pipe() -> None:
    """A child of its own, elsewhere, keeps its output open."""
    subprocess.Popen(["sleep", "600"], start_new_session=True)
    answer()
    note()


def leaves_zombies() -> None:
    """Nobody ever asked after its children."""
    for _ in range(5):
        if os.fork() == 0:
            os._exit(0)
    time.sleep(0.3)
    answer()
    note()


def talks_slowly() -> None:
    for step in range(5):
        say(f"step {step}")
        time.sleep(0.8)
    answer()


def writes_slowly() -> None:
    for step in range(5):
        Path("notes.txt").write_text(f"{step}\n")
        time.sleep(0.8)
    answer()


def computes() -> None:
    _busy(4.0)
    answer()


def lets_compute() -> None:
    """It only waits for what it started."""
    child = os.fork()
    if child == 0:
        _busy(4.0)
        os._exit(0)
    os.waitpid(child, 0)
    answer()


def _busy(sec: float) -> None:
    end = time.monotonic() + sec
    while time.monotonic() < end:
        sum(range(10_000))


def beats() -> None:
    for step in range(5):
        worker("heartbeat", "--step", f"step {step}")
        time.sleep(0.6)
    answer()


def beats_by_file() -> None:
    desk = Path(os.environ["GANGER_DESK"])
    for step in range(7):
        fresh = desk / "heartbeat.tmp"
        fresh.write_text(json.dumps({"worker_id": 1, "step": f"step {step}", "progress_pct": step * 10}))
        fresh.rename(desk / "heartbeat.json")
        time.sleep(0.6)
    answer()


def answers_when_asked() -> None:
    """Says nothing by itself, and answers a probe."""
    told = json.loads(worker("messages", "--wait", "30", "--json"))
    note("asked")
    assert told["messages"][0]["kind"] == "probe", told
    for _ in range(3):
        worker("heartbeat", "--step", "thinks")
        time.sleep(0.8)
    answer()


Deed = Callable[[], None]
# How often each misbehaves before it does its work; those that are well do so from the start.
_ALWAYS = 99
BEHAVIOURS: dict[str, tuple[Deed, int]] = {
    deed.__name__: (deed, times)
    for times, deeds in (
        (_ALWAYS, (crashes_at_start, hangs)),
        (
            1,
            (
                *(crashes_at_work, loops, floods, babbles, waits_for_a_person, is_stopped, will_not_end, is_half_dead),
                *(hides_behind_a_child, stops_beating, marks_and_stays),
            ),
        ),
        (
            _ALWAYS,
            (
                *(crashes_after_answer, crashes_after_report, crashes_after_mark, leaves_a_file),
                *(loses_the_acknowledgement, loses_half_of_a_request, says_it_twice),
                looks_into_the_store,
                *(marks_after_its_answer, marks_after_a_checkpoint, marks_and_ends, marks_too_early),
                *(answers_and_stays, reports_and_stays, holds_the_pipe, leaves_zombies),
                *(talks_slowly, writes_slowly, computes, lets_compute, beats, beats_by_file, answers_when_asked),
            ),
        ),
    )
    for deed in deeds
}


def main() -> None:
    deed, times = BEHAVIOURS[TASK.partition("-")[0]]
    if times < ATTEMPT:
        answer()
    else:
        deed()


if __name__ == "__main__":
    main()
