"""The environment of a child process: everything the operator has, less what is secret or would redirect the child.

Withheld are variables whose name or value looks like a secret. Dropped are those that would make the child load
foreign code (`LD_PRELOAD`, `BASH_ENV`), point git at another repository or configuration (`GIT_*` except the
author's identity and the CA bundle), or make it believe it belongs to an outer run (`GANGER_*`).
`LD_LIBRARY_PATH`, `PYTHONPATH` and the like stay: toolchains need them. Naming a variable in `passed` lets it through.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

_SECRET_PARTS = frozenset(
    (
        *("KEY", "KEYS", "TOKEN", "SECRET", "SECRETS", "PASSWORD", "PASSWORDS", "PASSWD", "PASS", "PASSPHRASE"),
        *("CREDENTIAL", "CREDENTIALS", "CREDS", "AUTH", "AUTHORIZATION", "BEARER", "PRIVATE", "COOKIE", "COOKIES"),
        *("DSN", "PAT", "JWT", "HMAC", "WEBHOOK", "NETRC", "ASKPASS", "PGPASSFILE", "SSHPASS"),
    )
)
_SECRET_ENDINGS = (
    *("PASSWORD", "PASSWD", "PASSPHRASE", "SECRET", "TOKEN", "CREDENTIAL", "CREDENTIALS"),
    *("APIKEY", "ACCESSKEY", "SECRETKEY", "PRIVATEKEY", "AUTHKEY", "SIGNINGKEY"),
)
_SECRET_PREFIXES = ("AWS_",)
_SECRET_NAMES = frozenset(("KUBECONFIG", "DOCKER_CONFIG", "GPG_AGENT_INFO", "VSCODE_GIT_IPC_HANDLE"))
_SECRET_NAME_ENDINGS = (
    "DATABASE_URL",
    "DB_URL",
    "MONGO_URL",
    "MONGODB_URI",
    "REDIS_URL",
    "AMQP_URL",
    "CONNECTION_STRING",
)
_COUNTS = frozenset(("MAX", "MIN", "NUM", "LIMIT", "BUDGET", "THINKING", "OUTPUT", "INPUT"))

_DROPPED_NAMES = frozenset(("LD_PRELOAD", "LD_AUDIT", "DYLD_INSERT_LIBRARIES", "BASH_ENV", "ENV", "PROMPT_COMMAND"))
_DROPPED_PREFIXES = ("GANGER_", "BASH_FUNC_")
_GIT_KEPT_PREFIXES = ("GIT_AUTHOR_", "GIT_COMMITTER_")
_GIT_KEPT = frozenset(("GIT_TERMINAL_PROMPT", "GIT_SSL_CAINFO", "GIT_SSL_CAPATH"))

_NOT_ALPHANUMERIC = re.compile(r"[^A-Z0-9]+")
_USER_INFO = re.compile(r"[^/\s]*@")
_TOKEN_VALUE = re.compile(
    r"(?:gh[pousr]_|github_pat_|glpat-|xox[abprs]-|AKIA[0-9A-Z]{12}|sk-[A-Za-z0-9]|npm_[A-Za-z0-9]{20}|eyJ[\w-]{10})"
)


def child_environment(
    source: Mapping[str, str], *, passed: Collection[str] = (), extra: Mapping[str, str]
) -> dict[str, str]:
    """What a child gets of `source`; names in `passed` come through whatever they are, and `extra` wins over all."""
    kept = {
        name: value
        for name, value in source.items()
        if name in passed or not (_is_dropped(name) or is_secret_name(name) or is_secret_value(value))
    }
    return kept | dict(extra)


def is_secret_name(name: str) -> bool:
    """Whether a variable of this name is taken for a secret, by the words its name is made of."""
    upper = name.upper()
    if upper.startswith(_SECRET_PREFIXES) or upper in _SECRET_NAMES or upper.endswith(_SECRET_NAME_ENDINGS):
        return True
    parts = [part.rstrip("0123456789") for part in _NOT_ALPHANUMERIC.split(upper)]
    if any(part in _SECRET_PARTS or part.endswith(_SECRET_ENDINGS) for part in parts):
        return True
    return _is_secret_by_company(upper, parts)


def _is_secret_by_company(upper: str, parts: list[str]) -> bool:
    """Words that are secret or harmless depending on the words beside them."""
    if "TOKENS" in parts:
        return not _COUNTS.intersection(parts)
    if parts[-1] == "SESSION":
        return upper != "DESKTOP_SESSION"
    return len(parts) > 1 and parts[-1] == "PWD"


def is_secret_value(value: str) -> bool:
    """Whether a value gives itself away: a URL with a password in it, a private key, a well-known kind of token."""
    if "PRIVATE KEY-----" in value or _TOKEN_VALUE.match(value):
        return True
    at = value.find("://")
    while at >= 0:
        user = _USER_INFO.match(value, at + 3)
        if user is not None and (":" in user.group() or value[max(0, at - 5) : at].lower().endswith(("http", "https"))):
            return True
        at = value.find("://", at + 3)
    return False


def _is_dropped(name: str) -> bool:
    if name.startswith("GIT_"):
        return name not in _GIT_KEPT and not name.startswith(_GIT_KEPT_PREFIXES)
    return name in _DROPPED_NAMES or name.startswith(_DROPPED_PREFIXES)


# What programs and toolchains need in order to be found and to work as they do for the operator.
_TOOL_NAMES = frozenset(
    (
        *("PATH", "LANG", "LANGUAGE", "TZ", "TERM", "COLORTERM", "SHELL", "USER", "LOGNAME", "HOME", "TMPDIR"),
        *("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR", "CURL_CA_BUNDLE"),
        *("NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE", "PIP_CERT", "GIT_SSL_CAINFO", "GIT_SSL_CAPATH"),
        *("VIRTUAL_ENV", "PYTHONPATH", "PYTHONUTF8", "PYENV_ROOT", "PYENV_VERSION", "CONDA_PREFIX", "UV_CACHE_DIR"),
        *(
            "PIP_FIND_LINKS",
            "PIP_INDEX_URL",
            "PIP_NO_INDEX",
            "NVM_DIR",
            "NVM_BIN",
            "VOLTA_HOME",
            "NODE_PATH",
            "BUN_INSTALL",
        ),
        *("CARGO_HOME", "RUSTUP_HOME", "RUSTUP_TOOLCHAIN", "RUSTFLAGS", "GOPATH", "GOROOT", "GOPROXY", "GOFLAGS"),
        *(
            "JAVA_HOME",
            "MAVEN_OPTS",
            "GRADLE_OPTS",
            "ANDROID_HOME",
            "DOTNET_ROOT",
            "GEM_HOME",
            "RBENV_ROOT",
            "DENO_DIR",
        ),
        *("LD_LIBRARY_PATH", "LIBRARY_PATH", "CPATH", "PKG_CONFIG_PATH", "CC", "CXX", "CFLAGS", "CXXFLAGS", "LDFLAGS"),
        *("MAKEFLAGS", "CMAKE_PREFIX_PATH", "SOURCE_DATE_EPOCH"),
    )
)
_TOOL_PREFIXES = ("LC_", "GIT_AUTHOR_", "GIT_COMMITTER_")


def tool_environment(source: Mapping[str, str]) -> dict[str, str]:
    """The environment of an agent program: only what is named here, and of that nothing that looks like a secret."""
    return {
        name: value
        for name, value in source.items()
        if (name.upper() in _TOOL_NAMES or name.startswith(_TOOL_PREFIXES)) and not is_secret_value(value)
    }
