"""Long-term memory for lamella as a table of memories in LanceDB."""

from __future__ import annotations

from lamella_memory_lancedb.config import Config
from lamella_memory_lancedb.plugin import MemoryLanceDB

__all__ = ["Config", "MemoryLanceDB"]
