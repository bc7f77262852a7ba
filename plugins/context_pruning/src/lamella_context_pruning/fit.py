"""Making a request fit: no tool result above its share, then the oldest ones out. Pure.

Two limits. Below the window's total share, old results make room: not those of the last replies,
not those of denied tools, and never the newest. Only when the request does not fit the window at
all do these go too, the oldest first; the newest is shortened, not removed. What stands before the
first user message, and what a user or the model said, is never touched.
"""

from __future__ import annotations

from collections.abc import Sequence

from attrs import evolve

from lamella.text.shorten import MIN_KEEP, shorten
from lamella.types.messages import (
    ImageBlock,
    TextBlock,
    ToolCall,
    ToolResultMessage,
    text_of,
)
from lamella_context_pruning.config import Config, Fit
from lamella_context_pruning.draft import Draft
from lamella_context_pruning.globs import allowed
from lamella_context_pruning.prune import cleared, first_user, protected_from
from lamella_context_pruning.reread import calls_of, tell_how
from lamella_context_pruning.sizes import UNITS_PER_TOKEN, density

LEAST = 1024
SINGLE, TOTAL = "result_over_limit", "context_over_limit"
# Output of tools takes more tokens than prose of the same length.
_RESULT_UNITS_PER_TOKEN = 2
_RESULT_WEIGHT = UNITS_PER_TOKEN // _RESULT_UNITS_PER_TOKEN


def single_limit(window: int, config: Fit) -> int:
    """Most units of one result, for a window in tokens."""
    return max(LEAST, int(window * _RESULT_UNITS_PER_TOKEN * config.single_share))


def total_limit(window: int, config: Fit) -> int:
    """Most units of all messages, where results count twice."""
    return max(LEAST, int(window * UNITS_PER_TOKEN * config.total_share))


def fit(draft: Draft, window: int, config: Config) -> None:
    """Shrink what does not fit a window of so many tokens."""
    places = [i for i, _ in draft.results(first_user(draft.original) or 0)]
    if not places:
        return
    limit = single_limit(window, config.fit)
    willing = [i for i in places if allowed(_result(draft, i).tool_name, (), config.tools.deny)]
    _cut_long(draft, willing, limit)
    tail = protected_from(draft.original, config.keep_last_assistants)
    old = [i for i in willing if (tail is None or i < tail) and i != places[-1]]
    _remove_oldest(draft, old, _weight(draft) - total_limit(window, config.fit), _RESULT_WEIGHT, config)

    room = window * UNITS_PER_TOKEN
    if sum(draft.sizes) <= room:
        return
    _cut_long(draft, places, limit)
    _remove_oldest(draft, places[:-1], sum(draft.sizes) - room, 1, config)
    newest, excess = places[-1], sum(draft.sizes) - room
    if excess > 0:
        _cut_long(draft, [newest], max(LEAST, draft.sizes[newest] - excess), TOTAL)


def _result(draft: Draft, index: int) -> ToolResultMessage:
    result = draft.messages[index]
    assert isinstance(result, ToolResultMessage)
    return result


def _weight(draft: Draft) -> int:
    """Units of all messages, where results count twice."""
    return sum(draft.sizes) + (_RESULT_WEIGHT - 1) * sum(draft.sizes[i] for i, _ in draft.results())


def _cut_long(draft: Draft, places: Sequence[int], limit: int, rule: str = SINGLE) -> None:
    """Shorten the results that have more than `limit` units."""
    too_long = [i for i in places if draft.sizes[i] > limit]
    calls = calls_of(draft.original) if too_long else {}
    for i in too_long:
        draft.replace(i, within(_result(draft, i), limit, calls.get(i)), "trimmed", rule)


def _remove_oldest(draft: Draft, places: Sequence[int], excess: int, weight: int, config: Config) -> None:
    """Put the placeholder in the place of results, until `excess` is gone; a unit of them frees `weight`."""
    for i in places:
        if excess <= 0:
            return
        before = draft.sizes[i]
        if before > len(config.placeholder):
            draft.replace(i, cleared(_result(draft, i), config), "cleared", TOTAL)
            excess -= (before - draft.sizes[i]) * weight


def within(result: ToolResultMessage, limit: int, call: ToolCall | None) -> ToolResultMessage:
    """A result of at most `limit` units as one text: head and tail, and a note in place of images.

    `call` is the call that it answers; a `read` is told how to see the missing part.
    """
    text = text_of(result.content, "\n")
    images = 0 if isinstance(result.content, str) else sum(isinstance(b, ImageBlock) for b in result.content)
    if images:
        note = f"[{images} image{'s' if images > 1 else ''} left out: too large for the context window]"
        text = f"{text}\n{note}" if text else note
    characters = int(limit / density(text))
    text = shorten(text, characters, tell_how(call), min_keep=min(MIN_KEEP, characters // 4))
    return evolve(result, content=text if isinstance(result.content, str) else (TextBlock(text),))
