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
    created_at=TEXT, updated_at=TIME,
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
    created_at=TEXT, updated_at=TEXT, work_in_progress=FLAG,
)  # fmt: skip
USER = {"type": "object", "required": ["id", "username", "name", "state"]}
VERSION = _closed("version revision", version=TEXT, revision=TEXT)
# By kind of call: what comes with a status of the two hundreds.
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
}
# Words nobody documents are sent on purpose at times, so states are no rule above.
DOCUMENTED_STATES = frozenset(_STATES)
