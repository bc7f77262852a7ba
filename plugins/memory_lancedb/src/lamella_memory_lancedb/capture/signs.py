"""What a user's message is: worth keeping or not, and of which category. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from lamella.text.recalled import has_delimiter
from lamella.text.segment import fold, is_unspaced
from lamella_memory_lancedb.capture.disguises import readings
from lamella_memory_lancedb.capture.languages import LANGUAGES
from lamella_memory_lancedb.store.memory import Category

LEAST_WEIGHT = 8
_UNSPACED_WEIGHT = 2  # a character of a script without spaces says about as much as two letters
_MOST_EMOJI = 3
_EMOJI = re.compile("[\U0001f300-\U0001f9ff\u2600-\u27bf]")
_SENTENCE = re.compile(r"[^.!?。！？…\n]+(?:[.](?=\S)[^.!?。！？…\n]+)*[.!?。！？…]*")
_QUESTION_MARKS = ("?", "？")
_TAGS = re.compile(
    r"<\s*/?\s*(?:system|assistant|developer|tool|function|relevant[-‐‑ ]memories|recalled[-‐‑ ]memory)\b|"
    r"\[ ?/?inst ?\]|<\s*(?:im start|im end|begin of|end of|endoftext)"
)
_LIST_LINE = re.compile(r"^\s*(?:[-*•+]|\d+[.)])\s+\S", re.MULTILINE)
# Scaffolding: what programs put into a conversation.
_SCAFFOLD = re.compile(
    r"```|^\s*[{\[].*[}\]]\s*$|^\s*(?:system|assistant|tool|user|human)\s*:|^\s*\[[^\]\n]{1,60}\]\s|^Traceback|"
    r"^\s*(?:queued|conversation info|sender|heartbeat|pre-compaction|current time)\b",
    re.IGNORECASE | re.DOTALL,
)
# What people say to an agent at work: it is over when the work is.
_CHATTER = re.compile(
    r"^(?:(?:ok|okay|yes|no|sure|great|thanks?|cool|perfect|done|now|then|and|also|please|好的?|行|嗯|谢谢|はい|네)"
    r"[,.! 。，、]+)*"
    r"(?:please |now |then |can you |could you )*"
    r"(?:run|fix|check|try|continue|go (?:on|ahead)|retry|restart|stop|open|show|list|print|commit|push|deploy|merge|"
    r"install|delete|remove|rename|update|add|write|create|implement|refactor|explain|summari[sz]e|translate)\b",
    re.IGNORECASE,
)
_CONTACT = re.compile(r"\+\d[\d\s().-]{8,}\d|[\w.+-]+@[\w-]+\.[\w.-]*\w")


def is_worth_keeping(text: str, max_chars: int, triggers: Sequence[str] = ()) -> bool:
    """Whether a message says something lasting of its speaker, or asks to be remembered.

    `text` is without recalled blocks. `triggers`: more words that make it so.
    """
    if not _is_kept_form(text, max_chars) or is_injection(text):
        return False
    sentences = [sentence for found in _SENTENCE.finditer(text) if (sentence := found[0].strip())]
    return any(_is_lasting(sentence, triggers) for sentence in sentences)


def is_injection(text: str) -> bool:
    """Whether a text tries to steer a model rather than to inform it, by what it says or by tags."""
    return any(_TAGS.search(reading) for reading in readings(text)) or steers(text)


def steers(text: str) -> bool:
    """Whether a text says what a model is to do against its instructions."""
    return any(language.steers.search(reading) for reading in readings(text) for language in LANGUAGES)


def category_of(text: str) -> Category:
    """What kind of memory a text is; the first that fits of preference, decision, entity, fact."""
    flat = " ".join(fold(text).split())
    if any(language.prefers.search(flat) for language in LANGUAGES):
        return "preference"
    if any(language.decides.search(flat) for language in LANGUAGES):
        return "decision"
    if _CONTACT.search(text) or _any(flat, "names"):
        return "entity"
    return "fact" if _any(flat, "states") else "other"


def weight(text: str) -> int:
    """The length of a text, in letters of a script with spaces."""
    return sum(_UNSPACED_WEIGHT if is_unspaced(character) else 1 for character in text)


def _is_kept_form(text: str, max_chars: int) -> bool:
    return (
        weight(text) >= LEAST_WEIGHT
        and len(text) <= max_chars
        and not has_delimiter(text)
        and not (text.startswith("<") and "</" in text)
        and not ("**" in text and "\n-" in text)
        and len(_LIST_LINE.findall(text)) < 2
        and len(_EMOJI.findall(text)) <= _MOST_EMOJI
        and not _SCAFFOLD.search(text)
    )


def _is_lasting(sentence: str, triggers: Sequence[str]) -> bool:
    flat = " ".join(fold(sentence).split())
    if any(trigger.strip() and fold(trigger.strip()) in flat for trigger in triggers):
        return True
    if any(language.remembers.search(flat) for language in LANGUAGES):
        return not _recalls(flat) and not _says_nothing(flat)
    plain = flat.rstrip(".!。！…")
    if flat.endswith(_QUESTION_MARKS) or any(language.asks.search(plain) for language in LANGUAGES):
        return False
    if _CHATTER.match(flat) or _says_nothing(flat):
        return False
    return bool(_CONTACT.search(sentence)) or any(language.lasting.search(flat) for language in LANGUAGES)


def _says_nothing(flat: str) -> bool:
    return any(language.says_nothing.search(flat) for language in LANGUAGES)


def _recalls(flat: str) -> bool:
    """Whether a sentence asks what is remembered, rather than to remember."""
    return flat.endswith(_QUESTION_MARKS) and not re.match(r"(?:can|could|would|will) you|please|请|請", flat)


def _any(flat: str, field: str) -> bool:
    """Whether a sign of a field is in a text, of languages that may be its own: short words of one mean
    something else in another."""
    unspaced = any(map(is_unspaced, flat))
    return any(getattr(language, field).search(flat) for language in LANGUAGES if language.spaced != unspaced)
