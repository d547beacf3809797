"""`ganger answer`: answers a question in the inbox."""

from __future__ import annotations

from pathlib import Path

import click

from ganger.cli.shell.options import json_option, open_run, project_option, run_option
from ganger.errors import GangerError


@click.command("answer")
@click.argument("question", metavar="ID")
@click.argument("text", metavar="TEXT")
@project_option
@run_option
@json_option
def command(question: str, text: str, project: Path | None, run_id: str | None, as_json: bool) -> int:
    """Answer an open question. A running worker receives the answer; otherwise its task runs again with the answer in
    its prompt.

    ID is a question listed by ganger inbox, or a task that has exactly one open question. Where the question has
    options, TEXT may be the number of one.

    \b
    Examples:
      ganger answer q-1 "use the v2 endpoint"
      ganger answer q-2 1
      ganger answer build-api "the key is in the vault now" --json
    """
    from ganger.cli.shell.send_command import tell_run
    from ganger.core.command_result import Refusal
    from ganger.core.control.questions import chosen, find_question

    opened = open_run(project, run_id)
    try:
        found = find_question(opened[1], question)
        meant = chosen(found, text.strip())
    except Refusal as problem:
        raise GangerError(str(problem), hint="ganger inbox --all", code="COMMAND_REFUSED") from None
    return tell_run(opened, "answer", {"question": found.id, "text": meant}, as_json=as_json)
