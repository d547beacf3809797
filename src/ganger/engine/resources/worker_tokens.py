"""Tokens of the worker protocol: derived from a key that only the lead and the operator can read, stored nowhere."""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
from dataclasses import dataclass
from pathlib import Path

from ganger.local.run_folder import named_os_errors, replace_file

_KEY_BYTES = 32
_WORKER, _JOIN = "w1", "j1"


@dataclass(frozen=True, slots=True)
class Badge:
    """Whose token it is: the worker's of the attempt with this fence, or, without one, a session's that may ask for a
    task."""

    fence: str = ""

    @property
    def joins(self) -> bool:
        return not self.fence


class WorkerTokens:
    def __init__(self, key: bytes) -> None:
        self._key = key

    @classmethod
    def of(cls, file: Path) -> WorkerTokens:
        """The run's own key; made if there is none. Anyone who can read the file may ask for tasks."""
        with named_os_errors(file):
            try:
                key = bytes.fromhex(file.read_text(encoding="ascii"))
            except (FileNotFoundError, ValueError):
                key = b""
            if len(key) != _KEY_BYTES:
                key = secrets.token_bytes(_KEY_BYTES)
                before = os.umask(0o077)
                try:
                    replace_file(file, key.hex())
                finally:
                    os.umask(before)
        return cls(key)

    @property
    def join(self) -> str:
        return f"{_JOIN}.{self._mac('join')}"

    def worker(self, fence: str) -> str:
        return f"{_WORKER}.{fence}.{self._mac(f'worker:{fence}')}"

    def read(self, token: str) -> Badge | None:
        kind, _, rest = token.partition(".")
        fence, _, mac = rest.rpartition(".")
        if kind == _JOIN and not fence and hmac.compare_digest(self._mac("join").encode(), mac.encode()):
            return Badge()
        if kind == _WORKER and fence and hmac.compare_digest(self._mac(f"worker:{fence}").encode(), mac.encode()):
            return Badge(fence)
        return None

    def _mac(self, text: str) -> str:
        return hmac.new(self._key, text.encode("utf-8", "replace"), hashlib.sha256).hexdigest()[:40]
