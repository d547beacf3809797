"""A program named `ganger` for sandboxes that hide Ganger: a few lines of shell that start the worker room."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path

from ganger import worker as worker_room
from ganger.engine.resources.run_resources import WorkerProgram
from ganger.local.run_folder import RunFolder, named_os_errors, replace_file

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


def worker_program(folder: RunFolder) -> WorkerProgram:
    """`ganger worker` for agents that cannot see where Ganger is installed."""
    room, place = Path(worker_room.__file__).parent, folder.path / "bin"
    with named_os_errors(place):
        place.mkdir(mode=0o755, exist_ok=True)
        program = place / "ganger"
        text = shim_text(sys.executable, room)
        if not program.exists() or program.read_text(encoding="utf-8") != text:
            replace_file(program, text)
        program.chmod(0o755)
    return WorkerProgram(place, (room,))
