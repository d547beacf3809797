"""The sections of the settings: every key with its type, its default and its meaning."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, create_model

from ganger.core.model.counters import LIMITS
from ganger.core.verify.commands import DEFAULT_DENY


def _pattern(text: str) -> str:
    """Refuses a pattern that cannot be compiled: its check would always fail."""
    try:
        re.compile(text)
    except re.error as fault:
        raise ValueError(f"a pattern that can be read ({fault})") from None
    return text


Pattern = Annotated[str, AfterValidator(_pattern)]
_Range = Annotated[list[float], Field(min_length=2, max_length=2)]


# A path within a folder: relative, and never upwards.
_IN_HOME = r"^(?:(?:\.?[^./\x00][^/\x00]*|\.\.[^/\x00]+)/)*(?:\.?[^./\x00][^/\x00]*|\.\.[^/\x00]+)$"


class Section(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class _PolicySection(Section):
    heal_schedule: Literal["auto", "off", "task", "batch", "epoch"] = Field(
        default="auto", description="when healing runs"
    )
    concurrency: int = Field(default=1, ge=1, le=1024, description="how many attempts run at the same time")
    batch_size: int = Field(default=5, ge=1, description="window size of the schedule `batch`")
    failure_threshold: float = Field(default=0.2, ge=0, le=1, description="failure rate above which windows shrink")
    max_worker_attempts_per_task: int = Field(default=2, ge=1, description="worker attempts a task may use")
    exhausted: Literal["fail", "rework"] = Field(
        default="fail",
        description="how a task ends whose attempts are used up by failed checks or refused changes: FAILED, or "
        "BLOCKED(needs_rework), which waits for you",
    )
    max_heal_rounds_per_window: int = Field(default=2, ge=0, description="heal rounds of one window")
    max_total_heal_rounds: int = Field(default=8, ge=0, description="heal rounds of the whole run")
    signature_repeat_limit: int = Field(
        default=2, ge=1, description="how often the same failure may return after healing before the task is ESCALATED"
    )
    quota_wait_sec: float = Field(
        default=300, gt=0, description="how long an account pauses after a quota or rate limit without a stated end"
    )
    quota_spread_sec: float = Field(
        default=20, ge=0, description="period over which an account's workers restart once its quota is back"
    )
    output_limit_mb: float = Field(default=512, gt=0, description="an agent that prints more is stopped")
    grace_sec: float = Field(default=5, ge=0, description="time between SIGTERM and SIGKILL")


if TYPE_CHECKING:

    class PolicySection(_PolicySection): ...
else:
    # The limits of the counters are fields too, as their table has them.
    PolicySection = create_model(
        "PolicySection",
        __base__=_PolicySection,
        **{row.name: (int, Field(default=row.default, ge=0, description=row.description)) for row in LIMITS.values()},
    )


class BudgetSection(Section):
    usd: float | None = Field(default=None, ge=0, description="money the whole run may spend")
    tokens: int | None = Field(default=None, ge=0, description="tokens the whole run may use")
    attempts: int | None = Field(default=None, ge=1, description="worker attempts of the whole run")
    wall_sec: float | None = Field(default=None, gt=0, description="time the run may take, all leads together")
    task_usd: float | None = Field(default=None, ge=0, description="money one task may spend")
    task_tokens: int | None = Field(default=None, ge=0, description="tokens one task may use")
    task_wall_sec: float | None = Field(
        default=None, gt=0, description="time the attempts of one task may take together"
    )
    attempt_usd: float = Field(
        default=0, ge=0, description="money reserved before each attempt, and charged for an attempt of unknown cost"
    )
    attempt_tokens: int = Field(default=0, ge=0, description="tokens reserved before each attempt, as attempt_usd")


class HealingSection(Section):
    in_place: bool = Field(default=False, description="also write healed prompts and context into your own files")
    timeout_sec: float = Field(default=900, ge=1, description="time limit of one call of the healer")
    learned_rules: bool = Field(
        default=False, description="give workers the rules that healers of earlier runs learned, labelled as advice"
    )


class LimitsSection(Section):
    timeout_sec: _Range = Field(
        default=[60, 7200], description="lowest and highest time limit that a healer may give a task"
    )
    concurrency: _Range = Field(default=[1, 8], description="lowest and highest concurrency that a healer may set")
    current_batch_size: _Range = Field(
        default=[1, 21], description="lowest and highest window size that a healer may set"
    )


class TerminalSection(Section):
    ready: str = Field(
        default="", description="pattern that shows it waits for a task; default: no output for idle_sec"
    )
    ready_sec: float = Field(default=60, gt=0, description="how long it may take until then")
    answers: dict[str, str] = Field(default_factory=dict, description="pattern of a question = keys to type")
    most_answers: int = Field(default=100, ge=0, description="how many questions are answered in total")
    asks: str = Field(
        default="", description="pattern of questions that answers does not cover; default: how questions usually look"
    )
    deny: str = Field(
        default="\x1b", description="keys typed at an unforeseen question; the second one stops the agent"
    )
    newline: str = Field(default="\r", description="keys that end a line of the prompt")
    submit: str = Field(default="\r", description="keys that send the prompt")
    busy: str = Field(default="", description="pattern that shows it is working, even without output")
    done: str = Field(default="", description="pattern that shows it has finished, besides a result block")
    idle_sec: float = Field(default=20, gt=0, description="without output for this long it is idle")
    settle_sec: float = Field(default=1, gt=0, description="a screen unchanged for this long counts as complete")
    rescues: int = Field(default=2, ge=0, le=10, description="how often it is prompted again when idle")
    rescue_text: str = Field(
        default="Please finish the task and end with the result block.", description="what is typed then"
    )
    quit: str = Field(default="/exit\r", description="keys that end it")
    note: str = Field(default="", description="text added to every prompt")
    columns: int = Field(default=200, ge=40, le=1000, description="width of its terminal")
    rows: int = Field(default=50, ge=10, le=500, description="height of its terminal")


class AgentSection(Section):
    kind: str = Field(
        description="which adapter: command, claude, codex, opencode, agent, gemini, qwen, copilot, acp, pty, pull, "
        "scripted"
    )
    argv: list[str] = Field(
        default_factory=list,
        description="command: program and arguments with {task_id} {attempt} {prompt_file} {workspace}; "
        "other kinds: the program, if it is not the usual one",
    )
    prompt: Literal["stdin", "argument", "file"] = Field(
        default="stdin", description="how the prompt reaches the agent"
    )
    env: list[str] = Field(
        default_factory=list, description="variables it gets besides the short list that every program gets; no others"
    )
    model: str = Field(default="", description="model name, for agents that take one")
    effort: str = Field(default="", description="how hard the model thinks, in the agent's own terms")
    max_turns: int | None = Field(
        default=None, ge=1, description="most turns of one attempt, for agents that can limit them"
    )
    args: list[str] = Field(default_factory=list, description="more arguments for the agent's program")
    base_url: str = Field(default="", description="another address for the model, such as a gateway")
    key_env: str = Field(default="", description="variable that holds the key; default: the agent's usual ones")
    permissions: Literal["auto", "full", "edit"] = Field(
        default="auto",
        description="what it may do without asking: all, edits; auto: all inside Ganger's sandbox, else edits",
    )
    home_files: list[Annotated[str, Field(pattern=_IN_HOME)]] | None = Field(
        default=None, description="files of your home that it gets copies of; default: its login, if no key is set"
    )
    answer_schema: bool = Field(
        default=False, description="hold the model to the result's JSON Schema, if it supports that"
    )
    profile: str = Field(default="", description="acp: which agent it is; default: recognised by its program")
    retries: int = Field(default=2, ge=0, le=10, description="the agent's own retries, if they can be set")
    context_tokens: int = Field(
        default=0,
        ge=0,
        le=1_000_000_000,
        description="size of its model's context; 0: as reported by the agent",
    )
    terminal: TerminalSection = Field(default_factory=lambda: TerminalSection(), description="pty: how to talk to it")
    script: str = Field(default="", description="behaviour file of a scripted agent")
    account: str = Field(default="", description="who pays: agents of one account share its quota; default: the agent")
    in_place: bool | None = Field(
        default=None,
        description="in direct mode it edits files itself, so it works alone; default: true for pull, else detected",
    )


class RoleSection(Section):
    agent: str = Field(description="name of the agent that plays this role")
    paths: list[str] | None = Field(
        default=None,
        description="what its tasks may change; default: all, but tests for tester and documents for docser",
    )
    may_change_gates: bool | None = Field(
        default=None, description="whether its tasks may change tests and their configuration; default: only tester"
    )
    fallback: str = Field(default="", description="agent that takes over if this one stalls repeatedly")
    prompt: str = Field(default="", description="a file of the project with text for every prompt of this role")
    model: str = Field(default="", description="model of this role; default: the agent's")
    effort: str = Field(default="", description="effort of this role; default: the agent's")
    max_turns: int | None = Field(default=None, ge=1, description="most turns of one attempt; default: the agent's")
    args: list[str] = Field(default_factory=list, description="more arguments for this role")
    strong_model: str = Field(default="", description="model for the role's tasks that need a stronger one")
    strong_effort: str = Field(default="", description="effort for those tasks")
    strong_when: list[Literal["high_complexity", "critical_path", "security", "cross_repo"]] = Field(
        default=["high_complexity", "critical_path", "security", "cross_repo"],
        description="which marks of a task select the stronger one",
    )


class HealthSection(Section):
    heartbeat_sec: float = Field(default=15, gt=0, description="how often workers are asked to send a heartbeat")
    stale_sec: float = Field(
        default=120, gt=0, description="without a heartbeat, from a worker that used to send them: it stalled"
    )
    stall_sec: float = Field(default=600, gt=0, description="without any activity: it stalled")
    busy_sec: float = Field(default=1800, gt=0, description="with processor time as the only activity: it stalled")
    lease_sec: float = Field(
        default=900, gt=0, description="without a message from a session that took a task: it is lost"
    )
    working_sec: float = Field(
        default=1200, gt=0, description="time on a task after which a worker must have been active recently to continue"
    )
    working_warn_sec: float = Field(default=900, gt=0, description="time on a task after which to warn of that")
    active_sec: float = Field(default=300, gt=0, description="how recent that activity must be")
    no_change_sec: float = Field(default=900, gt=0, description="without a changed file since it began: a warning")
    linger_sec: float = Field(default=30, gt=0, description="after its answer, until a worker is asked to exit")
    shutdown_sec: float = Field(default=10, gt=0, description="after that, until it is stopped")
    checkpoint_sec: float = Field(default=300, gt=0, description="how often a checkpoint of a worker is stored")
    context_pct: float = Field(
        default=70, gt=0, le=100, description="how full a model's context may get before a new worker continues"
    )
    api_errors: int = Field(default=3, ge=1, description="consecutive errors of its model that cause a warning")
    look_sec: float = Field(default=1, gt=0, le=60, description="how often every worker is checked")


class WorkerSection(Section):
    listen: bool = Field(default=True, description="whether workers can reach the run (ganger worker)")
    http: bool = Field(default=True, description="also on a port of 127.0.0.1, for MCP over HTTP")
    port: int = Field(default=0, ge=0, le=65535, description="the port; 0: a free one, kept for the run")
    tell: bool = Field(default=True, description="whether prompts mention ganger worker")


class InboxSection(Section):
    remind_sec: float = Field(default=14400, gt=0, description="after how long an open question is shown again")


class PromptsSection(Section):
    budget_tokens: int = Field(
        default=0, ge=0, description="limit of a prompt; what is needed least is cut first; 0: no limit"
    )


class VerifySection(Section):
    profiles_file: str = Field(
        default="verify.json", description="the file with your checks, in the format verify_profile 2.0"
    )
    tiers: dict[str, Literal["syntax", "correctness", "smoke", "quality"]] = Field(
        default_factory=dict, description='"profile/step" = tier; quality does not block'
    )
    timeout_sec: float = Field(default=600, ge=1, description="time limit of a step that sets none")
    deny: list[str] = Field(
        default_factory=lambda: list(DEFAULT_DENY), description="commands that are never run as a check"
    )
    expect: dict[str, Pattern] = Field(
        default_factory=dict, description='"profile/step" = pattern its output must match besides exit code 0'
    )
    env: list[str] = Field(
        default_factory=list, description="variables that checks get besides the short list; no others"
    )
    recoveries: int = Field(
        default=1,
        ge=0,
        le=5,
        description="repeats of a step that a signal killed or whose program has another name here",
    )
    retry_failed: bool = Field(default=False, description="run any failed step again before it counts")
    census: bool = Field(
        default=True,
        description="known test runners report tests by name; tests that ran before a change must run with it",
    )
    planted: bool = Field(default=True, description="plant failing tests in a copy; they must be seen to fail")


class WorkspaceSection(Section):
    mode: Literal["direct", "local-git", "forge"] = Field(
        default="direct",
        description="where agents work; direct: in the project's folder; local-git: in their own workspaces; "
        "forge: the same, with a change request per task",
    )
    protected: list[str] = Field(default_factory=list, description="more paths no agent may write")
    unprotected: list[str] = Field(default_factory=list, description="single paths that agents may write after all")
    merging: Literal["queue", "level"] = Field(
        default="queue", description="merge each verified change at once, or a whole level when it has finished"
    )
    merge_batch: int = Field(default=16, ge=1, le=256, description="changes merged and verified together")
    merge_gates: Literal["all", "own"] = Field(
        default="all",
        description="checks a merged head must pass: those of all merged tasks, or of the newly merged ones",
    )
    levels_file: str = Field(
        default="", description='levels by hand, as {"assignments": {"1": [ids], …}}; default: by dependencies'
    )
    expected_files: Literal["warn", "fail"] = Field(
        default="warn", description="what a missing file of metadata.expected_files does"
    )
    author: str = Field(default="Ganger <ganger@localhost>", description="author of the commits Ganger makes")
    sign_off: bool = Field(default=False, description="commits Ganger makes end with Signed-off-by its author (DCO)")
    co_authors: dict[str, Annotated[str, Field(pattern=r"^[^<>]+ <[^<>\s]+@[^<>\s]+>$")]] = Field(
        default_factory=dict, description="agent = Name <address>, added as Co-authored-by to that agent's commits"
    )
    linked: list[str] = Field(
        default_factory=list,
        description="ignored folders that workspaces see, such as a .venv without the project itself in it",
    )
    copied: list[str] = Field(default_factory=list, description="ignored folders each workspace gets a copy of")
    installed_copies: Literal["refuse", "allow"] = Field(
        default="refuse", description="what a run does if checks would test an installed copy of the project"
    )
    warm: int = Field(default=2, ge=0, le=32, description="workspaces prepared in advance")
    min_free_mb: float = Field(default=500, ge=0, description="disk space below which no workspace is made")
    snapshot_mb: float = Field(
        default=256,
        ge=0,
        description="direct mode: how much is kept to undo an agent's own edits; "
        "the same amount again for git's settings and installed packages if the sandbox does not protect them",
    )
    land: Literal["ask", "finish"] = Field(
        default="ask",
        description="ask: ganger land moves your branch; finish: a run does that itself when it completes",
    )


class SandboxSection(Section):
    use: Literal["auto", "require", "off"] = Field(
        default="auto", description="sandbox for agents and checks; auto: where one works; require: no run without one"
    )
    network: Literal["allow", "loopback", "none"] = Field(default="allow", description="network inside the sandbox")
    readable: list[str] = Field(default_factory=list, description="more paths that may be read inside")
    writable: list[str] = Field(default_factory=list, description="more paths that may be written inside")
    processes: int = Field(default=512, ge=8, description="processes and threads inside")
    memory_mb: int | None = Field(default=None, ge=64, description="memory of each process inside")
    file_mb: int = Field(default=4096, ge=1, description="largest file that may be written inside")


class PriceSection(Section):
    input: float = Field(ge=0, le=1_000_000, description="dollars per million tokens sent")
    output: float = Field(ge=0, le=1_000_000, description="dollars per million tokens received")
    cache_read: float | None = Field(
        default=None, ge=0, le=1_000_000, description="dollars per million tokens read from a cache; default: as input"
    )
    cache_write: float | None = Field(
        default=None, ge=0, le=1_000_000, description="dollars per million tokens put into a cache; default: as input"
    )


class DeliverySection(Section):
    completion: list[Literal["verified", "committed", "pushed", "ci", "mirrored"]] = Field(
        default=["verified"], description="what a task needs to be DONE"
    )
    style: Literal["", "branch", "request"] = Field(
        default="",
        description="push to the remote's branch, or a change request per task; default: by workspace.mode",
    )
    forge: Literal["", "forgejo", "gitea", "github", "gitlab", "command"] = Field(
        default="", description="which forge; command: CI is a local command"
    )
    pushes: Literal["train", "each"] = Field(
        default="train",
        description="style branch: changes merged while CI runs are pushed together (train) or one by one (each)",
    )
    history: Literal["merge", "rebase"] = Field(
        default="merge",
        description="how the run's commits are joined with those of others: by a merge commit, or rebased, without one",
    )
    base_red: Literal["stop", "mend", "ignore"] = Field(
        default="stop",
        description="CI was red before the run: do not begin, have the first task fix it, or charge nobody for it",
    )
    remote: str = Field(default="origin", description="where to push: a remote of the repository, or an address")
    branch: str = Field(default="", description="the remote's branch; default: the one checked out")
    url: str = Field(default="", description="the forge's address; default: the remote's host")
    project: str = Field(default="", description="owner/name on the forge; default: as in the remote's address")
    token_env: str = Field(default="", description="variable that holds the forge's token")
    token_file: str = Field(default="", description="file that holds the forge's token")
    required_jobs: list[str] = Field(
        default_factory=list, description="CI jobs that must succeed, as name or workflow/name; default: all there are"
    )
    expects_ci: bool = Field(
        default=True, description="false: CI need not run on what is pushed; if it runs anyway, its result counts"
    )
    ci_paths_ignore: list[str] = Field(
        default_factory=list,
        description="paths that start no CI run: a push of nothing else needs none, unless one begins",
    )
    ci_events: list[str] = Field(
        default_factory=list,
        description="triggers that count, best first; default: push, for requests pull_request too",
    )
    jobs: dict[str, list[str]] = Field(
        default_factory=dict, description="forge command: name = program and arguments of each CI job, in order"
    )
    reruns: bool = Field(
        default=True,
        description="forge command: CI can run again for the same commit; else an empty commit triggers it",
    )
    mirror_job: str = Field(default="radicle-push", description="the CI job that updates the mirror")
    mirror_command: list[str] = Field(
        default_factory=list,
        description="command that proves the mirror, with {sha} {branch}: exit code 0 is the proof; "
        "without {sha} it must print the commit",
    )
    retriggers: int = Field(default=2, ge=0, le=10, description="how often CI is run again for a task, once per cause")
    fixes: int = Field(default=5, ge=0, le=50, description="attempts to fix what CI found")
    ask_after: int = Field(default=3, ge=1, description="after how many of these attempts you are asked as well")
    fix_sec: float = Field(
        default=900, gt=0, description="time for each of these attempts; after that, only an active worker continues"
    )
    fix_warn_sec: float | None = Field(
        default=None, gt=0, description="after how long to warn of that; default: two thirds of fix_sec"
    )
    appear_sec: float = Field(default=120, gt=0, description="how long a push may wait for a CI run")
    ci_sec: float = Field(default=900, gt=0, description="how long CI may take before it is checked closely")
    ci_warn_sec: float = Field(default=600, gt=0, description="after how long to warn that CI is slow")
    ci_most_sec: float = Field(default=21600, gt=0, description="how long CI may take in total")
    poll_sec: float = Field(default=5, gt=0, description="shortest time between two looks at CI")
    poll_most_sec: float = Field(default=60, gt=0, description="longest time between two looks, when little happens")
    call_sec: float = Field(default=30, gt=0, description="how long the forge may take to answer")
    webhook_port: int = Field(
        default=0, ge=0, le=65535, description="port of 127.0.0.1 for the forge's webhooks; 0: none"
    )
    webhook_secret_env: str = Field(default="", description="variable that holds the secret webhooks are signed with")
    review: Literal["", "person", "agent"] = Field(
        default="", description="who must approve each change; empty: no one"
    )
    review_when: Literal["before", "after"] = Field(default="after", description="before the push, or after CI")
    reviewer: str = Field(default="reviewer", description="role that reviews, for review = agent")
    draft: bool = Field(default=True, description="change requests are drafts until CI is green")
    labels: list[str] = Field(default_factory=list, description="labels of change requests")
    milestone: str = Field(default="", description="milestone of change requests, by its title")
    branch_name: str = Field(default="ganger/{run}/{task}", description="the branch of a task's change request")
    auto_merge: bool = Field(default=False, description="merge change requests that are green and approved")
    delete_branch: bool = Field(default=False, description="remove the branch of a change request that is merged")
    forge_reviews: bool = Field(default=True, description="reviews on the forge count as approval or rework")
    remarks: bool = Field(default=True, description="one comment on each change request, kept current")
    merge_method: Literal["", "merge", "squash", "rebase", "fast-forward"] = Field(
        default="", description="how requests are merged; default: the first of these that the forge allows"
    )
    updates: int = Field(default=5, ge=0, le=50, description="how often a request is updated before you are asked")
    fork: str = Field(
        default="", description="where the branches of requests go: a remote, or an address; default: to remote"
    )


class RepoSection(Section):
    path: str = Field(description="where the repository is")
    depends_on: list[str] = Field(default_factory=list, description="repositories it builds on")
    locks: Literal["exclusive", "shared"] = Field(default="exclusive", description="whether tasks share it")
    interface: list[str] = Field(
        default_factory=list, description="files that others build on: nothing may be removed from them"
    )
    delivery: DeliverySection | None = Field(default=None, description="settings that differ from [delivery]")


class HookSection(Section):
    on: list[str] = Field(
        min_length=1, description="events that call it, by type; or the groups `question`, `finish`, `failure`"
    )
    run: list[str] = Field(
        min_length=1, description="program and arguments, no shell, with {run} {task} {event} {kind} {text} filled in"
    )
    timeout_sec: float = Field(default=30, gt=0, le=3600, description="it is stopped when it takes longer")


class NotifySection(Section):
    on: list[str] = Field(default=["question", "finish"], description="events that are sent, as in `[[hooks]]`")
    urls: list[str] = Field(
        default_factory=list, description="addresses for the library apprise; `env:NAME` is the value of that variable"
    )
    webhook: str = Field(default="", description="http(s) address that gets each event as JSON; or `env:NAME`")
    desktop: bool = Field(default=False, description="show them on the desktop, with notify-send")


class Config(Section):
    manifest: str = Field(default="manifest.json", description="the manifest, relative to the project")
    state_dir: str = Field(
        default=".ganger",
        description="where runs are kept (in direct mode: shown), relative to the project",
    )
    policy: PolicySection = Field(default_factory=lambda: PolicySection())
    limits: LimitsSection = Field(default_factory=lambda: LimitsSection())
    budget: BudgetSection = Field(default_factory=lambda: BudgetSection())
    healing: HealingSection = Field(default_factory=lambda: HealingSection())
    agents: dict[str, AgentSection] = Field(default_factory=dict)
    roles: dict[str, RoleSection] = Field(default_factory=dict)
    health: HealthSection = Field(default_factory=lambda: HealthSection())
    worker: WorkerSection = Field(default_factory=lambda: WorkerSection())
    inbox: InboxSection = Field(default_factory=lambda: InboxSection())
    prompts: PromptsSection = Field(default_factory=lambda: PromptsSection())
    verify: VerifySection = Field(default_factory=lambda: VerifySection())
    workspace: WorkspaceSection = Field(default_factory=lambda: WorkspaceSection())
    sandbox: SandboxSection = Field(default_factory=lambda: SandboxSection())
    prices: dict[str, PriceSection] = Field(default_factory=dict)
    repos: dict[str, RepoSection] = Field(default_factory=dict)
    delivery: DeliverySection = Field(default_factory=lambda: DeliverySection())
    hooks: list[HookSection] = Field(default_factory=list)
    notify: NotifySection = Field(default_factory=lambda: NotifySection())
