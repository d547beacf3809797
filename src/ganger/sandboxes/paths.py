"""Places every machine has: system folders, and where homes keep credentials; and which place contains which."""

# ruff: noqa: PTH112, PTH114, PTH208
# Places are compared as text, component by component; a run's start compares thousands of them.

from __future__ import annotations

import functools
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

_READ_BY_ALL, _ENTERED_BY_ALL = 0o004, 0o001

SYSTEM = (
    *("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt", "/nix", "/gnu", "/snap"),
    *("/sys", "/run/current-system"),
)
TEMPORARY = ("/tmp", "/var/tmp")  # noqa: S108
CREDENTIALS = (
    *(".ssh", ".aws", ".azure", ".gnupg", ".kube", ".docker", ".password-store", ".vault-token", ".netrc", ".pgpass"),
    *(".git-credentials", ".config/git/credentials", ".config/gh", ".config/glab-cli", ".config/hub", ".config/gcloud"),
    *(".config/op", ".config/doctl", ".config/rclone", ".config/ganger", ".config/containers", ".local/share/keyrings"),
    *(
        ".npmrc",
        ".yarnrc",
        ".yarnrc.yml",
        ".pypirc",
        ".gem/credentials",
        ".m2/settings.xml",
        ".gradle/gradle.properties",
    ),
    *(".cargo/credentials", ".cargo/credentials.toml", ".terraform.d", ".terraformrc", ".my.cnf", ".s3cfg", ".boto"),
    *(".claude", ".claude.json", ".codex", ".gemini", ".cursor", ".config/opencode", ".local/share/opencode"),
    *(".mozilla", ".thunderbird", ".config/google-chrome", ".config/chromium", ".bash_history", ".zsh_history"),
    *(".python_history", ".psql_history", ".mysql_history", ".node_repl_history", ".lesshst", ".viminfo"),
)


def is_within(path: str, folder: str) -> bool:
    """By path components: `/a/bc` is not within `/a/b`."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def depth(path: str) -> int:
    return 0 if path == "/" else path.count("/")


def is_on_an_open_road(place: Path) -> bool:
    """Whether every user may enter it and the folders above it, as far as they exist."""
    try:
        ways = [above for above in (place, *place.absolute().parents) if above.exists()]
        return all(way.stat().st_mode & _ENTERED_BY_ALL for way in ways)
    except OSError:
        return False


def temporary_folder() -> Path:
    """This user's temporary folder; for root, one that the agent's user can enter as well."""
    own = Path(tempfile.gettempdir())
    return own if os.geteuid() != 0 or is_on_an_open_road(own) else Path(TEMPORARY[0])


def standing_system() -> tuple[str, ...]:
    return tuple(path for path in SYSTEM if os.path.lexists(path))


@functools.cache
def only_for_root(top: str) -> tuple[str, ...]:
    """The topmost entries below a folder that are not readable for every user."""
    found: list[str] = []
    for folder, folders, files in os.walk(top):
        closed = [name for name in (*folders, *files) if _is_closed(f"{folder}/{name}")]
        found += [f"{folder}/{name}" for name in closed]
        folders[:] = [name for name in folders if name not in closed]
    return tuple(found)


def open_parts(top: str, closed: tuple[str, ...]) -> Iterator[str]:
    """A folder without its closed parts: the whole folder where there are none, else part by part."""
    if not any(is_within(path, top) for path in closed):
        yield top
    elif top not in closed and os.path.isdir(top) and not os.path.islink(top):
        for name in os.listdir(top):
            yield from open_parts(f"{top}/{name}", closed)


def _is_closed(path: str) -> bool:
    try:
        return not os.lstat(path).st_mode & _READ_BY_ALL
    except OSError:
        return True
