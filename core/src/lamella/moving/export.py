"""Moving out: an agent's sessions as a folder that OpenClaw 2026.3 and Pi can open.

    agents/<agent>/sessions/               sessions.json, transcripts, archives

Transcripts are copied as they are. One that other readers would stumble over (damage, an older version)
is written whole; the file here stays as it is.
"""

from __future__ import annotations

from pathlib import Path

from lamella.errors import SessionError
from lamella.moving.entries import ORIGIN, Incoming
from lamella.moving.files import Content, Found, Move, regular_files
from lamella.moving.plan import Plan
from lamella.moving.report import Item
from lamella.moving.target import Target
from lamella.sessions.archive import is_live_name, parse_archive_name
from lamella.sessions.index_file import SessionEntry
from lamella.sessions.mend import defects, mended_lines
from lamella.sessions.reader import read_transcript
from lamella.sessions.store import SessionStore
from lamella.types.messages import JsonObject

PROGRAM = "openclaw"
# Fields that lamella alone has; those that it does not know may be OpenClaw's and stay.
OWN_FIELDS = frozenset(
    {
        ORIGIN,
        "reserveTokens",
        "usedTokens",
        "lifetimeUsage",
        "lastCompactionCause",
        "compactions",
        "compactionTranscriptBytes",
        "compactionStalled",
        "lastFlushOutcome",
        "lastFlushPath",
        "memoryFlushFailures",
        "turns",
        "turnsFromBytes",
        "silentLeaks",
        "transcriptBytes",
        "transcriptEntries",
        "lastError",
        "pendingEvents",
        "truncationWarningsSeen",
        "recovered",
    }
)


def plan_export(folder: Path, target: Target, agent_id: str) -> Plan:
    """What an export of an agent's sessions does; `target` is where they are, `folder` where they go."""
    here, place = target.sessions(agent_id), folder / "agents" / agent_id / "sessions"
    moves: list[Move] = []
    told: list[Item] = []
    for found in regular_files(here):
        if not is_live_name(found.path.name) and parse_archive_name(found.path.name) is None:
            continue
        moved = _file(found, place)
        if isinstance(moved, Move):
            moves.append(moved)
        else:
            told.append(moved)
    names = {move.target.name for move in moves}
    incoming: list[Incoming] = []
    for row in SessionStore(here).rows():
        if row.path.name in names:
            incoming.append(Incoming(row.key, _entry(row.entry, row.path.name)))
        else:
            told.append(Item("session", row.key, "", "left_out", "nothing was said in it yet"))
    return Plan(
        PROGRAM, folder, (), tuple(moves), {place: tuple(incoming)}, tuple(told), origin=str(here), label="lamella"
    )


def _entry(entry: JsonObject, file_name: str) -> SessionEntry:
    kept = {name: value for name, value in entry.items() if name not in OWN_FIELDS}
    return {**kept, "sessionFile": file_name}


def _file(found: Found, place: Path) -> Move | Item:
    path, live = found.path, is_live_name(found.path.name)
    if found.problem:
        return Item("transcript", str(path), "", "left_out", found.problem)
    if not live:
        return Move("archive", str(path), Content(path), place / path.name)
    try:
        transcript = read_transcript(path)
    except SessionError as error:
        return Item("transcript", str(path), "", "left_out", str(error))
    whole = not defects(transcript) and not transcript.needs_rewrite
    return Move("transcript", str(path), Content(path, None if whole else _mended), place / path.name, lock=True)


def _mended(file: Path) -> bytes:
    return b"".join(line + b"\n" for line in mended_lines(read_transcript(file)))
