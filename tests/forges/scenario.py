"""One row of the scenario table: a real run against the loopback forge, and what must be true when it has ended."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from ganger.app.checks.project import check_project
from ganger.app.compose import RunOptions, open_lead
from ganger.config import load_project
from ganger.core import events as ev
from ganger.core.delivery.request_merges import BEGIN
from ganger.core.model.task_state import TaskState
from ganger.core.vocabulary import TaskStatus
from ganger.errors import NotFoundError
from tests.engine.git_runs import GitProject, edits, git
from tests.engine.run_projects import task, until
from tests.forges.loopback.ground import Ground
from tests.forges.loopback.manners import QUIET, Manners, Protection
from tests.forges.loopback.people import Remark
from tests.forges.loopback.script import GREEN, Fault, Run, holds
from tests.forges.loopback.server import TOKEN, LoopbackForge, kind_of, send_hook, serving
from tests.forges.loopback.world import Asked, World
from tests.forges.merge_truth import wrong_merges
from tests.forges.truth import Needs, lies

SECRET = "hook-secret"
LEAK = "AKIA" + "IOSFODNN7EXAMPLX"
POLL_SEC = 0.03
# Of an outage or a revoked token: until a task waits for the host.
AWAITED = "awaited"
_SOMEBODY = ("-c", "user.name=Somebody", "-c", "user.email=somebody@example.org")
FULL = '["verified", "committed", "pushed", "ci", "mirrored"]'
CONFIG = """
[delivery]
completion = {completion}
forge = "{kind}"
url = "{url}"
project = "dev/app"
remote = "{remote}"
token_env = "LOOPBACK_TOKEN"
required_jobs = {required}
poll_sec = {poll}
poll_most_sec = 0.1
call_sec = 2
appear_sec = 0.7
ci_sec = 60
ci_most_sec = 60
style = "branch"
{more}
"""


BASES = {
    "red": Run({"check": "ok", "test": "ok"}, red=("!fix.txt",)),
    "green": Run({"check": "ok", "test": "ok"}),
    "running": Run({"check": "ok", "test": "run"}),
}


@dataclass(frozen=True)
class Row:
    """`pushes` is what CI does with the first push, the second and so on. `meanwhile` is what happens at which look.
    `locks`: the tasks work on a repository of a graph, with these locks. `hold`: no CI goes on before so many pushes.

    `ends` is the status of task `a`, with the reason where it is blocked. What is counted is counted by the server:
    pushes, empty commits, runs begun again, change requests. `fixes` are the attempts CI's red cost. `says` must be
    in the reason it ended with, or in a question. `retry` is what happens once it is blocked, before a person has it
    tried again; then no worker is paid again. `unchanged` are answers of 304 at least, `answers` those to webhooks.
    `then` is what people do once the run has ended, before it is led again, `then_again` what they do after that.
    `prompt` must be in the last one a worker got. `unprotected` are files that workers may write all the same.
    `manners` is what the forge does beyond answering. `over_http`: the remote is the forge's own address and wants the
    token, so an outage or a revoked token hits pushes too; `awaited` instead of seconds: until a task waits for the
    host. `timed` is what happens so many seconds after the start.

    Of rows with several tasks: `work` is what attempts of the others write, `ends_of` how others end (DONE) and
    `fixes_of` what CI's red cost them (nothing; -1: whatever). `most`: so many pushes at the most, instead of
    exactly `pushed`. `concurrency`: so many workers at a time, instead of one per task up to 8. `pace`: so many seconds
    each attempt of that task takes. `metadata` is that of tasks, by name. `base` are more files of the project.
    `doing` is what attempts of `a` do instead, by number. `behind`: which tasks a task depends on. `check`: the program
    that verifies.
    """

    name: str
    pushes: Sequence[Sequence[Run]] = ((GREEN,),)
    flavour: str = "forgejo-16"
    ends: str = "DONE"
    pushed: int | None = 1
    empty: int = 0
    reruns: int = 0
    requests: int = 0
    merged: int | None = None
    fixes: int | None = 0
    says: str = ""
    asks: bool | None = None
    faults: Sequence[Fault] = ()
    others: Sequence[Run] = ()
    meanwhile: Sequence[tuple[int, str]] = ()
    before: Sequence[str] = ()
    more: str = ""
    completion: str = FULL
    required: Sequence[str] = ("check", "test")
    attempts: Sequence[Mapping[str, str]] = ()
    tasks: int = 1
    hold: int = 0
    locks: str = ""
    retry: str = ""
    unchanged: int = 0
    answers: Sequence[int] = ()
    skew: float = 0.0
    token: str = TOKEN
    events: Sequence[str] = ()
    never: Sequence[str] = ()
    needs: Needs = field(default_factory=Needs)
    slow: bool = False
    manners: Manners = QUIET
    over_http: bool = False
    timed: Sequence[tuple[float, str]] = ()
    work: Mapping[str, Sequence[Mapping[str, str]]] = field(default_factory=dict)
    metadata: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    base: Mapping[str, str] = field(default_factory=dict)
    doing: Mapping[int, object] = field(default_factory=dict)
    most: int = 0
    ends_of: Mapping[str, str] = field(default_factory=dict)
    fixes_of: Mapping[str, int] = field(default_factory=dict)
    then: Sequence[str] = ()
    prompt: str = ""
    concurrency: int = 0
    pace: Mapping[str, float] = field(default_factory=dict)
    unprotected: Sequence[str] = ()
    behind: Mapping[str, Sequence[str]] = field(default_factory=dict)
    check: str = ""
    then_again: Sequence[str] = ()

    @property
    def blocked(self) -> bool:
        return self.ends.startswith("BLOCKED")


class Scene:
    """The row put up: project, remote, forge."""

    def __init__(self, row: Row, folder: Path) -> None:
        self.row, self.folder = row, folder
        self.ground = Ground(folder / "forge.git")
        self.world = World(self.ground, row.pushes, others=row.others, skew=row.skew, manners=row.manners)
        self.world.hold = row.hold
        self.hooks: list[int] = []
        self.made: GitProject | None = None
        self.hook_port = free_port() if "webhook_port" in row.more else 0

    def project(self, server: LoopbackForge) -> GitProject:
        row = self.row
        names = ["a", *(f"t{n}" for n in range(1, row.tasks))]
        given = row.attempts or [{"a.txt": f"attempt {n}\n"} for n in range(1, 9)]
        own = [row.doing.get(number, edits(files)) for number, files in enumerate(given, 1)]
        script: dict[str, object] = {"a": own}
        script |= {name: [edits({f"{name}.txt": f"{name} {n}\n"}) for n in range(1, 9)] for name in names[1:]}
        script |= {name: [edits(files) for files in attempts] for name, attempts in row.work.items()}
        for name, sec in row.pace.items():
            script[name] = [{"delay": sec, **one} for one in script[name]]  # type: ignore[attr-defined]
        config = CONFIG.format(
            completion=row.completion,
            kind=kind_of(row.flavour),
            url=server.url,
            remote=self.remote(server),
            required=list(row.required),
            poll=POLL_SEC,
            more=row.more.format(port=self.hook_port, remote=self.remote(server)),
        )
        config = _override(config)
        project = GitProject(
            self.folder / "project",
            [self._task(name) for name in names],
            script,
            policy=f"concurrency = {row.concurrency or min(row.tasks, 8)}",
            check=row.check,
            workspace=f"unprotected = {json.dumps(list(row.unprotected))}" if row.unprotected else "",
            more=config + (f'\n[repos.app]\npath = "../app"\nlocks = "{row.locks}"\n' if row.locks else ""),
        )
        project.base = {**project.base, **row.base}
        self.made = project.make()
        Ground.make(self.ground.path, self._other() if row.locks else project.root)
        return project

    def _task(self, name: str) -> dict[str, Any]:
        metadata = {**({"repo": "app"} if self.row.locks else {}), **self.row.metadata.get(name, {})}
        return task(name, *self.row.behind.get(name, ()), **({"metadata": metadata} if metadata else {}))

    def remote(self, server: LoopbackForge) -> str:
        return server.git_url if self.row.over_http else str(self.ground.path)

    def _other(self) -> Path:
        """A repository beside the project, which the tasks work on."""
        place = self.folder / "app"
        place.mkdir()
        (place / "shared.txt").write_text("one\n")
        for words in (["init", "-q", "-b", "main"], ["add", "-A"], [*_SOMEBODY, "commit", "-qm", "begin"]):
            git(place, *words)
        return place

    def act(self, what: str, server: LoopbackForge) -> None:
        match what.partition(" "):
            case "push", _, name:
                self.world.somebody_pushes("main", name or "theirs.txt")
            case "revoke", _, sec:
                server.revoke()
                if sec == AWAITED:
                    self._until_awaited(server)
                elif sec:
                    self._later(float(sec), server.restore)
            case "back", _, _:
                server.answer_again()
            case "restore", _, _:
                server.restore()
            case "approve", _, _:
                self.world.runs[-1].script = GREEN
            case "rerun", _, _:
                assert self.world.again(self.world.runs[-1])
            case "begin", _, _:
                push = self.ground.pushes()[-1]
                self.world.begin(push.after, push.branch, GREEN)
            case "refuse", _, why:
                self.ground.refuse(why)
            case "nothing", _, _:
                pass
            case "again", _, _:
                assert self.made is not None and self.made.ganger("retry", "a").returncode == 0
            case "allow", _, _:
                self.ground.allow()
            case "request", _, branch:
                self.ground.git("branch", branch, self.ground.tip("main"))
                self.world.open_request("there already", "", branch, "main", draft=False)
            case "outage", _, words:
                sec, _, kind = words.partition(" ")
                server.outage(600.0 if sec == AWAITED else float(sec), kind or "refused")
                if sec == AWAITED:
                    self._until_awaited(server)
            case "review", _, words:
                state, _, text = words.partition(" ")
                self.world.review(self.world.newest(), state, text)
            case "remark", _, words:
                path, line, text = words.split(" ", 2)
                newest = self.world.newest().reviews[-1]
                newest.remarks.append(Remark(self.world.number(), path, int(line), text))
            case "dismiss", _, _:
                self.world.newest().reviews[-1].dismissed = True
            case "retitle", _, title:
                self.world.newest().title = title
            case "base", _, how:
                self.world.began_before("main", BASES[how])
            case "onto", _, branch:
                self.world.somebody_pushes(branch, "onto.txt")
            case "close", _, _:
                self.world.newest().state = "closed"
            case "merge", _, how:
                assert self.world.merge(self.world.newest(), "", delete=how == "and delete") != ("", True)
            case "cut", _, words:
                branch, _, count = words.partition(" ")
                self.world.cut(branch or "main", int(count or 1))
            case "when", _, words:
                count, _, then = words.partition(" ")
                self._once(what, then, server, is_due=self.world.own >= int(count))
            case "once", _, words:
                wanted, _, then = words.partition(" ")
                there = self.ground.files(self.ground.tip("main"))
                self._once(what, then, server, is_due=holds(wanted, there))
            case "drop", _, words:
                branch, _, above = words.partition(" ")
                self.world.drop(branch, int(above))
            case "uncut", _, branch:
                self.world.uncut(branch or "main")
            case "await", _, text:
                assert self.made is not None
                until(lambda: self.made is not None and self.made.find(ev.QuestionAsked))
                self.act(f"decide {text}", server)
            case "decide", _, text:
                assert self.made is not None
                for one in [q for q in self.made.state().inbox.questions.values() if q.answer is None]:
                    said = self.made.ganger("answer", one.id, text)
                    assert said.returncode == 0, said.stdout + said.stderr
            case "delete", _, branch:
                assert self.world.delete_branch(branch), branch
            case "protect", _, words:
                branch, _, rule = words.partition(" ")
                self.world.protect(branch, protection(rule))
            case "unprotect", _, branch:
                self.world.protect(branch, None)
            case "label", _, name:
                self.world.label(name)
            case "milestone", _, title:
                self.world.milestone(title)
            case "setting", _, line:
                settings = self.folder / "project" / "ganger.toml"
                settings.write_text(settings.read_text().replace("[delivery]", f"[delivery]\n{line}"))
            case "answer", _, words:
                assert self.made is not None
                name, _, text = words.partition(" ")
                asked = [
                    q.id for q in self.made.state().inbox.questions.values() if q.task == name and q.answer is None
                ]
                assert asked, (words, self.made.state().tasks)
                answered = self.made.ganger("answer", asked[-1], text)
                assert answered.returncode == 0, answered.stderr
            case "soon", _, words:
                self._later(0.05, lambda: self._when_asked(words, server))
            case "undo", _, name:
                self.world.somebody_removes("main", name)
            case "take", _, name:
                assert self.made is not None
                assert self.made.ganger("retry", name).returncode == 0
            case "unlock", _, repo:
                assert self.made is not None
                assert self.made.ganger("unlock", repo or ".", "--why", "it is replaced").returncode == 0
            case "retry", _, _:
                assert self.made is not None
                for name, now in self.made.state().tasks.items():
                    if now.status is TaskStatus.BLOCKED:
                        assert self.made.ganger("retry", name).returncode == 0, name
            case ("hook" | "forged") as kind, _, delivery:
                threading.Thread(target=self._send, args=(kind, delivery), daemon=True).start()
            case _:
                raise ValueError(what)

    def _once(self, what: str, then: str, server: LoopbackForge, *, is_due: bool) -> None:
        if is_due:
            self.act(then, server)
        else:
            self.world.meanwhile.setdefault(self.world.looks + 1, []).append(lambda: self.act(what, server))

    def _when_asked(self, words: str, server: LoopbackForge) -> None:
        """While the run goes on."""
        assert self.made is not None
        name, made = words.partition(" ")[0], self.made
        until((made.folder.path / "ganger.db").exists)
        until(lambda: any(q.task == name and q.options for q in made.state().inbox.questions.values()))
        self.act(f"answer {words}", server)

    def _until_awaited(self, server: LoopbackForge) -> None:
        """The trouble is over once a task waits for the host, however long it takes until one needs it."""

        def is_awaited() -> bool:
            assert self.made is not None
            with contextlib.suppress(NotFoundError):
                return bool(self.made.find(ev.HostAwaited))
            return False

        def act() -> None:
            until(is_awaited)
            server.restore()
            server.answer_again()

        threading.Thread(target=act, daemon=True).start()

    def _later(self, sec: float, act: Callable[[], None]) -> None:
        timer = threading.Timer(sec, act)
        timer.daemon = True
        timer.start()

    def _send(self, kind: str, delivery: str) -> None:
        status = send_hook(self.hook_port, self.row.flavour, SECRET, delivery=delivery, forged=kind == "forged")
        self.hooks.append(status)


def protection(rule: str) -> Protection:
    """`push approvals=1 checks=test,check dismisses_stale up_to_date linear`: what is not named is off."""
    found: dict[str, object] = {}
    for word in rule.split():
        name, _, value = word.partition("=")
        found[name] = int(value) if value.isdigit() else tuple(value.split(",")) if value else True
    return Protection(**found)  # type: ignore[arg-type]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _override(config: str) -> str:
    """Later lines win: TOML has each key once."""
    kept: dict[str, str] = {}
    for line in config.splitlines():
        kept[line.partition("=")[0].strip() if "=" in line else line] = line
    return "\n".join(kept.values())


@dataclass(frozen=True)
class Outcome:
    scene: Scene
    project: GitProject
    server: LoopbackForge
    code: int

    def detail(self) -> str:
        now = self.project.state().tasks["a"]
        asked = [e.text for e in self.project.find(ev.QuestionAsked)]
        return "\n".join([now.detail, *asked, *(e.detail for e in self.project.find(ev.AttemptFailed))])

    def ended(self) -> str:
        return ended_of(self.project.state().tasks["a"])


def ended_of(now: TaskState) -> str:
    return f"{now.status.value}({now.block_reason.value})" if now.block_reason else now.status.value


def play(row: Row, folder: Path) -> Outcome:
    """Runs it to its end and gives the world as it is then."""
    scene = Scene(row, folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LOOPBACK_TOKEN", row.token)
        patch.setenv("LOOPBACK_HOOKS", SECRET)
        with serving(row.flavour, scene.world, faults=row.faults) as server:
            project = scene.project(server)
            for what in row.before:
                scene.act(what, server)
            for look, what in row.meanwhile:
                scene.world.meanwhile.setdefault(look, []).append(lambda what=what: scene.act(what, server))  # type: ignore[misc]
            later = [threading.Timer(sec, scene.act, (what, server)) for sec, what in row.timed]
            for timer in later:
                timer.daemon = True
                timer.start()
            code = _lead(project, 90 + 5 * row.tasks)
            for timer in later:
                timer.cancel()
            if row.retry:
                assert Outcome(scene, project, server, code).ended() == "BLOCKED(external)"
                scene.act(row.retry, server)
                assert project.ganger("retry", "a").returncode == 0
                code = _lead(project, 60)
            for acts in filter(None, (row.then, row.then_again)):
                for what in acts:
                    scene.act(what, server)
                code = _lead(project, 60)
            scene.world.sync()
            assert TOKEN not in "\n".join(map(str, server.log.lines))
    return Outcome(scene, project, server, code)


def merges_of(project: GitProject, world: World) -> list[str]:
    """Merge commits in the target, and in the run's own branch."""
    told = world.ground.git("rev-list", "--merges", "--all")
    branch = project.in_store("rev-list", "--merges", "refs/heads/ganger/r1")
    return [*told.split(), *branch.split()]


def _lead(project: GitProject, most_sec: float) -> int:
    async def lead_on() -> int:
        async with open_lead(found, check_project(found), RunOptions()) as lead:
            return await asyncio.wait_for(lead.run(), most_sec)

    found = load_project(project.root)
    return asyncio.run(lead_on())


def require(row: Row, outcome: Outcome) -> None:
    """Each claim of the row, and what holds for every row."""
    world, project, server = outcome.scene.world, outcome.project, outcome.server
    told = lies(project.events(), world, row.needs)
    assert not told, told
    happened = project.happened("a")
    story = f"{outcome.ended()}: {outcome.detail()}\n{happened}\n{server.summary()}"
    assert outcome.ended() == row.ends, story
    own = world.own if row.pushed is not None else None
    pushed = row.pushed if row.most and world.own <= row.most else own
    counted = (pushed, world.ground.empty_commits(), server.log.count("rerun", status=201), len(world.asked))
    assert counted == (row.pushed, row.empty, row.reruns, row.requests), story
    now = project.state().tasks["a"]
    assert row.fixes in (None, now.counters.ci_fixes) and row.says in outcome.detail(), story
    assert row.merged in (None, len(world.merges)), story
    if 'history = "rebase"' in row.more:
        assert merges_of(project, world) == [], story
    wrong = wrong_merges(project.events(), world, row.needs)
    assert not wrong, (wrong, story)
    for name, other in project.state().tasks.items():
        if name != "a":
            assert ended_of(other) == row.ends_of.get(name, "DONE"), (name, other.detail, story)
            assert row.fixes is None or row.fixes_of.get(name, 0) in (other.counters.ci_fixes, -1), (name, story)
    asked = [e for e in project.find(ev.QuestionAsked) if e.task == "a"]
    assert bool(asked) == (row.blocked or bool(row.retry) if row.asks is None else row.asks), story
    at = -1
    for name in row.events:
        assert name in happened[at + 1 :], (name, story)
        at = happened.index(name, at + 1)
    assert not set(row.never) & set(happened), story
    assert not row.retry or happened.count("attempt_launched") == 1, story
    assert server.log.count("runs", status=304) >= row.unchanged, story
    assert sorted(outcome.scene.hooks) == sorted(row.answers), story
    assert not row.prompt or row.prompt in project.prompt("a", 2), story
    green = {e.sha for e in project.find(ev.CiJudged) if e.verdict == "green"}
    ours = {e.commit for e in project.find(ev.Pushed)}
    for request in world.asked:
        require_kept_current(row, world, request, ours, green)
    if row.locks == "exclusive":
        require_one_by_one(project.events())
    require_bounded(outcome)
    require_no_secret(outcome)


def require_kept_current(row: Row, world: World, request: Asked, ours: Collection[str], green: Collection[str]) -> None:
    """One comment of Ganger's at the most; a text that tells of the commit that is there; no draft that is DONE."""
    own = [one for one in request.said if one.by == world.robot]
    head = request.head or world.head_of(request)
    wanted = "remarks = false" not in row.more
    assert len(own) <= wanted, own
    if row.ends in _REMARKED and head in green:
        assert len(own) == wanted, own
    if BEGIN in request.body and head in ours:
        assert head[:12] in request.body, (head, request.body)
    if row.ends == "DONE":
        assert not request.draft and not request.title.lower().startswith(("wip", "draft")), request
        assert request.labels == (["ganger"] if "labels" in row.more else []), request
        by_hand = any("and delete" in what for _, what in row.meanwhile)
        gone = request.state == "merged" and (by_hand or "delete_branch = true" in row.more)
        assert bool(world.ground.tip(request.branch)) != gone, request


# A comment is written once CI is green, for those who review.
_REMARKED = ("DONE", "BLOCKED(awaiting_review)")


def require_one_by_one(recorded: Sequence[ev.Recorded]) -> None:
    """Whoever begins in the repository is through with it before the next one begins."""
    at_work = ""
    for one in recorded:
        if isinstance(one.event, ev.AttemptStarted):
            assert at_work in ("", one.event.task), f"{one.event.task} began beside {at_work}"
            at_work = one.event.task
        elif isinstance(one.event, ev.TaskSettled):
            at_work = ""


def require_bounded(outcome: Outcome) -> None:
    """One list per interval, however long it takes; jobs only where a run's state changed."""
    log = outcome.server.log
    if not log.lines:
        return
    spent = log.lines[-1].at - log.lines[0].at
    lists = log.count("runs") if "runs" in outcome.server.forge.looks else log.count("status", "tasks")
    assert lists <= spent / POLL_SEC + 12, outcome.server.summary()


def require_no_secret(outcome: Outcome) -> None:
    """Neither the token nor a key that CI printed is in anything that is kept."""
    for place, _, names in os.walk(outcome.project.root / ".ganger"):
        for name in names:
            if "objects" in Path(place).parts:
                continue
            held = (Path(place) / name).read_bytes() if (Path(place) / name).is_file() else b""
            assert TOKEN.encode() not in held and LEAK.encode() not in held, f"{place}/{name}"


def main_of(outcome: Outcome) -> str:
    return git(outcome.scene.folder, f"--git-dir={outcome.scene.ground.path}", "rev-parse", "main")
