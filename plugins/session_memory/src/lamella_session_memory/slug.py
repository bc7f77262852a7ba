"""Names of notes: short, in the words of the conversation, fit for a file system. Pure."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence

from lamella.text.segment import fold, is_unspaced
from lamella.text.stopwords import FUNCTION_CHARACTERS, STOP_WORDS
from lamella.text.unicode import character_start, well_formed
from lamella_session_memory.conversation import Said

MAX_CHARS = 30
_PROMPT_CHARS = 2000
_LONGEST_ANSWER = 80  # an answer above it is no name
_WORDS = 2
_NOT_IN_NAMES = re.compile(r"[\W_]+")


def slug_prompt(said: Sequence[Said]) -> str:
    """The question to a model, with the end of the conversation: what was last talked about."""
    text = "\n".join(f"{s.speaker}: {s.words}" for s in said)
    return (
        "Name the topic of this conversation in one or two words, in its own language, for a file name. "
        "Answer with these words only.\n\n<conversation>\n" + text[-_PROMPT_CHARS:] + "\n</conversation>"
    )


def slug_of_answer(answer: str) -> str:
    """The name in a model's answer; empty when there is none."""
    lines = [line for line in answer.strip().splitlines() if line.strip()]
    return slugified(lines[0]) if lines and len(lines[0]) <= _LONGEST_ANSWER else ""


def slugified(text: str) -> str:
    """A text as a name: letters and digits of any script in lower case, hyphens between, at most 30 characters."""
    words = _NOT_IN_NAMES.sub("-", unicodedata.normalize("NFC", well_formed(text)).lower()).strip("-")
    if len(words) <= MAX_CHARS:
        return words
    cut = words[: character_start(words, MAX_CHARS)]
    if words[len(cut)] != "-" and "-" in cut:
        cut = cut.rpartition("-")[0]
    return cut.strip("-")


def slug_of_text(said: Sequence[Said]) -> str:
    """The words that the most messages have, in the order in which they come; empty when none tells anything.

    Of words that are as frequent, those of users come first, then the earlier ones.
    """
    spread: Counter[str] = Counter()
    by_user: set[str] = set()
    for message in said:
        telling = dict.fromkeys(_telling(message.words))
        spread.update(telling.keys())
        if message.speaker == "user":
            by_user.update(telling)
    best = sorted(spread, key=lambda word: (-spread[word], word not in by_user))[:_WORDS]
    return slugified(" ".join(word for word in spread if word in best))


def _telling(text: str) -> Iterator[str]:
    for run in re.findall(r"[^\W_]+", fold(text)):
        if is_unspaced(run):
            yield from (piece for piece in _pieces(run) if 2 <= len(piece) <= MAX_CHARS // _WORDS)
        elif len(run) > 2 and not run.isdigit() and run not in STOP_WORDS:
            yield run


def _pieces(run: str) -> list[str]:
    """A run of characters without spaces, cut where a character stands that only joins others."""
    return "".join(" " if c in FUNCTION_CHARACTERS else c for c in run).split()
