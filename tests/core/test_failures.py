"""Failure classes and signatures: one table, and one stable name per fault."""

from __future__ import annotations

import string
import time

import pytest
from hypothesis import example, given, strategies as st

from ganger.core.failures.classes import CLASSES, EMPTY_SIGNAL, OBSERVED, classify_hint, failure, signature
from ganger.core.vocabulary import FailureClass

IDS = ("alpha", "beta-2", "docs", "7")


def of(text: str, own: str = "") -> str:
    return signature("test_error", text, task_ids=IDS, own_id=own).partition(":")[2]


def test_every_failure_class_has_a_row_that_says_everything() -> None:
    """T21 D12: kind, meaning and consequence of each class, and only the five kinds."""
    assert set(CLASSES) == set(FailureClass)
    kinds = {row.kind for row in CLASSES.values()}
    assert kinds == {"transient", "recoverable", "blocking", "permission_denied", "fatal"}
    assert all(row.meaning and row.then for row in CLASSES.values())


def test_a_blocking_class_names_its_block_reason_and_is_not_retried() -> None:
    """D12 W07: what waits for the outside world neither heals nor spends attempts."""
    for cls, row in CLASSES.items():
        if row.kind in ("blocking", "permission_denied"):
            assert row.blocks_as is not None and not row.retryable and not row.healable, cls


@pytest.mark.parametrize("cls", sorted(OBSERVED))
def test_what_ganger_sees_for_itself_cannot_be_claimed_by_a_worker(cls: FailureClass) -> None:
    """T06: a worker's word for a crash, a CI failure or a policy violation falls back."""
    assert classify_hint(cls.value, FailureClass.PROMPT_GAP) is FailureClass.PROMPT_GAP


@pytest.mark.parametrize(
    ("hint", "cls"),
    [
        ("test_error", FailureClass.TEST_ERROR),
        (" Build_Error ", FailureClass.BUILD_ERROR),
        ("transient_infra:dns", FailureClass.TRANSIENT_INFRA),
        ("quota", FailureClass.QUOTA),
        ("no such class", FailureClass.PROMPT_GAP),
        ("", FailureClass.PROMPT_GAP),
        (None, FailureClass.PROMPT_GAP),
    ],
)
def test_a_workers_hint_is_read_generously(hint: str | None, cls: FailureClass) -> None:
    """T09: case and subtypes are forgiven, unknown words fall back."""
    assert classify_hint(hint, FailureClass.PROMPT_GAP) is cls


SAME = {
    "task-id": ("task alpha failed", "task beta-2 failed"),
    "task-id-in-a-name": ("test_alpha.py is missing", "test_beta-2.py is missing"),
    "task-id-in-a-relative-path": ("src/alpha/main.py: bad", "src/beta-2/main.py: bad"),
    "task-id-in-quotes": ("no module 'alpha'", "no module 'beta-2'"),
    "absolute-path": ("cannot open /home/a/work/x.txt", "cannot open /var/lib/y/z.txt"),
    "path-with-the-task-id": ("cannot open /w/alpha/x", "cannot open /w/beta-2/longer/y"),
    "home-path": ("cannot open ~/x/y.txt", "cannot open ~/z.txt"),
    "windows-path": (r"cannot open C:\Users\a\x.txt", r"cannot open D:\b\y.txt"),
    "quoted-path": ('File "/a/b.py", in run', 'File "/c/d/e.py", in run'),
    "url": ("GET http://127.0.0.1:8123/a failed", "GET http://localhost:9000/b?c=1 failed"),
    "iso-time": ("2025-01-02T03:04:05Z boom", "2026-11-12T13:14:15.123456+02:00 boom"),
    "iso-time-lower-case": ("2025-01-02t03:04:05z boom", "2026-11-12 13:14:15 boom"),
    "basic-iso-time": ("20250102T030405Z boom", "20261112T131415Z boom"),
    "syslog-time": ("Jan 2 03:04:05 boom", "Nov 12 13:14:15 boom"),
    "ctime": ("Thu Jan  2 03:04:05 2025 boom", "Thu Nov 12 13:14:15 2026 boom"),
    "mail-time": ("Thu, 2 Jan 2025 03:04:05 GMT boom", "Fri, 12 Nov 2026 13:14:15 +0200 boom"),
    "web-log-time": ("[02/Jan/2025:03:04:05 +0000] boom", "[12/Nov/2026:13:14:15 +0200] boom"),
    "us-time": ("1/2/2025, 3:04 pm boom", "11/12/2026, 11:14 am boom"),
    "clock": ("at 3:04:05 boom", "at 13:14:15,678 boom"),
    "clock-without-seconds": ("at 03:04 boom", "at 13:14 boom"),
    "line-number": ("a.py:3: bad", "a.py:1245: bad"),
    "line-and-column": ("a.js:3:14 bad", "a.js:30:59 bad"),
    "line-in-words": ("line 3, column 4 bad", "line 33, column 44 bad"),
    "line-range": ("lines 3-5 bad", "lines 10-12 bad"),
    "compiler-place": ("a.ts(3,14): error", "a.ts(31,4): error"),
    "java-place": ("A.java:[3,14] error", "A.java:[31,4] error"),
    "port": ("localhost:8080 refused", "localhost:19 refused"),
    "port-in-words": ("port 80 in use", "port 54321 in use"),
    "address": ("10.0.0.1:80 refused", "192.168.17.250:4242 refused"),
    "pid": ("[pid 12] died", "[pid 34567] died"),
    "thread": ("Thread-3 died", "Thread-12 died"),
    "hex": ("object at 0x7f00aa12 lost", "object at 0x1 lost"),
    "commit": ("commit 3f2a9c1 is bad", "commit 0123456789abcdef0123456789abcdef01234567 is bad"),
    "uuid": ("id 123e4567-e89b-12d3-a456-426614174000", "id 00000000-1111-2222-3333-444444444444"),
    "duration": ("ran in 0.12s", "ran in 3.4s"),
    "duration-in-words": ("after 3 seconds", "after 45 seconds"),
    "duration-composed": ("took 1m30s", "took 2h03m59s"),
    "size": ("got 12 bytes", "got 3 bytes"),
    "long-number": ("order 12345 lost", "order 987654321 lost"),
    "grouped-number": ("1,234 left", "12,345,678 left"),
    "fraction": ("score 0.123456 bad", "score 12.9999 bad"),
    "colour": ("\x1b[31mred\x1b[0m alert", "red alert"),
    "case-and-space": ("Bad   Thing\n happened", "bad thing happened"),
}


@pytest.mark.parametrize(("one", "other"), SAME.values(), ids=[f"T21 {name}" for name in SAME])
def test_one_fault_seen_twice_has_one_signature(one: str, other: str) -> None:
    """T21: what differs between two tasks, times or machines is removed."""
    assert of(one, own="alpha") == of(other, own="beta-2")


DIFFERENT = {
    "kind-of-error": ("AssertionError: 3 != 4", "KeyError: 'x'"),
    "small-numbers": ("3 != 4", "3 != 5"),
    "an-id-that-is-a-number": ("7 != 4", "8 != 4"),
    "relative-path": ("src/a.py: bad", "src/b.py: bad"),
    "dotted-path": ("./a.py: bad", "../a.py: bad"),
    "error-code": ("error TS2304: no name", "error TS2322: no name"),
    "rust-code": ("error[E0382]: bad", "error[E0499]: bad"),
    "name": ("no module named json2", "no module named yaml"),
    "exit-code": ("exit code 1", "exit code 2"),
    "word-with-a-slash": ("and/or", "either/or"),
    "version": ("needs 3.11", "needs 3.12"),
}


@pytest.mark.parametrize(("one", "other"), DIFFERENT.values(), ids=[f"T21 {name}" for name in DIFFERENT])
def test_different_faults_have_different_signatures(one: str, other: str) -> None:
    """T21: nothing is removed that tells two faults apart."""
    assert of(one) != of(other)


def test_another_tasks_id_is_removed_as_well() -> None:
    """T21: the same text looks the same from whichever task it is seen."""
    assert of("alpha broke docs", own="docs") == of("alpha broke docs", own="alpha") == "<task> broke <task>"


def test_an_id_inside_a_longer_word_is_left_alone() -> None:
    """T21: `alphabet` is not `alpha`."""
    assert of("alphabet soup") == "alphabet soup"


@pytest.mark.parametrize("text", ["protected by '.env'", "src/.env is secret", "no option --only", "$home is not set"])
def test_a_marked_name_is_no_id(text: str) -> None:
    """T21: nobody finds `.<task>` in a project."""
    assert signature("x", text, task_ids={"env", "only", "home"}) == f"x:{text}"


def test_an_id_behind_a_mark_within_a_name_goes() -> None:
    """T21: it is the task's all the same."""
    assert of("task-alpha: lost v1.alpha", own="alpha") == "task-<task>: lost v1.<task>"


def test_a_number_that_is_an_id_goes_where_it_is_part_of_a_name() -> None:
    """T21: `part_7` names the task, `7 != 4` does not."""
    assert of("part_7.py lost") == "part_<task>.py lost"


@pytest.mark.parametrize("text", ["", "   ", "\n\t", "\x1b[31m\x1b[0m", "\x00\x07"])
def test_an_empty_signal_has_a_name(text: str) -> None:
    """T21: no signature ends in nothing."""
    assert of(text) == EMPTY_SIGNAL


def test_a_signature_is_at_most_120_characters_and_the_class_leaves_room() -> None:
    """T21: a long class cannot eat the signal."""
    made = signature("x" * 500, "the signal " * 100)
    assert len(made) <= 120 and made.startswith("x" * 40 + ":the signal the signal")


def test_a_failure_carries_class_signature_and_sentence() -> None:
    """T21: the record that goes into the events."""
    made = failure(FailureClass.TIMEOUT, "verify test", "step test ran out of time")
    assert (made.signature, made.detail) == ("timeout:verify test", "step test ran out of time")


texts = st.text(alphabet=st.sampled_from(string.printable + "äΩİ中\x1b\u200f\ud800<>"), max_size=300) | st.text()
spiced = st.lists(st.sampled_from([*[t for pair in SAME.values() for t in pair], "5 secr", "<", ">"]) | texts)


@given(spiced.map(" ".join))
@example("x" * 105 + " 5 secret")
@example("a " * 51 + "0x12")
def test_signatures_are_idempotent_bounded_printable_and_never_raise(text: str) -> None:
    """T21: applying it to its own result changes nothing."""
    once = of(text, own="alpha")
    assert of(once, own="alpha") == once
    assert 0 < len(once) <= 120 and once.isprintable() and "  " not in once


HOSTILE = ["/" * 50, "0x", "1:", "1.2.", "aaaa-", "<", "(1", "a://", "task ", "2024-01-", "\x1b[", "1,234", "a" * 20]


@pytest.mark.parametrize("piece", HOSTILE)
def test_hostile_text_costs_no_more_than_its_beginning(piece: str) -> None:
    """T21: 100 kB of anything in a moment."""
    ids = {f"task-{n}" for n in range(1000)} | {piece}
    began = time.process_time()
    signature("x", (piece * 100_000)[:100_000], task_ids=ids, own_id=piece)
    assert time.process_time() - began < 2
