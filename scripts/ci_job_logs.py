"""Logs of CI jobs for the tests: small projects with planted faults, run by the real tools, the output kept.

`python scripts/ci_job_logs.py FOLDER [TOOL…]` writes FOLDER/tool/fault--variant.log, with the programs of PATH.
Where a program is missing its logs are left as they are. Variants of one fault differ in what must not matter.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

Files = Mapping[str, str]
_COMMENTS = {".py": "#", ".mk": "#", "": "#"}
_MOST_BYTES = 20_000


@dataclass(frozen=True)
class Variant:
    """How a job differs: its command, its variables, whether lines are moved and `more` of the files is there."""

    command: str
    env: Mapping[str, str] = field(default_factory=dict)
    moved: bool = False
    folder: str = "builds/dev/app"


@dataclass(frozen=True)
class Tool:
    """`faults`: by name, the files that differ from the good ones. `more`: files with tests that pass."""

    files: Files
    faults: Mapping[str, Files]
    variants: Mapping[str, Variant]
    more: Files = field(default_factory=dict)


def _set(command: str, colour: str = "", other: str = "", **env: str) -> dict[str, Variant]:
    """The same job thrice: as it is, elsewhere with its lines moved and more around, and with colours."""
    return {
        "plain": Variant(command),
        "moved": Variant(other or command, moved=True, folder="home/runner/work/app/app"),
        "colour": Variant(colour or command, env),
    }


_API = "def port(text):\n    return int(text)\n\n\ndef name(text):\n    return text.strip()\n"
_TEST_API = (
    "from app.api import name, port\n\n\ndef test_name():\n    assert name(' a ') == 'a'\n\n\n"
    "def test_port():\n    assert port('3') == 3\n"
)
_SLOW = "import time\n\n\ndef test_waits():\n    time.sleep(0.13)\n\n\ndef test_more():\n    assert 1 + 1 == 2\n"
_PORT = _API.replace("int(text)", "int(text) + 1")
_NAME = _API.replace("text.strip()", "text.strip")
_RAISES = _API.replace("return int(text)", "return int(text + 'x')")
_UNIT = (
    "import unittest\n\nfrom app.api import name, port\n\n\nclass Api(unittest.TestCase):\n"
    "    def test_name(self):\n        self.assertEqual(name(' a '), 'a')\n\n"
    "    def test_port(self):\n        self.assertEqual(port('3'), 3)\n"
)
_PYTEST = Tool(
    {"app/__init__.py": "", "app/api.py": _API, "tests/test_api.py": _TEST_API, "pytest.ini": "[pytest]\n"},
    {
        "port": {"app/api.py": _PORT},
        "name": {"app/api.py": _NAME},
        "raises": {"app/api.py": _RAISES},
        "import": {"app/api.py": "import nosuchmodule\n" + _API},
        "fixture": {
            "tests/conftest.py": "import pytest\n\n\n@pytest.fixture\ndef desk():\n    return open('/nosuch/desk')\n",
            "tests/test_api.py": _TEST_API.replace("test_port()", "test_port(desk)"),
        },
        "namesake": {"app/api.py": _PORT, "tests/test_port.py": _TEST_API.replace("== 3", "== 5")},
        "both": {"app/api.py": _PORT.replace("text.strip()", "text")},
    },
    {
        **_set("python -m pytest", "python -m pytest --color=yes"),
        "workers": Variant("python -m pytest -n 2 -v", moved=True),
        "retried": Variant("python -m pytest --reruns 2", folder="tmp/tmp.h3Xk2lQ9/app"),
    },
    {"tests/test_slow.py": _SLOW},
)
_UNITTEST = Tool(
    {"app/__init__.py": "", "app/api.py": _API, "tests/__init__.py": "", "tests/test_api.py": _UNIT},
    {"port": {"app/api.py": _PORT}, "raises": {"app/api.py": _RAISES}, "import": {"app/api.py": "import nosuch\n"}},
    _set("python -m unittest", "python -m unittest -v"),
    {
        "tests/test_more.py": "import unittest\n\n\nclass More(unittest.TestCase):\n    def test_more(self):\n        pass\n"
    },
)
_JS = "exports.port = (text) => Number(text);\nexports.name = (text) => text.trim();\n"
_JS_PORT = _JS.replace("Number(text)", "Number(text) + 1")
_JS_RAISES = _JS.replace("text.trim()", "text.trimmed()")
_JEST_TEST = (
    "const { port, name } = require('../src/api');\n\ndescribe('api', () => {\n"
    "  test('port is a number', () => {\n    expect(port('3')).toBe(3);\n  });\n"
    "  test('name has no blanks', () => {\n    expect(name(' a ')).toBe('a');\n  });\n});\n"
)
_JEST = Tool(
    {"src/api.js": _JS, "test/api.test.js": _JEST_TEST, "package.json": '{"name": "app", "private": true}\n'},
    {
        "port": {"src/api.js": _JS_PORT},
        "raises": {"src/api.js": _JS_RAISES},
        "import": {"src/api.js": "require('./nosuch');\n" + _JS},
    },
    _set("jest --ci", "jest --ci --verbose --colors", FORCE_COLOR="1"),
    {"test/more.test.js": "test('more', () => {\n  expect(1).toBe(1);\n});\n"},
)
_VITEST_TEST = (
    "import { test, describe, expect } from 'vitest';\nimport { port, name } from '../src/api.js';\n"
    + (_JEST_TEST.split("\n", 1)[1])
)
_ES = _JS.replace("exports.", "export const ")
_VITEST = Tool(
    {
        "src/api.js": _ES,
        "test/api.test.js": _VITEST_TEST,
        "package.json": '{"name": "app", "private": true, "type": "module"}\n',
    },
    {
        "port": {"src/api.js": _ES.replace("Number(text)", "Number(text) + 1")},
        "raises": {"src/api.js": _ES.replace("text.trim()", "text.trimmed()")},
        "import": {"src/api.js": "import './nosuch.js';\n" + _ES},
    },
    _set("vitest run", "vitest run --reporter=verbose", FORCE_COLOR="1"),
    {"test/more.test.js": "import { test, expect } from 'vitest';\ntest('more', () => {\n  expect(1).toBe(1);\n});\n"},
)
_NODE_TEST = (
    "const { test, describe } = require('node:test');\nconst assert = require('node:assert');\n"
    "const { port, name } = require('../src/api');\n\ndescribe('api', () => {\n"
    "  test('port is a number', () => {\n    assert.strictEqual(port('3'), 3);\n  });\n"
    "  test('name has no blanks', () => {\n    assert.strictEqual(name(' a '), 'a');\n  });\n});\n"
)
_NODE = Tool(
    {"src/api.js": _JS, "test/api.test.js": _NODE_TEST},
    {"port": {"src/api.js": _JS_PORT}, "raises": {"src/api.js": _JS_RAISES}},
    _set(
        "node --test --test-reporter=tap",
        "node --test --test-reporter=spec",
        FORCE_COLOR="1",
    )
    | {"spec": Variant("node --test --test-reporter=spec", moved=True)},
    {"test/more.test.js": "require('node:test').test('more', () => {});\n"},
)
_GO = "package calc\n\nfunc Add(a, b int) int { return a + b }\n\nfunc First(all []int) int { return all[0] }\n"
_GO_TEST = (
    'package calc\n\nimport "testing"\n\nfunc TestAdd(t *testing.T) {\n'
    '\tif got := Add(1, 2); got != 3 {\n\t\tt.Errorf("Add(1, 2) = %d, want 3", got)\n\t}\n}\n\n'
    "func TestFirst(t *testing.T) {\n\tfor _, n := range []int{4, 5} {\n"
    '\t\tt.Run("of list", func(t *testing.T) {\n\t\t\tif First([]int{n}) != n {\n\t\t\t\tt.Fatal("not the first")\n'
    "\t\t\t}\n\t\t})\n\t}\n}\n"
)
_GO_TOOL = Tool(
    {"go.mod": "module github.com/dev/app\n\ngo 1.19\n", "calc/calc.go": _GO, "calc/calc_test.go": _GO_TEST},
    {
        "add": {"calc/calc.go": _GO.replace("a + b", "a - b")},
        "first": {"calc/calc.go": _GO.replace("return all[0]", "return 7")},
        "panic": {"calc/calc.go": _GO.replace("all[0]", "all[len(all)]")},
        "build": {"calc/calc.go": _GO.replace("a + b", "a + c")},
        "vet": {"calc/calc_test.go": _GO_TEST.replace('"Add(1, 2) = %d, want 3", got', '"Add(1, 2) = %s", got')},
    },
    _set("go test ./...", "go test -v ./..."),
    {"more/more_test.go": 'package more\n\nimport "testing"\n\nfunc TestMore(t *testing.T) {}\n'},
)
_RUST = (
    "pub fn add(a: i32, b: i32) -> i32 {\n    a + b\n}\n\npub fn first(all: &[i32]) -> i32 {\n    *all.first().unwrap()\n}\n"
    "\n#[cfg(test)]\nmod tests {\n    use super::*;\n\n    #[test]\n    fn adds() {\n        assert_eq!(add(1, 2), 3);\n    }\n"
    "\n    #[test]\n    fn firsts() {\n        assert_eq!(first(&[4, 5]), 4);\n    }\n}\n"
)
_CARGO = Tool(
    {"Cargo.toml": '[package]\nname = "app"\nversion = "0.1.0"\nedition = "2021"\n', "src/lib.rs": _RUST},
    {
        "add": {"src/lib.rs": _RUST.replace("a + b", "a - b")},
        "unwrap": {"src/lib.rs": _RUST.replace("*all.first()", "*all.get(9)")},
        "build": {"src/lib.rs": _RUST.replace("a + b", "a + c")},
        "type": {"src/lib.rs": _RUST.replace("    a + b", "    (a + b).to_string()")},
    },
    _set("cargo test --offline", "cargo test --offline --color always"),
    {"tests/more.rs": "#[test]\nfn more() {}\n"},
)
_C = '#include <stdio.h>\n\nstatic int port(void) {\n    return 3;\n}\n\nint main(void) {\n    printf("%d\\n", port());\n    return 0;\n}\n'
_C_FAULTS = {
    "undeclared": {"src/main.c": _C.replace("return 3", "return three")},
    "missing-header": {"src/main.c": '#include "nosuch.h"\n' + _C},
    "undefined": {"src/main.c": _C.replace("static int port(void) {\n    return 3;\n}", "int port(void);")},
}
_GCC = Tool(
    {"src/main.c": _C},
    _C_FAULTS,
    _set(
        "gcc -o app src/main.c", "gcc -fdiagnostics-color=always -o app src/main.c", "gcc -Wall -o app $PWD/src/main.c"
    ),
)
_CLANG = Tool(
    {"src/main.c": _C},
    _C_FAULTS,
    _set(
        "clang -o app src/main.c", "clang -fcolor-diagnostics -o app src/main.c", "clang -Wall -o app $PWD/src/main.c"
    ),
)
_TS = "export const port = (text: string): number => Number(text);\nexport const twice = (n: number) => n * 2;\n"
_TSC = Tool(
    {"src/api.ts": _TS, "tsconfig.json": '{"compilerOptions": {"noEmit": true, "types": []}, "include": ["src"]}\n'},
    {
        "type": {"src/api.ts": _TS.replace("Number(text)", "text")},
        "name": {"src/api.ts": _TS.replace("n * 2", "m * 2")},
    },
    _set("tsc -p .", "tsc -p . --pretty"),
    {"src/more.ts": "export const more = 1;\n"},
)
_LINTED = "def port(text: str) -> int:\n    return int(text)\n"
_RUFF = Tool(
    {"app/api.py": _LINTED},
    {
        "unused": {"app/api.py": "import os\n\n" + _LINTED},
        "name": {"app/api.py": _LINTED.replace("int(text)", "int(txt)")},
    },
    _set("ruff check .", "ruff check --output-format=full .", "ruff check --output-format=concise .", FORCE_COLOR="1")
    | {"annotated": Variant("ruff check --output-format=github .", moved=True)},
    {"app/more.py": "MORE = 1\n"},
)
_MYPY = Tool(
    {"app/api.py": _LINTED},
    {
        "returns": {"app/api.py": _LINTED.replace("return int(text)", "return text")},
        "name": {"app/api.py": _LINTED.replace("int(text)", "int(txt)")},
    },
    _set("mypy --strict app", "mypy --strict --pretty app", MYPY_FORCE_COLOR="1"),
    {"app/more.py": "MORE = 1\n"},
)
_ESLINT = Tool(
    {
        "src/api.js": "export const port = (text) => Number(text);\n",
        "eslint.config.mjs": "export default [{ rules: { 'no-undef': 'error', 'no-unused-vars': 'error' }, "
        "languageOptions: { globals: { Number: true } } }];\n",
    },
    {
        "unused": {"src/api.js": "const more = 1;\nexport const port = (text) => Number(text);\n"},
        "undef": {"src/api.js": "export const port = (text) => Number(txt);\n".replace("(text)", "()", 1)},
    },
    _set("eslint src", "eslint --color src"),
    {"src/more.js": "export const more = 1;\n"},
)
_JAVA = "package com.dev;\n\npublic class Calc {\n    public static int add(int a, int b) {\n        return a + b;\n    }\n}\n"


def _java_test(package: str, asserts: str) -> str:
    return (
        f"package com.dev;\n\nimport {package}.Test;\nimport static {package}.{asserts}.assertEquals;\n\n"
        "public class CalcTest {\n    @Test\n    public void adds() {\n        assertEquals(3, Calc.add(1, 2));\n    }\n\n"
        "    @Test\n    public void addsNothing() {\n        assertEquals(1, Calc.add(1, 0));\n    }\n}\n"
    )


_CALC_TEST = "src/test/java/com/dev/CalcTest.java"
_JUNIT4, _JUPITER = _java_test("org.junit", "Assert"), _java_test("org.junit.jupiter.api", "Assertions")
_JAVA_FILES = {"src/main/java/com/dev/Calc.java": _JAVA}
_JAVA_FAULTS = {
    "add": {"src/main/java/com/dev/Calc.java": _JAVA.replace("a + b", "a - b")},
    "raises": {"src/main/java/com/dev/Calc.java": _JAVA.replace("a + b", "a / (b - b)")},
    "build": {"src/main/java/com/dev/Calc.java": _JAVA.replace("a + b;", "a + c;")},
}
_JAVA_MORE = {"src/main/java/com/dev/More.java": "package com.dev;\n\npublic class More {}\n"}
_PLUGINS = "".join(
    f"<plugin><groupId>org.apache.maven.plugins</groupId><artifactId>maven-{name}-plugin</artifactId>"
    f"<version>{version}</version></plugin>"
    for name, version in (("resources", "3.3.1"), ("compiler", "3.14.0"), ("surefire", "3.2.5"))
)
_POM = (
    '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion><groupId>com.dev</groupId>'
    "<artifactId>app</artifactId><version>1</version><properties><maven.compiler.source>17</maven.compiler.source>"
    "<maven.compiler.target>17</maven.compiler.target></properties><dependencies><dependency>"
    "<groupId>org.junit.jupiter</groupId><artifactId>junit-jupiter</artifactId><version>5.10.2</version>"
    f"<scope>test</scope></dependency></dependencies><build><plugins>{_PLUGINS}</plugins></build></project>\n"
)
_MAVEN = Tool(
    {"pom.xml": _POM, _CALC_TEST: _JUPITER, **_JAVA_FILES},
    _JAVA_FAULTS,
    _set("mvn -o -B test", "mvn -o -Dstyle.color=always test"),
    _JAVA_MORE,
)
_BUILD_GRADLE = "apply plugin: 'java'\ndependencies { testCompile files('/usr/share/java/junit4.jar', '/usr/share/java/hamcrest-core.jar') }\n"
_GRADLE = Tool(
    {
        "build.gradle": _BUILD_GRADLE,
        "settings.gradle": "rootProject.name = 'app'\n",
        _CALC_TEST: _JUNIT4,
        **_JAVA_FILES,
    },
    _JAVA_FAULTS,
    _set("gradle --offline --no-daemon test", "gradle --offline --no-daemon --continue --parallel test"),
    _JAVA_MORE,
)
_MAKE = "all: app.txt check\n\napp.txt: src.txt\n\tcp src.txt app.txt\n\ncheck:\n\t./check.sh\n"
_MAKE_TOOL = Tool(
    {"Makefile": _MAKE, "src.txt": "a\n", "check.sh": "#!/bin/sh\ntrue\n"},
    {
        "no-rule": {"Makefile": _MAKE.replace("app.txt: src.txt", "app.txt: source.txt")},
        "separator": {"Makefile": _MAKE.replace("\t./check.sh", "    ./check.sh")},
        "recipe": {"check.sh": "#!/bin/sh\necho 'ledger: row 3 is wrong'\nexit 3\n"},
    },
    _set("make", "make -j2", "make -C $PWD"),
)
TOOLS: dict[str, Tool] = {
    "pytest": _PYTEST,
    "unittest": _UNITTEST,
    "jest": _JEST,
    "vitest": _VITEST,
    "node": _NODE,
    "go": _GO_TOOL,
    "cargo": _CARGO,
    "gcc": _GCC,
    "clang": _CLANG,
    "tsc": _TSC,
    "ruff": _RUFF,
    "mypy": _MYPY,
    "eslint": _ESLINT,
    "maven": _MAVEN,
    "gradle": _GRADLE,
    "make": _MAKE_TOOL,
}


def moved(path: str, text: str) -> str:
    """Some lines further down; what must stand first stays there."""
    ending = Path(path).suffix
    if ending in (".json", ".toml", ".ini", ".xml", ".txt", ".mod", ".sh", ".gradle", ".mjs"):
        return text
    comment = "//" if ending in (".js", ".ts", ".go", ".rs", ".c", ".java") else "#"
    return "\n".join([*(f"{comment} moved {number}" for number in range(7)), text])


def run(name: str, tool: Tool, fault: str, variant: Variant) -> str:
    """What the tool printed, as a job's log has it."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / variant.folder
        files = {**tool.files, **(tool.more if variant.moved else {}), **tool.faults[fault]}
        for path, text in files.items():
            place = folder / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(moved(path, text) if variant.moved else text, encoding="utf-8")
            place.chmod(0o755 if path.endswith(".sh") else 0o644)
        modules = os.environ.get("NODE_MODULES", "")
        if modules and name in ("vitest", "jest", "eslint", "tsc"):
            (folder / "node_modules").symlink_to(modules)
        env = {**os.environ, "CI": "true", **variant.env}
        done = subprocess.run(["bash", "-c", variant.command], cwd=folder, env=env, stdout=-1, stderr=-2, check=False)
        text = done.stdout.decode("utf-8", "replace")
        assert done.returncode != 0, f"{name} {fault}: {text}"
        # The temporary folder is the machine's; what is below it is as a forge's runner has it.
        return f"$ {variant.command}\n{re.sub(r'(?:/private)?' + re.escape(temporary), '', text)}"


def main(target: Path, wanted: list[str]) -> None:
    for name, tool in TOOLS.items():
        program = next(iter(tool.variants.values())).command.split()[0]
        if (wanted and name not in wanted) or shutil.which(program) is None:
            continue
        for fault in tool.faults:
            for kind, variant in tool.variants.items():
                log = run(name, tool, fault, variant)
                path = target / name / f"{fault}--{kind}.log"
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(log[-_MOST_BYTES:], encoding="utf-8")
                print(path, len(log))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
