"""Escape probes: every attack tried inside the sandbox, on bait; what held, what is open, and a sentence for each."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path

from ganger.ports.sandbox import Room
from ganger.sandboxes import machine
from ganger.sandboxes.bubblewrap import Bubblewrap
from ganger.sandboxes.choose import AnySandbox
from ganger.sandboxes.inside import BOOT, PYTHON_FLAGS
from ganger.sandboxes.none import NoSandbox
from ganger.sandboxes.probes.bait import Yard, lay_out
from ganger.sandboxes.settings import SandboxSettings
from ganger.sandboxes.trial import give, run

_ATTACKS = Path(__file__).with_name("attacks.py")

# Each attack, and what it means if it succeeds.
SENTENCES = {
    "read-home-file": "files in your home are read",
    "read-ssh-key": "keys and passwords in your home are read",
    "list-users-home": "your home is listed",
    "read-project-env": "the project's .env is read from a workspace",
    "read-event-store": "the event store of a run is read",
    "read-event-store-in-place": "the event store is read by an agent that works in the project itself",
    "write-event-store-in-place": "the event store is written by an agent that works in the project itself",
    "read-worker-key-in-place": "the workers' key is read by an agent that works in the project itself",
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
    "write-git-hooks-in-place": "hooks of git are written by an agent that works in the project itself",
    "write-git-config-in-place": "git's config is written by an agent that works in the project itself",
    "write-git-info-in-place": "git's attributes are written by an agent that works in the project itself",
    "replace-git-in-place": "git's folder is replaced by an agent that works in the project itself",
    "write-packages-in-place": "installed packages are written by an agent that works in the project itself",
    "replace-packages-in-place": "installed packages are replaced by an agent that works in the project itself",
    "be-root": "agents run with root's user id",
    "use-capabilities": "agents have capabilities",
    "gain-privileges": "setuid programs give agents privileges",
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
    "prepare-the-machine": "a bwrap that drops its options has folders of this machine changed",
}
_OF_NETWORK = ("reach-tcp", "reach-udp", "see-interfaces")
_OF_NO_NETWORK = "use-any-network"
# Without a sandbox these would change the machine itself.
_ONLY_IN_SANDBOX = ("remount-writable", "take-masks-off")
_IN_PLACE = ("read-event-store-in-place", "write-event-store-in-place", "read-worker-key-in-place")
_PREPARE = "prepare-the-machine"
_BAIT_MODE, _MODE = 0o700, 0o7777
_PACKAGE = Path(__file__).parents[2]
_FIXED = (
    *("write-git-hooks-in-place", "write-git-config-in-place", "write-git-info-in-place"),
    *("write-packages-in-place", "replace-packages-in-place", "replace-git-in-place"),
)
_SECRETS_IN_PLACE = ("read-project-env-in-place", "read-git-token-in-place")


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """`detail` says what the attack obtained."""

    name: str
    held: bool
    detail: str = ""

    @property
    def sentence(self) -> str:
        return SENTENCES[self.name]


def probe(sandbox: AnySandbox, settings: SandboxSettings) -> list[ProbeResult]:
    """Tries every attack that the settings do not allow on purpose, in a sandbox of this kind."""
    with lay_out(settings) as yard:
        sandbox = sandbox.rebuilt(yard.settings)
        give(sandbox, yard.workspace)
        names = _names(sandbox, settings)
        tried = [name for name in names if name not in (*_IN_PLACE, _PREPARE, *_FIXED, *_SECRETS_IN_PLACE)]
        got = _attack(sandbox, yard, yard.workspace, tried)
        in_place = sandbox.rebuilt(yard.in_place)
        secrets = [name.removesuffix("-in-place") for name in _SECRETS_IN_PLACE]
        found = _attack(in_place, yard, yard.project, secrets)
        got |= {f"{name}-in-place": told for name, told in found.items()}
        got |= _attack(in_place, yard, yard.project, list(_IN_PLACE))
        got |= _attack(in_place, yard, yard.project, [*_FIXED], fixed=yard.fixed)
        got |= yard.traces() | {_PREPARE: _prepare_outside(yard)}
        return [ProbeResult(name, not got[name], got[name]) for name in names]


def _names(sandbox: AnySandbox, settings: SandboxSettings) -> list[str]:
    left_out = [*(_ONLY_IN_SANDBOX if isinstance(sandbox, NoSandbox) else ())]
    left_out += [] if isinstance(sandbox, Bubblewrap) else [_PREPARE]
    left_out += _OF_NETWORK if settings.network == "allow" else ()
    left_out += [_OF_NO_NETWORK] if settings.network != "none" else []
    return [name for name in SENTENCES if name not in left_out]


def _prepare_outside(yard: Yard) -> str:
    """What the program before the agent did to bait without a sandbox around it."""
    bait = yard.outside / "bait"
    bait.mkdir(mode=_BAIT_MODE)
    orders = [f"uid={os.geteuid()}", f"gid={os.getegid()}", f"own={bait}", f"shared={bait}", f"made={bait}"]
    orders += machine.orders(("mnt", "pid"))
    inner = (os.path.realpath(sys.executable), *PYTHON_FLAGS, BOOT, str(_PACKAGE), *orders)
    ended = run(NoSandbox(), (*inner, "--", "/bin/echo", "echo", "started"), Room(writable=(yard.outside,)), {})
    if bait.stat().st_mode & _MODE != _BAIT_MODE:
        return "changed the mode of a folder outside"
    refused = ended.code != 0 and "nothing was started" in ended.err
    return "" if refused else f"started a program outside ({ended.err.strip()[-200:]})"


def _attack(
    sandbox: AnySandbox, yard: Yard, folder: Path, names: list[str], fixed: tuple[Path, ...] = ()
) -> dict[str, str]:
    """What each attack obtained; an attack that could not be tried counts as open, because its result is unknown."""
    (folder / "yard.json").write_text(json.dumps(yard.told()), encoding="utf-8")
    argv = (os.path.realpath(sys.executable), "-I", "-S", str(_ATTACKS), "yard.json", *names)
    ended = run(sandbox, argv, Room(writable=(folder,), fixed=fixed), {"PATH": yard.settings.path}, yard.prompt)
    answers = [json.loads(line) for line in ended.out.splitlines()]
    return dict.fromkeys(names, f"could not be tried ({ended.err.strip()[-200:]})") | dict(answers)
