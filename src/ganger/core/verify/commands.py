"""Commands without a shell: the text of a verify step becomes programs to spawn, or a fault with its place.

Words are parsed as a POSIX shell parses them: single quotes, double quotes, backslashes. Nothing is ever expanded:
inside quotes `$HOME`, `$(x)` and `|` are plain text, and globs, `~` and braces are plain text everywhere.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

COMMAND_CODES: dict[str, tuple[str, str, str]] = {
    "COMMAND_SHELL_OPERATOR": (
        "Shell operator in a command",
        "Commands are spawned, never given to a shell: | ; < > & ( ) # ` and $( mean nothing outside quotes.",
        "Put the line into a script file and run that, join commands with &&, or quote the text.",
    ),
    "COMMAND_BUILTIN": (
        "Shell builtin or keyword as a program",
        "The first word exists only inside a shell (source, export, if, ...), so there is no program to spawn.",
        "Call the program itself; give variables with: env NAME=value program.",
    ),
    "COMMAND_EMPTY": (
        "Nothing to run",
        "The command, or one side of an &&, is empty, or nothing follows a cd.",
        "Write a program with its arguments on each side of every &&.",
    ),
    "COMMAND_QUOTE": (
        "Quote or escape without an end",
        "A quote is opened and never closed, or the text ends in a backslash.",
        "Close the quote, or write the character inside the other kind of quotes.",
    ),
    "COMMAND_DENIED": (
        "Command on the deny list",
        "The program, or one it would start, is on the deny list. It guards against mistakes; it is not a sandbox.",
        "Use another command, or take the entry off the deny list if the command is intended.",
    ),
    "COMMAND_BAD_DIRECTORY": (
        "Directory of a cd refused",
        "cd takes one relative directory inside the workspace.",
        "Write: cd some/folder && program.",
    ),
    "COMMAND_BAD_CHARACTER": (
        "Character that is not allowed in commands",
        "Control characters and broken Unicode are refused; newlines and tabs are allowed inside quotes.",
        "Remove the character; a stray carriage return usually comes from a file with Windows line ends.",
    ),
    "COMMAND_VARIABLE": (
        "Variable outside quotes",
        "Variables are not expanded, so the program would get the name instead of the value.",
        "Write the value itself, or put the name in single quotes if you mean the text itself.",
    ),
    "COMMAND_ASSIGNMENT": (
        "Assignment before a program",
        "NAME=value in front of a program is shell syntax.",
        "Write: env NAME=value program.",
    ),
}

DEFAULT_DENY: tuple[str, ...] = (
    *("sudo", "su", "doas", "pkexec", "shutdown", "reboot", "halt", "poweroff", "mkfs", "mkfs.*", "fdisk"),
    *("rm -rf /", "rm -Rf /", "rm -rf /*", "rm -rf ~"),
    *("git push", "npm publish", "twine upload", "cargo publish"),
)


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_BUILTINS = _words(
    "source . : export alias unalias unset set eval exec ulimit umask readonly declare typeset local shift trap return"
    " exit break continue wait jobs fg bg read getopts hash type command builtin history pushd popd dirs let shopt"
    " enable bind complete compgen compopt disown suspend times logout mapfile readarray caller"
    " if then else elif fi for while until do done case esac select function coproc ! { } [[ ]]"
)
_SHELLS = _words("sh bash dash ash zsh ksh mksh")
_WRAPPERS = _words(
    "env nice nohup timeout xargs stdbuf ionice setsid time"
    " exec command builtin eval ! { if then else elif while until do"
)
_VALUED_OPTIONS: Mapping[str, frozenset[str]] = {
    "git": _words("-C -c --git-dir --work-tree --namespace --config-env"),
    "env": _words("-u --unset -C --chdir"),
    "nice": _words("-n --adjustment"),
    "timeout": _words("-s --signal -k --kill-after"),
    "xargs": _words("-I -n -P -L -d -a -E -s --max-args --max-procs --max-lines --delimiter --arg-file"),
    "stdbuf": _words("-i -o -e --input --output --error"),
    "ionice": _words("-c -n --class --classdata"),
    "time": _words("-o -f --output --format"),
    "exec": _words("-a"),
    **dict.fromkeys(_SHELLS, _words("-o +o -O +O --rcfile --init-file")),
}
_MAX_WRAPPERS = 8
_MAX_SHELL_DEPTH = 4
_MAX_DIRECTORY = 1000

_TOKEN = re.compile(
    r"""
      (?P<space>[ \t]++)
    | (?P<plain>[^ \t\n'"\\$`|;<>&()#]++)
    | '(?P<single>[^']*+)'
    | '(?P<open_single>.*+)
    | "(?P<double>[^"\\]*+(?:\\.[^"\\]*+)*+)"
    | "(?P<open_double>.*+)
    | \\(?P<broken_line>\n)
    | \\(?P<escaped>.)
    | (?P<open_escape>\\)
    | (?P<join>&&)
    | (?P<operator>\$\(|\|\||\|&|;;|<<|>>|[|;<>&()`\n])
    | (?P<variable>\$(?=[A-Za-z0-9_{?$@*\#!-]))
    | (?P<dialect>\$(?=['"]))
    | (?P<dollar>\$)
    | (?P<hash>\#)
    """,
    re.DOTALL | re.VERBOSE,
)
_REFUSED_TOKENS: Mapping[str, tuple[str, str]] = {
    "open_single": ("COMMAND_QUOTE", "the single quote is never closed"),
    "open_double": ("COMMAND_QUOTE", "the double quote is never closed"),
    "open_escape": ("COMMAND_QUOTE", "the text ends in a backslash"),
    "broken_line": ("COMMAND_SHELL_OPERATOR", "a command must be on one line"),
    "operator": ("COMMAND_SHELL_OPERATOR", "{!r} outside quotes needs a shell"),
    "dialect": ("COMMAND_SHELL_OPERATOR", "{!r} before a quote is a form that only some shells support"),
    "hash": ("COMMAND_SHELL_OPERATOR", "{!r} would start a comment; quote it if it is an argument"),
    "variable": ("COMMAND_VARIABLE", "variables are not expanded"),
}
_DOUBLE_ESCAPE = re.compile(r'\\([$`"\\\n])')
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\+?=")
_BAD_CHARACTER = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class CommandStep:
    """One program to spawn, in a directory relative to where the script starts."""

    argv: tuple[str, ...]
    cwd: str


@dataclass(frozen=True, slots=True)
class Script:
    """Programs to run one after another; the first that fails ends it."""

    steps: tuple[CommandStep, ...]


@dataclass(frozen=True, slots=True)
class CommandFault:
    """Why a command is refused; `position` counts characters from 0."""

    code: str
    position: int
    message: str
    hint: str


class _Word(NamedTuple):
    text: str
    position: int


class _Part(NamedTuple):
    position: int
    words: list[_Word]


class _Rule(NamedTuple):
    program: str
    prefix: bool
    options: frozenset[str]
    operands: tuple[str, ...]
    text: str


def parse_command(text: str, *, deny: Sequence[str]) -> Script | CommandFault:
    """The programs `text` asks for, or the first reason to refuse it. The deny list is checked first."""
    return _parsed(text, tuple(deny))


# The same few commands judge every task of a run, several times each.
@lru_cache(maxsize=256)
def _parsed(text: str, deny: tuple[str, ...]) -> Script | CommandFault:
    parts, fault = _scan(text)
    denied = _denied(parts, _rules(deny))
    if denied is not None:
        return denied
    bad = _BAD_CHARACTER.search(text)
    if bad is not None:
        return _fault("COMMAND_BAD_CHARACTER", bad.start(), f"the character U+{ord(bad.group()):04X} is not allowed")
    return fault or _script(parts)


def _fault(code: str, position: int, message: str, hint: str = "") -> CommandFault:
    return CommandFault(code, position, f"{message} (at character {position})", hint or COMMAND_CODES[code][2])


def _scan(text: str) -> tuple[list[_Part], CommandFault | None]:
    """The words of each part and the first fault; parsing continues after it, so the deny list sees every part."""
    parts = [_Part(0, [])]
    fault: CommandFault | None = None
    pieces: list[str] = []
    word_at: int | None = None
    for token in _TOKEN.finditer(text):
        kind = token.lastgroup or ""
        if fault is None and kind in _REFUSED_TOKENS and (kind != "hash" or word_at is None):
            code, message = _REFUSED_TOKENS[kind]
            fault = _fault(code, token.start(), message.format(token[kind]))
        if kind not in ("space", "join", "operator"):
            pieces.append(_DOUBLE_ESCAPE.sub(_unescaped, token[kind]) if kind == "double" else token[kind])
            word_at = token.start() if word_at is None else word_at
            continue
        if word_at is not None:
            parts[-1].words.append(_Word("".join(pieces), word_at))
            pieces, word_at = [], None
        if kind != "space":
            parts.append(_Part(token.end(), []))
    if word_at is not None:
        parts[-1].words.append(_Word("".join(pieces), word_at))
    return parts, fault


def _unescaped(match: re.Match[str]) -> str:
    return "" if match[1] == "\n" else match[1]


def _script(parts: Sequence[_Part]) -> Script | CommandFault:
    steps: list[CommandStep] = []
    cwd = "."
    for part in parts:
        fault = _program_fault(part)
        if fault is not None:
            return fault
        argv = tuple(word.text for word in part.words)
        if argv[0] != "cd":
            steps.append(CommandStep(argv, cwd))
            continue
        entered = _enter(cwd, argv, part.words[0].position)
        if isinstance(entered, CommandFault):
            return entered
        cwd = entered
    if parts[-1].words[0].text == "cd":
        return _fault("COMMAND_EMPTY", parts[-1].words[0].position, "nothing runs after this cd")
    return Script(tuple(steps))


def _program_fault(part: _Part) -> CommandFault | None:
    if not part.words:
        return _fault("COMMAND_EMPTY", part.position, "there is no command here")
    program, position = part.words[0]
    if not program:
        return _fault("COMMAND_EMPTY", position, "the program's name is empty")
    if _ASSIGNMENT.match(program):
        rest = " ".join(word.text for word in part.words[:2])[:80]
        return _fault("COMMAND_ASSIGNMENT", position, f"{program[:80]!r} is an assignment", f"Write: env {rest}")
    if program in _BUILTINS:
        return _fault("COMMAND_BUILTIN", position, f"{program!r} exists only inside a shell")
    return None


def _enter(cwd: str, argv: tuple[str, ...], position: int) -> str | CommandFault:
    if len(argv) != 2 or not argv[1]:
        return _fault("COMMAND_BAD_DIRECTORY", position, "cd takes exactly one directory")
    target = argv[1]
    if target.startswith(("/", "~", "-")):
        return _fault("COMMAND_BAD_DIRECTORY", position, f"cd {target[:80]!r} is not relative to the workspace")
    joined = posixpath.normpath(posixpath.join(cwd, target))
    if joined == ".." or joined.startswith("../"):
        return _fault("COMMAND_BAD_DIRECTORY", position, f"cd {target[:80]!r} leaves the workspace")
    if len(joined) > _MAX_DIRECTORY:
        return _fault("COMMAND_BAD_DIRECTORY", position, f"the directory is longer than {_MAX_DIRECTORY} characters")
    return joined


@lru_cache(maxsize=8)
def _rules(deny: tuple[str, ...]) -> tuple[_Rule, ...]:
    return tuple(_rule(entry) for entry in deny if entry.strip())


def _rule(entry: str) -> _Rule:
    first, *rest = entry.split()
    program = posixpath.basename(first) or first
    options, operands = _split_arguments("", rest)
    return _Rule(program.removesuffix("*"), program.endswith("*"), options, operands, " ".join([first, *rest]))


def _split_arguments(program: str, arguments: Sequence[str]) -> tuple[frozenset[str], tuple[str, ...]]:
    """Options as single letters and long names, in any order; operands without the values of known options."""
    options: set[str] = set()
    operands: list[str] = []
    words = iter(arguments)
    for word in words:
        if word == "--":
            operands.extend(words)
        elif word.startswith("--"):
            options.add(word.partition("=")[0])
        elif word.startswith("-") and len(word) > 1:
            options.update(word[1:])
        else:
            operands.append(word)
        if word in _VALUED_OPTIONS.get(program, ()):
            next(words, None)
    return frozenset(options), tuple(operands)


def _denied(parts: Sequence[_Part], rules: Sequence[_Rule]) -> CommandFault | None:
    for part in parts:
        reason = _denied_words(part.words, rules, depth=0)
        if reason is not None:
            return _fault("COMMAND_DENIED", part.words[0].position, reason)
    return None


def _denied_words(words: Sequence[_Word], rules: Sequence[_Rule], *, depth: int) -> str | None:
    at = 0
    for _ in range(_MAX_WRAPPERS):
        while at < len(words) and _ASSIGNMENT.match(words[at].text):
            at += 1
        if at >= len(words):
            return None
        program = posixpath.basename(words[at].text)
        arguments = [word.text for word in words[at + 1 :]]
        for rule in rules:
            if _matches(rule, program, arguments):
                return f"{rule.text!r} is on the deny list"
        for text in _carried_texts(program, arguments):
            reason = _denied_text(text, rules, depth=depth + 1)
            if reason is not None:
                return reason
        if program not in _WRAPPERS:
            return None
        at = _after_options(program, words, at + 1)
    return f"more than {_MAX_WRAPPERS} programs wrapped in each other cannot be checked against the deny list"


def _denied_text(text: str, rules: Sequence[_Rule], *, depth: int) -> str | None:
    if depth > _MAX_SHELL_DEPTH:
        return f"more than {_MAX_SHELL_DEPTH} shells inside each other cannot be checked against the deny list"
    found = (_denied_words(part.words, rules, depth=depth) for part in _scan(text)[0])
    return next((reason for reason in found if reason is not None), None)


def _matches(rule: _Rule, program: str, arguments: Sequence[str]) -> bool:
    if program != rule.program and not (rule.prefix and program.startswith(rule.program)):
        return False
    if not rule.options and not rule.operands:
        return True
    options, operands = _split_arguments(program, arguments)
    return rule.options <= options and operands[: len(rule.operands)] == rule.operands


def _carried_texts(program: str, arguments: Sequence[str]) -> Iterator[str]:
    """Arguments that are commands themselves: the text of `sh -c` and of `env -S`."""
    flag = "c" if program in _SHELLS else "S" if program == "env" else None
    if flag is None:
        return
    runs_text = False
    words = iter(arguments)
    for word in words:
        if not word.startswith(("-", "+")):
            if runs_text:
                yield word
            return
        runs_text |= word == "--split-string" or (flag in word and not word.startswith("--"))
        if flag == "S":
            yield word.partition("=" if word.startswith("--split-string=") else "S")[2]
        if word in _VALUED_OPTIONS[program]:
            next(words, None)


def _after_options(program: str, words: Sequence[_Word], at: int) -> int:
    valued = _VALUED_OPTIONS.get(program, frozenset())
    while at < len(words) and words[at].text.startswith("-"):
        option = words[at].text
        at += 2 if option in valued else 1
        if option == "--":
            break
    return at + (program == "timeout")
