"""What the verify commands call and name: programs, the folders they run in, and the files that decide the outcome."""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise

from ganger.core.commands import CommandFault, parse_command
from ganger.workspaces.lines import listed

SHELLS = listed("sh bash dash ash zsh ksh mksh")
PYTHONS = re.compile(r"(python|pypy)[\d.]*w?")
# Programs that run another one: it comes after their options.
WRAPPERS = listed(
    "env nice nohup timeout xargs stdbuf ionice setsid time chronic xvfb-run uv uvx poetry pipenv pdm hatch rye npx"
    " pnpx bunx bundle busybox coverage strace ltrace winpty"
)
SUBCOMMANDS = listed("run exec dlx tool command discover")
# Programs that look at the files they are given; these are what is judged, not what judges.
LINTERS = listed(
    "ruff mypy flake8 pylint black isort pyright pyflakes pycodestyle bandit vulture eslint tsc prettier stylelint"
    " biome jshint standard xo tslint htmlhint markdownlint yamllint shellcheck hadolint codespell rubocop perlcritic"
)
EXAMINERS = LINTERS | listed(
    "test [ grep egrep fgrep rg ls cat head tail wc stat file find touch rm mkdir cp mv sed awk jq sha256sum md5sum"
    " py_compile compileall tabnanny ast doctest gcc g++ cc c++ clang clang++ rustc rustfmt javac kotlinc gofmt go vet"
    " luac"
)
# What follows one of these is read by the program, whoever it is.
CONFIG_OPTIONS = listed(
    "-c --config --config-file --configfile --rcfile --conf --settings --ini -f --file --makefile --justfile -r"
    " --require --import --setupFiles -p --project --tsconfig --reporter --rulesdir --rule-dir --ignore-path --baseline"
    " --env-file --compare --expected -P --profile --test-reporter --loader --experimental-loader --plugin"
)
_MODULE = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")
_VALUE = re.compile(r"[A-Za-z_]\w*=.*|[\d.]+[smhd]?", re.DOTALL)
_GLUED = re.compile(r"-[cfrpP][^=\s]+")
_DEEPEST_SHELL = 4
_SEPARATORS = frozenset({"&&", "||", ";", "|", "&", "(", ")", "|&", ";;", "\n"})


@dataclass(frozen=True, slots=True)
class Orders:
    """`named` are paths from the root; whether they exist is for the caller to know."""

    programs: frozenset[str]
    folders: frozenset[str]
    named: frozenset[str]


def read_orders(commands: Iterable[str]) -> Orders:
    """What these command lines call and name."""
    gathered = [_step(argv, cwd) for text in commands for argv, cwd in _steps(text, depth=0)]
    return Orders(
        frozenset(name for step in gathered for name in step.programs),
        frozenset({"", *(folder for step in gathered for folder in step.folders)}),
        frozenset(path for step in gathered for path in step.named),
    )


def _steps(text: str, *, depth: int) -> Iterator[tuple[tuple[str, ...], str]]:
    """Argument lists and where they run; the text of `sh -c` is opened as well."""
    parsed = parse_command(text, deny=())
    if isinstance(parsed, CommandFault):
        steps = [(argv, ".") for argv in _shell_words(text)]
    else:
        steps = [(step.argv, step.cwd) for step in parsed.steps]
    for argv, cwd in steps:
        yield argv, cwd
        for inner in _carried(argv) if depth < _DEEPEST_SHELL else ():
            yield from ((words, posixpath.join(cwd, place)) for words, place in _steps(inner, depth=depth + 1))


def _shell_words(text: str) -> Iterator[tuple[str, ...]]:
    """Words of a line only a shell can run, split where another command begins."""
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


def _step(argv: tuple[str, ...], cwd: str) -> Orders:
    programs, at = _programs(argv)
    words = argv[at:]
    examines = bool(programs) and programs[-1] in EXAMINERS
    named = {_normal(cwd, word) for word in argv[:at] if "/" in word}
    if not examines or programs[-1] in LINTERS:
        named |= {_normal(cwd, _file_of(word)) for word in _path_words(words, only_options=examines)}
    if programs and _is_python(programs[-1]) and words:
        named.add(_normal(cwd, f"{words[0]}/__main__.py"))
    named |= {_normal(cwd, path) for path in _module_files(argv, programs)}
    reached = {_normal(cwd, _file_of(word)) for word in words if not word.startswith("-")} | named
    folders = {_normal(cwd, "."), *reached, *(posixpath.dirname(path) for path in reached)}
    return Orders(frozenset(programs), frozenset(folders), frozenset(named - {""}))


def _is_python(program: str) -> bool:
    return PYTHONS.fullmatch(program) is not None


def _programs(argv: tuple[str, ...]) -> tuple[list[str], int]:
    """The program, those it is a wrapper of, for Python the module; and where the arguments of the last one begin."""
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
        if not _is_python(programs[-1]) and programs[-1] not in WRAPPERS | SUBCOMMANDS:
            break
    return [name for name in programs if name not in SUBCOMMANDS], at


def _path_words(words: tuple[str, ...], *, only_options: bool) -> Iterator[str]:
    """Words that may be paths; of a program that examines files only the values of its options are."""
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
        if _MODULE.fullmatch(word) and word not in SUBCOMMANDS and (before in ("-m", "-p") or loads_operands):
            yield from (word.replace(".", "/") + end for end in (".py", "/__main__.py"))


def _normal(cwd: str, word: str) -> str:
    """From the root, in plain form; empty for the root itself and for what is outside."""
    if not word or word.startswith(("/", "~")) or "\0" in word or len(word) > 1000:
        return ""
    path = posixpath.normpath(posixpath.join(cwd, word))
    return "" if path == "." or path.startswith("..") else path
