"""What every agent kind promises: how it is called, what it is given, how its answer is read."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from ganger.agents.command import fill
from ganger.agents.scripted.script import ScriptProblem, load_script
from ganger.agents.settings import AgentSettings
from ganger.agents.table import make_agent
from ganger.contracts.parser import Parsed, Refused, parse_result
from ganger.errors import GangerError, InputError
from ganger.launchers.launcher import KeptLauncher
from ganger.ports.agents import Agent, AttemptContext
from ganger.ports.processes import Exit

# Kinds that need no program of anybody's; the others keep the same promises in tests/agents.
KINDS = ("command", "scripted")
RESULT = '{"contract_version":"2.0","task_id":"a","status":"DONE","summary":"did it"}'
BLOCK = f"<<<TASK_RESULT_V2>>>\n{RESULT}\n<<<END_TASK_RESULT_V2>>>"
ANSWERING = (sys.executable, "-c", f"print({BLOCK!r})")
ENVIRON = {"PATH": os.environ["PATH"], "HOME": "/nowhere", "MY_API_KEY": "canary-1", "OTHER_TOKEN": "canary-2"}


def settings(kind: str, root: Path) -> AgentSettings:
    """The least a section of the config needs for an agent that answers DONE."""
    (root / "script.json").write_text('{"default": {"text": "working", "result": "DONE"}}')
    if kind == "scripted":
        return AgentSettings(kind, script="script.json")
    return AgentSettings(kind, argv=ANSWERING)


def context(root: Path, prompt: str = "Do it.", **changes: object) -> AttemptContext:
    (root / "prompt.md").write_text(prompt, encoding="utf-8")
    given = {
        "run_id": "r1",
        "task_id": "a",
        "attempt": 2,
        "role": "worker",
        "workspace": root,
        "prompt_file": root / "prompt.md",
        "log_path": root / "a.log",
        "timeout_sec": 20.0,
    }
    return AttemptContext(**{**given, **changes})  # type: ignore[arg-type]


def called(agent: Agent, where: AttemptContext) -> Exit:
    async def run() -> Exit:
        launcher = KeptLauncher(where.log_path.parent, grace_sec=1)
        try:
            return await (await agent.execute(agent.prepare(where), launcher)).wait()
        finally:
            await launcher.close()
            # The same attempt may be called again here, which a keeper that remembers would not start twice.
            shutil.rmtree(where.log_path.parent / "keeper", ignore_errors=True)

    return asyncio.run(run())


def command(root: Path, code: str, environ: Mapping[str, str] = ENVIRON, **more: object) -> Agent:
    argv = (sys.executable, "-c", code)
    return make_agent("mine", AgentSettings("command", **{"argv": argv, **more}), root, environ)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_prepares_executes_and_gives_its_result(tmp_path: Path, kind: str) -> None:
    """T24 T28 adapter-parity: the same answer, the same record, whichever adapter brought it."""
    agent = make_agent("mine", settings(kind, tmp_path), tmp_path, ENVIRON)
    assert (agent.name, agent.kind) == ("mine", kind)
    assert called(agent, context(tmp_path)).code == 0
    answer = agent.extract_result(tmp_path / "a.log", "a")
    assert isinstance(answer, Parsed) and answer.value.status == "DONE"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("text", [BLOCK, BLOCK.replace('"a"', '"b"'), "no block", BLOCK.replace("DONE", "MAYBE"), ""])
def test_all_kinds_share_one_parser(tmp_path: Path, kind: str, text: str) -> None:
    """T24 T28 adapter-parity T29: equal logs give equal answers, accepted or refused."""
    agent = make_agent("mine", settings(kind, tmp_path), tmp_path, ENVIRON)
    (tmp_path / "a.log").write_text(text)
    found, wanted = agent.extract_result(tmp_path / "a.log", "a"), parse_result(text.encode(), task_id="a")
    assert found == wanted and isinstance(found, Parsed | Refused)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_says_whether_it_is_ready(tmp_path: Path, kind: str) -> None:
    """T24: ready with what it runs, not ready with what to do."""
    good = make_agent("mine", settings(kind, tmp_path), tmp_path, ENVIRON).healthcheck()
    lacking = AgentSettings(kind, argv=("no-such-program-here",), script="missing.json")
    bad = make_agent("mine", lacking, tmp_path, ENVIRON).healthcheck()
    assert good.ready and good.details and not bad.ready and bad.details


@pytest.mark.parametrize("kind", KINDS)
def test_an_agent_knows_its_attempt_and_no_secret_of_the_operator(tmp_path: Path, kind: str) -> None:
    """T24: the five variables of the contract; keys only where the config passes them on."""
    launch = make_agent("mine", settings(kind, tmp_path), tmp_path, ENVIRON).prepare(context(tmp_path))
    wanted = {"RUN_ID": "r1", "TASK_ID": "a", "ATTEMPT": "2", "ROLE": "worker", "WORKSPACE": str(tmp_path)}
    assert {f"GANGER_{name}": value for name, value in wanted.items()}.items() <= launch.env.items()
    assert "MY_API_KEY" not in launch.env and "OTHER_TOKEN" not in launch.env


def test_a_key_reaches_the_agent_only_when_it_is_named(tmp_path: Path) -> None:
    """T24: env = ["MY_API_KEY"]."""
    launch = command(tmp_path, "", env=("MY_API_KEY",)).prepare(context(tmp_path))
    assert launch.env["MY_API_KEY"] == "canary-1" and "OTHER_TOKEN" not in launch.env


READERS = {
    "stdin": "import sys; print(sys.stdin.read())",
    "argument": "import sys; print(sys.argv[1])",
    "file": "import sys; print(open(sys.argv[1]).read())",
}


@pytest.mark.parametrize("way", READERS)
def test_the_prompt_arrives_whole_by_each_way(tmp_path: Path, way: str) -> None:
    """T24: also quotes, newlines and other scripts; and the capabilities say so."""
    prompt = 'It\'s "done" $(no) `x`\n\n--flag\n中文 \U0001f600'
    agent = command(tmp_path, READERS[way], prompt=way)
    assert called(agent, context(tmp_path, prompt)).code == 0
    assert prompt in (tmp_path / "a.log").read_text()
    able = agent.capabilities
    assert [able.stdin_prompt, able.arg_prompt, able.file_prompt] == [way == name for name in READERS]


def test_without_a_prompt_on_stdin_an_agent_cannot_wait_for_a_person(tmp_path: Path) -> None:
    """T24: stdin is empty, never the terminal."""
    agent = command(tmp_path, "import sys; print(repr(sys.stdin.read()))", prompt="file")
    assert called(agent, context(tmp_path)).code == 0 and (tmp_path / "a.log").read_text() == "''\n"


def test_a_prompt_too_long_for_an_argument_is_named(tmp_path: Path) -> None:
    """T24: with the setting that helps."""
    with pytest.raises(GangerError) as caught:
        command(tmp_path, "", prompt="argument").prepare(context(tmp_path, "x" * 131_072))
    assert caught.value.code == "PROMPT_TOO_LONG" and "stdin" in caught.value.hint


def test_placeholders_are_filled_once_and_never_from_a_value() -> None:
    """T24: a task id cannot smuggle in another placeholder."""
    values = {"{task_id}": "{attempt}", "{attempt}": "2"}
    assert fill("{task_id}-{attempt}-{other}", values) == "{attempt}-2-{other}"


def test_the_prompt_file_is_appended_unless_argv_names_it(tmp_path: Path) -> None:
    """T24: prompt = "file" with and without {prompt_file}."""
    path = str(tmp_path / "prompt.md")
    given = {("tool",): ("tool", path), ("tool", "--in={prompt_file}", "-v"): ("tool", f"--in={path}", "-v")}
    for argv, wanted in given.items():
        agent = make_agent("mine", AgentSettings("command", argv=argv, prompt="file"), tmp_path, ENVIRON)
        assert agent.prepare(context(tmp_path)).argv == wanted


def test_two_runs_of_one_name_mark_their_processes_differently(tmp_path: Path) -> None:
    """T23: ending one never touches the other."""
    agent = command(tmp_path, "")
    one = agent.prepare(context(tmp_path, log_path=tmp_path / "p1/.ganger/r/logs/a.worker.1.log"))
    other = agent.prepare(context(tmp_path, log_path=tmp_path / "p2/.ganger/r/logs/a.worker.1.log"))
    assert one.key != other.key


def test_a_program_that_is_there_but_not_executable_is_not_ready(tmp_path: Path) -> None:
    """T24: said before a run, not by a crash in it."""
    (tmp_path / "agent.sh").write_text("#!/bin/sh\n")
    health = make_agent("mine", AgentSettings("command", argv=("./agent.sh",)), tmp_path, ENVIRON).healthcheck()
    assert not health.ready and "chmod +x" in health.details[0]


@pytest.mark.parametrize(
    ("given", "code"),
    [
        (AgentSettings("telepathy"), "UNKNOWN_AGENT_KIND"),
        (AgentSettings("command"), "MISSING_REQUIRED_FIELD"),
        (AgentSettings("scripted"), "MISSING_REQUIRED_FIELD"),
    ],
)
def test_a_section_that_makes_no_agent_is_refused_at_its_place(tmp_path: Path, given: AgentSettings, code: str) -> None:
    """T24: the fault names agents.mine."""
    with pytest.raises(InputError) as caught:
        make_agent("mine", given, tmp_path, ENVIRON)
    assert caught.value.code == code and caught.value.faults[0].path.startswith("agents.mine.")


# --- the scripted agent ----------------------------------------------------------------------------------------------


def play(root: Path, script: object, attempt: int = 1) -> tuple[Exit, str]:
    (root / "script.json").write_text(json.dumps(script))
    agent = make_agent("mine", AgentSettings("scripted", script="script.json"), root, ENVIRON)
    ended = called(agent, context(root, attempt=attempt))
    return ended, (root / "a.log").read_text()


@pytest.mark.whole
def test_a_script_gives_each_attempt_its_own_behaviour_and_repeats_the_last(tmp_path: Path) -> None:
    """T24: a list has one entry per attempt."""
    script = {"tasks": {"a": [{"text": "first"}, {"text": "second"}]}}
    assert [play(tmp_path, script, attempt=n)[1].strip() for n in (1, 2, 5)] == ["first", "second", "second"]


def test_steps_of_a_list_run_in_their_order_until_exit(tmp_path: Path) -> None:
    """T24: text, error, prompt, files, block, then the code."""
    steps = [
        {"text": "one"},
        {"error": "two"},
        {"echo_prompt": True},
        {"files": {"d/f.txt": "x"}},
        {"exit": 7},
        {"text": "no"},
    ]
    ended, log = play(tmp_path, {"tasks": {"a": [steps]}})
    assert (ended.code, log) == (7, "one\ntwo\nDo it.") and (tmp_path / "d/f.txt").read_text() == "x"


def test_a_scripted_agent_can_crash_by_any_signal(tmp_path: Path) -> None:
    """T24: by name."""
    assert play(tmp_path, {"default": {"crash": "SIGABRT"}})[0].signal == 6


def test_files_of_the_workspace_cannot_replace_the_agents_modules(tmp_path: Path) -> None:
    """T24: a task may well write a json.py or a ganger folder."""
    (tmp_path / "json.py").write_text("raise SystemExit('hijacked')")
    (tmp_path / "ganger").mkdir()
    (tmp_path / "ganger" / "__init__.py").write_text("raise SystemExit('hijacked')")
    ended, log = play(tmp_path, {"default": {"result": "DONE"}})
    assert ended.code == 0 and "hijacked" not in log


BAD_SCRIPTS = [
    ("[]", "a script is an object"),
    ('{"tusks": {}}', "a script is an object"),
    ("{", "not a valid script"),
    ('{"tasks": {"a": []}}', "tasks.a is empty"),
    ('{"tasks": {"a": [3]}}', "tasks.a[0] must be an object"),
    ('{"tasks": {"a": {"dance": 1}}}', "tasks.a[0].dance: unknown behaviour"),
    ('{"tasks": {"a": {"delay": "long"}}}', "tasks.a[0].delay"),
    ('{"tasks": {"a": {"delay": -1}}}', "tasks.a[0].delay"),
    ('{"tasks": {"a": {"delay": true}}}', "tasks.a[0].delay"),
    ('{"tasks": {"a": {"crash": "SIGNOTHING"}}}', "tasks.a[0].crash"),
    ('{"default": [[{"text": "x"}, {"exit": "0"}]]}', "default[0][1].exit"),
]


@pytest.mark.parametrize(("text", "words"), BAD_SCRIPTS)
def test_a_script_that_cannot_be_played_names_its_place(tmp_path: Path, text: str, words: str) -> None:
    """T24: before the run, by `healthcheck`; no traceback in the middle of it."""
    path = tmp_path / "script.json"
    path.write_text(text)
    with pytest.raises(ScriptProblem) as caught:
        load_script(path)
    assert words in str(caught.value) and str(path) in str(caught.value)


def test_a_script_may_be_written_in_toml(tmp_path: Path) -> None:
    """T24: the same behaviours."""
    path = tmp_path / "script.toml"
    path.write_text('[[tasks.a]]\ntext = "hi"\nresult = "DONE"\n')
    assert [step.key for step in load_script(path).steps("a", 1)] == ["text", "result"]
