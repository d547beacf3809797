"""Finds the client's own tool for an action (write a file, run a command) and fills in its schema."""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Mapping, Sequence

from ganger.dev.conversation import ModelAsk, ModelCall, Tool, mapping

_WRITERS = ("Write", "write_file", "write", "create_file", "create", "editor", "str_replace_editor")
_SHELLS = (
    "Bash", "exec_command", "run_shell_command", "bash", "shell_command", "shell", "run_commands", "execute_bash",
    "terminal",
)  # fmt: skip
_PATHS = ("file_path", "filePath", "path", "absolute_path", "filename")
_CONTENTS = ("content", "file_text", "contents", "text", "new_str")
_COMMANDS = ("command", "cmd", "commands")
_FOLDER = re.compile(
    r"(?:<cwd>|<workspace_root>|working directory[^\n:/]{0,40}:\s*`?|working in the directory:\s*`?|"
    r"Workspace Directories:\**\s*-?\s*`?|workspace root folder:\s*`?|\bcwd[\"']?[:=]\s*[\"'`]?)(/[^\s<`\"'),]*)",
    re.IGNORECASE,
)


def folder(ask: ModelAsk) -> str:
    """The client's working folder, as the conversation names it; empty if it does not."""
    found = [hit for text in ask.texts("system", "user") for hit in _FOLDER.findall(text)]
    return str(found[-1]).rstrip("/.") if found else ""


def write(ask: ModelAsk, path: str, content: str, cwd: str) -> ModelCall:
    """A call that writes a file: with the file tool if there is one, else with the shell."""
    tool = _named(ask.tools, _WRITERS, _PATHS, _CONTENTS)
    if tool is None:
        parent = posixpath.dirname(path)
        make = f"mkdir -p {shlex.quote(parent)} && " if parent else ""
        return run(ask, f"{make}printf %s {shlex.quote(content)} > {shlex.quote(path)}")
    place = cwd or folder(ask)
    whole = path if path.startswith("/") or not place else posixpath.join(place, path)
    known = _first(tool, _PATHS, whole) | _first(tool, _CONTENTS, content)
    if "command" in _properties(tool):
        known["command"] = "create"
    return ModelCall(tool.name, _filled(tool, known))


def run(ask: ModelAsk, command: str) -> ModelCall:
    """A call of the client's shell tool."""
    tool = _named(ask.tools, _SHELLS, _COMMANDS)
    if tool is None:
        return ModelCall("shell", {"command": command})
    name = next(n for n in _COMMANDS if n in _properties(tool))
    value: object = command
    if mapping(_properties(tool)[name]).get("type") == "array":
        value = [command] if name == "commands" else ["bash", "-lc", command]
    return ModelCall(tool.name, _filled(tool, {name: value}))


def fit(schema: Mapping[str, object], text: str = "ok") -> object:
    """The smallest value that fits a JSON schema; strings say `text`."""
    for key in ("const", "default"):
        if key in schema:
            return schema[key]
    for key in ("enum", "anyOf", "oneOf", "allOf"):
        choices = schema.get(key)
        if isinstance(choices, list) and choices:
            return choices[0] if key == "enum" else fit(mapping(choices[0]), text)
    kind = schema.get("type")
    kind = str(kind[0] if isinstance(kind, list) and kind else kind or "object").lower()
    if kind == "object":
        inner = mapping(schema.get("properties"))
        wanted = schema.get("required")
        names = wanted if isinstance(wanted, list) else list(inner)
        return {str(name): fit(mapping(inner.get(name)), text) for name in names}
    if kind == "array":
        least = schema.get("minItems")
        return [fit(mapping(schema.get("items")), text)] * int(least) if isinstance(least, int) else []
    return {"string": text, "integer": 0, "number": 0, "boolean": False, "null": None}.get(kind, text)


def fits(schema: Mapping[str, object], value: Mapping[str, object]) -> bool:
    """Whether every required name is given and no unknown one; values are not checked."""
    wanted = schema.get("required")
    needed = set(map(str, wanted)) if isinstance(wanted, list) else set()
    return needed <= set(value) <= set(mapping(schema.get("properties")))


def _named(tools: Sequence[Tool], names: Sequence[str], *needs: Sequence[str]) -> Tool | None:
    able = [t for t in tools if not t.free and all(any(n in _properties(t) for n in need) for need in needs)]
    known = [t for name in names for t in able if t.name == name]
    return known[0] if known else None


def _properties(tool: Tool) -> Mapping[str, object]:
    return mapping(tool.schema.get("properties"))


def _first(tool: Tool, names: Sequence[str], value: object) -> dict[str, object]:
    return next(({name: value} for name in names if name in _properties(tool)), {})


def _filled(tool: Tool, known: Mapping[str, object]) -> dict[str, object]:
    wanted = tool.schema.get("required")
    rest = [str(name) for name in wanted if name not in known] if isinstance(wanted, list) else []
    return {**{name: fit(mapping(_properties(tool).get(name)), "as the task asks") for name in rest}, **known}
