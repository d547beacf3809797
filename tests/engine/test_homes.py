"""Homes of agents: private, kept over attempts, and nothing an agent left in them is followed."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from ganger.engine.resources.agent_homes import Homes
from ganger.errors import GangerError
from ganger.workspaces.files.removal import discard

LOGIN = {".tool/login.json": b'{"token": "t"}', "settings.toml": b"x = 1\n"}


@pytest.fixture
def homes(tmp_path: Path) -> Homes:
    return Homes(tmp_path / "run", tmp_path / "shared", discard)


@pytest.fixture
def home(tmp_path: Path, homes: Homes) -> Path:
    (tmp_path / "run").mkdir()
    return homes.of("a", "mine")


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A file of the operator's that no agent may reach through its home."""
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "login.json").write_bytes(b"mine")
    return tmp_path / "own"


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def test_files_land_in_the_home_and_only_their_owner_reads_them(homes: Homes, home: Path) -> None:
    """T24: a login is a secret."""
    homes.furnish(home, LOGIN, None)
    assert {name: (home / name).read_bytes() for name in LOGIN} == LOGIN
    assert {mode(home / name) for name in LOGIN} == {0o600}
    assert (mode(home), mode(home / ".tool")) == (0o700, 0o700)


def test_what_the_agent_keeps_there_is_there_for_its_next_attempt(homes: Homes, home: Path) -> None:
    """H05: its session goes on; its settings are the operator's again."""
    homes.furnish(home, LOGIN, None)
    (home / ".tool" / "session.jsonl").write_text("earlier\n")
    (home / "settings.toml").write_text("x = 2\n")
    homes.furnish(home, LOGIN, None)
    assert (home / ".tool" / "session.jsonl").read_text() == "earlier\n"
    assert (home / "settings.toml").read_bytes() == LOGIN["settings.toml"]


def test_a_link_in_the_place_of_a_file_is_replaced_and_not_followed(homes: Homes, home: Path, outside: Path) -> None:
    """Nothing outside the home is written."""
    (home / ".tool").mkdir(parents=True)
    (home / ".tool" / "login.json").symlink_to(outside / "login.json")
    homes.furnish(home, LOGIN, None)
    assert (outside / "login.json").read_bytes() == b"mine"
    assert not (home / ".tool" / "login.json").is_symlink()


def test_a_link_in_the_place_of_a_folder_is_replaced_and_not_followed(homes: Homes, home: Path, outside: Path) -> None:
    """Also when it leads to a folder that holds such a file."""
    home.mkdir(parents=True)
    (home / ".tool").symlink_to(outside)
    homes.furnish(home, LOGIN, None)
    assert (outside / "login.json").read_bytes() == b"mine"
    assert (
        not (home / ".tool").is_symlink() and (home / ".tool" / "login.json").read_bytes() == LOGIN[".tool/login.json"]
    )


def test_a_link_in_the_place_of_the_home_is_replaced_and_not_followed(homes: Homes, home: Path, outside: Path) -> None:
    """An agent without walls reaches the folder its home is in."""
    home.parent.mkdir()
    home.symlink_to(outside)
    homes.furnish(home, LOGIN, None)
    assert sorted(path.name for path in outside.iterdir()) == ["login.json"]
    assert not home.is_symlink() and (home / "settings.toml").exists()


def test_a_folder_in_the_place_of_a_file_is_replaced(homes: Homes, home: Path, outside: Path) -> None:
    """With what is in it; a link in it is removed, not what it leads to."""
    (home / "settings.toml" / "deep").mkdir(parents=True)
    (home / "settings.toml" / "deep" / "link").symlink_to(outside)
    homes.furnish(home, LOGIN, None)
    assert (home / "settings.toml").read_bytes() == LOGIN["settings.toml"]
    assert (outside / "login.json").read_bytes() == b"mine"


@pytest.mark.parametrize("name", [".tool", "settings.toml"])
def test_a_pipe_in_the_way_is_replaced_and_nobody_waits_for_it(homes: Homes, home: Path, name: str) -> None:
    """Opening one would wait for its other end."""
    home.mkdir(parents=True)
    os.mkfifo(home / name)
    homes.furnish(home, LOGIN, None)
    assert {path: (home / path).read_bytes() for path in LOGIN} == LOGIN


@pytest.mark.parametrize("name", ["/{own}/login.json", "../../../own/login.json", "a/../../../../own/login.json", ".."])
def test_a_name_that_leads_out_of_the_home_is_refused(homes: Homes, home: Path, outside: Path, name: str) -> None:
    """`home_files` of a config is a path in a home; the operator's own file is neither written nor removed."""
    given = {name.replace("/{own}", str(outside)): b"theirs"}
    with pytest.raises(GangerError, match="not a path inside a home"):
        homes.furnish(home, given, None)
    homes.forget(home)
    assert (outside / "login.json").read_bytes() == b"mine"


@pytest.mark.needs("root")
def test_as_root_everything_that_was_put_there_is_given_to_whoever_works_there(homes: Homes, home: Path) -> None:
    """Inside the walls root is somebody else."""
    homes.furnish(home, LOGIN, (61023, 61023))
    given = [home, home / ".tool", *(home / name for name in LOGIN)]
    assert {(path.stat().st_uid, path.stat().st_gid) for path in given} == {(61023, 61023)}
    assert home.parent.stat().st_uid == 0


def test_a_login_is_there_only_while_the_agent_works(homes: Homes, home: Path) -> None:
    """T24: what the agent made itself stays."""
    homes.furnish(home, LOGIN, None)
    (home / ".tool" / "session.jsonl").write_text("mine\n")
    homes.forget(home)
    assert sorted(p.relative_to(home).as_posix() for p in home.rglob("*")) == [".tool", ".tool/session.jsonl"]
    homes.forget(home)


def test_to_forget_follows_no_link(homes: Homes, home: Path, outside: Path) -> None:
    """An agent that replaced a folder by a link gets nothing outside removed."""
    home.mkdir(parents=True)
    (home / ".tool").symlink_to(outside)
    homes.forget(home)
    assert (outside / "login.json").read_bytes() == b"mine"


def test_a_task_that_is_over_leaves_no_home_and_takes_no_other_with_it(homes: Homes, home: Path) -> None:
    """Also not of a task whose id begins alike, or holds what a pattern means."""
    names = ("a", "ab", "a@b", "a*", "[a]")
    for name in names:
        homes.furnish(homes.of(name, "mine"), LOGIN, None)
    homes.furnish(homes.of("a", "other"), LOGIN, None)
    homes.remove("a*")
    homes.remove("[a]")
    homes.remove("a")
    homes.remove("a")
    assert [homes.of(name, "mine").exists() for name in names] == [False, True, True, False, False]
    assert not homes.of("a", "other").exists()


@pytest.mark.whole
def test_a_home_as_deep_as_can_be_is_removed(homes: Homes, home: Path, request: pytest.FixtureRequest) -> None:
    """Neither stack nor descriptors end with it, also where it only stands in the way of a file."""
    homes.furnish(home, LOGIN, None)
    (home / ".tool" / "login.json").unlink()
    _dig(home / ".tool" / "login.json", 3000)
    request.addfinalizer(lambda: discard(home))
    homes.furnish(home, LOGIN, None)
    assert (home / ".tool" / "login.json").read_bytes() == LOGIN[".tool/login.json"]
    _dig(home, 3000)
    homes.remove("a")
    assert not home.exists()


def _dig(top: Path, deep: int) -> None:
    top.mkdir(exist_ok=True)
    folder = os.open(top, os.O_RDONLY)
    for _ in range(deep):
        os.mkdir("d", dir_fd=folder)
        inner = os.open("d", os.O_RDONLY, dir_fd=folder)
        os.close(folder)
        folder = inner
    os.close(folder)


def test_a_sweep_leaves_the_homes_of_whoever_works_and_the_sessions_that_may_go_on(homes: Homes, home: Path) -> None:
    """T24: nothing of those that left the run, no login of those that wait, all of those at work."""
    for name in ("works", "waits", "gone", ""):
        homes.furnish(homes.of(name, "mine"), LOGIN, None)
        (homes.of(name, "mine") / "session.jsonl").write_text("mine")
    homes.sweep(["works"], ["waits"])
    left = {name: sorted(p.name for p in homes.of(name, "mine").rglob("*")) for name in ("works", "waits", "gone", "")}
    everything = [".tool", "login.json", "session.jsonl", "settings.toml"]
    assert left == {"works": everything, "waits": [".tool", "session.jsonl"], "gone": [], "": []}
    assert not homes.of("gone", "mine").exists() and not homes.of("", "mine").exists()


def test_a_login_is_forgotten_by_whoever_comes_next(homes: Homes, home: Path, tmp_path: Path) -> None:
    """T24: it knows what was put there, whatever the settings say by then."""
    homes.furnish(home, LOGIN, None)
    Homes(tmp_path / "run", tmp_path / "shared", discard).sweep([], ["a"])
    assert sorted(p.name for p in home.rglob("*")) == [".tool"]


def test_a_fresh_session_meets_nothing_that_an_earlier_one_left(homes: Homes, home: Path) -> None:
    """Settings and hooks a process planted would be run by its successor."""
    homes.furnish(home, LOGIN, None)
    (home / ".tool" / "hooks.json").write_text("run me")
    homes.furnish(home, LOGIN, None, fresh=True)
    assert sorted(p.relative_to(home).as_posix() for p in home.rglob("*")) == [".tool", *LOGIN]


def test_a_sweep_leaves_no_list_behind_and_takes_no_home_for_one(homes: Homes, home: Path) -> None:
    """T24: a home that somebody else removed, and an agent whose name ends as a file's could."""
    for agent in ("mine", "mine.files", "files"):
        homes.furnish(homes.of("a", agent), LOGIN, None)
    discard(home)
    homes.sweep([], [])
    assert list(home.parent.iterdir()) == []


@pytest.mark.parametrize(
    "planted", ["link", "pipe", "folder", "[1, null]", '["a\\u0000b", "../../own/login.json"]', "{", "7"]
)
def test_whatever_an_agent_puts_in_the_place_of_the_list_is_not_followed(
    homes: Homes, home: Path, outside: Path, planted: str
) -> None:
    """One without walls reaches it; nobody waits, nothing outside is written or removed."""
    homes.furnish(home, LOGIN, None)
    (listed,) = [path for path in home.parent.iterdir() if path != home]
    listed.unlink()
    if planted == "link":
        listed.symlink_to(outside / "login.json")
    elif planted == "pipe":
        os.mkfifo(listed)
    elif planted == "folder":
        (listed / "in").mkdir(parents=True)
    else:
        listed.write_text(planted)
    homes.forget(home)
    homes.furnish(home, LOGIN, None)
    homes.sweep([], ["a"])
    assert not (home / ".tool" / "login.json").exists()
    homes.sweep([], [])
    assert (outside / "login.json").read_bytes() == b"mine" and list(home.parent.iterdir()) == []
