"""`ganger worker` for click: help comes from the table in ganger.worker, calls are passed there unparsed.

A plain call never gets here: it is handled before click is imported.
"""

from __future__ import annotations

import click

from ganger.worker import main
from ganger.worker.arguments import FLAG, MANY, SECONDS, Option, Verb
from ganger.worker.table import VERBS


class _Passed(click.Command):
    """A verb whose arguments ganger.worker parses itself."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ctx.args = list(args)
        return []

    def invoke(self, ctx: click.Context) -> int:
        return main([self.name or "", *ctx.args])


def _option(option: Option) -> click.Option:
    if option.kind == FLAG:
        return click.Option([f"--{option.name}"], is_flag=True, help=option.help)
    if option.kind == SECONDS:
        return click.Option(
            [f"--{option.name}"], is_flag=False, flag_value="", metavar=f"[{option.meta}]", help=option.help
        )
    return click.Option([f"--{option.name}"], multiple=option.kind == MANY, metavar=option.meta, help=option.help)


def _command(verb: Verb) -> click.Command:
    arguments = [
        click.Argument([a.strip("[]-").lower() or "stdin"], metavar=a, required=a[0] != "[") for a in verb.arguments
    ]
    examples = "\n".join(["\b", "Examples:", *(f"  {example}" for example in verb.examples)])
    page = f"{verb.about}\n\n{examples}"
    return _Passed(verb.name, params=[*arguments, *map(_option, verb.options)], help=page, short_help=verb.line)


_HELP = """Messages and requests from a worker to the lead of its run.

A worker that Ganger started finds everything in its environment; a session you opened yourself begins with
`ganger worker next`. While no lead is running, reports are kept and sent when it is back.

Exit codes: 0 accepted or kept, 1 refused, 3 no lead or nothing available, 64 usage, 130 interrupted.

\b
Examples:
  ganger worker next --wait
  ganger worker heartbeat --step 'runs the tests' --percent 60
  ganger worker report result.json && ganger worker done
"""
command = click.Group("worker", commands={name: _command(verb) for name, verb in VERBS.items()}, help=_HELP)
