"""Sections of AGENTS.md by the names of their headings."""

from __future__ import annotations

import re
from collections.abc import Sequence

from attrs import frozen

from lamella.text.files import split_lines
from lamella_compaction_safeguard.clip import clipped
from lamella_compaction_safeguard.config import DEFAULT_SECTIONS

_HEADING = re.compile(r"(#{1,6})[ \t]+(.*?)(?:[ \t]+#+)?[ \t]*")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})(.*)")
_LEVELS = (2, 3)
_LEGACY_SECTIONS = ("Every Session", "Safety")
_CUT_OFF = "\n...[truncated]..."


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


def extract_sections(markdown: str, names: Sequence[str]) -> dict[str, str]:
    """The sections of these names that a text has, with their headings, by name as it was asked for.

    A section is what stands below a heading of level 2 or 3, up to the next heading of its level or
    above. Names are compared without regard to case; the first section of a name counts.
    """
    lines = split_lines(markdown)
    found = headings(lines)
    sections: dict[str, str] = {}
    for name in names:
        for position, heading in enumerate(found):
            if heading.level in _LEVELS and heading.title.casefold() == name.strip().casefold():
                after = (h.line for h in found[position + 1 :] if h.level <= heading.level)
                sections[name] = "\n".join(lines[heading.line : next(after, len(lines))]).strip()
                break
    return sections


def rules(markdown: str, names: Sequence[str], max_chars: int) -> str:
    """The sections of these names in one text, at most `max_chars` and a mark; empty without any.

    When the default names are asked for and none is there, those of older templates are looked for.
    """
    found = extract_sections(markdown, names)
    if not found and is_default(names):
        found = extract_sections(markdown, _LEGACY_SECTIONS)
    return clipped("\n\n".join(found.values()), max_chars, _CUT_OFF)


def is_default(names: Sequence[str]) -> bool:
    """Whether these are the default names, in any order and case."""
    return sorted(n.strip().casefold() for n in names) == sorted(n.casefold() for n in DEFAULT_SECTIONS)
