"""Twelve canary secrets where secrets live, a program that dumps all it can reach, and a look for them in text."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

# Where each one is; the values are made of the names, so a leak says where it came from.
IN_HOME = {
    "ssh-key": ".ssh/id_ed25519",
    "netrc": ".netrc",
    "git-credential": ".git-credentials",
    "cloud": ".aws/credentials",
    "agent-login": ".claude/.credentials.json",
}
IN_ENVIRONMENT = {"key-by-name": "PAYMENT_API_KEY", "token-by-value": "DEPLOY_HINT", "password-in-url": "SERVICE_URL"}
ELSEWHERE = ("lead-environment", "argv", "project-env", "store")
NAMES = (*IN_HOME, *IN_ENVIRONMENT, *ELSEWHERE)

LIKELY_PLACES = ("/root", "/home", "/run", "/srv", "/mnt", "/var", "/work")
# Prints its environment, those and the command lines of all processes, and every small file in the places it is given.
DUMPER = r"""
import os, sys
print(dict(os.environ))
for pid in filter(str.isdigit, os.listdir('/proc')):
    for name in ('environ', 'cmdline'):
        try: print(open(f'/proc/{pid}/{name}', 'rb').read())
        except OSError: pass
for top in (*sys.argv[1:], os.environ.get('HOME', '/')):
    for folder, folders, files in os.walk(top):
        folders[:] = [f for f in folders if f not in ('.pyenv', '.rustup', '.cargo', 'lib', 'site-packages')]
        for name in files:
            try:
                path = os.path.join(folder, name)
                if os.path.isfile(path) and os.path.getsize(path) < 100_000: print(open(path, 'rb').read())
            except OSError: pass
"""


@dataclass(frozen=True, slots=True)
class Canaries:
    values: Mapping[str, str]

    def environment(self) -> dict[str, str]:
        """What the operator has set."""
        return {variable: self.values[name] for name, variable in IN_ENVIRONMENT.items()}

    def lead_environment(self) -> dict[str, str]:
        """What only Ganger's own process has, besides."""
        return {"LEAD_ONLY_SECRET": self.values["lead-environment"]}

    def seen_in(self, text: str) -> list[str]:
        return [name for name, value in self.values.items() if value in text]


@contextlib.contextmanager
def planted(home: Path, project: Path, store: Path) -> Iterator[Canaries]:
    """In the home, the project, the store's file, and the arguments and environment of a process that lives as long."""
    values = {name: f"canary-{name}-5e17" for name in NAMES}
    values |= {"token-by-value": "ghp_canary5e17token", "password-in-url": "https://user:canary5e17@example.invalid/"}
    files = {home / path: values[name] for name, path in IN_HOME.items()}
    files |= {project / ".env": f"PASSWORD={values['project-env']}\n", store: values["store"]}
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="utf-8") as file:
            file.write(text)
    canaries = Canaries(values)
    argv = ["/bin/sh", "-c", "read line", values["argv"]]
    neighbour = subprocess.Popen(argv, env=canaries.lead_environment(), stdin=subprocess.PIPE)
    try:
        yield canaries
    finally:
        neighbour.communicate()
