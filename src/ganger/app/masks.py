"""The values a project hands on (keys, tokens, named variables), and the masker that hides them in text."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from ganger.agents.table import make_agent
from ganger.app.agents import agent_settings, environ_for
from ganger.app.delivery import section_of, token_reader
from ganger.app.notices import secret_addresses
from ganger.config import Project, environment
from ganger.core.masking import Masker
from ganger.errors import GangerError

_WORD = re.compile(r"[A-Za-z_]\w*", re.ASCII)


def masker_of(project: Project) -> Masker:
    """A masker for the values in this process's settings and environment; another user may have others, or none."""
    return Masker(dict(_handed(project)), clear=_clear(project))


def _handed(project: Project) -> Iterator[tuple[str, str]]:
    environ = environment()
    yield from ((name, environ[name]) for name in project.config.verify.env if name in environ)
    for agent, section in project.config.agents.items():
        with contextlib.suppress(GangerError, OSError):
            made = make_agent(agent, agent_settings(section), project.root, environ_for(project, section))
            yield from _secrets_of(made)
    for repo in ("", *project.config.repos):
        section_ = section_of(project, repo)
        yield f"{repo} webhook secret", environ.get(section_.webhook_secret_env, "")
        with contextlib.suppress(GangerError):
            yield f"{repo} forge token", token_reader(project, section_)()
    yield from secret_addresses(project)
    # Settings that cannot be read may hand on any variable.
    yield from ((name, environ[name]) for name in _WORD.findall(project.unread) if name in environ)


def _secrets_of(agent: object) -> Iterator[tuple[str, str]]:
    """A third-party adapter may not report its secrets."""
    told = getattr(agent, "secrets", None)
    found = told() if callable(told) else {}
    if isinstance(found, Mapping):
        yield from ((str(name), str(value)) for name, value in found.items())


def _clear(project: Project) -> list[str]:
    """Values that are public and needed to read the run's output, so they are not masked."""
    config, environ = project.config, environment()
    texts = [str(project.root), str(project.state_path), environ.get("HOME", ""), environ.get("PATH", "")]
    texts += [text for name, one in config.agents.items() for text in (name, one.model, one.base_url, *one.argv)]
    texts += [*config.roles, *(role.model for role in config.roles.values()), *config.repos]
    return [*texts, *_contents(project.manifest_path), *_contents(project.profiles_path)]


def _contents(path: Path) -> Iterator[str]:
    with contextlib.suppress(OSError):
        yield path.read_text(encoding="utf-8", errors="replace")
