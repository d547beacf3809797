"""What a worker must not lose: kept while the lead is away, delivered in order, once, by whoever comes next."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from ganger.worker.spool import Spool
from tests.patience import stretched
from tests.worker.little_lead import TOKEN, Answers, Body, Worker, leading, refused, taken, until


@pytest.fixture
def worker(tmp_path: Path) -> Worker:
    (tmp_path / "desk").mkdir()
    return Worker(str(tmp_path / "s"), tmp_path / "desk")


def kept(worker: Worker, *names: str) -> None:
    for name in names:
        said = worker.say("milestone", name)
        assert said.code == 0 and "kept" in said.out and worker.say("milestone", "--help").code == 0


def test_what_is_said_while_nobody_leads_is_kept_and_delivered_in_order(worker: Worker) -> None:
    """H07: older ones first, each once, then the new one; exit 0 meanwhile."""
    kept(worker, "a", "b", "c")
    assert [body["name"] for _, body in worker.spooled()] == ["a", "b", "c"]
    with leading(worker.socket) as lead:
        assert worker.say("milestone", "d").out == "taken\n"
    assert [body["name"] for _, _, body in lead.said] == ["a", "b", "c", "d"]
    assert len(lead.recorded) == 4 and not worker.spooled()


@pytest.mark.parametrize("verb", ["heartbeat", "messages", "brief"])
def test_any_call_delivers_what_was_kept(worker: Worker, verb: str) -> None:
    """H07: the first one after the lead came back."""
    kept(worker, "a")
    with leading(worker.socket) as lead:
        assert worker.say(verb).code == 0
    assert lead.verbs() == ["milestone", verb] and not worker.spooled()


PASSING: dict[str, Answers] = {
    "503": refused("LEAD_BUSY", 503),
    "429": refused("TOO_OFTEN", 429),
    "hangs up": lambda verb, body: None,
    "another server": lambda verb, body: (200, {"hello": "world"}),
    "another server's 404": lambda verb, body: (404, {"detail": "Not Found"}),
}


@pytest.mark.parametrize("how", PASSING)
def test_who_cannot_take_it_now_is_asked_again_later(worker: Worker, how: str) -> None:
    """H07: kept, under the same name, and the ones behind it stay behind it."""
    with leading(worker.socket, PASSING[how]) as lead:
        lead.retry_after = "0" if how == "429" else ""
        said = worker.say("milestone", "a", "--json")
        assert said.code == 0 and said.json()["kept"] is True and len(lead.said) == 1
        lead.answers, lead.recorded = taken, {}
        assert worker.say("milestone", "b").code == 0
    assert [body["name"] for _, _, body in lead.said] == ["a", "a", "b"] and len(lead.recorded) == 2


def test_a_refusal_for_good_is_told_and_put_aside(worker: Worker) -> None:
    """H07: nothing behind it waits for ever, and nothing is thrown away."""
    kept(worker, "a", "b")
    over = refused()
    with leading(worker.socket, lambda verb, body: over(verb, body) if body["name"] == "a" else taken(verb, body)):
        said = worker.say("milestone", "c")
    assert said.code == 0 and "an earlier milestone was refused: no [ATTEMPT_OVER]" in said.err
    assert not worker.spooled() and worker.refused() == ["milestone"]


def test_no_mark_is_sent_for_a_report_that_was_not_taken(worker: Worker) -> None:
    """H07: the done mark is set only after the acknowledgement."""
    assert worker.say("report", "--status", "DONE", "--summary", "s").code == 0
    assert worker.say("done").code == 0
    bad = refused("NO_SENTINEL", 400)
    with leading(worker.socket, lambda verb, body: bad(verb, body) if verb == "report" else taken(verb, body)) as lead:
        worker.say("heartbeat")
    assert lead.verbs() == ["report", "heartbeat"] and worker.refused() == ["report", "done"]


def test_many_calls_at_once_send_each_request_once(worker: Worker) -> None:
    """H07: processes of one worker neither double a request nor wait for each other for ever."""
    kept(worker, "old")
    with leading(worker.socket) as lead:
        names = [f"m{n}" for n in range(12)]
        calls = [subprocess.Popen(worker.argv("milestone", name), env=worker.environ) for name in names]
        assert [call.wait(60) for call in calls] == [0] * 12
    said = [body["name"] for _, _, body in lead.said]
    assert sorted(said) == sorted(["old", *names]) and said[0] == "old" and not worker.spooled()


def test_a_call_that_is_stopped_while_it_sends_does_not_stop_the_others(worker: Worker) -> None:
    """H07: the turn ends with the process, also with a killed one."""
    with leading(worker.socket, lambda verb, body: None if body.get("name") == "slow" else taken(verb, body)) as lead:
        spool = Spool(str(worker.desk))
        spool.put("milestone", TOKEN, {"id": "1", "name": "first"})
        holder = subprocess.Popen(["flock", str(worker.desk / "spool"), "sleep", "60"])
        until(lambda: held(worker.desk / "spool"))
        call = subprocess.Popen(worker.argv("milestone", "second"), env=worker.environ)
        until(lambda: len(spool.names()) == 2)
        # The lock belongs to flock and to what it started; the test ends both.
        subprocess.run(["kill", *children(holder.pid), str(holder.pid)], check=True)
        assert holder.wait(20) and call.wait(60) == 0
        spool.close()
    assert [body["name"] for _, _, body in lead.said] == ["first", "second"]


@pytest.mark.parametrize(("fate", "code"), [("recorded", 0), ("refused", 1)])
def test_what_the_lead_took_out_of_the_spool_itself_is_not_sent_again(worker: Worker, fate: str, code: int) -> None:
    """H07: it reads the spool too, and what it refused lies in refused."""
    (worker.desk / "spool").mkdir()
    (worker.desk / "refused").mkdir()
    holder = subprocess.Popen(["flock", str(worker.desk / "spool"), "sleep", "60"])
    until(lambda: held(worker.desk / "spool"))
    call = subprocess.Popen(worker.argv("milestone", "a"), env=worker.environ)
    until(lambda: bool(list((worker.desk / "spool").glob("*.json"))))
    (file,) = (worker.desk / "spool").glob("*.json")
    file.rename(worker.desk / "refused" / file.name) if fate == "refused" else file.unlink()
    assert call.wait(20) == code
    subprocess.run(["kill", *children(holder.pid), str(holder.pid)], check=True)
    assert holder.wait(20) and not worker.spooled()


def held(folder: Path) -> bool:
    return subprocess.run(["flock", "-n", str(folder), "true"]).returncode != 0


def children(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b'{"verb": "done"}', b"\xff", b'{"verb":1,"token":"","body":{}}']
)
def test_a_torn_file_is_no_request(worker: Worker, content: bytes) -> None:
    """H07: it is left where it lies, and nothing waits for it."""
    (worker.desk / "spool").mkdir()
    torn = worker.desk / "spool" / f"{1:020d}-x.json"
    torn.write_bytes(content)
    (worker.desk / "spool" / f"{2:020d}-y.json.tmp").write_text('{"verb":"done","token":"t","body":{}}')
    with leading(worker.socket) as lead:
        assert worker.say("milestone", "a").out == "taken\n"
    assert lead.verbs() == ["milestone"] and torn.exists()


def test_a_clock_that_was_put_back_does_not_change_the_order(worker: Worker) -> None:
    """H07: names grow whatever the clock says."""
    (worker.desk / "spool").mkdir()
    future = {"verb": "milestone", "token": TOKEN, "body": {"id": "1", "name": "a"}}
    (worker.desk / "spool" / f"{9 * 10**18:020d}-x.json").write_text(json.dumps(future))
    kept(worker, "b")
    assert [body["name"] for _, body in worker.spooled()] == ["a", "b"]


def trap(desk: Path, outside: Path, how: str) -> None:
    (outside / "victim").write_text("untouched")
    spool = desk / "spool"
    if how in ("spool", "dangling"):
        spool.symlink_to(outside if how == "spool" else outside / "nowhere")
        return
    spool.mkdir()
    request = json.dumps({"verb": "done", "token": "stolen", "body": {"id": "9"}})
    (outside / "request.json").write_text(request)
    name = f"{1:020d}-x.json"
    if how == "request":
        (spool / name).symlink_to(outside / "request.json")
    elif how == "pipe":
        os.mkfifo(spool / name)
    elif how == "folder":
        (spool / name).mkdir()
    elif how == "refused":
        (desk / "refused").symlink_to(outside)
    elif how == "seen":
        (desk / "messages.seen").symlink_to(outside / "victim")


@pytest.mark.parametrize("how", ["spool", "dangling", "request", "pipe", "folder", "refused", "seen"])
def test_nothing_in_the_desk_leads_a_worker_outside(worker: Worker, tmp_path: Path, how: str) -> None:
    """H07: links, pipes and folders in it are no requests, and nothing outside changes."""
    outside = tmp_path / "outside"
    outside.mkdir()
    trap(worker.desk, outside, how)
    before = {path.name: path.read_bytes() for path in outside.iterdir()}
    over = refused()
    with leading(
        worker.socket, lambda verb, body: over(verb, body) if body.get("name") == "no" else told(verb)
    ) as lead:
        assert worker.say("milestone", "a").code == 0
        assert worker.say("milestone", "no").code == 1 and worker.say("messages").code == 0
    assert lead.verbs() == ["milestone", "milestone", "messages"]
    assert {path.name: path.read_bytes() for path in outside.iterdir()} == before


def told(verb: str) -> tuple[int, Body]:
    message = {"number": 1, "kind": "note", "text": "t", "at": ""}
    return 200, {"ok": True, "messages": [message] if verb == "messages" else 0, "latest": 1}


def test_a_spooled_request_is_private(worker: Worker) -> None:
    """H07: it holds the token."""
    kept(worker, "a")
    (file,) = (worker.desk / "spool").iterdir()
    assert file.stat().st_mode & 0o777 == 0o600
    said = json.loads(file.read_text())
    assert set(said) == {"verb", "token", "body"} and file.name[:20].isdigit() and said["body"]["id"]


@pytest.mark.needs("root", "unshare", "mount")
def test_a_full_disk_keeps_nothing_and_still_tells(worker: Worker) -> None:
    """H07: sent at once where somebody listens, and called lost where nobody does."""
    fill = (
        f"mount -t tmpfs -o size=8k tmpfs {worker.desk} && dd if=/dev/zero of={worker.desk}/f bs=1k count=8 2>/dev/null"
    )
    call = " ".join(worker.argv("milestone", "a"))
    argv = ["unshare", "-m", "sh", "-c", f"{fill}; exec {call}"]
    with leading(worker.socket) as lead:
        assert subprocess.run(argv, env=worker.environ, timeout=stretched(60)).returncode == 0
    alone = subprocess.run(argv, env=worker.environ, timeout=stretched(60), capture_output=True, text=True)
    assert lead.verbs() == ["milestone"] and alone.returncode == 3 and "LEAD_AWAY" in alone.stderr
