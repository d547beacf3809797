"""The size of every prompt of a manifest, computed before any agent starts."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, partial

from ganger.app.checks.project import Checked
from ganger.app.compose import agent_of_role, role_rules
from ganger.app.delivery import rules_for
from ganger.app.run_places import place_of
from ganger.config import Project
from ganger.core.prompts.tokens import calibrations, estimate
from ganger.engine.healing.learned_rules import learned_elsewhere
from ganger.engine.output.usage import usage_of_runs
from ganger.engine.prompts.assemble import Advice, CiNote, ci_text, edits_files, pieces
from ganger.engine.verification.checks import commands_of
from ganger.engine.workers.handoff import handoff_of
from ganger.errors import GangerError
from ganger.ports.changes import RoleRules
from ganger.views.planned.prompts import PromptSize, PromptSizes, weighed
from ganger.workspaces.direct.workspace import DirectWorkspace
from ganger.workspaces.rules.protected import Protection

# As long as a commit's name, and as a typical job name.
_SHA = "0123456789ab"
_JOB = "build-and-test (ubuntu-latest, 3.11)"


class _Texts:
    """The project's files, each read once."""

    def __init__(self, project: Project) -> None:
        self.read_text = cache(DirectWorkspace(project.root, Protection()).read_text)


def prompt_sizes(project: Project, checked: Checked) -> PromptSizes:
    budget = project.config.prompts.budget_tokens
    found = tuple(_sizes(project, checked, budget))
    samples = usage_of_runs(project.state_path)
    return PromptSizes(found, _largest_ci(project), budget, calibrations(samples))


def _sizes(project: Project, checked: Checked, budget: int) -> Iterator[PromptSize]:
    assert checked.manifest is not None
    config, texts = project.config, _Texts(project)
    roles = {name: role_rules(project, name) for name in config.roles}
    folder = place_of(project, checked.manifest.run_id)
    learned = learned_elsewhere(folder) if config.healing.learned_rules else ()
    rules = cache(partial(rules_for, project))
    edits = cache(partial(_edits, project))
    known = checked.profiles.profiles if checked.profiles is not None else {}
    commands = {name: commands_of(profile) for name, profile in known.items()}
    for spec in checked.specs:
        role = roles.get(spec.role, RoleRules())
        advice = Advice(
            rules=learned,
            role=role.prompt,
            workspace=config.workspace.mode != "direct",
            gates=spec.may_change_gates or role.may_change_gates,
            hides=True,
            protocol=config.worker.listen and config.worker.tell,
            handoff=handoff_of(rules(spec.repo), spec.repo),
            checks=commands.get(spec.verify_profile, ()),
            edits=edits(spec.role),
        )
        yield weighed(spec.id, list(pieces(spec, texts, "", advice)), budget)


def _edits(project: Project, role: str) -> bool:
    """Whether the role's agent edits files itself; False for a role without an agent: the longest prompt."""
    try:
        return edits_files(agent_of_role(project, role).capabilities)
    except GangerError:
        return False


def _largest_ci(project: Project) -> int:
    """The largest section about CI: all jobs of a repository fail at once."""
    protocol = project.config.worker.listen and project.config.worker.tell
    repos = [rules_for(project, name) for name in ("", *project.config.repos)]
    whys = [(rules.fixes, f"{', '.join(rules.required_jobs or [_JOB])} failed") for rules in repos]
    return max(estimate(ci_text(CiNote(fixes, fixes, _SHA, why), protocol=protocol)) for fixes, why in whys)
