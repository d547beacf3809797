"""The loopback forge put together: flavour, world, wire, schema; and webhooks it sends."""

from __future__ import annotations

import hashlib
import hmac
import json
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.client import HTTPConnection
from types import MappingProxyType
from typing import Any

import jsonschema_rs

from . import gitlab_schemas, people_schemas
from .flavour import PROJECT, Flavour
from .forgejo import Forgejo11, Forgejo13, Forgejo16
from .git_http import answer_git, is_git
from .gitea import Gitea25, Gitea27
from .github import GitHub
from .gitlab import GitLab
from .http import Answer, Ask, Log, Wire
from .schemas import NotBySchema, published
from .script import Fault
from .world import World

FLAVOURS: Mapping[str, type[Flavour]] = MappingProxyType(
    {
        "forgejo-16": Forgejo16,
        "forgejo-13": Forgejo13,
        "forgejo-11": Forgejo11,
        "gitea-1.25": Gitea25,
        "gitea-1.27": Gitea27,
        "github": GitHub,
        "gitlab": GitLab,
    }
)
# Calls that are used, that the stored parts of the schemas do not have, and that answer with no JSON.
UNPUBLISHED = frozenset({"stored", "log", "update", "cleared", "git"})
TOKEN = "loopback-token-4711"


def kind_of(flavour: str) -> str:
    """What `[delivery] forge` is called for it."""
    return flavour.partition("-")[0]


class LoopbackForge:
    """Answers from a thread of its own until `stop`."""

    def __init__(
        self,
        flavour: str,
        world: World,
        *,
        faults: Sequence[Fault] = (),
        token: str = TOKEN,
        public: bool = True,
        limited_sec: float = 1.0,
    ) -> None:
        self.world, self.token = world, token
        self.forge = FLAVOURS[flavour](world, token=token, public=public)
        self.wire = Wire(
            self._answer,
            lambda ask: "git" if is_git(ask) else self.forge.kind_of(ask),
            faults=tuple(faults),
            skew=world.skew,
            tags=self.forge.tags,
            limited_sec=limited_sec,
        )
        self.forge.address = self.url
        self._thread = threading.Thread(target=self.wire.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.wire.server_address[1]}"

    @property
    def git_url(self) -> str:
        """The repository over HTTP: this wants the token too."""
        return f"{self.url}/{PROJECT}.git"

    @property
    def log(self) -> Log:
        return self.wire.log

    def _answer(self, ask: Ask) -> Answer:
        if is_git(ask):
            return answer_git(ask, self.world.ground, self.token, revoked=self.wire.revoked.is_set())
        if self.wire.revoked.is_set():
            return Answer(401, {"message": "invalid token"})
        answer = self.forge.answer(ask)
        self.require(ask, answer)
        return answer

    def require(self, ask: Ask, answer: Answer) -> None:
        """Every answer with a body is one the forge publishes."""
        if answer.text is not None or answer.body is None:
            return
        kind = self.forge.kind_of(ask)
        if not self.forge.schema:
            rule = gitlab_schemas.ANSWERS.get(kind) if answer.status < 300 else None
            if rule is not None and not jsonschema_rs.is_valid(rule, answer.body):
                raise NotBySchema(f"{ask.method} {ask.path}: {next(jsonschema_rs.iter_errors(rule, answer.body))}")
            return
        held = (people_schemas.GITHUB if self.forge.published_under else people_schemas.GITEA).get(kind)
        if held is not None or kind in UNPUBLISHED:
            if held is not None and answer.status < 300 and not jsonschema_rs.is_valid(held, answer.body):
                fault = next(jsonschema_rs.iter_errors(held, answer.body))
                raise NotBySchema(f"{ask.method} {ask.path}: {fault}")
            return
        path = ask.path.removeprefix(self.forge.published_under)
        known = published(self.forge.schema).require(ask.method, path, answer.status, answer.body)
        if not known and answer.status < 300 and "graphql" not in ask.path:
            raise NotBySchema(f"{ask.method} {ask.path} → {answer.status} is not published")

    def revoke(self) -> None:
        self.wire.revoked.set()

    def restore(self) -> None:
        self.wire.revoked.clear()

    def outage(self, sec: float, kind: str = "refused") -> None:
        """By the wall clock: `refused` (nobody listens) or `502` (each request is answered so)."""
        if kind == "refused":
            self.wire.refuse(sec)
        else:
            self.wire.storm_until = time.time() + sec

    def answer_again(self) -> None:
        """The outage is over before its time."""
        self.wire.storm_until = 0.0
        self.wire.come_back()

    def start(self) -> LoopbackForge:
        self._thread.start()
        return self

    def stop(self) -> None:
        self.wire.stop()
        self._thread.join(5)

    def summary(self) -> str:
        """For people: how much it was asked."""
        kinds = sorted({line.kind for line in self.log.lines})
        counts = ", ".join(f"{kind} {self.log.count(kind)}" for kind in kinds)
        return (
            f"{len(self.log.lines)} requests, {self.log.per_minute():.0f} a minute ({counts}); {self.world.looks} looks"
        )


@contextmanager
def serving(flavour: str, world: World, **more: Any) -> Iterator[LoopbackForge]:
    """Ends with a fault where an answer was none of the forge's."""
    forge = LoopbackForge(flavour, world, **more).start()
    try:
        yield forge
    finally:
        forge.stop()
    assert forge.log.faults == [], forge.log.faults


def send_hook(port: int, flavour: str, secret: str, *, delivery: str = "d-1", forged: bool = False) -> int:
    """A webhook as the forge signs it; the answer's status."""
    body = json.dumps({"action": "completed", "repository": {"full_name": "dev/app", "path_with_namespace": "dev/app"},
                       "project": {"path_with_namespace": "dev/app"}}).encode()  # fmt: skip
    key = "another secret" if forged else secret
    signature = hmac.new(key.encode(), body, hashlib.sha256).hexdigest()
    kind = kind_of(flavour)
    headers = {"Content-Type": "application/json", "Content-Length": str(len(body))}
    if kind == "gitlab":
        headers |= {"X-Gitlab-Event": "Pipeline Hook", "X-Gitlab-Token": key, "X-Gitlab-Event-UUID": delivery}
    elif kind == "github":
        headers |= {"X-GitHub-Event": "workflow_run", "X-GitHub-Delivery": delivery}
        headers["X-Hub-Signature-256"] = f"sha256={signature}"
    else:
        for name in ("Gitea", "Forgejo"):
            headers |= {f"X-{name}-Event": "action_run_success", f"X-{name}-Delivery": delivery}
            headers[f"X-{name}-Signature"] = signature
    connection = HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request("POST", "/", body, headers)
        return connection.getresponse().status
    finally:
        connection.close()
