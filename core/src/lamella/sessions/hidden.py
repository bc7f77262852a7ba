"""What a transcript holds that was never meant for a reader: prompts of programs, and silent replies.

lamella stores no silent turns; other programs do.
"""

from __future__ import annotations

# Replies that nobody is shown.
SILENT_REPLIES = frozenset({"NO_REPLY", "HEARTBEAT_OK"})
# How the prompt of a memory flush begins; the whole turn is silent.
FLUSH_PROMPT = "Pre-compaction memory flush"
# Prompts of programs whose answers may be for people.
_PROMPTS = (FLUSH_PROMPT, "Read HEARTBEAT.md if it exists")


def is_hidden(text: str) -> bool:
    """Whether a message says nothing to a reader: it is blank, a silent reply, or a program's prompt."""
    words = text.strip()
    return not words or words in SILENT_REPLIES or words.startswith(_PROMPTS)
