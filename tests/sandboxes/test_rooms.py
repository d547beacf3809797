"""The private folder of an agent behind Landlock: its own, gone at its end, and nobody else's with it."""

from __future__ import annotations

import fcntl
import json
import os
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ganger.sandboxes.inside import ROOMS, _make_room, _remove_rooms
from ganger.sandboxes.trial import throw_away_folder
from tests.sandboxes.sandboxed import PYTHON, Place, place, with_own_folders

pytestmark = pytest.mark.needs("landlock")
DEEP = f'{PYTHON} -S -c "import os; [(os.mkdir(chr(100)), os.chdir(chr(100))) for _ in range(1500)]"'


@pytest.fixture
def temporary(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder for temporary files of this test's own, which every user can enter."""
    with throw_away_folder() as folder:
        (folder / "temporary").mkdir(mode=0o755)
        monkeypatch.setattr("tempfile.tempdir", str(folder / "temporary"))
        yield folder / "temporary"


@pytest.fixture
def here(temporary: Path) -> Place:
    return place(temporary.parent, "landlock")


def rooms(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.name.startswith(ROOMS))


def test_a_private_folder_lies_where_this_users_temporary_files_do(here: Place, temporary: Path) -> None:
    """G05: and nothing is left of it."""
    assert here.shell("echo $TMPDIR").out.startswith(f"{temporary}/{ROOMS}") and rooms(temporary) == []


@pytest.mark.parametrize(
    "code",
    [
        'cd "$TMPDIR" && mkdir -p a/b/c && touch a/b/c/f && chmod 500 a/b/c a/b && chmod 0 a',
        'cd "$TMPDIR" && ' + DEEP,
        'touch "$TMPDIR/f" && chmod 500 "$TMPDIR"',
        'ln -s / "$TMPDIR/way"; mkfifo "$TMPDIR/pipe"; mkdir "$TMPDIR/d"; ln -s ../../.. "$TMPDIR/d/way"',
    ],
    ids=["closed folders", "deep folders", "itself closed", "links and pipes"],
)
def test_whatever_an_agent_leaves_there_is_removed(here: Place, temporary: Path, code: str) -> None:
    """G05 H08: and the agent's own exit code is told."""
    (temporary.parent / "kept").write_text("kept")
    assert here.shell(f"{code}; exit 7").code == 7
    assert rooms(temporary) == [] and (temporary.parent / "kept").read_text() == "kept"


def test_one_that_tidies_up_takes_no_folder_that_another_has_just_made(temporary: Path) -> None:
    """G05: between the making of a folder and its locking anybody may look at it."""
    lost, done = 0, threading.Event()

    def tidy() -> None:
        while not done.is_set():
            _remove_rooms(f"{temporary}/{ROOMS}other", os.geteuid())

    with ThreadPoolExecutor(2) as pool:
        tidying = [pool.submit(tidy) for _ in range(2)]
        for number in range(1500):
            own = temporary / f"{ROOMS}{number}"
            held = _make_room(str(own))
            lost += not own.is_dir()
            os.close(held)
        done.set()
    assert lost == 0 and [each.result() for each in tidying] == [None, None]


def test_a_forgotten_folder_goes_and_one_in_use_stays(here: Place, temporary: Path) -> None:
    """G05 H08: of agents that were killed with their whole tree, the next one removes what they left."""
    for name in ("old", "held"):
        (temporary / f"{ROOMS}{name}" / "d").mkdir(parents=True)
    held = os.open(temporary / f"{ROOMS}held", os.O_RDONLY)
    fcntl.flock(held, fcntl.LOCK_EX)
    assert here.shell("true").code == 0
    os.close(held)
    assert rooms(temporary) == [f"{ROOMS}held"]


AMONG_OTHERS = """
import json, os
from pathlib import Path
from ganger.ports.sandbox import Room
from ganger.sandboxes.choose import SandboxSettings, candidates
from ganger.sandboxes.trial import give, run
top = Path("/tmp/try")
for folder in (top / "p/.ganger", top / "w", Path("/tmp/ganger-room-other/d")):
    folder.mkdir(parents=True)
os.chown("/tmp/ganger-room-other", 4321, 4321)
os.symlink("/tmp/try", "/tmp/ganger-room-link")
settings = SandboxSettings(top / "p", top / "p/.ganger", top, "/usr/bin:/bin")
walls = next(walls for walls in candidates(settings) if walls.name == "landlock")
give(walls, top / "w")
ended = run(walls, ("sh", "-c", "id -u"), Room((top / "w",)), {"PATH": "/usr/bin:/bin"})
print(json.dumps([ended.out, sorted(os.listdir("/tmp")), sorted(os.listdir(top))]))
"""


@pytest.mark.needs("root", "unshare")
def test_root_removes_no_folder_of_another_user_and_follows_no_link() -> None:
    """G05: a name that anybody may choose in a shared folder is no reason to delete what it names."""
    out, found, kept = json.loads(with_own_folders(AMONG_OTHERS))
    assert out == "61023\n" and found == ["ganger-room-link", "ganger-room-other", "try"] and kept == ["p", "w"]
