"""Where a raw log holds a value is noted without it, and covered by that note alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from ganger.core.masking import Masker
from ganger.engine import log_masks
from ganger.engine.log_masks import beside, covered, note_masks, read_masks

VALUE = "q7X2m4V6b3N5"


@pytest.mark.parametrize("chunk", [1, 5, 16, 1 << 20])
def test_a_value_is_covered_by_its_note(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chunk: int) -> None:
    """D19: also where it lies across two pieces of the log, at its begin and at its end."""
    monkeypatch.setattr(log_masks, "_CHUNK", chunk)
    log = tmp_path / "a.log"
    log.write_bytes(f"{VALUE} one\n\xff two {VALUE}{VALUE}\n{VALUE}".encode())
    note_masks(log, Masker({"A": VALUE}))
    assert VALUE not in beside(log).read_text() and beside(log).stat().st_mode & 0o777 == 0o600
    data, noted = log.read_bytes(), read_masks(log)
    assert covered(data, 0, noted).decode() == "[masked] one\n\xff two [masked][masked]\n[masked]"
    pieces = [covered(data[at : at + 9], at, noted) for at in range(0, len(data), 9)]
    assert VALUE.encode() not in b"".join(pieces) and b" one\n" in b"".join(pieces)


def test_a_log_without_a_value_has_no_note(tmp_path: Path) -> None:
    """D19: nor has one that is not there; a broken note covers nothing."""
    log = tmp_path / "a.log"
    log.write_text("nothing\n")
    note_masks(log, Masker({"A": VALUE}))
    note_masks(tmp_path / "gone.log", Masker({"A": VALUE}))
    assert [path.name for path in tmp_path.iterdir()] == ["a.log"]
    beside(log).write_text("[[1]]")
    assert read_masks(log) == []
