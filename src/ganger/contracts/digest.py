"""The manifest digest, equal to that of other AgentThreader 2.0 tools: numbers and text as JavaScript prints them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable

from ganger.contracts.manifest import Manifest, Task

_LARGEST_PLAIN_EXPONENT = 21
_SMALLEST_PLAIN_EXPONENT = -6
_EXACT = 2**53

encode_string = json.JSONEncoder(ensure_ascii=False).encode


def format_number(value: int | float) -> str:
    """The text of `JSON.stringify(value)`: the shortest digits that give the same 64-bit float."""
    if isinstance(value, int) and -_EXACT <= value <= _EXACT:
        return str(value)
    value = float(value)
    if value.is_integer() and abs(value) <= _EXACT:
        return str(int(value))
    return _scientific(value)


def _scientific(value: float) -> str:
    sign = "-" if value < 0 else ""
    mantissa, _, exponent = repr(abs(value)).partition("e")
    whole, _, fraction = mantissa.partition(".")
    fraction = "" if fraction == "0" else fraction
    digits = (whole + fraction).lstrip("0")
    point = len(whole) + int(exponent or 0) - (len(whole + fraction) - len(digits))
    digits = digits.rstrip("0")
    return sign + _place(digits, point)


def _place(digits: str, point: int) -> str:
    """`0.digits` times ten to the power of `point`, written as ECMAScript prescribes."""
    count = len(digits)
    if count <= point <= _LARGEST_PLAIN_EXPONENT:
        return digits + "0" * (point - count)
    if 0 < point <= _LARGEST_PLAIN_EXPONENT:
        return f"{digits[:point]}.{digits[point:]}"
    if _SMALLEST_PLAIN_EXPONENT < point <= 0:
        return "0." + "0" * -point + digits
    power = point - 1
    tail = f".{digits[1:]}" if count > 1 else ""
    return f"{digits[0]}{tail}e{'+' if power > 0 else '-'}{abs(power)}"


def manifest_digest(manifest: Manifest) -> str:
    """SHA-256, lower-case hex, over the fields that decide what runs: without metadata and prompt contents."""
    text = (
        f'{{"manifest_version":{encode_string(manifest.manifest_version)},"run_id":{encode_string(manifest.run_id)},'
        f'"tasks":[{",".join(map(_task, manifest.tasks))}]}}'
    )
    return hashlib.sha256(text.encode()).hexdigest()


def _task(task: Task) -> str:
    depends_on = ",".join(map(encode_string, _sorted(task.depends_on)))
    return (
        f'{{"id":{encode_string(task.id)},"prompt_ref":{encode_string(task.prompt_ref)},"depends_on":[{depends_on}],'
        f'"timeout_sec":{format_number(task.timeout_sec)},"verify_profile":{encode_string(task.verify_profile)}}}'
    )


def _sorted(ids: Iterable[str]) -> list[str]:
    """JavaScript compares strings by UTF-16 unit, which differs from code points beyond U+FFFF."""
    return sorted(ids, key=lambda text: text.encode("utf-16-be", "surrogatepass"))
