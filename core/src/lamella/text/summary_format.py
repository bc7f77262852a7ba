"""The headings of a compaction summary: reading one, joining two, writing one."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Literal, TypeAlias, get_args

from attrs import field, frozen

from lamella.text.estimate import estimate_text

Section: TypeAlias = Literal["goal", "constraints", "done", "in_progress", "blocked", "decisions", "next", "context"]
SECTIONS: tuple[Section, ...] = get_args(Section)
Layout: TypeAlias = Literal["checkpoint", "compact"]

_LAYOUT: tuple[tuple[Section | None, str, str], ...] = (
    ("goal", "## Goal", "- "),
    ("constraints", "## Constraints & Preferences", "- "),
    (None, "## Progress", ""),
    ("done", "### Done", "- [x] "),
    ("in_progress", "### In Progress", "- [ ] "),
    ("blocked", "### Blocked", "- "),
    ("decisions", "## Key Decisions", "- "),
    ("next", "## Next Steps", "1. "),
    ("context", "## Critical Context", "- "),
)
# Fewer headings, each for several sections; what is read back goes to the first of them.
COMPACT: tuple[tuple[str, tuple[Section, ...]], ...] = (
    ("## Decisions", ("decisions", "done", "context")),
    ("## Open TODOs", ("next", "in_progress", "blocked")),
    ("## Constraints/Rules", ("constraints",)),
    ("## Pending user asks", ("goal",)),
    ("## Exact identifiers", ()),
)
COMPACT_HEADINGS: tuple[str, ...] = tuple(heading for heading, _ in COMPACT)
_SECTION_OF_HEADING: Mapping[str, Section] = MappingProxyType(
    {heading.lstrip("# ").lower(): section for section, heading, _ in _LAYOUT if section}
    | {heading.lstrip("# ").lower(): (*sections, "context")[0] for heading, sections in COMPACT}
    | {"original request": "goal", "early progress": "done", "progress so far": "done", "tool failures": "blocked"}
)
# What is given up first when a summary grows too long: oldest items of these sections, in this order.
_GIVEN_UP_FIRST: tuple[Section, ...] = (
    "done",
    "context",
    "next",
    "in_progress",
    "blocked",
    "decisions",
    "constraints",
    "goal",
)
_HEADING = re.compile(r"#{1,6}\s+(.*?)[\s:：]*")
_ITEM_MARK = re.compile(r"(?:[-*+•]|\d{1,3}[.)])\s+(?:\[[ xX]\]\s+)?")
_NOTHING = re.compile(r"\(?(?:none(?: captured)?|n/a|nothing|无|没有)\)?\.?", re.IGNORECASE)
_DECORATION = re.compile(r"-{3,}|\*\*Turn Context \(split turn\):\*\*|> Extractive summary:.*|```\w*")
_FILE_TAG = re.compile(r"<(read-files|modified-files)>\n(.*?)\n</\1>", re.DOTALL)
_LEFT_OUT = re.compile(r"\((\d+) older items were left out\)")
_INSIGNIFICANT = re.compile(r"[\W_]+")
_FILE_LABELS = {"read-files": "Files read: ", "modified-files": "Files changed: "}
_FILE_PREFIXES = tuple(_FILE_LABELS.values())


def same_words(text: str) -> str:
    """A form that is equal for items that differ only in case, blanks, punctuation or who is quoted."""
    return _INSIGNIFICANT.sub("", text.removeprefix("User: ").removeprefix("Assistant: ").casefold())


@frozen(slots=True)
class Summary:
    """Items by section, oldest first. `left_out` counts items given up to keep it short."""

    sections: Mapping[Section, tuple[str, ...]] = field(factory=lambda: MappingProxyType({}))
    left_out: int = 0

    def of(self, section: Section) -> tuple[str, ...]:
        return self.sections.get(section, ())

    def items(self) -> Iterator[tuple[Section, str]]:
        for section in SECTIONS:
            for text in self.of(section):
                yield section, text

    def with_item(self, section: Section, text: str) -> Summary:
        return Summary({**self.sections, section: (*self.of(section), text)}, self.left_out)

    def bounded(self, max_tokens: int) -> Summary:
        """The same summary, shortened to about `max_tokens`: oldest and least important items go first."""
        excess = sum(estimate_text(text) + 3 for _, text in self.items()) - max_tokens
        kept = {section: list(self.of(section)) for section in SECTIONS}
        left_out = self.left_out
        for section in _GIVEN_UP_FIRST:
            keep = 1 if section == "goal" else 0
            while excess > 0 and len(kept[section]) > keep:
                excess -= estimate_text(kept[section].pop(0)) + 3
                left_out += 1
        if excess > 0 and kept["goal"]:
            kept["goal"] = [kept["goal"][0][: max(max_tokens // 2, 40)] + " …"]
        return Summary({s: tuple(texts) for s, texts in kept.items() if texts}, left_out)


def parse_summary(text: str) -> Summary:
    """Read a summary, whoever wrote it. Text under unknown headings, or none, is critical context."""
    summary = Summary(left_out=sum(int(n) for n in _LEFT_OUT.findall(text)))
    files = [(label, paths.split("\n")) for label, paths in _FILE_TAG.findall(text)]
    section: Section = "context"
    for line in _FILE_TAG.sub("", text).split("\n"):
        stripped = line.strip()
        heading = _HEADING.fullmatch(stripped)
        if heading:
            section = _SECTION_OF_HEADING.get(heading[1].lower(), "context")
            continue
        item = _ITEM_MARK.sub("", stripped, count=1)
        if not item or _NOTHING.fullmatch(item) or _DECORATION.fullmatch(stripped) or _LEFT_OUT.fullmatch(item):
            continue
        continues = line.startswith("  ") and not _ITEM_MARK.match(stripped) and summary.of(section)
        summary = _continued(summary, section, item) if continues else summary.with_item(section, item)
    for label, paths in files:
        summary = summary.with_item("context", _FILE_LABELS[label] + ", ".join(paths))
    return summary


def merge(earlier: Summary, later: Summary) -> Summary:
    """All items of both, the earlier ones first; an item that says the same as another is kept once."""
    merged: dict[Section, tuple[str, ...]] = {}
    for section in SECTIONS:
        seen: dict[str, str] = {}
        for text in (*earlier.of(section), *later.of(section)):
            seen.setdefault(same_words(text), text)
        merged[section] = _united_files(tuple(seen.values()))
    return Summary({s: texts for s, texts in merged.items() if texts}, earlier.left_out + later.left_out)


def render(summary: Summary, mark: str = "", layout: Layout = "checkpoint") -> str:
    """The summary as Markdown; `mark` is a line that goes before it."""
    blocks = [mark] if mark else []
    return "\n\n".join(blocks + (_compact(summary) if layout == "compact" else _checkpoint(summary)))


def _checkpoint(summary: Summary) -> list[str]:
    blocks = []
    for section, heading, bullet in _LAYOUT:
        if section is None:
            blocks.append(heading)
            continue
        lines = [f"{bullet}{text}" for text in summary.of(section)]
        if section == "next":
            lines = [f"{n}. {text}" for n, text in enumerate(summary.of(section), 1)]
        if section == "context":
            lines += _left_out(summary)
        blocks.append("\n".join([heading, *(lines or ["(none)"])]))
    return blocks


def _compact(summary: Summary) -> list[str]:
    bullets = {section: bullet for section, _, bullet in _LAYOUT if section} | {"next": "- "}
    blocks = []
    for heading, sections in COMPACT:
        lines = [bullets[section] + text for section in sections for text in summary.of(section)]
        if "context" in sections:
            lines += _left_out(summary)
        blocks.append("\n".join([heading, *(lines or ["None."])]))
    return blocks


def _left_out(summary: Summary) -> list[str]:
    return [f"- ({summary.left_out} older items were left out)"] if summary.left_out else []


def _united_files(items: tuple[str, ...]) -> tuple[str, ...]:
    """The items with one line for each kind of file list instead of several."""
    rest = [text for text in items if not text.startswith(_FILE_PREFIXES)]
    for prefix in _FILE_PREFIXES:
        paths = (p for text in items if text.startswith(prefix) for p in text.removeprefix(prefix).split(", "))
        if unique := dict.fromkeys(paths):
            rest.append(prefix + ", ".join(unique))
    return tuple(rest)


def _continued(summary: Summary, section: Section, text: str) -> Summary:
    *before, last = summary.of(section)
    return Summary({**summary.sections, section: (*before, f"{last} {text}")}, summary.left_out)
