"""The table of gate files: tests, the configuration of what judges a change, and which parts of a file belong to it."""

from __future__ import annotations

import configparser
import json
import re
import sys
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase

from ganger.workspaces.gates.packages import replaced_package
from ganger.workspaces.rules.line_counts import added_lines, changed_lines, listed

_UNREADABLE = "cannot be read before or after the change"


def toml_tables(*tables: str) -> Callable[[bytes, bytes], str | None]:
    """Says which of these dotted tables differ."""

    def look(before: bytes, after: bytes) -> str | None:
        try:
            old, new = (tomllib.loads(content.decode("utf-8-sig")) for content in (before, after))
        except (ValueError, RecursionError):
            return _UNREADABLE
        return _first_difference(tables, old, new)

    return look


def json_keys(*keys: str) -> Callable[[bytes, bytes], str | None]:
    """Says which of these top-level keys differ, or which test program was replaced by another package."""

    def look(before: bytes, after: bytes) -> str | None:
        try:
            old, new = (json.loads(content.decode("utf-8-sig") or "{}") for content in (before, after))
        except (ValueError, RecursionError):
            return _UNREADABLE
        if not isinstance(old, dict) or not isinstance(new, dict):
            return _UNREADABLE
        return _first_difference(keys, old, new) or replaced_package(old, new)

    return look


def _first_difference(names: tuple[str, ...], old: Mapping[str, object], new: Mapping[str, object]) -> str | None:
    return next((f"changes {name}" for name in names if _at(old, name) != _at(new, name)), None)


def _at(tree: object, dotted: str) -> object:
    for name in dotted.split("."):
        if isinstance(tree, list):
            tree = [one.get(name) for one in tree if isinstance(one, dict)]
        else:
            tree = tree.get(name) if isinstance(tree, dict) else None
    return repr(tree)


def ini_sections(*globs: str) -> Callable[[bytes, bytes], str | None]:
    """Says which section under these names differs. Parsers disagree on details, so a changed header counts as well."""
    words = re.compile("|".join(re.escape(glob.split("*")[0].rstrip(":")) for glob in globs).encode())

    def look(before: bytes, after: bytes) -> str | None:
        try:
            old, new = _sections(before), _sections(after)
        except (ValueError, RecursionError, configparser.Error):
            return _UNREADABLE
        for name in sorted({*old, *new}):
            if any(fnmatchcase(name.lower(), glob) for glob in globs) and old.get(name) != new.get(name):
                return f"changes [{name}]"
        headers = (line for line in changed_lines(before, after) if b"[" in line and words.search(line.lower()))
        return next((f"changes {header.strip().decode(errors='replace')[:60]}" for header in headers), None)

    return look


def _sections(content: bytes) -> dict[str, list[tuple[str, str | None]]]:
    parser = configparser.RawConfigParser(allow_no_value=True)
    parser.read_string(content.decode("utf-8-sig"))
    return {name: list(parser.items(name)) for name in parser.sections()}


def lines_with(either: str, *, removed: str = "") -> Callable[[bytes, bytes], str | None]:
    """Says that a line with such a word was added or removed; lines with a word of `removed` may be added."""
    touchy = re.compile(either.encode())
    kept = re.compile((removed or r"(?!)").encode())

    def look(before: bytes, after: bytes) -> str | None:
        for line in changed_lines(before, after):
            if touchy.search(line):
                return "changes a line about " + _shown(touchy, line)
        for _, line in added_lines(after, before):
            if kept.search(line):
                return "removes a line about " + _shown(kept, line)
        return None

    return look


def _shown(pattern: re.Pattern[bytes], line: bytes) -> str:
    match = pattern.search(line)
    return repr(match.group().strip().decode(errors="replace")[:40]) if match else ""


Look = Callable[[bytes, bytes], str | None]

# Tests in the base, spelt exactly: an existing test cannot hide behind another spelling of its name.
TEST_FILES = (
    *("test_*.py", "*_test.py", "test.py", "tests.py"),
    *(f"*.{kind}.{end}" for kind in ("test", "spec", "cy", "e2e") for end in ("js", "jsx", "ts", "tsx", "mjs", "cjs")),
    *("*.test.mts", "*.spec.mts", "*.test.cts", "*.spec.cts", "*.test.vue", "*.snap", "*-test.js", "*_test.ts"),
    *("*_test.go", "*_test.rs", "*_test.exs", "*_test.dart", "*_test.rb", "*_spec.rb", "test_*.rb", "*_spec.lua"),
    *("*Test.java", "*Tests.java", "*TestCase.java", "*IT.java", "Test*.java", "*Test.kt", "*Tests.kt", "*Spec.kt"),
    *("*Test.groovy", "*Spec.groovy", "*Test.scala", "*Spec.scala", "*Suite.scala", "*Test.php", "*Test.cs"),
    *("*Tests.cs", "*Tests.swift", "*Test.swift", "*Tests.fs", "*Spec.hs", "*_test.clj", "*.t", "test-*.R"),
    *("*_test.c", "*_test.cc", "*_test.cpp", "test_*.c", "test_*.cc", "test_*.cpp", "*_unittest.cc", "*_test.zig"),
    *("*.bats", "*_test.sh", "test_*.sh", "*.feature", "*.robot"),
)
TEST_FOLDERS = listed(
    "test tests __tests__ __mocks__ __snapshots__ testdata test-data test_data golden goldens e2e integration_tests"
    " cypress"
)
# Expected output at the root; deeper down these names also mean data of the product.
EXPECTED_FOLDERS = listed("fixtures snapshots golden goldens expected testdata")
EXPECTED_NAME = re.compile(r"(?:.*[._-])?(?:expected|golden|snapshot)(?:[._-].*)?", re.DOTALL)
SOURCE_ENDS = (
    *(".py", ".pyi", ".js", ".jsx", ".ts", ".tsx", ".mjs", ".cjs", ".mts", ".cts", ".vue", ".svelte", ".go", ".rs"),
    *(".java", ".kt", ".kts", ".scala", ".groovy", ".rb", ".php", ".cs", ".fs", ".swift", ".c", ".cc", ".cpp", ".cxx"),
    *(".h", ".hh", ".hpp", ".m", ".ex", ".exs", ".erl", ".hs", ".clj", ".lua", ".pl", ".pm", ".r", ".jl", ".dart"),
    *(".zig", ".nim", ".sh", ".bash", ".zsh", ".ps1", ".bat", ".sql", ".css", ".scss"),
)
# A document about expectations is not expected output, unless this is its whole name.
DOCUMENT = re.compile(
    r"(?:.*[._-])?(?:expected|golden|snapshot)\.(?:md|rst|adoc)|(?!.*\.(?:md|rst|adoc)$).*", re.DOTALL
)
# Folders with this name also hold documents, so only code in them counts.
SPEC_FOLDERS = frozenset({"spec", "specs"})
SPEC_ENDS = (".rb", ".js", ".jsx", ".ts", ".tsx", ".mjs", ".cjs", ".py", ".lua", ".exs", ".php", ".coffee", ".hs")

_NODE = "npm npx yarn pnpm bun bunx node nodejs deno jest vitest mocha ava tap karma cypress playwright tsc eslint"


@dataclass(frozen=True, slots=True)
class GateFile:
    """Names (globs, folded; a slash reaches into the folders above), what they are, and when they count.

    `runs`: only where a verify command runs one of these programs. `look`: only where it finds
    a change inside.
    `only_new`: an existing one may be edited; a new one changes what a check reads.
    """

    names: str
    what: str
    runs: str = ""
    look: Look | None = None
    only_new: bool = False


CONFIGURATION = "configures what tests the change"
LINTING = "configures a linter or type checker"
RECIPE = "says what a verify command does"
BUILT = "looks like output of the build that a check runs"
LOADED = "is loaded by the interpreter before any test"
TOOLS = "picks the programs the checks run with"

_PYPROJECT = toml_tables(
    *("tool.pytest", "tool.coverage", "tool.tox", "tool.nox", "tool.hatch.envs", "tool.poe", "tool.pdm.scripts"),
    *("tool.taskipy", "tool.ruff", "tool.mypy", "tool.flake8", "tool.pylint", "tool.pyright", "tool.basedpyright"),
    *("tool.bandit", "tool.black", "tool.isort", "tool.django-stubs", "tool.ty", "tool.pyrefly", "tool.mutmut"),
    *("project.entry-points.pytest11", "tool.poetry.plugins.pytest11", "build-system.backend-path"),
)
_SETUP_CFG = ini_sections(
    *("tool:pytest", "pytest", "coverage:*", "tox:*", "flake8*", "mypy*", "pylint*", "pycodestyle", "isort", "aliases"),
    *("bandit", "testenv*", "options.entry_points", "nosetests", "unittest"),
)
_PACKAGE = json_keys(
    *("jest", "mocha", "ava", "nyc", "c8", "tap", "vitest", "eslintConfig", "eslintIgnore", "babel"),
    *("prettier", "xo", "standard", "stylelint", "wireit", "cypress"),
)
_CARGO = toml_tables(
    *("profile", "test", "bench", "lib.test", "lib.doctest", "lib.harness", "patch", "replace", "lints"),
    *("workspace.lints", "package.build", "package.autotests", "package.rust-version"),
)

GATE_FILES: tuple[GateFile, ...] = (
    # Python
    GateFile("conftest.py pytest.ini .pytest.ini pytest.toml .pytest.toml tox.ini tox.toml noxfile.py", CONFIGURATION),
    GateFile(".coveragerc unittest.cfg nose.cfg .noserc .stestr.conf .testr.conf hatch.toml", CONFIGURATION),
    GateFile("pyproject.toml", CONFIGURATION, look=_PYPROJECT),
    GateFile("setup.cfg", CONFIGURATION, look=_SETUP_CFG),
    GateFile("sitecustomize.py usercustomize.py *.pth *._pth pyvenv.cfg", LOADED),
    GateFile("*.egg-info/* *.dist-info/* *.egg-link", LOADED),
    GateFile(
        "ruff.toml .ruff.toml mypy.ini .mypy.ini .flake8 .pylintrc pylintrc pylintrc.toml .pylintrc.toml", LINTING
    ),
    GateFile("pyrightconfig.json .bandit .isort.cfg .pycodestyle ty.toml pyrefly.toml", LINTING),
    # JavaScript and TypeScript
    GateFile("jest.config.* jest.setup.* jest.preset.* jest-*.json vitest.config.* vitest.setup.*", CONFIGURATION),
    GateFile("vitest.workspace.* .mocharc .mocharc.* mocha.opts karma.conf.* ava.config.* wdio.conf.*", CONFIGURATION),
    GateFile(
        "playwright.config.* playwright-ct.config.* cypress.config.* cypress.json cypress.env.json", CONFIGURATION
    ),
    GateFile(".nycrc .nycrc.* nyc.config.* .c8rc .c8rc.* .taprc bunfig.toml", CONFIGURATION),
    GateFile("package.json", CONFIGURATION, look=_PACKAGE),
    GateFile("deno.json deno.jsonc", CONFIGURATION, look=json_keys("tasks", "test", "lint", "importMap", "imports")),
    GateFile("vite.config.*", CONFIGURATION, look=lines_with(r"\btest\b|vitest|setupFiles|exclude")),
    GateFile("vite.config.*", CONFIGURATION, runs="vitest", only_new=True),
    GateFile("setuptests.js setuptests.jsx setuptests.ts setuptests.tsx", CONFIGURATION, runs="react-scripts"),
    GateFile(
        ".testcaferc.* nightwatch.conf.* protractor.conf.* web-test-runner.config.* codecept.conf.*", CONFIGURATION
    ),
    GateFile("support/jasmine.json support/jasmine.mjs", CONFIGURATION),
    GateFile("babel.config.* .babelrc .babelrc.* .swcrc", CONFIGURATION, runs=_NODE),
    GateFile(".eslintrc .eslintrc.* eslint.config.* .eslintignore tsconfig*.json jsconfig.json", LINTING),
    GateFile("biome.json biome.jsonc .prettierrc .prettierrc.* prettier.config.* .prettierignore", LINTING),
    GateFile(".stylelintrc .stylelintrc.* stylelint.config.* tslint.json .oxlintrc.json", LINTING),
    GateFile(".npmrc .yarnrc .yarnrc.yml .yarn/* .pnp.cjs .pnp.js .pnp.loader.mjs .pnpmfile.cjs", TOOLS),
    GateFile("nx.json turbo.json", RECIPE, runs=f"{_NODE} nx turbo"),
    GateFile("gulpfile.* gruntfile.*", RECIPE, runs="gulp grunt npm npx yarn pnpm"),
    # Go, Rust
    GateFile("go.work", TOOLS),
    GateFile("go.mod", TOOLS, look=lines_with(r"^\s*replace\b|=>|^\s*toolchain\b")),
    GateFile("vendor/modules.txt", TOOLS, runs="go make", only_new=True),
    GateFile(".golangci.*", LINTING),
    GateFile("cargo.toml", CONFIGURATION, look=_CARGO),
    GateFile(".cargo/config .cargo/config.toml rust-toolchain rust-toolchain.toml", TOOLS),
    GateFile(".config/nextest.toml", CONFIGURATION),
    GateFile("build.rs", LOADED, runs="cargo make just"),
    GateFile("clippy.toml .clippy.toml rustfmt.toml .rustfmt.toml deny.toml", LINTING),
    # The JVM, .NET, C and C++
    GateFile(
        "pom.xml", CONFIGURATION, look=lines_with(r"surefire|failsafe|skip|exclude|testFailureIgnore|jacoco|exec")
    ),
    GateFile(".mvn/*", CONFIGURATION),
    GateFile(
        "*.gradle *.gradle.kts",
        CONFIGURATION,
        look=lines_with(r"\b(test|check|useJUnit\w*|exclude|onlyIf|enabled|finalizedBy)\b|ignoreFailures|jacoco"),
    ),
    GateFile("gradle/wrapper/* gradle.properties junit-platform.properties testng.xml", CONFIGURATION),
    GateFile("settings.gradle settings.gradle.kts buildsrc/*", CONFIGURATION, runs="gradle gradlew", only_new=True),
    GateFile("meta-inf/services/org.junit.* meta-inf/services/org.testng.*", CONFIGURATION),
    GateFile(".sbtopts .jvmopts project/*.sbt project/build.properties", CONFIGURATION, runs="sbt", only_new=True),
    GateFile("profiles.clj rebar.config.script", CONFIGURATION, runs="lein rebar3"),
    GateFile("cabal.project.local stack.yaml .ghci", TOOLS, runs="cabal stack ghci runghc", only_new=True),
    GateFile(
        "global.json nuget.config directory.packages.props .config/dotnet-tools.json",
        TOOLS,
        runs="dotnet",
        only_new=True,
    ),
    GateFile("dart_test.yaml pubspec_overrides.yaml", CONFIGURATION, runs="dart flutter"),
    GateFile(".rprofile .renviron", LOADED, runs="R Rscript"),
    GateFile("build.sbt", CONFIGURATION, look=lines_with(r"(?i)\btest")),
    GateFile("*.runsettings xunit.runner.json directory.build.props directory.build.targets", CONFIGURATION),
    GateFile("ctestcustom.cmake ctestconfig.cmake cmakepresets.json cmakeuserpresets.json", CONFIGURATION),
    GateFile(
        "cmakelists.txt",
        CONFIGURATION,
        look=lines_with(
            r"WILL_FAIL|DISABLED|PASS_REGULAR|SKIP_R", removed=r"add_test|enable_testing|discover_tests|CTest"
        ),
    ),
    GateFile("cmakecache.txt ctesttestfile.cmake dartconfiguration.tcl", BUILT, runs="cmake ctest make ninja"),
    GateFile("build.ninja .ninja_log .ninja_deps meson-private/*", BUILT, runs="ninja meson cmake ctest make"),
    GateFile("meson.build", CONFIGURATION, look=lines_with(r"should_fail", removed=r"\btest\s*\(")),
    # PHP, Ruby, Elixir
    GateFile("phpunit.xml phpunit.xml.dist phpunit.dist.xml pest.php codeception.yml", CONFIGURATION),
    GateFile("composer.json", CONFIGURATION, look=json_keys("scripts", "autoload-dev")),
    GateFile("phpstan.neon phpstan.neon.dist phpstan-baseline.neon psalm.xml phpcs.xml .php-cs-fixer.*", LINTING),
    GateFile(".rspec .rspec-local .simplecov spec_helper.rb rails_helper.rb test_helper.rb", CONFIGURATION),
    GateFile(".bundle/config", TOOLS),
    GateFile("gems.rb gems.locked", TOOLS, runs="bundle rake rspec", only_new=True),
    GateFile("minitest/*_plugin.rb", CONFIGURATION),
    GateFile(".proverc .busted", CONFIGURATION, runs="prove busted"),
    GateFile("behave.ini .behaverc", CONFIGURATION, runs="behave"),
    GateFile(".rubocop.yml .rubocop_todo.yml .standard.yml", LINTING),
    GateFile("mix.exs", CONFIGURATION, look=lines_with(r"\b(test|aliases|elixirc_paths|test_coverage)\b")),
    GateFile("test_helper.exs .formatter.exs .credo.exs", CONFIGURATION),
    # Recipe files of the programs that verify commands call
    GateFile("makefile gnumakefile *.mk *.mak", RECIPE, runs="make gmake"),
    GateFile("justfile .justfile", RECIPE, runs="just"),
    GateFile("taskfile.yml taskfile.yaml taskfile.dist.yml taskfile.dist.yaml", RECIPE, runs="task"),
    GateFile("rakefile *.rake", RECIPE, runs="rake bundle"),
    GateFile("tasks.py invoke.*", RECIPE, runs="invoke inv"),
    GateFile("dodo.py", RECIPE, runs="doit"),
    GateFile("sconstruct sconscript", RECIPE, runs="scons"),
    GateFile("build.xml", RECIPE, runs="ant"),
    GateFile("magefile.go", RECIPE, runs="mage"),
    GateFile("earthfile", RECIPE, runs="earthly"),
    GateFile("dune-workspace", RECIPE, runs="dune"),
    GateFile("*.bazelrc .bazelversion .bazelignore", RECIPE, runs="bazel bazelisk"),
    GateFile("dockerfile* *.dockerfile docker-compose*.y*ml compose*.y*ml .dockerignore", RECIPE, runs="docker podman"),
    GateFile("sonar-project.properties codecov.yml .codecov.yml", CONFIGURATION),
    GateFile(".shellcheckrc .yamllint* .markdownlint* .hadolint.* .spectral.*", LINTING),
    GateFile(".python-version .ruby-version .node-version .nvmrc .tool-versions mise.toml .mise.toml", TOOLS),
    GateFile("mise.local.toml .mise.local.toml mise/config.toml .mise/config.toml .rtx.toml .asdfrc", TOOLS),
    GateFile("uv.toml poetry.toml pdm.toml .pdm.toml", TOOLS, runs="uv uvx poetry pdm"),
)

# Modules that would be imported in place of the real ones if they lay beside the tests.
RUNNER_MODULES = listed(
    "pytest _pytest py pluggy iniconfig packaging exceptiongroup coverage xdist execnet pytest_cov pytest_asyncio"
    " pytest_timeout pytest_mock hypothesis nose nose2 testtools mock tox nox attr attrs pygments colorama ruff mypy"
    " flake8 pylint pyflakes pycodestyle bandit black isort setuptools pkg_resources pip django doctest twisted"
)
SHADOWABLE = (sys.stdlib_module_names | RUNNER_MODULES) - {"test", "__main__", "this", "antigravity", "idlelib"}
MODULE_ENDS = (".py", ".pyc", ".pyd", ".so")
# Where a test run looks for modules, besides the folders in the commands.
MODULE_FOLDERS = frozenset({"", "src", "lib", "test", "tests"})
PROGRAM_FOLDERS = frozenset({"", "bin", ".bin", "sbin", "scripts", "tools"})
INSTALLED = (
    ("node_modules", "is an installed package the checks run with"),
    ("site-packages", "is an installed package the checks run with"),
    ("vendor/bin", "is an installed program the checks run with"),
    ("venv/bin", "is a program of a virtual environment the checks run in"),
    (".venv", "is part of a virtual environment the checks run in"),
)
