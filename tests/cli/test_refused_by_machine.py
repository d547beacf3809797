"""What the operating system refuses reaches a person as words, never as a fault of the program."""

from __future__ import annotations

import errno
import json
import os

import pytest

from ganger.cli.shell.main import root, run_command


@pytest.mark.parametrize("code", [errno.EIO, errno.EMFILE, errno.EINTR, errno.EACCES])
def test_a_call_that_the_machine_refuses_is_told_with_its_place(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], code: int
) -> None:
    """T19: whatever command met it."""

    def refuse(*_: object, **__: object) -> object:
        raise OSError(code, os.strerror(code), "/some/place")

    monkeypatch.setattr(root, "main", refuse)
    assert run_command(["status", "--json"]) == 1
    told = json.loads(capsys.readouterr().out)["error"]
    assert told["code"] == "MACHINE_REFUSED" and "/some/place" in told["message"]
