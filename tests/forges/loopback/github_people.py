"""People's side of GitHub: reviews, branches and their protection, labels, milestones, remarks."""

from __future__ import annotations

from typing import Any

from .flavour import NAME, PROJECT, Calls, Flavour, page_of
from .http import Answer, Ask
from .people import Comment, Remark, Review, Status
from .schemas import published, smallest
from .world import Asked, Trouble

STATE = {"approve": "APPROVED", "changes": "CHANGES_REQUESTED", "comment": "COMMENTED", "pending": "PENDING"}
_EVENT = {"APPROVE": "approve", "REQUEST_CHANGES": "changes", "COMMENT": "comment", "": "pending"}
_SAYS = {
    "approvals": "At least 1 approving review is required by reviewers with write access.",
    "rejected": "Changes requested by a reviewer with write access.",
    "checks": "Required status check is expected.",
    "behind": "The head branch is not up to date with the base branch.",
    "conflict": "Pull Request is not mergeable",
    "draft": "Pull Request is still a draft",
    "closed": "Pull Request is not mergeable",
}
GONE = Answer(404, {"message": "Not Found", "documentation_url": "", "status": "404"})


def calls_of(repo: str) -> Calls:
    one = f"{repo}/pulls/([0-9]+)"
    return (
        ("GET", f"{one}/reviews", "reviews", "get_reviews"),
        ("POST", f"{one}/reviews", "review", "post_review"),
        ("GET", f"{one}/reviews/([0-9]+)/comments", "remarks", "get_remarks"),
        ("GET", f"{one}/comments", "remarks", "get_all_remarks"),
        ("PUT", f"{one}/reviews/([0-9]+)/dismissals", "review", "put_dismissal"),
        ("PUT", f"{one}/update-branch", "update", "put_update"),
        ("GET", f"{repo}/branches/([^/]+)", "branch", "get_branch"),
        ("GET", f"{repo}/branches/([^/]+)/protection", "protections", "get_protection"),
        ("GET", f"{repo}/collaborators/([^/]+)/permission", "permission", "get_permission"),
        ("DELETE", f"{repo}/git/refs/heads/(.+)", "cleared", "delete_ref"),
        ("POST", f"{repo}/statuses/([^/]+)", "say", "post_status"),
        ("GET", f"{repo}/commits/([^/]+)/status", "status", "get_status"),
        ("GET", f"{repo}/labels", "labels", "get_labels"),
        ("POST", f"{repo}/labels", "labels", "post_label"),
        ("POST", f"{repo}/issues/([0-9]+)/labels", "labels", "post_labels"),
        ("GET", f"{repo}/milestones", "milestones", "get_milestones"),
        ("PATCH", f"{repo}/issues/([0-9]+)", "issue", "patch_issue"),
        ("GET", f"{repo}/issues/([0-9]+)/comments", "comments", "get_comments"),
        ("POST", f"{repo}/issues/([0-9]+)/comments", "comments", "post_comment"),
        ("PATCH", f"{repo}/issues/comments/([0-9]+)", "comments", "patch_comment"),
    )


class GitHubPeople(Flavour):
    def person(self, login: str) -> dict[str, Any]:
        return {"login": login, "id": 1, "type": "User"}

    # --- reviews ----------------------------------------------------------------------------------------------------

    def review_row(self, asked: Asked, one: Review) -> dict[str, Any]:
        link = f"{self.address}/{PROJECT}/pull/{asked.number}"
        return {
            "id": one.id, "node_id": f"PRR_{one.id}", "user": self.person(one.by), "body": one.body,
            "state": "DISMISSED" if one.dismissed else STATE[one.state], "commit_id": one.commit,
            "html_url": f"{link}#pullrequestreview-{one.id}", "pull_request_url": link, "_links": {},
            "submitted_at": self.world.stamp(), "author_association": "COLLABORATOR",
        }  # fmt: skip

    def remark_row(self, asked: Asked, review: Review, one: Remark) -> dict[str, Any]:
        link = f"{self.address}/{PROJECT}/pull/{asked.number}"
        return {
            "id": one.id, "node_id": f"PRRC_{one.id}", "pull_request_review_id": review.id, "path": one.path,
            "line": one.line, "original_line": one.line, "side": "RIGHT", "position": one.line, "body": one.body,
            "commit_id": review.commit, "original_commit_id": review.commit, "diff_hunk": "@@ -0,0 +1 @@",
            "user": self.person(review.by), "html_url": f"{link}#discussion_r{one.id}", "pull_request_url": link,
            "url": link, "_links": {}, "created_at": self.world.stamp(), "updated_at": self.world.stamp(),
            "author_association": "COLLABORATOR",
        }  # fmt: skip

    def get_reviews(self, ask: Ask, number: str) -> Answer:
        asked = self.world.numbered(int(number))
        return Answer(200, page_of(ask, [self.review_row(asked, r) for r in asked.reviews])) if asked else GONE

    def get_remarks(self, ask: Ask, number: str, review: str) -> Answer:
        asked = self.world.numbered(int(number))
        one = next((r for r in asked.reviews if r.id == int(review)), None) if asked else None
        return Answer(200, [self.remark_row(asked, one, r) for r in one.remarks]) if asked and one else GONE

    def get_all_remarks(self, ask: Ask, number: str) -> Answer:
        asked = self.world.numbered(int(number))
        rows = [self.remark_row(asked, one, r) for one in asked.reviews for r in one.remarks] if asked else []
        return Answer(200, page_of(ask, rows)) if asked else GONE

    def post_review(self, ask: Ask, number: str) -> Answer:
        asked = self.world.numbered(int(number))
        if asked is None:
            return GONE
        state = _EVENT.get(ask.body.get("event", ""), "")
        if state in ("approve", "changes"):
            word = "approve" if state == "approve" else "request changes on"
            return Answer(422, {"message": "Unprocessable Entity", "errors": [f"Can not {word} your own pull request"]})
        if state == "" or (state == "comment" and not ask.body.get("body")):
            return Answer(422, {"message": "Unprocessable Entity", "errors": ["body"]})
        at = [(c["path"], c.get("line") or 0, c["body"]) for c in ask.body.get("comments") or []]
        commit = ask.body.get("commit_id", "")
        made = self.world.review(asked, state, ask.body.get("body", ""), by=self.world.robot, at=at, commit=commit)
        return Answer(200, self.review_row(asked, made))

    def put_dismissal(self, ask: Ask, number: str, review: str) -> Answer:
        asked = self.world.numbered(int(number))
        one = next((r for r in asked.reviews if r.id == int(review)), None) if asked else None
        if asked is None or one is None:
            return GONE
        one.dismissed = True
        return Answer(200, self.review_row(asked, one))

    # --- requests and branches --------------------------------------------------------------------------------------

    def refused(self, trouble: Trouble) -> Answer:
        if trouble.kind in ("head", "busy"):
            text = "Head branch was modified. Review and try the merge again."
            text = text if trouble.kind == "head" else "Base branch was modified. Review and try the merge again."
            return Answer(409 if trouble.kind == "head" else 405, {"message": text})
        return Answer(405, {"message": _SAYS.get(trouble.kind, "Pull Request is not mergeable")})

    def merge_state(self, asked: Asked) -> tuple[bool | None, str]:
        trouble = self.world.trouble(asked)
        if asked.draft:
            return self.world.mergeable(asked), "draft"
        if trouble is None:
            return True, "clean"
        state = {"conflict": "dirty", "behind": "behind", "closed": "unknown", "busy": "unknown"}
        return trouble.kind != "conflict", state.get(trouble.kind, "blocked")

    def put_update(self, ask: Ask, number: str) -> Answer:
        asked = self.world.numbered(int(number))
        if asked is None:
            return GONE
        wanted = (ask.body or {}).get("expected_head_sha", "")
        if wanted not in ("", self.world.head_of(asked)):
            return Answer(422, {"message": f"expected head sha didn't match current head ref. {wanted}"})
        if not self.world.is_behind(asked):
            return Answer(422, {"message": "There are no new commits on the base branch."})
        if not self.world.bring_up_to_date(asked):
            return Answer(422, {"message": "merge conflict between base and head"})
        return Answer(202, {"message": "Updating pull request branch.", "url": f"{self.address}/{PROJECT}"})

    def get_branch(self, ask: Ask, name: str) -> Answer:
        tip = self.world.ground.tip(name.replace("%2F", "/"))
        if not tip:
            return Answer(404, {"message": "Branch not found", "documentation_url": "", "status": "404"})
        rule = self.world.protected.get(name.replace("%2F", "/"))
        checks = {"enforcement_level": "non_admins" if rule and rule.checks else "off",
                  "contexts": list(rule.checks) if rule else [], "checks": []}  # fmt: skip
        return Answer(200, {
            "name": name.replace("%2F", "/"), "commit": {"sha": tip, "url": ""}, "_links": {},
            "protected": rule is not None, "protection_url": f"{self.address}/api/v3/repos/{PROJECT}/branches/{name}",
            "protection": {"enabled": rule is not None, "required_status_checks": checks},
        })  # fmt: skip

    def get_protection(self, ask: Ask, name: str) -> Answer:
        rule = self.world.protected.get(name.replace("%2F", "/"))
        if rule is None:
            return Answer(404, {"message": "Branch not protected", "documentation_url": "", "status": "404"})
        body: dict[str, Any] = {"url": "", "enforce_admins": {"url": "", "enabled": True},
            "required_linear_history": {"enabled": rule.linear}, "allow_force_pushes": {"enabled": False},
            "allow_deletions": {"enabled": False}}  # fmt: skip
        if rule.checks:
            body["required_status_checks"] = {"url": "", "strict": rule.up_to_date, "contexts": list(rule.checks),
                "contexts_url": "", "checks": [{"context": one, "app_id": None} for one in rule.checks]}  # fmt: skip
        if rule.approvals:
            body["required_pull_request_reviews"] = {"url": "", "dismiss_stale_reviews": rule.dismisses_stale,
                "require_code_owner_reviews": False, "required_approving_review_count": rule.approvals,
                "require_last_push_approval": False}  # fmt: skip
        if not rule.push:
            body["restrictions"] = {"url": "", "users_url": "", "teams_url": "", "apps_url": "", "users": [],
                                    "teams": [], "apps": []}  # fmt: skip
        return Answer(200, body)

    def get_permission(self, ask: Ask, login: str) -> Answer:
        may = "write" if login in ("maintainer", self.world.robot) else "read"
        return Answer(200, {"permission": may, "role_name": may, "user": None})

    def delete_ref(self, ask: Ask, name: str) -> Answer:
        branch = name.replace("%2F", "/")
        if branch == "main" or branch in self.world.protected:
            return Answer(422, {"message": "Cannot delete this branch", "documentation_url": "", "status": "422"})
        if not self.world.delete_branch(branch):
            return Answer(422, {"message": "Reference does not exist", "documentation_url": "", "status": "422"})
        return Answer(204)

    # --- what is said -----------------------------------------------------------------------------------------------

    def _shared(self) -> dict[str, Any]:
        found: dict[str, Any] = published(self.schema).document["components"]["schemas"]
        return found

    def post_status(self, ask: Ask, sha: str) -> Answer:
        if ask.body.get("state") not in ("pending", "success", "error", "failure"):
            return Answer(422, {"message": "Validation Failed", "documentation_url": "", "status": "422"})
        row = smallest({"$ref": "#/x/status"}, self._shared())
        return Answer(201, {**row, **self._said(self.world.say_status(sha, ask.body)), "creator": None})

    def _said(self, said: Status) -> dict[str, Any]:
        return {"id": said.id, "node_id": f"S_{said.id}", "state": said.state, "context": said.context,
            "description": said.text, "target_url": said.url, "avatar_url": None, "url": "",
            "created_at": self.world.stamp(), "updated_at": self.world.stamp()}  # fmt: skip

    def get_status(self, ask: Ask, sha: str) -> Answer:
        """What was posted; CI's own words are in its runs."""
        newest = {one.context: one for one in self.world.statuses if one.sha == sha}
        states = {one.state for one in newest.values()}
        bad = "failure" if states & {"failure", "error"} else "pending"
        body = smallest({"$ref": "#/x/combined-commit-status"}, self._shared())
        repo = {**body["repository"], "name": NAME, "full_name": PROJECT}
        return Answer(200, {**body, "state": "success" if states == {"success"} else bad, "sha": sha,
            "total_count": len(newest), "statuses": [self._said(one) for one in newest.values()],
            "repository": repo})  # fmt: skip

    def label(self, name: str) -> dict[str, Any]:
        return {
            "id": self.world.label_of(name).id, "node_id": "L", "url": self.address, "name": name, "description": "",
            "color": "00aabb", "default": False,
        }  # fmt: skip

    def get_labels(self, ask: Ask) -> Answer:
        return Answer(200, page_of(ask, [self.label(one.name) for one in self.world.labels]))

    def post_label(self, ask: Ask) -> Answer:
        """Here, names are keys."""
        name = ask.body["name"]
        if any(one.name.lower() == name.lower() for one in self.world.labels):
            error = {"resource": "Label", "code": "already_exists", "field": "name"}
            return Answer(422, {"message": "Validation Failed", "errors": [error], "documentation_url": ""})
        return Answer(201, self.label(self.world.label(name).name))

    def post_labels(self, ask: Ask, number: str) -> Answer:
        asked = self.world.numbered(int(number))
        if asked is None:
            return GONE
        names = ask.body["labels"] if isinstance(ask.body, dict) else ask.body
        for name in names:
            if name not in {one.name for one in self.world.labels}:
                self.world.label(name)
        self.world.put_labels(asked, names)
        return Answer(200, [self.label(name) for name in asked.labels])

    def get_milestones(self, ask: Ask) -> Answer:
        rows = [{"id": one.id, "number": one.id, "title": one.title, "state": "open"} for one in self.world.milestones]
        return Answer(200, page_of(ask, rows))

    def patch_issue(self, ask: Ask, number: str) -> Answer:
        asked = self.world.numbered(int(number))
        if asked is None:
            return GONE
        asked.milestone = ask.body.get("milestone", asked.milestone) or 0
        asked.title, asked.body = ask.body.get("title", asked.title), ask.body.get("body", asked.body)
        return Answer(200, {"number": asked.number, "title": asked.title, "body": asked.body, "state": asked.state})

    def comment_row(self, one: Comment) -> dict[str, Any]:
        return {"id": one.id, "node_id": f"IC_{one.id}", "body": one.body, "user": self.person(one.by),

            "html_url": f"{self.address}/{PROJECT}/pull/{self.world.place_of(one)}#issuecomment-{one.id}",
            "url": "", "issue_url": "",
            "created_at": self.world.stamp(),
            "updated_at": self.world.stamp(), "author_association": "COLLABORATOR"}  # fmt: skip

    def get_comments(self, ask: Ask, number: str) -> Answer:
        asked = self.world.numbered(int(number))
        return Answer(200, page_of(ask, [self.comment_row(one) for one in asked.said])) if asked else GONE

    def post_comment(self, ask: Ask, number: str) -> Answer:
        asked = self.world.numbered(int(number))
        return Answer(201, self.comment_row(self.world.comment(asked, ask.body["body"]))) if asked else GONE

    def patch_comment(self, ask: Ask, number: str) -> Answer:
        found = self.world.rewrite(int(number), ask.body["body"])
        return Answer(200, self.comment_row(found)) if found else GONE
