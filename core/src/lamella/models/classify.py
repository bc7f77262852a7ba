"""What a provider's error means: does the request not fit, is it worth another try, as it is or without
thinking, or neither?

Pure functions on the error's text, HTTP status and machine-readable code. Status and code speak
first where they are unambiguous; the words decide the rest, since many servers report a full
window with a plain 400, 413 or 500 and a sentence. Extra patterns are regular expressions that
mark a text as an overflow; they are matched against the text as it came, in any case.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from lamella.errors import (
    ConfigError,
    ContextOverflow,
    ModelAuthError,
    ModelError,
    ModelRateLimited,
    ModelRejected,
    ModelTransient,
    Problem,
    ThinkingRejected,
)
from lamella.models import error_patterns as p
from lamella.types.messages import AssistantMessage

QUOTA_HINT = "The account's quota or balance is used up; waiting does not help. Check plan and billing."
AUTH_HINT = "Check that the key is right and may use this model."

# These say plainly that the request was read and refused for another reason than its size.
_NEVER_OVERFLOW = frozenset({401, 402, 403, 404, 429})
_TRANSIENT_STATUS = frozenset({408, 409, 425})

# A reply cut at its first token with the window this full means: nothing was left to write into.
_FULL = 0.99


def is_context_overflow(
    text: str,
    *,
    status: int | None = None,
    code: str | None = None,
    provider: str = "",
    patterns: Sequence[str] = (),
) -> bool:
    """True when the error says that the request does not fit the model's window."""
    if any(re.search(extra, text, re.IGNORECASE) for extra in patterns):
        return True
    words = p.normalize(f"{code or ''} {text}")
    status = status or _status_in(text)
    if status in _NEVER_OVERFLOW or p.RATE_LIMIT.search(words):
        return False
    if p.REFUSED.search(words) or p.QUOTA.search(words):
        return False
    if p.NOT_OVERFLOW.search(words) and "context" not in words:
        return False
    if status == 413 or p.OVERFLOW.search(words):
        return True
    # Cerebras answers a full window with a status and nothing else.
    return provider == "cerebras" and status == 400 and p.NO_BODY.search(words) is not None


def observed_tokens(text: str) -> int | None:
    """The tokens that a refused request had, by its error's words; None when they do not say."""
    found = p.OBSERVED.search(text.lower())
    if found is None:
        return None
    digits = next(group for group in found.groups() if group)
    return int(re.sub(r"\D", "", digits))


def is_retryable_text(text: str) -> bool:
    """True when the same request may succeed a little later, judged by the error's words alone."""
    return classify_error(text).retryable


def classify_error(
    text: str,
    *,
    status: int | None = None,
    code: str | None = None,
    retry_after: float | None = None,
    provider: str = "",
    patterns: Sequence[str] = (),
) -> ModelError:
    """The error as lamella raises it.

    `status` is the HTTP status, `code` the provider's error code or type, `retry_after` seconds
    that the server asked to wait, `patterns` more regular expressions for overflows.
    """
    if is_context_overflow(text, status=status, code=code, provider=provider, patterns=patterns):
        return _overflow(text, status, code)
    words = p.normalize(f"{code or ''} {text}")
    known = status or _status_in(text)
    if _is_quota(words, known, retry_after):
        return ModelRejected(text, status=status, hint=QUOTA_HINT)
    if known == 429 or (known in (None, 413, 503) and _says_rate_limit(words)):
        return ModelRateLimited(text, status=status, retry_after=retry_after)
    if known in (401, 403) or (known in (None, 400) and p.AUTH.search(words)):
        return ModelAuthError(text, status=status, hint=AUTH_HINT)
    if _is_transient(words, known):
        return ModelTransient(text, status=status, retry_after=retry_after)
    if p.THINKING.search(words):
        return ThinkingRejected(text, status=status)
    return ModelRejected(text, status=status)


def usage_overflows(message: AssistantMessage, window: int) -> bool:
    """True when a reply that reports success shows that its request did not fit.

    Some servers cut the request silently and count what they were sent; others stop before the
    first token with the window full. `window` in tokens; 0 means unknown.
    """
    if window <= 0 or message.usage is None:
        return False
    sent = message.usage.input + message.usage.cache_read
    if message.stop_reason == "stop":
        return sent > window
    return message.stop_reason == "length" and message.usage.output == 0 and sent >= _FULL * window


def _overflow(text: str, status: int | None, code: str | None) -> ContextOverflow:
    only_bytes = (status or _status_in(text)) == 413 and not p.ABOUT_TOKENS.search(p.normalize(f"{code or ''} {text}"))
    return ContextOverflow(text, status=status, tokens=observed_tokens(text), certain=not only_bytes)


def check_patterns(patterns: Sequence[str], *, key: str = "models.overflow_patterns", origin: str = "") -> None:
    """Raise `ConfigError` with every pattern that is not a regular expression."""
    problems: list[Problem] = []
    for index, pattern in enumerate(patterns):
        try:
            re.compile(pattern)
        except re.error as error:
            text = f'expected a regular expression, found "{pattern}" ({error})'
            problems.append(Problem(f"{key}[{index}]", text, origin))
    if problems:
        raise ConfigError(problems)


def _status_in(text: str) -> int | None:
    found = p.LEADING_STATUS.match(p.normalize(text))
    return int(found[1]) if found else None


def _is_quota(words: str, status: int | None, retry_after: float | None) -> bool:
    if status == 402:
        return True
    if status not in (None, 400, 403, 429) or not p.QUOTA.search(words):
        return False
    # Gemini calls its limits by the minute a quota too, and says when to come back.
    return "insufficient" in words or not (retry_after is not None or p.SHORT_QUOTA.search(words))


def _says_rate_limit(words: str) -> bool:
    return bool(p.RATE_LIMIT.search(words) or p.RATE_LIMIT_STATUS.search(words))


def _is_transient(words: str, status: int | None) -> bool:
    if status is not None and status not in (200, 400):
        return status >= 500 or status in _TRANSIENT_STATUS
    return p.TRANSIENT.search(words) is not None
