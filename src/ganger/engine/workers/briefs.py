"""What a worker may ask about its own task, part by part: of other tasks only their names and status, and nothing
secret."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ganger.core.control.questions import answers_of
from ganger.core.names import prompt_file
from ganger.core.vocabulary import Mode
from ganger.engine.prompts.assemble import TextReader, checkpoint_text, contract_text, edits_files, file_text
from ganger.engine.resources.run_resources import RunResources
from ganger.engine.workers.handoff import ci_brief, plan_brief, repo_brief
from ganger.errors import NotFoundError


def sections(tools: RunResources, task: str) -> list[str]:
    """The names of the available parts."""
    state = tools.journal.state.tasks[task]
    has = {"context": bool(tools.journal.state.specs[task].context_refs), "checkpoint": state.checkpoint is not None}
    has |= {"reminder": bool(state.next_start.reminder), "answers": bool(state.next_start.hints)}
    has |= {
        "ci": state.delivery is not None and bool(state.delivery.pushed),
        "repo": tools.journal.state.mode is not Mode.DIRECT,
    }
    return [name for name in _SECTIONS if has.get(name, True)]


def section_of(tools: RunResources, task: str, name: str) -> str:
    return tools.masked(_SECTIONS[name](tools, task))


def _prompt(tools: RunResources, task: str) -> str:
    """The whole prompt, as it was written for this attempt."""
    path = tools.folder.path / prompt_file(task, tools.journal.state.tasks[task].attempts)
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise NotFoundError(f"the prompt of {task} no longer exists: {error.strerror}") from error


def _task(tools: RunResources, task: str) -> str:
    return file_text(_reader(tools, task), tools.journal.state.specs[task].prompt_ref)


def _context(tools: RunResources, task: str) -> str:
    spec, reader = tools.journal.state.specs[task], _reader(tools, task)
    return "\n\n".join(f"## {ref}\n\n{file_text(reader, ref)}" for ref in spec.context_refs)


def _reader(tools: RunResources, task: str) -> TextReader:
    state = tools.journal.state
    return tools.overlay.reader(task, [state.healing.patches[name] for name in state.tasks[task].healing.patches])


def _verify(tools: RunResources, task: str) -> str:
    """The commands that will judge it."""
    return "\n".join(tools.checks.commands(tools.journal.state.specs[task].verify_profile))


def _files(tools: RunResources, task: str) -> str:
    spec = tools.journal.state.specs[task]
    rows = {"create": spec.creates, "modify": spec.modifies, "expected": spec.expected}
    rows |= {"read": spec.reads} if spec.reads else {}
    lines = [f"{name}: {', '.join(paths) or 'none'}" for name, paths in rows.items() if paths is not None]
    return "\n".join(lines)


def _contract(tools: RunResources, task: str) -> str:
    state = tools.journal.state
    worker = state.tasks[task].worker
    pulled = worker is not None and worker.pulled
    agent = tools.agent_of(state.specs[task], state.tasks[task], state.policy)
    return contract_text(task, writes=not (pulled or edits_files(agent.capabilities)))


def _checkpoint(tools: RunResources, task: str) -> str:
    known = tools.journal.state.tasks[task].checkpoint
    return "" if known is None else checkpoint_text(known)


def _reminder(tools: RunResources, task: str) -> str:
    return tools.journal.state.tasks[task].next_start.reminder


def _answers(tools: RunResources, task: str) -> str:
    return "\n\n".join(answers_of(tools.journal.state, task))


def _plan(tools: RunResources, task: str) -> str:
    return plan_brief(tools.journal.state, task)


def _repo(tools: RunResources, task: str) -> str:
    return repo_brief(tools.journal.state, task)


def _ci(tools: RunResources, task: str) -> str:
    return ci_brief(tools.journal.state, tools.folder, task)


def _protocol(_tools: RunResources, _task: str) -> str:
    return PROTOCOL


PROTOCOL = """Commands you may run while you work (each with --help):

ganger worker heartbeat --step TEXT --percent N     that you are working, if that takes long without output
ganger worker checkpoint --done A --remaining B     your state, so that another worker can continue
ganger worker escalate CATEGORY MESSAGE --wait 600  a question only a person can answer
ganger worker messages                              messages for you
ganger worker report FILE                           your result block's JSON instead of printing it; then `done`
"""

_SECTIONS: Mapping[str, Callable[[RunResources, str], str]] = {
    "prompt": _prompt,
    "task": _task,
    "context": _context,
    "files": _files,
    "verify": _verify,
    "plan": _plan,
    "repo": _repo,
    "ci": _ci,
    "contract": _contract,
    "checkpoint": _checkpoint,
    "reminder": _reminder,
    "answers": _answers,
    "protocol": _protocol,
}
