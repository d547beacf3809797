"""A maintainer's evening at a forge, in real time: what people do there, and what Ganger's screens say after each.

`make evening` plays it and prints every screen; with `ARGS=--real` as slowly as it would be.
"""

from __future__ import annotations

import contextlib
import io
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ganger.app.run_places import place_of
from ganger.app.runs import read_state
from ganger.cli.shell.main import run_command
from ganger.config import load_project
from ganger.core.control.reviews import awaits_people
from ganger.core.model.ledger import Milestone
from ganger.core.model.run_state import RunState
from ganger.core.state.hosts import waiting
from ganger.errors import NotFoundError
from tests.engine.git_runs import git
from tests.forges.loopback.ground import Ground
from tests.forges.loopback.manners import Manners, Protection
from tests.forges.loopback.script import Run, by_tree
from tests.forges.loopback.server import TOKEN, LoopbackForge, serving
from tests.forges.loopback.world import Asked, World

# No job goes on before that many pushes.
HELD = 99
HOURS = 7200.0
RUN_ID, RENEWED = "evening", "loopback-token-0815"
SCREENS = ("status", "inbox", "workers")
CONFIG = """
[policy]
concurrency = 2
heal_schedule = "off"
grace_sec = 0.5

[agents.scripted]
kind = "scripted"
script = "../agent.json"

[roles.worker]
agent = "scripted"

[workspace]
mode = "forge"

[delivery]
completion = ["verified", "committed", "pushed", "ci"]
forge = "forgejo"
url = "{url}"
remote = "{url}/dev/app.git"
project = "dev/app"
token_file = "{token}"
required_jobs = ["check", "test"]
labels = ["ganger"]
review = "person"
auto_merge = true
delete_branch = true
poll_sec = {poll}
poll_most_sec = {poll_most}
appear_sec = 5
ci_warn_sec = {warn}
ci_sec = {ci}
"""
# The files of each attempt, and what the agent says of them.
WORK: Mapping[str, Sequence[tuple[str, Mapping[str, str]]]] = {
    "greeting": (
        ("The greeting names the person.", {"greeting.py": "def greet(name):\n    return 'Hello ' + name\n"}),
        ("The greeting has its comma.", {"greeting.py": "def greet(name):\n    return f'Hello, {name}'\n"}),
    ),
    "version": (("The program tells its version.", {"version.py": "VERSION = '1.0'\n"}),),
    "parser": (("Options may be given in any order.", {"parser.py": "def parse(words):\n    return set(words)\n"}),),
    "manual": (("A manual of one page.", {"manual.md": "# Manual\n\nSay hello.\n"}),),
}
SUMMARY = {name: attempts[0][0] for name, attempts in WORK.items()}


@dataclass(frozen=True)
class Speed:
    """How long things take, in seconds: in the default slice everything is short."""

    outage: float = 0.0
    ci: float = 0.3
    patience: float = 60.0
    poll: float = 0.05
    poll_most: float = 0.3


REAL = Speed(outage=60.0, ci=12.0, patience=900.0, poll=2.0, poll_most=10.0)


@dataclass(frozen=True)
class Point:
    """What happened, and what the screens said then; `screens` by the words after `ganger`."""

    what: str
    screens: Mapping[str, str]

    def __str__(self) -> str:
        bar = "=" * 100
        shown = "\n".join(f"$ ganger {words}\n{text}" for words, text in self.screens.items())
        return f"{bar}\n{self.what}\n{bar}\n{shown}"


@dataclass
class Evening:
    folder: Path
    speed: Speed = field(default_factory=Speed)
    tell: Callable[[str], None] = lambda _: None
    config: str = CONFIG
    points: list[Point] = field(default_factory=list)
    # What the last `ganger run` printed.
    said: str = ""

    @property
    def root(self) -> Path:
        return self.folder / "hello"

    @property
    def token_file(self) -> Path:
        return self.folder / "token"

    # --- the place --------------------------------------------------------------------------------------------------

    def put_up(self, server: LoopbackForge) -> None:
        config = self.config.format(
            url=server.url, token=self.token_file, poll=self.speed.poll, poll_most=self.speed.poll_most,
            warn=self.speed.patience / 2, ci=self.speed.patience,
        )  # fmt: skip
        (self.root / "ganger.toml").write_text(config)

    def make(self) -> Ground:
        self.root.mkdir()
        script = {name: [_attempt(said, files) for said, files in attempts] for name, attempts in WORK.items()}
        (self.folder / "agent.json").write_text(json.dumps({"tasks": script}))
        self.token_file.write_text(TOKEN)
        tasks = [{"id": name, "prompt_ref": "prompt.md", "depends_on": [], "timeout_sec": 60, "verify_profile": "check"}
                 for name in WORK]  # fmt: skip
        files = {
            "README.md": "# hello\n",
            "prompt.md": "Do it.\n",
            ".gitignore": ".ganger/\nganger.toml\n",
            "verify.json": {
                "profiles": {"check": {"steps": [{"name": "compile", "cmd": "python3 -m compileall -q ."}]}}
            },
            "manifest.json": {"manifest_version": "2.0", "run_id": RUN_ID, "tasks": tasks},
        }
        for name, text in files.items():
            (self.root / name).write_text(text if isinstance(text, str) else json.dumps(text, indent=2) + "\n")
        git(self.root, "init", "-q", "-b", "main")
        git(self.root, "config", "user.name", "Mona")
        git(self.root, "config", "user.email", "mona@example.org")
        git(self.root, "add", "-A")
        git(self.root, "commit", "-qm", "Begin")
        return Ground.make(self.folder / "forge.git", self.root)

    # --- Ganger -----------------------------------------------------------------------------------------------------

    def ganger(self, *words: str, within: float = 120) -> str:
        made = subprocess.run([sys.executable, "-m", "ganger", *words], cwd=self.root, capture_output=True, text=True,
                              timeout=within, stdin=subprocess.DEVNULL)  # fmt: skip
        assert "Traceback" not in made.stdout + made.stderr, made.stderr
        return made.stdout + made.stderr

    def shown(self, *words: str) -> str:
        """What the command says, called in this process: starting one takes longer than what it tells of lasts."""
        told = io.StringIO()
        with contextlib.redirect_stdout(told), contextlib.redirect_stderr(told):
            assert run_command([*words, "--project", str(self.root)]) == 0
        return told.getvalue()

    @contextlib.contextmanager
    def leading(self) -> Iterator[subprocess.Popen[str]]:
        lead = subprocess.Popen([sys.executable, "-m", "ganger", "run"], cwd=self.root, stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)  # fmt: skip
        try:
            yield lead
        finally:
            lead.terminate() if lead.poll() is None else None
            lead.communicate(timeout=30)

    def led(self) -> None:
        """The run is led until there is nothing to do."""
        self.said = self.ganger("run", within=600)

    def state(self) -> RunState:
        return read_state(place_of(load_project(self.root), RUN_ID))

    def until(self, happened: Callable[[RunState], object], within: float = 60) -> None:
        end = time.monotonic() + within
        while time.monotonic() < end:
            with contextlib.suppress(NotFoundError, KeyError):
                if happened(self.state()):
                    return
            time.sleep(0.05)
        raise AssertionError(f"it did not come to that in {within:.0f} s\n{self.ganger('status')}")

    def look(self, what: str, *tasks: str) -> Point:
        words = [*SCREENS[:1], *(f"why {task}" for task in tasks), *SCREENS[1:]]
        printed = {"run": self.said} if self.said else {}
        point = Point(what, printed | {line: self.shown(*line.split()) for line in words})
        self.said = ""
        self.points.append(point)
        self.tell(str(point))
        return point


def _attempt(said: str, files: Mapping[str, str]) -> dict[str, object]:
    return {"files": dict(files), "result": {"status": "DONE", "summary": said, "writes": []}}


# --- what happens -----------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def evening(
    folder: Path, speed: Speed | None = None, tell: Callable[[str], None] = lambda _: None, config: str = CONFIG
) -> Iterator[Scenes]:
    at = Evening(folder, speed or Speed(), tell, config)
    ground = at.make()
    manners = Manners(cancels=True)
    world = World(ground, ((_workflow(at.speed),),), others=(_workflow(at.speed),), manners=manners)
    with serving("forgejo-16", world) as server:
        at.put_up(server)
        yield Scenes(at, world, server)


def _workflow(speed: Speed) -> Run:
    return by_tree(sec=speed.ci)


@dataclass
class Scenes:
    """Each is what somebody does at the forge, and what the screens say then."""

    at: Evening
    world: World
    server: LoopbackForge

    def play(self) -> None:
        self.outage()
        self.waits()
        self.changes_wanted()
        self.approved()
        self.protected()
        self.replaced()
        self.branch_deleted()

    def asked(self, task: str) -> Asked:
        return next(one for one in reversed(self.world.asked) if f"/{task}" in one.branch)

    def _waits(self, *tasks: str) -> Callable[[RunState], bool]:
        return lambda state: all(awaits_people(state, name) for name in tasks)

    def outage(self) -> None:
        """The forge goes away while CI runs, and comes back."""
        self.world.hold = HELD
        with self.at.leading():
            self.at.until(lambda state: all(_follows(state, name) for name in WORK))
            self.at.look("All four are pushed, and CI is at work.", "greeting")
            self.server.outage(HOURS)
            self.at.until(lambda state: any(len(waiting(state, host)) == len(WORK) for host in state.hosts))
            self.at.look("The forge does not answer.", "greeting")
            time.sleep(self.at.speed.outage)
            self.server.answer_again()
            self.at.until(lambda state: not state.hosts)
            self.at.look("The forge is back.", "greeting")
            self.world.hold = 0
            self.at.until(self._waits(*WORK))

    def waits(self) -> None:
        self.at.led()
        self.at.look("CI is green, and everything waits for a review.", "greeting")

    def changes_wanted(self) -> None:
        self.world.review(
            self.asked("greeting"), "changes", "Nearly.", at=[("greeting.py", 2, "There is a comma missing.")]
        )
        self.world.hold = HELD
        with self.at.leading():
            self.at.until(lambda state: state.tasks["greeting"].counters.worker_attempts > 1)
            self.at.until(lambda state: _follows(state, "greeting"))
            self.at.look("The maintainer asks for changes to `greeting`; its worker has done it again.", "greeting")
            self.token_revoked()

    def token_revoked(self) -> None:
        """Somebody takes the token back while CI of the rework runs."""
        self.server.token = self.server.forge.token = RENEWED
        self.at.until(lambda state: any(one.host and one.answer is None for one in state.inbox.questions.values()))
        self.at.look("The token is revoked.", "greeting")
        self.at.token_file.write_text(RENEWED)
        self.at.until(lambda state: not state.hosts)
        self.at.look("The token file has the renewed token.", "greeting")
        self.world.hold = 0
        self.at.until(self._waits("greeting"))

    def approved(self) -> None:
        self.world.review(self.asked("greeting"), "approve", "Thank you.")
        self.at.led()
        self.at.look("The maintainer approves `greeting`.", "greeting")

    def protected(self) -> None:
        self.world.protect("main", Protection(push=True, approvals=2))
        self.world.review(self.asked("version"), "approve", "Fine.")
        self.at.led()
        self.at.look("`main` is protected and wants two approvals; `version` has one.", "version")
        self.world.review(self.asked("version"), "approve", "Fine with me.", by="owner")
        self.at.led()
        self.world.protect("main", None)
        self.at.look("The second person approves `version`, and the protection goes.", "version")

    def replaced(self) -> None:
        asked, ground = self.asked("parser"), self.world.ground
        ours = ground.tip(asked.branch)
        ground.commit(asked.branch, "parser.py", "# mine\n", on=ground.tip("main"))
        self.at.led()
        self.at.look("The maintainer force-pushes the branch of `parser`.", "parser")
        self._next_is_known()
        ground.move(asked.branch, ours)
        self.world.review(asked, "approve", "As it was.")
        self.at.ganger("retry", "parser")
        self.at.led()
        self.at.look("They put it back and approve it; `ganger retry parser`.", "parser")

    def _next_is_known(self) -> None:
        """What is pushed next is a commit that CI has judged; it does so no second time."""
        with self.world.lock:
            self.world.sync()
            usual = self.world.scripts[0]
            self.world.scripts = [*[usual] * self.world.own, (), usual]

    def branch_deleted(self) -> None:
        asked = self.asked("manual")
        self.world.delete_branch(asked.branch)
        self.at.led()
        self.at.look("The maintainer deletes the branch of `manual`.", "manual")
        question = next(
            one.id for one in self.at.state().inbox.questions.values() if one.task == "manual" and not one.answer
        )
        self._next_is_known()
        self.at.ganger("answer", question, "1")
        self.at.led()
        self.world.review(self.asked("manual"), "approve", "Good.")
        self.at.led()
        self.at.look("It is brought there once more and approved.", "manual")


def _follows(state: RunState, name: str) -> bool:
    """Its commit is on the forge, and CI of it is under way."""
    now = state.tasks[name].delivery
    return (
        now is not None and now.milestone is Milestone.PUSHED_TO_CI and bool(now.finding) and now.pushed == now.commit
    )


def main(words: Sequence[str]) -> int:
    speed = REAL if "--real" in words else Speed()
    with tempfile.TemporaryDirectory() as name, evening(Path(name), speed, print) as scenes:
        scenes.play()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
