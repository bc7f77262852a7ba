"""Reading what qmd prints. Pure."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from typing import Any

from attrs import frozen

from lamella_qmd_backend.faults import without_ansi

_SCHEME = "qmd://"
_NOTHING = re.compile(
    r"(?:\[[^\]]*\]\s*|(?:warn|info|error|qmd):\s*)*no results found(?: above minimum score threshold)?\.?", re.I
)
_HEADER = re.compile(r"(?:\d+: )?@@ -(\d{1,9}),(\d{1,9}) @@")
_VERSION = re.compile(r"(\d+)\.(\d+)\.(\d+)")
_COUNTS = re.compile(r"Indexed: (\d+) new, (\d+) updated, (\d+) unchanged, (\d+) removed")
_TOTAL = re.compile(r"Total:\s+(\d+) files? indexed")
_PENDING = re.compile(r"Pending:\s+(\d+) need")
_VECTORS = re.compile(r"Vectors:\s+(\d+) embedded")
_FIELD = re.compile(r"^\s*(Path|Pattern):\s+(.*?)\s*$", re.M)
_EMBEDDED = re.compile(r"Embedded (\d+) chunks? from (\d+)", re.I)
_MOST_TRIES = 500


@frozen(slots=True)
class Result:
    """A file that QMD found: its collection, its path there as QMD writes it, and the lines of the snippet.

    Lines count from 1, both ends included; 0 when QMD does not tell them.
    """

    collection: str
    path: str
    first_line: int = 0
    last_line: int = 0


@frozen(slots=True)
class Counts:
    """What an update did, in documents of all collections."""

    new: int = 0
    updated: int = 0
    unchanged: int = 0
    removed: int = 0

    @property
    def documents(self) -> int:
        return self.new + self.updated + self.unchanged


@frozen(slots=True)
class IndexFacts:
    """What `qmd status` tells; None where it does not."""

    documents: int | None = None
    pending: int | None = None
    vectors: int | None = None


def parse_results(out: str, err: str = "") -> list[Result] | None:
    """The results of a search, best first, each file once; None when there is no answer among the text.

    Lines before and after the JSON are passed over, and items that are no results are left out.
    """
    text = without_ansi(out).replace("\ufeff", "")
    found = _results_among(text)
    if found is not None:
        return results_of(found)
    said_nothing = not text.strip()
    lines = without_ansi(err if said_nothing else text).splitlines()
    return [] if any(_NOTHING.fullmatch(line.strip()) for line in lines) else None


def is_nothing(out: str) -> bool:
    """Whether a text says that there are no results, and nothing else."""
    return _NOTHING.fullmatch(without_ansi(out).strip()) is not None


def results_of(items: list[Any]) -> list[Result]:
    """Results among decoded JSON values, each file once."""
    found = (_result(item) for item in items)
    unique: dict[tuple[str, str], Result] = {}
    for result in found:
        if result is not None:
            unique.setdefault((result.collection, result.path), result)
    return list(unique.values())


def parse_version(text: str) -> tuple[int, int, int] | None:
    """`qmd 2.8.3 (...)` as numbers."""
    found = _VERSION.search(text)
    return (int(found[1]), int(found[2]), int(found[3])) if found else None


def parse_update(text: str) -> Counts:
    """The sums over all collections."""
    rows = [tuple(map(int, found)) for found in _COUNTS.findall(text)]
    return Counts(*(sum(row[i] for row in rows) for i in range(4)))


def parse_status(text: str) -> IndexFacts:
    def number(pattern: re.Pattern[str]) -> int | None:
        found = pattern.search(text)
        return int(found[1]) if found else None

    facts = IndexFacts(number(_TOTAL), number(_PENDING), number(_VECTORS))
    return IndexFacts(facts.documents, facts.pending or 0, facts.vectors) if facts.documents is not None else facts


def parse_embedded(text: str) -> int:
    """How many texts an `embed` says that it gave a vector."""
    found = _EMBEDDED.search(without_ansi(text))
    return int(found[1]) if found else 0


def parse_collection(text: str) -> dict[str, str]:
    """`Path` and `Pattern` of `qmd collection show`."""
    return {found[1]: found[2] for found in _FIELD.finditer(text)}


def _results_among(text: str) -> list[Any] | None:
    """The array of results, wherever it stands; an empty array counts when there is no better one."""
    empty: list[Any] | None = None
    for value in _json_values(text):
        items = value.get("results") if isinstance(value, dict) else value
        if not isinstance(items, list):
            continue
        if any(_result(item) is not None for item in items):
            return items
        if not items and empty is None:
            empty = items
    return empty


def _json_values(text: str) -> Iterator[Any]:
    try:
        yield json.loads(text)
        return
    except (ValueError, RecursionError):
        pass
    decoder = json.JSONDecoder()
    position = 0
    for _ in range(_MOST_TRIES):
        starts = [at for at in (text.find("[", position), text.find("{", position)) if at >= 0]
        if not starts:
            return
        at = min(starts)
        try:
            value, position = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            position = at + 1
        else:
            yield value


def _result(item: Any) -> Result | None:
    file = item.get("file") if isinstance(item, dict) else None
    if not isinstance(file, str):
        return None
    # Never parsed as a URL: QMD writes paths as they are.
    collection, slash, path = file.removeprefix(_SCHEME).partition("/")
    if not slash or not collection or not path:
        return None
    first, last = _lines(item)
    return Result(collection, path, first, last)


def _lines(item: dict[str, Any]) -> tuple[int, int]:
    """The header of the snippet tells the range; without one, QMD's own best line."""
    snippet = item.get("snippet")
    header = _HEADER.match(snippet) if isinstance(snippet, str) else None
    if header and int(header[1]) > 0 and int(header[2]) > 0:
        return int(header[1]), int(header[1]) + int(header[2]) - 1
    line = item.get("line")
    if isinstance(line, (int, float)) and not isinstance(line, bool) and math.isfinite(line) and line >= 1:
        return int(line), int(line)
    return 0, 0
