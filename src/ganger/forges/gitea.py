"""Gitea: the calls of each release."""

from __future__ import annotations

from ganger.forges.api import Site
from ganger.forges.ci.reader import CiReader
from ganger.forges.ci.statuses import StatusRuns
from ganger.forges.ci.workflow_runs import GITEA, GITEA_WITHOUT_RERUN, WorkflowRuns
from ganger.forges.forge import Opened
from ganger.forges.pull_requests import GiteaPulls
from ganger.forges.version import Version, read_version


def gitea_rung(site: Site, version: Version) -> CiReader:
    if version.pair >= (1, 26):
        return WorkflowRuns(site, GITEA)
    if version.pair >= (1, 25):
        return WorkflowRuns(site, GITEA_WITHOUT_RERUN)
    return StatusRuns(site, with_tasks=version.pair >= (1, 23))


def open_gitea(site: Site) -> Opened:
    async def meet() -> tuple[str, CiReader]:
        version = await read_version(site)
        return version.text, gitea_rung(site, version)

    return Opened("gitea", site, GiteaPulls(site), meet)
