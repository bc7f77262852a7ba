"""Reading a whole transcript, however damaged. Nothing here ever writes.

What cannot be read is reported as `Damage` and stepped over; the rest stays usable.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attrs import field, frozen

from lamella.errors import SessionNotFound, TranscriptError
from lamella.sessions.keys import is_session_id
from lamella.sessions.lines import Head, Lines, decode_line, encode_line, read_head, strip_line, to_entry
from lamella.sessions.migrate import CURRENT_VERSION, migrate, version_of
from lamella.text.files import BOM
from lamella.types.entries import Damage, Header
from lamella.types.messages import JsonObject

# The beginning of a line, as every writer of the format puts it down.
_PLACE = re.compile(
    rb'\s*\{\s*"type"\s*:\s*"[^"\\]*"\s*,\s*"id"\s*:\s*"([^"\\]+)"\s*,\s*"parentId"\s*:\s*(?:"([^"\\]+)"|null)\s*,'
)
_HEADER_START = re.compile(rb'\s*\{\s*"type"\s*:\s*"session"')


@frozen(slots=True)
class Transcript:
    """A transcript's content.

    `header_found` is False when the header was lost and `header` is a stand-in; `migrated` tells
    that the file is of an older version; `complete_end` that its last line is whole.
    """

    path: Path
    header: Header
    lines: Lines = field(repr=False)
    damage: tuple[Damage, ...]
    size: int
    header_found: bool = True
    migrated: bool = False
    complete_end: bool = True

    @property
    def needs_rewrite(self) -> bool:
        """Whether other readers need a rewritten file before anything may be appended."""
        return self.size > 0 and (not self.header_found or self.migrated)


def to_header(fields: JsonObject) -> Header:
    """A header from its JSON object."""
    parent = fields.get("parentSession")
    return Header(
        str(fields.get("id") or ""),
        fields["timestamp"] if isinstance(fields.get("timestamp"), str) else "",
        fields["cwd"] if isinstance(fields.get("cwd"), str) else "",
        version_of(fields),
        parent if isinstance(parent, str) else None,
        fields,
    )


def is_header(value: Any) -> bool:
    return isinstance(value, Mapping) and value.get("type") == "session" and isinstance(value.get("id"), str)


def read_transcript(path: Path) -> Transcript:
    """Read a whole file.

    Raises `SessionNotFound` when there is none and `TranscriptError` when it holds nothing that
    looks like a session. An empty file is an empty session.
    """
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise SessionNotFound(f"{path}: no such transcript") from None
    except IsADirectoryError:
        raise TranscriptError(path, "is a folder, not a transcript") from None
    except OSError as error:
        raise TranscriptError(path, f"cannot be read: {error.strerror or error}") from error
    return parse_transcript(path, data)


def parse_transcript(path: Path, data: bytes) -> Transcript:
    """The transcript in `data`; `path` is for messages and for a lost session id."""
    raw = data.split(b"\n")
    damage: list[Damage] = []
    if data.startswith(BOM):
        damage.append(Damage("bom", "a byte-order mark before the first line", 1, 0))
        raw[0] = raw[0][len(BOM) :]
    header_line, header_fields = _find_header(raw)
    version = version_of(header_fields) if header_fields is not None else None
    if version is None and not _has_ids(raw):
        version = 1
    if version is not None and version < 2:
        lines = _read_version_1(path, raw, header_line, header_fields, damage)
    else:
        lines = _read_entries(raw, header_line, damage)
        if version == 2:
            lines = _rebuilt(header_fields or {}, [lines.entry(i).fields for i in range(len(lines))])
    if header_fields is None:
        header_fields = _stand_in(path, data, raw, lines, damage)
    complete = _last_line_complete(data, raw, damage)
    return Transcript(
        path,
        to_header({**header_fields, "version": CURRENT_VERSION} if (version or 3) < CURRENT_VERSION else header_fields),
        lines,
        tuple(sorted(damage, key=lambda d: d.line or 0)),
        len(data),
        header_line is not None or not data.strip(),
        version is not None and version < CURRENT_VERSION and bool(data.strip()),
        complete,
    )


def _find_header(raw: list[bytes]) -> tuple[int | None, JsonObject | None]:
    """Line index and object of the first header. Anything before it is no reason to give up."""
    for i, line in enumerate(raw):
        if b'"session"' not in line:
            continue
        try:
            value = decode_line(line)
        except ValueError:
            continue
        if is_header(value):
            return i, value
    return None, None


def _has_ids(raw: list[bytes]) -> bool:
    return any(isinstance(read_head(line), Head) for line in raw)


def _read_entries(raw: list[bytes], header_line: int | None, damage: list[Damage]) -> Lines:
    lines = Lines()
    heads, bodies = lines.heads, lines.raw
    lost: dict[str, str | None] = {}
    last = len(raw) - 1
    for i, line in enumerate(raw):
        if i == header_line:
            continue
        head = read_head(line)
        if isinstance(head, Head):
            if head.type == "session":
                damage.append(Damage("second_header", "another session header; ignored", i + 1))
                continue
            heads.append(head)
            bodies.append(line)
        elif head is not None:
            damage.append(_at(head, i, torn=i == last))
            if place := _PLACE.match(line):
                entry_id, parent = (part.decode("utf-8", "replace") if part else None for part in place.groups())
                lost[entry_id or ""] = parent
    if lost:
        _bridge(heads, lost)
    return lines


def _bridge(heads: list[Head], lost: Mapping[str, str | None]) -> None:
    """Hang entries below a lost one from its own parent, which its line still tells: else a damaged
    line in the middle would cost all that stands before it."""
    present = {head.id for head in heads}
    for i, head in enumerate(heads):
        parent, passed = head.parentId, set[str]()
        while parent is not None and parent in lost and parent not in present and parent not in passed:
            passed.add(parent)
            parent = lost[parent]
        if passed:
            heads[i] = Head(head.type, head.id, parent)


def _at(damage: Damage, i: int, *, torn: bool) -> Damage:
    if torn and damage.code == "bad_json":
        return Damage("torn_line", "the last line is cut short", i + 1)
    return Damage(damage.code, damage.message, i + 1)


def _read_version_1(
    path: Path, raw: list[bytes], header_line: int | None, header: JsonObject | None, damage: list[Damage]
) -> Lines:
    """Version 1 lines have no ids; any object with a type is an entry."""
    objects: list[JsonObject] = []
    for i, line in enumerate(raw):
        if i == header_line or not strip_line(line):
            continue
        try:
            value = decode_line(line)
        except ValueError as error:
            problem = Damage("bad_json", f"not a JSON line ({str(error)[:120]})")
            damage.append(_at(problem, i, torn=i == len(raw) - 1))
            continue
        if isinstance(value, dict) and isinstance(value.get("type"), str):
            objects.append(value)
        else:
            damage.append(Damage("no_type", "not an object with a string 'type'", i + 1))
    return _rebuilt(header or {"id": path.stem, "version": 1}, objects)


def _rebuilt(header: JsonObject, objects: list[JsonObject]) -> Lines:
    lines = Lines()
    for fields in migrate(header, objects)[1]:
        lines.add(to_entry(fields), encode_line(fields).rstrip(b"\n"))
    return lines


def _stand_in(path: Path, data: bytes, raw: list[bytes], lines: Lines, damage: list[Damage]) -> JsonObject:
    """A header for a file that has lost its own. Raises when there is nothing to put it above."""
    if not lines and data.strip() and not _HEADER_START.match(data):
        raise TranscriptError(
            path,
            "is not a transcript: no line in it is a session entry",
            line=1,
            hint="Nothing was changed. Give the path of a .jsonl session file.",
        )
    if data.strip():
        damage.append(Damage("no_header", "the session header is missing or damaged", 1))
    stem = path.stem
    return {
        "type": "session",
        "version": CURRENT_VERSION,
        "id": stem if is_session_id(stem) else "recovered",
        "timestamp": lines.entry(0).timestamp if lines else "",
        "cwd": "",
    }


def _last_line_complete(data: bytes, raw: list[bytes], damage: list[Damage]) -> bool:
    if not data or data.endswith(b"\n"):
        return True
    if not any(d.line == len(raw) for d in damage):
        damage.append(Damage("no_final_newline", "the last line has no line feed", len(raw)))
    return False
