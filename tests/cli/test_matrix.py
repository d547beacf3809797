"""The lines of the test matrix about contracts, each played through a whole run or the parser."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.cli_project import ganger, make_project, task

pytestmark = pytest.mark.whole

NO_TITLE = {"contract_version": "2.0", "task_id": "one", "status": "DONE", "summary": ""}


@pytest.mark.parametrize(
    ("behaviour", "code"),
    [
        pytest.param({"text": "All done!"}, "NO_SENTINEL", id="T28 missing-fence"),
        pytest.param({"text": "<<<TASK_RESULT_V2>>>\n{}"}, "NO_SENTINEL", id="T28 missing-fence: never closed"),
        pytest.param({"block": "{'status': 'DONE'}"}, "INVALID_JSON", id="T28 invalid-json"),
        pytest.param({"block": json.dumps(NO_TITLE)}, "SCHEMA_VIOLATION", id="T28 schema-violation"),
        pytest.param(
            {"result": {"task_id": "two", "status": "DONE"}}, "SCHEMA_VIOLATION", id="T28 schema-violation: id"
        ),
        pytest.param({"block": '{"contract_version": "2.0"}'}, "MISSING_REQUIRED_FIELD", id="T09: missing field"),
        pytest.param({"block": '{"contract_version": "3"}'}, "UNSUPPORTED_VERSION", id="T09: version"),
    ],
)
def test_an_answer_that_breaks_its_contract_is_asked_again_once_and_then_fails(
    tmp_path: Path, behaviour: dict[str, object], code: str
) -> None:
    """T07 T08 T29: the code is the signature; one format retry, then the worker's own attempts; never DONE."""
    root = make_project(tmp_path, task(), script={"one": behaviour})
    lines = ganger("run", "--json", cwd=root).lines
    refused = [line["code"] for line in lines if line["type"] == "result_refused"]
    failed = [(line["signature"], line["counter"]) for line in lines if line["type"] == "attempt_failed"]
    signature = f"contract_error:{code.lower()}"
    assert refused == [code] * 3
    assert failed == [(signature, "format_retries"), (signature, "worker_attempts"), (signature, "worker_attempts")]
    assert lines[-1]["counts"]["FAILED"] == 1


@pytest.mark.quick
@pytest.mark.parametrize(
    ("body", "code"),
    [
        pytest.param("{'decision': 'RETRY'}", "INVALID_JSON", id="T28 invalid-heal-json"),
        pytest.param(
            '{"contract_version": "2.0", "scope": "all"}', "MISSING_REQUIRED_FIELD", id="T28 schema-violation: heal"
        ),
    ],
)
def test_a_healers_broken_answer_is_refused_with_the_same_codes(tmp_path: Path, body: str, code: str) -> None:
    """T07 T26: parse heal."""
    (tmp_path / "h.log").write_text(f"<<<HEAL_DECISION_V2>>>\n{body}\n<<<END_HEAL_DECISION_V2>>>\n")
    answer = ganger("parse", "heal", "h.log", "--json", cwd=tmp_path)
    assert (answer.code, answer.json["code"]) == (1, code)
