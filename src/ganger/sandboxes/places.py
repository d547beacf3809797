"""Places that are the same on every machine: the system's own folders, where homes keep credentials; what lies within what."""

from __future__ import annotations

import os

SYSTEM = (
    *("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt", "/nix", "/gnu", "/snap"),
    *("/sys", "/run/current-system"),
)
CREDENTIALS = (
    *(".ssh", ".aws", ".azure", ".gnupg", ".kube", ".docker", ".password-store", ".vault-token", ".netrc", ".pgpass"),
    *(".git-credentials", ".config/git/credentials", ".config/gh", ".config/glab-cli", ".config/hub", ".config/gcloud"),
    *(".config/op", ".config/doctl", ".config/rclone", ".config/ganger", ".config/containers", ".local/share/keyrings"),
    *(
        ".npmrc",
        ".yarnrc",
        ".yarnrc.yml",
        ".pypirc",
        ".gem/credentials",
        ".m2/settings.xml",
        ".gradle/gradle.properties",
    ),
    *(".cargo/credentials", ".cargo/credentials.toml", ".terraform.d", ".terraformrc", ".my.cnf", ".s3cfg", ".boto"),
    *(".claude", ".claude.json", ".codex", ".gemini", ".cursor", ".config/opencode", ".local/share/opencode"),
    *(".mozilla", ".thunderbird", ".config/google-chrome", ".config/chromium", ".bash_history", ".zsh_history"),
    *(".python_history", ".psql_history", ".mysql_history", ".node_repl_history", ".lesshst", ".viminfo"),
)


def is_within(path: str, folder: str) -> bool:
    """By path components: `/a/bc` is not within `/a/b`."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def depth(path: str) -> int:
    return 0 if path == "/" else path.count("/")


def standing_system() -> tuple[str, ...]:
    return tuple(path for path in SYSTEM if os.path.lexists(path))
