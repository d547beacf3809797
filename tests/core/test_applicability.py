"""The table of where settings and metadata keys act: whole, and right about each mode."""

from __future__ import annotations

import pytest
import settings
from pydantic import BaseModel

from ganger.config import Config
from ganger.contracts.manifest import METADATA_KEYS
from ganger.core.settings.applicability import (
    KNOWN_METADATA,
    METADATA,
    MODES,
    SETTINGS,
    Circumstances,
    SettingEffect,
    disordered,
    inverted,
    judge_metadata,
    judge_setting,
    plain_key,
)

PUSHED, FULL = frozenset({"verified", "pushed"}), frozenset({"verified", "pushed", "ci", "mirrored"})
GIT = Circumstances(mode="local-git")
BRANCHES = Circumstances(mode="local-git", completion=FULL, forge="forgejo", style="branch")
REQUESTS = Circumstances(mode="forge", completion=FULL, forge="forgejo", style="request")


def keys_of(model: type[BaseModel], prefix: str = "") -> set[str]:
    """Every key of the settings, as the table names it."""
    found: set[str] = set()
    for key, info in model.model_fields.items():
        parts = (info.annotation, *getattr(info.annotation, "__args__", ()))
        inner = next((one for one in parts if isinstance(one, type) and issubclass(one, BaseModel)), None)
        if inner is None:
            found.add(prefix + key)
        else:
            named = "*." if prefix == "" and key in settings.NAMED else ""
            found |= keys_of(inner, f"{prefix}{key}.{named}")
    return found


def test_every_setting_has_its_row_and_no_row_is_of_another() -> None:
    """G24: a setting that is added without a word on where it acts is found here."""
    rows = [row.key for row in SETTINGS]
    assert len(rows) == len(set(rows))
    assert set(rows) == keys_of(Config)


def test_every_metadata_key_that_is_checked_has_its_row() -> None:
    """G24 T01: what the manifest's rules know, the table knows."""
    assert set(KNOWN_METADATA) == METADATA_KEYS
    assert len(KNOWN_METADATA) == len(METADATA) + 3


@pytest.mark.parametrize(
    ("key", "value", "given", "effect"),
    [
        ("delivery.review", "person", Circumstances(), SettingEffect.REFUSED),
        ("delivery.review", "person", GIT, None),
        ("workspace.merging", "level", Circumstances(), SettingEffect.REFUSED),
        ("workspace.merging", "queue", Circumstances(), SettingEffect.TOLD),
        ("workspace.merging", "level", REQUESTS, None),
        ("workspace.land", "finish", Circumstances(), SettingEffect.REFUSED),
        ("workspace.land", "ask", Circumstances(), None),
        ("workspace.snapshot_mb", 5, GIT, SettingEffect.TOLD),
        ("delivery.auto_merge", True, BRANCHES, SettingEffect.REFUSED),
        ("delivery.auto_merge", True, GIT, SettingEffect.REFUSED),
        ("delivery.auto_merge", True, REQUESTS, None),
        ("delivery.labels", ["x"], BRANCHES, SettingEffect.TOLD),
        ("delivery.completion", ["verified", "committed"], Circumstances(), SettingEffect.REFUSED),
        ("delivery.required_jobs", ["test"], Circumstances(mode="local-git", completion=PUSHED), SettingEffect.REFUSED),
        ("delivery.remote", "upstream", GIT, SettingEffect.TOLD),
        ("repos.app.delivery.auto_merge", True, BRANCHES, SettingEffect.REFUSED),
        ("repos.my.app.delivery.auto_merge", True, BRANCHES, SettingEffect.REFUSED),
        ("sandbox.network", "none", Circumstances(walls=""), SettingEffect.REFUSED),
        ("sandbox.readable", ["x"], Circumstances(walls=""), SettingEffect.TOLD),
        ("policy.max_total_heal_rounds", 3, Circumstances(), SettingEffect.TOLD),
        ("policy.max_total_heal_rounds", 3, Circumstances(healer=True), None),
        ("policy.max_total_heal_rounds", 3, Circumstances(healer=True, schedule="off"), SettingEffect.TOLD),
        ("agents.a.permissions", "edit", Circumstances(takes=frozenset(), walls=""), SettingEffect.REFUSED),
        ("agents.a.permissions", "edit", Circumstances(takes=frozenset()), SettingEffect.TOLD),
        ("agents.a.terminal.answers.Do you trust", "1", Circumstances(takes=frozenset()), SettingEffect.TOLD),
        ("agents.a.b.effort", "high", Circumstances(takes=frozenset({"effort"})), None),
        ("roles.healer.paths", ["x"], Circumstances(works=False), SettingEffect.TOLD),
        ("verify.planted", True, Circumstances(census=False), SettingEffect.REFUSED),
        ("verify.tiers.check/test", "quality", Circumstances(), None),
    ],
)
def test_a_setting_acts_is_told_or_is_refused(
    key: str, value: object, given: Circumstances, effect: SettingEffect | None
) -> None:
    """G24: what a mode ignores is told; what would drop a safeguard is refused."""
    found = judge_setting(key, value, [given])
    assert (found.effect if found else None) is effect
    assert found is None or found.why


def test_a_setting_that_acts_somewhere_acts() -> None:
    """G24: of several repositories one with change requests is enough."""
    assert judge_setting("delivery.auto_merge", True, [BRANCHES, REQUESTS]) is None


@pytest.mark.parametrize(
    ("key", "value", "given", "effect"),
    [
        ("review", "person", Circumstances(), SettingEffect.REFUSED),
        ("review", "none", Circumstances(), None),
        ("review", "agent", GIT, None),
        ("mode", "direct", Circumstances(), None),
        ("mode", "forge", Circumstances(), SettingEffect.REFUSED),
        ("mode", "direct", GIT, SettingEffect.REFUSED),
        ("kind", "research", GIT, SettingEffect.REFUSED),
        ("stage", 0, GIT, SettingEffect.REFUSED),
        ("repo", "app", GIT, SettingEffect.TOLD),
        ("security", True, GIT, SettingEffect.TOLD),
        ("security", False, GIT, None),
        ("security", True, Circumstances(marks=frozenset({"security"})), None),
        ("complexity", "low", GIT, None),
        ("files_read", ["a"], Circumstances(walls="landlock"), SettingEffect.TOLD),
        ("files_read", ["a"], Circumstances(walls="bubblewrap"), None),
        ("owner", "ann", Circumstances(), None),
    ],
)
def test_a_metadata_key_acts_is_told_or_is_refused(
    key: str, value: object, given: Circumstances, effect: SettingEffect | None
) -> None:
    """G24: and keys of other tools are nobody's business."""
    found = judge_metadata(key, value, given)
    assert (found.effect if found else None) is effect


@pytest.mark.parametrize("mode", MODES)
def test_every_row_has_an_answer_for_every_mode(mode: str) -> None:
    """G24: nothing raises, and whatever is not met says so in a sentence."""
    given = Circumstances(mode=mode, walls="", listens=False, census=False, takes=frozenset(), works=False)
    findings = [judge_setting(row.key.replace("*", "x"), "given", [given]) for row in SETTINGS]
    assert all(found is None or len(found.why) > 10 for found in findings)
    assert sum(found is not None for found in findings) > 100


def test_a_range_that_holds_nothing_is_refused() -> None:
    """G24 T14: a healer could change nothing within inverted limits."""
    values = {"limits.concurrency": [8, 1], "limits.timeout_sec": [60, 7200], "limits.current_batch_size": [3, 3]}
    assert [(found.key, found.effect) for found in inverted(values)] == [("limits.concurrency", SettingEffect.REFUSED)]


def test_numbers_in_each_others_way_are_told_where_one_was_written() -> None:
    """G24: a limit that comes before its warning warns nobody."""
    values = {"health.working_warn_sec": 900, "health.working_sec": 600}
    assert [found.key for found in disordered(values, {"health.working_sec"})] == ["health.working_sec"]
    assert list(disordered(values, set())) == []


def test_a_key_is_found_below_names_with_dots_and_above_members_of_a_table() -> None:
    """G24: agents are called what people like."""
    assert plain_key("agents.gpt-5.1.model") == "agents.*.model"
    assert plain_key("delivery.jobs.unit.tests") == "delivery.jobs"
    assert plain_key("repos.a.delivery.jobs.t") == "repos.*.delivery.jobs"
