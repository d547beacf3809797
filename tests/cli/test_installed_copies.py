"""An environment that holds the project itself would hide every change from its checks: named and refused."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from ganger.app.checks.project import check_project
from ganger.app.commands.doctor import examine
from ganger.config import load_project

pytestmark = pytest.mark.whole

CODE = "INSTALLED_COPY"
GOOD = "def price():\n    return 1\n"
BROKEN = "def price():\n    return 2\n"
TEST = "import unittest\nfrom shop import price\n\nclass T(unittest.TestCase):\n    def test_price(self):\n"
TEST += "        self.assertEqual(price(), 1)\n"
PYPROJECT = '[project]\nname = "My.Shop"\nversion = "1"\n'
UNITTEST = ".venv/bin/python -m unittest discover -s tests"
PYTEST = ".venv/bin/pytest"
SITE = ".venv/lib/python3.11/site-packages"
Files = Mapping[str, str]


def project(root: Path, files: Files, command: str = UNITTEST, *, workspace: str = 'linked = [".venv"]') -> Path:
    """A project with sources below `src`, and whatever else is given; nothing is committed of what is ignored."""
    task = {"id": "t", "prompt_ref": "p.md", "depends_on": [], "timeout_sec": 60, "verify_profile": "check"}
    write = {"path": "src/shop/__init__.py", "op": "replace", "encoding": "utf8", "content": BROKEN}
    result = {"status": "DONE", "summary": "done", "writes": [write]}
    mode = "" if "mode" in workspace else 'mode = "local-git"\n'
    base = {
        "src/shop/__init__.py": GOOD,
        "tests/test_price.py": TEST,
        "pyproject.toml": PYPROJECT,
        "p.md": "Mend it.\n",
        "script.json": json.dumps({"tasks": {"t": [[{"result": result}]]}}),
        "manifest.json": json.dumps({"manifest_version": "2.0", "run_id": "r", "tasks": [task]}),
        "verify.json": json.dumps({"profiles": {"check": {"steps": [{"name": "test", "cmd": command}]}}}),
        "ganger.toml": '[policy]\nheal_schedule = "off"\n[agents.s]\nkind = "scripted"\nscript = "script.json"\n'
        f'[roles.worker]\nagent = "s"\n[workspace]\n{mode}{workspace}\n',
        ".gitignore": ".venv/\nnode_modules/\n.ganger/\nvendor/\nbuild/\ntarget/\n.tox/\n",
    }
    for name, text in {**base, **files}.items():
        place = root / name
        place.parent.mkdir(parents=True, exist_ok=True)
        if text.startswith("-> "):
            place.symlink_to(text[3:].replace("ROOT", str(root)))
        else:
            place.write_text(text.replace("ROOT", str(root)))
    return root


def faults(root: Path) -> list[str]:
    return [one.code for one in check_project(load_project(root, environ={})).faults]


INSTALLED = {f"{SITE}/my_shop-1.dist-info/METADATA": "Name: My.Shop\n", f"{SITE}/shop/__init__.py": GOOD}
EDITABLE = {f"{SITE}/__editable__.my_shop-1.pth": "ROOT/src\n"}
DIRECT_URL = {
    f"{SITE}/other_name-1.dist-info/direct_url.json": json.dumps({"url": "file://ROOT", "dir_info": {}}),
    f"{SITE}/shop/__init__.py": GOOD,
}
FINDER = {
    f"{SITE}/__editable___my_shop_1_finder.py": "MAPPING = {'shop': 'ROOT/src/shop'}\n",
    f"{SITE}/__editable__.my_shop-1.pth": "import __editable___my_shop_1_finder\n",
}
EGG_LINK = {f"{SITE}/My.Shop.egg-link": "ROOT/src\n../\n"}
EDITABLE_URL = {
    f"{SITE}/x-1.dist-info/direct_url.json": json.dumps({"url": "file://ROOT", "dir_info": {"editable": True}})
}
BY_MODULE = {f"{SITE}/shop/__init__.py": GOOD}
TOX = {".tox/py311/pyvenv.cfg": "", **{f".tox/py311/{k.removeprefix('.venv/')}": v for k, v in INSTALLED.items()}}
PACKAGES = {
    "package.json": '{"name": "shop", "workspaces": ["packages/*"]}',
    "packages/a/package.json": '{"name": "@s/a"}',
}
PNPM = {"package.json": "{}", "pnpm-workspace.yaml": "packages:\n  - 'packages/*'\n"}
CMAKE = {"build/CMakeCache.txt": "CMAKE_HOME_DIRECTORY:INTERNAL=ROOT\n", "CMakeLists.txt": ""}
COMPOSER = {
    "composer.json": '{"autoload": {"psr-4": {"A\\\\": "src/"}}}',
    "vendor/composer/autoload_real.php": "<?php\n",
}
GO_VENDOR = {"vendor/modules.txt": "# example.com/x v0.0.0 => ./x\n## explicit\n"}


@pytest.mark.parametrize(
    ("files", "linked"),
    [
        pytest.param(INSTALLED, ".venv", id="installed"),
        pytest.param(EDITABLE, ".venv", id="editable"),
        pytest.param(DIRECT_URL, ".venv", id="under-another-name"),
        pytest.param(FINDER, ".venv", id="editable-finder"),
        pytest.param(EGG_LINK, ".venv", id="egg-link"),
        pytest.param(EDITABLE_URL, ".venv", id="editable-url"),
        pytest.param(BY_MODULE, ".venv", id="package-alone"),
        pytest.param(TOX, ".tox", id="tox"),
        pytest.param({**PACKAGES, "node_modules/@s/a": "-> ../../packages/a"}, "node_modules", id="npm-workspace"),
        pytest.param({**PNPM, "packages/a/package.json": '{"name": "a"}', "node_modules/a/index.js": ""},
                     "node_modules", id="pnpm-injected"),
        pytest.param({**PACKAGES, "node_modules/other": "-> ROOT/packages/a"}, "node_modules", id="npm-link"),
        pytest.param({"package.json": '{"name": "shop"}', "node_modules/shop/index.js": ""}, "node_modules", id="npm"),
        pytest.param(CMAKE, "build", id="cmake"),
        pytest.param({"target/.rustc_info.json": "{}"}, "target", id="cargo"),
        pytest.param(COMPOSER, "vendor", id="composer"),
        pytest.param({"vendor/acme/lib": "-> ../../packages/lib", "packages/lib/x": ""}, "vendor", id="composer-path"),
        pytest.param(GO_VENDOR, "vendor", id="go-vendor"),
    ],
)  # fmt: skip
def test_a_linked_folder_that_holds_the_project_is_refused(tmp_path: Path, files: Files, linked: str) -> None:
    """G09 T17: what a check would see there is not the change."""
    assert faults(project(tmp_path, files, "make test", workspace=f'linked = ["{linked}"]')) == [CODE]


@pytest.mark.parametrize(
    ("files", "command", "workspace"),
    [
        pytest.param({f"{SITE}/requests/__init__.py": "", f"{SITE}/requests-2.dist-info/METADATA": ""}, UNITTEST,
                     'linked = [".venv"]', id="dependencies-only"),
        pytest.param(INSTALLED, f"env PYTHONPATH=src {UNITTEST}", 'linked = [".venv"]', id="search-path-of-the-check"),
        pytest.param({**EDITABLE, "pyproject.toml": f'{PYPROJECT}[tool.pytest.ini_options]\npythonpath = ["src"]\n'},
                     PYTEST, 'linked = [".venv"]', id="search-path-of-pytest"),
        pytest.param({**EDITABLE, "Makefile": f"test:\n\tPYTHONPATH=src {UNITTEST}\n"}, "make test",
                     'linked = [".venv"]', id="search-path-in-a-recipe"),
        pytest.param({"shop/__init__.py": GOOD, f"{SITE}/shop/__init__.py": GOOD, "src/shop/__init__.py": "-> ../../x"},
                     UNITTEST, 'linked = [".venv"]', id="package-in-the-folder-of-the-check"),
        pytest.param(EDITABLE, ".venv/bin/ruff check src", 'linked = [".venv"]', id="only-linted"),
        pytest.param(EDITABLE, UNITTEST, 'mode = "direct"', id="editable-in-direct-mode"),
        pytest.param(EDITABLE, UNITTEST, 'linked = [".venv"]\ninstalled_copies = "allow"', id="allowed"),
        pytest.param({**PACKAGES, "node_modules/@s/a": "-> ../../packages/a"}, "npm test",
                     'copied = ["node_modules"]', id="copied-workspace"),
        pytest.param({"node_modules/.pnpm/x/package.json": "{}", "node_modules/x": "-> .pnpm/x"}, "npm test",
                     'linked = ["node_modules"]', id="pnpm-store"),
        pytest.param(COMPOSER, "php x.php", 'copied = ["vendor"]', id="copied-autoloader"),
        pytest.param({"tests/__init__.py": "", f"{SITE}/tests/__init__.py": ""}, UNITTEST, 'linked = [".venv"]',
                     id="stray-tests"),
    ],
)  # fmt: skip
def test_an_environment_that_does_no_harm_is_taken(tmp_path: Path, files: Files, command: str, workspace: str) -> None:
    """G09: dependencies, and copies that the checkout comes before."""
    assert faults(project(tmp_path, files, command, workspace=workspace)) == []


def test_a_copied_environment_and_an_installed_copy_in_direct_mode_are_refused_too(tmp_path: Path) -> None:
    """G09: the folder is another one, the copy is the same."""
    made = {**INSTALLED, ".venv/bin/python": "", ".venv/pyvenv.cfg": ""}
    assert faults(project(tmp_path / "a", made, workspace='copied = [".venv"]')) == [CODE]
    assert faults(project(tmp_path / "b", made, workspace='mode = "direct"')) == [CODE]


def test_the_environment_on_the_path_is_looked_at_as_well(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """G09: an activated environment, the program's own first line, and PYTHONPATH."""
    root = project(tmp_path / "p", {}, "python3 -m unittest discover -s tests", workspace="")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "env"], check=True)
    (site,) = (tmp_path / "env").glob("lib/python3*/site-packages")
    assert faults(root) == []
    (site / "x.pth").write_text(f"{root}/src\n")
    monkeypatch.setenv("PATH", f"{tmp_path}/env/bin:{os.environ['PATH']}")
    assert faults(root) == [CODE]
    (site / "x.pth").unlink()
    monkeypatch.setenv("PYTHONPATH", f"{root}/src")
    assert faults(root) == [CODE]


@pytest.mark.parametrize("kind", ["installed", "editable"])
def test_a_broken_change_would_be_done_behind_the_copy_and_is_not_even_tried(tmp_path: Path, kind: str) -> None:
    """G09 T17: the control shows the harm, with a real environment; validate, run and doctor refuse it."""
    root = project(tmp_path / "p", {}, workspace='linked = [".venv"]\ninstalled_copies = "allow"')
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", root / ".venv"], check=True)
    (site,) = (root / ".venv").glob("lib/python3*/site-packages")
    if kind == "installed":
        (site / "shop").mkdir()
        (site / "shop" / "__init__.py").write_text(GOOD)
    else:
        (site / "__editable__.my_shop.pth").write_text(f"{root}/src\n")
    who = ("-c", "user.name=S", "-c", "user.email=s@example.org")
    for words in (("init", "-q"), ("add", "-A"), ("commit", "-qm", "begin")):
        subprocess.run(["git", *who, *words], cwd=root, check=True)
    ganger = [sys.executable, "-m", "ganger"]
    assert subprocess.run([*ganger, "run"], cwd=root, capture_output=True, check=False).returncode == 0
    config = root / "ganger.toml"
    config.write_text(config.read_text().replace('installed_copies = "allow"', ""))
    for command in ("validate", "run"):
        done = subprocess.run([*ganger, command], cwd=root, capture_output=True, text=True, check=False)
        assert done.returncode == 1 and CODE in done.stdout + done.stderr
    (found,) = [one for one in examine(root, root) if one.name == "copies"]
    assert (found.level, str(site) in found.text) == ("error", True)
