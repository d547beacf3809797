"""What GitLab's documentation says of the answers used here: it publishes no schema of them in this repository."""

from __future__ import annotations

from typing import Any

TEXT, NUMBER, FLAG, TIME = {"type": "string"}, {"type": "integer"}, {"type": "boolean"}, {"type": ["string", "null"]}
PART = {"type": ["number", "null"]}


def _closed(needs: str, **fields: Any) -> dict[str, Any]:
    return {"type": "object", "required": needs.split(), "properties": fields, "additionalProperties": False}


_STATES = [
    "created", "waiting_for_resource", "preparing", "pending", "running", "success", "failed", "canceling", "canceled",
    "skipped", "manual", "scheduled",
]  # fmt: skip
PIPELINE = _closed(
    "id iid project_id status source ref web_url created_at updated_at",
    id=NUMBER, iid=NUMBER, project_id=NUMBER, status=TEXT, source=TEXT, ref=TEXT, sha=TEXT, name=TIME, web_url=TEXT,
    created_at=TEXT, updated_at=TIME, yaml_errors=TIME,
)  # fmt: skip
JOB = _closed(
    "id name stage status ref allow_failure pipeline web_url created_at",
    id=NUMBER, name=TEXT, stage=TEXT, status=TEXT, ref=TEXT, tag=FLAG, coverage=PART, allow_failure=FLAG,
    created_at=TEXT, started_at=TIME, finished_at=TIME, duration=PART, queued_duration=PART, web_url=TEXT,
    failure_reason=TEXT, user={"type": "object"}, commit={"type": "object"}, artifacts={"type": "array"},
    pipeline=_closed("id project_id ref sha status", id=NUMBER, project_id=NUMBER, ref=TEXT, sha=TEXT, status=TEXT),
)  # fmt: skip
MERGE_REQUEST = _closed(
    "id iid project_id title description state source_branch target_branch sha draft web_url labels",
    id=NUMBER, iid=NUMBER, project_id=NUMBER, title=TEXT, description=TIME, source_branch=TEXT, target_branch=TEXT,
    state={"enum": ["opened", "closed", "locked", "merged"]}, sha=TIME, merge_commit_sha=TIME, squash_commit_sha=TIME,
    draft=FLAG, web_url=TEXT, labels={"type": "array", "items": TEXT}, detailed_merge_status=TEXT, merged_at=TIME,
    created_at=TEXT, updated_at=TEXT, work_in_progress=FLAG, milestone={"type": ["object", "null"]},
)  # fmt: skip
USER = {"type": "object", "required": ["id", "username", "name", "state"]}
VERSION = _closed("version revision", version=TEXT, revision=TEXT)
PERSON = {"type": "object", "required": ["id", "username", "name", "state"]}
NOTE = _closed(
    "id type body author system created_at resolvable",
    id=NUMBER, type=TIME, body=TEXT, author=PERSON, system=FLAG, created_at=TEXT, updated_at=TEXT, noteable_type=TEXT,
    resolvable=FLAG, resolved=FLAG, position={"type": "object", "required": ["new_path", "new_line", "head_sha"]},
)  # fmt: skip
DISCUSSION = _closed(
    "id individual_note notes", id=TEXT, individual_note=FLAG, notes={"type": "array", "items": NOTE, "minItems": 1}
)
APPROVALS = _closed(
    "approved approvals_required approvals_left approved_by",
    id=NUMBER, iid=NUMBER, project_id=NUMBER, title=TEXT, description=TEXT, state=TEXT, merge_status=TEXT,
    created_at=TEXT, updated_at=TEXT, approved=FLAG, approvals_required=NUMBER, approvals_left=NUMBER,
    approved_by={"type": "array"}, user_has_approved=FLAG, user_can_approve=FLAG,
)  # fmt: skip
REVIEWER = _closed("user state created_at", user=PERSON, created_at=TEXT, state={
    "enum": ["unreviewed", "review_started", "reviewed", "requested_changes", "approved", "unapproved"]})  # fmt: skip
BRANCH = _closed(
    "name merged protected default developers_can_push developers_can_merge can_push web_url commit",
    name=TEXT, merged=FLAG, protected=FLAG, default=FLAG, developers_can_push=FLAG, developers_can_merge=FLAG,
    can_push=FLAG, web_url=TEXT, commit={"type": "object", "required": ["id"]},
)  # fmt: skip
PROTECTION = _closed(
    "id name push_access_levels merge_access_levels allow_force_push", id=NUMBER, name=TEXT,
    push_access_levels={"type": "array"}, merge_access_levels={"type": "array"}, allow_force_push=FLAG,
    code_owner_approval_required=FLAG,
)  # fmt: skip
STATUS = _closed(
    "id sha ref status name target_url description created_at author",
    id=NUMBER, sha=TEXT, ref=TEXT, status=TEXT, name=TEXT, target_url=TIME, description=TIME, created_at=TEXT,
    author=PERSON, allow_failure=FLAG,
)  # fmt: skip
# By kind of call: what comes with a status of the two hundreds.
PROJECT = {
    "type": "object", "required": ["id", "merge_method", "squash_option", "merge_trains_enabled"],
    "properties": {
        "merge_method": {"enum": ["merge", "rebase_merge", "ff"]}, "merge_trains_enabled": FLAG,
        "squash_option": {"enum": ["never", "always", "default_on", "default_off"]},
    },
}  # fmt: skip
BRIDGE = {
    "type": "object", "required": ["id", "name", "status", "downstream_pipeline"],
    "properties": {"downstream_pipeline": {"anyOf": [PIPELINE, {"type": "null"}]}},
}  # fmt: skip
CAR = _closed(
    "id merge_request target_branch status", id=NUMBER, merge_request={"type": "object", "required": ["iid"]},
    user={"type": "object"}, pipeline={"anyOf": [PIPELINE, {"type": "null"}]}, created_at=TEXT, updated_at=TEXT,
    target_branch=TEXT, merged_at=TIME, duration=PART,
    status={"enum": ["idle", "stale", "fresh", "merging", "merged", "skip_merged"]},
)  # fmt: skip


ANSWERS: dict[str, dict[str, Any]] = {
    "user": USER,
    "version": VERSION,
    "runs": {"type": "array", "items": PIPELINE},
    "run": PIPELINE,
    "rerun": PIPELINE,
    "jobs": {"type": "array", "items": JOB},
    "pulls": {"type": "array", "items": MERGE_REQUEST},
    "open": MERGE_REQUEST,
    "pull": MERGE_REQUEST,
    "change": MERGE_REQUEST,
    "merge": MERGE_REQUEST,
    "approvals": APPROVALS,
    "reviews": {"type": "array", "items": REVIEWER},
    "remarks": {"type": "array", "items": DISCUSSION},
    "branch": BRANCH,
    "protections": {"type": "array", "items": PROTECTION},
    "protection": PROTECTION,
    "say": STATUS,
    "statuses": {"type": "array", "items": STATUS},
    "repo": PROJECT,
    "bridges": {"type": "array", "items": BRIDGE},
    "train": {"anyOf": [CAR, {"type": "array", "items": CAR}]},
}
# Words nobody documents are sent on purpose at times, so states are no rule above.
DOCUMENTED_STATES = frozenset(_STATES)
