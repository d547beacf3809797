"""A forge on loopback in a process of its own: no lead that is killed takes it along, and it is asked what it knows.

`python -m faults.forge_process FLAVOUR[:people | :lively]`: is told its repository by a line, prints its address, then
what it counted for each further line. `people` review; `lively`: people push to the target too, CI looks into the
files, and an answer is lost. The path is in no command line, so the process is not taken for one that a run left.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType

from tests.forges.loopback.ground import Ground as Ground
from tests.forges.loopback.manners import Manners
from tests.forges.loopback.script import GREEN, MIRROR, RED, Run, by_tree, ci
from tests.forges.loopback.server import TOKEN as TOKEN, LoopbackForge, kind_of as kind_of
from tests.forges.loopback.world import Asked, World

ROOT = Path(__file__).resolve().parents[1]
_SKIPPED = ci({MIRROR: "block block skip"}, again=({MIRROR: "block run ok"},))
# What CI does for the first push, the second and so on: one task after the other, see `faults.scenes`.
PUSHES: Mapping[str, tuple[tuple[Run, ...], ...]] = {
    "gitea-1.27": ((GREEN,), (_SKIPPED,), (RED,), (GREEN,)),
    "forgejo-16:people": ((GREEN,), (GREEN,), (GREEN,), (RED,), (GREEN,)),
    "forgejo-16": ((GREEN,), (_SKIPPED,), (GREEN,), (RED,), (GREEN,)),
}


class Reviewed(World):
    """With somebody who asks for changes to the first request, and approves of every commit that comes after that."""

    def look(self) -> None:
        super().look()
        with self.lock:
            for asked in self.asked:
                if asked.state == "open" and all(one.commit != self.head_of(asked) for one in asked.reviews):
                    first = asked is self.asked[0] and not asked.reviews
                    at = [("out/plain.txt", 1, "say it plainly")]
                    self.review(asked, "changes" if first else "approve", "thank you", at=at if first else [])


class Lively(World):
    """Somebody pushes to the target whenever a request is opened, so that each must be brought up to date. CI is red
    for one file as it is at first, on branches and in the target; the first merge's answer is lost."""

    def __init__(self, ground: Ground) -> None:
        judged = by_tree("out/red.txt~CIRED")
        super().__init__(ground, ((judged,),), others=(judged,), manners=Manners(lost_merges=1))

    def open_request(self, title: str, body: str, branch: str, into: str, *, draft: bool) -> Asked:
        made = super().open_request(title, body, branch, into, draft=draft)
        self.somebody_pushes(into, f"theirs-{made.number}.txt")
        return made


def main(flavour: str) -> None:
    name, _, people = flavour.partition(":")
    ground = Ground(Path(sys.stdin.readline().strip()))
    world = Lively(ground) if people == "lively" else (Reviewed if people else World)(ground, PUSHES[flavour])
    server = LoopbackForge(name, world).start()
    print(server.url, flush=True)
    for _ in sys.stdin:
        with world.lock:
            counted = {
                "reruns": server.log.count("rerun", status=201),
                "requests": len(world.asked),
                "merged": len(world.merges),
                "drafts": sum(one.draft for one in world.asked),
                "comments": sum(one.by == world.robot for asked in world.asked for one in asked.said),
                "branches": sum(bool(world.ground.tip(one.branch)) for one in world.asked),
                "labels": sum(one.name == "fresh" for one in world.labels),
                "faults": server.log.faults,
            }
        print(json.dumps(counted), flush=True)
    server.stop()


class Beside:
    """The process and its address."""

    def __init__(self, flavour: str, repository: Path) -> None:
        words = [sys.executable, "-m", "faults.forge_process", flavour]
        self._process = subprocess.Popen(
            words,
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
        )
        self.url = self._ask(str(repository))

    def _ask(self, line: str) -> str:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()
        return self._process.stdout.readline().strip()

    def truth(self) -> dict[str, object]:
        told: dict[str, object] = json.loads(self._ask("and now?"))
        return told

    def __enter__(self) -> Beside:
        return self

    def __exit__(self, _kind: type[BaseException] | None, _e: BaseException | None, _t: TracebackType | None) -> None:
        self._process.kill()
        self._process.communicate()


if __name__ == "__main__":
    main(sys.argv[1])
