"""Settings and task metadata without effect in the project's mode: reported, or refused (G24)."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from ganger.agents.table import TAKES, WITHOUT_SANDBOX, require_kind
from ganger.app.checks.project import Checked
from ganger.config import PROJECT_FILE, Project
from ganger.contracts.manifest import RetryPolicy
from ganger.core.failures.classes import known_class
from ganger.core.model.ledger import completion_in, style_in
from ganger.core.model.workers import PULL
from ganger.core.settings.applicability import (
    DIRECT,
    KNOWN_METADATA,
    NO_ROLLBACK,
    Circumstances,
    SettingEffect,
    disordered,
    inverted,
    judge_metadata,
    judge_setting,
)
from ganger.core.settings.near_names import near_name
from ganger.errors import Fault, GangerError, InputError

SETTING, METADATA, NEAR_MISS = "SETTING_WITHOUT_EFFECT", "METADATA_WITHOUT_EFFECT", "METADATA_NEAR_MISS"
_MOST_TOLD = 50
_HEALER = "healer"
_REVIEWERS = ("person", "agent")


@dataclass
class Ineffective:
    """`refused` would drop a safeguard that was asked for; `told` has no effect and is only reported."""

    refused: list[Fault] = field(default_factory=list)
    told: list[Fault] = field(default_factory=list)

    def add(self, fault: Fault, effect: SettingEffect) -> None:
        (self.refused if effect is SettingEffect.REFUSED else self.told).append(fault)


def ineffective(project: Project, checked: Checked) -> Ineffective:
    """Everything without effect, at once. Without a project only the manifest is judged; of a manifest with faults,
    whatever can be read."""
    found = Ineffective()
    tasks = _words_of(project, checked)
    circumstances = _AllCircumstances(project, tasks)
    if project.has_file:
        _settings(project, checked, circumstances, found)
        _kinds(project, found)
        _steps(project, checked, found)
        _profiles(project, checked, found)
    _tasks(project, tasks, circumstances, found)
    known = {fault.path for fault in checked.faults}
    found.refused = [fault for fault in found.refused if not _is_told(fault.path, known)]
    known |= {fault.path for fault in found.refused}
    found.told = _bounded([fault for fault in found.told if not _is_told(fault.path, known)])
    return found


def _is_told(path: str, known: set[str]) -> bool:
    """Whether the setting, or its section, already has a fault."""
    return path in known or any(path.startswith(f"{one}.") for one in known)


def require_effect(project: Project, checked: Checked) -> list[str]:
    """The warnings of a run. A run that has not begun is refused if a safeguard would be missing."""
    # Imported here: commands that only read need none of it and run often.
    from ganger.app.run_places import place_of
    from ganger.app.runs import has_begun

    found = ineffective(project, checked)
    assert checked.manifest is not None
    if found.refused and not has_begun(place_of(project, checked.manifest.run_id)):
        raise InputError(
            str(checked.source),
            found.refused,
            hint="remove what has no effect here, or set what it needs; ganger validate lists all of it",
        )
    return [f"{fault.path}: {fault.message}" for fault in (*found.refused, *checked.warnings, *found.told)]


# --- settings ---------------------------------------------------------------------------------------------------------


def _settings(project: Project, checked: Checked, circumstances: _AllCircumstances, found: Ineffective) -> None:
    values = {setting.key: setting.value for setting in project.settings()}
    for key in project.origins:
        value = values.get(key)
        finding = None if _is_nothing(value) else judge_setting(key, value, circumstances.of_setting(key, value))
        if finding is not None:
            text = f"{_shown(value)} has no effect: {finding.why}"
            found.add(_of_setting(project, finding.key, text), finding.effect)
    written = frozenset(project.origins)
    for finding in (*inverted(values), *disordered(values, written)):
        if finding.key in written:
            found.add(_of_setting(project, finding.key, finding.why), finding.effect)


def _kinds(project: Project, found: Ineffective) -> None:
    """Also for an agent that no role uses: a run that needs it is refused."""
    for name, section in project.config.agents.items():
        try:
            require_kind(name, section.kind)
        except InputError as unknown:
            fault = unknown.faults[0]
            found.told.append(Fault(f"{PROJECT_FILE}:{fault.path}", fault.code, fault.message))


def _is_nothing(value: object) -> bool:
    return value is None or value == "" or value == [] or value == {}


def _of_setting(project: Project, key: str, text: str) -> Fault:
    """With the setting's origin, unless that is the project's own file."""
    origin = project.origins[key]
    by = "" if origin == str(project.root / PROJECT_FILE) else f" (from {origin})"
    return Fault(f"{PROJECT_FILE}:{key}", SETTING, text + by)


def _shown(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 60 else f"{text[:57]}…"


def _steps(project: Project, checked: Checked, found: Ineffective) -> None:
    """Tiers and patterns for steps that do not exist."""
    if checked.profiles is None:
        return
    steps = {f"{name}/{step.name}" for name, one in checked.profiles.profiles.items() for step in one.steps}
    for key in project.config.verify.expect:
        if key not in steps:
            near = near_name(key, steps)
            meant = f"; {near!r} is" if near else ""
            known = ", ".join(sorted(steps)[:8])
            text = f"there is no step {key!r} in {project.config.verify.profiles_file}{meant}; there are: {known}"
            found.refused.append(Fault(f"{PROJECT_FILE}:verify.expect.{key}", "UNKNOWN_STEP", text))


def _profiles(project: Project, checked: Checked, found: Ineffective) -> None:
    """In git modes a failed change does not affect others, so there is nothing to roll back."""
    mode, name = project.config.workspace.mode, project.config.verify.profiles_file
    for profile, one in (checked.profiles.profiles if checked.profiles is not None and mode != DIRECT else {}).items():
        if not one.rollback_on_failure:
            found.told.append(Fault(f"{name}:profiles.{profile}.rollback_on_failure", SETTING, NO_ROLLBACK))


@dataclass(frozen=True, slots=True)
class _TaskWords:
    """What one task says, even if its manifest has other faults."""

    role: str
    repo: str
    review: str
    metadata: Mapping[str, Any]
    retry_policy: RetryPolicy | None = None


def _words_of(project: Project, checked: Checked) -> list[_TaskWords]:
    if checked.manifest is not None:
        both = zip(checked.specs, checked.manifest.tasks, strict=True)
        return [_TaskWords(spec.role, spec.repo, spec.review, task.metadata, task.retry_policy) for spec, task in both]
    found: list[_TaskWords] = []
    for one in checked.references:
        review = one.metadata.get("review")
        known = one.repo if one.repo in project.config.repos else ""
        found.append(_TaskWords(one.role or "worker", known, review if isinstance(review, str) else "", one.metadata))
    return found


class _AllCircumstances:
    """The circumstances of a run for each repository, agent, role and task; the sandbox is tried only if that matters.
    If no task can be read, everything that tasks could cause is assumed."""

    def __init__(self, project: Project, tasks: Sequence[_TaskWords]) -> None:
        self.project, self.config = project, project.config
        anything = not tasks
        self.used = sorted(self.config.repos if anything else {task.repo for task in tasks}) or [""]
        self._reviews: dict[str, set[str]] = {repo: set(_REVIEWERS) for repo in self.used} if anything else {}
        for task in tasks:
            by = task.review or project.delivery_of(task.repo).review
            self._reviews.setdefault(task.repo, set()).update({by} - {"", "none"})
        self._task_roles = set(self.config.roles) if anything else {task.role for task in tasks}
        self._by_repo: dict[str, Circumstances] = {}
        self._by_task: dict[tuple[str, str, bool], Circumstances] = {}

    def of_repo(self, repo: str) -> Circumstances:
        if repo not in self._by_repo:
            self._by_repo[repo] = self._circumstances(repo)
        return self._by_repo[repo]

    def _circumstances(self, repo: str) -> Circumstances:
        config, section = self.config, self.project.delivery_of(repo)
        known = config.repos.get(repo)
        return Circumstances(
            mode=config.workspace.mode,
            schedule=config.policy.heal_schedule,
            healer=_heals(self.project),
            listens=config.worker.listen,
            http=config.worker.http,
            census=config.verify.census,
            notifies=bool(config.notify.urls or config.notify.webhook or config.notify.desktop),
            walls="" if config.sandbox.use == "off" else "bubblewrap",
            completion=frozenset(completion_in(config.workspace.mode, section.completion, section.forge)),
            style=style_in(config.workspace.mode, section.style, section.forge),
            forge=section.forge,
            mirror_command=bool(section.mirror_command),
            auto_merge=section.auto_merge,
            expects_ci=section.expects_ci,
            webhooks=bool(section.webhook_port),
            reviews=frozenset(self._reviews.get(repo, ())),
            repos=bool(config.repos),
            interface=bool(known is not None and known.interface),
            merging=config.workspace.merging if config.workspace.mode != "direct" else "queue",
        )

    def of_setting(self, key: str, value: object) -> list[Circumstances]:
        section, _, rest = key.partition(".")
        if section == "agents":
            name = _named(rest, self.config.agents)
            given = self.of_repo("")
            if rest.endswith(".permissions") and value == "edit":
                given = replace(given, walls=self.sandbox)
            return [replace(given, takes=self._taken(name, given.walls))] if name else []
        if section == "roles":
            name = _named(rest, self.config.roles)
            return [self.of_role(name)] if name else []
        if section == "repos":
            name = _named(rest, self.config.repos)
            return [self.of_repo(name)] if name in self.used else []
        if key == "sandbox.network" and value != "allow":
            return [replace(self.of_repo(""), walls=self.sandbox)]
        return [self.of_repo(repo) for repo in self.used]

    def of_role(self, name: str) -> Circumstances:
        role = self.config.roles[name]
        marks = role.strong_when if role.strong_model or role.strong_effort else []
        serves = name == _HEALER or name in {self.project.delivery_of(repo).reviewer for repo in self.used}
        works = not serves or name in self._task_roles
        given = self.of_repo("")
        return replace(given, takes=self._taken(role.agent, given.walls), works=works, marks=frozenset(marks))

    def of_task(self, task: _TaskWords) -> Circumstances:
        sort = (task.role, task.repo, bool(task.metadata.get("files_read")))
        if sort not in self._by_task:
            self._by_task[sort] = self._of_task(*sort)
        return self._by_task[sort]

    def _of_task(self, role: str, repo: str, reads: bool) -> Circumstances:
        marks = self.of_role(role).marks if role in self.config.roles else frozenset()
        given = replace(self.of_repo(repo), marks=marks)
        return replace(given, walls="" if self._asks_for_work(role) else self.sandbox) if reads else given

    def _asks_for_work(self, role: str) -> bool:
        """Whether a role's tasks go to sessions, which run outside Ganger's sandbox."""
        known = self.config.roles.get(role)
        section = self.config.agents.get(known.agent) if known is not None else None
        return section is not None and section.kind == PULL

    def _taken(self, agent: str, sandbox: str) -> frozenset[str] | None:
        section = self.config.agents.get(agent)
        taken = TAKES.get(section.kind) if section is not None else None
        if section is None or taken is None or not sandbox:
            return taken
        return taken - WITHOUT_SANDBOX.get(section.kind, frozenset())

    @property
    def sandbox(self) -> str:
        return _sandbox_name(self.project)


def _heals(project: Project) -> bool:
    return _HEALER in project.config.roles and project.config.policy.heal_schedule != "off"


def _sandbox_name(project: Project) -> str:
    """The sandbox that works here; if one is required and none works, the run itself reports it."""
    # Imported here: it imports every adapter, and few settings need it.
    from ganger.app.sandbox import sandbox_of

    try:
        sandbox = sandbox_of(project)
    except GangerError:
        return ""
    return "" if sandbox.name == "none" else sandbox.name


def _named(rest: str, names: Iterable[str]) -> str:
    return next((name for name in names if rest.startswith(f"{name}.")), "")


# --- tasks ------------------------------------------------------------------------------------------------------------


def _tasks(project: Project, tasks: Sequence[_TaskWords], circumstances: _AllCircumstances, found: Ineffective) -> None:
    """The same mistake in many tasks is reported once, with the number of tasks."""
    told: dict[tuple[str, str, str], tuple[Fault, SettingEffect]] = {}
    times: Counter[tuple[str, str, str]] = Counter()
    for index, task in enumerate(tasks):
        for key, fault, effect in _of_task(project, task, index, circumstances):
            sort = (key, fault.code, fault.message)
            told.setdefault(sort, (fault, effect))
            times[sort] += 1
    for sort, (fault, effect) in told.items():
        more = f" (and in {times[sort] - 1} more tasks)" if times[sort] > 1 else ""
        found.add(replace(fault, message=fault.message + more), effect)


def _of_task(
    project: Project, task: _TaskWords, index: int, circumstances: _AllCircumstances
) -> Iterator[tuple[str, Fault, SettingEffect]]:
    place = f"tasks[{index}].metadata"
    given = circumstances.of_task(task) if task.metadata and project.has_file else None
    for key, value in task.metadata.items():
        if meant := _meant(key):
            text = f"Ganger does not read {key!r}, only {meant!r}: correct the spelling if you mean that"
            yield key, Fault(f"{place}.{key}", NEAR_MISS, text), SettingEffect.TOLD
        elif given is not None and (finding := judge_metadata(key, value, given)) is not None:
            text = f"{_shown(value)} has no effect: {finding.why}"
            yield key, Fault(f"{place}.{key}", METADATA, text), finding.effect
    yield from _of_retries(project, task, index)


def _of_retries(project: Project, task: _TaskWords, index: int) -> Iterator[tuple[str, Fault, SettingEffect]]:
    """Findings in the manifest's retry_policy, which can only lower limits and names failure classes."""
    policy = task.retry_policy
    if policy is None:
        return
    place = f"tasks[{index}].retry_policy"
    for word in policy.retry_on:
        if known_class(word) is None:
            text = f"{word!r} is not a failure class and retries nothing; ganger explain {word} shows the nearest"
            yield "retry_on", Fault(f"{place}.retry_on", METADATA, text), SettingEffect.TOLD
    given = policy.max_attempts
    usual = task.metadata.get("max_attempts") or project.config.policy.max_worker_attempts_per_task
    if given is not None and project.has_file and not _heals(project) and given > usual:
        text = f"{given:g} lowers nothing: a task has {usual} attempts; metadata.max_attempts allows up to 3"
        yield "max_attempts", Fault(f"{place}.max_attempts", METADATA, text), SettingEffect.TOLD


@lru_cache(maxsize=4096)
def _meant(key: str) -> str:
    return near_name(key, KNOWN_METADATA)


def _bounded(faults: list[Fault]) -> list[Fault]:
    if len(faults) <= _MOST_TOLD:
        return faults
    more = Fault("", "MORE_FAULTS", f"{len(faults) - _MOST_TOLD} more settings without effect are not shown")
    return [*faults[:_MOST_TOLD], more]
