"""The last program before the agent, inside the sandbox: drops the remaining privileges, then starts the agent.

It reads its orders from its arguments, `name=value` each, up to `--`; then come the program's file and its arguments.
Every further import would slow down each start.
"""

# ruff: noqa: PTH101, PTH102, PTH106, PTH116, PTH120, PTH208
# Importing pathlib would take longer than all other work here.

from __future__ import annotations

import fcntl
import os
import resource
import stat
import time

from ganger.sandboxes import kernel

PYTHON_FLAGS = ("-I", "-S", "-c")
BOOT = """import sys
sys.modules["ganger"] = ganger = type(sys)("ganger")
ganger.__path__ = [sys.argv[1]]
__import__("ganger.sandboxes.inside", fromlist=["main"]).main(sys.argv[2:])"""

# HUP INT QUIT PIPE TERM XFSZ: a shell and an interpreter before this one may have ignored these.
_SIGNALS = (1, 2, 3, 13, 15, 25)
_HUP, _INT, _TERM = 1, 2, 15
ROOMS = "ganger-room-"
_MEMORY = "/dev/shm"  # noqa: S108
_TIDYING_SEC = 10.0
_LOOK_AGAIN_SEC = 0.005
_NOT_STARTED, _NOT_FOUND = 126, 127
_A_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_COPY_BYTES = 1 << 20


class ConfinementOrders:
    """The values of an order; a name may occur more than once."""

    def __init__(self, words: list[str]) -> None:
        pairs = [word.partition("=") for word in words]
        self._given = [(name, value) for name, _, value in pairs]

    def all(self, name: str) -> list[str]:
        return [value for found, value in self._given if found == name]

    def number(self, name: str) -> int | None:
        found = self.all(name)
        return int(found[-1]) if found else None


def main(arguments: list[str]) -> None:
    split = arguments.index("--")
    orders, program, argv = ConfinementOrders(arguments[:split]), arguments[split + 1], arguments[split + 2 :]
    try:
        for own in orders.all("private"):
            _stand_by(own, orders)
        _confine(orders)
    except OSError as problem:
        _say(f"the sandbox could not be closed: {problem}; nothing was started")
        os._exit(_NOT_STARTED)
    environment = {name: value for name, value in os.environ.items() if name not in orders.all("without")}
    report = orders.number("report")
    try:
        if report is None:
            kernel.default_signals(_SIGNALS)
            os.execve(program, argv, environment)  # noqa: S606
        os.set_inheritable(report, False)
        kernel.hold_back(_TERM)
        child = os.posix_spawn(program, argv, environment, setsigmask=(), setsigdef=_SIGNALS)
    except OSError as problem:
        _say(f"{argv[0]!r} cannot be started in the sandbox: {problem.strerror}")
        os._exit(_report(report, _NOT_FOUND if isinstance(problem, FileNotFoundError) else _NOT_STARTED))
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    # When this process ends, the sandbox ends, with every program the agent started that is still cleaning up.
    while kernel.has_come(_TERM) and _others_live():
        time.sleep(_LOOK_AGAIN_SEC)
    os._exit(_report(report, code))


def _stand_by(own: str, orders: ConfinementOrders) -> None:
    """Makes the private folder and continues in a child; this process waits, removes the folder, and ends as the child
    did."""
    uid, gid = orders.number("uid"), orders.number("gid")
    held = _make_room(own)
    if uid is not None and gid is not None:
        os.fchown(held, uid, gid)
    for number in (_HUP, _INT, _TERM):
        kernel.hold_back(number)
    child = os.fork()
    if not child:
        for number in (_HUP, _INT, _TERM):
            kernel.let_through(number)
        return
    _limit(resource.RLIMIT_CORE, 0)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    os.close(held)
    _remove_rooms(own, os.geteuid() if uid is None else uid)
    if code < 0:
        kernel.default_signals([-code])
        kernel.let_through(-code)
        os.kill(os.getpid(), -code)
    os._exit(code)


def _make_room(own: str) -> int:
    """A new folder, opened and locked. A cleanup of abandoned folders may run between its creation and its lock."""
    while True:
        os.mkdir(own, 0o700)
        try:
            held = os.open(own, _A_FOLDER)
        except FileNotFoundError:
            continue
        fcntl.flock(held, fcntl.LOCK_EX)
        if _is_at(held, own):
            return held
        os.close(held)


def _is_at(descriptor: int, path: str) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.lstat(path))
    except FileNotFoundError:
        return False


def _remove_rooms(own: str, uid: int) -> None:
    """This folder, and those of agents whose whole tree was killed and that no process holds. Never another user's."""
    place = os.path.dirname(own)
    try:
        rooms = [f"{place}/{name}" for name in os.listdir(place) if name.startswith(ROOMS)]
    except OSError:
        rooms = [own]
    for path in rooms:
        try:
            room = os.open(path, _A_FOLDER)
        except OSError:
            continue
        try:
            if os.fstat(room).st_uid in (uid, os.geteuid()):
                fcntl.flock(room, fcntl.LOCK_EX | fcntl.LOCK_NB)
                _empty(room)
                os.rmdir(path)
        except OSError:
            pass
        finally:
            os.close(room)


def _empty(room: int) -> None:
    """Removes a folder, never through a link, also during concurrent moves. Nested folders are moved up first, at any
    depth."""
    moved, give_up_at = 0, time.monotonic() + _TIDYING_SEC
    os.fchmod(room, 0o700)
    while time.monotonic() < give_up_at and (names := os.listdir(room)):
        for name in names:
            try:
                os.unlink(name, dir_fd=room)
                continue
            except (IsADirectoryError, PermissionError):
                inner = _open_folder(name, room)
            for deeper in os.listdir(inner):
                try:
                    os.unlink(deeper, dir_fd=inner)
                except (IsADirectoryError, PermissionError):
                    os.close(_open_folder(deeper, inner))
                    moved += 1
                    os.rename(deeper, f"{ROOMS}{moved}-{os.getpid()}", src_dir_fd=inner, dst_dir_fd=room)
            os.close(inner)
            os.rmdir(name, dir_fd=room)


def _open_folder(name: str, above: int) -> int:
    """Opens a folder, also one without permissions for its owner, as some tools leave them."""
    named = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=above)
    if os.geteuid() != 0:
        os.chmod(f"/proc/self/fd/{named}", 0o700)
    opened = os.open(f"/proc/self/fd/{named}", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    os.close(named)
    return opened


def _confine(orders: ConfinementOrders) -> None:
    uid, gid = orders.number("uid"), orders.number("gid")
    memory = _own_memory(orders)
    if not orders.all("private"):
        _prove_apart(orders)
        _prepare(orders, uid, gid)
    if uid is not None and gid is not None:
        _give_log(uid, gid)
    if uid is not None and gid is not None:
        kernel.drop_bounding_set()
        os.setgroups([])
        os.setresgid(gid, gid, gid)
        os.setresuid(uid, uid, uid)
        kernel.drop_capabilities()
        if uid != 0:
            _own_namespace(uid, gid)
    kernel.forbid_new_privileges()
    _take_input(orders)
    _forget_keys()
    _landlock(orders, memory)
    for limit in orders.all("limit"):
        _limit(*map(int, limit.split(":")))
    for program in orders.all("filter"):
        kernel.install_filter(bytes.fromhex(program))
    if orders.all("report"):
        kernel.set_dumpable(False)


def _prove_apart(orders: ConfinementOrders) -> None:
    """Raises unless this is a sandbox made for the agent: the program that built it may have skipped its options."""
    outside = dict(word.split(":", 1) for word in orders.all("apart"))
    for kind in ("mnt", "pid", *outside):
        if kind not in outside:
            raise PermissionError(f"the machine's {kind} namespace is unknown")
        if str(os.stat(f"/proc/self/ns/{kind}").st_ino) == outside[kind]:
            raise PermissionError(f"it has the machine's own {kind} namespace; is bwrap the real one?")
    for path in ("/", *orders.all("made")):
        os.close(_open_made(path, orders))


def _open_made(path: str, orders: ConfinementOrders) -> int:
    """A folder, opened; raises where its file system existed before the sandbox and so belongs to the machine."""
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    known = orders.all("known")
    if known and kernel.is_tmpfs(folder) and str(os.fstat(folder).st_dev) not in known[-1].split(","):
        return folder
    os.close(folder)
    raise PermissionError(f"{path} belongs to the machine and was not made for the sandbox; is bwrap the real one?")


def _prepare(orders: ConfinementOrders, uid: int | None, gid: int | None) -> None:
    """Gives the agent the folders made for it; files that only root may read become copies."""
    given = () if uid is None or gid is None else ("own", "shared")
    made = [(name, _open_made(path, orders)) for name in given for path in orders.all(name)]
    for pair in orders.all("copy"):
        source, target = pair.split(":", 1)
        _copy(source, target, orders)
    for name, folder in made:
        if name == "shared":
            os.fchmod(folder, 0o1777)
        elif uid is not None and gid is not None:
            os.fchown(folder, uid, gid)
        os.close(folder)


def _give_log(uid: int, gid: int) -> None:
    """Gives the log to the agent's user: a program that opens /dev/stdout opens it again, as that user. Files of other
    users stay theirs."""
    for stream in (1, 2):
        if _is_file(stream) and os.fstat(stream).st_uid == os.geteuid():
            os.fchown(stream, uid, gid)


def _copy(source: str, target: str, orders: ConfinementOrders) -> None:
    place, name = os.path.split(target)
    folder = _open_made(place, orders)
    made = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o444, dir_fd=folder)
    with open(source, "rb") as opened, open(made, "wb") as copy:
        while block := opened.read(_COPY_BYTES):
            copy.write(block)
        os.fchmod(made, 0o444)
    os.close(folder)


def _own_namespace(uid: int, gid: int) -> None:
    """Counts this agent's processes separately from others with the same user id. Not available everywhere."""
    kernel.set_dumpable(True)
    try:
        kernel.enter_user_namespace(uid, gid)
    except OSError:
        return


def _take_input(orders: ConfinementOrders) -> None:
    """A copy of the prompt, so that the agent cannot open the original for writing."""
    given = orders.number("input")
    if given is None:
        return
    if _is_file(given):
        copy = os.memfd_create("input", 0)
        while block := os.read(given, _COPY_BYTES):
            os.write(copy, block)
        os.lseek(copy, 0, os.SEEK_SET)
        os.dup2(copy, 0)
        os.close(copy)
    elif given != 0:
        os.dup2(given, 0)
    if given != 0:
        os.close(given)


def _forget_keys() -> None:
    try:
        kernel.join_empty_keyring()
    except OSError:
        return


def _own_memory(orders: ConfinementOrders) -> tuple[str, ...]:
    """Private shared memory, as semaphores and queues between processes need it; returns the folders that are private
    now.

    Where no folder can be mounted it gets the machine's, if no other process runs as its user.
    """
    for wanted in orders.all("memory"):
        how, _, megabytes = wanted.partition(":")
        try:
            kernel.mount_own(_MEMORY, int(megabytes))
        except OSError:
            return (_MEMORY,) if how == "shared" else ()
        if os.geteuid() != 0:
            kernel.drop_bounding_set()
            kernel.drop_capabilities()
        return (_MEMORY,)
    return ()


def _landlock(orders: ConfinementOrders, memory: tuple[str, ...]) -> None:
    version = kernel.landlock_version()
    if not version and "files" in orders.all("landlock"):
        raise PermissionError("this kernel has no Landlock")
    if not orders.all("landlock") or not version:
        return
    grants = [(path, kernel.LOOK) for path in orders.all("read")]
    grants += [(path, kernel.LOOK | kernel.WRITE_FILE | kernel.IOCTL_DEV) for path in orders.all("device")]
    grants += [
        (path, kernel.everything_but_devices(version))
        for path in (*orders.all("write"), *orders.all("private"), *memory)
    ]
    grants += [(path, kernel.READ_DIR) for path in orders.all("list")]
    if grants:
        # Programs that write to /dev/stdout open the log again.
        grants += [(f"/proc/self/fd/{stream}", kernel.ON_FILES) for stream in (1, 2) if _is_file(stream)]
    scopes = kernel.SCOPE_ABSTRACT_SOCKETS | kernel.SCOPE_SIGNALS
    kernel.landlock(version, grants, tcp="none" not in orders.all("network"), scopes=scopes)


def _is_file(descriptor: int) -> bool:
    return stat.S_ISREG(os.fstat(descriptor).st_mode)


def _limit(kind: int, most: int) -> None:
    hard = resource.getrlimit(kind)[1]
    if hard != resource.RLIM_INFINITY:
        most = min(most, hard)
    resource.setrlimit(kind, (most, most))


def _others_live() -> bool:
    """Whether another program that got the stop signal still runs: its group is led from outside and has no id here."""
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) not in (1, os.getpid()):
            try:
                with open(f"/proc/{name}/stat", "rb", buffering=0) as file:
                    state, _, group = file.readall().rpartition(b")")[2].split()[:3]
            except OSError:
                continue
            if group == b"0" and state not in (b"Z", b"X"):
                return True
    return False


def _report(descriptor: int | None, code: int) -> int:
    """Reports how the agent ended: a shell cannot distinguish exit code 137 from SIGKILL."""
    if descriptor is not None:
        os.write(descriptor, b"s%d" % -code if code < 0 else b"e%d" % code)
    return code if code >= 0 else 128 - code


def _say(text: str) -> None:
    os.write(2, f"ganger: {text}\n".encode(errors="replace"))
