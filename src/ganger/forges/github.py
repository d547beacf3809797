"""GitHub: its API's address, and its change requests."""

from __future__ import annotations

from urllib.parse import quote

from ganger.errors import ForgeError, ForgeUnreachable
from ganger.forges.client import Ask, scrub
from ganger.forges.forge import Opened
from ganger.forges.pulls import REFUSED, merged_as, newest_of, read_again, read_pull, say
from ganger.forges.rung import Rung
from ganger.forges.shapes import Row, row, rows, text, yes
from ganger.forges.site import Site
from ganger.forges.workflow_runs import GITHUB, WorkflowRuns
from ganger.ports.forge import MergeAnswer, MergeRules, NewRequest, QueueLook, Request

# REST can open a draft but not make it ready.
READY = "mutation($id: ID!) { markPullRequestReadyForReview(input: {pullRequestId: $id}) { clientMutationId } }"


ENQUEUE = """mutation($id: ID!, $head: GitObjectID!) {
  enqueuePullRequest(input: {pullRequestId: $id, expectedHeadOid: $head}) { clientMutationId }
}"""
QUEUED = """query($owner: String!, $name: String!, $number: Int!) {
  repository(owner: $owner, name: $name) {
    pullRequest(number: $number) {
      state
      mergeCommit { oid }
      mergeQueueEntry { state headCommit { oid } }
    }
  }
}"""


class GithubPulls:
    def __init__(self, site: Site) -> None:
        self._site = site

    async def find(self, branch: str, into: str) -> Request | None:
        owner = self._site.source.partition("/")[0]
        query: dict[str, str | int] = {"head": f"{owner}:{branch}", "base": into, "state": "all", "per_page": 100}
        listed = self._site.listed(await self._site.get("R/pulls", query))
        return newest_of(listed, self._site.source, branch, into)

    async def open(self, new: NewRequest) -> Request:
        request = await self._made(new, draft=new.draft)
        if new.labels and request.state == "open":
            path = f"R/issues/{request.number}/labels"
            await self._site.ask(Ask("POST", path, body={"labels": list(new.labels)}), also=REFUSED)
        return request

    async def _made(self, new: NewRequest, *, draft: bool) -> Request:
        head = f"{self._site.owner}{new.branch}"
        body = {"head": head, "base": new.into, "title": new.title, "body": new.body, "draft": draft}
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
        if (await self._graphql(READY, {"id": text(found, "node_id")})).get("errors"):
            raise ForgeError(
                f"change request {request.number} stays a draft: GitHub refuses to make it ready",
                hint="press Ready for review there, or set delivery.draft = false",
            )

    async def comment(self, number: str, text: str) -> None:
        await say(self._site, number, text)

    async def _graphql(self, query: str, variables: dict[str, object]) -> Row:
        path = f"{self._site.root.removesuffix('/v3')}/graphql"
        return row((await self._site.ask(Ask("POST", path, body={"query": query, "variables": variables}))).json())

    async def rules(self, into: str) -> MergeRules:
        """A branch that has a merge queue takes changes through it alone. Who may not write does not see the rest."""
        found = row((await self._site.get("R")).json())
        names = {"merge": "allow_merge_commit", "squash": "allow_squash_merge", "rebase": "allow_rebase_merge"}
        allowed = [method for method, name in names.items() if yes(found, name)]
        answer = await self._site.get(f"R/rules/branches/{quote(into, safe='')}", {"per_page": 100}, also=(403, 404))
        rules = self._site.listed(answer) if answer.status == 200 else []
        if any(text(rule, "type") == "required_linear_history" for rule in rules):
            allowed = [method for method in allowed if method != "merge"]
        return MergeRules(tuple(allowed), any(text(rule, "type") == "merge_queue" for rule in rules))

    async def merge(self, request: Request, head: str, method: str) -> MergeAnswer:
        ask = Ask("PUT", f"R/pulls/{request.number}/merge", body={"sha": head, "merge_method": method})
        answer = await self._site.ask(ask, also=REFUSED)
        found = row(answer.json())
        if answer.status == 200 and text(found, "sha"):
            return MergeAnswer(text(found, "sha"))
        return await merged_as(self._site, request, head, answer)

    async def enqueue(self, request: Request, head: str) -> MergeAnswer:
        """REST has no call for it."""
        found = await read_again(self._site, request)
        variables: dict[str, object] = {"id": text(found, "node_id"), "head": head}
        wrong = rows((await self._graphql(ENQUEUE, variables)).get("errors"))
        why = "; ".join(scrub(text(one, "message"), "") for one in wrong)
        there = bool(why) and (await self.queued(request)).state != "out"
        return MergeAnswer(why="" if there else why)

    async def queued(self, request: Request) -> QueueLook:
        owner, _, name = self._site.project.partition("/")
        variables: dict[str, object] = {"owner": owner, "name": name, "number": int(request.number)}
        answer = await self._graphql(QUEUED, variables)
        found = row(row(row(answer.get("data")).get("repository")).get("pullRequest"))
        if not found:
            raise ForgeUnreachable(f"GitHub does not say where change request {request.number} stands")
        if text(found, "state") == "MERGED":
            return QueueLook("merged", text(found, "mergeCommit", "oid"))
        entry = row(found.get("mergeQueueEntry"))
        if not entry:
            return QueueLook("out", why="it is not in the merge queue")
        return QueueLook("waiting", text(entry, "headCommit", "oid"), text(entry, "state"))


def open_github(site: Site) -> Opened:
    async def meet() -> tuple[str, Rung]:
        return "", WorkflowRuns(site, GITHUB)

    return Opened("github", site, GithubPulls(site), meet)
