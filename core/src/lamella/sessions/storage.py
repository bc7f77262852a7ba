"""Where a session's entries are kept: in memory until something is said, then in its file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from lamella.errors import UsageError
from lamella.sessions.lines import Lines, encode_line
from lamella.sessions.writer import Appender, rewrite
from lamella.types.entries import Entry, Header
from lamella.types.messages import AssistantMessage, UserMessage


class Storage:
    """One transcript file, or the entries that will be its first.

    The first write to a file that was there mends what has to be mended: a missing final line feed,
    a lost header, an older version (`needs_rewrite`); the original is kept beside a rewrite. `size`
    is the file's length in bytes when it was read.
    """

    def __init__(
        self, path: Path, header: Header, *, on_disk: bool, size: int = 0, needs_rewrite: bool = False
    ) -> None:
        self.path = path
        self._header = header
        self._pending: list[Entry] | None = None if on_disk else []
        self._size = size
        self._needs_rewrite = needs_rewrite
        self._appender = Appender(path)
        self._appendable = False

    @property
    def on_disk(self) -> bool:
        return self._pending is None

    @property
    def changed(self) -> bool:
        """Whether somebody else has written to the file since it was read or last appended to."""
        try:
            size = self.path.stat().st_size
        except FileNotFoundError:
            return self.on_disk
        if self._pending is not None:
            return size > 0
        known = self._appender.size if self._appendable else self._size
        return size != known or not self._appender.in_place

    def store(self, entry: Entry, line: bytes, before: Lines) -> None:
        """Store an entry and its encoded line behind those of `before`.

        It is on disk when this returns, unless nothing has been said yet. Raises `TranscriptError`
        when it could not be stored; then nothing has changed.
        """
        if self._pending is None:
            self._make_appendable(before)
            self._appender.append(line)
            return
        self._pending.append(entry)
        if _says_something(entry):
            try:
                self.flush()
            except BaseException:
                self._pending.pop()
                raise

    def store_all(self, entries: Sequence[Entry], before: Lines) -> None:
        """Store several entries behind those of `before` as one step: all of them, or none.

        Raises `TranscriptError` when they could not be stored; then nothing has changed.
        """
        if self._pending is not None:
            self._pending.extend(entries)
            return
        self._make_appendable(before)
        self._appender.append_all(b"".join(encode_line(e.fields) for e in entries))

    def hold(self, entry: Entry) -> None:
        """Keep an entry in memory, to be written by `flush`."""
        assert self._pending is not None
        self._pending.append(entry)

    def flush(self) -> None:
        """Write what so far is in memory only, whatever it says."""
        if self._pending is None:
            return
        objects = [self._header.fields, *(e.fields for e in self._pending)]
        if self.path.exists():
            self._adopt_empty_file()
            for fields in objects:
                self._appender.append(encode_line(fields))
        else:
            self._appender.create(objects)
        self._pending = None
        self._appendable = True

    def close(self) -> None:
        self._appender.close()

    def _adopt_empty_file(self) -> None:
        """A file without content may become this session; anything else is somebody's data."""
        if self.path.read_bytes().strip():
            raise UsageError(f"{self.path}: already exists; a new session needs a new file")
        self._appender.open()
        self._appender.end_line()

    def _make_appendable(self, lines: Lines) -> None:
        if self._appendable:
            return
        self._appender.open(expected_size=self._size)
        if self._needs_rewrite:
            self._appender.close()
            rewrite(self.path, [encode_line(self._header.fields), *lines.raw])
            self._needs_rewrite = False
            self._appender.open()
        self._appender.end_line()
        self._appendable = True


def _says_something(entry: Entry) -> bool:
    return isinstance(entry.message, (UserMessage, AssistantMessage))
