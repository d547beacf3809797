"""Random change sets on random trees: apply equals a simple model, rollback restores exactly."""

from __future__ import annotations

from hypothesis import given, strategies as st

from ganger.errors import WriteRefused
from ganger.workspaces.direct.write import is_applied, roll_back
from ganger.workspaces.rules.writes import WriteRequest
from tests.workspaces.write_harness import Place, fast_folder, land, make_place

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
        if clashes(request.path, set(after)) or request.op == ("create" if exists else "replace"):
            return None
        after[request.path] = (after.get(request.path, "") if request.op == "append" else "") + (request.content or "")
    replaced = {request.path for request in requests if request.op == "replace"} & set(files)
    sizes = [(len(files[path].encode()), len(after[path].encode())) for path in replaced]
    return None if any(old > 100 and new * 2 < old for old, new in sizes) else after


def landed(place: Place, requests: list[WriteRequest]) -> dict[str, str] | None:
    """What the tree does hold afterwards; None when the change set was refused."""
    try:
        land(place, requests)
    except WriteRefused:
        return None
    assert is_applied(place.root, place.folder) == "all"
    files = [one for one in place.root.rglob("*") if one.is_file()]
    return {str(one.relative_to(place.root)): one.read_text() for one in files}


@given(chosen=st.dictionaries(st.sampled_from(PATHS), TEXTS, max_size=5), requests=REQUESTS)
def test_apply_equals_the_model_and_rollback_restores_exactly(
    chosen: dict[str, str], requests: list[WriteRequest]
) -> None:
    """T18 T28 failed-verify-rollback: for any tree and any change set."""
    files = tree_of(chosen)
    with fast_folder() as top:
        place = make_place(top, files)
        before = place.snapshot()
        assert landed(place, requests) == model(files, requests)
        roll_back(place.root, place.folder)
        assert place.snapshot() == before
