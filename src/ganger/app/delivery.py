"""How a project's changes leave the machine, put together from its settings: rules, remotes, forges, mirrors."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ganger.config import DeliverySection, Project, environment
from ganger.core.masking import NOTHING, Masker
from ganger.core.model.ledger import CI, MIRRORED, PUSHED, RepoRules, completion_in, style_in
from ganger.core.model.records import TaskSpec
from ganger.core.model.run_state import RunState
from ganger.core.names import repo_place, repo_store
from ganger.core.vocabulary import PushStyle
from ganger.engine.resources.delivery_target import DeliveryTarget
from ganger.errors import ForgeDenied, GangerError
from ganger.local.run_folder import RunFolder
from ganger.ports.clock import Clock
from ganger.ports.forge import Forge, Remote
from ganger.ports.processes import Launcher
from ganger.ports.repository import Repository
from ganger.ports.sandbox import Sandbox
from ganger.workspaces.git.git import Git
from ganger.workspaces.remotes.addresses import forge_of, remote_address
from ganger.workspaces.remotes.remote import PASSED_ON, GitRemote, RemoteSettings
from ganger.workspaces.rules.masking import Mask

if TYPE_CHECKING:
    from ganger.forges import ForgeSettings, Hosts
    from ganger.forges.webhook import WebhookReceiver

_TRANSFER_SEC = 600.0
_MIRROR_SEC = 120.0
_MOST_SAID, _MOST_SHOWN = 100_000, 2000


def section_of(project: Project, repo: str) -> DeliverySection:
    return project.delivery_of(repo)


def path_of(project: Project, repo: str) -> Path:
    return (project.root / project.config.repos[repo].path).resolve() if repo else project.root


def names_of(project: Project, specs: Iterable[TaskSpec]) -> list[str]:
    """The repositories of a run; the project's own where a task works on it."""
    if project.config.workspace.mode == "direct":
        return []
    used = {spec.repo for spec in specs}
    return [name for name in ("", *project.config.repos) if name in used]


def rules_of_run(project: Project, specs: Iterable[TaskSpec]) -> tuple[RepoRules, ...]:
    """Of all repositories, also those no task of this run works on: chains go through them."""
    specs = tuple(specs)
    used = names_of(project, specs)
    if not used:
        return ()
    return tuple(rules_for(project, repo, used=repo in used) for repo in ("", *project.config.repos))


def rules_for(project: Project, repo: str, *, used: bool = True) -> RepoRules:
    section, graph = section_of(project, repo), project.config.repos
    completion = completion_of(project, section)
    style = style_of(project, section)
    delivers = used and bool({PUSHED, CI, MIRRORED}.intersection(completion))
    return RepoRules(
        name=repo,
        depends_on=tuple(graph[repo].depends_on) if repo else (),
        locks=graph[repo].locks if repo else "none",
        interface=tuple(graph[repo].interface) if repo else (),
        completion=completion,
        style=style,
        pushes=section.pushes,
        base_red=section.base_red,
        expects_ci=section.expects_ci,
        ci_paths_ignore=tuple(section.ci_paths_ignore),
        branch=(section.branch or checked_out(path_of(project, repo))) if delivers else section.branch,
        forge=section.forge,
        required_jobs=tuple(name for name in _required(section) if name != section.mirror_job),
        mirror_job=section.mirror_job,
        mirror_command=bool(section.mirror_command),
        events=tuple(section.ci_events) or _events(style, auto_merge=section.auto_merge),
        fixes=section.fixes,
        ask_after=section.ask_after,
        retriggers=section.retriggers,
        appear_sec=section.appear_sec,
        ci_sec=section.ci_sec,
        ci_warn_sec=section.ci_warn_sec,
        ci_most_sec=max(section.ci_most_sec, section.ci_sec),
        fix_sec=section.fix_sec,
        fix_warn_sec=section.fix_warn_sec or 0.0,
        review=section.review,
        review_when=section.review_when,
        reviewer=section.reviewer,
        auto_merge=section.auto_merge,
        forge_reviews=section.forge_reviews,
        delete_branch=section.delete_branch,
        merge_method=section.merge_method,
        updates=section.updates,
        history=section.history,
    )


def _events(style: PushStyle, *, auto_merge: bool) -> tuple[str, ...]:
    """The last one is of what a forge's own merge queue tries."""
    if style is not PushStyle.REQUEST:
        return ("push",)
    return ("push", "pull_request", "merge_group") if auto_merge else ("push", "pull_request")


def _required(section: DeliverySection) -> list[str]:
    """Where CI is a list of commands, all of them are required unless some are named."""
    return section.required_jobs or (list(section.jobs) if section.forge == "command" else [])


def completion_of(project: Project, section: DeliverySection) -> tuple[str, ...]:
    return completion_in(project.config.workspace.mode, section.completion, section.forge)


def style_of(project: Project, section: DeliverySection) -> PushStyle:
    return style_in(project.config.workspace.mode, section.style, section.forge)


def checked_out(path: Path) -> str:
    """The branch the person's checkout is on."""
    answer = Git(path / ".git").ask("symbolic-ref", "--short", "-q", "HEAD", doing=f"looking at {path}", fine=(0, 1))
    if not answer.text:
        raise GangerError(
            f"{path} is on no branch, so nothing says where to push",
            hint="check a branch out, or set delivery.branch",
            code="NO_BRANCH",
        )
    return answer.text


def token_reader(project: Project, section: DeliverySection) -> Callable[[], str]:
    """Reads the token each time it is needed: a file may be renewed while a run goes on."""

    def read() -> str:
        if section.token_env:
            return environment().get(section.token_env, "").strip()
        if section.token_file:
            path = project.root / Path(section.token_file).expanduser()
            try:
                return path.read_text(encoding="utf-8").strip()
            except (OSError, UnicodeDecodeError) as error:
                raise ForgeDenied(
                    f"the token file {path} cannot be read: {getattr(error, 'strerror', None) or error}",
                    hint="put the forge's token there, or name another one with delivery.token_file",
                ) from error
        return ""

    return read


def forge_settings(
    section: DeliverySection, address: str, token: Callable[[], str], *, tries: int = 3, source: str = ""
) -> ForgeSettings:
    """`address` is the remote's: it tells what the settings leave out. `source` is the repository, as owner/name, that
    change requests come from, where that is another one."""
    from ganger.forges import ForgeSettings, Patience

    url, name = forge_of(address)
    patience = Patience(
        tries=tries,
        first_sec=min(5.0, section.poll_sec),
        most_sec=section.poll_most_sec,
        rest_sec=min(30.0, 6 * section.poll_sec),
        rest_most_sec=5 * section.poll_most_sec,
    )
    return ForgeSettings(
        url=section.url or url,
        project=section.project or name,
        source=source,
        token=token,
        call_sec=section.call_sec,
        patience=patience,
    )


class DeliveryParts:
    """Opens what a run needs, and shares what repositories of one host have in common."""

    def __init__(
        self,
        project: Project,
        folder: RunFolder,
        state: RunState,
        clock: Clock,
        env: Mapping[str, str],
        masker: Masker = NOTHING,
    ) -> None:
        """`env` is what CI jobs that are commands run with; `masker` knows what was handed on."""
        self.masker = masker
        self.project, self.folder, self.state, self.clock, self.env = project, folder, state, clock, env
        self._hosts: Hosts | None = None

    def shown(self, text: str) -> str:
        """A text without secrets: those of a known shape, and those of this project."""
        known = [_secret(self.project.config.delivery.webhook_secret_env)]
        for repo in ("", *self.project.config.repos):
            with contextlib.suppress(GangerError):
                known.append(token_reader(self.project, section_of(self.project, repo))())
        return Mask(filter(None, known), self.masker).shown(text)

    def outlet(
        self, repo: str, rules: RepoRules, repository: Repository, launcher: Launcher, sandbox: Sandbox
    ) -> DeliveryTarget:
        section, path = section_of(self.project, repo), path_of(self.project, repo)
        token = token_reader(self.project, section)
        address = remote_address(path, section.remote)
        settings = RemoteSettings(
            address, token, look_sec=section.call_sec, transfer_sec=_TRANSFER_SEC, environ=environment()
        )

        def mask(text: str) -> tuple[str, tuple[str, ...]]:
            secrets = (token(), _secret(section.webhook_secret_env))
            return Mask(filter(None, secrets), self.masker)(text)

        forge = self._forge(repo, section, rules, address, token, repository, launcher, sandbox)
        return DeliveryTarget(
            name=repo,
            remote=GitRemote(self.project.state_path / repo_store(repo), settings),
            mask=mask,
            forge=forge,
            prove_mirror=_prover(section.mirror_command, path, mask) if section.mirror_command else None,
            poll_sec=section.poll_sec,
            poll_most_sec=max(section.poll_sec, section.poll_most_sec),
            branch_name=section.branch_name,
            draft=section.draft,
            labels=tuple(section.labels),
            milestone=section.milestone,
            remarks=section.remarks,
            reviewer=section.reviewer,
            jobs=getattr(forge, "keys", tuple),
            fork=self._fork(repo, section, rules, token),
            target=rules.branch,
        )

    def _fork(self, repo: str, section: DeliverySection, rules: RepoRules, token: Callable[[], str]) -> Remote | None:
        """Where the branches of change requests go, if not to the remote."""
        if not section.fork or rules.style is not PushStyle.REQUEST:
            return None
        address = remote_address(path_of(self.project, repo), section.fork)
        settings = RemoteSettings(
            address, token, look_sec=section.call_sec, transfer_sec=_TRANSFER_SEC, environ=environment()
        )
        return GitRemote(self.project.state_path / repo_store(repo), settings)

    def _forge(
        self,
        repo: str,
        section: DeliverySection,
        rules: RepoRules,
        address: str,
        token: Callable[[], str],
        repository: Repository,
        launcher: Launcher,
        sandbox: Sandbox,
    ) -> Forge | None:
        if not section.forge:
            return None
        if section.forge == "command":
            return self._command(repo, section, rules, repository, launcher, sandbox)
        from ganger.forges import Hosts, open_forge

        self._hosts = self._hosts or Hosts()
        fork = remote_address(path_of(self.project, repo), section.fork) if section.fork else ""
        source = forge_of(fork)[1] if fork else ""
        settings = replace(forge_settings(section, address, token, source=source), clock=self.clock)
        return open_forge(section.forge, settings, self._hosts)

    def _command(
        self,
        repo: str,
        section: DeliverySection,
        rules: RepoRules,
        repository: Repository,
        launcher: Launcher,
        sandbox: Sandbox,
    ) -> Forge:
        from ganger.forges.command.forge import CommandCi, CommandForge

        ci = CommandCi(
            folder=self.folder.path / repo_place(repo) / "ci",
            jobs=section.jobs,
            env=self.env,
            mirror_job=section.mirror_job,
            mirror_env={name: text for name, text in environment().items() if name in PASSED_ON},
            repo=repo or self.project.root.name,
            branch=rules.branch,
            readable=repository.shared,
            timeout_sec=section.ci_sec,
            output_limit_bytes=int(self.project.config.policy.output_limit_mb * 1024 * 1024),
            can_rerun=section.reruns,
            halted=lambda: self.state.lead.stopping,
        )
        return CommandForge(ci, launcher, repository, sandbox)

    def webhooks(self, nudge: Callable[[str], None]) -> WebhookReceiver | None:
        """`nudge` is told the repository."""
        given = self.project.config.delivery
        if not given.webhook_port:
            return None
        from ganger.forges.webhook import WebhookReceiver

        projects: dict[str, str] = {}
        for repo in ("", *self.project.config.repos):
            section = section_of(self.project, repo)
            with contextlib.suppress(GangerError):
                name = section.project or forge_of(remote_address(path_of(self.project, repo), section.remote))[1]
                projects.setdefault(name, repo)
        secret = _secret(given.webhook_secret_env)
        return WebhookReceiver(
            dict.fromkeys(projects, secret), lambda name: nudge(projects[name]), port=given.webhook_port
        )


def _secret(name: str) -> str:
    return environment().get(name, "") if name else ""


def _prover(
    command: list[str], folder: Path, mask: Callable[[str], tuple[str, tuple[str, ...]]]
) -> Callable[[str, str], Awaitable[tuple[bool, str]]]:
    """The operator's own command. It reaches the mirror, so it runs outside the sandbox; it may print its own password.

    A command without `{sha}` proves a commit by printing it: `git ls-remote` succeeds whatever it finds.
    """
    told = any("{sha}" in word for word in command)

    async def prove(sha: str, branch: str) -> tuple[bool, str]:
        argv = [word.replace("{sha}", sha).replace("{branch}", branch) for word in command]
        try:
            process = await asyncio.create_subprocess_exec(
                *argv,
                cwd=folder,
                env=dict(environment()),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
                start_new_session=True,
            )
        except OSError as error:
            return False, f"{argv[0]}: {error.strerror or error}"
        try:
            async with asyncio.timeout(_MIRROR_SEC):
                said, _ = await process.communicate()
        except TimeoutError:
            return False, f"{argv[0]} took longer than {_MIRROR_SEC:g} s"
        finally:
            if process.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                await process.wait()
        shown, _ = mask(said.decode("utf-8", "replace")[-_MOST_SAID:])
        shown = shown[-_MOST_SHOWN:].strip() or f"exit code {process.returncode}"
        if process.returncode == 0 and not told and sha.encode() not in said:
            return False, f"{argv[0]} ended well and did not name that commit: {shown}"
        return process.returncode == 0, shown

    return prove
