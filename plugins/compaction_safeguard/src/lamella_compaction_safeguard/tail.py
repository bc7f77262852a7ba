"""What stands behind the model's part of a summary: quoted, counted and read from files, never cut."""

from __future__ import annotations

from collections.abc import Sequence

from lamella.text.conversation import FileLists, file_tags
from lamella.text.estimate import estimate_text
from lamella.text.shorten import shorten
from lamella_compaction_safeguard.carried import NOTES, REQUEST_TAG, RULES_TAG
from lamella_compaction_safeguard.untrusted import framed

MAX_RULES = 2000
_MAX_LIST = 900
_MAX_NOTES = 8
_LEAST = 1000


def allowed_chars(most: int, window: int, sample: str) -> int:
    """Most characters of a summary: what is configured, but no more than a quarter of the window.

    `sample` shows how many characters of this conversation make a token.
    """
    tokens = estimate_text(sample)
    fitting = window // 4 * len(sample) // tokens if tokens else window
    return max(min(most, fitting), _LEAST)


def file_section(files: FileLists, max_chars: int = 2 * _MAX_LIST) -> str:
    """The tags with the files; a list that is too long ends with a count of the rest."""
    limit = min(_MAX_LIST, max_chars // 2)
    return file_tags(FileLists(_capped(files.read, limit), _capped(files.modified, limit))).strip()


def notes_section(notes: Sequence[str]) -> str:
    """What was too large to be summarised."""
    more = [f"...and {len(notes) - _MAX_NOTES} more"] if len(notes) > _MAX_NOTES else []
    return "\n".join([NOTES, *notes[:_MAX_NOTES], *more]) if notes else ""


def rules_section(rules: str) -> str:
    """Rules of the workspace, framed."""
    return framed(RULES_TAG, rules) if rules else ""


def request_section(request: str, max_chars: int) -> str:
    """The user's latest request word for word, framed; a very long one without its middle."""
    return framed(REQUEST_TAG, shorten(request, max_chars, min_keep=0)) if request else ""


def _capped(paths: Sequence[str], limit: int) -> tuple[str, ...]:
    kept: list[str] = []
    for path in paths:
        limit -= len(path) + 1
        if limit < 0:
            return (*kept, f"...and {len(paths) - len(kept)} more")
        kept.append(path)
    return tuple(kept)
