"""Addresses of remotes: what is taken, what is shown of it, and which forge it names."""

from __future__ import annotations

from pathlib import Path

import pytest

from ganger.errors import GangerError
from ganger.workspaces.remotes.addresses import parse_address
from ganger.workspaces.remotes.remote import forge_of, remote_address
from tests.workspaces.git_projects import git, make_project

FORGES = [
    ("https://git.example.org/owner/name.git", "https://git.example.org", "owner/name"),
    ("https://ann:pw@git.example.org:8443/owner/name", "https://git.example.org:8443", "owner/name"),
    ("https://git.example.org:443/owner/name/", "https://git.example.org", "owner/name"),
    ("http://127.0.0.1:3000/owner/name.git", "http://127.0.0.1:3000", "owner/name"),
    ("ssh://git@git.example.org:2222/owner/name.git", "https://git.example.org", "owner/name"),
    ("git@git.example.org:owner/name.git", "https://git.example.org", "owner/name"),
    ("git.example.org:group/sub/name.git", "https://git.example.org", "group/sub/name"),
    ("git@git.example.org:/owner/name.git", "https://git.example.org", "owner/name"),
    ("https://[::1]:3000/owner/name.git", "https://[::1]:3000", "owner/name"),
    ("git@[::1]:owner/name.git", "https://[::1]", "owner/name"),
    ("https://git.example.org/o%20w/name", "https://git.example.org", "o w/name"),
    ("/srv/git/name.git", "", ""),
    ("file:///srv/git/name.git", "", ""),
]


@pytest.mark.parametrize(("address", "host", "name"), FORGES)
def test_an_address_tells_its_forge(address: str, host: str, name: str) -> None:
    """D19: the forge and the repository there, without credentials."""
    assert forge_of(address) == (host, name)


@pytest.mark.parametrize(
    "address",
    [
        *("", "-oProxyCommand=x", "ext::sh -c id", "git://example.org/x", "ftp://x/y", "ssh://-oX/y", "https:///x"),
        *("fd::17", "https://host:port/x", "relative/path", "a\nb"),
    ],
)
def test_an_address_that_would_run_something_or_leads_nowhere_is_refused(address: str) -> None:
    """Before git sees it."""
    with pytest.raises(GangerError) as caught:
        parse_address(address)
    assert caught.value.code == "REMOTE_ADDRESS"


def test_a_refused_address_shows_no_password() -> None:
    """D19: not in the error either."""
    with pytest.raises(GangerError) as caught:
        parse_address("git://ann:hidden-word@example.org/x")
    assert "hidden-word" not in caught.value.message


def test_a_remote_is_named_as_in_the_persons_repository(tmp_path: Path) -> None:
    """W02: where it is pushed to; a path there is one from the project's folder."""
    project = make_project(tmp_path / "project")
    git(project, "remote", "add", "origin", "git@git.example.org:owner/name.git")
    git(project, "remote", "add", "near", "../near.git")
    git(project, "remote", "add", "team/far", "https://a.example/x/y")
    git(project, "remote", "set-url", "--push", "team/far", "https://b.example/x/y")
    assert remote_address(project, "origin") == "git@git.example.org:owner/name.git"
    assert Path(remote_address(project, "near")).resolve() == tmp_path / "near.git"
    assert remote_address(project, "team/far") == "https://b.example/x/y"


@pytest.mark.parametrize("address", ["https://git.example.org/o/n", "git@git.example.org:o/n", "/srv/n.git"])
def test_an_address_given_directly_stays(tmp_path: Path, address: str) -> None:
    """W02: no remote is needed."""
    assert remote_address(make_project(tmp_path / "project"), address) == address


def test_a_remote_nobody_added_is_named(tmp_path: Path) -> None:
    """D05: with what to do."""
    with pytest.raises(GangerError, match="no remote named 'origin'") as caught:
        remote_address(make_project(tmp_path / "project"), "origin")
    assert caught.value.code == "REMOTE_UNKNOWN" and "git remote add" in caught.value.hint
