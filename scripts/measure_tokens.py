"""The estimator of tokens beside a real vocabulary: `measure_tokens.py RANKS FILE…`, one line per kind of file.

RANKS is a vocabulary in the form tiktoken keeps (`o200k_base.tiktoken`: a token in base64 and its rank per line).
Neither it nor the package tiktoken is needed for anything else here.
"""

from __future__ import annotations

import base64
import importlib
import sys
from pathlib import Path

from ganger.core.prompts.tokens import estimate

# How that vocabulary's texts are taken apart first; published with it.
_WORDS = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"\p{N}{1,3}",
    r" ?[^\s\p{L}\p{N}]+[\r\n/]*",
    r"\s*[\r\n]+",
    r"\s+(?!\S)",
    r"\s+",
)
_LONGEST = 60_000
_SHORTEST = 200


def main(ranks: str, files: list[str]) -> None:
    pairs = (line.split() for line in Path(ranks).read_bytes().splitlines() if line)
    known = {base64.b64decode(token): int(rank) for token, rank in pairs}
    counter = importlib.import_module("tiktoken").Encoding(
        "given", pat_str="|".join(_WORDS), mergeable_ranks=known, special_tokens={}
    )
    found: dict[str, list[tuple[int, int]]] = {}
    for name in files:
        text = Path(name).read_text(encoding="utf-8", errors="ignore")[:_LONGEST]
        if len(text) >= _SHORTEST:
            row = (estimate(text), len(counter.encode_ordinary(text)))
            found.setdefault(Path(name).suffix or "none", []).append(row)
    for kind, rows in sorted(found.items()):
        ratio = sum(row[0] for row in rows) / sum(row[1] for row in rows)
        low = sorted(guess / real for guess, real in rows)[len(rows) // 20]
        print(f"| `{kind}` | {len(rows)} | {ratio:.2f} | {low:.2f} |")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
