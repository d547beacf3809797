"""The corpus of CI logs, its dresses by forge, and the harness that looks for two faults that read as one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from itertools import combinations
from pathlib import Path

from ganger.core.failures.classes import failure
from ganger.core.logs.ci_logs import known_by, trim
from ganger.core.vocabulary import FailureClass

FOLDER = Path(__file__).parents[1] / "data" / "ci-logs"
Reader = Callable[[str], str]
Corpus = Mapping[str, Mapping[str, str]]


@cache
def corpus() -> dict[str, dict[str, str]]:
    """By tool and fault, its variants."""
    found: dict[str, dict[str, str]] = {}
    for path in sorted(FOLDER.glob("*/*--*.log")):
        fault, _, variant = path.stem.partition("--")
        if path.parent.name != "causes":
            found.setdefault(f"{path.parent.name}/{fault}", {})[variant] = path.read_bytes().decode()
    return found


@cache
def causes() -> dict[str, str]:
    """Logs of jobs that neither a test nor the code ended, by cause and where."""
    return {path.stem: path.read_bytes().decode() for path in sorted((FOLDER / "causes").glob("*.log"))}


def signature(log: str, job: str = "test") -> str:
    """What a failed attempt is known by."""
    return failure(FailureClass.CI_ERROR, known_by([(job, trim(log))]), "").signature


def confused(reader: Reader, logs: Corpus) -> Iterator[str]:
    """Pairs that the reader takes for one fault although they are two, or for two although they are one."""
    read = {(fault, variant): reader(log) for fault, kinds in logs.items() for variant, log in kinds.items()}
    for (one, known), (other, also) in combinations(read.items(), 2):
        if (one[0] == other[0]) != (known == also):
            yield f"{'/'.join(one)} and {'/'.join(other)}: {known} | {also}"


# --- how forges print a job's log ------------------------------------------------------------------------------------


def forgejo(log: str) -> str:
    head = "r1(version:v12.0.0) received task 5 of job test, be triggered by event: push\nworkflow prepared\n"
    lines = (
        f"{head}⭐ Run Main make test\n{log}\n  ❌  Failure - Main make test\n⚙️ [runner]: exit status 1\n🏁  Job failed"
    )
    return "".join(f"2026-11-15T05:32:{n % 60:02}.6500680Z {line}\n" for n, line in enumerate(lines.splitlines()))


def github(log: str) -> str:
    head = (
        "Current runner version: '2.329.0'\n##[group]Runner Image\nImage: ubuntu-24.04\n##[endgroup]\n"
        "##[group]Run make test\n\x1b[36;1mmake test\x1b[0m\nshell: /usr/bin/bash -e {0}\nenv:\n  FAIL_FAST: error\n"
        "##[endgroup]\n"
    )
    tail = "##[error]Process completed with exit code 1.\nPost job cleanup.\n[command]/usr/bin/git version"
    lines = f"{head}{log}\n{tail}".splitlines()
    return "".join(f"\ufeff2026-11-16T07:{n % 60:02}:03.1234567Z {line}\r\n" for n, line in enumerate(lines))


def gitlab(log: str) -> str:
    bar = "".join(f"Receiving objects: {done:3}% ({done}/100)\r" for done in range(101))
    head = (
        "\x1b[0KRunning with gitlab-runner 18.5.0 (abcdef12)\x1b[0;m\n"
        f"section_start:1763185200:get_sources\r\x1b[0K\x1b[36;1mGetting source\x1b[0;m\n{bar}done.\n"
        "section_end:1763185201:get_sources\r\x1b[0K\nsection_start:1763185201:step_script\r\x1b[0K$ make test\n"
    )
    tail = "section_end:1763185209:step_script\r\x1b[0K\n\x1b[31;1mERROR: Job failed: exit code 1\n\x1b[0;m"
    found = []
    for number, line in enumerate(f"{head}{log}\n{tail}".split("\n")):
        at = f"2026-11-17T08:{number % 60:02}:01.100000Z 01O"
        half = len(line) // 2 if number % 7 == 0 and "\x1b" not in line else len(line)
        found += [f"{at} {line[:half]}", *([f"{at}+{line[half:]}"] if half < len(line) else [])]
    return "\n".join(found)


def as_printed(log: str) -> str:
    return log


DRESSES: tuple[Callable[[str], str], ...] = (as_printed, forgejo, github, gitlab)
