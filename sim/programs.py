"""What simulated processes do: workers, healers and checks, each by the truth of its world and a chance of its own."""

from __future__ import annotations

import json
import random
import re
from dataclasses import fields

from ganger.ports.processes import Launch
from sim.clock import SimClock
from sim.keeper import Ending
from sim.plan import Cause, HealerRates, Plan, Rates
from sim.workspace import Project

RESULT = "<<<TASK_RESULT_V2>>>\n{body}\n<<<END_TASK_RESULT_V2>>>\n"
DECISION = "<<<HEAL_DECISION_V2>>>\n{body}\n<<<END_HEAL_DECISION_V2>>>\n"
# By its path: what is only a name would be looked for on the PATH of the machine.
CHECK, PROFILE = "./check", "check"
HEALER = "healer"
GOOD = "good"
_BIG = 300_000
_TOO_LONG_SEC = 10 * 3600.0
_VERIFY_KEY = re.compile(r"\.verify\.(\d+)\.")


def output_path(task: str) -> str:
    return f"out/{task}.txt"


class Programs:
    """Every launch ends as its seed, task and attempt say, in whatever order launches come."""

    def __init__(self, plan: Plan, project: Project, clock: SimClock) -> None:
        self.plan, self.project, self._clock = plan, project, clock

    def __call__(self, launch: Launch) -> Ending:
        if launch.argv[0] == CHECK:
            return self._check(launch)
        return self._heal(launch) if launch.argv[0] == HEALER else self._work(launch)

    def _chance(self, launch: Launch) -> random.Random:
        name = "/".join(launch.log_path.parts[-2:]) + launch.key.rpartition("/")[2]
        return random.Random(f"{self.plan.seed}:{name}")  # noqa: S311

    def _calm(self) -> bool:
        return self._clock.elapsed >= self.plan.calm_at

    # --- workers --------------------------------------------------------------------------------------------------

    def _work(self, launch: Launch) -> Ending:
        _, task, attempt = launch.argv[:3]
        chance = self._chance(launch)
        lasts = min(chance.uniform(*self.plan.work_sec), 0.9 * (launch.timeout_sec or _TOO_LONG_SEC))
        way = _pick(chance, Rates() if self._calm() else self.plan.rates)
        body = self._answer(task, launch, chance, way)
        text = f"working on {task}, attempt {attempt}\n{usage_line(chance)}\n"
        refused = self._refused(lasts, chance)
        if refused is not None:
            return Ending(refused[0], f"{text}limit: reset={refused[1]}\n", code=1)
        match way:
            case "crash":
                return Ending(lasts / 2, text, code=None, signal=11)
            case "hang":
                return Ending(_TOO_LONG_SEC, text)
            case "stall":
                return Ending(_TOO_LONG_SEC, text, idle=True)
            case "silent":
                return Ending(lasts, text)
            case "garbage":
                return Ending(lasts, text + RESULT.format(body='{"contract_version": "2.0", '))
            case "not_started":
                return Ending(0.0, error="no such program")
            case "oversized":
                return Ending(lasts, text + "x" * _BIG + "\n" + RESULT.format(body=body))
            case _:
                return Ending(lasts, text + RESULT.format(body=body))

    def _refused(self, lasts: float, chance: random.Random) -> tuple[float, float] | None:
        """After how long its account's quota stops it, and when that comes back (Unix time)."""
        now = self._clock.elapsed
        for outage in self.plan.outages:
            if now < outage.end and outage.start < now + lasts:
                after = max(outage.start - now, 0.0) + chance.uniform(0.5, 5.0)
                return after, round(self._clock.now() + outage.end - now, 3)
        return None

    def _answer(self, task: str, launch: Launch, chance: random.Random, way: str) -> str:
        said: dict[str, object] = {"contract_version": "2.0", "task_id": task, "status": "DONE", "summary": "did it"}
        match way:
            case "wrong_id":
                said["task_id"] = "another-task"
            case "blocked":
                said |= {"status": "BLOCKED", "summary": "the licence server is away"}
            case "quota":
                said |= {"status": "BLOCKED", "summary": "usage limit reached", "failure_class": "quota"}
            case "denied":
                said |= {"status": "BLOCKED", "summary": "may not write", "failure_class": "permission_denied"}
            case "failed":
                cls = chance.choice(("prompt_gap", "missing_paths", "real_bug", "weak_contract"))
                said |= {"status": "FAILED", "summary": f"gave up: {cls}", "failure_class": cls}
            case "transient":
                said |= {"status": "FAILED", "summary": "503 from the server", "failure_class": "transient_infra"}
            case "outside":
                said["writes"] = [{"path": "../evil", "op": "create", "encoding": "utf8", "content": "x"}]
            case _:
                said["writes"] = self._writes(task, launch, unlucky=way == "unlucky")
        text = json.dumps(said)
        return text[:-1] + ",}" if way == "repaired" else text

    def _writes(self, task: str, launch: Launch, *, unlucky: bool) -> list[dict[str, str]]:
        """Good work needs every sentence in the prompt that was really given."""
        prompt = launch.stdin_path.read_text(encoding="utf-8") if launch.stdin_path else ""
        missing = [cause for cause in self.plan.needs.get(task, ()) if cause.sentence not in prompt]
        verdict = missing[0].error if missing else GOOD
        if task in self.plan.hopeless:
            verdict = "RuntimeError: nobody can do this"
        elif unlucky and not missing:
            verdict = "ValueError: a slip of this attempt"
        line = f"{task} {launch.argv[2]} {verdict}\n"
        if task in self.plan.appends:
            return [{"path": output_path(task), "op": "append", "encoding": "utf8", "content": line}]
        op = "replace" if output_path(task) in self.project.files else "create"
        second = output_path(task) + ".notes"
        op2 = "replace" if second in self.project.files else "create"
        return [
            {"path": output_path(task), "op": op, "encoding": "utf8", "content": line},
            {"path": second, "op": op2, "encoding": "utf8", "content": line},
        ]

    # --- checks ---------------------------------------------------------------------------------------------------

    def _check(self, launch: Launch) -> Ending:
        task = checked_task(launch)
        chance = self._chance(launch)
        lasts = chance.uniform(*self.plan.check_sec)
        if not self._calm() and chance.random() < self.plan.rates.slow_check:
            return Ending(_TOO_LONG_SEC, "still checking\n")
        lines = self.project.files.get(output_path(task), "").splitlines()
        said = lines[-1].partition(" ")[2].partition(" ")[2] if lines else "AssertionError: nothing was written"
        return Ending(lasts, "ok\n") if said == GOOD else Ending(lasts, f"{said}\n", code=1)

    # --- healers --------------------------------------------------------------------------------------------------

    def _heal(self, launch: Launch) -> Ending:
        prompt = launch.stdin_path.read_text(encoding="utf-8") if launch.stdin_path else ""
        chance = self._chance(launch)
        lasts = chance.uniform(*self.plan.work_sec)
        text = f"looking at what failed\n{usage_line(chance)}\n"
        way = _pick(chance, HealerRates() if self._calm() else self.plan.healer)
        seen = [cause for cause in self.plan.causes if cause.error in prompt]
        match way:
            case "crash":
                return Ending(lasts / 2, text, code=None, signal=11)
            case "hang":
                return Ending(_TOO_LONG_SEC, text)
            case "garbage":
                return Ending(lasts, text + "I think all is well\n")
            case _:
                return Ending(lasts, text + DECISION.format(body=json.dumps(self._decision(seen, way))))

    def _decision(self, seen: list[Cause], way: str) -> dict[str, object]:
        said: dict[str, object] = {
            "contract_version": "2.0",
            "scope": "batch",
            "decision": "RETRY",
            "failure_class": "prompt_gap",
            "root_cause": "a convention is not written down",
            "patches": [patch for cause in seen for patch in self._patches(cause)],
            "learned_rule": "write conventions down",
        }
        match way:
            case "hopeless":
                said |= {"decision": "NOT_FIXABLE", "patches": []}
            case "escalate":
                said |= {"decision": "ESCALATE", "patches": []}
            case "lie":
                said["patches"] = [{"target": "contract_hint", "operation": "append", "content": "try harder"}]
            case "wild":
                said["patches"] = [*_WILD]
        return said

    def _patches(self, cause: Cause) -> list[dict[str, object]]:
        text = f"\n{cause.sentence}\n"
        if cause.target == "shared_context":
            return [{"target": cause.target, "operation": "append", "path": cause.path, "content": text}]
        if cause.target == "contract_hint":
            return [{"target": cause.target, "operation": "append", "content": text}]
        tasks = [task for task, needs in self.plan.needs.items() if cause in needs]
        return [{"target": cause.target, "operation": "append", "task_id": task, "content": text} for task in tasks]


_WILD: tuple[dict[str, object], ...] = (
    {"target": "runtime_patch", "operation": "merge", "content": {"concurrency": 10_000}},
    {"target": "runtime_patch", "operation": "merge", "content": {"model": "bigger"}},
    {"target": "shared_context", "operation": "replace", "path": "../secrets", "content": "x"},
    {"target": "runtime_patch", "operation": "merge", "content": {"timeout_sec": 7000, "current_batch_size": 2}},
)


def _pick(chance: random.Random, rates: Rates | HealerRates) -> str:
    """The name of one way to go wrong, or nothing."""
    left = chance.random()
    for one in fields(rates):
        left -= getattr(rates, one.name)
        if left < 0:
            return one.name
    return ""


def usage_line(chance: random.Random) -> str:
    usd, tokens = round(chance.uniform(0.01, 0.5), 4), chance.randrange(500, 20_000)
    return f"usage: usd={usd} input={tokens} output={tokens // 10}"


def checked_task(launch: Launch) -> str:
    """A check is not told whose change it looks at; its log has that name."""
    return launch.log_path.name.rpartition(".verify.")[0]


def checked_attempt(key: str) -> int:
    """The attempt whose change a check of this key looks at."""
    found = _VERIFY_KEY.search(key)
    return int(found[1]) if found else 0
