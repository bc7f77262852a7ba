"""The front matter of a Markdown file: `key: value` lines between two lines of three dashes.

A small, strict part of YAML: keys at the left margin with a plain, quoted or block scalar. Lists and
tables below a key are passed over, since nothing here needs them. Nothing is ever evaluated.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence

from lamella.text.files import split_lines

_FENCE = "---"
_KEY = re.compile(r"([A-Za-z_][\w.-]*):(?:\s+(.*))?$")
_BLOCK = re.compile(r"([|>])[+-]?$")


def front_matter(text: str) -> dict[str, str] | None:
    """Scalars by key; None when the text does not begin with front matter.

    Raises `ValueError` that names the line: a missing end, a line that is no key, a key twice, a
    quoted text without its end.
    """
    lines = split_lines(text)
    if not lines or lines[0].rstrip() != _FENCE:
        return None
    end = next((i for i, line in enumerate(lines[1:], 1) if line.rstrip() == _FENCE), None)
    if end is None:
        raise ValueError("line 1: the front matter has no end (a line of three dashes)")
    found: dict[str, str] = {}
    for number, key, value, below in _entries(lines[1:end]):
        if key in found:
            raise ValueError(f"line {number}: {key!r} is there twice")
        found[key] = _scalar(value, below, number)
    return found


def _entries(lines: Sequence[str]) -> Iterator[tuple[int, str, str, list[str]]]:
    """(line number, key, value behind it, indented lines below it) of each key."""
    position = 0
    while position < len(lines):
        number, line = position + 2, lines[position]
        position += 1
        if not line.strip() or line.startswith("#"):
            continue
        key = _KEY.match(line)
        if key is None:
            raise ValueError(f"line {number}: {line.strip()[:40]!r}, expected `key: value`")
        start = position
        while position < len(lines) and (lines[position][:1] in (" ", "\t", "-") or not lines[position].strip()):
            position += 1
        yield number, key[1], (key[2] or "").strip(), list(lines[start:position])


def _scalar(value: str, below: Sequence[str], number: int) -> str:
    block = _BLOCK.match(value)
    if block:
        return _block(below, folded=block[1] == ">")
    if value[:1] in ("'", '"'):
        return _quoted(value, number)
    if not value:
        return ""
    plain = [value, *(line.strip() for line in below if line.strip())]
    return " ".join(re.split(r"\s#", part, maxsplit=1)[0].strip() for part in plain)


def _quoted(value: str, number: int) -> str:
    if value[0] == "'":
        match = re.match(r"'((?:[^']|'')*)'\s*(?:#.*)?$", value)
        if match:
            return match[1].replace("''", "'")
    else:
        match = re.match(r'("(?:[^"\\]|\\.)*")\s*(?:#.*)?$', value)
        if match:
            try:
                return str(json.loads(match[1]))
            except ValueError:
                raise ValueError(f"line {number}: a quoted text with an unknown escape") from None
    raise ValueError(f"line {number}: a quoted text without its end on the same line")


def _block(below: Sequence[str], *, folded: bool) -> str:
    margin = min((len(line) - len(line.lstrip()) for line in below if line.strip()), default=0)
    text = "\n".join(line[margin:].rstrip() for line in below).strip("\n")
    return re.sub(r"(?<!\n)\n(?!\n)", " ", text) if folded else text
