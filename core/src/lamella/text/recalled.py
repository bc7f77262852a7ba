"""What memory puts before a prompt: what it looks for, and how its block is told from everything else. Pure.

Memories are written by models, people and programs. So what is recalled stands between delimiters that
no memory can write, and a copy of such a block in somebody's words is nobody's words.
"""

from __future__ import annotations

import re

from lamella.text.segment import is_unspaced

# The delimiters of blocks, by name: those of memory-core, and those of memory-lancedb and OpenClaw.
NOTES_BLOCK, MEMORIES_BLOCK = BLOCKS = ("recalled-memory", "relevant-memories")

# What a search compares is bounded; of a longer prompt, both ends are taken.
MOST_QUESTION_CHARS = 1000
_LEAST_CHARS = 5
_LEAST_UNSPACED_CHARS = 2
# With the wide and the small forms, which models read as the same.
_ESCAPES = str.maketrans(
    {"&": "&amp;", "<": "&lt;", ">": "&gt;", "＜": "&#xff1c;", "＞": "&#xff1e;", "﹤": "&#xfe64;", "﹥": "&#xfe65;"}
)
_QUOTES = str.maketrans({'"': "&quot;", "'": "&#39;"})
_BLOCK = re.compile(rf"<({'|'.join(BLOCKS)})>.*?</\1>", re.DOTALL | re.IGNORECASE)
_DELIMITER = re.compile(rf"</?(?:{'|'.join(BLOCKS)})\b[^>]*>?", re.IGNORECASE)


def question_of(prompt: str) -> str:
    """What to search for on behalf of a prompt; empty when it is too short to mean something."""
    text = prompt.strip()
    unspaced = sum(is_unspaced(character) for character in text)
    if len(text) < _LEAST_CHARS and unspaced < _LEAST_UNSPACED_CHARS:
        return ""
    if len(text) <= MOST_QUESTION_CHARS:
        return text
    half = MOST_QUESTION_CHARS // 2
    return f"{text[:half]}\n{text[-half:]}"


def escaped(text: str, *, quotes: bool = False) -> str:
    """Text in which nothing can be taken for a delimiter; with `quotes`, nor for the end of an attribute."""
    text = text.translate(_ESCAPES)
    return text.translate(_QUOTES) if quotes else text


def without_blocks(text: str) -> str:
    """Somebody's words without the recalled blocks that were put before, or copied into, them."""
    return _BLOCK.sub("", text).strip()


def has_delimiter(text: str) -> bool:
    """Whether the beginning or end of a recalled block is in a text."""
    return _DELIMITER.search(text) is not None
