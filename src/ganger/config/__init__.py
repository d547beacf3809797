"""The settings of a project, merged from all layers, each with its origin. The only reader of the environment.

Layers, strongest first: flag, environment (`GANGER_<SECTION>_<KEY>`), project `ganger.toml`, user config, default.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ganger.config.sections import (
    AgentSection as AgentSection,
    BudgetSection as BudgetSection,
    Config as Config,
    DeliverySection as DeliverySection,
    HealingSection as HealingSection,
    HealthSection as HealthSection,
    HookSection as HookSection,
    InboxSection as InboxSection,
    LimitsSection as LimitsSection,
    NotifySection as NotifySection,
    PolicySection as PolicySection,
    PriceSection as PriceSection,
    PromptsSection as PromptsSection,
    RepoSection as RepoSection,
    RoleSection as RoleSection,
    SandboxSection as SandboxSection,
    Section as Section,
    TerminalSection as TerminalSection,
    VerifySection as VerifySection,
    WorkerSection as WorkerSection,
    WorkspaceSection as WorkspaceSection,
)
from ganger.contracts.faults import faults_of
from ganger.contracts.reading.documents import read_document, readable_part
from ganger.errors import Fault, GangerError, InputError, NotFoundError, UsageError
from ganger.worker.folders import private_folder, user_file

PROJECT_FILE = "ganger.toml"


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting's effective value, and the layer it came from."""

    key: str
    value: object
    origin: str


# The password in an address, between the user's name and the host.
PASSWORD = re.compile(r"(://[^\s/@:]*:)[^\s/@]+@")
# A shorter one may occur in any text by chance.
_SHORTEST_SECRET = 6


@dataclass(frozen=True)
class Project:
    """A project: its folder, its effective config, and each value's origin.

    `private` is the user's own folder for it, derived from its path; None if the user's home is unknown. `place` is
    where one run of it is kept, once that is known. If settings are invalid and ignored, `left_out` names them, and
    `unread` is the text of files that could only be read in part.
    """

    root: Path
    config: Config
    has_file: bool
    origins: Mapping[str, str] = field(default_factory=dict)
    private: Path | None = None
    place: Path | None = None
    left_out: frozenset[str] = frozenset()
    unread: str = ""

    @property
    def manifest_path(self) -> Path:
        return self.root / self.config.manifest

    @property
    def shown_path(self) -> Path:
        """Where people and programs look for runs."""
        return self.root / self.config.state_dir

    @property
    def state_path(self) -> Path:
        """Where Ganger keeps what it reads back. Never where agents can write, because they could forge it."""
        if self.place is not None:
            return self.place
        return self.require_private() if self.is_exposed else self.shown_path

    @property
    def is_exposed(self) -> bool:
        """Whether agents can write where `state_dir` is. Decided by its name: a link there may be an agent's."""
        return any(_is_inside(self.shown_path, place) for place in self.written_by_agents())

    def written_by_agents(self) -> list[Path]:
        """Where agents without their own workspace work, and the other folders they may write."""
        if self.config.workspace.mode != "direct":
            return []
        return [self.root, *(self.root / Path(name).expanduser() for name in self.config.sandbox.writable)]

    def require_private(self) -> Path:
        """The user's folder for this project, out of the agents' reach."""
        if self.private is None:
            raise GangerError(
                "neither HOME nor XDG_STATE_HOME says where your state folder is; in direct mode runs are kept there, "
                "out of the agents' reach",
                hint="set HOME, or XDG_STATE_HOME to a folder of your own outside the project",
                code="NO_STATE_FOLDER",
            )
        around = next((place for place in self.written_by_agents() if _is_inside(self.private, place)), None)
        if around is not None:
            raise GangerError(
                f"your state folder {self.private.parent} is in {around}, where agents write: no place for runs",
                hint="set XDG_STATE_HOME to a folder outside the project, or use a git mode: [workspace] mode",
                code="NO_STATE_FOLDER",
            )
        return self.private

    @property
    def profiles_path(self) -> Path:
        return self.root / self.config.verify.profiles_file

    def delivery_of(self, repo: str) -> DeliverySection:
        """One repository's delivery settings: the project's, overridden by its own."""
        given, known = self.config.delivery, self.config.repos.get(repo)
        own = known.delivery if known is not None else None
        if own is None:
            return given
        return given.model_copy(update={name: getattr(own, name) for name in own.model_fields_set})

    def token_files(self) -> list[Path]:
        """The files that hold the forges' tokens."""
        named = {self.delivery_of(repo).token_file for repo in ("", *self.config.repos)}
        return [self.root / Path(name).expanduser() for name in sorted(named) if name]

    def mirror_files(self, repo: str) -> list[Path]:
        """Files of a repository that its mirror commands use. They run outside the sandbox: a change to one of them
        acts with the operator's rights."""
        section = self.delivery_of(repo)
        root = (self.root / (self.config.repos[repo].path if repo else "")).resolve()
        job = section.jobs.get(section.mirror_job, []) if section.forge == "command" else []
        words = [word for word in (*job, *section.mirror_command) if word and "\0" not in word and word[0] != "-"]
        found = dict.fromkeys((root / word).resolve() for word in words)
        return [path for path in found if path.is_relative_to(root) and path.is_file()]

    def handed_on(self, *named: str) -> dict[str, str]:
        """The environment that other programs get: without the forges' tokens, under any name, except the variables in
        `named`, which the settings ask for by name."""
        given = [self.delivery_of(repo) for repo in ("", *self.config.repos)]
        own = {name for one in given for name in (one.token_env, one.webhook_secret_env)}
        environ = environment()
        secrets = {environ[name].strip() for name in own if len(environ.get(name, "").strip()) >= _SHORTEST_SECRET}
        return {
            name: value
            for name, value in environ.items()
            if name in named or (name not in own and not any(secret in value for secret in secrets))
        }

    def unset_names(self) -> list[tuple[str, str]]:
        """Variables that the settings name and the environment lacks, each with the place that names it."""
        config, environ = self.config, environment()
        named = [(f"agents.{name}.env", one) for name, section in config.agents.items() for one in section.env]
        named += [(f"agents.{name}.key_env", section.key_env) for name, section in config.agents.items()]
        named += [("verify.env", one) for one in config.verify.env]
        return [(place, one) for place, one in named if one and one not in environ]

    def settings(self) -> list[Setting]:
        shown = self.config.model_dump(mode="json")
        for name, repo in self.config.repos.items():
            if repo.delivery is not None:
                # Keys it does not set are as in [delivery], not as in the defaults.
                shown["repos"][name]["delivery"] = repo.delivery.model_dump(mode="json", exclude_unset=True)
        return [Setting(k, _without_password(v), self.origins.get(k, "default")) for k, v in _flatten(shown)]


def _is_inside(path: Path, folder: Path) -> bool:
    """Whether a path is inside a folder, by name or by the real folders around it."""
    named = Path(os.path.normpath(path)).is_relative_to(os.path.normpath(folder))
    return named or path.parent.resolve().is_relative_to(folder.resolve())


def _without_password(value: object) -> object:
    """A setting's value for display: passwords in addresses are masked."""
    if isinstance(value, list):
        return [_without_password(one) for one in value]
    return PASSWORD.sub(r"\1[masked]@", value) if isinstance(value, str) else value


def find_root(start: Path) -> Path | None:
    """The nearest folder upwards with a `ganger.toml`."""
    for folder in (start, *start.parents):
        if _is_file(folder / PROJECT_FILE):
            return folder
    return None


def project_root(project: Path | None, manifest: Path | None, cwd: Path) -> Path:
    """`--project`, else upwards from here, else upwards from the manifest, else the manifest's folder, else here."""
    if project is not None:
        if not project.is_dir():
            raise NotFoundError(f"{project}: no such project folder", hint="give an existing folder with --project")
        return project.resolve()
    beside = manifest.resolve().parent if manifest is not None else cwd
    return find_root(cwd) or find_root(beside) or beside


def user_config_path(environ: Mapping[str, str]) -> Path:
    return Path(user_file(environ))


def load_project(
    root: Path, *, flags: Mapping[str, object] | None = None, environ: Mapping[str, str] | None = None
) -> Project:
    """Merges the layers, checks the result, and records where each value came from."""
    project, problems = read_project(root, flags=flags, environ=environ)
    if problems:
        raise problems[0]
    return project


def read_project(
    root: Path, *, flags: Mapping[str, object] | None = None, environ: Mapping[str, str] | None = None
) -> tuple[Project, list[GangerError]]:
    """The project as far as its settings can be read, and everything that is wrong with them, by source.

    Invalid settings are left out: the result is good for finding and showing runs, and for nothing else.
    """
    env = os.environ if environ is None else environ
    merged: dict[str, Any] = {}
    origins: dict[str, str] = {}
    problems: list[GangerError] = []
    unread = ""
    user, source = user_config_path(env), root / PROJECT_FILE
    for path in (user, source):
        if _is_file(path):
            try:
                layer = _read_layer(path)
            except InputError as problem:
                problems.append(problem)
                layer, text = readable_part(path)
                unread += text
            _overlay(merged, origins, layer, str(path))
    given, unknown = _environment_layer(env, merged)
    # The section that a variable names may be in a part that could not be read.
    if unknown and not unread:
        problems.append(InputError("environment", unknown))
    _overlay(merged, origins, given, "")
    for key in list(origins):
        if not origins[key]:
            origins[key] = "environment " + _variable(key)
    _overlay(merged, origins, _nested(flags or {}), "flag")
    faults = faults_of(Config, merged)
    problems += _settings_problem(faults, origins, user, source)
    left_out = _leave_out(merged, faults)
    config = Config.model_validate(merged)
    if references := _reference_faults(config, left_out, whole=not unread):
        problems.append(InputError(str(source), references))
    private = private_folder(str(root), env)
    place = Path(private) if private else None
    return Project(root, config, _is_file(source), origins, place, left_out=left_out, unread=unread), problems


def _settings_problem(
    faults: list[Fault], origins: Mapping[str, str], user: Path, source: Path
) -> Iterator[GangerError]:
    if faults and all(origins.get(fault.path) == "flag" for fault in faults):
        yield UsageError(f"{faults[0].path}: {faults[0].message}", hint="ganger config show lists every setting")
    elif faults:
        yield InputError(_layers_named(user, source), [_with_origin(fault, origins) for fault in faults])


def _leave_out(merged: dict[str, Any], faults: list[Fault]) -> frozenset[str]:
    """Removes what is invalid: the single setting, or else its whole section."""
    left: set[str] = set()
    for depth in (3, 2, 1):
        for fault in faults:
            steps = re.split(r"[.\[]", fault.path)[:depth]
            place: Any = merged
            for step in steps[:-1]:
                place = place.get(step) if isinstance(place, dict) else None
            if isinstance(place, dict) and place.pop(steps[-1], left) is not left:
                left.add(".".join(steps))
        if not faults or not (faults := faults_of(Config, merged)):
            return frozenset(left)
    merged.clear()
    return frozenset((*left, ""))


def _is_file(path: Path) -> bool:
    """False too for a file that cannot be looked at, such as one in another user's home."""
    try:
        return path.is_file()
    except OSError:
        return False


def _read_layer(path: Path) -> dict[str, Any]:
    data = read_document(path) if path.stat().st_size else {}
    assert isinstance(data, dict)
    return data


def _layers_named(user: Path, project: Path) -> str:
    found = [str(p) for p in (project, user) if _is_file(p)]
    return found[0] if found else "settings"


def _with_origin(fault: Fault, origins: Mapping[str, str]) -> Fault:
    origin = origins.get(fault.path, "")
    note = f" (from {origin})" if origin.startswith(("environment", "flag")) else ""
    return Fault(fault.path, fault.code, fault.message + note)


def _reference_faults(config: Config, left_out: frozenset[str], *, whole: bool) -> list[Fault]:
    """Names that refer to nothing. Only for settings read completely: the rest of a file may define them."""
    known = set(config.agents) | {place.split(".")[1] for place in left_out if place.startswith("agents.")}
    if not whole or "" in left_out or "agents" in left_out:
        return []
    faults = [
        Fault(
            f"roles.{name}.agent", "UNKNOWN_AGENT", f"no [agents.{role.agent}] is configured; known: {_known(config)}"
        )
        for name, role in config.roles.items()
        if role.agent not in known
    ]
    faults += [
        Fault(f"roles.{name}.fallback", "UNKNOWN_AGENT", f"no [agents.{role.fallback}]; known: {_known(config)}")
        for name, role in config.roles.items()
        if role.fallback and role.fallback not in known
    ]
    faults += [
        Fault(f"workspace.co_authors.{name}", "UNKNOWN_AGENT", f"no [agents.{name}]; known: {_known(config)}")
        for name in config.workspace.co_authors
        if name not in known
    ]
    if config.hooks or config.notify.model_fields_set:
        faults += _unknown_events(config)
    return faults


def _unknown_events(config: Config) -> Iterator[Fault]:
    from ganger.core.events.notable import GROUPS, is_known

    named = [(f"hooks[{index}].on", hook.on) for index, hook in enumerate(config.hooks)]
    for path, names in (*named, ("notify.on", config.notify.on)):
        for number, name in enumerate(names):
            if not is_known(name):
                said = f"there is no event {name!r}; ganger schema events lists them, groups are {', '.join(GROUPS)}"
                yield Fault(f"{path}[{number}]", "UNKNOWN_EVENT", said)


def _known(config: Config) -> str:
    return ", ".join(sorted(config.agents)) or "none"


def _flatten(data: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, object]]:
    for key, value in data.items():
        if isinstance(value, dict) and value:
            yield from _flatten(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def _overlay(
    into: dict[str, Any], origins: dict[str, str], layer: Mapping[str, Any], origin: str, prefix: str = ""
) -> None:
    for key, value in layer.items():
        path = f"{prefix}{key}"
        if isinstance(value, dict) and isinstance(into.get(key, {}), dict):
            _overlay(into.setdefault(key, {}), origins, value, origin, f"{path}.")
        else:
            into[key] = value
            origins[path] = origin


def _nested(flat: Mapping[str, object]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for key, value in flat.items():
        *sections, last = key.split(".")
        place = result
        for section in sections:
            place = place.setdefault(section, {})
        place[last] = value
    return result


# --- the environment ---------------------------------------------------------------------------------------------

# Variables of agent processes, and the path of the user's own config: neither settings nor mistakes.
_NOT_SETTINGS = frozenset(
    f"GANGER_{name}"
    for name in (
        *("HOME", "RUN_ID", "TASK_ID", "ATTEMPT", "ATTEMPT_MARK", "ROLE", "WORKSPACE", "REPORT", "TOKEN"),
        *("DESK", "WORKER", "SESSION", "PROMPT_FILE", "FUZZ_EXAMPLES"),
    )
)
_FIXED_SECTIONS: dict[str, type[Section]] = {
    "policy": PolicySection,
    "limits": LimitsSection,
    "budget": BudgetSection,
    "healing": HealingSection,
    "health": HealthSection,
    "worker": WorkerSection,
    "inbox": InboxSection,
    "prompts": PromptsSection,
    "verify": VerifySection,
    "workspace": WorkspaceSection,
    "sandbox": SandboxSection,
    "delivery": DeliverySection,
    "notify": NotifySection,
}
_NAMED_SECTIONS: dict[str, type[Section]] = {
    "agents": AgentSection,
    "roles": RoleSection,
    "prices": PriceSection,
    "repos": RepoSection,
}


def _variable(key: str) -> str:
    return "GANGER_" + key.replace(".", "_").replace("-", "_").upper()


def _environment_layer(environ: Mapping[str, str], known: Mapping[str, Any]) -> tuple[dict[str, Any], list[Fault]]:
    """Settings found in the environment, read by the type of each setting; and the names that match none."""
    given = sorted(name for name in environ if name.startswith("GANGER_") and name not in _NOT_SETTINGS)
    table = _variables(known) if given else {}
    faults = [
        Fault(name, "UNKNOWN_SETTING", f"{name} names no setting; ganger config show lists them all")
        for name in given
        if name not in table
    ]
    return _nested({table[name]: read_setting(table[name], environ[name]) for name in given if name in table}), faults


def _variables(known: Mapping[str, Any]) -> dict[str, str]:
    """Each variable's setting, by name."""
    keys = ["manifest", "state_dir"]
    keys += [key for section, model in _FIXED_SECTIONS.items() for key in _keys(model, section)]
    for section, model in _NAMED_SECTIONS.items():
        named = known.get(section)
        for name in named if isinstance(named, dict) else ():
            keys += _keys(model, f"{section}.{name}")
    return {_variable(key): key for key in keys}


def _keys(model: type[Section], prefix: str) -> Iterator[str]:
    for key in model.model_fields:
        inner = _inner(model, key)
        if inner is not None:
            yield from _keys(inner, f"{prefix}.{key}")
        else:
            yield f"{prefix}.{key}"


def _inner(model: type[Section], key: str) -> type[Section] | None:
    """The section at a key, also if it is optional."""
    found = model.model_fields[key].annotation if key in model.model_fields else None
    choices = (found, *getattr(found, "__args__", ()))
    return next((one for one in choices if isinstance(one, type) and issubclass(one, Section)), None)


def _kind(model: type[Section], key: str) -> str:
    schema = model.model_json_schema()["properties"][key]
    kinds = [choice.get("type") for choice in schema.get("anyOf", ())]
    fallback = next((kind for kind in ("number", "integer", "boolean", "array") if kind in kinds), "string")
    return str(schema.get("type", fallback))


def _read_value(text: str, kind: str) -> object:
    """Text that does not fit its type is passed on unchanged, so that the ordinary check names it."""
    if kind == "string":
        return text
    if kind == "array" and not text.lstrip().startswith("["):
        return [_read_number(part.strip()) for part in text.split(",") if part.strip()]
    try:
        return json.loads(text)
    except ValueError:
        return text


def _read_number(text: str) -> object:
    try:
        return float(text)
    except ValueError:
        return text


def environment() -> dict[str, str]:
    """A copy of the environment, for code that passes a part of it on."""
    return dict(os.environ)


def read_setting(key: str, text: str) -> object:
    """The value of a `KEY=VALUE` flag, read by the type of its setting."""
    section, _, rest = key.partition(".")
    model = _FIXED_SECTIONS.get(section) or _NAMED_SECTIONS.get(section)
    above, _, last = rest.rpartition(".")
    if model is not None and section in _NAMED_SECTIONS:
        model = _inner(model, above.rpartition(".")[2]) or model
    if model is None or last not in model.model_fields:
        return text
    return _read_value(text, _kind(model, last))
