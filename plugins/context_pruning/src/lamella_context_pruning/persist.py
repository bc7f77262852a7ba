"""What of a tool result is stored: a text within limits, and details that are small and hold no secrets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import evolve

from lamella.text.shorten import shorten_result
from lamella.types.messages import TextBlock, ToolCall, ToolResultMessage, blocks_of
from lamella_context_pruning.config import Results
from lamella_context_pruning.reread import tell_how
from lamella_context_pruning.sizes import UNITS_PER_TOKEN, text_units

MOST_CHARS = 400_000
_WINDOW_SHARE = 0.3


def stored_limit(window: int, config: Results) -> int:
    """Most units of a stored result, for a window in tokens."""
    return config.max_chars or min(int(window * _WINDOW_SHARE) * UNITS_PER_TOKEN, MOST_CHARS)


def shortened(result: ToolResultMessage, limit: int, call: ToolCall | None) -> ToolResultMessage:
    """A result whose texts have at most `limit` units together; the same object if they had."""
    texts = [b.text for b in blocks_of(result.content) if isinstance(b, TextBlock)]
    units = sum(map(text_units, texts))
    if units <= limit:
        return result
    return shorten_result(result, limit * sum(map(len, texts)) // units, tell_how(call))


def small_details(details: Any, config: Results) -> Any:
    """Details within their limits, with secrets masked; the same object when nothing changes.

    Long texts are cut. When that is not enough, the largest members go, and their names are noted.
    """
    cleaned = _clean(details, config.details_max_chars)
    if cleaned == details:
        cleaned = details
    size = _size(cleaned)
    if size <= config.details_max_bytes:
        return cleaned
    if not isinstance(cleaned, Mapping):
        return {"omitted": f"{size} bytes"}
    kept = dict(cleaned)
    omitted: list[str] = []
    for name in sorted(cleaned, key=lambda n: _size(cleaned[n]), reverse=True):
        if _size({**kept, "omitted": omitted}) <= config.details_max_bytes:
            break
        del kept[name]
        omitted.append(str(name)[:100])
    result = {**kept, "omitted": omitted}
    return result if _size(result) <= config.details_max_bytes else {"omitted": f"{size} bytes"}


def _clean(value: Any, max_chars: int) -> Any:
    """A JSON value with secrets masked and long texts cut."""
    if isinstance(value, str):
        from lamella.text.redact import redact  # not light, and of use in a turn only

        text = redact(value[: 2 * max_chars])  # so that no secret is cut before it is seen
        left_out = max(len(value) - max_chars, 0)
        return f"{text[:max_chars]}... [{left_out} characters left out]" if left_out else text
    if isinstance(value, Mapping):
        return {key: _clean(item, max_chars) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_clean(item, max_chars) for item in value]
    return value


def _size(value: Any) -> int:
    from lamella.sessions.lines import encode_line

    return len(encode_line({"": value})) - len('{"":}\n')


def to_store(result: ToolResultMessage, limit: int, call: ToolCall | None, config: Results) -> ToolResultMessage:
    """The result as it is stored; the same object when it is small and clean."""
    kept = shortened(result, limit, call)
    details = small_details(kept.details, config)
    return kept if details is kept.details else evolve(kept, details=details)
