"""Random change sets on random trees: apply equals a simple model, rollback restores exactly."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from write_harness import fast_folder, make_place, snapshot

from ganger.errors import WriteRefused
from ganger.workspaces.apply import apply_changes, is_applied, prepare_backup, roll_back
from ganger.workspaces.changes import WriteRequest, WriteRules, plan_changes
from ganger.workspaces.tree import Tree

PATHS = ["a", "b", "a/x", "a/y", "c/x", "c/d/e", "c/d", "f/g/h"]
TEXTS = st.sampled_from(["", "one\n", "zwei ü\n", "x" * 101, "x" * 51, "x" * 50, "y" * 300])
REQUESTS = st.lists(
    st.builds(WriteRequest, st.sampled_from(PATHS), st.sampled_from(["create", "replace", "append"]), TEXTS), max_size=6
)


def clashes(path: str, others: set[str]) -> bool:
    return any(other.startswith(f"{path}/") or path.startswith(f"{other}/") for other in others)


def tree_of(chosen: dict[str, str]) -> dict[str, str]:
    """The largest part of a random choice in which no path is both a file and a directory."""
    kept: dict[str, str] = {}
    for path, text in chosen.items():
        if not clashes(path, set(kept)):
            kept[path] = text
    return kept


def model(files: dict[str, str], requests: list[WriteRequest]) -> dict[str, str] | None:
    """What the tree must hold afterwards; None when the change set must be refused."""
    after = dict(files)
    for request in requests:
        exists = request.path in after
        if clashes(request.path, set(after)) or exists != (request.op == "replace") != (
            request.op == "append" and exists
        ):
            return None
        after[request.path] = (after.get(request.path, "") if request.op == "append" else "") + (request.content or "")
    replaced = {request.path for request in requests if request.op == "replace"} & set(files)
    sizes = [(len(files[path].encode()), len(after[path].encode())) for path in replaced]
    return None if any(old > 100 and new * 2 < old for old, new in sizes) else after


def texts_in(root: Path) -> dict[str, str]:
    return {str(one.relative_to(root)): one.read_text() for one in root.rglob("*") if one.is_file()}


@given(st.dictionaries(st.sampled_from(PATHS), TEXTS, max_size=5), REQUESTS)
def test_apply_equals_the_model_and_rollback_restores_exactly(
    chosen: dict[str, str], requests: list[WriteRequest]
) -> None:
    """T18 T28 failed-verify-rollback: for any tree and any change set."""
    files = tree_of(chosen)
    expected = model(files, requests)
    with fast_folder() as top:
        place = make_place(top, files)
        before = snapshot(place.root)
        try:
            with Tree(place.root) as tree:
                changes = plan_changes(tree, requests, WriteRules())
                apply_changes(tree, changes, prepare_backup(tree, changes, place.folder))
            landed: dict[str, str] | None = texts_in(place.root)
        except WriteRefused:
            landed = None
        assert landed == expected
        assert landed is None or is_applied(place.root, place.folder) == "all"
        roll_back(place.root, place.folder)
        assert snapshot(place.root) == before
