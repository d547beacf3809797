"""Projects whose changes go to a bare repository next door, with CI jobs that are commands."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ganger.core import events as ev
from ganger.core.model.ci import chosen
from ganger.core.model.ledger import missing
from ganger.errors import NotFoundError
from tests.engine.git_runs import GitProject, git

ALL = ("verified", "committed", "pushed", "ci")
# Red while a file says so.
TEST = ("python3", "ci.py")
CI = """
import pathlib, sys
bad = [p for p in sorted(pathlib.Path(".").glob("*.txt")) if "broken" in p.read_text()]
print("looked at everything")
for path in bad:
    print(f"AssertionError: {path} is {path.read_text().strip()}")
sys.exit(bool(bad))
"""


@dataclass
class DeliveryProject(GitProject):
    """`jobs` are the CI's commands; `settings` more lines of [delivery]."""

    jobs: Mapping[str, Sequence[str]] = field(default_factory=lambda: {"test": TEST})
    settings: str = ""
    completion: Sequence[str] = ALL

    def make(self) -> DeliveryProject:
        words = "\n".join(f"{name} = {json.dumps(list(argv))}" for name, argv in self.jobs.items())
        self.more = (
            f'{self.more}\n[delivery]\ncompletion = {json.dumps(list(self.completion))}\nforge = "command"\n'
            f'poll_sec = 0.05\npoll_most_sec = 0.2\nremote = "{self.remote}"\n{self.settings}\n'
            f"[delivery.jobs]\n{words}\n"
        )
        self.base = {**self.base, "ci.py": CI}
        super().make()
        git(self.root, "init", "-q", "--bare", "-b", "main", str(self.remote))
        git(self.root, "push", "-q", str(self.remote), "main")
        return self

    @property
    def remote(self) -> Path:
        return self.root.parent / f"{self.root.name}.git"

    def pushed(self) -> list[str]:
        """Subjects on the remote's branch, oldest first, without the beginning."""
        return git(self.remote, "log", "--reverse", "--format=%s", "main").splitlines()[1:]

    def tip(self) -> str:
        return git(self.remote, "rev-parse", "main")

    def of(self, *kinds: type[ev.Event]) -> list[ev.Event]:
        try:
            return [recorded.event for recorded in self.events() if isinstance(recorded.event, kinds)]
        except NotFoundError:
            return []

    def workers(self, task: str = "a") -> int:
        """How often an agent was started on it."""
        return sum(event.task == task for event in self.of(ev.AttemptLaunched) if isinstance(event, ev.AttemptLaunched))

    def is_proved(self, task: str = "a") -> bool:
        """Every part of the completion has its proof, for a commit the remote has."""
        state = self.state()
        now, rules = state.tasks[task].delivery, state.chains.rules[state.specs[task].repo]
        assert now is not None
        there = git(self.remote, "merge-base", "--is-ancestor", now.commit, "main") == ""
        jobs = [job for run in chosen(now.commit, now.runs, rules.events) for job in run.jobs]
        return (
            there
            and bool(jobs)
            and not missing(rules, now, verified=True, committed=bool(state.tasks[task].work.merged))
        )
