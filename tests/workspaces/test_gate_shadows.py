"""New files that make a check read something else than before; nothing that exists is touched."""

from __future__ import annotations

import pytest

from ganger.ports.changes import Rules
from tests.workspaces.judged_change import Entry, MadeChange, codes, link

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


VPATH = "SUB = deep\nVPATH = out:$(SUB)/gen\nvpath %.ok marks\n"
SEARCHED = f"{VPATH}test: stamp a.ok prog.o in.txt\n\tpytest\nstamp:\n\tpytest\na.ok:\n\tpytest\n"
FOUND = "out/stamp deep/gen/stamp out/stamp/x.txt marks/a.ok out/a.ok deep/gen/prog.o out/in.txt"
NOT_FOUND = "marks/stamp other/stamp deep/stamp out/stamp.md out/more.c out/new.txt marks/in.txt"


@pytest.mark.parametrize("path", [*FOUND.split(), *NOT_FOUND.split()])
def test_what_make_finds_in_the_folders_it_searches_is_a_gate(path: str) -> None:
    """G09: by VPATH and vpath; a finished target, or a source in front of another."""
    base = {"Makefile": SEARCHED, "out/prog.c": "x", "deep/gen/in.txt": "x"}
    wanted = path in FOUND.split()
    assert gates(base, {path: "x"}, "make test") == ([path] if wanted else [])
    below = {f"web/{name}": text for name, text in base.items()}
    assert gates(below, {f"web/{path}": "x"}, "make -C web test") == ([f"web/{path}"] if wanted else [])


def test_a_source_that_make_waits_for_is_work() -> None:
    """G09: and nothing that lies in a searched folder hides what is found before it."""
    base = {"Makefile": f"VPATH = src\n{PHONY}test: prog\n\t./prog\nprog: main.c\n\tcc\n"}
    assert gates(base, {"src/main.c": "x"}, "make test") == []
    assert gates({**base, "main.c": "x"}, {"src/main.c": "x", "src/test": "x"}, "make test") == []


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


PARTS = [
    ('for p in parts.d/*; do [ ! -f "$p" ] || . "./$p"; done', True),
    ('D=parts.d\nfor p in "$D"/*.sh; do source "$p"; done', True),
    ('for p in $(ls parts.d); do . "parts.d/$p"; done', True),
    ("for p in $(find parts.d -name '*.sh'); do . $p; done", True),
    ("for name in one new; do . ./parts.d/$name.sh; done", True),
    ('HERE=$(cd "$(dirname "$0")" && pwd)\nfor p in "$HERE"/../parts.d/*.sh; do . "$p"; done', True),
    ("source parts.d/*", True),
    ("run-parts --exit-on-error ./parts.d", True),
    ("for p in parts.d/*.sh; do shellcheck $p; done", False),
    ("# for p in parts.d/*.sh; do . $p; done", False),
    ("for p in other.d/*.sh; do . $p; done", False),
    ("cat parts.d/*.sh > all.txt", False),
]


@pytest.mark.parametrize(("line", "gate"), PARTS)
def test_a_part_of_what_a_script_sources_is_a_gate(line: str, gate: bool) -> None:
    """G09: however it goes through the folder; parts that nobody sources are work."""
    base = {"ci/run.sh": f"#!/bin/sh\n{line}\npython3 -m pytest\n", "parts.d/one.sh": "x"}
    assert gates(base, {"parts.d/new.sh": "x"}, "sh ci/run.sh") == (["parts.d/new.sh"] if gate else [])
    if gate and "HERE" not in line:
        recipe = line.replace("$", "$$").replace("\n", "; ")
        base = {"Makefile": f"{PHONY}test:\n\t{recipe}; python3 -m pytest\n", "parts.d/one.sh": "x"}
        assert gates(base, {"parts.d/new.sh": "x"}, "make test") == ["parts.d/new.sh"]


ON_PATH = [
    ("sh", 'PATH="$PWD/libexec:$PATH"\nexport PATH', True),
    ("sh", "export PATH=libexec:/usr/bin", True),
    ("sh", "PATH=./libexec:$PATH python3 -m pytest", True),
    ("sh", 'HERE=$(cd "$(dirname "$0")/.." && pwd)\nPATH="$HERE/libexec:$PATH"', True),
    ("sh", "T=libexec\nPATH=$(pwd)/$T:$PATH", True),
    ("sh", "env PATH=other:libexec:$PATH pytest", True),
    ("make", "export PATH := $(CURDIR)/libexec:$(PATH)", True),
    ("sh", "PATH=$PATH:libexec", False),
    ("sh", "PATH=tools:$PATH", False),
    ("sh", "PYTHONPATH=libexec", False),
    ("sh", "# PATH=libexec:$PATH", False),
    ("make", "export PATH := $(PATH):$(CURDIR)/libexec", False),
]


@pytest.mark.parametrize(("kind", "line", "gate"), ON_PATH)
def test_a_program_where_a_check_looks_first_is_a_gate(kind: str, line: str, gate: bool) -> None:
    """G09: if it is named like one that is there anyway; what the check waits for is work."""
    base = {"Makefile": f"{line}\n{PHONY}{MAKE}"} if kind == "make" else {"ci/run.sh": f"{line}\npython3 -m pytest\n"}
    command = "make test" if kind == "make" else "sh ci/run.sh"
    new: dict[str, str | Entry] = {"libexec/python3": "x", "libexec/shop-report": "x", "more/python3": "x"}
    assert gates(base, new, command) == (["libexec/python3"] if gate else [])
    assert gates(base, {"libexec/python3": "x"}, command, declared="libexec/python3") == []


def test_a_command_may_say_itself_where_programs_are_looked_for() -> None:
    """G09: `env PATH=…`, also inside a shell."""
    new: dict[str, str | Entry] = {"libexec/git": "x", "more/git": "x"}
    assert gates({}, new, "env PATH=libexec:/usr/bin pytest") == ["libexec/git"]
    assert gates({}, new, "sh -c 'PATH=$PWD/libexec:$PATH pytest'") == ["libexec/git"]
    assert gates({}, new, "env PATH=/usr/bin:libexec pytest") == []


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


UNIT = {
    "shop/__init__.py": "x",
    "shop/money.py": "x",
    "plain/one.py": "x",
    "src/core.py": "x",
    "tests/helpers.py": "x",
    "tests/test_a.py": "x",
    "tests/unit/test_b.py": "x",
    "tests/unit/kit.py": "x",
    "tests/deep/pack/__init__.py": "",
    "tests/deep/pack/test_c.py": "x",
    "tests/data/sample.txt": "x",
    "tools/one.py": "x",
}
FIRST = """
tests/unit/shop/__init__.py  tests/unit/shop.py  tests/deep/shop/__init__.py  tests/deep/core.py  tests/unit/plain.py
tests/unit/plain/one.py  tests/unit/helpers.py  tests/deep/kit.py  tests/shop/__init__.py  tests/unit/shop.abi3.so
"""
NOT_FIRST = """
tests/unit/basket.py  tests/unit/support/__init__.py  tests/data/shop/__init__.py  tests/data/project/shop.py
tests/deep/pack/shop.py  tests/unit/test_a.py  tests/unit/tools.py  tests/unit/plain/two.py  docs/shop/__init__.py
tests/deep/pack/more/shop.py  shop/helpers.py  tests/unit/money.py
"""


@pytest.mark.parametrize("path", [*FIRST.split(), *NOT_FIRST.split()])
def test_a_module_among_the_tests_in_the_place_of_another_is_a_gate(path: str) -> None:
    """G09: where pytest puts the folder in front; a new helper, data and what lies inside a package are work."""
    wanted = [path] if path in FIRST.split() else []
    assert gates(UNIT, {path: "x"}, "python3 -m pytest -q tests/unit") == wanted
    assert gates({**UNIT, "Makefile": PHONY + MAKE}, {path: "x"}, "make test") == wanted


def test_folders_of_tests_count_only_where_a_runner_searches_them() -> None:
    """G09: the change's own tests make one; not unittest from the top, not pytest that imports by itself."""
    new: dict[str, str | Entry] = {"tests/new/test_n.py": "x", "tests/new/shop/__init__.py": "x"}
    assert gates(UNIT, new, PYTEST) == ["tests/new/shop/__init__.py"]
    assert gates(UNIT, new, "python3 -m unittest discover -s tests -t .") == []
    assert gates(UNIT, new, f"{PYTEST} --import-mode=importlib") == []
    settings = {"pyproject.toml": '[tool.pytest.ini_options]\naddopts = ["--import-mode=importlib"]\n'}
    assert gates({**UNIT, **settings}, new, PYTEST) == []
    assert gates(UNIT, {**new, "tests/new/__init__.py": ""}, PYTEST) == []


def test_folders_that_settings_and_scripts_put_in_front_count_too() -> None:
    """G09: pytest's pythonpath, and PYTHONPATH in a script."""
    new: dict[str, str | Entry] = {"libs/shop.py": "x", "libs/more.py": "x", "other/shop.py": "x"}
    for text in ('[tool.pytest.ini_options]\npythonpath = [\n  "libs",\n  "src",\n]\n',):
        assert gates({**UNIT, "pyproject.toml": text}, new, PYTEST) == ["libs/shop.py"]
    assert gates({**UNIT, "pytest.ini": "[pytest]\npythonpath = libs src\n"}, new, PYTEST) == ["libs/shop.py"]
    script = {"ci/run.sh": 'export PYTHONPATH="$PWD/libs:$PYTHONPATH"\npython3 -m unittest\n'}
    assert gates({**UNIT, **script}, new, "sh ci/run.sh") == ["libs/shop.py"]


IMPORTS = [
    ("try:\n    from mine import X\nexcept ImportError:\n    X = 3\n", True),
    ("try:\n    import mine\nexcept (ModuleNotFoundError, ValueError):\n    pass\n", True),
    ("try:\n    import mine\nexcept ImportError:\n    mine = None\nX = mine.X if mine else 3\n", True),
    ("try:\n    import mine\nexcept ImportError:\n    mine = None\nif mine is not None:\n    X = mine.X\n", True),
    ("import contextlib\nX = 3\nwith contextlib.suppress(ImportError):\n    from mine import X\n", True),
    ("try:\n    X = __import__('mine').X\nexcept Exception:\n    X = 3\n", True),
    ("from importlib.util import find_spec\nif find_spec('mine'):\n    import mine\n", True),
    ("try:\n    import mine\nexcept ImportError:\n    sys.exit(0)\n", True),
    ("import mine\n", False),
    ("from mine import X\n", False),
    ("try:\n    import mine\nexcept ImportError:\n    sys.exit('there is no mine')\n", False),
    ("try:\n    import mine\nexcept ImportError as fault:\n    raise SystemExit(1) from fault\n", False),
    ("try:\n    import mine\nexcept ImportError:\n    pytest.skip('later')\n", False),
    ("try:\n    import mine\nexcept ImportError:\n    mine = None\nassert mine is not None\n", False),
    ("try:\n    import mine\nexcept ImportError:\n    mine = None\nif mine is None:\n    sys.exit(1)\n", False),
    ("mine = pytest.importorskip('mine')\n", False),
    ("assert importlib.util.find_spec('mine')\n", False),
    ("if importlib.util.find_spec('mine') is None:\n    sys.exit('missing')\n", False),
    ("try:\n    import mine\nexcept ValueError:\n    X = 3\n", False),
]


@pytest.mark.parametrize(("text", "gate"), IMPORTS)
def test_what_a_check_imports_if_it_is_there_is_a_gate(text: str, gate: bool) -> None:
    """G09: in a check's script and in a test; what they demand, or leave out a test for, is work."""
    for path in ("mine.py", "mine/__init__.py"):
        wanted = [path] if gate else []
        assert gates({"check.py": text}, {path: "x"}, "python3 check.py") == wanted
        assert gates({"tests/test_a.py": text}, {path: "x"}, PYTEST) == wanted
        assert gates({"tests/test_a.py": text}, {path: "x"}, PYTEST, declared=path) == []
    beside: dict[str, str | Entry] = {"shop/mine.py": "x", "other.py": "x"}
    assert gates({"check.py": text, "shop/__init__.py": ""}, beside, "python3 check.py") == []
    assert gates({"ci/check.py": text}, {"ci/mine.py": "x"}, "python3 ci/check.py") == (["ci/mine.py"] if gate else [])


def test_a_part_of_the_product_that_a_test_can_do_without_is_work() -> None:
    """G09: but not one of the tests' own package."""
    text = "try:\n    from shop.fast import total\nexcept ImportError:\n    from shop.slow import total\n"
    base = {"shop/slow.py": "x", "tests/__init__.py": "", "tests/test_a.py": text}
    assert gates(base, {"shop/fast.py": "x"}, PYTEST) == []
    for spelt in ("from tests.local import X", "from .local import X", "from . import local"):
        mine = {**base, "tests/test_b.py": f"try:\n    {spelt}\nexcept ImportError:\n    X = 3\n"}
        assert gates(mine, {"tests/local.py": "x"}, PYTEST) == ["tests/local.py"]


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
