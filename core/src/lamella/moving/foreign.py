"""Reading the configuration of other programs, whose shape is not in our hands."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from lamella.errors import ConfigError, Problem
from lamella.sessions.lines import well_formed_json
from lamella.text.files import decode_text

# (key as its parts, value); lists are values.
Leaf: TypeAlias = tuple[tuple[str, ...], Any]

# Far more than any real configuration has; the JSON5 parser needs a second for every 100 kB.
MAX_BYTES = 1 << 20


def read_json5(file: Path) -> dict[str, Any]:
    """The object in a JSON5 file: JSON with comments, trailing commas, bare keys. Empty when there is no file.

    Raises `ConfigError` that names file and place.
    """
    try:
        if not file.exists():
            return {}
        if file.stat().st_size > MAX_BYTES or not file.is_file():
            raise _wrong(file, f"is not a file of at most {MAX_BYTES} bytes")
        text = decode_text(file.read_bytes()).text
    except OSError as error:
        raise _wrong(file, f"cannot be read: {error.strerror or error}") from error
    value = _parse(file, text)
    if not isinstance(value, dict):
        raise _wrong(file, f"expected an object, found {type(value).__name__}")
    return dict(well_formed_json(value))


def _parse(file: Path, text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        pass  # not plain JSON: the slower parser below knows more, and tells where it is wrong
    import json5

    try:
        return json5.loads(text)
    except ValueError as error:
        raise _wrong(file, f"is not valid JSON5: {str(error).replace('<string>:', 'line ', 1)}") from error
    except RecursionError:
        raise _wrong(file, "is nested too deeply") from None


def _wrong(file: Path, message: str) -> ConfigError:
    return ConfigError([Problem("", message, str(file))])


def leaves(value: Mapping[str, Any], above: tuple[str, ...] = ()) -> Iterator[Leaf]:
    """All leaves; an empty table is one."""
    for key, below in value.items():
        path = (*above, str(key))
        if isinstance(below, Mapping) and below:
            yield from leaves(below, path)
        else:
            yield path, below
