"""Files that verify commands reach through a script, a makefile or a package's scripts, a few steps deep."""

from __future__ import annotations

import fnmatch
import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import dropwhile, islice, takewhile

from ganger.workspaces.gates.commands import (
    LINTERS,
    MAKES,
    PACKAGERS,
    SHELLS,
    TEST_RUNNERS,
    CommandOrders,
    merged,
    read_orders,
)
from ganger.workspaces.gates.make import MAKEFILES, Made, read_makefile, words_of
from ganger.workspaces.gates.packages import package_scripts, reached_scripts
from ganger.workspaces.rules.line_counts import listed

_WORD = r"""("[^"\n]*"|'[^'\n]*'|[^\s;&|)]+)"""
_SOURCED = re.compile(rf"(?:^|[;&|({{]|\b(?:then|do|else)\b)[ \t]*(?:\.|source)[ \t]+{_WORD}", re.MULTILINE)
_TESTED = rf"(?:\[\[?|\btest)[ \t]+-[aefrsx][ \t]+{_WORD}[ \t]*(?:\]\]?)?"
_SWITCH = re.compile(rf"{_TESTED}[ \t]*(?:\\\n[ \t]*)?&&(?P<rest>[^\n]*)")
_BLOCK = re.compile(
    rf"\b(?:if|elif)[ \t]+{_TESTED}(?P<rest>.*?)(?=\bfi\b|\bel(?:se|if)\b)(?P<end>fi|else|elif)", re.DOTALL
)
# Ends the script with success, or sets, loads or runs something; a mere look at the file requires that it exists.
_STEERS = re.compile(
    r"\b(?:exit|return)\b(?![ \t]*[1-9])|(?:^|[\s;&|])(?:\.|source|export|exec|eval|set)[ \t]|(?:^|[\s;&|])\w+\+?="
)
_LOOP = re.compile(r"\bfor[ \t]+(\w+)[ \t]+in[ \t]+([^;\n]*)")
_ASSIGNED = re.compile(rf"(?:^|[;&|])[ \t]*(?:export[ \t]+|local[ \t]+|readonly[ \t]+)?(\w+)={_WORD}", re.MULTILINE)
_VARIABLE = re.compile(r"\$(?:(\w+)|\{(\w+)(?::?[-=]([^}]*))?\})")
_PLACE = re.compile(r"^(?:\$\{[^}]*\}|\$\w+)/")
_PARTS = re.compile(rf"(?:^|[;&|({{]|\b(?:then|do|else)\b)[ \t]*run-parts((?:[ \t]+{_WORD})+)", re.MULTILINE)
_LISTED = re.compile(r"""\$\((?:ls|find|echo)[ \t]+([^()$`]*)\)""")
_COMMENT = re.compile(r"^[ \t]*#(?!!).*$", re.MULTILINE)
_INNER = re.compile(r"\$\([^()\n]*(?:\([^()\n]*\)[^()\n]*)*\)|`[^`\n]*`")
_HERE = ("", ".", "./", "$PWD", "${PWD}", "$_")
_MOST, _DEEPEST = 200, 4


def optional_files(text: str, folder: str) -> set[str]:
    """Globs, from the root: a word may mean the folder of the script or the one it is called in."""
    # A command's output is unknown; most often it is the script's folder.
    script = _Script(_plain(text))
    words = [word for found in _SOURCED.findall(script.text) for word in script.meanings(found)]
    run = [word for found in _PARTS.finditer(script.text) for word in found[1].split() if word[:1] != "-"]
    words += [f"{folder}/*" for word in run for folder in script.meanings(word)]
    switches = [*_SWITCH.finditer(script.text)]
    switches += [found for found in _BLOCK.finditer(script.text) if found["end"] == "fi"]
    words += [word for found in switches if _steers(found[1], found["rest"]) for word in script.meanings(found[1])]
    return {path for word in words[:_MOST] for path in _places(word, folder)}


def searched_first(variable: str, text: str, folder: str) -> set[str]:
    """Folders that a script or makefile puts first in PATH, PYTHONPATH or similar variables; "" is the root."""
    script = _Script(_plain(text.replace("$(CURDIR)", "$PWD").replace(f"$({variable})", f"${variable}")))
    found: set[str] = set()
    for word in re.findall(rf"(?<![\w$]){variable}[ \t]*[:?+]{{0,3}}=[ \t]*{_WORD}", script.text)[:_MOST]:
        for place in word.strip("\"'").split(":"):
            # A folder after those that are searched anyway shadows nothing.
            if place.strip("{}$") == variable:
                break
            found |= {path for meant in script.meanings(place) for path in _folders(meant, folder)}
    return found


def _plain(text: str) -> str:
    """The text without comments, with the output of listing commands filled in as far as it is known."""
    return _INNER.sub("$_", _LISTED.sub(_globs, _COMMENT.sub("", text)))


def _globs(listing: re.Match[str]) -> str:
    """`$(ls parts)` and `$(find parts -name '*.sh')` mean what lies in the folder."""
    words = listing[1].split()
    plain = list(takewhile(lambda word: word[:1] != "-", dropwhile(lambda word: word[:1] == "-", words)))
    if not listing[0].startswith(("$(ls", "$(find")):
        return " ".join(plain)
    # The bare star is for a loop that names the folder again.
    return " ".join(word if "*" in word else f"{word} {word.rstrip('/')}/* *" for word in plain)


def _steers(word: str, rest: str) -> bool:
    name = re.escape(posixpath.basename(word.strip("\"'")))
    runs = rf"(?:^|[\s;&|])(?:(?:ba|da|z)?sh|python3?|node|ruby|perl)[ \t]+\S*{name}|(?:^|[\s;&|])\.?/?\S*/{name}"
    return _STEERS.search(rest) is not None or re.search(runs, rest) is not None


class _Script:
    """A text and the values of its variables, as far as they are known."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._loops = {name: words.split() for name, words in _LOOP.findall(text)}
        self._assigned = dict(_ASSIGNED.findall(text))

    def meanings(self, word: str) -> Iterator[str]:
        word = word.strip("\"'")
        for value in islice(self._expanded(word, 0), _MOST):
            yield _PLACE.sub("", value.replace('"', "").replace("'", ""))

    def _expanded(self, word: str, depth: int) -> Iterator[str]:
        """The text with known variables replaced; the others stay."""
        known = next((found for found in _VARIABLE.finditer(word) if self._values(found)), None)
        if known is None or depth > _DEEPEST:
            yield word
            return
        for value in self._values(known):
            yield from self._expanded(word[: known.start()] + value + word[known.end() :], depth + 1)

    def _values(self, variable: re.Match[str]) -> list[str]:
        name = variable[1] or variable[2]
        values = self._loops.get(name) or [self._assigned.get(name, variable[3] or "")]
        plain = (value.strip("\"'") for value in values[:_MOST])
        without_itself = (
            _VARIABLE.sub(lambda one: one[0] if (one[1] or one[2]) != name else one[3] or "", value) for value in plain
        )
        return [value for value in without_itself if value]


def _folders(place: str, folder: str) -> Iterator[str]:
    """Like `_places`; the root or the script's folder where no other folder is named."""
    if place in _HERE:
        yield from {"", folder}
    yield from _places(place, folder)


def _places(word: str, folder: str) -> Iterator[str]:
    if not word.strip("./*") or "$" in word or word.startswith(("/", "~", "-")):
        return
    for place in {"", folder}:
        path = posixpath.normpath(posixpath.join(place, word))
        if path != "." and not path.startswith(".."):
            yield path


# A script also calls the program it tests. A file it only names is a gate beside the script or in a tools folder.
TOOL_FOLDERS = listed("scripts script tools tool ci .ci hack devtools dev build-tools checks check qa bin etc")
# Folders with these names hold the product, except inside tools folders.
PRODUCT_FOLDERS = listed("src source sources lib app apps pkg packages cmd internal docs dist build public static")
_DEEP = 3
_LARGEST = 256 << 10
_IMPORT = re.compile(r"^[ \t]*(?:from|import)[ \t]+\.?(\w+)", re.MULTILINE)
_SHELL_HEAD = re.compile(r"#!.*\b(?:ba|da|z|k|a)?sh\b")
_SHELL_ENDS = (".sh", ".bash", ".zsh", ".bats")
# Lines that may call another makefile or package, in a folder they name.
_CALLS = re.compile(r"\b(?:make|gmake|npm|yarn|pnpm|bun)\b")
_CODE_ENDS = (*_SHELL_ENDS, ".py", ".js", ".mjs", ".cjs", ".ts", ".rb", ".pl", ".php", ".lua")

ReadBase = Callable[[str], bytes]


@dataclass(frozen=True, slots=True)
class ScriptReach:
    """`files` maps a path to the script that uses it; `orders` is the text of all commands and scripts.

    `texts` is what scripts say about folders. `make_words` is None where some makefile could not be read.
    `optional` are globs of files that are read if they exist, with the reader; `made` is what make looks for, by
    folder.
    """

    files: Mapping[str, str]
    orders: CommandOrders
    texts: Mapping[str, str]
    makefiles: frozenset[str]
    make_words: frozenset[str] | None
    optional: Mapping[str, str]
    made: Mapping[str, Made]

    def reader_of(self, path: str) -> str | None:
        """Which script would read a new file of this name."""
        return next((user for glob, user in self.optional.items() if fnmatch.fnmatchcase(path, glob)), None)

    def user_of(self, path: str) -> str | None:
        """The script that runs this file, or that reads through a folder below its own that holds it."""
        return self.files.get(path) or next(
            (user for user, text in self.texts.items() if _goes_through(user, text, path)), None
        )

    def is_collected(self, path: str) -> bool:
        """Whether a test run with its own patterns collects this file."""
        return any(
            (path == folder or not folder or path.startswith(f"{folder}/"))
            and (folder or glob != "*.py")
            and fnmatch.fnmatchcase(path if "/" in glob else path.rpartition("/")[2], glob)
            for folder, glob in self.orders.suites
        )


def reach_of(orders: CommandOrders, read_base: ReadBase) -> ScriptReach:
    """Files that the commands name directly are not included."""
    walk = _Walk(orders, read_base)
    for _ in range(_DEEP):
        walk.go_on()
    files = {path: user for path, user in walk.files.items() if path not in orders.named}
    makes = frozenset(path for path in walk.texts if path in walk.makefiles)
    words = frozenset().union(*(words_of(walk.texts[path]) for path in makes)) if walk.all_included else None
    scripts = {path: _told_by(path, text) for path, text in walk.texts.items() if path not in makes}
    return ScriptReach(files, merged(walk.orders), scripts, makes, words, walk.optional, walk.made)


class _Walk:
    """Follows the commands to the files they use, step by step."""

    def __init__(self, orders: CommandOrders, read_base: ReadBase) -> None:
        self.files: dict[str, str] = {}
        self.orders = [orders]
        self.texts: dict[str, str] = {}
        self.makefiles: set[str] = set()
        self.all_included = True
        self.optional: dict[str, str] = {}
        self.made: dict[str, Made] = {}
        self._read_base = read_base
        self._absent: set[str] = set()

    def go_on(self) -> None:
        known = merged(self.orders)
        for user in sorted({*known.named, *self.files}):
            if user not in self.texts and (text := self._text(user)) and user not in self.makefiles:
                self._read_script(user, text)
        # Makefiles are read again, because a script may have named another goal.
        for folder in sorted(known.folders):
            if not known.programs.isdisjoint(MAKES):
                for name in MAKEFILES:
                    self._read_makefile(posixpath.join(folder, name), folder, known)
            if not known.programs.isdisjoint(PACKAGERS):
                self._read_package(posixpath.join(folder, "package.json"), known)

    def _text(self, path: str) -> str:
        if path in self._absent or not path:
            return ""
        if path not in self.texts:
            content = self._read_base(path)
            if not content or len(content) > _LARGEST:
                self._absent.add(path)
                return ""
            self.texts[path] = content.decode("utf-8", "replace")
        return self.texts[path]

    def _read_script(self, user: str, text: str) -> None:
        folder, _, name = user.rpartition("/")
        if name.endswith(".py"):
            self._use(user, [f"{folder}/{module}.py" for module in _IMPORT.findall(text) if folder])
        elif _is_shell(name, text):
            lines = [line for line in map(str.strip, text.splitlines()) if line and not line.startswith("#")]
            self._follow(user, folder, lines, text)

    def _read_makefile(self, user: str, folder: str, known: CommandOrders) -> None:
        text = self._text(user)
        if not text:
            return
        self.makefiles.add(user)
        seen: set[str] = set()
        for _ in range(_DEEP):
            for name in read_makefile(text).included:
                path = posixpath.normpath(posixpath.join(folder, name))
                if path not in seen:
                    seen.add(path)
                    text += "\n" + self._included(path, user)
        made = read_makefile(text)
        self.made[folder] = made.made_for(known.goals)
        lines = made.lines_for(known.goals)
        self._read_if_there(user, (posixpath.normpath(posixpath.join(folder, name)) for name in made.asked_for))
        self._search_first(text, folder)
        self._follow(user, folder, lines, "\n".join(lines))

    def _included(self, path: str, user: str) -> str:
        text = self._text(path)
        if text:
            self.makefiles.add(path)
            self.files.setdefault(path, user)
        else:
            self.all_included = False
            self._read_if_there(user, [path])
            self.orders.append(CommandOrders(suites=frozenset({(posixpath.dirname(path), path)})))
        return text

    def _read_package(self, user: str, known: CommandOrders) -> None:
        scripts = package_scripts(self._text(user))
        reached = reached_scripts(scripts, known.scripts)
        lines = [line for name, line in scripts.items() if name in reached]
        self._follow(user, user.rpartition("/")[0], lines, "\n".join(lines))

    def _follow(self, user: str, folder: str, lines: list[str], text: str) -> None:
        """A recipe runs in its own folder, a script in the folder it is called from: both are tried."""
        orders = read_orders(lines)
        called = [read_orders([line]) for line in lines if _CALLS.search(line)]
        folders = {posixpath.join(folder, place) for one in called for place in one.folders if place}
        self.orders.append(CommandOrders(orders.programs, frozenset(folders), frozenset(), frozenset(), *_told(orders)))
        self._read_if_there(user, optional_files(text, folder))
        self._search_first(text, folder)
        self._use(user, (path for path in sorted(orders.named) if _belongs(path, folder)))
        self._use(user, (posixpath.join(place, path) for path in sorted(orders.run) for place in ("", folder)))

    def _search_first(self, text: str, folder: str) -> None:
        programs, modules = (frozenset(searched_first(name, text, folder)) for name in ("PATH", "PYTHONPATH"))
        self.orders.append(CommandOrders(program_folders=programs, roots=modules))

    def _read_if_there(self, user: str, globs: Iterable[str]) -> None:
        for glob in globs:
            self.optional.setdefault(glob, user)

    def _use(self, user: str, paths: Iterator[str] | list[str]) -> None:
        for path in paths:
            if path != user:
                self.files.setdefault(path, user)


def _told(orders: CommandOrders) -> tuple[frozenset[str], frozenset[tuple[str, str]], frozenset[str], frozenset[str]]:
    return orders.roots, orders.suites, orders.goals, orders.scripts


def _belongs(path: str, folder: str) -> bool:
    return path.split("/")[0] in TOOL_FOLDERS or (folder != "" and posixpath.dirname(path) == folder)


def _is_shell(name: str, text: str) -> bool:
    return name.endswith(_SHELL_ENDS) or _SHELL_HEAD.match(text) is not None


def _told_by(path: str, text: str) -> str:
    """What a script says about folders; nothing for other files."""
    if not path.endswith(_CODE_ENDS) and not text.startswith("#!"):
        return ""
    if not _is_shell(path, text):
        return text
    return "\n".join(line for line in text.splitlines() if line.startswith("#!") or not _only_examines(line))


def _goes_through(user: str, text: str, path: str) -> bool:
    """`cases/*.py`, `verify.d/cases` or "cases" in `verify.d/run.sh`, for every file in `verify.d/cases`."""
    folder = posixpath.dirname(user)
    if not folder or not path.startswith(f"{folder}/"):
        return False
    parts = path[len(folder) + 1 :].split("/")[:-1]
    if not parts or (parts[0] in PRODUCT_FOLDERS and folder.split("/")[0] not in TOOL_FOLDERS):
        return False
    is_shell = _is_shell(user, text)
    return any(_mentions(text, folder, "/".join(parts[:depth]), is_shell) for depth in range(1, len(parts) + 1))


def _mentions(text: str, folder: str, inner: str, is_shell: bool) -> bool:
    whole, part = re.escape(f"{folder}/{inner}"), re.escape(inner)
    spellings = [rf"{whole}(?![\w-])", rf"(?<![\w.-]){part}/", rf"""(["']){part}\1"""]
    if is_shell:
        spellings.append(rf"(?<![\w./-]){part}(?![\w.-])")
    return any(re.search(spelling, text) for spelling in spellings)


def _only_examines(line: str) -> bool:
    """Linters and test runners are given the product as well; their own patterns say what they collect."""
    programs = read_orders([line]).programs - SHELLS
    return not programs.isdisjoint(LINTERS | TEST_RUNNERS)
