"""Escape probes: every attack tried inside the walls, on bait; what held, what is open, and a sentence for people."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path

from ganger.ports import Room
from ganger.sandboxes.bare import Bare
from ganger.sandboxes.choose import Walls
from ganger.sandboxes.settings import SandboxSettings
from ganger.sandboxes.trial import give, run
from ganger.sandboxes.yard import Yard, lay_out

_ATTACKS = Path(__file__).with_name("attacks.py")

# Each attack, and what it would mean if it got through.
SENTENCES = {
    "read-home-file": "files in your home are read",
    "read-ssh-key": "keys and passwords in your home are read",
    "list-users-home": "your home is listed",
    "read-project-env": "the project's .env is read from a workspace",
    "read-event-store": "the event store of a run is read",
    "read-event-store-in-place": "the event store is read by an agent that works in the project itself",
    "read-project-env-in-place": "the project's .env is read by an agent that works in the project itself",
    "read-git-token-in-place": "a token in .git/config is read by an agent that works in the project itself",
    "read-other-workspace": "another attempt's workspace is read",
    "read-password-hashes": "the system's password hashes are read",
    "read-shared-tmp": "other programs' temporary files are read",
    "walk-through-proc": "files outside are reached through /proc",
    "link-out-and-read": "files outside are read through links",
    "read-environments": "environments of other processes are read",
    "see-other-processes": "command lines of other processes are seen",
    "write-outside": "files outside the workspace are written",
    "write-system": "the system's files are written",
    "link-out-and-write": "files outside are written through links",
    "rename-parents": "folders above the workspace are renamed",
    "change-modes-outside": "modes of files outside are changed",
    "rewrite-prompt": "the prompt file is written through /proc",
    "be-root": "agents run with root's number",
    "use-capabilities": "agents have capabilities",
    "gain-privileges": "setuid programs give agents their power",
    "mount-over": "file systems are mounted",
    "remount-writable": "read-only places are made writable",
    "take-masks-off": "masked places are unmasked",
    "nest-namespaces": "user namespaces are made",
    "change-root": "the root folder is changed",
    "write-kernel-settings": "kernel settings are written",
    "make-devices": "device nodes are made",
    "open-devices": "disks and memory are opened",
    "leave-control-group": "control groups are changed",
    "use-keyrings": "kernel key rings are reached",
    "use-rare-kernel-doors": "io_uring is used",
    "type-into-terminals": "input is typed into a terminal",
    "signal-others": "other processes are signalled",
    "trace-others": "other processes are traced",
    "reach-sockets": "sockets of other programs are reached",
    "reach-abstract-sockets": "abstract sockets of other programs are reached",
    "reach-hypervisor": "sockets to the hypervisor are made",
    "reach-tcp": "servers of this machine are reached over TCP",
    "reach-udp": "servers of this machine are reached over UDP",
    "see-interfaces": "network interfaces are seen",
    "use-any-network": "IP sockets are made",
    "bomb-with-forks": "processes are started without limit",
    "fill-the-disk": "files grow without limit",
    "dump-core": "core files are written",
}
_OF_NETWORK = ("reach-tcp", "reach-udp", "see-interfaces")
_OF_NO_NETWORK = "use-any-network"
# Without walls these would change the machine itself.
_ONLY_WITHIN_WALLS = ("remount-writable", "take-masks-off")
_IN_PLACE = "-in-place"


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """`detail` says what the attack got hold of."""

    name: str
    held: bool
    detail: str = ""

    @property
    def sentence(self) -> str:
        return SENTENCES[self.name]


def probe(walls: Walls, settings: SandboxSettings) -> list[ProbeResult]:
    """Every attack that these settings do not allow by choice, tried within walls of this kind."""
    with lay_out(settings) as yard:
        walls = walls.rebuilt(yard.settings)
        give(walls, yard.workspace, yard.project)
        names = _names(walls, settings)
        got = _attack(walls, yard, yard.workspace, [name for name in names if not name.endswith(_IN_PLACE)])
        there = [name.removesuffix(_IN_PLACE) for name in names if name.endswith(_IN_PLACE)]
        got |= {f"{name}{_IN_PLACE}": told for name, told in _attack(walls, yard, yard.project, there).items()}
        got |= yard.traces()
        return [ProbeResult(name, not got[name], got[name]) for name in names]


def _names(walls: Walls, settings: SandboxSettings) -> list[str]:
    left_out = [*(_ONLY_WITHIN_WALLS if isinstance(walls, Bare) else ())]
    left_out += _OF_NETWORK if settings.network == "allow" else ()
    left_out += [_OF_NO_NETWORK] if settings.network != "none" else []
    return [name for name in SENTENCES if name not in left_out]


def _attack(walls: Walls, yard: Yard, folder: Path, names: list[str]) -> dict[str, str]:
    """What each got; an attack that could not be made counts as open, for nothing is known about it."""
    (folder / "yard.json").write_text(json.dumps(yard.told()), encoding="utf-8")
    argv = (os.path.realpath(sys.executable), "-I", "-S", str(_ATTACKS), "yard.json", *names)
    ended = run(walls, argv, Room(writable=(folder,)), {"PATH": yard.settings.path}, yard.prompt)
    answers = [json.loads(line) for line in ended.out.splitlines()]
    return dict.fromkeys(names, f"could not be tried ({ended.err.strip()[-200:]})") | dict(answers)
