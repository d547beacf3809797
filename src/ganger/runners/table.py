"""Which runner a command calls."""

from __future__ import annotations

from ganger.ports.runners import KnownRunner, RunnerCall
from ganger.runners.calls import program_of
from ganger.runners.compiled import CargoTest, Ctest, GoTest
from ganger.runners.javascript import Jest, NodeTest, Vitest
from ganger.runners.python import Pytest, Unittest


class KnownRunners:
    def of(self, call: RunnerCall) -> KnownRunner | None:
        program = program_of(call.argv, call.cwd)
        if program is None:
            return Pytest(certain=False)
        first = call.argv[program.rest] if program.rest < len(call.argv) else ""
        match program.name:
            case "pytest" | "py.test":
                return Pytest(certain=True)
            case "unittest" if program.module:
                return Unittest(program)
            case "node" if program.script or "--test" in call.argv:
                return NodeTest(program)
            case "jest":
                return Jest(program)
            case "vitest":
                return Vitest(program)
            case "go" if first == "test":
                return GoTest(program)
            case "cargo" if first in ("test", "t"):
                return CargoTest(program)
            case "ctest":
                return Ctest(program)
        # Whatever it is, it may start pytest in the end.
        return Pytest(certain=False)
