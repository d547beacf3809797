"""Output: results on stdout, messages on stderr, errors with their next step."""

from __future__ import annotations

import json
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .errors import WorkerError


class Unsaid(Exception):
    """The output cannot be written; the request itself was carried out."""


def open_closed_streams() -> None:
    """Opens the null device for streams that the caller closed (`>&-`), so that a report is sent anyway."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115


def printable(text: str) -> str:
    """Text from others without terminal control characters."""
    return "".join(c if c.isprintable() or c in "\n\t" else "?" for c in text)


def out(text: str) -> None:
    # A narrow terminal encoding must not turn an accepted request into a failure.
    coding = sys.stdout.encoding or "utf-8"
    _say(printable(text).encode(coding, "replace").decode(coding) + "\n")


def talk(text: str) -> None:
    sys.stderr.write(printable(text) + "\n")
    sys.stderr.flush()


def document(name: str, **fields: object) -> None:
    _say(json.dumps({"schema": f"ganger.{name}/1", **fields}) + "\n")


def finish() -> None:
    """Flushes the output, so that a failure to write it is known."""
    _say("", flush=True)


def _say(text: str, *, flush: bool = False) -> None:
    try:
        sys.stdout.write(text)
        if flush:
            sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise Unsaid(error.strerror) from error


def trouble(problem: WorkerError, *, as_json: bool) -> None:
    if as_json:
        body = {"code": problem.code, "message": problem.message, "hint": problem.hint, "where": []}
        document("error", ok=False, error=body)
        return
    talk(f"error: {problem.message} [{problem.code}]")
    talk(f"next:  {problem.hint or f'ganger explain {problem.code}'}")


def refusals(earlier: list[tuple[str, WorkerError]]) -> None:
    """Reports earlier requests that are refused only now."""
    for verb, refused in earlier:
        talk(f"an earlier {verb} was refused: {refused.message} [{refused.code}]; see the folder refused")
