"""A lead to be killed: does what it is told with a launcher, says so, and stays. Run as a program."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from tests.launchers.keeper_bench import Run

if __name__ == "__main__":
    folder, idle_sec, code = sys.argv[1:]
    names: dict[str, object] = {}
    body = "\n".join(f"    {line}" for line in code.splitlines())
    exec(f"async def act(run, launcher):\n{body}", names)

    async def main() -> None:
        run = Run(Path(folder), idle_sec=float(idle_sec))
        await names["act"](run, run.launcher)  # type: ignore[operator]
        print("done", flush=True)
        await asyncio.sleep(3600)

    asyncio.run(main())
