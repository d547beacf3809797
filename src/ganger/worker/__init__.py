"""The worker's side of the worker protocol: `ganger worker …`, with the standard library alone.

A worker calls it every few seconds, also inside a sandbox where Ganger's own environment is hidden: so it starts
fast, imports only itself, and runs as plain files with any Python from 3.9 on.
"""

from __future__ import annotations

from .commands import main

__all__ = ["main"]
