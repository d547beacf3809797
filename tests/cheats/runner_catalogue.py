"""Every play against a test runner: the cheats, their honest twins, and what lies beyond a look at results."""

from __future__ import annotations

from tests.cheats.cargo_cheats import RUST_PLAYS, RUST_PROJECT, RUST_TWINS
from tests.cheats.ctest_cheats import C_PLAYS, C_PROJECT, C_TWINS
from tests.cheats.go_cheats import GO_PLAYS, GO_PROJECT, GO_TWINS
from tests.cheats.new_file_cheats import MAKE_PROJECT, NEW_FILE_TWINS, NEW_FILES
from tests.cheats.node_cheats import JEST_PROJECT, NODE_PLAYS, NODE_PROJECT, NODE_TWINS, VITEST_PROJECT
from tests.cheats.python_beyond import PYTHON_BEYOND
from tests.cheats.python_exits import EXIT_TWINS, EXITS
from tests.cheats.python_names import NAME_PLAYS, NAME_TWINS
from tests.cheats.python_patch_twins import PATCH_TWINS
from tests.cheats.python_patches import PATCHES
from tests.cheats.python_project import PYTEST_PROJECT, UNITTEST_PROJECT
from tests.cheats.python_reports import REPORT_TWINS, REPORTS
from tests.cheats.runner_plays import Play, Project

PROJECTS: dict[str, Project] = {
    "pytest": PYTEST_PROJECT,
    "unittest": UNITTEST_PROJECT,
    "make": MAKE_PROJECT,
    "node": NODE_PROJECT,
    "jest": JEST_PROJECT,
    "vitest": VITEST_PROJECT,
    "go": GO_PROJECT,
    "cargo": RUST_PROJECT,
    "ctest": C_PROJECT,
}
CHEATS: tuple[Play, ...] = (
    *EXITS,
    *PATCHES,
    *REPORTS,
    *NAME_PLAYS,
    *NEW_FILES,
    *NODE_PLAYS,
    *GO_PLAYS,
    *RUST_PLAYS,
    *C_PLAYS,
)
TWINS: tuple[Play, ...] = (
    *EXIT_TWINS,
    *PATCH_TWINS,
    *REPORT_TWINS,
    *NAME_TWINS,
    *NEW_FILE_TWINS,
    *NODE_TWINS,
    *GO_TWINS,
    *RUST_TWINS,
    *C_TWINS,
)
BEYOND: tuple[Play, ...] = PYTHON_BEYOND
