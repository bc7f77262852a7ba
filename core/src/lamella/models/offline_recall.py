"""Reading what the memory tools answer, and quoting the lines that answer a question."""

from __future__ import annotations

import itertools
import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from attrs import frozen

from lamella.text.segment import search_text, tokens
from lamella.text.stopwords import STOP_WORDS

MAX_QUOTED_LINES = 4
MAX_LINE_CHARS = 400
_GOOD_SHARE = 0.6  # of the best line's worth, for further lines to be quoted

_PLACE = re.compile(
    r"^(?P<path>\S[^\n#]*?\.md)#L(?P<start>\d+)(?:-L(?P<end>\d+))?(?: \(score [\d.]+\)| of \d+ lines)?$", re.MULTILINE
)
_MEMORY = re.compile(r"^(?P<number>\d+)\. \[\w+\] (?P<text>.+) \(\d+%\)$", re.MULTILINE)
_SAVED = re.compile(r"[^\s\"'`]+\.md(?:#L\d+(?:-L\d+)?)?")
_NOTE = re.compile(r"^(?:\[.*\]|Note: .*)$")
_CUT = ("…", "...")
# A reply that a note of a session quotes: what a model said is no evidence, what it had read is elsewhere.
_QUOTED_REPLY = re.compile(r">\s*-\s*assistant:")
# What the memory tools put below a text in JSON: where it is from, and that there is more.
_ADDED = re.compile(r"\n\n(?:Source: [^\n]*|\[Line \d+ is .*|\[More content [^\n]*)\Z", re.DOTALL)


@frozen(slots=True)
class Passage:
    """Found lines of a file. `whole` is false when the text is shorter than its range of lines."""

    path: str
    start: int
    end: int
    lines: tuple[str, ...]

    @property
    def whole(self) -> bool:
        cut = any(line.rstrip().endswith(_CUT) for line in (self.lines[:1] + self.lines[-1:]))
        return len(self.lines) == self.end - self.start + 1 and not cut


@frozen(slots=True)
class _Line:
    passage: Passage
    index: int
    text: str
    worth: float


@frozen(slots=True)
class Answer:
    """Quoted lines with their places; `exact` when they share words with the question."""

    text: str
    exact: bool


def parse_passages(text: str) -> list[Passage]:
    """The passages in an answer of memory_search or memory_get (`path#Lx-Ly` lines, or JSON), or of
    memory_recall."""
    return _from_json(text) or _from_places(text) or _from_memories(text)


def saved_place(text: str) -> str:
    """Where an answer of memory_append says that something was saved, else an empty text."""
    found = _SAVED.search(text)
    return found[0].rstrip(".") if found else ""


def to_look_up(question: str, passages: Sequence[Passage]) -> Passage | None:
    """The passage with the best line, if only a part of it was shown."""
    ranked = _ranked(question, passages)
    best = ranked[0].passage if ranked else None
    return best if best is not None and not best.whole else None


def completed(passages: Sequence[Passage], read: Iterable[Passage]) -> list[Passage]:
    """The passages, those that were read since replaced by what was read."""
    read = tuple(read)
    kept = [p for p in passages if not any(_covers(r, p) for r in read)]
    return [*read, *kept]


def answer(question: str, passages: Sequence[Passage]) -> Answer | None:
    """The lines that share most with the question, as quotes; None when there is nothing to quote."""
    ranked = _ranked(question, passages)
    if not ranked:
        return None
    best = ranked[0]
    good = [line for line in ranked if line.worth and line.worth >= best.worth * _GOOD_SHARE][:MAX_QUOTED_LINES]
    return Answer("\n\n".join(_quotes(good or [best])), exact=bool(good))


# --- reading answers ---------------------------------------------------------------------------------


def _from_places(text: str) -> list[Passage]:
    places = list(_PLACE.finditer(text))
    passages = []
    for place, following in itertools.zip_longest(places, places[1:]):
        body = text[place.end() + 1 : following.start() if following else None]
        passages.append(_passage(place["path"], int(place["start"]), int(place["end"] or place["start"]), body))
    return passages


def _from_memories(text: str) -> list[Passage]:
    """Numbered memories, which have no file: their place is their number in the answer."""
    found = list(_MEMORY.finditer(text))
    return [Passage("memories", int(m["number"]), int(m["number"]), (m["text"],)) for m in found]


def _passage(path: str, start: int, end: int, body: str) -> Passage:
    lines = body.split("\n")
    # Blank lines and notes after the quoted text belong to the answer, not to the file.
    while len(lines) > 1 and (not lines[-1].strip() or (len(lines) > end - start + 1 and _NOTE.match(lines[-1]))):
        lines.pop()
    return Passage(path, start, end, tuple(lines))


def _from_json(text: str) -> list[Passage]:
    try:
        raw = json.loads(text)
    except ValueError:
        return []
    found = raw.get("results", [raw]) if isinstance(raw, dict) else raw
    return [p for p in map(_json_passage, found if isinstance(found, list) else ()) if p is not None]


def _json_passage(raw: Any) -> Passage | None:
    if not isinstance(raw, dict):
        return None
    path, text = raw.get("path"), raw.get("snippet", raw.get("text"))
    start, end = raw.get("startLine", raw.get("from", 1)), raw.get("endLine")
    if not isinstance(path, str) or not isinstance(text, str) or not text.strip() or not isinstance(start, int):
        return None
    lines = tuple(_ADDED.sub("", text).rstrip("\n").split("\n"))
    return Passage(path, start, end if isinstance(end, int) else start + len(lines) - 1, lines)


def _covers(read: Passage, found: Passage) -> bool:
    return read.path == found.path and read.start <= found.end and found.start <= read.end


# --- choosing lines ----------------------------------------------------------------------------------


def _ranked(question: str, passages: Sequence[Passage]) -> list[_Line]:
    """Lines worth quoting, best first: by the words of the question in them, rare words counting more."""
    wanted = {token for token in tokens(question) if token not in STOP_WORDS}
    asked = search_text(question)
    repeated = {asked, f"user {asked}"}  # as notes of sessions quote an earlier question; it answers nothing
    lines = [
        (p, i, text, set(tokens(text)))
        for p in passages
        for i, text in enumerate(p.lines)
        if _quotable(text) and not _QUOTED_REPLY.match(text) and search_text(text) not in repeated
    ]
    seen_in = Counter(word for _, _, _, words in lines for word in words & wanted)
    ranked = []
    for rank, (passage, index, text, words) in enumerate(lines):
        worth = sum(math.log(1 + len(lines) / seen_in[word]) for word in words & wanted)
        ranked.append((-worth, rank, _Line(passage, index, text, worth)))
    return [line for _, _, line in sorted(ranked, key=lambda item: item[:2])]


def _quotable(line: str) -> bool:
    stripped = line.strip()
    return not stripped.startswith("#") and any(char.isalnum() for char in stripped)


def _quotes(lines: Sequence[_Line]) -> list[str]:
    """Quotes in order of worth, neighbouring lines of a file together."""
    quotes = []
    for group in _grouped(lines):
        passage = group[0].passage
        quoted = "\n".join(f"> {_shortened(line.text.strip())}" for line in group)
        if passage.whole:
            start, end = passage.start + group[0].index, passage.start + group[-1].index
        else:
            start, end = passage.start, passage.end
        quotes.append(f"{quoted}\n{passage.path}#L{start}" + (f"-L{end}" if end != start else ""))
    return quotes


def _grouped(lines: Sequence[_Line]) -> list[list[_Line]]:
    groups: list[list[_Line]] = []
    for line in lines:
        for group in groups:
            if group[0].passage is line.passage and line.index in (group[0].index - 1, group[-1].index + 1):
                group.append(line)
                group.sort(key=lambda item: item.index)
                break
        else:
            groups.append([line])
    return groups


def _shortened(text: str) -> str:
    return text if len(text) <= MAX_LINE_CHARS else text[:MAX_LINE_CHARS].rstrip() + " …"
