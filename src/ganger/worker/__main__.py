"""Runs the package as plain files: `python3 -I -S …/worker/__main__.py heartbeat`, where nothing is installed."""

from __future__ import annotations

import os
import sys


def room() -> str:
    """The package of these files, importable by this name wherever they are."""
    if __package__:
        return __package__
    alias = type(sys)("ganger_worker")
    alias.__path__ = [os.path.dirname(os.path.realpath(__file__))]
    sys.modules[alias.__name__] = alias
    return alias.__name__


if __name__ == "__main__":
    sys.exit(__import__(f"{room()}.commands", fromlist=["main"]).main(sys.argv[1:]))
