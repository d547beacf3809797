"""The demo's temporary repository: a small real program with real tests, a manifest of eight tasks, scripted agents."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path

from ganger.core.vocabulary import TaskStatus

EXPECTED = {
    "account": TaskStatus.DONE,
    "readme": TaskStatus.DONE,
    "rounding": TaskStatus.ESCALATED,
    "publish": TaskStatus.BLOCKED,
    "statement": TaskStatus.DONE,
    "csv-export": TaskStatus.DONE,
    "transfer": TaskStatus.DONE,
    "command-line": TaskStatus.DONE,
}

_MONEY = '''"""Amounts of money as whole cents."""


def to_cents(text):
    """'12.34' -> 1234"""
    whole, _, part = text.partition(".")
    return int(whole) * 100 + int((part + "00")[:2])


def to_text(cents):
    """1234 -> '12.34'"""
    return f"{cents // 100}.{cents % 100:02d}"
'''
_TEST_MONEY = """import unittest

from ledger.money import to_cents, to_text


class MoneyTest(unittest.TestCase):
    def test_reads_amounts(self):
        self.assertEqual(to_cents("12.34"), 1234)
        self.assertEqual(to_cents("5"), 500)

    def test_writes_amounts(self):
        self.assertEqual(to_text(1234), "12.34")


if __name__ == "__main__":
    unittest.main()
"""
_BROKEN_MONEY = _MONEY.replace("int(whole) * 100", "round(float(whole)) * 10")
_ACCOUNT = '''"""An account: a name and its bookings."""

from ledger.money import to_cents


class Account:
    def __init__(self, name):
        self.name = name
        self.bookings = []

    def book(self, text):
        self.bookings.append(to_cents(text))

    @property
    def balance(self):
        return sum(self.bookings)
'''
_TEST_ACCOUNT = """import unittest

from ledger.account import Account


class AccountTest(unittest.TestCase):
    def test_balance_is_the_sum_of_bookings(self):
        account = Account("petty cash")
        account.book("10")
        account.book("2.50")
        self.assertEqual(account.balance, 1250)
"""
_STATEMENT = '''"""A statement: one line per account."""

from ledger.money import to_text


def statement(accounts):
    return "\\n".join(f"{a.name}: {to_text(a.balance)}" for a in accounts)
'''
_CSV = '''"""Accounts as comma-separated lines."""

from ledger.money import to_text


def to_csv(accounts):
    return "".join(f"{a.name},{to_text(a.balance)}\\n" for a in accounts)
'''
_TRANSFER = '''"""Moving money between accounts."""

from ledger.money import to_text


def transfer(source, target, cents):
    if cents <= 0:
        raise ValueError("a transfer moves a positive amount")
    source.bookings.append(-cents)
    target.book(to_text(cents))
'''
_MAIN = '''"""python -m ledger NAME AMOUNT…"""

import sys

from ledger.account import Account
from ledger.statement import statement


def main(words):
    account = Account(words[0])
    for amount in words[1:]:
        account.book(amount)
    print(statement([account]))


if __name__ == "__main__":
    main(sys.argv[1:])
'''


def _task(name: str, depends_on: list[str], profile: str = "check") -> dict[str, object]:
    return {
        "id": name,
        "prompt_ref": f"prompts/{name}.md",
        "context_refs": ["prompts/_house-rules.md"],
        "depends_on": depends_on,
        "timeout_sec": 30,
        "verify_profile": profile,
    }


_MANIFEST = {
    "manifest_version": "2.0",
    "run_id": "demo",
    "tasks": [
        _task("account", []),
        _task("readme", []),
        _task("rounding", []),
        _task("publish", []),
        _task("statement", ["account"]),
        _task("csv-export", ["account"]),
        # It reads nothing that the healer patches: a changed prompt would start a new session.
        _task("transfer", ["account"]) | {"context_refs": []},
        _task("command-line", ["statement"], "check_and_smoke"),
    ],
}
_PROMPTS = {
    "_house-rules": "Plain Python, standard library only. Tests live in tests/ and use unittest.",
    "account": "Add ledger/account.py: an account that books amounts and knows its balance. Add a test.",
    "readme": "Write a README.md of three lines.",
    "rounding": "Make to_cents in ledger/money.py round half cents correctly.",
    "publish": "Publish the package.",
    "statement": "Add ledger/statement.py: one line per account.",
    "csv-export": "Add ledger/csv_export.py: accounts as CSV.",
    "transfer": "Add ledger/transfer.py: move money between accounts.",
    "command-line": "Add ledger/__main__.py so that `python -m ledger cash 10 2.50` prints a statement.",
}


def _create(path: str, content: str, op: str = "create") -> dict[str, str]:
    return {"path": path, "op": op, "encoding": "utf8", "content": content}


_RULE = "Amounts are shown with to_text."
_HEALS = [
    [{"text": "reading the failed test"}, {"delay": 0.5}, {"heal": {"decision": "ESCALATE", "failure_class": "test_error", "root_cause": "Which way half cents round is a decision, not a prompt."}}],
    [{"text": "two tasks miss the same rule"}, {"delay": 0.5}, {"heal": {"root_cause": "The house rules never say how amounts are shown.", "learned_rule": "Say in the house rules how amounts are shown.", "patches": [{"target": "shared_context", "operation": "append", "path": "prompts/_house-rules.md", "content": _RULE}]}}],
]  # fmt: skip


def _works(seconds: float, said: list[str], summary: str, *writes: dict[str, str]) -> list[dict[str, object]]:
    steps: list[dict[str, object]] = []
    for line in said:
        steps += [{"text": line}, {"delay": seconds / len(said)}]
    return [*steps, {"result": {"status": "DONE", "summary": summary, "writes": list(writes)}}]


_BROKEN_TRY = _works(0.8, ["rewriting to_cents", "looks right to me"], "Rounding is correct now.", _create("ledger/money.py", _BROKEN_MONEY, "replace"))  # fmt: skip
_GARBAGE_TRY = [
    {"text": "adding the export"},
    {"delay": 0.6},
    {"garbage": "All done! I created the CSV export, it works great."},
]
# The run waits for the account's limit; then its session continues where it was.
_LIMITED_TRY = [
    {"sign": {"is": "Session", "id": "session-of-transfer"}},
    {"text": "reading ledger/account.py"},
    {"delay": 0.3},
    {"sign": {"is": "Limited", "text": "too many requests", "reset_in": 1.5}},
    {"exit": 1},
]
# It becomes silent; the run notices that and starts it again.
_SILENT_TRY = [{"text": "thinking about arguments"}, {"delay": 600}]
_SCRIPT = {
    "tasks": {
        "account": [_works(0.9, ["reading ledger/money.py", "writing account and test"], "Added Account with a test.", _create("ledger/account.py", _ACCOUNT), _create("tests/test_account.py", _TEST_ACCOUNT))],
        "readme": [_works(0.5, ["writing README.md"], "Wrote a short README.", _create("README.md", "# ledger\n\nA very small ledger.\nRun the tests with `python -m unittest`.\n"))],
        "rounding": [_BROKEN_TRY],
        "publish": [[{"text": "looking for credentials"}, {"delay": 0.4}, {"result": {"status": "BLOCKED", "summary": "Publishing needs a token that nobody gave me."}}]],
        "healer": _HEALS,
        "statement": [[{"needs": _RULE}, *_works(0.7, ["writing statement"], "Added statement().", _create("ledger/statement.py", _STATEMENT))]],
        "csv-export": [[{"needs": _RULE}, *_GARBAGE_TRY], [{"needs": _RULE}, *_GARBAGE_TRY], _works(0.6, ["answering again, in the wanted form"], "Added to_csv().", _create("ledger/csv_export.py", _CSV))],
        "transfer": [_LIMITED_TRY, _works(0.8, ["writing transfer"], "Added transfer().", _create("ledger/transfer.py", _TRANSFER))],
        "command-line": [_SILENT_TRY, _works(0.6, ["writing __main__"], "Added the command line.", _create("ledger/__main__.py", _MAIN))],
    }
}  # fmt: skip

_CONFIG = """manifest = "manifest.json"

[policy]
heal_schedule = "batch"
batch_size = 4
concurrency = 3
grace_sec = 1

[health]
stall_sec = 3

[agents.scripted]
kind = "scripted"
script = "agent-script.json"

[roles.worker]
agent = "scripted"

[roles.healer]
agent = "scripted"

[workspace]
mode = "local-git"

[verify]
profiles_file = "verify.json"

[verify.tiers]
"check/import" = "syntax"
"check_and_smoke/import" = "syntax"
"check_and_smoke/use it" = "smoke"
"""


def _profiles() -> dict[str, object]:
    python = f"{shlex.quote(sys.executable)} -B"
    imports = {"name": "import", "cmd": f'{python} -c "import ledger.money"', "timeout_sec": 30}
    tests = {"name": "test", "cmd": f"{python} -m unittest discover -s tests -t .", "timeout_sec": 60}
    smoke = {"name": "use it", "cmd": f"{python} -m ledger cash 10 2.50", "timeout_sec": 30}
    return {"profiles": {"check": {"steps": [imports, tests]}, "check_and_smoke": {"steps": [imports, tests, smoke]}}}


def build_demo(root: Path) -> None:
    """Writes the repository and commits it, so that every later change can be seen."""
    files = {
        "ledger/__init__.py": "",
        "ledger/money.py": _MONEY,
        "tests/__init__.py": "",
        "tests/test_money.py": _TEST_MONEY,
        "ganger.toml": _CONFIG,
        "verify.json": json.dumps(_profiles(), indent=2) + "\n",
        "manifest.json": json.dumps(_MANIFEST, indent=2) + "\n",
        "agent-script.json": json.dumps(_SCRIPT, indent=2) + "\n",
    }
    files |= {f"prompts/{name}.md": f"{text}\n" for name, text in _PROMPTS.items()}
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    identity = ["-c", "user.name=Ganger demo", "-c", "user.email=demo@localhost", "-c", "commit.gpgsign=false"]
    for words in (["init", "-q", "-b", "main"], ["add", "-A"], ["commit", "-qm", "A small ledger"]):
        subprocess.run(["git", *identity, *words], cwd=root, check=True, capture_output=True)


def changed_files(root: Path) -> list[str]:
    """The changes in the user's own checkout."""
    return _git(root, "status", "--porcelain", "-uall")


def merged(root: Path) -> list[str]:
    """The run's commits, oldest first: an abbreviated id and the subject."""
    store = f"--git-dir={root / '.ganger' / 'repo.git'}"
    return _git(root, store, "log", "--reverse", "--format=%h %s", "ganger/demo", "^refs/ganger/demo/base")


def merged_files(root: Path) -> list[str]:
    store = f"--git-dir={root / '.ganger' / 'repo.git'}"
    return _git(root, store, "diff", "--name-only", "refs/ganger/demo/base", "ganger/demo")


def _git(root: Path, *words: str) -> list[str]:
    return subprocess.run(["git", *words], cwd=root, check=True, capture_output=True, text=True).stdout.splitlines()
