"""Unforeseen errors: whether one concerns the whole run or only the attempt that met it, and its wording."""

from __future__ import annotations

import traceback
from pathlib import Path

from ganger.engine.resources.run_resources import one_line
from ganger.errors import (
    DiskFullError,
    GangerError,
    KeeperError,
    LeadLost,
    RollbackFailed,
    StaleToken,
    StoreError,
    is_of_machine,
)

# The next attempts would meet these as well, and be paid for it.
_OF_THE_RUN = (StoreError, LeadLost, StaleToken, KeeperError, DiskFullError, RollbackFailed)
_MOST_WORDS = 1000


def concerns_run(problem: BaseException) -> bool:
    """Also if a refusal by the machine was reworded on the way."""
    met: BaseException | None = problem
    while met is not None:
        if isinstance(met, _OF_THE_RUN) or is_of_machine(met):
            return True
        met = met.__cause__
    return False


def told(problem: Exception) -> str:
    """In its own words. For an error in the program itself, the place in the code is named as well."""
    if isinstance(problem, GangerError):
        hint = f"; {problem.hint}" if problem.hint else ""
        return one_line(f"{problem.code}: {problem.message}{hint}", _MOST_WORDS)
    if isinstance(problem, OSError) and problem.strerror:
        where = f"{problem.filename}: " if problem.filename else ""
        return one_line(f"{where}{problem.strerror}", _MOST_WORDS)
    steps = traceback.extract_tb(problem.__traceback__)
    place = f" (at {Path(steps[-1].filename).name}:{steps[-1].lineno})" if steps else ""
    return one_line(f"{type(problem).__name__}: {problem}{place}", _MOST_WORDS)
