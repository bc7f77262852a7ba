"""What was removed leaves the disk, though the program is killed in the middle or the clock goes back."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from lamella.errors import MemoryUnavailable
from lamella_memory_lancedb.store.database import FORGOTTEN, MEMORIES, OLDER, Database, tidy_all
from lamella_memory_lancedb.store.location import Location
from lamella_memory_lancedb.store.upkeep import Upkeep

if TYPE_CHECKING:
    import pyarrow as pa

_NAME = ".lamella.purge"
# Names that LanceDB gives to files while it writes them.
_BEGUN = re.compile(r"^\.tmp|#\d+$")


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


class Rewriter:
    """Writes the table of memories anew, so that nothing of what it was before stays in a folder."""

    def __init__(self, database: Database, upkeep: Upkeep) -> None:
        self._database = database
        self._upkeep = upkeep
        self._owed = Owed(database.location)
        self.owes = self._owed.is_there
        self.owes_nothing = self._owed.end

    def write(self, whole: pa.Table) -> None:
        """Put these rows in place of the table, with their index of words."""
        self._owed.begin()
        table = self._database.write(MEMORIES, whole)
        self._database.guarded(lambda: self._upkeep.index_words(table))
        folder = self._database.location.folder
        if folder is not None:
            self._prune(whole)
            for name in (MEMORIES, OLDER, FORGOTTEN):
                self._leave_nothing(folder, name)
        self._owed.end()

    def _prune(self, whole: pa.Table) -> None:
        """Take out of the table of an older version what is not among the memories any more."""
        from lamella_memory_lancedb.store.rewriting import pruned

        older = self._database.read(OLDER, lambda table: table.to_arrow(), None)
        if older is None:
            return
        left = pruned(older, whole)
        if not left.num_rows:
            self._database.drop(OLDER)
        elif left.num_rows < older.num_rows:
            self._database.write(OLDER, left)

    def _leave_nothing(self, folder: Path, name: str) -> None:
        """Remove all but the newest version of a table, while nobody else writes.

        LanceDB removes what is older than now, and so keeps what was written before a clock went back: its
        versions are taken away by hand then, and their data follows. Nor does it know the files that a killed
        program had begun.
        """
        table = self._database.table(name)
        if table is None:
            return
        place = folder / f"{name}.lance"
        for begun in [path for path in place.rglob("*") if _BEGUN.search(path.name)]:
            begun.unlink(missing_ok=True)
        self._database.guarded(lambda: tidy_all(table))
        if len(self._database.guarded(table.list_versions)) > 1:
            # Names count down, so that the newest comes first.
            for manifest in sorted((place / "_versions").glob("*.manifest"))[1:]:
                manifest.unlink()
            self._database.guarded(lambda: tidy_all(table))
