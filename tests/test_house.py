"""The script that measures the source tree sees what was planted in a small one."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "scripts" / "house.py"
FILES = {
    "__init__.py": "",
    "a/one.py": "from ganger.b import one\nfrom ganger.a.two import Bag\nclass Found: ...\n",
    "b/one.py": "import ganger.a.one\nclass Found: ...\nclass _Own: ...\nprint(1, 2, 3, 4, 5, 6, 7)\n",
    "a/two.py": "@dataclass\nclass Bag:\n" + "".join(f"    f{n}: int\n" for n in range(16)) + "class _Own: ...\n",
}


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    root = tmp_path_factory.mktemp("tree")
    for name, text in FILES.items():
        (root / "src/ganger" / name).parent.mkdir(parents=True, exist_ok=True)
        (root / "src/ganger" / name).write_text(text, encoding="utf-8")
    said = subprocess.run([sys.executable, str(SCRIPT), "--json", str(root)], capture_output=True, check=True)
    found = json.loads(said.stdout)
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("files", 4),
        ("folders", 3),
        ("import_cycles", [["ganger.a.one", "ganger.b.one"]]),
        ("file_names_used_twice", {"one.py": ["a/one.py", "b/one.py"]}),
        ("class_names_used_twice", {"Found": ["ganger.a.one", "ganger.b.one"]}),
        ("modules_with_one_importer", ["ganger.a.one", "ganger.a.two", "ganger.b.one"]),
        ("bags", {"ganger.a.two.Bag": 16}),
        ("calls_with_many_positional", 1),
    ],
)
def test_what_was_planted_is_measured(measured: dict[str, object], key: str, value: object) -> None:
    assert measured[key] == value
