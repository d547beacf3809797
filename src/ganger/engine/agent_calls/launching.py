"""How an agent is started, as worker, healer or reviewer: its home, its settings there, and its sandbox."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from ganger.engine.resources.run_resources import RunResources
from ganger.errors import GangerError
from ganger.ports.agents import Agent, AttemptContext
from ganger.ports.processes import Launch
from ganger.ports.sandbox import Room
from ganger.ports.sessions import SessionRepair

REPORT = "GANGER_REPORT"


def at_home(tools: RunResources, agent: Agent, task: str, context: AttemptContext) -> AttemptContext:
    """The context with the places an agent has besides its workspace; an agent that only prints an answer has none."""
    walled = tools.sandbox.name != "none"
    if not agent.capabilities.stream:
        return replace(context, walled=walled)
    home = tools.homes.of(task, agent.name)
    return replace(context, walled=walled, home=home, shared=tools.homes.share(agent.kind))


def confined(tools: RunResources, agent: Agent, context: AttemptContext, room: Room) -> Launch:
    """Everything is ready when this returns; raises GangerError for what prevents the start."""
    launch, files, own = _called(agent, context)
    room = replace(room, readable=(*room.readable, context.prompt_file))
    if context.home is not None and context.shared is not None:
        tools.homes.furnish(context.home, files, _owner(room), fresh=not context.session, own=own)
        readable, writable = (*room.readable, context.shared), (*room.writable, context.home)
        room = replace(room, readable=readable, writable=writable, home=context.home)
    launch = _with_program(tools, launch) if REPORT in context.environment else launch
    return replace(tools.sandbox.confine(launch, room), output_limit_bytes=tools.output_limit_bytes)


def _with_program(tools: RunResources, launch: Launch) -> Launch:
    """`ganger worker` comes first on its PATH, whatever else the sandbox hides."""
    if tools.worker_program is None:
        return launch
    path = launch.env.get("PATH", "/usr/bin:/bin")
    return replace(launch, env={**launch.env, "PATH": f"{tools.worker_program.folder}{os.pathsep}{path}"})


def reporting(tools: RunResources, fence: str, desk: Path) -> dict[str, str]:
    """The variables by which a worker reaches its lead; none if no lead listens."""
    if tools.endpoint is None or tools.badges is None:
        return {}
    return {REPORT: str(tools.endpoint.socket), "GANGER_TOKEN": tools.badges.worker(fence), "GANGER_DESK": str(desk)}


def with_desk(tools: RunResources, room: Room, desk: Path) -> Room:
    """The room with the way to the lead: its socket, the worker's own desk, and the program that uses both."""
    if tools.endpoint is None:
        return room
    program = (tools.worker_program.folder, *tools.worker_program.needs) if tools.worker_program is not None else ()
    return replace(
        room,
        writable=(*room.writable, desk),
        readable=(*room.readable, tools.endpoint.socket.parent, *program),
    )


def _called(agent: Agent, context: AttemptContext) -> tuple[Launch, Mapping[str, bytes], Mapping[str, bytes]]:
    """An adapter may come from a plugin: what it raises concerns the task, never the run."""
    home = context.home if context.session else None
    try:
        own = agent.repaired(home, context.session) if home is not None and isinstance(agent, SessionRepair) else {}
        return agent.prepare(context), agent.furnish(context), own
    except GangerError:
        raise
    except Exception as error:
        message = f"agent {agent.name}: its adapter {agent.kind!r} cannot say how to call it: {error!r}"
        raise GangerError(message, hint="ganger agents --check", code="ADAPTER_FAILED") from error


def _owner(room: Room) -> tuple[int, int] | None:
    return owner_of(room.writable[0]) if room.writable else None


def owner_of(folder: Path) -> tuple[int, int] | None:
    """The owner of the place where it works: the user that it is inside the sandbox."""
    if os.geteuid() != 0:
        return None
    found = folder.stat()
    return found.st_uid, found.st_gid


def forget_login(tools: RunResources, context: AttemptContext) -> None:
    """What was put into its home is there only while it works."""
    if context.home is not None:
        tools.homes.forget(context.home)
