"""The engine's ports: what it needs from the world.

Clock      the time
Store      events, durable before `append` returns; the lease of the lead; commands from people
Launcher   processes whose output goes straight to a log and which outlive the lead
Agent      how one kind of CLI is called and how its answer is read
Workspace  the project's own folder, and the only way in which changes land in it; Fixed: what no task may change
Repository  a git repository Ganger owns: workspaces made from it, changes taken from them, the run's branch
Sandbox    isolation of an untrusted process
Endpoint   where workers reach the lead
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from ganger.ports.copies import Copies as Copies
from ganger.ports.endpoint import Endpoint as Endpoint, Handler as Handler, Reply as Reply, WorkerCall as WorkerCall
from ganger.ports.fixed import Fixed as Fixed, FixedChange as FixedChange, Mark as Mark
from ganger.ports.history import History
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
        """Seconds of a monotonic clock, for durations."""


@dataclass(frozen=True, slots=True)
class Owner:
    """A process that leads or wants to. `start_ticks` and `boot_id` exclude a later process with the same id."""

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
    """A request of a person or a program to a run; its lead carries it out."""

    number: int
    at: str
    kind: str
    data: Mapping[str, object]


class Store(Protocol):
    """One run's events. One lead writes them; other processes read them and may leave commands."""

    def take_lead(self, owner: Owner, *, now: float, lease_sec: float, holder_is_dead: Callable[[Owner], bool]) -> int:
        """Makes this store the writer and returns its fence; raises RunLockedError while another lease lasts.

        A holder that is provably dead is replaced at once. From then on every write by an earlier lead is refused.
        """

    def renew(self, now: float, lease_sec: float) -> None:
        """Extends the lease; raises LeadLost when another process leads."""

    def release(self) -> None:
        """Releases the lead; safe to call when it is lost."""

    def append(self, batch: Sequence[Entry]) -> list[Recorded]:
        """Writes all or nothing in one durable transaction and returns the events numbered.

        The fence and every token are checked by the statements that write: LeadLost, StaleToken.
        """

    def read(self, since: int = 0) -> Iterator[Recorded]:
        """Events with a number above `since`, in order."""

    def send(self, at: str, kind: str, data: Mapping[str, object]) -> int:
        """Leaves a command, durably, and returns its number. Needs no lead."""

    def commands(self, since: int) -> list[Command]:
        """Commands with a number above `since`, in order. Cheap when there is none."""

    def save_snapshot(self, seq: int, text: str) -> None:
        """Stores the state after event `seq`. Only the newest one is kept, and only the lead may store it."""

    def snapshot(self) -> tuple[int, str] | None: ...

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Launch:
    """A process to start: no shell, no pipe; both output streams go to `log_path`. `key` is unique on the machine.

    The process's keeper limits time and output, also when the lead is gone. `programs` are other programs of the
    operator that it starts.
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

    `lost`: its keeper died, so the end was not seen; its tree is gone. `log_bytes` is the log's size at the end.
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
    """A process tree as the system shows it. `stopped`: by a signal; all others wait for a stopped one. `lined_up`: how
    long each of its processes has waited for a processor, by process id."""

    processes: int
    cpu_sec: float
    stopped: bool = False
    lined_up: Mapping[int, float] = field(default_factory=dict)


class Running(Protocol):
    """A started process; `pid` is None when it never ran. `start_time` excludes a later process with the same pid."""

    @property
    def pid(self) -> int | None: ...

    @property
    def start_time(self) -> int | None: ...

    async def wait(self) -> Exit: ...


class Launcher(Protocol):
    """Processes of one run. They keep running when the lead dies; the next lead finds them by their keys."""

    async def prepare(self) -> None:
        """Prepares, so that the first start does not have to wait."""

    async def start(self, launch: Launch) -> Running:
        """Starts it once: a key that was started before is not started again; its present state is returned."""

    async def find(self, key: str) -> Running | None:
        """What an earlier lead started under this key: running, ended or lost. None: it was never started."""

    def knows_all(self) -> bool:
        """Whether the keeper has run without a break: then a key it does not know was never started."""

    async def end(self, key: str) -> None:
        """Stops this tree: SIGTERM, grace, SIGKILL. Its `wait` returns when it is gone; safe to call when it is."""

    async def extend(self, key: str, sec: float) -> bool:
        """Moves its time limit to at least `sec` seconds from now; False when it is not running or is being stopped."""

    def facts(self, running: Running) -> Facts | None:
        """What its processes are doing at this moment; None when that is unknown."""

    async def end_others(self, keep: Collection[str]) -> int:
        """Kills every tree of this run whose key is not kept, also detached ones; returns once they are gone."""

    async def stop_all(self, grace_sec: float) -> None: ...

    def kill_all(self) -> None:
        """SIGKILL to every tree, now."""

    async def close(self) -> None:
        """Releases the launcher; running processes keep running."""


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What an agent kind can do.

    `stream`: its output shows more than its answer. `resume`: a session can continue after its process died. `tokens`
    and `usd`: it reports its usage. `schema`: it can hold its model to a JSON Schema. `turns`: it has a turn limit.
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
    """What an agent adapter may know about the attempt.

    `home` is the task's own folder, which outlives the process; `shared` is one folder for all agents of a kind, which
    they may read and only Ganger writes. `session`: the one to continue, or empty. `walled`: in Ganger's sandbox.
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
    """`login`: whether it can reach its model, as far as is known without a request to it; None: unknown."""

    ready: bool
    version: str = ""
    details: tuple[str, ...] = ()
    login: bool | None = None


class Reader(Protocol):
    """Reads one process's output as it arrives, line by line."""

    def line(self, line: bytes) -> Iterable[Sign]:
        """Takes a line without its line break. Never raises: an unknown line gives nothing."""

    def end(self) -> Iterable[Sign]:
        """Called when the process has ended."""


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
        """The model set for it; empty: its own choice."""

    def furnish(self, context: AttemptContext) -> Mapping[str, bytes]:
        """Files that must be in its home before it starts, by relative path."""

    def prepare(self, context: AttemptContext) -> Launch: ...

    async def execute(self, launch: Launch, launcher: Launcher) -> Running: ...

    def extract_result(self, log: Path, task_id: str) -> Parsed[TaskResult] | Refused: ...

    def extract_heal(self, log: Path) -> Parsed[HealDecision] | Refused: ...

    def reader(self) -> Reader | None:
        """A reader for output that is watched as it arrives; None: its output has no special form."""

    def hear(self, log: Path, home: Path | None = None) -> Heard:
        """The result of its whole output, or of files in its home where only they show it."""

    def healthcheck(self) -> AgentHealth: ...


class Changes(Protocol):
    """A change set that passed every safeguard and has not touched anything yet."""

    @property
    def paths(self) -> tuple[str, ...]: ...

    @property
    def digests(self) -> Mapping[str, str]:
        """Each path's SHA-256 after the change."""


class Workspace(Protocol):
    """Where agents work. `propose` only reads; `back_up` must be complete and recorded before `apply` starts."""

    @property
    def root(self) -> Path: ...

    def read_text(self, ref: str) -> str:
        """A file of the project by relative path; never one outside it."""

    def propose(self, writes: Sequence[Write], rules: Rules) -> Changes:
        """Checks every safeguard; raises WriteRefused."""

    def back_up(self, changes: Changes, folder: Path) -> None: ...

    def apply(self, changes: Changes, folder: Path) -> None:
        """Writes the whole change or nothing."""

    def originals(self, folder: Path) -> Mapping[str, bytes | None]:
        """The files of the backup with their old content; None: the file did not exist."""

    def landed(self, folder: Path) -> bool | None:
        """Compares hashes: True when all files of the backup are changed, False when none is, None: neither."""

    def roll_back(self, folder: Path) -> tuple[str, ...]:
        """Puts everything back from the backup alone; safe to repeat.

        Returns the paths that other programs have changed since; their content is saved beside the backup.
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
    """One path of a change; a rename is a removed path and a new one, and the new one has the old path."""

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
    """A change of files, whatever its author and source."""

    @property
    def touched(self) -> tuple[Touched, ...]: ...

    def before(self, path: str) -> bytes:
        """The old content; a link's is its target. Empty where there was none, or for a submodule."""

    def after(self, path: str) -> bytes: ...

    def names_before(self, folder: str) -> Collection[str]:
        """The old entries of a folder, files and folders; "" is the root. Empty where there was no such folder."""


@dataclass(frozen=True, slots=True)
class Rules:
    """What one task may do to files, in addition to the rules for all.

    `paths` are the globs of its role (None: all). `create`, `modify` and `read` are what it declared (None: nothing was
    declared). `verify` are the commands that judge it. Nothing may be removed from files that match the globs of
    `interface`.
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
    """What a role sets: the paths its tasks may touch (None: all), and text for all their prompts."""

    paths: tuple[str, ...] | None = None
    may_change_gates: bool = False
    prompt: str = ""


@dataclass(frozen=True, slots=True)
class Restored:
    """Paths that were put back, and whether anything else differs."""

    paths: tuple[str, ...] = ()
    more: bool = False


class Watch(Protocol):
    """The project's own folder before and after an attempt worked in it.

    The baseline of a running attempt outlives the lead. Every call is safe to repeat.
    """

    def begin(self) -> None:
        """Takes the present state as the baseline."""

    def resume(self) -> None:
        """Loads the baseline an earlier lead took."""

    def changed(self, ignoring: Mapping[str, str]) -> Change:
        """What differs from the baseline, except Ganger's own writes, given as paths with their SHA-256."""

    def judge(self, change: Change, rules: Rules) -> None:
        """Applies the safeguards; raises WriteRefused."""

    def missing(self, rules: Rules) -> tuple[str, ...]:
        """Expected files that do not exist."""

    def undo(self, change: Change) -> tuple[str, ...]:
        """Puts everything back; returns the paths that could not be put back."""

    def save(self, change: Change, folder: Path, *, contents: bool = True) -> None:
        """Saves the change with a summary, or the summary only."""

    def restore_gates(self, ignoring: Mapping[str, str], rules: Rules, folder: Path) -> Restored:
        """Restores gate files and protected files from the baseline; their present content goes to `folder`."""

    def mark(self) -> Mark: ...


@dataclass(frozen=True, slots=True)
class Place:
    """An attempt's own workspace and the commit it was made from. `fresh`: it is new; `holds_work`: it has a change."""

    folder: Path
    base: str
    fresh: bool = field(default=False, compare=False)
    holds_work: bool = field(default=False, compare=False)


@dataclass(frozen=True, slots=True)
class Taken:
    """A change that passed every safeguard, as a commit on the base of its workspace.

    `dropped` are generated files that were left out, `missing` are expected files that it lacks.
    """

    commit: str
    base: str
    files: tuple[str, ...]
    dropped: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Rebased:
    """A change applied to another commit."""

    commit: str
    tree: str


@dataclass(frozen=True, slots=True)
class Conflict:
    """A change that conflicts: the files, and an excerpt with the conflict markers for the next prompt."""

    files: tuple[str, ...]
    excerpt: str


class Repository(History, Protocol):
    """Ganger's own git repository, the run's integration branch in it, and the folders made from it.

    Every call is safe to repeat. Agents may use git in their workspaces; nothing they set up there is ever run here.
    """

    @property
    def shared(self) -> tuple[Path, ...]:
        """What every workspace reads besides its own folder."""

    async def open(self) -> str:
        """Makes the repository and the run's branch unless they exist; returns the branch's head."""

    async def head(self) -> str: ...

    async def has(self, commit: str) -> bool: ...

    async def is_ancestor(self, commit: str, of: str) -> bool: ...

    async def move_head(self, expected: str, new: str) -> bool:
        """Compare and swap, durable; False when the head is neither `expected` nor `new` already."""

    async def place(self, task: str, attempt: int, work: str = "") -> Place:
        """The attempt's workspace, made from the head if there is none yet; with the change `work` if that applies."""

    async def take(self, task: str, attempt: int, writes: Sequence[Write], rules: Rules, message: str) -> Taken:
        """What the agent changed in its workspace, and `writes` on top, judged and committed; raises WriteRefused.

        The commit is kept by a ref. An empty change gives the base itself.
        """

    async def save(
        self, task: str, attempt: int, message: Callable[[Sequence[Touched]], str]
    ) -> tuple[str, tuple[str, ...]]:
        """Saves the workspace's content as a WIP commit, without judgement; ("", ()) when nothing was changed."""

    async def rebase(self, commit: str, base: str, onto: str) -> Rebased | Conflict:
        """The change from `base` to `commit`, as one commit on `onto` with the same message."""

    async def empty_commit(self, parent: str, message: str, at: float) -> Rebased:
        """An empty commit on `parent`. Equal arguments give the same commit; a ref keeps it."""

    async def join(
        self, ours: str, theirs: str, message: str, at: float, *, yields: bool = False
    ) -> Rebased | Conflict:
        """A merge of both, `ours` first, always the same; a ref keeps it. `yields`: in a conflict, `theirs` wins."""

    async def line(self, base: str, tip: str, most: int = 200) -> Sequence[Rebased]:
        """The commits after `base` along the first parents of `tip`, oldest first."""

    async def like(self, commit: str, tree: str, onto: str) -> Rebased:
        """A commit on `onto` with this tree and all else as `commit` has it; `onto` itself where that is its tree."""

    async def take_back(self, commit: str, onto: str, message: str, at: float) -> Rebased | Conflict:
        """One commit on `onto`, always the same and kept by a ref, that reverts `commit`; or a conflict."""

    async def together(self, commits: Sequence[str]) -> Rebased | Conflict:
        """What these commits change, as one commit on the parent of the first; or where they need what is between."""

    async def diff_text(self, base: str, commit: str, most_bytes: int) -> str:
        """The change from `base` to `commit` for a reader, cut where it is longer."""

    async def tree_of(self, commit: str) -> str: ...

    async def check(self) -> None:
        """Raises GangerError REPO_DAMAGED where git finds damage. Reads every object."""

    async def release(self, task: str, attempt: int) -> None:
        """Removes a workspace. Call it only when its change is merged, saved, or empty."""

    async def checkout(self, name: str, commit: str) -> Path:
        """A new folder with exactly this commit, never used by an agent."""

    async def drop_checkout(self, name: str) -> None: ...

    async def clear(self, needed: Collection[tuple[str, int]]) -> None:
        """Removes what dead leads left, except the workspaces of these attempts and work that exists nowhere else."""

    async def close(self) -> None:
        """Releases the repository."""


class Sandbox(Protocol):
    """Isolates an untrusted process."""

    @property
    def name(self) -> str:
        """The kind of sandbox: `bubblewrap`, `landlock` or `none`."""

    @property
    def owner(self) -> tuple[int, int] | None:
        """The owner (uid, gid) of folders made for a sandboxed process; None: no change of owner."""

    def confine(self, launch: Launch, room: Room) -> Launch:
        """The same launch inside the sandbox."""

    def shows(self, path: Path, launch: Launch, room: Room) -> bool:
        """Whether the sandboxed program can read this path of the machine."""


Listener = Callable[["Recorded"], None]
