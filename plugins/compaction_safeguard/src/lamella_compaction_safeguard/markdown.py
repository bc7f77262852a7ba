"""Headings of a Markdown text. Lines inside code fences are never headings."""

from __future__ import annotations

import re
from collections.abc import Sequence

from attrs import frozen

_HEADING = re.compile(r"(#{1,6})[ \t]+(.*?)(?:[ \t]+#+)?[ \t]*")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})(.*)")


@frozen(slots=True)
class Heading:
    """A heading: the index of its line, its level from 1 to 6, and its title without marks."""

    line: int
    level: int
    title: str


def headings(lines: Sequence[str]) -> list[Heading]:
    """All headings of a text, given as lines without line ends."""
    found: list[Heading] = []
    fence = ""
    for number, line in enumerate(lines):
        mark = _FENCE.fullmatch(line)
        if fence:
            if mark and mark[1].startswith(fence) and not mark[2].strip():
                fence = ""
        elif mark:
            fence = mark[1]
        elif heading := _HEADING.fullmatch(line):
            found.append(Heading(number, len(heading[1]), heading[2].strip()))
    return found
