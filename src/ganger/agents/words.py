"""What agents' error texts mean, and when a limit ends: for agents that say it in words only.

A wrong "log in" or "pay" stops a run that only had to retry, so single words do not count: only an HTTP status, or
else phrases that programs use for exactly this.
"""

from __future__ import annotations

import re

from ganger.agents.reset_times import reset_time
from ganger.core.signs import How, Limited, LoginMissing, Over, Retrying, Sign

_LONGEST = 4 * 1024


def _phrases(*texts: str) -> re.Pattern[str]:
    return re.compile("|".join(texts), re.IGNORECASE)


_CREDENTIAL = (
    r"(?:api[ _-]?keys?|(?:auth\w{0,12}|access|oauth|bearer|refresh)[ _-]?tokens?|credentials?|\w{1,40}_api_key)"
)
_LOGIN = _phrases(
    r"not (?:logged|signed) in\b|(?:log|sign)[ -]?in (?:again|first|is required|required|to continue|to use)\b",
    r"(?:run|use|type) [`'\"]?(?:\w{1,20} )?(?:/|auth )?login\b|login (?:required|expired)|set an auth method",
    r"failed to authenticate|authentication (?:failed|required|error|information)|(?<!rate_limit_)authentication_error",
    r"\b(?:un|not )authenticated\b|\b(?:un|not )authori[sz]ed\b(?! (?:write|file|path))|\bpermission_error\b",
    r"\b(?:invalid|incorrect|wrong|missing|expired|bad|no|revoked)\W{1,3}(?:\w{1,12}\W{1,3}){0,2}?" + _CREDENTIAL,
    _CREDENTIAL + r"\W{1,3}(?:\w{1,20}\W{1,3}){0,3}?"
    r"(?:not (?:valid|set|found|provided|configured)|invalid|missing|expired|required|revoked)\b",
    r"(?:set|specify|provide|export) (?:the |an? |your )?\W?\w{1,40}_API_KEY|missing environment variable",
    r"\btoken (?:has |is |was )?(?:expired|revoked)\b|\A\W*forbidden\W*\Z",
)
_PAID_UP = _phrases(
    r"credit balance|insufficient[_ ](?:quota|funds|credits?|balance)|(?:out of|no (?:remaining|more) ?) ?credits?\b",
    r"\bno credits\b|payment[_ ]required|billing_(?:not_active|hard_limit\w*)|account is not active",
)
_BILLING = _phrases(r"billing|check your plan|purchase (?:more )?credits")
_LIMIT_KIND = r"(?:usage|rate|session|weekly|daily|hourly|monthly|requests?|spend(?:ing)?|5-hour|five-hour|opus|sonnet)"
_LIMIT = _phrases(
    r"rate[ _-]?limit(?!er|ing)|ratelimitexceeded|too many requests|resource[_ ]exhausted|usage_limit_reached",
    r"(?<!disk )\bquota (?:exceeded|exhausted|reached|will reset)",
    r"(?:exceeded|exhausted|reached) (?:\w{1,12} ){0,3}quota",
    r"(?:quota|usage limits?) (?:has|have) been (?:exceeded|exhausted|reached)|out of quota\b|insufficient_quota",
    r"\b(?:hit|reached|exceeded) (?:your|the) (?:\w{1,20} ){0,3}?" + _LIMIT_KIND + r" limits?\b|\bhit your limit\b",
    _LIMIT_KIND + r" limits? (?:reached|exceeded|hit|resets?)|\blimit will reset\b",
)
_LENGTH = _phrases(r"max_output_tokens|finish_?reason\W{1,4}(?:length|max_tokens)\b")
_REFUSED = _phrases(r"reason\W{1,4}content_filter|content_policy_violation|blocked by (?:the )?(?:content|safety)")
# Texts of vendors and programs for a conversation that is always refused: too long, or broken.
_FULL = _phrases(
    r"(?:prompt|input|request|context|conversation|messages?) (?:(?:is|are|was|were) )?too (?:long|large|big)\b",
    r"context[_ ](?:length|window)[_\W]{0,3}(?:is |was |has been |limit |size )*(?:exceeded|full|over)",
    r"(?:exceeds?|exceeded|over|beyond|larger than|ran out of room in) (?:\S{1,20} ){0,5}?"
    r"(?:context|(?:maximum|input) (?:number of )?(?:input )?tokens)\b|maximum context length|model_context_window_ex",
    r"token count\b.{0,60}\bexceeds|too many (?:input )?tokens\b(?! per)|request_too_large|payload too large",
    r"(?:compact(?:ion|ing)|compression)\b.{0,40}\b(?:failed|not possible|impossible)",
)
_BROKEN = _phrases(
    r"tool use concurrency issues|duplicate tool_use id\b|orphaned tool_result\b",
    r"tool_use\W.{0,60}\bwithout\b.{0,40}tool_result|tool_result\W.{0,80}\btool_use\b|unexpected `?tool_(?:use|result)",
    r"tool_calls?\W.{0,120}\b(?:followed|preced|respond|response|did not have)|no tool (?:call|output) found for",
    r"role\W{1,4}tool\b.{0,60}\bmust (?:be|follow)",
    r"function (?:call|response) (?:turn|parts?)\b.{0,160}\b(?:comes|equal)",
    r"(?:invalid|bad)\W{1,4}signature|signature\W{1,4}in\W{1,4}thinking|thought[_ ]signatures?\b",
    r"expected\W{1,4}thinking\b",
    r"thinking\W{1,4}(?:or redacted_thinking\W{1,4})?blocks?\b.{0,80}\b(?:cannot be|must|modified|expected)",
    r"encrypted[_ ]content\b.{0,60}\b(?:could not|cannot|not be|invalid|verified)|invalid_encrypted_content",
    r"previous_response_not_found|previous response\b.{0,60}\bnot found|without its required following item",
    r"\bitem\b.{0,60}\bnot found\. items are not persisted|roles must alternate",
)
_NETWORK = _phrases(
    r"overloaded|high demand|(?:internal|server)[ _]+(?:server[ _]+)?error|bad gateway|gateway time-?out",
    r"(?:service|server|model|temporarily) (?:is |was )?(?:temporarily |currently )?(?:un|not )available",
    r"connection (?:\w{1,12} )?(?:error|refused|reset|closed|lost|failed|aborted|timed out|terminated|dropped|inter)",
    r"\be(?:connreset|connrefused|timedout|notfound|ai_again|pipe|netunreach|hostunreach)\b|\bund_err_|getaddrinfo",
    r"socket (?:hang|closed|connection|timeout)|network (?:error|is unreachable|timeout|request failed|connection)",
    r"fetch failed|(?:\A|: )terminated\W*\Z|premature(?:ly)? (?:close|end)|dns error|error (?:sending|decoding) re",
    r"(?:request|api|response|read|connect|connection|stream|idle) time[- ]?d? ?out|timed out (?:waiting|while r)",
    r"stream (?:disconnected|closed|ended|error|interrupted|aborted|stalled|was reset|idle)|disconnected before",
    r"unexpected (?:end of|eof|token\b.{1,40}\bjson)|not valid json|invalid json|incomplete json|malformed (?:re|js)",
    r"failed to (?:parse|decode|deserialize) (?:\w{1,12} ){0,3}(?:response|json|stream|body|event)",
    r"empty (?:response|stream|reply)|no (?:response|content|candidates) (?:from|returned|received|in|was)",
    r"(?:could not|cannot|can't|unable to|failed to) (?:connect|reach)\b",
)
_REASONS = (
    r"(?:unauthorized|payment required|forbidden|request timeout|too many requests|internal server error|bad gateway"
    r"|service unavailable|gateway time-?out|overloaded)"
)
_STATUS = re.compile(
    r"(?:(?<!exit )(?<!exit_)(?<!exited with )\b(?:status|code)(?:[ _]?code)?\W{1,4}|\bapi error\W{1,4}|\(error "
    r"|\bhttp(?:/[\d.]{1,3})?(?: status| error)?\W{1,3}|\((?=\d{3}\))|\A\W{0,3}(?=\d{3} [{\"<])"
    r"|\b(?=\d{3}[\s:,-]{1,3}" + _REASONS + r"\b))([45]\d\d)\b",
    re.IGNORECASE,
)
_ESCAPED = re.compile(r"(?<!\\)\\{1,99}([\"'/nrt])")


def meaning(text: str, *, status: int | None = None, now: float, final: bool = True) -> list[Sign]:
    """The signals of an error, by its HTTP status if there is one, else by its words. Not understood: an `error`.

    Not `final`: the agent retries; then it is a limit or a `Retrying`, never an end.
    """
    words, told = _readable(text), text[:_LONGEST]
    status = status if status is not None else _status(words)
    if _is_limit(words, status):
        reset = reset_time(words, now)
        empty = bool(_PAID_UP.search(words)) or status == 402 or (reset is None and bool(_BILLING.search(words)))
        return [Limited(told, reset_at=reset, final=final, empty=empty)]
    if not final:
        reset = reset_time(words, now)
        return [Retrying(told, status=status, wait_sec=None if reset is None else max(0.0, reset - now))]
    if status in (401, 403) or (not _decides(status) and _LOGIN.search(words)):
        return [LoginMissing(told)]
    how = _how(words, status)
    return [Over(how, told, broken=how == "unfit" and status != 413 and not _FULL.search(words))]


def is_limit(text: str, status: int | None = None) -> bool:
    """Whether this is a rate limit or an empty account."""
    words = _readable(text)
    return _is_limit(words, status if status is not None else _status(words))


def status_in(text: str) -> int | None:
    """The HTTP status an error text names: `last status: 429 Too Many Requests`, `"code": 503`, `HTTP 401`."""
    return _status(_readable(text))


def reset_in(text: str, now: float) -> float | None:
    """When a limit ends, as a Unix time; None where the text does not say."""
    return reset_time(_readable(text), now)


def _readable(text: str) -> str:
    """The text with nested JSON unescaped; only both ends of a very long text."""
    if len(text) > 2 * _LONGEST:
        text = f"{text[:_LONGEST]} … {text[-_LONGEST:]}"
    text = text.replace("\u2019", "'").replace("\u00a0", " ").replace("\u202f", " ")
    return _ESCAPED.sub(lambda found: " " if found[1] in "nrt" else found[1], text) if "\\" in text else text


def _status(words: str) -> int | None:
    found = _STATUS.search(words)
    return int(found[1]) if found else None


def _decides(status: int | None) -> bool:
    """Whether the status decides: vendors say "log in" and "pay" with other statuses too, where the words count."""
    return status is not None and (status >= 500 or status in (401, 402, 403, 408, 425, 429))


def _is_limit(words: str, status: int | None) -> bool:
    if status in (429, 402) or _PAID_UP.search(words):
        return True
    return status != 401 and (status is None or status < 500) and bool(_LIMIT.search(words))


def _how(words: str, status: int | None) -> How:
    if _LENGTH.search(words):
        return "length"
    if _REFUSED.search(words):
        return "refused"
    unfit = _FULL.search(words) or _BROKEN.search(words)
    if status == 413 or (status in (None, 400, 404, 422) and unfit):
        return "unfit"
    by_status = status is not None and (status >= 500 or status in (408, 425))
    return "network" if by_status or (status in (None, 200) and _NETWORK.search(words)) else "error"
