"""What the git tests share: a small project, Ganger's repository made from it, and agents that do as they like."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

import pytest

from ganger.contracts.task_result import Write
from ganger.errors import WriteRefused
from ganger.ports.changes import Change, Rules, Touched
from ganger.ports.repository import Place, Rebased, Taken
from ganger.workspaces.git.repository import GitRepository, GitSettings
from ganger.workspaces.rules.artifacts import is_generated

T = TypeVar("T")
WHO = ("-c", "user.name=Ann", "-c", "user.email=ann@example.org")
FILES = {
    "README.md": "# A project\n",
    "src/one.py": "".join(f"line {n}\n" for n in range(40)),
    "src/two.py": "def two():\n    return 2\n",
    "src/deep/three.py": "three = 3\n",
    "crlf.txt": "a\r\nb\r\n",
    "data.bin": "\0\1\2",
    "run.sh": "#!/bin/sh\n",
    ".gitignore": "*.log\nignored/\n",
}


def git(folder: Path, *words: str, check: bool = True) -> str:
    """Plain git, as a person or an agent runs it."""
    settings = ("-c", "protocol.file.allow=always", "-c", "safe.directory=*")
    done = subprocess.run(["git", *WHO, *settings, *words], cwd=folder, capture_output=True, check=False)
    if check and done.returncode:
        raise AssertionError(f"git {words}: {done.stderr.decode(errors='replace')}")
    return done.stdout.decode("utf-8", "surrogateescape").strip()


def make_project(root: Path, files: dict[str, str] | None = None, *flags: str) -> Path:
    root.mkdir(parents=True)
    git(root, "init", "-q", "-b", "main", *flags)
    for name, text in (FILES if files is None else files).items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(text.encode())
    (root / "run.sh").chmod(0o755) if files is None else None
    git(root, "add", "-A", "-f")
    git(root, "commit", "-qm", "start", "--allow-empty")
    return root


def settings_for(project: Path, state: Path, run: str = "run-1") -> GitSettings:
    mine = state / run
    return GitSettings(
        project=project,
        store=state / "repo.git",
        run=run,
        work=mine / "work",
        checks=mine / "checks",
        pool=mine / "pool",
        judge=lambda change, rules: None,
        generated=is_generated,
        min_free_bytes=0,
        now=lambda: 1_700_000_000.0,
    )


@dataclass(frozen=True)
class Seen:
    """What a judge saw."""

    touched: tuple[Touched, ...]
    before: dict[str, bytes]
    after: dict[str, bytes]


@dataclass
class Ground:
    """A repository to be tested, its calls made one after the other."""

    settings: GitSettings
    runner: asyncio.Runner
    seen: list[Seen] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.settings = replace(self.settings, judge=self._judge)
        self.repository = GitRepository(self.settings)

    def _judge(self, change: Change, rules: Rules) -> None:
        paths = [one.path for one in change.touched]
        before, after = ({path: read(path) for path in paths} for read in (change.before, change.after))
        self.seen.append(Seen(change.touched, before, after))

    def do(self, work: Coroutine[Any, Any, T]) -> T:
        return self.runner.run(work)

    def open(self) -> str:
        return self.do(self.repository.open())

    def head(self) -> str:
        return self.do(self.repository.head())

    def place(self, task: str = "t", attempt: int = 1) -> Place:
        return self.do(self.repository.place(task, attempt))

    def take(
        self, task: str = "t", attempt: int = 1, writes: Sequence[Write] = (), rules: Rules | None = None
    ) -> Taken:
        return self.do(self.repository.take(task, attempt, writes, rules or Rules(), f"{task}: done"))

    def save(self, task: str = "t", attempt: int = 1) -> tuple[str, tuple[str, ...]]:
        return self.do(self.repository.save(task, attempt, lambda touched: f"WIP {len(touched)}"))

    def touched(self) -> dict[str, Touched]:
        """What the judge saw last, by path."""
        return {one.path: one for one in self.seen[-1].touched}

    def refused(self, task: str = "t", attempt: int = 1) -> str:
        with pytest.raises(WriteRefused) as caught:
            self.take(task, attempt)
        return caught.value.code

    def merge(self, taken: Taken) -> None:
        head = self.head()
        put = self.do(self.repository.rebase(taken.commit, taken.base, head))
        assert isinstance(put, Rebased), put
        assert self.do(self.repository.move_head(head, put.commit))

    def tree(self, commit: str) -> dict[str, tuple[str, bytes]]:
        """Every path of a commit with mode and content."""
        return tree_of(self.settings.store, commit)


def tree_of(store: Path, commit: str) -> dict[str, tuple[str, bytes]]:
    lines = git(store, "ls-tree", "-r", "-z", commit).split("\0")[:-1]
    entries = [(*head.split(" "), path) for head, _, path in (line.partition("\t") for line in lines)]
    wanted = "".join(f"{oid}\n" for _, kind, oid, _ in entries if kind == "blob").encode()
    said = subprocess.run(
        ["git", "cat-file", "--batch"], input=wanted, cwd=store, capture_output=True, check=True
    ).stdout
    found: dict[str, tuple[str, bytes]] = {}
    for mode, kind, oid, path in entries:
        data = oid.encode()
        if kind == "blob":
            head, _, said = said.partition(b"\n")
            size = int(head.split()[-1])
            data, said = said[:size], said[size + 1 :]
        found[path] = (mode, data)
    return found


def files_in(folder: Path) -> dict[str, tuple[str, bytes]]:
    """Every file of a folder as git would hold it, found without git."""
    found: dict[str, tuple[str, bytes]] = {}
    for above, folders, names in os.walk(folder):
        folders[:] = [one for one in folders if one != ".git"]
        for name in [*names, *(one for one in folders if (Path(above) / one).is_symlink())]:
            path = Path(above) / name
            key = os.path.relpath(path, folder)
            if path.is_symlink():
                found[key] = ("120000", os.fsencode(os.readlink(path)))
            else:
                found[key] = ("100755" if path.stat().st_mode & 0o100 else "100644", path.read_bytes())
    return found


@contextmanager
def ground_at(
    root: Path, change: Callable[[GitSettings], GitSettings] = lambda one: one, kind: type[Ground] = Ground
) -> Iterator[Ground]:
    project = root / "project"
    if not project.exists():
        make_project(project)
    with asyncio.Runner() as runner:
        ground = kind(change(settings_for(project, root / "state")), runner)
        try:
            yield ground
        finally:
            runner.run(ground.repository.close())


def python(code: str, *words: str) -> subprocess.Popen[bytes]:
    """Another process that can import what the tests can."""
    here = str(Path(__file__).parents[2])
    environment = {**os.environ, "PYTHONPATH": here}
    return subprocess.Popen([sys.executable, "-c", code, *words], env=environment, stdout=subprocess.PIPE)
