"""Secrets in what a change adds: known shapes, key blocks, passwords in addresses, and named random values."""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import NamedTuple

from ganger.workspaces.rules.line_counts import Line, added_lines


@dataclass(frozen=True, slots=True)
class SecretKind:
    """Patterns start with a literal where possible, which makes them fast, and are bounded, which keeps them linear.

    One of the literal `hints` must occur before the slower pattern is tried; group 1, if any, is the secret.
    """

    name: str
    hints: tuple[bytes, ...]
    shape: re.Pattern[bytes]


def _kind(name: str, hints: str, shape: str) -> SecretKind:
    pattern = re.compile(rf"{shape}(?![\w-])".encode())
    return SecretKind(name, tuple(hint.encode() for hint in hints.split()), pattern)


_W = r"[A-Za-z0-9]"
_V = r"[A-Za-z0-9_-]"
_X = r"[0-9a-f]"

SECRET_KINDS: tuple[SecretKind, ...] = (
    _kind("an AWS access key", "AKIA ASIA ABIA ACCA", r"(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}"),
    _kind("a GitHub token", "ghp_ gho_ ghu_ ghs_ ghr_", rf"gh[pousr]_{_W}{{36,255}}"),
    _kind("a GitHub token", "github_pat_", r"github_pat_\w{60,255}"),
    _kind("a GitLab token", "glpat- glptt- gldt- glrt- glcbt- glft- glsoat- gloas-", rf"gl[a-z]{{2,5}}-{_V}{{20,100}}"),
    _kind("a Slack token", "xoxb- xoxa- xoxp- xoxr- xoxs- xoxe-", r"xox[abeprs]-[0-9]{6,15}-[0-9A-Za-z-]{16,250}"),
    _kind("a Slack token", "xapp-", r"xapp-[0-9]-[A-Z0-9]{8,15}-[0-9]{8,15}-[0-9a-f]{32,80}"),
    _kind("a Slack webhook", "hooks.slack.com", rf"hooks\.slack\.com/services/(T\w{{6,14}}/B\w{{6,14}}/{_W}{{20,30}})"),
    _kind("a Discord webhook", "/api/webhooks/", rf"discord(?:app)?\.com/api/webhooks/([0-9]{{15,22}}/{_V}{{60,80}})"),
    _kind("a Stripe key", "_live_", rf"[rs]k_live_{_W}{{20,247}}"),
    _kind("a Stripe webhook secret", "whsec_", r"whsec_[A-Za-z0-9+/]{32,64}"),
    _kind("an npm token", "npm_", rf"npm_{_W}{{36}}"),
    _kind("a PyPI token", "pypi-AgE", rf"pypi-AgE{_V}{{50,250}}"),
    _kind("a RubyGems key", "rubygems_", rf"rubygems_{_X}{{48}}"),
    _kind("a crates.io token", "cio", rf"cio{_W}{{32}}"),
    _kind("a Docker token", "dckr_", rf"dckr_[po]at_{_V}{{27,32}}"),
    _kind("a Google API key", "AIza", rf"AIza{_V}{{35}}"),
    _kind("a Google client secret", "GOCSPX-", rf"GOCSPX-{_V}{{28}}"),
    _kind("an OpenAI key", "sk-proj- sk-svcacct- sk-admin-", rf"sk-(?:proj|svcacct|admin)-{_V}{{40,200}}"),
    _kind("an OpenAI key", "T3BlbkFJ", rf"sk-{_W}{{20}}T3BlbkFJ{_W}{{20}}"),
    _kind("an Anthropic key", "sk-ant-", rf"sk-ant-[a-z0-9]{{3,12}}-{_V}{{60,200}}"),
    _kind("an OpenRouter key", "sk-or-v1-", rf"sk-or-v1-{_X}{{64}}"),
    _kind("a Hugging Face token", "hf_", rf"hf_{_W}{{34}}"),
    _kind("an Azure storage key", "AccountKey=", r"AccountKey=([A-Za-z0-9+/]{86}==)"),
    _kind("a DigitalOcean token", "doo_v1_ dop_v1_ dor_v1_", rf"do[opr]_v1_{_X}{{64}}"),
    _kind("a SendGrid key", "SG.", rf"SG\.{_V}{{22}}\.{_V}{{43}}"),
    _kind("a Shopify token", "shpat_ shpca_ shppa_ shpss_", r"shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}"),
    _kind("a Telegram bot token", ":AA", rf"[0-9]{{8,10}}:AA{_V}{{33}}"),
    _kind("a Databricks token", "dapi", rf"dapi{_X}{{32}}(?:-[0-9])?"),
    _kind("a Vault token", "hvs. hvb.", rf"hv[sb]\.{_V}{{24,300}}"),
    _kind("a Terraform token", ".atlasv1.", rf"{_W}{{14}}\.atlasv1\.{_V}{{60,80}}"),
    _kind("a Tailscale key", "tskey-", rf"tskey-[a-z]{{3,10}}-{_W}{{10,30}}-{_W}{{20,40}}"),
    _kind("a Linear key", "lin_api_", rf"lin_api_{_W}{{40}}"),
    _kind("a Grafana token", "glsa_", rf"glsa_{_W}{{32}}_{_X}{{8}}"),
    _kind("a Supabase token", "sbp_", rf"sbp_{_X}{{40}}"),
    _kind("an age secret key", "AGE-SECRET-KEY-1", r"AGE-SECRET-KEY-1[A-Z0-9]{58}"),
    _kind("a signed JWT", "eyJ", rf"(?<![\w-])eyJ{_V}{{10,2000}}\.eyJ{_V}{{37,4000}}\.{_V}{{20,1000}}"),
)

# A placeholder, or a value read from elsewhere: never a secret.
PLACEHOLDER = re.compile(
    rb"example|sample|placeholder|change.?me|your|x{4,}|dummy|fake|mock|test|todo|fixme|redacted|insert|replace|\*{3,}"
    rb"|\.{3,}|[<>{}()]|\$|%\w|environ|getenv|0{6,}|1{6,}|a{6,}|1234567|abcdefg|qwert|deadbeef|foobar|lorem|notreal"
    rb"|not.?a.?real|invalid|secret.?key|password|s3cr3t|hunter2|\bnone\b|\bnull\b",
    re.IGNORECASE,
)
PRETENDED = re.compile(rb"fake|dummy|example|placeholder|mock|sample|not.?a.?real|redacted|revoked", re.IGNORECASE)


_KEY = "a private key"
_ADDRESSED = "an address with a password"
_VALUE = "a key, token or password"
_BINARY_HEAD = 8000
_LINE_BEFORE = 200
_KEY_HEAD_BYTES = 600

_KEY_BLOCK = re.compile(rb"-----BEGIN [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?-----")
_KEY_END = re.compile(rb"-----END [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?-----")
_LARGEST_KEY = 1 << 14
_LONGEST_KEY_LINE = 200
_SHORT_LINES = 2
_KEY_BODY = re.compile(rb"[A-Za-z0-9+/]{40,}")
_UNREAL_KEY = re.compile(rb"\.\.\.|" + PRETENDED.pattern, re.IGNORECASE)
_ADDRESS = re.compile(rb"://([^\s:/@'\"<>`]{0,64}):([^\s@/'\"<>`{}$]{8,128})@([\w.-]{1,253})")
_NAMES = (b"key", b"secret", b"token", b"passw", b"passphrase", b"credential", b"pwd")
_KEY_NAME = re.compile(rb"(?:api|access|private|signing|encryption|secret)[_-]?$")
_ASSIGNED = re.compile(
    rb"[\w-]{0,24}+[\"']?\]?[ \t]{0,4}(?::[ \t]{0,3}[\w\[\]|.]{1,30}[ \t]{0,2}=|:=|=>|=|:)[ \t]{0,4}"
    rb"(?:[brfu]{0,2}([\"'`])([^\"'`\s\\]{16,256})\1|([\w+/=-]{24,256}+)[ \t\r]{0,99}(?:\n|\Z))"
)
_NOT_SECRET_NAME = re.compile(
    rb"hash|sha\d|checksum|digest|integrity|fingerprint|public|nonce|etag|csrf|cache|page|next|prev|continuation|url|uri"
    rb"|path|file|regex|pattern|label|name|id$|ids$",
    re.IGNORECASE,
)
_UUID = re.compile(rb"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_HEX = re.compile(rb"[0-9a-f]+", re.IGNORECASE)
_NAME_BEFORE = re.compile(rb"[\w.\[\"'-]{0,60}$")
_NAME_AFTER = re.compile(rb"[\w-]{0,24}")
_WORD_SIGNS = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")
_RANDOM_SIGNS = re.compile(rb"[A-Za-z0-9+/=_.~!@#^&*-]+")
_HARMLESS_HOST = re.compile(
    rb"localhost|127\.[\d.]+|0\.0\.0\.0|[\w.-]*\.?(?:example|test|invalid|local)(?:\.\w+)?", re.I
)
_LOCK_FILES = re.compile(r"(?:.*/)?(?:[^/]*[.-]lock(?:\.\w+)?|go\.sum|[^/]*\.lockb?|npm-shrinkwrap\.json|[^/]*\.snap)")


@dataclass(frozen=True, slots=True)
class FoundSecret:
    """Where a secret is and of what kind."""

    line: int
    kind: str


class Sample(NamedTuple):
    """One file of a change, before and after."""

    path: str
    before: bytes
    after: bytes


class _Hit(NamedTuple):
    """`at` is where the value begins in the scanned text."""

    found: FoundSecret
    value: bytes
    at: int = 0


class Span(NamedTuple):
    """A stretch of text that holds a secret, and the secret's kind."""

    start: int
    end: int
    kind: str


def find_secrets(lines: Iterable[Line]) -> list[FoundSecret]:
    """The secrets in these added lines, by line."""
    added = list(lines)
    text, number = _joined(added)
    hits = [
        *_shapes(text, number, named=True),
        *(_Hit(FoundSecret(number(at), _KEY), body) for at, body in _key_blocks(text)),
    ]
    return sorted({hit.found for hit in hits}, key=lambda found: (found.line, found.kind))


def secret_spans(text: bytes) -> list[Span]:
    """Where a text outside of any change, such as a log, holds secrets. Linear in its length."""
    hits = _shapes(text, lambda _: 0, named=True)
    found = [Span(hit.at, hit.at + len(hit.value), hit.found.kind) for hit in hits]
    reached = 0
    for at, _ in _key_blocks(text):
        if at >= reached:
            reached = _block_end(text, at)
            found.append(Span(at, reached, _KEY))
    return sorted([*found, *_cut_keys(text, [span for span in found if span.kind == _KEY])])


def _cut_keys(text: bytes, whole: Sequence[Span]) -> Iterator[Span]:
    """Keys whose first line was cut off: the lines above their last line that look like a key's body."""
    ends = {span.end for span in whole}
    reached = 0
    for match in _KEY_END.finditer(text) if b"PRIVATE KEY" in text else ():
        start = _body_above(text, match.start(), reached)
        if match.end() not in ends and start < match.start():
            yield Span(start, match.end(), _KEY)
        reached = match.end()


def _body_above(text: bytes, end: int, lowest: int) -> int:
    """Where a key body that ends here begins. Only its last two lines may be short."""
    start = at = end
    short = 0
    while at > lowest and end - at < _LARGEST_KEY and short <= _SHORT_LINES:
        farthest = max(lowest, at - _LONGEST_KEY_LINE)
        above = max(text.rfind(b"\n", farthest, at - 1) + 1, farthest)
        if _KEY_BODY.search(text, above, at):
            start, short = above, _SHORT_LINES
        else:
            short += 1
        at = above
    return start


def _block_end(text: bytes, at: int) -> int:
    """A key block up to its last line; for one that was cut off, up to the longest possible key."""
    end = _KEY_END.search(text, at + 1, at + _LARGEST_KEY)
    return end.end() if end else min(len(text), at + _LARGEST_KEY)


def new_secrets(samples: Iterable[Sample], known: Callable[[], Iterable[bytes]]) -> list[tuple[str, FoundSecret]]:
    """Secrets in these files that none of the `known` contents had; a secret that only moved is not reported again."""
    hits = [(sample.path, hit) for sample in samples for hit in _in_sample(sample)]
    if not hits:
        return []
    wanted = {hit.value for _, hit in hits}
    seen = {value for content in known() for value in _values_in(content) if value in wanted}
    return list(dict.fromkeys((path, hit.found) for path, hit in hits if hit.value not in seen))


def _in_sample(sample: Sample) -> list[_Hit]:
    """Key blocks are searched in the whole file: the first line may be old and only the body new."""
    old = {body for _, body in _key_blocks(sample.before)}
    blocks = [(at, body) for at, body in _key_blocks(sample.after) if body not in old]
    hits = [_Hit(FoundSecret(number, _KEY), body) for number, body in _numbered(sample.after, blocks)]
    if not _is_binary(sample.after):
        text, number = _joined(added_lines(sample.before, sample.after))
        hits += _shapes(text, number, named=_LOCK_FILES.fullmatch(sample.path) is None)
    return hits


def _values_in(content: bytes) -> Iterator[bytes]:
    yield from (body for _, body in _key_blocks(content))
    if not _is_binary(content):
        yield from (hit.value for hit in _shapes(content, lambda _: 0, named=True))


def _is_binary(content: bytes) -> bool:
    return b"\0" in content[:_BINARY_HEAD]


def _joined(lines: Sequence[Line]) -> tuple[bytes, Callable[[int], int]]:
    """The lines as one text, and the number of the line at an offset of it."""
    starts = list(accumulate((len(line.text) + 1 for line in lines), initial=0))
    return b"\n".join(line.text for line in lines), lambda offset: lines[bisect_right(starts, offset) - 1].number


def _numbered(content: bytes, blocks: Iterable[tuple[int, bytes]]) -> Iterator[tuple[int, bytes]]:
    number, counted = 1, 0
    for at, body in blocks:
        number, counted = number + content.count(b"\n", counted, at), at
        yield number, body


def _key_blocks(content: bytes) -> Iterator[tuple[int, bytes]]:
    """Only a first line with a body below it: code that reads such files has the first line only."""
    if b"PRIVATE KEY" not in content:
        return
    for match in _KEY_BLOCK.finditer(content):
        end = content.find(b"-----", match.end(), match.end() + _KEY_HEAD_BYTES)
        reach = content[match.end() : end if end >= 0 else match.end() + _KEY_HEAD_BYTES]
        body = _KEY_BODY.search(reach)
        if body is not None and _entropy(body[0][:400]) >= 3.5 and not _UNREAL_KEY.search(reach):
            yield match.start(), body[0][-64:]


def _shapes(text: bytes, number: Callable[[int], int], *, named: bool) -> Iterator[_Hit]:
    for kind in SECRET_KINDS:
        if any(hint in text for hint in kind.hints):
            for match in kind.shape.finditer(text):
                value = match[match.lastindex or 0]
                alone = match.start() == 0 or text[match.start() - 1] not in _WORD_SIGNS
                if alone and _is_meant(text, match.start(), value) and _entropy(value) >= 3.0:
                    yield _Hit(FoundSecret(number(match.start()), kind.name), value, match.start(match.lastindex or 0))
    if b"://" in text:
        yield from (
            _Hit(FoundSecret(number(match.start()), _ADDRESSED), match[2], match.start(2)) for match in _addresses(text)
        )
    if named:
        yield from (_Hit(FoundSecret(number(at), _VALUE), value, start) for at, value, start in _named_values(text))


def _is_meant(text: bytes, at: int, value: bytes) -> bool:
    """False for a value that its author calls a fake, on the same line or in the value."""
    start = max(text.rfind(b"\n", max(0, at - _LINE_BEFORE), at) + 1, at - _LINE_BEFORE)
    return PLACEHOLDER.search(value) is None and PRETENDED.search(text, start, at) is None and not _is_jwt_io(value)


def _is_jwt_io(value: bytes) -> bool:
    """The payload `{"sub":"1234567890"…` of the well-known tutorial token."""
    return b".eyJzdWIiOiIxMjM0NTY3ODkwI" in value


def _addresses(text: bytes) -> Iterator[re.Match[bytes]]:
    for match in _ADDRESS.finditer(text):
        user, password, host = match.groups()
        if password.lower() == user.lower() or _HARMLESS_HOST.fullmatch(host):
            continue
        if not _is_meant(text, match.start(), password) or not _RANDOM_SIGNS.fullmatch(password.replace(b"%", b"")):
            continue
        if _entropy(password) >= (2.5 if b"." in host else 3.3) and re.search(rb"\d", password):
            yield match


def _named_values(text: bytes) -> Iterator[tuple[int, bytes, int]]:
    """`api_key = "…"` and similar: plain searches find the name, which is much faster than one pattern.

    Yields where the name is, the value, and where the value begins.
    """
    lower = text.lower()
    for name in _NAMES:
        at = lower.find(name)
        while at >= 0:
            end = at + len(name)
            match = _ASSIGNED.match(text, end) if name != b"key" or _KEY_NAME.search(lower, at - 11, at) else None
            value = (match[2] or match[3]) if match else b""
            if (
                match
                and value
                and _is_meant(text, at, value)
                and _may_be_secret(_whole_name(text, at, end))
                and _is_random(value)
            ):
                yield at, value, match.start(2 if match[2] else 3)
            at = lower.find(name, end)


def _whole_name(text: bytes, at: int, end: int) -> bytes:
    before = _NAME_BEFORE.search(text, max(0, at - 60), at)
    after = _NAME_AFTER.match(text, end)
    return (before[0] if before else b"") + text[at:end] + (after[0] if after else b"")


def _may_be_secret(name: bytes) -> bool:
    return _NOT_SECRET_NAME.search(name) is None and PRETENDED.search(name) is None


def _is_random(value: bytes) -> bool:
    if _UUID.fullmatch(value) or not _RANDOM_SIGNS.fullmatch(value) or value.startswith((b"sha", b"/", b"./", b"../")):
        return False
    if _HEX.fullmatch(value):
        return len(value) >= 32 and _entropy(value) >= 3.0 and re.search(rb"[a-fA-F]", value) is not None
    digits = sum(char in b"0123456789" for char in value)
    return digits >= 2 and _entropy(value) >= 3.5 and _switches(value) >= 0.42


def _switches(value: bytes) -> float:
    """How often lower case, upper case and digits alternate: rare in words and names."""
    kinds = [b"a" if 97 <= c <= 122 else b"A" if 65 <= c <= 90 else b"0" if 48 <= c <= 57 else b"-" for c in value]
    pairs = list(pairwise(kinds))
    return sum(one != two and b"-" not in (one, two) for one, two in pairs) / max(1, len(pairs))


def _entropy(value: bytes) -> float:
    """Bits per character, from the character frequencies."""
    size = len(value)
    return -sum(n / size * math.log2(n / size) for n in Counter(value).values()) if size else 0.0
