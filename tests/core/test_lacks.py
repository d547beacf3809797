"""What a command lacked, from how it ended; telling lines and hints."""

from __future__ import annotations

import time

import pytest

from ganger.core.logs.hints import absent_paths, sandbox_hint
from ganger.core.logs.telling_line import last_words
from ganger.core.verify.lacks import lack_of, never_began

LACKS = {
    "dash": (127, "sh: 1: jest: not found", "program", "jest"),
    "a script of dash": (127, "./run.sh: 3: jest: not found", "program", "jest"),
    "bash": (127, "bash: line 1: jest: command not found", "program", "jest"),
    "bash, plainly": (127, "/bin/bash: jest: command not found", "program", "jest"),
    "zsh": (127, "zsh:1: command not found: jest", "program", "jest"),
    "env": (127, "/usr/bin/env: ‘python’: No such file or directory", "program", "python"),
    "env of busybox": (127, "env: bash: No such file or directory", "program", "bash"),
    "timeout": (127, "timeout: failed to run command ‘gotest’: No such file or directory", "program", "gotest"),
    "pyenv": (127, "pyenv: python: command not found", "program", "python"),
    "a path in bash": (127, "bash: ./gone.sh: No such file or directory", "program", "./gone.sh"),
    "an interpreter": (126, "bash: ./x: /opt/py: bad interpreter: No such file or directory", "program", "/opt/py"),
    "not executable": (126, "sh: 1: ./x: Permission denied", "program", "./x"),
    "another machine": (126, "bash: ./x: cannot execute binary file: Exec format error", "program", "./x"),
    "a library": (
        127,
        "./x: error while loading shared libraries: libfoo.so.1: cannot open shared object file: No such file",
        "library",
        "libfoo.so.1",
    ),
    "make": (2, "make: jest: No such file or directory\nmake: *** [Makefile:2: test] Error 127", "program", "jest"),
    "a shell of make": (2, "/bin/sh: 1: jest: not found\nmake: *** [Makefile:2: t] Error 127", "program", "jest"),
    "npm": (127, "> p@1 test\n> jest\n\nsh: 1: jest: not found", "program", "jest"),
    "npx": (
        1,
        'npm error npx canceled due to missing packages and no YES option: ["jest@30.2.0"]',
        "program",
        "jest",
    ),
    "yarn": (1, 'error Command "jest" not found.', "program", "jest"),
    "uv": (2, "error: Failed to spawn: `pytest`\n  Caused by: No such file or directory", "program", "pytest"),
    "poetry": (1, "Command not found: pytest", "program", "pytest"),
    "cargo": (101, "error: no such command: `nextest`", "program", "nextest"),
    "go": (1, 'exec: "gcc": executable file not found in $PATH', "program", "gcc"),
    "a runner of Python": (1, "/usr/bin/python3: No module named pytest", "module", "pytest"),
    "a runner's own script": (1, "Traceback …\nModuleNotFoundError: No module named 'pytest'", "module", "pytest"),
    "an interpreter without its library": (1, "ModuleNotFoundError: No module named 'encodings'", "program", "python"),
}


@pytest.mark.parametrize("name", LACKS)
def test_what_was_missing_is_named_whoever_says_so(name: str) -> None:
    """G14: shells, make, package runners, loaders and interpreters each have their own words."""
    code, output, kind, missing = LACKS[name]
    found = lack_of(code, output)
    assert found is not None and (found.kind, found.name) == (kind, missing)


RAN = {
    "a red test that speaks of it": (1, "E   FileNotFoundError: jest: not found\n1 failed"),
    "a warning before a red test": (1, "sh: 1: tput: not found\nFAILED test_a.py::test_b"),
    "the project's own module": (1, "/usr/bin/python3: No module named app"),
    "a module under test": (1, "ModuleNotFoundError: No module named 'shop'"),
    "a data file": (1, "FileNotFoundError: [Errno 2] No such file or directory: 'data'"),
    "success": (0, "sh: 1: jest: not found"),
}


@pytest.mark.parametrize("name", RAN)
def test_a_command_that_ran_lacked_nothing(name: str) -> None:
    """G14: a red check stays its worker's, whatever it prints."""
    assert lack_of(*RAN[name]) is None


def test_only_ganger_within_the_walls_says_that_nothing_began() -> None:
    """G14: alone in the output, with its own exit code."""
    line = "ganger: './check' cannot be started in the sandbox: No such file or directory"
    found = never_began(127, f"{line}\n")
    assert found is not None and (found.kind, found.name, found.there) == ("program", "./check", False)
    assert never_began(126, line.replace("No such file or directory", "Permission denied")) is not None
    assert never_began(127, f"hello\n{line}\n") is None and never_began(1, line) is None


@pytest.mark.parametrize("piece", ["a: ", ": ", "sh: 1: ", "make: ", "x", "/", "‘", "No module named "])
def test_no_output_makes_it_slow(piece: str) -> None:
    """T07: an agent chooses what its checks print."""
    began = time.monotonic()
    for code in (1, 2, 126, 127):
        lack_of(code, (piece * 400 + "\n") * 100)
        last_words((piece * 400 + "\n") * 100)
    absent_paths(piece * 2000, piece * 20_000)
    assert time.monotonic() - began < 5


WORDS = {
    "a traceback": (
        "starting\nTraceback (most recent call last):\n  File \"/a.py\", line 1, in <module>\nKeyError: 'MODEL'\n",
        "KeyError: 'MODEL'",
    ),
    "a node stack": (
        "node:internal/modules/cjs/loader:1143\n  throw err;\n\nError: Cannot find module '/x/y.js'\n    at load\n"
        "    at main {\n  code: 'MODULE_NOT_FOUND',\n  requireStack: []\n}\n\nNode.js v20.1.0\n",
        "Error: Cannot find module '/x/y.js'",
    ),
    "a bar after trouble": ("fatal: not a repository\n\r 10% [##   ]\r 100% [#####]\n\n", "fatal: not a repository"),
    "only a bar and a word": ("Working on it\n[=====>    ] 42%\n⠋ \n", "Working on it"),
    "colours": ("\x1b[31mError: no key\x1b[0m\n\n", "Error: no key"),
    "events": ('{"type":"error","error":{"message":"model not found: x"}}\n', "model not found: x"),
    "old trouble and a new last line": ("Error: early\n" + "fine\n" * 80, "fine"),
    "nothing": ("\n \n-----\n", ""),
}


@pytest.mark.parametrize("name", WORDS)
def test_the_last_words_are_what_a_person_would_look_for(name: str) -> None:
    """H04 G10: never a blank, a bar or a frame."""
    text, expected = WORDS[name]
    assert last_words(text) == expected


def test_paths_that_were_not_found_are_named_and_others_are_not() -> None:
    """G14: also where a module would lie beside the file that asks for it."""
    line = "python: can't open file '/home/ann/agent.py': [Errno 2] No such file or directory"
    assert absent_paths(line) == ("/home/ann/agent.py",)
    assert absent_paths("wrote /home/ann/out.txt") == ()
    trace = '  File "/home/ann/agent.py", line 2, in <module>\n'
    assert "/home/ann/tools.py" in absent_paths("ModuleNotFoundError: No module named 'tools'", trace)
    stack = "Require stack:\n- /home/ann/agent.js\n"
    assert "/home/ann/lib/x.js" in absent_paths("Error: Cannot find module './lib/x'", stack)


@pytest.mark.parametrize(
    ("line", "network", "setting"),
    [
        ("socket.gaierror: [Errno -3] Temporary failure in name resolution", "none", "sandbox.network"),
        ("PermissionError: [Errno 13] Permission denied", "none", "sandbox.network"),
        ("Error: connect ECONNREFUSED 127.0.0.1:80", "loopback", "sandbox.network"),
        ("Error: connect ECONNREFUSED 127.0.0.1:80", "allow", ""),
        ("OSError: [Errno 28] No space left on device", "allow", "sandbox.file_mb"),
        ("unshare: Operation not permitted", "allow", "sandbox.md"),
        ("AssertionError: 3 != 4", "none", ""),
    ],
)
def test_a_line_hints_at_the_setting_behind_it(line: str, network: str, setting: str) -> None:
    """G14: network, limits, powers."""
    hint = sandbox_hint(line, network=network, walled=True)
    assert (setting in hint) if setting else hint == ""
    assert sandbox_hint(line, network=network, walled=False) == ""
