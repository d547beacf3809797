"""Secrets in a folder that agents work in themselves: files that are masked there, and git's settings without tokens.

Only the project's own folder has any: a workspace is made from committed files. Names alone do not decide: a
`.env.example` is meant to be read, and so is a certificate among the tests; a file that git tracks is no secret. What
the operator names in `sandbox.readable` or `sandbox.writable` is shown.
"""

# ruff: noqa: PTH100, PTH113
# Tens of thousands of files may be examined before an agent starts.

from __future__ import annotations

import fnmatch
import os
import re
from collections.abc import Iterator

from ganger.sandboxes.paths import is_within
from ganger.sandboxes.settings import SandboxSettings

# By name only.
NAMES = (".env", ".env.*", ".envrc", ".git-credentials", ".netrc", "id_rsa", "id_dsa", "id_ecdsa", "id_ed25519")
# By name and content.
TELLING = {
    ".npmrc": re.compile(rb"_auth(?:Token)?\s*=|_password\s*="),
    ".yarnrc.yml": re.compile(rb"npmAuth(?:Token|Ident)\s*:"),
    ".pypirc": re.compile(rb"(?m)^\s*password\s*[=:]"),
    "*.pem": re.compile(rb"PRIVATE KEY-----"),
    "*.key": re.compile(rb"PRIVATE KEY-----|AGE-SECRET-KEY-"),
    "*.json": re.compile(rb'"private_key"\s*:\s*"-----BEGIN'),
}
_TEMPLATES = re.compile(r"\.(?:example|sample|template|dist|defaults?)$", re.IGNORECASE)
_NOT_ENTERED = frozenset((".git", "node_modules", ".venv", "venv", "__pycache__", ".tox", "target", "vendor"))
_GLANCE = 64 * 1024
_MOST_FILES = 50_000
_ADDRESS = re.compile(rb"(https?://)[^\s/@]*@|(://[^\s/@:]*):[^\s/@]*(@)", re.IGNORECASE)
_HEADER = re.compile(rb"(?im)^\s*extraheader\s*=.*$")


def secret_files(root: str) -> Iterator[str]:
    """Files of a folder that hold secrets, judged by their names and first bytes."""
    seen = 0
    for folder, folders, names in os.walk(root):
        folders[:] = [name for name in folders if name not in _NOT_ENTERED]
        seen += len(names)
        if seen > _MOST_FILES:
            return
        yield from (path for name in names if _may_be_secret(name) and _is_secret(name, path := f"{folder}/{name}"))


def _may_be_secret(name: str) -> bool:
    return name.startswith((".", "id_")) or name.endswith((".pem", ".key", ".json"))


def _is_secret(name: str, path: str) -> bool:
    if any(fnmatch.fnmatchcase(name, pattern) for pattern in NAMES):
        return not _TEMPLATES.search(name) and os.path.isfile(path)
    shape = next((shape for pattern, shape in TELLING.items() if fnmatch.fnmatchcase(name, pattern)), None)
    return shape is not None and shape.search(_beginning(path)) is not None


def _beginning(path: str) -> bytes:
    try:
        with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK | os.O_NOFOLLOW)) as file:
            return file.read(_GLANCE)
    except OSError:
        return b""


def concealed(settings: SandboxSettings, root: str) -> tuple[str, ...]:
    """The files that are masked in the project's own folder, where the sandbox can."""
    shown = [os.path.abspath(place) for place in (*settings.readable, *settings.writable)]
    state = os.path.abspath(settings.state_dir)
    found = [path for path in secret_files(root) if not any(is_within(path, place) for place in (*shown, state))]
    tracked = settings.tracked(root, found) if found else frozenset()
    return tuple(path for path in found if path not in tracked)


def git_settings(root: str) -> Iterator[tuple[str, bytes]]:
    """A project's git configurations that hold a password or a header, each with the text shown in its place."""
    top = f"{root}/.git"
    modules = [f"{folder}/config" for folder, _, names in os.walk(f"{top}/modules") if "config" in names]
    for path in (f"{top}/config", f"{top}/config.worktree", *modules):
        given = _beginning(path)
        shown = _HEADER.sub(b"", _ADDRESS.sub(rb"\1\2\3", given))
        if shown != given:
            yield path, shown
