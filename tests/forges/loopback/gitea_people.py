"""People's side of Forgejo and Gitea: reviews, branches and their protection, labels, milestones, remarks."""

from __future__ import annotations

from typing import Any, ClassVar

from .flavour import PROJECT, Calls, Flavour, page_of
from .http import Answer, Ask
from .manners import Protection
from .people import Comment, Remark, Review, Status
from .world import Asked, Trouble

STATE = {"approve": "APPROVED", "changes": "REQUEST_CHANGES", "comment": "COMMENT", "pending": "PENDING"}
_STATE_OF = {word: name for name, word in STATE.items()} | {"": "pending"}
# A merge that clashes with another one, or with what was there, is 409; what only time or people mend is 405.
_STATUS = {"busy": 409, "head": 409, "conflict": 409}
GONE = Answer(404, {"message": "The target couldn't be found.", "url": ""})


def calls_of(repo: str) -> Calls:
    one = f"{repo}/pulls/([0-9]+)"
    return (
        ("GET", f"{one}/reviews", "reviews", "get_reviews"),
        ("POST", f"{one}/reviews", "review", "post_review"),
        ("GET", f"{one}/reviews/([0-9]+)", "review", "get_review"),
        ("GET", f"{one}/reviews/([0-9]+)/comments", "remarks", "get_remarks"),
        ("POST", f"{one}/reviews/([0-9]+)/dismissals", "review", "post_dismissal"),
        ("POST", f"{one}/update", "update", "post_update"),
        ("GET", f"{repo}/branches/(.+)", "branch", "get_branch"),
        ("DELETE", f"{repo}/branches/(.+)", "cleared", "delete_branch"),
        ("GET", f"{repo}/branch_protections", "protections", "get_protections"),
        ("POST", f"{repo}/statuses/([^/]+)", "say", "post_status"),
        ("GET", f"{repo}/labels", "labels", "get_labels"),
        ("POST", f"{repo}/labels", "labels", "post_label"),
        ("DELETE", f"{repo}/labels/([0-9]+)", "cleared", "delete_label"),
        ("POST", f"{repo}/issues/([0-9]+)/labels", "labels", "post_labels"),
        ("GET", f"{repo}/milestones", "milestones", "get_milestones"),
        ("POST", f"{repo}/milestones", "milestones", "post_milestone"),
        ("GET", f"{repo}/issues/([0-9]+)/comments", "comments", "get_comments"),
        ("POST", f"{repo}/issues/([0-9]+)/comments", "comments", "post_comment"),
        ("PATCH", f"{repo}/issues/comments/([0-9]+)", "comments", "patch_comment"),
    )


class GiteaPeople(Flavour):
    people: ClassVar[tuple[str, ...]] = ("robot", "maintainer", "somebody")

    def named(self, login: str) -> dict[str, Any]:
        number = self.people.index(login) + 1 if login in self.people else 99
        return {"id": number, "login": login, "full_name": "", "email": f"{login}@example.org",
                "html_url": f"{self.address}/{login}"}  # fmt: skip

    # --- reviews ----------------------------------------------------------------------------------------------------

    def review_row(self, asked: Asked, one: Review) -> dict[str, Any]:
        link = f"{self.address}/{PROJECT}/pulls/{asked.number}"
        return {
            "id": one.id, "user": self.named(one.by), "team": None, "state": STATE[one.state], "body": one.body,
            "commit_id": one.commit, "stale": self.world.is_outdated(asked, one), "dismissed": one.dismissed,
            "official": one.by != self.world.robot, "comments_count": len(one.remarks),
            "submitted_at": self.world.stamp(), "updated_at": self.world.stamp(),
            "html_url": f"{link}#issuecomment-{one.id}", "pull_request_url": link,
        }  # fmt: skip

    def remark_row(self, asked: Asked, review: Review, one: Remark) -> dict[str, Any]:
        link = f"{self.address}/{PROJECT}/pulls/{asked.number}"
        return {
            "id": one.id, "body": one.body, "user": self.named(review.by), "resolver": None,
            "pull_request_review_id": review.id, "created_at": self.world.stamp(), "updated_at": self.world.stamp(),
            "path": one.path, "commit_id": review.commit, "original_commit_id": "", "diff_hunk": "@@ -0,0 +1 @@",
            "position": one.line, "original_position": 0, "html_url": f"{link}#issuecomment-{one.id}",
            "pull_request_url": link,
        }  # fmt: skip

    def get_reviews(self, ask: Ask, number: str) -> Answer:
        asked = self.world.numbered(int(number))
        return Answer(200, page_of(ask, [self.review_row(asked, r) for r in asked.reviews])) if asked else GONE

    def get_review(self, ask: Ask, number: str, review: str) -> Answer:
        asked, one = self._review(number, review)
        return Answer(200, self.review_row(asked, one)) if asked and one else GONE

    def get_remarks(self, ask: Ask, number: str, review: str) -> Answer:
        asked, one = self._review(number, review)
        return Answer(200, [self.remark_row(asked, one, r) for r in one.remarks]) if asked and one else GONE

    def _review(self, number: str, review: str) -> tuple[Asked | None, Review | None]:
        asked = self.world.numbered(int(number))
        rows = asked.reviews if asked else []
        return asked, next((one for one in rows if one.id == int(review)), None)

    def post_review(self, ask: Ask, number: str) -> Answer:
        """Nobody approves or refuses a request of one's own."""
        asked = self.world.numbered(int(number))
        if asked is None:
            return GONE
        state = _STATE_OF.get(ask.body.get("event", ""), "")
        if state in ("approve", "changes"):
            word = "approve" if state == "approve" else "reject"
            return Answer(422, {"message": f"{word} your own pull is not allowed", "url": ""})
        if state == "" or (not ask.body.get("body") and not ask.body.get("comments")):
            return Answer(422, {"message": "a review needs a body", "url": ""})
        at = [(c["path"], c.get("new_position") or 0, c["body"]) for c in ask.body.get("comments") or []]
        made = self.world.review(
            asked, state, ask.body.get("body", ""), by=self.world.robot, at=at, commit=ask.body.get("commit_id", "")
        )
        return Answer(200, self.review_row(asked, made))

    def post_dismissal(self, ask: Ask, number: str, review: str) -> Answer:
        asked, one = self._review(number, review)
        if asked is None or one is None:
            return GONE
        one.dismissed = True
        return Answer(200, self.review_row(asked, one))

    # --- requests ---------------------------------------------------------------------------------------------------

    def refused(self, trouble: Trouble) -> Answer:
        return Answer(_STATUS.get(trouble.kind, 405), {"message": trouble.text, "url": f"{self.address}/api/swagger"})

    def post_update(self, ask: Ask, number: str) -> Answer:
        asked = self.world.numbered(int(number))
        if asked is None or asked.state != "open":
            return GONE
        if not self.world.is_behind(asked):
            return Answer(200)
        made = self.world.bring_up_to_date(asked, how=ask.query.get("style", "merge"))
        return Answer(200) if made else Answer(409, {"message": "merge failed because of conflict", "url": ""})

    # --- branches ---------------------------------------------------------------------------------------------------

    def get_branch(self, ask: Ask, name: str) -> Answer:
        tip = self.world.ground.tip(name.replace("%2F", "/"))
        if not tip:
            return GONE
        rule = self.world.protected.get(name.replace("%2F", "/"))
        commit = {"id": tip, "message": self.world.ground.subject(tip), "url": "", "author": None, "committer": None,
                  "timestamp": self.world.stamp(), "verification": None}  # fmt: skip
        return Answer(200, {
            "name": name.replace("%2F", "/"), "commit": commit, "protected": rule is not None,
            "required_approvals": rule.approvals if rule else 0, "enable_status_check": bool(rule and rule.checks),
            "status_check_contexts": list(rule.checks) if rule else [], "user_can_push": rule is None or rule.push,
            "user_can_merge": True, "effective_branch_protection_name": name if rule else "",
        })  # fmt: skip

    def delete_branch(self, ask: Ask, name: str) -> Answer:
        branch = name.replace("%2F", "/")
        if branch == "main" or branch in self.world.protected:
            return Answer(403, {"message": "branch protected", "url": ""})
        return Answer(204) if self.world.delete_branch(branch) else GONE

    def get_protections(self, ask: Ask) -> Answer:
        return Answer(200, [self.protection(name, rule) for name, rule in self.world.protected.items()])

    def protection(self, name: str, rule: Protection) -> dict[str, Any]:
        return {
            "branch_name": name, "rule_name": name, "enable_push": rule.push, "enable_push_whitelist": False,
            "push_whitelist_usernames": [], "push_whitelist_teams": [], "push_whitelist_deploy_keys": False,
            "enable_merge_whitelist": False, "merge_whitelist_usernames": [], "merge_whitelist_teams": [],
            "enable_status_check": bool(rule.checks), "status_check_contexts": list(rule.checks),
            "required_approvals": rule.approvals, "enable_approvals_whitelist": False,
            "approvals_whitelist_username": [], "approvals_whitelist_teams": [],
            "block_on_rejected_reviews": rule.refuses_rejected, "block_on_official_review_requests": False,
            "block_on_outdated_branch": rule.up_to_date, "dismiss_stale_approvals": rule.dismisses_stale,
            "ignore_stale_approvals": False, "require_signed_commits": False, "protected_file_patterns": "",
            "unprotected_file_patterns": "", "created_at": self.world.stamp(), "updated_at": self.world.stamp(),
        }  # fmt: skip

    # --- what is said -----------------------------------------------------------------------------------------------

    def post_status(self, ask: Ask, sha: str) -> Answer:
        if ask.body.get("state") not in ("pending", "success", "error", "failure", "warning"):
            return Answer(400, {"message": "invalid state", "url": ""})
        made = self.world.say_status(sha, ask.body)
        return Answer(201, self.said_row(made))

    def said_row(self, said: Status) -> dict[str, Any]:
        return {
            "id": said.id, "status": said.state, "description": said.text, "context": said.context,
            "creator": self.named(self.world.robot), "target_url": said.url, "created_at": self.world.stamp(),
            "updated_at": self.world.stamp(), "url": f"{self.address}/api/v1/repos/{PROJECT}/statuses/{said.sha}",
        }  # fmt: skip

    def label(self, name: str) -> dict[str, Any]:
        return self.label_row(self.world.label_of(name).id, name)

    def label_row(self, number: int, name: str) -> dict[str, Any]:
        return {"id": number, "name": name, "color": "00aabb", "description": "", "url": ""}

    def get_labels(self, ask: Ask) -> Answer:
        return Answer(200, page_of(ask, [self.label_row(one.id, one.name) for one in self.world.labels]))

    def post_label(self, ask: Ask) -> Answer:
        made = self.world.label(ask.body["name"])
        return Answer(201, self.label_row(made.id, made.name))

    def delete_label(self, ask: Ask, number: str) -> Answer:
        self.world.labels[:] = [one for one in self.world.labels if one.id != int(number)]
        return Answer(204)

    def post_labels(self, ask: Ask, number: str) -> Answer:
        asked = self.world.numbered(int(number))
        if asked is None:
            return GONE
        self.world.put_labels(asked, ask.body["labels"])
        return Answer(200, [self.label(name) for name in asked.labels])

    def get_milestones(self, ask: Ask) -> Answer:
        wanted = ask.query.get("name", "")
        rows = [one for one in self.world.milestones if wanted in ("", one.title)]
        return Answer(200, page_of(ask, [self.milestone_row(one.id) for one in rows]))

    def milestone_row(self, number: int) -> dict[str, Any] | None:
        found = next((one for one in self.world.milestones if one.id == number), None)
        if found is None:
            return None
        return {"id": number, "title": found.title, "description": "", "state": "open", "open_issues": 0,
                "closed_issues": 0, "created_at": self.world.stamp(), "updated_at": None, "closed_at": None,
                "due_on": None}  # fmt: skip

    def post_milestone(self, ask: Ask) -> Answer:
        return Answer(201, self.milestone_row(self.world.milestone(ask.body["title"]).id))

    def comment_row(self, one: Comment) -> dict[str, Any]:
        return {"id": one.id, "body": one.body, "user": self.named(one.by), "created_at": self.world.stamp(),
                "updated_at": self.world.stamp(), "issue_url": "", "pull_request_url": "",
                "html_url": f"{self.address}/{PROJECT}/pulls/{self.world.place_of(one)}#issuecomment-{one.id}",
                "original_author": "", "original_author_id": 0, "assets": []}  # fmt: skip

    def get_comments(self, ask: Ask, number: str) -> Answer:
        asked = self.world.numbered(int(number))
        return Answer(200, [self.comment_row(one) for one in asked.said]) if asked else GONE

    def post_comment(self, ask: Ask, number: str) -> Answer:
        asked = self.world.numbered(int(number))
        if asked is None:
            return Answer(404, {"message": "not found"})
        return Answer(201, self.comment_row(self.world.comment(asked, ask.body["body"])))

    def patch_comment(self, ask: Ask, number: str) -> Answer:
        found = self.world.rewrite(int(number), ask.body["body"])
        return Answer(200, self.comment_row(found)) if found else GONE
