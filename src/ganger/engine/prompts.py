"""Prompt assembly: shared context, the task's own prompt, reminders, and the contract the answer must keep."""

from __future__ import annotations

import json

from ganger.contracts.parser import neutralise
from ganger.core.records import TaskSpec
from ganger.ports import Workspace

# The closing line is named before the opening one and neither stands at a line's edge: an echoed prompt is no answer.
_CONTRACT = """## How to answer

Work on the task above, then end your output with exactly one result block. Its last line is `<<<END_TASK_RESULT_V2>>>`,
its first line is `<<<TASK_RESULT_V2>>>`, each alone on its line. Between the two stands one JSON object with:

- "contract_version": "2.0"
- "task_id": {task_id}
- "status": "DONE", "BLOCKED" or "FAILED"
- "summary": one or two sentences on what you did
- "writes" (optional): files to be written for you, each {{"path", "op": "create|replace|append", "encoding": "utf8",
  "content"}}; paths are relative to the project
- "changed_files", "evidence", "failure_class" (optional)

No other fields, no comments, no text inside the block besides that object. Your claims are checked: the project's own
verification decides.
"""

FORMAT_REMINDER = (
    "Your previous answer could not be read ({code}: {message}). Do the task and answer again. The very last thing you "
    "print must be the result block described below: opening line, one valid JSON object, closing line. No markdown "
    "fence around it, nothing after it."
)


def assemble(spec: TaskSpec, workspace: Workspace, reminder: str) -> str:
    """The whole prompt of one attempt. Text from files cannot pass for a result block when echoed."""
    parts = [f"# Task {neutralise(spec.id)}"]
    parts += [f"## Context: {neutralise(ref)}\n\n{_file(workspace, ref)}" for ref in spec.context_refs]
    parts.append(f"## What to do\n\n{_file(workspace, spec.prompt_ref)}")
    if reminder:
        parts.append(f"## Note on your previous attempt\n\n{neutralise(reminder)}")
    parts.append(_CONTRACT.format(task_id=_as_json(spec.id)))
    return "\n\n".join(parts)


def _file(workspace: Workspace, ref: str) -> str:
    return neutralise(workspace.read_text(ref)).strip()


def _as_json(task_id: str) -> str:
    """The id as the agent shall write it; one that holds a sentinel is escaped, which means the same in JSON."""
    text = json.dumps(task_id, ensure_ascii=False)
    return text.replace("<", "\\u003c") if "<<<" in text else text
