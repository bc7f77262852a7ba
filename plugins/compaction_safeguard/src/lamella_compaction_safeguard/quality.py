"""Whether a summary says what it must, and how it is mended without a model."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

from lamella.text.scripts import EAST_ASIAN, share_in
from lamella.text.segment import query_terms, tokens
from lamella_compaction_safeguard.clip import clipped, one_line
from lamella_compaction_safeguard.headings import (
    ASKS,
    IDENTIFIERS,
    REQUIRED,
    fitted,
    missing_headings,
    with_headings,
    with_items,
)
from lamella_compaction_safeguard.identifiers import Identifier
from lamella_compaction_safeguard.untrusted import untrusted_block

ASK_LOST = "latest_user_ask_not_reflected"
CUT_OFF = "cut_off"
OTHER_LANGUAGE = "other_language"
_MAX_NAMED = 3
_MAX_ASK_TERMS = 12
_ASK_CHARS = 600
_LANGUAGE_SAMPLE = 4000
_ASIAN, _NOT_ASIAN = 0.3, 0.05

_ADVICE = {
    ASK_LOST: "say under the heading for pending asks what the user asked for last",
    CUT_OFF: "the summary was cut off by the length limit: write a shorter one",
    OTHER_LANGUAGE: "write in the language that the user writes in",
}


@frozen(slots=True)
class Facts:
    """What a summary is checked for.

    `checked` identifiers must be in a model's summary; `kept` ones, which have those and earlier
    ones, are added where they are missing. `ask` is the user's latest folded request, `quoted` tells
    that the request stands word for word elsewhere. `user_text` is a sample of the user's language.
    """

    checked: tuple[Identifier, ...] = ()
    kept: tuple[Identifier, ...] = ()
    ask: str = ""
    quoted: bool = False
    user_text: str = ""


def audit(summary: str, facts: Facts, *, cut_off: bool = False) -> tuple[str, ...]:
    """What is wrong with a summary, as short codes; empty when nothing is."""
    reasons = [f"missing_section:{heading}" for heading in missing_headings(summary)]
    missing = [i.key for i in facts.checked if not i.is_in(summary)]
    if missing:
        reasons.append("missing_identifiers:" + ",".join(missing[:_MAX_NAMED]))
    if not facts.quoted and not reflects(summary, facts.ask):
        reasons.append(ASK_LOST)
    if cut_off:
        reasons.append(CUT_OFF)
    if is_in_other_language(summary, facts.user_text):
        reasons.append(OTHER_LANGUAGE)
    return tuple(reasons)


def reflects(summary: str, ask: str) -> bool:
    """Whether a summary shares enough words with a request: one, or two when it has three or more.

    Words are the first 12 that carry a topic; in scripts without spaces, pairs of characters.
    """
    terms = [t for t in query_terms(ask) if t.kind != "phrase"][:_MAX_ASK_TERMS]
    if not terms:
        return True
    words = set(tokens(summary))
    hits = sum(
        t.text in words or (t.kind == "prefix" and any(word.startswith(t.text) for word in words)) for t in terms
    )
    return hits >= (2 if len(terms) >= 3 else 1)


def is_in_other_language(summary: str, user_text: str) -> bool:
    """Whether the user writes Chinese, Japanese or Korean and the summary does not, or the other way round.

    Headings are not counted. Other languages are not told apart.
    """
    body = "\n".join(line for line in summary.split("\n") if line.strip() not in REQUIRED)
    theirs, ours = (_asian_share(text[:_LANGUAGE_SAMPLE]) for text in (user_text, body))
    if theirs is None or ours is None:
        return False
    return (theirs >= _ASIAN and ours < _NOT_ASIAN) or (theirs < _NOT_ASIAN and ours >= _ASIAN)


def _asian_share(text: str) -> float | None:
    """The part of the letters that is Chinese, Japanese or Korean; None without letters."""
    return share_in(text, EAST_ASIAN) if any(char.isalpha() for char in text) else None


def feedback(reasons: Sequence[str]) -> str:
    """What a model is told about its last try."""
    lines = [f"- {_ADVICE.get(reason, reason.replace(':', ': ', 1))}" for reason in reasons]
    block = untrusted_block("What the last try lacked", "\n".join(lines))
    return f"The last try failed a check. Write the summary again, whole, and mend this.\n{block}"


def repair(summary: str, facts: Facts, beside: str = "") -> tuple[str, tuple[str, ...]]:
    """The summary with what it lacks added as facts, and the codes of what was added.

    Headings come at the end; identifiers below their heading; the latest request, unless it is quoted
    elsewhere, as the first item below the heading for asks. What `beside` says need not be added.
    Mending twice changes nothing more.
    """
    added = [f"section:{heading}" for heading in missing_headings(summary)]
    mended = with_headings(summary)
    lost = [i.text for i in facts.kept if not i.is_in(f"{mended}\n{beside}")]
    mended = with_items(mended, IDENTIFIERS, lost, first=False)
    if lost:
        added.append(f"identifiers:{len(lost)}")
    if not facts.quoted and not reflects(f"{mended}\n{beside}", facts.ask):
        mended = with_items(mended, ASKS, [_ask_item(facts.ask)], first=True)
        added.append("latest_user_ask")
    return mended, tuple(added)


def mended_to_fit(summary: str, facts: Facts, limit: int, beside: str = "") -> tuple[str, tuple[str, ...]]:
    """As `repair`, within `limit` characters; what repair adds is never cut."""
    mended, added = repair(summary, facts, beside)
    if len(mended) <= limit:
        return mended, added
    return repair(fitted(summary, limit - _most_added(facts)), facts, beside)


def _ask_item(ask: str) -> str:
    """The user's words as a fact: whether they have been answered is not known here."""
    return f'The last request before the kept messages, as it was put: "{clipped(one_line(ask), _ASK_CHARS)}"'


def _most_added(facts: Facts) -> int:
    """More characters than a repair ever adds."""
    headings = sum(len(heading) + 20 for heading in REQUIRED)
    ask = 0 if facts.quoted or not facts.ask else len(_ask_item(facts.ask)) + 3
    return headings + ask + sum(len(i.text) + 3 for i in facts.kept)
