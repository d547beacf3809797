"""Reviews on the forge while a lead is there, and what the request, the ledger and people see of them."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from checker.invariants import Seen, broken
from ganger.core import events as ev
from ganger.core.control.reviews import awaits_people
from ganger.core.vocabulary import TaskStatus
from ganger.errors import NotFoundError
from ganger.forges.pull_requests import GiteaPulls
from tests.engine.git_runs import GitProject, edits
from tests.engine.run_projects import leading, until
from tests.forges.loopback.script import GREEN, RED
from tests.forges.loopback.server import TOKEN, serving
from tests.forges.scenario import POLL_SEC, Outcome, Row, Scene, play, require
from tests.forges.scenario_rows import MERGE, PERSON, ROWS

pytestmark = pytest.mark.whole

SENT_BACK = next(row for row in ROWS if row.name.startswith("changes are asked for on forgejo-16"))


def waits(project: GitProject) -> bool:
    with contextlib.suppress(NotFoundError, KeyError):
        return awaits_people(project.state(), "a")
    return False


def test_a_lead_hears_the_forge_while_others_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """W08 G12: approved there while the run goes on; nobody waits for anybody, and asking keeps its pace."""
    monkeypatch.setenv("LOOPBACK_TOKEN", TOKEN)
    scene = Scene(Row("any", tasks=2, more=PERSON), tmp_path)
    with serving("forgejo-16", scene.world) as server:
        project = scene.project(server)
        slow = [{"delay": 8, **edits({"t1.txt": "late\n"})}]
        project.write_script({"a": [edits({"a.txt": "a\n"})], "t1": slow})
        with leading(project) as lead:
            until(lambda: waits(project), beside=lead)
            scene.act("review approve good", server)
            until(lambda: project.state().tasks["a"].status is TaskStatus.DONE, beside=lead)
            assert project.state().tasks["t1"].status is TaskStatus.RUNNING
        looked, (first, *_, last) = server.log.count("reviews"), server.log.lines
    assert looked <= (last.at - first.at) / POLL_SEC + 3


def waiting_lead(project: GitProject) -> subprocess.Popen[str]:
    words = [sys.executable, "-m", "ganger", "run", "--wait", "--project", str(project.root)]
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def read_until(lead: subprocess.Popen[str], said: str) -> str:
    assert lead.stdout is not None
    heard = ""
    for line in lead.stdout:
        heard += line
        if said in line:
            return heard
    raise AssertionError(heard)


@pytest.mark.parametrize("killed", [False, True], ids=["waits on", "dies and is begun again"])
def test_a_run_that_waits_for_a_review_goes_on_by_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, killed: bool
) -> None:
    """W08 G12: what it waits for is told, the approval on the forge is enough, no worker is paid again."""
    monkeypatch.setenv("LOOPBACK_TOKEN", TOKEN)
    scene = Scene(Row("any", more=PERSON), tmp_path)
    with serving("forgejo-16", scene.world) as server:
        project = scene.project(server)
        lead = waiting_lead(project)
        told = read_until(lead, "1 task waits for a review: a (")
        assert "continues by itself" in told and "continues by itself" in project.ganger("status").stdout
        if killed:
            lead.kill()
            lead.communicate(timeout=20)
            assert "ganger run --wait continues" in project.ganger("status").stdout
            lead = waiting_lead(project)
            read_until(lead, "1 task waits for a review: a (")
        scene.act("review approve good", server)
        said, _ = lead.communicate(timeout=60)
    assert (lead.returncode, project.state().tasks["a"].status) == (0, TaskStatus.DONE), said
    assert len(project.find(ev.AttemptLaunched)) == 1


def test_stop_ends_the_wait_and_without_it_the_end_says_what_is_awaited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """W08 G12: 130 after a stop, 4 where a person is needed; asking keeps its pace meanwhile."""
    monkeypatch.setenv("LOOPBACK_TOKEN", TOKEN)
    scene = Scene(Row("any", more=PERSON), tmp_path)
    with serving("forgejo-16", scene.world) as server:
        project = scene.project(server)
        lead = waiting_lead(project)
        read_until(lead, "1 task waits for a review")
        assert project.ganger("stop").returncode == 0
        said, _ = lead.communicate(timeout=60)
        assert lead.returncode == 130, said
        ended = project.ganger("run", "--json")
    last = json.loads(ended.stdout.splitlines()[-1])
    assert ended.returncode == 4 and "1 task waits for a review: a (" in json.dumps(last), ended.stdout[-2000:]
    assert json.loads(project.ganger("status", "--json").stdout)["awaits_review"] == ["a"]


def sent_back(folder: Path) -> Outcome:
    outcome = play(SENT_BACK, folder)
    require(SENT_BACK, outcome)
    return outcome


def test_what_was_sent_back_is_on_record_with_who_said_it_and_where(tmp_path: Path) -> None:
    """W08 D11: the ledger has the address of the review, the comment has the task; a person's rework pays nothing."""
    outcome = sent_back(tmp_path)
    project, (asked,) = outcome.project, outcome.scene.world.asked
    (reviewed,) = project.find(ev.Reviewed)
    assert (reviewed.verdict, reviewed.by, reviewed.who) == ("rework", "person", "maintainer") and reviewed.url
    shown = project.ganger("ledger", "a").stdout
    assert reviewed.url in shown and "comment" in shown and "maintainer on the forge" in shown
    assert "Task `a` of run `r1`" in asked.said[0].body and "sent back here once" in asked.said[0].body
    now = project.state().tasks["a"]
    assert (now.counters.reworks, now.counters.ci_fixes, now.attempts) == (0, 0, 2) and broken(
        project.events(), Seen()
    ) == []


@pytest.mark.slow
def test_a_second_lead_is_not_told_again_what_the_first_has_heeded(tmp_path: Path) -> None:
    """W08: on GitHub the request for changes still stands after the mend; it holds, and sends back once."""
    row = replace(SENT_BACK, flavour="github", then=("comment",), ends="BLOCKED(awaiting_review)", pushed=2, events=())
    outcome = play(replace(row, then=("review comment still here",), asks=True), tmp_path)
    assert outcome.ended() == "BLOCKED(awaiting_review)"
    assert [e.verdict for e in outcome.project.find(ev.Reviewed)] == ["rework"]
    told = outcome.project.ganger("why", "a").stdout
    assert "maintainer asked for changes on the forge and has not looked again" in told


def test_a_title_that_somebody_chose_stays_and_the_rest_follows_the_mend(tmp_path: Path) -> None:
    """W02: the text tells of the commit that is there, whatever people wrote around it."""
    row = Row("any", ((RED,), (GREEN,)), more=MERGE, meanwhile=((1, "retitle WIP: My own words"),), pushed=2, fixes=1)
    (asked,) = play(row, tmp_path).scene.world.asked
    assert asked.title == "My own words" and (asked.head or "")[:12] in asked.body


def test_an_adapter_that_counts_dismissed_reviews_is_caught_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """W08: planted: reviews that do not stand count; the table's row for dismissed ones goes red."""
    read = GiteaPulls.reviews

    async def undismissed(self: GiteaPulls, request):  # type: ignore[no-untyped-def]
        return [replace(one, dismissed=False) for one in await read(self, request)]

    monkeypatch.setattr(GiteaPulls, "reviews", undismissed)
    row = next(row for row in ROWS if row.name == "an approval that is dismissed on forgejo-16 is none")
    with pytest.raises(AssertionError):
        require(row, play(row, tmp_path))


@pytest.mark.parametrize(
    ("people", "ends", "says"),
    [
        pytest.param(("onto ganger/r1/a", "merge"), "DONE", "", id="pushed onto and merged by hand"),
        pytest.param(("onto ganger/r1/a",), "BLOCKED(external)", "on top of", id="pushed onto"),
        pytest.param(("close",), "BLOCKED(external)", "someone closed", id="closed"),
        pytest.param(("delete ganger/r1/a",), "BLOCKED(external)", "someone deleted", id="deleted"),
    ],
)
def test_what_people_do_to_a_request_that_waits_for_them_is_noticed(
    tmp_path: Path, people: tuple[str, ...], ends: str, says: str
) -> None:
    """W08 W02: nobody reviews what is not there; what they put into the target themselves is approved."""
    row = Row("waits", more=PERSON, requests=1, then=people, others=(GREEN,))
    outcome = play(row, tmp_path)
    assert outcome.ended() == ends and says in outcome.detail(), outcome.detail()
    assert outcome.project.happened().count("attempt_launched") == 1
