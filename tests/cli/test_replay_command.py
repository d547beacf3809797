"""`ganger replay` on real runs: the same core agrees, other settings and other logs are found out."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.cli_project import Answer, ganger, kept, make_project, task

pytestmark = pytest.mark.whole

DONE = [[{"result": {"status": "DONE", "summary": "x"}}]]
TWICE = [[{"text": "only prose"}], *DONE]
TASKS = (task("one"), task("two"), task("three", depends_on=["one"]))


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with a run whose second task answered in prose first."""
    root = tmp_path_factory.mktemp("played")
    make_project(root, *TASKS, script={"one": DONE, "two": TWICE, "three": DONE})
    assert ganger("run", "--concurrency", "2", cwd=root).code == 0
    return root


def replay(root: Path, *words: str) -> Answer:
    return ganger("replay", *words, cwd=root)


def test_todays_run_replays_without_a_difference(played: Path) -> None:
    """G07: decisions from the events, answers from the logs; no agent is called."""
    answer = replay(played, "r1", "--logs", "--json")
    assert answer.code == 0, answer.out
    said = answer.json
    assert (said["schema"], said["run_id"], said["same"]) == ("ganger.replay/1", "r1", True)
    assert said["decisions"] > 3 and (said["logs"]["answers"], said["logs"]["missing"]) == (4, [])


def test_another_setting_shows_where_the_road_would_part(played: Path) -> None:
    """G07: exit 1, the first place exactly, the others counted."""
    answer = replay(played, "--set", "policy.concurrency=1")
    assert answer.code == 1
    assert "  recorded  start one, two\n  today     start one\n" in answer.out


@pytest.mark.slow
def test_a_run_is_found_by_its_folder_from_anywhere(played: Path, tmp_path: Path) -> None:
    """G07: also without the project it came from."""
    answer = replay(tmp_path, str(played / ".ganger" / "r1"), "--logs")
    assert answer.code == 0 and "every decision would be the same today" in answer.out


def test_an_answer_that_is_read_differently_now_is_shown(tmp_path: Path) -> None:
    """G07: as after a change of the parser."""
    root = make_project(tmp_path, task("one"), script={"one": DONE})
    ganger("run", cwd=root)
    (kept(root) / "logs/one.worker.1.log").write_text("nothing")
    answer = replay(root, "--logs")
    assert answer.code == 1
    assert "  recorded  DONE with 0 writes\n  today     refused: NO_SENTINEL\n" in answer.out


@pytest.mark.slow
def test_a_log_that_is_gone_is_counted_and_no_difference(tmp_path: Path) -> None:
    """G07: an old run may have been cleaned."""
    root = make_project(tmp_path, task("one"), script={"one": DONE})
    ganger("run", cwd=root)
    (kept(root) / "logs/one.worker.1.log").unlink()
    answer = replay(root, "--logs")
    assert answer.code == 0 and "0 answers read again from their logs, 1 logs are gone" in answer.out


@pytest.mark.brief(2)
@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("--set", "concurrency"), 64, "KEY=VALUE"),
        (("--set", "policy.colour=red"), 64, "decides nothing"),
        (("--set", "policy.concurrency=0"), 64, "at least 1"),
        (("nowhere",), 1, "no run 'nowhere'"),
    ],
)
def test_what_makes_no_sense_is_refused(played: Path, words: tuple[str, ...], code: int, said: str) -> None:
    """G07: with a sentence that says what does."""
    answer = replay(played, *words)
    assert answer.code == code and said in answer.err
