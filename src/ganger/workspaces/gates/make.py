"""What a makefile does for the goals of a check, and whether added lines leave that unchanged."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass

from ganger.workspaces.rules.line_counts import listed

MAKEFILES = ("Makefile", "makefile", "GNUmakefile")
_INCLUDE = re.compile(r"\s*[-s]?include\s+(.+)")
_ASSIGNED = re.compile(r"\s*(?:export\s+|override\s+)*([\w.-]+)\s*(?:\?|\+|!|:{1,3})?=\s*(.*)")
_RULE = re.compile(r"([^\t#:=][^:=#]*)::?(?!=)([^;]*)(?:;(.*))?")
_WILDCARD = re.compile(r"\$[({]wildcard\s+([^)}]*)[)}]")
_SEARCHED = re.compile(r"\s*vpath\s+(\S+)\s+(.+)")
# The folder make runs in, or an unknown one that most often is the same.
_PLACE = re.compile(r"^\$[({][^)}]*[)}]/")
_CONDITION = re.compile(r"\s*(?:else\s+)?ifn?eq\b.*")
_REFERENCE = re.compile(r"\$[({]([\w.-]+)[)}]")
_WORD = re.compile(r"[\w.-]+")
_NAME = r"[A-Za-z][\w-]*"
_NEW_RULE = re.compile(rf"((?:\.PHONY|{_NAME})(?:[ ]+{_NAME})*)[ ]*:[ ]*([\w./ -]*)(?:#.*)?")
_NEW_VARIABLE = re.compile(rf"({_NAME})[ ]*(?:\?|:{{1,3}})?=[^$`]*")
# Read by make itself or its built-in rules, or passed to every program it starts.
_READ_ANYWAY = re.compile(
    r"PATH|HOME|SHELL|VPATH|CURDIR|SUFFIXES|CC|CXX|CPP|FC|AR|AS|LD|LEX|YACC|RM|TMPDIR|LANG|ENV|BASH_ENV|IFS|CDPATH"
    r"|\w*FLAGS|(?:MAKE|PYTHON|PYTEST|NODE|NPM|LD_|GIT|LC_|CARGO|RUST|GO|JAVA|RUBY|PERL|COVERAGE)\w*|make\w*"
)
_LONGEST = 1000
_USED = re.compile(r"\$(?:\([^)]*\)|\{[^}]*\}|\w)")
_EXPORTS_ALL = re.compile(r"^\s*export\s*$|\.EXPORT_ALL_VARIABLES", re.MULTILINE)
_PHONY = re.compile(r"\.PHONY[ ]*:([\w ./-]*)")
_IF = re.compile(r"\s*ifn?(?:eq|def)\b")
_ENDIF = re.compile(r"\s*endif\b")
_SPECIAL = listed(
    ".PHONY .SUFFIXES .DEFAULT .PRECIOUS .INTERMEDIATE .SECONDARY .DELETE_ON_ERROR .IGNORE .SILENT .ONESHELL .POSIX"
    " .NOTPARALLEL .EXPORT_ALL_VARIABLES .SECONDEXPANSION .LOW_RESOLUTION_TIME .NOTINTERMEDIATE"
)
# What make's built-in rules build a file from.
_SOURCES = ("c", "cc", "cpp", "C", "o", "s", "S", "f", "sh", "y", "l", "p", "r", "mod", "tex", "texi")
_MADE_ANYWAY = listed("makefile Makefile GNUmakefile FORCE all default")


@dataclass(frozen=True, slots=True)
class MakeRule:
    """One target, its prerequisites and its commands."""

    target: str
    needs: tuple[str, ...]
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Makefile:
    """`included` are the names after `include`; both sides of a condition count. `asked_for`: conditions on files.

    `searched` are patterns and the folders in which make also looks for files of such names.
    """

    rules: tuple[MakeRule, ...]
    included: tuple[str, ...]
    asked_for: tuple[str, ...] = ()
    searched: tuple[tuple[str, str], ...] = ()

    def lines_for(self, goals: Collection[str]) -> list[str]:
        """The commands that these goals lead to; those of all targets where the goals are unknown."""
        return [line for rule in self.rules_for(goals) for line in rule.lines]

    def made_for(self, goals: Collection[str]) -> Made:
        """The files make looks for before it does anything for these goals."""
        phony = {need for rule in self.rules if rule.target == ".PHONY" for need in rule.needs}
        reached = [rule for rule in self.rules_for(goals) if rule.target not in phony and rule.target[:1] != "."]
        reached += [rule for rule in self.rules_for(goals) if rule.target[:1] == "." and rule.target not in _SPECIAL]
        named = {need for rule in self.rules_for(goals) if rule.target != ".PHONY" for need in rule.needs} - phony
        known = {rule.target for rule in self.rules}
        return Made(
            frozenset(rule.target for rule in reached if "%" not in rule.target and rule.target not in phony),
            tuple(rule for rule in reached if rule.target.count("%") == 1 and rule.lines),
            frozenset(need for need in named if need not in known),
            self.searched,
        )

    def rules_for(self, goals: Collection[str]) -> list[MakeRule]:
        """Pattern rules are always among them."""
        targets = [rule.target for rule in self.rules]
        wanted = [goal for goal in goals if goal in targets] or (targets if goals else _default_goal(targets))
        reached = {target for target in targets if "%" in target or "$" in target or target.startswith(".")}
        while wanted:
            now = wanted.pop()
            if now not in reached:
                reached.add(now)
                wanted += [need for rule in self.rules if rule.target == now for need in rule.needs]
        return [rule for rule in self.rules if rule.target in reached]


def _default_goal(targets: list[str]) -> list[str]:
    return [target for target in targets if target[:1] != "." or "/" in target][:1]


@dataclass(frozen=True, slots=True)
class Made:
    """Targets by name, pattern rules, and prerequisites without a rule."""

    targets: frozenset[str]
    patterns: tuple[MakeRule, ...]
    needed: frozenset[str]
    searched: tuple[tuple[str, str], ...] = ()

    def names_of(self, path: str) -> Iterator[str]:
        """Names make may use for this file: its path, and the rest of it below a searched folder."""
        yield path
        yield from (
            path[len(folder) + 1 :]
            for pattern, folder in self.searched
            if path.startswith(f"{folder}/") and _fits(pattern, path[len(folder) + 1 :])
        )

    def places_of(self, name: str) -> list[str]:
        """Where make looks for a file, in this order."""
        return [name, *(f"{folder}/{name}" for pattern, folder in self.searched if _fits(pattern, name))]

    def is_made(self, path: str, exists: Callable[[str], bool]) -> bool:
        """Whether make would treat a file or folder of this name as finished work. `exists`: whether a path was there
        before."""
        if path in self.targets or f"./{path}" in self.targets:
            return True
        folder, _, name = path.rpartition("/")
        source = f"{folder}/{name.rpartition('.')[0] or name}." if folder else f"{name.rpartition('.')[0] or name}."
        if path in self.needed and any(exists(source + end) for end in _SOURCES):
            return True
        return any(self._is_made_by(rule, path, exists) for rule in self.patterns)

    def _is_made_by(self, rule: MakeRule, path: str, exists: Callable[[str], bool]) -> bool:
        before, _, after = rule.target.partition("%")
        if not path.startswith(before) or not path.endswith(after) or len(path) <= len(before) + len(after):
            return False
        stem = path[len(before) : len(path) - len(after)]
        wanted = path in self.needed or any("$" in need for need in self.needed)
        return wanted and all(exists(need.replace("%", stem)) for need in rule.needs if "%" in need)


def _fits(pattern: str, name: str) -> bool:
    before, percent, after = pattern.partition("%")
    if not percent:
        return name == pattern
    return name.startswith(before) and name.endswith(after) and len(name) >= len(before) + len(after)


def read_makefile(text: str) -> Makefile:
    """Reads a makefile, as far as possible without running it."""
    lines = text.replace("\\\n", " ").splitlines()
    plain = [line for line in lines if not line.startswith("\t")]
    variables = {match[1]: match[2] for match in map(_ASSIGNED.fullmatch, plain) if match}
    rules: list[tuple[list[str], list[str], list[str]]] = []
    included: list[str] = []
    asked_for = [name for line in plain if _CONDITION.fullmatch(line) for name in _wildcards(line, variables)]
    for line in lines:
        if line.startswith("\t"):
            if rules:
                rules[-1][2].append(_command(line, variables))
        elif include := _INCLUDE.fullmatch(line):
            words = _WILDCARD.sub(r"\1", _expanded(include[1].partition("#")[0], variables))
            included += words.split()
        elif (
            not _ASSIGNED.fullmatch(line)
            and not _SEARCHED.fullmatch(line)
            and (rule := _RULE.fullmatch(_expanded(line, variables)))
        ):
            rules.append(
                (rule[1].rstrip("& ").split(), rule[2].split(), [_command(rule[3], variables)] if rule[3] else [])
            )
    flat = (MakeRule(target, tuple(needs), tuple(run)) for targets, needs, run in rules for target in targets)
    return Makefile(tuple(flat), tuple(included), tuple(asked_for), tuple(_searched(plain, variables)))


def _searched(lines: list[str], variables: dict[str, str]) -> Iterator[tuple[str, str]]:
    """`VPATH = out:gen` and `vpath %.ok out`."""
    for line in lines:
        directive, assigned = _SEARCHED.fullmatch(line), _ASSIGNED.fullmatch(line)
        if directive:
            pattern, value = directive[1], directive[2]
        elif assigned and assigned[1] == "VPATH":
            pattern, value = "%", assigned[2]
        else:
            continue
        for word in re.split(r"[\s:]+", _expanded(value.partition("#")[0], variables)):
            folder = posixpath.normpath(_PLACE.sub("", word)) if word else "."
            if folder != "." and not folder.startswith(("/", "..", "$")):
                yield pattern, folder


def _wildcards(line: str, variables: dict[str, str]) -> list[str]:
    return [name for found in _WILDCARD.findall(_expanded(line, variables)) for name in found.split()]


def _command(line: str, variables: dict[str, str]) -> str:
    return _expanded(line, {**variables, "MAKE": "make"}).lstrip("\t@-+ ").replace("$$", "$")


def _expanded(text: str, variables: dict[str, str]) -> str:
    for _ in range(4):
        text = _REFERENCE.sub(lambda match: variables.get(match[1], match[0])[:1000], text)[:20_000]
    return text


def words_of(text: str) -> frozenset[str]:
    """Every name that a makefile may refer to. Text that a recipe only passes to a shell means nothing to make."""
    if _EXPORTS_ALL.search(text):
        return frozenset(_WORD.findall(text))
    found: set[str] = set()
    for line in text.replace("\\\n", " ").splitlines():
        if line.startswith("\t") and "make" not in line.lower():
            found.update(word for used in _USED.findall(line) for word in _WORD.findall(used))
        elif not line.startswith("#"):
            found.update(_WORD.findall(line))
    return frozenset(found)


def only_adds(before: str, after: str, known: Collection[str]) -> bool:
    """Whether `after` is `before` plus new targets and variables between its rules, with names that are still unused.

    `known` are the words of all makefiles of the check, and its goals.
    """
    if not before.endswith("\n") or before.endswith("\\\n") or "define" in before or not read_makefile(before).rules:
        return False
    old, names, added, at = before.splitlines(), set[str](), list[str](), 0
    for line in after.splitlines():
        more = _more_phony(old[at], line) if at < len(old) else None
        if more is None:
            added.append(line)
            continue
        new = _names_added(added, old, at)
        if new is None:
            return False
        names |= new | more
        added, at = [], at + 1
    last = _names_added(added, old, at)
    return at == len(old) and last is not None and (names | last).isdisjoint(known)


def _more_phony(old: str, new: str) -> set[str] | None:
    """The names a line adds to the old one: empty where both are equal, None where it is a different line."""
    if old == new:
        return set()
    one, two = _PHONY.fullmatch(old), _PHONY.fullmatch(new)
    if one is None or two is None:
        return None
    before, after = set(one[1].split()), set(two[1].split())
    return after - before if before <= after and all(re.fullmatch(_NAME, word) for word in after - before) else None


def _names_added(added: list[str], old: list[str], at: int) -> set[str] | None:
    """What the lines inserted before line `at` add; None where they are not plain rules between two others."""
    if not added:
        return set()
    above = old[:at]
    below = next((line for line in old[at:] if line.strip() and not line.startswith("#")), "")
    depth = sum(bool(_IF.match(line)) - bool(_ENDIF.match(line)) for line in above)
    if below.startswith("\t") or depth or added[-1].endswith("\\") or (above and above[-1].endswith("\\")):
        return None
    names: set[str] = set()
    is_recipe = is_continued = False
    for line in added:
        if line.startswith("\t") or is_continued:
            if not is_recipe:
                return None
            is_continued = line.endswith("\\")
        elif line.strip() and not line.startswith("#"):
            new = _names_in(line)
            if not new:
                return None
            is_recipe = ":" in line and _NEW_VARIABLE.fullmatch(line) is None
            names |= new
        elif line.endswith("\\"):
            return None
    begun = [rule.target for rule in read_makefile("\n".join(above)).rules]
    # The first rule is make's default goal.
    return names if not names or _default_goal(begun) else None


def _names_in(line: str) -> set[str]:
    """What a line adds; None where it is not one of the plain kinds."""
    if line.endswith("\\") or len(line) > _LONGEST:
        return set()
    if variable := _NEW_VARIABLE.fullmatch(line):
        return set() if _READ_ANYWAY.fullmatch(variable[1]) else {variable[1]}
    rule = _NEW_RULE.fullmatch(line)
    if rule is None:
        return set()
    targets = set(rule[1].split())
    if ".PHONY" in targets:
        targets = set(rule[2].split()) if targets == {".PHONY"} else set()
    return targets if targets.isdisjoint(_MADE_ANYWAY) else set()
