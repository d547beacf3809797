"""The five formats: every document of the corpus gets its verdict, from the models and from the published schemas."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path

import jsonschema_rs
import pytest

from ganger.contracts.codes import CODES
from ganger.contracts.faults import MOST_FAULTS, check_manifest, faults_of, load_manifest, load_profiles, load_state
from ganger.contracts.manifest import Manifest
from ganger.contracts.schemas import FORMATS, schema, schema_text, write_schemas
from ganger.contracts.task_result import TaskResult
from ganger.errors import InputError, NotFoundError
from tests.contracts.contract_samples import CASES, GOOD, MANIFEST, RESULT, Case, changed

PUBLISHED = Path(__file__).resolve().parents[2] / "schemas"
CONTRACTS = Path(__file__).resolve().parents[2] / "src/ganger/contracts"


@pytest.mark.parametrize("case", CASES, ids=str)
def test_each_document_of_the_corpus_gets_its_verdict(case: Case) -> None:
    """T01 T09: accepted, or refused with the right code at the right path."""
    faults = faults_of(FORMATS[case.format], case.data)
    if not case.code:
        assert faults == []
        return
    assert faults[0].code == case.code, faults
    assert all(fault.message and fault.code in CODES for fault in faults)
    assert not case.path or case.path in [fault.path for fault in faults]


@pytest.mark.parametrize("name", FORMATS)
def test_the_published_schema_agrees_with_the_model_on_the_corpus(name: str) -> None:
    """T09: an independent validator with the published file comes to the same verdict wherever a schema can say it."""
    judge = jsonschema_rs.validator_for(json.loads((PUBLISHED / f"{name}.json").read_text()), validate_formats=True)
    cases = [case for case in CASES if case.format == name]
    wrong = [str(c) for c in cases if judge.is_valid(c.data) != (not c.code or not c.by_schema)]
    assert len(cases) >= 25
    assert wrong == []


@pytest.mark.parametrize("name", FORMATS)
def test_the_published_schema_is_the_one_the_models_make(name: str, tmp_path: Path) -> None:
    """T09: schemas/ is generated; `write_schemas` brings it up to date."""
    write_schemas(tmp_path)
    assert (PUBLISHED / f"{name}.json").read_text() == (tmp_path / f"{name}.json").read_text() == schema_text(name)


@pytest.mark.parametrize("name", FORMATS)
def test_a_schema_is_closed_and_names_itself(name: str) -> None:
    """T09: 2020-12, an $id, a title, and no object open but metadata, content and maps of named objects."""
    made = schema(name)
    jsonschema_rs.meta.validate(made)
    assert made["$id"].startswith("urn:ganger:") and made["title"] and "2020-12" in made["$schema"]
    parts = [made, *made.get("$defs", {}).values()]
    assert all(part["additionalProperties"] is False for part in parts)


def test_an_unknown_schema_name_is_answered_with_the_known_ones() -> None:
    """T09: the error says what could have been asked for."""
    with pytest.raises(NotFoundError) as caught:
        schema("manifests")
    assert "verify_profile" in caught.value.hint


def test_faults_come_in_the_order_missing_unknown_members() -> None:
    """T07 T09: an object before its members, inside it missing fields, then unknown ones, then members by schema."""
    bad = {
        "contract_version": "2.0",
        "writes": [{"op": 1, "path": "", "bogus": 1}],
        "zz": 1,
        "status": "x",
        "evidence": [],
    }
    assert [fault.path for fault in faults_of(TaskResult, bad)] == [
        "task_id", "summary", "zz", "status", "writes[0]", "writes[0].encoding", "writes[0].bogus",
        "writes[0].path", "writes[0].op", "evidence",
    ]  # fmt: skip


def test_faults_of_rules_are_sorted_among_the_others() -> None:
    """T01: a metadata fault of task 0 stands before a type fault of task 1."""
    bad = changed(changed(MANIFEST, "tasks.0.metadata", {"mode": "x"}), "tasks.1.timeout_sec", 0)
    assert [fault.path for fault in check_manifest(bad)] == ["tasks[0].metadata.mode", "tasks[1].timeout_sec"]


def test_a_misspelt_field_is_answered_with_the_right_one() -> None:
    """T01: unknown fields are refused with their path and a suggestion."""
    fault = check_manifest(changed(MANIFEST, "tasks.1.priorty", 1))[0]
    assert (fault.path, fault.code) == ("tasks[1].priorty", "UNKNOWN_FIELD")
    assert "did you mean `priority`" in fault.message


def test_a_path_quotes_keys_that_are_not_words() -> None:
    """T09: hostile keys cannot forge a path or a second line."""
    bad: object = {"profiles": {"a.b\n\x1b[2J": {"steps": []}}}
    assert faults_of(FORMATS["verify_profile"], bad)[0].path == r'profiles["a.b\n\u001b[2J"].steps'


def test_messages_stay_short_and_on_one_line() -> None:
    """T09: a huge or hostile value is not echoed."""
    for value in ("x" * 100_000, "\x1b[31m\n\u202e", 10**5000, [1] * 10_000, {"a" * 1000: 1}):
        (fault,) = faults_of(TaskResult, changed(RESULT, "status", value))
        assert len(fault.message) < 300 and fault.message.isprintable()


def test_many_faults_are_capped_with_a_count() -> None:
    """T01: at most 200 faults and one that counts the rest."""
    faults = check_manifest(changed(MANIFEST, "tasks", [{}] * 1000))
    assert len(faults) == MOST_FAULTS + 1
    assert faults[-1].code == "MORE_FAULTS" and "4800" in faults[-1].message


def test_checking_takes_linear_time() -> None:
    """T01: ten times the tasks take about ten times the time, also when every task is faulty."""

    def seconds(count: int) -> float:
        tasks = [{"id": f"t{i}", "bogus": 1, "timeout_sec": 0} for i in range(count)]
        began = time.process_time()
        check_manifest({"manifest_version": "2.0", "run_id": "r", "tasks": tasks})
        return time.process_time() - began

    small = min(seconds(2_000) for _ in range(3))
    assert seconds(20_000) < 40 * small + 0.1


def test_twins_in_case_and_unicode_form_are_named() -> None:
    """T01: ids that a file system may take for one are refused; equal ids are left to the plan."""
    names = ["Straße", "STRASSE", "\u00e9", "e\u0301", "b", "b"]
    tasks = [{**MANIFEST["tasks"][0], "id": name} for name in names]
    faults = check_manifest({**MANIFEST, "tasks": tasks})
    assert [(f.path, f.code) for f in faults] == [("tasks[1].id", "CASE_TWIN"), ("tasks[3].id", "CASE_TWIN")]


def test_numbers_keep_the_type_they_were_written_in() -> None:
    """T01: an integer stays an integer, a float a float; infinite ones are refused."""
    tasks = Manifest.model_validate(MANIFEST).tasks
    assert [type(task.timeout_sec) for task in tasks] == [int, float]
    for value in (float("inf"), float("nan"), 10**400):
        assert check_manifest(changed(MANIFEST, "tasks.0.timeout_sec", value))


def test_records_cannot_be_changed() -> None:
    """T09: what was checked stays what it was."""
    task = Manifest.model_validate(MANIFEST).tasks[0]
    with pytest.raises(ValueError, match="frozen"):
        setattr(task, "id", "other")  # noqa: B010


def test_loaders_read_files_and_name_the_source(tmp_path: Path) -> None:
    """T01 T09: a good file becomes a record, a bad one an InputError with every fault."""
    for name, load in (("manifest", load_manifest), ("verify_profile", load_profiles), ("state", load_state)):
        file = tmp_path / f"{name}.json"
        file.write_text(json.dumps(GOOD[name]))
        assert type(load(file)) is FORMATS[name]
        file.write_text("{}")
        with pytest.raises(InputError) as caught:
            load(file)
        assert caught.value.source == str(file) and caught.value.faults[0].code == "MISSING_REQUIRED_FIELD"


def test_a_large_manifest_loads_quickly(tmp_path: Path) -> None:
    """T01: ten thousand tasks in a file of several megabytes take a fraction of a second of work."""
    task = {**MANIFEST["tasks"][1], "metadata": {"note": "x" * 300}, "depends_on": []}
    file = tmp_path / "m.json"
    file.write_text(json.dumps({**MANIFEST, "tasks": [{**task, "id": f"t{i}"} for i in range(10_000)]}, indent=1))
    began = time.process_time()
    assert len(load_manifest(file).tasks) == 10_000
    assert time.process_time() - began < 2


def test_every_code_in_the_source_is_explained() -> None:
    """T26: no code is emitted that `explain` does not know."""
    text = "".join(file.read_text() for file in CONTRACTS.rglob("*.py") if file.name != "codes.py")
    emitted = set(re.findall(r'"([A-Z][A-Z0-9]+_[A-Z0-9_]+)"', text)) - {"CONTRACT_ERROR", "NOT_FIXABLE"}
    assert emitted <= CODES.keys() and len(emitted) >= 20
    assert all(e.title and e.meaning.endswith(".") and e.next_step.endswith(".") for e in CODES.values())
