"""What the engine takes from the world beside its ports, made to follow the seed and to end with the lead."""

from __future__ import annotations

import contextlib
import random
import secrets
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

from ganger.engine import journal
from ganger.engine.output import report, state_file
from ganger.engine.prompts import patched_prompts
from ganger.local import run_folder as files
from sim.life import Life
from sim.plan import Plan


class Hands:
    """Whose step it is: files written beside the ports are that life's effects, and none of one that was away."""

    def __init__(self, seed: int) -> None:
        self.life: Life | None = None
        self._chance = random.Random(f"tokens {seed}")  # noqa: S311

    def token(self, size: int = 16) -> str:
        return f"{self._chance.getrandbits(8 * size):0{2 * size}x}"

    def replace_file(self, path: Path, text: str) -> None:
        """As the real one without the waiting for the disk, which no simulated death can show."""
        assert self.life is not None
        self.life.point("file.before")
        if self.life.away:
            return
        temporary = path.with_name(f".{path.name}.tmp")
        with files.named_os_errors(path):
            temporary.write_text(text, encoding="utf-8")
            self.life.point("file.during")
            temporary.rename(path)
        self.life.point("file.after")


@contextlib.contextmanager
def borrowed(hands: Hands, plan: Plan) -> Iterator[None]:
    """With long ticks the lead looks at the world more seldom, so that a long night takes seconds."""
    with contextlib.ExitStack() as stack:
        stack.enter_context(patch.object(state_file, "_AT_MOST_SEC", plan.tick_sec))
        stack.enter_context(patch.object(journal, "_SNAPSHOT_EVERY_EVENTS", plan.snapshot_events))
        stack.enter_context(patch.object(secrets, "token_hex", hands.token))
        for module in (state_file, report, patched_prompts):
            stack.enter_context(patch.object(module, "replace_file", hands.replace_file))
        yield
