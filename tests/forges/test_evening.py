"""A maintainer's evening, as `make evening` plays it: at each point the screens tell the story in plain words."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from ganger.app.run_places import place_of
from ganger.config import load_project
from ganger.core import events as ev
from ganger.core.vocabulary import TaskStatus
from ganger.stores.sqlite import SqliteStore
from tests.engine.git_runs import git
from tests.forges.evening import REAL, RUN_ID, WORK, Evening, Scenes, Speed, evening
from tests.forges.merge_truth import wrong_merges
from tests.forges.truth import Needs, lies

pytestmark = pytest.mark.whole

ID, AT, CLOCK = "[0-9a-f]{12}", r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ", r"\d\d:\d\d UTC"
REQUEST, HOST = r"http://\S+/pulls/\d+", r"127\.0\.0\.1:\d+"
NO_ANSWER = rf"{HOST} has not answered since {CLOCK} \([^)]+\)"
NO_TOKEN = rf"{HOST} has refused the token since {CLOCK} \([^)]+\)"

# By the beginning of what happened: what each screen says then.
TOLD: Mapping[str, Mapping[str, Sequence[str]]] = {
    "All four are pushed": {
        "status": ["RUNNING: 4 RUNNING of 4", rf"→ greeting PUSHED_TO_CI ci_\w+, 0 of 2 jobs, .* left {REQUEST}"],
        "why greeting": [rf"greeting is being delivered since {AT} without a worker: CI of {ID} is \w+: check, "
                         "test are not finished yet; 0 of 2 jobs passed", "next: ganger ledger greeting"],
        "inbox": ["0 open questions"],
        "workers": ["0 workers at work; 4 changes on the way without a worker: ganger status"],
    },
    "The forge does not answer": {
        "status": [rf"{NO_ANSWER}; 4 tasks wait; (next try in [\d.]+ s|the next try is due)"],
        "why greeting": [f"{NO_ANSWER}, and the run continues by itself when that is over"],
        "inbox": ["0 open questions"],
        "workers": [rf"{NO_ANSWER}; 4 tasks wait"],
    },
    "The forge is back": {"status": ["4 RUNNING of 4"], "why greeting": ["CI of"], "inbox": ["0 open questions"]},
    "CI is green": {
        "status": ["4 BLOCKED of 4", "4 open questions: ganger inbox", f"greeting  {ID} waits for a review",
                   f"→ greeting PUSHED_TO_CI awaiting_review, 2 of 2 jobs {REQUEST}"],
        "why greeting": [rf"greeting is BLOCKED \(awaiting_review\) since {AT}: {ID} waits for a review \({REQUEST}",
                         "next: ganger approve greeting, or ganger rework greeting TEXT"],
        "inbox": [rf"{ID} waits for a review \(The greeting names the person\.\); it is at {REQUEST}; ganger approve",
                  "> ganger rework greeting TEXT"],
        "workers": ["0 workers at work; 4 open questions: ganger inbox"],
    },
    "The maintainer asks for changes": {
        "status": ["3 BLOCKED, 1 RUNNING of 4"],
        "why greeting": [r"forge: rework by maintainer on the forge \(http\S+\): .*Nearly\. - greeting.py:2: There is "
                         "a comma missing", "worker_attempts 2 of 3"],
        "inbox": ["3 open questions"],
        "workers": ["0 workers at work; 1 change on the way without a worker"],
    },
    "The token is revoked": {
        "status": [rf"{NO_TOKEN}; 1 task waits; .*; ganger inbox: q-\d"],
        "why greeting": [f"{NO_TOKEN}, and the run continues by itself when that is over", "next: ganger inbox"],
        "inbox": [rf"{NO_TOKEN}\. Next: renew", "1 task waits for it: greeting", r"> ganger answer q-\d TEXT"],
        "workers": [NO_TOKEN],
    },
    "The token file": {"status": ["3 BLOCKED, 1 RUNNING"], "inbox": ["3 open questions"], "why greeting": ["CI of"]},
    "The maintainer approves": {
        "run": [f"greeting: {ID} was approved by maintainer on the forge", "change request #.* was merged"],
        "status": ["3 BLOCKED, 1 DONE of 4"],
        "why greeting": ["greeting is DONE after 2 attempts: verified by check; pushed as .* to main; CI green",
                         r"change request #\d+ merged\."],
    },
    "`main` is protected": {
        "status": [f"version  {ID} has 1 of the 2 approvals that the forge asks for"],
        "why version": [rf"since {AT}: {ID} has 1 of the 2 approvals that the forge asks for \({REQUEST}\)"],
        "inbox": ["1 of the 2 approvals that the forge asks for; only people can give them, on the forge; it is at"],
    },
    "The second person": {
        "run": ["was approved by maintainer, owner on the forge"],
        "why version": ["version is DONE: verified by check; pushed as"],
    },
    "The maintainer force-pushes": {
        "status": [rf"BLOCKED   parser  someone replaced {ID} by {ID} on ganger/{RUN_ID}/parser of"],
        "why parser": [rf"parser is BLOCKED \(external\) since {AT}: someone replaced", "shows what was not tested",
                       "next: ganger retry parser"],
        "inbox": [f"put {ID} back there, or merge or close it by hand; then ganger retry parser"],
    },
    "They put it back": {"why parser": ["parser is DONE: verified by check; pushed as"]},
    "The maintainer deletes": {
        "status": [rf"someone deleted ganger/{RUN_ID}/manual of"],
        "why manual": [r"manual is BLOCKED \(external\) since .*, which change request #\d+ shows",
                       r"next: ganger answer q-\d+ NUMBER_OR_TEXT"],
        "inbox": [r"1\) deliver it again", r"2\) leave the task out"],
    },
    "It is brought there": {
        "status": ["COMPLETED: 4 DONE of 4"],
        "why manual": ["manual is DONE: verified by check"],
        "inbox": ["0 open questions"],
        "workers": ["0 workers at work$"],
    },
}  # fmt: skip


@pytest.mark.timeout(600)
@pytest.mark.parametrize("speed", [Speed(), pytest.param(REAL, marks=pytest.mark.slow)], ids=["short", "real"])
def test_every_point_of_the_evening_is_told_in_plain_words_and_ends_well(tmp_path: Path, speed: Speed) -> None:
    """D12 D14: reviews, protection, force push, deleted branch, outage and a revoked token; all DONE in the end."""
    with evening(tmp_path, speed) as scenes:
        scenes.play()
    missing = [fault for what in TOLD for fault in untold(scenes.at, what)]
    assert not missing, "\n".join(missing)
    require_ends(scenes)


def untold(at: Evening, what: str) -> list[str]:
    (point,) = [one for one in at.points if one.what.startswith(what)]
    wanted = [(screen, words) for screen, listed in TOLD[what].items() for words in listed]
    return [
        f"{point.what} `ganger {screen}` does not say {words!r}:\n{point.screens[screen]}"
        for screen, words in wanted
        if re.search(words, point.screens[screen], re.MULTILINE) is None
    ]


def require_ends(scenes: Scenes) -> None:
    """All DONE and merged at what was tested; one worker was paid for the rework and nobody for the rest."""
    at, store = (
        scenes.at,
        SqliteStore(place_of(load_project(scenes.at.root), RUN_ID).path / "ganger.db", read_only=True),
    )
    try:
        events = list(store.read())
    finally:
        store.close()
    assert {task.status for task in at.state().tasks.values()} == {TaskStatus.DONE}
    starts = Counter(one.event.task for one in events if isinstance(one.event, ev.AttemptLaunched))
    assert starts == {name: 2 if name == "greeting" else 1 for name in WORK}
    needs = Needs(mirror="", mirrored=False)
    assert lies(events, scenes.world, needs) == [] and wrong_merges(events, scenes.world, needs) == []
    assert scenes.world.ground.empty_commits() == 0 and len(scenes.world.merges) == len(WORK)
    shown = git(at.folder, f"--git-dir={scenes.world.ground.path}", "show", "main:greeting.py")
    assert "Hello, {name}" in shown
