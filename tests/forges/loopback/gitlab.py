"""GitLab, by its documentation: pipelines, jobs, traces, merge requests."""

from __future__ import annotations

from typing import Any

from .flavour import NAME, OWNER, PROJECT, matching, page_of
from .gitlab_people import GitLabPeople, calls_of
from .http import Answer, Ask
from .world import Asked, Made

REPO = rf"/projects/(?:{OWNER}%2F{NAME}|7)"
WORD = {
    "wait": "pending", "block": "created", "run": "running", "ok": "success", "fail": "failed", "cancel": "canceled",
    "skip": "skipped", "timeout": "failed", "approve": "manual", "odd": "dreaming", "neutral": "skipped",
    "allowed": "failed",
}  # fmt: skip
_ORDER = ("running", "pending", "created", "manual", "failed", "canceled", "dreaming")
_EVENT = {"push": "push", "pull_request": "merge_request_event", "workflow_dispatch": "web"}


class GitLab(GitLabPeople):
    base = "/api/v4"
    unparsed_as = "bare"
    closes_with_branch = False
    protected_says = "GitLab: You are not allowed to push code to protected branches on this project:"
    calls = (
        ("GET", "/version", "version", "get_version"),
        ("GET", "/user", "user", "get_user"),
        ("GET", f"{REPO}/pipelines", "runs", "get_pipelines"),
        ("GET", f"{REPO}/pipelines/([0-9]+)", "run", "get_pipeline"),
        ("GET", f"{REPO}/pipelines/([0-9]+)/jobs", "jobs", "get_jobs"),
        ("GET", f"{REPO}/jobs/([0-9]+)/trace", "log", "get_trace"),
        ("POST", f"{REPO}/pipelines/([0-9]+)/retry", "rerun", "post_retry"),
        ("GET", f"{REPO}/merge_requests", "pulls", "get_requests"),
        ("POST", f"{REPO}/merge_requests", "open", "post_request"),
        ("GET", f"{REPO}/merge_requests/([0-9]+)", "pull", "get_request"),
        ("PUT", f"{REPO}/merge_requests/([0-9]+)", "change", "put_request"),
        ("PUT", f"{REPO}/merge_requests/([0-9]+)/merge", "merge", "put_merge"),
        *calls_of(REPO),
    )

    def get_version(self, ask: Ask) -> Answer:
        return Answer(200, {"version": "18.2.0", "revision": "abcdef12345"})

    def get_user(self, ask: Ask) -> Answer:
        return Answer(200, {"id": 1, "username": "robot", "name": "Robot", "state": "active"})

    # --- pipelines --------------------------------------------------------------------------------------------------

    def get_pipelines(self, ask: Ask) -> Answer:
        wanted = ask.query.get("source", "")
        rows = [self.pipeline(run) for run in matching_source(self, ask)]
        rows = [row for row in rows if wanted in ("", row["source"])]
        return Answer(200, page_of(ask, rows), {"X-Total": str(len(rows))})

    def get_pipeline(self, ask: Ask, run_id: str) -> Answer:
        found = self.world.find(int(run_id))
        if found is None:
            return Answer(404, {"message": "404 Not found"})
        wrong = "jobs:test config should be a hash" if found.unparsed else None
        return Answer(200, {**self.pipeline(found), "yaml_errors": wrong})

    def pipeline(self, run: Made) -> dict[str, Any]:
        told, words = self.world.told_sha(run), self.world.words(run)
        link = f"{self.address}/{PROJECT}/-/pipelines/{run.id}"
        status = "failed" if run.unparsed else pipeline_word(words)
        if run.unparsed:
            self.world.tell(run)
        row = {
            "id": run.id, "iid": run.number, "project_id": 7, "status": run.script.word or status,
            "source": _EVENT[run.script.event], "ref": run.branch, "web_url": link, "name": None,
            "created_at": self.world.stamp(), "updated_at": self.world.stamp(),
        }  # fmt: skip
        return row if told is None else {**row, "sha": told}

    def get_jobs(self, ask: Ask, run_id: str) -> Answer:
        run = self.world.find(int(run_id))
        if run is None:
            return Answer(404, {"message": "404 Not found"})
        rows = [self.job(run, name, word) for name, word in self.world.tell(run).items()]
        return Answer(200, page_of(ask, rows), {"X-Total": str(len(rows))})

    def job(self, run: Made, name: str, word: str) -> dict[str, Any]:
        number, stamp = run.job_id(name), self.world.stamp()
        pipeline = {"id": run.id, "project_id": 7, "ref": run.branch, "sha": run.sha, "status": "running"}
        row = {
            "id": number, "name": name, "stage": "test", "status": WORD[word], "ref": run.branch, "tag": False,
            "allow_failure": word == "allowed", "created_at": stamp, "started_at": stamp, "finished_at": None,
            "duration": None, "queued_duration": 0.1, "coverage": None, "pipeline": pipeline,
            "web_url": f"{self.address}/{PROJECT}/-/jobs/{number}",
        }  # fmt: skip
        return {**row, "failure_reason": "job_execution_timeout"} if word == "timeout" else row

    def get_trace(self, ask: Ask, job_id: str) -> Answer:
        text = self.world.log_of(int(job_id))
        if text is None:
            return Answer(404, {"message": "404 Not found"})
        return Answer(200, text=text, headers={"Content-Type": "text/plain"})

    def post_retry(self, ask: Ask, run_id: str) -> Answer:
        run = self.world.find(int(run_id))
        if run is None:
            return Answer(404, {"message": "404 Not found"})
        # Only what failed or was stopped is run again; where nothing did, nothing happens.
        if {"fail", "timeout", "cancel"} & set(self.world.words(run).values()):
            self.world.again(run)
        return Answer(201, self.pipeline(run))

    # --- merge requests ---------------------------------------------------------------------------------------------

    def shown(self, asked: Asked) -> dict[str, Any]:
        draft = asked.title.lower().startswith(("draft:", "wip:"))
        state = {"open": "opened"}.get(asked.state, asked.state)
        return {
            "id": asked.number + 900, "iid": asked.number, "project_id": 7, "title": asked.title, "draft": draft,
            "description": asked.body, "state": state, "source_branch": asked.branch, "target_branch": asked.into,
            "sha": self.world.head_of(asked) or None, "merge_commit_sha": asked.merged or None, "labels": asked.labels,
            "web_url": f"{self.address}/{PROJECT}/-/merge_requests/{asked.number}", "squash_commit_sha": None,
            "detailed_merge_status": self.merge_status(asked), "created_at": self.world.stamp(),
        }  # fmt: skip

    def get_requests(self, ask: Ask) -> Answer:
        found = []
        for asked in reversed(self.world.asked):
            state = {"open": "opened"}.get(asked.state, asked.state)
            if ask.query.get("state", "all") not in ("all", state):
                continue
            if ask.query.get("source_branch", asked.branch) != asked.branch:
                continue
            if ask.query.get("target_branch", asked.into) == asked.into:
                found.append(self.shown(asked))
        return Answer(200, page_of(ask, found))

    def post_request(self, ask: Ask) -> Answer:
        given = ask.body
        branch, into = given["source_branch"], given["target_branch"]
        if self.world.request_of(branch, into):
            text = f"Another open merge request already exists for this source branch: !{branch}"
            return Answer(409, {"message": [text]})
        made = self.world.open_request(given["title"], given.get("description", ""), branch, into, draft=False)
        self.world.put_labels(made, _labels(given.get("labels")))
        made.milestone = given.get("milestone_id") or 0
        return Answer(201, self.shown(made))

    def get_request(self, ask: Ask, number: str) -> Answer:
        asked = self.world.numbered(int(number))
        return Answer(200, self.shown(asked)) if asked else Answer(404, {"message": "404 Not found"})

    def put_request(self, ask: Ask, number: str) -> Answer:
        asked = self.world.numbered(int(number))
        if asked is None:
            return Answer(404, {"message": "404 Not found"})
        asked.title, asked.body = ask.body.get("title", asked.title), ask.body.get("description", asked.body)
        self.world.put_labels(asked, _labels(ask.body.get("labels") or ask.body.get("add_labels")))
        asked.milestone = ask.body.get("milestone_id", asked.milestone) or 0
        if ask.body.get("state_event") == "close":
            asked.state = "closed"
        return Answer(200, self.shown(asked))

    def put_merge(self, ask: Ask, number: str) -> Answer:
        asked = self.world.numbered(int(number))
        if asked is None:
            return Answer(404, {"message": "404 Not found"})
        if asked.title.lower().startswith("draft:"):
            return Answer(405, {"message": "405 Method Not Allowed"})
        head, delete = (ask.body or {}).get("sha", ""), bool((ask.body or {}).get("should_remove_source_branch"))
        trouble = self.world.trouble(asked, head)
        if trouble is not None:
            return self.refused(trouble)
        made, told = self.world.merge(asked, head, delete=delete)
        return (
            Answer(200, self.shown(asked), lost=not told)
            if made
            else Answer(405, {"message": "405 Method Not Allowed"})
        )


def matching_source(forge: GitLab, ask: Ask) -> list[Made]:
    plain = Ask(ask.method, ask.path, {k: v for k, v in ask.query.items() if k != "source"}, ask.headers)
    return matching(forge.world, plain, "sha")


def pipeline_word(words: dict[str, str]) -> str:
    told = {WORD[word] for word in words.values() if word != "allowed"}
    if told == {"skipped"}:
        return "skipped"
    return next((word for word in _ORDER if word in told), "success")


def _labels(given: object) -> list[str | int]:
    if isinstance(given, str):
        return [one for one in given.split(",") if one]
    return [str(one) for one in given] if isinstance(given, list) else []
