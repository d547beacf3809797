"""Agents through the Agent Client Protocol: a stand-in that misbehaves, and real programs."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ganger.agents.acp.agent import AcpAgent, AcpReader
from ganger.agents.acp.client import Errand
from ganger.agents.acp.profiles import PROFILES
from ganger.agents.settings import AgentSettings
from ganger.agents.sign_lines import decode
from ganger.agents.streams import hear
from ganger.contracts.parser import Parsed
from ganger.core.model.records import Totals
from ganger.core.money.pricing import used_by
from ganger.core.signs import Alive, Denied, Heard, Over, Sign, Tokens
from ganger.dev.server import ModelServer
from ganger.errors import InputError
from ganger.ports.agents import AttemptContext
from tests.agents.installed import Installed, installed
from tests.agents.real import KEY, Trial
from tests.patience import Patience, stretched

HERE = Path(__file__).parent
STAND_IN = (sys.executable, str(HERE / "acp_stand_in.py"))


def talk(folder: Path, plays: str, **errand: Any) -> subprocess.Popen[bytes]:
    """The process an attempt would be, with the stand-in as its agent."""
    given = Errand((*STAND_IN, plays), **errand).written()
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "ganger.agents.acp.client", given],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )


def heard(folder: Path, plays: str, **errand: Any) -> Heard:
    with talk(folder, plays, **errand) as process:
        return rest(process)


def rest(process: subprocess.Popen[bytes]) -> Heard:
    """What is heard from here to its end."""
    found, reader = Heard(), AcpReader()
    for line in process.communicate(timeout=stretched(60))[0].splitlines():
        found.add(reader.line(line))
    return found


def at_work(process: subprocess.Popen[bytes]) -> None:
    """Returns when it has begun to use a tool."""
    assert process.stdout is not None
    while b"ToolStarted" not in process.stdout.readline():
        continue


def runs(pid: str) -> bool:
    stat = Path("/proc", pid, "stat")
    return stat.exists() and stat.read_text().rpartition(")")[2].split()[0] != "Z"


def how(found: Heard) -> str:
    return found.over.how if found.over is not None else ""


def alive(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


def test_the_agent_works_and_its_answer_is_found(tmp_path: Path) -> None:
    """T24 G04: session, tools, tokens and the whole answer; the odd ids of a question are given back as they came."""
    found = heard(tmp_path, "good")
    assert (found.session, found.tools, how(found)) == ("s-1", 1, "success")
    assert found.answer.startswith("Done.\n<<<TASK_RESULT_V2>>>") and found.answer.endswith(
        "<<<END_TASK_RESULT_V2>>>\n"
    )
    assert found.tokens == Tokens(140, 20, cache_read=40)
    chosen = json.loads((tmp_path / "reply").read_text())
    assert chosen == {"outcome": {"outcome": "selected", "optionId": "§ yes-for-now"}}


def test_nothing_it_says_outside_of_the_protocol_is_believed(tmp_path: Path) -> None:
    """T24: garbage, forged signs, updates nobody knows, a line of 17 MB: the answer still comes through."""
    found = heard(tmp_path, "noisy")
    assert (how(found), found.login) == ("success", "")
    assert len(found.answer) < 1000 and "TASK_RESULT_V2" in found.answer


def test_what_is_not_allowed_is_rejected_and_told(tmp_path: Path) -> None:
    """D12: a command, and a file outside the workspace."""
    found = heard(tmp_path, "commands", allow="edit")
    assert found.denied == [Denied("edit", "write", rule=True), Denied("execute", "rm x")]
    assert heard(tmp_path, "commands", allow="all").denied == []


def test_an_old_session_told_again_is_no_answer(tmp_path: Path) -> None:
    """H05: what a loaded session said before counts for nothing."""
    found = heard(tmp_path, "max_tokens", session="s-1", mode="free")
    assert (found.session, found.answer, how(found)) == ("s-1", "", "length")
    assert (tmp_path / "mode").read_text() == "free"


def test_it_logs_in_only_where_that_is_offered(tmp_path: Path) -> None:
    """T24: the profile names the way, the agent must know it."""
    heard(tmp_path, "good", auth="another")
    assert not (tmp_path / "authenticated").exists()
    heard(tmp_path, "good", auth="key")
    assert (tmp_path / "authenticated").exists()


@pytest.mark.parametrize(
    ("plays", "ends"),
    [
        ("max_tokens", "length"),
        ("max_turn_requests", "turns"),
        ("refusal", "refused"),
        ("down", "network"),
        ("dies", "error"),
        ("unknown", "usage"),
    ],
)
def test_how_it_ended_is_told_apart(tmp_path: Path, plays: str, ends: str) -> None:
    """D12: by the reason it gives, its error, or the way its process ended."""
    assert how(heard(tmp_path, plays)) == ends


def test_what_a_session_cost_is_a_running_total(tmp_path: Path) -> None:
    """G04: after a resume the dollars of the processes before are in it again, and are taken off."""
    told = heard(tmp_path, "costs").tokens
    assert told is not None and (told.usd, told.session_usd, told.session_tokens) == (0.75, True, False)
    before = Totals(100, 10, usd=0.5)
    assert used_by(told, "m", {}, before).usd == pytest.approx(0.25)


def test_a_wrong_key_that_is_only_said_in_words_is_heard_where_nothing_else_was_done(tmp_path: Path) -> None:
    """G14: a model that worked may quote such words; then they stop no account."""
    pattern = r"\bError: .*"
    assert heard(tmp_path, "complains", errors=pattern).login
    quoted = heard(tmp_path, "quotes", errors=pattern)
    assert (quoted.login, how(quoted)) == ("", "error")


def test_a_conversation_that_the_model_does_not_take_is_heard(tmp_path: Path) -> None:
    """G22: whatever its number, by its words."""
    assert how(heard(tmp_path, "orphan")) == "unfit"


@pytest.mark.parametrize("plays", ["login", "status"])
def test_a_missing_login_is_heard(tmp_path: Path, plays: str) -> None:
    """D12: by the protocol's own code, or a status in its place."""
    assert heard(tmp_path, plays).login


def test_a_limit_is_heard_as_an_error_and_as_mere_text(tmp_path: Path) -> None:
    """G04 D12: an agent that calls its failed turn a success has the error in its last message."""
    limited = heard(tmp_path, "limit").limited
    assert limited is not None and limited.final
    found = heard(tmp_path, "words", errors=r"Error: .*", retrying=r"\AInfo: ")
    assert found.limited is not None and found.limited.reset_at is not None and found.over is None


def test_an_agent_that_dies_says_its_last_words(tmp_path: Path) -> None:
    """D12 H03: what it wrote to stderr before it went; and nothing it started stays."""
    over = heard(tmp_path, "dies").over
    assert not runs((tmp_path / "child").read_text())
    assert over is not None and "code 3" in over.text and "out of luck" in over.text


def test_one_that_never_answers_is_given_up(tmp_path: Path) -> None:
    """T24: the start has its own deadline."""
    over = heard(tmp_path, "mute", start_sec=0.5).over
    assert over is not None and over.how == "error" and "initialize" in over.text


def test_told_to_stop_it_cancels_first(tmp_path: Path) -> None:
    """T24: the agent gets a word before its end."""
    with talk(tmp_path, "cancels") as process:
        at_work(process)
        process.send_signal(signal.SIGTERM)
        assert how(rest(process)) == "aborted"
    assert (tmp_path / "cancelled").exists()


def test_no_process_is_left_of_one_that_will_not_end(tmp_path: Path) -> None:
    """T24 H03: neither an agent that ignores signals nor a child that left its group."""
    with talk(tmp_path, "keeps") as process:
        at_work(process)
        process.send_signal(signal.SIGTERM)
        assert how(rest(process)) == "aborted"
    assert not runs((tmp_path / "child").read_text())


def lines_of(folder: Path, plays: str, **errand: Any) -> list[Sign | None]:
    with talk(folder, plays, **errand) as process:
        return [decode(line) for line in process.communicate(timeout=stretched(60))[0].splitlines()]


@pytest.mark.parametrize(("plays", "answers"), [("thinks", 2), ("knows", 1), ("good", 0)])
def test_an_agent_that_is_silent_for_long_is_asked_and_its_answer_is_a_sign_of_life(
    tmp_path: Path, plays: str, answers: int
) -> None:
    """H02 H03: that it does not know the question is an answer too; who talks is not asked."""
    signs = lines_of(tmp_path, plays, quiet_sec=0.3 if answers else 60.0)
    assert signs.count(Alive()) == answers
    assert isinstance(signs[-1], Over) and signs[-1].how == "success"


def test_one_that_does_not_answer_stays_silent_and_is_asked_once(tmp_path: Path) -> None:
    """H03: nothing is told in its name."""
    with talk(tmp_path, "deaf", quiet_sec=0.1) as process:
        patience = Patience(30)
        while not (tmp_path / "asked").exists() and not patience.is_over():
            time.sleep(0.01)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.5)
        assert (tmp_path / "asked").read_text() == ""
        process.send_signal(signal.SIGTERM)
        signs = [decode(line) for line in process.communicate(timeout=stretched(60))[0].splitlines()]
    assert Alive() not in signs


def test_a_profile_or_a_program_must_be_named(tmp_path: Path) -> None:
    """T24: and the profile must be one there is."""
    for given in (AgentSettings("acp"), AgentSettings("acp", profile="nobody")):
        with pytest.raises(InputError, match="profile"):
            AcpAgent("a", given, tmp_path, {})


@pytest.mark.parametrize("name", PROFILES)
def test_every_profile_makes_a_call_without_secrets(tmp_path: Path, name: str) -> None:
    """T24: keys stay in the environment; what the profile adds is in the call once."""
    like = PROFILES[name].like
    environ = dict.fromkeys(like.keys if like is not None else (), KEY) | {"HOME": str(tmp_path)}
    program = Installed(name, "", ("/bin/true", *PROFILES[name].arguments), "/bin")
    place = Trial(tmp_path, AcpAgent, program, environ=environ, settings={"profile": name, "model": "openai/model"})
    agent, context = place.agent(), place.context("x", session="", walled=True)
    assert isinstance(agent, AcpAgent)
    launch = agent.prepare(context)
    assert KEY in launch.env.values() and KEY not in " ".join(launch.argv)
    assert all(KEY.encode() not in data for data in agent.furnish(context).values())
    words = agent.errand(context).argv
    assert all(words.count(word) == 1 for word in PROFILES[name].arguments)


@pytest.mark.parametrize("file", sorted((HERE / "streams").glob("acp-*.jsonl")), ids=lambda file: file.stem)
def test_a_recorded_conversation_is_understood(file: Path) -> None:
    """T24 D12: logs of real programs."""
    found, wanted = hear(AcpReader(), file), json.loads(file.with_suffix(".json").read_text())
    told = {
        "session": bool(found.session),
        "over": how(found),
        "tools": found.tools,
        "limited": found.limited is not None and found.limited.final,
        "login": bool(found.login),
        "denied": len(found.denied),
        "tokens": None if found.tokens is None else [found.tokens.input, found.tokens.output],
        "answered": "<<<END_TASK_RESULT_V2>>>" in found.answer,
    }
    assert told == wanted


# --- real programs ----------------------------------------------------------------------------------------------------

WORK = [{"write": {"path": "a.txt", "content": "hi\n"}}, {"run": "echo x > b.txt"}, {"result": {}}]


def place(folder: Path, name: str, server: ModelServer) -> Trial:
    v1 = f"{server.url}/v1"
    environ, settings = {
        "gemini": ({"GEMINI_API_KEY": KEY, "GOOGLE_GEMINI_BASE_URL": server.url}, {"model": "gemini-2.5-pro"}),
        "claude-acp": ({"ANTHROPIC_API_KEY": KEY, "ANTHROPIC_BASE_URL": server.url}, {}),
        "codex-acp": ({"OPENAI_API_KEY": KEY}, {"base_url": v1, "model": "m"}),
        "copilot": ({"COPILOT_PROVIDER_API_KEY": KEY, "COPILOT_PROVIDER_BASE_URL": v1}, {"model": "gpt-5"}),
        "opencode": ({"LOCAL_KEY": KEY}, {"base_url": v1, "model": "local/m", "key_env": "LOCAL_KEY"}),
        "qwen": ({"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": v1}, {"model": "m"}),
    }[name]
    return Trial(
        folder, AcpAgent, installed(name), environ=environ, settings={"profile": name, "retries": 1, **settings}
    )


def playing(steps: list[Any]) -> ModelServer:
    return ModelServer(
        {"scenarios": {"it": {"match": "", "steps": steps, "resumed": [{"result": {}}]}}, "default": "it"}
    )


REAL = [
    "gemini",
    *(
        pytest.param(name, marks=pytest.mark.agents_full)
        for name in ("claude-acp", "codex-acp", "copilot", "opencode", "qwen")
    ),
]


@pytest.mark.whole
@pytest.mark.parametrize("name", REAL)
def test_a_real_agent_edits_with_its_own_tools_and_answers(tmp_path: Path, name: str) -> None:
    """T24 G04: tokens as the server counted them where the agent tells them, and the key nowhere."""
    with playing(WORK) as server:
        trial = place(tmp_path, name, server)
        ran = trial.run("make two files", walled=True)
        assert isinstance(trial.agent().extract_result(ran.log, "T1"), Parsed), ran.output
        assert (trial.workspace / "a.txt").read_text() == "hi\n" and (trial.workspace / "b.txt").exists()
        assert trial.leaks(ran) == []
        assert_tokens(ran.heard, server, name)


def assert_tokens(found: Heard, server: ModelServer, name: str) -> None:
    if name in ("opencode", "qwen"):
        assert found.tokens is None
        return
    # One asks for a title beside the work, and does not count that.
    titles = [seen.input_tokens for seen in server.requests if seen.conversation[-1].text.startswith("<session>")]
    counted = server.tokens().input - sum(titles)
    assert found.tokens is not None and found.tokens.input is not None
    assert abs(found.tokens.input - counted) <= counted * 0.01


@pytest.mark.agents_full
def test_a_real_agent_without_the_right_to_all_is_refused_commands(tmp_path: Path) -> None:
    """D12: the question it asks is answered with no."""
    with playing([{"run": "echo x > b.txt"}, {"result": {}}]) as server:
        trial = place(tmp_path, "gemini", server)
        ran = trial.run("make a file", permissions="edit")
        assert [denied.tool for denied in ran.heard.denied] == ["execute"]
        assert not (trial.workspace / "b.txt").exists()


class Impatient(AcpAgent):
    """Asks after seconds what would be asked after a minute."""

    def errand(self, context: AttemptContext) -> Errand:
        return replace(super().errand(context), quiet_sec=1.0)


@pytest.mark.slow
@pytest.mark.parametrize("name", REAL)
def test_a_real_agent_whose_model_thinks_for_long_says_that_it_is_there(tmp_path: Path, name: str) -> None:
    """H02 H03: and is not disturbed by the question."""
    with playing([{"result": {}, "delay": 4}]) as server:
        trial = place(tmp_path, name, server)
        trial.make = Impatient
        ran = trial.run("say that it is done", walled=True)
        assert ran.output.count('"is": "Alive"') >= 2, ran.output
        assert how(ran.heard) == "success" and isinstance(trial.agent().extract_result(ran.log, "T1"), Parsed)


@pytest.mark.whole
@pytest.mark.agents_full
@pytest.mark.parametrize("name", ["claude-acp", "codex-acp", "opencode", "copilot"])
def test_a_real_agent_killed_at_work_goes_on(tmp_path: Path, name: str) -> None:
    """H05: another process continues the session, and the model sees what was done before."""
    with playing([{"write": {"path": "a.txt", "content": "hi\n"}}, {"hang": 60, "where": "headers"}]) as server:
        trial = place(tmp_path, name, server)
        going = trial.start("make a file", walled=True)
        assert server.wait_for(lambda seen: any(request.step == 1 for request in seen), 90)
        killed = going.kill()
        ran = trial.run("go on", session=killed.heard.session, walled=True)
        assert how(ran.heard) == "success" and ran.heard.session == killed.heard.session
        assert any("make a file" in turn.text for turn in server.requests[-1].conversation)


@pytest.mark.whole
@pytest.mark.agents_full
@pytest.mark.parametrize("name", ["claude-acp", "codex-acp", "copilot", "opencode", "gemini"])
def test_a_real_agent_at_its_limit_says_so(tmp_path: Path, name: str) -> None:
    """G04 D12: whatever it calls its end."""
    with playing([{"error": 429, "retry_after": 1}]) as server:
        limited = place(tmp_path, name, server).run("make a file", walled=True).heard.limited
        assert limited is not None and limited.final


@pytest.mark.whole
@pytest.mark.agents_full
@pytest.mark.parametrize("name", ["claude-acp", "codex-acp", "copilot", "opencode", "gemini", "qwen"])
def test_a_real_agent_with_a_wrong_key_says_so(tmp_path: Path, name: str) -> None:
    """D12: whatever it calls its end."""
    with playing([{"error": 401}]) as server:
        assert place(tmp_path, name, server).run("make a file", walled=True).heard.login
