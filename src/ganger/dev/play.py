"""Plays scenarios: finds the scenario and the step for a conversation, and turns the step into an answer."""

from __future__ import annotations

import json
import math
import re
import secrets
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import cast

from ganger.dev import toolbox
from ganger.dev.conversation import ModelAsk, ModelCall, Turn, mapping, own_words
from ganger.dev.reply import ModelFault, ModelReply, Stop, Usage
from ganger.dev.scenario import ACTIONS, Scenario, Scenarios, ScenarioStep

_TASK_LINE = re.compile(r"^# Task (\S.*)$", re.MULTILINE)
_TASK_FIELD = re.compile(r'"task_id": ("(?:[^"\\]|\\.)*")')
_SIDE = re.compile(r"\b(title|summar|topic|classif|memor(y|ies)|rout(er|ing))", re.IGNORECASE)
_FIRST_TOKENS = 1000
_FORM_TOOLS = ("StructuredOutput", "structured_output")
_FAULTS = {400: "request", 401: "auth", 402: "billing", 403: "forbidden", 429: "rate", 529: "overloaded"}
_NAMED_FAULTS = {"credit": 0, "quota": 429, "context": 400, "pairing": 400, "signature": 400}


@dataclass(frozen=True, slots=True)
class Played:
    """What to do with one request: its step, and the resulting answer or fault."""

    scenario: Scenario
    number: int
    step: ScenarioStep
    reply: ModelReply
    fault: ModelFault | None = None


class Player:
    """Chooses only by the conversation; only steps with `times` are counted in memory."""

    def __init__(self, known: Scenarios) -> None:
        self._known = known
        self._lock = threading.Lock()
        self._played: Counter[tuple[str, bool, int]] = Counter()

    def play(self, ask: ModelAsk) -> Played:
        scenario = self._scenario(ask)
        if side(ask):
            return Played(scenario, -1, ScenarioStep("text", "side"), _aside(ask))
        since, earlier = since_prompt(ask.turns)
        again = bool(scenario.resumed) and (earlier or _told_twice(ask, scenario))
        steps = scenario.resumed if again else scenario.steps
        number = self._number(steps, groups(since), (scenario.name, again))
        step = steps[number] if number < len(steps) else ScenarioStep("result", {})
        fault = _fault(step) if step.kind == "error" else None
        return Played(scenario, number, step, _reply(ask, scenario, step), fault)

    def _scenario(self, ask: ModelAsk) -> Scenario:
        users = list(ask.texts("user"))
        for text in (users[-1:], users):
            for scenario in self._known.all:
                if scenario.match and any(scenario.match in words for words in text):
                    return scenario
        return self._known.default

    def _number(self, steps: Sequence[ScenarioStep], done: int, key: tuple[str, bool]) -> int:
        """The first step that is neither done in the conversation nor used up; the last one repeats."""
        with self._lock:
            left = done
            for number, step in enumerate(steps):
                acts = step.kind in ACTIONS
                if left and acts:
                    left -= 1
                elif (not left or number == len(steps) - 1) and self._spend(step, (*key, number)):
                    return number
            last = len(steps) - 1
            return last if steps[last].number("times") is None else len(steps)

    def _spend(self, step: ScenarioStep, key: tuple[str, bool, int]) -> bool:
        most = step.number("times")
        if most is not None and self._played[key] >= most:
            return False
        self._played[key] += 1
        return True


def side(ask: ModelAsk) -> bool:
    """Whether a request is not part of the work: a title, a summary, a router's choice, a probe of one token."""
    if ask.tools:
        return False
    return ask.schema is not None or ask.most_tokens == 1 or any(map(_SIDE.search, ask.texts("system")))


def since_prompt(turns: Sequence[Turn]) -> tuple[Sequence[Turn], bool]:
    """The turns after the newest prompt, and whether there was work on an earlier prompt."""
    start, prompts, open_prompt = 0, 0, False
    for number, turn in enumerate(turns):
        if turn.role == "user" and own_words(turn.text):
            prompts += not open_prompt
            start, open_prompt = number + 1, True
        elif turn.role in ("assistant", "tool"):
            open_prompt = False
    return turns[start:], prompts > 1


def _told_twice(ask: ModelAsk, scenario: Scenario) -> bool:
    """Whether an earlier prompt was repeated: some clients drop a lost call, so the new prompt directly follows the old
    one."""
    texts = list(ask.texts("user"))
    if scenario.again and any(scenario.again in text for text in texts):
        return True
    return bool(scenario.match) and sum(scenario.match in text for text in texts) > 1


def groups(turns: Sequence[Turn]) -> int:
    """How often calls were answered; parallel calls count once."""
    return sum(turn.role == "tool" for turn in turns)


def tokens(ask: ModelAsk) -> int:
    """The input tokens of a conversation, if the scenario does not set them."""
    return _FIRST_TOKENS + math.ceil(ask.length() / 4)


def _reply(ask: ModelAsk, scenario: Scenario, step: ScenarioStep) -> ModelReply:
    calls = _calls(ask, scenario, step)
    text = _text(ask, step)
    stop = {"length": Stop.LENGTH, "refuse": Stop.REFUSAL}.get(step.kind, Stop.CALLS if calls else Stop.END)
    reply = ModelReply(secrets.token_hex(8), text, step.text("think"), calls, stop)
    return replace(reply, usage=_usage(ask, reply, mapping(step.options.get("usage"))))


def _usage(ask: ModelAsk, reply: ModelReply, fixed: Mapping[str, object]) -> Usage:
    thinking = math.ceil(len(reply.think) / 4)
    said = len(reply.text) + sum(len(json.dumps(dict(c.input))) + len(c.text or "") for c in reply.calls)
    counted = {"input": tokens(ask), "output": max(1, math.ceil(said / 4)) + thinking, "thinking": thinking}
    given = {name: value for name, value in fixed.items() if isinstance(value, int)}
    return Usage(**{**counted, **given})


def _calls(ask: ModelAsk, scenario: Scenario, step: ScenarioStep) -> tuple[ModelCall, ...]:
    wishes = cast("tuple[ScenarioStep, ...]", step.value) if step.kind == "calls" else (step,)
    made = [_call(ask, scenario, wish) for wish in wishes if wish.kind in ACTIONS]
    if step.kind == "result" and _form_tool(ask):
        made = [ModelCall(_form_tool(ask), _fields(ask, mapping(step.value)))]
    return tuple(replace(call, id=f"{secrets.token_hex(8)}{number}") for number, call in enumerate(made))


def _call(ask: ModelAsk, scenario: Scenario, wish: ScenarioStep) -> ModelCall:
    if wish.kind == "run":
        return toolbox.run(ask, str(wish.value))
    given = mapping(wish.value)
    if wish.kind == "write":
        return toolbox.write(ask, str(given.get("path", "")), str(given.get("content", "")), scenario.cwd)
    name = str(given.get("name", ""))
    value = given.get("input")
    if isinstance(value, str) or any(tool.name == name and tool.free for tool in ask.tools):
        return ModelCall(name, text=str(value))
    return ModelCall(name, mapping(value))


def _form_tool(ask: ModelAsk) -> str:
    """The tool some clients offer for a structured answer, unless the last turn used it."""
    used = {call.name for turn in ask.turns[-2:] for call in turn.calls}
    return next((tool.name for tool in ask.tools if tool.name in _FORM_TOOLS and tool.name not in used), "")


def _text(ask: ModelAsk, step: ScenarioStep) -> str:
    if step.kind == "result":
        return _result(ask, mapping(step.value))
    if step.kind == "text":
        return _formed(ask, str(step.value))
    if step.kind == "refuse":
        return step.value if isinstance(step.value, str) else "I cannot help with that."
    if step.kind == "length":
        return step.value if isinstance(step.value, str) else "This answer is cut before it says any"
    if step.kind in ACTIONS:
        return step.text("say")
    return step.text("say") or "Working on it: this answer does not come to its end."


def _formed(ask: ModelAsk, text: str) -> str:
    if ask.schema is None:
        return text
    try:
        json.loads(text)
    except ValueError:
        return json.dumps(toolbox.fit(ask.schema, text))
    return text


def _fields(ask: ModelAsk, given: Mapping[str, object]) -> dict[str, object]:
    body = {"contract_version": "2.0", "task_id": _task(ask), "status": "DONE", "summary": "Did what was asked."}
    return {**body, **given}


def _result(ask: ModelAsk, given: Mapping[str, object]) -> str:
    fields = _fields(ask, given)
    block = json.dumps(fields, ensure_ascii=False)
    if ask.schema is not None:
        return block if toolbox.fits(ask.schema, fields) else _formed(ask, "Done.")
    return f"Done.\n\n<<<TASK_RESULT_V2>>>\n{block}\n<<<END_TASK_RESULT_V2>>>\n"


def _task(ask: ModelAsk) -> str:
    for text in reversed(list(ask.texts("user"))):
        field = _TASK_FIELD.findall(text)
        if field:
            return str(json.loads(field[-1]))
        line = _TASK_LINE.search(text)
        if line:
            return line.group(1).strip()
    return "task"


def _aside(ask: ModelAsk) -> ModelReply:
    text = json.dumps(toolbox.fit(ask.schema, "A small task")) if ask.schema is not None else "A small task"
    reply = ModelReply(secrets.token_hex(8), text)
    return replace(reply, usage=_usage(ask, reply, {}))


def _fault(step: ScenarioStep) -> ModelFault:
    value = step.value
    status = int(value) if isinstance(value, int) else _NAMED_FAULTS.get(str(value), 500)
    kind = str(value) if isinstance(value, str) else _FAULTS.get(status, "server" if status >= 500 else "request")
    return ModelFault(
        kind, status, step.text("message"), step.number("retry_after"), step.number("reset_at"), now=time.time()
    )
