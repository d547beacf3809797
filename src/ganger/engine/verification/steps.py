"""Runs the steps of a profile, with one log for all of them, and gives the verdict."""

from __future__ import annotations

import errno
import os
import re
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import Literal, cast, get_args

from ganger.core.logs.telling_line import CONTROL, ESCAPE_SEQUENCE, TAIL_BYTES, first_error
from ganger.core.verify.commands import CommandFault, parse_command
from ganger.core.verify.lacks import SIGNAL, Lack, lack_of, never_began, refused_start, runs_out_of_disk
from ganger.core.verify.tiers import TieredStep
from ganger.core.vocabulary import Tier
from ganger.engine.verification.proof import ProfileCensus, ReportedRun
from ganger.errors import DiskFullError, GangerError
from ganger.local.run_folder import named_os_errors, open_log
from ganger.ports.processes import Exit, Launch, Launcher
from ganger.ports.runners import RunnerCall

Outcome = Literal["passed", "failed", "timed_out", "refused", "not_started", "skipped"]

_LONGEST_SEARCHED = 1024 * 1024
_SIGNALLED = 128
_MAX_SHOWN = 300
_SHORTEST_TIMEOUT_SEC = 0.001


@dataclass(frozen=True, slots=True)
class StepResult:
    """How one step ended; `first_error` is the line a person would look at first, `output` the place of its output in
    the log.

    `lack` is what it seems to have lacked. Whether that is the environment's fault is decided later, see `lacking`:
    a step that stays `not_started` then could not run with or without the change.
    """

    name: str
    tier: Tier
    cmd: str
    outcome: Outcome
    exit_code: int | None = None
    duration_sec: float = 0.0
    first_error: str = ""
    recovered: str = ""
    output: tuple[int, int] = (0, 0)
    lack: Lack | None = None


@dataclass(frozen=True, slots=True)
class Recovery:
    """W05: how often a step may run again that was ended from outside or is written for another machine.

    `retry_failed`: any step that fails.
    """

    tries: int = 1
    retry_failed: bool = False


NO_RECOVERY = Recovery(0)


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of verification. `failed` is the blocking step that failed. No steps at all is a pass.

    `census` is what the known runners reported, and `proof` briefly says what it was compared with. Of a failed
    step, `command` is what was typed for it, `says` its first error, `told` what its log says, both without secrets.
    `hint` is the setting that may cause a failure; it is for people only, as it reveals what is on the machine.
    """

    passed: bool
    steps: tuple[StepResult, ...]
    failed: StepResult | None
    census: ProfileCensus = field(default_factory=dict)
    proof: str = ""
    command: str = ""
    says: str = ""
    told: str = ""
    hint: str = ""


@dataclass(frozen=True, slots=True)
class _Bench:
    """Where and with what the steps run."""

    workspace: Path
    log_path: Path
    env: Mapping[str, str]
    launcher: Launcher
    deny: Sequence[str]
    default_timeout_sec: float
    clock: Callable[[], float]
    confine: Callable[[Launch], Launch]
    expect: Mapping[str, str]
    recovery: Recovery
    output_limit_bytes: int | None
    reported: ReportedRun | None


def as_outcome(word: str) -> Outcome:
    """An outcome as it was recorded."""
    known = {outcome: outcome for outcome in get_args(Outcome)}
    return cast("Outcome", known.get(word, "failed"))


class VerificationLost(Exception):
    """The keeper died under a verification command; its result is unknown, it has to run again."""


async def run_steps(
    steps: Sequence[TieredStep],
    *,
    workspace: Path,
    log_path: Path,
    env: Mapping[str, str],
    launcher: Launcher,
    deny: Sequence[str],
    default_timeout_sec: float,
    key_prefix: str,
    clock: Callable[[], float] = time.monotonic,
    confine: Callable[[Launch], Launch] = lambda launch: launch,
    expect: Mapping[str, str] | None = None,
    recovery: Recovery = NO_RECOVERY,
    output_limit_bytes: int | None = None,
    reported: ReportedRun | None = None,
    keep_going: bool = False,
) -> Verdict:
    """Runs the steps in order until a blocking one fails; the log is appended to, never cut.

    `expect`: by the step's name, what its output must show besides exit code 0. `keep_going`: runs all of them.
    """
    bench = _Bench(
        workspace,
        log_path,
        env,
        launcher,
        deny,
        default_timeout_sec,
        clock,
        confine,
        expect or {},
        recovery,
        output_limit_bytes,
        reported,
    )
    results: list[StepResult] = []
    failed: StepResult | None = None
    for place, step in enumerate(steps):
        if failed is not None and not keep_going:
            results.append(StepResult(step.name, step.tier, step.cmd, "skipped"))
            continue
        result = await _run_step(step, bench, key=f"{key_prefix}/{place}")
        results.append(result)
        if step.blocks and result.outcome != "passed":
            failed = failed or result
    return Verdict(failed is None, tuple(results), failed, dict(reported.seen) if reported is not None else {})


async def _run_step(step: TieredStep, bench: _Bench, *, key: str) -> StepResult:
    result = await _run_once(step, bench, key=key)
    for number in range(bench.recovery.tries):
        cmd, what = _cure(step.cmd, result, bench)
        if not what:
            break
        write_line(bench.log_path, f"=== run again: {_shown(what)}")
        result = replace(await _run_once(replace(step, cmd=cmd), bench, key=f"{key}~{number}"), recovered=what)
    if result.recovered and result.lack is None and result.outcome == "failed" and signal_of(result):
        return replace(result, lack=Lack(SIGNAL, str(signal_of(result)), result.first_error))
    return result


_SPELT_OTHERWISE = {"python": "python3", "python3": "python", "node": "nodejs", "nodejs": "node", "make": "gmake"}


def other_name(program: str) -> str:
    """What a program is called on other machines; empty if it has only one name."""
    return _SPELT_OTHERWISE.get(program, "")


def signal_of(result: StepResult) -> int:
    return max((result.exit_code or 0) - _SIGNALLED, 0)


def _cure(cmd: str, result: StepResult, bench: _Bench) -> tuple[str, str]:
    """What to run instead of a failed command, and why that may help; nothing if the failure is real."""
    if result.lack is not None and result.lack.kind == "program":
        return _respelt(cmd, result.lack.name, bench)
    if result.outcome == "failed" and signal_of(result):
        return cmd, f"it was ended by signal {signal_of(result)}"
    if bench.recovery.retry_failed and result.outcome in ("failed", "timed_out"):
        return cmd, "it failed, and may be flaky"
    return cmd, ""


def _respelt(cmd: str, lacking: str, bench: _Bench) -> tuple[str, str]:
    """The command with the other name of a program that has another name on this machine."""
    script = parse_command(cmd, deny=bench.deny)
    named = [] if isinstance(script, CommandFault) else [step.argv[0] for step in script.steps]
    other = other_name(lacking)
    if lacking not in named or not other or shutil.which(other, path=bench.env.get("PATH")) is None:
        return cmd, ""
    spelt = re.sub(rf"(^|&&\s*){re.escape(lacking)}(?=\s|$)", rf"\g<1>{other}", cmd)
    return spelt, f"{lacking} is not on PATH, {other} is"


async def _run_once(step: TieredStep, bench: _Bench, *, key: str) -> StepResult:
    began = bench.clock()
    write_line(bench.log_path, f"=== step {_shown(step.name)} ({step.tier}): {_shown(step.cmd)}")
    offset = size_of_log(bench.log_path)
    came = await _outcome(step, bench, key=key)
    outcome, error = came.outcome, came.error
    wanted = bench.expect.get(step.name)
    silent = outcome == "passed" and wanted is not None and not _shows(bench.log_path, offset, wanted)
    if silent:
        outcome, error = "failed", f"its output shows no `{wanted}`"
    duration, reached = bench.clock() - began, size_of_log(bench.log_path)
    if outcome == "failed" and not silent:
        error = first_error(_read_tail(bench.log_path, offset)) or f"{error} without output"
    elif error:
        write_line(bench.log_path, f"=== {outcome.replace('_', ' ')}: {_shown(error)}")
    ending = "no exit code" if came.exit_code is None else f"exit {came.exit_code}"
    write_line(bench.log_path, f"=== {ending} after {duration:.1f} s")
    output = (offset, reached)
    return StepResult(
        step.name, step.tier, step.cmd, outcome, came.exit_code, duration, error, output=output, lack=came.lack
    )


@dataclass(frozen=True, slots=True)
class _StepEnd:
    outcome: Outcome
    exit_code: int | None = None
    error: str = ""
    lack: Lack | None = None


async def _outcome(step: TieredStep, bench: _Bench, *, key: str) -> _StepEnd:
    script = parse_command(step.cmd, deny=bench.deny)
    if isinstance(script, CommandFault):
        return _StepEnd("refused", None, f"{script.code}: {script.message}. {script.hint}")
    timeout_sec = bench.default_timeout_sec if step.timeout_sec is None else step.timeout_sec
    deadline = bench.clock() + timeout_sec
    for place, command in enumerate(script.steps):
        cwd = step_directory(bench.workspace, step.cwd or ".", command.cwd)
        if isinstance(cwd, _NoDirectory):
            lack = Lack("folder", cwd.name, cwd.reason) if cwd.outcome == "not_started" else None
            return _StepEnd(cwd.outcome, None, cwd.reason, lack)
        left = max(deadline - bench.clock(), _SHORTEST_TIMEOUT_SEC)
        began, offset, call = bench.clock(), size_of_log(bench.log_path), RunnerCall(command.argv, cwd, bench.env)
        name = f"{step.name}.{place}"
        if bench.reported is not None:
            call = bench.reported.reporting(name, call)
        ended = await _run_command(call, bench, key=f"{key}.{place}", timeout_sec=left)
        if bench.reported is not None and ended.started:
            seconds, succeeded = bench.clock() - began, ended.code == 0
            bench.reported.ended(name, bench.log_path, offset, succeeded=succeeded, seconds=seconds)
        if ended.lost:
            raise VerificationLost
        if not ended.started:
            lack = _from_the_top(refused_start(command.argv[0], ended.error), bench.workspace, cwd)
            return _StepEnd("not_started", None, ended.error, lack)
        if ended.over_output:
            return _StepEnd("refused", None, f"it printed more than {bench.output_limit_bytes} bytes and was ended")
        if ended.timed_out:
            return _StepEnd("timed_out", _exit_code(ended), f"timed out after {timeout_sec:g} s")
        if ended.code != 0:
            return _failed(ended, _read_tail(bench.log_path, offset), bench.workspace, cwd)
    return _StepEnd("passed", 0)


def _failed(ended: Exit, output: str, workspace: Path, cwd: Path) -> _StepEnd:
    """A program that the sandbox could not start has not failed: it did not start, as without a sandbox."""
    unborn = never_began(ended.code, output)
    if unborn is not None:
        return _StepEnd("not_started", None, unborn.said, _from_the_top(unborn, workspace, cwd))
    full = runs_out_of_disk(output)
    lack = Lack("disk", "disk", full) if full else lack_of(ended.code, output)
    return _StepEnd("failed", _exit_code(ended), _ending(ended), lack and _from_the_top(lack, workspace, cwd))


def _from_the_top(lack: Lack, workspace: Path, cwd: Path) -> Lack:
    """Files of the workspace are named relative to its top, so that two workspaces can be compared."""
    if lack.kind != "program" or "/" not in lack.name:
        return lack
    full, top = os.path.normpath(cwd / lack.name), os.path.realpath(workspace)
    name = f"./{os.path.relpath(full, top)}" if full.startswith(f"{top}/") else full
    return replace(lack, name=name)


def _exit_code(ended: Exit) -> int | None:
    """A signal is shown as shells show it."""
    return ended.code if ended.signal is None else 128 + ended.signal


def _ending(ended: Exit) -> str:
    return f"exit code {ended.code}" if ended.signal is None else f"ended by signal {ended.signal}"


async def _run_command(call: RunnerCall, bench: _Bench, *, key: str, timeout_sec: float) -> Exit:
    launch = launch_of(call, bench.log_path, key=key, timeout_sec=timeout_sec, limit=bench.output_limit_bytes)
    process = await bench.launcher.start(bench.confine(launch))
    return await process.wait()


def launch_of(call: RunnerCall, log_path: Path, *, key: str, timeout_sec: float, limit: int | None) -> Launch:
    return Launch(
        key=key,
        argv=call.argv,
        cwd=call.cwd,
        env=call.env,
        stdin_path=None,
        log_path=log_path,
        timeout_sec=timeout_sec,
        append=True,
        output_limit_bytes=limit,
        programs=call.programs,
    )


@dataclass(frozen=True, slots=True)
class _NoDirectory:
    outcome: Outcome
    reason: str
    name: str = ""


def step_directory(workspace: Path, *parts: str) -> Path | _NoDirectory:
    """The real directory a command runs in; it is never outside the workspace, by name or by link."""
    shown = "/".join(part for part in parts if part != ".") or "."
    for part in parts:
        path = PurePosixPath(part)
        if path.is_absolute() or ".." in path.parts or "\0" in part:
            return _NoDirectory("refused", f"the directory {_shown(part)!r} is not a plain path inside the workspace")
    root = os.path.realpath(workspace)
    # Most commands run in the workspace itself, and one look-up per step is enough for that.
    target = Path(root if shown == "." else os.path.realpath(os.path.join(root, *parts)))  # noqa: PTH118
    if not target.is_relative_to(root):
        return _NoDirectory("refused", f"the directory {_shown(shown)!r} leads out of the workspace")
    with named_os_errors(target):
        there = target.is_dir()
    if not there:
        return _NoDirectory("not_started", f"the directory {_shown(shown)!r} does not exist in the workspace", shown)
    return target


def note_in(log_path: Path, text: str) -> None:
    """A remark by Ganger in a verification's log."""
    write_line(log_path, f"=== {_shown(text)}")


def write_line(log_path: Path, line: str) -> None:
    """Appends one whole line, on a line of its own whatever the program before it wrote."""
    flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
    try:
        descriptor = os.open(log_path, flags, 0o600)
        try:
            size = os.fstat(descriptor).st_size
            broken = size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"
            os.write(descriptor, (("\n" if broken else "") + line + "\n").encode("utf-8", "replace"))
        finally:
            os.close(descriptor)
    except OSError as problem:
        if problem.errno in (errno.ENOSPC, errno.EDQUOT):
            message = f"the verify log {log_path} cannot be written: the disk is full"
            raise DiskFullError(message, hint="Free some space, then run again.") from problem
        raise GangerError(
            f"the verify log {log_path} cannot be written: {problem.strerror}",
            hint="restore its folder, then run the same command again",
            code="NOT_WRITABLE",
        ) from problem


def size_of_log(log_path: Path) -> int:
    """A verification may have deleted its own log; that is no reason to stop."""
    try:
        return log_path.stat().st_size
    except OSError:
        return 0


def _read_tail(log_path: Path, offset: int) -> str:
    try:
        with open_log(log_path) as log:
            log.seek(max(offset, size_of_log(log_path) - TAIL_BYTES))
            return log.read(TAIL_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""


def output_of(log_path: Path, step: StepResult, first: int, last: int) -> str:
    """What a step printed: if that is long, the beginning and the end. If its place in the log was not noted, what
    follows its last heading there."""
    begin, end = step.output
    try:
        with open_log(log_path) as log:
            if not end:
                end = size_of_log(log_path)
                begin = max(0, end - first - last)
            log.seek(begin)
            data = log.read(min(end - begin, first + last))
            if end - begin > first + last:
                log.seek(end - last)
                data = data[:first] + b"\n" + log.read(last)
    except OSError:
        return ""
    text = data.decode("utf-8", "replace")
    return text if step.output[1] else text.rpartition(f"=== step {_shown(step.name)} (")[2]


def _shows(log_path: Path, offset: int, wanted: str) -> bool:
    """Whether a step's output, or the end of a long one, contains what the operator expects in it."""
    try:
        with open_log(log_path) as log:
            log.seek(max(offset, size_of_log(log_path) - _LONGEST_SEARCHED))
            text = log.read(_LONGEST_SEARCHED).decode("utf-8", "replace")
    except OSError:
        return False
    return re.search(wanted, ESCAPE_SEQUENCE.sub("", text)) is not None


def _shown(text: str) -> str:
    """Text of a profile on one line of a log, without anything that could forge another line."""
    return CONTROL.sub("\N{REPLACEMENT CHARACTER}", text.replace("\n", "\\n").replace("\t", " "))[:_MAX_SHOWN]
