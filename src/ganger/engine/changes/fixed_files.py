"""Checks git's settings and installed packages while agents work in the project's folder; restores and reports changes.

No task may change them. Refs are never touched: one that moved may be a person's own commit, so a person is asked.
"""

from __future__ import annotations

from ganger.core import events as ev
from ganger.core.control.answers import OPTIONS, PACKAGES, PACKAGES_SIGNAL, REFS
from ganger.core.names import saved_folder
from ganger.core.vocabulary import FailureClass
from ganger.engine.attempt_context import Failed, RunningAttempt
from ganger.engine.changes.shared_folder import SharedFolder
from ganger.engine.resources.run_resources import one_line
from ganger.errors import WriteRefused

_REMOTES = "refs/remotes/"
_NAMED = 10


class Upkeep:
    def __init__(self, case: RunningAttempt, company: SharedFolder) -> None:
        self.case, self.company, self.journal = case, company, case.tools.journal
        self._looked = False

    def look_again(self) -> None:
        """From now on, a process of this attempt runs in the folder."""
        self._looked = False

    def require_sound(self) -> None:
        """No agent starts and no check runs while changed packages could not be restored."""
        for question in self.case.state.inbox.questions.values():
            if question.kind == PACKAGES and question.answer is None:
                detail = f"{question.text} (ganger answer {question.id} 1 continues)"
                raise self.case.failed(FailureClass.BLOCKED_EXTERNAL, PACKAGES_SIGNAL, detail)

    async def mend(self) -> tuple[str, ...]:
        """Restores and reports what was changed since this attempt last ran a process; returns what an agent is
        responsible for."""
        case, fixed = self.case, self.case.tools.fixed
        if fixed is None or self._looked or not self._is_known():
            return ()
        found = fixed.look()
        self._looked = True
        if found.refs:
            await self._tell(found.refs)
        if found.is_nothing:
            return ()
        name = f"{saved_folder(case.task, case.number)}.fixed"
        left = fixed.put_back(found, case.tools.folder.path / name)
        if not found.paths:
            return ()
        shown = tuple(one_line(path) for path in (found.grave or found.paths)[: 5 * _NAMED])
        told: list[ev.Event] = [ev.FixedRestored(shown, name, self.company.tasks, left[: 5 * _NAMED])]
        if left and not self._asked(PACKAGES):
            text = (
                f"installed packages or git's settings were changed while {', '.join(self.company.tasks)} ran, and "
                f"cannot be restored: {_listed(left)}. Install them again, or correct them by hand"
            )
            told.append(ev.QuestionAsked("", "", PACKAGES, text, options=OPTIONS[PACKAGES]))
        await self.journal.record(*told)
        return found.grave

    async def require_untouched(self) -> None:
        """The same; fails an attempt that was alone in the folder."""
        try:
            grave = await self.mend()
        except WriteRefused as refused:
            raise self.case.refused(refused) from refused
        if grave and self.company.is_alone(self.case.task):
            raise self._violation(grave)
        self.require_sound()

    def _violation(self, paths: tuple[str, ...]) -> Failed:
        place = f"{saved_folder(self.case.task, self.case.number)}.fixed"
        what = f"git's settings or installed packages were changed: {_listed(paths)}"
        detail = f"FIXED_CHANGED: {what}; they were restored, and what was found is in {place}"
        note = (
            f"The change was not accepted: git's settings or installed packages were changed: {_listed(paths, 40)} "
            "(FIXED_CHANGED). Leave .git and installed packages as they are."
        )
        problem = self.case.failed(FailureClass.POLICY_VIOLATION, f"FIXED_CHANGED {_listed(paths)}", detail, note)
        problem.refused = True
        return problem

    async def _tell(self, moves: tuple[str, ...]) -> None:
        """Where the sandbox keeps agents out of git's folder, it was no agent, and no question is needed."""
        tasks = self.company.tasks
        told: list[ev.Event] = [ev.RefsMoved(moves[: 5 * _NAMED], tasks)]
        own = tuple(move for move in moves if _REMOTES not in move)
        fixed = self.case.tools.fixed
        if own and tasks and not (fixed is not None and fixed.walled) and not self._asked(REFS):
            text = (
                f"refs moved while {', '.join(tasks)} ran, and Ganger moved none: {_listed(own)}. Was it you? If not, "
                "look at them (git reflog, git log) and restore them yourself (git update-ref): Ganger never does"
            )
            told.append(ev.QuestionAsked("", "", REFS, text, options=OPTIONS[REFS]))
        await self.journal.record(*told)

    def _asked(self, kind: str) -> bool:
        return any(q.kind == kind and q.answer is None for q in self.case.state.inbox.questions.values())

    def _is_known(self) -> bool:
        """Compares an earlier lead's attempt that is not resumed with what it started from."""
        if self.case.task in self.company.tasks:
            return True
        if self.case.again and not self.company.tasks and self.case.tools.fixed is not None:
            self.case.tools.fixed.resume()
            return True
        return False


def _listed(paths: tuple[str, ...], most: int = _NAMED) -> str:
    more = f" and {len(paths) - most} more" if len(paths) > most else ""
    return ", ".join(one_line(path, 200) for path in paths[:most]) + more
