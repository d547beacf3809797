"""The hooks and notices of a project: for a run, and for a test of all of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from ganger.config import PROJECT_FILE, Project, environment
from ganger.core.events import QuestionAsked, Recorded
from ganger.errors import Fault, GangerError
from ganger.notices.apprise_urls import AppriseWay, has_apprise
from ganger.notices.desktop import DesktopWay
from ganger.notices.dispatcher import Notices, Route, deliver_now
from ganger.notices.notice import notice_of
from ganger.notices.program import ProgramWay
from ganger.notices.webhook import WebhookWay

_FROM_ENVIRONMENT = "env:"
_SAMPLE = QuestionAsked("q-0", "sample", "ambiguous_spec", "This is a test; no answer is needed.")


def notices_of(project: Project, run_id: str, folder: Path, *, after_seq: int) -> Notices:
    """The listener of one run, whose folder holds the log; events up to `after_seq` are not sent again."""
    return Notices(routes_of(project), run_id, folder, after_seq=after_seq)


def try_all(project: Project) -> list[tuple[str, str]]:
    """Sends a sample through every channel; each channel's name, and why it failed, or empty."""
    sample = notice_of("trial", Recorded(0, "1970-01-01T00:00:00.000Z", _SAMPLE))
    return deliver_now([route.way for route in routes_of(project)], sample)


def routes_of(project: Project) -> list[Route]:
    """Raises GangerError for notices that could never be delivered, before the run begins."""
    environ, notify = environment(), project.config.notify
    handed_on = project.handed_on()
    routes = [
        Route(
            ProgramWay(_at_home(hook.run, project.root), hook.timeout_sec, project.root, handed_on), frozenset(hook.on)
        )
        for hook in project.config.hooks
    ]
    wanted = frozenset(notify.on)
    if notify.webhook:
        routes.append(Route(WebhookWay(_meant("notify.webhook", notify.webhook, environ)), wanted))
    if notify.urls:
        _require_apprise()
        urls = [_meant(f"notify.urls[{number}]", url, environ) for number, url in enumerate(notify.urls)]
        routes.append(Route(AppriseWay(urls), wanted))
    if notify.desktop:
        routes.append(Route(DesktopWay(handed_on), wanted))
    return routes


def notice_faults(project: Project) -> list[Fault]:
    """The error of `routes_of` as a fault in the list."""
    try:
        routes_of(project)
    except GangerError as problem:
        return [Fault(f"{PROJECT_FILE}:notify", problem.code, f"{problem.message}; {problem.hint}")]
    return []


def secret_addresses(project: Project) -> Iterator[tuple[str, str]]:
    """The addresses notices go to; they are secret, because anyone who knows one can write there."""
    environ, notify = environment(), project.config.notify
    for key, given in (("notify.webhook", notify.webhook), *((f"notify.urls {url}", url) for url in notify.urls)):
        value = environ.get(given.removeprefix(_FROM_ENVIRONMENT), "") if given.startswith(_FROM_ENVIRONMENT) else given
        if value:
            yield key, value


def hook_files(project: Project) -> list[Path]:
    """Files of the project that its hooks run, outside the sandbox: a change to one of them acts there."""
    words = [word for hook in project.config.hooks for word in hook.run if not word.startswith("-")]
    return [path for word in words if "\0" not in word and (path := project.root / word).is_file()]


def _at_home(words: list[str], root: Path) -> list[str]:
    """Resolves a program of the project in the project, not in the current folder of a session."""
    own = root / words[0]
    return [str(own), *words[1:]] if "/" in words[0] and own.is_file() else words


def _meant(key: str, given: str, environ: Mapping[str, str]) -> str:
    """Resolves `env:NAME` to that variable, so that a secret need not be in a file."""
    if not given.startswith(_FROM_ENVIRONMENT):
        return given
    name = given.removeprefix(_FROM_ENVIRONMENT)
    if not environ.get(name):
        raise GangerError(
            f"{key} is {given}, but variable {name} is not set",
            hint=f"set {name}, or remove the entry from {PROJECT_FILE}",
            code="NOTIFY_NOT_READY",
        )
    return environ[name]


def _require_apprise() -> None:
    if not has_apprise():
        raise GangerError(
            "notify.urls needs the library apprise, which is not installed",
            hint="pip install 'ganger[notify]'; or use [[hooks]] or notify.webhook, which need no library",
            code="NOTIFY_NOT_READY",
        )
