"""What every flavour of the loopback forge shares: its calls by pattern, who may come in, pages."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from .http import Answer, Ask
from .script import OVER
from .world import Made, World

Calls = Sequence[tuple[str, str, str, str]]
Calling = Callable[..., Answer]
OWNER, NAME = "dev", "app"
PROJECT = f"{OWNER}/{NAME}"


class Flavour:
    """One kind of forge in one version. `calls` are (method, pattern, kind, name of the method that answers)."""

    calls: ClassVar[Calls] = ()
    base = ""
    published_under = ""
    looks = frozenset({"runs"})
    tags = False
    schema = ""
    unparsed_as = "job"
    left_open = False
    closes_with_branch = True
    protected_says = "Not allowed to push to protected branch"
    # What takes its time by itself, and lets others in meanwhile.
    slow = frozenset({"merge"})

    def __init__(self, world: World, *, token: str = "", public: bool = True) -> None:
        self.world, self.token, self.public = world, token, public
        self.address = ""
        world.unparsed_as, world.left_open = self.unparsed_as, self.left_open
        world.closes_with_branch, world.protected_says = self.closes_with_branch, self.protected_says
        self._calls = [
            (method, re.compile(self.base + pattern), kind, getattr(self, name))
            for method, pattern, kind, name in self.calls
        ]

    def _found(self, ask: Ask) -> tuple[str, Calling | None, tuple[str, ...]]:
        for method, pattern, kind, calling in self._calls:
            fits = pattern.fullmatch(ask.path)
            if fits and method == ask.method:
                return kind, calling, fits.groups()
        return "unknown", None, ()

    def kind_of(self, ask: Ask) -> str:
        return self._found(ask)[0]

    def answer(self, ask: Ask) -> Answer:
        kind, calling, words = self._found(ask)
        if calling is None:
            return Answer(404, {"message": "not found"})
        denied = self.denied(ask, kind)
        if denied is not None:
            return denied
        with self.world.lock:
            if kind in self.looks:
                self.world.look()
            else:
                self.world.sync()
            if kind not in self.slow:
                return calling(ask, *words)
        return calling(ask, *words)

    def denied(self, ask: Ask, kind: str) -> Answer | None:
        given = given_token(ask)
        if given == self.token and given:
            return None
        needs = kind == "user" or ask.method != "GET" or not self.public
        if given or needs:
            return Answer(401, {"message": "token is required" if not given else "invalid token"})
        return None


def given_token(ask: Ask) -> str:
    said = ask.headers.get("authorization", "")
    bare = said.partition(" ")[2] if said.lower().startswith(("token ", "bearer ")) else ""
    return bare or ask.headers.get("private-token", "")


def page_of(ask: Ask, rows: Sequence[Any]) -> list[Any]:
    page, most = ask.page
    return list(rows[(page - 1) * most : page * most])


def matching(world: World, ask: Ask, word: str = "head_sha") -> list[Made]:
    """An empty filter is none: then all come (as forges do it)."""
    runs = world.visible()
    wanted = ask.query.get(word, "")
    if wanted:
        runs = [run for run in runs if run.sha == wanted]
    event = ask.query.get("event") or ask.query.get("source")
    return [run for run in runs if run.script.event == event] if event else runs


def completed(words: dict[str, str]) -> tuple[str, str | None]:
    """The run's status and conclusion as GitHub and Gitea since 1.25 see it."""
    seen = set(words.values())
    if seen & {"approve"}:
        return "completed", "action_required"
    if not seen <= OVER:
        return ("in_progress" if seen & (OVER | {"run"}) else "queued"), None
    for word, conclusion in (("fail", "failure"), ("timeout", "timed_out"), ("cancel", "cancelled")):
        if word in seen:
            return "completed", conclusion
    return "completed", "skipped" if seen == {"skip"} else "success"
