"""Gitea 1.25 (runs and jobs like GitHub's) and 1.27 (and it can run again)."""

from __future__ import annotations

from typing import Any, ClassVar

from .flavour import PROJECT, Calls, completed, matching, page_of
from .forgejo import REPO, GiteaLike
from .http import Answer, Ask
from .world import LONG_AGO, Made

STATUS = {
    "wait": ("queued", ""), "block": ("waiting", ""), "run": ("in_progress", ""), "ok": ("completed", "success"),
    "fail": ("completed", "failure"), "cancel": ("completed", "cancelled"), "skip": ("completed", "skipped"),
    "timeout": ("completed", "timed_out"), "approve": ("completed", "action_required"),
    "neutral": ("completed", "neutral"), "odd": ("completed", "hibernated"), "allowed": ("completed", "failure"),
}  # fmt: skip


class Gitea25(GiteaLike):
    version = "1.25.5"
    schema = "gitea-v1.25.5.swagger.json"
    nothing_yet = "pending"
    # Its log alone says that a workflow cannot be read.
    unparsed_as = ""
    calls: ClassVar[Calls] = (
        *GiteaLike.common,
        ("GET", f"{REPO}/actions/runs", "runs", "get_runs"),
        ("GET", f"{REPO}/actions/runs/([0-9]+)", "run", "get_run"),
        ("GET", f"{REPO}/actions/runs/([0-9]+)/jobs", "jobs", "get_jobs"),
        ("GET", f"{REPO}/actions/jobs/([0-9]+)/logs", "log", "get_log"),
    )

    def get_runs(self, ask: Ask) -> Answer:
        rows = [self.run(run) for run in matching(self.world, ask)]
        return Answer(200, {"workflow_runs": page_of(ask, rows), "total_count": len(rows)})

    def get_run(self, ask: Ask, run_id: str) -> Answer:
        found = self.world.find(int(run_id))
        return Answer(200, self.run(found)) if found else Answer(404, {"message": "not found"})

    def run(self, run: Made) -> dict[str, Any]:
        status, conclusion = completed(self.world.words(run))
        told, stamp = self.world.told_sha(run), self.world.stamp()
        link = f"{self.address}/api/v1/repos/{PROJECT}/actions/runs/{run.id}"
        row = {
            "id": run.id, "url": link, "html_url": f"{self.address}/{PROJECT}/actions/runs/{run.number}",
            "display_title": self.world.ground.subject(run.sha),
            "path": f"{run.script.workflow}@refs/heads/{run.branch}",
            "event": run.script.event, "run_attempt": run.attempt, "run_number": run.number, "repository_id": 1,
            "head_branch": run.branch, "status": run.script.word or status, "actor": self.user(),
            "repository": self.repo(), "started_at": stamp, "completed_at": stamp if conclusion else LONG_AGO,
        }  # fmt: skip
        if conclusion:
            row["conclusion"] = conclusion
        return row if told is None else {**row, "head_sha": told}

    def get_jobs(self, ask: Ask, run_id: str) -> Answer:
        run = self.world.find(int(run_id))
        if run is None:
            return Answer(404, {"message": "not found"})
        rows = [self.job(run, name, word) for name, word in self.world.tell(run).items()]
        return Answer(200, {"jobs": page_of(ask, rows), "total_count": len(rows)})

    def job(self, run: Made, name: str, word: str) -> dict[str, Any]:
        status, conclusion = STATUS[word]
        number, stamp = run.job_id(name), self.world.stamp()
        link = f"{self.address}/api/v1/repos/{PROJECT}/actions"
        row = {
            "id": number, "url": f"{link}/jobs/{number}", "run_id": run.id, "run_url": f"{link}/runs/{run.id}",
            "html_url": f"{self.address}/{PROJECT}/actions/runs/{run.number}/jobs/0", "name": name, "labels": ["host"],
            "run_attempt": run.attempt, "head_sha": run.sha, "head_branch": run.branch, "status": status,
            "steps": None, "created_at": stamp, "started_at": stamp,
        }  # fmt: skip
        return {**row, "conclusion": conclusion, "completed_at": stamp} if conclusion else row

    def get_log(self, ask: Ask, job_id: str) -> Answer:
        text = self.world.log_of(int(job_id))
        if text is None:
            return Answer(404, {"message": "not found"})
        return Answer(200, text=text, headers={"Content-Type": "text/plain; charset=utf-8"})


class Gitea27(Gitea25):
    version = "1.27.2"
    schema = "gitea-v1.27.2.swagger.json"
    calls: ClassVar[Calls] = (
        *Gitea25.calls,
        ("POST", f"{REPO}/actions/runs/([0-9]+)/rerun", "rerun", "post_rerun"),
        ("POST", f"{REPO}/actions/runs/([0-9]+)/rerun-failed-jobs", "rerun", "post_rerun"),
    )

    def post_rerun(self, ask: Ask, run_id: str) -> Answer:
        run = self.world.find(int(run_id))
        if run is None:
            return Answer(404, {"message": "not found"})
        return Answer(201, self.run(run)) if self.world.again(run) else Answer(409, {"message": "it still runs"})
