"""Why an attempt has no result, from what its agent's output said: one table for every kind of agent."""

from __future__ import annotations

from dataclasses import dataclass

from ganger.core.signs import Heard, Over
from ganger.core.vocabulary import FailureClass

MOST_DENIALS = 2
# How long an agent may retry by itself before Ganger ends it and uses its own clocks.
LONGEST_WAIT_SEC = 60.0
LONGEST_RETRYING_SEC = 150.0
_TOO_MANY_REQUESTS = 429
_SHORT = 240


@dataclass(frozen=True, slots=True)
class AgentError:
    """`reset_at` is when a limit ends, where that is known. `empty`: the account needs money first. `refused`: its key
    or login was refused, so no agent of its account can work."""

    failure_class: FailureClass
    signal: str
    detail: str
    reminder: str = ""
    reset_at: float | None = None
    empty: bool = False
    refused: bool = False


def trouble_of(heard: Heard, *, cut_short: bool, timed_out: bool = False) -> AgentError | None:
    """`cut_short`: the agent was ended or ran out of time, so what it was retrying then explains its end.

    `timed_out`: what it said as it was ended does not explain why it ran out of time.
    """
    if heard.login:
        return AgentError(
            FailureClass.BLOCKED_EXTERNAL,
            "login",
            f"the agent has no valid login or key: {_short(heard.login)}; ganger agents --check says what to do",
            refused=True,
        )
    limited = _limit(heard, cut_short)
    if limited is not None:
        return limited
    if heard.denied:
        return _denial(heard)
    if heard.over is not None and heard.over.how in _ENDS and not timed_out:
        return _ENDS[heard.over.how](heard.over)
    if cut_short and heard.retrying is not None:
        return _network(Over("network", heard.retrying.text))
    return None


def is_over_for_good(heard: Heard) -> bool:
    """Whether its session can never continue: it does not exist, or the model does not accept it."""
    return heard.over is not None and heard.over.how in ("no_session", "unfit")


def is_broken(heard: Heard) -> bool:
    """Whether a working conversation became inconsistent; the same work may succeed in a new one."""
    return heard.over is not None and heard.over.broken and heard.has_worked


def refused_session(heard: Heard) -> str:
    """Why a session could not be continued, in its program's own words; empty if it could.

    A session that made no progress and only says that it failed would fail the same way again.
    """
    over = heard.over
    if over is None or heard.login or heard.limited is not None:
        return ""
    if is_over_for_good(heard) or (over.how == "error" and not heard.has_worked):
        return _short(over.text) or "it does not say why"
    return ""


def _limit(heard: Heard, cut_short: bool) -> AgentError | None:
    limited, retrying = heard.limited, heard.retrying
    if limited is not None and (limited.final or cut_short):
        return AgentError(
            FailureClass.QUOTA,
            "quota" if not limited.empty else "account empty",
            f"the agent's account is {'empty' if limited.empty else 'at its limit'}: {_short(limited.text)}",
            reset_at=limited.reset_at,
            empty=limited.empty,
        )
    if cut_short and retrying is not None and retrying.status == _TOO_MANY_REQUESTS:
        return AgentError(FailureClass.QUOTA, "quota", f"the agent's account is at its limit: {_short(retrying.text)}")
    return None


def _denial(heard: Heard) -> AgentError:
    last = heard.denied[-1]
    named = f"{last.tool} ({last.about})" if last.about else last.tool
    times = f"{len(heard.denied)} times, last " if len(heard.denied) > 1 else ""
    if all(denied.rule for denied in heard.denied):
        detail = f"the agent tried to leave its workspace: {times}{named}"
        note = f"{named} is outside the folder you may work in. Stay inside the workspace."
        return AgentError(FailureClass.POLICY_VIOLATION, f"outside: {last.tool}", detail, note)
    return AgentError(
        FailureClass.PERMISSION_DENIED,
        last.tool,
        f'the agent was refused a tool: {times}{named}; allow it with permissions = "full" or the agent\'s own args',
    )


def _network(over: Over) -> AgentError:
    return AgentError(
        FailureClass.TRANSIENT_INFRA, "model unreachable", f"no answer from the agent's model: {_short(over.text)}"
    )


def _refused(over: Over) -> AgentError:
    note = "The model refused this task before. Do the parts that can be done; in the summary, say what cannot and why."
    return AgentError(FailureClass.PROMPT_GAP, "refused", f"the model refused the task: {_short(over.text)}", note)


def _length(over: Over) -> AgentError:
    note = "Your last answer was cut off because it was too long. Write files with your tools, keep the answer short."
    detail = f"the answer was cut at the model's length limit: {_short(over.text)}"
    return AgentError(FailureClass.CONTRACT_ERROR, "cut off", detail, note)


def _turns(over: Over) -> AgentError:
    return AgentError(FailureClass.TIMEOUT, "turns", f"the agent reached its own limit: {_short(over.text)}")


def _budget(over: Over) -> AgentError:
    return AgentError(
        FailureClass.BLOCKED_EXTERNAL, "agent's budget", f"the agent's own budget is used up: {_short(over.text)}"
    )


def _unfit(over: Over) -> AgentError:
    """A new conversation may fix this; if its first prompt was refused, only a shorter or clearer task can."""
    detail = f"the model does not accept the conversation: {_short(over.text)}"
    return AgentError(FailureClass.PROMPT_GAP, "conversation refused", detail)


def _usage(over: Over) -> AgentError:
    detail = f"the agent program does not accept its arguments or settings: {_short(over.text)}; ganger agents --check"
    return AgentError(FailureClass.BLOCKED_EXTERNAL, "usage", detail)


_ENDS = {
    "network": _network,
    "refused": _refused,
    "length": _length,
    "turns": _turns,
    "budget": _budget,
    "unfit": _unfit,
    "usage": _usage,
}


def _short(text: str) -> str:
    """Programs add links and advice that do not help here."""
    flat = " ".join(text.split())
    return flat if len(flat) <= _SHORT else f"{flat[: _SHORT - 1]}…"
