"""Forgejo: 16 with jobs and logs, 13 with runs, tasks and statuses, 11 with tasks and statuses."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

from .flavour import NAME, OWNER, PROJECT, Calls, matching, page_of
from .gitea_people import GiteaPeople, calls_of
from .http import Answer, Ask
from .script import Run
from .world import LONG_AGO, Asked, Made

REPO = rf"/repos/{OWNER}/{NAME}"
WORD = {
    "wait": "waiting", "block": "blocked", "run": "running", "ok": "success", "fail": "failure", "cancel": "cancelled",
    "skip": "skipped", "timeout": "failure", "approve": "blocked", "odd": "hibernating", "neutral": "skipped",
    "allowed": "failure",
}  # fmt: skip
STATUS = {
    "wait": ("pending", "Waiting to run"), "block": ("pending", "Blocked by required conditions"),
    "run": ("pending", "Has started running"), "ok": ("success", "Successful in 3s"),
    "fail": ("failure", "Failing after 2s"), "cancel": ("failure", "Has been cancelled"),
    "skip": ("skipped", "Has been skipped"), "timeout": ("failure", "Failing after 3h0m0s"),
    "approve": ("pending", "Blocked by required conditions"), "odd": ("warning", "Hibernating"),
    "neutral": ("skipped", "Has been skipped"), "allowed": ("failure", "Failing after 2s"),
}  # fmt: skip
_ORDER = ("cancelled", "failure", "running", "waiting", "blocked")


_ALLOWED = {
    "merge": "allow_merge_commits", "squash": "allow_squash_merge", "rebase": "allow_rebase",
    "fast-forward": "allow_fast_forward_only_merge",
}  # fmt: skip


class GiteaLike(GiteaPeople):
    """What Forgejo and Gitea have in common: who is there, commit statuses, change requests."""

    base = "/api/v1"
    version = ""
    skipped_is_success = False
    nothing_yet = ""
    left_open = True
    common = (
        ("GET", "/version", "version", "get_version"),
        ("GET", "/user", "user", "get_user"),
        ("GET", "/settings/api", "settings", "get_settings"),
        ("GET", REPO, "repo", "get_repo"),
        ("GET", f"{REPO}/actions/tasks", "tasks", "get_tasks"),
        ("GET", f"{REPO}/commits/([^/]+)/status", "status", "get_status"),
        ("GET", f"{REPO}/commits/([^/]+)/statuses", "statuses", "get_statuses"),
        ("GET", f"{REPO}/statuses/([^/]+)", "statuses", "get_statuses"),
        ("GET", f"{REPO}/pulls", "pulls", "get_pulls"),
        ("POST", f"{REPO}/pulls", "open", "post_pull"),
        ("GET", f"{REPO}/pulls/([0-9]+)", "pull", "get_pull"),
        ("PATCH", f"{REPO}/pulls/([0-9]+)", "change", "patch_pull"),
        ("POST", f"{REPO}/pulls/([0-9]+)/merge", "merge", "post_merge"),
        *calls_of(REPO),
        ("GET", f"{REPO}/pulls/([^/]+)/(.+)", "pull", "get_pull_of"),
    )

    # --- who --------------------------------------------------------------------------------------------------------

    def get_version(self, ask: Ask) -> Answer:
        return Answer(200, {"version": self.version})

    def get_user(self, ask: Ask) -> Answer:
        return Answer(200, self.user())

    def get_settings(self, ask: Ask) -> Answer:
        return Answer(200, {"max_response_items": 50, "default_paging_num": 30, "default_git_trees_per_page": 1000})

    def get_repo(self, ask: Ask) -> Answer:
        return Answer(200, self.repo())

    def user(self) -> dict[str, Any]:
        return self.named(self.world.robot)

    def repo(self) -> dict[str, Any]:
        return {
            "id": 1, "name": NAME, "full_name": PROJECT, "default_branch": "main", "private": not self.public,
            "parent": None, "permissions": {"admin": False, "push": True, "pull": True}, "has_actions": True,
            "html_url": f"{self.address}/{PROJECT}", "clone_url": f"{self.address}/{PROJECT}.git",
            **{name: method in self.world.manners.methods for method, name in _ALLOWED.items()},
        }  # fmt: skip

    # --- tasks and statuses -----------------------------------------------------------------------------------------

    def get_tasks(self, ask: Ask) -> Answer:
        """One row per job a runner took, the newest first. A job that never ran has none."""
        rows = []
        for run in self.world.visible():
            for name, word in reversed(self.world.tell(run).items()):
                if word not in ("wait", "block", "skip", "approve"):
                    rows.append(self.task(run, name, word))
        return Answer(200, {"workflow_runs": page_of(ask, rows) or None, "total_count": len(rows)})

    def task(self, run: Made, name: str, word: str) -> dict[str, Any]:
        told = self.world.told_sha(run)
        stamp = self.world.stamp()
        row = {
            "id": run.job_id(name) + 5, "name": name, "head_branch": run.branch, "run_number": run.number,
            "event": run.script.event, "display_title": self.world.ground.subject(run.sha), "status": WORD[word],
            "workflow_id": run.script.workflow, "url": f"{self.address}/{PROJECT}/actions/runs/{run.number}",
            "created_at": stamp, "updated_at": stamp, "run_started_at": stamp,
        }  # fmt: skip
        return row if told is None else {**row, "head_sha": told}

    def rows(self, ref: str) -> list[dict[str, Any]]:
        """The newest status of each context. Runs somebody dispatched post none."""
        sha = ref if len(ref) == 40 else self.world.ground.git("rev-parse", "--verify", "-q", ref, check=False)
        found: dict[str, dict[str, Any]] = {}
        for run in reversed(self.world.visible()):
            if run.sha != sha or run.script.event == "workflow_dispatch":
                continue
            for place, (name, word) in enumerate(self.world.tell(run).items()):
                context = f"{run.script.workflow.partition('.')[0]} / {name} ({run.script.event})"
                found[context] = self.status_row(run, place, context, word)
        for said in self.world.statuses:
            if said.sha == sha:
                found[said.context] = self.said_row(said)
        return list(found.values())

    def status_row(self, run: Made, place: int, context: str, word: str) -> dict[str, Any]:
        state, text = STATUS[word]
        if state == "skipped" and self.skipped_is_success:
            state = "success"
        return {
            "id": run.first_job + place, "status": state, "description": text, "context": context, "creator": None,
            "target_url": f"/{PROJECT}/actions/runs/{run.number}/jobs/{place}",
            "url": f"{self.address}/api/v1/repos/{PROJECT}/statuses/{run.sha}",
            "created_at": self.world.stamp(), "updated_at": self.world.stamp(),
        }  # fmt: skip

    def get_status(self, ask: Ask, ref: str) -> Answer:
        rows = self.rows(ref)
        if not rows:
            empty = {"state": self.nothing_yet, "sha": "", "total_count": 0, "statuses": None, "repository": None}
            return Answer(200, {**empty, "commit_url": "", "url": ""})
        states = {row["status"] for row in rows}
        worst = next((state for state in ("failure", "pending") if state in states), "success")
        shown = page_of(ask, rows)
        body = {"state": worst, "sha": ref, "total_count": len(shown), "statuses": shown, "repository": self.repo()}
        return Answer(200, {**body, "commit_url": "", "url": ""}, {"X-Total-Count": str(len(rows))})

    def get_statuses(self, ask: Ask, ref: str) -> Answer:
        rows = list(reversed(self.rows(ref)))
        return Answer(200, page_of(ask, rows), {"X-Total-Count": str(len(rows))})

    # --- change requests --------------------------------------------------------------------------------------------

    def shown(self, asked: Asked) -> dict[str, Any]:
        link = f"{self.address}/{PROJECT}/pulls/{asked.number}"
        draft = asked.title.lower().startswith(("wip:", "draft:", "[wip]"))
        merged = asked.state == "merged"
        return {
            "id": asked.number + 900, "number": asked.number, "url": link, "html_url": link, "title": asked.title,
            "body": asked.body, "mergeable": asked.state == "open" and self.world.mergeable(asked),
            "state": "closed" if merged else asked.state, "draft": draft, "user": self.user(),
            "labels": [self.label(name) for name in asked.labels], "merged": merged, "assignees": None,
            "merged_at": self.world.stamp() if merged else None, "merge_commit_sha": asked.merged or None,
            "base": self.end(asked.into), "head": self.end(asked.branch, asked), "created_at": self.world.stamp(),
            "milestone": self.milestone_row(asked.milestone), "merge_base": "",
        }  # fmt: skip

    def end(self, branch: str, asked: Asked | None = None) -> dict[str, Any]:
        """Where the branch is gone, its name is in the label alone."""
        tip = self.world.ground.tip(branch)
        ref = branch if tip or asked is None else f"refs/pull/{asked.number}/head"
        sha = tip or (asked.head if asked else "")
        return {"label": branch, "ref": ref, "sha": sha, "repo_id": 1, "repo": self.repo()}

    def get_pulls(self, ask: Ask) -> Answer:
        state = ask.query.get("state", "open")
        found = [a for a in self.world.asked if state in ("all", "open" if a.state == "open" else "closed")]
        return Answer(200, page_of(ask, [self.shown(a) for a in reversed(found)]))

    def post_pull(self, ask: Ask) -> Answer:
        given = ask.body
        if not self.world.ground.tip(given["head"]):
            return Answer(404, {"message": "The target couldn't be found.", "url": ""})
        if self.world.request_of(given["head"], given["base"]):
            text = "pull request already exists for these targets"
            return Answer(409, {"message": text, "url": f"{self.address}/api/swagger"})
        made = self.world.open_request(given["title"], given.get("body", ""), given["head"], given["base"], draft=False)
        self.world.put_labels(made, given.get("labels") or [])
        made.milestone = given.get("milestone") or 0
        return Answer(201, self.shown(made))

    def get_pull(self, ask: Ask, number: str) -> Answer:
        asked = self.world.numbered(int(number))
        return Answer(200, self.shown(asked)) if asked else Answer(404, {"message": "not found"})

    def get_pull_of(self, ask: Ask, into: str, branch: str) -> Answer:
        asked = next((a for a in reversed(self.world.asked) if (a.branch, a.into) == (branch, into)), None)
        return Answer(200, self.shown(asked)) if asked else Answer(404, {"message": "not found"})

    def patch_pull(self, ask: Ask, number: str) -> Answer:
        asked = self.world.numbered(int(number))
        if asked is None:
            return Answer(404, {"message": "not found"})
        asked.title, asked.body = ask.body.get("title", asked.title), ask.body.get("body", asked.body)
        asked.state = ask.body.get("state", asked.state)
        asked.milestone = ask.body.get("milestone", asked.milestone)
        if "labels" in ask.body:
            asked.labels = []
            self.world.put_labels(asked, ask.body["labels"])
        return Answer(201, self.shown(asked))

    def post_merge(self, ask: Ask, number: str) -> Answer:
        asked = self.world.numbered(int(number))
        if asked is None:
            return Answer(404, {"message": "not found"})
        if asked.title.lower().startswith(("wip:", "draft:")):
            return Answer(405, {"message": "Work in progress PRs cannot be merged"})
        head, delete = ask.body.get("head_commit_id", ""), bool(ask.body.get("delete_branch_after_merge"))
        trouble = self.world.trouble(asked, head)
        if trouble is not None:
            return self.refused(trouble)
        how = {"fast-forward-only": "fast-forward"}.get(ask.body["Do"], ask.body["Do"])
        if how not in self.world.manners.methods:
            return Answer(405, {"message": "Merge style is not allowed", "url": ""})
        made, told = self.world.merge(asked, head, delete=delete, how=how)
        return Answer(200, lost=not told) if made else Answer(409, {"message": "Please try again later", "url": ""})


class Forgejo13(GiteaLike):
    """12 to 15: runs by commit, and no jobs of them."""

    version = "13.0.3+gitea-1.22.0"
    schema = "forgejo-v13.0.0.swagger.json"
    skipped_is_success = True
    newest_first = False
    calls: ClassVar[Calls] = (
        *GiteaLike.common,
        ("GET", f"{REPO}/actions/runs", "runs", "get_runs"),
        ("GET", f"{REPO}/actions/runs/([0-9]+)", "run", "get_run"),
        ("POST", f"{REPO}/actions/workflows/([^/]+)/dispatches", "dispatch", "post_dispatch"),
    )

    def get_runs(self, ask: Ask) -> Answer:
        runs = matching(self.world, ask)
        rows = [self.run(one) for one in (runs if self.newest_first else reversed(runs))]
        return Answer(200, {"workflow_runs": page_of(ask, rows) or None, "total_count": len(rows)})

    def get_run(self, ask: Ask, run_id: str) -> Answer:
        found = self.world.find(int(run_id))
        return Answer(200, self.run(found)) if found else Answer(404, {"message": "not found"})

    def run(self, run: Made) -> dict[str, Any]:
        words = self.world.words(run)
        script, stamp, told = run.script, self.world.stamp(), self.world.told_sha(run)
        dispatched = script.event == "workflow_dispatch"
        status = self.world.list_as(run, script.word or run_word(list(words.values())))
        row = {
            "id": run.id, "title": self.world.ground.subject(run.sha), "repository": self.repo(),
            "workflow_id": script.workflow, "index_in_repo": run.number, "trigger_user": self.user(), "ScheduleID": 0,
            "prettyref": run.branch, "is_ref_deleted": False, "is_fork_pull_request": False,
            "need_approval": "approve" in words.values(), "approved_by": 0, "event": "" if dispatched else script.event,
            "event_payload": '{"ref":"refs/heads/main"}', "trigger_event": script.event, "status": status,
            "started": stamp, "stopped": LONG_AGO if status in _ORDER[2:] else stamp, "created": stamp,
            "updated": stamp, "html_url": f"{self.address}/{PROJECT}/actions/runs/{run.number}",
        }  # fmt: skip
        return row if told is None else {**row, "commit_sha": told}

    def post_dispatch(self, ask: Ask, workflow: str) -> Answer:
        sha = self.world.ground.tip(ask.body["ref"])
        before = next((run for run in self.world.visible() if run.script.workflow == workflow), None)
        if not sha or before is None:
            return Answer(404, {"message": "not found"})
        made = self.world.begin(sha, ask.body["ref"], dispatched(before))
        if not ask.body.get("return_run_info"):
            return Answer(204)
        return Answer(201, {"id": made.id, "run_number": made.number, "jobs": list(before.script.jobs)})


class Forgejo16(Forgejo13):
    version = "16.0.0-dev+gitea-1.22.0"
    schema = "forgejo-v16.0.swagger.json"
    skipped_is_success = False
    newest_first = True
    calls: ClassVar[Calls] = (
        *Forgejo13.calls,
        ("GET", f"{REPO}/actions/runs/([0-9]+)/jobs", "jobs", "get_jobs"),
        ("GET", f"{REPO}/actions/jobs/([0-9]+)/logs", "log", "get_log"),
    )

    def get_jobs(self, ask: Ask, run_id: str) -> Answer:
        run = self.world.find(int(run_id))
        if run is None:
            return Answer(404, {"message": "not found"})
        return Answer(200, [self.job(run, name, word) for name, word in self.world.tell(run).items()])

    def job(self, run: Made, name: str, word: str) -> dict[str, Any]:
        never = word in ("wait", "block", "skip", "approve")
        number = run.job_id(name)
        return {
            "id": number, "run_id": run.id, "attempt": run.attempt, "handle": f"handle-{number}", "repo_id": 1,
            "owner_id": 1, "name": name, "needs": ["check"] if "push" in name else None, "runs_on": ["host"],
            "task_id": 0 if never else number + 5, "status": WORD[word],
        }  # fmt: skip

    def get_log(self, ask: Ask, job_id: str) -> Answer:
        text = self.world.log_of(int(job_id))
        if text is None:
            return Answer(404, {"message": "not found"})
        return Answer(200, text=text, headers={"Content-Type": "text/plain; charset=utf-8"})


class Forgejo11(GiteaLike):
    """8 to 11: tasks and statuses alone."""

    version = "11.0.1+gitea-1.22.0"
    schema = "forgejo-v11.0.0.swagger.json"
    skipped_is_success = True
    looks = frozenset({"tasks", "status"})
    calls: ClassVar[Calls] = GiteaLike.common


def run_word(words: list[str]) -> str:
    """Forgejo's own order: a run fails before its last jobs are through, and is a success though some were skipped."""
    told = [WORD[word] for word in words]
    if told and set(told) == {"skipped"}:
        return "skipped"
    if set(told) <= {"success", "skipped"}:
        return "success"
    return next((word for word in _ORDER if word in told), "unknown")


def dispatched(run: Made) -> Run:
    """The same workflow, started by hand: its mirror is for pushes only."""
    jobs = {name: "run skip" if "push" in name else "run ok" for name in run.script.jobs}
    return replace(run.script, jobs=jobs, event="workflow_dispatch", again=())
