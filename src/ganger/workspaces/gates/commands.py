"""What the verify commands call and name: programs, the folders they run in, and the files that decide the outcome."""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise, takewhile

from ganger.core.verify.commands import CommandFault, parse_command
from ganger.workspaces.rules.line_counts import listed

SHELLS = listed("sh bash dash ash zsh ksh mksh")
PYTHONS = re.compile(r"(python|pypy)[\d.]*w?")
# Programs that run another one: it comes after their options.
WRAPPERS = listed(
    "env nice nohup timeout xargs stdbuf ionice setsid time chronic xvfb-run uv uvx poetry pipenv pdm hatch rye npx"
    " pnpx bunx bundle busybox coverage strace ltrace winpty"
)
SUBCOMMANDS = listed("run exec dlx tool command discover")
# Programs that examine the files they are given: those files are judged, they do not judge.
LINTERS = listed(
    "ruff mypy flake8 pylint black isort pyright pyflakes pycodestyle bandit vulture eslint tsc prettier stylelint"
    " biome jshint standard xo tslint htmlhint markdownlint yamllint shellcheck hadolint codespell rubocop perlcritic"
)
EXAMINERS = LINTERS | listed(
    "test [ grep egrep fgrep rg ls cat head tail wc stat file find touch rm mkdir cp mv sed awk jq sha256sum md5sum"
    " py_compile compileall tabnanny ast doctest gcc g++ cc c++ clang clang++ rustc rustfmt javac kotlinc gofmt go vet"
    " luac"
)
# The argument after one of these is read by the program, whichever it is.
CONFIG_OPTIONS = listed(
    "-c --config --config-file --configfile --rcfile --conf --settings --ini -f --file --makefile --justfile -r"
    " --require --import --setupFiles -p --project --tsconfig --reporter --rulesdir --rule-dir --ignore-path --baseline"
    " --env-file --compare --expected -P --profile --test-reporter --loader --experimental-loader --plugin"
)
SOURCERS = listed(". source")
INTERPRETERS = SHELLS | SOURCERS | listed("node nodejs deno bun tsx ts-node ruby perl php lua Rscript pwsh")
TEST_RUNNERS = listed("pytest py.test unittest nose nose2 doctest jest vitest mocha ava tap jasmine coverage")
MAKES = listed("make gmake")
# Programs that run the scripts of a package.
PACKAGERS = listed("npm yarn pnpm bun npm-run-all run-s run-p concurrently nx turbo lerna rush wireit")
_KNOWN = WRAPPERS | EXAMINERS | SHELLS | INTERPRETERS | TEST_RUNNERS | MAKES | PACKAGERS
# Names that products' own programs usually have; a check may run them, and they are the work.
_PRODUCT = re.compile(r"(?:app|main|cli|server|index|__main__|manage|program)(?:\.(?:py|js|ts|mjs|cjs|sh))?")
_CHECKING = re.compile(
    r"(?:^|[._-])(?:checks?|checker|tests?|testing|testsuite|selftest|verify|verifier|verification|validate|lint|linter"
    r"|gates?|ci|qa|specs?|smoke|run_all|run_tests)(?![a-z])",
    re.IGNORECASE,
)
_SCRIPT_ENDS = (".py", ".sh", ".bash", ".js", ".mjs", ".cjs", ".ts", ".rb", ".pl")
_MODULE = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")
_VALUE = re.compile(r"[A-Za-z_]\w*=.*|[\d.]+[smhd]?", re.DOTALL)
_GLUED = re.compile(r"-[cfrpP][^=\s]+")
_PYTEST_VALUES = listed("-o --override-ini -c -k -m -n -p -W -r --rootdir --ignore --deselect --maxfail --tb")
_DISCOVERY = {"--start-directory": "-s", "--pattern": "-p", "--top-level-directory": "-t"}
_DEEPEST_SHELL = 4
_SEPARATORS = frozenset({"&&", "||", ";", "|", "&", "(", ")", "|&", ";;", "\n"})


@dataclass(frozen=True, slots=True)
class CommandOrders:
    """`named` are paths from the root; they may not exist.

    `run` are those of them that are run; `roots` are folders Python imports from, whatever they hold; `suites` are
    folders and the names of the tests in them; `goals` and `scripts` are arguments of make, npm and similar programs;
    `program_folders` are searched for programs before all others.
    """

    programs: frozenset[str] = frozenset()
    folders: frozenset[str] = frozenset()
    named: frozenset[str] = frozenset()
    run: frozenset[str] = frozenset()
    roots: frozenset[str] = frozenset()
    suites: frozenset[tuple[str, str]] = frozenset()
    goals: frozenset[str] = frozenset()
    scripts: frozenset[str] = frozenset()
    program_folders: frozenset[str] = frozenset()


def read_orders(commands: Iterable[str]) -> CommandOrders:
    """Everything these command lines call and name."""
    return _orders(tuple(commands))


# Cached, because the tasks of a run share their profiles.
@lru_cache(maxsize=256)
def _orders(commands: tuple[str, ...]) -> CommandOrders:
    return merged(
        [CommandOrders(folders=frozenset({""})), *(_step(*step) for text in commands for step in _steps(text, 0))]
    )


def merged(orders: Sequence[CommandOrders]) -> CommandOrders:
    """The union of several results."""
    return CommandOrders(
        frozenset().union(*(one.programs for one in orders)),
        frozenset().union(*(one.folders for one in orders)),
        frozenset().union(*(one.named for one in orders)),
        frozenset().union(*(one.run for one in orders)),
        frozenset().union(*(one.roots for one in orders)),
        frozenset().union(*(one.suites for one in orders)),
        frozenset().union(*(one.goals for one in orders)),
        frozenset().union(*(one.scripts for one in orders)),
        frozenset().union(*(one.program_folders for one in orders)),
    )


def is_known_program(name: str) -> bool:
    """By file name; the list is not complete."""
    return PYTHONS.fullmatch(name) is not None or name in _KNOWN


def is_checking(path: str) -> bool:
    """Whether some part of the path suggests that it checks something."""
    return any(_CHECKING.search(part) for part in path.split("/"))


def _is_product(path: str) -> bool:
    return _PRODUCT.fullmatch(posixpath.basename(path)) is not None and not is_checking(posixpath.dirname(path))


def steps_of(text: str) -> Iterator[tuple[tuple[str, ...], str]]:
    """Argument lists and the folders they run in, also those inside `sh -c`."""
    return _steps(text, 0)


def programs_of(argv: tuple[str, ...]) -> list[str]:
    """The program, those it wraps, and for Python the module."""
    return _programs(argv)[0]


def _steps(text: str, depth: int) -> Iterator[tuple[tuple[str, ...], str]]:
    """Argument lists and the folders they run in; the text of `sh -c` is parsed as well."""
    parsed = parse_command(text, deny=())
    if isinstance(parsed, CommandFault):
        steps = [(argv, ".") for argv in _shell_words(text)]
    else:
        steps = [(step.argv, step.cwd) for step in parsed.steps]
    for argv, cwd in steps:
        yield argv, cwd
        for inner in _carried(argv) if depth < _DEEPEST_SHELL else ():
            yield from ((words, posixpath.join(cwd, place)) for words, place in _steps(inner, depth + 1))


def _shell_words(text: str) -> Iterator[tuple[str, ...]]:
    """The words of a shell line, split where another command starts."""
    lexer = shlex.shlex(text.replace("\n", " ; "), posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    try:
        words = list(lexer)
    except ValueError:
        words = text.split()
    argv: list[str] = []
    for word in (*words, ";"):
        if word not in _SEPARATORS:
            argv.append(word)
        elif argv:
            yield tuple(argv)
            argv = []


def _carried(argv: tuple[str, ...]) -> Iterator[str]:
    for at, word in enumerate(argv[:-1]):
        if posixpath.basename(word) in SHELLS:
            rest = argv[at + 1 :]
            texts = (rest[i + 1] for i, one in enumerate(rest[:-1]) if re.fullmatch(r"-[a-z]*c[a-z]*", one))
            yield from list(texts)[:1]
            return


def _step(argv: tuple[str, ...], cwd: str) -> CommandOrders:
    programs, at = _programs(argv)
    words = argv[at:]
    last = programs[-1] if programs else ""
    examines = last in EXAMINERS
    started = [_normal(cwd, word) for word in _started(argv, at, last)]
    named = {_normal(cwd, word) for word in argv[:at] if "/" in word}
    if not examines or last in LINTERS:
        named |= {_normal(cwd, _file_of(word)) for word in _path_words(words, only_options=examines)}
    if _is_python(last) and words:
        named.add(_normal(cwd, f"{words[0]}/__main__.py"))
    modules = {_normal(cwd, path) for path in _module_files(argv, programs)}
    named |= {*started, *modules} - {""}
    reached = {_normal(cwd, _file_of(word)) for word in words if not word.startswith("-")} | named
    folders = {_normal(cwd, "."), *reached, *(posixpath.dirname(path) for path in reached)}
    if TEST_RUNNERS.isdisjoint(programs) and "--test" not in argv and not _tests_django(words):
        named = {path for path in named if not _is_product(path)}
    return CommandOrders(
        frozenset(programs),
        frozenset(folders),
        frozenset(named - {""}),
        frozenset(named & {*started, *modules} - {""}),
        frozenset({_normal(cwd, "."), *map(posixpath.dirname, started), *_import_roots(argv, programs, cwd)}),
        frozenset(_suites(argv, programs, cwd)),
        frozenset(word for word in words if word[:1] != "-" and "=" not in word) if last in MAKES else frozenset(),
        frozenset(word for word in words if word[:1] != "-") if last in PACKAGERS else frozenset(),
        frozenset(_in_front(argv, cwd)),
    )


def _tests_django(words: tuple[str, ...]) -> bool:
    return len(words) > 1 and posixpath.basename(words[0]) == "manage.py" and words[1] == "test"


def _started(argv: tuple[str, ...], at: int, program: str) -> Iterator[str]:
    """The script that is run; after an option also the next word, which may be the option's value."""
    called = argv[at - 1] if 0 < at <= len(argv) else ""
    if program and ("/" in called or called.endswith(_SCRIPT_ENDS)) and posixpath.basename(called) == program:
        yield called
    if not _is_python(program) and program not in INTERPRETERS:
        return
    before = argv[at - 1] if at else ""
    for word in argv[at:]:
        if word[:1] != "-" and word not in SUBCOMMANDS:
            yield word
            if before[:1] != "-":
                return
        before = word


def _import_roots(argv: tuple[str, ...], programs: list[str], cwd: str) -> Iterator[str]:
    for word in argv:
        if word.startswith("PYTHONPATH="):
            yield from (_normal(cwd, folder) for folder in word.partition("=")[2].split(":"))
    if "unittest" in programs and "discover" in argv:
        start, _, top = _discovered(argv)
        yield _normal(cwd, top or start)


def _in_front(argv: tuple[str, ...], cwd: str) -> Iterator[str]:
    """Folders that `PATH=tools:…` puts before those of the machine."""
    for word in argv:
        if word.startswith("PATH="):
            words = re.sub(r"\$(?:PWD|\{PWD\})(?=[/:]|$)", ".", word[5:]).split(":")
            folders = takewhile(lambda one: one[:1] not in ("/", "$", "~"), words)
            yield from (_normal(cwd, folder) for folder in folders)


def _suites(argv: tuple[str, ...], programs: list[str], cwd: str) -> Iterator[tuple[str, str]]:
    """Folders and the name patterns collected in them, where a command gives them."""
    if "unittest" in programs and "discover" in argv:
        start, pattern, _ = _discovered(argv)
        yield _normal(cwd, start), pattern
    if programs and programs[-1] in ("pytest", "py.test"):
        words = argv[argv.index(next(word for word in argv if word.endswith(programs[-1]))) + 1 :]
        globs = [glob for word in words for glob in word.partition("python_files=")[2].split()]
        folders = [
            _normal(cwd, _file_of(word))
            for before, word in zip(("", *words), words, strict=False)
            if word[:1] != "-" and before not in _PYTEST_VALUES
        ]
        yield from ((folder, glob) for folder in folders or [_normal(cwd, ".")] for glob in globs)


def _discovered(argv: tuple[str, ...]) -> tuple[str, str, str]:
    """Unittest's start folder, name pattern and top folder."""
    given = {"-s": "", "-p": "", "-t": ""}
    words = list(argv[argv.index("discover") + 1 :]) if "discover" in argv else []
    plain: list[str] = []
    while words:
        word, equals, value = words.pop(0).partition("=")
        option = _DISCOVERY.get(word, word)
        if option in given:
            given[option] = value if equals or not words else words.pop(0)
        elif option[:2] in given and option[:2] != "--":
            given[option[:2]] = option[2:]
        elif not word.startswith("-"):
            plain.append(word)
    for option, word in zip(("-s", "-p", "-t"), plain, strict=False):
        given[option] = given[option] or word
    return given["-s"] or ".", given["-p"] or "test*.py", given["-t"]


def _is_python(program: str) -> bool:
    return PYTHONS.fullmatch(program) is not None


def _programs(argv: tuple[str, ...]) -> tuple[list[str], int]:
    """The program, those it wraps, for Python the module; and the index of the last one's arguments."""
    programs: list[str] = []
    at = 0
    while at < len(argv):
        word = argv[at]
        at += 1
        if word == "-m" and at < len(argv):
            programs.append(argv[at].split(".")[0])
            at += 1
        elif word.startswith("-") or _VALUE.fullmatch(word):
            continue
        elif programs and _is_python(programs[-1]):
            return programs, at - 1
        else:
            programs.append(posixpath.basename(word))
        if not _is_python(programs[-1]) and programs[-1] not in (WRAPPERS if "/" in word else WRAPPERS | SUBCOMMANDS):
            return [name for name in programs[:-1] if name not in SUBCOMMANDS] + programs[-1:], at
    return [name for name in programs if name not in SUBCOMMANDS], at


def _path_words(words: tuple[str, ...], *, only_options: bool) -> Iterator[str]:
    """Words that may be paths; for a program that examines files, only its option values."""
    for before, word in zip(("", *words), words, strict=False):
        option, equals, value = word.partition("=")
        if word.startswith("-"):
            if equals and (not only_options or option in CONFIG_OPTIONS):
                yield value
            elif _GLUED.fullmatch(word):
                yield word[2:]
        elif before in CONFIG_OPTIONS or not only_options:
            yield word


def _file_of(word: str) -> str:
    """`tests/test_x.py::test_one` and `@arguments.txt` mean a file."""
    return word.partition("::")[0].removeprefix("@")


def _module_files(argv: tuple[str, ...], programs: list[str]) -> Iterator[str]:
    """Files of modules a Python command names: after -m and -p, and what unittest and doctest are given."""
    loads_operands = not {"unittest", "doctest", "pydoc"}.isdisjoint(programs)
    for before, word in pairwise(argv):
        is_check = before == "-p" or (before == "-m" and is_checking(word.replace(".", "/")))
        if _MODULE.fullmatch(word) and word not in SUBCOMMANDS and (is_check or loads_operands):
            yield from (word.replace(".", "/") + end for end in (".py", "/__main__.py"))


def _normal(cwd: str, word: str) -> str:
    """A plain path from the root; empty for the root itself and for paths outside."""
    if not word or word.startswith(("/", "~")) or "\0" in word or len(word) > 1000:
        return ""
    path = posixpath.normpath(posixpath.join(cwd, word))
    return "" if path == "." or path.startswith("..") else path
