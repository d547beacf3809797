"""Notices on the desktop, through notify-send."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping

from ganger.core.verify.environment import operator_environment
from ganger.notices.notice import NotDelivered, Notice

_TIMEOUT_SEC = 5.0


class DesktopWay:
    name = "desktop"

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = operator_environment(environ, extra={})

    def hurry(self) -> None:
        """Does nothing: a notice takes a few seconds at most."""

    def deliver(self, notice: Notice) -> None:
        program = shutil.which("notify-send", path=self._environ.get("PATH"))
        if program is None:
            raise NotDelivered("notify-send is not on PATH")
        words = [program, "--app-name=Ganger", "--", notice.title, notice.text or notice.event]
        try:
            subprocess.run(
                words,
                env=self._environ,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_TIMEOUT_SEC,
                check=True,
            )
        except subprocess.CalledProcessError as error:
            said = error.stderr.decode("utf-8", "replace").strip()[:200]
            raise NotDelivered(f"notify-send: {said or f'exit code {error.returncode}'}") from error
        except (OSError, subprocess.TimeoutExpired) as error:
            raise NotDelivered(f"notify-send: {error}") from error
