"""The remote that one of Ganger's repositories is pushed to: queried, fetched from, pushed to, never forced."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import os
import re
import signal
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from ganger.core.state.hosts import short_reason
from ganger.errors import DiskFullError, ForgeDenied, ForgeError, ForgeUnreachable, GangerError
from ganger.local.scratch import prefix
from ganger.ports.forge import Behind, PushOutcome, Rejected, Sent
from ganger.workspaces.git.bare_repo import BareRepo
from ganger.workspaces.git.git import (
    Git,
    GitAnswer,
    GitCall,
    damaged,
    environment_for,
    failed,
    is_object,
    require_object,
    shows_damage,
)
from ganger.workspaces.git.settings import ref_part
from ganger.workspaces.remotes.addresses import Address, forge_of, parse_address, remote_address
from ganger.workspaces.rules.masking import Mask

__all__ = ["GitRemote", "RemoteSettings", "forge_of", "remote_address"]

# What ssh and the http library need from the operator's environment: where the agent, the proxy, the authorities are.
PASSED_ON = frozenset(
    {"SSH_AUTH_SOCK", "SSL_CERT_FILE", "SSL_CERT_DIR", "GIT_SSL_CAINFO", "GIT_SSL_CAPATH"}
    | {name for one in ("http_proxy", "https_proxy", "all_proxy", "no_proxy") for name in (one, one.upper())}
)
_SETTINGS = ("http.lowSpeedLimit=1", "http.lowSpeedTime=60", "push.followTags=false", "push.gpgSign=false")
_SSH = "ssh -oBatchMode=yes -oConnectTimeout=20 -oServerAliveInterval=15 -oServerAliveCountMax=3"
_MOST_OUTPUT = 1 << 18
_MOST_WHY = 600
_END_SEC = 5.0
_BAD_BRANCH = re.compile(r"[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|//|/\.|\.lock(?:/|$)|^[-/.]|[/.]$|^@$|^$")
_DENIED = re.compile(
    r"Authentication failed|could not read (?:Username|Password)|Access denied|Permission denied"
    r"|returned error: 40[134]|repository .{0,300} not found|Repository not found|Host key verification failed"
    r"|returned error: 30[12378]|does not appear to be a git repository|403 Forbidden|401 Unauthorized",
    re.IGNORECASE,
)
_NOBODY = re.compile(
    r"Authentication failed|could not read (?:Username|Password)|Permission denied \(|returned error: 401|401 Unauth",
    re.I,
)
_ANSWERS_LATER = re.compile(
    r"Could not resolve|Connection (?:refused|reset|timed out|closed)|returned error: (?:429|5\d\d)"
)
_NO_SUCH_BRANCH = re.compile(r"couldn't find remote ref", re.IGNORECASE)
_MOVED_ON = re.compile(r"fetch first|non-fast-forward|stale info|needs force")
# The remote had an internal conflict or a race with another push: this does not judge the commit.
_RACED = re.compile(
    r"cannot lock ref|failed to (?:lock|update ref)|reference already exists|is at \w+ but expected", re.I
)
_NO_RIGHT = re.compile(
    r"protected|not allowed|permission|denied|unauthori[sz]ed|forbidden|read.?only|(?:without|lacks) .{0,40}scope",
    re.I,
)


@dataclass(frozen=True, slots=True)
class RemoteSettings:
    """`token` reaches git only through its environment; a callable is called each time, because a file may be renewed.
    `environ` is the operator's; little of it is passed on.

    `user` is the name sent with the token: forges accept any. `look_sec` is the deadline of a query,
    `transfer_sec` that of a fetch or a push.
    """

    address: str
    token: str | Callable[[], str] = field(default="", repr=False)
    user: str = "x-access-token"
    look_sec: float = 30.0
    transfer_sec: float = 600.0
    environ: Mapping[str, str] = field(default_factory=dict, repr=False)


class GitRemote:
    """One remote of one repository that Ganger owns; a port's `Remote`."""

    def __init__(self, store: Path, settings: RemoteSettings) -> None:
        self._git = Git(store)
        self._settings = settings
        self._to: Address = parse_address(settings.address)
        self._writing = asyncio.Lock()

    @property
    def _given(self) -> str:
        token = self._settings.token
        try:
            return token if isinstance(token, str) else token()
        except ForgeDenied as denied:
            # Every request to this host needs it; the file may be in the middle of a renewal.
            why = "the token cannot be read"
            raise ForgeDenied(denied.message, hint=denied.hint, host=self.host, way="git", why=why) from denied

    @property
    def _token(self) -> str:
        return self._given or self._to.password

    @property
    def address(self) -> str:
        return self._to.text

    @property
    def host(self) -> str:
        return self._to.host

    async def head(self, branch: str) -> str:
        ref = _full(branch)
        call = GitCall(("ls-remote", "--exit-code", "--", self._to.text, ref), "looking at the remote", fine=(0, 2))
        answer = await self._ask(call, self._settings.look_sec)
        rows = [line.split("\t") for line in answer.text.splitlines()]
        return next((row[0] for row in rows if len(row) == 2 and row[1] == ref and is_object(row[0])), "")

    async def holds(self, commit: str, branch: str) -> bool:
        tip = await self.head(branch)
        if tip in ("", commit):
            return bool(tip)
        if not await self._known(tip):
            tip = await self.fetch(branch)
        return bool(tip) and await self._is_below(commit, tip)

    async def fetch(self, branch: str) -> str:
        kept = self._kept_at(branch)
        words = ("fetch", *_FETCH, "--", self._to.text, f"+{_full(branch)}:{kept}")
        call = GitCall(words, f"fetching {branch}", fine=(0, 1, 128))
        async with self._writing:
            answer = await self._ask(call, self._settings.transfer_sec, judged=False)
            if answer.code != 0:
                if _NO_SUCH_BRANCH.search(answer.err):
                    return ""
                raise await self._trouble(call, answer)
            return await asyncio.to_thread(self._git.resolve, f"{kept}^{{commit}}")

    async def push(self, commit: str, branch: str, onto: str = "") -> PushOutcome:
        return await self._push(commit, branch, *([_only_at(branch, onto)] if onto else []))

    async def replace(self, commit: str, branch: str, expected: str) -> PushOutcome:
        tip = await self.head(branch)
        if tip == commit:
            return Sent(found=True)
        if tip != expected:
            return Behind(tip) if tip else Rejected(f"{branch} no longer exists")
        return await self._push(commit, branch, _only_at(branch, expected))

    async def _push(self, commit: str, branch: str, *more: str) -> PushOutcome:
        ref = _full(branch)
        if not await self._known(require_object(commit)):
            raise damaged(self._git.directory, f"the commit {commit[:12]} that was to be pushed is missing")
        words = (
            "push",
            "--porcelain",
            "--no-verify",
            "--no-recurse-submodules",
            *more,
            "--",
            self._to.text,
            f"{commit}:{ref}",
        )
        call = GitCall(words, f"pushing to {branch}", fine=(0, 1))
        answer = await self._ask(call, self._settings.transfer_sec)
        row = _row_of(answer, ref)
        if answer.code == 0 and row is not None and row.flag in (" ", "*", "=", *(["+"] if more else [])):
            return Sent(found=row.flag == "=")
        if row is None or row.flag != "!":
            raise await self._trouble(call, answer)
        return await self._refused(row.why, answer, commit, branch)

    async def remove(self, commit: str, branch: str) -> bool:
        """Removes the branch if it is still at this commit: the remote itself compares. True also when it is gone
        already."""
        ref = _full(branch)
        words = ("push", "--porcelain", "--no-verify", _only_at(branch, commit), "--", self._to.text, f":{ref}")
        answer = await self._ask(GitCall(words, f"removing {branch}", fine=(0, 1)), self._settings.transfer_sec)
        row = _row_of(answer, ref)
        if answer.code == 0 and row is not None and row.flag == "-":
            return True
        return not await self.head(branch)

    async def _refused(self, why: str, answer: GitAnswer, commit: str, branch: str) -> PushOutcome:
        """What a `!` means: the branch has moved, the remote is busy, or it rejects this commit."""
        told = " ".join([why, *_remote_lines(answer.err)])
        if not _MOVED_ON.search(why) and not _RACED.search(told) and "failed to report" not in why:
            return Rejected(self._said(told), denied=_NO_RIGHT.search(told) is not None)
        tip = await self.fetch(branch)
        if tip and await self._is_below(commit, tip):
            return Sent(found=tip != commit or bool(_MOVED_ON.search(why)))
        if tip and not await self._is_below(tip, commit):
            return Behind(tip)
        raise ForgeUnreachable(
            f"{self._to.text} did not take the commit for {branch}: {self._said(told)}",
            hint="another push was under way; Ganger tries again",
        )

    async def _known(self, commit: str) -> bool:
        return is_object(commit) and bool(await asyncio.to_thread(self._git.resolve, f"{commit}^{{commit}}"))

    async def _is_below(self, commit: str, tip: str) -> bool:
        """Whether `tip` is the commit or a descendant of it. A complete fetch without the commit means no."""
        if not await self._known(commit):
            return False
        words = ("merge-base", "--is-ancestor", commit, tip)
        return (await asyncio.to_thread(self._git.call, GitCall(words, "comparing commits", fine=(0, 1)))).code == 0

    def _kept_at(self, branch: str) -> str:
        """The branch name as a single part: of `a` and `a/b` only one can be a ref."""
        return f"refs/ganger/remote/{hashlib.sha256(self._to.text.encode()).hexdigest()[:12]}/{ref_part(branch)}"

    async def _ask(self, call: GitCall, deadline_sec: float, *, judged: bool = True) -> GitAnswer:
        with self._with_credentials(call) as whole:
            answer = await self._run(whole, deadline_sec)
        if judged and answer.code not in call.fine:
            raise await self._trouble(call, answer)
        return answer

    @contextmanager
    def _with_credentials(self, call: GitCall) -> Iterator[GitCall]:
        """The call with what this address needs, and nothing meant for another."""
        environment = {name: text for name, text in self._settings.environ.items() if name in PASSED_ON}
        settings: tuple[str, ...] = (*_SETTINGS, f"protocol.{self._to.scheme}.allow=always")
        if self._to.scheme == "ssh":
            environment["GIT_SSH_COMMAND"] = _SSH
        if self._to.web and self._token:
            user = self._to.user if self._to.password and not self._given else self._settings.user
            word = base64.b64encode(f"{user}:{self._token}".encode()).decode()
            environment |= {
                "GIT_CONFIG_COUNT": "1",
                "GIT_CONFIG_KEY_0": "http.extraHeader",
                "GIT_CONFIG_VALUE_0": f"Authorization: Basic {word}",
            }
            # Git would send the header wherever a redirect points, also to another host.
            settings = (*settings, "http.followRedirects=false")
        whole = GitCall(call.words, call.doing, environment=environment, settings=settings, fine=call.fine)
        if not self._to.local:
            yield whole
            return
        with _trusting(self._to.text) as trust:
            yield GitCall(call.words, call.doing, environment=environment | trust, settings=settings, fine=call.fine)

    async def _run(self, call: GitCall, deadline_sec: float) -> GitAnswer:
        """Runs git; git and everything it starts end at the deadline, or when the waiting task is cancelled."""
        process = await asyncio.create_subprocess_exec(
            *self._git.argv(call),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            cwd="/",
            env=environment_for(call),
            start_new_session=True,
        )
        assert process.stdout is not None and process.stderr is not None
        try:
            async with asyncio.timeout(deadline_sec):
                out, err = await asyncio.gather(_read(process.stdout), _read(process.stderr))
                code = await process.wait()
        except TimeoutError:
            raise ForgeUnreachable(
                f"{self._to.text} did not answer within {deadline_sec:.0f} s while {call.doing}",
                hint="check that address and the network; it is tried again",
                host=self.host,
                way="git",
                why="no answer in time",
            ) from None
        finally:
            await _end(process)
        return GitAnswer(code, out, err.decode("utf-8", "replace"))

    async def _trouble(self, call: GitCall, answer: GitAnswer) -> GangerError:
        """Tells apart a fault of this repository, of the credentials and of the connection."""
        own = [line for line in answer.err.splitlines() if not line.startswith("remote:")]
        # The remote's git may use the same words; only a check of this repository tells whose objects are damaged.
        found = (
            await asyncio.to_thread(BareRepo(Path("/"), self._git.directory).fsck)
            if shows_damage("\n".join(own))
            else ""
        )
        if found:
            return damaged(self._git.directory, self._said(" ".join(own)))
        said = self._said(" ".join([*_remote_lines(answer.err), *own])) or f"git ended with {answer.code}"
        full = failed(call, "\n".join(own))
        if isinstance(full, DiskFullError) and not self._to.local:
            return full
        if _DENIED.search(answer.err) and not _ANSWERS_LATER.search(answer.err):
            return _denied(self._to, said, has_token=bool(self._token))
        return ForgeUnreachable(
            f"{self._to.text} could not be reached while {call.doing}: {said}",
            hint="check that address and the network; it is tried again",
            host=self.host,
            way="git",
            why=short_reason(said),
        )

    def _said(self, text: str) -> str:
        shown = Mask(filter(None, (self._given, self._to.password))).shown(text)
        plain = "".join(sign if sign.isprintable() else " " for sign in shown)
        return " ".join(plain.split())[:_MOST_WHY]


_FETCH = ("--quiet", "--no-tags", "--no-write-fetch-head", "--no-auto-maintenance", "--no-recurse-submodules")


@dataclass(frozen=True, slots=True)
class _Row:
    """One line of `push --porcelain`."""

    flag: str
    why: str


def _row_of(answer: GitAnswer, ref: str) -> _Row | None:
    for line in os.fsdecode(answer.out).splitlines():
        parts = line.split("\t", 2)
        if len(parts) == 3 and parts[1].endswith(f":{ref}"):
            return _Row(parts[0], parts[2])
    return None


def _remote_lines(err: str) -> list[str]:
    lines = [line.removeprefix("remote:").strip() for line in err.splitlines() if line.startswith("remote:")]
    return [line for line in lines if line][:20]


def _denied(to: Address, said: str, *, has_token: bool) -> ForgeError:
    if to.web and not has_token:
        hint = "set delivery.token_env or delivery.token_file to where a token for it is"
    elif to.web:
        hint = "check the address, and that the token is valid and may write there"
    else:
        hint = "try `git ls-remote` with that address by hand: no password or new host key is asked for here"
    # Failed authentication concerns every request; a missing right may concern this repository only.
    host = to.host if _NOBODY.search(said) else ""
    return ForgeDenied(f"{to.text} refuses: {said}", hint=hint, host=host, way="git", why="git is not let in")


def _full(branch: str) -> str:
    if _BAD_BRANCH.search(branch):
        raise GangerError(
            f"{branch[:80]!r} cannot be the name of a branch", hint="see delivery.branch", code="REMOTE_ADDRESS"
        )
    return f"refs/heads/{branch}"


def _only_at(branch: str, commit: str) -> str:
    """The remote itself compares."""
    return f"--force-with-lease={_full(branch)}:{require_object(commit)}"


@contextmanager
def _trusting(path: str) -> Iterator[dict[str, str]]:
    """Marks a path as safe: the other end is a separate git process, and the operator named this repository."""
    with tempfile.NamedTemporaryFile("w", prefix=prefix("git"), suffix=".config") as config:
        quoted = path.removeprefix("file://").replace("\\", "\\\\").replace('"', '\\"')
        config.write(f'[safe]\n\tdirectory = "{quoted}"\n\tdirectory = "{quoted}/.git"\n')
        config.flush()
        yield {"GIT_CONFIG_GLOBAL": config.name}


async def _read(stream: asyncio.StreamReader) -> bytes:
    """Reads the stream to its end, and keeps only as much as is used."""
    kept = bytearray()
    while piece := await stream.read(1 << 16):
        kept += piece[: _MOST_OUTPUT - len(kept)]
    return bytes(kept)


async def _end(process: asyncio.subprocess.Process) -> None:
    if process.returncode is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        with suppress(TimeoutError):
            async with asyncio.timeout(_END_SEC):
                await process.wait()
