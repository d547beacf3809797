"""Checks a whole project before a run: manifest, graph, prompts, profiles, roles. Lists every fault at once."""

from __future__ import annotations

import codecs
import os
import shutil
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from ganger.app.checks.argv import argv_faults, argv_warnings
from ganger.app.checks.copies import copy_faults
from ganger.app.checks.delivery import delivery_faults, task_faults
from ganger.config import PROJECT_FILE, Project
from ganger.contracts.digest import manifest_digest
from ganger.contracts.faults import examine
from ganger.contracts.manifest import Manifest
from ganger.contracts.reading.documents import read_document
from ganger.contracts.verify_profile import Profile, Step, VerifyProfiles
from ganger.core.model.records import TaskSpec
from ganger.core.planning.plan import Plan, by_levels, clash_faults, graph_faults, level_faults, plan_if_sound
from ganger.core.planning.repos import graph_faults as repo_graph_faults, make_graph
from ganger.core.planning.specs import graph_entries, specs_of
from ganger.core.verify.commands import CommandFault, parse_command
from ganger.core.verify.tiers import tier_faults
from ganger.errors import Fault, InputError

_SHOWN = 200
_GLANCE = 64 * 1024
LARGEST_PROMPT = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Reference:
    """What a task names, in a manifest that has faults elsewhere; None for what cannot be read."""

    prompt_ref: str | None
    context_refs: tuple[str, ...]
    verify_profile: str | None
    role: str | None
    repo: str
    metadata: Mapping[str, object]


References = Sequence[TaskSpec | Reference]


@dataclass
class Checked:
    """The result of a check. `manifest`, `plan` and `specs` are only set if the manifest itself is valid; `references`
    is what can be read of the tasks if it is not."""

    source: Path
    faults: list[Fault] = field(default_factory=list)
    warnings: list[Fault] = field(default_factory=list)
    manifest: Manifest | None = None
    specs: tuple[TaskSpec, ...] = ()
    references: tuple[Reference, ...] = ()
    plan: Plan | None = None
    profiles: VerifyProfiles | None = None
    levels: dict[str, int] = field(default_factory=dict)
    phases: tuple[tuple[str, ...], ...] = ()

    @cached_property
    def digest(self) -> str:
        """Only set if the manifest is valid; computed on first use."""
        return manifest_digest(self.manifest) if self.manifest is not None else ""

    @property
    def ok(self) -> bool:
        return not self.faults

    def require(self) -> None:
        if self.faults:
            raise InputError(str(self.source), self.faults, hint=f"ganger validate {self.source} lists every fault")


def check_project(project: Project, manifest_path: Path | None = None) -> Checked:
    """Reads everything a run needs. Without a ganger.toml only the manifest itself is checked."""
    checked = Checked(manifest_path or project.manifest_path)
    data: dict[str, object] = {}
    manifest: Manifest | None = None
    faults: list[Fault] = []
    try:
        data = read_document(checked.source)
    except InputError as error:
        checked.faults.extend(error.faults)
    else:
        manifest, faults = examine(Manifest, data)
        checked.faults.extend(faults)
    if manifest is not None and not faults:
        checked.manifest = manifest
        checked.specs = specs_of(manifest, project.config.repos)
        graph = make_graph({name: repo.depends_on for name, repo in project.config.repos.items()})
        checked.phases = graph.phases
        checked.plan = plan_if_sound(checked.specs, graph.phase)
    if checked.plan is None:
        checked.faults.extend(graph_faults(graph_entries(data)))
    else:
        _check_levels(project, checked)
    if not checked.specs:
        checked.references = tuple(_references(data))
    named = checked.specs or checked.references
    checked.faults.extend(_repo_faults(project, named))
    for fault in delivery_faults(project.config, checked.specs):
        checked.faults.append(Fault(_in_file(PROJECT_FILE, fault.path), fault.code, fault.message))
    checked.faults.extend(task_faults(project.config, checked.specs))
    _check_references(project, checked, named)
    _bound(checked.faults)
    return checked


def _references(data: dict[str, object]) -> Iterator[Reference]:
    tasks = data.get("tasks")
    for task in tasks if isinstance(tasks, list) else ():
        yield _reference(task if isinstance(task, dict) else {})


def _reference(task: dict[str, object]) -> Reference:
    contexts, metadata = task.get("context_refs"), task.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    texts = [task.get(name) for name in ("prompt_ref", "verify_profile")]
    texts += [metadata.get("role", "worker") if task else None]
    prompt, profile, role = (text if isinstance(text, str) and text else None for text in texts)
    refs = tuple(ref for ref in contexts if isinstance(ref, str)) if isinstance(contexts, list) else ()
    repo = metadata.get("repo")
    return Reference(prompt, refs, profile, role, repo if isinstance(repo, str) else "", metadata)


def _check_levels(project: Project, checked: Checked) -> None:
    """Reads and checks levels set by hand; where a level is merged as a whole, its tasks must not conflict."""
    config = project.config.workspace
    assert checked.plan is not None
    if config.levels_file:
        name = config.levels_file
        try:
            data = read_document(project.root / name)
        except InputError as error:
            checked.faults.extend(Fault(_in_file(name, f.path), f.code, f.message) for f in error.faults)
            return
        given, faults = level_faults(_assignments(data), checked.specs)
        if faults:
            checked.faults.extend(Fault(_in_file(name, f.path), f.code, f.message) for f in faults)
            return
        checked.levels = given
        checked.plan = by_levels(checked.plan, checked.specs, given)
    if config.merging == "level" and config.mode != "direct":
        checked.faults.extend(clash_faults(checked.plan, checked.specs))


def _repo_faults(project: Project, specs: References) -> Iterator[Fault]:
    """Faults in the repositories' dependencies, in the mode, and in the tasks' repositories."""
    repos = project.config.repos
    for fault in repo_graph_faults({name: repo.depends_on for name, repo in repos.items()}):
        yield Fault(_in_file(PROJECT_FILE, fault.path), fault.code, fault.message)
    if repos and project.config.workspace.mode == "direct":
        message = 'tasks of several repositories need workspace.mode = "local-git" or "forge"'
        yield Fault(_in_file(PROJECT_FILE, "repos"), "REPOS_NEED_GIT", message)
    for index, spec in enumerate(specs):
        if repos and spec.repo and spec.repo not in repos:
            message = f"there is no [repos.{spec.repo}]; there are {', '.join(repos)}"
            yield Fault(f"tasks[{index}].metadata.repo", "UNKNOWN_REPO", message)


def _assignments(data: object) -> dict[str, list[str]]:
    found = data.get("assignments") if isinstance(data, dict) else None
    if not isinstance(found, dict):
        return {}
    return {str(name): [str(task) for task in tasks] for name, tasks in found.items() if isinstance(tasks, list)}


def _bound(faults: list[Fault]) -> None:
    if len(faults) > _SHOWN:
        left = len(faults) - _SHOWN
        del faults[_SHOWN:]
        faults.append(Fault("", "MORE_FAULTS", f"{left} more faults are not shown; fix these first"))


def _check_references(project: Project, checked: Checked, named: References) -> None:
    found = list(_file_faults(project, named))
    if project.has_file:
        checked.faults.extend(found)
        _check_profiles(project, checked, named)
        checked.faults.extend(_role_faults(project, named))
        checked.faults.extend(argv_faults(project))
        checked.warnings.extend(argv_warnings(project))
        for place, name in project.unset_names():
            message = f"variable {name} is not set, so nothing is passed on by that name; set it or remove the entry"
            checked.warnings.append(Fault(_in_file(PROJECT_FILE, place), "VARIABLE_NOT_SET", message))
    else:
        checked.warnings.extend(found)
        message = f"no {PROJECT_FILE} was found, so prompts, profiles and roles were not checked"
        checked.warnings.append(Fault("", "NO_PROJECT", message))


# --- prompts and context -------------------------------------------------------------------------------------------


def _file_faults(project: Project, specs: References) -> Iterator[Fault]:
    seen: dict[str, Fault | None] = {}
    folders: dict[str, bool] = {}
    for index, spec in enumerate(specs):
        named = [(f"tasks[{index}].prompt_ref", spec.prompt_ref)] if spec.prompt_ref is not None else []
        named += [(f"tasks[{index}].context_refs[{n}]", ref) for n, ref in enumerate(spec.context_refs)]
        for path, ref in named:
            if ref not in seen:
                seen[ref] = _ref_fault(project.root, ref, folders)
            problem = seen[ref]
            if problem is not None:
                yield Fault(path, problem.code, problem.message)


def _ref_fault(root: Path, ref: str, folders: dict[str, bool]) -> Fault | None:
    """The fault of a prompt that is not a regular file of the project, named by a relative path."""
    if not ref or ref.startswith(("/", "~")) or "\\" in ref or "\0" in ref or ".." in ref.split("/"):
        message = f"{ref!r} is not a relative path inside the project; move the file into it"
        return Fault("", "PROMPT_OUTSIDE_PROJECT", message)
    # Strings, not Path objects: a manifest may name 100,000 prompts.
    full = f"{root}/{ref}"
    folder = full.rpartition("/")[0]
    if folder not in folders:
        folders[folder] = Path(os.path.realpath(folder)).is_relative_to(os.path.realpath(root))
    try:
        kind = os.lstat(full).st_mode
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        return Fault("", "PROMPT_MISSING", f"{ref!r} cannot be read ({reason}); create it below {root}")
    if stat.S_ISLNK(kind) or not folders[folder]:
        message = f"{ref!r} is reached through a symbolic link; put the file itself into the project"
        return Fault("", "PROMPT_OUTSIDE_PROJECT", message)
    if not stat.S_ISREG(kind):
        return Fault("", "PROMPT_MISSING", f"{ref!r} is not a file")
    return _text_fault(ref, full)


def _text_fault(ref: str, full: str) -> Fault | None:
    """Only size and beginning are checked, because a manifest may name thousands of prompts."""
    try:
        with open(full, "rb", buffering=0) as file:
            head, size = file.read(_GLANCE), os.fstat(file.fileno()).st_size
        codecs.getincrementaldecoder("utf-8")().decode(head, final=size <= _GLANCE)
    except OSError as error:
        return Fault("", "PROMPT_MISSING", f"{ref!r} cannot be read ({error.strerror})")
    except UnicodeDecodeError as error:
        return Fault("", "PROMPT_NOT_TEXT", f"{ref!r} is not UTF-8 text (byte {error.start}); save it as UTF-8")
    if b"\0" in head or size > LARGEST_PROMPT:
        why = "holds NUL bytes" if b"\0" in head else f"has {size} bytes, more than {LARGEST_PROMPT}"
        return Fault("", "PROMPT_NOT_TEXT", f"{ref!r} {why}; a prompt is text of at most that size")
    return None


# --- profiles and roles ----------------------------------------------------------------------------------------------


def _check_profiles(project: Project, checked: Checked, named: References) -> None:
    name = project.config.verify.profiles_file
    try:
        data = read_document(project.profiles_path)
        profiles, faults = examine(VerifyProfiles, data)
    except InputError as error:
        profiles, data, faults = None, {}, list(error.faults)
    # Settings that cannot be read completely may name another file.
    if not project.unread:
        checked.faults.extend(Fault(_in_file(name, f.path), f.code, f.message) for f in faults)
    if profiles is None and (project.unread or (profiles := _readable(data)) is None):
        return
    checked.profiles = profiles
    checked.faults.extend(_command_faults(project, profiles))
    known = profiles.profiles
    for index, spec in enumerate(named):
        if spec.verify_profile is not None and spec.verify_profile not in known:
            listed = ", ".join(sorted(known)[:8]) or "none"
            message = f"{name} has no profile {spec.verify_profile!r}; it has: {listed}"
            checked.faults.append(Fault(f"tasks[{index}].verify_profile", "UNKNOWN_PROFILE", message))
    names = {p: [step.name for step in profile.steps] for p, profile in known.items()}
    checked.faults.extend(copy_faults(project, checked.specs, profiles))
    for fault in tier_faults(names, project.config.verify.tiers):
        checked.faults.append(Fault(_in_file(PROJECT_FILE, fault.path), fault.code, fault.message))


def _readable(data: Mapping[str, object]) -> VerifyProfiles | None:
    """The profiles that can be read in a file with faults elsewhere: those whose steps have a name and a command."""
    found: dict[str, Profile] = {}
    profiles = data.get("profiles")
    for name, profile in profiles.items() if isinstance(profiles, dict) else ():
        steps = profile.get("steps") if isinstance(profile, dict) else None
        made = [_readable_step(step) for step in steps] if isinstance(steps, list) else []
        if not made or None in made:
            return None
        found[name] = Profile(steps=tuple(step for step in made if step is not None))
    return VerifyProfiles(profiles=found) if found else None


def _readable_step(step: object) -> Step | None:
    known = step if isinstance(step, dict) else {}
    return examine(Step, {key: known[key] for key in ("name", "cmd", "cwd") if known.get(key) is not None})[0]


def _in_file(name: str, path: str) -> str:
    return f"{name}:{path}" if path else name


def _command_faults(project: Project, profiles: VerifyProfiles) -> Iterator[Fault]:
    deny = project.config.verify.deny
    for name, profile in profiles.profiles.items():
        for index, step in enumerate(profile.steps):
            where = f"profiles.{name}.steps[{index}]"
            if step.cwd is not None and (step.cwd.startswith("/") or ".." in step.cwd.split("/")):
                message = f"cwd {step.cwd!r} leaves the project; name a folder inside it"
                yield Fault(_in_file(project.config.verify.profiles_file, f"{where}.cwd"), "BAD_DIRECTORY", message)
            answer = parse_command(step.cmd, deny=deny)
            if isinstance(answer, CommandFault):
                path = _in_file(project.config.verify.profiles_file, f"{where}.cmd")
                yield Fault(path, answer.code, f"{answer.message}; {answer.hint}" if answer.hint else answer.message)


def missing_programs(project: Project, checked: Checked) -> list[str]:
    """Programs of the used profiles that cannot be found; a task may be meant to install them."""
    used = {spec.verify_profile for spec in checked.specs}
    found: dict[str, None] = {}
    for name, profile in (checked.profiles.profiles if checked.profiles else {}).items():
        for step in profile.steps if name in used else ():
            script = parse_command(step.cmd, deny=project.config.verify.deny)
            if not isinstance(script, CommandFault):
                found |= dict.fromkeys(part.argv[0] for part in script.steps if "/" not in part.argv[0])
    return [program for program in found if shutil.which(program) is None]


def _role_faults(project: Project, specs: References) -> Iterator[Fault]:
    """Roles without an agent. Not checked if the settings could only be read in part."""
    roles = project.config.roles
    unknown = {place.removeprefix("roles.").partition(".")[0] for place in project.left_out}
    for index, spec in enumerate(specs if not project.unread and not {"", "roles"} & unknown else ()):
        if spec.role is not None and spec.role not in roles and spec.role not in unknown:
            path = f"tasks[{index}].metadata.role" if spec.role != "worker" else f"{PROJECT_FILE}:roles.worker"
            message = f"no [roles.{spec.role}] is configured; name an agent for this role in {PROJECT_FILE}"
            yield Fault(path, "UNKNOWN_ROLE", message)
            if spec.role == "worker":
                return
