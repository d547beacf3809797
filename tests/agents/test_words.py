"""What error texts mean: real texts of the programs, plausible ones of vendors, and prose that means nothing."""

from __future__ import annotations

import json
import zoneinfo
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from ganger.agents.words import is_limit, meaning, reset_in, status_in
from ganger.core.signs import Limited, LoginMissing, Over, Retrying

NOW = datetime(2026, 11, 15, 12, 0, tzinfo=UTC).timestamp()
HOUR = 3600.0
GEMINI_429 = "[API Error: " + json.dumps(
    {
        "error": {
            "code": 429,
            "message": "You exceeded your current quota, please check your plan and billing details. "
            "Please retry in 34.5s.",
            "status": "RESOURCE_EXHAUSTED",
            "details": [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34.5s"}],
        }
    }
)  # fmt: skip
OPENAI_LIMIT = json.dumps(
    {"error": {"type": "usage_limit_reached", "message": "The usage limit has been reached", "resets_in_seconds": 5400}}
)
OPENAI_EMPTY = json.dumps(
    {
        "error": {
            "message": "You exceeded your current quota, please check your plan and billing details.",
            "type": "insufficient_quota",
            "code": "insufficient_quota",
        }
    }
)

LOGIN = [
    "Failed to authenticate. API Error: 401 invalid x-api-key",
    "Not logged in · Please run /login",
    "Invalid API key · Please run /login",
    "Invalid API key · Fix external API key",
    "OAuth token has expired. Please obtain a new token or refresh your existing token.",
    "OAuth token revoked · Please run /login",
    'API Error: 401 {"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key"}}',
    "unexpected status 401 Unauthorized: Incorrect API key provided: sk-x***. You can find your API key at …",
    "unexpected status 403 Forbidden: Unknown error",
    "Missing environment variable: `LOCAL_API_KEY`.",
    '[API Error: {"error":{"code":401,"message":"Request had invalid credentials","status":"UNAUTHENTICATED"}}]',
    '[API Error: {"error":{"code":400,"message":"API key not valid. Pass a valid one.","status":"INVALID_ARGUMENT"}}]',
    '[API Error: {"error":{"code":403,"message":"The caller does not have permission","status":"PERMISSION_DENIED"}}]',
    "When using Gemini API, you must specify the GEMINI_API_KEY environment variable.",
    "Please set an Auth method in your /home/x/.gemini/settings.json or specify one of the following variables",
    "[API Error: 401 Incorrect API key provided]",
    "Authentication required",
    "Error: No authentication information found.",
    "No API key found for provider local",
    "The API key is missing or invalid",
    "Please log in again",
]
LIMITED = [
    ("API Error: Request rejected (429) · Rate limit exceeded", False),
    ("Claude AI usage limit reached|1790000000", False),
    ("You've hit your limit · resets 3pm (Europe/Berlin)", False),
    ("You\u2019ve hit your usage limit. Upgrade to Pro or try again at Nov 15th, 2026 3:45 PM.", False),
    ("5-hour limit reached ∙ resets 3pm", False),
    ("Session limit reached ∙ resets 6pm", False),
    ("exceeded retry limit, last status: 429 Too Many Requests", False),
    ("exceeded retry limit, last status: 429 Too Many Requests, request id: 500abc", False),
    (GEMINI_429, False),
    ("[API Error: You have exhausted your capacity on this model. Your quota will reset after 2h13m5s.]", False),
    (OPENAI_LIMIT, False),
    (json.dumps({"responseBody": OPENAI_LIMIT}), False),
    ("You have reached your specified API usage limits. You will regain access on 2026-12-01 at 00:00 UTC.", False),
    ("Too many requests, please slow down", False),
    ("Error 429: rate_limit_error", False),
    ("Credit balance is too low", True),
    ("Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing", True),
    ("Quota exceeded. Check your plan and billing details.", True),
    (OPENAI_EMPTY, True),
    ("402 Payment Required", True),
    ('API Error: 402 {"error":{"message":"This request requires more credits"}}', True),
    ("Insufficient balance", True),
]  # fmt: skip
NETWORK = [
    "We're currently experiencing high demand, which may cause temporary errors.",
    "stream disconnected before completion: stream closed before response.completed",
    "stream disconnected before completion: error sending request for url (http://127.0.0.1:1/v1/responses)",
    "exceeded retry limit, last status: 500 Internal Server Error",
    "exceeded retry limit, last status: 503 Service Unavailable",
    'API Error: 529 {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}',
    "API Error: Connection error.",
    "API Error: Request timed out.",
    "API Error (Connection closed mid-response)",
    "[API Error: exception TypeError: fetch failed sending request]",
    "[API Error: terminated]",
    "connect ECONNREFUSED 127.0.0.1:1",
    "socket hang up",
    "Unexpected token '<', \"<html><bo\"... is not valid JSON",
    "error decoding response body",
    "[API Error: Model stream ended with empty response text.]",
    '[API Error: {"error":{"code":503,"message":"The model is overloaded. Try again later.","status":"UNAVAILABLE"}}]',
    "[API Error: 500 status code (no body)]",
    "Failed to parse the response as JSON",
]
NOTHING = [
    "The connection between the two modules is wrong; 429 lines changed",
    "tests failed: 401 passed, 3 failed",
    "error: 500 lines are too long",
    "write failed: Disk quota exceeded",
    "Command failed with exit code 401",
    "process exited with code 503",
    "the request limiter in rate.py has a bug",
    "ENOENT: no such file or directory, open 'network.py'",
    "There's an issue with the selected model (gpt-nonsense). It may not exist or you may not have access to it.",
    "unexpected argument '--full-auto' found",
    "the authentication module was not changed",
    "Unexpected token in line 12",
    "path /srv/streams/401/quota.py is outside the workspace",
    "The token is missing a closing bracket",
    "API Error: 404 model not found",
    "forbidden word in the commit message",
    "",
]
RESETS = [
    ("Claude AI usage limit reached|1794747600", 1794747600.0),
    ('"resets_at": 1794747600', 1794747600.0),
    ('"resetsAt":1794747600123', 1794747600.0),
    ("anthropic-ratelimit-unified-reset: 1794747600", 1794747600.0),
    (OPENAI_LIMIT, NOW + 5400),
    (json.dumps({"a": json.dumps({"b": OPENAI_LIMIT})}), NOW + 5400),
    ("retry-after: 30", NOW + 30),
    ('"retry-after-ms":"1500"', NOW + 1.5),
    ('{"retry_after_seconds": 12.5}', NOW + 12.5),
    ("retry-after: Sun, 15 Nov 2026 13:00:00 GMT", NOW + HOUR),
    (GEMINI_429, NOW + 34.5),
    ("retry_delay { seconds: 34 }", NOW + 34),
    ("Please retry in 12.3s", NOW + 12.3),
    ("Please retry in 850ms.", NOW + 0.85),
    ("Your quota will reset after 2h13m5s.", NOW + 2 * HOUR + 13 * 60 + 5),
    ("try again in 3 days 4 hours 2 minutes", NOW + 3 * 24 * HOUR + 4 * HOUR + 120),
    ("Please try again in 1h2m3.5s. Visit …", NOW + HOUR + 123.5),
    ("try again in an hour", NOW + HOUR),
    ("Rate limited. Please wait 20 seconds", NOW + 20),
    ("Retry after 5 minutes", NOW + 300),
    ("resets in 2 hours, 5 minutes and 1 second", NOW + 2 * HOUR + 301),
    ("x-ratelimit-reset-requests: 6m0s", NOW + 360),
    ("resets 3pm (Europe/Berlin)", NOW + 2 * HOUR),
    ("resets 12:30pm (Europe/Berlin)", NOW + 23.5 * HOUR),
    ("resets at 14:30 UTC", NOW + 2.5 * HOUR),
    ("resets Nov 18, 5pm (UTC)", NOW + 3 * 24 * HOUR + 5 * HOUR),
    ("resets Jan 2 at 12am (UTC)", datetime(2027, 1, 2, tzinfo=UTC).timestamp()),
    ("resets Tuesday 9am (UTC)", NOW + 2 * 24 * HOUR - 3 * HOUR),
    ("resets Sun 9am (UTC)", NOW + 7 * 24 * HOUR - 3 * HOUR),
    ("try again at Nov 15th, 2026 3:45 PM (UTC)", NOW + 3.75 * HOUR),
    ("You will regain access on 2026-12-01 at 00:00 UTC.", NOW + 15.5 * 24 * HOUR),
    ('"reset_at":"2026-11-15T13:00:00.123Z"', NOW + HOUR),
    ("quotaResetTimeStamp: 2026-11-15T14:00:00+01:00", NOW + HOUR),
]
NO_RESETS = [
    "Rate limit exceeded",
    "try again 3 times",
    "2026-11-15T12:00:00Z ERROR too many requests",
    "try again in 99999999 days",
    "reset_at: 1999999999",
    "try again at 99:99",
    "resets Feb 31, 5pm (UTC)",
    "try again later; 5 minutes of work were lost",
    "wait for the reset in line 12",
]


@pytest.mark.parametrize("text", LOGIN)
def test_a_missing_login_is_recognised(text: str) -> None:
    """D12 T24: no key, a wrong one, nobody logged in."""
    assert meaning(text, now=NOW) == [LoginMissing(text)]


@pytest.mark.parametrize(("text", "empty"), LIMITED)
def test_a_limit_is_recognised_and_an_empty_account_is_told_from_it(text: str, empty: bool) -> None:
    """D12 G04: a wait that helps, or somebody who must pay."""
    (sign,) = meaning(text, now=NOW)
    assert isinstance(sign, Limited) and (sign.empty, sign.final) == (empty, True)
    assert is_limit(text)


@pytest.mark.parametrize("text", NETWORK)
def test_trouble_on_the_way_to_the_model_is_recognised(text: str) -> None:
    """D12: the model could not be reached, broke off, was overloaded or spoke nonsense."""
    assert meaning(text, now=NOW) == [Over("network", text)]


@pytest.mark.parametrize("text", NOTHING)
def test_prose_that_only_mentions_such_words_is_a_plain_error(text: str) -> None:
    """D12: a false login or quota would stop a run for nothing."""
    assert meaning(text, now=NOW) == [Over("error", text)]


def test_a_status_counts_more_than_words() -> None:
    """D12: an error that quotes other words is still what its status says; 400 says nothing, so words decide."""
    assert meaning("please run /login", status=500, now=NOW) == [Over("network", "please run /login")]
    assert meaning("the connection", status=401, now=NOW) == [LoginMissing("the connection")]
    assert meaning("socket hang up", status=400, now=NOW) == [Over("error", "socket hang up")]
    assert meaning("", status=529, now=NOW) == [Over("network", "")]
    assert meaning("", status=429, now=NOW) == [Limited("")]
    assert meaning("", status=402, now=NOW) == [Limited("", empty=True)]
    assert meaning("Credit balance is too low", status=400, now=NOW) == [
        Limited("Credit balance is too low", empty=True)
    ]
    assert meaning("API key not valid.", status=400, now=NOW) == [LoginMissing("API key not valid.")]
    assert meaning("Rate limit exceeded", status=403, now=NOW) == [Limited("Rate limit exceeded")]


def test_an_agent_that_goes_on_trying_has_not_ended() -> None:
    """D12: a retry is a limit or a retry, never an end or a missing login."""
    limit = "Reconnecting... 1/5 (exceeded retry limit, last status: 429 Too Many Requests)"
    assert meaning(limit, now=NOW, final=False) == [Limited(limit, final=False)]
    assert meaning("try again in 5s", status=503, now=NOW, final=False) == [Retrying("try again in 5s", 503, 5.0)]
    assert meaning("", status=401, now=NOW, final=False) == [Retrying("", 401)]


def test_an_answer_cut_short_and_a_refusal_are_told_apart() -> None:
    """D12: neither is trouble with the network."""
    for reason, how in (("max_output_tokens", "length"), ("content_filter", "refused")):
        text = f"Incomplete response returned, reason: {reason}"
        assert meaning(text, now=NOW) == [Over(how, text)]  # type: ignore[arg-type]


@pytest.mark.parametrize(("text", "at"), RESETS)
def test_the_end_of_a_limit_is_read(text: str, at: float) -> None:
    """G04: from fields, spans of time, moments and clocks."""
    found = reset_in(text, NOW)
    assert found is not None and abs(found - at) < 0.01


@pytest.mark.parametrize("text", NO_RESETS)
def test_what_names_no_end_gives_none(text: str) -> None:
    """G04: no time is better than a wrong one."""
    assert reset_in(text, NOW) is None


def test_a_machine_without_time_zones_still_reads_clocks(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """G04: a missing zone table is no error; UTC is known without one."""
    monkeypatch.setenv("TZ", "UTC")
    zoneinfo.reset_tzpath([str(tmp_path)])
    zoneinfo.ZoneInfo.clear_cache()
    try:
        assert reset_in("resets 3pm (Neverwhere/Nocity)", NOW) is not None
        assert reset_in("resets 3pm (UTC)", NOW) == NOW + 3 * HOUR
    finally:
        zoneinfo.reset_tzpath()


@pytest.mark.parametrize("name", ["Europe", "America/Indiana", "posix", "Etc/GMT+99"])
def test_a_zone_that_is_none_does_not_raise(name: str) -> None:
    """G04: also the name of a folder of zones."""
    assert reset_in(f"resets 3pm ({name})", NOW) is not None


def test_the_status_a_text_names_is_found() -> None:
    """D12: by phrases, not by any number of three digits."""
    assert status_in('{"error":{"code":429}}') == 429
    assert status_in("unexpected status 401 Unauthorized") == 401
    assert status_in("HTTP/1.1 503") == 503
    assert status_in("429 lines") is None
    assert status_in("port 503") is None


@given(st.text(), st.sampled_from([None, 200, 400, 401, 429, 500]), st.booleans())
def test_no_text_makes_it_raise(text: str, status: int | None, final: bool) -> None:
    """T24: error texts are untrusted."""
    assert len(meaning(text, status=status, now=NOW, final=final)) == 1


_PIECES = st.sampled_from(
    [
        "try again",
        "reset",
        "resets at",
        " in ",
        "3pm",
        "9999999999",
        "1h2m",
        " 99:99",
        "(Europe/Berlin)",
        "|17",
        "api key",
        "not ",
        "\\",
        '"',
        "{",
        "status: ",
        "429",
        "Feb 30",
        " 0000",
        "rate limit",
        "retry-after: ",
        "invalid ",
        " token",
        " json",
        "a ",
        "day ",
        "quota ",
        "2026-99-99T99:99",
        " wait",
        "hit your ",
    ]
)


@given(st.lists(_PIECES, max_size=40), st.integers(1, 3000))
def test_texts_made_of_its_own_phrases_do_not_make_it_raise_or_slow(pieces: list[str], times: int) -> None:
    """T24: long texts are cut and no pattern goes back far."""
    assert len(meaning("".join(pieces) * times, now=NOW)) == 1


UNFIT = [
    "API Error: 400 messages.2: `tool_use` ids were found without `tool_result` blocks immediately after: toolu_01.",
    "unexpected `tool_use_id` found in `tool_result` blocks: toolu_x. Each `tool_result` block must have a `tool_use`",
    "prompt is too long: 1048577 tokens > 1000000 maximum",
    "Your input exceeds the context window of this model. Please adjust your input and try again.",
    "This model's maximum context length is 128000 tokens. However, your messages resulted in 130000 tokens.",
    "unexpected status 400 Bad Request: An assistant message with 'tool_calls' must be followed by tool messages",
    "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.",
    "No tool output found for function call call_abc.",
    "messages.1.content.0: Invalid `signature` in `thinking` block",
    "Expected `thinking` or `redacted_thinking`, but found `text`.",
    "thinking or redacted_thinking blocks in the latest assistant message cannot be modified.",
    "The encrypted content gAAA... could not be verified.",
    "Previous response with id 'resp_1' not found.",
    "Item 'rs_x' of type 'reasoning' was provided without its required following item.",
    "The input token count (1048577) exceeds the maximum number of tokens allowed (1048576).",
    "Please ensure that function call turn comes immediately after a user turn or after a function response turn.",
    "Codex ran out of room in the model's context window. Start a new conversation or clear earlier history.",
    "automatic compaction failed",
    "input length and `max_tokens` exceed context limit: 190000 + 32000 > 200000",
    "context_length_exceeded",
    "API Error: 400 due to tool use concurrency issues.",
    "API Error: 400 duplicate tool_use ID in conversation history.",
    "API Error: 400 orphaned tool_result in conversation history.",
]
FULL = ("too long", "context", "maximum", "compaction")
FIT = ["model: no-such-model", "max_tokens: must be greater than 0", "400 The request was not accepted."]


@pytest.mark.parametrize(("words", "how"), [*((w, "unfit") for w in UNFIT), *((w, "error") for w in FIT)])
def test_a_conversation_that_is_refused_is_told_from_a_request_that_is(words: str, how: str) -> None:
    """G22: the one is begun afresh, the other would fail again."""
    (sign,) = meaning(words, now=0.0)
    assert isinstance(sign, Over) and sign.how == how


@pytest.mark.parametrize("words", UNFIT)
def test_a_conversation_that_is_too_long_is_told_from_one_that_is_broken(words: str) -> None:
    """G22 Z05: a worker whose context is full hands over; the other's conversation is begun again."""
    (sign,) = meaning(words, now=0.0)
    assert isinstance(sign, Over) and sign.broken is not any(part in words for part in FULL)
