"""Entry point. `--help` and `--version` are answered before anything heavy is imported."""

from __future__ import annotations

import sys


def main() -> int:
    arguments = sys.argv[1:]
    if not arguments or arguments in (["--help"], ["-h"], ["help"]):
        from ganger.cli.table import overview

        print(overview())
        return 0
    if arguments in (["--version"], ["-V"]):
        from ganger import __version__

        print(f"ganger {__version__}")
        return 0
    from ganger.cli.main import run_command

    return run_command(arguments)


if __name__ == "__main__":
    sys.exit(main())
