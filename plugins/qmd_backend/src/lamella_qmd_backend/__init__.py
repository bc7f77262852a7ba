"""Memory search with QMD, a search program for Markdown: the backend `qmd` of `memory.backend`."""

from __future__ import annotations

from lamella_qmd_backend.config import Config
from lamella_qmd_backend.plugin import QmdBackendPlugin

__all__ = ["Config", "QmdBackendPlugin"]
__version__ = "0.1.0"
