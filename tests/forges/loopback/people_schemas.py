"""What Forgejo, Gitea and GitHub say of calls that the stored parts of their schemas do not have, by the types they
document: reviews, remarks, milestones, labels, comments; and branches of GitHub."""

from __future__ import annotations

from typing import Any

TEXT, NUMBER, FLAG = {"type": "string"}, {"type": "integer"}, {"type": "boolean"}
OR_TEXT, OR_NUMBER = {"type": ["string", "null"]}, {"type": ["integer", "null"]}
PERSON = {"type": "object", "required": ["id", "login"]}


def _closed(needs: str, **fields: Any) -> dict[str, Any]:
    return {"type": "object", "required": needs.split(), "properties": fields, "additionalProperties": False}


def _many(one: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": one}


_REVIEW = _closed(
    "id user state body commit_id stale official dismissed comments_count submitted_at html_url pull_request_url",
    id=NUMBER, user=PERSON, team={"type": ["object", "null"]}, body=TEXT, commit_id=TEXT, stale=FLAG, official=FLAG,
    dismissed=FLAG, comments_count=NUMBER, submitted_at=TEXT, updated_at=TEXT, html_url=TEXT, pull_request_url=TEXT,
    state={"enum": ["APPROVED", "PENDING", "COMMENT", "REQUEST_CHANGES", "REQUEST_REVIEW"]},
)  # fmt: skip
_REMARK = _closed(
    "id body user pull_request_review_id path commit_id position original_position",
    id=NUMBER, body=TEXT, user=PERSON, resolver={"type": ["object", "null"]}, pull_request_review_id=NUMBER,
    created_at=TEXT, updated_at=TEXT, path=TEXT, commit_id=TEXT, original_commit_id=TEXT, diff_hunk=TEXT,
    position=NUMBER, original_position=NUMBER, html_url=TEXT, pull_request_url=TEXT,
)  # fmt: skip
_MILESTONE = _closed(
    "id title state", id=NUMBER, title=TEXT, description=TEXT, state={"enum": ["open", "closed"]}, open_issues=NUMBER,
    closed_issues=NUMBER, created_at=TEXT, updated_at=OR_TEXT, closed_at=OR_TEXT, due_on=OR_TEXT,
)  # fmt: skip
_COMMENT = _closed(
    "id body user created_at updated_at", id=NUMBER, body=TEXT, user=PERSON, created_at=TEXT, updated_at=TEXT,
    html_url=TEXT, issue_url=TEXT, pull_request_url=TEXT, original_author=TEXT, original_author_id=NUMBER,
    assets={"type": "array"},
)  # fmt: skip
_LABEL = _closed(
    "id name color", id=NUMBER, name=TEXT, color=TEXT, description=TEXT, url=TEXT, exclusive=FLAG, is_archived=FLAG
)

_HUB_REVIEW = _closed(
    "id node_id user body state html_url pull_request_url _links commit_id author_association",
    id=NUMBER, node_id=TEXT, user=PERSON, body=TEXT, html_url=TEXT, pull_request_url=TEXT, _links={"type": "object"},
    commit_id=OR_TEXT, submitted_at=TEXT, author_association=TEXT,
    state={"enum": ["APPROVED", "CHANGES_REQUESTED", "COMMENTED", "DISMISSED", "PENDING"]},
)  # fmt: skip
_HUB_REMARK = _closed(
    "id node_id pull_request_review_id path commit_id original_commit_id diff_hunk user body html_url url _links",
    id=NUMBER, node_id=TEXT, pull_request_review_id=OR_NUMBER, path=TEXT, line=OR_NUMBER, original_line=OR_NUMBER,
    side=TEXT, position=OR_NUMBER, body=TEXT, commit_id=TEXT, original_commit_id=TEXT, diff_hunk=TEXT, user=PERSON,
    html_url=TEXT, pull_request_url=TEXT, url=TEXT, _links={"type": "object"}, created_at=TEXT, updated_at=TEXT,
    author_association=TEXT,
)  # fmt: skip
_HUB_COMMENT = _closed(
    "id node_id body user html_url url issue_url created_at updated_at author_association",
    id=NUMBER, node_id=TEXT, body=TEXT, user=PERSON, html_url=TEXT, url=TEXT, issue_url=TEXT, created_at=TEXT,
    updated_at=TEXT, author_association=TEXT,
)  # fmt: skip
_HUB_LABEL = _closed(
    "id node_id url name description color default", id=NUMBER, node_id=TEXT, url=TEXT, name=TEXT, description=OR_TEXT,
    color=TEXT, default=FLAG,
)  # fmt: skip
_HUB_BRANCH = _closed(
    "name commit _links protected protection protection_url", name=TEXT, _links={"type": "object"}, protected=FLAG,
    commit={"type": "object", "required": ["sha"]}, protection_url=TEXT, protection=_closed(
        "enabled required_status_checks", enabled=FLAG, required_status_checks=_closed(
            "enforcement_level contexts checks", enforcement_level=TEXT, contexts=_many(TEXT), checks=_many({}))),
)  # fmt: skip
_HUB_RULE: dict[str, Any] = {
    "type": "object", "properties": {
        "required_status_checks": {"type": "object", "required": ["strict", "contexts", "checks"]},
        "required_pull_request_reviews": {
            "type": "object", "required": ["dismiss_stale_reviews", "require_code_owner_reviews"]},
        "required_linear_history": _closed("enabled", enabled=FLAG),
    },
}  # fmt: skip
_UPDATED = _closed("message url", message=TEXT, url=TEXT)


def _one_or_many(one: dict[str, Any]) -> dict[str, Any]:
    return {"anyOf": [one, _many(one)]}


# By kind of call: what comes with a status of the two hundreds, and has a body.
GITEA: dict[str, dict[str, Any]] = {
    "reviews": _many(_REVIEW),
    "review": _REVIEW,
    "remarks": _many(_REMARK),
    "milestones": _one_or_many(_MILESTONE),
    "comments": _one_or_many(_COMMENT),
    "labels": _one_or_many(_LABEL),
}
GITHUB: dict[str, dict[str, Any]] = {
    "reviews": _many(_HUB_REVIEW),
    "review": _HUB_REVIEW,
    "remarks": _many(_HUB_REMARK),
    "milestones": _many({"type": "object", "required": ["id", "number", "title", "state"]}),
    "comments": _one_or_many(_HUB_COMMENT),
    "labels": _one_or_many(_HUB_LABEL),
    "branch": _HUB_BRANCH,
    "protections": _HUB_RULE,
    "update": _UPDATED,
    "issue": {"type": "object", "required": ["number", "title", "state"]},
    "repo": {"type": "object", "required": ["id", "full_name", "allow_merge_commit", "permissions"]},
    "rules": _many({"type": "object", "required": ["type", "ruleset_id"]}),
    "permission": {"type": "object", "required": ["permission", "role_name", "user"]},
}
