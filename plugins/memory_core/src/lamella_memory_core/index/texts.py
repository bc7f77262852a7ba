"""What is indexed of a file: all of a note, and of a transcript what was said in it."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import sqlite3
from collections.abc import Iterable

from attrs import evolve, frozen

from lamella.memory.reading import load, open_plain
from lamella.memory.scan import FoundFile
from lamella.memory.transcripts import SOURCE as SESSIONS
from lamella.memory.transcripts import read_talk
from lamella.text.files import decode_text
from lamella.types.memory import MemoryHit

log = logging.getLogger(__name__)


@frozen(slots=True)
class Content:
    """A file's `text` to index, and what tells it from another one.

    `topic`: the telling part of the file's name. `line_map`: where the text's lines stand in a
    transcript, as a JSON list; None when they are the file's own. `stat` is from before the reading.
    """

    text: str
    hash: str
    stat: os.stat_result
    topic: str = ""
    line_map: str | None = None


def read_content(file: FoundFile) -> Content | None:
    """Read a file; None when it is gone. Raises `OSError`, and `MemoryPathError` when it became a link."""
    return _transcript(file) if file.source == SESSIONS else _note(file)


def in_transcripts(connection: sqlite3.Connection, hits: Iterable[MemoryHit]) -> tuple[MemoryHit, ...]:
    """The hits, those from transcripts with the lines of the transcript instead of those of its text."""
    return tuple(_placed(connection, hit) if hit.source == SESSIONS else hit for hit in hits)


def _note(file: FoundFile) -> Content | None:
    content = load(file.file)
    if content is None:
        return None
    decoded = decode_text(content.data)
    if decoded.replaced:
        log.warning("%s: %d places are not valid %s", file.name, decoded.replaced, decoded.encoding)
    topic = file.name.removeprefix("memory/").removesuffix(".md")
    return Content(decoded.text, hashlib.sha256(content.data).hexdigest(), content.stat, topic)


def _transcript(file: FoundFile) -> Content | None:
    """Transcripts grow large, so no more of one is held than what was said."""
    opened = open_plain(file.file)
    if opened is None:
        return None
    with opened:
        stat = os.fstat(opened.fileno())
        talk = read_talk(opened)
    line_map = json.dumps(talk.lines, separators=(",", ":"))
    digest = hashlib.sha256(f"{talk.text}\n{line_map}".encode()).hexdigest()
    return Content(talk.text, digest, stat, line_map=line_map)


def _placed(connection: sqlite3.Connection, hit: MemoryHit) -> MemoryHit:
    row = connection.execute("SELECT line_map FROM files WHERE path = ?", (hit.path,)).fetchone()
    lines = json.loads(row[0])
    return evolve(hit, start_line=lines[hit.start_line - 1], end_line=lines[hit.end_line - 1])
