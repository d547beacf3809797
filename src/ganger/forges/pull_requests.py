"""Change requests of Forgejo and Gitea, and what those of GitHub share with them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from urllib.parse import quote

from ganger.core.delivery.branch_rules import BranchRules
from ganger.core.delivery.forge_reviews import APPROVED, REWORK, Remark, Review
from ganger.errors import ForgeError
from ganger.forges.api import REFUSED, Site
from ganger.forges.comments import Comments, keep_one
from ganger.forges.http.client import ForgeAnswer, ForgeAsk, scrub
from ganger.forges.labels import Labels, milestone_number
from ganger.forges.untrusted import Row, number, row, rows, strings, text, told, yes
from ganger.ports.forge import MergeAnswer, MergeRules, NewRequest, QueueLook, Request

DRAFT = "WIP: "
DRAFTS = ("wip:", "[wip]", "draft:", "[draft]")
# Another merge is in progress; or the forge accepted this one and does not show it yet.
BUSY = (200, 409)
LOOKED_AT = 4
OPINIONS = {"APPROVED": APPROVED, "REQUEST_CHANGES": REWORK, "CHANGES_REQUESTED": REWORK, "DISMISSED": REWORK}
METHODS = {"merge": "merge", "squash": "squash", "rebase": "rebase", "fast-forward": "fast-forward-only"}

# Methods that create no merge commit.
STRAIGHT = ("allow_squash_merge", "allow_rebase", "allow_fast_forward_only_merge")


def plain_title(title: str) -> str:
    """The title without its draft mark."""
    for prefix in DRAFTS:
        if title.lower().startswith(prefix):
            return plain_title(title[len(prefix) :].lstrip()) or title
    return title


def read_pull(found: Row) -> Request:
    # GitHub's list has only the time of the merge.
    merged = yes(found, "merged") if "merged" in found else bool(text(found, "merged_at"))
    # Once the branch is deleted, Forgejo and Gitea keep its name only in the label.
    branch = text(found, "head", "ref")
    branch = text(found, "head", "label") if branch.startswith("refs/pull/") else branch
    return Request(
        number=text(found, "number"),
        url=text(found, "html_url"),
        branch=branch,
        into=text(found, "base", "ref"),
        state="merged" if merged else text(found, "state") or "open",
        draft=yes(found, "draft") or text(found, "title").lower().startswith(DRAFTS[:2]),
        head=text(found, "head", "sha"),
        merged=text(found, "merge_commit_sha") if merged else "",
        title=plain_title(text(found, "title")),
        body=text(found, "body"),
    )


def newest_of(listed: Iterable[Row], source: str, branch: str, into: str) -> Request | None:
    """The newest request from this repository that is open or merged: a fork may have a branch of the same name."""
    found = [
        (number(entry, "number"), read_pull(entry))
        for entry in listed
        if text(entry, "head", "repo", "full_name").lower() in ("", source.lower())
    ]
    fitting = [pair for pair in found if (pair[1].branch, pair[1].into) == (branch, into) and pair[1].state != "closed"]
    return max(fitting, key=lambda pair: pair[0])[1] if fitting else None


async def read_again(site: Site, request: Request) -> Row:
    answer = await site.get(f"R/pulls/{request.number}")
    return row(answer.json())


async def merged_as(site: Site, request: Request, head: str, answer: ForgeAnswer) -> MergeAnswer:
    """The outcome for exactly this head. `answer` is the forge's answer to the merge call."""
    now = read_pull(await read_again(site, request))
    if now.state == "merged":
        return MergeAnswer(now.merged) if now.head == head else MergeAnswer(why=f"it was merged at {now.head[:12]}")
    said = scrub(answer.message, "") or f"it answered {answer.status}"
    # The forge is still checking whether it can be merged, or another merge is in progress.
    busy = now.state == "open" and now.head == head and (answer.status in BUSY or "again" in said.lower())
    return MergeAnswer(why=said, busy=busy)


def names_of(found: Row) -> list[str]:
    """The numbers of the request's labels."""
    return [text(one, "name") for one in rows(found.get("labels"))]


def url_of(comment: Row | None) -> str:
    return text(comment, "html_url") if comment is not None else ""


def read_review(found: Row, me: str, *, counts: bool) -> Review:
    by = text(found, "user", "login")
    return Review(
        id=text(found, "id"),
        by=by,
        verdict=OPINIONS.get(text(found, "state"), ""),
        commit=text(found, "commit_id"),
        counts=counts and bool(by) and by != me,
        dismissed=yes(found, "dismissed") or text(found, "state") == "DISMISSED",
        stale=yes(found, "stale"),
        text=text(found, "body"),
        url=text(found, "html_url"),
    )


class CommentCalls:
    """Remarks on single lines, read once: a submitted review does not change."""

    def __init__(self, site: Site, size_name: str) -> None:
        self._site, self._size_name = site, size_name
        self._known: dict[str, tuple[Remark, ...]] = {}

    async def with_them(self, request: Request, reviews: Sequence[Review]) -> list[Review]:
        return [await self._with(request, one) if one.verdict == REWORK and one.stands else one for one in reviews]

    async def _with(self, request: Request, review: Review) -> Review:
        if review.id not in self._known:
            path = f"R/pulls/{request.number}/reviews/{review.id}/comments"
            listed = await self._site.pages(path, {self._size_name: 50})
            self._known[review.id] = tuple(map(_remark, listed.rows if listed is not None else ()))
        return replace(review, remarks=self._known[review.id])


def _remark(found: Row) -> Remark:
    lines = (number(found, name) for name in ("line", "position", "original_line", "original_position"))
    return Remark(text(found, "path"), next(filter(None, lines), 0), text(found, "body"))


class GiteaPulls:
    """The title marks a draft."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._labels = Labels(site)
        self._remarks = CommentCalls(site, "limit")

    async def find(self, branch: str, into: str) -> Request | None:
        for state in ("open", "closed"):
            for page in range(1, LOOKED_AT + 1):
                query: dict[str, str | int] = {"state": state, "sort": "recentupdate", "limit": 50, "page": page}
                listed = self._site.listed(await self._site.get("R/pulls", query))
                found = newest_of(listed, self._site.source, branch, into)
                if found is not None:
                    return found
                if len(listed) < 50:
                    break
        return None

    async def open(self, new: NewRequest) -> Request:
        title = DRAFT + plain_title(new.title) if new.draft else new.title
        head = f"{self._site.owner}{new.branch}"
        body: dict[str, object] = {"head": head, "base": new.into, "title": title, "body": new.body}
        if labels := await self._labels.numbers(new.labels):
            body["labels"] = labels
        if milestone := await milestone_number(self._site, new.milestone):
            body["milestone"] = milestone
        answer = await self._site.ask(ForgeAsk("POST", "R/pulls", body=body), also=(409, 422))
        if answer.status in (409, 422):
            there = await self.find(new.branch, new.into)
            if there is None:
                raise ForgeError(f"cannot open a change request for {new.branch}: {answer.message}")
            return there
        return read_pull(row(answer.json()))

    async def update(self, request: Request, new: NewRequest) -> None:
        now = await read_again(self._site, request)
        shown, draft = text(now, "title"), read_pull(now).draft
        title = DRAFT + plain_title(new.title) if draft else new.title
        change: dict[str, object] = {} if plain_title(shown) == plain_title(title) else {"title": title}
        if text(now, "body") != new.body:
            change["body"] = new.body
        if not now.get("milestone") and (milestone := await milestone_number(self._site, new.milestone)):
            change["milestone"] = milestone
        if change:
            await self._site.ask(ForgeAsk("PATCH", f"R/pulls/{request.number}", body=change))
        lacking = tuple(name for name in new.labels if name not in names_of(now))
        if numbers := await self._labels.numbers(lacking):
            path = f"R/issues/{request.number}/labels"
            await self._site.ask(ForgeAsk("POST", path, body={"labels": numbers}), also=REFUSED)

    async def ready(self, request: Request) -> None:
        title = text(await read_again(self._site, request), "title")
        plain = plain_title(title)
        if plain != title:
            await self._site.ask(ForgeAsk("PATCH", f"R/pulls/{request.number}", body={"title": plain}))

    async def reviews(self, request: Request) -> Sequence[Review]:
        me = await self._site.login()
        listed = await self._site.pages(f"R/pulls/{request.number}/reviews", {"limit": 50})
        rows = sorted(listed.rows if listed is not None else (), key=lambda found: number(found, "id"))
        read = [read_review(found, me, counts=found.get("official") is not False) for found in rows]
        return await self._remarks.with_them(request, read)

    async def remark(self, request: Request, mark: str, words: str) -> str:
        at = Comments(f"R/issues/{request.number}/comments", "R/issues/comments", "limit")
        return url_of(await keep_one(self._site, at, mark, words))

    async def branch_rules(self, branch: str) -> BranchRules:
        """The forge tells whether this token's user may push or merge."""
        answer = await self._site.get(f"R/branches/{quote(branch)}", also=(404,))
        repo = row((await self._site.get("R")).json())
        merges = repo.get("allow_merge_commits") is not False
        only_merges = all(repo.get(name) is False for name in STRAIGHT)
        if answer.status == 404:
            return BranchRules(linear_merge=not merges, only_merges=only_merges)
        found, signed, unseen = row(answer.json()), False, ""
        if yes(found, "protected"):
            rule = await self._site.get("R/branch_protections", also=(401, 403, 404))
            unseen = "" if rule.status == 200 else "this token cannot read whether commits must be signed"
            name = text(found, "effective_branch_protection_name")
            listed = self._site.listed(rule) if rule.status == 200 else []
            signed = any(yes(one, "require_signed_commits") for one in listed if text(one, "rule_name") == name)
        return BranchRules(
            protected=yes(found, "protected"),
            may_push=told(found, "user_can_push"),
            may_merge=told(found, "user_can_merge"),
            approvals=max(0, number(found, "required_approvals")),
            checks=strings(found, "status_check_contexts") if yes(found, "enable_status_check") else (),
            linear_merge=not merges,
            only_merges=only_merges,
            signed=signed,
            unseen=unseen,
        )

    async def rules(self, into: str) -> MergeRules:
        """Forgejo and Gitea have no merge queue."""
        found = row((await self._site.get("R")).json())
        names = {
            "merge": "allow_merge_commits",
            "squash": "allow_squash_merge",
            "rebase": "allow_rebase",
            "fast-forward": "allow_fast_forward_only_merge",
        }
        return MergeRules(tuple(method for method, name in names.items() if yes(found, name)))

    async def merge(self, request: Request, head: str, method: str) -> MergeAnswer:
        body = {"Do": METHODS[method], "head_commit_id": head}
        ask = ForgeAsk("POST", f"R/pulls/{request.number}/merge", body=body)
        return await merged_as(self._site, request, head, await self._site.ask(ask, also=REFUSED))

    async def enqueue(self, request: Request, head: str) -> MergeAnswer:
        return MergeAnswer(why="it has no merge queue")

    async def queued(self, request: Request) -> QueueLook:
        return QueueLook("out", why="it has no merge queue")
