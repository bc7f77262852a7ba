"""The backend `lancedb` for memory-core: passages of Markdown notes in a LanceDB table."""

from __future__ import annotations

from lamella_memory_lancedb.notes.plugin import LanceDBBackend

__all__ = ["LanceDBBackend"]
