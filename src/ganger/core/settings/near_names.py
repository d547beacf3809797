"""Names that are meant for another: with other case, another separator, or one letter wrong."""

from __future__ import annotations

import re
from collections.abc import Collection

# Many valid words differ by one letter from a name this short; only typing errors count here.
_SHORT, _MIDDLING = 4, 6
_LONGEST = 64
# Words of their own, even if they differ from a name by one letter.
_OWN_WORDS = frozenset(("state", "status", "usage", "preview", "previews", "reviewer", "reviewers", "staged"))
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def near_name(name: str, known: Collection[str]) -> str:
    """The known name that was meant; empty if the name is known itself, or belongs to something else."""
    if name in known or len(name) > _LONGEST:
        return ""
    written = _plain(name)
    for one in known:
        if _joined(written) == _joined(one):
            return one
    if written in _OWN_WORDS:
        return ""
    near = [(distance(written, one), one) for one in known if abs(len(written) - len(one)) <= 2]
    best = min(near, default=(_LONGEST, ""))
    return best[1] if best[0] <= _most(written, best[1]) else ""


def _plain(name: str) -> str:
    return _HUMP.sub("_", name.strip()).replace("-", "_").replace(" ", "_").replace(".", "_").casefold()


def _joined(name: str) -> str:
    return name.replace("_", "")


def _most(written: str, meant: str) -> int:
    if len(meant) <= _SHORT:
        return 1 if sorted(written) == sorted(meant) or _has_one_less_or_double(written, meant) else 0
    return 1 if len(meant) <= _MIDDLING else 2


def _has_one_less_or_double(written: str, meant: str) -> bool:
    """A missing letter, a doubled letter, or an `s` at the end."""
    if written == f"{meant}s":
        return True
    without = {meant[:place] + meant[place + 1 :] for place in range(len(meant))}
    doubled = {meant[:place] + meant[place] + meant[place:] for place in range(len(meant))}
    return written in without or written in doubled


def distance(first: str, second: str) -> int:
    """How many letters are added, missing, changed or swapped with their neighbour."""
    before: list[int] = []
    row = list(range(len(second) + 1))
    for i, a in enumerate(first, start=1):
        last, row, older = row, [i], before
        for j, b in enumerate(second, start=1):
            cost = min(last[j] + 1, row[j - 1] + 1, last[j - 1] + (a != b))
            if i > 1 and j > 1 and a == second[j - 2] and first[i - 2] == b:
                cost = min(cost, older[j - 2] + 1)
            row.append(cost)
        before = last
    return row[-1]
