"""Why a write was refused: code, title, meaning, next step."""

from __future__ import annotations

_AGAIN = "Nothing was written. The task is tried again with the reason in its prompt."

WRITE_CODES: dict[str, tuple[str, str, str]] = {
    "PATH_ABSOLUTE": ("a write names an absolute path", "Paths are relative to the workspace.", _AGAIN),
    "PATH_ESCAPES": ("a write leaves the workspace", "No path may lead outside.", _AGAIN),
    "PATH_NOT_NORMAL": (
        "a path is not in normal form",
        "No empty parts, dots, backslashes, drive letters or ~.",
        _AGAIN,
    ),
    "PATH_BAD_CHARACTER": (
        "a path holds a forbidden character",
        "NUL, control and invisible characters are refused.",
        _AGAIN,
    ),
    "PATH_TOO_LONG": ("a path is too long for the file system", "Names are limited to 255 bytes.", _AGAIN),
    "PATH_SYMLINK": ("a path goes through a symbolic link", "Links are never followed when writing.", _AGAIN),
    "PATH_NOT_REGULAR": (
        "the target is not an ordinary file",
        "Directories, pipes, devices and sockets are never written.",
        _AGAIN,
    ),
    "PATH_PROTECTED": (
        "the path is protected",
        "Git internals, CI, agent configuration, secrets and Ganger's own files are not for agents to change.",
        "If this path may be written, list it under workspace.unprotected.",
    ),
    "SECRET_FOUND": (
        "a change adds what looks like a secret",
        "A key, token or password is in an added line; it may be leaked already, so the run stops for a person.",
        "Withdraw the secret where it was issued, look at the attempt's log, then retry the task.",
    ),
    "INTERFACE_BROKEN": (
        "a change removes something that other repositories build on",
        "Files of [repos.NAME] interface may grow; a changed or removed line, a moved or deleted file breaks others.",
        "If it is meant, set may_break_interface = true in the task's metadata and plan the work in the repositories "
        "that build on it; then ganger unlock and retry.",
    ),
    "GATE_CHANGED": (
        "a change touches the checks that judge it",
        "Tests of the base, test and linter configuration, and what the verify commands run may not be weakened.",
        "If the task may change them, set may_change_gates = true in its metadata or give it a role that may.",
    ),
    "FIXED_CHANGED": (
        "git's settings or installed packages were changed by an agent in the project's own folder",
        "Hooks, config and info of .git, installed packages and linked folders are not for tasks to change: "
        "they run code outside the sandbox later. They were restored; the agent's version is saved.",
        "Look at what was saved. If the task needs a package, install it yourself and retry, or use mode = "
        '"local-git".',
    ),
    "OUTSIDE_ROLE": (
        "a change is outside its role's paths",
        "Each role touches its own paths only; the built-in tester touches tests, the docser documents.",
        "Give the task another role, or widen the role's paths in the configuration.",
    ),
    "NOT_DECLARED": (
        "a change touches a file the task did not declare",
        "A task that names the files it creates and modifies may touch no others.",
        "Add the file to the task's files, or leave it as it was.",
    ),
    "LINK_OUTSIDE": (
        "a symbolic link leads to a forbidden place",
        "A link's target is relative, inside the workspace, and not a protected path.",
        _AGAIN,
    ),
    "SUBMODULE_CHANGE": (
        "a submodule was added, changed or removed",
        "A submodule or a nested repository brings content that no check has judged.",
        "If it is meant, list the path and .gitmodules under workspace.unprotected.",
    ),
    "BAD_MODE": ("a file has special permission bits", "setuid, setgid and sticky bits are refused.", _AGAIN),
    "CREATE_EXISTS": ("create, but the file exists", "create never overwrites.", _AGAIN),
    "REPLACE_MISSING": ("replace, but there is no such file", "replace needs an existing file.", _AGAIN),
    "HASH_MISMATCH": ("the file is not what the agent saw", "sha256_before differs from the file's content.", _AGAIN),
    "SHRINKAGE": (
        "the file would lose more than half",
        "Replacing a file over 100 bytes by one under half its size is usually an accident.",
        "If it is meant, set allow_shrinkage = true in the task's metadata.",
    ),
    "TOO_LARGE": ("a change is too large", "Files, change sets and numbers of files are bounded.", _AGAIN),
    "CONTENT_REF_MISSING": (
        "the staged content does not exist",
        "content_ref names a file inside the workspace.",
        _AGAIN,
    ),
    "CONTENT_REF_UNSAFE": ("the staged content may not be read", "content_ref obeys the same rules as path.", _AGAIN),
    "CONTENT_NOT_UTF8": ("the content is not UTF-8 text", "Writes carry text.", _AGAIN),
    "CASE_TWIN": ("two names differ only in case", "They would be one file on some systems.", "Choose distinct names."),
    "WRITE_FAILED": (
        "the system refused a write",
        "What had been written was restored.",
        "The message names the cause.",
    ),
    "EMBEDDED_REPOSITORY": (
        "a folder became its own git repository",
        "It would be merged as a submodule.",
        _AGAIN,
    ),
    "SPECIAL_FILE": ("a pipe, socket or device is in the workspace", "Only files and links can be merged.", _AGAIN),
    "UNREADABLE": ("a file in the workspace cannot be read", "What cannot be read cannot be checked.", _AGAIN),
    "WRITE_REFUSED": ("a change broke a safeguard", "Nothing was written.", "The message names the rule."),
}
