"""Long-term memory for lamella: Markdown files are the truth, an SQLite index finds things in them."""

from lamella_memory_core.config import Config
from lamella_memory_core.plugin import MemoryCore

__all__ = ["Config", "MemoryCore"]
__version__ = "0.1.0"
