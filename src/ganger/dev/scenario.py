"""The played model's script: scenarios, chosen by a word in the conversation, each a list of steps."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ganger.dev.conversation import mapping
from ganger.errors import Fault, InputError

KINDS = ("text", "result", "write", "run", "tool", "calls", "error", "hang", "drop", "garbage", "refuse", "length")
ACTIONS = frozenset({"write", "run", "tool", "calls"})
_OPTIONS = frozenset({"usage", "delay", "think", "times", "retry_after", "reset_at", "message", "where", "say"})
_FIELDS = frozenset({"match", "steps", "resumed", "again", "cwd", "model"})


@dataclass(frozen=True, slots=True)
class ScenarioStep:
    """One answer of the model; `value` is the value of the kind's key."""

    kind: str
    value: object
    options: Mapping[str, object] = field(default_factory=dict)

    def number(self, name: str) -> float | None:
        value = self.options.get(name)
        return float(value) if isinstance(value, int | float) else None

    def text(self, name: str) -> str:
        value = self.options.get(name)
        return value if isinstance(value, str) else ""


@dataclass(frozen=True, slots=True)
class Scenario:
    """A named list of steps, for conversations in which a user message contains `match`.

    `resumed` is played instead when there was work on an earlier prompt, or a user message contains `again`. `cwd` is
    the client's folder, where its requests do not name it; `model` is the model name in answers.
    """

    name: str
    steps: tuple[ScenarioStep, ...]
    match: str = ""
    resumed: tuple[ScenarioStep, ...] = ()
    again: str = ""
    cwd: str = ""
    model: str = ""


@dataclass(frozen=True, slots=True)
class Scenarios:
    """Every scenario of a file, in order, and the one for conversations that match none."""

    all: tuple[Scenario, ...]
    default: Scenario


DONE = Scenario("done", (ScenarioStep("result", {}),))


def load(file: Path) -> Scenarios:
    """Reads a scenario file; an error says what is wrong with it and where."""
    try:
        return scenarios(json.loads(file.read_text(encoding="utf-8")))
    except OSError as error:
        raise _wrong(f"cannot be read: {error.strerror}", str(file)) from error
    except ValueError as error:
        raise _wrong(f"is not JSON: {error}", str(file)) from error


def scenarios(value: object) -> Scenarios:
    """Scenarios from a Python value: the whole form, one scenario, a list of steps, or nothing."""
    if value is None:
        return Scenarios((), DONE)
    if isinstance(value, list):
        value = {"steps": value}
    if not isinstance(value, Mapping):
        raise _wrong("a scenario file holds an object or a list of steps")
    if "scenarios" not in value:
        one = _scenario("default", value)
        return Scenarios((one,) if one.match else (), DONE if one.match else one)
    found = tuple(_scenario(str(name), body) for name, body in mapping(value["scenarios"]).items())
    wanted = value.get("default")
    if wanted is None:
        return Scenarios(found, DONE)
    named = [one for one in found if one.name == wanted]
    if not named:
        raise _wrong(f'"default" names {wanted!r}, which is not a scenario here')
    return Scenarios(found, named[0])


def _scenario(name: str, body: object) -> Scenario:
    known = mapping(body)
    unknown = set(known) - _FIELDS
    if unknown or not isinstance(known.get("steps"), list) or not known["steps"]:
        raise _wrong(f'scenario {name!r} needs "steps", a list; it may have {sorted(_FIELDS - {"steps"})}')
    return Scenario(
        name=name,
        steps=_steps(name, known["steps"]),
        match=str(known.get("match", "")),
        resumed=_steps(name, known.get("resumed", [])),
        again=str(known.get("again", "")),
        cwd=str(known.get("cwd", "")),
        model=str(known.get("model", "")),
    )


def _steps(name: str, rows: object) -> tuple[ScenarioStep, ...]:
    if not isinstance(rows, list):
        raise _wrong(f"the steps of scenario {name!r} must be a list")
    return tuple(step(row, f"scenario {name!r}, step {number}") for number, row in enumerate(rows, start=1))


def step(row: object, where: str) -> ScenarioStep:
    """One step; exactly one key says its kind."""
    known = mapping(row)
    kinds = [key for key in KINDS if key in known]
    unknown = set(known) - set(KINDS) - _OPTIONS
    if len(kinds) != 1 or unknown:
        raise _wrong(f"{where}: needs exactly one of {', '.join(KINDS)}; not known: {sorted(unknown) or 'nothing'}")
    value = known[kinds[0]]
    if kinds[0] == "calls":
        value = _steps(where, value)
        if any(inner.kind not in ACTIONS - {"calls"} for inner in value):
            raise _wrong(f'{where}: "calls" holds write, run and tool steps only')
    return ScenarioStep(kinds[0], value, {key: known[key] for key in known if key in _OPTIONS})


def _wrong(message: str, source: str = "the scenario") -> InputError:
    hint = "ganger dev model-server --help shows the form"
    return InputError(source, [Fault("", "INVALID_INPUT", message)], hint=hint)
