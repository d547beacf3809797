"""GitLab: pipelines as runs, their jobs, and merge requests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from urllib.parse import quote

from ganger.core.ci import JobFact, RunFact
from ganger.errors import ForgeError
from ganger.forges.client import Ask, scrub
from ganger.forges.forge import Opened
from ganger.forges.pulls import REFUSED, plain_title
from ganger.forges.run_list import ListCall, RunList
from ganger.forges.rung import Rung, deleted, job_log, run_again, unfinished, with_jobs
from ganger.forges.shapes import Row, number, row, text, yes
from ganger.forges.site import Site
from ganger.forges.words import gitlab
from ganger.ports.forge import MergeAnswer, MergeRules, NewRequest, QueueLook, Request

SIZE = 100
DRAFT = "Draft: "
EVENTS = {"merge_request_event": "pull_request", "external_pull_request_event": "pull_request"}
STATES = {"opened": "open", "locked": "open", "merged": "merged", "closed": "closed"}
METHODS: Mapping[str, tuple[str, ...]] = {"merge": ("merge",), "rebase_merge": ("merge",), "ff": ("fast-forward",)}
# It has not found out yet whether it can be merged.
WORKED_OUT = frozenset({"unchecked", "checking", "preparing", "approvals_syncing"})
# GitLab says 401 where a token may not merge.
UNMERGED = (*REFUSED, 401, 406)


# Since 19.2 what a pipeline triggers is listed under the second name; the first goes some day.
TRIGGERS = ("bridges", "trigger_jobs")
MOST_CHILDREN = 20


class Pipelines:
    """Pipelines that others start as their children are no rows of this list: their jobs are read with the parent's."""

    def __init__(self, site: Site) -> None:
        self._site = site
        call = ListCall("R/pipelines", "sha", read_pipeline, under="", size=SIZE, size_name="per_page")
        self._list = RunList(site, call)

    @property
    def notes(self) -> tuple[str, ...]:
        return ("only failed and cancelled jobs can be run again",)

    async def runs(self, shas: Sequence[str]) -> Sequence[RunFact]:
        return await self._list.of(shas)

    async def jobs(self, run: RunFact) -> RunFact:
        listed = await self._site.pages(f"R/pipelines/{run.id}/jobs", {"per_page": SIZE}, size=SIZE)
        if listed is None:
            return deleted(run)
        rows = [found for found in listed.rows if text(found, "commit", "id") in ("", run.sha)]
        jobs = [read_job(found) for found in rows]
        for child in await self._children(run.id):
            of_child = await self._site.pages(f"R/pipelines/{child}/jobs", {"per_page": SIZE}, size=SIZE)
            jobs += [replace(read_job(found), child=child) for found in (of_child.rows if of_child else ())]
        return with_jobs(run, jobs, listed.digest)

    async def _children(self, parent: str) -> list[str]:
        """Of this project: what a pipeline starts elsewhere has commits of its own."""
        for name in TRIGGERS:
            listed = await self._site.pages(f"R/pipelines/{parent}/{name}", {"per_page": SIZE}, size=SIZE)
            if listed is not None:
                break
        else:
            return []
        project = f"/{self._site.project}/-/pipelines/".lower()
        started = [row(found.get("downstream_pipeline")) for found in listed.rows]
        own = [text(one, "id") for one in started if project in text(one, "web_url").lower()]
        return [one for one in own if one.isdigit()][:MOST_CHILDREN]

    async def log(self, run: RunFact, job: JobFact) -> str:
        return await job_log(self._site, f"R/jobs/{job.id}/trace") if job.id else ""

    async def rerun(self, run: RunFact) -> bool:
        return unfinished(run) and await run_again(self._site, f"R/pipelines/{run.id}/retry")


def read_pipeline(found: Row) -> RunFact:
    said = gitlab(text(found, "status"))
    source = text(found, "source")
    return RunFact(
        id=text(found, "id"),
        sha=text(found, "sha"),
        word=said.word,
        raw=said.raw,
        reason=said.reason,
        number=number(found, "iid"),
        workflow=text(found, "name") or "pipeline",
        event=EVENTS.get(source, source),
        url=text(found, "web_url"),
    )


def read_job(found: Row) -> JobFact:
    said = gitlab(text(found, "status"), failure=text(found, "failure_reason"), may_fail=yes(found, "allow_failure"))
    return JobFact(text(found, "name"), said.word, said.raw, said.reason, text(found, "id"), 1, text(found, "web_url"))


def read_merge_request(found: Row) -> Request:
    state = STATES.get(text(found, "state"), "closed")
    merged = text(found, "merge_commit_sha") or text(found, "squash_commit_sha") or text(found, "sha")
    return Request(
        number=text(found, "iid"),
        url=text(found, "web_url"),
        branch=text(found, "source_branch"),
        into=text(found, "target_branch"),
        state=state,
        draft=yes(found, "draft") or yes(found, "work_in_progress"),
        head=text(found, "sha"),
        merged=merged if state == "merged" else "",
    )


class MergeRequests:
    """A draft is one by its title."""

    def __init__(self, site: Site) -> None:
        self._site = site

    async def _source(self) -> tuple[str, str]:
        """The path of the project the branch lies in, and its number where that is another one."""
        if not self._site.owner:
            return "R", ""
        path = f"projects/{quote(self._site.source, safe='')}"
        return path, text(row((await self._site.get(path)).json()), "id")

    async def find(self, branch: str, into: str) -> Request | None:
        _, fork = await self._source()
        query: dict[str, str | int] = {"source_branch": branch, "target_branch": into, "state": "all", "per_page": SIZE}
        listed = self._site.listed(await self._site.get("R/merge_requests", query))
        own = [
            found for found in listed if text(found, "source_project_id") == (fork or text(found, "target_project_id"))
        ]
        read = [(number(found, "iid"), read_merge_request(found)) for found in own]
        fitting = [pair for pair in read if (pair[1].branch, pair[1].into) == (branch, into)]
        alive = [pair for pair in fitting if pair[1].state != "closed"]
        return max(alive, key=lambda pair: pair[0])[1] if alive else None

    async def open(self, new: NewRequest) -> Request:
        body = {
            "source_branch": new.branch,
            "target_branch": new.into,
            "title": DRAFT + plain_title(new.title) if new.draft else new.title,
            "description": new.body,
            "labels": ",".join(new.labels),
        }
        path, fork = await self._source()
        if fork:
            # A request belongs to its target, and is opened where its branch lies.
            body["target_project_id"] = text(row((await self._site.get("R")).json()), "id")
        answer = await self._site.ask(Ask("POST", f"{path}/merge_requests", body=body), also=(400, 409, 422))
        if 200 <= answer.status < 300:
            return read_merge_request(row(answer.json()))
        there = await self.find(new.branch, new.into)
        if there is None:
            raise ForgeError(f"no change request can be opened for {new.branch}: {answer.message}")
        return there

    async def ready(self, request: Request) -> None:
        path = f"R/merge_requests/{request.number}"
        title = text(row((await self._site.get(path)).json()), "title")
        if plain_title(title) != title:
            await self._site.ask(Ask("PUT", path, body={"title": plain_title(title)}))

    async def comment(self, number: str, text: str) -> None:
        await self._site.ask(Ask("POST", f"R/merge_requests/{number}/notes", body={"body": text}, repeats=False))

    async def rules(self, into: str) -> MergeRules:
        """The project says how, for all its branches."""
        found = row((await self._site.get("R")).json())
        methods = METHODS.get(text(found, "merge_method"), ())
        squash = text(found, "squash_option")
        if squash == "always":
            methods = ("squash",)
        elif squash and squash != "never":
            methods = (*methods, "squash")
        return MergeRules(methods, yes(found, "merge_trains_enabled"))

    async def merge(self, request: Request, head: str, method: str) -> MergeAnswer:
        path = f"R/merge_requests/{request.number}"
        body = {"sha": head, "squash": method == "squash"}
        answer = await self._site.ask(Ask("PUT", f"{path}/merge", body=body), also=UNMERGED)
        found = row((await self._site.get(path)).json())
        now = read_merge_request(found)
        if now.state == "merged":
            return MergeAnswer(now.merged) if now.head == head else MergeAnswer(why=f"it was merged at {now.head[:12]}")
        said = scrub(answer.message, "") or f"it answered {answer.status}"
        waits = text(found, "detailed_merge_status") in WORKED_OUT or text(found, "state") == "locked"
        busy = now.state == "open" and now.head == head and (waits or answer.status in (200, 409))
        return MergeAnswer(why=said, busy=busy)

    async def enqueue(self, request: Request, head: str) -> MergeAnswer:
        path = f"R/merge_trains/merge_requests/{request.number}"
        answer = await self._site.ask(Ask("POST", path, body={"sha": head}), also=(400, *UNMERGED))
        if 200 <= answer.status < 300 or (await self.queued(request)).state != "out":
            return MergeAnswer()
        return MergeAnswer(why=scrub(answer.message, "") or f"it answered {answer.status}")

    async def queued(self, request: Request) -> QueueLook:
        found = row((await self._site.get(f"R/merge_requests/{request.number}")).json())
        now = read_merge_request(found)
        if now.state == "merged":
            return QueueLook("merged", now.merged)
        path = f"R/merge_trains/merge_requests/{request.number}"
        answer = await self._site.get(path, also=(403, 404))
        car = row(answer.json()) if answer.status == 200 else {}
        if not car or text(car, "status") == "skip_merged":
            return QueueLook("out", why="it is not on the merge train")
        return QueueLook("waiting", text(car, "pipeline", "sha"), text(car, "status"))


def open_gitlab(site: Site) -> Opened:
    async def meet() -> tuple[str, Rung]:
        return "", Pipelines(site)

    async def version() -> str:
        if not site.has_token:
            return ""
        answer = await site.get("version", also=(403, 404))
        return text(row(answer.json()), "version")

    return Opened("gitlab", site, MergeRequests(site), meet, version)
