"""Change requests of Forgejo and Gitea, and what those of GitHub share with them."""

from __future__ import annotations

from collections.abc import Iterable

from ganger.errors import ForgeError
from ganger.forges.client import Answer, Ask, scrub
from ganger.forges.shapes import Row, number, row, text, yes
from ganger.forges.site import Site
from ganger.ports.forge import MergeAnswer, MergeRules, NewRequest, QueueLook, Request

DRAFT = "WIP: "
DRAFTS = ("wip:", "[wip]", "draft:", "[draft]")
REFUSED = (403, 404, 405, 409, 412, 413, 422, 423)
# Another merge is under way there; or it says yes, and that is not to be seen yet.
BUSY = (200, 409)
LOOKED_AT = 4
METHODS = {"merge": "merge", "squash": "squash", "rebase": "rebase", "fast-forward": "fast-forward-only"}
LABEL_COLOUR = "#8a8f98"


def plain_title(title: str) -> str:
    """Without what makes it a draft."""
    for prefix in DRAFTS:
        if title.lower().startswith(prefix):
            return plain_title(title[len(prefix) :].lstrip()) or title
    return title


def read_pull(found: Row) -> Request:
    # Rows of GitHub's list have the moment alone.
    merged = yes(found, "merged") if "merged" in found else bool(text(found, "merged_at"))
    # Where its branch is gone, Forgejo and Gitea have the name in the label alone.
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
    )


def newest_of(listed: Iterable[Row], source: str, branch: str, into: str) -> Request | None:
    """The newest that is open or merged and comes from that very repository: another fork may have a branch of the
    same name."""
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


async def merged_as(site: Site, request: Request, head: str, answer: Answer) -> MergeAnswer:
    """What became of it, with exactly this head. `answer` is what the forge said to the call to merge."""
    now = read_pull(await read_again(site, request))
    if now.state == "merged":
        return MergeAnswer(now.merged) if now.head == head else MergeAnswer(why=f"it was merged at {now.head[:12]}")
    said = scrub(answer.message, "") or f"it answered {answer.status}"
    # It has not worked out yet whether it can be merged, or another merge is under way.
    busy = now.state == "open" and now.head == head and (answer.status in BUSY or "again" in said.lower())
    return MergeAnswer(why=said, busy=busy)


async def say(site: Site, number: str, words: str) -> None:
    await site.ask(Ask("POST", f"R/issues/{number}/comments", body={"body": words}, repeats=False))


class GiteaPulls:
    """A draft is one by its title."""

    def __init__(self, site: Site) -> None:
        self._site = site

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
        labels = await self._labels(new.labels)
        if labels:
            body["labels"] = labels
        answer = await self._site.ask(Ask("POST", "R/pulls", body=body), also=(409, 422))
        if answer.status in (409, 422):
            there = await self.find(new.branch, new.into)
            if there is None:
                raise ForgeError(f"no change request can be opened for {new.branch}: {answer.message}")
            return there
        return read_pull(row(answer.json()))

    async def _labels(self, names: tuple[str, ...]) -> list[int]:
        """Their numbers; those that are not there are made. One the token may not make is left out: a label is not
        worth a delivery."""
        if not names:
            return []
        listed = await self._site.pages("R/labels", {"limit": 50})
        known = {text(found, "name"): number(found, "id") for found in (listed.rows if listed else ())}
        for name in names:
            if name not in known:
                made = Ask("POST", "R/labels", body={"name": name, "color": LABEL_COLOUR}, repeats=False)
                known[name] = number(row((await self._site.ask(made, also=REFUSED)).json()), "id")
        return [known[name] for name in names if known[name]]

    async def ready(self, request: Request) -> None:
        title = text(await read_again(self._site, request), "title")
        plain = plain_title(title)
        if plain != title:
            await self._site.ask(Ask("PATCH", f"R/pulls/{request.number}", body={"title": plain}))

    async def comment(self, number: str, text: str) -> None:
        await say(self._site, number, text)

    async def rules(self, into: str) -> MergeRules:
        """A forge of this kind has no queue of its own."""
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
        ask = Ask("POST", f"R/pulls/{request.number}/merge", body=body)
        return await merged_as(self._site, request, head, await self._site.ask(ask, also=REFUSED))

    async def enqueue(self, request: Request, head: str) -> MergeAnswer:
        return MergeAnswer(why="it has no merge queue")

    async def queued(self, request: Request) -> QueueLook:
        return QueueLook("out", why="it has no merge queue")
