"""Which files configure a forge's CI, and when it runs."""

from __future__ import annotations

import re
from collections.abc import Iterable

_CI_FILE = re.compile(
    r"\.(?:forgejo|gitea|github)/(?:workflows|actions)/.+|\.gitlab-ci\.ya?ml|\.gitlab/.+\.ya?ml|(?:.*/)?action\.ya?ml"
)
_WORKFLOW = re.compile(r"\.(?:forgejo|gitea|github)/workflows/[^/]+\.ya?ml|\.gitlab-ci\.ya?ml")
_BY_PATHS = re.compile(r"""^[ \t-]*["']?(?:paths|paths-ignore|changes)["']?[ \t]*:""", re.MULTILINE)


def ci_files(paths: Iterable[str], message: str = "") -> list[str]:
    """The CI files among these paths, and those named in `message`, the forge's own words."""
    return [path for path in paths if _CI_FILE.fullmatch(path) or (len(path) > 3 and path in message)]


def workflow_files(paths: Iterable[str]) -> list[str]:
    """The files whose workflows a push can start."""
    return [path for path in paths if _WORKFLOW.fullmatch(path)]


def go_by_paths(workflows: Iterable[str]) -> bool:
    """Whether each of these texts (at least one) filters by changed paths: an empty commit changes none."""
    texts = list(workflows)
    return bool(texts) and all(_BY_PATHS.search(text) for text in texts)
