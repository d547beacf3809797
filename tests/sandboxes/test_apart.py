"""The program before the agent changes nothing of the machine, whatever the bwrap that started it did or left out."""

from __future__ import annotations

import json
import shutil

import pytest

from tests.sandboxes.sandboxed import ORDINARY, with_own_folders

BWRAP = shutil.which("bwrap") or "bwrap"
# Each is a bwrap that lost something on the way; the real one is named REAL.
PLANTED = {
    "drops every option": 'while [ "$1" != -- ]; do shift; done; shift; exec "$@"',
    "drops the mounts": """
for word; do shift; [ "$word" = -- ] && break; done
exec REAL --unshare-pid --unshare-ipc --unshare-uts --dev-bind / / --proc /proc -- "$@" """,
    "drops the temporary folders": """
kept=
while [ "$1" != -- ]; do
  case $1 in --size | --perms | --dir) shift ;; --tmpfs) kept="$kept --bind $2 $2"; shift ;; *) kept="$kept $1" ;; esac
  shift
done
exec REAL $kept "$@" """,
    "drops the namespaces but that of mounts": """
kept=
while [ "$1" != -- ]; do case $1 in --unshare-*) ;; *) kept="$kept $1" ;; esac; shift; done
exec REAL $kept "$@" """,
    "shows no /proc": """
kept=
while [ "$1" != -- ]; do case $1 in --proc) shift ;; *) kept="$kept $1" ;; esac; shift; done
exec REAL $kept "$@" """,
    "runs an own shell": 'while [ "$1" != -- ]; do shift; done; shift; "$@"; exit',
}

TRY = """
import json, os, sys
from pathlib import Path
from ganger.ports.sandbox import Room
from ganger.sandboxes.bubblewrap import Bubblewrap
from ganger.sandboxes.choose import SandboxSettings
from ganger.sandboxes.bubblewrap import Options
from ganger.sandboxes.trial import give, run
top, bwrap = Path("/tmp/try"), Path("/var/tmp/bwrap")
bwrap.write_text(sys.argv[1])
bwrap.chmod(0o755)
for part in ("home/.ssh", "p/.ganger", "w"):
    (top / part).mkdir(parents=True)
(top / "key").write_text("k")
(top / "key").chmod(0o600)
settings = SandboxSettings(top / "p", top / "p/.ganger", top / "home", os.environ["PATH"])
walls = Bubblewrap(settings, str(bwrap), Options(no_nested_users=False))
give(walls, top / "w")
watched = ["/", "/tmp", "/var/tmp", "/dev/shm", "/run", "/mnt", *map(str, (top, top / "home", top / "p/.ganger"))]
def look():
    found = [(place, os.stat(place)) for place in watched]
    return [[place, s.st_uid, s.st_gid, s.st_mode, sorted(os.listdir(place))] for place, s in found]
before = look()
room = Room((top / "w",), tuple(map(Path, sys.argv[2:])))
ended = run(walls, ("/bin/sh", "-c", "echo started"), room, {"PATH": "/bin"})
after = look()
changed = [[a, b] for a, b in zip(before, after) if a != b]
print(json.dumps([ended.code, ended.out, ended.err, changed]))
"""


def started_by(code: str, user: tuple[str, ...], *readable: str) -> tuple[int, str, str, list[object]]:
    """A launch with this bwrap: its exit code, its output, what was said, and what it changed of the machine."""
    shown = with_own_folders(TRY, f"#!/bin/sh\n{code.replace('REAL', BWRAP)}\n", *readable, user=user)
    ended, out, err, changed = json.loads(shown)
    return ended, out, err, changed


@pytest.mark.sample(3)
@pytest.mark.needs("bwrap", "root", "unshare", "setpriv")
@pytest.mark.parametrize("user", [(), ORDINARY], ids=["root", "ordinary user"])
@pytest.mark.parametrize("code", PLANTED.values(), ids=PLANTED.keys())
def test_a_bwrap_that_drops_its_options_starts_no_agent_and_changes_nothing(code: str, user: tuple[str, ...]) -> None:
    """G05: planted bugs; the program before the agent refuses where it is not in a sandbox of its own."""
    ended, out, err, changed = started_by(code, user)
    assert (ended, out, changed) == (125, "", []), err
    assert "the sandbox could not be closed" in err and "nothing was started" in err


@pytest.mark.needs("bwrap", "root", "unshare", "setpriv")
@pytest.mark.parametrize("user", [(), ORDINARY], ids=["root", "ordinary user"])
def test_the_real_bwrap_starts_the_agent_there_and_changes_nothing(user: tuple[str, ...]) -> None:
    """G05: the refusals of the test beside this one are not those of a place in which nothing can start."""
    assert started_by('exec REAL "$@"', user, "/tmp/try/key") == (0, "started\n", "", [])
