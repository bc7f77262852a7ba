"""Which passages have a word, and how often: what FTS5 knows, in arrays that are ready to add up.

The tokens are FTS5's (see `stems`), and so are the numbers that BM25 needs, so the strengths made of
them are FTS5's up to rounding. Phrases need the places of words, which are not kept here.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, count
from typing import TYPE_CHECKING, Any

from attrs import field, frozen

from lamella_memory_core.lexical.stems import Stems

if TYPE_CHECKING:
    from lamella_memory_core.arrays import Floats, Numbers

# A mention counts these halves, in the text and in the file's name; see `keywords`.
_HALVES = (2, 1)


@frozen(slots=True, eq=False)
class Postings:
    """Mentions of T terms in n rows. Terms are in the order of their UTF-8 bytes.

    `letters` uint8: all terms without gaps; `ends` (T,): where each ends there. `starts` (T + 1,): where
    a term's postings begin in `rows` uint32 (P,) and `halves` uint16 (P,), twice the weighted number of
    mentions. `lengths` (n,): the tokens of a row. `numbers` are kept as they are stored: as int64.
    """

    letters: Any = field(repr=False)
    ends: Numbers = field(repr=False)
    starts: Numbers = field(repr=False)
    rows: Any = field(repr=False)
    halves: Any = field(repr=False)
    lengths: Numbers = field(repr=False)

    def arrays(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__ if not name.startswith("_")}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Any]) -> Postings:
        return cls(*(arrays[name] for name in ("letters", "ends", "starts", "rows", "halves", "lengths")))

    def mentions(self, token: str, *, prefix: bool = False) -> tuple[Numbers, Floats]:
        """The rows that have a token, or one that begins so, ascending; and how often, weighted."""
        import numpy as np

        wanted = token.encode()
        terms = _Terms(self)
        first = bisect_left(terms, wanted)
        if prefix:
            last = bisect_left(terms, wanted + b"\xff", lo=first)
        else:
            last = first + (first < len(terms) and terms[first] == wanted)
        span = slice(int(self.starts[first]), int(self.starts[last]))
        rows, often = self.rows[span].astype(np.int64), self.halves[span] * 0.5
        if last - first > 1:  # a row may have several of the tokens
            sums = np.bincount(rows, weights=often)
            rows = np.flatnonzero(sums)
            often = sums[rows]
        return rows, often


class _Terms(Sequence[bytes]):
    """The terms as something to search in, without making them all."""

    def __init__(self, postings: Postings) -> None:
        self._letters, self._ends = postings.letters, postings.ends

    def __len__(self) -> int:
        return len(self._ends)

    def __getitem__(self, at: Any) -> Any:
        begin = int(self._ends[at - 1]) if at else 0
        return self._letters[begin : int(self._ends[at])].tobytes()


def build_postings(texts: Iterable[tuple[str, str]], stems: Stems) -> Postings:
    """Postings of rows of search text: of the text itself, and of the file's name."""
    import numpy as np

    numbers: defaultdict[str, int] = defaultdict(count().__next__)
    words, cell_ends = array("i"), array("q")  # a row has two cells, its text and its name
    for text in chain.from_iterable(texts):
        words.extend(map(numbers.__getitem__, text.split(" ") if text else ()))
        cell_ends.append(len(words))
    tokens = stems.of(numbers)
    vocabulary = sorted({token.encode() for several in tokens for token in several})
    place = {term: number for number, term in enumerate(vocabulary)}
    cells, terms = _spread(_as_numbers(words), _as_numbers(cell_ends), tokens, place)
    del words
    row_count = len(cell_ends) // 2
    lengths = np.bincount(cells, minlength=2 * row_count).reshape(-1, 2).sum(axis=1)
    keys = terms.astype(np.int64)  # in place from here on: there may be millions
    del terms
    keys *= 2 * row_count
    keys += cells
    del cells
    rows, halves, starts = _collected(keys, row_count, len(vocabulary))
    return Postings(
        letters=np.frombuffer(b"".join(vocabulary), dtype=np.uint8),
        ends=np.cumsum([len(term) for term in vocabulary], dtype=np.int64),
        starts=starts,
        rows=rows,
        halves=halves,
        lengths=lengths,
    )


def _as_numbers(values: array[int]) -> Any:
    import numpy as np

    return np.frombuffer(values, dtype=np.dtype(values.typecode)) if values else np.zeros(0, dtype=np.int32)


def _spread(words: Any, cell_ends: Any, tokens: Sequence[Sequence[str]], place: Mapping[bytes, int]) -> Any:
    """The cell and the term of every token (each int32), from the word numbers of all cells."""
    import numpy as np

    cells = np.repeat(np.arange(len(cell_ends), dtype=np.int32), np.diff(cell_ends, prepend=0))
    counts = np.array([len(several) for several in tokens], dtype=np.int32)
    terms = np.array([place[token.encode()] for several in tokens for token in several], dtype=np.int32)
    if (counts == 1).all():
        return cells, terms[words]
    each = counts[words]
    cells = np.repeat(cells, each)
    # From where a word's tokens stand among all tokens of the text to where they stand in `terms`.
    shift = (np.cumsum(counts, dtype=np.int32) - counts)[words]
    shift += each
    shift -= np.cumsum(each, dtype=np.int32)
    where = np.repeat(shift, each)
    where += np.arange(len(where), dtype=np.int32)
    return cells, terms[where]


def _collected(keys: Any, row_count: int, term_count: int) -> Any:
    """Rows and halves of each posting, by term and row; and where the terms begin.

    A key is a term, a row, and the text (0) or the name (1), from the greatest to the least. Sorts `keys`.
    """
    import numpy as np

    keys.sort()
    weights = np.array(_HALVES, dtype=np.uint16)[np.bitwise_and(keys, 1, dtype=np.int8, casting="unsafe")]
    keys >>= 1
    begins = np.flatnonzero(np.concatenate([keys[:1] >= 0, keys[1:] != keys[:-1]]))
    halves = np.add.reduceat(weights, begins, dtype=np.uint32) if len(begins) else weights
    halves = np.minimum(halves, np.iinfo(np.uint16).max).astype(np.uint16)
    pairs = keys[begins]
    del begins, weights
    starts = np.searchsorted(pairs, np.arange(term_count + 1) * row_count)
    pairs %= max(row_count, 1)
    return pairs.astype(np.uint32), halves, starts.astype(np.int64)
