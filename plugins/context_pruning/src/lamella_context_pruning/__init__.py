"""Context pruning for lamella: old tool output is shortened or cleared before it fills the window."""

from lamella_context_pruning.config import Config
from lamella_context_pruning.plugin import ContextPruning

__all__ = ["Config", "ContextPruning"]
__version__ = "0.1.0"
