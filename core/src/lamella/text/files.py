"""Text files of any origin, and replacing a file as a whole."""

from __future__ import annotations

import codecs
import contextlib
import errno
import os
import re
from collections.abc import Iterable
from pathlib import Path

from attrs import frozen

try:
    import fcntl
except ImportError:  # pragma: no cover - Windows
    fcntl = None  # type: ignore[assignment]

BOM = codecs.BOM_UTF8
_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_NO_DIRECTORY_SYNC = {errno.EINVAL, errno.ENOTSUP, errno.EACCES, errno.EPERM}


@frozen(slots=True)
class TextFile:
    """A decoded file: `text` has its line ends as they are and no byte-order mark.

    `newline` is the line end that most lines have; `replaced` counts the places that were not valid
    in `encoding` and became U+FFFD.
    """

    text: str
    bom: bool = False
    newline: str = "\n"
    encoding: str = "utf-8"
    replaced: int = 0


def decode_text(data: bytes) -> TextFile:
    """Decode UTF-8, with or without byte-order mark; UTF-16 when its mark says so. Never fails."""
    bom = data.startswith(BOM)
    encoding = "utf-16" if data.startswith(_UTF16) else "utf-8"
    body = data[len(BOM) :] if bom else data
    try:
        text, replaced = body.decode(encoding), 0
    except UnicodeDecodeError:
        text = body.decode(encoding, "replace")
        replaced = max(text.count("\ufffd") - body.count("\ufffd".encode()), 1)
    return TextFile(text, bom or encoding == "utf-16", main_newline(text), encoding, replaced)


def main_newline(text: str) -> str:
    """`\\r\\n` when most lines end so, else `\\n`."""
    windows = text.count("\r\n")
    return "\r\n" if windows > text.count("\n") - windows else "\n"


def split_lines(text: str) -> list[str]:
    """Lines as an editor numbers them, without line ends. Only `\\n` and `\\r\\n` end a line.

    A line end at the end of the text does not begin another line; an empty text has no lines.
    """
    if not text:
        return []
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    return [line.removesuffix("\r") for line in lines]


def count_lines(path: Path) -> int:
    """How many lines a file has, without holding it in memory. Raises `OSError`."""
    with path.open("rb", buffering=0) as file:
        return sum(block.count(b"\n") for block in iter(lambda: file.read(1 << 20), b""))


def write_atomic(path: Path, data: bytes | bytearray, *, mode: int | None = None) -> None:
    """Replace a file's content: readers see all of the old or all of the new, also after a crash.

    An existing file keeps its permissions; `mode` is for a new one (default: what the umask leaves).
    A symbolic link stays, its target is replaced. Raises `OSError` that names `path`; the old content
    is intact then and no temporary file is left. What a killed process left is removed here.
    """
    write_pieces(path, (data,), mode=mode)


def write_pieces(path: Path, pieces: Iterable[bytes | bytearray], *, mode: int | None = None) -> None:
    """As `write_atomic`, with the content in pieces, so that not all of it need be in memory."""
    target = Path(os.path.realpath(path))
    try:
        _sweep(target)
        fd, temporary = _open_temporary(target, 0o666 if mode is None else mode)
        try:
            _write_and_sync(fd, pieces)
            with contextlib.suppress(FileNotFoundError):
                temporary.chmod(target.stat().st_mode & 0o7777)
            fd = _close_where_rename_needs_it(fd)
            os.replace(temporary, target)  # noqa: PTH105
        except BaseException:
            with contextlib.suppress(OSError):
                temporary.unlink()
            raise
        finally:
            if fd >= 0:
                os.close(fd)
        sync_directory(target.parent)
    except OSError as error:
        if error.errno is None:
            raise
        raise OSError(error.errno, os.strerror(error.errno), str(path)) from error


def read_at(fd: int, size: int, offset: int) -> bytes:
    """Bytes of an open file from an offset; fewer at its end."""
    if hasattr(os, "pread"):
        return os.pread(fd, size, offset)
    os.lseek(fd, offset, os.SEEK_SET)  # pragma: no cover - Windows
    return os.read(fd, size)  # pragma: no cover


def sync_directory(folder: Path) -> None:
    """Make a rename or a new name in a folder last through a crash, where the system can do that."""
    if os.name == "nt":  # pragma: no cover
        return
    fd = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(fd)
    except OSError as error:
        if error.errno not in _NO_DIRECTORY_SYNC:
            raise
    finally:
        os.close(fd)


def _write_and_sync(fd: int, pieces: Iterable[bytes | bytearray]) -> None:
    for piece in pieces:
        rest = memoryview(piece)
        while rest:
            rest = rest[os.write(fd, rest) :]
    os.fsync(fd)


def _close_where_rename_needs_it(fd: int) -> int:
    if os.name == "nt":  # pragma: no cover
        os.close(fd)
        return -1
    return fd


# A writer holds a lock on its temporary file until it has been renamed. So a temporary file that can
# be locked by someone else belongs to a process that is gone.


def _open_temporary(target: Path, mode: int) -> tuple[int, Path]:
    while True:
        temporary = target.with_name(f"{_prefix(target)}{os.urandom(4).hex()}.tmp")
        fd = os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY | getattr(os, "O_CLOEXEC", 0), mode)
        if _lock(fd, otherwise=True) and os.fstat(fd).st_nlink:
            return fd, temporary
        os.close(fd)  # another writer took it for a left-over in between


def _sweep(target: Path) -> None:
    left_over = re.compile(re.escape(_prefix(target)) + r"[0-9a-f]{8}\.tmp")
    with os.scandir(target.parent) as entries:
        found = [entry.path for entry in entries if left_over.fullmatch(entry.name)]
    for name in found:
        with contextlib.suppress(OSError):  # another writer may remove it first
            fd = os.open(name, os.O_WRONLY | getattr(os, "O_NOFOLLOW", 0))
            try:
                if _lock(fd, otherwise=False):
                    os.unlink(name)  # noqa: PTH108
            finally:
                os.close(fd)


def _prefix(target: Path) -> str:
    # A name may take 255 bytes; the random part and the ending need room.
    return f".{os.fsencode(target.name)[:200].decode(errors='ignore')}."


def _lock(fd: int, *, otherwise: bool) -> bool:
    """Lock an open file; `otherwise` is the answer where the system has no such locks."""
    if fcntl is None:  # pragma: no cover
        return otherwise
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        return otherwise and error.errno != errno.EWOULDBLOCK
    return True
