"""Settings of the backend for notes: `[plugins.config.lancedb-backend]`."""

from __future__ import annotations

from attrs import frozen

from lamella.config.schema import between, not_empty, setting


@frozen(slots=True)
class Config:
    """Settings of lancedb-backend, with their defaults."""

    embedder: str = setting(
        "static", "What compares meanings: the name of an embedder, or none for words alone.", check=not_empty
    )
    chunk_tokens: int = setting(128, "Size of an indexed passage, in estimated tokens.", check=between(16, 4000))
    chunk_overlap: int = setting(32, "About how many tokens of a passage the next one repeats.", check=between(0, 2000))
    snippet_chars: int = setting(
        1200, "Most characters of one result's text; neighbouring hits are joined up to it.", check=between(80, 20_000)
    )
    lock_seconds: float = setting(
        60.0, "How long a sync waits for another process that writes the index.", check=between(0.1, 600)
    )
    index_rows: int = setting(
        100_000, "From this number of passages on, vectors have an approximate index.", check=between(1000)
    )
