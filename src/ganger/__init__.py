"""Ganger runs many coding agents over a manifest of tasks and trusts nothing it has not verified.

The public names, each imported when it is first used:

load_manifest, load_profiles   files of the 2.0 formats as checked records; InputError names every fault
manifest_digest                the digest by which a run recognises its manifest
task_specs, make_plan          a manifest's tasks; their order, levels and file conflicts
parse_result, parse_heal       an agent's answer from its log: Parsed or Refused
schema                         the JSON Schema of a format, of ganger.toml or of the event stream
GangerError, InputError        what all of them raise
"""

from __future__ import annotations

# Workers call this program every few seconds; importing `typing` and `importlib` would take longer than all the rest.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from ganger.contracts.digest import manifest_digest
    from ganger.contracts.faults import load_manifest, load_profiles
    from ganger.contracts.parser import Parsed, Refused, parse_heal, parse_result
    from ganger.core.planning.plan import make_plan
    from ganger.core.planning.specs import specs_of as task_specs
    from ganger.errors import GangerError, InputError
    from ganger.views.reference.schemas import schema

__version__ = "0.1.0"

__all__ = [
    "GangerError",
    "InputError",
    "Parsed",
    "Refused",
    "__version__",
    "load_manifest",
    "load_profiles",
    "make_plan",
    "manifest_digest",
    "parse_heal",
    "parse_result",
    "schema",
    "task_specs",
]

_PLACES = {
    "GangerError": "ganger.errors:GangerError",
    "InputError": "ganger.errors:InputError",
    "Parsed": "ganger.contracts.parser:Parsed",
    "Refused": "ganger.contracts.parser:Refused",
    "load_manifest": "ganger.contracts.faults:load_manifest",
    "load_profiles": "ganger.contracts.faults:load_profiles",
    "make_plan": "ganger.core.planning.plan:make_plan",
    "manifest_digest": "ganger.contracts.digest:manifest_digest",
    "parse_heal": "ganger.contracts.parser:parse_heal",
    "parse_result": "ganger.contracts.parser:parse_result",
    "schema": "ganger.views.reference.schemas:schema",
    "task_specs": "ganger.core.planning.specs:specs_of",
}


def __getattr__(name: str) -> object:
    place = _PLACES.get(name)
    if place is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    module, _, attribute = place.partition(":")
    value = globals()[name] = getattr(import_module(module), attribute)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
