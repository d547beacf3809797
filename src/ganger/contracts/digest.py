"""The manifest digest: equal to the one other AgentThreader 2.0 tools compute for the same manifest."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from ganger.contracts.javascript import encode_string, format_number
from ganger.contracts.manifest import Manifest, Task


def manifest_digest(manifest: Manifest) -> str:
    """SHA-256, lower-case hex, over the fields that decide what runs: without metadata and prompt contents."""
    text = (
        f'{{"manifest_version":{encode_string(manifest.manifest_version)},"run_id":{encode_string(manifest.run_id)},'
        f'"tasks":[{",".join(map(_task, manifest.tasks))}]}}'
    )
    return hashlib.sha256(text.encode()).hexdigest()


def _task(task: Task) -> str:
    depends_on = ",".join(map(encode_string, _sorted(task.depends_on)))
    return (
        f'{{"id":{encode_string(task.id)},"prompt_ref":{encode_string(task.prompt_ref)},"depends_on":[{depends_on}],'
        f'"timeout_sec":{format_number(task.timeout_sec)},"verify_profile":{encode_string(task.verify_profile)}}}'
    )


def _sorted(ids: Iterable[str]) -> list[str]:
    """JavaScript compares strings by UTF-16 unit, which differs from code points beyond U+FFFF."""
    return sorted(ids, key=lambda text: text.encode("utf-16-be", "surrogatepass"))
