"""The delivery demo: two repositories, one of which uses the other, with remotes, CI and a mirror on this machine."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from ganger.core import events as ev
from ganger.core.model.run_state import RunState
from ganger.core.times import seconds_between
from ganger.core.vocabulary import TaskStatus
from ganger.demo import delivery_files as files

OFFICE = "office"
REPO_OF = {"units": "lib", "rounding": "lib", "report": "app"}
_WHO = ("-c", "user.name=Ganger demo", "-c", "user.email=demo@localhost", "-c", "commit.gpgsign=false")


def build_delivery(root: Path) -> Path:
    """Writes everything; returns the folder of the leading project."""
    remotes = root / "remotes"
    for name in ("lib", "app", "mirror"):
        _git(root, "init", "-q", "--bare", "-b", "main", str(remotes / f"{name}.git"))
    library = {
        "measure/__init__.py": "",
        "measure/length.py": files.LENGTH,
        "tests/__init__.py": "",
        "tests/test_length.py": files.TEST_LENGTH,
        "ci.py": files.CI.format(library="", package="measure"),
    }
    app = {
        "shop/__init__.py": '"""A shop."""\n\nNAME = "rope and wire"\n',
        "tests/__init__.py": "",
        "tests/test_shop.py": files.TEST_SHOP,
        "ci.py": files.CI.format(library=str(remotes / "lib.git"), package="shop"),
    }
    _repository(root / "lib", library, "A small library of measures", remotes / "lib.git")
    _repository(root / "app", app, "A small shop", remotes / "app.git")
    (root / "mirror.py").write_text(files.MIRROR, encoding="utf-8")
    _repository(root / OFFICE, _office(root), "A fleet for both")
    return root / OFFICE


def _office(root: Path) -> dict[str, str]:
    remotes = root / "remotes"
    places = {
        "remotes": remotes,
        "lib": root / "lib",
        "app": root / "app",
        "python": sys.executable,
        "mirror_script": root / "mirror.py",
        "mirror": remotes / "mirror.git",
    }
    config = files.CONFIG.format(**{name: json.dumps(str(place)) for name, place in places.items()})
    documents = {"verify.json": _PROFILES, "manifest.json": _MANIFEST, "agent-script.json": {"tasks": _SCRIPT}}
    return {
        "ganger.toml": config,
        **{name: json.dumps(value, indent=2) + "\n" for name, value in documents.items()},
        **{f"prompts/{name}.md": f"{text}\n" for name, text in files.PROMPTS.items()},
    }


_PYTHON = f"{shlex.quote(sys.executable)} -B"
_PARSES = "import ast, pathlib; [ast.parse(p.read_text()) for p in pathlib.Path('.').rglob('*.py')]"
_PROFILES = {
    "profiles": {
        "tests": {
            "steps": [{"name": "test", "cmd": f"{_PYTHON} -m unittest discover -s tests -t .", "timeout_sec": 60}]
        },
        "syntax": {"steps": [{"name": "parse", "cmd": f'{_PYTHON} -c "{_PARSES}"', "timeout_sec": 60}]},
    }
}
_MANIFEST = {
    "manifest_version": "2.0",
    "run_id": "delivery",
    "tasks": [
        {
            "id": name,
            "prompt_ref": f"prompts/{name}.md",
            "context_refs": [],
            "depends_on": [],
            "timeout_sec": 30,
            "verify_profile": "tests" if repo == "lib" else "syntax",
            "metadata": {"repo": repo},
        }
        for name, repo in REPO_OF.items()
    ],
}


def _works(said: str, summary: str, writes: Mapping[str, str], op: str = "create") -> list[dict[str, object]]:
    made = [{"path": path, "op": op, "encoding": "utf8", "content": content} for path, content in writes.items()]
    return [{"text": said}, {"delay": 0.3}, {"result": {"status": "DONE", "summary": summary, "writes": made}}]


_SCRIPT: dict[str, list[list[dict[str, object]]]] = {
    "units": [
        _works(
            "writing units and a test",
            "Added to_metres().",
            {"measure/units.py": files.UNITS, "tests/test_units.py": files.UNITS_TEST},
        ),
        # The prompt must name the fault, so that the agent can fix it.
        [
            {"needs": "the function to_metres has no docstring"},
            *_works(
                "reading the CI log", "Documented to_metres().", {"measure/units.py": files.MENDED_UNITS}, "replace"
            ),
        ],
    ],
    "rounding": [_works("writing rounding", "Added to_text().", {"measure/rounding.py": files.ROUNDING})],
    "report": [
        _works(
            "writing the report",
            "Added report().",
            {"shop/report.py": files.REPORT, "tests/test_report.py": files.TEST_REPORT},
        )
    ],
}


# --- what must have happened ----------------------------------------------------------------------------------------


def shortcomings(root: Path, state: RunState, events: Sequence[ev.Recorded]) -> list[str]:
    """What differs from the demo's script; empty when nothing does."""
    wrong = [
        f"{name} is {state.tasks[name].status.value}, expected DONE"
        for name in REPO_OF
        if state.tasks[name].status is not TaskStatus.DONE
    ]
    wrong += [f"{name}: DONE without proof" for name in REPO_OF if not _is_proved(state, name)]
    verdicts = [one.green for one in state.pushes.verdicts if one.task == "units"]
    if verdicts != [False, True]:
        wrong.append(f"the verdicts on units are {verdicts}, expected red, then green")
    report = state.tasks["report"].delivery
    if report is None or report.retriggered != ("mirror_skipped",):
        wrong.append("the skipped mirror of report was not triggered again")
    if not _waited(events):
        wrong.append("report began while the library was locked")
    return wrong + _stray(root, state)


def _is_proved(state: RunState, name: str) -> bool:
    now = state.tasks[name].delivery
    return now is not None and bool(now.commit) and now.commit == now.pushed == now.green == now.mirrored


def _waited(events: Sequence[ev.Recorded]) -> bool:
    """Whether the app's task began only after the library's tasks were finished."""
    began = [one.seq for one in events if isinstance(one.event, ev.AttemptStarted) and one.event.task == "report"]
    ended = [
        one.seq for one in events if isinstance(one.event, ev.TaskSettled) and REPO_OF.get(one.event.task) == "lib"
    ]
    return bool(began) and len(ended) == 2 and began[0] > max(ended)


def waited_sec(events: Sequence[ev.Recorded]) -> float:
    """How long the library's locks delayed the app's task."""
    began = [one.at for one in events if isinstance(one.event, ev.AttemptStarted)]
    report = [one.at for one in events if isinstance(one.event, ev.AttemptStarted) and one.event.task == "report"]
    return seconds_between(began[0], report[0]) if began and report else 0.0


def _stray(root: Path, state: RunState) -> list[str]:
    """Checks that remotes and mirror hold exactly the proved commits."""
    wrong = []
    for repo in dict.fromkeys(REPO_OF.values()):
        proved = state.pushes.proved.get(repo, "")
        for remote, branch in ((f"{repo}.git", "main"), ("mirror.git", repo)):
            head = _git(root / "remotes" / remote, "for-each-ref", "--format=%(objectname)", f"refs/heads/{branch}")
            if head != proved:
                wrong.append(
                    f"{branch} of {remote} is at {head[:12] or 'nothing'}, proved is {proved[:12] or 'nothing'}"
                )
    return wrong


def _repository(folder: Path, contents: Mapping[str, str], message: str, remote: Path | None = None) -> None:
    for name, text in contents.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    for words in (["init", "-q", "-b", "main"], ["add", "-A"], ["commit", "-qm", message]):
        _git(folder, *words)
    if remote is not None:
        _git(folder, "remote", "add", "origin", str(remote))
        _git(folder, "push", "-q", "origin", "main")


def _git(folder: Path, *words: str) -> str:
    done = subprocess.run(["git", *_WHO, *words], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.strip()
