"""Entry point. `--help`, `--version` and all of `worker` are answered before anything heavy is imported."""

from __future__ import annotations

import os
import sys

from ganger.streams import open_closed_streams, write_nowhere


def main() -> int:
    open_closed_streams()
    try:
        code = _answered(sys.argv[1:])
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader has seen enough.
        for stream in (sys.stdout, sys.stderr):
            write_nowhere(stream)
        return 1
    return code


def _answered(arguments: list[str]) -> int:
    if not arguments or arguments in (["--help"], ["-h"], ["help"]):
        from ganger.cli.table import overview

        print(overview())
        return 0
    if arguments in (["--version"], ["-V"]):
        from ganger import __version__

        print(f"ganger {__version__}")
        return 0
    if arguments[:2] == ["hooks", "run"]:
        from ganger.hooks.keepalive import main as keep_alive

        return keep_alive(arguments[2:], os.environ)
    if arguments[0] == "worker":
        from ganger.worker import main as speak

        return speak(arguments[1:])
    from ganger.cli.main import run_command

    return run_command(arguments)


if __name__ == "__main__":
    sys.exit(main())
