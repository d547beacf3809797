"""Every play against a test runner: the cheats, their honest twins, and what lies beyond a look at results."""

from __future__ import annotations

from cargo_cheats import RUST_PLAYS, RUST_PROJECT, RUST_TWINS
from ctest_cheats import C_PLAYS, C_PROJECT, C_TWINS
from go_cheats import GO_PLAYS, GO_PROJECT, GO_TWINS
from new_file_cheats import MAKE_PROJECT, NEW_FILE_TWINS, NEW_FILES
from node_cheats import JEST_PROJECT, NODE_PLAYS, NODE_PROJECT, NODE_TWINS, VITEST_PROJECT
from python_beyond import PYTHON_BEYOND
from python_exits import EXIT_TWINS, EXITS
from python_names import NAME_PLAYS, NAME_TWINS
from python_patch_twins import PATCH_TWINS
from python_patches import PATCHES
from python_project import PYTEST_PROJECT, UNITTEST_PROJECT
from python_reports import REPORT_TWINS, REPORTS
from runner_plays import Play, Project

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
