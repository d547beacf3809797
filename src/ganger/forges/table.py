"""All forges: the path of each API, the form of its token, and the function that opens it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from urllib.parse import quote

from ganger.errors import ForgeError
from ganger.forges.api import Site
from ganger.forges.forge import Opened
from ganger.forges.forgejo import open_forgejo
from ganger.forges.gitea import open_gitea
from ganger.forges.github import open_github
from ganger.forges.gitlab import open_gitlab
from ganger.forges.http.hosts import Hosts
from ganger.forges.settings import ForgeAddress, ForgeSettings, read_address

GITHUB_HOSTS = ("github.com", "www.github.com", "api.github.com")


@dataclass(frozen=True, slots=True)
class Kind:
    """`root` is the path of the API below the forge's address, `repos` the path of repositories below that."""

    opens: Callable[[Site], Opened]
    root: str
    repos: str
    authorization: str
    whole_name: bool = False


KINDS: Mapping[str, Kind] = {
    "forgejo": Kind(open_forgejo, "/api/v1", "/repos/", "token"),
    "gitea": Kind(open_gitea, "/api/v1", "/repos/", "token"),
    "github": Kind(open_github, "/api/v3", "/repos/", "Bearer"),
    "gitlab": Kind(open_gitlab, "/api/v4", "/projects/", "Bearer", whole_name=True),
}


def opened(kind: str, settings: ForgeSettings, hosts: Hosts) -> Opened:
    if kind not in KINDS:
        raise ForgeError(f"there is no forge of kind {kind!r}", hint=f"set delivery.forge to one of {', '.join(KINDS)}")
    found = KINDS[kind]
    project = settings.project.strip("/").removesuffix(".git")
    if "/" not in project:
        raise ForgeError(f"{settings.project!r} is not a project on a forge", hint="set delivery.project to owner/name")
    address = _api_address(kind, read_address(settings.url))
    root = address.path if address.path.endswith(found.root) or _public(address) else address.path + found.root
    repo = found.repos + (quote(project, safe="") if found.whole_name else quote(project))
    client = hosts.take(address, settings)
    site = Site(client, replace(settings, project=project), root=root, repo=repo, authorization=found.authorization)
    forge = found.opens(site)
    forge.hosts = hosts
    return forge


def _api_address(kind: str, address: ForgeAddress) -> ForgeAddress:
    if kind == "github" and address.host in GITHUB_HOSTS:
        return ForgeAddress("https", "api.github.com", 443)
    return address


def _public(address: ForgeAddress) -> bool:
    return address.host == "api.github.com"
