"""What was said in a session, quoted for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lamella.cli.common import local_minute
from lamella.text.days import parse_iso_ms

if TYPE_CHECKING:
    from lamella.sessions.recall import Quote


def quote_text(quote: Quote, timezone: str = "") -> str:
    """A quote under its place, with a mark before each line; times in a zone (empty: the system's)."""
    folded = ", folded" if quote.folded else ""
    text = f"{'…' if quote.start else ''}{quote.text}{'…' if quote.left else ''}"
    quoted = "\n".join(f"> {line}".rstrip() for line in text.split("\n"))
    return f"[{quote.entry_id}] {local_minute(parse_iso_ms(quote.time), timezone)} {quote.role}{folded}\n{quoted}"
