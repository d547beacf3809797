"""Ganger's own bare repository: made from the user's project, updated from it, and never garbage-collected."""

from __future__ import annotations

import fcntl
import os
import re
import secrets
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ganger.errors import GangerError
from ganger.local.atomic import sync_folder
from ganger.local.scratch import prefix, scratch_folder
from ganger.workspaces.files.removal import discard
from ganger.workspaces.git.git import BYTE_EXACT, LONG_SEC, Git, GitCall, is_object, require_object, unjudged
from ganger.workspaces.git.settings import RunRefs

_LOCK_LOOKS = 50
_LOCK_LOOK_SEC = 0.1
# Odd content that an agent wrote into a file that was saved without judgement is not repository damage.
_NO_DAMAGE = re.compile(
    r"notice:|(error|warning) in (blob|tree) [0-9a-f]+: (git(modules|attributes)|(gitignore|mailmap)Symlink)"
)
_MANY_LOOSE = 500
_SEED = "refs/ganger/seed"
_CONFIG = """[core]
\trepositoryformatversion = {version}
\tbare = true
\tfilemode = true
\tlogallrefupdates = false
{shared}[gc]
\tauto = 0
[maintenance]
\tauto = false
[uploadpack]
\tallowAnySHA1InWant = true
[extensions]
{extensions}"""


class BareRepo:
    """One per project, shared by its runs. `shared`: other users of this machine can read the objects."""

    def __init__(self, project: Path, store: Path, *, shared: bool = False) -> None:
        self.project = project
        self.store = store
        self.git = Git(store)
        self._shared = shared

    def make(self) -> None:
        """Clones the project unless that is done already. The name appears only when everything is in place."""
        if (self.store / "HEAD").is_file():
            self._spare_unjudged(self.store)
            return
        self.project_head()
        self.store.parent.mkdir(parents=True, exist_ok=True)
        with _alone(self.store.with_name(f"{self.store.name}.lock")):
            if (self.store / "HEAD").is_file():
                return
            for left in self.store.parent.glob(f".{self.store.name}.*.new"):
                discard(left)
            made = self.store.with_name(f".{self.store.name}.{secrets.token_hex(6)}.new")
            self._clone(made)
            _pack(Git(made))
            _sync_new(made)
            discard(self.store)
            made.rename(self.store)
            sync_folder(self.store.parent)

    def _clone(self, made: Path) -> None:
        words = ["clone", "--quiet", "--bare", "--template=", "--no-tags"]
        words += ["--no-hardlinks"] if self._shared else []
        doing = f"copying the repository of {self.project}"
        with _trusting() as environment:
            call = GitCall((*words, "--", str(self.project), str(made)), doing, environment=environment)
            Git(made).call(_long(call))
        git = Git(made)
        kind = git.ask("rev-parse", "--show-object-format", doing=doing).text
        head = git.ask("rev-parse", "--verify", "HEAD^{commit}", doing=doing).text
        for folder in ("refs", "hooks", "logs", "info", "branches"):
            shutil.rmtree(made / folder, ignore_errors=True)
        for folder in ("refs/heads", "info"):
            (made / folder).mkdir(parents=True)
        sha256 = kind == "sha256"
        (made / "config").write_text(
            _CONFIG.format(
                version=1 if sha256 else 0,
                shared="\tsharedRepository = 0644\n" if self._shared else "",
                extensions="\tobjectFormat = sha256\n" if sha256 else "",
            )
        )
        self._spare_unjudged(made)
        # One ref instead of the user's: theirs may clash with the run's, and a later fetch is quick.
        (made / "packed-refs").write_text(f"# pack-refs with: peeled fully-peeled sorted \n{head} {_SEED}\n")
        (made / "info" / "attributes").write_text(BYTE_EXACT)
        (made / "HEAD").write_text("ref: refs/heads/none\n")

    @staticmethod
    def _spare_unjudged(store: Path) -> None:
        """Refused files are kept for inspection and are not damage, also in stores of earlier versions."""
        config = store / "config"
        text = config.read_text(encoding="utf-8", errors="surrogateescape")
        if "[fsck]" not in text:
            fresh = config.with_name(f"config.{secrets.token_hex(4)}.new")
            fresh.write_text(f"{text.rstrip()}\n{unjudged()}", encoding="utf-8", errors="surrogateescape")
            fresh.rename(config)

    def project_head(self) -> str:
        """The commit of the user's checkout."""
        git = Git(self.project / ".git")
        doing = f"looking at {self.project}"
        if not (self.project / ".git").exists():
            raise GangerError(
                f"{self.project} is not the top folder of a git repository",
                hint="run Ganger in that folder, run `git init` and commit, or set workspace.mode = 'direct'",
                code="NOT_A_REPOSITORY",
            )
        git.ask("rev-parse", "--git-dir", doing=doing)
        head = git.resolve("HEAD^{commit}")
        if not head:
            raise GangerError(
                f"the git repository in {self.project} has no commit yet",
                hint="commit what the agents start from, for example `git add -A && git commit -m start`",
                code="NO_COMMIT",
            )
        return head

    def feed(self, ref: str) -> str:
        """Brings the commit of the user's checkout into the store and keeps it at `ref`; the commit."""
        head = self.project_head()
        doing = f"fetching the newest commit of {self.project}"
        if self.git.resolve(f"{head}^{{commit}}"):
            self.git.ask("update-ref", ref, head, doing=doing)
        else:
            self._fetch(ref, doing)
        found = self.git.resolve(ref)
        self._require_whole(found)
        return found

    def _fetch(self, ref: str, doing: str) -> None:
        words = ("fetch", *_FETCH, "--update-shallow", "--", str(self.project), f"+HEAD:{ref}")
        with _trusting() as environment:
            self.git.call(_long(GitCall(words, doing, environment=environment)))

    def _require_whole(self, commit: str) -> None:
        """A partial clone may lack files of the commit the agents start from."""
        if not any((self.store / "objects" / "pack").glob("*.promisor")):
            return
        words = ("rev-list", "--objects", "--missing=print", f"{commit}^{{tree}}")
        answer = self.git.ask(*words, doing="looking for missing files", fine=(0, 1, 128))
        if answer.code != 0 or any(line.startswith(b"?") for line in answer.out.splitlines()):
            raise GangerError(
                f"{self.project} is a partial clone, and some files of its commit {commit[:12]} were never fetched",
                hint="complete it with `git fetch --refetch --no-filter`, or use a full clone",
                code="PARTIAL_CLONE",
            )

    def object_folders(self) -> tuple[Path, ...]:
        """Where the objects are: in the store, and where the user's own repository borrows from."""
        found: list[Path] = []
        waiting = [self.store / "objects"]
        while waiting:
            folder = waiting.pop()
            if folder in found:
                continue
            found.append(folder)
            with suppress(OSError):
                lines = (folder / "info" / "alternates").read_bytes().splitlines()
                waiting += [(folder / os.fsdecode(line)).resolve() for line in lines if line.strip()]
        return tuple(found)

    def set_ref(self, ref: str, commit: str, *, durable: bool = True) -> None:
        """Without `durable` nothing is flushed to the disk, and a power cut may lose the ref."""
        settings = () if durable else ("core.fsync=none",)
        self.git.call(GitCall(("update-ref", ref, commit), f"writing {ref}", settings=settings))
        if durable:
            sync_folder((self.store / ref).parent)

    def free_locks(self, refs: RunRefs) -> None:
        """A killed git process leaves its lock behind. Nothing else holds a lock on this run's refs for long."""
        for _ in range(_LOCK_LOOKS):
            branch = self.store / f"{refs.branch}.lock"
            own = [*(self.store / refs.own).rglob("*.lock"), *([branch] if branch.exists() else [])]
            if not own:
                return
            time.sleep(_LOCK_LOOK_SEC)
        for lock in own:
            lock.unlink(missing_ok=True)

    def drop_torn(self, refs: RunRefs) -> None:
        """A power cut leaves a ref that was not durable as an empty file, and git fails on it from then on."""
        for ref in (self.store / refs.own / "at").rglob("*"):
            if ref.is_file() and not is_object(ref.read_text(errors="replace").strip()):
                ref.unlink(missing_ok=True)

    def fsck(self) -> str:
        words = ("fsck", "--full", "--no-dangling", "--no-progress", "--no-reflogs")
        answer = self.git.call(GitCall(words, "checking the repository", fine=tuple(range(256)), timeout_sec=LONG_SEC))
        said = [*os.fsdecode(answer.out).splitlines(), *answer.err.splitlines()]
        if answer.code != 0 and not said:
            return f"git fsck ended with {answer.code}"
        return "\n".join(line for line in said if line.strip() and not _NO_DAMAGE.match(line))

    def export(self, commit: str, into: Path, ref: str) -> None:
        """Stores a commit in the user's repository under `ref`, without running that repository's hooks or programs.

        Raises for a branch that is checked out there or that would lose commits.
        """
        wanted = f"{require_object(commit)}:{ref}"
        call = GitCall(("fetch", *_FETCH, "--", str(self.store), wanted), f"writing {ref} into {into}")
        with _trusting() as environment:
            Git(into / ".git").call(_long(GitCall(call.words, call.doing, environment=environment)))

    def uncommitted(self) -> tuple[str, ...]:
        """Paths of the user's checkout that differ from its commit; () when that is unknown."""
        try:
            with scratch_folder("index") as folder:
                return self._uncommitted(Path(folder))
        except (GangerError, OSError):
            return ()

    def _uncommitted(self, folder: Path) -> tuple[str, ...]:
        doing = f"looking for uncommitted files in {self.project}"
        head, index = self.project_head(), folder / "index"
        git = self._knowing(head, folder / "git", doing)
        home = Path(Git(self.project / ".git").ask("rev-parse", "--absolute-git-dir", doing=doing).text)
        if (home / "index").exists():
            shutil.copy2(home / "index", index)
        excluded = (f"core.excludesFile={home / 'info' / 'exclude'}",)

        def look(*words: str, fine: tuple[int, ...] = (0,)) -> list[str]:
            call = GitCall(words, doing, work_tree=self.project, index=index, settings=excluded, fine=fine)
            return git.call(call).names

        look("update-index", "-q", "--refresh", "--ignore-submodules", fine=(0, 1))
        changed = look("diff-index", "--name-only", "-z", "--no-renames", "--ignore-submodules=all", head)
        new = look("ls-files", "--others", "--exclude-standard", "--directory", "--no-empty-directory", "-z")
        return tuple(sorted({*changed, *new}))

    def _knowing(self, head: str, made: Path, doing: str) -> Git:
        """The store; while it lacks the commit, a repository that borrows the user's objects and nothing else."""
        if (self.store / "HEAD").is_file() and self.git.resolve(f"{head}^{{commit}}"):
            return self.git
        own = Git(self.project / ".git")
        kind = own.ask("rev-parse", "--show-object-format", doing=doing).text
        objects = self.project / own.ask("rev-parse", "--git-path", "objects", doing=doing).text
        words = ("init", "--quiet", "--bare", "--template=", f"--object-format={kind}", "--", str(made))
        Git(made).call(GitCall(words, doing))
        for name, text in (("objects/info/alternates", f"{objects.resolve()}\n"), ("info/attributes", BYTE_EXACT)):
            (made / name).parent.mkdir(parents=True, exist_ok=True)
            (made / name).write_text(text)
        return Git(made)


_FETCH = (
    "--quiet",
    "--no-tags",
    "--no-write-fetch-head",
    "--no-auto-maintenance",
    "--no-recurse-submodules",
)


def _pack(git: Git) -> None:
    """Packs loose objects: every checkout opens each loose object separately, and reads a pack at once."""
    objects = git.directory / "objects"
    loose = sum(len(os.listdir(objects / name)) for name in os.listdir(objects) if len(name) == 2)  # noqa: PTH208
    if loose > _MANY_LOOSE:
        words = ("repack", "-a", "-d", "-q", "--no-write-bitmap-index", "--keep-unreachable")
        git.call(_long(GitCall(words, "packing Ganger's copy of the repository")))


def _long(call: GitCall) -> GitCall:
    return GitCall(call.words, call.doing, environment=call.environment, timeout_sec=LONG_SEC)


@contextmanager
def _trusting() -> Iterator[dict[str, str]]:
    """The other end of a fetch does not see `-c`; without this file it refuses another user's project."""
    with tempfile.NamedTemporaryFile("w", prefix=prefix("git"), suffix=".config") as config:
        config.write("[safe]\n\tdirectory = *\n")
        config.flush()
        yield {"GIT_CONFIG_GLOBAL": config.name}


@contextmanager
def _alone(lock: Path) -> Iterator[None]:
    """Inside, no other process makes the same thing. A process's lock is released when it dies."""
    descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _sync_new(folder: Path) -> None:
    """Everything that is not a hard link to a file of the user's repository."""
    for _, _, names, fd in os.fwalk(folder):
        for name in names:
            if os.stat(name, dir_fd=fd, follow_symlinks=False).st_nlink == 1:
                file = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=fd)
                os.fsync(file)
                os.close(file)
        os.fsync(fd)
