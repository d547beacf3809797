"""Claude Code's settings text with Ganger's hooks in it, and without them.

A hook's command ends with a comment that names the containers made for it, so that its removal, on any machine, also
removes exactly those.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ganger.hooks.json_text import Container, NotJson, added, container_at, removed, root_of, value_of

EVENTS = ("SessionStart", "Stop", "TeammateIdle")
TIMEOUT_SEC = 20
NEW_FILE = "{}\n"
FILE, FOLDER = "file", "folder"
_HOOKS, _LIST = "hooks", "list"
# The program is called only if it exists, and of its exit codes only 2 counts: that one keeps the session going, and
# neither a missing program nor a broken one may do that.
_BEGIN = "[ -x {program} ] || exit 0; {call} hooks run claude; [ $? -eq 2 ] && exit 2; exit 0 # ganger"
_OURS = re.compile(
    r"\[ -x (?P<program>.+) \] \|\| exit 0; (?P<call>.+) hooks run claude; "
    r"\[ \$\? -eq 2 \] && exit 2; exit 0 # ganger(?: made (?P<made>[a-z ]+))?"
)


@dataclass(frozen=True, slots=True)
class FoundHooks:
    """One of Ganger's hooks: its event, its place in the event's list, and the program it calls."""

    event: str
    index: int
    inner: int
    command: str
    call: str
    made: tuple[str, ...]


def command_line(call: Sequence[str], made: Sequence[str] = ()) -> str:
    """The hook's command. `call` is how Ganger is started here; its first word is an absolute path."""
    text = _BEGIN.format(program=shlex.quote(call[0]), call=shlex.join(call))
    return f"{text} made {' '.join(made)}" if made else text


def found_in(text: str) -> list[FoundHooks]:
    """All of Ganger's hooks; raises NotJson where the text is not valid."""
    return [found for event, groups in _hooks_of(text).items() for found in _found_under(event, groups)]


def installed(text: str, call: Sequence[str], made: tuple[str, ...] = ()) -> str:
    """The text with one hook for each event; unchanged when all exist. `made` names the containers made for them."""
    for event in EVENTS:
        ours = [found for found in found_in(text) if found.event == event]
        text = _renewed(text, ours[0], call) if ours else _with_hook(text, event, call, made)
        made = ()
    return text


def uninstalled(text: str) -> tuple[str, frozenset[str]]:
    """The text without Ganger's hooks and without the containers made for them."""
    made: set[str] = set()
    while ours := found_in(text):
        text = _without(text, ours[-1])
        made |= set(ours[-1].made)
    root = root_of(text)
    hooks = root.named("hooks")
    if _HOOKS in made and hooks is not None and not container_at(text, hooks.start).children:
        text = removed(text, root, root.children.index(hooks))
    return text, frozenset(made)


def is_empty(text: str) -> bool:
    return not root_of(text).children


def _hooks_of(text: str) -> dict[str, object]:
    """The hooks by event; raises unless the text has a form that all readers understand alike."""
    value = value_of(text)
    if not isinstance(value, dict):
        raise NotJson("the whole file", "it must be an object")
    hooks = value.get("hooks", {})
    if not isinstance(hooks, dict):
        raise NotJson("hooks", "it must be an object")
    named = root_of(text).named("hooks")
    inside = container_at(text, named.start) if named is not None else None
    for event, groups in hooks.items():
        if event in EVENTS and not isinstance(groups, list):
            raise NotJson(f"hooks.{event}", "it must be a list")
        if inside is not None:
            inside.named(event)
    return hooks


def _found_under(event: str, groups: object) -> Iterator[FoundHooks]:
    for index, group in enumerate(groups if isinstance(groups, list) else ()):
        inner = group.get("hooks") if isinstance(group, dict) else None
        for place, hook in enumerate(inner if isinstance(inner, list) else ()):
            command = hook.get("command") if isinstance(hook, dict) else None
            ours = _OURS.fullmatch(command) if isinstance(command, str) else None
            if ours is not None:
                yield FoundHooks(event, index, place, ours[0], ours["call"], tuple((ours["made"] or "").split()))


def _with_hook(text: str, event: str, call: Sequence[str], made: tuple[str, ...]) -> str:
    root = root_of(text)
    hooks = root.named("hooks")
    groups = container_at(text, hooks.start).named(event) if hooks is not None else None
    made = (*made, *((_HOOKS,) if hooks is None else ()), *((_LIST,) if groups is None else ()))
    group = {"hooks": [{"type": "command", "command": command_line(call, made), "timeout": TIMEOUT_SEC}]}
    if hooks is None:
        return added(text, root, {event: [group]}, "hooks")
    if groups is None:
        return added(text, container_at(text, hooks.start), [group], event)
    return added(text, container_at(text, groups.start), group)


def _renewed(text: str, found: FoundHooks, call: Sequence[str]) -> str:
    """Replaces the hook in its place by one that calls the present Ganger."""
    wanted = command_line(call, found.made)
    if found.command == wanted:
        return text
    *_, hooks = _path_to(text, found)
    hook = container_at(text, hooks.children[found.inner].start)
    command = hook.named("command")
    assert command is not None
    return text[: command.start] + json.dumps(wanted, ensure_ascii=False) + text[command.end :]


def _without(text: str, found: FoundHooks) -> str:
    every, groups, hooks = _path_to(text, found)
    if len(hooks.children) > 1:
        return removed(text, hooks, found.inner)
    text = removed(text, groups, found.index)
    child = every.named(found.event)
    assert child is not None
    if _LIST in found.made and not container_at(text, child.start).children:
        every = container_at(text, every.start)
        text = removed(text, every, [c.key for c in every.children].index(found.event))
    return text


def _path_to(text: str, found: FoundHooks) -> tuple[Container, Container, Container]:
    """The object of all events, the list of this one's groups, and the list of hooks in its group."""
    hooks = root_of(text).named("hooks")
    assert hooks is not None
    every = container_at(text, hooks.start)
    event = every.named(found.event)
    assert event is not None
    groups = container_at(text, event.start)
    group = container_at(text, groups.children[found.index].start)
    inner = group.named("hooks")
    assert inner is not None
    return every, groups, container_at(text, inner.start)
