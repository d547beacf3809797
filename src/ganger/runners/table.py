"""Which runner a command calls."""

from __future__ import annotations

from ganger.ports.runners import KnownRunner, RunnerCall
from ganger.runners.calls import program_of
from ganger.runners.compiled import CargoTest, Ctest, GoTest
from ganger.runners.javascript import Jest, NodeTest, Vitest
from ganger.runners.python import Pytest, Unittest
from ganger.runners.versions import is_at_least, turns_reports_off

# The first versions that take the words by which they are told to report.
_NODE = ((18, 19), (20, 2))
_CTEST = ((3, 21),)


class KnownRunners:
    def of(self, call: RunnerCall) -> KnownRunner | None:
        program, path = program_of(call.argv, call.cwd), call.env.get("PATH")
        if program is None:
            return _pytest(call, certain=False)
        first = call.argv[program.rest] if program.rest < len(call.argv) else ""
        match program.name:
            case "pytest" | "py.test":
                return _pytest(call, certain=True)
            case "unittest" if program.module:
                return Unittest(program)
            case "node" if program.script or "--test" in call.argv:
                return NodeTest(program) if is_at_least("node", path, *_NODE) else None
            case "jest":
                return Jest(program)
            case "vitest":
                return Vitest(program)
            case "go" if first == "test":
                return GoTest(program)
            case "cargo" if first in ("test", "t"):
                return CargoTest(program)
            case "ctest":
                return Ctest(program) if is_at_least("ctest", path, *_CTEST) else None
        # Whatever it is, it may start pytest in the end.
        return _pytest(call, certain=False)


def _pytest(call: RunnerCall, *, certain: bool) -> Pytest | None:
    asked_not_to = any("no:junitxml" in word for word in call.argv) or turns_reports_off(call.cwd)
    return None if asked_not_to else Pytest(certain)
