"""One webhook's request as bytes: its head strictly read, who signed it, which project it is about."""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from ganger.contracts.reading.strict_json import DocumentFault, check_count, loads

HEAD_BYTES = 16 * 1024
BODY_BYTES = 1 << 20
_MOST_VALUES = 50_000
_LONGEST_ID = 200
_REQUEST_LINE = re.compile(rb"([A-Z]{1,20}) [\x21-\x7e]{1,2000} HTTP/1\.[01]")
_NAME = re.compile(rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_DELIVERIES = (
    "x-forgejo-delivery",
    "x-gitea-delivery",
    "x-github-delivery",
    "idempotency-key",
    "x-gitlab-event-uuid",
)


class Refused(Exception):
    """A request that is not taken; `status` is HTTP's."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status, self.why = status, why


@dataclass(frozen=True, slots=True)
class Head:
    """Header names are lower-case."""

    headers: Mapping[str, bytes]
    length: int

    @property
    def delivery(self) -> str:
        """What the forge calls this delivery, and calls it again when it repeats it; empty where it does not."""
        found = next((self.headers[name] for name in _DELIVERIES if name in self.headers), b"")
        return found[:_LONGEST_ID].decode("latin-1")


def read_head(raw: bytes) -> Head:
    """A head with its empty line; raises Refused."""
    first, *lines = raw.removesuffix(b"\r\n\r\n").split(b"\r\n")
    asked = _REQUEST_LINE.fullmatch(first)
    if asked is None:
        raise Refused(400, "this is no HTTP request")
    if asked[1] != b"POST":
        raise Refused(405, "webhooks are posted")
    headers: dict[str, bytes] = {}
    for line in lines:
        name, colon, value = line.partition(b":")
        key = name.decode("latin-1").lower()
        if not colon or not _NAME.fullmatch(name) or key in headers:
            raise Refused(400, "a header is malformed, or given twice")
        headers[key] = value.strip(b" \t")
    return Head(headers, _length(headers))


def _length(headers: Mapping[str, bytes]) -> int:
    """Judged by the head alone, before anything of the body is read."""
    kind = headers.get("content-type", b"").split(b";")[0].strip().lower()
    if kind != b"application/json" or headers.get("content-encoding", b"identity") != b"identity":
        raise Refused(415, "only JSON is taken: set the webhook's content type to application/json")
    length = headers.get("content-length", b"")
    if "transfer-encoding" in headers or not re.fullmatch(rb"[0-9]{1,12}", length):
        raise Refused(411, "the request does not say how long it is")
    if int(length) > BODY_BYTES:
        raise Refused(413, f"the body is larger than {BODY_BYTES} bytes")
    return int(length)


def _hexed(body: bytes, secret: bytes) -> bytes:
    return hmac.new(secret, body, hashlib.sha256).hexdigest().encode()


_SIGNATURES: Mapping[str, Callable[[bytes, bytes], bytes]] = {
    "x-forgejo-signature": _hexed,
    "x-gitea-signature": _hexed,
    "x-hub-signature-256": lambda body, secret: b"sha256=" + _hexed(body, secret),
    "x-gitlab-token": lambda _body, secret: secret,
}


def signer(head: Head, body: bytes, secrets: Iterable[str]) -> str | None:
    """The secret it was signed with. Every signature it carries must be right, and it must carry one."""
    given = [(head.headers[name], proof) for name, proof in _SIGNATURES.items() if name in head.headers]
    found: str | None = None
    for secret in secrets:
        right = [hmac.compare_digest(value, proof(body, secret.encode())) for value, proof in given]
        if secret and given and all(right):
            found = secret
    return found


def project_of(body: bytes) -> str:
    """`owner/name`, as every forge puts it somewhere; empty where it does not. Raises Refused for what is no JSON."""
    try:
        text = body.decode("utf-8")
        check_count(text, _MOST_VALUES)
        value = loads(text)
    except (UnicodeDecodeError, DocumentFault):
        raise Refused(400, "the body is no acceptable JSON") from None
    for outer, inner in (("repository", "full_name"), ("project", "path_with_namespace")):
        part = value.get(outer) if isinstance(value, dict) else None
        named = part.get(inner) if isinstance(part, dict) else None
        if isinstance(named, str) and named:
            return named
    return ""
