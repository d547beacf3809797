"""What a program left in its home: no more of it is read than one look is worth, and nothing outside of it."""

from __future__ import annotations

import os
from pathlib import Path

from ganger.agents.usage import lines

PATTERN = ".x/*/chat-*.jsonl"
MB = 1024 * 1024
LIMIT = 64 * MB


def chat(home: Path, name: str, data: bytes, changed: float = 1000.0) -> Path:
    file = home / ".x" / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(data)
    os.utime(file, (changed, changed))
    return file


def read(home: Path) -> list[bytes]:
    return [line for _, line in lines(home, PATTERN)]


def test_files_are_read_from_the_oldest_to_the_newest(tmp_path: Path) -> None:
    """T24: what was written last is heard last."""
    chat(tmp_path, "a/chat-1.jsonl", b"new\nnewest\n", changed=30.0)
    chat(tmp_path, "b/chat-2.jsonl", b"old\n", changed=10.0)
    chat(tmp_path, "b/other.jsonl", b"no\n")
    assert [(path.parent.name, line) for path, line in lines(tmp_path, PATTERN)] == [
        ("b", b"old"),
        ("a", b"new"),
        ("a", b"newest"),
    ]


def test_a_file_of_many_names_is_read_once(tmp_path: Path) -> None:
    """T24: a further name costs an agent nothing."""
    first = chat(tmp_path, "a/chat-0.jsonl", b"one\n")
    for number in range(1, 50):
        os.link(first, first.with_name(f"chat-{number}.jsonl"))
    assert read(tmp_path) == [b"one"]


def test_only_the_newest_of_very_many_files_are_read(tmp_path: Path) -> None:
    """T24: of files, too, there can be any number."""
    for number in range(250):
        chat(tmp_path, f"{number}/chat-1.jsonl", b"%d\n" % number, changed=float(number))
        os.utime(tmp_path / ".x" / str(number), (number, number))
    assert read(tmp_path) == [b"%d" % number for number in range(50, 250)]


def test_of_more_than_can_be_read_it_is_the_end_of_the_newest(tmp_path: Path) -> None:
    """T24: one limit for all files together; the last calls are those of the process that just ended."""
    line = b"x" * (MB - 1) + b"\n"
    chat(tmp_path, "a/chat-old.jsonl", b"old\n" * 10, changed=10.0)
    chat(tmp_path, "a/chat-middle.jsonl", line * 40, changed=20.0)
    chat(tmp_path, "a/chat-new.jsonl", line * 40 + b"last\n", changed=30.0)
    found = read(tmp_path)
    assert sum(len(one) + 1 for one in found) <= LIMIT + 1 and found[-1] == b"last"
    assert found.count(line[:-1]) == 63 and b"old" not in found


def test_no_folder_on_the_way_may_be_a_link(tmp_path: Path) -> None:
    """T24: what lies elsewhere was not written by this agent."""
    elsewhere, home, linked = tmp_path / "elsewhere", tmp_path / "home", tmp_path / "linked"
    chat(elsewhere, "a/chat-1.jsonl", b"not its own\n")
    chat(home, "b/chat-1.jsonl", b"its own\n")
    (home / ".x/a").symlink_to(elsewhere / ".x/a")
    (home / ".x/b/chat-2.jsonl").symlink_to(elsewhere / ".x/a/chat-1.jsonl")
    linked.mkdir()
    (linked / ".x").symlink_to(elsewhere / ".x")
    assert read(home) == [b"its own"] and read(linked) == [] == read(tmp_path / "none")


def test_what_is_no_file_is_not_waited_for(tmp_path: Path) -> None:
    """T24: a pipe that nobody writes to would be read for ever."""
    (tmp_path / ".x/chat-1.jsonl").mkdir(parents=True)
    os.mkfifo(tmp_path / ".x/chat-1.jsonl/chat-1.jsonl")
    os.mkfifo(tmp_path / ".x/a")
    assert read(tmp_path) == []
