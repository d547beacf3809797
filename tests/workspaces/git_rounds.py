"""One whole round of an attempt in a process of its own, to be killed anywhere, and what must hold afterwards."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from ganger.ports.repository import Place
from ganger.workspaces.git.repository import GitRepository
from ganger.workspaces.git.settings import AttemptPlace
from tests.workspaces.git_projects import Ground, files_in, settings_for, tree_of

# Printed first: a round that cannot even be imported is none that was cut off.
BEGUN = "begun"


def play(ground: Ground) -> None:
    """Open, place, work, take, merge, check and release; every step may have been done before."""
    repository = ground.repository
    ground.open()
    before = _merged(ground)
    if not before:
        place = ground.place()
        (place.folder / "new.txt").write_text("new\n")
        (place.folder / "README.md").unlink(missing_ok=True)
        ground.save()
        taken = ground.take()
        checked = ground.do(repository.checkout("c", taken.commit))
        assert files_in(checked) == tree_of(ground.settings.store, taken.commit)
        ground.do(repository.move_head(taken.base, taken.commit))
    ground.do(repository.release("t", 1))
    ground.do(repository.drop_checkout("c"))


def _merged(ground: Ground) -> bool:
    return "new.txt" in tree_of(ground.settings.store, ground.head())


def faults_of(ground: Ground) -> list[str]:
    """Plays the round to its end and says what is not as it must be."""
    project = files_in(ground.settings.project)
    expected = {path: one for path, one in project.items() if path != "README.md"} | {"new.txt": ("100644", b"new\n")}
    ground.do(ground.repository.sweep())
    try:
        play(ground)
    except Exception as problem:  # noqa: BLE001
        return [f"repeating failed: {problem!r}"]
    found = [] if tree_of(ground.settings.store, ground.head()) == expected else ["the merged tree is wrong"]
    found += [text] if (text := ground.do(ground.repository.fsck())) else []
    left = [one for one in ground.settings.work.iterdir() if not one.name.startswith(".")]
    return found + [f"left over: {one}" for one in left]


def plant_a_bug() -> None:
    """A workspace that is made under its final name, so that a kill leaves half of one."""

    def careless(self: GitRepository, attempt: AttemptPlace, work: str) -> Place:
        folder = self._attempts.folder(attempt)
        if folder.exists():
            return Place(folder, self._attempts.origin(attempt))
        self._checkouts.make(folder, self._head())
        self._bare.set_ref(self._refs.at(attempt), self._head())
        return Place(folder, self._head())

    GitRepository._place = careless  # type: ignore[method-assign]


def main() -> None:
    print(BEGUN, flush=True)
    project, state, *planted = sys.argv[1:]
    if planted:
        plant_a_bug()
    with asyncio.Runner() as runner:
        ground = Ground(settings_for(Path(project), Path(state)), runner)
        play(ground)
        runner.run(ground.repository.close())


if __name__ == "__main__":
    main()
