"""When a transcript that is still being written is read again."""

from __future__ import annotations

import time
from pathlib import Path

from attrs import frozen

from lamella.memory.scan import FoundFile

# A session in which nobody has written for this long is taken in however little is new.
_QUIET_NS = 600 * 1_000_000_000


@frozen(slots=True)
class Growth:
    """How much has to be new in a transcript: so many bytes, or so many messages. 0: anything."""

    bytes: int
    messages: int

    def can_wait(self, found: FoundFile, known_size: int) -> bool:
        """Whether what is new since the file had `known_size` bytes is too little to read it again yet."""
        grown = found.stat.st_size - known_size
        quiet = abs(time.time_ns() - found.stat.st_mtime_ns) >= _QUIET_NS  # a time to come is a clock that was wrong
        if grown < 0 or grown >= self.bytes or quiet:
            return False
        try:
            with Path(found.path).open("rb") as file:
                file.seek(known_size)
                return file.read(grown).count(b"\n") < self.messages
        except OSError:  # whoever reads it as a whole says what is wrong
            return False
