"""GitHub: its API's address, and its change requests."""

from __future__ import annotations

from ganger.errors import ForgeError
from ganger.forges.client import Ask
from ganger.forges.forge import Opened
from ganger.forges.pulls import REFUSED, merged_as, newest_of, read_again, read_pull, say
from ganger.forges.rung import Rung
from ganger.forges.shapes import row, text
from ganger.forges.site import Site
from ganger.forges.workflow_runs import GITHUB, WorkflowRuns
from ganger.ports.forge import NewRequest, Request

# REST can open a draft but not make it ready.
READY = "mutation($id: ID!) { markPullRequestReadyForReview(input: {pullRequestId: $id}) { clientMutationId } }"


class GithubPulls:
    def __init__(self, site: Site) -> None:
        self._site = site

    async def find(self, branch: str, into: str) -> Request | None:
        owner = self._site.project.partition("/")[0]
        query: dict[str, str | int] = {"head": f"{owner}:{branch}", "base": into, "state": "all", "per_page": 100}
        listed = self._site.listed(await self._site.get("R/pulls", query))
        return newest_of(listed, self._site.project, branch, into)

    async def open(self, new: NewRequest) -> Request:
        request = await self._made(new, draft=new.draft)
        if new.labels and request.state == "open":
            path = f"R/issues/{request.number}/labels"
            await self._site.ask(Ask("POST", path, body={"labels": list(new.labels)}), also=REFUSED)
        return request

    async def _made(self, new: NewRequest, *, draft: bool) -> Request:
        body = {"head": new.branch, "base": new.into, "title": new.title, "body": new.body, "draft": draft}
        answer = await self._site.ask(Ask("POST", "R/pulls", body=body), also=(422,))
        if answer.status != 422:
            return read_pull(row(answer.json()))
        there = await self.find(new.branch, new.into)
        if there is not None:
            return there
        if draft and "draft" in answer.text.lower():
            # Not every plan has drafts.
            return await self._made(new, draft=False)
        raise ForgeError(f"no change request can be opened for {new.branch}: {answer.message}")

    async def ready(self, request: Request) -> None:
        found = await read_again(self._site, request)
        if not read_pull(found).draft:
            return
        root = self._site.root
        path = f"{root.removesuffix('/v3')}/graphql"
        body = {"query": READY, "variables": {"id": text(found, "node_id")}}
        answer = await self._site.ask(Ask("POST", path, body=body))
        if row(answer.json()).get("errors"):
            raise ForgeError(
                f"change request {request.number} stays a draft: GitHub refuses to make it ready",
                hint="press Ready for review there, or set delivery.draft = false",
            )

    async def comment(self, number: str, text: str) -> None:
        await say(self._site, number, text)

    async def merge(self, request: Request, head: str) -> str:
        ask = Ask("PUT", f"R/pulls/{request.number}/merge", body={"sha": head, "merge_method": "merge"})
        answer = await self._site.ask(ask, also=REFUSED)
        found = row(answer.json())
        if answer.status == 200 and text(found, "sha"):
            return text(found, "sha")
        return await merged_as(self._site, request, head, answer)


def open_github(site: Site) -> Opened:
    async def meet() -> tuple[str, Rung]:
        return "", WorkflowRuns(site, GITHUB)

    return Opened("github", site, GithubPulls(site), meet)
