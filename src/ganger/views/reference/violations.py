"""Habits that break deliveries (D17): what makes each impossible here, or the refusal that records it by name."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

from ganger.core.model.run_state import RunState


@dataclass(frozen=True, slots=True)
class Violation:
    """`refused` matches the refusal that shows it was tried; empty if it cannot even be tried."""

    name: str
    what: str
    instead: str
    refused: str = ""


VIOLATIONS: tuple[Violation, ...] = (
    Violation(
        "worker_exits_after_push_before_ci",
        "A worker pushes and exits, and nothing waits for CI's result.",
        "Workers do not push. Ganger pushes what it merged, and the task stays RUNNING in PUSHED_TO_CI until CI has "
        "judged that commit; DONE before that is refused.",
        r"DONE without proof of .*\b(?:pushed|ci)\b.*",
    ),
    Violation(
        "orchestrator_tracks_awaiting_ci",
        "Tasks that wait for CI are kept on a separate list, outside the tasks themselves.",
        "There is no such list. What a task waits for is in its own ledger, which follows the commit, keeps the "
        "lock, and survives every restart.",
    ),
    Violation(
        "done_without_ci_url",
        "A task counts as done although no CI run can be shown that passed.",
        "DONE needs a green verdict for exactly this commit, which is refused unless runs of this commit were seen "
        "green. Run, address and every job are in the ledger.",
        r"a green verdict although CI is .*",
    ),
    Violation(
        "assuming_radicle_synced",
        "The mirror is assumed to have a commit because everything else passed.",
        "Where the completion names mirrored, DONE is refused until the mirror job succeeded for this commit, or the "
        "command that checks the mirror did. Skipped is not success: the job is run again.",
        r"DONE without proof of mirrored",
    ),
    Violation(
        "parallel_dependent_workers",
        "Two workers work in one chain of repositories.",
        "A task holds its repository from its first start until it is DONE with proof; an attempt that would start "
        "beside it in its chain is refused.",
        r"(?!.* builds on ).* is held by .*",
    ),
    Violation(
        "upstream_worker_while_downstream_active",
        "A worker changes a repository while others that build on it are being changed.",
        "An attempt in a repository is refused while a task holds one that builds on it.",
        r".* builds on .* and is held by .*",
    ),
    Violation(
        "downstream_worker_while_upstream_active",
        "A worker builds on a repository that is being changed.",
        "An attempt in a repository is refused while a task holds one that it builds on.",
        r".* builds on .*, which is held by .*",
    ),
    Violation(
        "querying_all_ci_runs",
        "CI is judged by any runs there are, or by the newest.",
        "Forges are asked for the runs of the tracked commits; a run of another commit cannot enter a ledger, and the "
        "verdict looks at the runs of one commit alone.",
        r"run .* is of another commit",
    ),
    Violation(
        "caching_old_run_ids",
        "A run from before a new push is still trusted.",
        "A push replaces what is tracked: runs, jobs and findings of the old commit are gone from the ledger, and a "
        "verdict on it is refused.",
        r".* is not the commit that is tracked .*",
    ),
    Violation(
        "push_all_repos_at_once",
        "Everything is pushed at once, regardless of dependencies.",
        "A repository is free for the next in its chain only when its task is DONE with proof, so pushes follow the "
        "order of the graph; in a halted chain nothing is pushed at all.",
        r".* is halted: .*",
    ),
    Violation(
        "triggering_dependent_ci_before_dependency_green",
        "CI of a repository is triggered before the one it builds on is green.",
        "While a repository is red, attempts in those that build on it are refused, so nothing of theirs is pushed.",
        r".*, which .* turned red; .*",
    ),
    Violation(
        "infinite_permission_retry_loop",
        "A worker is refused a permission and asks again and again.",
        "The worker is stopped at the second refusal at the latest; the task is BLOCKED(permission_denied) with a "
        "question, and is not restarted by itself.",
    ),
    Violation(
        "embedding_ci_context_at_spawn",
        "Every worker's prompt explains CI at the start, whether it needs it or not.",
        "CI is explained only in an attempt that fixes what CI found, and in ganger worker brief ci.",
    ),
    Violation(
        "verbose_worker_prompt",
        "Ganger's own text fills the prompt.",
        "It is limited to 110 tokens at the start of a task and 160 for CI; ganger plan --prompts shows it, and ends "
        "with an error if a prompt is over its budget.",
    ),
)
_ATTEMPT = re.compile(r"\d+ (?P<event>\w+) .*?: (?P<why>.*)", re.DOTALL)


def violated(state: RunState) -> Counter[str]:
    """What was tried in this run and refused, by the name that fits best."""
    found: Counter[str] = Counter()
    for line in state.log.refused:
        parts = _ATTEMPT.fullmatch(line)
        name = named(parts["why"]) if parts is not None else ""
        if name:
            found[name] += 1
    return found


def named(why: str) -> str:
    """The name of the violation that a refusal reports; empty for any other refusal."""
    found = (row.name for row in VIOLATIONS if row.refused and re.fullmatch(row.refused, why, re.DOTALL))
    return next(found, "")
