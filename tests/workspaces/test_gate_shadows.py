"""New files that make a check read something else than before; nothing that exists is touched."""

from __future__ import annotations

import pytest
from judged_change import Entry, MadeChange, codes, link

from ganger.ports import Rules

GATE = "GATE_CHANGED"
PYTEST = "python3 -m pytest -q tests"
MAKE = "test:\n\tpython3 -m pytest\n"
PHONY = ".PHONY: test\n"
SCRIPT = """#!/bin/sh
# [ -f commented ] && . ./commented
[ -f settings.sh ] && . ./settings.sh
source "$(dirname "$0")/env.bash"
if [ -e opts ]; then . opts; fi
for part in ci/parts/*.sh; do . "$part"; done
CONF=${CONF:-my.conf}
. "$CONF"
[ -e SKIP ] && exit 0
if [ -x ./pre.sh ]; then
    ./pre.sh
fi
if [ -f needed.txt ]; then cat needed.txt; else exit 1; fi
test -f HELLO.md || exit 1
[ ! -f gone.txt ] && exit 1
[ -f OUT.md ] && grep -q done OUT.md
if [ -s LIST.md ]; then grep -q done LIST.md; fi
[ -f extra ] && OPTS=$(cat extra)
[ -r tool ] && python3 bin/tool --all
for case in cases/*.sh; do sh "$case"; done
python3 -m pytest
"""
PY = {
    "helper.py": "x",
    "tests/helpers.py": "x",
    "tests/names/one.py": "x",
    "tests/test_a.py": "from helpers import x",
    "src/calc.py": "x",
    "shop/__init__.py": "x",
    "shop/money.py": "x",
    "pyproject.toml": '[project]\nname = "shop"\ndependencies = ["PyYAML>=6", "python-dateutil", "shop[all]"]\n',
    "requirements.txt": "# what it needs\nrequests==2.0\n",
}
JS = {"package.json": '{"scripts": {"test": "jest"}}', "src/total.js": "x", "test/a.test.js": "x", "test/deep.ts": "x"}
JS |= {"test/helper.js": "x", "test/kit/index.js": "x"}
CRA = {"package.json": '{"scripts": {"test": "react-scripts test"}}'}
GO = {"go.mod": "module x\n", "a/a.go": "x", "a/a_test.go": "x"}


def gates(base: dict[str, str], new: dict[str, str | Entry], command: str, *, declared: str = "") -> list[str]:
    rules = Rules(verify=(command,), create=(declared,) if declared else None)
    return [path for path, code in codes(MadeChange(base, {**base, **new}), rules) if code == GATE]


FINISHED = [
    pytest.param(MAKE, "test", id="file"),
    pytest.param(MAKE, "test/x.py", id="folder"),
    pytest.param("all: check\ncheck:\n\tpytest\n", "check", id="default-goal-needs"),
    pytest.param(f"{PHONY}test: .stamp\n\t@true\n.stamp:\n\tpytest && touch .stamp\n", ".stamp", id="stamp"),
    pytest.param(f"{PHONY}test: prog\n\t./prog\nprog: prog.c\n\tcc -o prog prog.c\n", "prog", id="program"),
    pytest.param(f"{PHONY}test: prog\n\t./prog\n", "prog", id="by-makes-own-rule"),
    pytest.param(f"OUT = out/p\n{PHONY}test: $(OUT)\n\t$(OUT)\n$(OUT): a.c\n\tcc\n", "out/p", id="variable"),
    pytest.param(f"{PHONY}test: build/a.o\n\t./t\nbuild/%.o: src/%.c\n\tcc\n", "build/a.o", id="pattern"),
    pytest.param(f"{PHONY}test: $(OBJS)\n\t./t\nbuild/%.o: src/%.c\n\tcc\n", "build/a.o", id="unknown-needs"),
]


@pytest.mark.parametrize(("makefile", "path"), FINISHED)
def test_what_make_takes_for_finished_is_a_gate(makefile: str, path: str) -> None:
    """G09: it says "up to date" and runs nothing, or runs what was put there."""
    base = {"Makefile": makefile, "src/a.c": "x", "prog.c": "x", "a.c": "x"}
    command = "make" if makefile.startswith("all") else "make test"
    assert gates(base, {path: "x"}, command) == [path]
    assert gates(
        {f"web/{name}": text for name, text in base.items()}, {f"web/{path}": "x"}, f"make -C web {command[5:]}"
    )
    assert gates({**base, "run.sh": "make test all\n"}, {path: "x"}, "sh run.sh") == [path]


def test_what_make_would_do_anyway_is_left_alone() -> None:
    """G09: targets that are no files, targets nobody asks for, sources, and folders that were there."""
    assert gates({"Makefile": PHONY + MAKE}, {"test/test_x.py": "x"}, "make test") == []
    base = {"Makefile": f"{PHONY}{MAKE}docs:\n\tbuild\nobj/%.o: src/%.c\n\tcc\n", "src/a.c": "x", "obj/keep": "x"}
    assert gates(base, {"docs/a.md": "x", "src/b.c": "x", "obj/a.o": "x"}, "make test") == []
    assert (
        gates({"Makefile": "tests:\n\tpytest\n", "tests/test_a.py": "x"}, {"tests/test_b.py": "x"}, "make tests") == []
    )
    assert gates({"Makefile": MAKE}, {"test": "x"}, "python3 -m pytest") == []


@pytest.mark.parametrize("line", ["-include mine", "include conf/*", "include $(wildcard conf/*)", "sinclude mine"])
def test_what_a_makefile_would_include_is_a_gate(line: str) -> None:
    """G09: under any name."""
    path = "conf/z" if "conf" in line else "mine"
    assert gates({"Makefile": f"{line}\n{PHONY}{MAKE}"}, {path: "x"}, "make test") == [path]


def test_what_a_makefile_asks_for_in_a_condition_is_a_gate() -> None:
    """G09: and what it only collects is none."""
    text = (
        f"SRC := $(wildcard src/*.py)\nifneq ($(wildcard SKIP),)\nRUN = true\nendif\n{PHONY}test:\n\t. ./vars; pytest\n"
    )
    assert gates({"Makefile": text}, {"SKIP": "", "vars": "x", "src/new.py": "x"}, "make test") == ["SKIP", "vars"]


SOURCED = "settings.sh ci/settings.sh ci/env.bash opts ci/parts/z.sh my.conf SKIP pre.sh extra tool"
NOT_SOURCED = "needed.txt OUT.md LIST.md HELLO.md gone.txt cases/new.sh commented other.sh ci/notes.md"


@pytest.mark.parametrize("path", [*SOURCED.split(), *NOT_SOURCED.split()])
def test_what_a_script_reads_if_it_is_there_is_a_gate(path: str) -> None:
    """G09: settings and switches; what a check demands, or goes through as cases, is work."""
    wanted = path in SOURCED.split()
    assert gates({"ci/run.sh": SCRIPT}, {path: "x"}, "sh ci/run.sh") == ([path] if wanted else [])
    assert gates({"ci/run.sh": SCRIPT}, {path: "x"}, "sh ci/run.sh", declared=path) == []


OVER = """
helper/__init__.py  tests/helpers/__init__.py  tests/helpers.cpython-311-x86_64-linux-gnu.so  src/calc.abi3.so
src/calc/__init__.py  shop/money/__init__.py  tests/names.py  calc.py  calc/__init__.py  requests.py  yaml/__init__.py
dateutil.py  tests/requests.py  tests/unit/json.py  tests/setup.py  tests/pyproject.toml  shop/money.so
"""
BESIDE = """
newpkg/__init__.py  newpkg/money.py  tests/unit/test_b.py  shop/json.py  shop/requests.py  shop/calc.py  src/calc.pyc
tests/data/setup.py  tests/names/two.py  helpers.py  docs/helper/index.md  src/shop2.py  shop.py  tools/calc.py
"""


@pytest.mark.parametrize("path", [*OVER.split(), *BESIDE.split()])
def test_a_module_in_the_place_of_another_is_a_gate(path: str) -> None:
    """G09: a package over a module, a compiled one over a source, the product or a dependency from another folder."""
    assert gates(PY, {path: ""}, PYTEST) == ([path] if path in OVER.split() else [])


def test_a_link_is_a_package_too() -> None:
    """G09: to a folder, or as the package's first file."""
    assert gates(PY, {"helper": link("shop")}, PYTEST) == ["helper"]
    assert gates(PY, {"tests/helpers/__init__.py": link("../../shop/money.py")}, PYTEST) == [
        "tests/helpers/__init__.py"
    ]


def test_a_module_that_becomes_a_package_is_work() -> None:
    """G09: the module goes in the same change."""
    base = {"shop/__init__.py": "x", "shop/money.py": "x"}
    after = {"shop/__init__.py": "x", "shop/money/__init__.py": "x", "shop/money/cents.py": "x"}
    assert codes(MadeChange(base, after), Rules(verify=(PYTEST,))) == []


JS_OVER = "test/helper test/deep.js test/kit.js test/kit.json src/package.json test/package.json __mocks__/axios.js"
JS_BESIDE = """
test/helper.ts test/helper.json test/new.js src/total.json src/__mocks__/total.js packages/new/package.json src/kit.js
test/helper/index.js
"""


@pytest.mark.parametrize("path", [*JS_OVER.split(), *JS_BESIDE.split()])
def test_a_script_in_the_place_of_another_is_a_gate(path: str) -> None:
    """G09: by the order in which endings are tried; a package in the middle of another; a mock of a package."""
    assert gates(JS, {path: "{}"}, "npm test") == ([path] if path in JS_OVER.split() else [])


def test_rules_of_one_runner_do_not_bind_the_others() -> None:
    """G09: jest's mocks, create-react-app's set-up, vitest's configuration."""
    assert gates({}, {"__mocks__/fs.js": "x"}, "npx vitest") == []
    assert gates(CRA, {"src/setupTests.js": "x", "__mocks__/a.js": "x"}, "npm test") == [
        "__mocks__/a.js",
        "src/setupTests.js",
    ]
    assert gates(JS, {"src/setupTests.js": "x", "vite.config.ts": "export default {}"}, "npm test") == []
    assert gates({}, {"vite.config.ts": "export default {}"}, "npx vitest") == ["vite.config.ts"]


def test_a_module_that_takes_tests_out_of_another_is_a_gate() -> None:
    """G09: go does not look into a folder with a go.mod of its own."""
    assert gates(GO, {"a/go.mod": "module y\n"}, "go test ./...") == ["a/go.mod"]
    assert gates(GO, {"vendor/modules.txt": "x"}, "go test ./...") == ["vendor/modules.txt"]
    assert gates(GO, {"tools/new/go.mod": "module y\n"}, "go test ./...") == []
    assert gates(GO, {"a/go.mod": "module y\n"}, "go test ./...", declared="a/go.mod") == []
