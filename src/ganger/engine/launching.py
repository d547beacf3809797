"""How an agent is started, whoever it works for: its home, its settings in it, and the walls around it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace

from ganger.engine.tools import Tools
from ganger.errors import GangerError
from ganger.ports import Agent, AttemptContext, Launch, Room


def at_home(tools: Tools, agent: Agent, task: str, context: AttemptContext) -> AttemptContext:
    """The context with the places the agent has besides its workspace. One that prints only its answer needs none."""
    walled = tools.sandbox.name != "none"
    if not agent.capabilities.stream:
        return replace(context, walled=walled)
    home = tools.homes.of(task, agent.name)
    return replace(context, walled=walled, home=home, shared=tools.homes.share(agent.kind))


def confined(tools: Tools, agent: Agent, context: AttemptContext, room: Room) -> Launch:
    """Everything is ready when this returns; raises GangerError for what stands in the way."""
    launch, files = _called(agent, context)
    room = replace(room, readable=(*room.readable, context.prompt_file))
    if context.home is not None and context.shared is not None:
        tools.homes.furnish(context.home, files, _owner(room), fresh=not context.session)
        readable, writable = (*room.readable, context.shared), (*room.writable, context.home)
        room = replace(room, readable=readable, writable=writable, home=context.home)
    return replace(tools.sandbox.confine(launch, room), output_limit_bytes=tools.output_limit_bytes)


def _called(agent: Agent, context: AttemptContext) -> tuple[Launch, Mapping[str, bytes]]:
    """An adapter may be anybody's: what it raises concerns the task, never the run."""
    try:
        return agent.prepare(context), agent.furnish(context)
    except GangerError:
        raise
    except Exception as error:
        message = f"agent {agent.name}: its adapter {agent.kind!r} cannot say how to call it: {error!r}"
        raise GangerError(message, hint="ganger agents --check", code="ADAPTER_FAILED") from error


def _owner(room: Room) -> tuple[int, int] | None:
    """Whoever owns the place where it works: that is who it is inside the walls."""
    if os.geteuid() != 0 or not room.writable:
        return None
    found = room.writable[0].stat()
    return found.st_uid, found.st_gid


def forget_login(tools: Tools, context: AttemptContext) -> None:
    """What was put into its home is there only while it works."""
    if context.home is not None:
        tools.homes.forget(context.home)
