"""Finding words in all transcripts of a folder, those in use and those put aside."""

from __future__ import annotations

import unicodedata
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from heapq import nlargest
from pathlib import Path

from attrs import evolve, frozen

from lamella.errors import SessionError
from lamella.sessions.archive import is_live_name, parse_archive_name
from lamella.sessions.reader import read_transcript
from lamella.sessions.recall import Quote, spoken_in
from lamella.text.unicode import character_start

# Characters of an entry that are shown before and after the first word that was found.
_BEFORE = 80
_AFTER = 240


@frozen(slots=True)
class Found:
    """A place where all words stand: the file, and the quote around the first of them."""

    path: Path
    session_id: str
    quote: Quote

    @property
    def archived(self) -> bool:
        return not is_live_name(self.path.name)


@frozen(slots=True)
class Skipped:
    """A file that could not be searched, and why."""

    path: Path
    reason: str


def searchable(folder: Path) -> list[Path]:
    """The transcripts of a folder. Copies that were made before a repair (`.bak.`) say nothing new."""
    files = folder.iterdir() if folder.is_dir() else ()
    return sorted(file for file in files if _is_searched(file.name) and file.is_file())


def _is_searched(name: str) -> bool:
    archive = parse_archive_name(name)
    return is_live_name(name) or (archive is not None and archive.kind != "bak")


def search(files: Iterable[Path], text: str, limit: int) -> tuple[list[Found], list[Skipped]]:
    """The newest `limit` entries in which every word of `text` stands, in any case and any order.

    A word is found inside longer ones too, so that it needs no blanks around it. Thinking, summaries and silent
    turns are left out. Entries that stand in several files, such as a fork's, count once, in the first of them.
    """
    words = [_folded(word) for word in text.split()]
    skipped: list[Skipped] = []
    found = nlargest(limit, _once(_matches(files, words, skipped)), key=lambda match: match.quote.time)
    return found, skipped


def _matches(files: Iterable[Path], words: list[str], skipped: list[Skipped]) -> Iterator[Found]:
    for path in files:
        try:
            transcript = read_transcript(path)
        except SessionError as error:
            skipped.append(Skipped(path, str(error)))
            continue
        for quote in spoken_in(transcript.lines):
            folded = _folded(quote.text)
            if all(word in folded for word in words):
                yield Found(path, transcript.header.id, _around(quote, folded, words))


def _once(found: Iterable[Found]) -> Iterator[Found]:
    seen = set()
    for match in found:
        identity = (match.quote.entry_id, match.quote.time, match.quote.text)
        if identity not in seen:
            seen.add(identity)
            yield match


def _around(quote: Quote, folded: str, words: list[str]) -> Quote:
    """The part of an entry around the first word."""
    text = quote.text
    at = _unfolded(text, min(folded.find(word) for word in words))
    start = character_start(text, max(at - _BEFORE, 0))
    end = character_start(text, min(at + _AFTER, len(text)))
    return evolve(quote, text=text[start:end], start=start, left=len(text) - end)


def _unfolded(text: str, at: int) -> int:
    """The place in a text that folding has moved to `at`: some characters become several, or several one."""
    return bisect_right(range(len(text)), at, key=lambda end: len(_folded(text[:end]))) - 1


def _folded(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold()
