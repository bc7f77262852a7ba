"""Where a table is: a folder on this machine, or an object store."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

from attrs import field, frozen

from lamella.errors import MemoryUnavailable
from lamella_memory_lancedb.config import SECTION, Config, expanded

_FOLDER = "lancedb"


@frozen(slots=True)
class Location:
    """`uri` and `options` are what LanceDB is given; `folder` is None for an object store.

    `shown` is the place as it may be printed: without user name, password and query.
    """

    uri: str = field(repr=False)
    folder: Path | None
    shown: str
    options: Mapping[str, str] = field(factory=dict, repr=False)

    @property
    def is_remote(self) -> bool:
        return self.folder is None

    def holds(self, table: str) -> bool:
        """Whether there is, or may be, a table of that name. Raises `MemoryUnavailable` for a folder that cannot
        be looked into."""
        return self.stamp(table) is not None

    def stamp(self, table: str) -> tuple[int, int] | None:
        """What differs when somebody has removed a table's folder and made it anew; None when it is not there.
        An object store has always the same. Raises as `holds`."""
        if self.folder is None:
            return 0, 0
        try:
            found = (self.folder / f"{table}.lance").stat()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise MemoryUnavailable(
                f"{self.shown} cannot be read: {error.strerror or error}",
                hint=f"Check its permissions, and {SECTION}.uri, which names a folder.",
            ) from error
        return found.st_ino, found.st_ctime_ns


def locate(config: Config, state_dir: Path) -> Location:
    """The place that the settings name. A relative folder is one in the agent's state."""
    text = expanded(config.uri).strip()
    if "://" in text:
        options = {name: expanded(value) for name, value in config.storage_options.items()}
        return Location(text, None, _without_credentials(text), options)
    folder = state_dir / Path(text).expanduser() if text else state_dir / _FOLDER
    return Location(str(folder), folder, str(folder))


def _without_credentials(uri: str) -> str:
    parts = urlsplit(uri)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))
