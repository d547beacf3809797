"""Which ids and paths are safe: ids become file names, paths stay inside a workspace."""

from __future__ import annotations

import re
import unicodedata

_LONGEST_ID_BYTES = 200
_UNSAFE = re.compile("[\x00-\x1f\x7f-\x9f/\\\\\ud800-\udfff]")
_INVISIBLE = re.compile("[\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]")
_DRIVE = re.compile(r"[A-Za-z]:")


def id_problem(value: str) -> str | None:
    """Why a run or task id cannot be a file name, or None."""
    if not value:
        return "an id may not be empty"
    if value in (".", ".."):
        return f'an id may not be "{value}"'
    if unsafe := _UNSAFE.search(value):
        return f"an id may not hold the character U+{ord(unsafe[0]):04X} (slashes and control characters are refused)"
    if invisible := _INVISIBLE.search(value):
        return f"an id may not hold the invisible character U+{ord(invisible[0]):04X}"
    if value != value.strip():
        return "an id may not begin or end with a space"
    if len(value.encode()) > _LONGEST_ID_BYTES:
        return f"an id may be at most {_LONGEST_ID_BYTES} bytes long"
    return None


def twin_key(value: str) -> str:
    """Equal for ids that a file system could treat as one: other case, other Unicode form."""
    if value.isascii():
        return value.lower()
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", value).casefold())


def path_problem(value: str) -> str | None:
    """Why a text is not a relative, normalised path, or None."""
    if not value:
        return "a path may not be empty"
    if value.startswith("/") or _DRIVE.match(value):
        return "a path must be relative"
    if "\\" in value:
        return "a path is written with forward slashes"
    if _UNSAFE.search(value.replace("/", "")):
        return "a path may not hold control characters"
    if any(part in ("", ".", "..") for part in value.split("/")):
        return 'a path must be normalised: no "." or ".." or empty parts'
    return None
