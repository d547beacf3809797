"""`python scripts/busy.py LOOPS COMMAND…`: a command beside so many busy loops, which end with it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence

LOOP = "while True: pass"


def main(words: Sequence[str]) -> int:
    loops = [subprocess.Popen([sys.executable, "-S", "-c", LOOP]) for _ in range(int(words[0]))]
    print(f"busy: beside {len(loops)} loops, processes {' '.join(str(loop.pid) for loop in loops)}", flush=True)
    try:
        return subprocess.run(words[1:], check=False).returncode
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
