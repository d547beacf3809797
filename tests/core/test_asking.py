"""Whether the end of an output waits for a person: questions as programs put them, and what only looks like one."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, strategies as st

from ganger.core.agent_output.waiting_prompt import asking, last_line, shown

# Unfinished, as a program leaves them that waits for a key.
OPEN = [
    "Do you want to continue? [Y/n] ",
    "Proceed ([y]/n)? ",
    "Are you sure you want to continue connecting (yes/no/[fingerprint])? ",
    "Overwrite existing file? (y/N): ",
    "rm: remove regular file 'a.txt'? ",
    "Apply this hunk to worktree [y,n,q,a,d,e,?]? ",
    "Need to install the following packages: create-vite@5. Ok to proceed? (y) ",
    "[sudo] password for worker: ",
    "Password: ",
    "Enter passphrase for key '/home/w/.ssh/id_ed25519': ",
    "Username for 'https://git.example': ",
    "Password for 'https://w@git.example': ",
    "Verification code: ",
    "Press ENTER to continue",
    "Press any key to continue . . .",
    "Hit return to go on",
    "Press q to quit, any other key to go on",
    "--More--(12%)",
    "-- More --",
    "(END)",
    "? What is your project named? › my-app",
    "? Select a framework: › - Use arrow-keys. Return to submit.",
    "? Which colour (Use arrow keys)",
    "? Are you sure?",
    "package name: (my-app) version: ",
    "Enter a name for the branch: ",
    "Please choose an option [1-4]: ",
    "Your name? ",
    "Type 'yes' to confirm",
    "Please type 'yes', 'no' or the fingerprint: ",
    "(Pdb) ",
    "ipdb> ",
    ">>> ",
    "mysql> ",
    "Login: ",
    "Terminate batch job (Y/N)? ",
    "What would you like to do? ",
    "\x1b[1m\x1b[36m?\x1b[0m \x1b[1mDelete it?\x1b[0m \x1b[2m(y/N)\x1b[0m ",
    "\x1b[33mAllow this command?\x1b[0m [y/n/a] \x1b[?25h",
    "50% done\rContinue? ",
]
# Finished lines that are still a question to somebody.
FINISHED = [
    "Do you want to proceed?",
    "I have two options. Should I use the first one?",
    "Would you like me to add tests as well?",
    "Which database should I use?",
    "Could you clarify what the endpoint returns?",
    "Is this correct?",
    "Shall I go on?",
    "Waiting for your approval",
    "Continue? [y/N]",
    "Press Enter to continue...",
    "Password:",
]
NOT = [
    "",
    "\n\n",
    "Done.\n",
    "Compiling 3 of 12:",
    "Downloading packages: ",
    "Running tests: ",
    "Fetching https://registry.example/?",
    "GET http://localhost:8000/items?",
    "Progress: 45%",
    "test_what_happens_when ... ",
    "collected 12 items\n\ntests/a.py ....",
    "Traceback (most recent call last):",
    "Traceback (most recent call last):\n",
    "def main():\n",
    "if it works:",
    "error:\n",
    "ERROR: is the server running?",
    "2026-11-15 10:00:00 INFO waiting for the lock: ",
    "[warn] did you mean colour? ",
    "Overwrite? [y/N] y\n",
    "Do you want to continue? [Y/n] yes\n",
    "Continue? yes\nGoing on.\n",
    "Password: ********\nWelcome.\n",
    '{"type": "text", "text": "Do you want to continue?"}\n',
    '{"message": "Continue? [y/N]"}',
    "- Should we support Windows?\n",
    "# Should I use tabs?\n",
    "// Do you want to know more?\n",
    "> Do you want to proceed?\n",
    "| What should you do? | Nothing |\n",
    'print("Continue?")\n',
    "assert asks('Proceed?')\n",
    "1. Install it\n2. Run it\n",
    "Steps:\n1. Install it\n2. Run it\n",
    "The result is in a.txt:\n",
    "What is new?\nA lot.\n",
    "Why does this work?\n",
    "How it works\n",
    "see the FAQ (what/why)\n",
    "either/or\n",
    "x" * 400 + "? ",
    "the password: it is in the vault\n",
    "all tests pass (12/12)\n",
    "::::",
    "???",
]


@pytest.mark.parametrize("text", [*OPEN, *(f"{line}\n" for line in FINISHED), *FINISHED])
def test_a_question_to_a_person_is_seen(text: str) -> None:
    """T25 H02: also after other lines, and with colours in it."""
    assert asking(text.encode())
    assert asking(b"working\nstill working\n" + text.encode())


@pytest.mark.parametrize("text", NOT)
def test_what_only_looks_like_a_question_is_none(text: str) -> None:
    """T25 H02: work in progress, code, logs, lists, and questions that have been answered."""
    assert asking(text.encode()) == ""


MENUS = [
    ("Do you want to proceed?\n❯ 1. Yes\n  2. No, and tell me why\n", "Do you want to proceed?"),
    ("? Pick a licence\n❯ MIT\n› Apache-2.0\n", "? Pick a licence"),
    ("How shall it be merged?\n  a) rebase\n  b) squash\n", "How shall it be merged?"),
    ("Select what to keep?\n◉ tests\n◯ docs\n", "Select what to keep?"),
]


@pytest.mark.parametrize(("text", "question"), MENUS)
def test_a_question_with_its_answers_below_is_told_by_its_own_line(text: str, question: str) -> None:
    """T25: the answers say nothing."""
    assert asking(b"done so far\n" + text.encode()) == question


def test_terminal_codes_are_not_shown() -> None:
    """T25: what is told is what a person would have read."""
    tail = b"a\r\n\x1b[2K\x1b]0;title\x07\x1b[32mContinue?\x1b[0m [y/N] "
    assert shown(tail) == "a\nContinue? [y/N] "
    assert asking(tail) == last_line(tail) == "Continue? [y/N]"


@given(st.binary(max_size=400))
def test_no_output_makes_it_raise(tail: bytes) -> None:
    """T25: an agent may print anything."""
    assert asking(tail) in shown(tail)
    assert last_line(tail) in shown(tail)


def test_a_long_and_evil_line_takes_no_time() -> None:
    """T25: what is longer than a question is passed over, and no pattern is slow on what is not."""
    began = time.process_time()
    for piece in ("press ", "y/", "? ", "[y", "what you ", "(y/n", "password for ", "> "):
        for size in (50, 8000):
            asking((piece * size).encode()[:8192])
            asking((piece * size).encode()[:299])
    assert time.process_time() - began < 1
