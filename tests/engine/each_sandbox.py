"""The same test behind each kind of sandbox, and without one."""

from __future__ import annotations

import pytest

from ganger.sandboxes import landlock

SANDBOXES = [pytest.param("bubblewrap", marks=pytest.mark.needs("bwrap")), "landlock", "none"]


@pytest.fixture(params=SANDBOXES)
def sandbox(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Makes the machine one on which this is what stands."""
    if request.param == "landlock":
        if not landlock.is_there():
            pytest.skip("needs Landlock in the kernel")
        monkeypatch.setattr("ganger.sandboxes.choose.find_bwrap", lambda _path: None)
    # Landlock keeps no project's own .git, which `require` asks for in direct mode.
    use = {"bubblewrap": "require", "landlock": "auto", "none": "off"}
    monkeypatch.setenv("GANGER_SANDBOX_USE", use[request.param])
    return str(request.param)
