"""What the guide says a maintainer sees is what two real runs leave at the forge."""

from __future__ import annotations

from pathlib import Path

import pytest

from ganger.engine.merging.commit_messages import change_message, join_message, request_title
from tests.forges.shown import PAGE, Replaced, shown, written


@pytest.mark.whole
@pytest.mark.timeout(300)
def test_the_page_shows_what_stands_at_the_forge_after_two_runs(tmp_path: Path) -> None:
    """Requests, comment, branches, logs and trailers; `make forge-page` writes the page again."""
    page = PAGE.read_text(encoding="utf-8")
    assert page == written(page, shown(tmp_path))


def test_ids_are_replaced_by_their_place_and_by_nothing_else() -> None:
    """The same commit in its three lengths stays the same commit."""
    first, second = "0123456789abcdef0123456789abcdef01234567", "fedcba9" * 5 + "fedcb"
    replaced = Replaced()
    long, short, other = replaced(f"{first} {first[:7]} {second[:12]}").split()
    assert long.startswith(short) and len(long) == 40 and not long.startswith(other[:7])
    assert long != first and replaced("a #101, b #102, a #101: http://127.0.0.1:4711/x") == (
        "a #12, b #13, a #12: https://git.example.org/x"
    )


def test_a_title_is_one_sentence_without_its_full_stop() -> None:
    """What ends otherwise stays as it is."""
    assert request_title("api", "The port is a number.") == "api: The port is a number"
    assert [request_title("a", said) for said in ("One. Two.", "And so on...", "")] == [
        "a: One. Two.", "a: And so on...", "a",
    ]  # fmt: skip
    assert change_message("r", "api", 1, "The port is a number.").startswith("api: The port is a number\n\nGanger-Run")


def test_a_merge_of_the_target_names_both_branches() -> None:
    """As git itself words it; the trailer stays."""
    into_request = join_message("night", "main", "a" * 40, "ganger/night/api").splitlines()
    assert into_request[0] == "Merge main into ganger/night/api"
    assert into_request[2:] == [f"main has moved on to {'a' * 12}.", "", "Ganger-Run: night"]
    assert join_message("night", "main", "a" * 40).startswith("Merge main into ganger/night\n")
