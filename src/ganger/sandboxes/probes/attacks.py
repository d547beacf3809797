"""What a hostile agent would try, as small programs: each returns what it obtained, or fails. Runs inside the sandbox.

The yard (see `probes`) says where the bait is. Nothing here harms a machine without a sandbox: what is opened is
closed, what is mounted is unmounted, what is made is removed.
"""

# ruff: noqa: PTH101, PTH102, PTH104, PTH108, PTH109, PTH116, PTH208, PTH211
# An attacker calls the system directly.

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import json
import os
import pty
import resource
import signal
import socket
import stat
import sys
from collections.abc import Callable, Mapping
from typing import Any

Yard = Mapping[str, Any]
Attack = Callable[[Yard], str | None]

_LIBC = ctypes.CDLL(None, use_errno=True)
_PATIENCE_SEC = 5
_MANY = 200
_MB = 1 << 20
_MS_REMOUNT, _MS_BIND, _MS_REC, _MS_PRIVATE, _MNT_DETACH = 32, 4096, 1 << 14, 1 << 18, 2
_NEW_USER, _NEW_MOUNTS = 0x10000000, 0x20000
_PTRACE_ATTACH, _PTRACE_DETACH = 16, 17
_TERMINAL_INPUT = 0x5412
_KEYCTL, _IO_URING = {"x86_64": 250, "aarch64": 219}, 425
ATTACKS: dict[str, Attack] = {}


def attack(function: Attack) -> Attack:
    ATTACKS[function.__name__.replace("_", "-")] = function
    return function


def main(arguments: list[str]) -> None:
    """Takes the yard's file and the names of attacks; prints one JSON line each. Every attack runs in its own
    process."""
    with open(arguments[0], encoding="utf-8") as file:
        yard = json.load(file)
    for name in arguments[1:]:
        print(json.dumps([name, _attempt(ATTACKS[name], yard)]), flush=True)


def _attempt(attack: Attack, yard: Yard) -> str:
    """What the attack obtained; empty where it obtained nothing."""
    read, write = os.pipe()
    child = os.fork()
    if not child:
        got = ""
        signal.alarm(_PATIENCE_SEC)
        with contextlib.suppress(OSError, ValueError):
            got = attack(yard) or ""
        os.write(write, got.encode(errors="replace")[:500])
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as answers:
        got = answers.read().decode(errors="replace")
    os.waitpid(child, 0)
    return got


def _call(result: int) -> int:
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result


def _read(path: str) -> str:
    with open(path, "rb") as file:
        return f"read {path}" if file.read(4096) else ""


def _write(path: str) -> str:
    with open(path, "a", encoding="utf-8") as file:
        file.write("probe\n")
    return f"wrote {path}"


def _any(try_: Callable[[str], str], places: list[str]) -> str:
    for place in places:
        with contextlib.suppress(OSError):
            if got := try_(place):
                return got
    return ""


# --- reading what it may not ----------------------------------------------------------------------------------------


@attack
def read_home_file(yard: Yard) -> str:
    return _read(f"{yard['home']}/notes.txt")


@attack
def read_ssh_key(yard: Yard) -> str:
    return _any(
        _read, [f"{yard['home']}/.ssh/id_ed25519", f"{yard['home']}/.netrc", f"{yard['home']}/.aws/credentials"]
    )


@attack
def list_users_home(yard: Yard) -> str:
    names = [name for name in os.listdir(yard["real_home"]) if name in (".ssh", ".bashrc", ".profile", ".gitconfig")]
    return f"{yard['real_home']} shows {', '.join(names)}" if names else ""


@attack
def read_project_env(yard: Yard) -> str:
    return _read(f"{yard['project']}/.env")


@attack
def read_git_token(yard: Yard) -> str:
    with open(f"{yard['project']}/.git/config", "rb") as file:
        return "read a token in .git/config" if yard["canary"].encode() in file.read() else ""


@attack
def read_event_store(yard: Yard) -> str:
    return _read(f"{yard['state']}/run/ganger.db")


@attack
def read_event_store_in_place(yard: Yard) -> str:
    return _any(_read, [f"{yard['private']}/ganger.db", f"{yard['project']}/.ganger/direct/ganger.db"])


@attack
def read_worker_key_in_place(yard: Yard) -> str:
    return _any(_read, [f"{yard['private']}/worker.key", f"{yard['project']}/.ganger/direct/worker.key"])


@attack
def write_event_store_in_place(yard: Yard) -> str:
    ways = [f"{yard['private']}/ganger.db", f"{yard['project']}/.ganger/direct/ganger.db", f"{yard['private']}/new"]
    return _any(_write, ways)


@attack
def read_other_workspace(yard: Yard) -> str:
    return _read(f"{yard['state']}/run/work/other/file.txt")


@attack
def read_password_hashes(yard: Yard) -> str:
    return _any(_read, ["/etc/shadow", "/etc/gshadow", "/etc/sudoers"])


@attack
def read_shared_tmp(yard: Yard) -> str:
    return _any(_read, [yard["tmp_file"], yard["shm_file"]])


@attack
def walk_through_proc(yard: Yard) -> str:
    ways = [f"/proc/{pid}/{way}" for pid in (1, "self", os.getppid(), yard["victim"]) for way in ("root", "cwd")]
    return _any(_read, [f"{way}{yard['secret']}" for way in ways])


@attack
def link_out_and_read(yard: Yard) -> str:
    os.symlink(yard["secret"], "soft")
    with contextlib.suppress(OSError):
        os.link(yard["secret"], "hard")
    return _any(_read, ["soft", "hard"])


@attack
def read_environments(yard: Yard) -> str:
    for name in os.listdir("/proc"):
        with contextlib.suppress(OSError), open(f"/proc/{name}/environ", "rb") as file:
            if yard["canary"].encode() in file.read():
                return f"/proc/{name}/environ shows another process's secret"
    return ""


@attack
def see_other_processes(yard: Yard) -> str:
    with open(f"/proc/{yard['victim']}/cmdline", "rb") as file:
        return f"saw the command line of process {yard['victim']}" if yard["name"].encode() in file.read() else ""


# --- writing where it may not ---------------------------------------------------------------------------------------


@attack
def write_outside(yard: Yard) -> str:
    return _any(_write, [f"{yard['outside']}/written", f"{yard['project']}/written", f"{yard['home']}/written"])


@attack
def write_system(yard: Yard) -> str:
    for folder in ("/usr", "/etc", "/opt", "/usr/local/bin"):
        with contextlib.suppress(OSError):
            _make_file(folder, yard["name"])
            return f"made a file in {folder}"
    return ""


def _make_file(folder: str, name: str) -> None:
    """Uses an unnamed file where the file system can, so that a successful attack changes nothing."""
    try:
        os.close(os.open(folder, os.O_TMPFILE | os.O_WRONLY))
    except OSError as problem:
        if problem.errno not in (errno.EOPNOTSUPP, errno.EISDIR):
            raise
        os.close(os.open(f"{folder}/{name}", os.O_CREAT | os.O_EXCL | os.O_WRONLY))
        os.unlink(f"{folder}/{name}")


@attack
def link_out_and_write(yard: Yard) -> str:
    os.symlink(f"{yard['outside']}/linked", "way")
    return _write("way")


@attack
def rename_parents(yard: Yard) -> str:
    for place in (yard["state"], yard["project"], yard["home"]):
        with contextlib.suppress(OSError):
            os.rename(place, f"{place}.moved")
            return f"renamed {place}"
    return ""


@attack
def change_modes_outside(yard: Yard) -> str:
    os.chmod(yard["secret"], 0o640)
    return f"changed the mode of {yard['secret']}"


@attack
def rewrite_prompt(yard: Yard) -> str:
    def reopen(pid: str) -> str:
        if not stat.S_ISREG(os.stat(f"/proc/{pid}/fd/0").st_mode):
            return ""
        return _write(f"/proc/{pid}/fd/0")

    return _any(reopen, [name for name in os.listdir("/proc") if name.isdigit()])


# --- parts of the project's own folder that an agent may not change -------------------------------------------------


@attack
def write_git_hooks_in_place(yard: Yard) -> str:
    return _write(f"{yard['project']}/.git/hooks/post-checkout")


@attack
def write_git_config_in_place(yard: Yard) -> str:
    return _any(_write, [f"{yard['project']}/.git/{name}" for name in ("config", "config.worktree", "commondir")])


@attack
def write_git_info_in_place(yard: Yard) -> str:
    return _any(_write, [f"{yard['project']}/.git/{name}" for name in ("info/attributes", "info/exclude")])


@attack
def write_packages_in_place(yard: Yard) -> str:
    return _any(_write, [f"{yard['project']}/.venv/{name}" for name in ("bin/python", "lib/start.pth")])


@attack
def replace_packages_in_place(yard: Yard) -> str:
    return _replace(f"{yard['project']}/.venv")


@attack
def replace_git_in_place(yard: Yard) -> str:
    return _replace(f"{yard['project']}/.git")


def _replace(place: str) -> str:
    os.rename(place, f"{place}.old")
    os.mkdir(place)
    return f"replaced {place}"


# --- power ----------------------------------------------------------------------------------------------------------


@attack
def be_root(yard: Yard) -> str:
    return "runs with root's user id" if os.geteuid() == 0 else ""


@attack
def use_capabilities(yard: Yard) -> str:
    fields = _status()
    held = [name for name in ("CapEff", "CapPrm", "CapAmb") if int(fields[name], 16)]
    return f"has capabilities ({', '.join(held)})" if held else ""


@attack
def gain_privileges(yard: Yard) -> str:
    return "setuid programs give it privileges" if _status()["NoNewPrivs"] == "0" else ""


@attack
def mount_over(yard: Yard) -> str:
    os.mkdir("mount")
    # A process that may mount does so in a namespace of its own, and the mount is gone with it.
    if _LIBC.unshare(_NEW_MOUNTS) == 0:
        _call(_LIBC.mount(None, b"/", None, _MS_REC | _MS_PRIVATE, None))
    _call(_LIBC.mount(b"none", b"mount", b"tmpfs", 0, None))
    _LIBC.umount2(b"mount", _MNT_DETACH)
    return "mounted a file system"


@attack
def remount_writable(yard: Yard) -> str:
    for place in (b"/", b"/usr", b"/etc"):
        if _LIBC.mount(None, place, None, _MS_REMOUNT | _MS_BIND, None) == 0 and write_system(yard):
            return f"made {place.decode()} writable"
    return ""


@attack
def take_masks_off(yard: Yard) -> str:
    for place in (yard["home"], yard["state"], yard["project"], os.getcwd()):
        if _LIBC.umount2(place.encode(), _MNT_DETACH) == 0:
            return f"unmounted {place}"
    return ""


@attack
def nest_namespaces(yard: Yard) -> str:
    _call(_LIBC.unshare(_NEW_USER | _NEW_MOUNTS))
    return "made a user namespace of its own"


@attack
def change_root(yard: Yard) -> str:
    os.chroot(".")
    return "changed its root"


@attack
def write_kernel_settings(yard: Yard) -> str:
    def opened(path: str) -> str:
        os.close(os.open(path, os.O_WRONLY))
        return f"opened {path} for writing"

    return _any(opened, ["/proc/sys/kernel/core_pattern", "/proc/sysrq-trigger", "/proc/sys/vm/drop_caches"])


@attack
def make_devices(yard: Yard) -> str:
    os.mknod("disk", stat.S_IFBLK | 0o600, os.makedev(8, 0))
    return "made a device node"


@attack
def open_devices(yard: Yard) -> str:
    def opened(path: str) -> str:
        os.close(os.open(path, os.O_RDONLY | os.O_NONBLOCK))
        return f"opened {path}"

    disks = [f"/dev/{name}" for name in ("sda", "vda", "nvme0n1", "mem", "kmsg", "kvm", "fuse", "loop-control")]
    return _any(opened, disks)


@attack
def leave_control_group(yard: Yard) -> str:
    def opened(path: str) -> str:
        os.close(os.open(path, os.O_WRONLY))
        return f"opened {path} for writing"

    tops = [f"/sys/fs/cgroup/{name}" for name in ("", "unified", "systemd", "pids")]
    return _any(opened, [f"{top}/cgroup.procs" for top in tops])


@attack
def use_keyrings(yard: Yard) -> str:
    number = _KEYCTL[os.uname().machine]
    _call(_LIBC.syscall(ctypes.c_long(number), ctypes.c_long(0), ctypes.c_long(-3), ctypes.c_long(0)))
    return "reached the key ring of its session"


@attack
def use_rare_kernel_doors(yard: Yard) -> str:
    parameters = ctypes.create_string_buffer(120)
    os.close(_call(_LIBC.syscall(ctypes.c_long(_IO_URING), ctypes.c_long(1), parameters)))
    return "set up io_uring"


@attack
def type_into_terminals(yard: Yard) -> str:
    with contextlib.suppress(OSError):
        os.close(os.open("/dev/tty", os.O_RDWR))
        return "has a terminal"
    os.setsid()
    _, own = pty.openpty()
    os.close(os.open(os.ttyname(own), os.O_RDWR))
    fcntl.ioctl(own, _TERMINAL_INPUT, b"x")
    return "typed into a terminal"


# --- other processes and the network ------------------------------------------------------------------------------


@attack
def signal_others(yard: Yard) -> str:
    os.kill(yard["victim"], 0)
    return f"may signal process {yard['victim']} outside"


@attack
def trace_others(yard: Yard) -> str:
    _call(_LIBC.ptrace(ctypes.c_long(_PTRACE_ATTACH), ctypes.c_long(yard["victim"]), None, None))
    os.waitpid(yard["victim"], 0x40000000)
    _LIBC.ptrace(ctypes.c_long(_PTRACE_DETACH), ctypes.c_long(yard["victim"]), None, None)
    return f"traced process {yard['victim']} outside"


def _connect(family: int, kind: int, address: str | tuple[str, int]) -> str:
    with socket.socket(family, kind) as made:
        made.settimeout(2)
        made.connect(address)
        if kind == socket.SOCK_DGRAM:
            made.send(b"probe")
    return f"reached {address!r}"


@attack
def reach_sockets(yard: Yard) -> str:
    known = [yard["socket"], yard["agent_socket"], "/run/docker.sock", "/var/run/docker.sock"]
    known += ["/run/dbus/system_bus_socket", "/run/containerd/containerd.sock", "/run/podman/podman.sock"]
    return _any(lambda place: _connect(socket.AF_UNIX, socket.SOCK_STREAM, place), known)


@attack
def reach_abstract_sockets(yard: Yard) -> str:
    return _connect(socket.AF_UNIX, socket.SOCK_STREAM, f"\0{yard['name']}")


@attack
def reach_hypervisor(yard: Yard) -> str:
    with socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM):
        return "made a socket to the hypervisor"


@attack
def reach_tcp(yard: Yard) -> str:
    return _connect(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", yard["tcp"]))


@attack
def reach_udp(yard: Yard) -> str:
    return _connect(socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", yard["udp"]))


@attack
def see_interfaces(yard: Yard) -> str:
    names = [name for _, name in socket.if_nameindex() if name != "lo"]
    return f"sees the interfaces {', '.join(names)}" if names else ""


@attack
def use_any_network(yard: Yard) -> str:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM):
        return "made an IP socket"


# --- limits ---------------------------------------------------------------------------------------------------------


@attack
def bomb_with_forks(yard: Yard) -> str:
    made: list[int] = []
    try:
        while len(made) < yard["processes"] + _MANY:
            child = os.fork()
            if not child:
                # Each has an alarm of its own: this process may be killed before it stops them.
                signal.alarm(_PATIENCE_SEC)
                signal.pause()
            made.append(child)
    except OSError:
        return ""
    finally:
        for child in made:
            os.kill(child, signal.SIGKILL)
    return f"started {len(made)} processes, {yard['processes']} were allowed"


@attack
def fill_the_disk(yard: Yard) -> str:
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    with open("big", "wb") as file:
        try:
            os.truncate(file.fileno(), (yard["file_mb"] + 1) * _MB)
        finally:
            os.unlink("big")
    return f"made a file of more than {yard['file_mb']} MB"


@attack
def dump_core(yard: Yard) -> str:
    return "" if resource.getrlimit(resource.RLIMIT_CORE)[1] == 0 else "may dump core"


def _status() -> dict[str, str]:
    with open("/proc/self/status", encoding="utf-8") as file:
        return {name: value.strip() for name, _, value in (line.partition(":") for line in file)}


if __name__ == "__main__":
    main(sys.argv[1:])
