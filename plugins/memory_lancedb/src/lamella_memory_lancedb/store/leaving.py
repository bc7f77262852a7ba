"""What was removed leaves the disk, though the program is killed in the middle or the clock goes back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lamella.errors import MemoryUnavailable
from lamella_memory_lancedb.store.database import tidy_all
from lamella_memory_lancedb.store.location import Location

_NAME = ".lamella.purge"


class Owed:
    """A file beside the tables that is there from before texts are removed until none of them is on the disk.

    Who finds it later finishes what a killed program began.
    """

    def __init__(self, location: Location) -> None:
        self._location = location
        self._path = location.folder / _NAME if location.folder is not None else None

    def is_there(self) -> bool:
        return self._path is not None and _exists(self._path)

    def begin(self) -> None:
        if self._path is not None:
            try:
                self._path.touch()
            except OSError as error:
                raise MemoryUnavailable(
                    f"{self._location.shown} cannot be written: {error.strerror or error}",
                    hint="Check its permissions and that there is room.",
                ) from error

    def end(self) -> None:
        if self._path is not None:
            self._path.unlink(missing_ok=True)


def _exists(path: Path) -> bool:
    """False too for a folder that cannot be looked into: whoever writes there is told."""
    try:
        return path.exists()
    except OSError:
        return False


def leave_nothing(table: Any, folder: Path, name: str) -> None:
    """Remove all but the newest version of a table in a folder, while nobody else writes.

    LanceDB removes what is older than now, and so keeps what was written before a clock went back: its
    versions are taken away by hand then, and their data follows.
    """
    tidy_all(table)
    if len(table.list_versions()) > 1:
        # Names count down, so that the newest comes first.
        for manifest in sorted((folder / f"{name}.lance" / "_versions").glob("*.manifest"))[1:]:
            manifest.unlink()
        tidy_all(table)
