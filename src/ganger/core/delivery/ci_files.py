"""Which files say what a forge's CI does, and when it does it."""

from __future__ import annotations

import re
from collections.abc import Iterable

_CI_FILE = re.compile(
    r"\.(?:forgejo|gitea|github)/(?:workflows|actions)/.+|\.gitlab-ci\.ya?ml|\.gitlab/.+\.ya?ml|(?:.*/)?action\.ya?ml"
)
_WORKFLOW = re.compile(r"\.(?:forgejo|gitea|github)/workflows/[^/]+\.ya?ml|\.gitlab-ci\.ya?ml")
_BY_PATHS = re.compile(r"""^[ \t-]*["']?(?:paths|paths-ignore|changes)["']?[ \t]*:""", re.MULTILINE)


def ci_files(paths: Iterable[str], told: str = "") -> list[str]:
    """Those of these paths, and those that `told`, the forge's own words, names."""
    return [path for path in paths if _CI_FILE.fullmatch(path) or (len(path) > 3 and path in told)]


def workflow_files(paths: Iterable[str]) -> list[str]:
    """Those that a push can start."""
    return [path for path in paths if _WORKFLOW.fullmatch(path)]


def go_by_paths(workflows: Iterable[str]) -> bool:
    """Whether each of these texts, one at least, lets changed paths decide: a commit of nothing changes none."""
    texts = list(workflows)
    return bool(texts) and all(_BY_PATHS.search(text) for text in texts)
