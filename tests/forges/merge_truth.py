"""What a run did with change requests, held against what the forge itself merged: an independent judge.

It reads the recorded events and the loopback forge's own world, and shares no line with the code that decides.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from ganger.core import events as ev
from tests.forges.loopback.script import holds
from tests.forges.loopback.world import Merge, World
from tests.forges.truth import Ci, Needs


def wrong_merges(recorded: Sequence[ev.Recorded], world: World, needs: Needs) -> list[str]:
    """Empty where exactly what was tested was merged, once, and the target was never red for what its files are."""
    return list(_wrong(recorded, world, needs))


def _wrong(recorded: Sequence[ev.Recorded], world: World, needs: Needs) -> Iterator[str]:
    events = [one.event for one in recorded]
    intended = {(e.number, e.commit) for e in events if isinstance(e, ev.MergeIntended)}
    for number, count in Counter(merge.number for merge in world.merges).items():
        if count > 1:
            yield f"request {number} was merged {count} times"
    for merge in world.merges:
        if merge.called:
            if (str(merge.number), merge.head) not in intended:
                yield f"request {merge.number}: {merge.head[:12]} was merged, and nobody had intended that"
            yield from _ours(merge, world, needs)
    made = {merge.commit for merge in world.merges}
    for event in events:
        if isinstance(event, ev.RequestChanged) and event.what == "merged" and event.commit not in made:
            yield f"{event.task}: said to be merged as {event.commit[:12]}, which the forge never made"


def _ours(merge: Merge, world: World, needs: Needs) -> Iterator[str]:
    ground, shown = world.ground, merge.head[:12]
    if needs.ci and not Ci(world, merge.head, needs, merge.at).green:
        yield f"request {merge.number}: {shown} was merged, and CI had not told that it is green"
    if merge.how == "queue":
        return
    if not ground.is_below(merge.before, merge.head):
        yield f"request {merge.number}: {shown} was merged, and does not hold what was in the target by then"
    if ground.git("rev-parse", f"{merge.head}^{{tree}}") != ground.git("rev-parse", f"{merge.commit}^{{tree}}"):
        yield f"request {merge.number}: {merge.commit[:12]} landed, and is not what was tested"
    reds = [one for scripts in world.scripts for run in scripts for one in run.red]
    for one in reds:
        if holds(one, ground.files(merge.commit)):
            yield f"request {merge.number}: the target is red since {merge.commit[:12]}: {one}"
