"""What of [delivery] can never work, found before anything runs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ganger.config import PASSWORD, Config, DeliverySection
from ganger.core.model.ledger import CI, MIRRORED, PUSHED
from ganger.core.model.records import TaskSpec
from ganger.core.path_patterns import pattern_fault
from ganger.errors import Fault

CODE = "DELIVERY_UNFIT"
_NO_MIRROR = (
    'completion asks for "mirrored", and the mirror job is part of CI: where CI does not run nothing is mirrored; '
    'prove the mirror with mirror_command, or take "mirrored" or this setting out'
)
_BRANCH = re.compile(r"(?![-/.])(?!.*(?:\.\.|@\{|//|/\.|\.lock/))[^\x00-\x20\x7f~^:?*\[\\]+(?<![/.])(?<!\.lock)")


def delivery_faults(config: Config, specs: Sequence[TaskSpec]) -> Iterator[Fault]:
    """Of the repositories that tasks work on; the project's own has no name."""
    used = {spec.repo for spec in specs}
    for repo in ("", *config.repos):
        if repo in used:
            place = f"repos.{repo}.delivery" if repo and config.repos[repo].delivery is not None else "delivery"
            for key, message in _of(config, _section(config, repo)):
                yield Fault(f"{place}.{key}", CODE, message)
    if config.delivery.webhook_port and not config.delivery.webhook_secret_env:
        message = "unsigned webhooks can come from anyone; name the variable with their secret"
        yield Fault("delivery.webhook_secret_env", CODE, message)


def task_faults(config: Config, specs: Sequence[TaskSpec]) -> Iterator[Fault]:
    """What a task asks for and its repository's delivery rules out."""
    for index, spec in enumerate(specs):
        if spec.expects_ci is False and _mirrors_by_job(_section(config, spec.repo)):
            yield Fault(f"tasks[{index}].metadata.expects_ci", CODE, _NO_MIRROR)


def _section(config: Config, repo: str) -> DeliverySection:
    own = config.repos[repo].delivery if repo in config.repos else None
    if own is None:
        return config.delivery
    return config.delivery.model_copy(update={name: getattr(own, name) for name in own.model_fields_set})


def _of(config: Config, section: DeliverySection) -> Iterator[tuple[str, str]]:
    for key in ("remote", "url"):
        if PASSWORD.search(getattr(section, key)):
            yield key, "anyone who can read this file, agents included, sees its password; use token_env or token_file"
    wanted = set(section.completion)
    by_job = _mirrors_by_job(section)
    if wanted & {PUSHED, CI, MIRRORED} and config.workspace.mode == "direct":
        yield "completion", 'what is delivered has to be a commit; set workspace.mode = "local-git" or "forge"'
    if (CI in wanted or by_job) and not section.forge:
        yield "forge", f"completion asks for {'ci' if CI in wanted else 'mirrored'}, and nothing says who runs CI"
    if section.forge == "command":
        yield from _of_commands(section, follows=CI in wanted or by_job, by_job=by_job)
    elif section.jobs:
        yield "jobs", f'they are for forge = "command"; {section.forge or "no forge"} runs its own'
    yield from _of_expected(section, by_job=by_job)
    if (why := _branch_fault(section.branch_name)) and section.style != "branch":
        yield "branch_name", why
    if section.history == "rebase" and section.merge_method == "merge":
        yield "merge_method", 'it makes merge commits, and delivery.history = "rebase" wants none; take one of both out'
    if section.review == "agent" and section.reviewer not in config.roles:
        yield "reviewer", f"no agent plays the role {section.reviewer!r}; add [roles.{section.reviewer}]"


def _mirrors_by_job(section: DeliverySection) -> bool:
    return MIRRORED in section.completion and not section.mirror_command


def _of_expected(section: DeliverySection, *, by_job: bool) -> Iterator[tuple[str, str]]:
    if by_job and not section.expects_ci:
        yield "expects_ci", _NO_MIRROR
    if by_job and section.ci_paths_ignore:
        yield "ci_paths_ignore", _NO_MIRROR
    for pattern in section.ci_paths_ignore:
        if why := pattern_fault(pattern):
            yield "ci_paths_ignore", why


def _branch_fault(name: str) -> str:
    """The run's and the task's name fit anywhere, so what stands around them decides."""
    if "{task}" not in name:
        return "each task's change request needs a branch of its own; put {task} into the name"
    filled = name.replace("{run}", "run").replace("{task}", "task")
    if "{" in filled or "}" in filled:
        return "only {run} and {task} can be filled in"
    return "" if _BRANCH.fullmatch(filled) else "git takes no branch of that name"


def _of_commands(section: DeliverySection, *, follows: bool, by_job: bool) -> Iterator[tuple[str, str]]:
    if section.style == "request":
        yield "style", 'there are no change requests where CI is a local command; use style = "branch"'
    if follows and not section.jobs:
        yield "jobs", 'no CI job is configured; add one, as [delivery.jobs] test = ["make", "test"]'
    for name, argv in section.jobs.items():
        if not argv or not argv[0]:
            yield f"jobs.{name}", "it names no program"
    known = ", ".join(section.jobs) or "none"
    for name in section.required_jobs:
        if name not in section.jobs:
            yield "required_jobs", f"there is no job {name!r}; there are: {known}"
    if by_job and section.mirror_job not in section.jobs:
        yield "mirror_job", f"there is no job {section.mirror_job!r}; there are: {known}"
