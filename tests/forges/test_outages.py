"""A host that is away, or that refuses the token: one state, one question for all, shown everywhere; and it passes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from ganger.core import events as ev
from ganger.core.state.hosts import HOST, waiting
from ganger.core.vocabulary import TaskStatus
from ganger.errors import NotFoundError
from tests.engine.git_runs import GitProject
from tests.engine.run_projects import kill, leading, until
from tests.forges.loopback.server import TOKEN, LoopbackForge, serving
from tests.forges.scenario import Row, Scene

pytestmark = pytest.mark.whole

REQUEST = 'style = "request"\n'


@dataclass
class Place:
    scene: Scene
    server: LoopbackForge
    project: GitProject

    @property
    def host(self) -> str:
        return self.server.url.partition("://")[2]

    def waits(self) -> int:
        with suppress(NotFoundError):
            return (
                len(waiting(self.project.state(), self.host))
                if (self.project.folder.path / "ganger.db").exists()
                else 0
            )
        return 0

    def asked(self) -> list[ev.QuestionAsked]:
        return [one for one in self.project.find(ev.QuestionAsked) if one.kind == HOST]

    def done(self) -> bool:
        tasks = self.project.state().tasks.values()
        return all(task.status is TaskStatus.DONE for task in tasks)


@contextmanager
def placed(tmp_path: Path, row: Row) -> Iterator[Place]:
    """The scene of a row, with the token in the environment and nothing begun."""
    scene = Scene(row, tmp_path)
    with pytest.MonkeyPatch.context() as patch, serving(row.flavour, scene.world) as server:
        patch.setenv("LOOPBACK_TOKEN", TOKEN)
        project = scene.project(server)
        for look, what in row.meanwhile:
            scene.world.meanwhile.setdefault(look, []).append(lambda what=what: scene.act(what, server))  # type: ignore[misc]
        yield Place(scene, server, project)


def row(happens: str, *, tasks: int = 1, more: str = "") -> Row:
    text = f"{REQUEST}ci_warn_sec = 0.5\nci_sec = 1\n{more}"
    return Row("away", tasks=tasks, over_http=True, meanwhile=((3, happens),), more=text)


@pytest.mark.parametrize(
    ("happens", "said"),
    [
        ("outage 600", "has not answered since {clock} UTC ({connection})"),
        ("revoke 600", "has refused the token since {clock} UTC ({refusal})"),
    ],
)
def test_one_question_for_all_and_every_screen_tells_the_story(tmp_path: Path, happens: str, said: str) -> None:
    """D12 D14: six tasks wait; once the host is back they go on by themselves, and the question answers itself."""
    # A person is tried now about a token, and about an outage when it lasts.
    patient = "" if "outage" in happens else "ci_sec = 60"
    with placed(tmp_path, row(happens, tasks=6, more=patient)) as at, leading(at.project) as lead:
        until(lambda: at.waits() == 6 and at.asked(), beside=lead, within=60)
        words = {"clock": r"\d\d:\d\d", "connection": "connection refused|no connection|it closes the connection",
                 "refusal": "invalid token|git is not let in"}  # fmt: skip
        story = re.sub(r"\\\{(\w+)\\\}", lambda found: f"(?:{words[found[1]]})", re.escape(said))
        line = rf"{re.escape(at.host)} {story}; 6 tasks wait; (next try in .+|the next try is due); ganger inbox: q-1"
        for screen in ("status", "workers"):
            told = at.project.ganger(screen).stdout
            assert re.search(line, told), told
        assert re.search(story, at.project.ganger("why", "a").stdout)
        box = at.project.ganger("inbox").stdout
        assert re.search(story, box) and "6 tasks wait for it" in box and len(at.asked()) == 1
        at.server.restore() if "revoke" in happens else at.server.answer_again()
        assert lead.wait(60) == 0 and at.done()
        assert len(at.project.find(ev.QuestionAsked)) == 1
        assert "answers again" in at.project.find(ev.QuestionAnswered)[0].text


def test_an_outage_costs_the_host_no_more_calls_than_one_task_would_make(tmp_path: Path) -> None:
    """D05 D12: one call at a time sees whether it is back, however many wait."""
    with placed(tmp_path, row("outage 3 502", tasks=6, more="poll_most_sec = 0.5")) as at, leading(at.project) as lead:
        assert lead.wait(60) == 0 and at.done()
        storm = [line for line in at.server.log.lines if line.status == 502 and line.kind != "git"]
        assert 0 < len(storm) <= 20 and len(at.project.find(ev.HostBack)) >= 1


@pytest.mark.parametrize("how", ["answer", "retry"])
def test_a_person_who_mended_it_does_not_wait_for_the_next_try(tmp_path: Path, how: str) -> None:
    """D14: the host is tried now, for all tasks that wait."""
    slow = "poll_sec = 0.03\npoll_most_sec = 60"
    with placed(tmp_path, row("outage 600", tasks=2, more=slow)) as at, leading(at.project) as lead:
        # Two tries in vain: the next one is far away.
        until(lambda: at.waits() == 2 and at.asked() and at.project.state().hosts[at.host].tries > 1, beside=lead,
              within=60)  # fmt: skip
        at.server.answer_again()
        words = ("answer", at.asked()[0].question, "it runs again") if how == "answer" else ("retry", "a")
        made = at.project.ganger(*words)
        assert made.returncode == 0 and "tried now" in made.stdout, made.stdout + made.stderr
        assert lead.wait(60) == 0 and at.done() and len(at.project.find(ev.HostTried)) == 1


def test_a_new_lead_knows_of_the_outage_and_goes_on_when_it_is_over(tmp_path: Path) -> None:
    """D02 D12 S02: killed while everybody waits; nothing is pushed or opened twice."""
    with placed(tmp_path, row("outage 600", tasks=3)) as at:
        with leading(at.project) as lead:
            until(lambda: at.waits() == 3, beside=lead, within=60)
            kill(lead)
        text = at.project.ganger("status").stdout
        assert "3 tasks wait; it is tried again when ganger run continues the run" in text, text
        with leading(at.project) as lead:
            at.server.answer_again()
            assert lead.wait(60) == 0 and at.done()
        assert at.scene.world.own == 3 and len(at.scene.world.asked) == 3
        assert at.project.state().hosts == {}


def test_when_patience_is_over_one_item_is_left_and_one_retry_brings_all_back(tmp_path: Path) -> None:
    """D14: BLOCKED without a question of their own, dependents wait, and nobody is paid again."""
    with placed(tmp_path, row("outage 600", tasks=3, more="ci_most_sec = 2")) as at:
        with leading(at.project) as lead:
            assert lead.wait(60) == 4
        assert [q.kind for q in at.project.find(ev.QuestionAsked)] == [HOST]
        assert "has not answered since" in at.project.state().abort_reason  # type: ignore[operator]
        at.server.answer_again()
        assert at.project.ganger("retry", "a").returncode == 0
        assert at.project.ganger("run", "--set", "delivery.ci_most_sec=60").returncode == 0, at.project.state()
        assert at.done() and len(at.project.find(ev.AttemptLaunched)) == 3
