"""Tests that live inside product files: Rust's test modules, and examples in docstrings where commands run them."""

from __future__ import annotations

import re
from collections import Counter

_RUST_REGION = re.compile(rb"^[ \t]*#\[cfg\((?:all\()?test\b", re.MULTILINE)
_RUST_OFF = re.compile(rb"#\[ignore|#\[cfg_attr\([^\n]*ignore|/\*")


def weakened_tests(path: str, before: bytes, after: bytes, *, doctests: bool) -> str | None:
    """What a change takes from the tests inside this file, as part of a sentence. Adding tests is fine."""
    if path.endswith(".rs"):
        return _rust(before, after)
    if (
        doctests
        and path.endswith((".py", ".rst", ".md", ".txt"))
        and Counter(_examples(before)) - Counter(_examples(after))
    ):
        return "an example that is run as a test was changed in it"
    return None


def _rust(before: bytes, after: bytes) -> str | None:
    """Every line from the first test module on must still be there, and the number of disabled tests may not grow."""
    start = _RUST_REGION.search(before)
    if start is None:
        return None
    old = before[start.start() :]
    again = _RUST_REGION.search(after)
    new = after[again.start() :] if again else b""
    if Counter(_lines(old)) - Counter(_lines(new)):
        return "a test inside it was changed"
    if len(_RUST_OFF.findall(new)) > len(_RUST_OFF.findall(old)):
        return "a test inside it was disabled"
    return None


def _lines(content: bytes) -> list[bytes]:
    return [line for line in map(bytes.strip, content.split(b"\n")) if line]


def _examples(content: bytes) -> list[bytes]:
    """Each `>>>` with the lines after it, up to the next one or an empty line."""
    examples: list[bytes] = []
    open_one = False
    for line in map(bytes.strip, content.split(b"\n")):
        if line.startswith(b">>>"):
            examples.append(line)
            open_one = True
        elif not line or line.startswith((b'"""', b"'''")):
            open_one = False
        elif open_one:
            examples[-1] += b"\n" + line
    return examples
