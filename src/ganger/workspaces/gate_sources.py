"""Files that a shell script reads if they are there: settings it sources, and those that switch a part of it on."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator

_WORD = r"""("[^"\n]*"|'[^'\n]*'|[^\s;&|)]+)"""
_SOURCED = re.compile(rf"(?:^|[;&|({{]|\b(?:then|do|else)\b)[ \t]*(?:\.|source)[ \t]+{_WORD}", re.MULTILINE)
_TESTED = rf"(?:\[\[?|\btest)[ \t]+-[aefrsx][ \t]+{_WORD}[ \t]*(?:\]\]?)?"
_SWITCH = re.compile(rf"{_TESTED}[ \t]*(?:\\\n[ \t]*)?&&(?P<rest>[^\n]*)")
_BLOCK = re.compile(
    rf"\b(?:if|elif)[ \t]+{_TESTED}(?P<rest>.*?)(?=\bfi\b|\bel(?:se|if)\b)(?P<end>fi|else|elif)", re.DOTALL
)
# Ends the script well, or sets, loads or runs something; what only looks at the file demands that it is there.
_STEERS = re.compile(
    r"\b(?:exit|return)\b(?![ \t]*[1-9])|(?:^|[\s;&|])(?:\.|source|export|exec|eval|set)[ \t]|(?:^|[\s;&|])\w+\+?="
)
_LOOP = re.compile(r"\bfor[ \t]+(\w+)[ \t]+in[ \t]+([^;\n]*)")
_ASSIGNED = re.compile(rf"^[ \t]*(?:export[ \t]+|local[ \t]+|readonly[ \t]+)?(\w+)={_WORD}", re.MULTILINE)
_VARIABLE = re.compile(r"\$(?:(\w+)|\{(\w+)(?::?[-=]([^}]*))?\})")
_PLACE = re.compile(r"^(?:\$\{[^}]*\}|\$\w+)/")
_COMMENT = re.compile(r"^[ \t]*#(?!!).*$", re.MULTILINE)
_INNER = re.compile(r"\$\([^()\n]*(?:\([^()\n]*\)[^()\n]*)*\)|`[^`\n]*`")
_MOST = 200


def optional_files(text: str, folder: str) -> set[str]:
    """Globs, from the root: a word may mean the folder of the script or the one it is called in."""
    # What a command prints is not known; most often it is the folder of the script.
    script = _Script(_INNER.sub("$_", _COMMENT.sub("", text)))
    words = [word for found in _SOURCED.findall(script.text) for word in script.meanings(found)]
    switches = [*_SWITCH.finditer(script.text)]
    switches += [found for found in _BLOCK.finditer(script.text) if found["end"] == "fi"]
    words += [word for found in switches if _steers(found[1], found["rest"]) for word in script.meanings(found[1])]
    return {path for word in words[:_MOST] for path in _places(word, folder)}


def _steers(word: str, rest: str) -> bool:
    name = re.escape(posixpath.basename(word.strip("\"'")))
    runs = rf"(?:^|[\s;&|])(?:(?:ba|da|z)?sh|python3?|node|ruby|perl)[ \t]+\S*{name}|(?:^|[\s;&|])\.?/?\S*/{name}"
    return _STEERS.search(rest) is not None or re.search(runs, rest) is not None


class _Script:
    """A text and what its variables stand for, as far as that can be told."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._loops = {name: words.split() for name, words in _LOOP.findall(text)}
        self._assigned = dict(_ASSIGNED.findall(text))

    def meanings(self, word: str) -> Iterator[str]:
        word = word.strip("\"'")
        only = _VARIABLE.fullmatch(word)
        if only is None:
            yield _PLACE.sub("", word)
            return
        name = only[1] or only[2]
        for value in self._loops.get(name, [self._assigned.get(name, only[3] or "")]):
            yield _PLACE.sub("", _VARIABLE.sub(lambda found: found[3] or found[0], value.strip("\"'")))


def _places(word: str, folder: str) -> Iterator[str]:
    if not word or "$" in word or word.startswith(("/", "~", "-")):
        return
    for place in {"", folder}:
        path = posixpath.normpath(posixpath.join(place, word))
        if path != "." and not path.startswith(".."):
            yield path
