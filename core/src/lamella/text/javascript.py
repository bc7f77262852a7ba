"""What the session format inherits from JavaScript: UTF-16 lengths, and JSON as `JSON.stringify` writes it.

Token estimates and cut lengths of the format count UTF-16 code units. Python counts code points,
so characters outside the basic plane (most emoji) count twice there and once here.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from typing import Any

_ASTRAL = re.compile("[\U00010000-\U0010ffff]")
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_ARRAY_INDEX = re.compile(r"0|[1-9][0-9]{0,9}")
_LAST_ARRAY_INDEX = 2**32 - 2
_LARGEST_EXACT_INT = 2**53


def utf16_length(text: str) -> int:
    """Length in UTF-16 code units."""
    if text.isascii():
        return len(text)
    return len(text) + len(_ASTRAL.findall(text))


def cut_utf16(text: str, units: int) -> str:
    """The longest beginning of `text` that takes at most `units` code units; never half a character."""
    if len(text) * 2 <= units or utf16_length(text) <= units:
        return text
    head = text[: max(units, 0)]
    excess = utf16_length(head) - units
    while excess > 0:
        excess -= utf16_length(head[-1])
        head = head[:-1]
    return head


def utf16_sorted(values: Iterable[str]) -> list[str]:
    """Sorted by UTF-16 code units, as JavaScript compares strings."""
    return sorted(values, key=lambda value: value.encode("utf-16-be", "surrogatepass"))


def js_json(value: Any) -> str:
    """`JSON.stringify(value)` for JSON values; tuples count as lists.

    Raises `TypeError` for anything that JSON cannot hold.
    """
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _js_string(value)
    if isinstance(value, (int, float)):
        return js_number(value)
    if isinstance(value, Mapping):
        members = (f"{_js_string(str(k))}:{js_json(value[k])}" for k in _property_order(value))
        return "{" + ",".join(members) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ",".join(js_json(item) for item in value) + "]"
    raise TypeError(f"not a JSON value: {type(value).__name__}")


def js_number(value: int | float) -> str:
    """A number as JavaScript prints it inside JSON; NaN and infinities become `null`."""
    if isinstance(value, int) and abs(value) <= _LARGEST_EXACT_INT:
        return str(value)
    try:
        number = float(value)
    except OverflowError:
        return "null"
    if not math.isfinite(number):
        return "null"
    if number == 0:
        return "0"
    return _shortest_digits(number)


def _shortest_digits(number: float) -> str:
    """ECMAScript's Number::toString for a finite number other than zero."""
    from decimal import Decimal  # not light, and seldom needed

    sign, digit_tuple, exponent = Decimal(repr(number)).as_tuple()
    assert isinstance(exponent, int)
    digits = "".join(map(str, digit_tuple)).rstrip("0")
    point = len(digit_tuple) + exponent  # value = 0.digits * 10**point
    if len(digits) <= point <= 21:
        text = digits + "0" * (point - len(digits))
    elif 0 < point <= 21:
        text = f"{digits[:point]}.{digits[point:]}"
    elif -6 < point <= 0:
        text = "0." + "0" * -point + digits
    else:
        mantissa = digits[0] + (f".{digits[1:]}" if len(digits) > 1 else "")
        text = f"{mantissa}e{point - 1:+d}"
    return f"-{text}" if sign else text


def _js_string(text: str) -> str:
    quoted = json.dumps(text, ensure_ascii=False)
    if quoted.isascii():
        return quoted
    return _LONE_SURROGATE.sub(lambda m: f"\\u{ord(m[0]):04x}", quoted)


def _property_order(value: Mapping[Any, Any]) -> list[Any]:
    """Keys as JavaScript enumerates them: array indices in numeric order, then the rest as inserted."""
    indices = [k for k in value if _is_array_index(str(k))]
    if not indices:
        return list(value)
    return sorted(indices, key=lambda k: int(str(k))) + [k for k in value if not _is_array_index(str(k))]


def _is_array_index(key: str) -> bool:
    return _ARRAY_INDEX.fullmatch(key) is not None and int(key) <= _LAST_ARRAY_INDEX
