"""A program named `ganger` for places where Ganger itself is hidden: a few lines of shell that start this room."""

from __future__ import annotations

import os
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
for python in {pythons}; do
  if [ -x "$python" ]; then
    exec "$python" -I -S "$room/__main__.py" "$@"
  fi
done
exec python3 -I -S "$room/__main__.py" "$@"
"""


def shim_text(python: str, room: Path) -> str:
    """The text of the program. `python` is used where it can be seen, else what it stands for, else python3 of PATH.

    An environment's interpreter is a link, and only what it leads to may be seen inside the walls.
    """
    pythons = dict.fromkeys([python, os.path.realpath(python)])
    return _TEXT.format(pythons=" ".join(map(shlex.quote, pythons)), room=shlex.quote(str(room)))
