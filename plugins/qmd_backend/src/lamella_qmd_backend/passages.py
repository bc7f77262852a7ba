"""Passages within the files that QMD found.

QMD gives one hit a file, with four lines around the best one. The files are cut here as memory-core cuts
them, and the passages that answer the question best by their words are taken.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence

from attrs import define, evolve, frozen

from lamella.memory.paths import is_curated
from lamella.memory.scan import FoundFile
from lamella.text.chunk import Chunk, chunk_text
from lamella.text.lexical import lexical_scores
from lamella.types.memory import MemoryHit

_PER_RANK = 0.02  # how much less a passage counts with each file that QMD put before its own
_MOST_TEXTS = 512


@frozen(slots=True)
class Text:
    """A file's text and its chunks. `lines[i]` is where line i+1 stands in the file; None: where it is."""

    source: str
    chunks: tuple[Chunk, ...]
    lines: tuple[int, ...] | None = None

    @classmethod
    def of(cls, name: str, source: str, lines: tuple[int, ...] | None = None) -> Text:
        return cls(source, tuple(chunk_text(source, by_entry=is_curated(name))), lines)


@frozen(slots=True)
class Candidate:
    """A file, its place in QMD's order from 0 (None: QMD does not know it yet), and the lines that QMD shows."""

    file: FoundFile
    text: Text
    rank: int | None = None
    first_line: int = 0
    last_line: int = 0


@define(slots=True)
class _Passage:
    """A range of a candidate's text, and what it counts."""

    candidate: Candidate
    start: int
    end: int
    first: int
    last: int
    score: float
    words: float


class Texts:
    """Texts of files, kept as long as the files stay the same."""

    def __init__(self, read: Callable[[FoundFile], Text | None]) -> None:
        self._read = read
        self._kept: OrderedDict[tuple[str, int, int], Text] = OrderedDict()

    def of(self, found: FoundFile) -> Text | None:
        key = (found.path, found.stat.st_size, found.stat.st_mtime_ns)
        if key in self._kept:
            self._kept.move_to_end(key)
            return self._kept[key]
        text = self._read(found)
        if text is not None:
            self._kept[key] = text
            while len(self._kept) > _MOST_TEXTS:
                self._kept.popitem(last=False)
        return text


def pick(
    question: str,
    candidates: Sequence[Candidate],
    *,
    by_meaning: bool,
    per_file: int,
    snippet_chars: int,
    explain: bool = False,
) -> list[MemoryHit]:
    """Passages of the candidates, best first; overlapping ones are joined up to `snippet_chars`.

    The score (0 to 1) grows with the question's rarer words; one half is a passage that says half of
    what the question itself says. With `by_meaning`, QMD's order counts beside it, since a passage may
    answer in other words. More than `per_file` passages of one file come after those of other files.
    """
    passages = _scored(question, candidates, by_meaning)
    passages.sort(key=lambda p: (-p.score, p.candidate.rank or 0, p.candidate.file.name, p.start))
    chosen: list[_Passage] = []
    later: list[_Passage] = []
    counts: dict[str, int] = {}
    for passage in passages:
        if any(_join(other, passage, snippet_chars) for other in chosen if other.candidate is passage.candidate):
            continue
        name = passage.candidate.file.name
        counts[name] = counts.get(name, 0) + 1
        (chosen if counts[name] <= per_file else later).append(passage)
    hits = [_hit(passage, explain) for passage in chosen]
    least = hits[-1].score if hits else 0.0
    return hits + [evolve(hit, score=min(hit.score, least)) for hit in (_hit(p, explain) for p in later)]


def _scored(question: str, candidates: Sequence[Candidate], by_meaning: bool) -> list[_Passage]:
    """All passages that count anything."""
    chunks = [(candidate, chunk) for candidate in candidates for chunk in candidate.text.chunks]
    *scores, itself = lexical_scores(question, [*(chunk.text for _, chunk in chunks), question])
    passages = []
    for (candidate, chunk), words in zip(chunks, scores, strict=True):
        weighed = words / (1 + _PER_RANK * (candidate.rank or 0))
        score = weighed / (weighed + itself / 2) if weighed else 0.0
        if by_meaning and candidate.rank is not None and _shows(candidate, chunk):
            score = max(score, 1 / (2 + candidate.rank))
        if score > 0:
            passages.append(_Passage(candidate, chunk.start, chunk.end, chunk.start_line, chunk.end_line, score, words))
    return passages


def _shows(candidate: Candidate, chunk: Chunk) -> bool:
    """Whether QMD's snippet lies in this chunk."""
    return chunk.start_line <= candidate.last_line and chunk.end_line >= candidate.first_line


def _join(passage: _Passage, other: _Passage, most: int) -> bool:
    """Whether `passage` holds `other` now: it did, or they touch and are short enough together."""
    if passage.start <= other.start and other.end <= passage.end:
        return True
    if other.start > passage.end + 1 or passage.start > other.end + 1:
        return False
    start, end = min(passage.start, other.start), max(passage.end, other.end)
    if end - start > most:
        return False
    passage.start, passage.end = start, end
    passage.first, passage.last = min(passage.first, other.first), max(passage.last, other.last)
    return True


def _hit(passage: _Passage, explain: bool) -> MemoryHit:
    candidate = passage.candidate
    text = candidate.text
    first, last = passage.first, passage.last
    if text.lines is not None:
        first, last = text.lines[first - 1], text.lines[last - 1]
    place = None if candidate.rank is None else float(candidate.rank + 1)
    parts = {"words": round(passage.words, 4), "qmd_rank": place} if explain else None
    snippet = text.source[passage.start : passage.end]
    return MemoryHit(
        candidate.file.name, first, last, round(min(passage.score, 1.0), 6), snippet, candidate.file.source, parts
    )
