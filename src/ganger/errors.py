"""The error tree: every error Ganger shows, with its exit code.

GangerError                 1    something went wrong; the message says what and what to do
├── InputError              1    a file or value was refused; carries every fault found
│   └── ContractError       1    an agent's answer does not match its contract (one of the five parser codes)
├── StoreError              1    the event store cannot be used
├── DiskFullError           1    nothing can be written any more
├── RunLockedError          1    another process leads this run
├── LeadLost                1    another process took the lead; nothing this one does counts any more
├── StaleToken              1    a report on an attempt that is no longer the current one
├── KeeperError             1    the process that keeps agents cannot be started or reached
├── NotFoundError           1    there is no such run, task, log or file
├── WriteRefused            1    a change set broke a safeguard; nothing was written
├── MachineRefused          1    a disk error, a limit, no memory: no step can go on; says what was refused
├── RollbackFailed          1    files could not be restored; says where the backups are
├── ForgeError              1    a forge or a remote refused a request
│   ├── HostError           1    every request to that host fails in the same way
│   │   ├── ForgeUnreachable 1   it does not answer, or with a server error; may pass with time
│   │   └── ForgeDenied     1    it refuses the token, or the token lacks a permission
│   └── ForgeLimited        1    it limits the rate of requests; says when to ask again
├── UsageError              64   the command line is wrong
│   └── NotBuiltYet         64   a capability that is not implemented yet
└── Interrupted             130  a signal ended the run; it can be continued
"""

from __future__ import annotations

import errno
from collections.abc import Sequence
from dataclasses import dataclass

EXIT_OK = 0
EXIT_ERROR = 1
EXIT_CHECKPOINT = 2
EXIT_BLOCKED = 3
EXIT_ESCALATED = 4
EXIT_USAGE = 64
EXIT_INTERRUPTED = 130

# A launcher says one of these of a program that is there and cannot be run, and a check that did not start is judged by
# them; an older keeper may still say the last one.
NOT_EXECUTABLE, NOT_A_PROGRAM = "is not executable", "is not a program this machine can run"
UNRUNNABLE = (NOT_EXECUTABLE, NOT_A_PROGRAM, "is no program this machine can run")


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing wrong in one place of one file."""

    path: str
    code: str
    message: str

    def as_json(self) -> dict[str, str]:
        return {"path": self.path, "code": self.code, "message": self.message}


class GangerError(Exception):
    """What happened, in one sentence; `hint` is the next step; `code` can be given to `ganger explain`."""

    exit_code = EXIT_ERROR
    code = "ERROR"

    def __init__(self, message: str, *, hint: str = "", code: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        if code is not None:
            self.code = code


class InputError(GangerError):
    """A file that was refused, with every fault found in it."""

    code = "INVALID_INPUT"

    def __init__(self, source: str, faults: Sequence[Fault], *, hint: str = "") -> None:
        self.source = source
        self.faults = tuple(faults)
        first = self.faults[0]
        more = f" (and {len(self.faults) - 1} more)" if len(self.faults) > 1 else ""
        # A path may name its own file: a manifest's faults include those of the settings it is run with.
        names_file = first.path.partition(":")[0].endswith(".toml")
        where = first.path if names_file else f"{source} at {first.path}" if first.path else source
        super().__init__(f"{where}: {first.message}{more}", hint=hint, code=first.code)


class ContractError(GangerError):
    """An agent's answer that cannot be accepted; `code` is one of the five parser codes."""


class StoreError(GangerError):
    code = "STORE_ERROR"


class DiskFullError(GangerError):
    code = "DISK_FULL"


class RunLockedError(GangerError):
    code = "RUN_LOCKED"


class LeadLost(GangerError):
    code = "LEAD_LOST"


class StaleToken(GangerError):
    code = "STALE_TOKEN"


class KeeperError(GangerError):
    code = "KEEPER_ERROR"


class NotFoundError(GangerError):
    code = "NOT_FOUND"


class WriteRefused(GangerError):
    """A safeguard refused a write. `path` is the path as the agent gave it; `also` is what else was refused with it."""

    code = "WRITE_REFUSED"

    def __init__(self, path: str, message: str, *, code: str) -> None:
        super().__init__(f"{path!r}: {message}", code=code)
        self.path = path
        self.also: tuple[WriteRefused, ...] = ()


class RollbackFailed(GangerError):
    code = "ROLLBACK_FAILED"


class MachineRefused(GangerError):
    code = "MACHINE_REFUSED"

    def __init__(self, what: str) -> None:
        super().__init__(
            f"the machine refused a necessary call: {what}",
            hint="check that place, the disk and the limits; then run the same command again: it goes on where it "
            "stood",
        )


_OF_THE_MACHINE = frozenset(
    {
        *(errno.EIO, errno.EROFS, errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE, errno.ENOMEM),
        *(errno.EINTR, errno.EAGAIN),
    }
)


def is_of_machine(problem: BaseException) -> bool:
    """Whether the machine refused a call that would fail for any file and any program."""
    return isinstance(problem, OSError) and problem.errno in _OF_THE_MACHINE


class ForgeError(GangerError):
    code = "FORGE_ERROR"


class HostError(ForgeError):
    """An error of a whole host: it does not answer, or does not accept the token. `host` names it if every request to
    it fails in the same way. `way` is `git` or `api`; `why` is short."""

    def __init__(
        self, message: str, *, hint: str = "", code: str | None = None, host: str = "", way: str = "", why: str = ""
    ) -> None:
        super().__init__(message, hint=hint, code=code)
        self.host, self.way, self.why = host, way, why


class ForgeUnreachable(HostError):
    code = "FORGE_UNREACHABLE"


class ForgeDenied(HostError):
    code = "FORGE_DENIED"


class ForgeLimited(ForgeError):
    """`until` is the Unix time after which it may be asked again."""

    code = "FORGE_LIMITED"

    def __init__(self, message: str, *, until: float, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.until = until


class UsageError(GangerError):
    exit_code = EXIT_USAGE
    code = "USAGE"


class NotBuiltYet(UsageError):
    code = "NOT_BUILT_YET"


class Interrupted(GangerError):
    exit_code = EXIT_INTERRUPTED
    code = "INTERRUPTED"
