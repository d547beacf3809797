"""The click side: finds a command's module, runs it, and turns every error into a message and an exit code."""

from __future__ import annotations

import difflib
import gc
import importlib
import json
import sys
import tempfile
import traceback
from collections.abc import Sequence

import click

from ganger.cli.shell.table import COMMANDS, overview
from ganger.errors import (
    EXIT_ERROR,
    EXIT_INTERRUPTED,
    EXIT_OK,
    EXIT_USAGE,
    GangerError,
    InputError,
    MachineRefused,
    NotBuiltYet,
    is_of_machine,
)
from ganger.local.streams import OutputRefused, write_nowhere


class _Commands(click.Group):
    """Imports one command's module when that command is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        row = COMMANDS.get(cmd_name)
        if row is None:
            return None
        if not row.built:
            return _not_built(cmd_name)
        command: click.Command = importlib.import_module(f"ganger.cli.{cmd_name}").command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if name not in COMMANDS:
            close = difflib.get_close_matches(name, COMMANDS, n=1)
            hint = f" Did you mean {close[0]!r}?" if close else ""
            raise click.UsageError(f"There is no command {name!r}.{hint} ganger --help lists them all.")
        return name, self.get_command(ctx, name), args[1:]

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        formatter.write(overview() + "\n")


def _not_built(name: str) -> click.Command:
    def answer() -> None:
        raise NotBuiltYet(f"ganger {name} is not implemented yet", hint="ganger --help lists the commands")

    settings = {"ignore_unknown_options": True, "allow_extra_args": True}
    return click.Command(name, callback=answer, help=COMMANDS[name].help, context_settings=settings)


root = _Commands("ganger", context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})


def run_command(arguments: Sequence[str]) -> int:
    """Runs one command line; never shows a traceback unless asked with --debug."""
    # A manifest is many small objects that stay alive; garbage collection among them costs a third of the time.
    gc.set_threshold(200_000, 20, 50)
    words = list(arguments)
    debug = "--debug" in words
    words = [w for w in words if w != "--debug"]
    as_json = "--json" in words
    try:
        answer = root.main(args=words, prog_name="ganger", standalone_mode=False)
        return answer if isinstance(answer, int) else EXIT_OK
    except click.UsageError as error:
        return _usage(error, as_json=as_json)
    except (click.Abort, KeyboardInterrupt):
        print("interrupted", file=sys.stderr)
        return EXIT_INTERRUPTED
    except GangerError as error:
        show_error(error, as_json=as_json)
        if debug:
            traceback.print_exc()
        return error.exit_code
    except BrokenPipeError:
        # The reader is gone, so nothing can be printed.
        write_nowhere(sys.stdout)
        return EXIT_ERROR
    except OutputRefused:
        # Printing the error may fail in the same way.
        raise
    except Exception as error:  # noqa: BLE001 - the last resort of the command line
        return _unexpected(error, as_json=as_json, debug=debug)


def _usage(error: click.UsageError, *, as_json: bool) -> int:
    where = error.ctx.command_path if error.ctx is not None else "ganger"
    problem = GangerError(error.format_message(), hint=f"{where} --help", code="USAGE")
    show_error(problem, as_json=as_json)
    return EXIT_USAGE


def show_error(error: GangerError, *, as_json: bool) -> None:
    """As sentences on stderr, or with --json as one JSON document on stdout."""
    if as_json:
        where = [fault.as_json() for fault in error.faults] if isinstance(error, InputError) else []
        body = {"code": error.code, "message": error.message, "hint": error.hint, "where": where}
        print(json.dumps({"schema": "ganger.error/1", "ok": False, "error": body}, ensure_ascii=False))
        return
    print(f"error: {printable(error.message)} [{error.code}]", file=sys.stderr)
    if isinstance(error, InputError) and len(error.faults) > 1:
        for fault in error.faults[:20]:
            print(f"  {fault.path or '/'}: {printable(fault.message)} [{fault.code}]", file=sys.stderr)
    print(f"next:  {error.hint or f'ganger explain {error.code}'}", file=sys.stderr)


def _unexpected(error: Exception, *, as_json: bool, debug: bool) -> int:
    if debug:
        raise error
    if isinstance(error, OSError) and (is_of_machine(error) or isinstance(error, PermissionError)):
        where = f"{error.filename}: " if error.filename else ""
        show_error(MachineRefused(f"{where}{error.strerror}"), as_json=as_json)
        return EXIT_ERROR
    with tempfile.NamedTemporaryFile("w", prefix="ganger-", suffix=".log", delete=False) as file:
        traceback.print_exc(file=file)
    problem = GangerError(
        f"something unexpected happened: {type(error).__name__}: {error}",
        hint=f"the details are in {file.name}; please report them. A run in progress can be continued.",
        code="UNEXPECTED",
    )
    show_error(problem, as_json=as_json)
    return EXIT_ERROR


def printable(text: str) -> str:
    """Text from files and agents without terminal control characters."""
    return "".join(c if c.isprintable() or c in "\n\t" else "?" for c in text)
