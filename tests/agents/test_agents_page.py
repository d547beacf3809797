"""The page about agents says what tests noted, and nothing a failed one did."""

from __future__ import annotations

import json
from pathlib import Path

import agents

REPORT = """<testsuites><testsuite>
<testcase><properties><property name="claude: tokens" value="yes"/><property name="claude: 401" value="x"/>
<property name="claude: note" value="one"/><property name="claude: note" value="two"/></properties></testcase>
<testcase><properties><property name="claude: edits files" value="yes"/></properties><failure/></testcase>
</testsuite></testsuites>"""


def test_only_passing_tests_say_what_an_agent_can(tmp_path: Path) -> None:
    """T24: a claim of a test that failed is no claim."""
    report = tmp_path / "report.xml"
    report.write_text(REPORT)
    assert agents.noted(report) == {"claude": {"tokens": "yes", "401": "x", "note": ["one", "two"]}}


def test_the_page_shows_every_agent_trouble_and_note(tmp_path: Path) -> None:
    """T24: with the version that was tried; what was not seen is a dash."""
    told = {"claude": {"tokens": "yes", "401": "blocked_external", "note": ["one"]}}
    files = {
        agents.RESULTS: {"programs": {"claude": "claude"}, "agents": told},
        agents.PINS: {"claude": {"package": "the-package", "version": "1.2"}},
    }
    for path, value in files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(json.dumps(value))
    page = agents.render(tmp_path)
    assert "| claude | the-package 1.2 | – | – | yes | – | – | – | – |" in page
    assert "| 401 | blocked_external |" in page and "- **claude**: one" in page
