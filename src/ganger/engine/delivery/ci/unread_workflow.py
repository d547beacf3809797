"""A workflow that the forge cannot read: which task is at fault, and what a person is asked where none is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ganger.core.delivery.ci_files import ci_files
from ganger.core.delivery.shared_pushes import UNREAD_WORKFLOW
from ganger.core.model.ci import UNREAD, Ci, Finding, JobFact, Word
from ganger.core.vocabulary import FailureClass
from ganger.engine.delivery.ci.culprits import Culprits
from ganger.engine.delivery.ci.failure import CiTrouble
from ganger.engine.delivery.ci.wait import NEVER_STARTED
from ganger.engine.delivery.context import DeliveryContext
from ganger.engine.resources.run_resources import one_line

_THEN = "no worker can fix it: correct that file on {branch}"


class UnreadWorkflow:
    def __init__(self, at: DeliveryContext, trouble: CiTrouble, culprits: Culprits | None) -> None:
        self.at, self.trouble, self.culprits = at, trouble, culprits

    async def blames_no_one(self, sha: str, finding: Finding) -> bool:
        """Whether CI is red because of a workflow that no change of this run touched."""
        if finding.ci is not Ci.RED:
            return False
        if finding.cause != UNREAD and not await self.trouble.is_of_workflow(sha, finding, self.at.now.runs):
            return False
        return not any([await self._touched(commits, finding.why) for commits in (await self._suspects(sha)).values()])

    async def hides(self, sha: str, finding: Finding) -> Finding | None:
        """Gitea shows nothing of a workflow that it cannot read: no run starts. So where a change of this run touched
        one, that change is at fault."""
        if finding.cause != NEVER_STARTED:
            return None
        for name, commits in (await self._suspects(sha)).items():
            if not (files := await self._touched(commits)):
                continue
            if self.culprits is not None:
                await self.culprits.blame(sha, name, f"no run started, and it changed {files[0]}")
            why = (
                f"no CI run started for {sha[:12]}, and {files[0]} was changed: the forge cannot read it, or runs none"
            )
            return Finding(Ci.RED, why, (JobFact(files[0], Word.FAILURE, "no run began", UNREAD),), cause=UNREAD)
        return None

    async def _touched(self, commits: Sequence[str], told: str = "") -> list[str]:
        """CI files that these commits changed."""
        files = [path for commit in commits for path in await self.at.sending.repository.files_of(commit)]
        return ci_files(files, told)

    async def _suspects(self, sha: str) -> Mapping[str, Sequence[str]]:
        """This run's commits in `sha` that CI has not judged green."""
        if self.culprits is None:
            return {self.at.case.task: self.at.now.merges}
        return await self.culprits.own.by_task(sha)

    async def asked(self, sha: str, finding: Finding) -> Exception:
        """One question for all tasks of the repository."""
        log = await self.trouble.printed(sha, finding, self.at.now.runs)
        words = [one_line(line, 300) for line in (log or "").splitlines() if line.strip()]
        said = f" ({words[-1]})" if words else ""
        told = self.at.hinted(f"{finding.why}{said}", _THEN.format(branch=self.at.rules.branch))
        return self.at.outside_for_all(UNREAD_WORKFLOW, told, FailureClass.ENVIRONMENT)
