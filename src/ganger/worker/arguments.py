"""Parses a command line by a table: options, verbs, help pages."""

from __future__ import annotations

from .errors import Misuse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

FLAG, TEXT, NUMBER, PERCENT, MANY, SECONDS = "flag", "text", "number", "percent", "many", "seconds"


class Option:
    """`kind` SECONDS is a number that may be left out: `--wait`, `--wait 30`, `--wait=30`."""

    __slots__ = ("help", "kind", "meta", "name")

    def __init__(self, name: str, kind: str, meta: str, help: str) -> None:  # noqa: A002 - the word users know
        self.name, self.kind, self.meta, self.help = name, kind, meta, help

    @property
    def shown(self) -> str:
        if self.kind == SECONDS:
            return f"--{self.name} [{self.meta}]"
        return f"--{self.name} {self.meta}".rstrip()


class Verb:
    """`arguments` are the names of its positional arguments, in brackets if optional."""

    __slots__ = ("about", "arguments", "examples", "name", "options")

    def __init__(
        self, name: str, arguments: Sequence[str], about: str, options: Sequence[Option], examples: Sequence[str]
    ) -> None:
        self.name, self.arguments, self.about = name, tuple(arguments), about
        self.options, self.examples = tuple(options), tuple(examples)

    @property
    def usage(self) -> str:
        return " ".join(["ganger worker", self.name, "[OPTIONS]", *self.arguments])

    @property
    def line(self) -> str:
        """The first sentence of its help."""
        return self.about.split("\n\n", maxsplit=1)[0].replace("\n", " ")


class Given:
    """The values of a command line, by the names in the table."""

    def __init__(self) -> None:
        self.places: list[str] = []
        self.values: dict[str, Any] = {}

    def text(self, name: str) -> str:
        return str(self.values.get(name, ""))

    def flag(self, name: str) -> bool:
        return name in self.values

    def many(self, name: str) -> list[str]:
        return list(self.values.get(name, ()))

    def place(self, number: int) -> str:
        return self.places[number] if number < len(self.places) else ""


def read(verb: Verb, words: Sequence[str]) -> Given:
    """Raises Misuse."""
    given, known, rest = Given(), {option.name: option for option in verb.options}, [_clean(word) for word in words]
    while rest:
        word = rest.pop(0)
        if word == "--":
            given.places += rest
            break
        if not word.startswith("--"):
            given.places.append(word)
            continue
        name, equals, value = word[2:].partition("=")
        option = known.get(name)
        if option is None:
            raise _misuse(verb, f"there is no option --{name}{_closest(name, list(known))}")
        _store(verb, given, option, value if equals else None, rest)
    needed = sum(1 for argument in verb.arguments if not argument.startswith("["))
    if not needed <= len(given.places) <= len(verb.arguments):
        expected = " ".join(verb.arguments) or "only options"
        raise _misuse(verb, f"{len(given.places)} arguments were given, but it takes {expected}")
    return given


def _store(verb: Verb, given: Given, option: Option, value: str | None, rest: list[str]) -> None:
    if option.kind == FLAG:
        if value is not None:
            raise _misuse(verb, f"--{option.name} takes no value")
        given.values[option.name] = True
        return
    if value is None and option.kind == SECONDS:
        value = rest.pop(0) if rest and _number(rest[0]) is not None else ""
    if value is None:
        if not rest:
            raise _misuse(verb, f"--{option.name} needs a value: {option.meta}")
        value = rest.pop(0)
    if option.kind == MANY:
        given.values.setdefault(option.name, []).append(value)
    else:
        given.values[option.name] = value if option.kind == TEXT else _checked(verb, option, value)


def _checked(verb: Verb, option: Option, value: str) -> float | None:
    if option.kind == SECONDS and not value:
        return None
    number = _number(value)
    if number is None or number < 0 or (option.kind == PERCENT and number > 100):
        limits = "from 0 to 100" if option.kind == PERCENT else "from 0 up"
        raise _misuse(verb, f"--{option.name} is a number {limits}, not {value!r}")
    return number


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    # Neither NaN nor infinite.
    return number if number - number == 0 else None


def _clean(word: str) -> str:
    """Replaces bytes that are not UTF-8 by marks that every reader accepts."""
    return word.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _misuse(verb: Verb, message: str) -> Misuse:
    return Misuse(f"{verb.name}: {message}", hint=f"ganger worker {verb.name} --help")


def _closest(name: str, known: list[str]) -> str:
    import difflib

    close = difflib.get_close_matches(name, known, n=1)
    return f"; did you mean --{close[0]}?" if close else ""


def help_page(verb: Verb) -> str:
    width = max(len(option.shown) for option in verb.options) + 2
    lines = [f"Usage: {verb.usage}", "", verb.about, "", "Options:"]
    lines += [f"  {option.shown:<{width}}{option.help}" for option in verb.options]
    lines += [f"  {'--help':<{width}}This page.", "", "Examples:", *(f"  {example}" for example in verb.examples)]
    return "\n".join(lines)
