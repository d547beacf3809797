"""Direct mode: an attempt that works in the project's own folder.

Changes are the `writes` of the answer, edits by the agent itself, or both. Those that do not pass are undone: writes
from their backup, edits from the baseline. An error in between leaves both as they are, for the next lead.
"""

from __future__ import annotations

import contextlib
import secrets
import shutil
import tempfile
from pathlib import Path

from ganger.contracts.task_result import TaskResult
from ganger.contracts.verify_profile import Profile
from ganger.core import events as ev
from ganger.core.model.records import Ended
from ganger.core.names import backup_folder, edits_folder, saved_folder
from ganger.core.scheduling.quota import after_success
from ganger.core.vocabulary import AttemptStep, FailureClass, TaskStatus
from ganger.engine.attempt_context import Failed, Lost, RunningAttempt
from ganger.engine.change_strategy import FoundWork, Reader
from ganger.engine.changes.fixed_files import Upkeep
from ganger.engine.changes.shared_folder import SharedFolder
from ganger.engine.resources.run_resources import one_line
from ganger.engine.verification.checks import recorded_verdict, why_red
from ganger.engine.verification.direct_census import DirectCensuses, Edit
from ganger.engine.verification.proof import Proof
from ganger.engine.verification.steps import Verdict, VerificationLost
from ganger.errors import RollbackFailed, WriteRefused
from ganger.local.scratch import prefix
from ganger.ports.changes import Change
from ganger.ports.sandbox import Room


class DirectChanges:
    def __init__(self, case: RunningAttempt, company: SharedFolder) -> None:
        self.case, self.tools, self.company = case, case.tools, company
        self.upkeep = Upkeep(case, company)
        backup = case.now.attempt.backup
        self.backup: Path | None = self.tools.folder.path / backup if backup else None
        self.lost_changes = ""
        self.lost_work = False
        self._wrote: tuple[str, ...] = ()
        self._judged: Change | None = None
        self._made: frozenset[str] = frozenset()
        self._edited = self._rolled_back = False
        self._writes_only = case.now.attempt.backup != ""

    @property
    def past_agent(self) -> bool:
        return self.backup is not None

    @property
    def keeps_answer(self) -> bool:
        """Edits in the folder are undone, and without them an answer is incomplete."""
        return not self._edited

    @property
    def keeps_work(self) -> bool:
        """Edits of an unfinished attempt in the project's folder are undone, so its session would rely on work that is
        gone."""
        return False

    @property
    def found_work(self) -> FoundWork:
        return "whole" if self._profile.rollback_on_failure is False else "undone"

    async def enter(self) -> Path:
        await self._join(again=self.case.again)
        return self.tools.workspace.root

    async def _join(self, *, again: bool) -> None:
        self.upkeep.require_sound()
        await self.company.admitted()
        moved = self.company.enter(self.case.task, again=again)
        if moved:
            self.tools.journal.mention("", "", ev.RefsMoved(moved))

    def room(self, folder: Path) -> Room:
        """An agent may not write to what the checks run with, even where that is inside the project."""
        return Room(writable=(folder,), fixed=self._fixed_folders())

    def _fixed_folders(self) -> tuple[Path, ...]:
        return () if self.tools.fixed is None else self.tools.fixed.folders()

    async def go_on(self, read: Reader) -> None:
        """Resumes where files were about to change: completes or undoes the change by hash, then verifies."""
        assert self.backup is not None
        await self._join(again=True)
        self.company.answered(self.case.task)
        self.recall_verdict()
        # Taken before anything is awaited: no one else may touch files that are half written.
        async with self.tools.turns.take(alone=True):
            landed = self.tools.workspace.landed(self.backup)
            if not landed:
                result = await read(self.case.now.attempt.ended or Ended(code=0))
                if landed is None:
                    await self.undo("half of the change was written when the lead died")
                    if self.lost_changes:
                        raise self.case.failed(FailureClass.FATAL, "backup missing", self.lost_changes)
                await self._write(result)
            elif self.case.now.attempt.step == AttemptStep.WRITE:
                self.case.record(ev.WritesApplied(self.case.task, self.case.number))
            self.case.gate.check()
            await self.upkeep.require_untouched()
            if not await self._verify():
                await self._verify_in_quiet()

    def recall_verdict(self) -> None:
        """Raises the failure of a verification whose outcome is recorded but was not acted on yet."""
        if self.case.now.attempt.step == AttemptStep.VERIFIED:
            verdict = recorded_verdict(self.case.now, self._profile)
            log = self.tools.folder.path / self.case.verify_log
            profile = self.case.spec.verify_profile
            raise self._red(self.tools.checks.explained(verdict, profile, log, self.tools.workspace.root))

    async def deliver(self, result: TaskResult) -> None:
        """From the agent's answer to the verdict."""
        self.company.answered(self.case.task)
        await self.upkeep.require_untouched()
        # An agent that submits writes did not edit the files meanwhile, unless its role edits in place.
        edits_itself = not result.writes or self.case.spec.role in self.case.state.files.in_place_roles
        self._writes_only = not edits_itself
        alone = self.company.is_alone(self.case.task) and edits_itself
        edits = self.company.edits() if alone else None
        edited = edits is not None and bool(edits.touched)
        changing = bool(result.writes) or edited
        async with self.tools.turns.take(alone=changing):
            self.case.gate.check()
            if edits is not None and edited:
                await self._judge(edits)
            if result.writes:
                await self._write(result)
            foreign = not alone and await self._restore_gates()
            await self._expect()
            settled = await self._verify(foreign=foreign)
            if not settled and changing:
                await self._verify_in_quiet()
        if not settled and not changing:
            async with self.tools.turns.take(alone=True):
                await self._verify_in_quiet()

    async def _judge(self, edits: Change) -> None:
        paths = tuple(touched.path for touched in edits.touched)
        self._edited, self._judged = True, edits
        await self.case.record(ev.EditsSeen(self.case.task, self.case.number, paths))
        assert self.tools.watch is not None
        try:
            self.tools.watch.judge(edits, self.case.rules)
            summary = self.tools.folder.path / edits_folder(self.case.task, self.case.number)
            self.tools.watch.save(edits, summary, contents=False)
        except WriteRefused as refused:
            raise self.case.refused(refused) from refused

    async def _restore_gates(self) -> bool:
        """Whether the folder holds edits that belong to no attempt."""
        case = self.case
        name = saved_folder(case.task, case.number)
        try:
            restored = self.company.restore_gates(case.rules, self.tools.folder.path / name)
        except WriteRefused as refused:
            raise case.refused(refused) from refused
        if restored.paths:
            await case.record(
                ev.GatesRestored(case.task, case.number, restored.paths),
                ev.WorkSaved(case.task, case.number, name, restored.paths),
            )
        return restored.more

    async def _expect(self) -> None:
        if self.tools.watch is not None and self.case.spec.expected:
            await self.case.expect(self.tools.watch.missing(self.case.rules))

    async def _write(self, result: TaskResult) -> None:
        name = backup_folder(self.case.task, self.case.number)
        folder = self.tools.folder.path / name
        workspace = self.tools.workspace
        try:
            changes = workspace.propose(result.writes or (), self.case.rules)
            workspace.back_up(changes, folder)
            await self.case.record(ev.WritesIntended(self.case.task, self.case.number, name, changes.paths))
            self.backup = folder
            self._wrote = changes.paths
            self.company.wrote(changes.digests)
            workspace.apply(changes, folder)
            self.case.record(ev.WritesApplied(self.case.task, self.case.number))
        except WriteRefused as refused:
            raise self.case.refused(refused) from refused

    async def _verify_in_quiet(self) -> None:
        """No agent works meanwhile, so whatever changes now is changed by the checks."""
        async with self.company.quiet():
            self.case.gate.check()
            self.upkeep.look_again()
            await self.upkeep.require_untouched()
            if not self.company.is_alone(self.case.task):
                await self._restore_gates()
            await self._verify(again=True)

    async def _verify(self, *, foreign: bool = False, again: bool = False) -> bool:
        """False: agents worked during the checks and the folder changed, so the verdict is about a tree that no
        attempt delivers. `foreign`: the folder holds another attempt's edits, which may be unfinished."""
        beside = self.company.beside(self.case.task)
        if not again and beside.at_work and (foreign or self._could_be_forged):
            return False
        marks = () if self._is_kept_alone else self.company.mark()
        verdict = await self._run_checks(again=again)
        self.case.gate.check()
        if not again and self.company.had_others(beside):
            moved = [(path, mark.had(path)) for mark in marks for path in mark.moved()]
            if moved or self._could_be_forged:
                self._made = frozenset(path for path, was_there in moved if not was_there)
                await self._tell_disturbed([path for path, _ in moved])
                return False
        await self._conclude(verdict)
        return True

    @property
    def _is_kept_alone(self) -> bool:
        """No other agent starts beside one whose role edits files."""
        role = self.case.spec.role
        return self.company.is_alone(self.case.task) and role in self.case.state.files.in_place_roles

    @property
    def _could_be_forged(self) -> bool:
        """What the checks print counts, and agents that run beside them can write to their log."""
        listens = bool(self.tools.checks.expected(self.case.spec.verify_profile))
        return listens and not (self.tools.fixed is not None and self.tools.fixed.walled)

    async def _tell_disturbed(self, moved: list[str]) -> None:
        named = ", ".join(one_line(path, 100) for path in moved[:3])
        what = f"while it ran others {f'changed {named}' if named else 'could write its log'}"
        await self.case.record(ev.VerifyRecovered(self.case.task, self.case.number, "all", what))

    async def _run_checks(self, *, again: bool) -> Verdict:
        case = self.case
        case.mention(ev.VerifyStarted(case.task, case.number, case.verify_log))
        self.upkeep.look_again()
        # Compiled files that an agent left beside a test would run instead of it.
        compiled = f"{tempfile.gettempdir()}/{prefix('pycache')}{secrets.token_hex(8)}"
        try:
            return await self.tools.checks.run(
                case.spec.verify_profile,
                folder=self.tools.workspace.root,
                log=self.tools.folder.path / case.verify_log,
                gate=case.gate,
                key=f"{case.verify_key()}{'~' if again else ''}",
                named={"PYTHONPYCACHEPREFIX": compiled},
                fixed=self._fixed_folders(),
                made=self._made,
                proof=self._proof(),
            )
        except VerificationLost:
            raise Lost from None
        finally:
            shutil.rmtree(compiled, ignore_errors=True)

    async def _conclude(self, verdict: Verdict) -> None:
        case = self.case
        await self.upkeep.require_untouched()
        finished = case.finished(verdict)
        if not verdict.passed:
            case.record(*finished)
            raise self._red(verdict)
        if self._censuses is not None:
            await self._censuses.keep(case.spec.verify_profile, verdict.census)
        detail = f"verified by {case.spec.verify_profile} ({len(verdict.steps)} steps)"
        settled = ev.TaskSettled(case.task, TaskStatus.DONE, detail)
        await case.record(*finished, settled, *after_success(case.state, case.now.attempt.account))

    @property
    def _censuses(self) -> DirectCensuses | None:
        tools = self.tools
        return None if tools.copies is None else DirectCensuses(tools.checks, tools.copies, tools.folder.path)

    def _proof(self) -> Proof | None:
        """What the change is compared with: the project without it."""
        if self._censuses is None:
            return None
        originals: dict[str, bytes | None] = {}
        if self._judged is not None:
            edits = self._judged
            originals |= {one.path: edits.before(one.path) if one.before else None for one in edits.touched}
        if self.backup is not None:
            originals |= self.tools.workspace.originals(self.backup)
        edit = Edit(originals, self.case.rules.may_change_gates, self.case.promised)
        return self._censuses.proof(edit, self.case.spec.verify_profile, self.case.gate)

    def _red(self, verdict: Verdict) -> Failed:
        problem = self.case.red(why_red(verdict))
        problem.keep_changes = self._profile.rollback_on_failure is False
        return problem

    @property
    def _profile(self) -> Profile:
        return self.tools.checks.profiles[self.case.spec.verify_profile]

    async def undo(self, why: str, *, keep_place: bool = False, refused: bool = False) -> None:
        """Restores writes from their backup and edits from the baseline; `lost_changes` says what cannot be
        restored."""
        self.company.answered(self.case.task)
        await self.upkeep.mend()
        if self.backup is not None and not self._rolled_back:
            before = self._differing()
            try:
                foreign = self.tools.workspace.roll_back(self.backup)
            except RollbackFailed as problem:
                if problem.code != "BACKUP_MISSING":
                    raise
                self.lost_changes = problem.message
                return
            if foreign:
                place = self.backup.with_name(f"{self.backup.name}.saved")
                why = f"{why}; someone else had changed {', '.join(foreign)}: saved in {place}"
            self.company.unwrote(self._wrote)
            # What an earlier lead wrote is part of the baseline: undoing it is no one's edit.
            self.company.wrote({path: now for path, now in self._differing().items() if before.get(path) != now})
            case = self.case
            self.case.record(ev.WritesRolledBack(case.task, case.number, one_line(why), case.verify_log))
            self._rolled_back = True
        await self._undo_edits()

    def _differing(self) -> dict[str, str]:
        """Paths that differ from the baseline, with their contents; for changes that an earlier lead began."""
        edits = self.company.edits() if self.case.again else None
        return {} if edits is None else {one.path: one.after.digest if one.after else "" for one in edits.touched}

    async def _undo_edits(self) -> None:
        watch, case = self.tools.watch, self.case
        if watch is None or self._writes_only or not self.company.is_alone(case.task):
            return
        edits = watch.changed({})
        paths = tuple(touched.path for touched in edits.touched)
        if paths:
            name = saved_folder(case.task, case.number)
            watch.save(edits, self.tools.folder.path / name)
            seen = [] if self._edited else [ev.EditsSeen(case.task, case.number, paths)]
            self._edited = True
            await case.record(*seen, ev.WorkSaved(case.task, case.number, name, paths))
        left = watch.undo(edits)
        if left:
            self.lost_changes = f"edits that cannot be put back: {', '.join(left[:10])}"

    def leave_as_it_is(self, why: str) -> None:
        """Keeps the originals where no later lead removes them."""
        self.lost_changes = f"what it changed could not be put back: {why}"
        if self.backup is not None:
            kept = self.backup.with_name(f"{self.backup.name}.originals.saved")
            with contextlib.suppress(OSError):
                self.backup.rename(kept)
                self.lost_changes += f"; the originals are in {kept}"
            self.backup = None

    async def leave(self) -> None:
        """Runs after the verdict is recorded. A backup that cannot be removed does no harm; the next lead tries
        again."""
        if self.backup is not None:
            with contextlib.suppress(WriteRefused):
                self.tools.workspace.discard(self.backup)
            self.backup = None
        try:
            await self.upkeep.mend()
        finally:
            # Others wait until no one works here any more.
            behind = self.company.leave(self.case.task)
        if behind is not None and behind.touched:
            self._put_aside(behind)

    def _put_aside(self, behind: Change) -> None:
        """Edits that cannot be attributed: undone where they cannot include anyone's work, and recorded."""
        paths = tuple(touched.path for touched in behind.touched)
        place = ""
        if self.company.may_undo and self.tools.watch is not None:
            place = saved_folder(self.case.task, self.case.number)
            self.tools.watch.save(behind, self.tools.folder.path / place)
            self.tools.watch.undo(behind)
        self.tools.journal.mention("", "", ev.UnclaimedEdits(self.case.spec.role, paths, place))
