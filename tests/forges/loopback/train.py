"""The forge's own merge queue or train: it tries what each request would make of its target, and merges that."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from .script import OVER

if TYPE_CHECKING:
    from .world import Asked, Made, World


@dataclass
class Car:
    """One request of the queue: what is tried with it, and the runs of that."""

    asked: Asked
    commit: str
    runs: list[Made] = field(default_factory=list)


class Train:
    """`event` is what the runs are called there. A car that is red leaves; those behind it are put together anew."""

    def __init__(self, world: World, event: str = "merge_group") -> None:
        self.world, self.event = world, event
        self.cars: list[Car] = []
        self.left: list[int] = []
        # What was tried, and the head of the request it was made of.
        self.tried: list[tuple[str, str]] = []

    def enter(self, asked: Asked) -> Car | None:
        """Nothing where it does not go together with what is before it."""
        there = self.of(asked)
        if there is not None:
            return there
        car = self._put_together(asked)
        if car is not None:
            self.cars.append(car)
        return car

    def of(self, asked: Asked) -> Car | None:
        return next((car for car in self.cars if car.asked is asked), None)

    def _put_together(self, asked: Asked) -> Car | None:
        ground = self.world.ground
        onto = self.cars[-1].commit if self.cars else ground.tip(asked.into)
        head = self.world.head_of(asked)
        tree = ground.joined(onto, head)
        if not tree:
            return None
        commit = ground.git("commit-tree", tree, "-p", onto, "-p", head, "-m", f"Merge {asked.branch}")
        self.tried.append((commit, head))
        branch = f"gh-readonly-queue/{asked.into}/pr-{asked.number}-{onto}"
        scripts = self.world.scripts[-1] if self.world.scripts else ()
        runs = [self.world.begin(commit, branch, replace(one, event=self.event)) for one in scripts]
        return Car(asked, commit, runs)

    def advance(self) -> None:
        """Whenever anybody asks anything."""
        while self.cars:
            car = self.cars[0]
            words = {word for run in car.runs for word in self.world.words(run).values()}
            needed = {word for run in car.runs for name, word in self.world.words(run).items() if "push" not in name}
            if not words <= OVER:
                return
            self.cars.pop(0)
            if needed == {"ok"}:
                self._merge(car)
            else:
                self._leave(car)

    def _merge(self, car: Car) -> None:
        self.world.landed(car.asked, car.commit, "queue")
        self.world.foreign.add(car.commit)
        self.world.ground.move(car.asked.into, car.commit)

    def _leave(self, car: Car) -> None:
        self.left.append(car.asked.number)
        behind, self.cars = self.cars, []
        for one in behind:
            again = self._put_together(one.asked)
            if again is not None:
                self.cars.append(again)
