"""sessions.json: which transcript a session key points to, and what is known about it.

One JSON object, key to entry, in the fields and meanings of OpenClaw 2026.3 (its `contextTokens`
is the window). Every change is a locked read-modify-write on fresh content and an atomic replace;
a damaged file is kept aside and rebuilt from its backup and the transcripts, never taken for empty.
"""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from attrs import field, frozen

from lamella.errors import SessionError, SessionNotFound
from lamella.sessions.fields import count_of
from lamella.sessions.index_file import IndexFile, SessionEntry, Sessions, encode_index
from lamella.sessions.keys import check_session_id, normalize_key
from lamella.sessions.lines import decode_line
from lamella.sessions.locks import locked
from lamella.sessions.reader import is_header
from lamella.text.days import file_stamp, unix_ms
from lamella.text.files import write_atomic

INDEX_NAME = "sessions.json"
BACKUP_NAME = "sessions.json.bak"


@frozen(slots=True)
class IndexDamage:
    """What was wrong with sessions.json and what was done about it."""

    message: str
    kept_as: Path | None = None
    recovered: int = 0


@frozen(slots=True)
class IndexState:
    """The content of the index; `damage` is None when the file was whole or not there yet."""

    sessions: Sessions = field(factory=dict)
    damage: IndexDamage | None = None


class SessionIndex:
    """sessions.json of one sessions folder.

    `listener` is told about damage that was found and mended.
    """

    def __init__(
        self,
        folder: Path,
        *,
        file: Path | None = None,
        timeout: float = 10.0,
        listener: Callable[[IndexDamage], None] = lambda _damage: None,
    ) -> None:
        self.folder = folder
        self.path = file or folder / INDEX_NAME
        self.timeout = timeout
        self._file = IndexFile(self.path)
        self._listener = listener

    # --- reading ---------------------------------------------------------------------------------

    def load(self) -> IndexState:
        """Read the index without changing anything on disk.

        A damaged file is answered from its backup and the transcripts in the folder.
        """
        found = self._file.fresh()
        if found.problem is None:
            return IndexState(found.sessions)
        recovered = self._recover(found.sessions)
        return IndexState(recovered, IndexDamage(found.problem, None, len(recovered)))

    def get(self, key: str) -> SessionEntry | None:
        """A copy of a key's entry; case variants of the key are found, the newest wins."""
        content = self._file.content()
        sessions = content.sessions if content.problem is None else self.load().sessions
        found = _variants(sessions, normalize_key(key))
        return copy.deepcopy(found[0][1]) if found else None

    # --- changing --------------------------------------------------------------------------------

    def update(self, key: str, change: Callable[[SessionEntry | None], Mapping[str, Any] | None]) -> SessionEntry:
        """Replace a key's entry by what `change` makes of it (None when there is none yet).

        Returning None removes the entry. `updatedAt` never goes back.
        """
        normal = normalize_key(key)
        result: SessionEntry = {}

        def apply(sessions: Sessions) -> None:
            variants = _variants(sessions, normal)
            current = dict(variants[0][1]) if variants else None
            changed = change(dict(current) if current is not None else None)
            for name, _ in variants:
                del sessions[name]
            if changed is not None:
                result.update(self._portable(dict(changed)))
                sessions[normal] = result

        self.transact(apply)
        return dict(result)

    def patch(self, key: str, fields: Mapping[str, Any], *, touch: bool = True) -> SessionEntry:
        """Set fields of an entry (None removes a field). `touch` also renews `updatedAt`.

        Raises `SessionNotFound` when the key has no entry.
        """

        def change(entry: SessionEntry | None) -> SessionEntry:
            if entry is None:
                raise SessionNotFound(f"no session with key {key!r} in {self.path}")
            return merge_entry(entry, fields, touch=touch)

        return self.update(key, change)

    def remove(self, key: str) -> None:
        self.update(key, lambda _entry: None)

    def transact(self, change: Callable[[Sessions], None]) -> None:
        """Run `change` on the fresh content under the lock, then write it back if it differs."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with locked(self.path, timeout=self.timeout):
            sessions = self._load_for_update()
            before = encode_index(sessions)
            change(sessions)
            after = encode_index(sessions)
            if after == before and self.path.exists():
                return
            self._save(after)

    def _save(self, data: bytes) -> None:
        try:
            write_atomic(self.path, data, mode=0o600)
            write_atomic(self.path.with_name(BACKUP_NAME), data, mode=0o600)
        except OSError as error:
            raise SessionError(
                f"{self.path}: cannot be written: {error.strerror or error}",
                hint="The file is as it was. Check disk space and permissions.",
            ) from error

    def _load_for_update(self) -> Sessions:
        found = self._file.fresh()
        if found.problem is None:
            return found.sessions
        kept = self.path.with_name(f"{INDEX_NAME}.corrupt.{file_stamp()}")
        write_atomic(kept, self.path.read_bytes(), mode=0o600)
        recovered = self._recover(found.sessions)
        self._save(encode_index(recovered))
        self._listener(IndexDamage(found.problem, kept, len(recovered)))
        return recovered

    # --- recovery --------------------------------------------------------------------------------

    def _recover(self, readable: Sessions) -> Sessions:
        """What could be read, else the last whole backup, with entries added for transcripts that
        nothing points to."""
        backup = IndexFile(self.path.with_name(BACKUP_NAME)).fresh()
        sessions = {**(backup.sessions if backup.problem is None else {}), **readable}
        referenced = {str(e.get("sessionId")) for e in sessions.values()}
        orphans = [f for f in transcript_files(self.folder) if f.stem not in referenced]
        orphans.sort(key=lambda f: f.stat().st_mtime, reverse=True)
        for file in orphans:
            found = identify(file)
            if found is None or found[0] in referenced:
                continue
            session_id, key = found
            referenced.add(session_id)
            if not key or key in sessions:  # only lamella's own transcripts name their key
                key = f"agent:main:recovered:{session_id.lower()}"
            sessions[key] = {
                "sessionId": session_id,
                "sessionFile": file.name,
                "updatedAt": int(file.stat().st_mtime * 1000),
                "recovered": True,
            }
        return sessions

    # --- paths -----------------------------------------------------------------------------------

    def transcript_path(self, entry: Mapping[str, Any]) -> Path:
        """Where an entry's transcript lies, always inside the folder.

        A pointer to a file of the same name in the folder is taken as that file, so that a moved
        state folder keeps working. Raises `SessionError` for one that leads elsewhere.
        """
        session_id = check_session_id(str(entry.get("sessionId") or ""))
        pointer = entry.get("sessionFile")
        if not isinstance(pointer, str) or not pointer.strip():
            return self.folder / f"{session_id}.jsonl"
        return resolve_pointer(self.folder, pointer)

    def _portable(self, entry: SessionEntry) -> SessionEntry:
        """The entry with its file pointer relative to the folder."""
        pointer = entry.get("sessionFile")
        if isinstance(pointer, str) and pointer:
            # A pointer that leads elsewhere is reported when it is used, and kept as it is.
            with contextlib.suppress(SessionError, ValueError):
                entry["sessionFile"] = resolve_pointer(self.folder, pointer).relative_to(self.folder).as_posix()
        return entry


def resolve_pointer(folder: Path, pointer: str) -> Path:
    """The file that a `sessionFile` names, inside `folder`. Raises `SessionError` otherwise."""
    path = Path(pointer).expanduser()
    candidate = path if path.is_absolute() else folder / path
    real, root = _resolve(candidate), _resolve(folder)
    if real.is_relative_to(root) and real != root:
        return folder / real.relative_to(root)
    moved = folder / Path(pointer.replace("\\", "/")).name
    escapes = ".." in Path(pointer.replace("\\", "/")).parts
    if path.is_absolute() and not escapes and moved.is_file() and _resolve(moved).is_relative_to(root):
        return moved
    raise SessionError(
        f"sessionFile {pointer!r} leads outside {folder}",
        hint="Only transcripts in the sessions folder are used; correct or remove the pointer.",
    )


def _resolve(path: Path) -> Path:
    try:
        return path.resolve()
    except (OSError, RuntimeError, ValueError) as error:
        raise SessionError(f"{path}: cannot be resolved: {error}") from error


def merge_entry(entry: Mapping[str, Any], fields: Mapping[str, Any], *, touch: bool = True) -> SessionEntry:
    """An entry with fields set; None removes. A new model without a provider clears the provider."""
    merged = {**entry, **fields}
    if "model" in fields and "modelProvider" not in fields and fields["model"] != entry.get("model"):
        merged.pop("modelProvider", None)
    times = [t for t in (entry.get("updatedAt"), fields.get("updatedAt")) if isinstance(t, (int, float))]
    if touch:
        times.append(unix_ms())
    if times:
        merged["updatedAt"] = int(max(times))
    return {k: v for k, v in merged.items() if v is not None}


def transcript_files(folder: Path) -> list[Path]:
    """Live transcripts of a folder (archives left out), sorted by name."""
    if not folder.is_dir():
        return []
    return sorted(f for f in folder.iterdir() if f.suffix == ".jsonl" and f.is_file())


def identify(file: Path) -> tuple[str, str] | None:
    """(session id, session key or "") of a transcript, from its first line; None for a file without content.

    A file that has lost its header goes by its name. Raises `OSError`.
    """
    with file.open("rb") as handle:
        first = handle.read(1 << 16).split(b"\n", 1)[0]
    if not first.strip():
        return None
    try:
        value = decode_line(first)
    except ValueError:
        return file.stem, ""
    if not is_header(value):
        return file.stem, ""
    key = value.get("sessionKey")
    return str(value["id"]), normalize_key(key) if isinstance(key, str) else ""


def _variants(sessions: Sessions, normal: str) -> list[tuple[str, SessionEntry]]:
    found = [(k, v) for k, v in sessions.items() if normalize_key(k) == normal]
    found.sort(key=lambda item: count_of(item[1], "updatedAt"), reverse=True)
    return found
