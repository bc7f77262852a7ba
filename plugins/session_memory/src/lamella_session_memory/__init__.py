"""Notes of sessions for lamella: what was said before a reset becomes a Markdown file in memory."""

from lamella_session_memory.config import Config
from lamella_session_memory.plugin import SessionMemory

__all__ = ["Config", "SessionMemory"]
__version__ = "0.1.0"
