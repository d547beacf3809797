"""The whole architecture on one page: what the engine needs from the world, and nothing more.

Clock      what time it is
Store      events, durable before `append` returns; who leads; what people asked for
Launcher   processes whose output goes straight to a log and which outlive the lead
Agent      how one kind of CLI is called and how its answer is read
Workspace  the project's own folder, and the one door through which changes land in it; Fixed: what no task may change
Repository  a git repository Ganger owns: workspaces made from it, changes taken from them, the branch that moves
Sandbox    the walls around an untrusted process
Endpoint   where workers reach whoever leads the run
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from ganger.ports.copies import Copies as Copies
from ganger.ports.fixed import Fixed as Fixed, FixedChange as FixedChange, Mark as Mark
from ganger.ports.history import History
from ganger.ports.reports import Endpoint as Endpoint, Handler as Handler, Reply as Reply, Request as Request
from ganger.ports.room import Room as Room

if TYPE_CHECKING:
    from ganger.contracts.heal_decision import HealDecision
    from ganger.contracts.parser import Parsed, Refused
    from ganger.contracts.task_result import TaskResult, Write
    from ganger.core.events import Event, Recorded
    from ganger.core.signs import Heard, Sign


class Clock(Protocol):
    def now(self) -> float:
        """Seconds since the epoch."""

    def monotonic(self) -> float:
        """Seconds that never go back, for durations."""


@dataclass(frozen=True, slots=True)
class Owner:
    """A process that leads or wants to. `start_ticks` and `boot_id` tell it from a later one with the same number."""

    pid: int
    start_ticks: int = 0
    boot_id: str = ""
    host: str = ""


@dataclass(frozen=True, slots=True)
class Entry:
    """An event to be written. One that reports on an attempt carries that attempt's token."""

    at: str
    event: Event
    token: str = ""


@dataclass(frozen=True, slots=True)
class Command:
    """What a person or a program asked of a run; acted on by whoever leads it."""

    number: int
    at: str
    kind: str
    data: Mapping[str, object]


class Store(Protocol):
    """One run's events. One lead writes them; other processes read, and may leave commands."""

    def take_lead(self, owner: Owner, *, now: float, lease_sec: float, holder_is_dead: Callable[[Owner], bool]) -> int:
        """Makes this store the writer and returns its fence; raises RunLockedError while another's lease lasts.

        A holder that is provably dead is replaced at once. From then on every write of an earlier lead is refused.
        """

    def renew(self, now: float, lease_sec: float) -> None:
        """Prolongs the lease; raises LeadLost when somebody else leads."""

    def release(self) -> None:
        """Gives the lead back; harmless when it is lost."""

    def append(self, batch: Sequence[Entry]) -> list[Recorded]:
        """Writes all or nothing in one durable transaction and returns the events numbered.

        The fence and every token are checked by the statements that write: LeadLost, StaleToken.
        """

    def read(self, since: int = 0) -> Iterator[Recorded]:
        """Events with a number above `since`, in order."""

    def send(self, at: str, kind: str, data: Mapping[str, object]) -> int:
        """Leaves a command, durably; its number. Needs no lead."""

    def commands(self, since: int) -> list[Command]:
        """Commands with a number above `since`, in order. Cheap when there is none."""

    def save_snapshot(self, seq: int, text: str) -> None:
        """Keeps the state as it was after event `seq`; only the newest is kept, and only the lead may."""

    def snapshot(self) -> tuple[int, str] | None: ...

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Launch:
    """One process to be: no shell, no pipe; both output streams go to `log_path`. `key` is unique on the machine.

    Time and output are limited by whoever keeps the process, also when the lead is gone. `programs` are others of the
    operator's that it will start.
    """

    key: str
    argv: tuple[str, ...]
    cwd: Path
    env: Mapping[str, str]
    stdin_path: Path | None
    log_path: Path
    timeout_sec: float | None
    append: bool = False
    output_limit_bytes: int | None = None
    programs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Exit:
    """How a process ended. `started` is false when it never ran; `error` then says why.

    `lost`: its keeper died, so nobody saw the end; its tree is gone. `log_bytes` is the log's size at the end.
    """

    code: int | None
    signal: int | None
    timed_out: bool
    duration_sec: float
    started: bool
    error: str
    over_output: bool = False
    lost: bool = False
    log_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Facts:
    """A process tree as the system shows it. `stopped`: by a signal; whoever is not, waits for one that is. `lined_up`:
    for how long each of its processes has stood in line for a processor, by number."""

    processes: int
    cpu_sec: float
    stopped: bool = False
    lined_up: Mapping[int, float] = field(default_factory=dict)


class Running(Protocol):
    """A started process; `pid` is None when it never ran. `start_time` tells it from a later one with the same pid."""

    @property
    def pid(self) -> int | None: ...

    @property
    def start_time(self) -> int | None: ...

    async def wait(self) -> Exit: ...


class Launcher(Protocol):
    """Processes of one run. They go on when the lead dies; the next lead finds them by their keys."""

    async def prepare(self) -> None:
        """Gets ready, so that the first start does not have to wait."""

    async def start(self, launch: Launch) -> Running:
        """Starts it once: a key that was started before is not started again, what became of it is returned."""

    async def find(self, key: str) -> Running | None:
        """What an earlier lead started under this key: running, ended or lost. None: it was never started."""

    def knows_all(self) -> bool:
        """Whether whoever keeps the processes has done so without a break: a key it does not know was never started."""

    async def end(self, key: str) -> None:
        """Ends this tree: SIGTERM, grace, SIGKILL. Its `wait` tells when it is over; harmless when it is."""

    async def extend(self, key: str, sec: float) -> bool:
        """Its time limit ends in `sec` seconds at the earliest; False when it is not running, or being ended."""

    def facts(self, running: Running) -> Facts | None:
        """What its processes do at this moment; None when nothing can be told."""

    async def end_others(self, keep: Collection[str]) -> int:
        """Ends every tree of this run whose key is not kept, however it fled; returns once they are gone."""

    async def stop_all(self, grace_sec: float) -> None: ...

    def kill_all(self) -> None:
        """SIGKILL to every tree, now."""

    async def close(self) -> None:
        """This lead needs no more; what still runs goes on."""


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What an agent kind can do.

    `stream`: its output tells more than its answer. `resume`: a session goes on after its process died. `tokens` and
    `usd`: it says what it used. `schema`: it can hold its model to a JSON Schema. `turns`: it takes a limit of turns.
    """

    stdin_prompt: bool = False
    arg_prompt: bool = False
    file_prompt: bool = False
    pty: bool = False
    interactive: bool = False
    stream: bool = False
    resume: bool = False
    tokens: bool = False
    usd: bool = False
    schema: bool = False
    turns: bool = False


@dataclass(frozen=True, slots=True)
class AttemptContext:
    """What an agent may know of the attempt it is asked to make.

    `home` is a folder of the task's own that outlives the process; `shared` is one folder for all agents of a kind,
    which they may read and only Ganger writes. `session` is the one to continue; empty: a new one. `walled`: Ganger's
    own sandbox is around it.
    """

    run_id: str
    task_id: str
    attempt: int
    role: str
    workspace: Path
    prompt_file: Path
    log_path: Path
    timeout_sec: float
    environment: Mapping[str, str] = field(default_factory=dict)
    home: Path | None = None
    shared: Path | None = None
    session: str = ""
    walled: bool = False


@dataclass(frozen=True, slots=True)
class AgentHealth:
    """`login`: whether it can reach its model, as far as that can be told without asking it; None: unknown."""

    ready: bool
    version: str = ""
    details: tuple[str, ...] = ()
    login: bool | None = None


class Reader(Protocol):
    """Understands one process's output as it comes, line by line."""

    def line(self, line: bytes) -> Iterable[Sign]:
        """A line without its end. Never raises: what it does not understand is nothing."""

    def end(self) -> Iterable[Sign]:
        """The process is over."""


class Agent(Protocol):
    """One configured agent. `prepare` says how to call it, `execute` starts it, `hear` and `extract_*` read its log."""

    @property
    def name(self) -> str: ...

    @property
    def kind(self) -> str: ...

    @property
    def capabilities(self) -> Capabilities: ...

    @property
    def model(self) -> str:
        """The model it is told to use; empty: its own choice."""

    def furnish(self, context: AttemptContext) -> Mapping[str, bytes]:
        """Files its home must hold before it starts, by relative path."""

    def prepare(self, context: AttemptContext) -> Launch: ...

    async def execute(self, launch: Launch, launcher: Launcher) -> Running: ...

    def extract_result(self, log: Path, task_id: str) -> Parsed[TaskResult] | Refused: ...

    def extract_heal(self, log: Path) -> Parsed[HealDecision] | Refused: ...

    def reader(self) -> Reader | None:
        """For output that is watched while it comes; None: it has no form of its own."""

    def hear(self, log: Path, home: Path | None = None) -> Heard:
        """What its whole output came to; and what it left in its home, where only that tells."""

    def healthcheck(self) -> AgentHealth: ...


class Changes(Protocol):
    """A change set that passed every safeguard and has not touched anything yet."""

    @property
    def paths(self) -> tuple[str, ...]: ...

    @property
    def digests(self) -> Mapping[str, str]:
        """Each path's SHA-256 as it shall be."""


class Workspace(Protocol):
    """Where agents work. `propose` only looks; `back_up` must be whole and recorded before `apply` changes a byte."""

    @property
    def root(self) -> Path: ...

    def read_text(self, ref: str) -> str:
        """A file of the project by relative path; never one outside it."""

    def propose(self, writes: Sequence[Write], rules: Rules) -> Changes:
        """Checks every safeguard; raises WriteRefused."""

    def back_up(self, changes: Changes, folder: Path) -> None: ...

    def apply(self, changes: Changes, folder: Path) -> None:
        """All or nothing."""

    def originals(self, folder: Path) -> Mapping[str, bytes | None]:
        """The files of the backup as they were; None: not there."""

    def landed(self, folder: Path) -> bool | None:
        """By hash: True when all files of the backup are as they shall be, False when as they were, None: neither."""

    def roll_back(self, folder: Path) -> tuple[str, ...]:
        """Puts everything back from the backup alone; harmless to repeat.

        The paths that somebody else had changed since; what they wrote is saved beside the backup.
        """

    def discard(self, folder: Path) -> None: ...


@dataclass(frozen=True, slots=True)
class Side:
    """A path before or after a change. `mode` is git's: 0o100644, 0o100755, 0o120000 (link), 0o160000 (submodule)."""

    mode: int
    size: int
    digest: str


@dataclass(frozen=True, slots=True)
class Touched:
    """One path of a change; a rename is a path that went and one that came, the second knows where it came from."""

    path: str
    before: Side | None
    after: Side | None
    renamed_from: str = ""

    @property
    def kind(self) -> str:
        if self.before is None or self.after is None:
            return "added" if self.before is None else "deleted"
        if self.before.mode >> 12 != self.after.mode >> 12:
            return "retyped"
        return "modified" if self.before.digest != self.after.digest else "mode"


class Change(Protocol):
    """What somebody did to the files, whoever it was and however it was seen."""

    @property
    def touched(self) -> tuple[Touched, ...]: ...

    def before(self, path: str) -> bytes:
        """The content as it was; a link's is its target. Empty where there was none, or where it is a submodule."""

    def after(self, path: str) -> bytes: ...

    def names_before(self, folder: str) -> Collection[str]:
        """What a folder held, files and folders; "" is the root. Nothing where there was no such folder."""


@dataclass(frozen=True, slots=True)
class Rules:
    """What one task may do to files, beyond what holds for all.

    `paths` are the globs of its role (None: all). `create`, `modify` and `read` are what it declared (None: nothing was
    declared). `verify` are the commands that will judge it. Nothing may be taken away from files that match the
    globs of `interface`.
    """

    allow_shrinkage: bool = False
    may_change_gates: bool = False
    paths: tuple[str, ...] | None = None
    create: tuple[str, ...] | None = None
    modify: tuple[str, ...] | None = None
    expected: tuple[str, ...] = ()
    verify: tuple[str, ...] = ()
    interface: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RoleRules:
    """What a role changes: the paths its tasks may touch (None: all), and words for every prompt of theirs."""

    paths: tuple[str, ...] | None = None
    may_change_gates: bool = False
    prompt: str = ""


@dataclass(frozen=True, slots=True)
class Restored:
    """Paths that were put back, and whether anything else is not as it was."""

    paths: tuple[str, ...] = ()
    more: bool = False


class Watch(Protocol):
    """The project's own folder before and after somebody worked in it.

    The baseline of a running attempt outlives the lead. Everything is harmless to repeat.
    """

    def begin(self) -> None:
        """What is there now is the baseline."""

    def resume(self) -> None:
        """The baseline an earlier lead took."""

    def changed(self, ignoring: Mapping[str, str]) -> Change:
        """What differs from the baseline, less what Ganger itself wrote: paths with their SHA-256."""

    def judge(self, change: Change, rules: Rules) -> None:
        """Raises WriteRefused."""

    def missing(self, rules: Rules) -> tuple[str, ...]:
        """Expected files that are not there."""

    def undo(self, change: Change) -> tuple[str, ...]:
        """Puts everything back; the paths that could not be put back."""

    def save(self, change: Change, folder: Path, *, contents: bool = True) -> None:
        """Keeps what somebody made, with a summary; or the summary alone."""

    def restore_gates(self, ignoring: Mapping[str, str], rules: Rules, folder: Path) -> Restored:
        """Puts gate files and protected ones back as the baseline has them; what they were goes to `folder`."""

    def mark(self) -> Mark: ...


@dataclass(frozen=True, slots=True)
class Place:
    """An attempt's own workspace and the commit it was made from. `fresh`: just now; `holds_work`: with a change."""

    folder: Path
    base: str
    fresh: bool = field(default=False, compare=False)
    holds_work: bool = field(default=False, compare=False)


@dataclass(frozen=True, slots=True)
class Taken:
    """A change that passed every safeguard, as a commit on the base of its workspace.

    `dropped` are generated files that were left out, `missing` are expected files that are not in it.
    """

    commit: str
    base: str
    files: tuple[str, ...]
    dropped: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Rebased:
    """A change put onto another commit."""

    commit: str
    tree: str


@dataclass(frozen=True, slots=True)
class Conflict:
    """A change that does not fit: the files, and an excerpt with the conflict marks for the next prompt."""

    files: tuple[str, ...]
    excerpt: str


class Repository(History, Protocol):
    """A git repository of Ganger's own, the run's integration branch in it, and the folders made from it.

    Everything is harmless to repeat. Agents may use git in their workspaces; nothing they do there is ever run here.
    """

    @property
    def shared(self) -> tuple[Path, ...]:
        """What every workspace reads besides its own folder."""

    async def open(self) -> str:
        """Makes the repository and the run's branch, if they are not there; the branch's head."""

    async def head(self) -> str: ...

    async def has(self, commit: str) -> bool: ...

    async def is_ancestor(self, commit: str, of: str) -> bool: ...

    async def move_head(self, expected: str, new: str) -> bool:
        """Compare and swap, durable; False when the head is neither `expected` nor `new` already."""

    async def place(self, task: str, attempt: int, work: str = "") -> Place:
        """The attempt's workspace, made from the head where there is none yet; if it fits, with the change `work`."""

    async def take(self, task: str, attempt: int, writes: Sequence[Write], rules: Rules, message: str) -> Taken:
        """What the agent changed in its workspace, and `writes` on top, judged and committed; raises WriteRefused.

        The commit is kept by a ref. A change of nothing gives the base itself.
        """

    async def save(
        self, task: str, attempt: int, message: Callable[[Sequence[Touched]], str]
    ) -> tuple[str, tuple[str, ...]]:
        """Keeps whatever is in the workspace as a WIP commit, unjudged; ("", ()) when nothing was changed."""

    async def rebase(self, commit: str, base: str, onto: str) -> Rebased | Conflict:
        """The change from `base` to `commit`, as one commit on `onto` with the same message."""

    async def empty_commit(self, parent: str, message: str, at: float) -> Rebased:
        """A commit on `parent` that changes nothing. The same question gets the same commit; a ref keeps it."""

    async def join(
        self, ours: str, theirs: str, message: str, at: float, *, yields: bool = False
    ) -> Rebased | Conflict:
        """A merge of both, `ours` first, always the same; a ref keeps it. `yields`: in a conflict, `theirs` counts."""

    async def line(self, base: str, tip: str, most: int = 200) -> Sequence[Rebased]:
        """What came after `base` along the first parents of `tip`, the oldest first."""

    async def like(self, commit: str, tree: str, onto: str) -> Rebased:
        """A commit on `onto` with this tree and all else as `commit` has it; `onto` itself where that is its tree."""

    async def take_back(self, commit: str, onto: str, message: str, at: float) -> Rebased | Conflict:
        """One commit on `onto`, always the same and kept by a ref, that changes back what `commit` changed, if any."""

    async def diff_text(self, base: str, commit: str, most_bytes: int) -> str:
        """The change from `base` to `commit` for a reader, cut where it is longer."""

    async def tree_of(self, commit: str) -> str: ...

    async def check(self) -> None:
        """Raises GangerError REPO_DAMAGED where git finds damage. Reads every object."""

    async def release(self, task: str, attempt: int) -> None:
        """Removes a workspace. Only call it when its change is merged, saved, or none."""

    async def checkout(self, name: str, commit: str) -> Path:
        """A fresh folder with exactly this commit, in which no agent ever was."""

    async def drop_checkout(self, name: str) -> None: ...

    async def clear(self, needed: Collection[tuple[str, int]]) -> None:
        """Removes what dead leads left, but for the workspaces of these attempts and work that is nowhere else."""

    async def close(self) -> None:
        """This lead needs no more."""


class Sandbox(Protocol):
    """Walls around an untrusted process."""

    @property
    def name(self) -> str:
        """Which walls these are, such as `bubblewrap`, `landlock` or `none`."""

    @property
    def owner(self) -> tuple[int, int] | None:
        """Who must own a folder that is made for a confined process; None: whoever made it."""

    def confine(self, launch: Launch, room: Room) -> Launch:
        """The same launch inside the walls."""

    def shows(self, path: Path, launch: Launch, room: Room) -> bool:
        """Whether the confined program can read what is there on the machine."""


Listener = Callable[["Recorded"], None]
