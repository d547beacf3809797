"""Accounts whose key, login or credit was refused: their workers wait, one question is asked, one worker tries.

Rate limits belong to `quota`: they end by themselves and need no question.
"""

from __future__ import annotations

from ganger.core import events as ev
from ganger.core.command_result import Effect, counted
from ganger.core.model.records import Question
from ganger.core.model.run_state import RunState
from ganger.core.scheduling.quota import ACCOUNT, account_of, question_about
from ganger.core.state.apply_delivery import rules_of
from ganger.core.vocabulary import BlockReason, TaskStatus

_COMES_BACK = frozenset({BlockReason.EXTERNAL, BlockReason.QUOTA_WAIT})


def needs_answer(state: RunState, account: str) -> bool:
    """Whether no worker of the account can start before a person has done something."""
    return state.quota.shut.get(account) == 0.0


def after_refusal(state: RunState, account: str, why: str, text: str, until: float = 0.0) -> list[ev.Event]:
    """Its key, login or credit was refused: only the first worker to meet this asks. `until`: see `AccountShut`."""
    events: list[ev.Event] = [ev.AccountShut(account, why, until)]
    if question_about(state, account) is None:
        events.append(ev.QuestionAsked("", "", ACCOUNT, text, account=account))
    return events


def after_doubtful_refusal(state: RunState, task: str, why: str, text: str) -> list[ev.Event]:
    """The words on a screen may come from a model: if another worker of the account has finished its task, another one
    tries first. Only if that one is refused as well, the account rests and a person is asked."""
    account = state.tasks[task].attempt.account
    others = [name for name, other in state.tasks.items() if name != task and other.attempt.account == account]
    worked = any(state.tasks[name].status is TaskStatus.DONE for name in others)
    if not worked or any(_waits_for(state, name, account) for name in others):
        return after_refusal(state, account, why, text)
    tried = "it worked before in this run, so another worker tries before you are asked"
    return [ev.AccountShut(account, why, 0.0), ev.AccountTried(account, tried)]


def answer_account(state: RunState, question: Question, text: str) -> Effect:
    """Whatever the answer says, it means that the account is worth another try."""
    account = question.account
    back = [name for name in state.index.by_rank if _waits_for(state, name, account)]
    events: list[ev.Event] = [ev.QuestionAnswered(question.id, text)]
    if account in state.quota.shut:
        events.append(ev.AccountTried(account, f"{question.id} was answered"))
    events += [ev.TaskRequeued(name, f"{question.id} was answered: account {account} is tried again") for name in back]
    then = f"one worker of account {account} tries it, the others follow when it works"
    waiting = f"; {counted(len(back), 'task')} it was refused to may run again" if back else ""
    return Effect(f"{question.id} is answered; {then}{waiting}", tuple(events))


def _waits_for(state: RunState, name: str, account: str) -> bool:
    task = state.tasks[name]
    if task.status is not TaskStatus.BLOCKED or task.final or task.block_reason not in _COMES_BACK:
        return False
    return account in (
        task.attempt.account,
        account_of(state, name),
        state.quota.accounts.get(rules_of(state, name).reviewer),
    )
