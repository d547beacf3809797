"""Files that tools leave behind and that are never committed; every other file is work and is never dropped."""

from __future__ import annotations

import fnmatch
import re

from ganger.workspaces.rules.line_counts import listed

# `build`, `dist`, `out`, `bin`, `obj`, `vendor` and `coverage` are not here: people keep sources under these names, and
# a dropped source is lost work. A project's own .gitignore covers them where they are not sources.
GENERATED_FOLDERS = listed(
    "__pycache__ .pytest_cache .mypy_cache .ruff_cache .hypothesis .tox .nox .eggs .ipynb_checkpoints .pytype .pyre"
    " .venv node_modules .nyc_output .parcel-cache .turbo .nuxt .svelte-kit .angular .gradle .terraform .serverless"
    " .sass-cache __MACOSX .Trashes .Spotlight-V100 .fseventsd"
)
GENERATED_FILES = (
    *("*.pyc", "*.pyo", "*$py.class", ".coverage", ".coverage.*", ".dmypy.json"),
    *(".DS_Store", "._.DS_Store", "Thumbs.db", "ehthumbs.db", "desktop.ini"),
    *("*.swp", "*.swo", ".*.un~", ".#*", "*.tsbuildinfo", ".eslintcache", ".stylelintcache", ".phpunit.result.cache"),
    *("npm-debug.log*", "yarn-debug.log*", "yarn-error.log*", ".pnpm-debug.log*", "hs_err_pid*.log"),
)
# A folder with an ordinary name counts as generated only where it has the tool's layout.
GENERATED_LAYOUTS = (
    r"[^/]+\.egg-info/(PKG-INFO|SOURCES|requires|top_level|dependency_links|entry_points|not-zip-safe)[^/]*",
    r"target/([^/]+-[^/]+-[^/]+/)?(debug|release)/(\.fingerprint|\.cargo-lock|build|deps|examples|incremental)(/.*)?",
    r"target/(\.rustc_info\.json|CACHEDIR\.TAG)",
    r"venv/(pyvenv\.cfg|lib64|(bin|lib|include|share|Scripts|Lib|Include)/.*)",
)

_FILE = re.compile("|".join(fnmatch.translate(glob) for glob in GENERATED_FILES))
_LAYOUT = re.compile(f"(?:.*/)?(?:{'|'.join(GENERATED_LAYOUTS)})", re.DOTALL)


def is_generated(path: str) -> bool:
    """Whether a path, spelt with slashes from the workspace's root, is something a tool left behind.

    Ask this only of paths that the base does not have: a committed file is a source, whatever its name.
    """
    parts = path.split("/")
    if not GENERATED_FOLDERS.isdisjoint(parts):
        return True
    return _FILE.match(parts[-1]) is not None or _LAYOUT.fullmatch(path) is not None
