"""How files are cut into passages."""

from __future__ import annotations

from attrs import frozen

from lamella.memory.paths import is_curated
from lamella.text import chunk, segment
from lamella.text.chunk import Chunk, chunk_text
from lamella_memory_core.choices import LINES, OPENCLAW
from lamella_memory_core.index.openclaw import openclaw_chunks


@frozen(slots=True)
class Chunking:
    """How files are cut: sizes in estimated tokens, and the rule, one of `CHUNK_RULES`.

    `redacted`: secrets are masked first, so that they are neither stored nor sent to an embedder.
    """

    size: int = 128
    overlap: int = 32
    rule: str = LINES
    redacted: bool = False

    @property
    def identity(self) -> str:
        """Changes when the same files would give another index."""
        rule = chunk.IDENTITY if self.rule == LINES else self.rule
        masked = "/redacted" if self.redacted else ""
        return f"{rule}/{self.size}/{self.overlap}/{segment.IDENTITY}{masked}"

    def cut(self, name: str, text: str) -> list[Chunk]:
        """The curated file holds one fact an entry, so it is cut by entries."""
        if self.redacted:
            from lamella.text.redact import redact

            text = redact(text)
        if self.rule == OPENCLAW:
            return openclaw_chunks(text, size=self.size, overlap=self.overlap)
        return chunk_text(text, size=self.size, overlap=self.overlap, by_entry=is_curated(name))
