"""The system call filter: calls that no agent needs and that escapes start with are refused, all others allowed."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator

EPERM, EACCES, ENOSYS = 1, 13, 38

_LOAD, _IF_EQUAL, _IF_NOT_LESS, _IF_ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _ERROR, _KILL = 0x7FFF0000, 0x00050000, 0x80000000
_NUMBER, _MACHINE, _FIRST, _SECOND = 0, 4, 16, 24
_X32 = 0x40000000

_NEW_NAMESPACES, _NEW_TIME = 0x7E020000, 0x80
_TERMINAL_INPUT, _TERMINAL_CONSOLE = 0x5412, 0x541C
_UNIX, _VSOCK = 1, 40

_MACHINES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_CLONE, _UNSHARE, _IOCTL, _SOCKET, _CLONE3 = (56, 220), (272, 97), (16, 29), (41, 198), 435
# Name, number on x86_64, number on aarch64; from 424 on the numbers are the same everywhere.
_REFUSED: tuple[tuple[str, int, int], ...] = (
    *(("setns", 308, 268), ("mount", 165, 40), ("umount2", 166, 39), ("pivot_root", 155, 41)),
    *(("open_tree", 428, 428), ("move_mount", 429, 429), ("fsopen", 430, 430), ("fsmount", 432, 432)),
    *(("fspick", 433, 433), ("mount_setattr", 442, 442)),
    *(("add_key", 248, 217), ("request_key", 249, 218), ("keyctl", 250, 219)),
    *(("bpf", 321, 280), ("perf_event_open", 298, 241), ("userfaultfd", 323, 282)),
    *(("kexec_load", 246, 104), ("kexec_file_load", 320, 294)),
    *(("init_module", 175, 105), ("finit_module", 313, 273), ("delete_module", 176, 106)),
    *(("open_by_handle_at", 304, 265), ("acct", 163, 89), ("swapon", 167, 224), ("reboot", 169, 142)),
)
# Programs that use these fall back to older calls where the kernel reports them as missing.
_UNKNOWN = (("clone3", _CLONE3), ("io_uring_setup", 425), ("io_uring_enter", 426), ("io_uring_register", 427))


def orders(*, sockets: bool) -> Iterator[str]:
    """Orders for the program inside the sandbox; none on a machine whose call numbers are unknown here."""
    machine = os.uname().machine
    if machine in _MACHINES:
        yield f"filter={build(machine, sockets=sockets).hex()}"


def build(machine: str, *, sockets: bool) -> bytes:
    """The filter program for the kernel. Without `sockets` only Unix sockets can be made."""
    at = list(_MACHINES).index(machine)
    code = [
        *(_load(_MACHINE), _step(_IF_EQUAL, _MACHINES[machine], 1, 0), _end(_KILL)),
        *(_load(_NUMBER), _step(_IF_NOT_LESS, _X32, 0, 1), _end(_ERROR | ENOSYS)),
    ]
    for refused in _REFUSED:
        code += [_step(_IF_EQUAL, (refused[1], refused[2])[at], 0, 1), _end(_ERROR | EPERM)]
    for _, number in _UNKNOWN:
        code += [_step(_IF_EQUAL, number, 0, 1), _end(_ERROR | ENOSYS)]
    refusal, allowed = _end(_ERROR | EPERM), _end(_ALLOW)
    code += _when(_CLONE[at], [_load(_FIRST), _step(_IF_ANY_BIT, _NEW_NAMESPACES, 0, 1), refusal, allowed])
    code += _when(
        _UNSHARE[at], [_load(_FIRST), _step(_IF_ANY_BIT, _NEW_NAMESPACES | _NEW_TIME, 0, 1), refusal, allowed]
    )
    terminal = [_step(_IF_EQUAL, _TERMINAL_INPUT, 1, 0), _step(_IF_EQUAL, _TERMINAL_CONSOLE, 0, 1)]
    code += _when(_IOCTL[at], [_load(_SECOND), *terminal, refusal, allowed])
    family = _step(_IF_EQUAL, _VSOCK, 0, 1) if sockets else _step(_IF_EQUAL, _UNIX, 1, 0)
    code += _when(_SOCKET[at], [_load(_FIRST), family, _end(_ERROR | EACCES), allowed])
    return b"".join([*code, allowed])


def _when(number: int, block: list[bytes]) -> list[bytes]:
    return [_step(_IF_EQUAL, number, 0, len(block)), *block]


def _load(offset: int) -> bytes:
    return _step(_LOAD, offset, 0, 0)


def _end(answer: int) -> bytes:
    return _step(_RETURN, answer, 0, 0)


def _step(code: int, value: int, if_so: int, if_not: int) -> bytes:
    return struct.pack("=HBBI", code, if_so, if_not, value)
