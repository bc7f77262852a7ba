"""What of a sessions folder is old enough, or too much, to be put aside or removed.

`plan` looks at an inventory and says what to do, in the order of OpenClaw 2026.3: sessions that were not
used for long, then those above the most that may be, then archives that were kept long enough, a copy of a
large sessions.json, and last the bytes of the folder. It removes nothing; `lamella.sessions.upkeep` does.

Sessions that are running, and those that a caller protects, stay whatever the limits say.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Literal, TypeAlias

from attrs import define, evolve, field, frozen

from lamella.config.schema import MaintenanceSection
from lamella.config.units import parse_duration, parse_size
from lamella.sessions.archive import is_live_name, parse_archive_name
from lamella.sessions.index import INDEX_NAME
from lamella.sessions.index_file import Sessions, encode_index
from lamella.text.truncate import format_size

# archive: a session's entry goes, its transcript becomes a `.deleted.` archive. forget: the entry goes, and
# there is no transcript that only it has. remove: a session with its transcript goes for good. delete: a
# file goes for good. back_up: sessions.json is copied.
Action: TypeAlias = Literal["archive", "forget", "remove", "delete", "back_up"]

INDEX_BACKUP = re.compile(r"sessions\.json\.bak\.\d+", re.ASCII)
KEPT_BACKUPS = 3
_HIGH_WATER = 0.8
_DAY_MS = 86_400_000


@frozen(slots=True)
class Limits:
    """Times in milliseconds, sizes in bytes; None is no limit. `left_bytes` is how much may be left of a
    folder that had more than `most_bytes`."""

    unused_ms: float | None = None
    entries: int | None = None
    reset_ms: float | None = None
    deleted_ms: float | None = None
    most_bytes: int | None = None
    left_bytes: int = 0
    index_bytes: int | None = None

    @classmethod
    def of(cls, section: MaintenanceSection) -> Limits:
        """The limits of a configuration that has been checked."""
        unused = parse_duration(section.prune_after, unit="d") * 1000
        limits = cls(unused, section.max_entries, unused, unused, index_bytes=_size(section.rotate_bytes))
        if section.reset_archive_retention == "never":
            limits = evolve(limits, reset_ms=None)
        elif section.reset_archive_retention:
            limits = evolve(limits, reset_ms=parse_duration(section.reset_archive_retention, unit="d") * 1000)
        return limits.with_bytes(_size(section.max_disk_bytes), _size(section.high_water_bytes))

    def with_bytes(self, most: int | None, left: int | None = None) -> Limits:
        """The same with a limit of the folder's bytes: `left` of them may be left, or 80 %, never more than `most`."""
        if most is None:
            return evolve(self, most_bytes=None, left_bytes=0)
        return evolve(self, most_bytes=most, left_bytes=min(int(most * _HIGH_WATER) if left is None else left, most))


@frozen(slots=True)
class StoredFile:
    """A file of the folder: size in bytes, and when it was changed, in Unix ms."""

    name: str
    size: int
    modified: float


@frozen(slots=True)
class Inventory:
    """A sessions folder at a moment (`now`, Unix ms).

    `transcripts` is the file name of each key's transcript, whether it is there or not; `protected` are keys that
    stay, `busy` files that a process works on.
    """

    now: float
    sessions: Sessions
    files: tuple[StoredFile, ...] = ()
    transcripts: Mapping[str, str] = {}
    protected: frozenset[str] = frozenset()
    busy: frozenset[str] = frozenset()


@frozen(slots=True)
class Step:
    """One thing to do, and why. `size` is how many bytes get free by it; `updated_at` is the state of the
    entry that it was planned for."""

    action: Action
    why: str
    key: str = ""
    file: str = ""
    size: int = 0
    updated_at: object = None

    def to_json(self) -> dict[str, object]:
        return {"action": self.action, "key": self.key, "file": self.file, "bytes": self.size, "why": self.why}


@frozen(slots=True)
class Plan:
    """What is to be done, in order. `before` and `after` are bytes of the folder; `missed` tells that it stays
    above the limit, since all that is left is in use."""

    steps: tuple[Step, ...] = ()
    before: int = 0
    after: int = 0
    missed: bool = False


def plan(found: Inventory, limits: Limits) -> Plan:
    """What the limits ask for."""
    draft = _Draft(found, limits)
    before = draft.size
    draft.unused()
    draft.surplus()
    draft.kept_long_enough()
    draft.back_up()
    draft.bytes_above()
    missed = limits.most_bytes is not None and draft.size > limits.most_bytes
    return Plan(tuple(draft.steps), before, draft.size, missed)


@define(slots=True)
class _Draft:
    """The folder as it will be after the steps that are decided; `size` in bytes."""

    found: Inventory
    limits: Limits
    steps: list[Step] = field(factory=list)
    sessions: Sessions = field(init=False)
    files: dict[str, StoredFile] = field(init=False)
    size: int = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.sessions = dict(self.found.sessions)
        self.files = {file.name: file for file in self.found.files}
        self.size = sum(file.size for file in self.found.files)

    # --- sessions --------------------------------------------------------------------------------

    def unused(self) -> None:
        limit = self.limits.unused_ms
        if limit is None:
            return
        for key in self._unprotected():
            used = _updated(self.sessions[key])
            if used is not None and self.found.now - used > limit:
                self._put_aside(key, f"not used for {_days(self.found.now - used)}")

    def surplus(self) -> None:
        """Those that were not used for longest go; without a time, first of all."""
        if self.limits.entries is None:
            return
        surplus = max(len(self.sessions) - self.limits.entries, 0)
        for key in self._unprotected()[:surplus]:
            self._put_aside(key, f"more than {self.limits.entries} sessions")

    def _unprotected(self) -> list[str]:
        """Keys that may go, oldest use first."""
        busy = {key for key, name in self.found.transcripts.items() if name in self.found.busy}
        keys = self.sessions.keys() - self.found.protected - busy
        return sorted(keys, key=lambda key: (_updated(self.sessions[key]) or 0, key))

    def _put_aside(self, key: str, why: str) -> None:
        updated_at, file = self._forget(key)
        if file is None:
            self.steps.append(Step("forget", why, key, updated_at=updated_at))
        else:
            self.steps.append(Step("archive", why, key, file.name, updated_at=updated_at))

    def _forget(self, key: str) -> tuple[object, StoredFile | None]:
        """Take a key out. Returns its time, and its transcript unless another key still uses that."""
        entry = self.sessions.pop(key)
        self.size -= len(encode_index({key: entry})) - len(encode_index({}))
        name = self.found.transcripts.get(key, "")
        return entry.get("updatedAt"), None if name in self._in_use() else self.files.get(name)

    def _in_use(self) -> set[str]:
        return {self.found.transcripts[key] for key in self.sessions if key in self.found.transcripts}

    # --- files -----------------------------------------------------------------------------------

    def kept_long_enough(self) -> None:
        limits = {"reset": self.limits.reset_ms, "deleted": self.limits.deleted_ms}
        for file in list(self.files.values()):
            archive = parse_archive_name(file.name)
            limit = limits.get(archive.kind) if archive is not None else None
            if archive is not None and limit is not None and self.found.now - archive.at > limit:
                self._delete(file, f"put aside {_days(self.found.now - archive.at)} ago")

    def back_up(self) -> None:
        """A copy of a large sessions.json; the newest copies stay."""
        index = self.files.get(INDEX_NAME)
        if index is None or self.limits.index_bytes is None or index.size <= self.limits.index_bytes:
            return
        self.steps.append(Step("back_up", f"larger than {format_size(self.limits.index_bytes)}", file=index.name))
        self.size += index.size
        copies = sorted((f for f in self.files.values() if INDEX_BACKUP.fullmatch(f.name)), key=lambda f: f.name)
        for file in copies[: max(len(copies) - KEPT_BACKUPS + 1, 0)]:
            self._delete(file, f"more than {KEPT_BACKUPS} copies")

    def bytes_above(self) -> None:
        """Archives and transcripts that nothing points to go first, then sessions; oldest first each."""
        most = self.limits.most_bytes
        if most is None or self.size <= most:
            return
        why = f"the folder holds more than {format_size(most)}"
        for file in sorted(self._loose(), key=lambda file: file.modified):
            if self.size <= self.limits.left_bytes:
                return
            self._delete(file, why)
        for key in self._unprotected():
            if self.size <= self.limits.left_bytes:
                return
            updated_at, own = self._forget(key)
            self._remove(Step("remove", why, key, own.name if own else "", own.size if own else 0, updated_at))

    def _loose(self) -> Iterable[StoredFile]:
        """Files that no session needs, those that are to be put aside among them."""
        in_use = self._in_use() | self.found.busy
        for file in self.files.values():
            archived = parse_archive_name(file.name) is not None or INDEX_BACKUP.fullmatch(file.name)
            if archived or (is_live_name(file.name) and file.name not in in_use):
                yield file

    def _delete(self, file: StoredFile, why: str) -> None:
        """Let a file go for good; one that was to be put aside is not put aside first."""
        for place, step in enumerate(self.steps):
            if step.action == "archive" and step.file == file.name:
                del self.steps[place]
                self._remove(evolve(step, action="remove", why=f"{step.why}; {why}", size=file.size))
                return
        self._remove(Step("delete", why, file=file.name, size=file.size))

    def _remove(self, step: Step) -> None:
        self.files.pop(step.file, None)
        self.size -= step.size
        self.steps.append(step)


def _updated(entry: Mapping[str, object]) -> float | None:
    value = entry.get("updatedAt")
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def _size(text: str) -> int | None:
    return parse_size(text) if text else None


def _days(milliseconds: float) -> str:
    days = milliseconds / _DAY_MS
    return f"{days:.0f} days" if days >= 2 else f"{days * 24:.0f} hours"
