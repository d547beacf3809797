"""Whatever an agent does to the files of its workspace, the commit holds exactly that."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import suppress
from itertools import count
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from tests.workspaces.git_projects import Ground, files_in, ground_at

EXAMPLES = int(os.environ.get("GANGER_FUZZ_EXAMPLES", "20"))
_NAMES = st.sampled_from(["a", "b", "README.md", "src", "one.py", "two.py", "deep", "-c", "new\nline", "ü", "x.txt"])
_PATHS = st.lists(_NAMES, min_size=1, max_size=3).map("/".join)
_EDITS = st.one_of(
    st.tuples(st.just("write"), _PATHS, st.binary(max_size=40)),
    st.tuples(st.just("delete"), _PATHS, st.just(b"")),
    st.tuples(st.just("mode"), _PATHS, st.sampled_from([b"755", b"644", b"600"])),
    st.tuples(st.just("link"), _PATHS, st.sampled_from([b"../x", b"/etc/passwd", b"src", b"."])),
    st.tuples(st.just("move"), _PATHS, _PATHS.map(str.encode)),
    st.tuples(st.just("same"), _PATHS, st.just(b"")),
)


@pytest.fixture(scope="module")
def ground(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ground]:
    with ground_at(tmp_path_factory.mktemp("model")) as one:
        one.open()
        yield one


def _edit(folder: Path, what: str, path: str, data: bytes) -> None:
    """Made as far as the file system lets it; never through a link."""
    target = folder / path
    if any(one.is_symlink() for one in target.parents if folder in one.parents):
        return
    with suppress(OSError, shutil.Error):
        if what == "write" and not target.is_symlink():
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
        elif what == "delete":
            shutil.rmtree(target) if target.is_dir() and not target.is_symlink() else target.unlink()
        elif what == "mode" and target.is_file() and not target.is_symlink():
            target.chmod(int(data, 8))
        elif what == "link":
            target.symlink_to(os.fsdecode(data))
        elif what == "move":
            target.rename(folder / os.fsdecode(data))
        elif what == "same" and target.is_file() and not target.is_symlink():
            target.write_bytes(target.read_bytes())


_attempts = count(1)


@settings(max_examples=EXAMPLES)
@given(edits=st.lists(_EDITS, max_size=12))
def test_random_edits_are_the_tree_that_is_committed(edits: list[tuple[str, str, bytes]], ground: Ground) -> None:
    """T18 W02 G08: taken and saved alike, and what the judge saw is exactly what differs from the base."""
    number = next(_attempts)
    place = ground.place("t", number)
    for what, path, data in edits:
        _edit(place.folder, what, path, data)
    there = files_in(place.folder)
    taken, saved = ground.take("t", number), ground.save("t", number)[0]
    before = ground.tree(place.base)
    assert ground.tree(taken.commit) == ground.tree(saved or place.base) == there
    assert set(taken.files) == {path for path in {*before, *there} if before.get(path) != there.get(path)}
    ground.do(ground.repository.release("t", number))
