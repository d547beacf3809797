"""The repository over HTTP, by git's own server program: for pushes that need a token and that an outage hits."""

from __future__ import annotations

import base64
import os
import subprocess

from .flavour import PROJECT
from .ground import Ground
from .http import Answer, Ask

PREFIX = f"/{PROJECT}.git/"


def is_git(ask: Ask) -> bool:
    return ask.path.startswith(PREFIX)


def answer_git(ask: Ask, ground: Ground, token: str, *, revoked: bool) -> Answer:
    """Who brings no token that counts is asked for a name and a password, as forges do."""
    if revoked or _password(ask) != token:
        return Answer(401, text="Unauthorized\n", headers={"WWW-Authenticate": 'Basic realm="loopback"'})
    given: bytes = ask.body if isinstance(ask.body, bytes) else b""
    made = subprocess.run(
        ["git", "http-backend"],
        input=given,
        capture_output=True,
        check=False,
        env={
            **os.environ,
            "GIT_PROJECT_ROOT": str(ground.path),
            "GIT_HTTP_EXPORT_ALL": "1",
            "GIT_CONFIG_COUNT": "2",
            "GIT_CONFIG_KEY_0": "http.receivepack",
            "GIT_CONFIG_VALUE_0": "true",
            "GIT_CONFIG_KEY_1": "safe.directory",
            "GIT_CONFIG_VALUE_1": "*",
            "REQUEST_METHOD": ask.method,
            "PATH_INFO": "/" + ask.path.removeprefix(PREFIX),
            "QUERY_STRING": "&".join(f"{name}={value}" for name, value in ask.query.items()),
            "CONTENT_TYPE": ask.headers.get("content-type", ""),
            "CONTENT_LENGTH": str(len(given)),
            "HTTP_CONTENT_ENCODING": ask.headers.get("content-encoding", ""),
            "GIT_PROTOCOL": ask.headers.get("git-protocol", ""),
            "REMOTE_USER": "robot",
            "REMOTE_ADDR": "127.0.0.1",
        },
    )
    head, _, body = made.stdout.partition(b"\r\n\r\n")
    headers = dict(line.split(": ", 1) for line in head.decode().splitlines() if ": " in line)
    status = int(headers.pop("Status", "200").split()[0])
    return Answer(status, data=body, headers=headers)


def _password(ask: Ask) -> str:
    kind, _, word = ask.headers.get("authorization", "").partition(" ")
    return base64.b64decode(word).decode().partition(":")[2] if kind.lower() == "basic" else ""
