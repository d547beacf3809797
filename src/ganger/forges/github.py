"""GitHub: its API's address, and its change requests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from urllib.parse import quote

from ganger.core.delivery.branch_rules import BranchRules
from ganger.core.delivery.forge_reviews import Review
from ganger.errors import ForgeError, ForgeUnreachable
from ganger.forges.api import REFUSED, Site
from ganger.forges.ci.reader import CiReader
from ganger.forges.ci.workflow_runs import GITHUB, WorkflowRuns
from ganger.forges.comments import Comments, keep_one
from ganger.forges.forge import Opened
from ganger.forges.http.client import ForgeAsk, scrub
from ganger.forges.labels import milestone_number
from ganger.forges.pull_requests import (
    CommentCalls,
    merged_as,
    names_of,
    newest_of,
    read_again,
    read_pull,
    read_review,
    url_of,
)
from ganger.forges.untrusted import Row, number, row, rows, strings, text, yes
from ganger.ports.forge import MergeAnswer, MergeRules, NewRequest, QueueLook, Request

# REST can open a draft but not make it ready.
READY = "mutation($id: ID!) { markPullRequestReadyForReview(input: {pullRequestId: $id}) { clientMutationId } }"


WRITERS = ("admin", "maintain", "write")
INSIDERS = ("OWNER", "MEMBER", "COLLABORATOR")
# Settings of a branch protection that refuse a direct push; rule sets use other names.
CLOSING = ("required_pull_request_reviews", "required_status_checks", "restrictions")
CLOSED_BY = ("pull_request", "required_status_checks", "update")
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
        self._remarks = CommentCalls(site, "per_page")
        self._may: dict[str, bool] = {}

    async def find(self, branch: str, into: str) -> Request | None:
        owner = self._site.source.partition("/")[0]
        query: dict[str, str | int] = {"head": f"{owner}:{branch}", "base": into, "state": "all", "per_page": 100}
        listed = self._site.listed(await self._site.get("R/pulls", query))
        return newest_of(listed, self._site.source, branch, into)

    async def open(self, new: NewRequest) -> Request:
        request = await self._made(new, draft=new.draft)
        if request.state == "open":
            await self._mark(request, new, {})
        return request

    async def _mark(self, request: Request, new: NewRequest, now: Row) -> None:
        """Labels and milestone belong to the request's issue; the forge creates labels that do not exist."""
        path = f"R/issues/{request.number}"
        if lacking := [name for name in new.labels if name not in names_of(now)]:
            await self._site.ask(ForgeAsk("POST", f"{path}/labels", body={"labels": lacking}), also=REFUSED)
        if not now.get("milestone") and (milestone := await milestone_number(self._site, new.milestone, "number")):
            await self._site.ask(ForgeAsk("PATCH", path, body={"milestone": milestone}), also=REFUSED)

    async def update(self, request: Request, new: NewRequest) -> None:
        now = await read_again(self._site, request)
        wanted = {"title": new.title, "body": new.body}
        change = {name: words for name, words in wanted.items() if text(now, name) != words}
        if change:
            await self._site.ask(ForgeAsk("PATCH", f"R/pulls/{request.number}", body=change))
        await self._mark(request, new, now)

    async def _made(self, new: NewRequest, *, draft: bool) -> Request:
        head = f"{self._site.owner}{new.branch}"
        body = {"head": head, "base": new.into, "title": new.title, "body": new.body, "draft": draft}
        answer = await self._site.ask(ForgeAsk("POST", "R/pulls", body=body), also=(422,))
        if answer.status != 422:
            return read_pull(row(answer.json()))
        there = await self.find(new.branch, new.into)
        if there is not None:
            return there
        if draft and "draft" in answer.text.lower():
            # Some plans have no drafts.
            return await self._made(new, draft=False)
        raise ForgeError(f"cannot open a change request for {new.branch}: {answer.message}")

    async def ready(self, request: Request) -> None:
        found = await read_again(self._site, request)
        if not read_pull(found).draft:
            return
        if (await self._graphql(READY, {"id": text(found, "node_id")})).get("errors"):
            raise ForgeError(
                f"change request {request.number} stays a draft: GitHub refuses to make it ready",
                hint="press Ready for review on GitHub, or set delivery.draft = false",
            )

    async def reviews(self, request: Request) -> Sequence[Review]:
        me = await self._site.login()
        listed = await self._site.pages(f"R/pulls/{request.number}/reviews", {"per_page": 100}, size=100)
        found = sorted(listed.rows if listed is not None else (), key=lambda one: number(one, "id"))
        read = [read_review(one, me, counts=await self._may_write(one, me)) for one in found]
        return await self._remarks.with_them(request, read)

    async def _may_write(self, found: Row, me: str) -> bool:
        """GitHub counts reviews by people who may write."""
        by = text(found, "user", "login")
        if by in ("", me) or text(found, "state") in ("COMMENTED", "PENDING"):
            return False
        if by not in self._may:
            answer = await self._site.get(f"R/collaborators/{quote(by)}/permission", also=(403, 404))
            known = text(row(answer.json()), "permission") if answer.status == 200 else ""
            self._may[by] = known in WRITERS if known else text(found, "author_association") in INSIDERS
        return self._may[by]

    async def remark(self, request: Request, mark: str, words: str) -> str:
        at = Comments(f"R/issues/{request.number}/comments", "R/issues/comments", "per_page")
        return url_of(await keep_one(self._site, at, mark, words))

    async def branch_rules(self, branch: str) -> BranchRules:
        """Only an administrator can read all of a classic protection; everyone can read rule sets."""
        repo = row((await self._site.get("R")).json())
        name = quote(branch, safe="")
        answer = await self._site.get(f"R/branches/{name}", also=(404,))
        found = row(answer.json()) if answer.status == 200 else {}
        whole, unseen = await self._protection(name) if yes(found, "protected") else ({}, "")
        sets = await self._site.pages(f"R/rules/branches/{name}", {"per_page": 100}, size=100)
        rules = {text(one, "type"): one for one in (sets.rows if sets is not None else ())}
        checks = rows(rules.get("required_status_checks", {}), "parameters", "required_status_checks")
        seen = row(whole or row(found.get("protection"))).get("required_status_checks")
        approvals = (
            number(row(whole.get("required_pull_request_reviews")), "required_approving_review_count"),
            number(row(rules.get("pull_request", {}).get("parameters")), "required_approving_review_count"),
        )
        return BranchRules(
            protected=yes(found, "protected") or bool(rules),
            may_push=await self._may_push(repo, whole, rules),
            approvals=max(approvals),
            checks=(*strings(row(seen), "contexts"), *(text(one, "context") for one in checks)),
            linear_push=_is_on(whole, "required_linear_history") or "required_linear_history" in rules,
            linear_merge=repo.get("allow_merge_commit") is False,
            only_merges=repo.get("allow_squash_merge") is False and repo.get("allow_rebase_merge") is False,
            signed=_is_on(whole, "required_signatures") or "required_signatures" in rules,
            unseen=unseen,
        )

    async def _protection(self, name: str) -> tuple[Row, str]:
        answer = await self._site.get(f"R/branches/{name}/protection", also=(403, 404))
        if answer.status == 200:
            return row(answer.json()), ""
        return {}, "only an administrator's token can read what its protection requires"

    async def _may_push(self, repo: Row, whole: Row, rules: Mapping[str, Row]) -> bool | None:
        """Whether the branch accepts a commit without a review or a test on the forge; None if unknown."""
        rights = row(repo.get("permissions"))
        if rights.get("push") is False:
            return False
        if any(whole.get(name) for name in CLOSING) and (_is_on(whole, "enforce_admins") or not yes(rights, "admin")):
            return False
        for found in (rules[name] for name in CLOSED_BY if name in rules):
            answer = await self._site.get(f"R/rulesets/{text(found, 'ruleset_id')}", also=(403, 404))
            bypass = text(row(answer.json()), "current_user_can_bypass") if answer.status == 200 else ""
            if bypass != "always":
                return False if bypass else None
        return True if rights else None

    async def _graphql(self, query: str, variables: dict[str, object]) -> Row:
        path = f"{self._site.root.removesuffix('/v3')}/graphql"
        return row((await self._site.ask(ForgeAsk("POST", path, body={"query": query, "variables": variables}))).json())

    async def rules(self, into: str) -> MergeRules:
        """A branch with a merge queue accepts changes through it only. The other rules need write access."""
        found = row((await self._site.get("R")).json())
        names = {"merge": "allow_merge_commit", "squash": "allow_squash_merge", "rebase": "allow_rebase_merge"}
        allowed = [method for method, name in names.items() if yes(found, name)]
        answer = await self._site.get(f"R/rules/branches/{quote(into, safe='')}", {"per_page": 100}, also=(403, 404))
        rules = self._site.listed(answer) if answer.status == 200 else []
        if any(text(rule, "type") == "required_linear_history" for rule in rules):
            allowed = [method for method in allowed if method != "merge"]
        return MergeRules(tuple(allowed), any(text(rule, "type") == "merge_queue" for rule in rules))

    async def merge(self, request: Request, head: str, method: str) -> MergeAnswer:
        ask = ForgeAsk("PUT", f"R/pulls/{request.number}/merge", body={"sha": head, "merge_method": method})
        answer = await self._site.ask(ask, also=REFUSED)
        found = row(answer.json())
        if answer.status == 200 and text(found, "sha"):
            return MergeAnswer(text(found, "sha"))
        return await merged_as(self._site, request, head, answer)

    async def enqueue(self, request: Request, head: str) -> MergeAnswer:
        """There is no REST call for this."""
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
            raise ForgeUnreachable(f"GitHub does not tell the state of change request {request.number}")
        if text(found, "state") == "MERGED":
            return QueueLook("merged", text(found, "mergeCommit", "oid"))
        entry = row(found.get("mergeQueueEntry"))
        if not entry:
            return QueueLook("out", why="it is not in the merge queue")
        return QueueLook("waiting", text(entry, "headCommit", "oid"), text(entry, "state"))


def _is_on(found: Row, name: str) -> bool:
    return yes(row(found.get(name)), "enabled")


def open_github(site: Site) -> Opened:
    async def meet() -> tuple[str, CiReader]:
        return "", WorkflowRuns(site, GITHUB)

    return Opened("github", site, GithubPulls(site), meet)
