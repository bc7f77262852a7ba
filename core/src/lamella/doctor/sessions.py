"""Checks of a sessions folder: sessions.json, locks, and every transcript."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from lamella.doctor.finding import FIX, Finding
from lamella.errors import SessionError, SessionLocked, TranscriptError, UsageError
from lamella.sessions.index import SessionIndex
from lamella.sessions.index_file import Sessions
from lamella.sessions.keys import parse_key
from lamella.sessions.locks import PathLock, is_stale, locked, process_alive, read_owner
from lamella.sessions.mend import defects, mended_lines
from lamella.sessions.reader import read_transcript
from lamella.sessions.status import session_status
from lamella.sessions.store import SessionStore
from lamella.sessions.transcript import SessionFile
from lamella.sessions.writer import rewrite
from lamella.text.days import file_stamp, unix_ms
from lamella.text.files import write_atomic
from lamella.types.entries import Damage

if TYPE_CHECKING:
    from lamella.runtime import Runtime

_LOCK = ".lock"
_SHOWN = 3


def check_compactions(runtime: Runtime) -> Iterator[Finding]:
    """What `lamella status` tells of the sessions' compactions too: unusual, and nothing that is broken."""
    for row in runtime.store.rows():
        for found in session_status(row, runtime.settings, {}).findings:
            yield Finding("note", row.key, found.message)


# --- sessions.json -------------------------------------------------------------------------------------------


def check_index(runtime: Runtime) -> Iterator[Finding]:
    store = runtime.store
    try:
        state = store.index.load()
    except SessionError as error:
        yield Finding("error", str(store.index.path), str(error))
        return
    if state.damage is not None:
        text = f"{state.damage.message}; {state.damage.recovered} sessions can be recovered"
        yield Finding("error", str(store.index.path), text, FIX, partial(_recover, store.index))
    for key in state.sessions:
        try:
            parse_key(key)
        except UsageError as error:
            yield Finding("warning", key, str(error), FIX, partial(_remove, store.index, key))
    for key, reason in store.left_out(state.sessions).items():
        yield Finding("error", key, reason, FIX, partial(_drop_pointer, store.index, key))
    for row in store.rows(state.sessions):
        if not row.exists and row.entry.get("transcriptBytes"):
            text = f"its transcript {row.path.name} is gone"
            yield Finding("error", row.key, text, FIX, partial(_remove, store.index, row.key))


def _recover(index: SessionIndex) -> str:
    index.transact(lambda _sessions: None)
    return f"rebuilt; the damaged file is kept as {index.path.name}.corrupt.<time>"


def _remove(index: SessionIndex, key: str) -> str:
    backup = _back_up(index)

    def change(sessions: Sessions) -> None:
        sessions.pop(key, None)

    index.transact(change)
    return f"the entry is removed; the old file is {backup.name}"


def _drop_pointer(index: SessionIndex, key: str) -> str:
    """Let an entry point to the file of its own id; an entry without a usable id is removed."""
    backup = _back_up(index)

    def change(sessions: Sessions) -> None:
        entry = {k: v for k, v in sessions.pop(key, {}).items() if k != "sessionFile"}
        try:
            index.transcript_path(entry)
        except (SessionError, UsageError):
            return
        sessions[key] = entry

    index.transact(change)
    return f"the pointer is removed; the old file is {backup.name}"


def _back_up(index: SessionIndex) -> Path:
    at = unix_ms()
    while (backup := index.path.with_name(f"{index.path.name}.bak.{at}")).exists():
        at += 1
    write_atomic(backup, index.path.read_bytes(), mode=0o600)
    return backup


# --- locks ---------------------------------------------------------------------------------------------------


def check_locks(runtime: Runtime) -> Iterator[Finding]:
    """Lock files whose owner is gone. They hinder nobody for long; one that others wrote may."""
    if not runtime.sessions_dir.is_dir():
        return
    for file in sorted(runtime.sessions_dir.glob(f"*{_LOCK}")):
        owner = read_owner(file)
        if owner is None or (owner.pid is not None and owner.lamella and process_alive(owner.pid)):
            continue
        try:
            modified = file.stat().st_mtime
        except FileNotFoundError:
            continue
        if is_stale(owner, now=time.time(), modified=modified):
            target = file.with_name(file.name.removesuffix(_LOCK))
            yield Finding("warning", str(file), f"left behind by {owner}", FIX, partial(_unlock, target))


def _unlock(target: Path) -> str:
    lock = PathLock(target, timeout=0)
    lock.acquire()  # which removes what was left behind, and nothing else
    lock.release()
    return "removed"


# --- transcripts ---------------------------------------------------------------------------------------------


def check_transcripts(runtime: Runtime) -> Iterator[Finding]:
    """Every transcript through everything that reads one. One that a turn is writing is left alone."""
    store = runtime.store
    for file in sorted(store.folder.glob("*.jsonl")) if store.folder.is_dir() else ():
        if not _examine(file):
            continue
        try:
            with locked(file, timeout=0):  # what looked wrong may have been a line in the making
                yield from _examine(file)
        except SessionLocked:
            continue


def _examine(file: Path) -> list[Finding]:
    if not file.is_file():  # reading a pipe might never end
        return [Finding("error", str(file), "is not a regular file", FIX, partial(_put_aside, file))]
    try:
        transcript = read_transcript(file)
        found = defects(transcript)
        disagreement = "" if found or transcript.needs_rewrite or not transcript.lines else _disagreement(file)
    except TranscriptError as error:
        return [Finding("error", str(file), str(error), FIX, partial(_put_aside, file))]
    except SessionError as error:
        return [Finding("error", str(file), str(error))]
    if disagreement:
        return [Finding("error", str(file), disagreement)]
    return [Finding("warning", str(file), _told(found), FIX, partial(_mend, file))] if found else []


def _told(found: list[Damage]) -> str:
    shown = [f"line {d.line}: {d.message}" if d.line else d.message for d in found[:_SHOWN]]
    more = f"; and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
    return "; ".join(shown) + more


def _disagreement(file: Path) -> str:
    """Whether reading from the end and reading all of it differ, which would be a fault of lamella."""
    from_end, whole = SessionFile.open(file), SessionFile.open(file, whole=True)
    same = from_end.leaf_id == whole.leaf_id and from_end.context().messages == whole.context().messages
    return "" if same else "reading from the end gives another context than reading all: please report this"


def _mend(file: Path) -> str:
    with locked(file, timeout=0):
        copy = rewrite(file, mended_lines(read_transcript(file)))
    return f"written anew; the original is {copy.name}"


def _put_aside(file: Path) -> str:
    with locked(file, timeout=0):
        aside = file.rename(file.with_name(f"{file.name}.corrupt.{file_stamp()}"))
    return f"put aside as {aside.name}"


def store_files(store: SessionStore) -> Iterator[Path]:
    """The folder and the files in it that hold what was said."""
    if store.folder.is_dir():
        yield store.folder
        yield from sorted(store.folder.glob("*.jsonl"))
        if store.index.path.exists():
            yield store.index.path
