"""The index as a value, and the ranking. Nothing here touches a file.

A passage weighs each of its words by how often it has it (TF) and by how few passages have it (IDF). Its
score is the square root of the cosine of these weights with those of the question, from 0 to 1: a cosine is
small where a few words answer among many, and searches leave out what is below 0.2.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping
from functools import cached_property
from typing import Any, TypeAlias

from attrs import field, frozen

from lamella.memory.transcripts import read_talk
from lamella.text.chunk import chunk_text
from lamella.text.files import decode_text
from lamella.text.segment import query_terms, tokens
from lamella.types.memory import MemoryHit, SearchQuery

# Another form of the file, or other words from the same text, make an index useless.
FORM = 1

Stamp: TypeAlias = tuple[int, int, int]


@frozen
class Passage:
    """A passage of a file; lines count from 1, both ends included."""

    start: int
    end: int
    text: str = field(repr=False)

    @cached_property
    def counts(self) -> Counter[str]:
        return Counter(tokens(self.text))


@frozen
class Indexed:
    """A file: what told that it has not changed (time in ns, size, inode), its source, its passages."""

    stamp: Stamp
    source: str
    passages: tuple[Passage, ...] = field(repr=False)


@frozen
class Index:
    """Files by name, of one workspace, cut with one size."""

    workspace: str
    passage_tokens: int
    files: Mapping[str, Indexed] = field(factory=dict, repr=False)

    @property
    def size(self) -> int:
        return sum(len(f.passages) for f in self.files.values())

    @cached_property
    def rarity(self) -> dict[str, float]:
        """IDF of every word: smooth, and above 0 also for a word that all passages have."""
        having = Counter(word for f in self.files.values() for p in f.passages for word in p.counts)
        return {word: math.log(1 + self.size / count) for word, count in having.items()}

    def search(self, query: SearchQuery) -> tuple[MemoryHit, ...]:
        """The best passages, best first; each place once."""
        asked = self._weights(self._words(query.text))
        hits: dict[str, MemoryHit] = {}
        for name, indexed in self.files.items():
            if name in query.exclude or (query.sources and indexed.source not in query.sources):
                continue
            for passage in indexed.passages:
                score = _likeness(asked, self._weights(passage.counts))
                if score > 0 and score >= query.min_score:
                    hit = MemoryHit(name, passage.start, passage.end, score, passage.text.strip(), indexed.source)
                    hits[hit.citation] = max(hit, hits.get(hit.citation, hit), key=lambda h: h.score)
        return tuple(sorted(hits.values(), key=lambda h: (-h.score, h.citation))[: query.max_results])

    def _words(self, question: str) -> Counter[str]:
        """The words of a question that the index has. One character alone stands for words that begin with it."""
        words: Counter[str] = Counter()
        for term in query_terms(question):
            if term.kind == "prefix":
                words.update(word for word in self.rarity if word.startswith(term.text))
            elif term.kind == "word":
                words[term.text] += 1
        return words

    def _weights(self, counts: Mapping[str, int]) -> dict[str, float]:
        rarity = self.rarity
        return {word: (1 + math.log(count)) * rarity[word] for word, count in counts.items() if word in rarity}


def _likeness(one: Mapping[str, float], other: Mapping[str, float]) -> float:
    product = sum(weight * other[word] for word, weight in one.items() if word in other)
    if not product:
        return 0.0
    lengths = math.sqrt(sum(w * w for w in one.values()) * sum(w * w for w in other.values()))
    return math.sqrt(min(product / lengths, 1.0))  # rounding may lead above it


def passages_of(data: bytes, source: str, passage_tokens: int) -> tuple[Passage, ...]:
    """The passages of a file. Of a transcript: what was said, at the lines where it stands."""
    if source == "sessions":
        talk = read_talk(data.splitlines())
        text, at = talk.text, talk.lines
    else:
        text, at = decode_text(data).text, ()
    chunks = chunk_text(text, size=passage_tokens, overlap=0)
    cut = (Passage(*_lines(c.start_line, c.end_line, at), c.text) for c in chunks)
    return tuple(p for p in cut if p.text.strip())


def _lines(start: int, end: int, at: tuple[int, ...]) -> tuple[int, int]:
    return (at[start - 1], at[end - 1]) if at else (start, end)


def encode(index: Index) -> bytes:
    files = {
        name: {"stamp": f.stamp, "source": f.source, "passages": [(p.start, p.end, p.text) for p in f.passages]}
        for name, f in index.files.items()
    }
    head = {"form": FORM, "workspace": index.workspace, "passageTokens": index.passage_tokens}
    return json.dumps({**head, "files": files}).encode()


def decode(data: bytes) -> Index:
    """Raises `ValueError` for anything but an index of this form."""
    try:
        value: Any = json.loads(data)
        if value["form"] != FORM:
            raise ValueError(f"form {value['form']!r}, expected {FORM}")
        files = {
            name: Indexed(tuple(f["stamp"]), f["source"], tuple(Passage(*p) for p in f["passages"]))
            for name, f in value["files"].items()
        }
        return Index(value["workspace"], value["passageTokens"], files)
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"not an index: {error}") from error
