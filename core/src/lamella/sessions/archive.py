"""Archives: transcripts that were put aside, and how they are named.

    <transcript>.jsonl.<kind>.<time>

The kind says why: `reset` (its key got a new session), `deleted` (its key was removed), `bak` (a copy that
was made before the transcript was written anew). The time is UTC in ISO form with `-` for `:`, with or
without milliseconds. Names and meanings are those of OpenClaw 2026.3.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, TypeAlias, cast, get_args

from attrs import frozen

from lamella.text.days import file_stamp, parse_iso_ms, unix_ms

ArchiveKind: TypeAlias = Literal["reset", "deleted", "bak"]

_KINDS = "|".join(get_args(ArchiveKind))
_NAME = re.compile(
    rf"(.+\.jsonl)\.({_KINDS})\.(\d{{4}}-\d\d-\d\dT)(\d\d)-(\d\d)-(\d\d(?:\.\d{{3}})?Z)", re.ASCII | re.DOTALL
)


@frozen(slots=True)
class ArchiveName:
    """What an archive's name says: the file name of its transcript, the kind, and when, in Unix ms."""

    transcript: str
    kind: ArchiveKind
    at: int

    def __str__(self) -> str:
        return f"{self.transcript}.{self.kind}.{file_stamp(datetime.fromtimestamp(self.at / 1000, UTC))}"


def parse_archive_name(name: str) -> ArchiveName | None:
    """The parts of an archive's file name; None for any other name."""
    found = _NAME.fullmatch(name)
    if found is None:
        return None
    transcript, kind, day, hour, minute, second = found.groups()
    at = parse_iso_ms(f"{day}{hour}:{minute}:{second}")
    return None if at is None else ArchiveName(transcript, cast(ArchiveKind, kind), at)


def is_live_name(name: str) -> bool:
    """Whether a file of a sessions folder is a transcript that is in use, by its name."""
    return name.endswith(".jsonl")


def archive_path(transcript: Path, kind: ArchiveKind) -> Path:
    """A free name beside a transcript for putting it aside at this moment."""
    at = unix_ms()
    while True:
        path = transcript.with_name(str(ArchiveName(transcript.name, kind, at)))
        if not path.exists():
            return path
        at += 1


def put_aside(transcript: Path, kind: ArchiveKind) -> Path:
    """Rename a transcript to an archive; returns the new path. Hold the transcript's lock.

    Raises `FileNotFoundError` when there is none, and `OSError`.
    """
    return transcript.rename(archive_path(transcript, kind))
