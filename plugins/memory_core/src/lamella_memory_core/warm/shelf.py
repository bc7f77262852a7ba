"""What is kept beside the database, so that processes need not make it again: words and vectors as arrays."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

from attrs import field, frozen

from lamella_memory_core.meaning.matrix import Block
from lamella_memory_core.warm.part import Part
from lamella_memory_core.warm.stored import Damaged, Stored, read_arrays, write_arrays

WORDS_NAME, VECTORS_NAME = "memory.words", "memory.vectors"

log = logging.getLogger(__name__)


@frozen(slots=True, eq=False)
class Base:
    """The whole index as it was in one state: `birth` of the database, `number` of the state."""

    birth: str
    number: int
    part: Part = field(repr=False)

    @property
    def stamp(self) -> str:
        return f"{self.birth}:{self.number}"


class Shelf:
    """The two files in a folder. Files that are damaged, of another state or embedder count as none.

    Whoever writes holds the lock that `warming` takes. Files may be replaced at any time.
    """

    def __init__(self, folder: Path) -> None:
        self._words, self._vectors = folder / WORDS_NAME, folder / VECTORS_NAME
        self._seen: dict[Path, tuple[Any, Any]] = {}

    def base(self, birth: str) -> Base | None:
        """The words of the database of this birth, if there are any."""
        base: Base | None = self._made(self._words, _as_base)
        return base if base is not None and base.birth == birth else None

    def put_base(self, base: Base) -> None:
        """Raises `OSError`."""
        write_arrays(self._words, {"birth": base.birth, "number": str(base.number)}, base.part.arrays())

    def vectors(self, base: Base, identity: str) -> Block | None:
        """The vectors that an embedder made of a base's passages, if they are there."""
        facts, block = self._made(self._vectors, _as_block) or ({}, None)
        return block if facts == _vector_facts(base, identity) else None

    def put_vectors(self, base: Base, identity: str, block: Block) -> None:
        """Raises `OSError`."""
        write_arrays(self._vectors, _vector_facts(base, identity), block.arrays())

    def _made(self, path: Path, make: Callable[[Stored], Any]) -> Any:
        """What a file holds; read again only when it has been replaced."""
        try:
            stat = path.stat()
        except OSError:
            return None
        mark = (stat.st_ino, stat.st_mtime_ns, stat.st_size)
        seen, value = self._seen.get(path, (None, None))
        if seen == mark:
            return value
        try:
            stored = read_arrays(path)
            value = None if stored is None else make(stored)
        except (Damaged, KeyError, ValueError) as error:  # also a file of another version of lamella
            log.warning("%s is left out and will be made again: %s", path, error)
            value = None
        self._seen[path] = (mark, value)
        return value


def _as_base(stored: Stored) -> Base:
    return Base(stored.facts["birth"], int(stored.facts["number"]), Part.from_arrays(stored.arrays))


def _as_block(stored: Stored) -> tuple[Any, Block]:
    return stored.facts, Block.from_arrays(stored.arrays)


def _vector_facts(base: Base, identity: str) -> dict[str, str]:
    return {"base": base.stamp, "identity": identity}
