"""People's side of GitLab, by its documentation: approvals, discussions, branches and their protection, remarks."""

from __future__ import annotations

from typing import Any

from .flavour import PROJECT, Calls, Flavour, page_of
from .http import Answer, Ask
from .people import Comment, Remark, Review, Status, counted
from .world import Asked, Trouble

GONE = Answer(404, {"message": "404 Not found"})
_REVIEWER = {"approve": "approved", "changes": "requested_changes", "comment": "reviewed", "pending": "unreviewed"}
_MERGE = {
    "approvals": "not_approved", "rejected": "requested_changes", "checks": "ci_must_pass", "behind": "need_rebase",
    "conflict": "conflict", "closed": "not_open", "draft": "draft_status", "busy": "checking", "head": "mergeable",
}  # fmt: skip
_STATUS = {"pending", "running", "success", "failed", "canceled", "skipped"}


def calls_of(repo: str) -> Calls:
    one = f"{repo}/merge_requests/([0-9]+)"
    return (
        ("GET", f"{one}/approvals", "approvals", "get_approvals"),
        ("GET", f"{one}/reviewers", "reviews", "get_reviewers"),
        ("GET", f"{one}/discussions", "remarks", "get_discussions"),
        ("PUT", f"{one}/rebase", "update", "put_rebase"),
        ("GET", f"{one}/notes", "comments", "get_notes"),
        ("POST", f"{one}/notes", "comments", "post_note"),
        ("PUT", f"{one}/notes/([0-9]+)", "comments", "put_note"),
        ("GET", f"{repo}/repository/branches/([^/]+)", "branch", "get_branch"),
        ("DELETE", f"{repo}/repository/branches/([^/]+)", "cleared", "delete_branch"),
        ("GET", f"{repo}/protected_branches", "protections", "get_protections"),
        ("GET", f"{repo}/protected_branches/([^/]+)", "protection", "get_protection"),
        ("POST", f"{repo}/statuses/([^/]+)", "say", "post_status"),
        ("GET", f"{repo}/repository/commits/([^/]+)/statuses", "statuses", "get_statuses"),
        ("GET", f"{repo}/milestones", "milestones", "get_milestones"),
    )


class GitLabPeople(Flavour):
    def person(self, login: str) -> dict[str, Any]:
        return {"id": 1, "username": login, "name": login.title(), "state": "active"}

    # --- reviews ----------------------------------------------------------------------------------------------------

    def get_approvals(self, ask: Ask, number: str) -> Answer:
        asked = self.world.numbered(int(number))
        if asked is None:
            return GONE
        said = counted(asked.reviews, self.world.head_of(asked))
        by = [login for login, word in said.items() if word == "approve"]
        rule = self.world.protected.get(asked.into)
        needs = rule.approvals if rule else 0
        return Answer(200, {
            "id": asked.number + 900, "iid": asked.number, "project_id": 7, "title": asked.title,
            "description": asked.body, "state": _state(asked), "merge_status": "can_be_merged",
            "created_at": self.world.stamp(), "updated_at": self.world.stamp(), "approved": len(by) >= needs,
            "approvals_required": needs, "approvals_left": max(0, needs - len(by)),
            "approved_by": [{"user": self.person(one), "approved_at": self.world.stamp()} for one in by],
            "user_has_approved": False, "user_can_approve": False,
        })  # fmt: skip

    def get_reviewers(self, ask: Ask, number: str) -> Answer:
        """Each reviewer's last word; a dismissed one has none."""
        asked = self.world.numbered(int(number))
        if asked is None:
            return GONE
        last = {one.by: "unreviewed" if one.dismissed else _REVIEWER[one.state] for one in asked.reviews}
        stamp = self.world.stamp()
        return Answer(200, [{"user": self.person(by), "state": s, "created_at": stamp} for by, s in last.items()])

    def get_discussions(self, ask: Ask, number: str) -> Answer:
        asked = self.world.numbered(int(number))
        if asked is None:
            return GONE
        rows = [self.discussion(review, one) for review in asked.reviews for one in review.remarks]
        rows += [self.spoken(one) for one in self._bodies(asked)]
        return Answer(200, page_of(ask, rows))

    def _bodies(self, asked: Asked) -> list[Comment]:
        return [Comment(one.id, one.by, one.body) for one in asked.reviews if one.body] + asked.said

    def discussion(self, review: Review, one: Remark) -> dict[str, Any]:
        position = {"base_sha": "0" * 40, "start_sha": "0" * 40, "head_sha": review.commit, "old_path": one.path,
                    "new_path": one.path, "position_type": "text", "old_line": None, "new_line": one.line}  # fmt: skip
        note = {**self.note(Comment(one.id, review.by, one.body)), "type": "DiffNote", "resolvable": True,
                "resolved": False, "position": position}  # fmt: skip
        return {"id": f"d{one.id}", "individual_note": False, "notes": [note]}

    def spoken(self, one: Comment) -> dict[str, Any]:
        return {"id": f"d{one.id}", "individual_note": True, "notes": [self.note(one)]}

    def note(self, one: Comment) -> dict[str, Any]:
        return {"id": one.id, "type": None, "body": one.body, "author": self.person(one.by), "system": False,
            "created_at": self.world.stamp(), "updated_at": self.world.stamp(), "noteable_type": "MergeRequest",
            "resolvable": False}  # fmt: skip

    def get_notes(self, ask: Ask, number: str) -> Answer:
        asked = self.world.numbered(int(number))
        return Answer(200, page_of(ask, [self.note(one) for one in self._bodies(asked)])) if asked else GONE

    def post_note(self, ask: Ask, number: str) -> Answer:
        asked = self.world.numbered(int(number))
        return Answer(201, self.note(self.world.comment(asked, ask.body["body"]))) if asked else GONE

    def put_note(self, ask: Ask, number: str, note: str) -> Answer:
        found = self.world.rewrite(int(note), ask.body["body"])
        return Answer(200, self.note(found)) if found else GONE

    # --- requests and branches --------------------------------------------------------------------------------------

    def refused(self, trouble: Trouble) -> Answer:
        if trouble.kind == "head":
            return Answer(409, {"message": "SHA does not match HEAD of source branch"})
        if trouble.kind == "conflict":
            return Answer(422, {"message": "Branch cannot be merged"})
        return Answer(405, {"message": "405 Method Not Allowed"})

    def merge_status(self, asked: Asked) -> str:
        if asked.title.lower().startswith("draft:"):
            return "draft_status"
        trouble = self.world.trouble(asked)
        return _MERGE[trouble.kind] if trouble else "mergeable"

    def put_rebase(self, ask: Ask, number: str) -> Answer:
        asked = self.world.numbered(int(number))
        if asked is None:
            return GONE
        if self.world.is_behind(asked):
            self.world.bring_up_to_date(asked, how="rebase")
        return Answer(202, {"rebase_in_progress": True})

    def get_branch(self, ask: Ask, name: str) -> Answer:
        branch = name.replace("%2F", "/")
        tip, rule = self.world.ground.tip(branch), self.world.protected.get(branch)
        if not tip:
            return Answer(404, {"message": "404 Branch Not Found"})
        commit = {"id": tip, "short_id": tip[:8], "title": self.world.ground.subject(tip)}
        return Answer(200, {"name": branch, "merged": False, "protected": rule is not None,
            "default": branch == "main", "developers_can_push": bool(rule and rule.push), "commit": commit,
            "developers_can_merge": True, "can_push": rule is None or rule.push, "web_url": self.address})  # fmt: skip

    def delete_branch(self, ask: Ask, name: str) -> Answer:
        branch = name.replace("%2F", "/")
        if branch == "main" or branch in self.world.protected:
            return Answer(403, {"message": "Protected branch can't be removed"})
        return Answer(204) if self.world.delete_branch(branch) else Answer(404, {"message": "404 Branch Not Found"})

    def get_protections(self, ask: Ask) -> Answer:
        return Answer(200, [self.protection(name) for name in self.world.protected])

    def get_protection(self, ask: Ask, name: str) -> Answer:
        branch = name.replace("%2F", "/")
        return Answer(200, self.protection(branch)) if branch in self.world.protected else GONE

    def protection(self, name: str) -> dict[str, Any]:
        level = 30 if self.world.protected[name].push else 0
        told = {30: "Developers + Maintainers", 0: "No one"}
        push = {"id": 1, "access_level": level, "access_level_description": told[level]}
        merge = {"id": 2, "access_level": 30, "access_level_description": told[30]}
        return {"id": 1, "name": name, "push_access_levels": [push], "merge_access_levels": [merge],
            "allow_force_push": False, "code_owner_approval_required": False}  # fmt: skip

    # --- what is said -----------------------------------------------------------------------------------------------

    def post_status(self, ask: Ask, sha: str) -> Answer:
        if ask.body.get("state") not in _STATUS:
            return Answer(400, {"message": "state does not have a valid value"})
        given = {**ask.body, "context": ask.body.get("name") or ask.body.get("context") or "default"}
        return Answer(201, self.said(self.world.say_status(sha, given)))

    def said(self, one: Status) -> dict[str, Any]:
        return {"id": one.id, "sha": one.sha, "ref": "main", "status": one.state, "name": one.context,
            "target_url": one.url or None, "description": one.text or None, "created_at": self.world.stamp(),
            "author": self.person(self.world.robot), "allow_failure": False}  # fmt: skip

    def get_statuses(self, ask: Ask, sha: str) -> Answer:
        newest = {one.context: one for one in self.world.statuses if one.sha == sha}
        return Answer(200, page_of(ask, [self.said(one) for one in newest.values()]))

    def get_milestones(self, ask: Ask) -> Answer:
        wanted = ask.query.get("title", "")
        rows = [{"id": one.id, "iid": one.id, "project_id": 7, "title": one.title, "state": "active",
                 "web_url": f"{self.address}/{PROJECT}"} for one in self.world.milestones]  # fmt: skip
        return Answer(200, page_of(ask, [row for row in rows if wanted in ("", row["title"])]))


def _state(asked: Asked) -> str:
    return {"open": "opened"}.get(asked.state, asked.state)
