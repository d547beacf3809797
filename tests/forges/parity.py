"""Which scene of the tables is played on which kind of forge, and why a cell is empty."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from tests.forges import scenario_rows as rows, train_rows as trains
from tests.forges.scenario import Row
from tests.forges.workflow_rows import UNREADABLE

FLAVOURS = ("forgejo-16", "gitea-1.27", "github", "gitlab")
_KIND = re.compile(r" on (?:forgejo|gitea|github|gitlab)(?:-[0-9.]+)?\b")
# The same scene by another name, where a forge's own way is told in it.
ALIASES = {
    "mirror skipped, github runs it again": "mirror skipped",
    "mirror skipped, gitea 1.27 runs it again": "mirror skipped",
    "mirror skipped, an empty commit mends it": "mirror skipped",
    "the answer to a new change request is lost": "the answer is lost",
    "flaky network in the log: run again, nobody mends": "flaky network",
}
# One reason for every cell that a table leaves empty.
GROUPS: Mapping[str, tuple[str, Iterable[Row]]] = {
    "mirrors": ("which job mirrors, and that it is tried once more, is Ganger's own rule; a rerun has a row where the "
                "forge has one, else an empty commit", rows.MIRRORS),
    "stopped": ("cancelled, timed out and waiting runs come to the same words behind the port; the words of each forge "
                "are read in its adapter's tests", rows.STOPPED),
    "absent": ("no run for the commit looks the same everywhere: an empty list", rows.ABSENT),
    "workflows": ("which runs and jobs count is judged on what every forge is read into", rows.WORKFLOWS),
    "mends": ("what follows a red verdict is Ganger's own; logs are read by each adapter's tests", rows.FIXES),
    "trouble": ("one client asks all forges", rows.TROUBLE),
    "others": ("git alone decides: the remote is the same for all", rows.OTHERS),
    "requests": ("found by its branch before it is opened, by the same code for all", rows.ASKED),
    "reviews": ("settings of Ganger's that leave the forge alone", rows.REVIEWED),
    "outages": ("a host's state is one for all kinds of forge", rows.OUTAGES),
    "retries": ("a person's retry is Ganger's own", rows.RETRIED),
    "clock": ("CI by the clock is the test's own", rows.REAL),
    "hooks": ("one receiver takes all; each forge's signature is checked in its own tests", rows.HOOKS),
    "workflow files": ("what says that a file cannot be read is Forgejo's and Gitea's failed run; others begin none",
                       UNREADABLE),
    "recorded": ("seen at a running Forgejo 16", rows._timeline()),
    "trains": ("who is to blame is found from files and verdicts; the forge is asked nothing else", trains.TRAINS),
}  # fmt: skip
# Single cells: scene, flavour, and what the forge's documentation says.
REASONS: Mapping[tuple[str, str], str] = {
    ("merged by the forge's own queue", "forgejo-16"): "Forgejo has no merge queue",
    ("merged by the forge's own queue", "gitea-1.27"): "Gitea has no merge queue",
    ("two through the forge's own queue, red together", "forgejo-16"): "Forgejo has no merge queue",
    ("two through the forge's own queue, red together", "gitea-1.27"): "Gitea has no merge queue",
    ("merged by rebase after somebody pushed", "gitlab"): "GitLab rebases by its fast-forward method alone",
    ("fast-forward alone is allowed", "github"): "GitHub merges nothing by fast-forward",
    ("a straight history, and what landed is red", "gitlab"): "what lands there is the very commit that was tested",
    ("what the forge does not allow is told", "forgejo-16"): "it has all four ways to merge",
    ("what the forge does not allow is told", "gitea-1.27"): "it has all four ways to merge",
    ("what the forge does not allow is told", "github"): "the refusal is told by the same code as on GitLab",
    **{
        ("red before the run, ignored, without logs nothing is excused", flavour): "its logs can be fetched"
        for flavour in FLAVOURS
    },
    **{
        (scene, flavour): "child pipelines are GitLab's"
        for scene in (
            "a job of a child pipeline counts where it is named",
            "a job of a child pipeline that nobody named",
        )
        for flavour in FLAVOURS
        if flavour != "gitlab"
    },
}


def scene_of(row: Row) -> str:
    return ALIASES.get(row.name, _KIND.sub("", row.name, count=1))


def played() -> dict[str, set[str]]:
    """Each scene, and the kinds of forge that it is played on."""
    found: dict[str, set[str]] = {}
    for row in (*rows.ROWS, *trains.TRAINS):
        found.setdefault(scene_of(row), set()).add(row.flavour)
    return found


def group_of() -> dict[str, str]:
    return {scene_of(row): why for why, listed in GROUPS.values() for row in listed}


def empty_cells() -> Iterator[tuple[str, str, str]]:
    """Scene, flavour, reason; a reason that is empty is what is wrong."""
    groups = group_of()
    for scene, flavours in played().items():
        for flavour in FLAVOURS:
            if flavour not in flavours:
                yield scene, flavour, REASONS.get((scene, flavour)) or groups.get(scene, "")


def table() -> str:
    lines = [f"| scene | {' | '.join(FLAVOURS)} |", f"| --- |{' --- |' * len(FLAVOURS)}"]
    empty = {(scene, flavour): why for scene, flavour, why in empty_cells()}
    for scene in played():
        cells = [empty.get((scene, one), "played") for one in FLAVOURS]
        lines += [f"| {scene} | {' | '.join(cells)} |"]
    return "\n".join(lines)
