"""Asks a project's remotes and forges whether they take what its settings name: before a run starts an agent, and for
`ganger doctor`."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Awaitable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ganger.app.delivery import checked_out, completion_of, forge_settings, names_of, path_of, rules_for, token_reader
from ganger.config import DeliverySection, Project, environment
from ganger.core.delivery.branch_rules import RuleClash, clashes
from ganger.core.model.ci import UNSETTLED, Ci, Finding, judge
from ganger.core.model.ledger import CI, MIRRORED, PUSHED, RepoRules
from ganger.core.model.records import TaskSpec
from ganger.errors import ForgeDenied, ForgeUnreachable, GangerError
from ganger.ports.forge import Forge
from ganger.workspaces.git.git import Git
from ganger.workspaces.remotes.addresses import parse_address, remote_address
from ganger.workspaces.remotes.remote import GitRemote, RemoteSettings

_GOES_OUT = frozenset({PUSHED, CI, MIRRORED})


@dataclass(frozen=True, slots=True)
class Met:
    """How one of them answered; `trouble` where it did not, or not well. `warns`: nothing stops for it.
    `tells`: it is said before a run as well."""

    name: str
    text: str
    trouble: GangerError | None = None
    warns: bool = False
    tells: bool = False


def delivering_repos(project: Project, specs: Iterable[TaskSpec] | None = None) -> list[str]:
    """The repositories whose changes leave the machine; of those these tasks work on, or of all there are."""
    config = project.config
    known = _all_of(project) if specs is None else names_of(project, specs)
    if config.workspace.mode == "direct":
        return []
    return [repo for repo in known if _GOES_OUT.intersection(completion_of(project, project.delivery_of(repo)))]


def _all_of(project: Project) -> list[str]:
    """The project's own folder may only hold the settings of a graph of others; then it has no remote."""
    own = [""]
    try:
        remote_address(project.root, project.config.delivery.remote)
    except GangerError:
        own = [] if project.config.repos else own
    return [*own, *project.config.repos]


def meet(project: Project, repos: Sequence[str]) -> list[Met]:
    """Asks each of them once, all at the same time."""

    async def all_of_them() -> list[Met]:
        found = await asyncio.gather(*(_meet(project, repo) for repo in repos))
        return [*_secrets(project), *(one for every in found for one in every)]

    return asyncio.run(all_of_them()) if repos else []


def require_welcome(project: Project, specs: Sequence[TaskSpec]) -> list[str]:
    """What a person should know before a run begins; raises for what would stop every delivery of it. One that does
    not answer at the moment may do so later, so that is only told."""
    notes = []
    for met in meet(project, delivering_repos(project, specs)):
        if met.trouble is not None and not met.warns and not isinstance(met.trouble, ForgeUnreachable):
            raise met.trouble
        if met.trouble is not None:
            notes.append(met.trouble.message)
        elif met.tells:
            notes.append(met.text)
    return notes


def _secrets(project: Project) -> Iterator[Met]:
    """What is lacking, or where anyone can see it."""
    try:
        require_webhook_secret(project)
    except GangerError as unset:
        yield Met("webhooks", unset.message, unset)
    roots = [path_of(project, repo) for repo in ("", *project.config.repos)]
    for file in project.token_files():
        if any(file.resolve().is_relative_to(root) and _is_tracked(root, file.resolve()) for root in roots):
            seen = GangerError(
                f"the token file {file} is in the repository's history, so every agent sees it",
                hint="take it out of the repository (git rm --cached), ignore it there, and replace the token",
                code="TOKEN_SEEN",
            )
            yield Met("token", seen.message, seen)


def require_webhook_secret(project: Project) -> None:
    given = project.config.delivery
    if given.webhook_port and given.webhook_secret_env and not environment().get(given.webhook_secret_env):
        raise GangerError(
            f"the variable {given.webhook_secret_env}, which delivery.webhook_secret_env names, is not set",
            hint="export it with the secret the forge signs with, or set delivery.webhook_port = 0",
            code="FORGE_DENIED",
        )


def require_token(project: Project, repo: str) -> None:
    """Where its settings name one, it is there; whether it is taken only the forge can tell."""
    section, where = project.delivery_of(repo), f" of {repo}" if repo else ""
    if section.token_env and not environment().get(section.token_env, "").strip():
        raise ForgeDenied(
            f"the variable {section.token_env}, which delivery.token_env{where} names, is not set",
            hint="export it, or name a file with delivery.token_file",
        )
    token_reader(project, section)()


def _is_tracked(root: Path, file: Path) -> bool:
    words = ("cat-file", "-e", f"HEAD:{file.relative_to(root).as_posix()}")
    return Git(root / ".git").ask(*words, doing=f"looking for {file}", fine=(0, 1, 128)).code == 0


async def _meet(project: Project, repo: str) -> list[Met]:
    section, where = project.delivery_of(repo), f" of {repo}" if repo else ""
    try:
        require_token(project, repo)
    except ForgeDenied as missing:
        return [Met(f"token{where}", missing.message, missing)]
    return [await _tried(f"remote{where}", _remote(project, repo, section)), *await _forge(project, repo, section)]


async def _tried(name: str, asked: Awaitable[str]) -> Met:
    try:
        return Met(name, await asked)
    except GangerError as trouble:
        return Met(name, trouble.message, trouble)


async def _remote(project: Project, repo: str, section: DeliverySection) -> str:
    path = path_of(project, repo)
    token, address = token_reader(project, section), remote_address(path, section.remote)
    branch = section.branch or checked_out(path)
    settings = RemoteSettings(address, token, look_sec=section.call_sec, environ=environment())
    with tempfile.TemporaryDirectory(prefix="ganger-") as folder:
        # git asks nobody without a repository of its own.
        store = Path(folder) / "look.git"
        Git(store).ask("init", "-q", "--bare", doing="making a repository to look from")
        remote = GitRemote(store, settings)
        head = await remote.head(branch)
    return (
        f"{remote.address}: {branch} is at {head[:12]}" if head else f"{remote.address}: it has no branch {branch} yet"
    )


async def _forge(project: Project, repo: str, section: DeliverySection) -> list[Met]:
    where = f" of {repo}" if repo else ""
    if section.forge == "command":
        return [_jobs(section, where)]
    return await _met_forge(project, repo, section, where) if section.forge else []


def _jobs(section: DeliverySection, where: str) -> Met:
    path = environment().get("PATH")
    lost = [
        name
        for name, argv in section.jobs.items()
        if argv and "/" not in argv[0] and not shutil.which(argv[0], path=path)
    ]
    if not lost:
        return Met(f"forge{where}", f"CI is done here, by the jobs {', '.join(section.jobs)}")
    told = f"the program of the CI job {lost[0]} is not on PATH: {section.jobs[lost[0]][0]}"
    return Met(f"forge{where}", told, GangerError(told, hint="install it, or correct delivery.jobs"), warns=True)


async def _met_forge(project: Project, repo: str, section: DeliverySection, where: str) -> list[Met]:
    """Who it is, and what it asks of the branch that changes are going to reach."""
    from ganger.forges import Hosts, open_forge

    try:
        address = remote_address(path_of(project, repo), section.remote)
        settings = forge_settings(section, address, token_reader(project, section), tries=1)
        forge = open_forge(section.forge, settings, Hosts())
    except GangerError as trouble:
        return [Met(f"forge{where}", trouble.message, trouble)]
    try:
        met = await _tried(f"forge{where}", _greeted(forge))
        if met.trouble is not None:
            return [met]
        told = await asyncio.gather(
            _guarded(project, repo, address, forge, where), _base(project, repo, section, forge, where)
        )
        return [met, *(one for every in told for one in every)]
    finally:
        await forge.close()


async def _greeted(forge: Forge) -> str:
    greeting = await forge.greet()
    who = f"as {greeting.user}" if greeting.user else "as nobody in particular"
    notes = f"; {'; '.join(greeting.notes)}" if greeting.notes else ""
    return f"{greeting.forge} {greeting.version}: {who}{notes}"


async def _guarded(project: Project, repo: str, address: str, forge: Forge, where: str) -> list[Met]:
    """The branch's own rules, and what of them no delivery could get past. What cannot be read stops nobody."""
    name, rules = f"branch{where}", rules_for(project, repo)
    try:
        found = await forge.branch_rules(rules.branch)
    except GangerError as trouble:
        return [Met(name, f"{rules.branch}: its rules cannot be read: {trouble.message}", trouble, warns=True)]
    met = clashes(rules, found, by_token=parse_address(address).web)
    return [Met(name, f"{rules.branch}: {found.told}"), *(_of_clash(name, clash) for clash in met)]


async def _base(project: Project, repo: str, section: DeliverySection, forge: Forge, where: str) -> list[Met]:
    """What CI says of the target now: a red one is reported before any agent is paid. What is unknown stops no run."""
    name, rules = f"ci{where}", rules_for(project, repo)
    if not rules.follows_ci:
        return []
    try:
        head, finding, url = await _verdict(project, repo, section, rules, forge)
    except GangerError as trouble:
        return [Met(name, f"{rules.branch}: what CI says of it cannot be read: {trouble.message}", trouble, warns=True)]
    at = f"{rules.branch} at {head[:12]}"
    if not head:
        return []
    if finding.ci in UNSETTLED:
        so = "has not run for it" if finding.ci is Ci.ABSENT else "has not finished"
        text = f"{at}: CI {so}; the run begins, and you are asked if it turns out red"
        return [Met(name, text, tells=finding.ci is not Ci.ABSENT)]
    if finding.ci is not Ci.RED:
        return [Met(name, f"{at}: CI is {finding.ci.value}")]
    text = f"{at} of {forge.name} is red before anything is done: {finding.why}{f'; {url}' if url else ''}"
    stops = rules.base_red == "stop"
    hint = _FIX_IT if stops else _RED_THEN[rules.base_red]
    return [Met(name, text, GangerError(text, hint=hint, code="BASE_RED"), warns=not stops)]


_FIX_IT = (
    'fix the branch first; or set delivery.base_red to `"mend"`: the first task fixes it too, or to `"ignore"`: '
    "no task is charged for it"
)
_RED_THEN = {"mend": "the first task that is pushed fixes it", "ignore": "no task is charged for what failed there"}


async def _verdict(
    project: Project, repo: str, section: DeliverySection, rules: RepoRules, forge: Forge
) -> tuple[str, Finding, str]:
    path = path_of(project, repo)
    token, address = token_reader(project, section), remote_address(path, section.remote)
    settings = RemoteSettings(address, token, look_sec=section.call_sec, environ=environment())
    with tempfile.TemporaryDirectory(prefix="ganger-") as folder:
        store = Path(folder) / "look.git"
        Git(store).ask("init", "-q", "--bare", doing="making a repository to look from")
        head = await GitRemote(store, settings).head(rules.branch)
    runs = [await forge.jobs(run) for run in await forge.runs([head])] if head else []
    finding = judge(head, runs, rules.ci_rules)
    urls = [run.url for run in runs if run.url]
    return head, finding, urls[-1] if urls else ""


def _of_clash(name: str, clash: RuleClash) -> Met:
    trouble = GangerError(clash.text, hint=clash.hint, code="BRANCH_RULES")
    return Met(name, clash.text, trouble, warns=not clash.stops)
