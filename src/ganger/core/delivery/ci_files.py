"""Which files say what a forge's CI does."""

from __future__ import annotations

import re
from collections.abc import Iterable

_CI_FILE = re.compile(
    r"\.(?:forgejo|gitea|github)/(?:workflows|actions)/.+|\.gitlab-ci\.ya?ml|\.gitlab/.+\.ya?ml|(?:.*/)?action\.ya?ml"
)


def ci_files(paths: Iterable[str], told: str = "") -> list[str]:
    """Those of these paths, and those that `told`, the forge's own words, names."""
    return [path for path in paths if _CI_FILE.fullmatch(path) or (len(path) > 3 and path in told)]
