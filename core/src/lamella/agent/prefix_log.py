"""What each turn of a session sent, as hashes: `prompts/<sessionId>.turns.jsonl` in the state folder.

One JSON line for a turn: `{"turn", "time", "hash", "same", "parts"}`, where `same` parts at the
beginning are those of the turn before and `parts` are the others. A turn that only adds to the
history costs a short line. `{"digest", "text"}` lines keep the texts of tools and sections, once each.

The file is derived and may be deleted. When it grows beyond `MAX_BYTES` only the newest turns stay.
Writers hold the transcript's lock, so there is one at a time.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

import msgspec
from attrs import field, frozen

from lamella.agent.prefix import Part, PartKind, Prefix, alike, message_part, text_part, tool_text
from lamella.context.prompt import section_texts
from lamella.context.snapshots import session_file
from lamella.text.days import utc_iso
from lamella.text.estimate import Estimator
from lamella.text.files import write_atomic
from lamella.types.hooks import PromptSection
from lamella.types.messages import Message, ModelMessage
from lamella.types.model import ModelRequest

Build: TypeAlias = Callable[[Sequence[Message], int], Awaitable[ModelRequest]]

MAX_BYTES = 1 << 20
KEPT_TURNS = 20


@frozen(slots=True)
class TurnPrefix:
    """What the last model call of a turn was sent. Turns count from 1."""

    turn: int
    time: str
    prefix: Prefix


@frozen(slots=True)
class PrefixHistory:
    """The turns of a session that are on record, oldest first, and the texts of tools and sections."""

    turns: tuple[TurnPrefix, ...] = ()
    texts: Mapping[str, str] = field(factory=dict, repr=False)

    def text_of(self, part: Part) -> str | None:
        return self.texts.get(part.digest)


def log_path(state_dir: Path, session_id: str) -> Path | None:
    """Where the prefixes of a session are; None for an id that is no file name."""
    return session_file(state_dir, session_id, "turns.jsonl")


def read_prefixes(path: Path | None) -> PrefixHistory:
    """What is on record; lines that a killed process left half-written are passed over. Raises `OSError`."""
    if path is None:
        return PrefixHistory()
    try:
        lines = path.read_bytes().split(b"\n")
    except FileNotFoundError:
        return PrefixHistory()
    turns: list[TurnPrefix] = []
    texts: dict[str, str] = {}
    for line in lines:
        try:
            row = msgspec.json.decode(line, type=_Line) if line.strip() else _Line()
        except msgspec.MsgspecError:
            continue
        if row.text is not None:
            texts[row.digest] = row.text
        elif row.turn:
            before = turns[-1].prefix.parts[: row.same] if turns else ()
            turns.append(TurnPrefix(row.turn, row.time, Prefix((*before, *(Part(*p) for p in row.parts)))))
    return PrefixHistory(tuple(turns), texts)


class LastRequest:
    """Remembers the last request that a builder made."""

    def __init__(self, build: Build) -> None:
        self._build = build
        self.request: ModelRequest | None = None

    async def build(self, messages: Sequence[Message], call: int) -> ModelRequest:
        self.request = await self._build(messages, call)
        return self.request


class PrefixLog:
    """Writes the prefixes of one session; a session without a path has no record."""

    def __init__(self, path: Path | None, estimate: Estimator) -> None:
        self._path = path
        self._estimate = estimate
        self._history: PrefixHistory | None = None
        # Messages are frozen values, so one that comes again need not be hashed again.
        self._known: dict[int, tuple[ModelMessage, Part]] = {}

    def add(self, sections: Sequence[PromptSection], request: ModelRequest) -> None:
        """Record what a turn sent. Raises `OSError`."""
        if self._path is None:
            return
        history = self._history or read_prefixes(self._path)
        parts, texts = self._parts(sections, request)
        number = history.turns[-1].turn + 1 if history.turns else 1
        turn = TurnPrefix(number, utc_iso(), Prefix(parts))
        new_texts = {digest: text for digest, text in texts.items() if digest not in history.texts}
        lines = [_text_line(d, t) for d, t in new_texts.items()] + [_turn_line(turn, history.turns[-1:])]
        _append(self._path, b"".join(lines))
        self._history = PrefixHistory((*history.turns, turn), {**history.texts, **new_texts})
        if self._path.stat().st_size > MAX_BYTES:
            self._history = _newest(self._history)
            write_atomic(self._path, _encode(self._history), mode=0o600)

    def _parts(
        self, sections: Sequence[PromptSection], request: ModelRequest
    ) -> tuple[tuple[Part, ...], dict[str, str]]:
        """The request's parts, and the texts of tools and sections by digest."""
        tools = [(text_part("tool", t.name, tool_text(t)), tool_text(t)) for t in request.tools]
        texts = zip(sections, section_texts(sections), strict=True)
        fixed = tools + [(text_part("section", section.name, text), text) for section, text in texts]
        messages = [(m, self._part(m)) for m in request.messages]
        self._known = {id(m): (m, part) for m, part in messages}
        return (*(p for p, _ in fixed), *(p for _, p in messages)), {p.digest: text for p, text in fixed}

    def _part(self, message: ModelMessage) -> Part:
        known = self._known.get(id(message))
        return known[1] if known is not None and known[0] is message else message_part(message, self._estimate(message))


class _Line(msgspec.Struct):
    """A line of either kind."""

    turn: int = 0
    time: str = ""
    same: int = 0
    parts: list[tuple[PartKind, str, int, int, str, str]] = []
    digest: str = ""
    text: str | None = None


def _text_line(digest: str, text: str) -> bytes:
    return msgspec.json.encode({"digest": digest, "text": text}) + b"\n"


def _turn_line(turn: TurnPrefix, before: Sequence[TurnPrefix]) -> bytes:
    parts = turn.prefix.parts
    earlier = before[-1].prefix.parts if before else ()
    same = alike(earlier, parts)
    rows = [(p.kind, p.name, p.size, p.tokens, p.digest, p.blocks) for p in parts[same:]]
    row = {"turn": turn.turn, "time": turn.time, "hash": turn.prefix.hash, "same": same, "parts": rows}
    return msgspec.json.encode(row) + b"\n"


def _newest(history: PrefixHistory) -> PrefixHistory:
    """The newest turns that take up at most half of the limit, at least two, and the texts that they need."""
    turns = history.turns[-KEPT_TURNS:]
    while True:
        used = {p.digest for t in turns for p in t.prefix.parts}
        kept = PrefixHistory(turns, {d: t for d, t in history.texts.items() if d in used})
        if len(turns) <= 2 or len(_encode(kept)) <= MAX_BYTES // 2:
            return kept
        turns = turns[1:]


def _encode(history: PrefixHistory) -> bytes:
    texts: Iterable[bytes] = (_text_line(d, t) for d, t in history.texts.items())
    turns = (_turn_line(t, history.turns[max(i - 1, 0) : i]) for i, t in enumerate(history.turns))
    return b"".join((*texts, *turns))


def _append(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab") as file:
        # After a line that a killed process left unfinished, ours must stand alone.
        file.write(b"\n" + data if file.tell() and not _ends_line(path) else data)


def _ends_line(path: Path) -> bool:
    with path.open("rb") as file:
        file.seek(-1, 2)
        return file.read(1) == b"\n"
