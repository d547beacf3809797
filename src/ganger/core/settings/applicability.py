"""Where each setting and each metadata key has an effect: one table, and the reason for keys without one (G24).

A key has an effect if all that it needs is present. A key that was written and has no effect is reported; if that would
remove a requested safeguard, the run does not start.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from ganger.core.model.counters import LIMITS

DIRECT, LOCAL_GIT, FORGE = MODES = ("direct", "local-git", "forge")
BRANCH, REQUEST = "branch", "request"


class SettingEffect(StrEnum):
    """What happens to a setting that was written."""

    ACTS = "acts"
    TOLD = "told"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What a run is like, as far as that decides whether a setting has an effect.

    `style` is how changes leave the machine, `completion` what a task needs to be DONE. `reviews` are the kinds of
    reviewers of any change. `takes` are the settings that the agent's kind reads (None: unknown). `marks` are those of
    a task that request a stronger model. `walls` is the sandbox's name, empty if it is switched off or unavailable.
    """

    mode: str = DIRECT
    schedule: str = "auto"
    healer: bool = False
    listens: bool = True
    http: bool = True
    census: bool = True
    notifies: bool = False
    walls: str = "bubblewrap"
    completion: frozenset[str] = frozenset({"verified"})
    style: str = BRANCH
    forge: str = ""
    mirror_command: bool = False
    auto_merge: bool = False
    expects_ci: bool = True
    webhooks: bool = False
    reviews: frozenset[str] = frozenset()
    repos: bool = False
    interface: bool = False
    merging: str = "queue"
    takes: frozenset[str] | None = None
    works: bool = True
    marks: frozenset[str] = frozenset()

    @property
    def delivers(self) -> bool:
        return self.mode != DIRECT and bool(self.completion & {"pushed", "ci", "mirrored"})

    @property
    def follows_ci(self) -> bool:
        mirrored_by_job = "mirrored" in self.completion and not self.mirror_command
        return self.mode != DIRECT and ("ci" in self.completion or mirrored_by_job)


@dataclass(frozen=True, slots=True)
class Need:
    """Something without which a key has no effect. `name` is for the page, `otherwise` for the author of the key."""

    name: str
    otherwise: str
    is_met: Callable[[Circumstances], bool]
    # Only the mode decides: then the page shows it by mode.
    by_mode: bool = False


def _git(given: Circumstances) -> bool:
    return given.mode != DIRECT


GIT = Need(
    "a git mode",
    "in direct mode agents work in the project itself, and nothing is merged, reviewed, pushed or landed; "
    'set workspace.mode = "local-git" or "forge", or remove it',
    _git,
    by_mode=True,
)
IN_PLACE = Need("direct mode", 'it is for workspace.mode = "direct"; remove it', lambda g: not _git(g), by_mode=True)
HEALER = Need(
    "a healer",
    'nothing is healed: there is no [roles.healer], or policy.heal_schedule is "off"',
    lambda given: given.healer and given.schedule != "off",
)
SCHEDULED = Need(
    "windows", 'policy.heal_schedule is "off", so there are no windows', lambda given: given.schedule != "off"
)
BATCHES = Need(
    "`heal_schedule` = `batch`", 'policy.heal_schedule is not "batch"', lambda given: given.schedule == "batch"
)
RATED = Need(
    "`heal_schedule` = `auto`, or a healer",
    'failure rates are only used with policy.heal_schedule = "auto" or with a healer',
    lambda given: given.schedule == "auto" or (given.healer and given.schedule != "off"),
)
LISTENS = Need("`worker.listen`", "worker.listen is false, so no worker can reach the run", lambda g: g.listens)
HTTP = Need("`worker.http`", "worker.http is false", lambda given: given.listens and given.http)
CENSUS = Need("`verify.census`", "verify.census is false, so no test runner reports", lambda given: given.census)
LEVELS = Need(
    "`merging` = `level`", 'levels need workspace.merging = "level" in a git mode', lambda g: g.merging == "level"
)
WALLS = Need(
    "a sandbox",
    "no sandbox is used: it is switched off (sandbox.use) or this machine has none (ganger doctor)",
    lambda given: bool(given.walls),
)
HIDING = Need(
    "bubblewrap",
    "only bubblewrap can keep agents from reading the other files of the workspace",
    lambda given: given.walls == "bubblewrap",
)
NOTIFIES = Need(
    "`urls`, `webhook` or `desktop`", "notify names none of urls, webhook and desktop", lambda g: g.notifies
)
DELIVERS = Need(
    "delivery",
    'nothing is delivered: delivery.completion has none of "pushed", "ci", "mirrored"',
    lambda given: given.delivers,
)
CI = Need("CI", 'no CI is followed: delivery.completion has neither "ci" nor a "mirrored" that a job proves',
    lambda given: given.follows_ci,
)  # fmt: skip
A_FORGE = Need(
    "a forge",
    "no forge is used: delivery.forge names none, or nothing is delivered",
    lambda given: given.delivers and given.forge not in ("", "command"),
)
EXPECTED = Need(
    "`expects_ci`", "delivery.expects_ci is false: no push needs a CI run, whatever it changes", lambda g: g.expects_ci
)
COMMANDS = Need(
    "`forge` = `command`",
    'CI is not a local command: delivery.forge is not "command", or no CI is followed',
    lambda given: given.follows_ci and given.forge == "command",
)
ONE_BRANCH = Need(
    "style `branch`",
    'each task has a branch of its own: delivery.style is "request", or nothing is delivered',
    lambda given: given.delivers and given.style != REQUEST,
)
REQUESTS = Need(
    "style `request`",
    'there are no change requests: what is delivered goes to the remote\'s branch (delivery.style = "branch")',
    lambda given: given.delivers and given.style == REQUEST,
)
AUTO_MERGE = Need(
    "`auto_merge`", "delivery.auto_merge is false, so people merge the change requests", lambda given: given.auto_merge
)
MIRROR = Need(
    "`mirrored`", 'delivery.completion has no "mirrored"', lambda g: g.delivers and "mirrored" in g.completion
)
MIRROR_JOB = Need(
    "`mirrored`, without `mirror_command`",
    'no CI job proves the mirror: delivery.completion has no "mirrored", or mirror_command proves it',
    lambda given: given.delivers and "mirrored" in given.completion and not given.mirror_command,
)
WEBHOOKS = Need("`webhook_port`", "delivery.webhook_port is 0, so no webhook is received", lambda given: given.webhooks)
REVIEW = Need(
    "a review", "nothing is reviewed: neither delivery.review nor a task requests it", lambda g: bool(g.reviews)
)
BY_AGENT = Need(
    "`review` = `agent`",
    'no agent reviews: neither delivery.review nor a task says "agent"',
    lambda given: "agent" in given.reviews,
)
REPOS = Need("`[repos]`", "there is no [repos]: every task works on the project itself", lambda given: given.repos)
INTERFACE = Need(
    "`interface`",
    "the task's repository has no interface (repos.NAME.interface), so there is nothing to break",
    lambda given: given.interface,
)
WORKS = Need("tasks", "healers and reviewers write nothing; the key is only for roles of tasks", lambda g: g.works)


def takes(key: str) -> Need:
    """Only agents whose kind reads it."""
    return Need(
        "a kind that takes it",
        f"agents of this kind do not take {key}",
        lambda given: given.takes is None or key in given.takes,
    )


def stronger(mark: str) -> Need:
    return Need(
        "a stronger model",
        f"its role has neither strong_model nor strong_effort, or strong_when leaves out {mark}",
        lambda given: mark in given.marks,
    )


_STRONG = Need(
    "`strong_model` or `strong_effort`", "the role has neither strong_model nor strong_effort", lambda g: bool(g.marks)
)
_ANY: tuple[object, ...] = ("*",)


@dataclass(frozen=True, slots=True)
class SettingRow:
    """One key. `guards` are the values that request a safeguard: if they would have no effect, the run does not start.
    `idle` are values that request nothing, so nothing is lost. `spared`: if this need is met, something else provides
    the safeguard, and the key is only reported."""

    key: str
    needs: tuple[Need, ...] = ()
    guards: tuple[object, ...] = ()
    idle: tuple[object, ...] = ()
    spared: Need | None = None

    def unmet(self, given: Circumstances) -> Need | None:
        return next((need for need in self.needs if not need.is_met(given)), None)

    def effect(self, given: Circumstances, value: object) -> SettingEffect:
        if self.unmet(given) is None or value in self.idle:
            return SettingEffect.ACTS
        missed = self.is_guard(value) and not (self.spared is not None and self.spared.is_met(given))
        return SettingEffect.REFUSED if missed else SettingEffect.TOLD

    def is_guard(self, value: object) -> bool:
        if self.guards == _ANY:
            return True
        words = value if isinstance(value, list | tuple) else (value,)
        return any(word in self.guards for word in words)


def _rows(section: str, keys: str, *needs: Need) -> tuple[SettingRow, ...]:
    return tuple(SettingRow(f"{section}.{key}" if section else key, needs) for key in keys.split())


_TERMINAL = (
    "ready ready_sec answers most_answers asks deny newline submit busy done idle_sec settle_sec rescues rescue_text "
    "quit note columns rows"
)
_TAKEN = "argv prompt env model effort max_turns args base_url key_env home_files profile retries script"
_DELIVERY = (
    SettingRow("delivery.completion", (GIT,), guards=("committed", "pushed", "ci", "mirrored"), idle=(["verified"],)),
    SettingRow("delivery.style", (GIT, DELIVERS)),
    SettingRow("delivery.pushes", (GIT, ONE_BRANCH), idle=("train",)),
    SettingRow("delivery.history", (GIT, DELIVERS), idle=("merge",)),
    SettingRow("delivery.forge", (GIT, DELIVERS)),
    *_rows("delivery", "remote branch token_env token_file call_sec poll_sec poll_most_sec", GIT, DELIVERS),
    *_rows("delivery", "url project", GIT, A_FORGE),
    SettingRow("delivery.required_jobs", (GIT, CI), guards=_ANY),
    SettingRow("delivery.base_red", (GIT, A_FORGE, CI), idle=("stop",)),
    SettingRow("delivery.expects_ci", (GIT, A_FORGE, CI), idle=(True,)),
    SettingRow("delivery.ci_paths_ignore", (GIT, A_FORGE, CI, EXPECTED)),
    *_rows(
        "delivery", "ci_events retriggers fixes ask_after fix_sec fix_warn_sec appear_sec ci_sec ci_warn_sec", GIT, CI
    ),
    *_rows("delivery", "ci_most_sec", GIT, CI),
    *_rows("delivery", "jobs reruns", GIT, COMMANDS),
    SettingRow("delivery.mirror_job", (GIT, MIRROR_JOB)),
    SettingRow("delivery.mirror_command", (GIT, MIRROR), guards=_ANY),
    SettingRow("delivery.webhook_port", (GIT, A_FORGE, CI), idle=(0,)),
    SettingRow("delivery.webhook_secret_env", (GIT, A_FORGE, CI, WEBHOOKS)),
    SettingRow("delivery.review", (GIT,), guards=("person", "agent"), idle=("",)),
    # If nothing is pushed, every review is before the merge.
    SettingRow("delivery.review_when", (GIT, REVIEW, DELIVERS), idle=("before",)),
    SettingRow("delivery.reviewer", (GIT, BY_AGENT)),
    *_rows("delivery", "draft labels milestone branch_name", GIT, REQUESTS),
    SettingRow("delivery.auto_merge", (GIT, REQUESTS), guards=(True,), idle=(False,)),
    SettingRow("delivery.delete_branch", (GIT, REQUESTS), idle=(False,)),
    SettingRow("delivery.forge_reviews", (GIT, REQUESTS, A_FORGE), guards=(True,), idle=(False,)),
    SettingRow("delivery.remarks", (GIT, REQUESTS, A_FORGE), idle=(False,)),
    SettingRow("delivery.merge_method", (GIT, REQUESTS, AUTO_MERGE)),
    SettingRow("delivery.updates", (GIT, REQUESTS, AUTO_MERGE)),
    SettingRow("delivery.fork", (GIT, REQUESTS)),
)
SETTINGS: tuple[SettingRow, ...] = (
    *_rows("", "manifest state_dir"),
    *_rows("policy", "heal_schedule concurrency"),
    SettingRow("policy.batch_size", (BATCHES,)),
    SettingRow("policy.failure_threshold", (RATED,)),
    *_rows("policy", "max_worker_attempts_per_task"),
    *_rows("policy", "max_heal_rounds_per_window max_total_heal_rounds signature_repeat_limit", HEALER),
    *_rows("policy", "exhausted quota_wait_sec quota_spread_sec output_limit_mb grace_sec"),
    *(SettingRow(f"policy.{row.name}", (GIT,) if row.needs_git else ()) for row in LIMITS.values()),
    *_rows("limits", "timeout_sec concurrency current_batch_size", HEALER),
    *_rows("budget", "usd tokens attempts wall_sec task_usd task_tokens task_wall_sec attempt_usd attempt_tokens"),
    SettingRow("healing.in_place", (HEALER,), idle=(False,)),
    *_rows("healing", "timeout_sec", HEALER),
    *_rows("healing", "learned_rules"),
    *_rows("agents.*", "kind context_tokens account"),
    *(SettingRow(f"agents.*.{key}", (takes(key),)) for key in _TAKEN.split()),
    SettingRow("agents.*.answer_schema", (takes("answer_schema"),), idle=(False,)),
    SettingRow("agents.*.permissions", (takes("permissions"),), guards=("edit",), idle=("auto",), spared=WALLS),
    SettingRow("agents.*.in_place", (IN_PLACE,)),
    *(SettingRow(f"agents.*.terminal.{key}", (takes("terminal"),)) for key in _TERMINAL.split()),
    *_rows("roles.*", "agent"),
    *(SettingRow(f"roles.*.{key}", (takes(key),)) for key in ("model", "effort", "max_turns", "args")),
    SettingRow("roles.*.paths", (WORKS,)),
    SettingRow("roles.*.may_change_gates", (WORKS,), idle=(False,)),
    *_rows("roles.*", "fallback prompt", WORKS),
    SettingRow("roles.*.strong_model", (WORKS, takes("model"))),
    SettingRow("roles.*.strong_effort", (WORKS, takes("effort"))),
    SettingRow("roles.*.strong_when", (WORKS, _STRONG)),
    *_rows("health", "heartbeat_sec stale_sec stall_sec busy_sec working_sec working_warn_sec active_sec"),
    *_rows("health", "lease_sec", LISTENS),
    *_rows("health", "no_change_sec linger_sec shutdown_sec checkpoint_sec context_pct api_errors look_sec"),
    *_rows("worker", "listen"),
    *_rows("worker", "http tell", LISTENS),
    *_rows("worker", "port", HTTP),
    *_rows("inbox", "remind_sec"),
    *_rows("prompts", "budget_tokens"),
    *_rows("verify", "profiles_file tiers timeout_sec deny expect env recoveries retry_failed census"),
    SettingRow("verify.planted", (CENSUS,), guards=(True,), idle=(False,)),
    *_rows("workspace", "mode protected unprotected"),
    SettingRow("workspace.merging", (GIT,), guards=("level",)),
    *_rows("workspace", "merge_batch merge_gates", GIT),
    *_rows("workspace", "levels_file", GIT, LEVELS),
    *_rows("workspace", "expected_files"),
    *_rows("workspace", "author copied warm min_free_mb", GIT),
    SettingRow("workspace.sign_off", (GIT,), idle=(False,)),
    SettingRow("workspace.co_authors", (GIT,)),
    *_rows("workspace", "linked installed_copies"),
    *_rows("workspace", "snapshot_mb", IN_PLACE),
    SettingRow("workspace.land", (GIT,), guards=("finish",), idle=("ask",)),
    *_rows("sandbox", "use"),
    SettingRow("sandbox.network", (WALLS,), guards=("loopback", "none"), idle=("allow",)),
    *_rows("sandbox", "readable writable processes memory_mb file_mb", WALLS),
    *_rows("prices.*", "input output cache_read cache_write"),
    *(SettingRow(f"repos.*.{key}", (GIT,), guards=_ANY) for key in ("path", "depends_on", "locks", "interface")),
    *_DELIVERY,
    *(replace(row, key=f"repos.*.{row.key}") for row in _DELIVERY),
    *_rows("hooks", "on run timeout_sec"),
    *_rows("notify", "urls webhook desktop"),
    *_rows("notify", "on", NOTIFIES),
)
NO_ROLLBACK = (
    "false has no effect: in this mode a change that fails never reaches the project; it is kept as a separate commit"
)
# Metadata keys of a task in the manifest. Other keys belong to other tools.
METADATA: tuple[SettingRow, ...] = (
    *_rows("metadata", "role files_create files_modify expected_files max_attempts component"),
    *_rows("metadata", "may_change_gates allow_shrinkage"),
    SettingRow("metadata.files_read", (HIDING,), idle=([],)),
    SettingRow("metadata.repo", (REPOS,)),
    SettingRow("metadata.review", (GIT,), guards=("person", "agent"), idle=("none",)),
    SettingRow("metadata.expects_ci", (GIT, A_FORGE, CI), idle=(True,)),
    SettingRow("metadata.may_break_interface", (GIT, INTERFACE), idle=(False,)),
    SettingRow("metadata.complexity", (stronger("high_complexity"),), idle=("low", "medium")),
    *(
        SettingRow(f"metadata.{key}", (stronger(key),), idle=(False,))
        for key in ("critical_path", "security", "cross_repo")
    ),
)
# In the vocabulary, but nothing reads them: any value requests something that would not happen.
UNREAD: Mapping[str, str] = {
    "kind": "every task is worked on in the same way; other kinds, such as research, do not exist",
    "stage": "tasks have no stages; order tasks with depends_on",
}
# A run has one mode; a task may repeat it, and must not contradict it.
MODE = "mode"
KNOWN_METADATA: tuple[str, ...] = (*(row.key.removeprefix("metadata.") for row in METADATA), MODE, *UNREAD)
_BY_KEY: Mapping[str, SettingRow] = {row.key: row for row in (*SETTINGS, *METADATA)}
_NAMED = ("agents", "roles", "prices", "repos")


@dataclass(frozen=True, slots=True)
class IdleSetting:
    """A key that was written and has no effect, and why."""

    key: str
    effect: SettingEffect
    why: str


def plain_key(key: str) -> str:
    """The table's form: without the name of an agent, role, model or repository, and of a member of a table."""
    section, _, rest = key.partition(".")
    # A name may contain dots itself; what follows it is a key of the table.
    found = [f"{section}.*.{tail}" for tail in _tails(rest)] if section in _NAMED else [key]
    return next((one for each in found for one in _shortened(each) if one in _BY_KEY), key)


def _tails(rest: str) -> Iterator[str]:
    words = rest.split(".")
    for place in range(1, len(words)):
        yield ".".join(words[place:])


def _shortened(key: str) -> Iterator[str]:
    while key:
        yield key
        key = key.rpartition(".")[0]


def judge_setting(key: str, value: object, circumstances: Collection[Circumstances]) -> IdleSetting | None:
    """A key that needs any one of several conditions has an effect if one is met."""
    row = _BY_KEY.get(plain_key(key))
    if row is None:
        return None
    return _judge(row, key, value, circumstances)


def judge_metadata(key: str, value: object, given: Circumstances) -> IdleSetting | None:
    """A known key of a task."""
    name = f"metadata.{key}"
    if key == MODE:
        why = f'the run\'s mode is "{given.mode}" for every task (workspace.mode)'
        return None if value == given.mode else IdleSetting(name, SettingEffect.REFUSED, why)
    if key in UNREAD:
        return IdleSetting(name, SettingEffect.REFUSED, UNREAD[key])
    return _judge(_BY_KEY[name], name, value, (given,)) if name in _BY_KEY else None


def _judge(row: SettingRow, key: str, value: object, circumstances: Collection[Circumstances]) -> IdleSetting | None:
    found = [row.effect(given, value) for given in circumstances]
    if not found or SettingEffect.ACTS in found:
        return None
    need = row.unmet(next(iter(circumstances)))
    assert need is not None
    return IdleSetting(key, found[0], need.otherwise)


# --- values that contradict each other --------------------------------------------------------------------------------

# (what should come first, what should come after it, what happens otherwise)
ORDERED: tuple[tuple[str, str, str], ...] = (
    ("health.working_warn_sec", "health.working_sec", "the limit comes first, so the warning never appears"),
    ("health.heartbeat_sec", "health.stale_sec", "a worker that sends heartbeats on time would count as stalled"),
    ("delivery.fix_warn_sec", "delivery.fix_sec", "the limit comes first, so the warning never appears"),
    ("delivery.ci_warn_sec", "delivery.ci_sec", "the limit comes first, so the warning never appears"),
    (
        "delivery.ci_sec",
        "delivery.ci_most_sec",
        "CI may take at least ci_sec, so the smaller ci_most_sec has no effect",
    ),
    (
        "delivery.poll_sec",
        "delivery.poll_most_sec",
        "the smaller upper limit applies, so CI is always polled more often",
    ),
    ("delivery.ask_after", "delivery.fixes", "the fixes are used up before a person is asked"),
)


def disordered(values: Mapping[str, object], written: Collection[str]) -> Iterator[IdleSetting]:
    """Pairs of numbers of which the lower one should be lower; one of the two was written."""
    for low, high, why in ORDERED:
        first, second = values.get(low), values.get(high)
        if (low in written or high in written) and _is_above(first, second):
            yield IdleSetting(low if low in written else high, SettingEffect.TOLD, f"{low} is above {high}: {why}")


def inverted(values: Mapping[str, object]) -> Iterator[IdleSetting]:
    """Empty ranges."""
    for key in ("limits.timeout_sec", "limits.concurrency", "limits.current_batch_size"):
        pair = values.get(key)
        if isinstance(pair, list | tuple) and len(pair) == 2 and _is_above(pair[0], pair[1]):
            why = f"{pair[0]:g} is above {pair[1]:g}, so a healer can change nothing there; put the lower one first"
            yield IdleSetting(key, SettingEffect.REFUSED, why)


def _is_above(first: object, second: object) -> bool:
    return isinstance(first, int | float) and isinstance(second, int | float) and first > second
