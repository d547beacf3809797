"""What prompts and context files held: read once, known again, never read outside the project."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

from ganger.app.prompt_files import MISSING, UNREADABLE, Contents, contents_of
from ganger.core.control.reconcile import ContentDigest
from ganger.core.model.records import TaskSpec

SPEC = TaskSpec("a", prompt_ref="prompts/a.md", context_refs=("docs/one.md", "docs/two.md"))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name in ("prompts/a.md", "docs/one.md", "docs/two.md"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(f"{name}\n")
    return tmp_path


def later() -> int:
    return time.time_ns() + 10_000_000_000


def of(root: Path, spec: TaskSpec = SPEC) -> ContentDigest:
    """Looked at some time after the last change, so that what was read may be remembered."""
    contents = Contents(root, root / "contents.json", now_ns=later)
    found = contents.of([spec])
    contents.save()
    return found[spec.id]


def remembered(root: Path) -> dict[str, list[object]]:
    files: dict[str, list[object]] = json.loads((root / "contents.json").read_text())["files"]
    return files


def forge(root: Path, digest: str) -> None:
    """Makes the memory tell something else than the files hold, so that its use can be seen."""
    files = {name: [*image[:4], digest] for name, image in remembered(root).items()}
    (root / "contents.json").write_text(json.dumps({"version": 1, "files": files}))


def test_a_change_of_prompt_and_of_each_context_file_can_be_told_apart(root: Path) -> None:
    """T20: the second digest has one part per file."""
    before = contents_of([SPEC], root)["a"]
    (root / "docs/two.md").write_text("other\n")
    after = contents_of([SPEC], root)["a"]
    assert (before.prompt, before.context[0]) == (after.prompt, after.context[0])
    assert before.context[1] != after.context[1]


def test_a_digest_survives_the_way_into_an_event_and_back(root: Path) -> None:
    """T20: short, and nothing of the file's text."""
    found = of(root)
    assert ContentDigest.read(found.text) == found and len(found.text) == 3 * 19 - 1
    assert ContentDigest.read("") is None


def test_an_untouched_file_is_not_read_again(root: Path) -> None:
    """T20: known by size, times and inode, so a resume costs one look per file."""
    of(root)
    forge(root, "0123456789abcdef")
    assert of(root).prompt == "0123456789abcdef"


def test_a_file_that_was_written_is_read_again_although_size_and_mtime_are_the_same(root: Path) -> None:
    """T20: whoever puts the old time back cannot put back when the file's entry changed."""
    before, path = of(root), root / "prompts/a.md"
    seen = path.stat()
    path.write_text("prompts/b.md\n")
    os.utime(path, ns=(seen.st_atime_ns, seen.st_mtime_ns))
    assert path.stat().st_size == seen.st_size and of(root).prompt != before.prompt


def test_a_file_written_a_moment_ago_is_not_remembered(root: Path) -> None:
    """T20: it could be written again within the same tick of the file system's clock."""
    contents = Contents(root, root / "contents.json", now_ns=lambda: (root / "prompts/a.md").stat().st_ctime_ns)
    contents.of([SPEC])
    contents.save()
    assert not (root / "contents.json").exists() or "prompts/a.md" not in remembered(root)


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "null", '{"files": {}}', '{"version": 2, "files": {"prompts/a.md": [1, 2, 3, 4, "x"]}}',
     '{"version": 1, "files": {"prompts/a.md": [1]}}', '{"version": 1, "files": []}', "[" * 100_000],
)  # fmt: skip
def test_a_damaged_memory_is_ignored_and_replaced(root: Path, text: str) -> None:
    """T20: it saves time and decides nothing."""
    before = contents_of([SPEC], root)["a"]
    (root / "contents.json").write_text(text)
    assert of(root) == before and len(remembered(root)) == 3


def test_a_memory_that_cannot_be_kept_stops_nothing(root: Path) -> None:
    """T20: the folder may be missing or full."""
    contents = Contents(root, root / "nowhere" / "contents.json", now_ns=later)
    assert contents.of([SPEC])["a"] == contents_of([SPEC], root)["a"]
    contents.save()


def test_looking_at_one_task_forgets_none_of_the_others(root: Path) -> None:
    """T20: attempts look at their own files only."""
    of(root)
    (root / "prompts/b.md").write_text("b\n")
    of(root, TaskSpec("b", prompt_ref="prompts/b.md"))
    assert len(remembered(root)) == 4


def test_a_missing_file_has_a_digest_of_its_own(root: Path) -> None:
    """T20: that it is gone, or there again, is a change like any other."""
    spec = TaskSpec("a", prompt_ref="prompts/none.md", context_refs=("prompts/a.md/none.md",))
    assert of(root, spec) == ContentDigest(MISSING, (MISSING,))


def test_nothing_is_read_that_is_no_regular_file_of_the_project(root: Path) -> None:
    """T18 T20: neither through a link, nor upwards, nor by a full path, nor from a pipe."""
    outside = root.parent / "secret.md"
    outside.write_text("secret\n")
    (root / "link.md").symlink_to(outside)
    (root / "folder").symlink_to(root.parent)
    os.mkfifo(root / "pipe")
    refs = ("../secret.md", str(outside), "folder/secret.md", "pipe", "docs", "a\0b")
    found = of(root, TaskSpec("a", prompt_ref="link.md", context_refs=refs))
    assert {found.prompt, *found.context} == {UNREADABLE, MISSING}
    assert found.context[1] == MISSING and not (root / "contents.json").exists()


def test_files_written_after_a_moment_are_named(root: Path) -> None:
    """T20: so that what agents wrote during the run is not taken for a person's edit."""
    for name, seconds in (("prompts/a.md", 100), ("docs/one.md", 200), ("docs/two.md", 300)):
        os.utime(root / name, (seconds, seconds))
    contents = Contents(root)
    contents.of([SPEC])
    assert contents.edited_after(200) == {"docs/two.md"}
