"""What a shell script reads if it exists: settings it sources, switches; and the folders it searches first."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from itertools import dropwhile, islice, takewhile

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
