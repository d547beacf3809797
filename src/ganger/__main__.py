"""Entry point. `--help`, `--version` and every `worker` command run before anything heavy is imported."""

from __future__ import annotations

import os
import sys

from ganger.local.streams import OutputRefused, SaidOutput, open_closed_streams, write_nowhere


def main() -> int:
    open_closed_streams()
    sys.stdout = SaidOutput(sys.stdout)
    try:
        code = _answered(sys.argv[1:])
        sys.stdout.flush()
    except (BrokenPipeError, OutputRefused) as error:
        # The reader has closed its end, or the output has no space left.
        write_nowhere(sys.stdout)
        if isinstance(error, OutputRefused):
            _tell(error)
        write_nowhere(sys.stderr)
        return 1
    return code


def _tell(refused: OutputRefused) -> None:
    from contextlib import suppress

    with suppress(OSError):
        print(f"error: the output cannot be written: {refused.strerror} [OUTPUT_REFUSED]", file=sys.stderr)
        print("next:  send it elsewhere, or free space; then run the same command again", file=sys.stderr)


def _answered(arguments: list[str]) -> int:
    if not arguments or arguments in (["--help"], ["-h"], ["help"]):
        from ganger.cli.shell.table import overview

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
    from ganger.cli.shell.main import run_command

    return run_command(arguments)


if __name__ == "__main__":
    sys.exit(main())
