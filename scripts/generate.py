"""The generated files: rewrites them all, or with --check names those that are stale."""

from __future__ import annotations

import importlib
import importlib.util
import json
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

import agents
import conformance
import prompt_samples
import settings

ROOT = Path(__file__).resolve().parents[1]

Files = Mapping[Path, str]
Generators = Mapping[str, Callable[[], Files]]


def conformance_page() -> Files:
    return {Path("docs/conformance.md"): conformance.render(ROOT)}


def contract_schemas() -> Files:
    if not built("ganger.contracts.schemas"):
        return {}
    schemas = importlib.import_module("ganger.contracts.schemas")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        schemas.write_schemas(folder)
        return {Path("schemas") / path.name: path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.json"))}


def own_schemas() -> Files:
    """The schemas of what Ganger adds to the five formats: its configuration, its events, the worker protocol."""
    if not built("ganger.views.reference.schemas"):
        return {}
    schema = importlib.import_module("ganger.views.reference.schemas").schema
    names = ("config", "events", "worker")
    texts = {name: json.dumps(schema(name), indent=2, ensure_ascii=False) + "\n" for name in names}
    return {Path("schemas") / f"{name}.json": text for name, text in texts.items()}


def settings_page() -> Files:
    return {settings.PAGE: settings.render(ROOT, importlib.import_module("ganger.config").Config)}


def prompts_page() -> Files:
    return {prompt_samples.PAGE: prompt_samples.render(ROOT)}


def cli_page() -> Files:
    return rendered("ganger.cli.shell.reference", Path("docs/cli.md"))


def agents_page() -> Files:
    """What `make agents` noted, told again; nothing is tried for it."""
    return {agents.PAGE: agents.render(ROOT)} if (ROOT / agents.RESULTS).is_file() else {}


def codes_page() -> Files:
    return rendered("ganger.views.reference.codes", Path("docs/codes.md"))


def settings_by_mode_page() -> Files:
    return rendered("ganger.views.reference.settings_by_mode", Path("docs/settings-by-mode.md"))


GENERATORS: Generators = {
    "conformance": conformance_page,
    "schemas": contract_schemas,
    "own schemas": own_schemas,
    "settings": settings_page,
    "settings by mode": settings_by_mode_page,
    "prompts": prompts_page,
    "cli": cli_page,
    "codes": codes_page,
    "agents": agents_page,
}


def built(module: str) -> bool:
    """Whether a module is there yet; a page whose room is not built has nothing to say."""
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False


def rendered(module: str, page: Path) -> Files:
    return {page: importlib.import_module(module).render()} if built(module) else {}


def stale(root: Path, files: Files) -> list[Path]:
    return [path for path, text in files.items() if not same(root / path, text)]


def same(path: Path, text: str) -> bool:
    return path.is_file() and path.read_bytes() == text.encode()


def attempt(name: str, generator: Callable[[], Files]) -> Files | None:
    """One generator's files; where its source is broken the fault is told and the others still get their turn."""
    try:
        return generator()
    except SyntaxError as fault:
        print(f"{name}: {fault.filename}:{fault.lineno}: does not parse: {fault.msg}; mend it first", file=sys.stderr)
    except (ImportError, conformance.UnknownRowError, settings.NoPlaceError) as fault:
        print(f"{name}: {fault}", file=sys.stderr)
    return None


def main(arguments: list[str], root: Path = ROOT, generators: Generators = GENERATORS) -> int:
    if arguments not in ([], ["--check"]):
        print("usage: generate.py [--check]", file=sys.stderr)
        return 64
    outcomes = [attempt(name, generator) for name, generator in generators.items()]
    files = {path: text for outcome in outcomes if outcome for path, text in outcome.items()}
    changed = stale(root, files)
    for path in changed:
        if arguments:
            print(f"{path} is stale: run `make generate`", file=sys.stderr)
        else:
            write(root / path, files[path])
            print(f"wrote {path}")
    return 1 if None in outcomes or (arguments and changed) else 0


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
