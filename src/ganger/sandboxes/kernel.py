"""Direct system calls: privileges, namespaces, key rings, Landlock. For a process that enters the sandbox."""

# ruff: noqa: PTH112
# Importing pathlib would take longer than all other work here.

from __future__ import annotations

import ctypes
import os
import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_LIBC = ctypes.CDLL(None, use_errno=True)

_PR_SET_DUMPABLE = 4
_PR_CAPBSET_DROP = 24
_PR_SET_NO_NEW_PRIVS = 38
_PR_SET_SECCOMP = 22
_PR_CAP_AMBIENT = 47
_PR_CAP_AMBIENT_CLEAR_ALL = 4
_LAST_CAPABILITY = 63
_CLONE_NEWUSER, _CLONE_NEWNS = 0x10000000, 0x20000
_MS_NOSUID, _MS_NODEV, _MS_REC, _MS_PRIVATE = 2, 4, 1 << 14, 1 << 18
_KEYCTL_JOIN_SESSION_KEYRING = 1
_CAPABILITY_VERSION_3 = 0x20080522
_SECCOMP_MODE_FILTER = 2
_SIG_BLOCK, _SIG_UNBLOCK = 0, 1
_SIGNAL_SET_BYTES = 128

_NO_CALL = -1
_KEYCTL = {"x86_64": 250, "aarch64": 219}
_LANDLOCK_CREATE, _LANDLOCK_ADD, _LANDLOCK_RESTRICT = 444, 445, 446
_LANDLOCK_VERSION = 1
_RULE_PATH_BENEATH = 1

EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = (1 << bit for bit in range(4))
_REFER, _TRUNCATE, IOCTL_DEV = 1 << 13, 1 << 14, 1 << 15
LOOK = EXECUTE | READ_FILE | READ_DIR
ON_FILES = EXECUTE | WRITE_FILE | READ_FILE | _TRUNCATE | IOCTL_DEV
_MAKE_DEVICES = 1 << 6 | 1 << 11
_CONNECT_AND_BIND_TCP = 3
SCOPE_ABSTRACT_SOCKETS, SCOPE_SIGNALS = 1, 2
_TMPFS, _STATFS_BYTES = 0x01021994, 256


def is_tmpfs(descriptor: int) -> bool:
    found = ctypes.create_string_buffer(_STATFS_BYTES)
    if _LIBC.fstatfs(descriptor, found) < 0:
        return False
    return bool(ctypes.c_long.from_buffer(found).value & 0xFFFFFFFF == _TMPFS)


def _call(number: int, *arguments: object) -> int:
    done = int(_LIBC.syscall(ctypes.c_long(number), *arguments))
    if done < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return done


def _prctl(option: int, *arguments: object) -> None:
    words = [*arguments, 0, 0, 0, 0][:4]
    if _LIBC.prctl(option, *(ctypes.c_ulong(w) if isinstance(w, int) else w for w in words)) < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))


def set_dumpable(dumpable: bool) -> None:
    _prctl(_PR_SET_DUMPABLE, int(dumpable))


def forbid_new_privileges() -> None:
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)


def drop_bounding_set() -> None:
    """Empties the bounding set: after that no program can grant a capability."""
    for capability in range(_LAST_CAPABILITY + 1):
        try:
            _prctl(_PR_CAPBSET_DROP, capability)
        except OSError:
            return


def drop_capabilities() -> None:
    _prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL)
    header = struct.pack("=Ii", _CAPABILITY_VERSION_3, 0)
    if _LIBC.capset(header, bytes(24)) < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))


def default_signals(numbers: Sequence[int]) -> None:
    for number in numbers:
        _LIBC.signal(number, None)


def hold_back(number: int) -> None:
    """Blocks the signal; `has_come` reports whether it is pending."""
    _mask(_SIG_BLOCK, number)


def let_through(number: int) -> None:
    _mask(_SIG_UNBLOCK, number)


def _mask(how: int, number: int) -> None:
    numbers = ctypes.create_string_buffer(_SIGNAL_SET_BYTES)
    _LIBC.sigaddset(numbers, number)
    _LIBC.sigprocmask(how, numbers, None)


def has_come(number: int) -> bool:
    waiting = ctypes.create_string_buffer(_SIGNAL_SET_BYTES)
    _LIBC.sigpending(waiting)
    return bool(_LIBC.sigismember(waiting, number) == 1)


def join_empty_keyring() -> None:
    _call(_KEYCTL.get(os.uname().machine, _NO_CALL), ctypes.c_long(_KEYCTL_JOIN_SESSION_KEYRING), None)


def enter_user_namespace(uid: int, gid: int) -> None:
    """A new user namespace, in which only this user is mapped, to itself."""
    if _LIBC.unshare(_CLONE_NEWUSER) < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    for name, text in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
        file = os.open(f"/proc/self/{name}", os.O_WRONLY)
        try:
            os.write(file, text.encode())
        finally:
            os.close(file)


def mount_own(path: str, megabytes: int) -> None:
    """Mounts an empty folder in memory at this path, for this process and its children only. Raises where that is not
    possible; an ordinary user needs a user namespace for it, and may be in one afterwards."""
    if os.geteuid() == 0:
        _done(_LIBC.unshare(_CLONE_NEWNS))
    else:
        uid, gid = os.geteuid(), os.getegid()
        set_dumpable(True)
        enter_user_namespace(uid, gid)
        _done(_LIBC.unshare(_CLONE_NEWNS))
    _done(_LIBC.mount(None, b"/", None, ctypes.c_ulong(_MS_REC | _MS_PRIVATE), None))
    options = b"mode=1777,size=%dm" % megabytes
    flags = ctypes.c_ulong(_MS_NOSUID | _MS_NODEV)
    _done(_LIBC.mount(b"tmpfs", path.encode(), b"tmpfs", flags, options))


def _done(result: int) -> None:
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))


def install_filter(program: bytes) -> None:
    code = ctypes.create_string_buffer(program, len(program))
    header = struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(code))
    _prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.c_char_p(header))


def landlock_version() -> int:
    """The version of Landlock's interface; 0 where the kernel has none."""
    try:
        return _call(_LANDLOCK_CREATE, None, ctypes.c_size_t(0), ctypes.c_uint32(_LANDLOCK_VERSION))
    except OSError:
        return 0


def landlock(version: int, grants: Sequence[tuple[str, int]], *, tcp: bool, scopes: int) -> None:
    """Restricts the file system to the grants (none given: no restriction), TCP unless `tcp`, and scopes where
    known."""
    handled = all_rights(version) if grants else 0
    network = 0 if tcp or version < 4 else _CONNECT_AND_BIND_TCP
    attributes = struct.pack("=QQQ", handled, network, scopes if version >= 6 else 0)
    size = 24 if version >= 6 else 16 if version >= 4 else 8
    if not handled and not network and version < 6:
        return
    rules = _call(_LANDLOCK_CREATE, attributes, ctypes.c_size_t(size), ctypes.c_uint32(0))
    for path, rights in grants:
        _grant(rules, path, rights & handled)
    _call(_LANDLOCK_RESTRICT, ctypes.c_int(rules), ctypes.c_uint32(0))
    os.close(rules)


def all_rights(version: int) -> int:
    known = (1 << 13) - 1
    for since, right in ((2, _REFER), (3, _TRUNCATE), (5, IOCTL_DEV)):
        known |= right if version >= since else 0
    return known


def everything_but_devices(version: int) -> int:
    return all_rights(version) & ~_MAKE_DEVICES


def _grant(rules: int, path: str, rights: int) -> None:
    try:
        place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    try:
        if not os.path.isdir(path):
            rights &= ON_FILES
        rule = struct.pack("=Qi", rights, place)
        _call(_LANDLOCK_ADD, ctypes.c_int(rules), ctypes.c_int(_RULE_PATH_BENEATH), rule, ctypes.c_uint32(0))
    finally:
        os.close(place)
