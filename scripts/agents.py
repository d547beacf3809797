"""The page about agents: what each real program was seen to do with Ganger. `make agents` tries it all and writes it.

`python scripts/agents.py [NAME…]` runs the tests of all agents, or of those named, and keeps what they noted.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PAGE = Path("docs/agents.md")
RESULTS = Path("tests/agents/results.json")
PINS = Path("tests/agents/pins.json")
NOTE = "note"
EVERY_TEST = "agents_full or not agents_full"
# The columns of the first table; whatever else the tests noted is a trouble, a row of the second.
ABLE = (
    "edits files",
    "answers with writes[]",
    "tokens",
    "says what it costs",
    "goes on after a kill",
    "goes on after ganger stop",
    "keeps its key",
)
_INTRO = """# Agents

What each coding agent was seen to do with Ganger. Every cell was noted by a test in `tests/agents/` that drove the
real program, at the version named here, by `ganger run` within Ganger's sandbox, against a model played by
`ganger dev model-server` on the same machine. `make agents` tries it all again and writes this page. No vendor's own
service was involved: its wording, headers and times may differ.

How to set one up is in [guide/agents.md](guide/agents.md); how to add one in [write-an-agent.md](write-an-agent.md).
`ganger agents --check` says which of them are on your machine, and whether they are logged in.
"""
_TROUBLE = """## When something goes wrong

What the played model did, and the failure class that resulted, with the reason for which the task is blocked. Which
counter is charged and what is done next follows from the class: see [codes.md](codes.md). `*`: this program reports
less than the others; the notes have the details.
"""


def render(root: Path) -> str:
    results = json.loads((root / RESULTS).read_text(encoding="utf-8"))
    pins = json.loads((root / PINS).read_text(encoding="utf-8"))
    found: Mapping[str, Mapping[str, Any]] = results["agents"]
    troubles = list(dict.fromkeys(claim for told in found.values() for claim in told if claim not in (*ABLE, NOTE)))
    lines = [_INTRO, *table(["agent", "program", *ABLE], able(found, results["programs"], pins))]
    lines += ["", _TROUBLE, *table(["the model", *(name for name in found if _tried(found[name], troubles))],
                                   trouble(found, troubles))]  # fmt: skip
    lines += ["", "## Notes", "", *notes(found)]
    return "\n".join(lines) + "\n"


def table(head: Sequence[str], rows: Iterator[list[str]]) -> Iterator[str]:
    yield f"| {' | '.join(head)} |"
    yield f"| {' | '.join('---' for _ in head)} |"
    yield from (f"| {' | '.join(row)} |" for row in rows)


def able(
    found: Mapping[str, Mapping[str, Any]], programs: Mapping[str, str], pins: Mapping[str, Mapping[str, str]]
) -> Iterator[list[str]]:
    for name, told in found.items():
        pin = pins.get(programs.get(name, ""))
        program = f"{pin['package']} {pin['version']}" if pin else "a stand-in, see the notes"
        yield [name, program, *(str(told.get(claim, "–")) for claim in ABLE)]


def trouble(found: Mapping[str, Mapping[str, Any]], troubles: Sequence[str]) -> Iterator[list[str]]:
    tried = [told for told in found.values() if _tried(told, troubles)]
    for claim in troubles:
        yield [claim, *(str(told.get(claim, "–")) for told in tried)]


def _tried(told: Mapping[str, Any], troubles: Sequence[str]) -> bool:
    return any(claim in told for claim in troubles)


def notes(found: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    for name, told in found.items():
        yield from (f"- **{name}**: {note}" for note in told.get(NOTE, []))


# --- trying ---------------------------------------------------------------------------------------------------------


def noted(report: Path) -> dict[str, dict[str, Any]]:
    """What passing tests noted, by agent and claim."""
    found: dict[str, dict[str, Any]] = {}
    for case in ET.parse(report).iter("testcase"):
        if any(case.find(word) is not None for word in ("failure", "error", "skipped")):
            continue
        for entry in case.iter("property"):
            name, _, claim = entry.get("name", "").partition(": ")
            told = found.setdefault(name, {})
            if claim == NOTE:
                told[NOTE] = list(dict.fromkeys([*told.get(NOTE, []), entry.get("value", "")]))
            else:
                told[claim] = entry.get("value", "")
    return found


def kept(root: Path, new: Mapping[str, Mapping[str, Any]], names: Sequence[str]) -> dict[str, Any]:
    """The results with what is new; agents that were not tried keep theirs."""
    from tests.agents.matrix import ROWS

    path = root / RESULTS
    old = json.loads(path.read_text(encoding="utf-8"))["agents"] if path.is_file() else {}
    agents = {name: new.get(name, {}) if not names or name in names else old.get(name, {}) for name in ROWS}
    return {"programs": {name: row.program for name, row in ROWS.items()}, "agents": agents}


def main(names: list[str]) -> int:
    sys.path.insert(0, str(ROOT))
    from tests.agents.installed import main as fetch
    from tests.agents.matrix import ROWS

    if unknown := set(names) - set(ROWS):
        print(f"there is no {', '.join(sorted(unknown))}; known: {', '.join(ROWS)}", file=sys.stderr)
        return 64
    programs = sorted({ROWS[name].program for name in names or ROWS} - {""})
    if fetch(programs):
        return 1
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        chosen = ["-k", " or ".join(f"[{name}]" for name in names)] if names else []
        words = ["-m", EVERY_TEST, f"--junitxml={report}", "-o", "junit_family=xunit1", *chosen, "tests/agents"]
        code = subprocess.run([sys.executable, "-m", "pytest", *words], cwd=ROOT, check=False).returncode
        results = kept(ROOT, noted(report), names)
    (ROOT / RESULTS).write_text(json.dumps(results, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    (ROOT / PAGE).write_text(render(ROOT), encoding="utf-8")
    print(f"wrote {RESULTS} and {PAGE}")
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
