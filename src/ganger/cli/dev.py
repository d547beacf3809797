"""`ganger dev`: tools for people who write agents."""

from __future__ import annotations

from pathlib import Path

import click


@click.group("dev")
def command() -> None:
    """Tools for developing agents.

    \b
    Examples:
      ganger dev model-server
      ganger dev model-server --port 8700 --scenario play.json --journal seen.jsonl
    """


@command.command("model-server")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="The port on loopback; 0 takes a free one.")
@click.option("--scenario", type=click.Path(path_type=Path), help="The script to play (default: every task is DONE).")
@click.option("--journal", type=click.Path(path_type=Path), help="Append one JSON line per request to this file.")
def model_server_command(port: int, scenario: Path | None, journal: Path | None) -> int:
    """Play a model on loopback, for the real coding CLIs: no key, no cost, the same answer every time.

    Speaks Anthropic's messages, OpenAI's responses and chat completions, and Gemini's generateContent. Text in the
    prompt selects the scenario; the number of calls answered since the prompt selects the step.

    \b
    A scenario file:
      {"scenarios": {
         "edit":   {"match": "add a greeting",
                    "steps": [{"write": {"path": "hello.txt", "content": "hello\\n"}},
                              {"run": "cat hello.txt"},
                              {"result": {"summary": "Added the greeting."}}],
                    "resumed": [{"text": "Continuing where I was."}]},
         "limits": {"match": "be slow",
                    "steps": [{"error": 429, "retry_after": 2, "times": 1}, {"result": {}}]}},
       "default": "edit"}

    \b
    Steps:
      text "…"                      an answer          result {…}          an answer with a result block
      write {"path", "content"}     the file tool      run "…"             the shell tool
      tool {"name", "input"}        exactly this call  calls [STEP, …]     several calls at once
      refuse "…"                    a refusal          length true         cut at the token limit
      error 401|402|403|429|500|503|529|"credit"|"quota"   with retry_after, reset_at, message
      hang SECONDS                  no output            drop "before"|"stream"   the connection is closed
      garbage true                  a page that is not an answer
    Any step may have: usage {"input", "output", "cache_read", "cache_write", "thinking"}, delay SECONDS, think "…",
    times N (skipped after N plays), where "stream" (errors and pauses in the middle of an answer), say "…" (text
    beside calls). The last step repeats.

    \b
    Examples:
      ganger dev model-server
      ganger dev model-server --scenario play.json --journal seen.jsonl
      ANTHROPIC_BASE_URL=http://127.0.0.1:PORT ANTHROPIC_API_KEY=any-long-word claude -p "hello"
    """
    from ganger.dev.model_server import serve

    serve(port, scenario, journal)
    return 0
