"""Worlds by seed: many small nasty ones, and long ones with twenty workers."""

from __future__ import annotations

import random
from dataclasses import replace

from ganger.core.model.records import Budget, Policy, TaskSpec
from ganger.core.vocabulary import HealSchedule
from sim.life import Death
from sim.plan import Asked, Cause, HealerRates, Plan, Rates, StoreFault
from sim.programs import output_path
from sim.quota_run import quota_run

HOUR = 3600.0
_LONG_SHARE = 10
_NIGHT_SHARE, _NIGHT = 50, 25
_PLACES = (
    "append.before",
    "append.after",
    "start.before",
    "start.after",
    "backup.during",
    "backup.after",
    "apply.before",
    "apply.file",
    "rollback.file",
    "discard.during",
    "find",
    "end_others",
    "wait",
    "snapshot.after",
)


def plan_of(seed: int) -> Plan:
    """Every tenth world is a long one, and now and then comes a night without quota."""
    if seed % _NIGHT_SHARE == _NIGHT:
        return quota_run(seed)
    chance = random.Random(f"world {seed}")  # noqa: S311
    return _long(seed, chance) if seed % _LONG_SHARE == 0 else _small(seed, chance)


def _small(seed: int, chance: random.Random) -> Plan:
    size = chance.choice((1, 2, 3, 5, 8, 12, 20))
    specs = _specs(chance, size)
    plan = _common(seed, "small", chance, specs, workers=chance.choice((1, 2, 3, 5, 20)))
    rough = chance.random() < 0.7
    span = 600.0 * size
    work_sec = chance.choice(((1.0, 30.0), (60.0, 600.0), (5.0, 3000.0)))
    plan = replace(
        plan,
        rates=_rates(chance, chance.choice((0.03, 0.1, 0.3, 0.6))) if rough else Rates(),
        healer=_healer_rates(chance) if rough else HealerRates(),
        work_sec=work_sec,
        check_sec=chance.choice(((0.5, 5.0), (1.0, 300.0))),
        calm_at=chance.uniform(0.2, 1.5) * span + 600.0,
        tick_sec=chance.choice((1.0, 10.0)) if work_sec[1] < 1000 else 10.0,
    )
    return _with_faults(chance, plan, span)


def _long(seed: int, chance: random.Random) -> Plan:
    """The ordinary bad night: minutes to an hour per attempt, twenty workers, everything fails now and then."""
    specs = _specs(chance, chance.randrange(40, 200))
    plan = _common(seed, "long", chance, specs, workers=20)
    plan = replace(
        plan,
        policy=replace(plan.policy, max_total_heal_rounds=chance.choice((8, 30))),
        rates=_rates(chance, chance.choice((0.0, 0.02, 0.1))),
        healer=_healer_rates(chance),
        work_sec=(120.0, chance.choice((1800.0, 3600.0))),
        check_sec=(5.0, 120.0),
        calm_at=chance.uniform(4.0, 12.0) * HOUR,
        tick_sec=15.0,
    )
    return _with_faults(chance, plan, 6 * HOUR)


# --- what there is to do -----------------------------------------------------------------------------------------


def _specs(chance: random.Random, size: int) -> tuple[TaskSpec, ...]:
    names = [f"t{number:03}" for number in range(size)]
    width = chance.choice((0, 0, 1, 2))
    specs = []
    for place, name in enumerate(names):
        needs = chance.sample(names[max(0, place - 20) : place], k=min(place, chance.randrange(width + 1)))
        specs.append(
            TaskSpec(
                name,
                tuple(needs),
                chance.choice((None, None, None, 1, 2)),
                timeout_sec=chance.choice((1200, 3600, 5400)),
                verify_profile="check",
                prompt_ref=f"prompts/{name}.md",
                context_refs=("context/a.md",) if chance.random() < 0.7 else ("context/a.md", "context/b.md"),
                max_attempts=chance.choice((None, None, None, None, 1, 3)),
            )
        )
    chance.shuffle(specs)
    return tuple(specs)


def _common(seed: int, kind: str, chance: random.Random, specs: tuple[TaskSpec, ...], *, workers: int) -> Plan:
    schedule = chance.choice((HealSchedule.AUTO, HealSchedule.AUTO, HealSchedule.AUTO, *HealSchedule))
    policy = Policy(
        heal_schedule=schedule,
        batch_size=chance.choice((2, 5, 8)),
        failure_threshold=chance.choice((0.0, 0.2, 0.2, 0.5)),
        concurrency=workers,
        max_heal_rounds_per_window=chance.choice((0, 1, 2, 2, 3)),
        max_total_heal_rounds=chance.choice((0, 2, 8, 8)),
        quota_wait_sec=chance.choice((60.0, 300.0)),
    )
    causes = _causes(chance)
    names = [spec.id for spec in specs]
    needs: dict[str, list[Cause]] = {name: [] for name in names}
    for cause in causes:
        for name in chance.sample(names, k=max(1, int(len(names) * chance.uniform(0.1, 0.7)))):
            needs[name].append(cause)
    hopeless = chance.choice((0.0, 0.0, 0.02))
    files = {spec.prompt_ref: f"Write {output_path(spec.id)}.\n" for spec in specs}
    files |= {"context/a.md": "Conventions of the project.\n", "context/b.md": "More of them.\n"}
    return Plan(
        seed=seed,
        kind=kind,
        specs=specs,
        policy=policy,
        budget=_budget(chance, len(specs)),
        causes=causes,
        needs={name: tuple(found) for name, found in needs.items() if found},
        hopeless=frozenset(name for name in names if chance.random() < hopeless),
        appends=frozenset(name for name in names if chance.random() < 0.4),
        snapshot_events=chance.choice((20, 200, 5000)),
        taken_up_again=chance.random() < 0.4,
        files=files,
    )


def _causes(chance: random.Random) -> tuple[Cause, ...]:
    made = []
    for number in range(chance.choice((0, 0, 1, 1, 2))):
        name = ("alpha", "beta")[number]
        target = chance.choice(("shared_context", "shared_context", "task_prompt", "contract_hint"))
        path = "context/a.md" if target == "shared_context" else ""
        made.append(Cause(name, f"RULE {name}: keep the convention {name} everywhere.", target, path))
    return tuple(made)


def _budget(chance: random.Random, size: int) -> Budget:
    match chance.randrange(8):
        case 0:
            return Budget(usd=chance.uniform(0.2, 0.5) * size, attempt_usd=0.5)
        case 1:
            return Budget(attempts=chance.randrange(size, 3 * size + 1))
        case 2:
            return Budget(task_usd=chance.uniform(0.6, 2.0), attempt_usd=0.5, wall_sec=48 * HOUR)
        case _:
            return Budget()


# --- what goes wrong ---------------------------------------------------------------------------------------------


def _rates(chance: random.Random, total: float) -> Rates:
    names = list(Rates.__slots__)
    weights = {name: chance.random() ** 3 for name in names}
    whole = sum(weights.values()) or 1.0
    return Rates(**{name: total * weight / whole for name, weight in weights.items()})


def _healer_rates(chance: random.Random) -> HealerRates:
    total = chance.choice((0.0, 0.2, 0.5, 1.0))
    weights = {name: chance.random() ** 2 for name in HealerRates.__slots__}
    whole = sum(weights.values())
    return HealerRates(**{name: total * weight / whole for name, weight in weights.items()})


def _with_faults(chance: random.Random, plan: Plan, span: float) -> Plan:
    def some(most: int) -> int:
        return chance.randrange(most + 1) if chance.random() < 0.5 else 0

    def when() -> float:
        return round(chance.uniform(0.0, span), 3)

    return replace(
        plan,
        deaths=tuple(_death(chance, span) for _ in range(chance.choice((0, 1, 2, 4, 8, 12)))),
        away_sec=tuple(chance.choice((0.1, 5.0, 60.0, 1200.0)) for _ in range(8)),
        thaw_sec=chance.choice((30.0, 300.0, 2000.0)),
        keeper_deaths=tuple(sorted(when() for _ in range(some(3)))),
        clock_steps=tuple((when(), chance.choice((-86_400.0, -60.0, 30.0, 86_400.0))) for _ in range(some(2))),
        stops=tuple(sorted(when() for _ in range(some(2)))),
        asked=tuple(sorted((_asked(chance, plan, when()) for _ in range(some(8))), key=lambda one: one.at)),
        store_faults=tuple(
            StoreFault(chance.randrange(1, 200), chance.random() < 0.5, chance.random() < 0.5) for _ in range(some(2))
        ),
    )


def _death(chance: random.Random, span: float) -> Death:
    after = 0.0 if chance.random() < 0.3 else chance.expovariate(15.0 / span)
    if chance.random() < 0.5:
        return Death(after, chance.randrange(6), chance.choice(_PLACES))
    return Death(after, int(chance.expovariate(1 / 40)), freezes=chance.random() < 0.35)


def _asked(chance: random.Random, plan: Plan, at: float) -> Asked:
    task = chance.choice(plan.specs).id
    match chance.choice(("pause", "resume", "retry", "retry", "skip", "answer", "set", "stop", "drain", "nonsense")):
        case "retry":
            return Asked(at, "retry", (("task", task), ("hint", "look again")))
        case "skip":
            return Asked(at, "skip", (("task", task),))
        case "answer":
            return Asked(at, "answer", (("question", "*"), ("text", "go on")))
        case "set":
            return Asked(at, "set", (("key", "concurrency"), ("value", chance.choice((1, 2, 20)))))
        case "stop":
            return Asked(at, "stop", ())
        case "drain":
            return Asked(at, "stop", (("drain", True),))
        case kind:
            return Asked(at, kind, ())
