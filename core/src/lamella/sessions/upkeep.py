"""Putting sessions aside, bringing them back, and removing them.

Everything happens under the transcript's lock, which is not waited for: a session that is running stays as it
is, and `SessionLocked` says so. The entry in sessions.json goes first and the file after it, so that whoever is
killed in between leaves a transcript that nothing points to, never a key whose transcript has vanished.
`restore` takes such a transcript too.

The entry of a session that was put aside is kept in `.entries/<archive>.json`, and comes back with it.
"""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Callable, Iterable
from pathlib import Path

from attrs import frozen

from lamella.errors import LamellaError, SessionError, SessionNotFound, UsageError
from lamella.sessions.archive import ArchiveKind, ArchiveName, archive_path, is_live_name, parse_archive_name, put_aside
from lamella.sessions.index import identify
from lamella.sessions.index_file import SessionEntry
from lamella.sessions.keys import check_session_id, normalize_key, parse_key
from lamella.sessions.lines import decode_line, encode_line
from lamella.sessions.locks import PathLock, holder
from lamella.sessions.maintenance import Inventory, Limits, Step, StoredFile, plan
from lamella.sessions.store import Located, SessionStore
from lamella.text.days import unix_ms
from lamella.text.files import write_atomic

ENTRIES_FOLDER = ".entries"

log = logging.getLogger(__name__)


@frozen(slots=True)
class Done:
    """A step that was carried out, or why it was not (`problem`). `archive`: where a transcript is now."""

    step: Step
    archive: str = ""
    problem: str = ""

    def to_json(self) -> dict[str, object]:
        return {**self.step.to_json(), "archive": self.archive, "problem": self.problem}


@frozen(slots=True)
class Restoration:
    """How a transcript comes back: the file `source` becomes `target`, the session of `key` (a copy's may be "").

    `entry` is what sessions.json gets. `present` is the session that the key has now, which is put aside.
    """

    source: Path
    target: Path
    key: str
    entry: SessionEntry | None = None
    present: Located | None = None


# --- by limits --------------------------------------------------------------------------------------


def take_inventory(store: SessionStore, protected: Iterable[str] = ()) -> Inventory:
    """What the sessions folder holds now. Nothing is locked. Keys that lead to no file of the folder are left out."""
    rows = {normalize_key(row.key): row for row in reversed(store.rows())}  # of variants in case, the newest
    files = tuple(_files(store.folder))
    return Inventory(
        unix_ms(),
        {key: dict(row.entry) for key, row in rows.items()},
        files,
        {key: row.path.relative_to(store.folder).as_posix() for key, row in rows.items()},
        frozenset(protected),
        frozenset(file.name for file in files if is_live_name(file.name) and holder(store.folder / file.name)),
    )


def _files(folder: Path) -> Iterable[StoredFile]:
    if not folder.is_dir():
        return
    with os.scandir(folder) as entries:
        for entry in entries:
            with contextlib.suppress(FileNotFoundError):  # another process may remove it meanwhile
                if entry.is_file(follow_symlinks=False):
                    status = entry.stat(follow_symlinks=False)
                    yield StoredFile(entry.name, status.st_size, status.st_mtime * 1000)


def carry_out(store: SessionStore, steps: Iterable[Step]) -> list[Done]:
    """Do what was planned. What has changed since, or is in use, is left as it is, and the result says so."""
    done = []
    for step in steps:
        try:
            archive = _carry_out(store, step)
        except (LamellaError, OSError) as error:
            done.append(Done(step, problem=str(error)))
        else:
            done.append(Done(step, archive.name if archive else ""))
    return done


def maintain(store: SessionStore, limits: Limits, protected: Iterable[str] = ()) -> list[Done]:
    """Plan and carry out at once."""
    return carry_out(store, plan(take_inventory(store, protected), limits).steps)


def _carry_out(store: SessionStore, step: Step) -> Path | None:
    match step.action:
        case "archive" | "forget":
            return set_aside(store, _as_planned(store, step), "deleted")
        case "remove":
            remove_session(store, _as_planned(store, step))
        case "delete":
            remove_file(store, store.folder / step.file)
        case "back_up":
            copy = store.index.path.with_name(f"{step.file}.bak.{unix_ms()}")
            write_atomic(copy, store.index.path.read_bytes(), mode=0o600)
    return None


def _as_planned(store: SessionStore, step: Step) -> Located:
    """The session of a step. Raises `SessionError` when it is another one, or was used, since the step was planned."""
    entry = store.index.get(step.key)
    if entry is not None and entry.get("updatedAt") == step.updated_at:
        path = store.index.transcript_path(entry)
        return Located(step.key, entry, path, path.is_file())
    raise SessionError(f"{step.key} has changed in the meantime")


# --- one by one ----------------------------------------------------------------------------------------


def set_aside(store: SessionStore, located: Located, kind: ArchiveKind) -> Path | None:
    """Take a session out of sessions.json and make an archive of its transcript.

    Returns the archive; None when there is no transcript, or another key has it too. Raises `SessionLocked`
    while the session is running, and `SessionError` when its key belongs to another one by now.
    """
    with PathLock(located.path, timeout=0):
        return _archive(store, located, kind, lambda: _take_out(store, located))


def replace_session(
    store: SessionStore, located: Located, renewed: Callable[[SessionEntry], SessionEntry]
) -> Path | None:
    """Give a key the entry that `renewed` makes of its own, and make an archive of the transcript that it had. Hold
    that one's lock.

    Returns the archive; None when there is no transcript, or another key has it too. Raises `SessionError` when
    the key has another session by now.
    """

    def change(entry: SessionEntry | None) -> SessionEntry:
        if entry is None or entry.get("sessionId") != located.entry.get("sessionId"):
            raise SessionError(f"{located.key} has changed in the meantime")
        return renewed(entry)

    return _archive(store, located, "reset", lambda: store.index.update(located.key, change))


def _archive(store: SessionStore, located: Located, kind: ArchiveKind, change: Callable[[], object]) -> Path | None:
    """Note a session's entry, `change` sessions.json, and rename the transcript if no key has it then."""
    archive = archive_path(located.path, kind)
    note = _write_note(store, archive, located)
    try:
        change()
        if _is_free(store, located.path):
            return located.path.rename(archive)
    except BaseException:
        note.unlink(missing_ok=True)
        raise
    note.unlink(missing_ok=True)
    return None


def remove_session(store: SessionStore, located: Located) -> None:
    """Remove a session and its transcript for good, unless another key has that too. Raises as `set_aside`."""
    with PathLock(located.path, timeout=0):
        _take_out(store, located)
        if _is_free(store, located.path):
            located.path.unlink()


def remove_file(store: SessionStore, path: Path) -> None:
    """Remove an archive, or a transcript that nothing points to, for good. Raises `SessionError` for one in use,
    and `OSError`."""
    with PathLock(path, timeout=0):
        if is_live_name(path.name) and _used_by(store, path):
            raise SessionError(f"{path.name} has a session by now")
        path.unlink()
        _note_of(store, path).unlink(missing_ok=True)


def plan_restore(store: SessionStore, source: Path, key: str = "") -> Restoration:
    """How an archive, or a transcript that nothing points to, would come back.

    A copy (`.bak.`) takes its transcript's place again. Any other one becomes the session of `key`, or of the
    key that it had. Raises `UsageError` when it cannot come back so.
    """
    archive = parse_archive_name(source.name)
    target = store.folder / (archive.transcript if archive is not None else source.name)
    if archive is not None and archive.kind == "bak":
        return Restoration(source, target, next(iter(_used_by(store, target)), ""))
    if archive is None and (users := _used_by(store, source)):
        raise UsageError(f"{source.name} is the session of {users[0]}; there is nothing to restore")
    wanted, entry = _entry_for(store, source, target.stem, key)
    if archive is not None and os.path.lexists(target):
        raise UsageError(f"{target.name} is there already", hint="Put its session aside first.")
    return Restoration(source, target, wanted, entry, store.locate(parse_key(wanted)))


def restore(store: SessionStore, planned: Restoration) -> Path | None:
    """Bring a transcript back. Its bytes stay what they are, and nothing that was there is lost.

    Returns where the transcript is now that the key, or a copy's transcript, had. Raises `SessionLocked`,
    `SessionError` and `OSError`.
    """
    if planned.entry is None:
        with PathLock(planned.target, timeout=0):
            replaced = put_aside(planned.target, "bak") if planned.target.exists() else None
            planned.source.rename(planned.target)
        return replaced
    replaced = set_aside(store, planned.present, "reset") if planned.present is not None else None
    with PathLock(planned.target, timeout=0):
        if planned.source != planned.target:
            planned.source.rename(planned.target)
        try:
            _put_in(store, planned.key, {**planned.entry, "sessionFile": planned.target.name, "updatedAt": unix_ms()})
        except BaseException:
            planned.target.rename(planned.source)
            raise
        _note_of(store, planned.source).unlink(missing_ok=True)
    return replaced


def _entry_for(store: SessionStore, source: Path, stem: str, key: str) -> tuple[str, SessionEntry]:
    """The key and the entry that a transcript gets again."""
    noted_key, entry = _read_note(store, source)
    session_id, own_key = identify(source) or (stem, "")
    text = key or noted_key or own_key
    if not text:
        raise UsageError(f"{source.name} does not tell its session key", hint="Give one with --key.")
    wanted = parse_key(text)
    return wanted.text, entry or {"sessionId": check_session_id(session_id), "chatType": wanted.chat_type}


# --- entries, and what they are noted in ------------------------------------------------------------------


def _take_out(store: SessionStore, located: Located) -> None:
    """Remove the key's entry, if it is still of this session, in the state that `located` shows."""
    same = _of_the_same(located)
    kept: list[SessionEntry] = []

    def change(entry: SessionEntry | None) -> SessionEntry | None:
        if entry is not None and not same(entry):
            kept.append(entry)
            return entry
        return None

    store.index.update(located.key, change)
    if kept:
        raise SessionError(f"{located.key} has changed in the meantime")


def _put_in(store: SessionStore, key: str, entry: SessionEntry) -> None:
    """Give a key an entry. Raises `SessionError` when it has got one meanwhile."""

    def change(present: SessionEntry | None) -> SessionEntry:
        if present is not None:
            raise SessionError(f"{key} has got another session in the meantime")
        return entry

    store.index.update(key, change)


def _of_the_same(located: Located) -> Callable[[SessionEntry], bool]:
    names = ("sessionId", "updatedAt")
    return lambda entry: all(entry.get(name) == located.entry.get(name) for name in names)


def _used_by(store: SessionStore, path: Path) -> list[str]:
    """The keys whose transcript this is."""
    likely = {key: e for key, e in store.index.load().sessions.items() if _may_lead_to(store.folder, e, path.name)}
    return [row.key for row in store.rows(likely) if row.path == path]


def _may_lead_to(folder: Path, entry: SessionEntry, name: str) -> bool:
    """Whether an entry's transcript may be the file of that name: a quick look, without following its path."""
    pointer = str(entry.get("sessionFile") or f"{entry.get('sessionId')}.jsonl").replace("\\", "/")
    return pointer.rpartition("/")[2] == name or (folder / pointer).is_symlink()


def _is_free(store: SessionStore, path: Path) -> bool:
    return path.is_file() and not _used_by(store, path)


def _note_of(store: SessionStore, archive: Path) -> Path:
    return store.folder / ENTRIES_FOLDER / f"{archive.name}.json"


def _write_note(store: SessionStore, archive: Path, located: Located) -> Path:
    note = _note_of(store, archive)
    note.parent.mkdir(exist_ok=True)
    write_atomic(note, encode_line({"key": located.key, "entry": located.entry}), mode=0o600)
    return note


def _read_note(store: SessionStore, archive: Path) -> tuple[str, SessionEntry]:
    """(key, entry) of a session that was put aside; empty where nothing was noted."""
    note = _note_of(store, archive)
    try:
        value = decode_line(note.read_bytes())
        return str(value["key"]), dict(value["entry"])
    except FileNotFoundError:
        return "", {}
    except (ValueError, KeyError, TypeError) as error:  # the transcript is what counts
        log.warning("%s cannot be used: expected a key and an entry (%s)", note, error)
        return "", {}


# --- what was put aside -----------------------------------------------------------------------------------


@frozen(slots=True)
class Archived:
    """A transcript that was put aside; `key` is empty where nothing tells it."""

    path: Path
    name: ArchiveName
    size: int
    session_id: str
    key: str

    def to_json(self) -> dict[str, object]:
        return {
            "file": self.path.name,
            "kind": self.name.kind,
            "at": self.name.at,
            "bytes": self.size,
            "sessionId": self.session_id,
            "key": self.key,
        }


def list_archives(store: SessionStore) -> list[Archived]:
    """All archives of the folder, newest first."""
    found = []
    for file in _files(store.folder):
        name = parse_archive_name(file.name)
        if name is not None:
            with contextlib.suppress(FileNotFoundError):  # another process may bring it back meanwhile
                found.append(_archived(store, file, name))
    return sorted(found, key=lambda archived: (archived.name.at, archived.path.name), reverse=True)


def _archived(store: SessionStore, file: StoredFile, name: ArchiveName) -> Archived:
    path = store.folder / file.name
    session_id, own_key = identify(path) or (name.transcript.removesuffix(".jsonl"), "")
    return Archived(path, name, file.size, session_id, _read_note(store, path)[0] or own_key)


def find_stored(store: SessionStore, text: str) -> Path:
    """A transcript of the folder, in use or put aside, by its file name; else the newest archive of a session, by
    its id or key. Raises `SessionNotFound`."""
    file = store.folder / text
    if Path(text).name == text and file.is_file() and (is_live_name(text) or parse_archive_name(text) is not None):
        return file
    for archived in list_archives(store):
        if archived.name.kind != "bak" and (text == archived.session_id or normalize_key(text) == archived.key != ""):
            return archived.path
    raise SessionNotFound(
        f"nothing was put aside as {text!r} in {store.folder}",
        hint="`lamella sessions list --archived` shows what was.",
    )
