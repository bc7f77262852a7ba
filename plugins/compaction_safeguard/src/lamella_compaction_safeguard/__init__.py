"""Compaction for lamella that checks what a model's summary says, and refreshes the rules after it."""

from lamella_compaction_safeguard.config import Config
from lamella_compaction_safeguard.plugin import CompactionSafeguard

__all__ = ["CompactionSafeguard", "Config"]
__version__ = "0.1.0"
