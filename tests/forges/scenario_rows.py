"""The scenario table as data: what CI, the forge, the network and other people do, and how a task must end then."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from tests.forges.base_rows import BASES
from tests.forges.loopback.manners import Manners
from tests.forges.loopback.script import GREEN, MIRROR, RED, Fault, Run, by_tree, ci
from tests.forges.merge_rows import MERGES
from tests.forges.scenario import LEAK, Row
from tests.forges.truth import Needs
from tests.forges.workflow_rows import UNREADABLE

EXTERNAL = "BLOCKED(external)"
NO_PATIENCE = "ci_warn_sec = 0.5\nci_sec = 1\nci_most_sec = 5\n"
NO_MIRROR = Needs(mirrored=False)
ONLY_CI = '["verified", "committed", "pushed", "ci"]'
SOON = "ci_sec = 1.5\nci_most_sec = 1.5\nci_warn_sec = 0.5"
ONLY_PUSHED = '["verified", "committed", "pushed"]'
SKIPPED = ci({MIRROR: "block block block skip"})
SKIPPED_ONCE = replace(SKIPPED, again=({MIRROR: "block run ok"},))
CANCELLED = ci({"test": "wait run cancel", MIRROR: "block block cancel"})
CANCELLED_ONCE = replace(CANCELLED, again=({"test": "run ok", MIRROR: "block run ok"},))
TIMED_OUT = ci({"test": "wait run timeout", MIRROR: "block block skip"})
TIMED_OUT_ONCE = replace(TIMED_OUT, again=({"test": "run ok", MIRROR: "block run ok"},))
FLAKY_LOG = {"test": "fetching\nerror: connection reset by peer\n"}
FLAKY = ci({"test": "wait run fail", MIRROR: "block block skip"}, logs=FLAKY_LOG)
FLAKY_ON_MAIN = replace(FLAKY, branches=("main",))
FLAKY_ONCE = replace(FLAKY, again=({"test": "run ok", MIRROR: "block run ok"},))
NEUTRAL_ONCE = ci({"test": "run neutral"}, again=({"test": "ok", MIRROR: "run ok"},))
LINT = Run({"lint": "wait run run ok"}, workflow="lint.yml")
LINT_RED = Run({"lint": "wait run run run fail"}, workflow="lint.yml")
WITH_LINT = ("check", "test", "lint.yml/lint")


def red(n: int) -> Run:
    """Each time another fault, so that none looks like the one before."""
    names = ("alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta")
    return replace(RED, logs={"test": f"E   AssertionError: {names[n % 8]} is not what {names[n % 7]} wants\n"})


BY_FLAVOUR = [
    row
    for flavour in ("forgejo-16", "github", "gitlab", "gitea-1.27", "gitea-1.25", "forgejo-13", "forgejo-11")
    for row in (
        Row(f"green on {flavour}", flavour=flavour, events=("pushed", "ci_seen", "ci_judged", "mirror_proved"),
            slow=flavour in ("gitea-1.25", "gitea-1.27", "forgejo-11")),
        Row(
            f"red then fixed on {flavour}", ((RED,), (GREEN,)), flavour, pushed=2, fixes=1,
            events=("pushed", "ci_judged", "attempt_failed", "attempt_started", "pushed", "ci_judged"),
            slow=flavour not in ("forgejo-16", "github"),
        ),
    )
]  # fmt: skip
MIRRORS = [
    Row("mirror skipped, an empty commit mends it", ((SKIPPED,), (GREEN,)), pushed=2, empty=1,
        events=("pushed", "retrigger_intended", "push_intended", "pushed", "retriggered", "ci_judged")),
    Row("mirror skipped on gitea 1.25", ((SKIPPED,), (GREEN,)), "gitea-1.25", pushed=2, empty=1, slow=True),
    Row("mirror skipped on forgejo 13", ((SKIPPED,), (GREEN,)), "forgejo-13", pushed=2, empty=1, slow=True),
    Row("mirror skipped on forgejo 11", ((SKIPPED,), (GREEN,)), "forgejo-11", pushed=2, empty=1, slow=True),
    Row("mirror skipped, github runs it again", ((SKIPPED_ONCE,),), "github", reruns=1),
    Row("mirror skipped, gitea 1.27 runs it again", ((SKIPPED_ONCE,),), "gitea-1.27", reruns=1, slow=True),
    Row("mirror skipped on gitlab", ((SKIPPED,), (GREEN,)), "gitlab", pushed=2, empty=1, slow=True),
    Row("mirror skipped again: once per cause", ((SKIPPED,), (SKIPPED,)), ends=EXTERNAL, pushed=2, empty=1,
        says="mirror"),
    Row("mirror skipped again on github", ((SKIPPED,),), "github", EXTERNAL, reruns=1, says="mirror", slow=True),
    Row("mirror not in the run", ((ci({MIRROR: None}),), (ci({MIRROR: None}),)), ends=EXTERNAL, pushed=2, empty=1,
        says="missing_job", slow=True),
    Row("mirror failed once", ((ci({MIRROR: "block block run fail"}),), (GREEN,)), pushed=2, empty=1),
    Row("mirror skipped on a red run is not run again", ((RED,), (GREEN,)), pushed=2, fixes=1, slow=True,
        never=("retrigger_intended",)),
    Row("no retriggers allowed", ((SKIPPED,),), ends=EXTERNAL, more="retriggers = 0", says="mirror"),
    Row("nobody asks for the mirror", ((SKIPPED,),), completion=ONLY_CI, needs=NO_MIRROR, slow=True),
    Row("github refuses to run it again, an empty commit does", ((SKIPPED,), (GREEN,)), "github", pushed=2, empty=1,
        faults=(Fault("rerun", "422", 1, 9),)),
    Row("mirror by command", ((ci({MIRROR: None}),),), slow=True,
        more='mirror_command = ["git", "--git-dir={remote}", "cat-file", "-e", "{{sha}}"]'),
]  # fmt: skip
STOPPED = [
    Row("cancelled once", ((CANCELLED,), (GREEN,)), pushed=2, empty=1),
    Row("cancelled once on github", ((CANCELLED_ONCE,),), "github", reruns=1, slow=True),
    Row("cancelled twice", ((CANCELLED,), (CANCELLED,)), ends=EXTERNAL, pushed=2, empty=1, says="cancelled", slow=True),
    Row("a required job skipped once", ((ci({"test": "skip", MIRROR: "skip"}),), (GREEN,)), pushed=2, empty=1),
    Row("timed out once on github", ((TIMED_OUT_ONCE,),), "github", reruns=1, never=("attempt_failed",)),
    Row("timed out once on gitlab", ((TIMED_OUT_ONCE,),), "gitlab", reruns=1, never=("attempt_failed",), slow=True),
    Row("flaky network in the log: run again, nobody mends", ((FLAKY,), (GREEN,)), pushed=2, empty=1,
        never=("attempt_failed",)),
    Row("flaky network on github", ((FLAKY_ONCE,),), "github", reruns=1, never=("attempt_failed",)),
    Row("flaky network twice is mended", ((FLAKY,), (FLAKY,), (GREEN,)), pushed=3, empty=1, fixes=1, slow=True),
    Row("flaky network twice where CI judges no other branch", ((FLAKY_ON_MAIN,), (FLAKY_ON_MAIN,), (GREEN,)), pushed=3,
        empty=1, fixes=1, slow=True),
    Row("flaky network, then a fault of its own", ((FLAKY,), (RED,), (GREEN,)), pushed=3, empty=1, fixes=1, slow=True),
    Row("flaky network twice is not excused as older than the run", ((FLAKY,), (FLAKY,), (GREEN,)), pushed=3, empty=1,
        fixes=1, more='base_red = "ignore"', completion=ONLY_CI, needs=NO_MIRROR, never=("ci_waived",), slow=True),
    Row("needs approval on forgejo", ((ci({"test": "approve", MIRROR: "block"}),),), ends=EXTERNAL, says="approv",
        never=("retrigger_intended",)),
    Row("needs approval on github", ((ci({"test": "approve", MIRROR: "block"}),),), "github", EXTERNAL, says="approv"),
    Row("needs approval on gitlab", ((ci({"test": "approve", MIRROR: "block"}),),), "gitlab", EXTERNAL, says="approv",
        slow=True),
    Row("an unknown word is no verdict", ((ci({"test": "run odd"}),),), ends=EXTERNAL, says="not finished",
        more=SOON, never=("ci_judged",)),
    Row("a runner that never comes", ((ci({"test": "wait", MIRROR: "block"}),),), ends=EXTERNAL, says="not finished",
        more=SOON, never=("ci_judged",), slow=True),
]  # fmt: skip
ABSENT = [
    Row("no run ever", ((),), ends=EXTERNAL, says="never started", never=("ci_judged",)),
    Row("no run ever on github", ((),), "github", EXTERNAL, says="never started", slow=True),
    Row("the run comes late", ((ci(after=6),),), more="appear_sec = 5"),
    Row("the run comes late on github, and asking is free", ((ci(after=8),),), "github", more="appear_sec = 5",
        unchanged=3),
    Row("an older commit's run is green", ((ci(sha="parent"),),), ends=EXTERNAL, says="never started"),
    Row("another commit's run is green", ((ci(sha="other"),),), "github", EXTERNAL, says="never started", slow=True),
    Row("the commit's field is empty", ((ci(sha="empty"),),), ends=EXTERNAL, says="never started"),
    Row("the commit's field is filled late", ((ci(sha="late"),),), more="appear_sec = 5"),
    Row("the commit's field is missing", ((ci(sha="missing"),),), ends=EXTERNAL, says="never started", slow=True),
    Row("the commit's field is short", ((ci(sha="short"),),), ends=EXTERNAL, says="never started", slow=True),
    Row("the commit's field is empty on github", ((ci(sha="empty"),),), "github", EXTERNAL, says="never started",
        slow=True),
    Row("the run is deleted", ((ci(gone=2),),), ends=EXTERNAL, never=("ci_judged",), more=SOON),
    Row("a deleted run, and another", ((ci({"test": "wait run fail"}, gone=1), ci(after=1)),), slow=True),
]  # fmt: skip
WORKFLOWS = [
    Row("two workflows, both green", ((GREEN, LINT),), required=WITH_LINT, needs=Needs(WITH_LINT)),
    Row("two workflows, one red", ((GREEN, LINT_RED), (GREEN, LINT)), required=WITH_LINT, needs=Needs(WITH_LINT),
        pushed=2, fixes=1),
    Row("two workflows, the second comes late and red", ((GREEN, replace(LINT_RED, after=6)), (GREEN, LINT)),
        required=WITH_LINT, needs=Needs(WITH_LINT), pushed=2, fixes=1, more="appear_sec = 5", says="lint is broken"),
    Row("nothing is named: every job counts", ((GREEN, LINT_RED), (GREEN, LINT)), required=(), needs=Needs(()),
        pushed=2, fixes=1, slow=True),
    Row("an unrequired job fails first", ((ci({"lint": "run fail", "test": "wait wait run run run ok"}),),)),
    Row("a required job is missing", ((ci({"test": None}),), (GREEN,)), pushed=2, fixes=1),
    Row("one leg of a matrix is red", ((Run({"t (1)": "run ok", "t (2)": "run fail", MIRROR: "skip"}),),
        (Run({"t (1)": "run ok", "t (2)": "run ok", MIRROR: "block run ok"}),)), required=("t (1)", "t (2)"),
        needs=Needs(("t (1)", "t (2)")), pushed=2, fixes=1),
    Row("a run by hand is green, the push is red", ((RED, ci(dict.fromkeys(("check", "test", MIRROR), "ok"),
        event="workflow_dispatch")), (GREEN,)), pushed=2, fixes=1),
    Row("a run by hand is red, the push is green", ((GREEN, replace(RED, event="workflow_dispatch")),)),
    Row("the run says success before its jobs do", ((ci(word="success"),),)),
    Row("the run says failure, its required jobs succeed", ((ci(word="failure"),),), slow=True),
    Row("allowed to fail on gitlab", ((ci({"lint": "run allowed"}),),), "gitlab", required=(), needs=Needs(())),
    Row("neutral is not success on github", ((NEUTRAL_ONCE,),), "github", reruns=1, slow=True),
]  # fmt: skip
FIXES = [
    Row("red five times and once more", tuple((red(n),) for n in range(8)), ends="ESCALATED", pushed=6, fixes=5,
        asks=True),
    Row("no fixes allowed", ((RED,),), ends="ESCALATED", more="fixes = 0", asks=True),
    Row("the same fault twice asks a person, and goes on", ((RED,), (RED,), (GREEN,)), pushed=3, fixes=2, asks=True),
    Row("fixed at the third", ((red(0),), (red(1),), (red(2),), (GREEN,)), pushed=4, fixes=3, asks=None, slow=True),
    Row("the log is gone", ((replace(RED, logs={"test": None}),), (GREEN,)), pushed=2, fixes=1),
    Row("the log is gone on github", ((replace(RED, logs={"test": None}),), (GREEN,)), "github", pushed=2, fixes=1,
        slow=True),
    Row("the log is out of reach", ((RED,), (GREEN,)), pushed=2, fixes=1, faults=(Fault("log", "502", 1, 9),)),
    Row("a key in the log halts", ((replace(RED, logs={"test": f"error: {LEAK}\n"}),),), ends="FAILED", asks=True,
        says="halted", events=("ci_judged", "chain_halted")),
]  # fmt: skip
TROUBLE = [
    Row("502 storm on the list", faults=(Fault("runs", "502", 2, 8),)),
    Row("502 storm on the jobs", faults=(Fault("jobs", "502", 1, 6),)),
    Row("502 storm on everything", faults=(Fault("any", "502", 4, 7),), slow=True),
    Row("resets", faults=(Fault("any", "reset", 4, 5),)),
    Row("no answer at all for a while", faults=(Fault("runs", "silence", 2, 1),), more="call_sec = 0.5"),
    Row("no JSON", faults=(Fault("runs", "garbage", 2, 3), Fault("jobs", "garbage", 2, 2)), slow=True),
    Row("half answers", faults=(Fault("runs", "cut", 2, 2), Fault("jobs", "cut", 1, 1))),
    Row("429 with its end", flavour="github", faults=(Fault("runs", "limited", 3, 1),)),
    Row("429 on forgejo", faults=(Fault("jobs", "limited", 1, 1),), slow=True),
    Row("secondary limit", flavour="github", faults=(Fault("runs", "secondary", 3, 1),), slow=True),
    Row("404 for a moment", faults=(Fault("jobs", "404", 1, 1),), slow=True),
    Row("token revoked midway", faults=(Fault("runs", "revoked", 3, 1),), ends=EXTERNAL, says="token", more=NO_PATIENCE,
        asks=False),
    Row("token revoked midway on github", flavour="github", faults=(Fault("runs", "revoked", 3, 1),), ends=EXTERNAL,
        more=NO_PATIENCE, asks=False, slow=True),
    Row("token wrong from the start", token="another-token", ends=EXTERNAL, pushed=1, more=NO_PATIENCE, asks=False),
    Row("the forge's clock is a day ahead", skew=86400.0),
    Row("the forge's clock is a day behind", skew=-86400.0, flavour="github", faults=(Fault("runs", "limited", 3, 1),),
        slow=True),
]  # fmt: skip
OTHERS = [
    Row("a newer push while waiting, green", meanwhile=((2, "push"),), others=(GREEN,)),
    Row("a newer push is green, ours is red", ((RED,), (GREEN,)), meanwhile=((1, "push"),), others=(ci(
        dict.fromkeys(("check", "test", MIRROR), "ok")),), pushed=2, fixes=1),
    Row("a newer push is red, ours is green", meanwhile=((1, "push"),), others=(RED,), slow=True),
    Row("somebody pushed before", before=("push",), others=(GREEN,)),
    Row("somebody pushed the same file before", before=("push a.txt",), others=(GREEN,), slow=True,
        events=("attempt_failed", "merged", "pushed", "ci_judged")),
    Row("a hook of the remote refuses", before=("refuse policy: not today",), ends=EXTERNAL, pushed=0,
        says="not today"),
    Row("two tasks side by side", tasks=2, most=2),
    Row("five tasks side by side", tasks=5, most=5, slow=True),
    Row("three tasks share a repository of a graph", tasks=3, most=3, locks="shared", slow=True),
    Row("three tasks one after the other in a repository of a graph", tasks=3, pushed=3, locks="exclusive"),
    Row("only pushed: CI is not asked for", ((RED,),), completion=ONLY_PUSHED,
        needs=Needs(ci=False, mirrored=False), never=("ci_seen",)),
]  # fmt: skip
REQUEST = 'style = "request"\n'
ASKED = [
    row
    for flavour in ("forgejo-16", "github", "gitlab", "gitea-1.27")
    for row in (
        Row(f"a change request on {flavour}", flavour=flavour, more=REQUEST + 'labels = ["ganger"]', requests=1,
            events=("pushed", "request_opened", "ci_judged", "request_changed"),
            slow=flavour in ("gitea-1.27", "gitlab")),
        Row(f"merged when green on {flavour}", flavour=flavour, more=REQUEST + "auto_merge = true", requests=1,
            events=("pushed", "request_opened", "ci_judged", "request_changed", "request_changed"),
            slow=flavour != "forgejo-16"),
    )
] + [
    Row("a change request that was there", more=REQUEST, requests=1, before=("request ganger/r1/a",)),
    Row("a change request red then fixed", ((RED,), (GREEN,)), more=REQUEST, requests=1, pushed=2, fixes=1),
    Row("the answer to a new change request is lost", more=REQUEST, requests=1, faults=(Fault("open", "cut"),)),
    Row("the answer is lost on github", flavour="github", more=REQUEST, requests=1, faults=(Fault("open", "cut"),),
        slow=True),
    Row("runs of change requests count", ((ci(event="pull_request"),),), more=REQUEST, requests=1,
        needs=Needs(events=("push", "pull_request"))),
    Row("mirror skipped in a change request", ((SKIPPED,), (GREEN,)), more=REQUEST, requests=1, pushed=2, empty=1,
        slow=True),
]  # fmt: skip
REAL = [
    Row("CI by the clock judges the files: red, then mended", ((by_tree("a.txt~attempt 1", sec=0.5),),), pushed=2,
        fixes=1, says="a.txt~attempt 1 is in the way"),
    Row("runs begin a moment after the push, and another push cancels them", ((by_tree(sec=0.3),),),
        more="appear_sec = 5", manners=Manners(cancels=True, folds_sec=0.3), slow=True),
]  # fmt: skip
WAITS = "BLOCKED(awaiting_review)"
PERSON = REQUEST + 'review = "person"\n'
MERGE = REQUEST + "auto_merge = true\n"
OBJECTED = ((1, "review changes the greeting is wrong"), (1, "remark a.txt 1 say hello, not hi"))
# GitHub keeps a request for changes after a push, and GitLab a reviewer's state; Forgejo and Gitea do not.
KEEPS = ("github", "gitlab")
REVIEWED = [
    replace(row, slow=flavour not in ("forgejo-16", "github"))
    for flavour in ("forgejo-16", "github", "gitlab", "gitea-1.27")
    for row in (
        Row(f"changes are asked for on {flavour}: not merged, done again", ((GREEN,),), flavour, requests=1, pushed=2,
            more=MERGE + "delete_branch = true\n", meanwhile=OBJECTED, asks=flavour in KEEPS,
            then=("dismiss",) if flavour in KEEPS else (), prompt="a.txt:1: say hello, not hi",
            events=("request_opened", "ci_judged", "review_asked", "reviewed", "attempt_started", "pushed",
                    "request_changed", "ci_judged", "request_changed")),
        Row(f"approved on {flavour} before CI is through", flavour=flavour, requests=1, more=PERSON, asks=False,
            meanwhile=((1, "review approve good"),), events=("ci_judged", "review_asked", "reviewed")),
        Row(f"approved on {flavour} while nobody leads", flavour=flavour, requests=1, more=PERSON, asks=True,
            then=("review approve good",), events=("review_asked", "task_settled", "reviewed", "task_settled")),
        Row(f"an approval that is dismissed on {flavour} is none", flavour=flavour, requests=1, more=PERSON, ends=WAITS,
            meanwhile=((1, "review approve good"), (1, "dismiss")), never=("reviewed",)),
        Row(f"an approval from before the mend is stale on {flavour}", ((RED,), (GREEN,)), flavour, requests=1,
            pushed=2, fixes=1, more=PERSON, ends=WAITS, meanwhile=((1, "review approve good"),), never=("reviewed",),
            before=("protect main push approvals=1 dismisses_stale",)),
        Row(f"a comment on {flavour} is no review", flavour=flavour, requests=1, more=PERSON, ends=WAITS,
            meanwhile=((1, "review comment hm"),), never=("reviewed",)),
        Row(f"sent back on {flavour} while nobody leads", ((GREEN,),), flavour, requests=1, pushed=2, more=PERSON,
            then=("review changes the greeting is wrong",), ends=WAITS, prompt="the greeting is wrong"),
        Row(f"merged by hand on {flavour} while a review is awaited", flavour=flavour, requests=1, more=PERSON,
            then=("merge",), asks=True),
        Row(f"the forge wants an approval on {flavour}", flavour=flavour, requests=1, more=MERGE,
            before=("protect main push approvals=1",), then=("review approve good",), asks=True),
        Row(f"an approval on {flavour} holds when the target goes on", ((by_tree(),),), flavour, requests=1, pushed=2,
            more=MERGE, before=("protect main push approvals=1",), others=(by_tree(),), asks=False,
            meanwhile=((1, "review approve good"), (2, "push")), events=("update_intended", "merge_intended")),
        Row(f"merged and its branch removed on {flavour}", flavour=flavour, requests=1,
            more=MERGE + "delete_branch = true\n"),
    )
] + [
    Row("nobody counts reviews on the forge", more=MERGE + "forge_reviews = false\n", meanwhile=OBJECTED, requests=1,
        never=("review_asked", "reviewed")),
    Row("no comments are wanted", more=MERGE + "remarks = false\n", requests=1, never=("remarked",)),
    Row("an empty commit takes no approval away", ((SKIPPED,), (GREEN,)), requests=1, pushed=2, empty=1, asks=False,
        more=PERSON, meanwhile=((1, "review approve good"),)),
    Row("a milestone and labels are on the request", more=MERGE + 'labels = ["ganger"]\nmilestone = "1.0"\n',
        before=("milestone 1.0",), requests=1),
    Row("the answer to a comment is lost", more=MERGE, requests=1, faults=(Fault("comments", "cut", 2, 1),)),
]  # fmt: skip
OUTAGES = [
    Row("away before the push", over_http=True, before=("outage awaited",), asks=False,
        events=("host_awaited", "pushed")),
    Row("away while CI runs", over_http=True, meanwhile=((2, "outage awaited"),), events=("pushed", "host_awaited",
        "ci_judged"), asks=False),
    Row("502 while CI runs", meanwhile=((2, "outage awaited 502"),), events=("pushed", "host_awaited", "ci_judged"),
        asks=False, slow=True),
    *(Row(f"away while CI runs on {flavour}", flavour=flavour, over_http=True, meanwhile=((2, "outage awaited"),),
        events=("host_awaited", "ci_judged"), asks=False, slow=True) for flavour in ("gitea-1.27", "github", "gitlab")),
    Row("six requests and one outage", tasks=6, more=REQUEST, over_http=True, meanwhile=((3, "outage awaited"),),
        pushed=6, requests=6, events=("host_awaited",), asks=False),
    Row("the token is revoked, and renewed a moment later", over_http=True, meanwhile=((2, "revoke awaited"),),
        events=("host_awaited", "ci_judged"), asks=False, says="refused the token"),
    Row("revoked before the push, and renewed a moment later", over_http=True, before=("revoke awaited",),
        events=("host_awaited", "pushed"), asks=False, says="refused the token", slow=True),
    Row("six requests and one dead token", tasks=6, more=REQUEST, over_http=True, meanwhile=((3, "revoke awaited"),),
        pushed=6, requests=6, asks=False, says="refused the token", slow=True),
    Row("an outage outlasts all patience, then it is retried", over_http=True, meanwhile=((2, "outage 600"),),
        retry="back", more=NO_PATIENCE, asks=False, says="has not answered since", slow=True),
    Row("a merge asks for an answer that is lost in an outage", more=REQUEST + "auto_merge = true", requests=1,
        over_http=True, faults=(Fault("merge", "reset", 1, 3),), asks=False, slow=True),
]  # fmt: skip
RETRIED = [
    Row("token renewed, then retried", faults=(Fault("runs", "revoked", 3, 1),), retry="restore", more=NO_PATIENCE,
        asks=False),
    Row("approved, then retried", ((ci({"test": "approve", MIRROR: "block"}),),), retry="approve"),
    Row("begun by hand, then retried", ((),), retry="begin"),
    Row("allowed by the remote, then retried", before=("refuse policy: not today",), retry="allow", slow=True),
]  # fmt: skip
HOOKS = [
    Row(f"{what} on {flavour}", flavour=flavour, meanwhile=meanwhile, answers=answers, more=(
        'poll_sec = 0.4\npoll_most_sec = 0.5\nwebhook_port = {port}\nwebhook_secret_env = "LOOPBACK_HOOKS"'),
        slow=slow)
    for what, meanwhile, flavour, answers, slow in (
        ("a webhook hastens the next look", ((1, "hook d1"), (2, "hook d2")), "forgejo-16", (200, 200), False),
        ("duplicate webhooks", ((1, "hook d1"), (1, "hook d1"), (2, "hook d1")), "github", (200,) * 3, True),
        ("a forged webhook", ((1, "forged d1"), (2, "forged d2")), "forgejo-16", (401, 401), False),
        ("a webhook", ((1, "hook d1"),), "gitlab", (200,), True),
    )
]  # fmt: skip


def _timeline() -> list[Row]:
    """What a running Forgejo 16 was seen to do, look by look."""
    place = Path(__file__).resolve().parents[1] / "data/forge/fixtures/forgejo-16/timeline.json"
    words = {"waiting": "wait", "blocked": "block", "running": "run", "success": "ok", "failure": "fail",
             "cancelled": "cancel", "skipped": "skip"}  # fmt: skip
    runs: dict[str, Run] = {}
    for told in json.loads(place.read_text(encoding="utf-8")):
        names = told["seen"][0]["jobs"]
        jobs = {name: " ".join(words[one["jobs"][name]] for one in told["seen"]) for name in names}
        runs[told["scenario"]] = Run(jobs, event=told["trigger_event"])
    needed = ("check", "format", "audit", "build", "test", "coverage")
    broken, green, empty = runs["1-broken"], runs["2-green"], runs["4-empty"]
    rows = [
        Row("as recorded: broken, then green", ((broken,), (green,)), pushed=2, fixes=1),
        Row("as recorded: a run by hand beside the push", ((green, runs["3-dispatch"]),), slow=True),
        Row(
            "as recorded: cancelled, then an empty commit",
            ((runs["5-cancel"],), (empty,)),
            pushed=2,
            empty=1,
            slow=True,
        ),
    ]
    return [replace(row, required=needed, needs=Needs(needed)) for row in rows]


# More of what other rows of the default slice show.
_MORE = frozenset(
    {
        "no retriggers allowed",
        "mirror failed once",
        "a required job skipped once",
        "flaky network on github",
        "needs approval on github",
        "two workflows, both green",
        "a run by hand is red, the push is green",
        "allowed to fail on gitlab",
        "no fixes allowed",
        "the same fault twice asks a person, and goes on",
        "the log is out of reach",
        "502 storm on the jobs",
        "resets",
        "half answers",
        "token wrong from the start",
        "a newer push while waiting, green",
        "a change request red then fixed",
        "one leg of a matrix is red",
    }
)
_EVERY: list[Row] = [
    *BY_FLAVOUR, *MIRRORS, *STOPPED, *ABSENT, *WORKFLOWS, *FIXES, *TROUBLE, *OTHERS, *ASKED, *REVIEWED, *RETRIED,
    *REAL, *OUTAGES, *HOOKS, *MERGES, *UNREADABLE, *BASES, *_timeline(),
]  # fmt: skip
ROWS = [replace(row, slow=row.slow or row.name in _MORE) for row in _EVERY]
