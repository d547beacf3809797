"""A program named `ganger` for places where Ganger itself is hidden: a few lines of shell that start this room."""

from __future__ import annotations

import shlex

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path

_TEXT = """#!/bin/sh
# The worker's side of Ganger, for a worker inside walls.
if [ "$1" != worker ]; then
  echo "error: only 'ganger worker' works in here [USAGE]" >&2
  echo "next:  ganger worker --help" >&2
  exit 64
fi
room={room}
if [ -x {python} ]; then
  exec {python} -I -S "$room/__main__.py" "$@"
fi
exec python3 -I -S "$room/__main__.py" "$@"
"""


def shim_text(python: str, room: Path) -> str:
    """The text of the program. `python` is used where it can be seen, else python3 of the PATH (3.9 or newer)."""
    return _TEXT.format(python=shlex.quote(python), room=shlex.quote(str(room)))
