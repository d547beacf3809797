"""Remotes: commits go on top of what is there or not at all, nothing is forced, and trouble has its right name."""

from __future__ import annotations

import asyncio
import os
import socket
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from ganger.errors import ForgeDenied, ForgeUnreachable, GangerError
from ganger.ports.forge import Behind, Rejected, Sent
from ganger.workspaces.remotes.remote import GitRemote, RemoteSettings
from tests.patience import Patience
from tests.workspaces.git_over_http import TOKEN, GitServer, serving
from tests.workspaces.git_projects import Ground, git, ground_at, make_project


@dataclass
class Site:
    """A repository of Ganger's, a bare remote beside it, and what others push there."""

    ground: Ground
    bare: Path
    root: Path

    def remote(self, address: str = "", **more: object) -> GitRemote:
        settings = RemoteSettings(address or str(self.bare), **more)  # type: ignore[arg-type]
        return GitRemote(self.ground.settings.store, settings)

    def commit(self, text: str, parent: str = "") -> str:
        made = self.ground.repository.empty_commit(parent or self.ground.head(), text, 1_700_000_000)
        return self.ground.do(made).commit

    def others_push(self, branch: str = "main") -> str:
        """Somebody else's commit on what the remote has."""
        clone = self.root / f"clone-{time.monotonic_ns()}"
        git(self.root, "clone", "-q", "-b", branch, str(self.bare), str(clone))
        git(clone, "commit", "-qm", "theirs", "--allow-empty")
        git(clone, "push", "-q", "origin", branch)
        return git(clone, "rev-parse", "HEAD")

    def tip(self, branch: str = "main") -> str:
        return git(self.bare, "rev-parse", branch, check=False)


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with ground_at(tmp_path) as ground:
        ground.open()
        bare = tmp_path / "remotes" / "owner" / "name.git"
        git(tmp_path, "clone", "-q", "--bare", str(tmp_path / "project"), str(bare))
        git(bare, "config", "http.receivepack", "true")
        yield Site(ground, bare, tmp_path)


@pytest.fixture
def server(site: Site) -> Iterator[GitServer]:
    with serving(site.root / "remotes") as one:
        yield one


def test_a_commit_is_pushed_on_top_and_found_when_it_is_there(site: Site) -> None:
    """D01: the remote has exactly this commit; a second push finds it and changes nothing."""
    remote, commit = site.remote(), site.commit("mine")
    assert site.ground.do(remote.push(commit, "main")) == Sent()
    assert site.tip() == commit == site.ground.do(remote.head("main"))
    assert site.ground.do(remote.push(commit, "main")) == Sent(found=True)


def test_a_new_branch_comes_with_its_first_commit(site: Site) -> None:
    """D01: change requests need a branch of their own; before it is there its head is empty."""
    remote, commit = site.remote(), site.commit("mine")
    assert site.ground.do(remote.head("ganger/run/task")) == ""
    assert site.ground.do(remote.push(commit, "ganger/run/task")) == Sent()
    assert site.tip("ganger/run/task") == commit


def test_what_others_pushed_is_never_overwritten(site: Site) -> None:
    """D02, G01: a remote that went on says where it is; its commits are here then, and it is as it was."""
    theirs, mine = site.others_push(), site.commit("mine")
    assert site.ground.do(site.remote().push(mine, "main")) == Behind(theirs)
    assert site.tip() == theirs and site.ground.do(site.ground.repository.has(theirs))


def test_a_commit_below_a_newer_tip_counts_as_pushed(site: Site) -> None:
    """D02: after a crash the push may have been done, and others may have gone on."""
    remote, commit = site.remote(), site.commit("mine")
    site.ground.do(remote.push(commit, "main"))
    tip = site.others_push()
    assert site.ground.do(remote.push(commit, "main")) == Sent(found=True)
    assert site.ground.do(remote.holds(commit, "main")) and site.tip() == tip


@pytest.mark.parametrize(("branch", "expected"), [("main", False), ("nowhere", False)])
def test_a_branch_without_the_commit_does_not_hold_it(site: Site, branch: str, expected: bool) -> None:
    """D02: neither at its tip nor below, nor where there is no such branch."""
    site.others_push()
    assert site.ground.do(site.remote().holds(site.commit("mine"), branch)) is expected


def test_fetching_a_branch_that_is_not_there_brings_nothing(site: Site) -> None:
    """D05: that is an answer, not trouble."""
    assert site.ground.do(site.remote().fetch("nowhere")) == ""


def test_branches_that_could_not_be_refs_beside_each_other_are_both_fetched(site: Site) -> None:
    """D05: `a` went, `a/b` came: what was fetched before is in nobody's way."""
    remote, commit = site.remote(), site.commit("mine")
    for branch in ("a", "a/b"):
        git(site.bare, "for-each-ref", "--format=delete %(refname)", "refs/heads/a")
        git(site.bare, "update-ref", "-d", "refs/heads/a")
        site.ground.do(remote.push(commit, branch))
        assert site.ground.do(remote.fetch(branch)) == commit


@pytest.mark.parametrize(
    ("said", "denied"), [("tests are red", False), ("You are not allowed to push to protected branches", True)]
)
def test_a_hook_that_declines_is_a_rejection_with_its_words(site: Site, said: str, denied: bool) -> None:
    """D12: asking again changes nothing; a missing right is told apart."""
    hook = site.bare / "hooks" / "pre-receive"
    hook.write_text(f"#!/bin/sh\necho '{said}' >&2\nexit 1\n")
    hook.chmod(0o755)
    answer = site.ground.do(site.remote().push(site.commit("mine"), "main"))
    assert isinstance(answer, Rejected) and said in answer.why and answer.denied is denied


def test_a_branch_that_is_locked_is_trouble_that_passes(site: Site) -> None:
    """D05: another push holds the lock for a moment; nothing was judged."""
    (site.bare / "refs" / "heads").mkdir(parents=True, exist_ok=True)
    (site.bare / "refs" / "heads" / "main.lock").touch()
    with pytest.raises(ForgeUnreachable):
        site.ground.do(site.remote().push(site.commit("mine"), "main"))


def test_a_hook_of_ones_own_never_runs(site: Site, tmp_path: Path) -> None:
    """G01: no code but git's own runs on this side of a push."""
    hook = site.ground.settings.store / "hooks" / "pre-push"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\ntouch {tmp_path / 'ran'}\n")
    hook.chmod(0o755)
    site.ground.do(site.remote().push(site.commit("mine"), "main"))
    assert not (tmp_path / "ran").exists()


def test_a_commit_that_is_gone_is_damage_not_trouble_of_the_remote(site: Site) -> None:
    """D12: what was recorded and is missing halts; it is not tried again and again."""
    with pytest.raises(GangerError) as caught:
        site.ground.do(site.remote().push("0" * 39 + "1", "main"))
    assert caught.value.code == "REPO_DAMAGED"


def test_a_broken_object_found_while_pushing_is_damage(site: Site) -> None:
    """D12: git's words of a corrupt object are told apart from the network's."""
    commit = site.commit("mine")
    tree = site.commit("more", commit)
    loose = site.ground.settings.store / "objects" / commit[:2] / commit[2:]
    loose.chmod(0o644)
    loose.write_bytes(b"")
    with pytest.raises(GangerError) as caught:
        site.ground.do(site.remote().push(tree, "main"))
    assert caught.value.code == "REPO_DAMAGED"


def test_a_token_reaches_an_http_remote_and_nothing_else(site: Site, server: GitServer, tmp_path: Path) -> None:
    """D19: it works, and neither the command line nor the repository's configuration ever holds it."""
    remote, commit = site.remote(server.url("owner/name.git"), token=TOKEN), site.commit("mine")
    assert site.ground.do(remote.push(commit, "main")) == Sent() and site.tip() == commit
    assert site.ground.do(remote.holds(commit, "main"))
    assert TOKEN not in (site.ground.settings.store / "config").read_text()
    assert TOKEN not in remote.address and TOKEN not in repr(RemoteSettings("x", token=TOKEN))


def test_credentials_in_an_address_are_taken_out_of_it(site: Site, server: GitServer) -> None:
    """D19: they are used and never shown."""
    remote = site.remote(server.url("owner/name.git", f"ann:{TOKEN}@"))
    assert site.ground.do(remote.head("main")) == site.tip()
    assert TOKEN not in remote.address and "ann" not in remote.address


WRONG = "wr0ng-token-9z8y7x6w5v"


@pytest.mark.parametrize("token", ["", WRONG])
def test_a_token_that_nobody_knows_is_a_denial_that_does_not_show_it(site: Site, server: GitServer, token: str) -> None:
    """D05, D19: it is not tried again, and the message says where to look."""
    remote = site.remote(server.url("owner/name.git"), token=token)
    for work in (remote.head("main"), remote.fetch("main"), remote.push(site.commit("mine"), "main")):
        with pytest.raises(ForgeDenied) as caught:
            site.ground.do(work)
        assert WRONG not in caught.value.message + caught.value.hint and caught.value.hint


@pytest.mark.parametrize(
    ("status", "kind"),
    [(403, ForgeDenied), (404, ForgeDenied), (429, ForgeUnreachable), (500, ForgeUnreachable), (502, ForgeUnreachable)],
)
def test_what_a_server_answers_has_its_right_name(
    site: Site, server: GitServer, status: int, kind: type[GangerError]
) -> None:
    """D05: trouble that passes is never taken for a verdict, nor a refusal for trouble."""
    server.trouble = status
    remote = site.remote(server.url("owner/name.git"), token=TOKEN)
    with pytest.raises(kind):
        site.ground.do(remote.push(site.commit("mine"), "main"))
    server.trouble = 0
    assert site.ground.do(remote.head("main")) == site.tip()


@pytest.mark.parametrize(("status", "kind"), [(403, ForgeDenied), (500, ForgeUnreachable), (503, ForgeUnreachable)])
def test_trouble_in_the_middle_of_a_push_leaves_the_remote_as_it_was(
    site: Site, server: GitServer, status: int, kind: type[GangerError]
) -> None:
    """D05: the branch was shown, the commit was not taken; the next push takes it."""
    server.post_trouble, before = status, site.tip()
    remote, commit = site.remote(server.url("owner/name.git"), token=TOKEN), site.commit("mine")
    with pytest.raises(kind):
        site.ground.do(remote.push(commit, "main"))
    assert site.tip() == before
    server.post_trouble = 0
    assert site.ground.do(remote.push(commit, "main")) == Sent()


def test_a_push_whose_answer_was_lost_is_found_the_next_time(site: Site, server: GitServer) -> None:
    """D05, D18: it is not known whether it was done; looking tells, and nothing is pushed twice."""
    server.cut = True
    remote, commit = site.remote(server.url("owner/name.git"), token=TOKEN), site.commit("mine")
    with pytest.raises(ForgeUnreachable):
        site.ground.do(remote.push(commit, "main"))
    assert site.tip() == commit
    server.cut = False
    assert site.ground.do(remote.push(commit, "main")) == Sent(found=True)


def test_a_token_is_not_sent_on_to_another_host(site: Site, server: GitServer) -> None:
    """D19: a redirect elsewhere is refused, so that the header goes nowhere else."""
    with serving(site.root / "remotes") as other:
        server.trouble, server.location = 302, other.url("owner/name.git/info/refs?service=git-upload-pack")
        with pytest.raises(ForgeDenied):
            site.ground.do(site.remote(server.url("owner/name.git"), token=TOKEN).head("main"))
        assert other.seen == []


def test_a_server_that_never_answers_costs_no_more_than_the_deadline(site: Site, server: GitServer) -> None:
    """D05: and no process of the call stays behind."""
    server.hang = True
    remote = site.remote(server.url("owner/name.git"), token=TOKEN, look_sec=0.5)
    with pytest.raises(ForgeUnreachable):
        site.ground.do(remote.head("main"))
    assert _gone(lambda: not _running(server.url("")))


def test_a_call_that_is_given_up_ends_its_processes(site: Site, server: GitServer) -> None:
    """G01: who stops a run leaves no git behind."""
    server.hang = True
    remote = site.remote(server.url("owner/name.git"), token=TOKEN)

    async def give_up() -> None:
        asking = asyncio.create_task(remote.head("main"))
        while not server.seen:
            await asyncio.sleep(0.01)
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)

    site.ground.do(give_up())
    assert _gone(lambda: not _running(server.url("")))


def test_no_secret_stands_on_a_command_line(site: Site, server: GitServer) -> None:
    """D19: whoever lists the processes of this machine sees none."""
    server.hang = True
    remote = site.remote(server.url("owner/name.git", "ann:secret-in-address@"), token=TOKEN, look_sec=1)

    async def look() -> str:
        asking = asyncio.create_task(remote.head("main"))
        while not (server.seen and _running(server.url(""))):
            await asyncio.sleep(0.01)
        shown = "\n".join(_running(server.url("")))
        await asyncio.gather(asking, return_exceptions=True)
        return shown

    shown = site.ground.do(look())
    assert "remote-http" in shown and TOKEN not in shown and "secret-in-address" not in shown


def _closed_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@pytest.mark.parametrize("address", ["http://127.0.0.1:{port}/a/b", "ssh://git@127.0.0.1:{port}/a/b"])
def test_nobody_at_that_address_is_trouble_that_passes(site: Site, address: str) -> None:
    """D05: a forge that is down is asked again."""
    remote = site.remote(address.format(port=_closed_port()), look_sec=20)
    with pytest.raises(ForgeUnreachable) as caught:
        site.ground.do(remote.head("main"))
    assert caught.value.hint


def test_a_path_that_is_no_repository_is_named(site: Site) -> None:
    """D05: waiting does not mend a wrong address."""
    with pytest.raises(ForgeDenied, match="nowhere"):
        site.ground.do(site.remote(str(site.root / "nowhere")).head("main"))


@pytest.mark.parametrize("branch", ["-f", "", "a b", "a..b", "a:b", "refs/*", "a.lock", "/a", "a@{1}"])
def test_a_branch_that_git_would_read_otherwise_is_refused(site: Site, branch: str) -> None:
    """G01: no name becomes an option, a pattern, a force or a second ref."""
    with pytest.raises(GangerError, match="branch"):
        site.ground.do(site.remote().push(site.commit("mine"), branch))


def test_a_plus_in_a_branchs_name_forces_nothing(site: Site) -> None:
    """D02: it is a sign of the name like any other."""
    theirs = site.others_push()
    assert site.ground.do(site.remote().push(site.commit("mine"), "+main")) == Sent()
    assert site.tip() == theirs != site.tip("+main")


def _running(word: str) -> list[str]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue
            if word in line and "git" in line and "pytest" not in line:
                found.append(line)
    return found


def _gone(done: Callable[[], bool]) -> bool:
    patience = Patience(10)
    while not done() and not patience.is_over():
        time.sleep(0.02)
    return done()


def test_two_pushes_at_once_both_end_and_one_is_behind(site: Site) -> None:
    """D02: of two commits on one parent one is on top; the other is told so, or of a moment's trouble."""
    one, two, remote = site.commit("one"), site.commit("two"), site.remote()

    async def both() -> tuple[object, ...]:
        return await asyncio.gather(remote.push(one, "main"), remote.push(two, "main"), return_exceptions=True)

    answers = site.ground.do(both())
    assert sum(isinstance(answer, Sent) for answer in answers) == 1, answers
    assert all(isinstance(answer, Sent | Behind | ForgeUnreachable) for answer in answers)
    assert site.tip() in (one, two)


def test_another_users_repository_at_a_path_can_be_pushed_to(site: Site) -> None:
    """W02: the operator named that very path."""
    if os.geteuid() != 0:
        pytest.skip("needs root to give a folder to somebody else")
    for place in (site.bare, *site.bare.rglob("*")):
        os.chown(place, 12345, 12345)
    assert site.ground.do(site.remote().push(site.commit("mine"), "main")) == Sent()


def test_a_remote_of_the_project_itself_may_be_a_checkout(tmp_path: Path) -> None:
    """D05: pushing to a branch that is checked out there is refused by the other side, and told as that."""
    with ground_at(tmp_path) as ground:
        ground.open()
        other = make_project(tmp_path / "other")
        git(other, "fetch", "-q", str(tmp_path / "project"), "main")
        git(other, "reset", "-q", "--hard", "FETCH_HEAD")
        made = ground.do(ground.repository.empty_commit(ground.head(), "mine", 1)).commit
        answer = ground.do(GitRemote(ground.settings.store, RemoteSettings(str(other))).push(made, "main"))
        assert isinstance(answer, Rejected)


def test_a_branch_is_replaced_from_where_it_was_seen_and_from_nowhere_else(site: Site) -> None:
    """D02 D17: what somebody pushed meanwhile is never taken away."""
    remote, start = site.remote(), site.ground.head()
    first, second, third = (site.commit(text, start) for text in ("one", "two", "three"))
    assert site.ground.do(remote.push(first, "topic")) == Sent()
    assert site.ground.do(remote.replace(second, "topic", first)) == Sent() and site.tip("topic") == second
    assert site.ground.do(remote.replace(second, "topic", first)) == Sent(found=True)
    theirs = site.others_push("topic")
    assert site.ground.do(remote.replace(third, "topic", second)) == Behind(theirs) and site.tip("topic") == theirs
    assert isinstance(site.ground.do(remote.replace(third, "gone", second)), Rejected)
