"""A program named `ganger` for places where Ganger itself is hidden: a few lines of shell that start this package."""

from __future__ import annotations

import os
import shlex

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path

_TEXT = """#!/bin/sh
# The worker's side of Ganger, for a worker in a sandbox.
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
    """The text of the program. `python` is used if it is visible, else the file it links to, else python3 on PATH.

    An environment's interpreter is a link, and only its target may be visible inside the sandbox.
    """
    pythons = dict.fromkeys([python, os.path.realpath(python)])
    return _TEXT.format(pythons=" ".join(map(shlex.quote, pythons)), room=shlex.quote(str(room)))
