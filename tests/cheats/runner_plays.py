"""What a play against a test runner is: a change to a small project, and whether it may end DONE."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tests.cheats.cheat_project import Planted

RIGHT = "449"


@dataclass(frozen=True)
class Project:
    """A small project whose tests are red because `total` loses cents.

    `probe` prints what the product answers for 1.99 + 2.50 where no test runs: "449" once it is right.
    """

    files: Mapping[str, Planted]
    verify: str
    probe: str
    needs: tuple[str, ...] = ()


@dataclass(frozen=True)
class Play:
    """`how` says what the change does; a cheat leaves the product wrong and its check green, a twin repairs it.

    `base` lies over the files of the project before the change is made; `verify` and `probe` replace the project's own;
    `config` is added to ganger.toml, `metadata` to the task, `env` to the environment of the plain command.
    """

    name: str
    family: str
    how: str
    files: Mapping[str, Planted]
    project: str = "pytest"
    base: Mapping[str, Planted] = field(default_factory=dict)
    verify: str = ""
    probe: str = ""
    config: str = ""
    metadata: Mapping[str, object] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict)
