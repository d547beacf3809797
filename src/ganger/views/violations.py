"""Habits that break deliveries (D17): what makes each impossible here, or the refusal that records it by name."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

from ganger.core.records import RunState


@dataclass(frozen=True, slots=True)
class Violation:
    """`refused` finds, in what a run refused, that somebody tried it; empty where nobody can even try."""

    name: str
    what: str
    instead: str
    refused: str = ""


VIOLATIONS: tuple[Violation, ...] = (
    Violation(
        "worker_exits_after_push_before_ci",
        "A worker pushes, ends, and nobody waits for what CI says.",
        "Workers do not push. Ganger pushes what it merged, and the task stays RUNNING in PUSHED_TO_CI until CI has "
        "judged that commit; DONE before that is refused.",
        r"DONE without proof of .*\b(?:pushed|ci)\b.*",
    ),
    Violation(
        "orchestrator_tracks_awaiting_ci",
        "Tasks that wait for CI are kept on a list of somebody else's, beside the tasks themselves.",
        "There is no such list. What is awaited stands in the task's own ledger, which follows the commit, keeps the "
        "lock, and survives every restart.",
    ),
    Violation(
        "done_without_ci_url",
        "A task counts as done although nobody can show the CI run that passed.",
        "DONE needs a green verdict for exactly this commit, and that is refused unless runs of this commit were seen "
        "green. Run, address and every job are in the ledger.",
        r"a green verdict although CI is .*",
    ),
    Violation(
        "assuming_radicle_synced",
        "The mirror is taken to have a commit because everything else passed.",
        "Where the completion names mirrored, DONE is refused until the mirror job succeeded for this commit, or the "
        "command that looks at the mirror did. Skipped is no success: it is run again.",
        r"DONE without proof of mirrored",
    ),
    Violation(
        "parallel_dependent_workers",
        "Two workers are at work in one chain of repositories.",
        "A task holds its repository from its first start until it is DONE with proof; an attempt that would start "
        "beside it in its chain is refused.",
        r"(?!.* builds on ).* is held by .*",
    ),
    Violation(
        "upstream_worker_while_downstream_active",
        "Somebody changes what others build on while they are at work.",
        "An attempt in a repository is refused while a task holds one that builds on it.",
        r".* builds on .* and is held by .*",
    ),
    Violation(
        "downstream_worker_while_upstream_active",
        "Somebody builds on a repository that is being changed.",
        "An attempt in a repository is refused while a task holds one that it builds on.",
        r".* builds on .*, which is held by .*",
    ),
    Violation(
        "querying_all_ci_runs",
        "CI is judged by whatever runs there are, or by the newest.",
        "Forges are asked for the runs of the tracked commits; a run of another commit can not enter a ledger, and the "
        "verdict looks at the runs of one commit alone.",
        r"run .* is of another commit",
    ),
    Violation(
        "caching_old_run_ids",
        "A run that was known before a new push is still believed.",
        "A push replaces what is tracked: runs, jobs and findings of the old commit are gone from the ledger, and a "
        "verdict on it is refused.",
        r".* is not the commit that is tracked .*",
    ),
    Violation(
        "push_all_repos_at_once",
        "Everything is pushed at once, whatever builds on what.",
        "A repository is free for the next in its chain only when its task is DONE with proof, so pushes follow the "
        "order of the graph; in a halted chain nothing is pushed at all.",
        r".* is halted: .*",
    ),
    Violation(
        "triggering_dependent_ci_before_dependency_green",
        "CI of something is set going before that which it builds on is green.",
        "While a repository is red, attempts in whatever builds on it are refused, and so nothing of it is pushed.",
        r".*, which .* turned red; .*",
    ),
    Violation(
        "infinite_permission_retry_loop",
        "A worker is refused a permission and asks again and again.",
        "It is ended at the second refusal at the latest; the task is BLOCKED(permission_denied) with a question, and "
        "is not started again by itself.",
    ),
    Violation(
        "embedding_ci_context_at_spawn",
        "Every worker is told about CI at the start, whether it ever meets it or not.",
        "CI is spoken of only in an attempt that mends what CI found, and in ganger worker brief ci.",
    ),
    Violation(
        "verbose_worker_prompt",
        "Ganger's own words fill the prompt.",
        "They are held to 110 tokens at the start of a task and 160 for CI; ganger plan --prompts shows them, and ends "
        "with an error where a prompt is over its budget.",
    ),
)
_ATTEMPT = re.compile(r"\d+ (?P<event>\w+) .*?: (?P<why>.*)", re.DOTALL)


def violated(state: RunState) -> Counter[str]:
    """What was tried in this run and refused, by the most fitting name."""
    found: Counter[str] = Counter()
    for line in state.refused:
        parts = _ATTEMPT.fullmatch(line)
        name = named(parts["why"]) if parts is not None else ""
        if name:
            found[name] += 1
    return found


def named(why: str) -> str:
    """The name of what a refusal tells of; empty for any other."""
    found = (row.name for row in VIOLATIONS if row.refused and re.fullmatch(row.refused, why, re.DOTALL))
    return next(found, "")
