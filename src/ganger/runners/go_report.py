"""Splits `go test -json`: its lines go to a file for Ganger, the output that they quote goes to stdout."""

from __future__ import annotations

import json
import subprocess
import sys


def main(arguments: list[str]) -> int:
    report, argv = arguments[0], arguments[1:]
    with open(report, "w", encoding="utf-8") as file, subprocess.Popen(argv, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        for line in child.stdout:
            text = line.decode("utf-8", "replace").rstrip("\n")
            try:
                shown = json.loads(text)["Output"]
            except KeyError:
                shown = ""
            except (ValueError, TypeError):
                sys.stdout.write(f"{text}\n")
                continue
            sys.stdout.write(shown)
            file.write(f"{text}\n")
        code = child.wait()
        file.write('{"end": true}\n')
    sys.stdout.flush()
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
