"""Finding and quoting what was said in a session, above all what compactions have folded into summaries.

Entries are cut into passages, which are compared with the question by their words. Thinking, summaries
and silent turns are no part of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from attrs import evolve, frozen

from lamella.errors import UsageError
from lamella.sessions.context import entry_messages, visible_positions
from lamella.sessions.hidden import FLUSH_PROMPT, is_hidden
from lamella.sessions.lines import Lines
from lamella.sessions.transcript import SessionFile
from lamella.text.chunk import chunk_text
from lamella.text.dialogue import Turn, turns_of
from lamella.text.lexical import lexical_scores
from lamella.text.silent import spoken
from lamella.text.unicode import character_start
from lamella.types.entries import Compaction, Entry

TOOL = "session_recall"
MOST_RESULTS = 20
# The longest part of an entry that is read at once, in characters.
MOST_CHARS = 8000
_PASSAGE_TOKENS = 160
_TYPES = ("message", "custom_message")


@frozen(slots=True)
class Quote:
    """What an entry says, or the part of it from character `start` on, with `left` characters after it.

    `role` as in transcripts; `folded`: whether a summary stands for it in the context. `score` is
    comparable within one answer.
    """

    entry_id: str
    time: str
    role: str
    text: str
    folded: bool = False
    start: int = 0
    left: int = 0
    score: float = 0.0

    def to_json(self) -> dict[str, Any]:
        return {
            "entryId": self.entry_id,
            "time": self.time,
            "role": self.role,
            "folded": self.folded,
            "text": self.text,
            "start": self.start,
            "left": self.left,
            "score": round(self.score, 4),
        }


def recall(file: SessionFile, question: str, limit: int, *, only_folded: bool = False) -> list[Quote]:
    """The passages of a session that answer a question, best first, one an entry, at most `limit`."""
    said = spoken_on(file.lines(), file.path_of())
    return best_quotes([q for q in said if q.folded or not only_folded], question, limit)


def best_quotes(said: Sequence[Quote], question: str, limit: int) -> list[Quote]:
    """The best passage of each of these entries, best entries first; the later of two that are as good.

    Entries that share no word with the question are left out.
    """
    passages = [passage for quote in said for passage in _passages(quote)]
    scores = lexical_scores(question, [p.text for p in passages])
    best: dict[str, Quote] = {}
    for passage, score in zip(passages, scores, strict=True):
        if score > 0 and (passage.entry_id not in best or score > best[passage.entry_id].score):
            best[passage.entry_id] = evolve(passage, score=score)
    order = {quote.entry_id: place for place, quote in enumerate(said)}
    return sorted(best.values(), key=lambda q: (-q.score, -order[q.entry_id]))[:limit]


def read_entry(file: SessionFile, entry_id: str, offset: int = 0) -> Quote:
    """What one entry says, from character `offset` on, at most `MOST_CHARS` of it.

    Raises `EntryNotFound`, and `UsageError` when the entry says nothing to quote or ends before `offset`.
    """
    file.entry(entry_id)
    for path in (file.path_of(), file.path_of(entry_id)):
        for quote in spoken_on(file.lines(), path):
            if quote.entry_id == entry_id:
                return part_of(quote, offset)
    raise UsageError(f"entry {entry_id} says nothing that can be quoted")


def part_of(quote: Quote, offset: int = 0, limit: int = MOST_CHARS) -> Quote:
    """At most `limit` characters of a quote, from `offset` on. Raises `UsageError` for one beyond its end."""
    length = len(quote.text)
    if not 0 <= offset < length:
        raise UsageError(f"offset {offset}: entry {quote.entry_id} has {length} characters")
    end = character_start(quote.text, offset + limit)
    end = end if end > offset else min(offset + limit, length)
    return evolve(quote, text=quote.text[offset:end], start=offset, left=length - end)


def spoken_on(lines: Lines, path: Sequence[int]) -> list[Quote]:
    """What was said on a branch (positions, root first), whole, in order.

    Entries that a compaction of the branch has folded count also where they lie beside it, unless an
    entry of the branch is their copy.
    """
    visible = set(visible_positions(lines, path)[0])
    on_branch = list(_quotes([lines.entry(i) for i in path], {lines.heads[i].id for i in path if i not in visible}))
    beside = _folded_beside(lines, path)
    known = {(q.time, q.role, q.text) for q in on_branch}
    added = _quotes([lines.entry(i) for i in beside], {lines.heads[i].id for i in beside})
    return [*(q for q in added if (q.time, q.role, q.text) not in known), *on_branch]


def spoken_in(lines: Lines) -> list[Quote]:
    """What was said in a transcript on any of its branches, whole, in file order."""
    return list(_quotes(list(lines.entries()), set()))


def _folded_beside(lines: Lines, path: Sequence[int]) -> list[int]:
    """Positions of entries that compactions of a branch name as folded and that are not on it."""
    index, on_path = lines.index(), set(path)
    named: set[int] = set()
    for position in path:
        if lines.heads[position].type == "compaction":
            named.update(index[i] for i in _folded_ids(lines.entry(position)) if i in index)
    return sorted(named - on_path)


def _folded_ids(entry: Entry) -> list[str]:
    details = Compaction.of(entry).details
    ids = details.get("foldedEntryIds") if isinstance(details, dict) else None
    return [i for i in ids if isinstance(i, str)] if isinstance(ids, list) else []


def _quotes(entries: Sequence[Entry], folded: set[str]) -> Iterator[Quote]:
    silent = False
    for entry in entries:
        if entry.type not in _TYPES:
            continue
        turns = turns_of(entry_messages(entry))
        if entry.role == "user":
            silent = any(turn.text.lstrip().startswith(FLUSH_PROMPT) for turn in turns)
        text = "\n".join(said for turn in turns if not is_hidden(turn.text) and (said := _said(turn)))
        if text and not silent and not _is_recall(entry) and entry.fields.get("display") is not False:
            yield Quote(entry.id, entry.timestamp, entry.role or entry.type, text, entry.id in folded)


def _said(turn: Turn) -> str:
    match turn.kind:
        case "call":
            return f"[call] {turn.text}"
        case "assistant":
            return spoken(turn.text)
        case _:
            return turn.text


def _is_recall(entry: Entry) -> bool:
    """Whether an entry is what this module has answered: quotes of quotes help nobody."""
    return entry.role == "toolResult" and entry.fields["message"].get("toolName") == TOOL


def _passages(quote: Quote) -> Iterator[Quote]:
    for chunk in chunk_text(quote.text, size=_PASSAGE_TOKENS, overlap=0):
        yield evolve(quote, text=chunk.text, start=chunk.start, left=len(quote.text) - chunk.end)
