"""Every play against a test runner: the cheats, their honest twins, and what lies beyond a look at results."""

from __future__ import annotations

from new_file_cheats import MAKE_PROJECT, NEW_FILE_TWINS, NEW_FILES
from python_exits import EXIT_TWINS, EXITS
from python_patch_twins import PATCH_TWINS
from python_patches import PATCHES
from python_project import PYTEST_PROJECT, UNITTEST_PROJECT
from python_reports import REPORT_TWINS, REPORTS
from runner_plays import Play, Project

PROJECTS: dict[str, Project] = {"pytest": PYTEST_PROJECT, "unittest": UNITTEST_PROJECT, "make": MAKE_PROJECT}
CHEATS: tuple[Play, ...] = (*EXITS, *PATCHES, *REPORTS, *NEW_FILES)
TWINS: tuple[Play, ...] = (*EXIT_TWINS, *PATCH_TWINS, *REPORT_TWINS, *NEW_FILE_TWINS)
BEYOND: tuple[Play, ...] = ()
