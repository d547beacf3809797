"""What a person or a program gets to see: results on stdout, talk on stderr, trouble with its next step."""

from __future__ import annotations

import json
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .trouble import Trouble
    from .wire import Answer


class Unsaid(Exception):
    """Nothing more can be written where the output goes: what was asked for is done all the same."""


def open_closed_streams() -> None:
    """What the caller closed (`>&-`) is nothing to read and nowhere to write: a report is sent all the same."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115


def printable(text: str) -> str:
    """Words of others without anything that could steer a terminal."""
    return "".join(c if c.isprintable() or c in "\n\t" else "?" for c in text)


def out(text: str) -> None:
    # A narrow terminal encoding must not turn a taken request into a failure.
    coding = sys.stdout.encoding or "utf-8"
    _say(printable(text).encode(coding, "replace").decode(coding) + "\n")


def talk(text: str) -> None:
    sys.stderr.write(printable(text) + "\n")
    sys.stderr.flush()


def document(name: str, **fields: object) -> None:
    _say(json.dumps({"schema": f"ganger.{name}/1", **fields}) + "\n")


def finish() -> None:
    """What was said stands where it is to be read, or it is known that it does not."""
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


def trouble(problem: Trouble, *, as_json: bool) -> None:
    if as_json:
        body = {"code": problem.code, "message": problem.message, "hint": problem.hint, "where": []}
        document("error", ok=False, error=body)
        return
    talk(f"error: {problem.message} [{problem.code}]")
    talk(f"next:  {problem.hint or f'ganger explain {problem.code}'}")


def refusals(earlier: list[tuple[str, Answer]]) -> None:
    """What was said before and is refused only now is told, since whoever said it has gone on."""
    for verb, answer in earlier:
        why = answer.body.get("message") or f"status {answer.status}"
        talk(f"an earlier {verb} was refused: {why} [{answer.body.get('code', 'BAD_REQUEST')}]; it lies in refused")
