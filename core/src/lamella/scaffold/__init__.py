"""Projects for new plugins, from templates in `kinds/`: what `lamella plugins new` writes."""

from __future__ import annotations

KINDS = ("backend", "hook", "tool", "model")

__all__ = ["KINDS"]
