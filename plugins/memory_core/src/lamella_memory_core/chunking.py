"""How files are cut into passages."""

from __future__ import annotations

from attrs import frozen

from lamella.memory.paths import CURATED, CURATED_LOWER
from lamella.text import chunk, segment
from lamella.text.chunk import Chunk, chunk_text


@frozen(slots=True)
class Chunking:
    """How files are cut, in estimated tokens."""

    size: int = 128
    overlap: int = 32

    @property
    def identity(self) -> str:
        """Changes when the same files would give another index."""
        return f"{chunk.IDENTITY}/{self.size}/{self.overlap}/{segment.IDENTITY}"

    def cut(self, name: str, text: str) -> list[Chunk]:
        """The curated file holds one fact an entry, so it is cut by entries."""
        return chunk_text(text, size=self.size, overlap=self.overlap, by_entry=name in (CURATED, CURATED_LOWER))
