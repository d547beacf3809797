"""No sandbox: a process runs as requested, with all of its user's rights."""

from __future__ import annotations

from pathlib import Path

from ganger.ports.processes import Launch
from ganger.ports.sandbox import Room
from ganger.sandboxes.settings import SandboxSettings


class NoSandbox:
    name = "none"
    kind = "none"
    owner: tuple[int, int] | None = None

    def rebuilt(self, settings: SandboxSettings) -> NoSandbox:
        """Settings have no effect without a sandbox."""
        return self

    def confine(self, launch: Launch, room: Room) -> Launch:
        return launch

    def shows(self, path: Path, launch: Launch, room: Room) -> bool:
        return True
