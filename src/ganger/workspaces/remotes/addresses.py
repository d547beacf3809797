"""Addresses of git remotes: what kind they are, what of them may be shown, which forge they belong to."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from ganger.errors import GangerError
from ganger.workspaces.git.git import Git

_URL = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://")
# As git reads it: a colon before the first slash.
_SCP = re.compile(r"(?:(?P<user>[^@/:\s]+)@)?(?P<host>\[[0-9a-fA-F:.]+\]|[^@/:\s\[\]-][^@/:\s\[\]]*):(?P<path>.+)")
_TAKEN = ("file", "ssh", "http", "https")
_USUAL_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class Address:
    """`text` is what git is called with and what is shown; it holds no secret. `user` and `password` hold those."""

    scheme: str
    text: str
    user: str = ""
    password: str = ""

    @property
    def host(self) -> str:
        """The name people and forges use, with any unusual port; empty for a path."""
        if self.local:
            return ""
        if _URL.match(self.text):
            parts = urlsplit(self.text)
            shown = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname or ""
            usual = self.scheme == "ssh" or parts.port in (None, _USUAL_PORTS[self.scheme])
            return shown if usual else f"{shown}:{parts.port}"
        found = _SCP.fullmatch(self.text)
        return found["host"] if found else ""

    @property
    def local(self) -> bool:
        return self.scheme == "file"

    @property
    def web(self) -> bool:
        return self.scheme in ("http", "https")


def parse_address(given: str, project: Path | None = None) -> Address:
    """Raises for an address that git must not be called with. A relative path starts at the project's folder."""
    if any(ord(sign) < 32 or ord(sign) == 127 for sign in given) or not given or given.startswith("-"):
        raise _bad(given)
    found = _URL.match(given)
    if found is None:
        # A remote helper such as `ext::sh` has two colons; git would run it as a program.
        if "::" in given.partition("/")[0].partition("[")[0]:
            raise _bad(given)
        if _SCP.fullmatch(given) and not given.startswith("/"):
            return Address("ssh", given)
        path = Path(given).expanduser()
        if not path.is_absolute():
            if project is None:
                raise _bad(given)
            path = project / path
        return Address("file", str(path))
    scheme = found["scheme"].lower()
    if scheme not in _TAKEN:
        raise _bad(given)
    if scheme == "file":
        return Address("file", given)
    return _parsed_url(scheme, given)


def _parsed_url(scheme: str, given: str) -> Address:
    try:
        parts = urlsplit(given)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        raise _bad(given) from None
    if not host or host.startswith("-"):
        raise _bad(given)
    user, password = unquote(parts.username or ""), unquote(parts.password or "")
    shown = f"[{host}]" if ":" in host else host
    place = f"{shown}:{port}" if port else shown
    name = f"{parts.username}@" if scheme == "ssh" and parts.username else ""
    return Address(scheme, f"{scheme}://{name}{place}{parts.path}", user, password)


def forge_of(address: str) -> tuple[str, str]:
    """The forge's address and the repository's `owner/name` on it; two empty strings for a path.

    A forge that is reached over ssh is assumed to serve https on the usual port.
    """
    found = parse_address(address, Path("/"))
    if found.local:
        return "", ""
    scp = None if _URL.match(address) else _SCP.fullmatch(address)
    if scp is not None:
        host, path = scp["host"], scp["path"]
        return f"https://{host}", _owner_name(path)
    parts = urlsplit(found.text)
    host = parts.hostname or ""
    shown = f"[{host}]" if ":" in host else host
    if found.scheme == "ssh":
        return f"https://{shown}", _owner_name(parts.path)
    port = "" if parts.port in (None, _USUAL_PORTS[found.scheme]) else f":{parts.port}"
    return f"{found.scheme}://{shown}{port}", _owner_name(parts.path)


def _owner_name(path: str) -> str:
    return unquote(path).strip("/").removesuffix(".git").strip("/").removeprefix("~")


def remote_address(project: Path, name: str) -> str:
    """The push address of a named remote of the user's repository; an address is returned unchanged."""
    if not _URL.match(name) and not name.startswith(("/", "-")):
        words = ("remote", "get-url", "--push", "--", name)
        answer = Git(project / ".git").ask(*words, doing=f"looking for the remote {name}", fine=(0, 2, 128))
        if answer.code == 0 and answer.text:
            return _absolute(answer.text.splitlines()[0], project)
        if "/" not in name and ":" not in name and not (project / name).is_dir():
            raise GangerError(
                f"{project} has no remote named {name!r}",
                hint=f"add it with `git remote add {name} ADDRESS`, or set delivery.remote to an address",
                code="REMOTE_UNKNOWN",
            )
    return _absolute(name, project)


def _absolute(address: str, project: Path) -> str:
    found = parse_address(address, project)
    return found.text if found.local else address


def _bad(given: str) -> GangerError:
    shown = re.sub(r"//[^@/]*@", "//", given)[:120]
    return GangerError(
        f"{shown!r} is not an address Ganger can push to",
        hint="give a path, or an address that begins with https://, http://, ssh:// or host:",
        code="REMOTE_ADDRESS",
    )
