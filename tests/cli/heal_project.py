"""A project whose tasks share one context file, and a real agent program that plays worker and healer."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.cli.cli_project import Answer, ganger, kept, manifest, task

SENTENCE = "Every module begins with a licence header."
# A plain shell program: it is started some hundred times. Each start leaves a line; each prompt is kept.
AGENT = """#!/bin/sh
book={book}
prompt=$(cat)
echo "$GANGER_ROLE $GANGER_TASK_ID" >> "$book/starts"
say() {{ printf '%s\\n' "$2" "$1" "$3"; }}
if [ "$GANGER_ROLE" = healer ]; then
  round=$(grep -c '^healer' "$book/starts")
  printf '%s' "$prompt" > "$book/healer.$round.md"
  while [ -e "$book/hold" ]; do sleep 0.05; done
  cat "$book/answer.$round" 2>/dev/null || cat "$book/answer.last"
  exit 0
fi
printf '%s' "$prompt" > "$book/$GANGER_TASK_ID.$GANGER_ATTEMPT.md"
answer='{{"contract_version": "2.0", "task_id": "'$GANGER_TASK_ID'", "status": "DONE", "summary": "did it"}}'
if [ -e "$book/sick/$GANGER_TASK_ID" ] && ! printf '%s' "$prompt" | grep -qF "$(cat "$book/sick/$GANGER_TASK_ID")"; then
  answer='{{"contract_version": "2.0", "task_id": "'$GANGER_TASK_ID'", "status": "FAILED",
    "summary": "what to put at the top is not said", "failure_class": "prompt_gap"}}'
fi
if [ -e "$book/usage" ]; then echo "GANGER_USAGE $(cat "$book/usage")"; fi
if [ -e "$book/result/$GANGER_TASK_ID.$GANGER_ATTEMPT" ]; then
  answer=$(cat "$book/result/$GANGER_TASK_ID.$GANGER_ATTEMPT")
fi
say "$answer" '<<<TASK_RESULT_V2>>>' '<<<END_TASK_RESULT_V2>>>'
"""
CONFIG = """
[policy]
{policy}
[budget]
{budget}
[healing]
{healing}
[agents.both]
kind = "command"
argv = ["./agent.sh"]
[agents.other]
kind = "command"
argv = ["./agent.sh"]
[roles.worker]
agent = "both"
[roles.tester]
agent = "other"
{healer}
"""
HEALER = '[roles.healer]\nagent = "both"'


def append(text: str, **more: object) -> dict[str, Any]:
    return {"target": "shared_context", "operation": "append", "path": "docs/rules.md", "content": text, **more}


def decision(*patches: dict[str, Any], **more: object) -> str:
    body = {
        "contract_version": "2.0",
        "scope": "batch",
        "decision": "RETRY",
        "failure_class": "prompt_gap",
        "root_cause": "docs/rules.md does not say what stands at the top",
        "patches": list(patches),
        **more,
    }
    return f"<<<HEAL_DECISION_V2>>>\n{json.dumps(body)}\n<<<END_HEAL_DECISION_V2>>>\n"


RIGHT, WRONG = decision(append(SENTENCE)), decision(append("Use tabs."))


@dataclass
class HealProject:
    """`sick` tasks fail until their prompt holds the sentence; the n-th call of the healer gives the n-th answer."""

    root: Path
    count: int
    sick: Iterable[str] = ()
    answers: Sequence[str] = (RIGHT,)
    policy: str = ""
    budget: str = ""
    healing: str = ""
    healer: str = HEALER
    run_id: str = "r1"
    more: dict[str, dict[str, Any]] = field(default_factory=dict)

    def make(self) -> HealProject:
        for folder in (self.root / "docs", self.book / "sick", self.book / "result"):
            folder.mkdir(parents=True, exist_ok=True)
        (self.root / "agent.sh").write_text(AGENT.format(book=self.book))
        (self.root / "agent.sh").chmod(0o755)
        (self.root / "docs/rules.md").write_text("Write small functions.\n")
        (self.root / "prompt.md").write_text("Do it.\n")
        profiles = {"profiles": {"check": {"steps": [{"name": "test", "cmd": "true"}]}}}
        (self.root / "verify.json").write_text(json.dumps(profiles))
        for name in self.sick:
            (self.book / "sick" / name).write_text(SENTENCE)
        for number, text in enumerate(self.answers, 1):
            (self.book / f"answer.{number}").write_text(text)
        (self.book / "answer.last").write_text(self.answers[-1])
        return self.configure()

    def configure(self) -> HealProject:
        texts = {name: getattr(self, name) for name in ("policy", "budget", "healing", "healer")}
        (self.root / "ganger.toml").write_text(CONFIG.format(**texts))
        made = [task(n, context_refs=["docs/rules.md"], **self.more.get(n, {})) for n in names(1, self.count)]
        (self.root / "manifest.json").write_text(json.dumps(manifest(*made, run_id=self.run_id)))
        return self

    @property
    def book(self) -> Path:
        return self.root.with_name(f"{self.root.name}.book")

    def run(self, *words: str) -> Answer:
        return ganger("run", "--json", *words, cwd=self.root)

    # --- what happened ------------------------------------------------------------------------------------------------

    @property
    def folder(self) -> Path:
        return kept(self.root, self.run_id)

    def starts(self) -> Counter[str]:
        """Agent processes that really began, by role and task, from the file each of them appends to."""
        path = self.book / "starts"
        return Counter(path.read_text().splitlines() if path.exists() else ())

    def workers(self) -> int:
        return sum(count for line, count in self.starts().items() if not line.startswith("healer"))

    def healers(self) -> int:
        return self.starts()["healer healer"]

    def prompt(self, name: str, attempt: int) -> str:
        return (self.book / f"{name}.{attempt}.md").read_text()

    def state(self) -> dict[str, Any]:
        data: dict[str, Any] = json.loads((self.folder / "state.json").read_text())
        return data

    def files(self) -> dict[str, bytes]:
        """Everything that is the user's own."""
        own = (path for path in self.root.rglob("*") if path.is_file() and ".ganger" not in path.parts)
        return {str(path.relative_to(self.root)): path.read_bytes() for path in own}


def names(first: int, last: int) -> tuple[str, ...]:
    return tuple(f"t{n:02}" for n in range(first, last + 1))
