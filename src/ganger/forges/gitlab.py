"""GitLab: pipelines as runs, their jobs, and merge requests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from urllib.parse import quote

from ganger.core.delivery.branch_rules import BranchRules
from ganger.core.delivery.forge_reviews import APPROVED, REWORK, Remark, Review
from ganger.core.model.ci import JobFact, RunFact, Word
from ganger.errors import ForgeError
from ganger.forges.api import REFUSED, Site
from ganger.forges.ci.reader import CiReader, deleted, job_log, ordered, unfinished, with_jobs
from ganger.forges.ci.run_list import ListCall, RunList
from ganger.forges.ci.words import gitlab
from ganger.forges.comments import Comments, keep_one
from ganger.forges.forge import Opened
from ganger.forges.http.client import ForgeAsk, scrub
from ganger.forges.pull_requests import plain_title
from ganger.forges.untrusted import Row, number, row, rows, strings, text, told, yes
from ganger.ports.forge import MergeAnswer, MergeRules, NewRequest, QueueLook, Request

SIZE = 100
DRAFT = "Draft: "
EVENTS = {"merge_request_event": "pull_request", "external_pull_request_event": "pull_request"}
STATES = {"opened": "open", "locked": "open", "merged": "merged", "closed": "closed"}
METHODS: Mapping[str, tuple[str, ...]] = {"merge": ("merge",), "rebase_merge": ("merge",), "ff": ("fast-forward",)}
# A squash does not change that.
MERGE_COMMITS = ("merge", "rebase_merge")
# GitLab is still checking whether it can be merged.
WORKED_OUT = frozenset({"unchecked", "checking", "preparing", "approvals_syncing"})
# GitLab says 401 where a token may not merge.
UNMERGED = (*REFUSED, 401, 406)


# Since 19.2 triggered pipelines are listed under the second name; the first will be removed one day.
TRIGGERS = ("bridges", "trigger_jobs")
MOST_CHILDREN = 20
# The name of a pipeline that has none, and of the job that holds its errors.
PIPELINE, CONFIGURATION = "pipeline", ".gitlab-ci.yml"


class Pipelines:
    """Child pipelines are not in this list: their jobs are read with those of the parent."""

    def __init__(self, site: Site) -> None:
        self._site = site
        call = ListCall("R/pipelines", "sha", read_pipeline, under="", size=SIZE, size_name="per_page")
        self._list = RunList(site, call)

    @property
    def notes(self) -> tuple[str, ...]:
        return ("only failed and cancelled jobs can be rerun",)

    async def runs(self, shas: Sequence[str]) -> Sequence[RunFact]:
        return await self._list.of(shas)

    async def jobs(self, run: RunFact) -> RunFact:
        listed = await self._site.pages(f"R/pipelines/{run.id}/jobs", {"per_page": SIZE}, size=SIZE)
        if listed is None:
            return deleted(run)
        rows = [found for found in listed.rows if text(found, "commit", "id") in ("", run.sha)]
        jobs = [read_job(found) for found in rows]
        if not jobs and run.word is Word.FAILURE:
            run = await self._with_errors(run)
        for child in await self._children(run.id):
            of_child = await self._site.pages(f"R/pipelines/{child}/jobs", {"per_page": SIZE}, size=SIZE)
            jobs += [replace(read_job(found), child=child) for found in (of_child.rows if of_child else ())]
        return with_jobs(run, jobs, listed.digest)

    async def _with_errors(self, run: RunFact) -> RunFact:
        """A pipeline whose configuration cannot be read has no jobs, but an error message."""
        found = row((await self._site.get(f"R/pipelines/{run.id}")).json())
        wrong = text(found, "yaml_errors")
        return replace(run, workflow=CONFIGURATION, unread=scrub(wrong, "")) if wrong else run

    async def _children(self, parent: str) -> list[str]:
        """Of this project only: a pipeline triggered in another project runs on that project's commits."""
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
        return unfinished(run) and await ordered(self._site, f"R/pipelines/{run.id}/retry")

    async def cancel(self, run: RunFact) -> bool:
        return await ordered(self._site, f"R/pipelines/{run.id}/cancel")


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
        workflow=text(found, "name") or PIPELINE,
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
        title=plain_title(text(found, "title")),
        body=text(found, "description"),
    )


class MergeRequests:
    """The title marks a draft."""

    def __init__(self, site: Site) -> None:
        self._site = site

    async def _source(self) -> tuple[str, str]:
        """The path of the branch's project, and its number if that is another project."""
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
        milestone = await self._milestone(new.milestone)
        body = {
            "source_branch": new.branch,
            "target_branch": new.into,
            "title": DRAFT + plain_title(new.title) if new.draft else new.title,
            "description": new.body,
            "labels": ",".join(new.labels),
            **({"milestone_id": milestone} if milestone else {}),
        }
        path, fork = await self._source()
        if fork:
            # A request belongs to its target project, and is opened in the project of its branch.
            body["target_project_id"] = text(row((await self._site.get("R")).json()), "id")
        answer = await self._site.ask(ForgeAsk("POST", f"{path}/merge_requests", body=body), also=(400, 409, 422))
        if 200 <= answer.status < 300:
            return read_merge_request(row(answer.json()))
        there = await self.find(new.branch, new.into)
        if there is None:
            raise ForgeError(f"cannot open a change request for {new.branch}: {answer.message}")
        return there

    async def ready(self, request: Request) -> None:
        path = f"R/merge_requests/{request.number}"
        title = text(row((await self._site.get(path)).json()), "title")
        if plain_title(title) != title:
            await self._site.ask(ForgeAsk("PUT", path, body={"title": plain_title(title)}))

    async def update(self, request: Request, new: NewRequest) -> None:
        path = f"R/merge_requests/{request.number}"
        now = row((await self._site.get(path)).json())
        title = DRAFT + plain_title(new.title) if read_merge_request(now).draft else new.title
        change: dict[str, object] = {} if text(now, "title") == title else {"title": title}
        if text(now, "description") != new.body:
            change["description"] = new.body
        if lacking := [name for name in new.labels if name not in strings(now, "labels")]:
            change["add_labels"] = ",".join(lacking)
        if not now.get("milestone") and (milestone := await self._milestone(new.milestone)):
            change["milestone_id"] = milestone
        if change:
            await self._site.ask(ForgeAsk("PUT", path, body=change))

    async def _milestone(self, title: str) -> int:
        if not title:
            return 0
        query: dict[str, str | int] = {"title": title, "state": "active", "include_ancestors": "true", "per_page": SIZE}
        listed = await self._site.pages("R/milestones", query, size=SIZE)
        return next((number(one, "id") for one in (listed.rows if listed else ()) if text(one, "title") == title), 0)

    async def reviews(self, request: Request) -> Sequence[Review]:
        """An approval names no commit: if a push shall reset approvals, the forge resets them itself."""
        path, me = f"R/merge_requests/{request.number}", await self._site.login()
        approved = await self._site.get(f"{path}/approvals", also=(403, 404))
        given = rows(row(approved.json()).get("approved_by")) if approved.status == 200 else []
        names = [text(one, "user", "username") for one in given]
        found = [Review(f"approval:{name}", name, APPROVED, counts=name not in ("", me)) for name in names]
        listed = await self._site.pages(f"{path}/reviewers", {"per_page": SIZE}, size=SIZE)
        against = [
            text(one, "user", "username")
            for one in (listed.rows if listed is not None else ())
            if text(one, "state") == "requested_changes"
        ]
        if against:
            said = await self._site.pages(f"{path}/discussions", {"per_page": SIZE}, size=SIZE)
            notes = [note for one in (said.rows if said is not None else ()) for note in rows(one.get("notes"))]
            found += [_objection(name, notes, request, counts=name not in ("", me)) for name in against]
        return found

    async def remark(self, request: Request, mark: str, words: str) -> str:
        notes = f"R/merge_requests/{request.number}/notes"
        found = await keep_one(self._site, Comments(notes, notes, "per_page", "PUT"), mark, words)
        return f"{request.url}#note_{text(found, 'id')}" if found is not None else ""

    async def branch_rules(self, branch: str) -> BranchRules:
        project = row((await self._site.get("R")).json())
        answer = await self._site.get(f"R/repository/branches/{quote(branch, safe='')}", also=(404,))
        found = row(answer.json()) if answer.status == 200 else {}
        pushes = await self._site.get("R/push_rule", also=(403, 404))
        rules = await self._site.get("R/approval_rules", also=(403, 404))
        unseen = "this token cannot read approval rules" if rules.status == 403 else ""
        needed = [number(one, "approvals_required") for one in rows(rules.json())] if rules.status == 200 else []
        return BranchRules(
            protected=yes(found, "protected"),
            may_push=told(found, "can_push"),
            approvals=max([number(project, "approvals_before_merge"), *needed]),
            linear_merge=text(project, "merge_method") == "ff",
            only_merges=text(project, "merge_method") in MERGE_COMMITS,
            signed=pushes.status == 200 and yes(row(pushes.json()), "reject_unsigned_commits"),
            unseen=unseen,
        )

    async def rules(self, into: str) -> MergeRules:
        """The project's settings decide for all branches."""
        found = row((await self._site.get("R")).json())
        methods = METHODS.get(text(found, "merge_method"), ())
        squash = text(found, "squash_option")
        if squash == "always":
            methods = ("squash",)
        elif squash and squash != "never":
            methods = (*methods, "squash")
        return MergeRules(methods, yes(found, "merge_trains_enabled"), text(found, "merge_method") in MERGE_COMMITS)

    async def merge(self, request: Request, head: str, method: str) -> MergeAnswer:
        path = f"R/merge_requests/{request.number}"
        body = {"sha": head, "squash": method == "squash"}
        answer = await self._site.ask(ForgeAsk("PUT", f"{path}/merge", body=body), also=UNMERGED)
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
        answer = await self._site.ask(ForgeAsk("POST", path, body={"sha": head}), also=(400, *UNMERGED))
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


def _objection(name: str, notes: Sequence[Row], request: Request, *, counts: bool) -> Review:
    """The open remarks of a reviewer who requests changes. The id holds the newest note, so a further one is news."""
    own = [note for note in notes if text(note, "author", "username") == name and not yes(note, "system")]
    open_ones = [note for note in own if not yes(note, "resolved")]
    remarks = tuple(
        Remark(text(note, "position", "new_path"), number(row(note.get("position")), "new_line"), text(note, "body"))
        for note in open_ones
        if text(note, "position", "new_path")
    )
    words = [text(note, "body") for note in open_ones if not text(note, "position", "new_path")]
    newest = max((number(note, "id") for note in own), default=0)
    url = f"{request.url}#note_{newest}" if newest else request.url
    return Review(f"{name}:{newest}", name, REWORK, counts=counts, text="\n\n".join(words), url=url, remarks=remarks)


def open_gitlab(site: Site) -> Opened:
    async def meet() -> tuple[str, CiReader]:
        return "", Pipelines(site)

    async def version() -> str:
        if not site.has_token:
            return ""
        answer = await site.get("version", also=(403, 404))
        return text(row(answer.json()), "version")

    return Opened("gitlab", site, MergeRequests(site), meet, version)
