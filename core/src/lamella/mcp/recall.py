"""Quotes from an agent's transcripts, for programs that are in none of its sessions. Secrets are masked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from attrs import evolve, field, frozen

from lamella.errors import EntryNotFound, SessionError, SessionNotFound, UsageError
from lamella.sessions.keys import SessionKey
from lamella.sessions.reader import read_transcript
from lamella.sessions.recall import Quote, best_quotes, part_of, spoken_in
from lamella.sessions.store import SessionStore
from lamella.text.redact import redact

# So much of the transcripts is read for one question, newest sessions first.
MOST_BYTES = 64_000_000


@frozen(slots=True)
class SessionQuote:
    """A quote, and the key of the session that it is from."""

    session: str
    quote: Quote


@frozen(slots=True)
class Recalled:
    """Quotes, best first. `searched` of `sessions` were read; `skipped` says why others were not."""

    quotes: tuple[SessionQuote, ...]
    searched: int
    sessions: int
    skipped: tuple[str, ...] = field(default=())


@frozen(slots=True)
class _Said:
    """What was said in one session; `problem`: why that cannot be told."""

    session: str
    quotes: tuple[Quote, ...] = ()
    problem: str = ""


def recall_in(store: SessionStore, key: SessionKey | None, question: str, limit: int) -> Recalled:
    """The passages that answer a question, one an entry, at most `limit`: of one session, or of all that are in use.

    Raises `SessionNotFound` for a key without a session.
    """
    places = _transcripts(store, key)
    read = list(_read(places))
    told = [said for said in read if not said.problem]
    # Ids are unique within a session only.
    numbered = [evolve(q, entry_id=f"{i} {q.entry_id}") for i, said in enumerate(told) for q in said.quotes]
    whole = {quote.entry_id: quote for quote in numbered}
    quotes = []
    for found in best_quotes(numbered, question, limit):
        number, _, entry_id = found.entry_id.partition(" ")
        shown = _masked(whole[found.entry_id], found, question)
        quotes.append(SessionQuote(told[int(number)].session, evolve(shown, entry_id=entry_id)))
    return Recalled(tuple(quotes), len(told), len(places), tuple(said.problem for said in read if said.problem))


def read_in(store: SessionStore, key: SessionKey | None, entry_id: str, offset: int) -> SessionQuote:
    """What one entry says, from character `offset` on, as far as one answer goes.

    Raises `EntryNotFound`, `SessionNotFound`, and `UsageError` for an offset beyond the entry's end.
    """
    for said in _read(_transcripts(store, key)):
        for quote in said.quotes:
            if quote.entry_id == entry_id:
                return SessionQuote(said.session, part_of(evolve(quote, text=redact(quote.text)), offset))
        if said.problem and key is not None:
            raise SessionError(said.problem)
    raise EntryNotFound(entry_id, key.text if key is not None else store.folder)


def _transcripts(store: SessionStore, key: SessionKey | None) -> list[tuple[str, Path]]:
    """Session keys and their transcripts, newest first."""
    if key is None:
        return [(row.key, row.path) for row in store.rows() if row.exists]
    located = store.require(key)
    if not located.exists:
        raise SessionNotFound(f"nothing has been said yet in session {key.text}")
    return [(key.text, located.path)]


def _read(places: Sequence[tuple[str, Path]]) -> Iterator[_Said]:
    """What was said in each session, until `MOST_BYTES` are read; the first one counts always."""
    left = MOST_BYTES
    for session, path in places:
        try:
            size = path.stat().st_size
            if size > left < MOST_BYTES:
                return
            left -= size
            yield _Said(session, tuple(_once(spoken_in(read_transcript(path).lines))))
        except (SessionError, OSError) as error:
            yield _Said(session, problem=f"{session}: {error}")


def _once(quotes: Sequence[Quote]) -> list[Quote]:
    """Branches repeat what they share."""
    return list({(q.time, q.role, q.text): q for q in quotes if q.text.strip()}.values())


def _masked(entry: Quote, passage: Quote, question: str) -> Quote:
    """The passage of an entry without secrets. They are looked for in the whole entry, since a passage may
    hold half of one."""
    text = redact(entry.text)
    if text == entry.text:
        return passage
    again = best_quotes([evolve(entry, text=text)], question, 1)
    return evolve(again[0], score=passage.score) if again else part_of(evolve(entry, text=text), 0, 1000)


def asked(query: str, entry: str) -> None:
    """Raises `UsageError` unless exactly one of both is given."""
    if bool(query.strip()) == bool(entry.strip()):
        raise UsageError("session_recall needs query, words to look for, or entry, an id to read")
