"""The environment of a child process: a short list of variables, those named in the settings, and nothing else.

The list (`ORDINARY`) is what programs and toolchains need in order to be found and to work as they do for the operator.
It holds no variable that makes a child load foreign code (`LD_PRELOAD`, `BASH_ENV`), points git at another repository
or configuration, or makes it believe that it belongs to an outer run (`GANGER_*`). A listed variable whose value is
visibly secret, such as a proxy URL with a password, is withheld as well. Naming a variable in `passed` lets it through.

The operator's own programs (hooks, desktop notices) are not agents and judge no agent's work: they keep the operator's
environment without what looks like a secret (`operator_environment`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping

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
# A shell's own variables; its child sets others.
_SHELLS_OWN = frozenset(("_", "PWD", "OLDPWD", "SHLVL", "HOSTNAME", "PS1"))
_GIT_KEPT_PREFIXES = ("GIT_AUTHOR_", "GIT_COMMITTER_")
_GIT_KEPT = frozenset(("GIT_TERMINAL_PROMPT", "GIT_SSL_CAINFO", "GIT_SSL_CAPATH"))

_NOT_ALPHANUMERIC = re.compile(r"[^A-Z0-9]+")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_USER_INFO = re.compile(r"[^/\s]*@")
_TOKEN_VALUE = re.compile(
    r"(?:gh[pousr]_|github_pat_|glpat-|xox[abprs]-|AKIA[0-9A-Z]{12}|sk-[A-Za-z0-9]|npm_[A-Za-z0-9]{20}|eyJ[\w-]{10})"
)


# What programs and toolchains need in order to be found and to work as they do for the operator; none is secret.
ORDINARY: Mapping[str, tuple[str, ...]] = {
    "the session": (
        "PATH",
        "HOME",
        "USER",
        "LOGNAME",
        "SHELL",
        "TMPDIR",
        "TERM",
        "COLORTERM",
        "TZ",
        "LANG",
        "LANGUAGE",
    ),
    "the language": (
        *("LC_ALL", "LC_CTYPE", "LC_NUMERIC", "LC_TIME", "LC_COLLATE", "LC_MONETARY", "LC_MESSAGES", "LC_PAPER"),
        *("LC_NAME", "LC_ADDRESS", "LC_TELEPHONE", "LC_MEASUREMENT", "LC_IDENTIFICATION"),
    ),
    "the network": (
        *("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "no_proxy", "all_proxy"),
        *("SSL_CERT_FILE", "SSL_CERT_DIR", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE", "PIP_CERT"),
    ),
    "git": (
        *("GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_AUTHOR_DATE"),
        *("GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL", "GIT_COMMITTER_DATE"),
        *("GIT_TERMINAL_PROMPT", "GIT_SSL_CAINFO", "GIT_SSL_CAPATH"),
    ),
    "Python": (
        *("VIRTUAL_ENV", "PYTHONPATH", "PYTHONUTF8", "PYTHONHASHSEED", "PYTHONDONTWRITEBYTECODE", "PYENV_ROOT"),
        *("PYENV_VERSION", "CONDA_PREFIX", "UV_CACHE_DIR", "PIP_FIND_LINKS", "PIP_INDEX_URL", "PIP_NO_INDEX"),
    ),
    "JavaScript": ("NVM_DIR", "NVM_BIN", "VOLTA_HOME", "NODE_PATH", "NODE_ENV", "BUN_INSTALL", "DENO_DIR"),
    "Rust, Go": (
        *("CARGO_HOME", "CARGO_TARGET_DIR", "RUSTUP_HOME", "RUSTUP_TOOLCHAIN", "RUSTFLAGS"),
        *("GOPATH", "GOROOT", "GOPROXY", "GOFLAGS", "GOCACHE", "GOMODCACHE", "GOTOOLCHAIN", "CGO_ENABLED"),
    ),
    "JVM, .NET, Ruby": (
        *("JAVA_HOME", "MAVEN_OPTS", "GRADLE_OPTS", "GRADLE_USER_HOME", "ANDROID_HOME", "DOTNET_ROOT"),
        *("GEM_HOME", "GEM_PATH", "RBENV_ROOT", "RBENV_VERSION"),
    ),
    "C and make": (
        *("LD_LIBRARY_PATH", "LIBRARY_PATH", "CPATH", "PKG_CONFIG_PATH", "CC", "CXX", "CFLAGS", "CXXFLAGS"),
        *("CPPFLAGS", "LDFLAGS", "MAKEFLAGS", "CMAKE_PREFIX_PATH", "SOURCE_DATE_EPOCH"),
    ),
}
_ORDINARY_NAMES = frozenset(name for names in ORDINARY.values() for name in names)


def child_environment(
    source: Mapping[str, str], *, passed: Collection[str] = (), extra: Mapping[str, str]
) -> dict[str, str]:
    """What a child gets of `source`; names in `passed` always come through, and `extra` overrides everything."""
    kept = {name: value for name, value in source.items() if name in passed or is_ordinary(name, value)}
    return kept | dict(extra)


def tool_environment(source: Mapping[str, str]) -> dict[str, str]:
    """The same for a program that gets no variable by name."""
    return child_environment(source, extra={})


def withheld_names(source: Mapping[str, str], passed: Collection[str]) -> tuple[str, ...]:
    """The names, never the values, of what a child of this operator does not get and the operator may miss.

    Ganger's own variables and those that would redirect the child are not listed.
    """
    given = child_environment(source, passed=passed, extra={})
    return tuple(
        sorted(name for name in source if name not in given and name not in _SHELLS_OWN and not _is_dropped(name))
    )


def operator_environment(source: Mapping[str, str], *, extra: Mapping[str, str]) -> dict[str, str]:
    """For the operator's own programs: everything except what looks secret or would redirect them."""
    kept = {
        name: value
        for name, value in source.items()
        if not (_is_dropped(name) or is_secret_name(name) or is_secret_value(value))
    }
    return kept | dict(extra)


def is_ordinary(name: str, value: str) -> bool:
    return name in _ORDINARY_NAMES and not is_secret_value(value)


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
    """Whether a value is visibly secret: a URL with a password in it, a private key, a known kind of token."""
    if "PRIVATE KEY-----" in value or _TOKEN_VALUE.match(value):
        return True
    at = value.find("://")
    while at >= 0:
        user = _USER_INFO.match(value, at + 3)
        if user is not None and (":" in user.group() or value[max(0, at - 5) : at].lower().endswith(("http", "https"))):
            return True
        at = value.find("://", at + 3)
    return False


def tokens_in(data: bytes) -> Iterator[tuple[str, str]]:
    """The texts of a JSON document whose names say that they are secret; nothing if the text is not JSON."""
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        return
    open_: list[tuple[str, object]] = [("", found)]
    while open_:
        name, value = open_.pop()
        if isinstance(value, dict):
            open_ += [(str(key), inner) for key, inner in value.items()]
        elif isinstance(value, list):
            open_ += [(name, inner) for inner in value]
        elif isinstance(value, str) and is_secret_name(_CAMEL.sub("_", name)):
            yield name, value


def _is_dropped(name: str) -> bool:
    if name.startswith("GIT_"):
        return name not in _GIT_KEPT and not name.startswith(_GIT_KEPT_PREFIXES)
    return name in _DROPPED_NAMES or name.startswith(_DROPPED_PREFIXES)
