"""Which paths no agent may write, however it spells them: patterns, one matcher, and the operator's exceptions."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass, field
from functools import lru_cache

from ganger.core.path_patterns import glob_match, path_match
from ganger.errors import Fault, InputError

GIT_FILES = (
    ".git",
    "git~?",
    ".gitmodules",
    "gitmod~?",
    "gi7eba~?",
    ".gitconfig",
    # Attributes select filters and merge drivers, and `-diff` hides a change from its reviewer.
    ".gitattributes",
    ".lfsconfig",
    ".husky",
    ".pre-commit-config.yaml",
)
SECRET_FILES = (
    ".env",
    ".env.*",
    ".envrc",
    "*.pem",
    "*.key",
    "secrets/",
    ".ssh",
    ".netrc",
    "id_rsa",
    "id_ed25519",
)
# Templates that list variables: they may be written, and their content is scanned for secrets.
_ENDINGS = ("example", "sample", "template", "dist")
TEMPLATES_OF_SECRETS = tuple(f".env{stage}.{ending}" for stage in ("", ".*") for ending in _ENDINGS)
CI_FILES = (
    "**/.github/workflows",
    "**/.github/actions",
    ".gitlab-ci.yml",
    ".forgejo",
    ".gitea",
    ".circleci",
    ".woodpecker",
    ".woodpecker.yml",
    ".buildkite",
    ".drone.yml",
    ".travis.yml",
    "Jenkinsfile",
    "azure-pipelines.yml",
    "bitbucket-pipelines.yml",
)
AGENT_FILES = (
    ".claude",
    ".codex",
    ".cursor",
    ".gemini",
    ".opencode",
    ".qwen",
    ".copilot",
    ".agents",
    "**/.github/hooks",
    "**/.github/agents",
    "**/.github/instructions",
    "QWEN.md",
    ".windsurf",
    ".mcp.json",
    "opencode.json",
    "opencode.jsonc",
    "AGENTS.md",
    "AGENTS.override.md",
    "CLAUDE.md",
    "CLAUDE.local.md",
    "GEMINI.md",
    ".cursorrules",
    ".windsurfrules",
    ".clinerules",
    "**/.github/copilot-instructions.md",
)
SHELL_AND_EDITOR_FILES = (
    ".bashrc",
    ".bash_profile",
    ".zshrc",
    ".zshenv",
    ".zprofile",
    ".profile",
    ".ripgreprc",
    ".exrc",
    ".vimrc",
    ".gdbinit",
    ".vscode",
    ".idea",
    ".devcontainer",
)
OWN_FILES = ("ganger.toml", ".ganger")

DEFAULT_PROTECTED: tuple[str, ...] = (
    *GIT_FILES,
    *SECRET_FILES,
    *CI_FILES,
    *AGENT_FILES,
    *SHELL_AND_EDITOR_FILES,
    *OWN_FILES,
)

_UNSEEN_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
_UNSEEN_LETTERS = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u3164\uffa0")


def is_unseen(char: str) -> bool:
    """Control, format, bidi, zero-width, filler and selector characters, and lone surrogates."""
    if " " <= char <= "~":
        return False
    if unicodedata.category(char) in _UNSEEN_CATEGORIES or char in _UNSEEN_LETTERS:
        return True
    return "\ufe00" <= char <= "\ufe0f" or "\U000e0100" <= char <= "\U000e01ef"


@lru_cache(maxsize=4096)
def folded(name: str) -> str:
    """The form in which names are compared: equal wherever some file system treats the names as equal."""
    seen = name if name.isascii() and name.isprintable() else "".join(c for c in name if not is_unseen(c))
    plain = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", seen).casefold())
    stream = plain.find(":")
    return (plain[:stream] if stream > 0 else plain).rstrip(". ")


def folded_parts(path: str) -> tuple[str, ...]:
    """Folded components; split again, because a compatibility form can turn into a slash."""
    return tuple("/".join(folded(part) for part in path.split("/")).split("/"))


def _checked(pattern: str) -> str:
    """The pattern without its closing slash, or a refusal: an unsupported sign would silently protect nothing."""
    bare = pattern.rstrip("/")
    segments = bare.removeprefix("/").split("/")
    if not bare or any(part in ("", ".", "..") for part in segments):
        message = f"{pattern!r} names no path inside the workspace; write it like 'docs/**' or '*.lock'"
    elif pattern.startswith("!"):
        message = f"{pattern!r} begins with '!'; name what may be written as an exception instead"
    elif any(sign in pattern for sign in "[]\\"):
        message = f"{pattern!r} uses a bracket or backslash; only '*', '**' and '?' (one character) have a meaning"
    elif any("**" in part and part != "**" for part in segments):
        message = f"{pattern!r} has '**' inside a name; it must stand alone between slashes"
    else:
        return bare
    raise InputError("protected paths", [Fault(path=pattern, code="BAD_PATTERN", message=message)])


@dataclass(frozen=True)
class Protection:
    """Patterns without a slash match any component, with a slash from the root; both cover everything below.

    Exceptions are matched exactly, always from the root, and open only what they match in full (`dir/**` opens a
    folder).
    """

    patterns: tuple[str, ...] = DEFAULT_PROTECTED
    exceptions: tuple[str, ...] = ()
    _names: dict[str, str] = field(init=False, repr=False, compare=False, default_factory=dict)
    _globs: dict[str, str] = field(init=False, repr=False, compare=False, default_factory=dict)
    _rooted: dict[tuple[str, ...], str] = field(init=False, repr=False, compare=False, default_factory=dict)
    _open: tuple[tuple[str, ...], ...] = field(init=False, repr=False, compare=False, default=())

    def __post_init__(self) -> None:
        for pattern in self.patterns:
            self._sort_in(pattern, _checked(pattern))
        opened = tuple(tuple(_checked(one).removeprefix("/").split("/")) for one in self.exceptions)
        object.__setattr__(self, "_open", opened)

    def _sort_in(self, pattern: str, bare: str) -> None:
        segments = tuple(part if part == "**" else folded(part) for part in bare.removeprefix("/").split("/"))
        if "/" in bare:
            self._rooted.setdefault(segments, pattern)
        elif "*" in bare or "?" in bare:
            self._globs.setdefault(segments[0], pattern)
        else:
            self._names.setdefault(segments[0], pattern)

    def protected_by(self, path: str) -> str | None:
        """The pattern that forbids this path, or None when it may be written."""
        return None if self.opens(path) else self._pattern_for(folded_parts(path))

    def opens(self, path: str) -> bool:
        """Whether the operator named this path as an exception."""
        spelt = tuple(path.split("/"))
        return any(path_match(one, spelt, below=False) for one in self._open)

    def _pattern_for(self, parts: tuple[str, ...]) -> str | None:
        for number, part in enumerate(parts, 1):
            if part in self._names:
                return self._names[part]
            harmless = number == len(parts) and any(glob_match(one, part) for one in TEMPLATES_OF_SECRETS)
            for glob, pattern in self._globs.items():
                if glob_match(glob, part) and not (harmless and glob == ".env.*"):
                    return pattern
        for segments, pattern in self._rooted.items():
            if path_match(segments, parts, below=True):
                return pattern
        return None
