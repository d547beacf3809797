"""What a forge may read into an agent's words, and what is left of it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ganger.core.delivery.public_text import quoted, uncalling, unmarked, unsilencing
from ganger.engine.merging.commit_messages import MadeBy, change_message, request_title, trigger_message

_HEEDED = ("[skip ci]", "[ci skip]", "[no ci]", "[skip actions]", "[actions skip]", "***no_ci***", "[skipci]")


@pytest.mark.parametrize(
    "said",
    [
        *_HEEDED,
        "[SKIP CI]",
        "[skip[ci skip] ci]",
        "[s\u212aip c\u0130]",
        "\u0130" * 200 + "[skip ci]",
        "[ skip  ci ]",
        "******no_ci******",
    ],
)
@pytest.mark.parametrize(
    "text",
    [
        lambda said: change_message("run", "a", 1, said),
        lambda said: change_message("run", said, 1, "done"),
        lambda said: change_message(said, "a", 1, "done"),
        lambda said: change_message("run", "a", 1, "done", MadeBy("claude", said)),
        lambda said: trigger_message("run", said, 1, "mirror"),
        lambda said: request_title(said, said),
    ],
)
def test_no_words_keep_ci_from_running(said: str, text: Callable[[str], str]) -> None:
    """D01 D17: a summary, a task's or a run's name silences no CI, however it is written or nested."""
    made = "".join("i" if sign == "\u0130" else sign.lower() for sign in text(said))
    assert not any(mark in made for mark in _HEEDED)


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("fixes #12, thanks @all", "fixes # 12, thanks @ all"),
        ("closes dev/app#7 and !3", "closes dev/app# 7 and ! 3"),
        ("resolves gh-4", "resolves gh- 4"),
        ("closes https://forge.example.org/dev/app/issues/3", "closes https: //forge.example.org/dev/app/issues/3"),
        (
            "mail dev@example.org, see https://example.org/issues",
            "mail dev@example.org, see https://example.org/issues",
        ),
        ("C# and F#, item #x", "C# and F#, item #x"),
    ],
)
def test_nobody_is_called_and_nothing_closed(said: str, shown: str) -> None:
    """D17: what a forge acts upon is broken where people can see it; all else stays."""
    assert uncalling(said) == shown


def test_a_body_has_no_markup_of_an_agents() -> None:
    """D17: no fence, comment, link or picture of an agent's hides what Ganger says below it."""
    assert unmarked("```<!-- ![x](http://a)") == "\\`\\`\\`\\<!-- !\\[x\\](http://a)"
    assert quoted("a`b") == "`a'b`"
    assert unsilencing("plain words") == unmarked("plain words") == "plain words"
