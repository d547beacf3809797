"""Whether CI runs on what is pushed: by the settings, the paths of the change, and earlier runs.

If anything is unknown, CI is expected.
"""

from __future__ import annotations

from collections.abc import Collection

from ganger.core.delivery.ci_files import ci_files
from ganger.core.model.ledger import Delivery, RepoRules
from ganger.core.model.records import TaskSpec
from ganger.core.model.run_state import RunState
from ganger.core.path_patterns import covers_path
from ganger.core.vocabulary import TaskStatus

NOT_EXPECTED = "not_expected"
# Why CI is run again for a commit without a run, after a person looked into it.
NO_RUN = "no_run"
_MERGED = "merged"


def unexpected_by(spec: TaskSpec, rules: RepoRules) -> str:
    """The setting by which CI need not run for this task, whatever it changes; empty if there is none. A mirror job is
    part of CI, so CI is expected with one."""
    if rules.ci_rules.mirror_job:
        return ""
    if spec.expects_ci is not None:
        return "" if spec.expects_ci else "metadata.expects_ci = false"
    return "" if rules.expects_ci else "delivery.expects_ci = false"


def may_go_by_paths(spec: TaskSpec, rules: RepoRules) -> bool:
    return bool(rules.ci_paths_ignore) and spec.expects_ci is None and not rules.ci_rules.mirror_job


def unexpected_for(paths: Collection[str], rules: RepoRules) -> str:
    """Why CI need not run for a change of these paths; empty if it must. Files that configure CI always start it."""
    if not paths or ci_files(paths) or not all(covers_path(rules.ci_paths_ignore, path) for path in paths):
        return ""
    count = f"all {len(paths)} changed paths are" if len(paths) > 1 else "the changed path is"
    return f"{count} in delivery.ci_paths_ignore"


def is_red(state: RunState, name: str) -> bool:
    """Whether CI's last verdict on this task was red: then its fix needs a green one."""
    last = next((one for one in reversed(state.pushes.verdicts) if one.task == name), None)
    return last is not None and not last.green


def was_red_before(state: RunState, rules: RepoRules) -> bool:
    """Whether faults from before the run may still be in its branch without being any task's: they are ignored, or no
    task has fixed them yet."""
    return rules.base_red == "ignore" or (rules.base_red == "mend" and not state.pushes.proved.get(rules.name, ""))


def had_run(delivery: Delivery, sha: str = "") -> bool:
    """Whether a CI run was seen for this commit, or for any commit of the delivery."""
    seen = (fact.what for fact in delivery.facts if not sha or fact.commit == sha)
    return any(what.startswith("CI is ") and not what.startswith("CI is absent") for what in seen)


def unproved(state: RunState, repo: str) -> dict[str, tuple[str, ...]]:
    """The commits of each task of this repository that are neither green nor waived yet."""
    return {
        name: task.delivery.merges
        for name, task in state.tasks.items()
        if task.delivery is not None
        and state.specs[name].repo == repo
        and task.status is not TaskStatus.DONE
        and not task.delivery.needs_no_ci
    }


def told_of(state: RunState, sha: str) -> str:
    """Why CI was not expected for this commit, if that was decided for another task with the same commit."""
    found = (task.delivery for task in state.tasks.values() if task.delivery is not None)
    return next((one.waived_why for one in found if one.waived == sha and one.waived_cause == NOT_EXPECTED), "")


def was_pushed_again(delivery: Delivery) -> bool:
    """Whether an empty commit was already made for the change because no run had begun for it."""
    for fact in reversed(delivery.facts):
        if fact.what == _MERGED:
            return False
        if f"({NO_RUN}" in fact.what:
            return True
    return False


def has_run_before(state: RunState, repo: str) -> bool:
    """Whether CI ran for this repository's branch or its change requests since the run began."""
    if any(one.repo == repo for one in state.pushes.verdicts):
        return True
    found = (task.delivery for name, task in state.tasks.items() if state.specs[name].repo == repo)
    return any(one is not None and had_run(one) for one in found)
