"""The worker's side of the worker protocol: `ganger worker …`, from the standard library alone.

A worker calls it every few seconds, inside walls too, where nothing of Ganger's own environment can be seen: so it
starts fast, imports only itself, and runs as plain files with any Python from 3.9 on.
"""

from __future__ import annotations

from .commands import main

__all__ = ["main"]
