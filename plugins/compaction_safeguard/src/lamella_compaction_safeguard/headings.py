"""The shape of a summary: its required headings, and changes that keep them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise

from attrs import evolve, frozen

from lamella.text.summary_format import COMPACT_HEADINGS, parse_summary, render
from lamella_compaction_safeguard.clip import clipped

REQUIRED = COMPACT_HEADINGS
DECISIONS, TODOS, CONSTRAINTS, ASKS, IDENTIFIERS = REQUIRED
_EMPTY = {IDENTIFIERS: "None captured."}
_NOTHING = ("None.", "None captured.", "")
_SHORTENED = "\n- ... (shortened)"
_HEADING = re.compile(r"##[ \t]+\S")
_HIGH_HEADING = re.compile(r"^[ \t]*#{1,3}[ \t]+", re.MULTILINE)


@frozen(slots=True)
class Part:
    """A heading (empty for what stands before the first one) and the text below it."""

    heading: str
    text: str

    def __str__(self) -> str:
        return "\n".join(piece for piece in (self.heading, self.text) if piece)


def parts_of(summary: str) -> list[Part]:
    """A summary taken apart at its headings of level 2, which count inside code as well.

    A model that leaves a code block open should not take the headings away.
    """
    lines = summary.split("\n")
    starts = [number for number, line in enumerate(lines) if _HEADING.match(line.strip())]
    parts = [Part("", "\n".join(lines[: starts[0] if starts else None]).strip())]
    for start, end in pairwise([*starts, len(lines)]):
        parts.append(Part(lines[start].strip(), "\n".join(lines[start + 1 : end]).strip()))
    return [part for part in parts if part.heading or part.text]


def joined(parts: Iterable[Part]) -> str:
    """The summary that these parts make."""
    return "\n\n".join(str(part) for part in parts)


def missing_headings(summary: str) -> tuple[str, ...]:
    """Required headings that are no line of the summary."""
    lines = {line.strip() for line in summary.split("\n")}
    return tuple(heading for heading in REQUIRED if heading not in lines)


def is_structured(summary: str) -> bool:
    """Whether all required headings are there, in their order."""
    lines = iter(line.strip() for line in summary.split("\n"))
    return all(heading in lines for heading in REQUIRED)


def fallback_summary(previous: str) -> str:
    """A summary of nothing new: the earlier one, brought into the required shape."""
    if is_structured(previous):
        return previous
    if any(part.heading for part in parts_of(previous)):  # other headings, such as the engine's own
        return render(parse_summary(previous), layout="compact")
    texts = {DECISIONS: previous.strip() or "No prior history."}
    return joined(Part(heading, texts.get(heading) or _EMPTY.get(heading, "None.")) for heading in REQUIRED)


def with_headings(summary: str) -> str:
    """The summary with the required headings that it lacks at its end."""
    lacking = (Part(heading, _EMPTY.get(heading, "None.")) for heading in missing_headings(summary))
    return "\n\n".join([summary.rstrip(), *map(str, lacking)]).lstrip()


def with_items(summary: str, heading: str, items: Sequence[str], *, first: bool) -> str:
    """The summary with list items in the part of that heading, before or behind what it says."""
    if not items:
        return summary
    parts = parts_of(summary)
    at = next(i for i, part in enumerate(parts) if part.heading == heading)
    new = "\n".join(f"- {item}" for item in items)
    old = "" if parts[at].text in _NOTHING else parts[at].text
    both = (new, old) if first else (old, new)
    parts[at] = evolve(parts[at], text="\n".join(text for text in both if text))
    return joined(parts)


def with_low_headings(text: str) -> str:
    """The text with its headings brought down to level 4, so that they are none of a summary's."""
    return _HIGH_HEADING.sub("#### ", text)


def fitted(summary: str, limit: int) -> str:
    """The summary within about `limit` characters: its longest parts are cut to one length.

    Every heading stays, and short parts stay whole.
    """
    if len(summary) <= limit:
        return summary
    parts = parts_of(summary)
    fixed = sum(len(part.heading) + len(_SHORTENED) + 3 for part in parts)
    room = _common_limit([len(part.text) for part in parts], limit - fixed)
    return joined(evolve(part, text=_cut_at_line(part.text, room)) for part in parts)


def _common_limit(lengths: Sequence[int], room: int) -> int:
    """The length to which the longest of these must be cut, so that all take `room` together."""
    left = max(room, 0)
    for done, length in enumerate(sorted(lengths)):
        share = left // (len(lengths) - done)
        if length > share:
            return share
        left -= length
    return max(lengths, default=0)


def _cut_at_line(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    line_end = text.rfind("\n", 0, limit + 1)
    kept = text[:line_end] if line_end > limit // 2 else clipped(text, limit, "")
    return (kept.rstrip() + _SHORTENED).lstrip()
