"""Which folders are followed, and what in them counts."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from attrs import frozen


@frozen(slots=True)
class Root:
    """A folder to follow, which need not exist: all of it but folders of the names `ignored`, or only
    the entries of these `names` in it."""

    path: Path
    names: frozenset[str] = frozenset()
    ignored: frozenset[str] = frozenset()

    @property
    def deep(self) -> bool:
        return not self.names

    def folders(self) -> Iterator[Path]:
        """The folders whose entries count. Links are not followed."""
        if not self.deep:
            yield self.path
            return
        for path, below, _ in os.walk(self.path):
            below[:] = [name for name in below if name not in self.ignored]
            yield Path(path)

    def concerns(self, changed: str) -> bool:
        """Whether a change of this path counts."""
        return self.deep or Path(changed).name in self.names

    def identity(self) -> tuple[int, int] | None:
        """What tells a folder from another one that took its place; None when there is none."""
        try:
            status = self.path.stat()
        except OSError:
            return None
        return status.st_dev, status.st_ino
