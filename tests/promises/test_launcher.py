"""What a launcher promises: logs first, exits seen, trees ended, secrets withheld, nothing lost."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from ganger.core.environment import child_environment, is_secret_name, is_secret_value
from ganger.errors import DiskFullError
from ganger.launchers.local import Exit, Launch, LocalLauncher, Running, end_marked, start_ticks

ENV = {"PATH": os.environ["PATH"]}
PRELUDE = """
import os, signal, subprocess, sys, time
def note(): print(os.getpid(), file=open('pids', 'a'), flush=True)
def wait(): note(); open('ready', 'a').close(); time.sleep(60)
"""
IGNORER = "signal.signal(signal.SIGTERM, signal.SIG_IGN); "
TREES = {
    "plain": "wait()",
    "term-ignorer": IGNORER + "wait()",
    "child": "os.fork(); wait()",
    "ignoring-child": "os.fork() or signal.signal(signal.SIGTERM, signal.SIG_IGN); wait()",
    "double-fork": "(os.fork() or (os.fork() and os._exit(0))); wait()",
    "stops-itself": "note(); open('ready', 'a').close(); os.kill(os.getpid(), signal.SIGSTOP)",
    "setsid-child": "os.fork() or os.setsid(); wait()",
    "setsid-ignorer": IGNORER + "os.fork() or os.setsid(); wait()",
    "daemon": "note(); os.fork() or (os.setsid(), os.fork() and os._exit(0), wait()); time.sleep(60)",
    "own-group": "os.fork() or os.setpgid(0, 0); wait()",
}


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def zombies() -> list[str]:
    stats = [Path(f"/proc/{name}/stat") for name in os.listdir("/proc") if name.isdecimal()]
    fields = [path.read_text().rpartition(")")[2].split() for path in stats if path.exists()]
    return [f[0] for f in fields if f[0] == "Z" and int(f[1]) == os.getpid()]


class Bench:
    """A folder, a launcher, and short ways to start programs in them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.launcher = LocalLauncher(sole=True, grace_sec=0.2)
        self.log = folder / "out.log"

    def launch(
        self, *argv: str, env: Mapping[str, str] = ENV, timeout_sec: float | None = 30, name: str = "x"
    ) -> Launch:
        key = f"{os.getpid()}:{self.folder}:{name}"
        return Launch(key, argv, self.folder, env, None, self.log, timeout_sec)

    async def python(self, code: str, *, timeout_sec: float | None = 30, name: str = "x") -> Running:
        argv = (sys.executable, "-S", "-c", PRELUDE + code)
        return await self.launcher.start(self.launch(*argv, timeout_sec=timeout_sec, name=name))

    async def ready(self, pids: int = 1) -> None:
        while not (self.folder / "ready").exists() or len(self.pids()) < pids:
            await asyncio.sleep(0.005)

    def pids(self) -> list[int]:
        return [int(line) for line in (self.folder / "pids").read_text().split()]

    def survivors(self) -> list[int]:
        return [pid for pid in self.pids() if alive(pid)]


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    bench = Bench(tmp_path)
    yield bench
    for pid in bench.survivors() if (tmp_path / "pids").exists() else []:
        os.kill(pid, signal.SIGKILL)


def ended(bench: Bench, launch: Launch) -> Exit:
    async def main() -> Exit:
        return await (await bench.launcher.start(launch)).wait()

    return asyncio.run(main())


def ended_python(bench: Bench, code: str, *, timeout_sec: float | None = 30) -> Exit:
    return ended(bench, bench.launch(sys.executable, "-S", "-c", PRELUDE + code, timeout_sec=timeout_sec))


def test_both_outputs_go_to_the_log_in_the_order_they_were_written(bench: Bench) -> None:
    """T06: combined stdout and stderr of a worker are in its log, and only the owner may read it."""
    ended_python(bench, "[os.write(1 + n % 2, b'%d ' % n) for n in range(200)]")
    assert bench.log.read_text().split() == [str(n) for n in range(200)]
    assert bench.log.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("code", [0, 1, 2, 64, 130, 255])
def test_an_exit_code_is_reported_as_it_is(bench: Bench, code: int) -> None:
    """T06: the code is kept; what it means is decided elsewhere."""
    exit_ = ended_python(bench, f"sys.exit({code})")
    assert (exit_.code, exit_.signal, exit_.timed_out, exit_.started) == (code, None, False, True)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL, signal.SIGSEGV, signal.SIGABRT])
def test_an_end_by_signal_is_no_exit_code(bench: Bench, number: signal.Signals) -> None:
    """T06: a process that was killed shows the signal."""
    exit_ = ended_python(bench, f"os.kill(os.getpid(), {int(number)})")
    assert (exit_.code, exit_.signal, exit_.timed_out) == (None, number, False)


def test_a_prompt_file_is_the_programs_input_and_without_one_the_input_is_empty(bench: Bench) -> None:
    """T24: a program never reads the terminal of the lead."""
    prompt = bench.folder / "prompt"
    prompt.write_text("do it")
    code = "import sys; print(repr(sys.stdin.read()))"
    key, argv, log = f"{bench.folder}:in", (sys.executable, "-S", "-c", code), bench.log
    ended(bench, Launch(key, argv, bench.folder, ENV, prompt, log, 30))
    ended(bench, Launch(key, argv, bench.folder, ENV, None, log, 30, append=True))
    assert log.read_text().split("\n") == ["'do it'", "''", ""]


def test_a_log_is_started_afresh_unless_it_is_appended_to(bench: Bench) -> None:
    """T06: an attempt's log holds that attempt alone."""
    bench.log.write_text("old\n")
    ended_python(bench, "print('new')")
    assert bench.log.read_text() == "new\n"


def unstartable(bench: Bench) -> dict[str, tuple[Launch, str]]:
    plain, odd = bench.folder / "plain", bench.folder / "odd"
    plain.write_text("#!/bin/sh\n")
    odd.write_text("no first line")
    odd.chmod(0o700)
    os.mkfifo(bench.folder / "fifo")
    (bench.folder / "link").symlink_to(bench.folder / "elsewhere")

    def at(cwd: str = ".", log: str = "out.log", stdin: Path | None = None) -> Launch:
        return Launch("k", ("true",), bench.folder / cwd, ENV, stdin, bench.folder / log, 30)

    return {
        "missing-program": (bench.launch("no-such-program"), "'no-such-program'"),
        "missing-path": (bench.launch("./nowhere/x"), "'./nowhere/x'"),
        "not-executable": (bench.launch(str(plain)), "not executable"),
        "no-interpreter-line": (bench.launch(str(odd)), "#!"),
        "huge-arguments": (bench.launch("true", *["x" * 100_000] * 40), "too long"),
        "nul-in-arguments": (bench.launch("true", "a\0b"), "null byte"),
        "half-a-surrogate": (bench.launch("true", "\ud800"), "not usable"),
        "bad-variable-name": (bench.launch("true", env={**ENV, "A=B": "c"}), "not usable"),
        "no-program": (bench.launch(), "no program"),
        "missing-directory": (at("gone"), "gone cannot be entered"),
        "directory-is-a-file": (at("plain"), "plain cannot be entered"),
        "missing-log-folder": (at(log="gone/out.log"), "gone/out.log cannot be opened"),
        "log-is-a-link": (at(log="link"), "link cannot be opened"),
        "log-is-a-fifo": (at(log="fifo"), "fifo cannot be opened"),
        "missing-input": (at(stdin=bench.folder / "gone"), "gone cannot be opened"),
        "input-is-a-fifo": (at(stdin=bench.folder / "fifo"), "fifo cannot be opened"),
    }


UNSTARTABLE = [
    *("missing-program", "missing-path", "not-executable", "no-interpreter-line", "huge-arguments", "nul-in-arguments"),
    *("half-a-surrogate", "bad-variable-name", "no-program", "missing-directory", "directory-is-a-file"),
    *("missing-log-folder", "log-is-a-link", "log-is-a-fifo", "missing-input", "input-is-a-fifo"),
]


@pytest.mark.parametrize("case", UNSTARTABLE)
def test_a_program_that_cannot_start_says_why_in_a_sentence(bench: Bench, case: str) -> None:
    """T24: it is an outcome of the attempt, never an exception in the lead."""
    launch, words = unstartable(bench)[case]
    exit_ = ended(bench, launch)
    assert (exit_.started, exit_.code, exit_.signal) == (False, None, None)
    assert words in exit_.error
    assert not (bench.folder / "elsewhere").exists()


def test_a_log_that_finds_no_room_is_a_full_disk(bench: Bench) -> None:
    """T06: without a log nothing may run, and the person is told about the disk."""
    small = bench.folder / "small"
    small.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "nr_inodes=1", "tmpfs", small], capture_output=True)
    if mounted.returncode:
        assert os.environ.get("CI") != "true", "this test must run where CI=true"
        pytest.skip("mounting a full disk needs root")
    try:
        with pytest.raises(DiskFullError, match="disk is full"):
            ended(bench, Launch("k", ("true",), bench.folder, ENV, None, small / "log", 30))
    finally:
        subprocess.run(["umount", small], check=True)


@pytest.mark.parametrize("tree", TREES)
def test_a_time_out_ends_the_whole_tree(bench: Bench, tree: str) -> None:
    """T23 H08: children, SIGTERM ignorers, stopped ones and those that left the group are gone when wait returns."""

    async def main() -> Exit:
        running = await bench.python(TREES[tree], timeout_sec=2.0)
        await bench.ready(pids=1 if tree in ("plain", "term-ignorer", "stops-itself") else 2)
        return await running.wait()

    exit_ = asyncio.run(main())
    assert exit_.timed_out and exit_.signal is not None
    assert bench.survivors() == []


@pytest.mark.parametrize("tree", TREES)
def test_stop_all_ends_the_whole_tree(bench: Bench, tree: str) -> None:
    """T23 H08: the same trees, ended by the lead's own shutdown; a stop is no time-out."""

    async def main() -> Exit:
        running = await bench.python(TREES[tree])
        await bench.ready(pids=1 if tree in ("plain", "term-ignorer", "stops-itself") else 2)
        await bench.launcher.stop_all(0.1)
        return await running.wait()

    assert asyncio.run(main()).timed_out is False
    assert bench.survivors() == []
    assert bench.launcher.running == frozenset()


@pytest.mark.parametrize("tree", ["child", "setsid-child", "daemon"])
def test_the_tree_harness_catches_a_launcher_that_kills_only_the_leader(bench: Bench, tree: str) -> None:
    """T23: planted bug; what the tests above look for is really there to be found."""
    argv = [sys.executable, "-S", "-c", PRELUDE + TREES[tree]]
    leader = subprocess.Popen(argv, cwd=bench.folder, stdout=subprocess.DEVNULL, start_new_session=True)
    asyncio.run(bench.ready(pids=2))
    leader.kill()
    leader.wait()
    assert bench.survivors() != []


def test_an_ordinary_end_leaves_no_process_of_the_group(bench: Bench) -> None:
    """H08: a program that exits 0 and leaves a child behind does not leave it behind."""
    exit_ = ended_python(bench, IGNORER + "os.fork() or wait()\nwhile not os.path.exists('ready'): time.sleep(.005)")
    assert exit_.code == 0
    assert bench.survivors() == []


def test_a_grandchild_that_holds_the_output_open_does_not_delay_the_end_and_does_not_survive_it(bench: Bench) -> None:
    """T06 H08: output is a file, nobody waits for a pipe to close; what left its session is ended too."""
    code = "os.fork() or (os.setsid(), wait())\nwhile not os.path.exists('ready'): time.sleep(.005)"
    exit_ = ended_python(bench, code)
    assert exit_.code == 0 and exit_.duration_sec < 30
    assert bench.survivors() == []


def test_a_daemon_does_not_outlive_the_attempt_that_made_it(bench: Bench) -> None:
    """H08 T17: forked twice, out of its session, its parents gone: adopted and ended before anything is verified."""
    code = "if not os.fork():\n os.setsid()\n os.fork() and os._exit(0)\n wait()"
    code += "\nwhile not os.path.exists('ready'): time.sleep(.005)"
    assert ended_python(bench, code).code == 0
    assert bench.survivors() == []


def test_strays_of_an_attempt_are_found_by_its_mark_and_those_of_another_are_not(bench: Bench) -> None:
    """T23: the mark is compared whole, so attempt 1 never takes attempt 11's processes."""

    async def main() -> tuple[int, int, int]:
        await bench.python("os.fork() or (os.setsid(), wait())\ntime.sleep(60)", name="11")
        await bench.ready()
        key = f"{os.getpid()}:{bench.folder}:1"
        return await end_marked(key), len(bench.survivors()), await end_marked(key + "1")

    assert asyncio.run(main()) == (0, 1, 2)
    assert bench.survivors() == []


def test_a_graceful_program_is_given_its_grace(bench: Bench) -> None:
    """T23: SIGTERM first; what it does within the grace counts."""

    async def main() -> Exit:
        running = await bench.python("signal.signal(15, lambda *_: (time.sleep(.3), sys.exit(7))); wait()")
        await bench.ready()
        return await running.stop(20)

    assert asyncio.run(main()).code == 7


def test_a_stopped_program_is_woken_to_see_its_end_coming(bench: Bench) -> None:
    """T23: without that a program that stands still could never use its grace."""

    async def main() -> Exit:
        stopping = "note(); open('ready', 'a').close(); os.kill(os.getpid(), signal.SIGSTOP); time.sleep(60)"
        running = await bench.python(f"signal.signal(15, lambda *_: sys.exit(7)); {stopping}")
        await bench.ready()
        os.waitid(os.P_PID, running.pid or 0, os.WSTOPPED | os.WNOWAIT)
        return await running.stop(20)

    assert asyncio.run(main()).code == 7


def test_an_obedient_leader_does_not_take_the_grace_from_its_child(bench: Bench) -> None:
    """T23: a wrapper that dies at once leaves the real program its time to finish."""

    async def main() -> Exit:
        child = "signal.signal(15, lambda *_: (time.sleep(.3), print('saved', flush=True), os._exit(0)))"
        running = await bench.python(f"os.fork() or ({child}, wait()); time.sleep(60)")
        await bench.ready()
        return await running.stop(20)

    assert asyncio.run(main()).signal == signal.SIGTERM
    assert "saved" in bench.log.read_text()


def test_a_second_stop_with_a_shorter_grace_shortens_it(bench: Bench) -> None:
    """T23: a second signal ends at once."""

    async def main() -> Exit:
        running = await bench.python(IGNORER + "wait()", timeout_sec=None)
        await bench.ready()
        patient = asyncio.create_task(running.stop(3600))
        await asyncio.sleep(0)
        await bench.launcher.stop_all(0)
        return await patient

    assert asyncio.run(main()).signal == signal.SIGKILL


def test_stopping_what_has_ended_or_never_started_is_harmless(bench: Bench) -> None:
    """H08: stop may come at any time."""

    async def main() -> tuple[Exit, Exit, Exit]:
        over = await bench.python("sys.exit(3)")
        first = await over.wait()
        never = await bench.launcher.start(bench.launch("no-such-program"))
        return first, await over.stop(0), await never.stop(0)

    first, again, never = asyncio.run(main())
    assert first == again and first.code == 3 and not never.started


def test_cancelling_the_waiting_task_loses_no_child(bench: Bench) -> None:
    """H08: the program goes on, still known to the launcher, until it ends or is stopped."""

    async def main() -> tuple[bool, Exit]:
        running = await bench.python("wait()")
        await bench.ready()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(running.wait(), 0.01)
        survived = bench.survivors() != [] and running in bench.launcher.running
        await bench.launcher.stop_all(0)
        return survived, await running.wait()

    survived, exit_ = asyncio.run(main())
    assert survived and exit_.signal is not None and bench.survivors() == []


def test_a_loop_that_closes_takes_its_programs_with_it(bench: Bench) -> None:
    """H08: a lead that leaves without stopping leaves neither a process nor a zombie."""

    async def main() -> int | None:
        running = await bench.python(IGNORER + "os.fork(); wait()")
        await bench.ready(pids=2)
        return running.pid

    pid = asyncio.run(main())
    assert pid is not None and not Path(f"/proc/{pid}").exists()
    give_up_at = time.monotonic() + 20
    while bench.survivors() and time.monotonic() < give_up_at:
        time.sleep(0.005)
    assert bench.survivors() == []


def test_a_program_that_ended_before_anybody_looked_is_seen(bench: Bench) -> None:
    """T06: no end is missed, however early it comes."""

    async def main() -> Exit:
        running = await bench.python("sys.exit(5)")
        os.waitid(os.P_PID, running.pid or 0, os.WEXITED | os.WNOWAIT)
        return await running.wait()

    assert asyncio.run(main()).code == 5


def test_an_end_just_before_the_limit_is_no_time_out(bench: Bench) -> None:
    """T06: a program whose end and whose limit are seen in one turn of the loop has ended by itself."""

    async def main() -> Exit:
        running = await bench.python("sys.exit(5)", timeout_sec=0.5)
        await asyncio.sleep(0)
        os.waitid(os.P_PID, running.pid or 0, os.WEXITED | os.WNOWAIT)
        time.sleep(0.5)
        return await running.wait()

    exit_ = asyncio.run(main())
    assert (exit_.code, exit_.timed_out) == (5, False)


def test_fifty_programs_run_side_by_side_without_threads_or_leaks(bench: Bench) -> None:
    """H08: each has its own end; no thread, descriptor or zombie stays."""

    async def main() -> tuple[list[int | None], int]:
        started = [await bench.python(f"time.sleep(.2); sys.exit({n})", name=str(n)) for n in range(50)]
        threads = threading.active_count()
        return [(await running.wait()).code for running in started], threads

    before = len(os.listdir("/proc/self/fd")), threading.active_count()
    codes, threads = asyncio.run(main())
    assert codes == list(range(50))
    assert (len(os.listdir("/proc/self/fd")), threads) == before
    assert zombies() == []


@pytest.mark.parametrize("tree", ["plain", "ignoring-child"])
def test_without_process_descriptors_a_thread_sees_the_end(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, tree: str
) -> None:
    """H08: the portable way ends the same trees."""
    monkeypatch.delattr(os, "pidfd_open")
    exit_ = ended_python(bench, TREES[tree], timeout_sec=2.0)
    assert exit_.timed_out and exit_.signal is not None
    assert bench.survivors() == []


def test_a_process_is_named_by_its_number_and_start_time(bench: Bench) -> None:
    """A number that was given to another process is recognised."""

    async def main() -> tuple[int | None, int | None, int | None]:
        running = await bench.python("wait()")
        seen = start_ticks(running.pid or 0)
        await running.stop(0)
        return running.start_time, seen, start_ticks(running.pid or 0)

    recorded, seen, after = asyncio.run(main())
    assert recorded is not None and recorded == seen and after is None


CANARIES = {
    "ANTHROPIC_API_KEY": "canary1",
    "GITHUB_TOKEN": "canary2",
    "DB_PASSWORD": "canary3",
    "AWS_ACCESS_KEY_ID": "canary4",
    "GOOGLE_APPLICATION_CREDENTIALS": "/canary5.json",
    "SSH_AUTH_SOCK": "/run/canary6",
    "DATABASE_URL": "postgres://db/canary7",
    "SENTRY_DSN": "canary8",
    "npm_config__authToken": "canary9",
    "MY_PROXY": "http://user:canary10@proxy:3128",
    "CLIENT_SECRET": "canary11",
    "SOME_SETTING": "ghp_canary12",
    "GH_PAT": "canary13",
    "PGPASSWORD": "canary14",
    "SESSION_COOKIE": "canary15",
    "GIT_DIR": "/canary16",
    "LD_PRELOAD": "",
    "GANGER_TOKEN": "canary17",
}


def test_no_secret_of_the_lead_is_in_a_real_childs_environment(bench: Bench) -> None:
    """T24 W06: canaries under every kind of name stay with the lead; what is named comes through."""
    env = child_environment(
        {**ENV, **CANARIES, "WANTED_KEY": "yes"}, passed=["WANTED_KEY"], extra={"GANGER_ROLE": "worker"}
    )
    ended(bench, bench.launch(sys.executable, "-S", "-c", "import os; print(dict(os.environ))", env=env))
    shown = bench.log.read_text()
    assert "canary" not in shown.replace(str(bench.folder), "")
    assert "'WANTED_KEY': 'yes'" in shown and "'GANGER_ROLE': 'worker'" in shown


def test_the_canaries_are_seen_when_nothing_is_withheld(bench: Bench) -> None:
    """T24: planted bug; an environment passed on whole is caught."""
    ended(
        bench, bench.launch(sys.executable, "-S", "-c", "import os; print(dict(os.environ))", env={**ENV, **CANARIES})
    )
    assert all(value in bench.log.read_text() for value in CANARIES.values())


SECRET = (
    "OPENAI_API_KEY openai_api_key TOKEN X_TOKEN2 API_TOKENS MYSQL_PWD BW_SESSION SIGNING-KEY auth.token REDISCLI_AUTH"
)
SECRET += " AWS_REGION PRIVATE_KEY_PATH GPG_PASSPHRASE MyApiKey HTTP_AUTHORIZATION SLACK_WEBHOOK_URL"
SECRET += " PROD_DATABASE_URL SSH_ASKPASS"
HARMLESS = "KEYBOARD_LAYOUT MONKEY TOKENIZERS_PARALLELISM MAX_OUTPUT_TOKENS PWD OLDPWD PATH HOME LANG XDG_SESSION_ID"
HARMLESS += " DESKTOP_SESSION PATIENCE AUTHOR PASSENGER_COUNT COMPASS OTP_VERSION SECRETARY PYTHONPATH LD_LIBRARY_PATH"


@pytest.mark.parametrize("name", SECRET.split())
def test_a_secret_name_is_known_by_its_words(name: str) -> None:
    """T24: withheld."""
    assert is_secret_name(name)


@pytest.mark.parametrize("name", HARMLESS.split())
def test_a_name_that_only_looks_like_a_secret_passes(name: str) -> None:
    """T24: words are compared whole, so settings are not lost."""
    assert not is_secret_name(name)
    assert child_environment({name: "x"}, extra={}) == {name: "x"}


@pytest.mark.parametrize(
    ("value", "secret"),
    [
        ("https://user:pass@host/x", True),
        ("a b postgres://u:p@h/db", True),
        ("https://token@host", True),
        ("-----BEGIN RSA PRIVATE KEY-----\nx", True),
        ("ssh://git@host/x", False),
        ("https://host/a@b:c", False),
        ("http://host:3128", False),
        ("me@host.example", False),
        ("://" * 100_000, False),
        ("a" * 1_000_000, False),
    ],
    ids=lambda value: str(value)[:20],
)
def test_a_value_that_gives_itself_away_is_a_secret(value: str, secret: bool) -> None:
    """T24: a password inside a URL is withheld whatever the variable's name; long values cost little."""
    assert is_secret_value(value) is secret


def test_git_identity_passes_and_git_redirection_does_not() -> None:
    """T24: a child's git works on the child's own repository."""
    names = "GIT_AUTHOR_NAME GIT_COMMITTER_EMAIL GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE GIT_CONFIG_COUNT GIT_SSH_COMMAND"
    kept = child_environment(dict.fromkeys(names.split(), "x"), extra={})
    assert sorted(kept) == ["GIT_AUTHOR_NAME", "GIT_COMMITTER_EMAIL"]


def test_what_ganger_adds_wins_over_everything() -> None:
    """T24: an inherited or passed variable cannot replace one of the attempt's own."""
    env = child_environment({"A": "old", "GANGER_RUN_ID": "outer"}, passed=["A"], extra={"A": "new"})
    assert env == {"A": "new"}
