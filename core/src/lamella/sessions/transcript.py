"""One session's transcript: open, read its context, append, branch, fork."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lamella.errors import EntryNotFound, SessionNotFound
from lamella.sessions.context import Context, ModelState, StateSearch, build_context, state_of
from lamella.sessions.lines import Lines, encode_line, to_entry
from lamella.sessions.migrate import CURRENT_VERSION
from lamella.sessions.reader import read_transcript, to_header
from lamella.sessions.rebranch import rebranched
from lamella.sessions.storage import Storage
from lamella.sessions.tail import read_tail
from lamella.sessions.tree import find_leaf, labels_of, name_of, path_to
from lamella.sessions.writer import new_entry_id
from lamella.text.days import utc_iso
from lamella.types.entries import POSITION_TYPE, Damage, Entry, Header
from lamella.types.message_json import dump_content, dump_message
from lamella.types.messages import CustomMessage, Message


class SessionFile:
    """A transcript that can be appended to.

    Opening reads only as far back as the context needs (`tail`), or the whole file where its state
    asks for that. Nothing is written by opening; how entries reach the disk is `Storage`'s business.
    Callers hold the transcript's lock (`lamella.sessions.locks`) while they append.
    """

    def __init__(
        self,
        path: Path,
        header: Header,
        lines: Lines,
        leaf: int | None,
        path_positions: Sequence[int],
        *,
        state: ModelState,
        damage: Sequence[Damage] = (),
        whole: bool,
        on_disk: bool,
        size: int = 0,
        needs_rewrite: bool = False,
    ) -> None:
        self.path = path
        self.header = header
        self.damage = tuple(damage)
        self.state = state
        self._lines = lines
        self._leaf = leaf
        self._path = list(path_positions)
        self._whole = whole
        self._storage = Storage(path, header, on_disk=on_disk, size=size, needs_rewrite=needs_rewrite)
        self._context: Context | None = None
        self.appended = 0  # entries added by this object

    # --- opening ---------------------------------------------------------------------------------

    @classmethod
    def open(cls, path: Path | str, *, whole: bool = False) -> SessionFile:
        """Open an existing transcript; `whole` reads all of it (for trees, labels, searches).

        Raises `SessionNotFound` or `TranscriptError`.
        """
        path = Path(path)
        if not path.is_file():
            raise SessionNotFound(f"{path}: no such transcript")
        tail = None if whole else read_tail(path)
        if tail is not None:
            return cls(
                path,
                tail.header,
                tail.lines,
                tail.leaf,
                tail.path,
                state=tail.state,
                damage=tail.damage,
                whole=False,
                on_disk=True,
                size=tail.size,
            )
        found = read_transcript(path)
        leaf = find_leaf(found.lines)
        branch = path_to(found.lines.heads, found.lines.index(), leaf)
        damage = list(found.damage)
        if branch.cycle_at:
            damage.append(Damage("parent_cycle", f"parent links form a cycle at entry {branch.cycle_at!r}"))
        if branch.broken_by:
            damage.append(Damage("missing_parent", f"parent {branch.broken_by!r} is not in the file"))
        return cls(
            path,
            found.header,
            found.lines,
            leaf,
            branch.positions,
            state=state_of(found.lines, branch.positions),
            damage=damage,
            whole=True,
            on_disk=found.size > 0,
            size=found.size,
            needs_rewrite=found.needs_rewrite,
        )

    @classmethod
    def create(
        cls,
        path: Path | str,
        *,
        session_id: str | None = None,
        cwd: str = "",
        parent_session: str | None = None,
        session_key: str | None = None,
        now: str | None = None,
    ) -> SessionFile:
        """A new session. Its file appears with the first entry that says something.

        `session_key` is noted in the header, so that a lost sessions.json can be rebuilt.
        """
        path = Path(path)
        fields: dict[str, Any] = {
            "type": "session",
            "version": CURRENT_VERSION,
            "id": session_id or str(uuid.uuid4()),
            "timestamp": now or utc_iso(),
            "cwd": cwd,
        }
        if parent_session:
            fields["parentSession"] = parent_session
        if session_key:
            fields["sessionKey"] = session_key
        return cls(path, to_header(fields), Lines(), None, (), state=ModelState(), whole=True, on_disk=False)

    def close(self) -> None:
        self._storage.close()

    # --- reading ---------------------------------------------------------------------------------

    @property
    def id(self) -> str:
        return self.header.id

    @property
    def leaf_id(self) -> str | None:
        """Id of the entry that the next one will follow; None at the start."""
        return None if self._leaf is None else self._lines.heads[self._leaf].id

    @property
    def on_disk(self) -> bool:
        return self._storage.on_disk

    @property
    def changed_on_disk(self) -> bool:
        """Whether somebody else has written to the file since it was read or last appended to."""
        return self._storage.changed

    def context(self) -> Context:
        """The context of the current leaf."""
        if self._context is None:
            self._context = build_context(self._lines, self._path, self.state)
        return self._context

    def branch_entries(self) -> tuple[Entry, ...]:
        """Entries of the current branch, root first, as far back as they are loaded: at least
        those that the context is made of."""
        return tuple(self._lines.entries(self._path))

    def latest_custom(self, custom_type: str) -> Any:
        """The data of the branch's newest `custom` entry of a type, as far back as it is loaded; None without one."""
        for position in reversed(self._path):
            if self._lines.heads[position].type == "custom":
                entry = self._lines.entry(position)
                if entry.text("customType") == custom_type:
                    return entry.fields.get("data")
        return None

    def lines(self) -> Lines:
        """All entries of the file, in file order."""
        self._load_whole()
        return self._lines

    def entry(self, entry_id: str) -> Entry:
        """The entry with this id. Raises `EntryNotFound`."""
        return self._lines.entry(self._find(entry_id))

    def path_of(self, entry_id: str | None = None) -> tuple[int, ...]:
        """Positions of an entry's whole branch, root first (the current leaf's by default)."""
        self._load_whole()
        leaf = self._leaf if entry_id is None else self._find(entry_id)
        return path_to(self._lines.heads, self._lines.index(), leaf).positions

    @property
    def labels(self) -> dict[str, str]:
        self._load_whole()
        return labels_of(self._lines)

    @property
    def name(self) -> str | None:
        self._load_whole()
        return name_of(self._lines)

    def _find(self, entry_id: str) -> int:
        found = self._lines.index().get(entry_id)
        if found is None:
            self._load_whole()
            found = self._lines.index().get(entry_id)
        if found is None:
            raise EntryNotFound(entry_id, self.path)
        return found

    def _load_whole(self) -> None:
        """Read the rest of the file; leaf and branch stay the same entries."""
        if self._whole:
            return
        leaf_id = self.leaf_id
        found = read_transcript(self.path)
        index = found.lines.index()
        self._lines = found.lines
        self._leaf = None if leaf_id is None else index[leaf_id]
        self._path = list(path_to(found.lines.heads, index, self._leaf).positions)
        self._whole = True
        self._context = None

    # --- appending -------------------------------------------------------------------------------

    def append(self, entry_type: str, fields: Mapping[str, Any], *, now: str | None = None) -> Entry:
        """Append an entry below the current leaf; it is on disk when this returns.

        Raises `TranscriptError` when it could not be stored; then nothing has changed.
        """
        parent = self.leaf_id
        entry = to_entry(
            {"type": entry_type, "id": new_entry_id(), "parentId": parent, "timestamp": now or utc_iso(), **fields}
        )
        line = encode_line(entry.fields)
        self._storage.store(entry, line, self._lines)
        self._leaf = self._lines.add(entry, line.rstrip(b"\n"))
        self._path.append(self._leaf)
        said = StateSearch()
        said.look(self._lines, self._leaf)
        self.state = said.result(self.state)
        self._context = None
        self.appended += 1
        return entry

    def append_message(self, message: Message) -> Entry:
        """Append a message; custom messages get their own entry type."""
        if isinstance(message, CustomMessage):
            return self.append_custom_message(message)
        return self.append("message", {"message": dump_message(message)})

    def append_custom_message(self, message: CustomMessage) -> Entry:
        fields: dict[str, Any] = {
            "customType": message.custom_type,
            "content": dump_content(message.content),
            "display": message.display,
        }
        if message.details is not None:
            fields["details"] = message.details
        return self.append("custom_message", fields)

    def append_model_change(self, provider: str, model_id: str) -> Entry:
        return self.append("model_change", {"provider": provider, "modelId": model_id})

    def append_thinking_level(self, level: str) -> Entry:
        return self.append("thinking_level_change", {"thinkingLevel": level})

    def append_compaction(
        self,
        summary: str,
        first_kept_entry_id: str | None,
        tokens_before: int,
        *,
        details: Any = None,
        from_hook: bool = False,
    ) -> Entry:
        """Append a compaction, then model and thinking level again, so that a reader from the end
        need not look behind it."""
        fields: dict[str, Any] = {"summary": summary}
        if first_kept_entry_id is not None:
            fields["firstKeptEntryId"] = first_kept_entry_id
        fields["tokensBefore"] = tokens_before
        if details is not None:
            fields["details"] = details
        if from_hook:
            fields["fromHook"] = True
        state = self.state
        entry = self.append("compaction", fields)
        if state.provider is not None and state.model_id is not None:
            self.append_model_change(state.provider, state.model_id)
        self.append_thinking_level(state.thinking_level)
        return entry

    def append_custom(self, custom_type: str, data: Any = None) -> Entry:
        """Append program state that no model sees."""
        fields: dict[str, Any] = {"customType": custom_type}
        if data is not None:
            fields["data"] = data
        return self.append("custom", fields)

    def set_name(self, name: str) -> Entry:
        """Name the session; an empty name clears it."""
        return self.append("session_info", {"name": " ".join(name.split())})

    def set_label(self, target_id: str, label: str | None) -> Entry:
        """Label an entry; None or an empty label removes it. Raises `EntryNotFound`."""
        self._find(target_id)
        fields: dict[str, Any] = {"targetId": target_id}
        if label:
            fields["label"] = label
        return self.append("label", fields)

    # --- branches --------------------------------------------------------------------------------

    def branch(self, entry_id: str | None) -> Entry:
        """Continue from an earlier entry, or from the start (None).

        A position marker is stored, so that a later process resumes there too.
        """
        previous = (self._leaf, list(self._path), self.state)
        self._move_to(entry_id)
        try:
            return self.append_custom(POSITION_TYPE, {"entryId": entry_id})
        except BaseException:
            self._leaf, self._path, self.state = previous
            raise

    def branch_with_summary(
        self, entry_id: str | None, summary: str, *, details: Any = None, from_hook: bool = False
    ) -> Entry:
        """Continue from an earlier entry, with a summary of the branch that is left."""
        left = self.leaf_id
        previous = (self._leaf, list(self._path), self.state)
        self._move_to(entry_id)
        fields: dict[str, Any] = {"fromId": left or "root", "summary": summary}
        if details is not None:
            fields["details"] = details
        if from_hook:
            fields["fromHook"] = True
        try:
            return self.append("branch_summary", fields)
        except BaseException:
            self._leaf, self._path, self.state = previous
            raise

    def replace_messages(self, replacements: Mapping[str, Message]) -> None:
        """Continue on a copy of the branch in which these entries (by id) hold other messages.

        From the first of them on every entry is written again under a new id; what refers to them
        follows, labels too. The old entries stay as a branch of their own. All or nothing is stored.
        Raises `EntryNotFound` for an id that is not on the branch, and `TranscriptError`.
        """
        entries = self.branch_entries()
        places = {entry.id: place for place, entry in enumerate(entries)}
        for entry_id in replacements:
            if entry_id not in places:
                raise EntryNotFound(entry_id, self.path)
        if not replacements:
            return
        copies = rebranched(entries, replacements, labels_of(self._lines), new_entry_id)
        self._storage.store_all(copies, self._lines)
        del self._path[min(places[i] for i in replacements) :]
        for entry in copies:
            self._path.append(self._lines.add(entry, encode_line(entry.fields).rstrip(b"\n")))
        self._leaf = self._path[-1]
        self._context = None
        self.appended += len(copies)

    def _move_to(self, entry_id: str | None) -> None:
        self._load_whole()
        self._leaf = None if entry_id is None else self._find(entry_id)
        index = self._lines.index()
        self._path = list(path_to(self._lines.heads, index, self._leaf).positions)
        self.state = state_of(self._lines, self._path)
        self._context = None

    def fork(
        self,
        path: Path,
        *,
        entry_id: str | None = None,
        cwd: str | None = None,
        session_id: str | None = None,
        session_key: str | None = None,
    ) -> SessionFile:
        """A new session that holds the branch of an entry (the current leaf by default).

        Ids of entries stay the same. Label entries are left out of the chain and written again at its end.
        """
        positions = self.path_of(entry_id)
        forked = SessionFile.create(
            path,
            session_id=session_id,
            cwd=self.header.cwd if cwd is None else cwd,
            parent_session=str(self.path),
            session_key=session_key,
        )
        labels = self.labels
        kept_ids: set[str] = set()
        parent: str | None = None
        for entry in self._lines.entries(positions):
            if entry.type == "label":
                continue
            copy = to_entry({**entry.fields, "parentId": parent})
            forked._adopt(copy)
            kept_ids.add(copy.id)
            parent = copy.id
        forked.state = state_of(forked._lines, forked._path)
        for target, label in labels.items():
            if target in kept_ids:
                forked.set_label(target, label)
        forked.flush()
        return forked

    def _adopt(self, entry: Entry) -> None:
        """Take over an entry of another session as it is, to be written by `flush`."""
        self._storage.hold(entry)
        self._leaf = self._lines.add(entry, encode_line(entry.fields).rstrip(b"\n"))
        self._path.append(self._leaf)
        self._context = None

    # --- storing ---------------------------------------------------------------------------------

    def flush(self) -> None:
        """Write a session that so far exists in memory only, whatever it holds."""
        self._storage.flush()
