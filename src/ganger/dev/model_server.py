"""`python -m ganger.dev.model_server`: the model server as a separate process."""

from __future__ import annotations

import argparse
import signal
import sys
from pathlib import Path

from ganger.dev.scenario import load, scenarios
from ganger.dev.server import ModelServer
from ganger.errors import GangerError


def serve(port: int, scenario: Path | None, journal: Path | None) -> None:
    """Serves until interrupted; the first line on stdout has the address."""
    known = load(scenario) if scenario is not None else scenarios(None)
    server = ModelServer(known, port=port, journal=journal)
    print(f"listening on {server.url}", flush=True)
    server.serve()


def main() -> int:
    parser = argparse.ArgumentParser(prog="model_server", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="0 picks a free one")
    parser.add_argument("--scenario", type=Path, help="the scenarios to play; without it every answer is a DONE result")
    parser.add_argument("--journal", type=Path, help="append one JSON line per request to this file")
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        serve(given.port, given.scenario, given.journal)
    except GangerError as error:
        print(f"error: {error.message}\nnext:  {error.hint}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        return 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
