"""Escapes: what a hostile agent tries is refused, as root and as an ordinary user; the probes see a hole in a wall."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from walled import KINDS, PATH, as_nobody, place

from ganger.ports import Launch, Room
from ganger.sandboxes.bare import Bare
from ganger.sandboxes.bubblewrap import Bubblewrap
from ganger.sandboxes.choose import SandboxSettings
from ganger.sandboxes.probes import SENTENCES, ProbeResult, probe

OPEN_IN_LANDLOCK = {
    *("read-event-store-in-place", "read-project-env-in-place", "read-git-token-in-place", "see-other-processes"),
    *("change-modes-outside", "reach-sockets", "bomb-with-forks"),
}
AS_NOBODY = """
import json, os
from pathlib import Path
from ganger.sandboxes.choose import SandboxSettings, choose
from ganger.sandboxes.probes import probe
home = Path(os.environ["HOME"])
settings = SandboxSettings(home / "p", home / "p/.ganger", home, os.environ["PATH"], network={network!r})
walls = choose(settings)
print(json.dumps([walls.name, [[r.name, r.held, r.detail] for r in probe(walls, settings)]]))
"""


LOOKS_AT_ENVIRONMENTS = """
import os
from pathlib import Path
from ganger.ports import Room
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


def test_landlock_leaves_open_exactly_what_the_guide_says(tmp_path: Path) -> None:
    """G05: the weaker walls are weaker where they are said to be, and nowhere else."""
    here = place(tmp_path, "landlock", network="none")
    as_root = {"be-root"} if os.geteuid() == 0 and here.walls.owner is None else set()
    assert set(openings(probe(here.walls, here.settings))) == OPEN_IN_LANDLOCK | as_root


def test_the_guide_names_what_landlock_leaves_open() -> None:
    """G05: each of these sentences is in the guide."""
    guide = (Path(__file__).resolve().parents[2] / "docs/guide/sandbox.md").read_text(encoding="utf-8")
    assert [name for name in OPEN_IN_LANDLOCK if SENTENCES[name] not in guide] == []


def test_without_walls_the_probes_find_the_doors_open(tmp_path: Path) -> None:
    """G05: planted bug, no walls at all; an attack that never succeeds would prove nothing."""
    found = openings(probe(Bare(), without_walls(tmp_path)))
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
    assert "read-git-token-in-place" in found
    assert ("read-project-env-in-place" in found) == (here.walls.owner is None or os.geteuid() != 0)


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
    monkeypatch.setattr("ganger.sandboxes.probes._ATTACKS", tmp_path / "gone.py")
    results = probe(here.walls, here.settings)
    assert not any(r.held for r in results if r.name == "read-home-file")
