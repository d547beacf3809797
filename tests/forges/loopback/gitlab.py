"""GitLab, by its documentation: pipelines, jobs, traces, merge requests."""

from __future__ import annotations

from typing import Any

from .flavour import NAME, OWNER, PROJECT, matching, page_of
from .gitlab_people import GitLabPeople, calls_of
from .http import Answer, Ask
from .train import Car
from .world import Asked, Made

REPO = rf"/projects/(?:{OWNER}%2F{NAME}|7)"
WORD = {
    "wait": "pending", "block": "created", "run": "running", "ok": "success", "fail": "failed", "cancel": "canceled",
    "skip": "skipped", "timeout": "failed", "approve": "manual", "odd": "dreaming", "neutral": "skipped",
    "allowed": "failed",
}  # fmt: skip
_ORDER = ("running", "pending", "created", "manual", "failed", "canceled", "dreaming")
_EVENT = {
    "push": "push", "pull_request": "merge_request_event", "workflow_dispatch": "web", "parent": "parent_pipeline",
    "merge_group": "merge_request_event",
}  # fmt: skip
_TRAIN = {"id": 1, "created_at": "", "updated_at": "", "merged_at": None, "duration": None}


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
        ("POST", f"{REPO}/pipelines/([0-9]+)/cancel", "cancel", "post_cancel"),
        ("GET", f"{REPO}/merge_requests", "pulls", "get_requests"),
        ("POST", f"{REPO}/merge_requests", "open", "post_request"),
        ("GET", f"{REPO}/merge_requests/([0-9]+)", "pull", "get_request"),
        ("PUT", f"{REPO}/merge_requests/([0-9]+)", "change", "put_request"),
        ("PUT", f"{REPO}/merge_requests/([0-9]+)/merge", "merge", "put_merge"),
        ("GET", f"{REPO}/pipelines/([0-9]+)/bridges", "bridges", "get_bridges"),
        ("GET", REPO, "repo", "get_project"),
        ("POST", f"{REPO}/merge_trains/merge_requests/([0-9]+)", "train", "post_car"),
        ("GET", f"{REPO}/merge_trains/merge_requests/([0-9]+)", "train", "get_car"),
        *calls_of(REPO),
    )

    def get_project(self, ask: Ask) -> Answer:
        methods = self.world.manners.methods
        squash = "default_off" if "squash" in methods else "never"
        method = "merge" if "merge" in methods else "ff"
        rule = self.world.protected.get("main")
        return Answer(200, {
            "id": 7, "path_with_namespace": PROJECT, "default_branch": "main", "merge_method": method,
            "squash_option": "always" if methods == ("squash",) else squash,
            "merge_pipelines_enabled": self.world.manners.train, "merge_trains_enabled": self.world.manners.train,
            "approvals_before_merge": rule.approvals if rule else 0, "only_allow_merge_if_pipeline_succeeds": False,
            "web_url": f"{self.address}/{PROJECT}",
        })  # fmt: skip

    def get_bridges(self, ask: Ask, run_id: str) -> Answer:
        """The jobs of a pipeline that start another one."""
        rows = [
            {"id": child.id + 5, "name": f"start {child.script.workflow}", "status": "success", "stage": "test",
             "downstream_pipeline": self.pipeline(child)}
            for child in self.world.children(int(run_id))
        ]  # fmt: skip
        return Answer(200, page_of(ask, rows))

    def post_car(self, ask: Ask, number: str) -> Answer:
        asked = self.world.numbered(int(number))
        if asked is None or not self.world.manners.train:
            return Answer(404, {"message": "404 Not found"})
        if asked.state != "open" or (ask.body or {}).get("sha", "") not in ("", self.world.head_of(asked)):
            return Answer(409, {"message": "SHA does not match HEAD of source branch"})
        car = self.world.train.enter(asked)
        return Answer(201, [self.car(car)]) if car else Answer(400, {"message": "cannot be added to the merge train"})

    def get_car(self, ask: Ask, number: str) -> Answer:
        asked = self.world.numbered(int(number))
        car = self.world.train.of(asked) if asked else None
        return Answer(200, self.car(car)) if car else Answer(404, {"message": "404 Not found"})

    def car(self, car: Car) -> dict[str, Any]:
        short = {name: self.shown(car.asked)[name] for name in ("id", "iid", "project_id", "title", "state", "web_url")}
        pipeline = {**self.pipeline(car.runs[0]), "sha": car.commit} if car.runs else None
        return {**_TRAIN, "merge_request": short, "pipeline": pipeline, "target_branch": car.asked.into,
                "status": "fresh"}  # fmt: skip

    def get_version(self, ask: Ask) -> Answer:
        return Answer(200, {"version": "18.2.0", "revision": "abcdef12345"})

    def get_user(self, ask: Ask) -> Answer:
        return Answer(200, {"id": 1, "username": "robot", "name": "Robot", "state": "active"})

    # --- pipelines --------------------------------------------------------------------------------------------------

    def get_pipelines(self, ask: Ask) -> Answer:
        wanted = ask.query.get("source", "")
        found = matching_source(self, ask)
        rows = [self.pipeline(run) for run in found if run.script.event != "parent" or wanted == "parent_pipeline"]
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

    def post_cancel(self, ask: Ask, run_id: str) -> Answer:
        run = self.world.find(int(run_id))
        if run is None:
            return Answer(404, {"message": "404 Not found"})
        self.world.stop(run)
        return Answer(200, self.pipeline(run))

    # --- merge requests ---------------------------------------------------------------------------------------------

    def shown(self, asked: Asked) -> dict[str, Any]:
        draft = asked.title.lower().startswith(("draft:", "wip:"))
        state = {"open": "opened"}.get(asked.state, asked.state)
        return {
            "id": asked.number + 900, "iid": asked.number, "project_id": 7, "title": asked.title, "draft": draft,
            "description": asked.body, "state": state, "source_branch": asked.branch, "target_branch": asked.into,
            "sha": self.world.head_of(asked) or None, "merge_commit_sha": asked.merged or None, "labels": asked.labels,
            "web_url": f"{self.address}/{PROJECT}/-/merge_requests/{asked.number}", "squash_commit_sha": None,
            "milestone": {"id": asked.milestone} if asked.milestone else None,
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
        methods = self.world.manners.methods
        how = "merge" if "merge" in methods else "squash" if "squash" in methods else "fast-forward"
        how = "squash" if (ask.body or {}).get("squash") else how
        made, told = self.world.merge(asked, head, delete=delete, how=how)
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
