"""What a telling line hints at: places that a program did not find, an unreachable network, a missing privilege."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator

_LONGEST, _LONGEST_AROUND = 2000, 16_000
_ABSENT = re.compile(
    r"no such file|not found|cannot open|can't open|cannot find|can't find|could not find|cannot access|does not exist"
    r"|permission denied|not accessible|unable to open|failed to open|\bENOENT\b|\bEACCES\b|no such directory"
    r"|no module named|cannot load|could not read|unable to read|not readable",
    re.IGNORECASE,
)
_PATH = re.compile(r"(?<![\w.:/~-])(/[^\s\"'`<>|:,;()\[\]{}‘’*?]+)")
_NETWORK = re.compile(
    r"name or service not known|temporary failure in name resolution|nodename nor servname|could not resolve"
    r"|network is unreachable|no route to host|getaddrinfo|\bENETUNREACH\b|\bEAI_AGAIN\b|\bENOTFOUND\b"
    r"|\bEHOSTUNREACH\b|name resolution|connection refused|\bECONNREFUSED\b|dial tcp"
    r"|failed to establish a new connection"
    r"|max retries exceeded|address family not supported|unreachable host|no internet",
    re.IGNORECASE,
)
# What creating a socket says where none is allowed: a refusal that names no file.
_NO_SOCKET = re.compile(
    r"PermissionError: \[Errno 13\] Permission denied$|\bsocket\b.*(?:permission denied|EACCES|EPERM)", re.I
)
_MODULE = re.compile(r"No module named '(?P<python>[\w.]+)'|Cannot find module '(?P<node>[^']+)'")
_ASKED = re.compile(r'File "(?P<python>/[^"\n]+)", line \d|^- (?P<node>/\S+)$', re.MULTILINE)
_FORBIDDEN = re.compile(r"operation not permitted|\bEPERM\b", re.IGNORECASE)
_TOO_LARGE = re.compile(r"file too large|\bEFBIG\b|file size limit exceeded", re.IGNORECASE)
_FULL = re.compile(r"no space left on device|\bENOSPC\b", re.IGNORECASE)


def absent_paths(line: str, around: str = "") -> tuple[str, ...]:
    """The full paths in a line that complains about something missing or unreadable; and where a missing module would
    be, beside the files that `around` names as its importers."""
    text = line[:_LONGEST]
    if not _ABSENT.search(text):
        return ()
    found = [path.rstrip(".!") for path in _PATH.findall(text)]
    return tuple(dict.fromkeys(path for path in (*found, *_modules(text, around)) if path != "/" and "\0" not in path))


def _modules(line: str, around: str) -> Iterator[str]:
    module = _MODULE.search(line)
    name = module["python"].replace(".", "/") if module is not None and module["python"] else ""
    name = name or (module["node"] if module is not None and module["node"] else "")
    if not name or name.startswith("/"):
        return
    for found in _ASKED.finditer(around[-_LONGEST_AROUND:]):
        folder = (found["python"] or found["node"]).rpartition("/")[0]
        for ending in ("", ".py", ".js", ".mjs", ".cjs", ".ts"):
            yield posixpath.normpath(f"{folder}/{name}{ending}")


def sandbox_hint(line: str, *, network: str, walled: bool) -> str:
    """The setting behind a line about the network, limits or refused privileges; else empty."""
    text = line[:_LONGEST]
    if walled and network != "allow" and (_NETWORK.search(text) or _NO_SOCKET.search(text)):
        return f'the sandbox has network = "{network}": set sandbox.network = "allow" if it needs more'
    if walled and (_TOO_LARGE.search(text) or _FULL.search(text)):
        return "the sandbox limits each file and each temporary folder: sandbox.file_mb"
    if walled and _FORBIDDEN.search(text):
        return "the sandbox forbids mounts, namespaces, tracing and other privileges: docs/guide/sandbox.md"
    return ""
