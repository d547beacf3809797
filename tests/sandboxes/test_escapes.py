"""Escapes: what a hostile agent tries is refused, as root and as an ordinary user; the probes see a hole in a wall."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from ganger.ports.processes import Launch
from ganger.ports.sandbox import Room
from ganger.sandboxes import inside
from ganger.sandboxes.bubblewrap import Bubblewrap
from ganger.sandboxes.choose import SandboxSettings, _held_in_place
from ganger.sandboxes.none import NoSandbox
from ganger.sandboxes.probes import probes
from ganger.sandboxes.probes.probes import SENTENCES, ProbeResult, probe
from tests.sandboxes.sandboxed import KINDS, ORDINARY, PATH, as_nobody, place, with_own_folders

pytestmark = pytest.mark.whole

IN_PLACE = {
    *("write-git-hooks-in-place", "write-git-config-in-place", "write-git-info-in-place", "replace-git-in-place"),
    *("write-packages-in-place", "replace-packages-in-place"),
}
# What Landlock leaves open, by who the agent is there.
OPEN_TO_ALL = {*IN_PLACE, "read-project-env-in-place", "read-git-token-in-place", "see-other-processes"}
OPEN_TO_ONESELF = OPEN_TO_ALL | {"change-modes-outside", "reach-sockets", "bomb-with-forks"}
OPEN_TO_ROOT = OPEN_TO_ONESELF | {"be-root"}
AS_NOBODY = """
import json, os
from pathlib import Path
from ganger.sandboxes.choose import SandboxSettings, choose
from ganger.sandboxes.probes.probes import probe
home = Path(os.environ["HOME"])
settings = SandboxSettings(home / "p", home / "p/.ganger", home, os.environ["PATH"], network={network!r})
walls = choose(settings)
print(json.dumps([walls.name, [[r.name, r.held, r.detail] for r in probe(walls, settings)]]))
"""


LOOKS_AT_ENVIRONMENTS = """
import os
from pathlib import Path
from ganger.ports.sandbox import Room
from ganger.sandboxes.choose import SandboxSettings, choose
from ganger.sandboxes.trial import run
home = Path(os.environ["HOME"])
(home / "w").mkdir()
walls = choose(SandboxSettings(home / "p", home / "p/.ganger", home, os.environ["PATH"]))
look = ("sh", "-c", "cat /proc/1/environ /proc/*/environ")
print(run(walls, look, Room((home / "w",)), {"PATH": "/bin", "OWN": "own"}).out)
"""


def openings(results: list[ProbeResult]) -> dict[str, str]:
    return {result.name: result.detail for result in results if not result.held}


def without_walls(folder: Path) -> SandboxSettings:
    return SandboxSettings(folder, folder / ".ganger", folder, PATH, network="none")


@pytest.mark.needs("bwrap")
@pytest.mark.parametrize("network", ["allow", "loopback", "none"])
def test_bubblewrap_refuses_every_escape(tmp_path: Path, network: str) -> None:
    """G05: at least twenty ways out, none of which leads anywhere."""
    here = place(tmp_path, "bubblewrap", network=network)
    results = probe(here.walls, here.settings)
    assert openings(results) == {} and len(results) >= 40


@pytest.mark.needs("bwrap", "root", "setpriv")
@pytest.mark.parametrize("network", ["allow", "none"])
def test_bubblewrap_refuses_every_escape_of_an_ordinary_user(tmp_path: Path, network: str) -> None:
    """G05: without root there is no other user to become, and yet nothing of this one's is seen."""
    tmp_path.chmod(0o755)
    name, results = json.loads(as_nobody(AS_NOBODY.format(network=network), tmp_path / "nobody"))
    assert name == "bubblewrap"
    assert [(probe_, detail) for probe_, held, detail in results if not held] == []


@pytest.mark.needs("bwrap", "root", "setpriv")
def test_the_walls_own_processes_show_no_more_than_the_agents_environment(tmp_path: Path) -> None:
    """G05 D19: an ordinary user may read what its own processes were started with, also number 1's."""
    tmp_path.chmod(0o755)
    shown = as_nobody(LOOKS_AT_ENVIRONMENTS, tmp_path / "nobody")
    assert "OWN=own" in shown and "canary-5e17" not in shown


BEHIND_LANDLOCK = """
import json, sys, tempfile
from pathlib import Path
from ganger.sandboxes.choose import SandboxSettings, candidates, who
from ganger.sandboxes.probes.probes import probe
top = Path(tempfile.mkdtemp())
top.chmod(int(sys.argv[1], 8))
for part in ("p/.ganger", "home"):
    (top / part).mkdir(parents=True)
settings = SandboxSettings(top / "p", top / "p/.ganger", top / "home", "/usr/bin:/bin", network="none")
walls = next(walls for walls in candidates(settings) if walls.name == "landlock")
print(json.dumps([who(walls), sorted(result.name for result in probe(walls, settings) if not result.held)]))
"""


@pytest.mark.needs("landlock", "root", "unshare", "setpriv")
@pytest.mark.parametrize(
    ("user", "mode", "identity", "left_open"),
    [
        pytest.param(ORDINARY, "755", "agents keep your user id", OPEN_TO_ONESELF, id="ordinary user"),
        pytest.param((), "755", "agents become user 61023", OPEN_TO_ALL, id="root, as another user"),
        pytest.param((), "700", "agents keep root's user id because", OPEN_TO_ROOT, id="root, behind a closed folder"),
    ],
)
def test_landlock_leaves_open_exactly_what_the_guide_says(
    user: tuple[str, ...], mode: str, identity: str, left_open: set[str]
) -> None:
    """G05: the weaker walls are weaker where they are said to be, and nowhere else."""
    said, found = json.loads(with_own_folders(BEHIND_LANDLOCK, mode, user=user))
    assert said.startswith(identity) and set(found) == left_open


@pytest.mark.needs("landlock")
@pytest.mark.skipif(os.geteuid() == 0, reason="root has cases of its own")
def test_landlock_leaves_open_to_this_user_what_the_guide_says(tmp_path: Path) -> None:
    """G05: the case of an ordinary user where it is no other's, with this one's own programs."""
    here = place(tmp_path, "landlock", network="none")
    assert set(openings(probe(here.walls, here.settings))) == OPEN_TO_ONESELF


def test_the_guide_names_what_landlock_leaves_open() -> None:
    """G05: each of these sentences is in the guide, with who it is open to."""
    guide = (Path(__file__).resolve().parents[2] / "docs/guide/sandbox.md").read_text(encoding="utf-8")
    rows = [line.strip("| ").split(" | ") for line in guide.splitlines() if line.count(" | ") == 4]
    named = {row[0]: [cell.strip() == "open" for cell in row[1:4]] for row in rows}
    cases = (OPEN_TO_ONESELF, OPEN_TO_ALL, OPEN_TO_ROOT)
    assert {SENTENCES[name]: [name in case for case in cases] for name in OPEN_TO_ROOT} == {
        sentence: open_to for sentence, open_to in named.items() if any(open_to)
    }


@pytest.mark.needs("landlock", "root")
def test_a_probe_asks_for_the_users_that_the_project_will_have(tmp_path: Path) -> None:
    """G05: where agents keep root's user id, the probes' own folder is no better place."""
    tmp_path.chmod(0o700)
    here = place(tmp_path, "landlock")
    assert here.walls.owner is None and "be-root" in openings(probe(here.walls, here.settings))


def test_without_walls_the_probes_find_the_doors_open(tmp_path: Path) -> None:
    """G05: planted bug, no walls at all; an attack that never succeeds would prove nothing."""
    found = openings(probe(NoSandbox(), without_walls(tmp_path)))
    assert len(found) >= (38 if os.geteuid() == 0 else 28), sorted(set(SENTENCES) - set(found))


class Leaky(Bubblewrap):
    """Shows the home to whoever is inside."""

    def rebuilt(self, settings: SandboxSettings) -> Leaky:
        return Leaky(settings, self._bwrap, self._options)

    def confine(self, launch: Launch, room: Room) -> Launch:
        return super().confine(launch, replace(room, readable=(*room.readable, self._settings.home)))


@pytest.mark.needs("bwrap")
def test_a_hole_in_the_walls_is_found(tmp_path: Path) -> None:
    """G05: planted bug, a home that can be read; its keys are masked even then."""
    here = place(tmp_path, "bubblewrap")
    assert isinstance(here.walls, Bubblewrap)
    leaky = Leaky(here.settings, here.walls._bwrap, here.walls._options)
    found = openings(probe(leaky, here.settings))
    assert set(found) == {"read-home-file"}


class Unfixed(Bubblewrap):
    """Lets an agent write everything in the project it works in."""

    def rebuilt(self, settings: SandboxSettings) -> Unfixed:
        return Unfixed(settings, self._bwrap, self._options)

    def confine(self, launch: Launch, room: Room) -> Launch:
        return super().confine(launch, replace(room, fixed=()))


@pytest.mark.needs("bwrap")
def test_git_and_packages_that_can_be_written_in_place_are_found(tmp_path: Path) -> None:
    """G05: planted bug, nothing in the project is read-only; walls like these do not meet `require` there either."""
    here = place(tmp_path, "bubblewrap")
    assert isinstance(here.walls, Bubblewrap)
    unfixed = Unfixed(here.settings, here.walls._bwrap, here.walls._options)
    assert set(openings(probe(unfixed, here.settings))) == IN_PLACE
    assert _held_in_place(here.walls, here.settings) and not _held_in_place(unfixed, here.settings)


class HalfFixed(Bubblewrap):
    """Forgets installed packages."""

    def rebuilt(self, settings: SandboxSettings) -> HalfFixed:
        return HalfFixed(settings, self._bwrap, self._options)

    def confine(self, launch: Launch, room: Room) -> Launch:
        return super().confine(launch, replace(room, fixed=room.fixed[:1]))


@pytest.mark.needs("bwrap")
def test_packages_alone_that_can_be_written_in_place_are_found(tmp_path: Path) -> None:
    """G05: planted bug, only git's folder is read-only."""
    here = place(tmp_path, "bubblewrap")
    assert isinstance(here.walls, Bubblewrap)
    half = HalfFixed(here.settings, here.walls._bwrap, here.walls._options)
    assert set(openings(probe(half, here.settings))) == {"write-packages-in-place", "replace-packages-in-place"}
    assert not _held_in_place(half, here.settings)


class Frank(Bubblewrap):
    """Masks nothing in the folder that is worked in."""

    def rebuilt(self, settings: SandboxSettings) -> Frank:
        return Frank(replace(settings, tracked=lambda _root, paths: frozenset(paths)), self._bwrap, self._options)

    def _shown_otherwise(self, room: Room) -> Iterator[str]:
        return iter(())


@pytest.mark.needs("bwrap")
def test_secrets_that_are_not_masked_in_place_are_found(tmp_path: Path) -> None:
    """G05 D19: planted bug; an agent in the project reads its .env and the token in git's settings."""
    here = place(tmp_path, "bubblewrap")
    assert isinstance(here.walls, Bubblewrap)
    frank = Frank(here.settings, here.walls._bwrap, here.walls._options)
    found = set(openings(probe(frank, here.settings)))
    assert found == {"read-git-token-in-place", "read-project-env-in-place"}


@pytest.mark.needs("bwrap", "root")
def test_a_project_of_root_is_worked_on_with_roots_number_and_no_power(tmp_path: Path) -> None:
    """G05: nobody's files are given away; what root alone may read of the system stays hidden."""
    here = place(tmp_path, "bubblewrap")
    os.chown(here.workspace, 0, 0)
    shown = here.shell("id -u; grep CapEff /proc/self/status; cat /etc/shadow /proc/sys/kernel/core_pattern; echo >new")
    assert shown.out.split()[:3] == ["0", "CapEff:", "0000000000000000"] and "root:" not in shown.out
    assert (here.workspace / "new").stat().st_uid == 0


@pytest.mark.parametrize("kind", KINDS)
def test_an_attack_that_cannot_be_tried_counts_as_open(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """G05: planted bug, a probe that never ran; what is not known is not called safe."""
    here = place(tmp_path, kind)
    monkeypatch.setattr("ganger.sandboxes.probes.probes._ATTACKS", tmp_path / "gone.py")
    results = probe(here.walls, here.settings)
    assert not any(r.held for r in results if r.name == "read-home-file")


@pytest.mark.needs("bwrap")
def test_a_program_that_prepares_the_machine_itself_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """G05: planted bug, a program before the agent that looks neither where it is nor what it changes."""
    here = place(tmp_path, "bubblewrap")
    shutil.copytree(Path(inside.__file__).parent, tmp_path / "ganger" / "sandboxes")
    copy = tmp_path / "ganger" / "sandboxes" / "inside.py"
    code = copy.read_text(encoding="utf-8").replace("        _prove_apart(orders)\n", "")
    copy.write_text(code.replace("    known = orders.", "    return folder\n    known = orders."), encoding="utf-8")
    monkeypatch.setattr(probes, "_PACKAGE", tmp_path / "ganger")
    assert set(openings(probe(here.walls, here.settings))) == {"prepare-the-machine"}
