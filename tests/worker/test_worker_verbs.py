"""`ganger worker VERB`: what goes over the wire fits the contract, and what came of it is told."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from ganger.contracts.faults import examine
from ganger.contracts.worker import KEPT, VERBS
from ganger.worker.sending import KEPT as CLIENT_KEPT
from ganger.worker.table import VERBS as TABLE
from tests.worker.little_lead import TOKEN, Lead, Worker, leading, refused, taken

RESULT = {"contract_version": "2.0", "status": "DONE", "summary": "s"}
STANDING = """--summary s --done x --remaining y --file f --blocker b --commit c --decision d --last-action l
    --next-action n --percent 5 --context 90 --leave"""
CALLS: dict[str, tuple[str, ...]] = {
    "heartbeat": ("--step", "tests", "--percent", "60", "--note", "n", "--context=40"),
    "progress": ("--tier", "1:syntax:pass", "--tier", "2:a:b:fail:3", "--completed", "2", "--total", "5"),
    "milestone": ("first test green", "--note", "at last"),
    "escalate": ("ambiguous-spec", "which?", "--option", "a", "--option", "b", "--default", "a", "--deadline", "60"),
    "checkpoint": tuple(shlex.split(STANDING)),
    "report": ("--status", "failed", "--summary", "s", "--failure-class", "external", "--changed", "a.py"),
    "done": (),
    "brief": ("contract",),
    "messages": ("--since", "4"),
}


@pytest.fixture
def lead(tmp_path: Path) -> Iterator[Lead]:
    with leading(str(tmp_path / "s")) as lead:
        yield lead


@pytest.fixture
def worker(tmp_path: Path) -> Worker:
    (tmp_path / "desk").mkdir()
    return Worker(str(tmp_path / "s"), tmp_path / "desk")


def test_client_and_contract_know_the_same_verbs() -> None:
    """H07: what is kept is what the lead makes durable."""
    assert set(TABLE) == {*VERBS, "mcp"} and CLIENT_KEPT == KEPT


@pytest.mark.parametrize("verb", CALLS)
def test_a_call_makes_a_request_of_the_protocol(lead: Lead, worker: Worker, verb: str) -> None:
    """G02 H07: taken, exit 0, and nothing left to send."""
    said = worker.say(verb, *CALLS[verb])
    assert said.code == 0, said
    ((name, token, body),) = lead.said
    assert (name, token) == (verb, TOKEN) and not worker.spooled()
    assert examine(VERBS[verb], body)[1] == [] and (verb not in KEPT or body["id"])


def test_options_become_the_fields_of_the_contract(lead: Lead, worker: Worker) -> None:
    """Z03: task, step, progress, tiers."""
    for verb in ("heartbeat", "progress", "escalate"):
        worker.say(verb, *CALLS[verb])
    beat, progress, question = (body for _, _, body in lead.said)
    assert (beat["step"], beat["percent"], beat["context_pct"]) == ("tests", 60, 40)
    assert progress["tiers"][1] == {"tier": 2, "name": "a:b", "success": False, "retry": 3}
    assert (progress["tasks_completed"], progress["tasks_total"]) == (2, 5)
    assert (question["category"], question["options"], question["deadline_sec"]) == ("ambiguous_spec", ["a", "b"], 60)


@pytest.mark.parametrize("how", ["file", "stdin"])
def test_a_result_is_reported_from_a_file_or_stdin(lead: Lead, worker: Worker, tmp_path: Path, how: str) -> None:
    """H07: as it stands; the task it is for is filled in."""
    (tmp_path / "r.json").write_text(json.dumps(RESULT))
    said = worker.say("report", "-" if how == "stdin" else str(tmp_path / "r.json"), stdin=json.dumps(RESULT))
    assert said.code == 0 and "ganger worker done" in said.out
    assert lead.said[0][2]["result"] == {"task_id": "one", **RESULT}


@pytest.mark.parametrize("text", ["äöü 漢字", "half \\ud800 of one", "\\u0000 and \x7f"])
def test_a_result_arrives_as_it_was_written(lead: Lead, worker: Worker, text: str) -> None:
    """H07: whatever characters it has, and no longer than it need be."""
    assert worker.say("report", "-", stdin=json.dumps(RESULT).replace('"s"', f'"{text}"')).code == 0
    assert lead.said[0][2]["result"]["summary"] == json.loads(f'"{text}"')


def test_a_checkpoint_is_read_from_stdin_and_options_count_over_it(lead: Lead, worker: Worker) -> None:
    """Z03: for workers that write JSON anyway."""
    given = json.dumps({"summary": "old", "done": ["x"]})
    assert worker.say("checkpoint", "-", "--summary", "new", stdin=given).code == 0
    assert (lead.said[0][2]["summary"], lead.said[0][2]["done"]) == ("new", ["x"])


@pytest.mark.parametrize("verb", CALLS)
def test_a_refusal_is_told_with_the_next_step(lead: Lead, worker: Worker, verb: str) -> None:
    """Z07: exit 1."""
    lead.answers = refused()
    said = worker.say(verb, *CALLS[verb])
    assert said.code == 1 and said.err == "error: no [ATTEMPT_OVER]\nnext:  end\n"
    shown = worker.say(verb, *CALLS[verb], "--json")
    assert shown.code == 1 and shown.json()["error"]["code"] == "ATTEMPT_OVER"


@pytest.mark.parametrize("verb", CALLS)
def test_json_is_one_document_with_a_schema(lead: Lead, worker: Worker, verb: str) -> None:
    """G02: programs are workers too."""
    answer = worker.say(verb, *CALLS[verb], "--json").json()
    assert answer["schema"].startswith("ganger.worker_") and answer["ok"] is True and answer["latest"] == 0


@pytest.mark.parametrize("verb", ["heartbeat", "messages", "brief"])
def test_what_is_of_no_use_later_is_blocked_while_nobody_leads(worker: Worker, verb: str) -> None:
    """Z07: exit 3, and nothing is kept of it."""
    said = worker.say(verb)
    assert said.code == 3 and "[LEAD_AWAY]" in said.err and not (worker.desk / "spool").exists()


@pytest.mark.parametrize(
    "words",
    [
        ("frob",),
        ("heartbeat", "--frob"),
        ("heartbeat", "x"),
        ("heartbeat", "--percent", "101"),
        ("heartbeat", "--percent", "nan"),
        ("heartbeat", "--percent"),
        ("heartbeat", "--json=1"),
        ("progress", "--tier", "x:syntax:pass"),
        ("progress", "--tier", "1:pass"),
        ("milestone",),
        ("escalate", "only_category"),
        ("escalate", "a", "b", "--default", "c"),
        ("checkpoint",),
        ("checkpoint", "file.json"),
        ("report",),
        ("report", "r.json", "--status", "DONE", "--summary", "s"),
        ("report", "--status", "GREAT", "--summary", "s"),
        ("messages", "--since", "-1"),
    ],
    ids=" ".join,
)
def test_a_wrong_command_line_is_a_usage_error(lead: Lead, worker: Worker, words: tuple[str, ...]) -> None:
    """Z07: exit 64, and nobody is bothered."""
    said = worker.say(*words)
    assert said.code == 64 and "[USAGE]" in said.err and "next:  ganger worker" in said.err and not lead.said


@pytest.mark.parametrize("content", ["", "[]", "{", '{"a": NaN}', '{"a":' * 5000])
def test_a_result_that_is_no_json_object_is_refused_before_it_is_sent(lead: Lead, worker: Worker, content: str) -> None:
    """Z07: exit 1, and nothing is kept of it."""
    said = worker.say("report", "-", stdin=content)
    assert said.code == 1 and "[BAD_REQUEST]" in said.err and not lead.said and not worker.spooled()


@pytest.mark.parametrize("verb", ["", *TABLE])
def test_every_verb_has_a_page_with_examples(worker: Worker, verb: str) -> None:
    """G02: without a lead, a project or an environment."""
    said = worker.say(*filter(None, [verb]), "--help", environ={})
    assert said.code == 0 and said.out.startswith(f"Usage: ganger worker {verb}".rstrip())
    assert "Examples:\n  " in said.out or "Verbs:" in said.out


def test_messages_are_shown_once_and_say_when_there_are_new_ones(lead: Lead, worker: Worker) -> None:
    """Z03: the number of the last one seen is kept in the desk."""
    told = [{"number": 3, "kind": "answer", "text": "take\x1b[2Ja", "at": "t"}]
    lead.answers = lambda verb, body: (
        200,
        {"ok": True, "messages": told if verb == "messages" else 1, "latest": 3},
    )
    assert "unread messages (1)" in worker.say("heartbeat").out
    assert worker.say("messages").out == "[3] answer: take?[2Ja\n"
    assert "unread" not in worker.say("heartbeat").out and worker.say("messages").code == 0
    assert [body["since"] for verb, _, body in lead.said if verb == "messages"] == [0, 3]


def test_waiting_for_messages_in_vain_is_blocked(lead: Lead, worker: Worker) -> None:
    """Z07: exit 3."""
    assert worker.say("messages", "--wait", "0.1").code == 3


@pytest.mark.parametrize(("kind", "code"), [("answer", 0), ("shutdown", 3), ("checkpoint", 3)])
def test_a_question_waits_for_its_answer_or_for_the_end(lead: Lead, worker: Worker, kind: str, code: int) -> None:
    """G02: the answer is printed; a lead that wants the worker to end is not kept waiting."""
    notes = [{"number": 1, "kind": "note", "text": "by the way", "at": "t"}]
    later = [{"number": 2, "kind": kind, "text": "take a", "at": "t"}]

    def answers(verb: str, body: dict[str, object]) -> tuple[int, dict[str, object]]:
        if verb == "messages":
            return 200, {"ok": True, "messages": later if body["since"] else notes, "latest": 2}
        return 200, {"ok": True, "messages": 0, "latest": 0, "question": "q-3"}

    lead.answers = answers
    said = worker.say("escalate", "ambiguous_spec", "which?", "--wait=30")
    assert said.code == code and "take a" in said.out + said.err and "asked as q-3" in said.err
    assert "heartbeat" in lead.verbs()


def test_without_a_desk_it_insists_a_little_and_then_says_so(worker: Worker) -> None:
    """H07: nothing is called kept that is not."""
    worker.desk.rmdir()
    said = worker.say("milestone", "m")
    assert said.code == 3 and "LEAD_AWAY" in said.err and "kept" not in said.out


def test_a_lead_that_hangs_up_is_asked_again_under_the_same_name(lead: Lead, worker: Worker) -> None:
    """H07: the double counts once."""
    worker.desk.rmdir()
    lead.answers = lambda verb, body: None if len(lead.said) < 2 else taken(verb, body)
    assert worker.say("milestone", "m").code == 0
    assert len(lead.said) == 2 and len(lead.recorded) == 1


@pytest.mark.parametrize("address", ["http://example.com:80", "https://127.0.0.1:1", "frob", "/" + "x" * 200])
def test_only_this_machine_is_spoken_to(worker: Worker, address: str) -> None:
    """H07: a token never leaves it."""
    said = worker.say("heartbeat", environ={**worker.environ, "GANGER_REPORT": address})
    assert said.code == 64 and "GANGER_REPORT" in said.err


def test_who_is_no_worker_is_told_how_to_become_one(worker: Worker) -> None:
    """G02: no traceback, no guess."""
    said = worker.say("heartbeat", environ={"PATH": "/usr/bin"})
    assert said.code == 1 and "[NO_CLAIM]" in said.err
