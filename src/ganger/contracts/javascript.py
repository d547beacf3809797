"""Numbers and strings as JavaScript prints them, so that digests and state files equal those of other tools."""

from __future__ import annotations

import json

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
