"""GitHub, by its published schema; what the schema needs and nobody reads comes from its published examples."""

from __future__ import annotations

import copy
from typing import Any

from .flavour import NAME, OWNER, PROJECT, completed, matching, page_of
from .github_people import GitHubPeople, calls_of
from .http import Answer, Ask
from .schemas import examples, published, smallest
from .world import Asked, Made

REPO = rf"/v3/repos/{OWNER}/{NAME}"
STATUS: dict[str, tuple[str, str | None]] = {
    "wait": ("queued", None), "run": ("in_progress", None), "ok": ("completed", "success"),
    "fail": ("completed", "failure"), "cancel": ("completed", "cancelled"), "skip": ("completed", "skipped"),
    "timeout": ("completed", "timed_out"), "approve": ("completed", "action_required"),
    "neutral": ("completed", "neutral"), "allowed": ("completed", "failure"),
}  # fmt: skip


class GitHub(GitHubPeople):
    schema = "github-23.0.2.openapi.json"
    base = "/api"
    published_under = "/api/v3"
    tags = True
    unparsed_as = "bare"
    protected_says = "error: GH006: Protected branch update failed for refs/heads/"
    calls = (
        ("GET", "/v3/user", "user", "get_user"),
        ("GET", "/v3/rate_limit", "limits", "get_limits"),
        ("GET", f"{REPO}/actions/runs", "runs", "get_runs"),
        ("GET", f"{REPO}/actions/runs/([0-9]+)", "run", "get_run"),
        ("GET", f"{REPO}/actions/runs/([0-9]+)/jobs", "jobs", "get_jobs"),
        ("GET", f"{REPO}/actions/jobs/([0-9]+)/logs", "log", "get_log"),
        ("GET", r"/elsewhere/([0-9]+)\.txt", "stored", "get_stored"),
        ("POST", f"{REPO}/actions/runs/([0-9]+)/rerun", "rerun", "post_rerun"),
        ("POST", f"{REPO}/actions/runs/([0-9]+)/rerun-failed-jobs", "rerun", "post_rerun"),
        ("POST", f"{REPO}/actions/runs/([0-9]+)/cancel", "cancel", "post_cancel"),
        ("GET", f"{REPO}/pulls", "pulls", "get_pulls"),
        ("POST", f"{REPO}/pulls", "open", "post_pull"),
        ("GET", f"{REPO}/pulls/([0-9]+)", "pull", "get_pull"),
        ("PATCH", f"{REPO}/pulls/([0-9]+)", "change", "patch_pull"),
        ("PUT", f"{REPO}/pulls/([0-9]+)/merge", "merge", "put_merge"),
        *calls_of(REPO),
        ("POST", "/graphql", "change", "post_graphql"),
        ("GET", REPO, "repo", "get_repo"),
        ("GET", f"{REPO}/rules/branches/([^/]+)", "rules", "get_rules"),
    )

    def denied(self, ask: Ask, kind: str) -> Answer | None:
        # Logs lie on another host, which knows no token and must not be told one.
        if kind == "stored":
            return (
                Answer(400, {"message": "only one auth mechanism allowed"}) if "authorization" in ask.headers else None
            )
        found = super().denied(ask, kind)
        return (
            None
            if found is None
            else Answer(401, {"message": "Bad credentials", "documentation_url": "", "status": "401"})
        )

    def get_user(self, ask: Ask) -> Answer:
        shared = published(self.schema).document["components"]["schemas"]
        return Answer(
            200, {**smallest({"$ref": "#/x/public-user"}, shared), "login": "robot", "user_view_type": "public"}
        )

    def get_limits(self, ask: Ask) -> Answer:
        return Answer(200, copy.deepcopy(examples()["rate-limit-overview"]["value"]))

    # --- runs -------------------------------------------------------------------------------------------------------

    def get_runs(self, ask: Ask) -> Answer:
        rows = [self.run(run) for run in matching(self.world, ask)]
        return Answer(200, {"total_count": len(rows), "workflow_runs": page_of(ask, rows)})

    def get_run(self, ask: Ask, run_id: str) -> Answer:
        found = self.world.find(int(run_id))
        return Answer(200, self.run(found)) if found else Answer(404, {"message": "Not Found"})

    def run(self, run: Made) -> dict[str, Any]:
        status, conclusion = completed(self.world.words(run))
        if run.unparsed:
            status, conclusion = "completed", "startup_failure"
            self.world.tell(run)
        self.world.list_as(run, f"{run.attempt} {status} {conclusion}")
        row = copy.deepcopy(examples()["workflow-run"]["value"])
        link = f"{self.address}/api/v3/repos/{PROJECT}/actions/runs/{run.id}"
        return {
            **row, "id": run.id, "run_number": run.number, "run_attempt": run.attempt, "event": run.script.event,
            "status": run.script.word or status, "conclusion": conclusion, "head_branch": run.branch, "url": link,
            "head_sha": self.world.told_sha(run) or "", "path": f".github/workflows/{run.script.workflow}",
            "name": run.script.workflow.partition(".")[0],
            "html_url": f"{self.address}/{PROJECT}/actions/runs/{run.id}",
            "jobs_url": f"{link}/jobs", "logs_url": f"{link}/logs", "rerun_url": f"{link}/rerun", "pull_requests": [],
            "created_at": self.world.stamp(), "updated_at": self.world.stamp(), "run_started_at": self.world.stamp(),
        }  # fmt: skip

    def get_jobs(self, ask: Ask, run_id: str) -> Answer:
        run = self.world.find(int(run_id))
        if run is None:
            return Answer(404, {"message": "Not Found"})
        # A job that needs another one is not there before that is through.
        begun = [(name, word) for name, word in self.world.tell(run).items() if word != "block"]
        rows = [self.job(run, name, word, run.attempt) for name, word in begun]
        if ask.query.get("filter") == "all":
            for attempt in range(1, run.attempt):
                ended = run.script.words(attempt, 10_000)
                rows += [self.job(run, name, word, attempt) for name, word in ended.items()]
        return Answer(200, {"total_count": len(rows), "jobs": page_of(ask, rows)})

    def job(self, run: Made, name: str, word: str, attempt: int) -> dict[str, Any]:
        status, conclusion = STATUS[word]
        row = copy.deepcopy(examples()["job"]["value"])
        number, stamp = run.job_id(name, attempt), self.world.stamp()
        link = f"{self.address}/api/v3/repos/{PROJECT}/actions"
        return {
            **row, "id": number, "run_id": run.id, "run_url": f"{link}/runs/{run.id}", "run_attempt": attempt,
            "head_sha": run.sha, "head_branch": run.branch, "name": name, "status": status, "conclusion": conclusion,
            "url": f"{link}/jobs/{number}", "html_url": f"{self.address}/{PROJECT}/actions/runs/{run.id}/job/{number}",
            "created_at": stamp, "started_at": stamp, "completed_at": stamp if conclusion else None, "steps": [],
        }  # fmt: skip

    def get_log(self, ask: Ask, job_id: str) -> Answer:
        if self.world.log_of(int(job_id)) is None:
            return Answer(404, {"message": "Not Found"})
        elsewhere = self.address.replace("127.0.0.1", "localhost")
        return Answer(302, headers={"Location": f"{elsewhere}/api/elsewhere/{job_id}.txt"})

    def get_stored(self, ask: Ask, job_id: str) -> Answer:
        text = self.world.log_of(int(job_id)) or ""
        return Answer(200, text=text, headers={"Content-Type": "text/plain; charset=utf-8"})

    def post_rerun(self, ask: Ask, run_id: str) -> Answer:
        run = self.world.find(int(run_id))
        if run is None:
            return Answer(404, {"message": "Not Found"})
        return (
            Answer(201, {}) if self.world.again(run) else Answer(403, {"message": "This workflow is already running"})
        )

    def post_cancel(self, ask: Ask, run_id: str) -> Answer:
        run = self.world.find(int(run_id))
        if run is None:
            return Answer(404, {"message": "Not Found"})
        return Answer(202, {}) if self.world.stop(run) else Answer(409, {"message": "Cannot cancel a completed run"})

    # --- change requests --------------------------------------------------------------------------------------------

    def shown(self, asked: Asked, *, whole: bool = True) -> dict[str, Any]:
        name = "pull-request" if whole else "pull-request-simple-items"
        found = copy.deepcopy(examples()[name]["value"])
        row: dict[str, Any] = found if whole else found[0]
        merged, link = asked.state == "merged", f"{self.address}/{PROJECT}/pull/{asked.number}"
        for end, branch in (("head", asked.branch), ("base", asked.into)):
            row[end].update(
                label=f"{OWNER}:{branch}", ref=branch, sha=self.world.ground.tip(branch) or asked.head or "0" * 40
            )
            row[end]["repo"].update(name=NAME, full_name=PROJECT)
        row.update(
            number=asked.number, html_url=link, url=f"{self.address}/api/v3/repos/{PROJECT}/pulls/{asked.number}",
            title=asked.title, body=asked.body, state="closed" if merged else asked.state, draft=asked.draft,
            merged_at=self.world.stamp() if merged else None, merge_commit_sha=asked.merged or None,
            labels=[self.label(name) for name in asked.labels], node_id=f"PR_{asked.number}",
            requested_teams=[], milestone=row["milestone"] if asked.milestone else None,
        )  # fmt: skip
        if whole:
            row["merged"] = merged
            row["mergeable"], row["mergeable_state"] = self.merge_state(asked)
        return row

    def get_pulls(self, ask: Ask) -> Answer:
        state, head = ask.query.get("state", "open"), ask.query.get("head", "")
        found = [a for a in self.world.asked if state in ("all", "open" if a.state == "open" else "closed")]
        found = [a for a in found if head in ("", f"{OWNER}:{a.branch}") and ask.query.get("base", a.into) == a.into]
        return Answer(200, page_of(ask, [self.shown(a, whole=False) for a in reversed(found)]))

    def post_pull(self, ask: Ask) -> Answer:
        given = ask.body
        branch = given["head"].rpartition(":")[2]
        if not self.world.ground.tip(branch):
            return self.invalid("head", "invalid")
        if self.world.request_of(branch, given["base"]):
            return self.invalid("head", "custom", f"A pull request already exists for {OWNER}:{branch}.")
        draft = bool(given.get("draft"))
        made = self.world.open_request(given["title"], given.get("body") or "", branch, given["base"], draft=draft)
        return Answer(201, self.shown(made))

    def invalid(self, name: str, code: str, text: str = "") -> Answer:
        error = {"resource": "PullRequest", "field": name, "code": code, **({"message": text} if text else {})}
        return Answer(
            422, {"message": "Validation Failed", "errors": [error], "documentation_url": "", "status": "422"}
        )

    def get_pull(self, ask: Ask, number: str) -> Answer:
        asked = self.world.numbered(int(number))
        return Answer(200, self.shown(asked)) if asked else Answer(404, {"message": "Not Found"})

    def patch_pull(self, ask: Ask, number: str) -> Answer:
        asked = self.world.numbered(int(number))
        if asked is None:
            return Answer(404, {"message": "Not Found"})
        asked.title, asked.body = ask.body.get("title", asked.title), ask.body.get("body", asked.body)
        asked.state = ask.body.get("state", asked.state)
        return Answer(200, self.shown(asked))

    def post_graphql(self, ask: Ask) -> Answer:
        """A draft becomes ready; a request goes into the merge queue, and it is asked where it stands there."""
        said = f"{ask.body.get('query', '')} {ask.body.get('variables', '')}"
        if "mergeQueueEntry" in said:
            return self.queue_entry(self.world.numbered(ask.body["variables"]["number"]))
        if "enqueuePullRequest" in said:
            return self.enqueue(ask.body["variables"])
        asked = next((a for a in self.world.asked if f"PR_{a.number}" in said), None)
        if asked is None or "markPullRequestReadyForReview" not in said:
            return Answer(200, {"errors": [{"message": "Could not resolve to a node"}]})
        asked.draft = False
        return Answer(200, {"data": {"markPullRequestReadyForReview": {"pullRequest": {"isDraft": False}}}})

    def get_repo(self, ask: Ask) -> Answer:
        shared = published(self.schema).document["components"]["schemas"]
        names = {"merge": "allow_merge_commit", "squash": "allow_squash_merge", "rebase": "allow_rebase_merge"}
        allowed = {name: method in self.world.manners.methods for method, name in names.items()}
        row = smallest({"$ref": "#/x/full-repository"}, shared)
        rights = {"admin": False, "maintain": False, "push": True, "triage": True, "pull": True}
        told = {"name": NAME, "full_name": PROJECT, "default_branch": "main", "permissions": rights}
        return Answer(200, {**row, **told, **allowed})

    def get_rules(self, ask: Ask, branch: str) -> Answer:
        """Protection here is of the old kind, which has no rule sets; a queue is one."""
        kinds = ["merge_queue"] if self.world.manners.train else []
        rows = [{"type": kind, "ruleset_source_type": "Repository", "ruleset_source": PROJECT, "ruleset_id": 5}
                for kind in kinds]  # fmt: skip
        return Answer(200, rows)

    def enqueue(self, given: dict[str, Any]) -> Answer:
        asked = next((a for a in self.world.asked if f"PR_{a.number}" == given["id"]), None)
        head = self.world.head_of(asked) if asked else ""
        if asked is None or asked.state != "open" or asked.draft or given["head"] != head:
            return Answer(200, {"errors": [{"message": "The pull request cannot be added to the merge queue"}]})
        if self.world.train.of(asked) is not None:
            return Answer(200, {"errors": [{"message": "Pull request is already in the queue"}]})
        if self.world.train.enter(asked) is None:
            return Answer(200, {"errors": [{"message": "The pull request has conflicts"}]})
        return Answer(200, {"data": {"enqueuePullRequest": {"clientMutationId": None}}})

    def queue_entry(self, asked: Asked | None) -> Answer:
        if asked is None:
            return Answer(200, {"data": {"repository": {"pullRequest": None}}, "errors": [{"message": "NOT_FOUND"}]})
        car = self.world.train.of(asked)
        entry = None if car is None else {"state": "AWAITING_CHECKS", "headCommit": {"oid": car.commit}}
        merged = {"oid": asked.merged} if asked.state == "merged" else None
        row = {"state": asked.state.upper(), "mergeCommit": merged, "mergeQueueEntry": entry}
        return Answer(200, {"data": {"repository": {"pullRequest": row}}})

    def put_merge(self, ask: Ask, number: str) -> Answer:
        asked = self.world.numbered(int(number))
        if asked is None:
            return Answer(404, {"message": "Not Found"})
        if asked.draft:
            return Answer(405, {"message": "Pull Request is still a draft"})
        trouble = self.world.trouble(asked, ask.body.get("sha", ""))
        if trouble is not None:
            return self.refused(trouble)
        how = ask.body.get("merge_method", "merge")
        if how not in self.world.manners.methods:
            return Answer(405, {"message": f"{how} commits are not allowed on this repository."})
        commit, told = self.world.merge(asked, ask.body.get("sha", ""), how=how)
        if not commit:
            return Answer(405, {"message": "Base branch was modified. Review and try the merge again."})
        merged = {"sha": commit, "merged": True, "message": "Pull Request successfully merged"}
        return Answer(200, merged, lost=not told)
