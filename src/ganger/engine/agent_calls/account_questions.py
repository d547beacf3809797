"""The question a person gets when an account's key, login or credit was refused."""

from __future__ import annotations

from ganger.core.times import stamp
from ganger.ports.agents import Agent
from ganger.ports.keys import Keyed


def question_text(agent: Agent, account: str, detail: str, until: float = 0.0) -> str:
    """Which key was refused, what the agent said, what to do and what follows the answer."""
    used = agent.credentials() if isinstance(agent, Keyed) else ""
    hint = agent.login_hint if isinstance(agent, Keyed) else ""
    who = f"account {account} (agent {agent.name}, {agent.kind}{f', {used}' if used else ''})"
    mend = "pay, or name another account" if until else hint or "give it a valid key or login"
    waits = f"tried again by itself at {stamp(until)}" if until else "nothing of it starts until this is answered"
    return (
        f"{who}: {detail}; {waits}. To continue: {mend}; variables are read when `ganger run` starts, so if you "
        "change one, run it again; otherwise answer, and one worker tries first"
    )
