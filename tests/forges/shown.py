"""What a maintainer sees at the forge after two real runs: docs/guide/what-the-forge-shows.md shows it.

`make forge-page` plays both and writes it into the page. Commits, numbers and addresses are replaced by others that are
the same each time; everything else is as the runs left it.
"""

from __future__ import annotations

import hashlib
import re
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.forges.evening import CONFIG, HELD, WORK, Scenes, Speed, evening
from tests.forges.loopback.ground import Ground
from tests.forges.loopback.script import by_tree
from tests.forges.loopback.world import Asked

PAGE = Path(__file__).resolve().parents[2] / "docs" / "guide" / "what-the-forge-shows.md"
PLACE = re.compile(r"(<!-- shown: ([\w-]+) -->\n```text\n).*?(```\n)", re.DOTALL)
ANYWHERE, SHOWN = re.compile(r"http://127\.0\.0\.1:\d+"), "https://git.example.org"
CHANGING = re.compile(r"\b(?:[0-9a-f]{40}|[0-9a-f]{16}|[0-9a-f]{12}|[0-9a-f]{7})\b|(?<=#)\d+|(?<=runs/)\d+")
IDENTITY = 'author = "Build Bot <bot@example.org>"'
BASE = CONFIG.replace("[agents.scripted]", "[agents.coder]").replace('agent = "scripted"', 'agent = "coder"')
REQUESTS = BASE.replace('mode = "forge"', f'mode = "forge"\n{IDENTITY}')
# All change the branch itself. The first attempt of `greeting` is red in CI.
TRAIN = (
    BASE.replace('mode = "forge"', f'mode = "local-git"\n{IDENTITY}')
    .replace("concurrency = 2", "concurrency = 1")
    .replace('review = "person"\nauto_merge = true\ndelete_branch = true', "")
)
FLAW = "greeting.py~'Hello '"


def shown(folder: Path) -> dict[str, str]:
    """The blocks of the page, by name."""
    found: dict[str, str] = {}
    for name, play, config in (("requests", requests, REQUESTS), ("train", train, TRAIN)):
        (folder / name).mkdir()
        with evening(folder / name, Speed(), config=config) as scenes:
            told = play(scenes)
        replaced = Replaced()
        found |= {block: replaced(text) for block, text in told.items()}
    return found


class Replaced:
    """Each id by another of its length, which depends on nothing but its place among the others."""

    def __init__(self) -> None:
        self._known: dict[str, str] = {}

    def __call__(self, text: str) -> str:
        return CHANGING.sub(self._of, ANYWHERE.sub(SHOWN, text))

    def _of(self, found: re.Match[str]) -> str:
        word = found[0]
        if len(word) < 7:
            return self._known.setdefault(f"#{word}", str(12 + sum(key.startswith("#") for key in self._known)))
        # A commit is shown in three lengths.
        key = word[:7]
        made = self._known.setdefault(key, hashlib.sha256(str(len(self._known)).encode()).hexdigest())
        return made[: len(word)]


def requests(scenes: Scenes) -> Mapping[str, str]:
    """Four change requests, approved one after the other."""
    scenes.at.led()
    first = scenes.asked("greeting")
    waiting, branches = "\n".join(_request(first)), _branches(scenes.world.ground)
    for task in WORK:
        scenes.world.review(scenes.asked(task), "approve", "Thank you.")
        scenes.at.led()
    return {
        "request": waiting,
        "comment": first.said[0].body,
        "branches": branches,
        "branches-after": _branches(scenes.world.ground),
        "first-parent": _log(scenes.world.ground, "--oneline", "--first-parent"),
        "request-log": _log(scenes.world.ground, "--oneline", "--graph"),
    }


def train(scenes: Scenes) -> Mapping[str, str]:
    """The first is red; while CI is at it the others are merged, and the maintainer pushes something."""
    at, world = scenes.at, scenes.world
    world.hold, world.scripts = HELD, [(by_tree(FLAW, sec=at.speed.ci),)]
    with at.leading() as lead:
        at.until(lambda state: all(state.tasks[name].work.merged for name in WORK))
        world.somebody_pushes("main", "notes.md", message="Notes of the meeting")
        world.hold = 0
        lead.wait(60)
    ground = world.ground
    return {"train-log": _log(ground, "--oneline", "--graph"), "commit": _log(ground, "-1", _FULL, "--no-merges")}


_FULL = "--format=commit %H%nAuthor: %an <%ae>%n%n%B"


def _request(asked: Asked) -> Iterator[str]:
    state = "draft" if asked.draft else asked.state
    yield f"#{asked.number} {asked.title}"
    yield f"{state}, {asked.branch} into {asked.into}, labels: {', '.join(asked.labels)}"
    yield ""
    yield asked.body
    for comment in asked.said:
        yield from ("", f"--- comment by {comment.by} ---", "", comment.body)


def _branches(ground: Ground) -> str:
    return ground.git("branch", "--list", "--format=%(refname:short)")


def _log(ground: Ground, *words: str) -> str:
    return "\n".join(line.rstrip() for line in ground.git("log", *words, "main").strip().splitlines())


def written(page: str, blocks: Mapping[str, str]) -> str:
    """The page with these blocks; a place without a block, or the other way round, is a mistake."""
    places = [found[2] for found in PLACE.finditer(page)]
    assert sorted(places) == sorted(blocks), (places, sorted(blocks))
    return PLACE.sub(lambda found: f"{found[1]}{blocks[found[2]]}\n{found[3]}", page)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        PAGE.write_text(written(PAGE.read_text(encoding="utf-8"), shown(Path(name))), encoding="utf-8")
